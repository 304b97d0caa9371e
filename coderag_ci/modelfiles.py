"""Where models are: the one that ships with this package, and those that ``models pull`` got.

A folder of ours has a ``manifest.json`` with the digest of the files that decide what the model
answers; it is checked whenever the model is loaded.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from coderag_ci.errors import SetupError

BUNDLED = "bundled"  # the name of the embedding model that ships with the package
MANIFEST = "manifest.json"
Kind = Literal["embedding", "rerank"]
KINDS: tuple[Kind, ...] = ("embedding", "rerank")
_DIGEST_CHUNK = 1 << 20


class DamagedError(Exception):
    """A model's files are not what its manifest says; the message says which way."""


class Manifest(msgspec.Struct, frozen=True):
    """What is known of a folder: its digest, its licence, and where it was pulled from."""

    digest: str
    license: str = ""
    name: str = BUNDLED
    kind: Kind = "embedding"
    source: str = ""
    revision: str = ""


def bundled() -> Path:
    """Return the folder of the embedding model that ships with the package."""
    return Path(__file__).parent / "bundled" / "embedding"


def home() -> Path:
    """Return where pulled models are: CODERAG_MODELS, or the user's data folder."""
    if given := os.environ.get("CODERAG_MODELS"):
        return Path(given)
    try:
        data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    except RuntimeError as error:  # no home and no entry for the user
        raise SetupError(
            "there is no home folder to keep models in", "name a folder with CODERAG_MODELS"
        ) from error
    return Path(data) / "coderag-ci" / "models"


def folder_of(name: str) -> Path:
    """Return where a model of a hub is kept once it is pulled."""
    return home() / name.replace("/", "+")


def pulled() -> Iterator[Path]:
    """Yield the folders of pulled models."""
    if home().is_dir():
        yield from sorted(path.parent for path in home().glob(f"*/{MANIFEST}"))


def digest_of(directory: Path) -> str:
    """Return the digest of a model's files: weights, tokenizer and their settings."""
    state = hashlib.blake2b(digest_size=16)
    for path in sorted(directory.rglob("*")):
        name = path.relative_to(directory).as_posix()
        if name.startswith(".") or name == MANIFEST or not path.is_file():
            continue
        if path.suffix in {".json", ".safetensors"} or ".onnx" in path.name:
            state.update(f"{name}\0{path.stat().st_size}\0".encode())
            with open(path, "rb") as file:
                while piece := file.read(_DIGEST_CHUNK):
                    state.update(piece)
    return state.hexdigest()


def manifest_of(directory: Path) -> Manifest:
    """Read a folder's manifest. Raises DamagedError."""
    try:
        return msgspec.json.decode((directory / MANIFEST).read_bytes(), type=Manifest)
    except (OSError, msgspec.MsgspecError) as error:
        raise DamagedError(f"{MANIFEST}: {error}") from error


def checked(directory: Path) -> Manifest:
    """Return a folder's manifest after a look at its files. Raises DamagedError."""
    manifest = manifest_of(directory)
    try:
        found = digest_of(directory)
    except OSError as error:
        raise DamagedError(f"{error.filename}: {error.strerror}") from error
    if found != manifest.digest:
        raise DamagedError(f"digest {found[:12]}, expected {manifest.digest[:12]}")
    return manifest
