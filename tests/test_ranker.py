"""The fitted ranker: what its file holds, what it says of a candidate, and life without it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest

import coderag_ci
from coderag_ci import ranker
from coderag_ci.features import NAMES
from coderag_ci.ranker import Fitted, Ranker, RankerUnavailableError, Tree
from tests.conftest import Command
from tests.packs import shop
from tests.repository import Repository

STUMP = Tree((0, 0, 0), (0.5, 0.0, 0.0), (1, 1, 2), (2, 1, 2), (0.25, -1.0, 2.0))
FORMULA = NAMES.index("formula:z")


def fitted(*trees: Tree) -> Fitted:
    """Return a ranker's file."""
    return Fitted("command", "cases", NAMES, trees)


def rows(*values: float) -> np.ndarray:
    """Return candidates of which the first feature is known."""
    found = np.zeros((len(values), len(NAMES)), np.float32)
    found[:, 0] = values
    return found


def walk(tree: Tree, row: np.ndarray) -> float:
    """Follow one candidate down one tree, as the file describes it."""
    at = 0
    while tree.left[at] != at:
        at = tree.left[at] if row[tree.feature[at]] <= tree.threshold[at] else tree.right[at]
    return tree.value[at]


def test_a_tree_sends_what_is_at_most_the_threshold_to_the_left() -> None:
    """And the trees add up, on top of the formula."""
    some = rows(0.5, 0.6)
    some[:, FORMULA] = [1.0, -1.0]
    assert Ranker(fitted(STUMP, STUMP)).scores(some).tolist() == [-1.0, 3.0]


def test_what_comes_with_the_package_scores_as_its_file_says() -> None:
    """Each tree, walked node by node; and the parts of a score add up to it."""
    data = (Path(ranker.__file__).parent / "ranker.json").read_bytes()
    file = msgspec.json.decode(data, type=Fitted)
    some = np.random.default_rng(7).normal(0.5, 1.0, (50, len(NAMES))).astype(np.float32)
    made = ranker.load()
    scores = made.scores(some)
    walked = [row[FORMULA] + sum(walk(tree, row) for tree in file.trees) for row in some]
    assert scores == pytest.approx(walked, abs=1e-4)
    for row, score in zip(some, scores, strict=True):
        assert sum(made.parts(row).values()) == pytest.approx(score, abs=1e-4)
    assert "training/fit.py" in file.command


@pytest.mark.parametrize(
    "tree",
    [
        Tree((0,), (0.5,), (1,), (1,), (0.0,)),  # points beyond the end
        Tree((0, 0), (0.5, 0.0), (1, 1), (0, 1), (0.0, 0.0)),  # points back
        Tree((len(NAMES), 0, 0), (0.5, 0, 0), (1, 1, 2), (2, 1, 2), (0, 0, 0)),
        Tree((-1, 0, 0), (0.5, 0, 0), (1, 1, 2), (2, 1, 2), (0, 0, 0)),
        Tree((0, 0, 0), (0.5, 0, 0), (1, 1, 2), (2, 1), (0, 0, 0)),
        Tree((), (), (), (), ()),
    ],
)
def test_a_damaged_tree_is_refused(tree: Tree) -> None:
    """No walk may leave its tree or run in a circle."""
    with pytest.raises(RankerUnavailableError, match="damaged"):
        Ranker(fitted(STUMP, tree, STUMP))


def test_other_features_or_no_trees_are_refused() -> None:
    """A file of another version says so."""
    with pytest.raises(RankerUnavailableError, match="other features"):
        Ranker(Fitted("command", "cases", NAMES[1:], (STUMP,)))
    with pytest.raises(RankerUnavailableError, match="damaged"):
        Ranker(fitted())


@pytest.mark.parametrize("data", [None, b"", b"{", b'{"trees": 3}', b"\xff"])
def test_without_its_file_the_formula_ranks_and_the_pack_says_so(
    data: bytes | None, repository: Repository, tmp_path: Path
) -> None:
    """A missing or broken file is no reason to fail a build."""
    shop(repository)
    package = tmp_path / "coderag_ci"
    shutil.copytree(Path(coderag_ci.__file__).parent, package)
    (package / "ranker.json").unlink()
    if data is not None:
        (package / "ranker.json").write_bytes(data)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    made = subprocess.run(
        [sys.executable, "-m", "coderag_ci", "context", "--repo", str(repository.path),
         "--base", "main", "--format", "json", "--rerank-model", "learned"],
        cwd=tmp_path, capture_output=True, check=True, env=environment,
    )  # fmt: skip
    pack = json.loads(made.stdout)
    assert any("the formula ranked" in line for line in pack["degradations"])
    assert pack["evidence"]


def test_a_channel_that_is_off_gives_nothing(
    repository: Repository, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A weight of 0 holds for the fitted ranker, too."""
    shop(repository)
    monkeypatch.setenv("CODERAG_WEIGHTS_USES", "0")
    made = command(
        "context", "--repo", str(repository.path), "--base", "main", "--format", "json",
        "--rerank-model", "learned",
    )  # fmt: skip
    pack = json.loads(made.out)
    assert pack["settings"]["weights.uses"] == "0.0"
    assert not any(c["name"] == "uses" for e in pack["evidence"] for c in e["channels"])
