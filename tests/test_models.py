"""Models that ship, models that are pulled, and what happens to those that are not whole."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from coderag_ci import modelfiles
from coderag_ci.models import CrossEncoder, Embedder, ModelUnavailable
from tests.conftest import Command, Result
from tests.hub import Hub, serving
from tests.tiny_models import cross_encoder, embedding_model

NAME = "snowflake/snowflake-arctic-embed-xs"
REPO = "Snowflake/snowflake-arctic-embed-xs"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """Serve a small model under a name that fastembed knows; models are kept in tmp_path/kept."""
    folder = embedding_model(tmp_path / "model", {"lock": 1, "mutex": 1, "tea": 2})
    files = {file.name: file.read_bytes() for file in folder.iterdir()}
    files["onnx/model.onnx"] = files.pop("model.onnx")
    files["README.md"] = b"not needed"
    monkeypatch.setenv("CODERAG_MODELS", str(tmp_path / "kept"))
    with serving(Hub(REPO, files)) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        yield hub


def pull(name: str) -> Result:
    """Run ``models pull`` in a process of its own, which may use the network of this machine."""
    environment = {key: value for key, value in os.environ.items() if key != "HF_HUB_OFFLINE"}
    done = subprocess.run(
        [sys.executable, "-m", "coderag_ci", "models", "pull", name],
        env=environment, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    return Result(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """Where a pulled model is."""
    return tmp_path / "kept" / NAME.replace("/", "+")


def test_a_pulled_model_is_whole_and_is_used_by_its_name(
    hub: Hub, command: Command, kept: Path
) -> None:
    """One command makes a model of the hub one that works offline."""
    result = pull(NAME)
    assert result.code == 0, result.err
    assert result.out == f"{NAME} (apache-2.0) is in {kept}\n"
    assert not any("README" in path for path in hub.asked)
    assert [path.name for path in kept.parent.iterdir()] == [kept.name]
    hub.status = 500
    lock, mutex, tea = Embedder(NAME).embed(["lock", "mutex", "tea"])
    assert lock @ mutex > 0.99 > lock @ tea
    assert f"ok       {NAME} " in command("models", "verify").out
    (row,) = (line for line in command("models", "list").out.splitlines() if NAME + " " in line)
    assert row.split()[1:3] == ["embedding", "apache-2.0"]
    assert row.endswith("pulled")


def test_a_file_that_is_not_what_the_hub_says_leaves_nothing_behind(hub: Hub, kept: Path) -> None:
    """A proxy that alters a download must not end in a model that answers nonsense."""
    hub.altered = {"onnx/model.onnx"}
    result = pull(NAME)
    assert result.code == 3
    assert "onnx/model.onnx is not what the hub says it is" in result.err
    assert list(kept.parent.iterdir()) == []
    hub.altered = {"tokenizer.json"}
    assert "tokenizer.json is not what" in pull(NAME).err


def test_a_failed_pull_keeps_the_model_that_was_there(hub: Hub, kept: Path) -> None:
    """Pulling again is safe."""
    assert pull(NAME).code == 0
    hub.altered = {"onnx/model.onnx"}
    assert pull(NAME).code == 3
    assert modelfiles.checked(kept).name == NAME
    hub.altered = set()
    assert pull(NAME).code == 0


@pytest.mark.parametrize("what", ["down", "failing", "incomplete"])
def test_a_hub_that_gives_nothing_costs_one_line(
    hub: Hub, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """No traceback, no retries for half a minute."""
    if what == "down":
        monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    elif what == "failing":
        hub.status = 404
    else:
        del hub.files["onnx/model.onnx"]
    result = pull(NAME)
    assert result.code == 3
    assert NAME in result.err
    assert "Traceback" not in result.err
    assert len(result.err.splitlines()) == 2  # the error, the hint


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    """A typo."""
    result = pull("BAAI/bge-small-en-v1.6")
    assert result.code == 2
    assert "did you mean BAAI/bge-small-en-v1.5?" in result.err


def test_a_licence_that_forbids_commercial_use_is_said(
    command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Whoever pulls such a model for work has to know."""
    monkeypatch.setenv("CODERAG_MODELS", str(tmp_path))
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    result = pull("jinaai/jina-embeddings-v3")
    assert "its licence, cc-by-nc-4.0, forbids commercial use" in result.err
    assert "cc-by-nc-4.0 (non-commercial)" in command("models", "list").out


