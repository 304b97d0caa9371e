"""From outcomes to figures with intervals, in the groups that a reader asks for."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from coderag_ci import __version__
from coderag_ci.config import CHANNEL_NAMES
from coderag_ci.errors import SetupError, UsageError
from coderag_ci.eval import metrics
from coderag_ci.eval.cases import Case, Skip
from coderag_ci.eval.interval import Interval, Verdict, intervals, verdict
from coderag_ci.eval.metrics import Counts, all_gold, nontest_gold, untouched_gold
from coderag_ci.eval.outcome import Outcome, gold_paths
from coderag_ci.eval.run import Variant, digest_of
from coderag_ci.files import read_whole
from coderag_ci.segment import Array

SCHEMA_VERSION = 1
DECIDES = "final.pack.recall@4000"  # the figure that counts: what the reader gets
_SIZES = ((2_000, "under 2,000 chunks"), (10_000, "2,000 to 10,000"), (40_000, "10,000 to 40,000"))
_LARGEST = "over 40,000"

Figures = dict[str, dict[str, Interval]]  # level to metric


class Seconds(msgspec.Struct, frozen=True):
    """Wall seconds of a case on an index that has its blobs: median and 95th percentile."""

    median: float
    p95: float


class Group(NamedTuple):
    """Some cases, which of their gold counts, and how they are averaged."""

    pairs: Sequence[tuple[Case, Outcome]]
    counts: Counts = all_gold
    by_repository: bool = False


class Compared(msgspec.Struct, frozen=True):
    """A paired difference, new − old, and what it is worth."""

    value: float | None
    low: float | None
    high: float | None
    verdict: Verdict


class Comparison(msgspec.Struct, frozen=True):
    """Differences by ``ranking.level.metric`` over the cases that both have; one decides."""

    against: str
    cases: int
    verdict: Verdict
    metrics: dict[str, Compared]


class Measured(msgspec.Struct, frozen=True):
    """A case and what it gave: results stand alone, and can be compared case by case."""

    case: Case
    outcome: Outcome


class VariantResult(msgspec.Struct, frozen=True):
    """A variant: its settings, its figures by ranking, and how it differs from the first."""

    label: str
    settings: dict[str, Any]
    overall: dict[str, Any]
    comparison: Comparison | None
    outcomes: tuple[Measured, ...]


class Results(msgspec.Struct, frozen=True):
    """What ``eval run`` writes.

    A group holds ``cases``, ``seconds`` and, by ranking, level and metric, an interval.
    ``nontest``: test gold and test chunks left out; ``untouched``: gold outside the changed
    files; ``repo_mean``: the mean of the repositories' means; all of the first variant.
    ``tokens``: of a chunk among the first ten of the reranked order, median over the cases.
    """

    schema_version: int
    tool_version: str
    settings: dict[str, Any]
    cases: int
    skipped: tuple[Skip, ...]
    seconds: Seconds
    stages: dict[str, Seconds]
    overall: dict[str, Any]
    nontest: dict[str, Any]
    untouched: dict[str, Any]
    repo_mean: dict[str, Any]
    by_kind: dict[str, dict[str, Any]]
    by_language: dict[str, dict[str, Any]]
    by_repo: dict[str, dict[str, Any]]
    by_size: dict[str, dict[str, Any]]
    recall_by_k: dict[str, dict[int, float]]
    variants: tuple[VariantResult, ...]
    comparison: Comparison | None
    degradations: dict[str, int]
    tokens: float = 0.0


class _Version(msgspec.Struct):
    schema_version: int


_KS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 100, 200)


def results_of(
    cases: Sequence[Case],
    variants: Sequence[Variant],
    outcomes: Mapping[str, Sequence[Outcome]],
    skipped: Sequence[Skip],
    base: Mapping[str, Any],
    baseline: tuple[str, Results] | None,
) -> Results:
    """Work out every figure. ``outcomes``: by variant's label; ``baseline``: name and results."""
    by_id = {case.id: case for case in cases}
    paired = {
        variant.label: [(by_id[one.id], one) for one in outcomes[variant.label]]
        for variant in variants
    }
    first = paired[variants[0].label]

    def split(key: Callable[[Case, Outcome], str]) -> dict[str, dict[str, Any]]:
        parts: dict[str, list[tuple[Case, Outcome]]] = {}
        for case, outcome in first:
            parts.setdefault(key(case, outcome), []).append((case, outcome))
        return {name: figures(Group(some)) for name, some in sorted(parts.items())}

    against_first = {digest_of(case): one for case, one in first}
    return Results(
        schema_version=SCHEMA_VERSION,
        tool_version=__version__,
        settings={**base, **variants[0].settings},
        cases=len(first),
        skipped=tuple(skipped),
        seconds=_seconds([sum(one.seconds.values()) for _, one in first]),
        stages=_stages([one for _, one in first]),
        overall=figures(Group(first)),
        nontest=figures(Group(first, nontest_gold)),
        untouched=figures(Group(first, untouched_gold)),
        repo_mean=figures(Group(first, by_repository=True)),
        by_kind=split(lambda case, _: case.kind),
        by_language=split(lambda case, _: case.language or "unknown"),
        by_repo=split(lambda case, _: case.repo),
        by_size=split(lambda _, outcome: _size(outcome.chunks)),
        recall_by_k=_recall_by_k(first),
        variants=tuple(
            VariantResult(
                variant.label,
                dict(variant.settings),
                figures(Group(paired[variant.label])),
                _compare(against_first, variants[0].label, paired[variant.label])
                if number
                else None,
                tuple(Measured(case, one) for case, one in paired[variant.label]),
            )
            for number, variant in enumerate(variants)
        ),
        comparison=_compare_with(baseline, first) if baseline else None,
        degradations=_degradations([one for _, one in first]),
        tokens=statistics.median([one.tokens for _, one in first]) if first else 0.0,
    )


