"""The measures: equal to ir-measures, and what counts as a hit."""

from __future__ import annotations

import math
import random

import pytest

from coderag_ci.eval import metrics
from coderag_ci.eval.outcome import Piece, chunk_ranks, file_ranks
from tests.cases import case_of, gold_of, outcome_of


def test_measures_equal_those_of_ir_measures() -> None:
    """Hit@k is Success@k there; each item is met by a chunk of its own."""
    ir = pytest.importorskip("ir_measures")
    random_ = random.Random(4)
    theirs = {
        "hit@1": ir.Success @ 1,
        "hit@5": ir.Success @ 5,
        "hit@10": ir.Success @ 10,
        "hit@20": ir.Success @ 20,
        "recall@10": ir.R @ 10,
        "mrr": ir.RR,
        "ndcg@10": ir.nDCG @ 10,
    }
    for _ in range(200):
        n = random_.randint(1, 14)
        places = random_.sample(range(1, 41), n)
        ranks = [rank if random_.random() < 0.7 else 0 for rank in places]
        relevant = [ir.Qrel("q", f"gold{i}", 1) for i in range(n)]
        docs = {rank: f"gold{i}" for i, rank in enumerate(ranks) if rank}
        run = [ir.ScoredDoc("q", docs.get(r, f"other{r}"), 100.0 - r) for r in range(1, 41)]
        expected = ir.calc_aggregate(list(theirs.values()), relevant, run)
        assert set(theirs) == set(metrics.CHUNK)
        for name, measure in theirs.items():
            assert metrics.measure(name, ranks) == pytest.approx(expected[measure]), name


def test_a_chunk_that_meets_two_items_is_one_hit() -> None:
    """Its rank counts once in nDCG, so that it stays at 1 or below; recall counts both items."""
    assert metrics.measure("recall@10", [1, 1, 0]) == pytest.approx(2 / 3)
    ideal = 1 + 1 / math.log2(3)
    assert metrics.measure("ndcg@10", [1, 1]) == pytest.approx(1 / ideal)


def test_a_chunk_hits_where_its_lines_meet_a_hunk_of_the_same_path() -> None:
    """A line beside the hunk, or the right lines of another file, hit nothing."""
    case = case_of([gold_of("a.py", (10, 12), (30, 30)), gold_of("b.py", (5, 6))])
    pieces = [
        Piece("a.py", [(13, 29)], is_test=False),
        Piece("c.py", [(5, 6)], is_test=False),
        Piece("b.py", [(1, 2), (6, 9)], is_test=False),
        Piece("a.py", [(30, 40)], is_test=False),
        Piece("a.py", [(1, 50)], is_test=False),
    ]
    assert chunk_ranks(case, pieces) == (4, 3)


def test_files_are_ranked_by_their_first_piece() -> None:
    """A file that comes three times takes one rank; gold in one file is one file."""
    case = case_of([gold_of("b.py", (1, 2)), gold_of("b.py", (8, 9)), gold_of("z.py", (1, 1))])
    pieces = [Piece("a.py", [(n, n)], is_test=False) for n in range(3)]
    pieces.append(Piece("b.py", [(50, 60)], is_test=False))
    assert file_ranks(case, pieces) == (2, 0)


def test_an_item_of_an_arbitrary_place_counts_for_files_alone() -> None:
    """A new test could have stood anywhere in its file."""
    items = [gold_of("a.py", (1, 2)), gold_of("b.py", (3, 4), file_only=True)]
    found = metrics.values_of(
        case_of(items), outcome_of([1, 0], shown=[0]), "final", metrics.all_gold
    )
    assert found["chunk", "recall@10"] == 1
    assert found["pack", "recall@4000"] == 1
    assert found["file", "recall@10"] == 0.5
    alone = metrics.values_of(case_of(items[1:]), outcome_of([1]), "final", metrics.all_gold)
    assert ("chunk", "mrr") not in alone
    assert alone["file", "mrr"] == 1


def test_without_tests_neither_test_gold_nor_test_chunks_count() -> None:
    """A test chunk in front does not push the rank of the code behind it."""
    items = [gold_of("a.py", (1, 2)), gold_of("test_a.py", (3, 4), is_test=True)]
    case = case_of(items)
    outcome = outcome_of([2, 1], shown=[1])
    ranks = outcome.rankings["final"]
    outcome.rankings["final"] = type(ranks)(ranks.chunk, ranks.file, (1, 0), (1, 0), ranks.pack)
    found = metrics.values_of(case, outcome, "final", metrics.nontest_gold)
    assert found["chunk", "mrr"] == found["file", "mrr"] == 1
    assert found["pack", "recall@4000"] == 0
    only_tests = case_of(items[1:])
    assert not metrics.values_of(only_tests, outcome_of([1]), "final", metrics.nontest_gold)


def test_gold_in_files_of_the_change_can_be_left_out() -> None:
    """That is the harder half of what a review missed."""
    items = [gold_of("a.py", (1, 2), in_query_file=True), gold_of("b.py", (3, 4))]
    found = metrics.values_of(
        case_of(items), outcome_of([1, 4], shown=[0]), "final", metrics.untouched_gold
    )
    assert found["chunk", "mrr"] == 0.25
    assert found["pack", "hit@4000"] == 0
