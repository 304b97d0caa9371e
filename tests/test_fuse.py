"""Weighted reciprocal rank fusion."""

from __future__ import annotations

import pytest

from coderag_ci.config import CHANNEL_NAMES
from coderag_ci.fuse import fuse
from tests.conftest import Command
from tests.packs import pack_of, shop
from tests.repository import Repository

PLACES = {1: ("b.py", 1), 2: ("a.py", 9), 3: ("a.py", 2), 4: ("c.py", 1)}


def place(doc: int) -> tuple[str, int]:
    """Return path and line of a doc."""
    return PLACES[doc]


def order(rankings: dict[str, list[int]], k: float) -> list[int]:
    """Return the fused order of rankings of equal weight."""
    return [doc for doc, _ in fuse(rankings, dict.fromkeys(rankings, 1.0), k, place)]


def test_scores_are_those_computed_by_hand() -> None:
    """A slip in ranks or weights would quietly reorder every pack."""
    found = fuse({"a": [1, 2], "b": [2, 3]}, {"a": 1.0, "b": 0.5}, 60, place)
    assert dict(found) == pytest.approx({1: 60 / 61, 2: 60 / 62 + 30 / 61, 3: 30 / 62})
    assert [doc for doc, _ in found] == [2, 1, 3]


def test_a_smaller_k_favours_first_places() -> None:
    """The setting k has to do what its description says."""
    rankings = {"a": [1, 2, 3], "b": [4, 2, 3], "c": [3, 2, 4]}
    assert order(rankings, 1000)[0] == 2
    assert order(rankings, 0.01)[0] == 3


def test_ties_go_by_path_and_line() -> None:
    """Equal scores would come in the order in which a dictionary was filled."""
    for docs in ((1, 2, 3, 4), (4, 3, 2, 1)):
        assert order({str(doc): [doc] for doc in docs}, 60) == [3, 2, 1, 4]


def test_a_channel_without_weight_is_left_out() -> None:
    """A channel that is switched off must not even add a doc to the candidates."""
    found = dict(fuse({"uses": [1, 2], "diff": [3]}, {"uses": 2.0, "diff": 0.0}, 60, place))
    assert found == pytest.approx({1: 120 / 61, 2: 120 / 62})


def test_nothing_fuses_to_nothing() -> None:
    """A change that asks nothing has no evidence, and no error."""
    assert fuse({}, {}, 60, place) == []
    assert fuse({"uses": []}, {"uses": 1.0}, 60, place) == []


def test_a_channel_that_is_switched_off_is_in_no_reason(
    repository: Repository, command: Command
) -> None:
    """Someone who finds a channel misleading needs a way to be rid of it."""
    shop(repository)
    for flag in (("--no-channel", "uses"), ("--weight", "uses=0")):
        pack = pack_of(command, repository, "--base", "main", *flag)
        names = {channel["name"] for e in pack["evidence"] for channel in e["channels"]}
        assert names
        assert "uses" not in names
        assert pack["settings"] == {"weights.uses": "0.0"}
    alone = [f"--no-channel={name}" for name in CHANNEL_NAMES if name != "uses"]
    pack = pack_of(command, repository, "--base", "main", *alone)
    names = {channel["name"] for e in pack["evidence"] for channel in e["channels"]}
    assert names - {"enclosing"} == {"uses"}
    off = pack_of(command, repository, "--base", "main", *alone, "--no-channel=uses")
    assert [e for e in off["evidence"] if e["channels"][0]["name"] != "enclosing"] == []
