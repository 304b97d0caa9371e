"""The standard measures of a ranking, from the ranks at which its gold is met.

A chunk hits a gold item when it is in the same path and its lines meet one of the item's
hunks; a chunk that meets several items is one hit. With r_i the rank of the first hit of
item i, n the number of items:

Hit@k = 1 if min r_i ≤ k; Recall@k = |{i: r_i ≤ k}| / n; MRR averages 1 / min r_i;
nDCG@k = Σ 1/log2(r + 1) over the distinct ranks r ≤ k at which items are first met, over the
same sum for ranks 1 … min(n, k) (Järvelin and Kekäläinen, 2002, binary gains).

A test holds Hit@k (Success), Recall, MRR and nDCG equal to those of ir-measures.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from coderag_ci.eval.cases import Case, Gold
from coderag_ci.eval.outcome import QUOTAS, WHOLE_PACK, Outcome, Ranks, gold_paths

CHUNK = ("hit@1", "hit@5", "hit@10", "hit@20", "recall@10", "mrr", "ndcg@10")
FILE = ("hit@10", "recall@10", "mrr")
PACK = tuple(f"{name}@{quota}" for name in ("recall", "hit") for quota in QUOTAS)
FINAL_PACK = (
    *PACK,
    "recall@budget",
    "hit@budget",
    *(f"not_gold@{quota}" for quota in QUOTAS),
    "not_gold@budget",
)

Values = dict[tuple[str, str], float]  # (level, metric) to value

Counts = Callable[[Gold], bool]


def all_gold(_: Gold) -> bool:
    """Count every item."""
    return True


def nontest_gold(item: Gold) -> bool:
    """Leave test gold out."""
    return not item.is_test


def untouched_gold(item: Gold) -> bool:
    """Leave gold in files of the change out."""
    return not item.in_query_file


def metric_names(ranking: str) -> list[tuple[str, str]]:
    """Return every (level, metric) of a ranking."""
    packs = FINAL_PACK if ranking == "final" else PACK
    levels = (("chunk", CHUNK), ("file", FILE), ("pack", packs))
    return [(level, name) for level, names in levels for name in names]


def values_of(case: Case, outcome: Outcome, ranking: str, counts: Counts) -> Values:
    """Return what one case gives for one ranking; a metric without gold to find is left out.

    ``counts`` says which gold items count; with ``nontest_gold``, test chunks are left out
    of the ranking, too. A pack stays what the reader gets.
    """
    ranks = outcome.rankings[ranking]
    without_tests = counts is nontest_gold
    found: Values = {}
    inside = [i for i, g in enumerate(case.gold) if counts(g) and not g.file_only]
    if inside:
        of_chunk = ranks.chunk_nontest if without_tests else ranks.chunk
        found.update(_measures("chunk", CHUNK, [of_chunk[i] for i in inside]))
        for quota, shown in ranks.pack.items():
            name = _quota_name(quota)
            met = len(set(shown).intersection(inside))
            found["pack", f"recall@{name}"] = met / len(inside)
            found["pack", f"hit@{name}"] = float(met > 0)
    paths = {g.path for g in case.gold if counts(g)}
    if paths:
        of_file = ranks.file_nontest if without_tests else ranks.file
        ordered = zip(gold_paths(case), of_file, strict=True)
        found.update(_measures("file", FILE, [r for path, r in ordered if path in paths]))
    if case.not_gold and ranking == "final":
        found.update(_wrong(ranks))
    return found


def _wrong(ranks: Ranks) -> Values:
    quotas = (*QUOTAS, WHOLE_PACK)
    return {
        ("pack", f"not_gold@{_quota_name(q)}"): float(q in ranks.shows_not_gold) for q in quotas
    }


def _quota_name(quota: int) -> str:
    return "budget" if quota == WHOLE_PACK else str(quota)


def _measures(level: str, names: Iterable[str], ranks: Sequence[int]) -> Values:
    return {(level, name): measure(name, ranks) for name in names}


def measure(name: str, ranks: Sequence[int]) -> float:
    """Return a metric (``hit@k``, ``recall@k``, ``mrr``, ``ndcg@k``) of the items' ranks.

    ``ranks``: rank of the first hit of each item, from 1; 0: never.
    """
    kind, _, number = name.partition("@")
    met = [rank for rank in ranks if rank]
    if kind == "mrr":
        return 1 / min(met) if met else 0.0
    k = int(number)
    within = [rank for rank in met if rank <= k]
    if kind == "hit":
        return float(bool(within))
    if kind == "recall":
        return len(within) / len(ranks)
    ideal = _gain(range(1, min(len(ranks), k) + 1))
    return _gain(set(within)) / ideal


def _gain(ranks: Iterable[int]) -> float:
    return math.fsum(1 / math.log2(rank + 1) for rank in ranks)
