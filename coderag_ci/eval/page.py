"""Pieces of an HTML page that loads nothing: its head, tables, figures and how values are told."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from coderag_ci.eval.interval import Interval
from coderag_ci.eval.results import Compared, Results, Seconds
from coderag_ci.render.neutral import in_html

NONE = "–"
MOST_ROWS = 100

Group = Mapping[str, Any]

HEAD = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>coderag-ci: results</title>
<style>
:root { color-scheme: light dark; --ink: #1b1f24; --page: #fff; --muted: #59636e; --grid: #dde1e6;
  --head: #f3f5f7; --good: #00694c; --bad: #a83c00; --s1: #0067a3; --s2: #b84a00; --s3: #00785a;
  --s4: #a03f78; --s5: #7d5a00; --s6: #5a4fcf; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8eaed; --page: #14171a; --muted: #9aa4af; --grid: #363c43; --head: #1f2429;
    --good: #3ecfa3; --bad: #ff9a5c; --s1: #5cb8f0; --s2: #ff8f4d; --s3: #35c99b; --s4: #ea9bca;
    --s5: #e6b32e; --s6: #aaa2ff; } }
body { margin: 0 auto; padding: 1rem; max-width: 76rem; background: var(--page);
  color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: break-word; }
h1 { font-size: 1.6rem; line-height: 1.2; } h2 { margin-top: 2.5rem; font-size: 1.25rem; }
a { color: var(--s1); } p, figcaption { max-width: 46rem; }
nav ul { display: flex; flex-wrap: wrap; gap: .2rem 1rem; padding: 0; list-style: none; }
dl { display: grid; gap: .6rem 1.5rem;
  grid-template-columns: repeat(auto-fill, minmax(14rem, 1fr)); }
dl div.wide { grid-column: 1 / -1; } dt, small { color: var(--muted); font-size: .85rem; }
dd { margin: 0; } code { font: .9em ui-monospace, monospace; }
.scroll { overflow-x: auto; margin: 1rem 0 1.5rem; }
.scroll:focus-visible { outline: 2px solid var(--s1); }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; line-height: 1.25; }
caption { text-align: left; padding-bottom: .4rem; font-weight: 600; }
th, td { padding: .3rem .45rem; border-bottom: 1px solid var(--grid); vertical-align: top; }
thead th { background: var(--head); text-align: right; vertical-align: bottom; font-size: .85rem; }
thead th[scope=colgroup] { text-align: left; border-left: 2px solid var(--page); }
tbody th, thead th:first-child { text-align: left; font-weight: 500; }
tbody th { min-width: 6.5rem; max-width: 24rem; } td { text-align: right; }
td small { display: block; font-size: .75rem; white-space: nowrap; }
tr.strong > * { font-weight: 700; background: var(--head); } tr.strong small { font-weight: 400; }
.words td, .words thead th { text-align: left; } .words td small { display: inline; }
figure { margin: 1rem 0; max-width: 52rem; } figure .scroll { margin: 0; }
svg { display: block; width: 100%; min-width: 33rem; height: auto; }
svg * { stroke-linejoin: round; } svg text { font-family: inherit !important; }
.verdict { padding: .8rem 1rem; border-left: .4rem solid var(--muted); background: var(--head); }
.verdict.better { border-color: var(--good); } .verdict.worse { border-color: var(--bad); }
.better strong, td .better { color: var(--good); } .worse strong, td .worse { color: var(--bad); }
</style>
</head>
<body>"""


def esc(text: str) -> str:
    """Escape text; hidden characters, as those that turn the direction of text, are written out."""
    return in_html(text)


def table(
    caption: str,
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    levels: Sequence[tuple[str, int]] = (),
    *,
    words: bool = False,
    strong: str = "",
) -> str:
    """Return a table that scrolls in its box. Cells of rows are HTML, all else is text.

    ``levels``: names over the columns after the first, and how many each spans. ``words``:
    cells stand left. ``strong``: the first cell of the row that is marked.
    """
    over = "".join(f'<th scope="colgroup" colspan="{n}">{esc(name)}</th>' for name, n in levels)
    first = f"<tr><td></td>{over}</tr>" if levels else ""
    heads = "".join(f'<th scope="col">{esc(name)}</th>' for name in header)
    kind = ' class="words"' if words else ""
    body = "".join(_row(cells, len(header), strong) for cells in rows)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{esc(caption)}">'
        f"<table{kind}>\n<caption>{esc(caption)}</caption>\n"
        f"<thead>{first}<tr>{heads}</tr></thead>\n<tbody>\n{body}"
        "</tbody>\n</table></div>\n"
    )


