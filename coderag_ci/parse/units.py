"""From a syntax tree to units: functions, methods, class headers, top-level blocks."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tree_sitter import Node, Query, QueryCursor

from coderag_ci.parse.languages import (
    CONTAINERS,
    REFERENCE_KINDS,
    UNIT_KINDS,
    Language,
    grammar,
    query_source,
)
from coderag_ci.parse.windows import LIMIT, split_range, trim_blank

_SIGNATURE_LINES = 8
_REFERENCE_CODE = {kind: code for code, kind in enumerate(REFERENCE_KINDS)}

Use = tuple[int, int]  # the byte after the name, the code of the kind


@dataclass(slots=True)
class Definition:
    """A name defined in a file, with the lines of its definition (1-based, inclusive)."""

    kind: str
    name: str
    line: int
    start: int
    end: int
    signature: tuple[int, int]
    node: Node
    children: list[Definition] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A range of lines that is retrieved as one, and the unit that it is part of."""

    start: int
    end: int
    unit: tuple[int, int]
    signature: tuple[int, int]
    kind: str
    symbol: str


@functools.cache
def _query(name: str) -> tuple[Query, tuple[tuple[str, str], ...]]:
    """Compile a query file; with it, for each pattern, its capture and that capture's kind."""
    source = query_source(name).encode()
    query = Query(grammar(name), source.decode())
    captures = []
    for index in range(query.pattern_count):
        text = source[query.start_byte_for_pattern(index) : query.end_byte_for_pattern(index)]
        capture = re.findall(rb"@((?:definition|reference)\.\w+)", text)[-1].decode()
        captures.append((capture, capture.partition(".")[2]))
    return query, tuple(captures)


def scan(root: Node, language: Language) -> tuple[list[Definition], dict[int, Use]]:
    """Walk a tree once; return what it defines (in order of position) and the names it uses.

    Uses are keyed by the byte at which the name begins; where several patterns meet
    one name, the most telling kind is kept, in the order of ``REFERENCE_KINDS``.
    """
    query, captures = _query(language.name)
    by_name: dict[int, Definition] = {}
    uses: dict[int, Use] = {}
    for pattern, found in QueryCursor(query).matches(root):
        capture, kind = captures[pattern]
        if capture[0] == "d":
            if names := found.get("name"):
                _define(by_name, kind, names[0], found[capture][0], found.get("scope", ()), language)
            continue
        code = _REFERENCE_CODE[kind]
        for node in found[capture]:
            start, end = node.byte_range
            known = uses.get(start)
            if known is None or code < known[1]:
                uses[start] = (end, code)
    for start in by_name:
        uses.pop(start, None)
    ordered = sorted(by_name.values(), key=lambda d: (d.node.start_byte, -d.node.end_byte))
    return ordered, uses


def _define(
    by_name: dict[int, Definition],
    kind: str,
    name: Node,
    node: Node,
    scope: Sequence[Node],
    language: Language,
) -> None:
    """Record a definition, unless an outer one of the same name node is known."""
    known = by_name.get(name.start_byte)
    if known is not None:
        covers = (
            known.node.start_byte <= node.start_byte and known.node.end_byte >= node.end_byte
        )
        if _is_unit(known.kind) > _is_unit(kind) or (
            covers and _is_unit(known.kind) == _is_unit(kind)
        ):
            return
    full = "".join(_text(part) + "." for part in scope) + _text(name)
    by_name[name.start_byte] = _definition(kind, full, name, node, language)


def _is_unit(kind: str) -> bool:
    return kind in UNIT_KINDS


def _definition(
    kind: str, name: str, name_node: Node, node: Node, language: Language
) -> Definition:
    start = node.start_point.row + 1
    end = node.end_point.row + (node.end_point.column > 0 or node.end_point.row + 1 == start)
    line = name_node.start_point.row + 1
    body = None
    holder: Node | None = name_node.parent
    while body is None and holder is not None and holder.start_byte >= node.start_byte:
        body = holder.child_by_field_name("body")
        if holder.id == node.id:
            break
        holder = holder.parent
    last = body.start_point.row + 1 if body is not None else line
    if body is not None and body.start_point.row > line - 1 and _own_row(body):
        last -= 1
    signature = (line, max(line, min(last, line + _SIGNATURE_LINES - 1, max(end, line))))
    return Definition(kind, name, line, _with_comments(node, start, language), max(end, line), signature, node)


def _own_row(body: Node) -> bool:
    """Whether a body begins on a row of its own (Python), not after the signature (C)."""
    previous = body.prev_sibling
    return previous is not None and previous.end_point.row < body.start_point.row


def _with_comments(node: Node, start: int, language: Language) -> int:
    """Extend a unit upwards over the comments and attributes that touch it."""
    previous = node.prev_named_sibling
    while (
        previous is not None
        and previous.type in language.attached
        and previous.end_point.row + (previous.end_point.column > 0) >= start - 1
        and _starts_row(previous)
    ):
        start = previous.start_point.row + 1
        previous = previous.prev_named_sibling
    return start


