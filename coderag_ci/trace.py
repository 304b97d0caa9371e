"""What each stage did, collected as the run goes."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from coderag_ci.pack import Stage


class Recorder:
    """Collects stages, and each step down with the stage that took it."""

    def __init__(self) -> None:
        self.stages: list[Stage] = []
        self.degradations: list[str] = []

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[dict[str, int]]:
        """Time a stage; the caller puts counts into what is yielded."""
        counts: dict[str, int] = {}
        before = len(self.degradations)
        start = time.perf_counter()
        try:
            yield counts
        finally:
            seconds = round(time.perf_counter() - start, 4)
            note = "; ".join(self.degradations[before:])
            self.stages.append(Stage(name, seconds, counts, note))
