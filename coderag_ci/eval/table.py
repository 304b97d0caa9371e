"""Results as text: one row a ranking, then what changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from coderag_ci.eval.results import DECIDES, Comparison, Results
from coderag_ci.progress import printable

_COLUMNS = (
    ("chunk", "hit@1"),
    ("chunk", "hit@10"),
    ("chunk", "hit@20"),
    ("chunk", "recall@10"),
    ("chunk", "mrr"),
    ("chunk", "ndcg@10"),
    ("file", "hit@10"),
    ("file", "mrr"),
    ("pack", "recall@2000"),
    ("pack", "recall@4000"),
    ("pack", "recall@8000"),
    ("pack", "hit@4000"),
)
_SHOWN = ("final.pack.recall@2000", DECIDES, "final.pack.recall@8000", "final.chunk.recall@10",
          "final.chunk.mrr")  # fmt: skip
_MOST_TOLD = 10
_LEGEND = """\
H@k: share of cases with gold among the first k; R@k: share of the gold; pack R@n: share of the
gold that a pack of n evidence tokens shows. final: the pack as it is read, grouped by file and
cut at the budget, so that its ranks do not compare with the rows above it."""


def table_of(results: Results) -> str:
    """Return what ``eval run`` prints."""
    lines = []
    if len(results.variants) > 1:
        lines.append(f"{results.variants[0].label}:")
    lines += [*_groups(results), *_intervals(results), *_seconds(results)]
    for variant in results.variants[1:]:
        lines += ["", f"{variant.label}: {_one_line(variant.overall)}"]
        if variant.comparison is not None:
            lines += _comparison(variant.comparison)
    if results.comparison is not None:
        lines += ["", *_comparison(results.comparison)]
    return "\n".join(map(printable, lines))  # names are data


def _groups(results: Results) -> Iterator[str]:
    width = max([len(name) for name in results.recall_by_k] + [7])
    header = " ".join(f"{_short(*column):>11}" for column in _COLUMNS)
    groups = [
        ("all", results.overall),
        ("without tests", results.nontest),
        ("gold in files that the change did not touch", results.untouched),
        ("mean of the repositories", results.repo_mean),
        *((f"kind {name}", group) for name, group in results.by_kind.items()),
    ]
    seen: list[Mapping[str, Any]] = []
    for name, group in groups:
        if not group["cases"] or any(_same(group, other) for other in seen):
            continue
        seen.append(group)
        yield f"{name}: {group['cases']} cases"
        yield f"{'':{width}} {header}"
        for ranking in results.recall_by_k:
            if ranking in group and _found_anything(group[ranking]):
                yield f"{ranking:{width}} {_row(group[ranking])}"
        yield ""


def _found_anything(levels: Mapping[str, Any]) -> bool:
    """Whether a ranking met gold: a channel that does not apply to the cases is not listed."""
    return any(one.value for metrics in levels.values() for one in metrics.values())


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two groups say the same, as all and the only kind do."""
    return {k: v for k, v in one.items() if k != "seconds"} == {
        k: v for k, v in other.items() if k != "seconds"
    }


def _short(level: str, name: str) -> str:
    prefix = {"chunk": "", "file": "file ", "pack": "pack "}[level]
    return prefix + name.replace("recall@", "R@").replace("hit@", "H@").upper().replace(
        "NDCG", "nDCG"
    )


def _row(levels: Mapping[str, Any]) -> str:
    return " ".join(f"{_value(levels, *column):>11}" for column in _COLUMNS)


def _value(levels: Mapping[str, Any], level: str, name: str) -> str:
    found = levels.get(level, {}).get(name)
    return "-" if found is None else f"{found.value:.3f}"


def _intervals(results: Results) -> Iterator[str]:
    yield _LEGEND
    yield ""
    yield "95 % intervals, final pack:"
    for name in _SHOWN:
        ranking, level, metric = name.split(".")
        found = results.overall.get(ranking, {}).get(level, {}).get(metric)
        if found is not None:
            yield f"  {name:24} {found.value:.3f} ({found.low:.3f} to {found.high:.3f})"
    wrong = results.overall.get("final", {}).get("pack", {}).get("not_gold@budget")
    if wrong is not None:
        yield f"  packs that show a path they should not: {wrong.value:.3f}"


def _seconds(results: Results) -> Iterator[str]:
    stages = ", ".join(f"{name} {one.median:.3f}" for name, one in results.stages.items())
    yield (
        f"seconds a case, blobs indexed: median {results.seconds.median:.3f}, "
        f"p95 {results.seconds.p95:.3f} ({stages})"
    )
    yield f"median tokens of the first ten chunks: {results.tokens:.0f}"
    told = sorted(results.degradations.items(), key=lambda item: (-item[1], item[0]))
    for text, n in told[:_MOST_TOLD]:
        yield f"degraded in {n} cases: {text}"
    if len(told) > _MOST_TOLD:
        yield f"and in {len(told) - _MOST_TOLD} more ways; --out lists them"


def _one_line(overall: Mapping[str, Any]) -> str:
    levels = overall.get("final", {})
    return ", ".join(
        f"{_short(level, name)} {_value(levels, level, name)}"
        for level, name in (
            ("chunk", "recall@10"),
            ("chunk", "mrr"),
            ("pack", "recall@4000"),
            ("pack", "recall@8000"),
        )
    )


def _comparison(made: Comparison) -> Iterator[str]:
    yield f"against {made.against}, {made.cases} cases: {made.verdict} (by {DECIDES})"
    for name in _SHOWN:
        if (one := made.metrics.get(name)) is not None:
            yield f"  {name:24} {one.value:+.4f} ({one.low:+.4f} to {one.high:+.4f}) {one.verdict}"
