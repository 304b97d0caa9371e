"""Downloads a model that fastembed knows from the hub, once, when it is asked for."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from coderag_ci import modelfiles
from coderag_ci.errors import SetupError, UsageError
from coderag_ci.inference import fastembed_class
from coderag_ci.modelfiles import KINDS, Kind, Manifest

_BESIDE = (
    "config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
)  # fmt: skip
_SECONDS = 5.0  # for the hub to answer
_CHUNK = 1 << 20


class Known(NamedTuple):
    """A model that fastembed knows: what it is, where it comes from, what it needs."""

    name: str
    kind: Kind
    license: str
    megabytes: int
    source: str
    files: tuple[str, ...]

    @property
    def is_non_commercial(self) -> bool:
        """Whether its licence forbids commercial use."""
        return "-nc" in self.license.lower()


def known() -> list[Known]:
    """Return the models that fastembed knows and that come from the hub, by kind and name."""
    found = []
    for kind in KINDS:
        for entry in fastembed_class(kind).list_supported_models():
            if not (source := entry["sources"]["hf"]):
                continue
            files = (entry["model_file"], *(entry.get("additional_files") or ()))
            size = round(entry["size_in_GB"] * 1000)
            found.append(Known(entry["model"], kind, entry["license"], size, source, files))
    return sorted(found, key=lambda one: (one.kind, one.name.lower()))


def named(name: str) -> Known:
    """Return a known model by its name. Raises UsageError."""
    import difflib

    by_name = {one.name: one for one in known()}
    if name not in by_name:
        near = difflib.get_close_matches(name, by_name, 1, 0.5)
        hint = f"did you mean {near[0]}?" if near else "coderag-ci models list shows them"
        raise UsageError(f"{name}: not a model that fastembed knows", hint)
    return by_name[name]


def pull(model: Known) -> Path:
    """Download a model into our folder for it, check every file, and put it in place whole.

    A download has a bar on a terminal. Raises SetupError.
    """
    folder = modelfiles.folder_of(model.name)
    hint = "check the network, HF_ENDPOINT and CODERAG_MODELS, or name a directory instead"
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".pull-") as temporary:
            _download(model, Path(temporary))
            with contextlib.suppress(FileNotFoundError):
                shutil.rmtree(folder)
            os.replace(temporary, folder)
            os.mkdir(temporary)  # for the one who wants to remove it
    except SetupError:
        raise
    except OSError as error:
        raise SetupError(f"{model.name}: {error.strerror or _line(error)}", hint) from error
    except Exception as error:
        raise SetupError(f"{model.name}: the hub gave no model: {_line(error)}", hint) from error
    return folder


def _download(model: Known, folder: Path) -> None:
    import huggingface_hub

    api = huggingface_hub.HfApi(endpoint=os.environ.get("HF_ENDPOINT"))
    about = api.model_info(model.source, files_metadata=True, timeout=_SECONDS)
    here = {one.rfilename: one for one in about.siblings or ()}
    missing = [file for file in model.files if file not in here]
    if missing:
        raise SetupError(f"{model.name}: {model.source} has no {missing[0]}", "pull another model")
    for file in _wanted(model, here):
        huggingface_hub.hf_hub_download(
            model.source, file, revision=about.sha, local_dir=folder,
            endpoint=os.environ.get("HF_ENDPOINT"), etag_timeout=_SECONDS,
        )  # fmt: skip
        _check(model, folder / file, here[file])
    shutil.rmtree(folder / ".cache", ignore_errors=True)
    manifest = Manifest(
        modelfiles.digest_of(folder), model.license, model.name, model.kind, model.source,
        about.sha or "",
    )  # fmt: skip
    (folder / modelfiles.MANIFEST).write_bytes(msgspec.json.encode(manifest))


def _wanted(model: Known, here: Iterable[str]) -> list[str]:
    return [*model.files, *(file for file in _BESIDE if file in here and file not in model.files)]


def _check(model: Known, path: Path, about: Any) -> None:
    """Compare a file with the digest that the hub names for it: SHA-256, or git's blob id."""
    expected = about.lfs.sha256 if about.lfs else about.blob_id
    state = hashlib.sha256() if about.lfs else hashlib.sha1(usedforsecurity=False)
    if not about.lfs:
        state.update(f"blob {path.stat().st_size}\0".encode())
    with open(path, "rb") as file:
        while piece := file.read(_CHUNK):
            state.update(piece)
    if expected and state.hexdigest() != expected:
        raise SetupError(
            f"{model.name}: {about.rfilename} is not what the hub says it is", "pull it again"
        )


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:160] or type(error).__name__
