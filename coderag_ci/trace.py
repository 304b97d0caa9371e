"""What each stage did, collected as the run goes."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from coderag_ci.pack import Stage


class Recorder:
    """Collects stages, and calls ``say`` when one begins."""

    def __init__(self) -> None:
        self.stages: list[Stage] = []

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[dict[str, int | str]]:
        """Time a stage; the caller puts counts, and ``note``, into what is yielded."""
        found: dict[str, int | str] = {}
        start = time.perf_counter()
        try:
            yield found
        finally:
            seconds = round(time.perf_counter() - start, 4)
            note = str(found.pop("note", ""))
            counts = {key: int(value) for key, value in found.items()}
            self.stages.append(Stage(name, seconds, counts, note))
