"""Commits that may become cochange cases.

Looked at are the commits that a ref reaches, merges among them, the newest first. A commit is
left out where one of these does not hold:

- it has one parent, and its subject is neither a revert's nor that of a bot's version bump;
- it changes 2 to 30 files, at least two of them *code files*: there before and after under the
  same path, regular text files, in a language that is parsed (markdown is not code), neither
  generated nor vendored, indexed; of their changes more than white space;
- one of these is no test: the *query file* is the one of them with most changed lines, the
  first by path of equals, and has no more than 1,000;
- the other code files give 1 to 20 units of gold (see ``gold``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from coderag_ci import diff
from coderag_ci.diff import FileDiff
from coderag_ci.eval.cases import Case
from coderag_ci.eval.gold import Candidate, Edit, Place, edits_of, is_code
from coderag_ci.gitrepo import Commit, GitRepo, RawChange, Sides
from coderag_ci.parse.languages import language_of
from coderag_ci.pathrules import TEST, PathRules

_MOST_FILES = 30
_MOST_LINES = 1000
_REVERT = re.compile(r"revert\b", re.IGNORECASE)
_BUMP = re.compile(
    r"(?:\w+\([^)]*\):\s*|\w+:\s*)?bump \S+(?: and \S+)? from\b|[\w-]+\((?:deps|deps-dev)\)"
    r"|(?:\w+:\s*)?(?:bump|update) (?:[\w-]+ ){0,2}"
    r"(?:dependency|dependencies|requirements|hooks?)\b"
    r"|\[pre-commit\.ci\]",
    re.IGNORECASE,
)


def candidates(
    repo: GitRepo, commit: str, rules: PathRules, name: str
) -> Iterator[Candidate | str]:
    """Yield for each commit of a history a candidate, or why it is none."""
    for one in repo.history(commit, changes=True):
        yield why_not(one) or _candidate(repo, one, rules, name)


def why_not(commit: Commit) -> str:
    """Say what, of the commit itself, keeps it from being a case."""
    if len(commit.parents) != 1:
        return "merge" if commit.parents else "no parent"
    if _REVERT.match(commit.subject):
        return "revert"
    if _BUMP.match(commit.subject):
        return "version bump"
    if len(commit.changes) < 2:
        return "fewer than 2 files"
    return f"more than {_MOST_FILES} files" if len(commit.changes) > _MOST_FILES else ""


def _candidate(repo: GitRepo, commit: Commit, rules: PathRules, name: str) -> Candidate | str:
    paths = [change.path for change in commit.changes if _stays(change, rules)]
    if len(paths) < 2:
        return "fewer than 2 code files"
    sides = Sides(commit.parents[0], commit.id)
    found = diff.compute(repo, sides, None, [f":(top,literal){path}" for path in paths])
    edits = {file.path: _edits(file) for file in found.files}
    files = [file for file in found.files if edits[file.path]]
    if len(files) < 2:
        return "fewer than 2 code files"
    asking = [file for file in files if not rules.flags(file.path) & TEST]
    if not asking:
        return "tests alone"
    query = min(asking, key=lambda file: (-_size(file), file.path))
    if _size(query) > _MOST_LINES:
        return f"more than {_MOST_LINES:,} lines of the query file"
    case = Case(
        id=f"{name.rpartition('/')[2]}-co-{commit.id[:12]}",
        kind="cochange",
        repo=name,
        base=commit.parents[0],
        head=commit.id,
        language=language_of(query.path).name,
        date=commit.date,
        query_files=(query.path,),
        subject=commit.subject,
        n_code_files=len(files),
        n_changed_lines=sum(map(_size, files)),
    )
    places = tuple(
        Place(file.path, file.old_blob, file.new_blob, edits[file.path])
        for file in files
        if file is not query
    )
    return Candidate(case, edits[query.path], places)


def _stays(change: RawChange, rules: PathRules) -> bool:
    modes = (change.old_mode, change.new_mode)
    regular = all(mode & 0o170000 == 0o100000 for mode in modes)
    return change.status == "M" and regular and is_code(change.path, rules)


def _edits(file: FileDiff) -> tuple[Edit, ...]:
    return tuple(edit for edit in edits_of(file) if edit.counts) if file.kind == "text" else ()


def _size(file: FileDiff) -> int:
    return file.added + file.deleted
