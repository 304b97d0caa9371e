"""How much time is left, by a clock that a test can set."""

from __future__ import annotations

import time
from collections.abc import Callable


class Deadline:
    """A point in time by which the run has to end; 0 seconds means never."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._end = clock() + seconds if seconds else float("inf")

    def left(self) -> float:
        """Seconds left; infinite where there is no deadline."""
        return self._end - self._clock()

    def within(self, reserve: float) -> bool:
        """Whether no more than a reserve is left, which later stages need."""
        return self.left() <= reserve