def _row(cells: Sequence[str], width: int, strong: str) -> str:
    mark = ' class="strong"' if strong and cells[0] == strong else ""
    span = f' colspan="{width}"' if len(cells) == 1 else ""
    body = "".join(f"<td>{cell}</td>" for cell in cells[1:])
    return f'<tr{mark}><th scope="row"{span}>{cells[0]}</th>{body}</tr>\n'


def capped(rows: Sequence[Sequence[str]], noun: str) -> Iterator[Sequence[str]]:
    """Yield the first rows, then how many more there are."""
    yield from rows[:MOST_ROWS]
    if (more := len(rows) - MOST_ROWS) > 0:
        yield (f"and {more:,} more {noun}",)


def figure(svg: str, caption: str) -> str:
    """Return a figure; the caption is text."""
    return (
        f'<figure><div class="scroll" tabindex="0" role="region" aria-label="Figure">{svg}</div>'
        f"<figcaption>{esc(caption)}</figcaption></figure>\n"
    )


def figure_of(group: Group, ranking: str, level: str, metric: str) -> Interval | None:
    """Return a figure of a group as JSON gives it; None where there is none."""
    found: Any = group
    for key in (ranking, level, metric):
        found = found.get(key) if isinstance(found, Mapping) else None
    try:
        made = msgspec.convert(found, Interval, from_attributes=True)
    except msgspec.ValidationError:
        return None
    return made if made.value is not None else None


def names_of(results: Results) -> list[str]:
    """Return the rankings in the order of the pipeline."""
    groups = [results.overall, *results.by_kind.values()]
    found = [name for group in groups for name in group if name not in ("cases", "seconds")]
    return list(dict.fromkeys([*results.recall_by_k, *found]))


def cases_of(group: Group) -> int:
    """Return how many cases count in a group."""
    found = group.get("cases")
    return found if isinstance(found, int) else 0


def median(group: Group) -> str:
    """Return the median seconds of a group's cases."""
    found = group.get("seconds")
    try:
        return f"{msgspec.convert(found, Seconds, from_attributes=True).median:.3f}"
    except msgspec.ValidationError:
        return NONE


def value(one: Interval | None) -> str:
    """Return a cell: a value, its interval small under it."""
    if one is None or one.value is None:
        return NONE
    if one.low is None or one.high is None:
        return f"{one.value:.3f}"
    return f"{one.value:.3f} <small>{one.low:.3f}–{one.high:.3f}</small>"


def told(one: Interval) -> str:
    """Return a value and its interval in a sentence."""
    if one.low is None or one.high is None:
        return f"{one.value:.3f}"
    return f"{one.value:.3f} ({one.low:.3f} to {one.high:.3f})"


def difference(one: Compared | None) -> str:
    """Return a difference and its 95 % interval, with signs."""
    if one is None or one.value is None:
        return NONE
    if one.low is None or one.high is None:
        return signed(one.value)
    return f"{signed(one.value)} <small>{signed(one.low)} to {signed(one.high)}</small>"


def signed_told(one: Compared) -> str:
    """Return a difference and its interval in a sentence."""
    if one.value is None or one.low is None or one.high is None:
        return NONE
    return f"{signed(one.value)} (95 % interval {signed(one.low)} to {signed(one.high)})"


def signed(number: float) -> str:
    """Return a difference with its sign."""
    return f"{number:+.4f}".replace("-", "−")


def verdict(one: Compared | None) -> str:
    """Return a verdict as a cell."""
    if one is None:
        return NONE
    return f'<span class="{one.verdict.replace(" ", "-")}">{one.verdict}</span>'
