"""Embedding and cross-encoder models, built here so small that every machine runs them."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coderag_ci import change, ci, models, pipeline
from coderag_ci.config import CHANNEL_NAMES, Config
from coderag_ci.deadline import Deadline
from coderag_ci.gitrepo import GitRepo
from coderag_ci.job import Job
from coderag_ci.pack import Pack
from coderag_ci.progress import Progress
from tests.conftest import Command
from tests.packs import pack_of
from tests.repository import Repository
from tests.tiny_models import WIDTH, cross_encoder, embedding_model

# The change speaks of lending; the ledger says the same in other words.
DESK = "def lend(book, reader):\n    book.reader = reader\n"
NEW_DESK = "def lend(book, reader):\n    if reader:\n        book.reader = reader\n"
USER = (
    "from library.desk import lend\n\n\ndef evening(book, reader):\n    return lend(book, reader)\n"
)
LEDGER = (
    "class Ledger:\n    def borrow(self, volume, patron):\n        self.rows[volume] = patron\n"
)
FILES: dict[str, str | bytes | None] = {
    "library/desk.py": DESK,
    "library/evening.py": USER,
    "library/ledger.py": LEDGER,
    "library/clock.py": "def tick(seconds):\n    return seconds + 1\n",
    "library/lamp.py": "def shine(watts):\n    return watts * 2\n",
}
MEANINGS = {
    "lend": 0, "borrow": 0, "book": 1, "volume": 1, "reader": 2, "patron": 2, "ledger": 1,
    "tick": 3, "seconds": 3, "shine": 4, "watts": 4, "clock": 3, "lamp": 4,
}  # fmt: skip


@pytest.fixture(scope="module")
def embedder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the folder of an embedding model."""
    return str(embedding_model(tmp_path_factory.mktemp("models") / "embedding", MEANINGS))


@pytest.fixture(scope="module")
def other_embedder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the folder of a model with the same words and other vectors."""
    return str(embedding_model(tmp_path_factory.mktemp("models") / "other", MEANINGS, seed=9))


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the folder of a cross-encoder that likes the evening desk."""
    folder = tmp_path_factory.mktemp("models") / "cross"
    return str(cross_encoder(folder, {"evening": 9.0, "lend": 1.0, "tick": -3.0}))


@pytest.fixture
def library(repository: Repository) -> Repository:
    """Return a repository with a change to how books are lent."""
    repository.commit(FILES)
    repository.commit({"library/desk.py": NEW_DESK}, "Lend to readers only")
    return repository


def stored(repository: Repository, folder: str = ".git/coderag-ci") -> list[tuple[str, bytes]]:
    """Return (model, text) of each vector in the store."""
    with sqlite3.connect(repository.path / folder / "store.sqlite") as db:
        found = db.execute("SELECT model, text FROM vectors ORDER BY model, text").fetchall()
    db.close()
    return found


def channels(pack: dict[str, Any]) -> set[str]:
    """Return the names of the channels that found evidence."""
    return {channel["name"] for piece in pack["evidence"] for channel in piece["channels"]}


DENSE_ABOVE_ALL = [f"--weight={name}=0.001" for name in CHANNEL_NAMES if name != "dense"]


def crowded(repository: Repository, more: dict[str, str | bytes | None] | None = None) -> None:
    """Add so much that shares words with the change that the ledger is no candidate any more."""
    shelves = {
        f"shelf/s{n}.py": f"def shelf_{n}(book, reader):\n    return book, reader, book\n"
        for n in range(80)
    }
    repository.commit({**shelves, **(more or {})})
    repository.commit({"library/desk.py": DESK}, "Lend to everybody")


# ---- the dense channel


