"""A model in a process of its own, through fastembed: frames in on stdin, answers on stdout.

``bundled`` is the model that ships with the package; another is a local directory, or a model
that fastembed knows, from where ``coderag-ci models pull`` put it or from fastembed's own cache.
Nothing is downloaded here.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
import os
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import msgspec
import numpy as np

from coderag_ci import modelfiles
from coderag_ci.modelfiles import BUNDLED, Kind
from coderag_ci.parse.worker import read_frame, write_frame
from coderag_ci.workers import cpu_count

_FILES = ("model.onnx", "tokenizer.json", "tokenizer_config.json")
_WIDTH = 384  # of a vector, where no config.json says

T = TypeVar("T")


class UnusableError(Exception):
    """A model can not be used; the message says why and what to do."""


def main() -> None:
    """Load the model that the first frame names, then answer each frame that follows.

    A frame is msgpack: first (kind, name, directory that names are relative to, the bundled
    model's directory), answered with the model's digest; then (query, texts), answered with a
    vector's bytes or a score for each text. The answer is ("done", that) or ("failed", why).
    """
    given, out = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    frame = read_frame(given)
    try:
        kind, *places = msgspec.msgpack.decode(frame or b"")
        name, directory, bundled = map(os.fsdecode, places)
        os.chdir(directory)
        model, digest = _load(name, kind, Path(bundled))
        _answer(out, "done", digest)
        run = _vector if kind == "embedding" else _score
        while (frame := read_frame(given)) is not None:
            query, texts = msgspec.msgpack.decode(frame)
            _answer(out, "done", _each(name, functools.partial(run, model, query), texts))
    except UnusableError as error:
        _answer(out, "failed", str(error).encode("utf-8", "backslashreplace").decode())


def _answer(out: BinaryIO, said: str, what: object) -> None:
    write_frame(out, msgspec.msgpack.encode((said, what)))


def _vector(model: Any, _: str, text: str) -> bytes:
    vector = np.asarray(next(iter(model.embed([text], batch_size=1))), np.float32)
    if vector.ndim != 1 or not np.isfinite(vector).all():
        raise ValueError("what it gives for a text is no vector of finite numbers")
    norm = float(np.linalg.norm(vector))
    return (vector / norm if norm > 0 else vector).astype(np.float32).tobytes()


def _score(model: Any, query: str, text: str) -> float:
    (score,) = model.rerank(query, [text], batch_size=1)
    if not math.isfinite(score):
        raise ValueError("what it gives for a pair is no finite number")
    return float(score)


def _each(name: str, run: Callable[[str], T], texts: Iterable[str]) -> list[T]:
    """Run a model on each text alone, as many at once as there are CPUs."""
    try:
        with ThreadPoolExecutor(cpu_count()) as pool:
            return list(pool.map(run, texts))
    except Exception as error:
        raise UnusableError(f"{name} failed: {_line(error)}") from error


def _load(name: str, kind: Kind, bundled: Path) -> tuple[Any, str]:
    """Return a model that runs on one thread, and the digest of what decides its answers."""
    try:
        if name == BUNDLED:
            if kind != "embedding":
                raise UnusableError("bundled: no cross-encoder ships with coderag-ci")
            return _from_directory(bundled, kind, checked=True)
        directory = Path(name)
        if directory.is_dir():
            return _from_directory(directory, kind, checked=False)
        if (os.sep in name and name.count("/") != 1) or name.startswith((".", "~")):
            raise UnusableError(f"{name}: no such directory")
        return _known(name, kind)
    except UnusableError:
        raise
    except modelfiles.DamagedError as error:
        mend = "install coderag-ci anew" if name == BUNDLED else f"coderag-ci models pull {name}"
        raise UnusableError(f"{name}: damaged, {error}; {mend}") from error
    except Exception as error:
        raise UnusableError(f"{name}: {_line(error)}") from error


def _from_directory(directory: Path, kind: Kind, *, checked: bool) -> tuple[Any, str]:
    for file in _FILES:
        if not (directory / file).is_file():
            raise UnusableError(f"{directory}: {file} is missing")
    manifest = modelfiles.checked(directory) if checked else None
    digest = manifest.digest if manifest else modelfiles.digest_of(directory)
    model_class = fastembed_class(kind)
    label = f"local/{digest}"
    if label not in {entry["model"] for entry in model_class.list_supported_models()}:
        _register(model_class, kind, label, directory)
    return model_class(label, specific_model_path=str(directory), threads=1), digest


def _known(name: str, kind: Kind) -> tuple[Any, str]:
    """Load a model that fastembed knows, from our folder of it or from fastembed's cache."""
    model_class = fastembed_class(kind)
    if name not in {entry["model"] for entry in model_class.list_supported_models()}:
        raise UnusableError(f"{name}: neither a directory nor a model fastembed knows")
    folder = modelfiles.folder_of(name)
    if folder.is_dir():
        digest = modelfiles.checked(folder).digest
        return model_class(name, specific_model_path=str(folder), threads=1), digest
    try:
        model = model_class(name, threads=1, local_files_only=True)
    except Exception as error:
        raise UnusableError(f"{name}: not here; coderag-ci models pull {name}") from error
    return model, hashlib.blake2b(name.encode(), digest_size=16).hexdigest()


def fastembed_class(kind: Kind) -> Any:
    """Return fastembed's class for a kind of model, kept from printing."""
    from loguru import logger

    logger.disable("fastembed")  # what it has to say reaches the pack as a degradation
    if kind == "embedding":
        from fastembed import TextEmbedding

        return TextEmbedding
    from fastembed.rerank.cross_encoder import TextCrossEncoder

    return TextCrossEncoder


def _register(model_class: Any, kind: Kind, label: str, directory: Path) -> None:
    from fastembed.common.model_description import ModelSource, PoolingType

    about: dict[str, Any] = {"sources": ModelSource(url="local://" + label)}
    if kind == "embedding":
        config = directory / "config.json"
        known = json.loads(config.read_text(encoding="utf-8")) if config.is_file() else {}
        width = int(known.get("hidden_size", _WIDTH))
        about |= {"pooling": PoolingType.MEAN, "normalization": True, "dim": width}
    model_class.add_custom_model(model=label, model_file="model.onnx", **about)


def _line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:160]}"


if __name__ == "__main__":
    main()
