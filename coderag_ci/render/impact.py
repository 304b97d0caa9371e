"""What uses what a change touches, and which tests name either, as far as a pack shows it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from coderag_ci.pack import Evidence, Pack

_NAMING = ("dangling", "signature")  # facts that begin with a name, and list who uses it
_IN_TICKS = re.compile(r"`([^`]+)`")
_AT_LINE = re.compile(r"\(line (\d{1,9})\)")


@dataclass(frozen=True, slots=True)
class Node:
    """A name that changed, code that uses it, or a test. ``kind``: changed, uses or test.

    The path of a changed name is empty where the pack does not say it.
    """

    kind: str
    path: str
    symbol: str
    line: int = 0

    @property
    def label(self) -> str:
        """What a reader calls it."""
        return self.symbol or self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class Impact:
    """Nodes by column, pairs of places in ``nodes`` that are linked, and how many more there are.

    An edge leads from what changed to what uses it, and from either to a test.
    """

    nodes: tuple[Node, ...] = ()
    edges: tuple[tuple[int, int], ...] = ()
    more: int = 0


def impact(pack: Pack, most: int) -> Impact:
    """Return the graph of a pack with at most so many nodes: the facts' first, then evidence's."""
    changed: dict[str, Node] = {}
    nodes: dict[tuple[str, str, str], Node] = {}
    links: dict[tuple[Node, Node], None] = {}
    more: set[tuple[str, str, str]] = set()

    def known(node: Node) -> Node | None:
        key = (node.kind, node.path, node.symbol)
        if key not in nodes:
            if len(nodes) >= most:
                more.add(key)
                return None
            nodes[key] = node
        return nodes[key]

    for name, user in (*_of_facts(pack), *_of_evidence(pack)):
        if name not in changed:
            full = len(nodes) >= most  # what is no more than counted is not searched for
            changed[name] = Node("changed", "", name) if full else _changed(pack, name)
        source = known(changed[name])
        target = known(user)
        if source and target and (source.path, source.symbol) != (target.path, target.symbol):
            links[source, target] = None
    for piece in pack.evidence:
        if "test" in piece.flags:
            for node in list(nodes.values()):
                if node.kind != "test" and _names(piece, node) and (test := known(_node(piece))):
                    links[node, test] = None
    return _sorted(list(nodes.values()), list(links), len(more))


def _sorted(nodes: list[Node], links: list[tuple[Node, Node]], more: int) -> Impact:
    """Return linked nodes, column by column; of those alone nothing is to be seen."""
    linked = {node for link in links for node in link}
    columns = ("changed", "uses", "test")
    shown = [node for kind in columns for node in nodes if node.kind == kind and node in linked]
    place = {node: number for number, node in enumerate(shown)}
    edges = sorted((place[source], place[target]) for source, target in links)
    return Impact(tuple(shown), tuple(edges), more)


def _changed(pack: Pack, name: str) -> Node:
    """Return what changed under a name: a unit that was asked about, or what the lines say."""
    for query in pack.trace.queries:
        symbol = query.get("unit", "")
        if name in symbol.split("."):
            whole = symbol if symbol.endswith(name) else name
            return Node("changed", query.get("path", ""), whole)
    word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
    naming = {
        file.path: sum(
            line[:1] != " " and word.search(line) is not None
            for hunk in file.hunks
            for line in hunk.lines
        )
        for file in pack.diff
    }
    most = max(naming, key=lambda path: naming[path], default="")
    return Node("changed", most if naming.get(most) else "", name)


def _of_facts(pack: Pack) -> Iterator[tuple[str, Node]]:
    flags = {(piece.path, piece.symbol): piece.flags for piece in pack.evidence}
    for fact in pack.facts:
        if fact.kind in _NAMING and (name := _IN_TICKS.search(fact.text)):
            for place in fact.places:
                kind = "test" if "test" in flags.get((place.path, place.symbol), ()) else "uses"
                yield name[1].rpartition(".")[2], Node(kind, place.path, place.symbol, place.line)


def _of_evidence(pack: Pack) -> Iterator[tuple[str, Node]]:
    for piece in pack.evidence:
        for channel in piece.channels:
            if channel.name != "uses":
                continue
            for part in channel.reason.split("; "):
                if used := _IN_TICKS.search(part):
                    line = _AT_LINE.search(part)
                    yield used[1].rpartition(".")[2], _node(piece, int(line[1]) if line else 0)


def _node(piece: Evidence, line: int = 0) -> Node:
    kind = "test" if "test" in piece.flags else "uses"
    return Node(kind, piece.path, piece.symbol, line or piece.start)


def _names(piece: Evidence, node: Node) -> bool:
    """Whether a test has the name of a node as a word; a short name tells little."""
    name = node.symbol.rpartition(".")[2]
    word = rf"(?<!\w){re.escape(name)}(?!\w)"
    return len(name) > 3 and re.search(word, piece.text) is not None
