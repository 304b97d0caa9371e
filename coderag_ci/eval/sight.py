"""What a case lets the pipeline see: a change, its diff and a view that holds no answer."""

from __future__ import annotations

import dataclasses

from coderag_ci import diff
from coderag_ci import view as views
from coderag_ci.change import Change
from coderag_ci.diff import Diff
from coderag_ci.errors import CoderagError
from coderag_ci.eval.cases import ASKED, ONE_FILE, Case
from coderag_ci.gitrepo import GitRepo, Sides, encode_path
from coderag_ci.parse.content import MAX_BYTES
from coderag_ci.pathrules import PathRules
from coderag_ci.view import View


class Unusable(Exception):  # noqa: N818  # a case that is skipped, not a failure
    """A case that can not be run; the message says why."""


@dataclasses.dataclass(frozen=True)
class Sight:
    """A change as the pipeline takes it, and the view that it may search."""

    change: Change
    diff: Diff
    view: View


def see(repo: GitRepo, case: Case, rules: PathRules) -> Sight:
    """Return what a case shows.

    cochange and signature: the tree of ``base`` with the query file's blob from ``head``;
    missed and twin: the tree of ``head``; query and docstring: the tree of ``base``, for the
    latter with the docstring's lines blanked. Raises Unusable for a commit or a path that
    is not there.
    """
    for commit in dict.fromkeys((case.base, case.head)):
        if not _is_commit(repo, commit):
            raise Unusable(f"commit {commit[:12] or '(none)'} is not in the repository")
    try:
        look = _asked if case.kind in ASKED else _changed
        seen = look(repo, case, rules)
    except CoderagError as error:
        raise Unusable(error.message) from error
    paths = {entry.path for entry in seen.view.entries}
    for path in dict.fromkeys(item.path for item in case.gold):
        if path not in paths:
            raise Unusable(f"gold path {path!r} is not in the view")
    return seen


def _is_commit(repo: GitRepo, commit: str) -> bool:
    whole = len(commit) in (40, 64) and all(sign in "0123456789abcdef" for sign in commit)
    return whole and repo.exists(commit)


def _asked(repo: GitRepo, case: Case, rules: PathRules) -> Sight:
    seen = views.commit_view(repo, case.base, rules)
    if case.kind == "docstring":
        seen = _without_docstring(repo, seen, case)
    change = Change(
        "commits", case.base, case.base, case.base, case.query, Sides(case.base, case.base), ()
    )
    return Sight(change, Diff((), ()), seen)


def _without_docstring(repo: GitRepo, seen: View, case: Case) -> View:
    path = case.gold[0].path
    entry = next((e for e in seen.entries if e.path == path), None)
    if entry is None:
        raise Unusable(f"gold path {path!r} is not in the view")
    ((_, _, data),) = repo.blobs([entry.blob], MAX_BYTES)
    if data is None:
        raise Unusable(f"{path!r} can not be read")
    lines = data.split(b"\n")
    first, last = case.docstring
    if not 1 <= first <= last <= len(lines):
        raise Unusable("the docstring's lines are not in the file")
    lines[first - 1 : last] = [b""] * (last - first + 1)
    blanked = b"\n".join(lines)
    blob = repo.hash(blanked)
    return dataclasses.replace(
        seen,
        entries=tuple(e._replace(blob=blob) if e.path == path else e for e in seen.entries),
        contents={blob: blanked},
    )


def _changed(repo: GitRepo, case: Case, rules: PathRules) -> Sight:
    sides = Sides(case.base, case.head)
    if case.kind in ONE_FILE:
        paths: tuple[str, ...] = (f":(top,literal){case.query_files[0]}",)
        seen = with_one_file(repo, case.base, case.head, case.query_files[0], rules)
    else:
        paths = ()
        seen = views.commit_view(repo, case.head, rules)
    found = diff.compute(repo, sides, None, paths)
    if not found.files:
        raise Unusable("its change is empty")
    change = Change(
        "commits", case.base, case.head, case.base, case.subject, sides, paths, commits=1
    )
    return Sight(change, found, seen)


def with_one_file(repo: GitRepo, commit: str, other: str, path: str, rules: PathRules) -> View:
    """See the tree of a commit with one path as it is in another. Raises Unusable."""
    one = views.of_paths(repo, other, [path], rules)
    if not one.entries:
        raise Unusable(f"file {path!r} is not in {other[:12]}, or not indexed")
    seen = views.commit_view(repo, commit, rules)
    rest = [entry for entry in seen.entries if entry.path != path]
    entries = sorted([*rest, *one.entries], key=lambda e: encode_path(e.path))
    return dataclasses.replace(seen, entries=tuple(entries))
