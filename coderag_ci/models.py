"""Embedding and cross-encoder models, through fastembed, from a local directory or its cache.

Nothing is downloaded here: a model that fastembed knows is used if it is already in
fastembed's cache.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from coderag_ci.segment import Array
from coderag_ci.workers import cpu_count

_FILES = ("model.onnx", "tokenizer.json", "tokenizer_config.json")
_DIGEST_CHUNK = 1 << 20


class ModelUnavailable(Exception):  # noqa: N818  # it ends in a degradation, not in an error
    """A model can not be used; the message says why and what to do."""


class Embedder:
    """Text to unit vectors, one text a call, so that no vector depends on its neighbours."""

    def __init__(self, name: str) -> None:
        """Load a model. Raises ModelUnavailable."""
        self.name = name
        self._model, self.digest = _load(name, "TextEmbedding", _register_embedding)

    def embed(self, texts: Sequence[str]) -> list[Array]:
        """Return a float32 unit vector for each text.

        Raises ModelUnavailable where the model fails at run time.
        """
        found = []
        try:
            for text in texts:
                vector = np.asarray(next(iter(self._model.embed([text], batch_size=1))), np.float32)
                norm = float(np.linalg.norm(vector))
                found.append(vector / norm if norm > 0 else vector)
        except Exception as error:
            raise ModelUnavailable(f"{self.name} failed: {_line(error)}") from error
        return found


class CrossEncoder:
    """Scores (query, text) pairs."""

    def __init__(self, name: str) -> None:
        """Load a model. Raises ModelUnavailable."""
        self.name = name
        self._model, self.digest = _load(name, "TextCrossEncoder", _register_cross_encoder)

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return one score a text, each computed alone. Raises ModelUnavailable."""
        try:
            return [
                float(score)
                for text in texts
                for score in self._model.rerank(query, [text], batch_size=1)
            ]
        except Exception as error:
            raise ModelUnavailable(f"{self.name} failed: {_line(error)}") from error


def _load(name: str, kind: str, register: Callable[[Any, str, Path], None]) -> tuple[Any, str]:
    directory = Path(name)
    local = directory.is_dir()
    if not local and ((os.sep in name and name.count("/") != 1) or name.startswith((".", "~"))):
        raise ModelUnavailable(f"{name}: no such directory")
    if local:
        for file in _FILES:
            if not (directory / file).is_file():
                raise ModelUnavailable(f"{name}: {file} is missing")
    try:
        model_class = _fastembed_class(kind)
        if not local:
            known = {entry["model"] for entry in model_class.list_supported_models()}
            if name not in known:
                raise ModelUnavailable(f"{name}: neither a directory nor a model fastembed knows")
            model = model_class(name, threads=cpu_count(), local_files_only=True)
            return model, hashlib.blake2b(name.encode(), digest_size=16).hexdigest()
        digest = _digest(directory)
        label = f"local/{digest}"
        if label not in {entry["model"] for entry in model_class.list_supported_models()}:
            register(model_class, label, directory)
        model = model_class(label, specific_model_path=str(directory), threads=cpu_count())
        return model, digest
    except ModelUnavailable:
        raise
    except Exception as error:
        hint = "" if local else "; it is not in fastembed's cache and is not downloaded here"
        raise ModelUnavailable(f"{name}: {_line(error)}{hint}") from error


def _fastembed_class(kind: str) -> Any:
    from loguru import logger

    logger.disable("fastembed")  # what it has to say reaches the pack as a degradation
    if kind == "TextEmbedding":
        from fastembed import TextEmbedding

        return TextEmbedding
    from fastembed.rerank.cross_encoder import TextCrossEncoder

    return TextCrossEncoder


def _register_embedding(model_class: Any, label: str, directory: Path) -> None:
    from fastembed.common.model_description import ModelSource, PoolingType

    config = directory / "config.json"
    dimension = 384
    if config.is_file():
        dimension = int(
            json.loads(config.read_text(encoding="utf-8")).get("hidden_size", dimension)
        )
    model_class.add_custom_model(
        model=label,
        pooling=PoolingType.MEAN,
        normalization=True,
        sources=ModelSource(url="local://" + label),
        dim=dimension,
        model_file="model.onnx",
    )


def _register_cross_encoder(model_class: Any, label: str, _: Path) -> None:
    from fastembed.common.model_description import ModelSource

    model_class.add_custom_model(
        model=label, sources=ModelSource(url="local://" + label), model_file="model.onnx"
    )


def _digest(directory: Path) -> str:
    state = hashlib.blake2b(digest_size=16)
    weights = sorted(file.name for file in directory.glob("model.onnx?*"))  # kept beside it
    for name in (*_FILES, *weights):
        with open(directory / name, "rb") as file:
            while piece := file.read(_DIGEST_CHUNK):
                state.update(piece)
    return state.hexdigest()


def _line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:160]}"