@pytest.mark.usefixtures("hub")
@pytest.mark.parametrize("file", ["onnx/model.onnx", "tokenizer.json", "manifest.json"])
def test_a_damaged_model_is_found_and_not_used(command: Command, kept: Path, file: str) -> None:
    """A cache that was cut off must not rank."""
    assert pull(NAME).code == 0
    data = (kept / file).read_bytes()
    (kept / file).write_bytes(data[: len(data) // 2])
    with pytest.raises(ModelUnavailable, match=rf"damaged.*coderag-ci models pull {NAME}"):
        Embedder(NAME)
    result = command("models", "verify")
    assert result.code == 3
    assert f"damaged  {NAME}" in result.out


def test_the_bundled_embedding_model_works_offline_and_says_its_licence(command: Command) -> None:
    """What ships is whole, loads without a network, and finds what means the same."""
    assert "ok       bundled " in command("models", "verify").out
    assert "bundled  " in command("models", "list").out
    folder = modelfiles.bundled()
    assert "Apache License" in (folder / "LICENSE").read_text(encoding="utf-8")
    assert "modified" in (folder / "NOTICE").read_text(encoding="utf-8")
    model = Embedder(modelfiles.BUNDLED)
    texts = ["remove a file from disk", "def unlink(path): os.remove(path)", "class Invoice: total"]
    asked, near, far = model.embed(texts)
    assert asked @ near > asked @ far + 0.1
    assert near.shape == (384,)


def test_a_bundled_vector_does_not_depend_on_its_neighbours() -> None:
    """Quantised at run time, a batch would change each other's vectors and with them the pack."""
    model = Embedder(modelfiles.BUNDLED)
    texts = ["", "x", "😀" * 40, "a b " * 400_000, "def f(a):\n    return a\n", "\ud800 surrogate"]
    together = np.stack(model.embed(texts))
    alone = np.stack([model.embed([text])[0] for text in texts])
    assert np.array_equal(together, alone)
    assert np.isfinite(together).all()


def test_a_bundled_model_that_was_cut_off_costs_its_channel_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broken installation says how to mend it."""
    shutil.copytree(modelfiles.bundled(), tmp_path / "embedding")
    weights = tmp_path / "embedding" / "model.onnx"
    weights.write_bytes(weights.read_bytes()[:1000])
    monkeypatch.setattr(modelfiles, "bundled", lambda: tmp_path / "embedding")
    with pytest.raises(ModelUnavailable, match=r"bundled: damaged.*install coderag-ci anew"):
        Embedder(modelfiles.BUNDLED)


def test_no_cross_encoder_ships_and_that_is_said() -> None:
    """Who asks for one that is not there learns it, and the pack is made without."""
    with pytest.raises(ModelUnavailable, match="no cross-encoder ships"):
        CrossEncoder(modelfiles.BUNDLED)


def test_numbers_that_are_not_finite_rank_nothing(tmp_path: Path) -> None:
    """A model that overflows would put its passages in an order without meaning."""
    folder = embedding_model(tmp_path / "embedding", {"tea": 1, "coffee": 2}, factor=np.nan)
    with pytest.raises(ModelUnavailable, match="no vector of finite numbers"):
        Embedder(str(folder)).embed(["tea"])
    folder = cross_encoder(tmp_path / "rerank", {"tea": float("inf")})
    with pytest.raises(ModelUnavailable, match="no finite number"):
        CrossEncoder(str(folder)).score("tea", ["tea"])


def test_a_model_made_for_something_else_costs_one_line(tmp_path: Path) -> None:
    """A cross-encoder named as an embedding model, and the other way round, is not used."""
    pairs = cross_encoder(tmp_path / "rerank", {"tea": 1.0})
    with pytest.raises(ModelUnavailable, match="failed"):
        Embedder(str(pairs)).embed(["tea"])
    words = embedding_model(tmp_path / "embedding", {"tea": 1})
    with pytest.raises(ModelUnavailable, match="failed"):
        CrossEncoder(str(words)).score("tea", ["tea"])
