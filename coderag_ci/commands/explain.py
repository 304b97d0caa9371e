"""``coderag-ci explain``: say why a unit is or is not in the pack of a change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from coderag_ci.commands import options
from coderag_ci.progress import printable

if TYPE_CHECKING:
    from coderag_ci.explain import ChannelRank, Explained, Explanation, Filled

_MOST_LEARNED = 10
_MOST_BEFORE = 12  # pieces taken before; the JSON has all


@click.command()
@click.argument("place", metavar="PATH[:LINE]")
@options.repository
@options.config_file
@options.quiet
@options.models
@options.change
@options.ranking
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="For people, for programs.",
)
def explain(**given: Any) -> None:
    """Say why the unit that a line is in is, or is not, in the pack of a change.

    PATH counts from the current folder, or from the top of the repository. Without LINE,
    each unit of the file gets one line. The options are those of ``context``.
    """
    from coderag_ci import pipeline
    from coderag_ci.files import write_stdout

    found = pipeline.explain(options.job_of(given), given["place"])
    text = _json(found) if given["form"] == "json" else "\n".join(_lines(found)) + "\n"
    write_stdout(text.encode("utf-8", "backslashreplace"))


def _json(found: Explanation) -> str:
    import msgspec

    data = msgspec.json.encode(_escaped(msgspec.to_builtins(found)))
    return msgspec.json.format(data, indent=2).decode() + "\n"


def _escaped(value: Any) -> Any:
    """Escape what is not UTF-8: paths stand in reasons and in other pieces, too."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {key: _escaped(one) for key, one in value.items()}
    return [_escaped(one) for one in value] if isinstance(value, (list, tuple)) else value


def _lines(found: Explanation) -> Iterator[str]:
    yield printable(found.path + (f":{found.line}" if found.line else ""))
    for degradation in found.degradations:
        yield printable(f"evidence limited: {degradation}")
    if not found.units:
        yield f"{found.outcome}: {printable(found.why)}"
    elif found.line:
        yield from _whole(found.units[0])
    else:
        yield from map(_short, found.units)


def _named(unit: Explained | Filled) -> str:
    return printable(unit.symbol) or "(no name)"


def _short(unit: Explained) -> str:
    rank = f"#{unit.rank} " if unit.rank else ""
    return f"{unit.start:>5}–{unit.end:<5} {_named(unit)}: {rank}{unit.outcome}: {unit.why}"


def _whole(unit: Explained) -> Iterator[str]:
    yield f"{_named(unit)}: {unit.kind}, lines {unit.start}–{unit.end}"
    yield ""
    yield f"{unit.outcome}: {unit.why}"
    if unit.tried is not None:
        one = unit.tried
        yield f"tried at worth {one.worth:.3f}, {one.tokens:,} tokens, {one.left:,} left"
    if unit.taken_before:
        yield f"taken before it: {len(unit.taken_before)}"
        yield from map(_before, unit.taken_before[:_MOST_BEFORE])
        if more := len(unit.taken_before[_MOST_BEFORE:]):
            yield f"  and {more} more"
    yield ""
    if unit.rank:
        yield f"rank {unit.rank:,} of {unit.candidates:,} found, {_sum(unit.scores)}"
    if unit.learned:
        largest = list(unit.learned.items())[:_MOST_LEARNED]
        told = ", ".join(f"{name} {part:+.2f}" for name, part in largest)
        rest = sum(unit.learned.values()) - sum(part for _, part in largest)
        yield f"  by the fitted ranker: {told}, all others {rest:+.2f}"
    found = [channel for channel in unit.channels if channel.rank]
    width = max((len(channel.name) for channel in unit.channels), default=0)
    for channel in found:
        yield (
            f"  {channel.name:{width}}  rank {channel.rank:>4}  weight {channel.weight:<5g}"
            f"+{channel.adds:.3f}  {printable(channel.reason)}"
        )
    for channel in unit.channels:
        if not channel.rank:
            yield f"  {channel.name:{width}}  {_without(channel)}"


def _without(channel: ChannelRank) -> str:
    return "off" if channel.reason == "off" else f"not found: {channel.reason}"


def _before(one: Filled) -> str:
    room = f" (room kept for {one.room})" if one.room else ""
    where = printable(f"{one.path}:{one.start}-{one.end} {one.symbol}".rstrip())
    return f"  worth {one.worth:>6.3f}  {one.tokens:>5,} tokens  {where}{room}"


def _sum(scores: dict[str, float]) -> str:
    """Return the final score with its terms, as a sum where they add up to it."""
    terms = {name: score for name, score in scores.items() if name != "final"}
    final = scores.get("final", 0.0)
    adds_up = abs(sum(terms.values()) - final) < 1e-6
    told = (" + " if adds_up else ", ").join(f"{name} {n:.3f}" for name, n in terms.items())
    return f"score {final:.3f}{' = ' if adds_up else '; '}{told}"
