"""Results as one HTML page that loads nothing: what was run, the verdict, tables and plots."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from coderag_ci.eval import figures, page
from coderag_ci.eval.cases import ASKED, ONE_FILE, Case, Skip
from coderag_ci.eval.outcome import QUOTAS, WHOLE_PACK
from coderag_ci.eval.page import Group, cases_of, esc, figure_of, names_of, value
from coderag_ci.eval.results import DECIDES, Comparison, Results, VariantResult
from coderag_ci.render.text import counted

_COLUMNS = (
    ("chunk", "hit@1", "Hit@1"),
    ("chunk", "hit@10", "Hit@10"),
    ("chunk", "hit@20", "Hit@20"),
    ("chunk", "recall@10", "Recall@10"),
    ("chunk", "mrr", "MRR"),
    ("chunk", "ndcg@10", "nDCG@10"),
    ("file", "hit@10", "Hit@10"),
    ("file", "mrr", "MRR"),
    *(("pack", f"recall@{quota}", f"Recall, {quota:,}") for quota in QUOTAS),
    ("pack", "hit@4000", "Hit, 4,000"),
)
_HEADLINES = {
    DECIDES: "pack Recall at 4,000 tokens",
    "final.pack.recall@2000": "pack Recall at 2,000 tokens",
    "final.pack.recall@8000": "pack Recall at 8,000 tokens",
    "final.chunk.recall@10": "chunk Recall@10",
    "final.chunk.mrr": "chunk MRR",
}
_MOST_LINES = 10  # line numbers named beside a reason
_INTRO = (
    "Values are means over cases; under them, small, 95 % intervals by bootstrap over "
    "repositories, or over cases where there is one. Recall is the share of the gold (the code "
    "that should be shown) that is met, Hit whether any of it is, MRR one over the rank of the "
    "first of it. A pack is what fits so many tokens. The final ranking is the pack as it is read, "
    "grouped by file and cut at the budget: its ranks do not compare with those of the others."
)


class _Section(NamedTuple):
    """A part of the page. Without a body it is left out."""

    key: str
    title: str
    body: str


def page_of(results: Results) -> str:
    """Return the page. Everything that comes from the results is escaped."""
    sections = [
        _Section("run", "What was run", _run(results)),
        _Section("verdict", "Verdict", _verdict(results.comparison)),
        _Section("rankings", "Rankings", _rankings(results)),
        _Section("by-k", "Chunk Recall by k", figures.curve(results)),
        _Section("ranking", "Recall@10 and MRR", figures.intervals(results)),
        _Section("pack", "Pack Recall by tokens", figures.packs(results)),
        _Section("stages", "Latency by stage", figures.latency(results)),
        _Section("parts", "By language, repository and size", _parts(results)),
        _Section("compared", "Variants", _variants(results)),
        _Section("cases", "Case by case", _cases(results)),
        _Section("wrong", "Packs that show what they should not", _wrong(results)),
        _Section("skipped", "Skipped", _skipped(results.skipped)),
    ]
    shown = [section for section in sections if section.body]
    links = "".join(f'<li><a href="#{one.key}">{one.title}</a></li>' for one in shown)
    body = "".join(
        f'<section id="{one.key}">\n<h2>{one.title}</h2>\n{one.body}\n</section>\n' for one in shown
    )
    return (
        f"{page.HEAD}\n<header>\n<h1>How well the pipeline finds what it should</h1>\n"
        f'<nav aria-label="Contents"><ul>{links}</ul></nav>\n</header>\n'
        f"<main>\n{body}</main>\n</body>\n</html>\n"
    )


def _run(results: Results) -> str:
    outcomes = results.variants[0].outcomes if results.variants else ()
    degraded = sum(bool(one.outcome.degradations) for one in outcomes)
    facts = {
        "Cases": f"{results.cases:,}",
        "Repositories": f"{len(results.by_repo):,}",
        "Kinds": _counts(results.by_kind),
        "Variants": f"{len(results.variants):,}",
        "Skipped": counted(len(results.skipped), "line"),
        "Degraded": counted(degraded, "case"),
        "Seconds a case": f"median {results.seconds.median:.3f}, p95 {results.seconds.p95:.3f}",
        "Tool": f"coderag-ci {esc(results.tool_version)}",
        "Settings that differ from the defaults": _settings(results.settings) or "none",
    }
    body = "".join(
        f"<div{' class=wide' if name.startswith('Settings') else ''}>"
        f"<dt>{name}</dt><dd>{told}</dd></div>"
        for name, told in facts.items()
    )
    listed = [(esc(text), f"{n:,}") for text, n in sorted(results.degradations.items())]
    header = ("Evidence limited", "Cases")
    more = page.table("What degraded cases", header, page.capped(listed, "texts"), words=True)
    return f"<dl>{body}</dl>\n{more if listed else ''}"


def _counts(groups: Mapping[str, Group]) -> str:
    told = [f"{esc(name)} ({cases_of(group):,})" for name, group in sorted(groups.items())]
    return ", ".join(told) or page.NONE


def _settings(settings: Mapping[str, Any]) -> str:
    def plain(given: Any) -> str:
        if isinstance(given, float):
            return f"{given:g}"
        return given if isinstance(given, str) else msgspec.json.encode(given).decode()

    return ", ".join(
        f"<code>{esc(f'{key}={plain(given)}')}</code>" for key, given in sorted(settings.items())
    )


def _verdict(made: Comparison | None) -> str:
    if made is None:
        return ""
    words = {"better": "Better than", "worse": "Worse than"}.get(made.verdict, "No difference from")
    decides = made.metrics.get(DECIDES)
    if decides is None or decides.value is None:
        why = f"no case gives {_HEADLINES[DECIDES]}, the figure that decides"
    else:
        why = (
            f"{_HEADLINES[DECIDES]}, the figure that decides, differs by "
            f"{page.signed_told(decides)}"
        )
    return (
        f'<p class="verdict {made.verdict.replace(" ", "-")}"><strong>{words}</strong> '
        f"<code>{esc(made.against)}</code> over {counted(made.cases, 'case')}: {why}. "
        "A difference whose 95 % interval holds 0 is none.</p>\n"
        + page.table(
            "Paired differences of the final ranking, new − old",
            ("Figure", "Difference", "Verdict"),
            [
                (
                    f"{title}{' (decides)' if name == DECIDES else ''}",
                    page.difference(one),
                    page.verdict(one),
                )
                for name, title in _HEADLINES.items()
                if (one := made.metrics.get(name)) is not None
            ],
        )
    )


def _rankings(results: Results) -> str:
    groups = [
        ("All cases", results.overall),
        ("Without tests", results.nontest),
        ("Gold in files that the change did not touch", results.untouched),
        *((f"Kind {name}", group) for name, group in sorted(results.by_kind.items())),
        ("Mean of the repositories", results.repo_mean),
    ]
    names = names_of(results)
    shown: list[tuple[str, Group]] = []
    same: list[str] = []
    for title, group in groups:
        found = {name: group.get(name) for name in names}
        if any(found == {name: other.get(name) for name in names} for _, other in shown):
            same.append(title)
        elif any(found.values()):
            shown.append((title, group))
    if not shown:
        return ""
    tables = "".join(_ranking_table(title, group, names) for title, group in shown)
    note = f"<p>The same as a table above: {esc(', '.join(same))}.</p>" if same else ""
    return f"<p>{_INTRO}</p>\n{tables}{note}"


def _ranking_table(title: str, group: Group, names: Sequence[str]) -> str:
    columns = [
        column
        for column in _COLUMNS
        if any(figure_of(group, name, *column[:2]) is not None for name in names)
    ]
    levels = [level for level, _, _ in columns]
    rows = [
        (esc(name), *(value(figure_of(group, name, level, key)) for level, key, _ in columns))
        for name in names
        if name in group
    ]
    return page.table(
        f"{title}: {counted(cases_of(group), 'case')}",
        ("Ranking", *(name for _, _, name in columns)),
        rows,
        [(level, levels.count(level)) for level in dict.fromkeys(levels)],
        strong="final",
    )


def _parts(results: Results) -> str:
    def by_limit(item: tuple[str, Any]) -> tuple[int, bool]:
        digits = "".join(c for c in item[0].partition(" to ")[0] if c in "0123456789")
        return int(digits[:9] or 0), not item[0].startswith("under")

    return (
        _part("Language", sorted(results.by_language.items()))
        + _part("Repository", sorted(results.by_repo.items()))
        + _part("Size", sorted(results.by_size.items(), key=by_limit))
    )


def _part(title: str, groups: Sequence[tuple[str, Group]]) -> str:
    shown = (("chunk", "recall@10"), ("chunk", "mrr"), ("pack", "recall@4000"))
    rows = [
        (
            esc(name),
            f"{cases_of(group):,}",
            *(value(figure_of(group, "final", *metric)) for metric in shown),
            page.median(group),
        )
        for name, group in groups
    ]
    header = (
        title,
        "Cases",
        "Chunk Recall@10",
        "Chunk MRR",
        "Pack Recall, 4,000",
        "Median seconds",
    )
    caption = f"The final ranking by {title.lower()}"
    return page.table(caption, header, rows) if rows else ""


def _variants(results: Results) -> str:
    if len(results.variants) < 2:
        return ""
    first = results.variants[0].label
    header = ("Variant", "Pack Recall, 4,000", "Difference", "Verdict", "Chunk MRR", "Difference",
              "Verdict")  # fmt: skip
    return figures.variants(results) + page.table(
        f"Final ranking, against “{first}”",
        header,
        [_variant_row(one) for one in results.variants],
    )


def _variant_row(one: VariantResult) -> tuple[str, ...]:
    cells = [esc(one.label)]
    for name in (DECIDES, "final.chunk.mrr"):
        compared = one.comparison.metrics.get(name) if one.comparison else None
        cells.append(value(figure_of(one.overall, *name.split("."))))
        cells += [page.difference(compared), page.verdict(compared)]
    return tuple(cells)


def _cases(results: Results) -> str:
    """List the cases, those whose pack shows least of their gold first."""
    rows = []
    for one in results.variants[0].outcomes if results.variants else ():
        case, ranks = one.case, one.outcome.rankings.get("final")
        if ranks is None or not case.gold:
            continue
        shown = ranks.pack.get(WHOLE_PACK, ())
        gold = "<br>".join(
            f"{esc(item.path)}: {esc(item.symbol) or esc(item.kind)} "
            f"({'shown' if number in shown else 'not shown'})"
            for number, item in enumerate(case.gold)
        )
        asked = case.query or case.subject
        told = f"{esc(asked)}<br><code>{esc(_command(case))}</code>"
        rows.append((len(shown) / len(case.gold), case.repo, case.id, (esc(case.id), told, gold)))
    rows.sort(key=lambda row: row[:3])
    return (
        page.table(
            "What the pack of each case shows, at the configured budget",
            ("Case", "Asked, and the pack to look at", "Gold"),
            page.capped([cells for *_, cells in rows], "cases"),
            words=True,
        )
        if rows
        else ""
    )


def _command(case: Case) -> str:
    """Return the command that makes the pack of a case's change."""
    if case.kind in ASKED:
        return case.base[:12]
    one = case.query_files[:1] if case.kind in ONE_FILE else ()
    paths = "".join(f" --paths {shlex.quote(path)}" for path in one)
    return f"coderag-ci context --base {case.base[:12]} --head {case.head[:12]}{paths}"