def test_an_embedding_model_adds_a_channel(
    library: Repository, command: Command, embedder: str
) -> None:
    """Code that says the same in other words is found by no other channel."""
    without = pack_of(command, library, "--base", "HEAD~1")
    assert "dense" not in channels(without)
    pack = pack_of(command, library, "--base", "HEAD~1", "--embedding-model", embedder)
    assert "dense" in channels(pack)
    assert pack["degradations"] == []
    assert pack["settings"] == {"embedding-model": f'"{embedder}"'}
    reasons = [c["reason"] for e in pack["evidence"] for c in e["channels"] if c["name"] == "dense"]
    assert set(reasons) == {"means something close to the change"}
    off = pack_of(
        command, library, "--base", "HEAD~1", "--embedding-model", embedder, "--no-channel", "dense"
    )
    assert off["evidence"] == without["evidence"]


def test_vectors_are_made_once(
    library: Repository, command: Command, embedder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Embedding costs a hundred times what everything else does."""
    arguments = ("--base", "HEAD~1", "--embedding-model", embedder)
    first = pack_of(command, library, *arguments)
    made = stored(library)
    assert made
    texts: list[str] = []
    real = models.Embedder.embed

    def embed(self: models.Embedder, some: list[str]) -> list[np.ndarray]:
        texts.extend(some)
        return real(self, some)

    monkeypatch.setattr(models.Embedder, "embed", embed)
    again = pack_of(command, library, *arguments)
    assert again["digest"] == first["digest"]
    assert len(texts) == 1
    assert "lend" in texts[0]
    assert stored(library) == made


def test_an_index_with_all_vectors_lets_the_whole_view_be_scored(
    library: Repository, command: Command, embedder: str
) -> None:
    """The ledger shares no word with the change: only a search of all chunks finds it."""
    crowded(library)
    arguments = ("--base", "HEAD~1", "--embedding-model", embedder, *DENSE_ABOVE_ALL)
    some = pack_of(command, library, *arguments)
    assert len(stored(library)) == 64
    assert "library/ledger.py" not in {piece["path"] for piece in some["evidence"]}
    result = command("index", "--repo", str(library.path), "--embedding-model", embedder)
    assert result.code == 0
    chunks = some["index"]["chunks"]
    assert len(stored(library)) == chunks
    assert "vectors made" in result.out
    whole = pack_of(command, library, *arguments)
    (piece,) = [e for e in whole["evidence"] if e["path"] == "library/ledger.py"]
    assert piece["channels"][0]["name"] == "dense"
    again = command("index", "--repo", str(library.path), "--embedding-model", embedder)
    assert "0 vectors made" in again.out


def test_chunks_of_equal_text_do_not_hide_that_all_vectors_are_there(
    library: Repository, command: Command, embedder: str
) -> None:
    """Two equal chunks share one vector; counting vectors alone would never be enough."""
    crowded(library, {"library/twice.py": "def same():\n    return 1\n\n\n" * 4})
    result = command("index", "--repo", str(library.path), "--embedding-model", embedder)
    assert result.code == 0
    arguments = ("--base", "HEAD~1", "--embedding-model", embedder, *DENSE_ABOVE_ALL)
    pack = pack_of(command, library, *arguments)
    assert len(stored(library)) < pack["index"]["chunks"]
    found = {(e["path"], c["name"]) for e in pack["evidence"] for c in e["channels"]}
    assert ("library/ledger.py", "dense") in found


def test_vectors_of_two_models_are_never_mixed(
    library: Repository, command: Command, embedder: str, other_embedder: str
) -> None:
    """Distances between vectors of two models mean nothing."""
    base = ("--base", "HEAD~1", "--embedding-model")
    alone = pack_of(command, library, *base, other_embedder, "--index-dir", str(library.path / "x"))
    shutil.rmtree(library.path / "x")
    pack_of(command, library, *base, embedder)
    after = pack_of(command, library, *base, other_embedder)
    assert after["digest"] == alone["digest"]
    names = [model for model, _ in stored(library)]
    assert len(set(names)) == 2
    assert names.count(names[0]) == len(names) / 2


def test_a_model_that_changes_in_its_place_makes_new_vectors(
    library: Repository, command: Command, tmp_path: Path
) -> None:
    """A model that was trained on would be compared with the vectors of its former self."""
    arguments = ("--base", "HEAD~1", "--embedding-model", str(tmp_path / "model"))
    embedding_model(tmp_path / "model", MEANINGS)
    pack_of(command, library, *arguments)
    shutil.rmtree(tmp_path / "model")
    embedding_model(tmp_path / "model", MEANINGS, seed=5)
    pack_of(command, library, *arguments)
    assert len({model for model, _ in stored(library)}) == 2


def test_weights_that_are_kept_beside_the_model_count_as_part_of_it(tmp_path: Path) -> None:
    """Large models keep their weights in a second file; two of them look the same without it."""
    folder = embedding_model(tmp_path / "model", MEANINGS)
    one = models.Embedder(str(folder)).digest
    (folder / "model.onnx_data").write_bytes(b"weights")
    assert models.Embedder(str(folder)).digest != one


def test_a_vector_does_not_depend_on_its_neighbours(embedder: str) -> None:
    """Padding to the longest text of a batch would change what is stored for the others."""
    model = models.Embedder(embedder)
    texts = ["lend the book", "tick " * 300, "", "shine"]
    together = model.embed(texts)
    for text, vector in zip(texts, together, strict=True):
        (alone,) = models.Embedder(embedder).embed([text])
        assert alone.tobytes() == vector.tobytes()
        assert vector.dtype == np.float32
        assert vector.shape == (WIDTH,)
    assert np.linalg.norm(together[0]) == pytest.approx(1)


def test_prefixes_reach_the_model(
    library: Repository, command: Command, embedder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Models trained with prefixes rank badly without them."""
    texts: list[str] = []
    real = models.Embedder.embed

    def embed(self: models.Embedder, some: list[str]) -> list[np.ndarray]:
        texts.extend(some)
        return real(self, some)

    monkeypatch.setattr(models.Embedder, "embed", embed)
    library.write({".coderag.yml": "query-prefix: 'ask: '\npassage-prefix: 'text: '\n"})
    pack_of(command, library, "--base", "HEAD~1", "--embedding-model", embedder)
    assert [text[:6] for text in texts].count("text: ") == len(texts) - 1
    assert texts[-1].startswith("ask: Lend to readers only\n# file: library/desk.py")


# ---- models that can not be used


def _missing(folder: Path) -> None:
    shutil.rmtree(folder)


def _without_model(folder: Path) -> None:
    (folder / "model.onnx").unlink()


def _without_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()


def _without_settings(folder: Path) -> None:
    (folder / "tokenizer_config.json").unlink()


def _truncated(folder: Path) -> None:
    file = folder / "model.onnx"
    file.write_bytes(file.read_bytes()[:200])


def _emptied(folder: Path) -> None:
    (folder / "model.onnx").write_bytes(b"")


def _bad_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").write_text("{}")


def _bad_config(folder: Path) -> None:
    (folder / "config.json").write_text("not json")


BROKEN = [
    _missing, _without_model, _without_tokenizer, _without_settings, _truncated, _emptied,
    _bad_tokenizer, _bad_config,
]  # fmt: skip


@pytest.mark.parametrize("damage", BROKEN)
def test_an_embedding_model_that_can_not_be_used_costs_its_channel_alone(
    library: Repository, command: Command, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    """A model that was not downloaded must not take the review with it, nor go unnoticed."""
    folder = embedding_model(tmp_path / "deep" / "model", MEANINGS)
    damage(folder)
    arguments = ("--base", "HEAD~1", "--embedding-model", str(folder))
    pack = pack_of(command, library, *arguments)
    (line,) = pack["degradations"]
    assert line.startswith("no dense channel: ")
    assert str(folder) in line
    assert len(line) < 400
    assert "\n" not in line
    assert pack["evidence"]
    assert "dense" not in channels(pack)
    assert pack_of(command, library, *arguments, "--strict", code=4)["digest"] == pack["digest"]
    shown = command("context", "--repo", str(library.path), *arguments)
    assert "Evidence limited:" in shown.out
    result = command("index", "--repo", str(library.path), "--embedding-model", str(folder))
    assert result.code == 4
    assert "no vectors: " in result.err
    assert "blobs indexed" in result.out


@pytest.mark.parametrize("name", ["no-such-model", "some/model", "./here", "~/there"])
def test_the_name_of_an_unknown_model_is_refused_without_the_network(
    library: Repository, command: Command, name: str
) -> None:
    """A typo must not become a download, nor a traceback from deep inside a library."""
    pack = pack_of(command, library, "--base", "HEAD~1", "--embedding-model", name)
    (line,) = pack["degradations"]
    assert name in line
    assert "no such directory" in line or "neither a directory nor a model" in line


def test_a_known_model_that_is_not_cached_is_not_downloaded(
    library: Repository, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is fetched behind the user's back, in CI least of all."""
    monkeypatch.setenv("FASTEMBED_CACHE_PATH", str(tmp_path))
    pack = pack_of(
        command, library, "--base", "HEAD~1", "--embedding-model", "BAAI/bge-small-en-v1.5"
    )
    (line,) = pack["degradations"]
    assert "coderag-ci models pull BAAI/bge-small-en-v1.5" in line


# ---- the cross-encoder


def test_a_cross_encoder_is_blended_with_the_fused_order(
    library: Repository, command: Command, encoder: str
) -> None:
    """It has a say in the order, not the last word."""
    library.commit({"library/night.py": USER.replace("evening", "night")})
    library.commit({"library/desk.py": DESK})
    arguments = ("--base", "HEAD~1", "--rerank-model", encoder)
    pack = pack_of(command, library, *arguments)
    assert pack["degradations"] == []
    scores = {e["path"]: e["scores"]["rerank"] for e in pack["evidence"] if "rerank" in e["scores"]}
    assert scores["library/evening.py"] > scores["library/night.py"]
    assert pack["evidence"][0]["path"] == "library/evening.py"
    repeated = pack_of(command, library, *arguments)
    assert repeated["digest"] == pack["digest"]


def test_a_score_does_not_depend_on_its_neighbours(encoder: str) -> None:
    """The depth of the rerank would change the scores of the first."""
    model = models.CrossEncoder(encoder)
    texts = ["evening", "tick " * 300, ""]
    assert model.score("lend", texts) == [model.score("lend", [text])[0] for text in texts]
    assert model.score("lend", ["evening"])[0] == pytest.approx(5.0)


@pytest.mark.parametrize("damage", BROKEN[:-1])
def test_a_cross_encoder_that_can_not_be_used_leaves_the_order_to_the_heuristic(
    library: Repository, command: Command, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    """Without it the pack has to be the one that one gets by default, and say so."""
    folder = cross_encoder(tmp_path / "deep" / "model", {"evening": 1.0})
    damage(folder)
    arguments = ("--base", "HEAD~1", "--rerank-model", str(folder))
    pack = pack_of(command, library, *arguments)
    (line,) = pack["degradations"]
    assert line.startswith("no cross-encoder: ")
    assert line.endswith("ranked without it")
    plain = pack_of(command, library, "--base", "HEAD~1")
    assert pack["evidence"] == plain["evidence"]
    pack_of(command, library, *arguments, "--strict", code=4)


def test_prune_drops_the_vectors_of_models_that_are_no_longer_used(
    library: Repository, command: Command, embedder: str, other_embedder: str
) -> None:
    """Each model that was ever tried would stay in every saved cache."""
    for model in (embedder, other_embedder):
        arguments = ("--repo", str(library.path), "--embedding-model", model)
        assert command("index", *arguments).code == 0
    result = command("index", "--repo", str(library.path), "--prune")
    assert " 7 vectors, " in result.out, result.out
    last = command("index", "--repo", str(library.path), "--embedding-model", other_embedder)
    assert " 0 vectors made" in last.out
    gone = command("index", "--repo", str(library.path), "--embedding-model", embedder)
    assert " 7 vectors made" in gone.out


# ---- the deadline


class Clock:
    """A clock that a test sets, and that goes on by a step at each look."""

    def __init__(self, step: float = 0.0) -> None:
        self.now = 100.0
        self.step = step

    def __call__(self) -> float:
        """Return the time, one step on."""
        self.now += self.step
        return self.now


def by(seconds: float, clock: Clock) -> Deadline:
    """Return a deadline by a clock alone: however slow the machine is, nothing is given up."""
    return Deadline(seconds, clock, wait=lambda event, _: event.wait())


def timed(repository: Repository, deadline: Deadline, **settings: Any) -> Pack:
    """Make the pack of the last commit by a deadline."""
    repo = GitRepo(str(repository.path))
    made = change.resolve(repo, change.Wanted("HEAD~1"), ci.CI(False))
    directory = repository.path / ".git" / "coderag-ci"
    return pipeline.make_pack(
        Job(repo, made, Config(**settings), directory, deadline, Progress(True))
    )


def test_each_step_that_time_does_not_allow_is_named(
    library: Repository, embedder: str, encoder: str
) -> None:
    """A pack that is thin because time was short must not look like one that found little."""
    both = {"embedding_model": embedder, "rerank_model": encoder}
    whole = timed(library, by(0, Clock()), **both)
    assert whole.degradations == ()
    ample = timed(library, by(60, Clock()), **both)
    assert ample.digest == whole.digest
    late = timed(library, by(3.5, Clock()), **both)
    assert late.degradations == (
        "no history: deadline",
        "no dense channel: deadline",
        "no cross-encoder: deadline; ranked without it",
    )
    assert late.evidence


def test_files_that_there_was_no_time_to_read_are_named(library: Repository) -> None:
    """The first run on a large repository is the one that runs into the deadline."""
    none = timed(library, by(2.5, Clock()))
    assert none.degradations == ("deadline: 6 files not indexed", "no history: deadline")
    assert {skip.path for skip in none.skipped} == set(FILES)
    assert {skip.reason for skip in none.skipped} == {"deadline: not indexed"}
    assert [file.path for file in none.diff] == ["library/desk.py"]  # the change is always there
    some = timed(library, by(6, Clock(step=1.0)))
    line, *_ = some.degradations
    assert line.startswith("deadline: ")
    rest = timed(library, by(0, Clock()))
    assert rest.degradations == ()
    assert rest.evidence


def test_a_rerank_that_is_cut_short_says_how_far_it_came(library: Repository, encoder: str) -> None:
    """An order that is half by one measure and half by another has to be known as such."""
    library.commit({f"use/u{n}.py": USER.replace("evening", f"use_{n}") for n in range(12)})
    library.commit({"library/desk.py": DESK})
    warm = timed(library, by(0, Clock()), rerank_model=encoder)
    (depth,) = [s.counts["depth"] for s in warm.trace.stages if s.name == "rerank"]
    clock = Clock(step=0.5)
    cut = timed(library, by(10.5, clock), rerank_model=encoder)
    (line,) = cut.degradations
    assert line.startswith("deadline: reranked ")
    assert line.endswith(f" of {depth} candidates")
    done = int(line.split()[2])
    assert 0 < done < depth
    assert sum("rerank" in piece.scores for piece in cut.evidence) <= done


def test_a_deadline_of_zero_is_none() -> None:
    """Zero is the default and means: take the time that it takes."""
    clock = Clock()
    never = Deadline(0, clock)
    clock.now += 1e9
    assert not never.within(1e6)
    soon = Deadline(10, clock)
    assert (soon.left(), soon.within(9.9), soon.within(10)) == (10, False, True)
    clock.now += 11
    assert soon.left() == -1
    assert soon.within(0)
