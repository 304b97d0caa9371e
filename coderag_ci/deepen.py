"""Brings what a comparison needs into a clone that CI cut short, step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from coderag_ci.errors import CoderagError, SetupError
from coderag_ci.gitrepo import GitRepo

_STEPS = (50, 200, 800, 3200)  # commits further back; then all of them
_HINT = "set fetch-depth: 0 in actions/checkout"

Say = Callable[[str], None]


class Ends(NamedTuple):
    """The two commits of a comparison, and their merge base."""

    base: str
    head: str
    merge_base: str


class Clone:
    """A clone, and what its remote wants to hear before it gives anything."""

    def __init__(self, repo: GitRepo, header: str, say: Say) -> None:
        self._repo = repo
        self._header = header
        self._say = say

    def commit(self, names: Iterable[str]) -> str:
        """Return the commit of the first of some refs or ids that is here or can be fetched.

        Raises SetupError where none can.
        """
        problem: CoderagError | None = None
        for name in names:
            for known in (name, f"refs/remotes/origin/{name.removeprefix('refs/heads/')}"):
                if self._repo.exists(known):
                    return self._repo.resolve(known)
            try:
                return self._fetch([name], *(("--depth=50",) if self._repo.shallow else ()))
            except CoderagError as error:
                problem = problem or error
        reason = problem.message if problem else "the event names no commit"
        raise SetupError(f"the commits of the change can not be fetched: {reason}", _HINT)

    def merge_base(self, base: str, head: str) -> str:
        """Return the merge base, for which a shallow clone is deepened as far as it takes.

        A clone that has its whole history is never cut. Raises SetupError.
        """
        for step in (*_STEPS, 0):
            if (found := self._related(base, head)) or not self._repo.shallow:
                break
            self._say(f"deepening the clone by {step} commits" if step else "fetching all history")
            try:
                self._fetch([base, head], f"--deepen={step}" if step else "--unshallow")
            except CoderagError as error:
                raise SetupError(
                    f"the merge base is not in this clone and can not be fetched: {error.message}",
                    _HINT,
                ) from error
        return found or self._repo.merge_base(base, head)

    def _related(self, base: str, head: str) -> str:
        try:
            return self._repo.merge_base(base, head)
        except SetupError:
            return ""

    def _fetch(self, wanted: list[str], *options: str) -> str:
        return self._repo.fetch(wanted, *options, header=self._header)
