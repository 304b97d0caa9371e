"""A headless browser that tests drive over a pipe, where one is installed."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = ("--headless", "--no-sandbox", "--no-first-run", "--disable-gpu", "--in-process-gpu")


class Browser:
    """One page. ``events`` holds what the browser said unasked, in its order."""

    def __init__(self, answers: IO[bytes], orders: IO[bytes]) -> None:
        self._answers, self._orders = answers, orders
        self._number = 0
        self._rest = b""
        self._session: dict[str, Any] = {}
        self.events: list[dict[str, Any]] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        attached = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = {"sessionId": attached["sessionId"]}
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **given: Any) -> Any:
        """Give an order of the DevTools protocol and return its result."""
        self._number += 1
        order = {"id": self._number, "method": method, "params": given, **self._session}
        self._orders.write(json.dumps(order).encode() + b"\0")
        self._orders.flush()
        while (answer := self._read()).get("id") != self._number:
            self.events.append(answer)
        assert "error" not in answer, answer
        return answer["result"]

    def open(self, page: Path) -> None:
        """Open a file and wait until it has loaded."""
        self.events.clear()
        self.ask("Page.navigate", url=page.as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._read())

    def run(self, script: str) -> Any:
        """Return the value of a script in the page, or what its promise gives."""
        found = self.ask(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def said(self, *methods: str) -> list[dict[str, Any]]:
        """Return the events of some kinds."""
        return [event["params"] for event in self.events if event.get("method") in methods]

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            more = os.read(self._answers.fileno(), 1 << 16)
            assert more, "the browser ended"
            self._rest += more
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)  # type: ignore[no-any-return]


@contextmanager
def browser(home: Path) -> Iterator[Browser]:
    """Start $CHROMIUM, or a browser on the path; skip the test where there is none."""
    program = os.environ.get("CHROMIUM") or next(filter(shutil.which, NAMES), None)
    if not program:
        pytest.skip("no Chromium on PATH or in $CHROMIUM")
    to_read, orders = os.pipe()
    answers, to_write = os.pipe()
    theirs = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (to_read, to_write)]

    launch = f'exec "$@" 3<&{theirs[0]} 4>&{theirs[1]}'  # where it reads and writes
    flags = [*FLAGS, f"--user-data-dir={home}", "--remote-debugging-pipe", "about:blank"]
    process = subprocess.Popen(
        ["bash", "-c", launch, "bash", program, *flags],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        pass_fds=theirs,
    )  # fmt: skip
    for end in (to_read, to_write, *theirs):
        os.close(end)
    try:
        with os.fdopen(answers, "rb") as heard, os.fdopen(orders, "wb") as told:
            yield Browser(heard, told)
    finally:
        process.kill()
        process.wait()
