"""The pack for a terminal: what is known, the best pieces of evidence, a line each."""

from __future__ import annotations

from collections.abc import Iterator

from coderag_ci.pack import Fact, Pack, telling
from coderag_ci.progress import printable
from coderag_ci.render.text import counted, one_line

_MOST_PIECES = 5
_MOST_PLACES = 3


def render(pack: Pack) -> str:
    """Return the facts and the five best pieces as plain text, without a final newline."""
    return "\n".join(printable(line) for line in _lines(pack))


def _lines(pack: Pack) -> Iterator[str]:
    change = pack.change
    size = f"{counted(change.files, 'file')}, +{change.added} −{change.deleted}"
    if not change.files:
        yield "coderag-ci: no changes"
        return
    if not pack.facts and not pack.evidence:
        yield f"coderag-ci: {size}: nothing relevant found outside the change"
    else:
        yield f"coderag-ci: {size}"
    for line in pack.degradations:
        yield f"  evidence limited: {one_line(line)}"
    for fact in pack.facts:
        yield from _fact(fact)
    if pack.facts_more:
        yield f"  and {counted(pack.facts_more, 'more fact')}"
    if pack.evidence:
        yield "  look at:"
    best = sorted(pack.evidence, key=lambda piece: -piece.scores.get("final", 0))
    for piece in best[:_MOST_PIECES]:
        reason = next((channel.reason for channel in telling(piece.channels)), "")
        name = f" {piece.symbol}" if piece.symbol else ""
        yield f"    {piece.path}:{piece.start}{name}: {one_line(reason)}"


def _fact(fact: Fact) -> Iterator[str]:
    yield f"  {fact.kind}: {one_line(fact.text)}"
    for place in fact.places[:_MOST_PLACES]:
        yield f"    {place.path}:{place.line}{f' in {place.symbol}' if place.symbol else ''}"
    if more := fact.more + len(fact.places[_MOST_PLACES:]):
        yield f"    and {more} more"
