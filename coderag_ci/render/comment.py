"""The pack for a pull request: short, facts first, a line for each of the best pieces."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote

from coderag_ci.characters import visible
from coderag_ci.links import permalink
from coderag_ci.pack import Evidence, Fact, Pack, telling
from coderag_ci.render.impact import Impact, Node, impact
from coderag_ci.render.neutral import code, fenced, prose
from coderag_ci.render.text import counted, one_line, redaction
from coderag_ci.tokens import estimate

MOST_CHARACTERS = 60_000
_MOST_PIECES = 10
_MOST_PLACES = 3
_MOST_NODES = 20
_MOST_LINES = 15  # of code, of one piece
_LABEL = 40  # characters
_FACTS = 0.5  # of the tokens, while there are pieces to name
_LATE = "why it was so"  # what this kind of fact tells can wait, and is folded
_AT_LINE = re.compile(r"\(line (\d{1,9})\)")
_COLUMNS = {"changed": "Changed", "uses": "Uses it", "test": "Tests"}


def found(pack: Pack) -> bool:
    """Whether there is anything to tell a reviewer, besides what the changed lines came from."""
    return bool(_facts(pack, late=False) or _best(pack))


def render(pack: Pack, tokens: int, most: int = MOST_CHARACTERS, link: str = "") -> str:
    """Return a comment of so many tokens (estimated) and characters at most, as Markdown.

    ``link``: where the whole pack is. A pack without facts and evidence takes one line.
    """
    whole = f" · [the whole pack]({_address(link)})" if link else ""
    if not found(pack):
        return f"coderag-ci found nothing relevant outside the change: {_size(pack)}{whole}\n"
    room = _Room(tokens, min(most, MOST_CHARACTERS))
    head = [f"**What this change touches elsewhere** ({_size(pack)}){whole}"]
    best = _best(pack)
    room.take(head)
    room.take(list(_foot(pack, 0, 0)))
    limits = room.fitting(_limit(line) for line in pack.degradations)
    facts = room.fitting((_fact(fact, pack) for fact in _facts(pack, late=False)), _FACTS)
    lines = room.fitting([_line(number, piece, pack)] for number, piece in enumerate(best, 1))
    graph = list(_graph(impact(pack, _MOST_NODES)))
    graph = graph if room.take(graph) else []
    reasons = room.fitting(_fact(fact, pack) for fact in _facts(pack, late=True))
    codes = room.fitting(_code(piece) for piece in best[: len(lines)])
    body = [
        *head,
        *(line for limit in limits for line in limit),
        *_section("**Facts**", facts),
        *_section("**Look at**", lines),
    ]
    if graph:
        body += ["", *graph]
    body += _folded("Why it was so", reasons) + _folded("Code", codes)
    foot = _foot(pack, len(facts) + len(reasons), len(lines))
    return "\n".join([*body, "", *foot]) + "\n"


def _section(title: str, blocks: list[list[str]]) -> list[str]:
    lines = [line for block in blocks for line in block]
    return ["", title, "", *lines] if lines else []


def _folded(title: str, blocks: list[list[str]]) -> list[str]:
    section = _section(f"<details><summary>{title}</summary>", blocks)
    return [*section, *([""] if section[-1] else []), "</details>"] if section else []


class _Room:
    """What is left of tokens and characters."""

    def __init__(self, tokens: int, characters: int) -> None:
        self._whole = tokens
        self._tokens = tokens - 150  # headings, and the mark before a comment
        self._characters = characters - 300

    def take(self, lines: list[str], keep: float = 0) -> bool:
        """Take what lines need; False where less is left, or less than ``keep`` tokens would be."""
        text = "\n".join(lines) + "\n"
        tokens = estimate(text)
        if tokens > self._tokens - keep or len(text) > self._characters:
            return False
        self._tokens -= tokens
        self._characters -= len(text)
        return True

    def fitting(self, blocks: Iterable[Iterable[str]], share: float = 1) -> list[list[str]]:
        """Take blocks in their order up to the first that does not fit a share of the whole."""
        keep = (1 - share) * self._whole
        taken = []
        for block in map(list, blocks):
            if not self.take(block, keep):
                break
            taken.append(block)
        return taken


def _best(pack: Pack) -> list[Evidence]:
    """Return the best pieces outside the units that changed, which a reviewer sees anyway."""
    outside = [
        piece
        for piece in pack.evidence
        if any(channel.name != "enclosing" for channel in piece.channels)
    ]
    outside.sort(key=lambda piece: -piece.scores.get("final", 0))
    return outside[:_MOST_PIECES]


def _facts(pack: Pack, *, late: bool) -> list[Fact]:
    return [fact for fact in pack.facts if (fact.kind == _LATE) is late]


def _address(link: str) -> str:
    """Return an address in which nothing ends the link around it."""
    return quote(link, safe="/:?#&=%+,;@~!$*[]'")


def _size(pack: Pack) -> str:
    change = pack.change
    return f"{counted(change.files, 'file')}, +{change.added} −{change.deleted}"


def _limit(degradation: str) -> list[str]:
    return ["", f"> **Evidence limited:** {prose(one_line(degradation))}"]


def _fact(fact: Fact, pack: Pack) -> Iterator[str]:
    """Yield a line, with the place in it where that is one, else a line for each place."""
    kind = "" if fact.kind == _LATE else f"**{prose(fact.kind)}**: "
    text = prose(fact.text)
    shown = []
    before = ""
    for place in fact.places[:_MOST_PLACES]:
        label = code(f"{place.path}:{place.line}")
        label = f"line {place.line}" if place.path == before else label
        before = place.path
        name = f" {code(place.symbol)}" if place.symbol and place.symbol not in fact.text else ""
        shown.append(_linked(label, pack, place.path, place.line, place.line) + name)
    if more := fact.more + len(fact.places[_MOST_PLACES:]):
        shown.append(f"and {more} more")
    if len(fact.places) == 1 and not fact.more:
        place = fact.places[0]
        named = _linked(code(place.path), pack, place.path, place.line, place.line)
        linked = text.replace(code(place.path), named, 1)
        yield f"- {kind}{linked if linked != text else f'{text} ({shown[0]})'}"
    else:
        yield f"- {kind}{text}"
        yield from (f"  - {place}" for place in shown)


def _linked(label: str, pack: Pack, path: str, start: int, end: int) -> str:
    link = permalink(pack.remote, pack.change.head, path, start, end)
    return f"[{label}]({link})" if link else label


def _line(number: int, piece: Evidence, pack: Pack) -> str:
    label = code(f"{piece.path}:{piece.start}")
    where = _linked(label, pack, piece.path, piece.start, piece.end)
    name = f" {code(piece.symbol)}" if piece.symbol else ""
    return f"{number}. {where}{name}: {prose(one_line(_reason(piece)))}"


def _reason(piece: Evidence) -> str:
    return next((channel.reason for channel in telling(piece.channels)), piece.kind)


def _code(piece: Evidence) -> Iterator[str]:
    """Yield the code of a piece, at most 15 lines: around the line that its reason names."""
    every = (n for start, end in piece.ranges for n in itertools.chain(range(start, end + 1), [0]))
    lines = list(zip(every, piece.text.split("\n"), strict=False))
    numbers = [number for number, _ in lines]
    line = _AT_LINE.search(_reason(piece))
    at = numbers.index(int(line[1])) if line and int(line[1]) in numbers else 0
    first = max(0, min(at - _MOST_LINES // 2, len(lines) - _MOST_LINES))
    shown = lines[first : first + _MOST_LINES]
    start, end = (next((n for n, _ in some if n), 0) for some in (shown, shown[::-1]))
    whole = "" if len(shown) == len(lines) else f" of {piece.start}–{piece.end}"
    yield f"{code(piece.path)}, lines {start}–{end}{whole}"
    yield ""
    yield from fenced((text for _, text in shown), piece.language)
    yield ""


def _graph(graph: Impact) -> Iterator[str]:
    """Draw what changed, what uses it and its tests, where that is small enough to be read."""
    if not 2 <= len(graph.nodes) <= _MOST_NODES or graph.more:
        return
    yield "```mermaid"
    yield "graph LR"
    for kind, title in _COLUMNS.items():
        nodes = [(i, node) for i, node in enumerate(graph.nodes) if node.kind == kind]
        if nodes:
            yield f'subgraph {kind}["{title}"]'
            yield from (f'n{i}["{_label(node)}"]' for i, node in nodes)
            yield "end"
    yield from (f"n{source} --> n{target}" for source, target in graph.edges)
    yield "```"


def _label(node: Node) -> str:
    """Return a label in which nothing is Mermaid's or HTML's: what is no word is a number.

    Of a long one the end is shown, where a method's own name is.
    """
    text = one_line(visible(node.label))
    text = text if len(text) <= _LABEL else "…" + text[1 - _LABEL :]
    return re.sub(r"[^\w .:/…]", lambda match: f"#{ord(match[0])};", text)


def _foot(pack: Pack, facts: int, pieces: int) -> Iterator[str]:
    """Say what was cut, and which pack this is."""
    cut = []
    if more := len(pack.facts) - facts + pack.facts_more:
        cut.append(counted(more, "fact"))
    if more := len(pack.evidence) - pieces:
        cut.append(f"{counted(more, 'piece')} of the pack")
    if more := len(pack.dropped) + pack.dropped_more:
        cut.append(f"{more:,} found that are not in the pack")
    if pack.lint and (number := len(pack.lint.found) + pack.lint.more):
        cut.append(f"{counted(number, 'finding')} of linters on changed lines")
    if told := redaction(pack):
        yield f"{prose(told)}  "
    if cut:
        yield f"Not shown: {', '.join(cut)}."
    yield f"{prose(pack.tool.name)} {prose(pack.tool.version)} · digest {code(pack.digest[:19])}"
