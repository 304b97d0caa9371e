"""Weighted reciprocal rank fusion."""

from __future__ import annotations

import pytest

from coderag_ci.fuse import fuse, reciprocal_rank_fusion
from tests.conftest import Command
from tests.packs import pack_of, shop
from tests.repository import Repository

PLACES = {1: ("b.py", 1), 2: ("a.py", 9), 3: ("a.py", 2), 4: ("c.py", 1)}


def place(doc: int) -> tuple[str, int]:
    """Return path and line of a doc."""
    return PLACES[doc]


def test_scores_are_those_computed_by_hand() -> None:
    """A slip in ranks or weights would quietly reorder every pack."""
    found = dict(reciprocal_rank_fusion([(1.0, [1, 2]), (0.5, [2, 3])], 60, place))
    assert found == pytest.approx({1: 1 / 61, 2: 1 / 62 + 0.5 / 61, 3: 0.5 / 62})
    order = [doc for doc, _ in reciprocal_rank_fusion([(1.0, [1, 2]), (0.5, [2, 3])], 60, place)]
    assert order == [2, 1, 3]


def test_a_smaller_k_favours_first_places() -> None:
    """The setting k has to do what its description says."""
    rankings = [(1.0, [1, 2, 3]), (1.0, [4, 2, 3]), (1.0, [3, 2, 4])]
    assert reciprocal_rank_fusion(rankings, 1000, place)[0][0] == 2
    assert reciprocal_rank_fusion(rankings, 0.01, place)[0][0] == 3


def test_ties_go_by_path_and_line() -> None:
    """Equal scores would come in the order in which a dictionary was filled."""
    for rankings in ([(1.0, [d]) for d in (1, 2, 3, 4)], [(1.0, [d]) for d in (4, 3, 2, 1)]):
        order = [doc for doc, _ in reciprocal_rank_fusion(rankings, 60, place)]
        assert order == [3, 2, 1, 4]


def test_queries_add_up_and_a_channel_without_weight_is_left_out() -> None:
    """A channel that is switched off must not even add a doc to the candidates."""
    per_query = [{"uses": [1, 2], "diff": [3]}, {"uses": [2], "diff": [4]}]
    found = dict(fuse(per_query, {"uses": 2.0, "diff": 0.0}, 60, place))
    assert found == pytest.approx({1: 2 / 61, 2: 2 / 62 + 2 / 61})


def test_nothing_fuses_to_nothing() -> None:
    """A change that asks nothing has no evidence, and no error."""
    assert fuse([], {}, 60, place) == []
    assert fuse([{"uses": []}], {"uses": 1.0}, 60, place) == []


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
    alone = [f"--no-channel={name}" for name in ("diff", "deleted", "added", "defines", "dense")]
    pack = pack_of(command, repository, "--base", "main", *alone)
    names = {channel["name"] for e in pack["evidence"] for channel in e["channels"]}
    assert names - {"enclosing"} == {"uses"}
    off = pack_of(command, repository, "--base", "main", *alone, "--no-channel=uses")
    assert [e for e in off["evidence"] if e["channels"][0]["name"] != "enclosing"] == []
