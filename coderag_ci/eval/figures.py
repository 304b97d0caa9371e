"""The figures of a results file, each with a sentence that says what it shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from coderag_ci.eval import plots
from coderag_ci.eval.interval import Interval
from coderag_ci.eval.outcome import QUOTAS
from coderag_ci.eval.page import figure, figure_of, names_of, signed, told
from coderag_ci.eval.plots import Axis, Panel
from coderag_ci.eval.results import DECIDES, Results, VariantResult
from coderag_ci.render.text import counted

T = TypeVar("T")
_MRR = "final.chunk.mrr"
_MOST_DRAWN = 60  # rows or lines of a figure
_LOG_FROM = 8  # times the smallest value of a sweep, at which its axis turns logarithmic


def curve(results: Results) -> str:
    """Draw chunk Recall by k, a line for each ranking."""
    drawn = {
        name: {float(k): Interval(value, None, None) for k, value in by_k.items() if k > 0}
        for name, by_k in results.recall_by_k.items()
    }
    drawn, cut = _first({name: values for name, values in drawn.items() if values})
    if not drawn:
        return ""
    lead = _lead(drawn)
    by_k = results.recall_by_k[lead]
    values = ", ".join(f"{by_k[k]:.3f} at k = {k}" for k in (1, 10, 50) if k in by_k)
    axis = Axis("chunks read, k (log scale)", "chunk Recall@k", log=True)
    return figure(
        plots.lines("curve", "Chunk Recall by k, one line a ranking", drawn, axis),
        f"Share of the gold among the first k chunks of each ranking: {lead} has {values}.{cut}",
    )


def intervals(results: Results) -> str:
    """Draw Recall@10 and MRR of each ranking with their intervals."""
    shown = (("recall@10", "Recall@10"), ("mrr", "MRR"))
    rows, cut = _first(_rows(results, "chunk", [metric for metric, _ in shown]))
    if not rows:
        return ""
    panels = [
        Panel(f"chunk {title}", {"": [some[i] for some in rows.values()]})
        for i, (_, title) in enumerate(shown)
    ]
    lead = _lead(rows)
    values = " and ".join(
        f"{title} {told(one)}"
        for (_, title), one in zip(shown, rows[lead], strict=True)
        if one is not None
    )
    return figure(
        plots.dots("intervals", "Chunk Recall@10 and MRR by ranking", list(rows), panels),
        f"Chunk Recall@10 and MRR of each ranking with 95 % intervals: {lead} has {values}.{cut}",
    )


def packs(results: Results) -> str:
    """Draw pack Recall of each ranking at each number of tokens."""
    rows, cut = _first(_rows(results, "pack", [f"recall@{quota}" for quota in QUOTAS]))
    if not rows:
        return ""
    series = {
        f"{quota:,} tokens": [some[i] for some in rows.values()] for i, quota in enumerate(QUOTAS)
    }
    lead = _lead(rows)
    values = ", ".join(
        f"{one.value:.3f} at {quota:,} tokens"
        for quota, one in zip(QUOTAS, rows[lead], strict=True)
        if one is not None
    )
    panel = Panel("pack Recall", series)
    return figure(
        plots.dots("packs", "Pack Recall by ranking at three sizes", list(rows), [panel]),
        "Share of the gold that a pack filled from each ranking shows, with 95 % intervals: "
        f"{lead} has {values}.{cut}",
    )


def latency(results: Results) -> str:
    """Draw the seconds of each stage."""
    stages, cut = _first(results.stages)
    if not stages:
        return ""
    slowest, one = max(stages.items(), key=lambda item: item[1].median)
    return figure(
        plots.bars("latency", "Seconds by stage: median and 95th percentile", stages),
        f"Median seconds of each stage (bar) and 95th percentile (whisker): {slowest} takes the "
        f"longest with {one.median:.3f} s, a whole case {results.seconds.median:.3f} s "
        f"(p95 {results.seconds.p95:.3f} s).{cut}",
    )


def variants(results: Results) -> str:
    """Draw a sweep over one number as lines, other variants as paired differences."""
    key = _swept(results.variants)
    return _sweep(results.variants, key) if key else _forest(results.variants)


def _swept(found: Sequence[VariantResult]) -> str:
    """Return the one key whose numbers tell the variants apart; empty where there is none."""
    keys = dict.fromkeys(key for one in found for key in one.settings)
    varied = [key for key in keys if len({repr(one.settings.get(key)) for one in found}) > 1]
    if len(varied) != 1:
        return ""
    values = [one.settings.get(varied[0]) for one in found]
    numbers = all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values)
    return varied[0] if numbers and len(set(values)) == len(values) else ""


def _sweep(found: Sequence[VariantResult], key: str) -> str:
    shown = {"pack Recall, 4,000 tokens": DECIDES, "chunk MRR": _MRR}
    drawn = {
        title: {
            float(one.settings[key]): made
            for one in found
            if (made := figure_of(one.overall, *name.split("."))) is not None
        }
        for title, name in shown.items()
    }
    drawn = {title: values for title, values in drawn.items() if values}
    if not drawn:
        return ""
    xs = sorted(x for values in drawn.values() for x in values)
    log = xs[0] > 0 and xs[-1] >= _LOG_FROM * xs[0]
    axis = Axis(f"{key}{' (log scale)' if log else ''}", "final ranking", log=log, from_zero=False)
    values = "; ".join(f"{title} {_range(values, key)}" for title, values in drawn.items())
    return figure(
        plots.lines("variants", f"Figures of the final ranking by {key}", drawn, axis),
        f"Final ranking by {key}, with 95 % intervals: {values}.",
    )


def _range(values: Mapping[float, Interval], key: str) -> str:
    """Say where a figure is highest and where it is lowest."""
    ordered = sorted(values, key=lambda x: (-(values[x].value or 0), x))
    best, worst = ordered[0], ordered[-1]
    if values[best].value == values[worst].value:
        return f"is {values[best].value:.3f} at every value"
    return (
        f"is highest at {key} = {best:g} ({values[best].value:.3f}) and lowest at "
        f"{worst:g} ({values[worst].value:.3f})"
    )


def _forest(found: Sequence[VariantResult]) -> str:
    rows: dict[str, list[Interval | None]] = {}
    for one in found:
        compared = one.comparison.metrics if one.comparison else {}
        some = [compared.get(name) for name in (DECIDES, _MRR)]
        if any(some):
            rows[one.label] = [Interval(c.value, c.low, c.high) if c else None for c in some]
    if not rows:
        return ""
    rows, cut = _first(rows)
    first = found[0].label
    titles = ("Δ pack Recall, 4,000 tokens", "Δ chunk MRR")
    panels = [
        Panel(title, {"": [some[i] for some in rows.values()]}) for i, title in enumerate(titles)
    ]
    decided = {label: some[0].value or 0.0 for label, some in rows.items() if some[0]}
    ends = ""
    if decided:
        low, high = min(decided, key=lambda x: decided[x]), max(decided, key=lambda x: decided[x])
        ends = (
            f": pack Recall at 4,000 tokens changes the least favourably with “{low}” "
            f"({signed(decided[low])}), the most favourably with “{high}” ({signed(decided[high])})"
        )
    return figure(
        plots.dots("variants", f"Differences of the variants from {first}", list(rows), panels,
                   zero=True),
        f"Paired difference of {counted(len(rows), 'variant')} from “{first}”, with 95 % "
        f"intervals{ends}.{cut}",
    )  # fmt: skip


def _rows(results: Results, level: str, metrics: Sequence[str]) -> dict[str, list[Interval | None]]:
    rows = {
        name: [figure_of(results.overall, name, level, metric) for metric in metrics]
        for name in names_of(results)
    }
    return {name: some for name, some in rows.items() if any(some)}


def _first(rows: Mapping[str, T]) -> tuple[dict[str, T], str]:
    """Return the rows that a figure has room for, and a sentence where that is not all."""
    more = len(rows) - _MOST_DRAWN
    told = f" {more:,} more are not drawn." if more > 0 else ""
    return dict(list(rows.items())[:_MOST_DRAWN]), told


def _lead(names: Mapping[str, Any] | Iterable[str]) -> str:
    """Return the ranking that a caption speaks of: the final one, else the last."""
    some = list(names)
    return "final" if "final" in some else some[-1]
