"""How much time is left, by a clock that a test can set, and what each step has to leave over.

The steps of the ladder, from the first that goes to the last: a cross-encoder reads fewer
candidates, then none; no dense channel and no history; what the words say alone; the diff and
a search for its names. Each begins where less is left than what stands here.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

IN_CI = 120.0  # seconds, where nobody says otherwise
DIFF = 30.0  # seconds that the diff may take by any deadline: without it there is no pack

# Seconds that have to be left
MODEL = 4.0  # to load a model, and to read the history
INDEX = 3.0  # to parse one more file
LINKS = 2.0  # to follow names: facts, and the channels that are not of words
RERANK = 1.5  # to score one more candidate
SEARCH = 1.0  # for anything but a search for names

T = TypeVar("T")


class LateError(Exception):
    """What was to be made was not there in time."""


class Deadline:
    """A point in time by which the run has to end; 0 seconds means never."""

    def __init__(
        self,
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[threading.Event, float], bool] = threading.Event.wait,
    ) -> None:
        """``wait``: waits some seconds for an event; whether it came."""
        self._clock = clock
        self._wait = wait
        self._end = clock() + seconds if seconds else float("inf")

    def left(self) -> float:
        """Seconds left; infinite where there is no deadline."""
        return self._end - self._clock()

    def within(self, reserve: float) -> bool:
        """Whether no more than a reserve is left, which later stages need."""
        return self.left() <= reserve

    def run(self, make: Callable[[], T], reserve: float) -> T:
        """Return what ``make`` gives, or raise what it raises.

        Raises LateError where only the reserve is left; what still runs then, in C or in git,
        is not waited for.
        """
        if self._end == float("inf"):
            return make()
        made: list[T] = []
        failed: list[BaseException] = []
        done = threading.Event()

        def work() -> None:
            try:
                made.append(make())
            except BaseException as error:  # handed to the thread that waits
                failed.append(error)
            done.set()

        left = self.left() - reserve
        if left > 0:
            threading.Thread(target=work, daemon=True).start()
            if self._wait(done, left):
                if failed:
                    raise failed[0]
                return made[0]
        raise LateError("deadline")
