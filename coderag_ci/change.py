"""From flags and surroundings to what is compared: base, head, merge base and title."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from coderag_ci.ci import CI
from coderag_ci.errors import SetupError, UsageError
from coderag_ci.gitrepo import GitRepo, Sides

_LONGEST_TITLE = 2000


class Wanted(NamedTuple):
    """What the user asked for; empty means: choose."""

    base: str = ""
    head: str = ""
    staged: bool = False
    worktree: bool = False
    paths: Sequence[str] = ()


class Change(NamedTuple):
    """What is compared. ``kind``: commits, staged or worktree; ``head`` only for commits.

    ``merge_base`` is empty only for the first commit of a repository, still staged.
    """

    kind: str
    base: str
    head: str
    merge_base: str
    title: str
    sides: Sides
    paths: tuple[str, ...]
    commits: int = 0


def resolve(repo: GitRepo, wanted: Wanted, ci: CI) -> Change:
    """Decide what to compare. Raises SetupError and UsageError (see gitrepo).

    Commits are compared from their merge base, never from the tip of the base.
    """
    if sum((bool(wanted.head), wanted.staged, wanted.worktree)) > 1:
        raise UsageError("--head, --staged and --worktree exclude each other", "give one")
    kind = "staged" if wanted.staged else "worktree" if wanted.worktree else "commits"
    if kind != "commits" and repo.bare:
        raise SetupError("a bare repository has no working tree", "compare commits with --head")
    if kind != "commits":
        return _uncommitted(repo, wanted, kind)
    head = repo.resolve(wanted.head or "HEAD")
    name = wanted.base or ci.base or repo.default_branch()
    if not name:
        raise SetupError("no default branch was found", "name what to compare with: --base REF")
    base = repo.resolve(name)
    merge_base = repo.merge_base(base, head)
    if merge_base == head and not wanted.head and not repo.bare and repo.dirty():
        return _uncommitted(repo, wanted, "worktree")
    title = ci.title or "\n".join(repo.subjects(merge_base, head))
    return Change(
        "commits",
        base,
        head,
        merge_base,
        title[:_LONGEST_TITLE],
        Sides(merge_base, head),
        tuple(wanted.paths),
        repo.count_commits(merge_base, head),
    )


def _uncommitted(repo: GitRepo, wanted: Wanted, kind: str) -> Change:
    """Compare the index or the working tree with HEAD, or with the merge base of a base."""
    head = repo.head()
    if wanted.base and head is None:
        raise SetupError("the repository has no commits yet", "leave --base out")
    base = repo.resolve(wanted.base) if wanted.base else head or ""
    merge_base = repo.merge_base(base, head) if base and head else ""
    sides = Sides(merge_base or repo.empty_tree(), None, kind == "staged")
    return Change(kind, base, "", merge_base, "", sides, tuple(wanted.paths))
