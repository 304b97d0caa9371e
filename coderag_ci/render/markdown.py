"""The pack for people: facts, diff, evidence with its reasons, and what was left out."""

from __future__ import annotations

from collections.abc import Iterator

from coderag_ci.links import permalink
from coderag_ci.pack import DiffFile, Evidence, Fact, Lint, Pack, telling
from coderag_ci.render.neutral import code, fenced, prose
from coderag_ci.render.text import (
    change_line,
    counted,
    hunk_header,
    not_listed,
    one_line,
    redaction,
)

_NOTHING = "Nothing relevant found outside the change."
_MOST_NAMED = 15  # pieces and paths not shown; the JSON names more
_TOKENS_A_NAME = 500  # of the budget, so that a small pack names few


def render(pack: Pack) -> str:
    """Return the pack as GitHub-flavoured Markdown."""
    return "\n".join(_lines(pack)) + "\n"


def _lines(pack: Pack) -> Iterator[str]:
    yield "# Evidence pack"
    yield ""
    yield from _header(pack)
    if not pack.change.files:
        yield ""
        yield "No changes."
        return
    if pack.facts:
        yield from ("", "## Facts", "")
        for fact in pack.facts:
            yield from _fact(fact, pack)
        if pack.facts_more:
            yield f"- and {counted(pack.facts_more, 'more fact')}"
    if pack.lint is not None:
        yield from ("", "## Linters", "")
        yield from _lint(pack.lint, pack)
    yield from ("", "## Diff", "")
    for file in pack.diff:
        yield from _file(file)
    if (more := pack.change.files - len(pack.diff)) > 0:
        yield f"*And {counted(more, 'more changed file')}.*"
        yield ""
    yield from ("## Evidence", "")
    if not pack.evidence:
        dropped = pack.dropped or pack.dropped_more
        found = "Nothing that was found fits the budget." if dropped else _NOTHING
        yield found
        yield ""
    path = ""
    for piece in pack.evidence:
        if piece.path != path:
            path = piece.path
            yield f"### {code(path)}"
            yield ""
        yield from _piece(piece, pack)
    yield from _rest(pack)


def _header(pack: Pack) -> Iterator[str]:
    titles = [one_line(line) for line in pack.change.title.split("\n") if line.strip()]
    if titles:
        others = max(pack.change.commits, len(titles)) - 1
        more = f" (and {counted(others, 'more commit')})" if others > 0 else ""
        yield f"**{prose(titles[0])}**{more}"
        yield ""
    yield change_line(pack, code)
    budget = pack.budget
    dense = f" By meaning: {prose(pack.index.dense)}." if pack.index.dense else ""
    history = f" History: {prose(pack.index.history)}." if pack.index.history else ""
    searched = f"{counted(pack.index.chunks, 'chunk')} of {counted(pack.index.files, 'file')}"
    yield (
        f"Searched {searched}.{dense}{history} "
        f"Tokens: {budget.used_diff} diff + {budget.used_facts} facts + "
        f"{budget.used_evidence} evidence of {budget.total}."
    )
    if told := redaction(pack):
        yield prose(told)
    for line in pack.degradations:
        yield ""
        yield f"> **Evidence limited:** {prose(line)}"


def _fact(fact: Fact, pack: Pack) -> Iterator[str]:
    yield f"- **{prose(fact.kind)}**: {prose(fact.text)}"
    for place in fact.places:
        link = permalink(pack.remote, pack.change.head, place.path, place.line, place.line)
        label = code(f"{place.path}:{place.line}")
        shown = f"[{label}]({link})" if link else label
        yield f"  - {shown}{' in ' + code(place.symbol) if place.symbol else ''}"
    if fact.more:
        yield f"  - and {fact.more} more"


def _lint(lint: Lint, pack: Pack) -> Iterator[str]:
    for found in lint.found:
        link = permalink(pack.remote, pack.change.head, found.path, found.line, found.line)
        label = code(f"{found.path}:{found.line}")
        where = f"[{label}]({link})" if link else label
        rule = f" {code(found.rule)}" if found.rule else ""
        yield f"- {where} {code(found.tool)}{rule} {found.level}: {prose(found.message)}"
    if not lint.found:
        yield "No findings on changed lines."
    if more := not_listed(lint):
        yield from ("", more)


def _file(file: DiffFile) -> Iterator[str]:
    renamed = f" (from {code(file.old_path)})" if file.old_path != file.path else ""
    yield f"### {code(file.path)}{renamed}: {_what(file)}"
    yield ""
    if file.hunks:
        body = [line for hunk in file.hunks for line in (hunk_header(hunk), *hunk.lines)]
        yield from fenced(body, "diff")
    if file.cut_lines:
        yield f"*Cut: {counted(file.cut_lines, 'line')} of this file's change not shown.*"
    if file.hunks or file.cut_lines:
        yield ""


def _what(file: DiffFile) -> str:
    parts = [prose(file.status)]
    if file.kind != "text":
        parts.append({"lfs": "Git LFS", "mode": "mode only"}.get(file.kind, prose(file.kind)))
    if file.old_mode != file.new_mode and file.status not in ("added", "deleted"):
        parts.append(f"mode {prose(file.old_mode)} → {prose(file.new_mode)}")
    if file.added or file.deleted:
        parts.append(f"+{file.added} −{file.deleted}")
    return ", ".join(parts)


def _piece(piece: Evidence, pack: Pack) -> Iterator[str]:
    name = f"**{code(piece.symbol)}** " if piece.symbol else ""
    flags = "".join(f" ({prose(flag)})" for flag in piece.flags)
    spans = ", ".join(
        f"{start}–{end}" if end > start else f"{start}" for start, end in piece.ranges
    )
    link = permalink(pack.remote, pack.change.head, piece.path, piece.start, piece.end)
    where = f"line{'s' * (piece.end > piece.start)} {spans}"
    lines = f"[{where}]({link})" if link else where
    reasons = "; ".join(prose(channel.reason) for channel in telling(piece.channels))
    yield f"{name}{prose(piece.kind)}{flags}, {lines}: {reasons}"
    yield ""
    yield from fenced(piece.text.split("\n"), piece.language)
    yield ""


def _rest(pack: Pack) -> Iterator[str]:
    most = min(_MOST_NAMED, pack.budget.total // _TOKENS_A_NAME)
    if pack.dropped or pack.dropped_more:
        total = len(pack.dropped) + pack.dropped_more
        yield f"<details><summary>Found but not shown: {total}</summary>"
        yield ""
        for piece in pack.dropped[:most]:
            symbol = f" {code(piece.symbol)}" if piece.symbol else ""
            where = code(f"{piece.path}:{piece.start}-{piece.end}")
            yield f"- {where}{symbol}: {prose(piece.reason)}"
        if more := total - len(pack.dropped[:most]):
            yield f"- and {more} more"
        yield from ("", "</details>", "")
    if pack.skipped or pack.index.left_out:
        yield "<details><summary>Not searched</summary>"
        yield ""
        for skip in pack.skipped[:most]:
            yield f"- {code(skip.path)}: {prose(skip.reason)}"
        if more := len(pack.skipped[most:]):
            yield f"- and {more} more"
        for reason, number in pack.index.left_out.items():
            yield f"- {counted(number, 'file')}: {prose(reason)}"
        yield from ("", "</details>", "")
    yield f"{prose(pack.tool.name)} {prose(pack.tool.version)} · digest {code(pack.digest)}"
