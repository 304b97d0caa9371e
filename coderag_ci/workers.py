"""Runs parser processes. One that hangs or dies costs the file it was on, no more."""

from __future__ import annotations

import contextlib
import os
import queue
import selectors
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

import coderag_ci
from coderag_ci.parse.row import Row, encode_row
from coderag_ci.parse.windows import LIMIT
from coderag_ci.parse.worker import read_frame, write_frame

FILE_SECONDS = 10.0
_PATIENCE = 3  # hung files, after which the rest gets little time each
_HURRIED_SECONDS = 1.0
DIED = "parser died"
HUNG = "parser took longer than"
_MOST_WORKERS = 8
_PIPE_BYTES = 1 << 15
_SMALL_JOB = 24  # files; fewer are not worth a second process

Job = tuple[int, str, bytes]  # index, language, content


def cpu_count() -> int:
    """CPUs that this process may use, which in a container is not what the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0)) or 1
    return os.cpu_count() or 1


def parse_all(
    jobs: Iterable[Job], expected: int, seconds: float, limit: int = LIMIT
) -> Iterator[tuple[int, bytes]]:
    """Parse jobs in worker processes; yield (index, row bytes) as they are done.

    ``seconds`` is how long one file may take, ``limit`` the size of a chunk in bytes. A
    file whose worker hung or died yields a row that says so.
    """
    wanted = 1 if expected < _SMALL_JOB else min(cpu_count(), _MOST_WORKERS)
    source = _Shared(jobs)
    done: queue.Queue[tuple[int, bytes] | BaseException | None] = queue.Queue(maxsize=256)
    stop = threading.Event()
    started: list[_Worker] = []
    threads = [
        threading.Thread(
            target=_serve, args=(source, done, (seconds, limit), stop, started), daemon=True
        )
        for _ in range(wanted)
    ]
    for thread in threads:
        thread.start()
    running = len(threads)
    try:
        while running:
            item = done.get()
            if item is None:
                running -= 1
            elif isinstance(item, BaseException):
                raise item
            else:
                yield item
    except BaseException:  # given up: what is being parsed is not waited for
        stop.set()
        for worker in started.copy():
            worker.kill()
        raise
    finally:
        stop.set()
        while any(thread.is_alive() for thread in threads):
            try:
                done.get(timeout=0.05)
            except queue.Empty:
                continue


class _Shared:
    """An iterator that several threads take from."""

    def __init__(self, jobs: Iterable[Job]) -> None:
        self._jobs = iter(jobs)
        self.hung = 0
        self._lock = threading.Lock()

    def take(self) -> Job | None:
        with self._lock:
            return next(self._jobs, None)


def _serve(
    source: _Shared,
    done: queue.Queue[tuple[int, bytes] | BaseException | None],
    limits: tuple[float, int],
    stop: threading.Event,
    started: list[_Worker],
) -> None:
    def start() -> _Worker:
        made = _Worker()
        started.append(made)
        return made

    seconds, limit = limits
    worker: _Worker | None = None
    try:
        while not stop.is_set() and (job := source.take()) is not None:
            index, language, data = job
            worker = worker or start()
            patience = min(seconds, _HURRIED_SECONDS) if source.hung >= _PATIENCE else seconds
            answer = worker.ask((language, data, limit), patience)
            if answer == DIED and not stop.is_set():
                # Perhaps for want of memory, or killed from outside: once more.
                worker.kill()
                worker = start()
                answer = worker.ask((language, data, limit), patience)
            if isinstance(answer, str):
                source.hung += answer.startswith(HUNG)
                worker.kill()
                worker = None
                answer = encode_row(Row(skipped=answer))
            done.put((index, answer))
    except BaseException as error:  # handed to the thread that waits
        done.put(error)
    finally:
        if worker is not None:
            worker.close()
        done.put(None)


class _Worker:
    """One parser process, started away from the repository so that it imports nothing of it."""

    def __init__(self) -> None:
        home = Path(coderag_ci.__file__).resolve().parent.parent
        self._process = subprocess.Popen(
            [sys.executable, "-m", "coderag_ci.parse.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=home,
            env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
            start_new_session=True,  # Ctrl-C reaches the parent alone
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        self._encode = msgspec.msgpack.Encoder().encode
        self._ready = selectors.DefaultSelector()
        self._ready.register(self._stdout, selectors.EVENT_READ)

    def ask(self, what: tuple[str, bytes, int], seconds: float) -> bytes | str:
        """Return the row's bytes, or in words why there are none."""
        request = self._encode(what)
        # A pipe takes 64 KiB at once; past that a worker that does not read blocks the writer.
        late = threading.Timer(seconds, self._process.kill) if len(request) > _PIPE_BYTES else None
        start = time.monotonic()
        try:
            if late:
                late.start()
            write_frame(self._stdin, request)  # type: ignore[arg-type]
            if not self._ready.select(max(0.0, start + seconds - time.monotonic())):
                return f"{HUNG} {seconds:.0f} s"
            answer = read_frame(self._stdout)  # type: ignore[arg-type]
        except OSError:
            answer = None
        finally:
            if late:
                late.cancel()
        if answer is None and time.monotonic() >= start + seconds:
            return f"{HUNG} {seconds:.0f} s"
        return DIED if answer is None else answer

    def close(self) -> None:
        """Let the process end by itself."""
        with contextlib.suppress(OSError):
            self._stdin.close()
        try:
            self._process.wait(1)
        except subprocess.TimeoutExpired:
            self.kill()
        self._ready.close()
        self._stdout.close()

    def kill(self) -> None:
        """End the process at once."""
        self._process.kill()
        self._process.wait()
        for stream in (self._stdin, self._stdout):
            with contextlib.suppress(OSError):
                stream.close()
        self._ready.close()
