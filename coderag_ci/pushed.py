"""What a push adds to a remote, from the lines of git's pre-push hook or pre-commit's variables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from coderag_ci.errors import CoderagError
from coderag_ci.gitrepo import GitRepo

_BRANCHES = "refs/heads/"


class Pushed(NamedTuple):
    """A branch that is pushed. ``base``: what the remote has of it; None: nothing."""

    name: str
    base: str | None
    head: str


def of_lines(repo: GitRepo, remote: str, lines: Iterable[str]) -> list[Pushed]:
    """Return the branches that the lines of git's pre-push hook name.

    A line: local ref, local id, remote ref, remote id. Deletions and tags add no code.
    """
    found = []
    for line in lines:
        words = line.split()
        if len(words) != 4:
            continue
        _, head, ref, old = words
        if ref.startswith(_BRANCHES) and head.strip("0"):
            base = old if _related(repo, old, head) else repo.pushed_base(head, remote)
            found.append(Pushed(ref.removeprefix(_BRANCHES), base, head))
    return found


def of_pre_commit(repo: GitRepo, environment: Mapping[str, str]) -> Pushed:
    """Return what pre-commit says of a push; it gives no refs where all of the history is new.

    Neither does it where a person runs its pre-push hooks by hand. Raises CoderagError.
    """
    base = environment.get("PRE_COMMIT_FROM_REF", "")
    head = environment.get("PRE_COMMIT_TO_REF", "")
    name = environment.get("PRE_COMMIT_LOCAL_BRANCH") or "HEAD"
    name = name.removeprefix(_BRANCHES)
    if base and head:
        head = repo.resolve(head)
        if _related(repo, base, head):
            return Pushed(name, repo.resolve(base), head)
    else:
        head = repo.resolve(environment.get("PRE_COMMIT_LOCAL_BRANCH") or "HEAD")
    return Pushed(
        name, repo.pushed_base(head, environment.get("PRE_COMMIT_REMOTE_NAME", "*")), head
    )


def _related(repo: GitRepo, base: str, head: str) -> bool:
    """Whether two commits are here and have one in common."""
    if not base.strip("0") or not repo.exists(base):
        return False
    try:
        return bool(repo.merge_base(base, head))
    except CoderagError:
        return False
