"""Embedding and cross-encoder models, through fastembed.

``bundled`` is the model that ships with the package; another is a local directory, or a model
that fastembed knows, from where ``coderag-ci models pull`` put it or from fastembed's own cache.
Nothing is downloaded here.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from coderag_ci import modelfiles
from coderag_ci.modelfiles import BUNDLED, Kind
from coderag_ci.segment import Array
from coderag_ci.workers import cpu_count

_FILES = ("model.onnx", "tokenizer.json", "tokenizer_config.json")
_MOST_CHARACTERS = 16_000  # of a text; no model reads as many
_WIDTH = 384  # of a vector, where no config.json says

T = TypeVar("T")


class ModelUnavailable(Exception):  # noqa: N818  # it ends in a degradation, not in an error
    """A model can not be used; the message says why and what to do."""


class Embedder:
    """Text to unit vectors, one text a call, so that no vector depends on its neighbours."""

    def __init__(self, name: str) -> None:
        """Load a model. Raises ModelUnavailable."""
        self.name = name
        self._model, self.digest = _load(name, "embedding")

    def embed(self, texts: Sequence[str]) -> list[Array]:
        """Return a float32 unit vector for each text.

        Raises ModelUnavailable where the model fails at run time.
        """
        return _each(self.name, self._vector, texts)

    def _vector(self, text: str) -> Array:
        vector = np.asarray(next(iter(self._model.embed([text], batch_size=1))), np.float32)
        if vector.ndim != 1 or not np.isfinite(vector).all():
            raise ValueError("what it gives for a text is no vector of finite numbers")
        norm = float(np.linalg.norm(vector))
        return vector / norm if norm > 0 else vector


class CrossEncoder:
    """Scores (query, text) pairs."""

    def __init__(self, name: str) -> None:
        """Load a model. Raises ModelUnavailable."""
        self.name = name
        self._model, self.digest = _load(name, "rerank")

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return one score a text, each computed alone. Raises ModelUnavailable."""
        return _each(self.name, lambda text: self._score(_readable(query), text), texts)

    def _score(self, query: str, text: str) -> float:
        (score,) = self._model.rerank(query, [text], batch_size=1)
        if not math.isfinite(score):
            raise ValueError("what it gives for a pair is no finite number")
        return float(score)


def _each(name: str, run: Callable[[str], T], texts: Iterable[str]) -> list[T]:
    """Run a model on each text alone, as many at once as there are CPUs."""
    try:
        with ThreadPoolExecutor(cpu_count()) as pool:
            return list(pool.map(run, map(_readable, texts)))
    except Exception as error:
        raise ModelUnavailable(f"{name} failed: {_line(error)}") from error


def _readable(text: str) -> str:
    """Return the beginning of a text, without what no tokenizer takes (undecodable paths)."""
    return text[:_MOST_CHARACTERS].encode("utf-8", "replace").decode("utf-8")


def _load(name: str, kind: Kind) -> tuple[Any, str]:
    """Return a model that runs on one thread, and the digest of what decides its answers."""
    try:
        if name == BUNDLED:
            if kind != "embedding":
                raise ModelUnavailable("bundled: no cross-encoder ships with coderag-ci")
            return _from_directory(modelfiles.bundled(), kind, checked=True)
        directory = Path(name)
        if directory.is_dir():
            return _from_directory(directory, kind, checked=False)
        if (os.sep in name and name.count("/") != 1) or name.startswith((".", "~")):
            raise ModelUnavailable(f"{name}: no such directory")
        return _known(name, kind)
    except ModelUnavailable:
        raise
    except modelfiles.DamagedError as error:
        mend = "install coderag-ci anew" if name == BUNDLED else f"coderag-ci models pull {name}"
        raise ModelUnavailable(f"{name}: damaged, {error}; {mend}") from error
    except Exception as error:
        raise ModelUnavailable(f"{name}: {_line(error)}") from error


def _from_directory(directory: Path, kind: Kind, *, checked: bool) -> tuple[Any, str]:
    for file in _FILES:
        if not (directory / file).is_file():
            raise ModelUnavailable(f"{directory}: {file} is missing")
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
        raise ModelUnavailable(f"{name}: neither a directory nor a model fastembed knows")
    folder = modelfiles.folder_of(name)
    if folder.is_dir():
        digest = modelfiles.checked(folder).digest
        return model_class(name, specific_model_path=str(folder), threads=1), digest
    try:
        model = model_class(name, threads=1, local_files_only=True)
    except Exception as error:
        raise ModelUnavailable(f"{name}: not here; coderag-ci models pull {name}") from error
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