def figures(group: Group) -> dict[str, Any]:
    """Return the figures of a group: cases, seconds, and intervals by ranking."""
    pairs = group.pairs
    rankings = list(dict.fromkeys(name for _, one in pairs for name in one.rankings))
    columns = _columns(rankings)
    table = _table(pairs, columns, group.counts)
    counted = int((~np.isnan(table)).any(axis=1).sum()) if columns else 0
    found: dict[str, Any] = {"cases": counted}
    if pairs:
        found["seconds"] = _seconds([sum(one.seconds.values()) for _, one in pairs])
    of_repo = [case.repo for case, _ in pairs]
    made = intervals(table, of_repo, by_cluster=group.by_repository)
    for (ranking, level, metric), interval in zip(columns, made, strict=True):
        if interval.value is not None:
            found.setdefault(ranking, {}).setdefault(level, {})[metric] = interval
    return found


def _columns(rankings: Sequence[str]) -> list[tuple[str, str, str]]:
    return [(name, *metric) for name in rankings for metric in metrics.metric_names(name)]


def _table(
    pairs: Sequence[tuple[Case, Outcome]], columns: Sequence[tuple[str, str, str]], counts: Counts
) -> Array:
    """Return one row a case and one column a metric; NaN where it does not count."""
    table = np.full((len(pairs), len(columns)), np.nan)
    place = {column: i for i, column in enumerate(columns)}
    for row, (case, one) in enumerate(pairs):
        for ranking in one.rankings:
            for metric, value in metrics.values_of(case, one, ranking, counts).items():
                if (at := place.get((ranking, *metric))) is not None:
                    table[row, at] = value
    return table


def _compare_with(
    baseline: tuple[str, Results], pairs: Sequence[tuple[Case, Outcome]]
) -> Comparison:
    name, results = baseline
    old = {digest_of(one.case): one.outcome for one in results.variants[0].outcomes}
    found = _compare(old, name, pairs)
    if not found.cases:
        raise SetupError(f"{name} has no case in common with these", "name results of these cases")
    return found


def _compare(
    old: Mapping[str, Outcome], name: str, pairs: Sequence[tuple[Case, Outcome]]
) -> Comparison:
    """Compare case by case the rankings that both have."""
    common = [(case, one, old[digest]) for case, one in pairs if (digest := digest_of(case)) in old]
    rankings = [
        ranking
        for ranking in ("fused", "reranked", "final")
        if all(ranking in one.rankings and ranking in other.rankings for _, one, other in common)
    ]
    columns = [
        (ranking, *metric) for ranking in rankings for metric in metrics.metric_names(ranking)
    ]
    new_table = _table([(case, one) for case, one, _ in common], columns, all_gold)
    old_table = _table([(case, other) for case, _, other in common], columns, all_gold)
    made = intervals(new_table - old_table, [case.repo for case, _, _ in common])
    compared = {
        ".".join(column): Compared(one.value, one.low, one.high, verdict(one))
        for column, one in zip(columns, made, strict=True)
        if one.value is not None
    }
    decides = compared.get(DECIDES)
    return Comparison(name, len(common), decides.verdict if decides else "no difference", compared)


