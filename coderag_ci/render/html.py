"""The pack as one page that loads nothing: diff and evidence side by side, facts first."""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from html import escape
from importlib.resources import files

from coderag_ci.characters import visible
from coderag_ci.links import permalink
from coderag_ci.pack import DiffFile, Evidence, Fact, Lint, Pack, telling
from coderag_ci.render.impact import Impact, Node, impact
from coderag_ci.render.neutral import in_html
from coderag_ci.render.text import (
    change_line,
    counted,
    hunk_header,
    not_listed,
    one_line,
    redaction,
)

_MOST_NODES = 30
_MOST_LETTERS = 33  # of a name in the graph
_COLUMNS = {"changed": "Changed", "uses": "Uses it", "test": "Tests"}
_WIDTH, _HEIGHT, _STEP, _ROW, _TOP = 260, 36, 330, 46, 28  # of the graph, in its own units
_SIGNS = {"+": "plus", "-": "minus"}


def render(pack: Pack) -> str:
    """Return the pack as HTML; the same pack gives the same bytes."""
    style, script = _part("page.css"), _part("page.js")
    policy = (
        f"default-src 'none'; style-src '{_sha256(style)}'; script-src '{_sha256(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    title = _titles(pack)[0] if pack.change.title.strip() else "Evidence pack"
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{in_html(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        + "\n".join(_body(pack))
        + f"\n<script>{script}</script>\n</body>\n</html>\n"
    )


def esc(text: str) -> str:
    """Escape text for an element or a quoted attribute; hidden characters are written out."""
    return escape(visible(text))


@cache
def _part(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")


def _sha256(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _code(text: str) -> str:
    return f"<code>{in_html(text)}</code>"


def _with_code(text: str) -> str:
    """Escape a sentence of ours in which names of the repository stand between backticks."""
    parts = re.split(r"`([^`]*)`", text)
    return "".join(_code(part) if i % 2 else esc(part) for i, part in enumerate(parts))


def _titles(pack: Pack) -> list[str]:
    return [line for line in pack.change.title.split("\n") if line.strip()]


def _body(pack: Pack) -> Iterator[str]:
    yield from _header(pack)
    if not pack.change.files:
        yield "<main><p>No changes.</p></main>"
    else:
        yield "<main>"
        yield from _facts(pack)
        if pack.lint is not None:
            yield from _lint(pack.lint, pack)
        yield from _graph(impact(pack, _MOST_NODES))
        yield '<div class="sides">'
        yield '<section aria-labelledby="diff"><h2 id="diff">Diff</h2>'
        for file in pack.diff:
            yield from _file(file)
        if (more := pack.change.files - len(pack.diff)) > 0:
            yield f'<p class="muted">And {counted(more, "more changed file")}.</p>'
        yield '</section><section aria-labelledby="evidence"><h2 id="evidence">Evidence</h2>'
        yield from _evidence(pack)
        yield "</section></div>"
        yield from _rest(pack)
        yield "</main>"
    yield (
        f"<footer>{esc(pack.tool.name)} {esc(pack.tool.version)} · "
        f"digest {_code(pack.digest)}</footer>"
    )


def _header(pack: Pack) -> Iterator[str]:
    budget, index = pack.budget, pack.index
    yield "<header><h1>Evidence pack</h1>"
    if titles := _titles(pack):
        others = max(pack.change.commits, len(titles)) - 1
        more = f" (and {counted(others, 'more commit')})" if others > 0 else ""
        yield f"<p><strong>{in_html(titles[0])}</strong>{more}</p>"
    yield f"<p>{change_line(pack, _code)}</p>"
    dense = f" By meaning: {esc(index.dense)}." if index.dense else ""
    history = f" History: {esc(index.history)}." if index.history else ""
    yield (
        f'<p class="muted">Searched {counted(index.chunks, "chunk")} of '
        f"{counted(index.files, 'file')}.{dense}{history} Tokens: {budget.used_diff} diff + "
        f"{budget.used_facts} facts + {budget.used_evidence} evidence of {budget.total}.</p>"
    )
    if cut := _cut(pack):
        yield f'<p class="limited"><strong>Not shown:</strong> {cut}.</p>'
    if told := redaction(pack):
        yield f"<p>{esc(told)}</p>"
    for line in pack.degradations:
        yield f'<p class="limited"><strong>Evidence limited:</strong> {in_html(line)}</p>'
    yield "</header>"


def _cut(pack: Pack) -> str:
    counts = {
        "more changed file": pack.change.files - len(pack.diff),
        "line of the diff": sum(file.cut_lines for file in pack.diff),
        "more fact": pack.facts_more,
        "piece found": len(pack.dropped) + pack.dropped_more,
    }
    plural = {"line of the diff": "lines of the diff", "piece found": "pieces found"}
    return ", ".join(
        f"{number:,} {plural[noun]}" if number > 1 and noun in plural else counted(number, noun)
        for noun, number in counts.items()
        if number > 0
    )


def _facts(pack: Pack) -> Iterator[str]:
    if not pack.facts:
        return
    yield '<section aria-labelledby="facts"><h2 id="facts">Facts</h2><ul>'
    for fact in pack.facts:
        yield f"<li><strong>{esc(fact.kind)}</strong>: {_with_code(fact.text)}"
        yield from _places(fact, pack)
        yield "</li>"
    if pack.facts_more:
        yield f"<li>and {counted(pack.facts_more, 'more fact')}</li>"
    yield "</ul></section>"


def _lint(lint: Lint, pack: Pack) -> Iterator[str]:
    yield '<section aria-labelledby="linters"><h2 id="linters">Linters</h2>'
    if lint.found:
        yield "<ul>"
        for found in lint.found:
            label = _code(f"{found.path}:{found.line}")
            where = _linked(pack, label, found.path, found.line, found.line)
            rule = f" {_code(found.rule)}" if found.rule else ""
            said = f"{in_html(found.tool)}{rule} {found.level}: {_with_code(found.message)}"
            yield f"<li>{where} {said}</li>"
        yield "</ul>"
    else:
        yield "<p>No findings on changed lines.</p>"
    if more := not_listed(lint):
        yield f'<p class="muted">{more}</p>'
    yield "</section>"


def _places(fact: Fact, pack: Pack) -> Iterator[str]:
    if not fact.places and not fact.more:
        return
    yield "<ul>"
    for place in fact.places:
        label = _code(f"{place.path}:{place.line}")
        symbol = f" in {_code(place.symbol)}" if place.symbol else ""
        yield f"<li>{_linked(pack, label, place.path, place.line, place.line)}{symbol}</li>"
    if fact.more:
        yield f"<li>and {fact.more} more</li>"
    yield "</ul>"


def _linked(pack: Pack, label: str, path: str, start: int, end: int) -> str:
    """Return a label, already HTML, that leads to lines where the repository has an address."""
    link = permalink(pack.remote, pack.change.head, path, start, end)
    return f'<a href="{esc(link)}">{label}</a>' if link.startswith("https://") else label


def _graph(graph: Impact) -> Iterator[str]:
    """Draw changed → uses → tests in three columns; nothing where nothing is linked."""
    if not graph.edges:
        return
    place: list[tuple[int, int]] = []
    rows = Counter[str]()
    for node in graph.nodes:
        column = list(_COLUMNS).index(node.kind)
        place.append((column * _STEP + 1, _TOP + rows[node.kind] * _ROW))
        rows[node.kind] += 1
    width, height = 2 * _STEP + _WIDTH + 2, _TOP + max(rows.values()) * _ROW
    yield '<section aria-labelledby="graph"><h2 id="graph">What it reaches</h2><figure>'
    yield (
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-labelledby="graph">'
        + "".join(
            f'<text class="title" x="{number * _STEP + 1}" y="16">{name}</text>'
            for number, (kind, name) in enumerate(_COLUMNS.items())
            if rows[kind]
        )
    )
    for source, target in graph.edges:
        yield f'<path d="{_curve(place[source], place[target])}"/>'
    for node, (x, y) in zip(graph.nodes, place, strict=True):
        yield _box(node, x, y)
    yield "</svg>"
    if graph.more:
        yield f"<figcaption>And {counted(graph.more, 'more name')}.</figcaption>"
    yield "</figure></section>"


def _curve(source: tuple[int, int], target: tuple[int, int]) -> str:
    """Return the path from one box's right side to another box, both by their corner."""
    (left, y1), (right, y2) = source, target
    x1, y1, y2 = left + _WIDTH, y1 + _HEIGHT // 2, y2 + _HEIGHT // 2
    start = f"M{x1} {y1}"
    if right <= left:  # within a column, around its right side
        right, bend = x1, x1 + 40
    elif right - left > _STEP:  # past a column, between its rows
        gap, bend = y1 + _ROW // 2, x1 + (_STEP - _WIDTH) // 2
        x1 += _STEP
        start += f"C{bend} {y1} {bend} {gap} {x1 - _WIDTH} {gap}H{x1}"
        y1, bend = gap, bend + _STEP
    else:
        bend = (x1 + right) // 2
    return f"{start}C{bend} {y1} {bend} {y2} {right} {y2}"


def _box(node: Node, x: int, y: int) -> str:
    where = f"{node.path}:{node.line}" if node.line else node.path
    return (
        f"<g><title>{in_html(f'{where} {node.symbol}')}</title>"
        f'<rect class="{node.kind}" x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="4"/>'
        f'<text x="{x + 8}" y="{y + 15}">{esc(_short(node.label))}</text>'
        f'<text x="{x + 8}" y="{y + 30}" opacity=".65">{esc(_short(where))}</text></g>'
    )


def _short(text: str) -> str:
    """Return the end of a long name, which tells most."""
    text = one_line(text)
    return text if len(text) <= _MOST_LETTERS else "…" + text[1 - _MOST_LETTERS :]


def _file(file: DiffFile) -> Iterator[str]:
    renamed = f" (from {_code(file.old_path)})" if file.old_path != file.path else ""
    counts = f", +{file.added} −{file.deleted}" if file.added or file.deleted else ""
    kind = f", {esc(file.kind)}" if file.kind != "text" else ""
    mode = ""
    if file.old_mode != file.new_mode and file.status not in ("added", "deleted"):
        mode = f", mode {esc(file.old_mode)} → {esc(file.new_mode)}"
    how = f"{esc(file.status)}{kind}{mode}{counts}"
    yield f"<h3>{_code(file.path)}{renamed} <small>{how}</small></h3>"
    if file.hunks:
        yield (
            "<pre>"
            + "".join(
                f'<span class="hunk">{esc(hunk_header(hunk))}</span>'
                + "".join(_line(line) for line in hunk.lines)
                for hunk in file.hunks
            )
            + "</pre>"
        )
    if file.cut_lines:
        yield f'<p class="muted">Cut: {counted(file.cut_lines, "line")} of this file not shown.</p>'


def _line(line: str) -> str:
    sign = _SIGNS.get(line[:1])
    return f'<span class="{sign}">{_text(line)}</span>' if sign else f"<span>{_text(line)}</span>"


def _text(line: str) -> str:
    return esc(line.rstrip("\r")) or " "


def _evidence(pack: Pack) -> Iterator[str]:
    kinds = Counter(_kind(piece) for piece in pack.evidence)
    if len(kinds) > 1:
        yield '<fieldset id="filters" hidden><legend>Show</legend>'
        for kind, number in sorted(kinds.items()):
            yield (
                f'<label><input type="checkbox" value="{esc(kind)}" checked autocomplete="off"> '
                f"{esc(kind)} ({number})</label>"
            )
        yield "</fieldset>"
    if not pack.evidence:
        dropped = pack.dropped or pack.dropped_more
        found = "Nothing that was found fits the budget." if dropped else "Nothing relevant found."
        yield f"<p>{found}</p>"
    for piece in pack.evidence:
        yield from _piece(piece, pack)


def _kind(piece: Evidence) -> str:
    """Return what a reader filters by: tests, or the channel that tells most."""
    if "test" in piece.flags:
        return "test"
    best = telling(piece.channels)
    return best[0].name if best else "other"


def _piece(piece: Evidence, pack: Pack) -> Iterator[str]:
    spans = ", ".join(
        f"{start}–{end}" if end > start else f"{start}" for start, end in piece.ranges
    )
    flags = "".join(f" [{esc(flag)}]" for flag in piece.flags)
    symbol = f"{_code(piece.symbol)} " if piece.symbol else ""
    place = _linked(pack, f"{_code(piece.path)} {spans}", piece.path, piece.start, piece.end)
    yield (
        f'<article data-kind="{esc(_kind(piece))}"><h3>{place}</h3>'
        f"<details open><summary>{symbol}{esc(piece.kind)}{flags}</summary>"
    )
    for channel in telling(piece.channels):
        yield (
            f'<p class="muted">{_with_code(channel.reason)} '
            f"({esc(channel.name)}, rank {channel.rank})</p>"
        )
    lines = "".join(f"<span>{_text(line)}</span>" for line in piece.text.split("\n"))
    yield f"<pre>{lines}</pre></details></article>"


def _rest(pack: Pack) -> Iterator[str]:
    if total := len(pack.dropped) + pack.dropped_more:
        yield f"<details><summary>Found but not shown: {total:,}</summary><ul>"
        for piece in pack.dropped:
            symbol = f" {_code(piece.symbol)}" if piece.symbol else ""
            where = _code(f"{piece.path}:{piece.start}-{piece.end}")
            yield f"<li>{where}{symbol}: {esc(piece.reason)}</li>"
        if pack.dropped_more:
            yield f"<li>and {pack.dropped_more:,} more</li>"
        yield "</ul></details>"
    if pack.skipped or pack.index.left_out:
        yield "<details><summary>Not searched</summary><ul>"
        for skip in pack.skipped:
            yield f"<li>{_code(skip.path)}: {esc(skip.reason)}</li>"
        for reason, number in pack.index.left_out.items():
            yield f"<li>{counted(number, 'file')}: {esc(reason)}</li>"
        yield "</ul></details>"
