"""Embedding and cross-encoder models, each in a process of its own.

What a model does to its process, hanging or being killed for memory, costs the model alone.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

import coderag_ci
from coderag_ci import modelfiles
from coderag_ci.deadline import RERANK, Deadline, LateError
from coderag_ci.modelfiles import Kind
from coderag_ci.parse.worker import read_frame, write_frame
from coderag_ci.segment import Array

_MOST_CHARACTERS = 16_000  # of a text; no model reads as many
_MOST_SECONDS = 300.0  # for one answer, also where there is no deadline
_COMMAND = (sys.executable, "-m", "coderag_ci.inference")


class ModelUnavailable(Exception):  # noqa: N818  # it ends in a degradation, not in an error
    """A model can not be used; the message says why and what to do."""


class _Model:
    """A model's process: it is asked, and answers or fails, until it is dropped."""

    def __init__(self, name: str, kind: Kind, deadline: Deadline | None = None) -> None:
        """Load a model. Raises ModelUnavailable."""
        self.name = name
        self._deadline = deadline or Deadline(0)
        self._process = subprocess.Popen(
            _COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=Path(coderag_ci.__file__).resolve().parent.parent,  # away from the repository
            start_new_session=True,  # Ctrl-C reaches the parent alone
        )
        self._end = weakref.finalize(self, _end, self._process)
        places = (name, os.getcwd(), str(modelfiles.bundled()))
        self.digest: str = self._ask((kind, *map(os.fsencode, places)))

    def _ask(self, request: object) -> Any:
        """Return what the process answers. Raises ModelUnavailable, after which it is gone."""
        try:
            answer = self._deadline.run(lambda: self._exchange(request), RERANK)
        except LateError as late:
            self._end()
            raise ModelUnavailable(str(late)) from late
        if answer is None:
            self._end()
            status = self._process.returncode
            how = f"killed by signal {-status}" if status < 0 else f"ended with {status}"
            raise ModelUnavailable(f"{self.name}: its process was {how}")
        said, what = msgspec.msgpack.decode(answer)
        if said == "failed":
            self._end()
            raise ModelUnavailable(what)
        return what

    def _exchange(self, request: object) -> bytes | None:
        """Return the answer's bytes; None where the process ended, or took far too long."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        timer = threading.Timer(_MOST_SECONDS, self._process.kill)
        timer.daemon = True
        timer.start()
        try:
            write_frame(stdin, msgspec.msgpack.encode(request))  # type: ignore[arg-type]
            return read_frame(stdout)  # type: ignore[arg-type]
        except (OSError, ValueError):  # it ended, or was given up
            return None
        finally:
            timer.cancel()


class Embedder(_Model):
    """Text to unit vectors, one text a call, so that no vector depends on its neighbours."""

    def __init__(self, name: str, deadline: Deadline | None = None) -> None:
        """Load a model. Raises ModelUnavailable."""
        super().__init__(name, "embedding", deadline)

    def embed(self, texts: Sequence[str]) -> list[Array]:
        """Return a float32 unit vector for each text.

        Raises ModelUnavailable where the model fails at run time.
        """
        answer = self._ask(("", [_readable(text) for text in texts]))
        return [np.frombuffer(vector, np.float32) for vector in answer]


class CrossEncoder(_Model):
    """Scores (query, text) pairs."""

    def __init__(self, name: str, deadline: Deadline | None = None) -> None:
        """Load a model. Raises ModelUnavailable."""
        super().__init__(name, "rerank", deadline)

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return one score a text, each computed alone. Raises ModelUnavailable."""
        answer: list[float] = self._ask((_readable(query), [_readable(text) for text in texts]))
        return answer


def _readable(text: str) -> str:
    """Return the beginning of a text, without what no tokenizer takes (undecodable paths)."""
    return text[:_MOST_CHARACTERS].encode("utf-8", "replace").decode("utf-8")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    for stream in (process.stdin, process.stdout):
        with contextlib.suppress(OSError, ValueError):
            stream.close()  # type: ignore[union-attr]
    process.wait()