def _wrong(results: Results) -> str:
    outcomes = results.variants[0].outcomes if results.variants else ()
    found = [
        (esc(one.outcome.id), esc(one.case.repo), _quotas(ranks.shows_not_gold))
        for one in outcomes
        if (ranks := one.outcome.rankings.get("final")) is not None and ranks.shows_not_gold
    ]
    if not found:
        return ""
    shares = {
        name: made
        for quota in (*QUOTAS, WHOLE_PACK)
        if (made := figure_of(results.overall, "final", "pack", f"not_gold@{quota or 'budget'}"))
        for name in [_quotas([quota])]
    }
    told = "; ".join(f"{name}: {page.told(one)}" for name, one in shares.items())
    return f"<p>Share of the cases that name such paths: {told}.</p>\n" + page.table(
        "Cases whose pack shows a path of not_gold",
        ("Case", "Repository", "Packs"),
        page.capped(found, "cases"),
        words=True,
    )


def _quotas(quotas: Iterable[int]) -> str:
    return ", ".join(
        "the whole pack" if quota == WHOLE_PACK else f"{quota:,} tokens" for quota in quotas
    )


def _skipped(skipped: Sequence[Skip]) -> str:
    by_reason: dict[str, list[int]] = {}
    for skip in skipped:
        by_reason.setdefault(skip.reason, []).append(skip.line)
    rows = [
        (esc(reason), f"{len(lines):,}", _lines([line for line in lines if line]))
        for reason, lines in sorted(by_reason.items(), key=lambda item: (-len(item[1]), item[0]))
    ]
    header = ("Reason", "Skips", "Lines of the file of cases")
    caption = "What was not run, and why"
    return page.table(caption, header, page.capped(rows, "reasons"), words=True) if rows else ""


def _lines(lines: Sequence[int]) -> str:
    named = ", ".join(map(str, lines[:_MOST_LINES])) or page.NONE
    more = len(lines) - _MOST_LINES
    return f"{named} and {more:,} more" if more > 0 else named
