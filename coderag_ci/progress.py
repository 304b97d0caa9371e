"""What is said on stderr while the run goes: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator

from coderag_ci.characters import visible

Advance = Callable[[int, int], None]
_PLAIN_EVERY = 1000


class Progress:
    """Says nothing when quiet; otherwise a rich bar on a terminal and plain lines in CI."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._terminal = sys.stderr is not None and sys.stderr.isatty()

    @contextlib.contextmanager
    def task(self, label: str, worth: bool) -> Iterator[Advance]:
        """Report a task; yields ``advance(done, total)``. Short tasks are not ``worth`` it."""
        if self._quiet or not worth:
            yield lambda done, total: None
        elif self._terminal:
            with _bar(label) as advance:
                yield advance
        else:
            yield _plain(label)

    def say(self, line: str) -> None:
        """Print one line to stderr."""
        if not self._quiet:
            to_stderr(f"coderag-ci: {printable(line)}")


def printable(text: str) -> str:
    """Keep one line; what a terminal would act on, and hidden characters, are written out."""
    safe = visible(text.encode("utf-8", "backslashreplace").decode())
    return "".join(c if c.isprintable() else " " for c in safe)


def to_stderr(text: str) -> None:
    """Print to stderr, without secrets; one that is closed, full or gone costs nothing else."""
    from coderag_ci import redact

    if sys.stderr is None:
        return
    try:
        print(redact.line(text), file=sys.stderr, flush=True)
    except (OSError, ValueError):
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # for good


@contextlib.contextmanager
def _bar(label: str) -> Iterator[Advance]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as RichProgress

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with RichProgress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _plain(label: str) -> Advance:
    def advance(done: int, total: int) -> None:
        if done == total or done % _PLAIN_EVERY == 0:
            to_stderr(f"coderag-ci: {label}: {done} of {total}")

    return advance