def _recall_by_k(pairs: Sequence[tuple[Case, Outcome]]) -> dict[str, dict[int, float]]:
    """Return chunk Recall@k by ranking, for the curve."""
    found: dict[str, dict[int, float]] = {}
    for ranking in dict.fromkeys(name for _, one in pairs for name in one.rankings):
        of_case = [
            ranks
            for case, one in pairs
            if ranking in one.rankings
            and (
                ranks := [
                    rank
                    for rank, item in zip(one.rankings[ranking].chunk, case.gold, strict=True)
                    if not item.file_only
                ]
            )
        ]
        if of_case:
            found[ranking] = {
                k: round(statistics.fmean(metrics.measure(f"recall@{k}", r) for r in of_case), 4)
                for k in _KS
            }
    return found


def _size(chunks: int) -> str:
    return next((label for limit, label in _SIZES if chunks < limit), _LARGEST)


def _seconds(values: Sequence[float]) -> Seconds:
    if not values:
        return Seconds(0.0, 0.0)
    median, p95 = np.percentile(values, [50, 95])
    return Seconds(round(float(median), 4), round(float(p95), 4))


def _stages(outcomes: Sequence[Outcome]) -> dict[str, Seconds]:
    names = dict.fromkeys(name for one in outcomes for name in one.seconds)
    return {name: _seconds([one.seconds.get(name, 0.0) for one in outcomes]) for name in names}


def _degradations(outcomes: Sequence[Outcome]) -> dict[str, int]:
    found: dict[str, int] = {}
    for one in outcomes:
        for text in one.degradations:
            found[text] = found.get(text, 0) + 1
    return found


def read(path: str) -> Results:
    """Read a results file. Raises SetupError where it is none."""
    data = read_whole(path, "name a file that eval run wrote")
    try:
        version = msgspec.json.decode(data, type=_Version).schema_version
        if version != SCHEMA_VERSION:
            raise SetupError(
                f"{path}: schema version {version}, this coderag-ci reads {SCHEMA_VERSION}",
                "run the evaluation again with this version",
            )
        found = msgspec.json.decode(data, type=Results)
        _check(found)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise SetupError(
            f"{path} is not the results of eval run: {str(error)[:120]}", "make it again"
        ) from error
    return found


def _check(results: Results) -> None:
    """Raise ValueError where what was read does not hold together, perhaps edited by hand."""
    groups = [getattr(results, name) for name in _GROUPS]
    groups += [variant.overall for variant in results.variants]
    for name in ("by_kind", "by_language", "by_repo", "by_size"):
        groups += getattr(results, name).values()
    for group in groups:
        for name, value in group.items():
            kind = {"cases": int, "seconds": Seconds}.get(name, Figures)
            msgspec.convert(value, kind)
    if not results.variants:
        raise ValueError("it holds no variant")
    for one in (one for variant in results.variants for one in variant.outcomes):
        gold, paths = len(one.case.gold), len(gold_paths(one.case))
        for ranks in one.outcome.rankings.values():
            if {len(ranks.chunk), len(ranks.chunk_nontest)} != {gold}:
                raise ValueError(f"case {one.case.id}: its ranks are not those of its gold")
            if {len(ranks.file), len(ranks.file_nontest)} != {paths}:
                raise ValueError(f"case {one.case.id}: its ranks are not those of its files")


def encode(results: Results) -> bytes:
    """Return results as JSON."""
    return msgspec.json.format(msgspec.json.encode(results), indent=1) + b"\n"


_GROUPS = ("overall", "nontest", "untouched", "repo_mean")


def check_name(name: str) -> None:
    """Raise UsageError for a name that is none of a figure's."""
    group, ranking, level, metric = _parts(name)
    rankings = ("fused", "reranked", "final", *(f"channel:{c}" for c in CHANNEL_NAMES))
    known = ranking in rankings and (level, metric) in metrics.metric_names(ranking)
    if group not in _GROUPS or not known:
        raise UsageError(f"unknown figure: {name}", f"RANKING.LEVEL.METRIC, for example {DECIDES}")


def look_up(results: Results, name: str) -> float | None:
    """Return a figure by ``[GROUP.]RANKING.LEVEL.METRIC``; None where no case gives it."""
    group, ranking, level, metric = _parts(name)
    found = getattr(results, group).get(ranking, {}).get(level, {}).get(metric)
    return found.value if found is not None else None


def _parts(name: str) -> tuple[str, str, str, str]:
    parts = name.split(".")
    if len(parts) == 3:
        parts.insert(0, "overall")
    if len(parts) != 4:
        return "", "", "", ""
    return parts[0], parts[1], parts[2], parts[3]