def _starts_row(node: Node) -> bool:
    before = node.prev_sibling
    return before is None or before.end_point.row < node.start_point.row or (
        before.end_point.column == 0
    )


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


def chunks(found: list[Definition], root: Node, lines: list[bytes]) -> list[Chunk]:
    """Cover a file with chunks: a line is in at most one, and only blank lines are in none."""
    top = _nest([d for d in found if _is_unit(d.kind)])
    result: list[Chunk] = []
    cutter = _Cutter(root, lines)
    position = 1
    for definition in top:
        if definition.start > position:
            result += cutter.blocks(position, definition.start - 1, (position, definition.start - 1))
        if definition.end >= position:
            result += cutter.unit(definition, "", max(position, definition.start))
            position = definition.end + 1
    result += cutter.blocks(position, len(lines), (position, len(lines)))
    return result


def _nest(found: list[Definition]) -> list[Definition]:
    """Arrange definitions by containment; returns the outermost."""
    top: list[Definition] = []
    stack: list[Definition] = []
    for definition in found:
        while stack and stack[-1].node.end_byte <= definition.node.start_byte:
            stack.pop()
        (stack[-1].children if stack else top).append(definition)
        stack.append(definition)
    return top


def qualify(found: list[Definition]) -> dict[int, str]:
    """Return the qualified name (``Outer.inner``) of each definition by its name's line and id."""
    names: dict[int, str] = {}
    stack: list[tuple[int, str]] = []
    for definition in found:
        while stack and stack[-1][0] <= definition.node.start_byte:
            stack.pop()
        full = f"{stack[-1][1]}.{definition.name}" if stack else definition.name
        names[id(definition)] = full
        if _is_unit(definition.kind):
            stack.append((definition.node.end_byte, full))
    return names


class _Cutter:
    """Cuts units and the space between them into chunks of one file."""

    def __init__(self, root: Node, lines: list[bytes]) -> None:
        self._root = root
        self._lines = lines

    def unit(self, unit: Definition, scope: str, start: int) -> Iterator[Chunk]:
        """Yield the chunks of one unit and of the units in it."""
        symbol = f"{scope}.{unit.name}" if scope else unit.name
        inner = unit.children if self._opens(unit) else []
        kind = unit.kind
        span = (start, unit.end)
        position = start
        for child in inner:
            if child.end < position:
                continue
            if child.start > position:
                yield from self._own(position, child.start - 1, unit, kind, symbol, span)
            yield from self.unit(_as_method(child, unit), symbol, max(position, child.start))
            position = child.end + 1
        if position <= unit.end:
            yield from self._own(position, unit.end, unit, kind, symbol, span)

    def blocks(self, start: int, end: int, span: tuple[int, int]) -> Iterator[Chunk]:
        """Yield the chunks of top-level lines that are in no unit."""
        if start > end or not self._worth(start, end):
            return
        for first, last in split_range(self._lines, start, end, self._is_border):
            yield Chunk(first, last, span, (0, 0), "toplevel", "")

    def _own(
        self, start: int, end: int, unit: Definition, kind: str, symbol: str, span: tuple[int, int]
    ) -> Iterator[Chunk]:
        """Yield the chunks of a unit's lines that are in none of its inner units."""
        if not self._worth(start, end):
            return
        for first, last in split_range(self._lines, start, end, self._is_border):
            yield Chunk(first, last, span, unit.signature, kind, symbol)

    def _opens(self, unit: Definition) -> bool:
        """Whether inner units get chunks of their own: a container, or too long to be shown."""
        if unit.kind in CONTAINERS or unit.kind == "section":
            return True
        size = sum(len(line) + 1 for line in self._lines[unit.start - 1 : unit.end])
        return size > LIMIT

    def _worth(self, start: int, end: int) -> bool:
        """False for what only closes something: braces, blank lines."""
        if trim_blank(self._lines, start, end) is None:
            return False
        return any(line.strip(b" \t\r\f{}()[];,") not in (b"", b"end") for line in self._lines[start - 1 : end])

    def _is_border(self, line: int) -> bool:
        """Whether a statement begins on this line."""
        text = self._lines[line - 1]
        column = len(text) - len(text.lstrip())
        point = (line - 1, column)
        node = self._root.descendant_for_point_range(point, point)
        if node is None or node.start_point != point:
            return False
        while (parent := node.parent) is not None and parent.start_point == point:
            node = parent
        return node.is_named and "string" not in node.type and "argument" not in node.type


def _as_method(child: Definition, parent: Definition) -> Definition:
    if child.kind == "function" and parent.kind in CONTAINERS and parent.kind != "module":
        child.kind = "method"
    return child
