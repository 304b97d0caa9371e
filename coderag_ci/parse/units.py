"""From a syntax tree to units: functions, methods, class headers, top-level blocks."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tree_sitter import Node, Query, QueryCursor

from coderag_ci.parse import relations
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
_DEEPEST = 30  # units within units; what is deeper stays in the unit around it
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
    end_byte: int
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
        capture = re.findall(rb"@((?:definition|reference|relation)\.\w+)", text)[-1].decode()
        captures.append((capture, capture.partition(".")[2]))
    return query, tuple(captures)


def scan(
    root: Node, language: Language
) -> tuple[list[Definition], dict[int, Use], list[relations.Relation]]:
    """Walk a tree once: what it defines (in order of position), what it uses, its relations.

    Uses are keyed by the byte at which the name begins; where several patterns meet
    one name, the most telling kind is kept, in the order of ``REFERENCE_KINDS``.
    """
    query, captures = _query(language.name)
    by_name: dict[int, Definition] = {}
    uses: dict[int, Use] = {}
    related: list[relations.Relation] = []
    for pattern, found in QueryCursor(query).matches(root):
        capture, kind = captures[pattern]
        if capture[0] == "d":
            if names := found.get("name"):
                _define(by_name, kind, names[0], found[capture], found.get("scope", ()), language)
            continue
        if capture[2] == "l":
            related += relations.read(kind, found)
            continue
        code = _REFERENCE_CODE[kind]
        for node in found[capture]:
            start, end = node.byte_range
            known = uses.get(start)
            if known is None or code < known[1]:
                uses[start] = (end, code)
    for start in by_name:
        uses.pop(start, None)
    ordered = sorted(by_name.values(), key=lambda d: (d.node.start_byte, -d.end_byte))
    return ordered, uses, relations.distinct(related)


def _define(
    by_name: dict[int, Definition],
    kind: str,
    name: Node,
    nodes: Sequence[Node],
    scope: Sequence[Node],
    language: Language,
) -> None:
    """Record a definition, unless an outer one of the same name node is known."""
    known = by_name.get(name.start_byte)
    if known is not None:
        covers = (
            known.node.start_byte <= nodes[0].start_byte and known.end_byte >= nodes[-1].end_byte
        )
        if _is_unit(known.kind) > _is_unit(kind) or (
            covers and _is_unit(known.kind) == _is_unit(kind)
        ):
            return
    full = "".join(_text(part) + "." for part in scope) + _text(name)
    if kind == "section":
        full = " ".join(full.rstrip("# ").split())
    by_name[name.start_byte] = _definition(kind, full, name, nodes, language)


def _is_unit(kind: str) -> bool:
    return kind in UNIT_KINDS


def _definition(
    kind: str, name: str, name_node: Node, nodes: Sequence[Node], language: Language
) -> Definition:
    node, tail = nodes[0], nodes[-1].end_point
    start = node.start_point.row + 1
    end = tail.row + (tail.column > 0 or tail.row + 1 == start)
    line = name_node.start_point.row + 1
    end = max(end, line)
    first, last = _signature(name_node, node, line)
    first = max(first, line - _SIGNATURE_LINES // 2, start)
    last = max(line, min(last, line + _SIGNATURE_LINES, end))
    top = _with_comments(node, start, language)
    return Definition(kind, name, line, top, end, (first, last), node, nodes[-1].end_byte)


def _signature(name_node: Node, node: Node, line: int) -> tuple[int, int]:
    """Return the lines from the innermost definition's first to the one its body begins on."""
    holder: Node | None = name_node.parent
    while holder is not None and holder.start_byte >= node.start_byte:
        body = _body(holder)
        if body is not None:
            if body.start_byte < name_node.start_byte:  # typedef struct { … } Name
                return holder.start_point.row + 1, body.start_point.row + 1
            return _templated(holder).start_point.row + 1, _header_end(body)
        if holder.id == node.id:
            break
        holder = holder.parent
    return line, line


def _body(holder: Node) -> Node | None:
    """Return the body of a definition, also of a function that is bound to a name."""
    for field_name in ("value", "right"):
        bound = holder.child_by_field_name(field_name)
        if bound is not None and (body := bound.child_by_field_name("body")) is not None:
            return body
    return holder.child_by_field_name("body")


def _templated(holder: Node) -> Node:
    """Return a definition with the template lines above it (C++)."""
    while (parent := holder.parent) is not None and parent.type == "template_declaration":
        holder = parent
    return holder


def _header_end(body: Node) -> int:
    """Return the line a body begins on (C), or the last above a body with rows of its own."""
    previous = body.prev_sibling
    while previous is not None and previous.is_extra:  # comments before the first statement
        previous = previous.prev_sibling
    row = body.start_point.row
    return 1 + (row if previous is None else min(row, previous.end_point.row))


def _with_comments(node: Node, start: int, language: Language) -> int:
    """Extend a unit upwards over the comments and attributes that touch it."""
    previous = _before(node)
    while (
        previous is not None
        and previous.type in language.attached
        and previous.end_point.row + (previous.end_point.column > 0) >= start - 1
        and _starts_row(previous)
    ):
        start = previous.start_point.row + 1
        previous = _before(previous)
    return start


def _before(node: Node) -> Node | None:
    """Return what stands before a node; some grammars put it before the enclosing body."""
    while (previous := node.prev_named_sibling) is None:
        parent = node.parent
        if parent is None or parent.start_byte != node.start_byte:
            return None
        node = parent
    return previous


def _starts_row(node: Node) -> bool:
    before = node.prev_sibling
    return (
        before is None
        or before.end_point.row < node.start_point.row
        or (before.end_point.column == 0)
    )


def _text(node: Node) -> str:
    return plain_name(node.text or b"").decode("utf-8", "replace")


def plain_name(name: bytes) -> bytes:
    """Return a name without what marks it as a variable, symbol, string or header.

    One of marks alone (Ruby's ``<=>``, JavaScript's ``$``) is kept.
    """
    if name[:1] in (b":", b"@", b"$", b"<", b'"', b"'"):
        bare = name.lstrip(b":@$<\"'").rstrip(b">\"'")
        return bare if bare.strip(b"=") else name.lstrip(b":") or name
    return name


def chunks(
    found: list[Definition], root: Node, lines: list[bytes], limit: int = LIMIT
) -> list[Chunk]:
    """Cover a file with chunks of about ``limit`` bytes at most.

    A line is in at most one, and only blank lines are in none.
    """
    top = _nest([d for d in found if _is_unit(d.kind)])
    result: list[Chunk] = []
    cutter = _Cutter(root, lines, limit)
    position = 1
    for definition in top:
        if definition.start > position:
            result += cutter.blocks(
                position, definition.start - 1, (position, definition.start - 1)
            )
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
        while stack and stack[-1].end_byte <= definition.node.start_byte:
            stack.pop()
        (stack[-1].children if stack else top).append(definition)
        stack.append(definition)
    return top


def qualify(found: list[Definition]) -> dict[int, str]:
    """Return the qualified name (``Outer.inner``) of each definition by its id.

    No more than ``_DEEPEST`` units stand in a name, so that hostile nesting stays small.
    """
    names: dict[int, str] = {}
    stack: list[tuple[int, str]] = []
    for definition in found:
        while stack and stack[-1][0] <= definition.node.start_byte:
            stack.pop()
        full = f"{stack[-1][1]}.{definition.name}" if stack else definition.name
        names[id(definition)] = full
        if _is_unit(definition.kind) and len(stack) < _DEEPEST:
            stack.append((definition.end_byte, full))
    return names


class _Cutter:
    """Cuts units and the space between them into chunks of one file."""

    def __init__(self, root: Node, lines: list[bytes], limit: int) -> None:
        self._root = root
        self._lines = lines
        self._limit = limit

    def unit(self, unit: Definition, scope: str, start: int) -> Iterator[Chunk]:
        """Yield the chunks of one unit and of the units in it."""
        symbol = f"{scope}.{unit.name}" if scope else unit.name
        position = start
        span = (start, unit.end)
        if scope.count(".") < _DEEPEST and self._opens(unit):
            for child in unit.children:
                if child.end < position:
                    continue
                if child.start > position:
                    yield from self._own(position, child.start - 1, unit, symbol, span)
                yield from self.unit(_as_method(child, unit), symbol, max(position, child.start))
                position = child.end + 1
        if position <= unit.end:
            yield from self._own(position, unit.end, unit, symbol, span)

    def blocks(self, start: int, end: int, span: tuple[int, int]) -> Iterator[Chunk]:
        """Yield the chunks of top-level lines that are in no unit."""
        if start > end or not self._worth(start, end):
            return
        for first, last in split_range(self._lines, start, end, self._is_border, self._limit):
            yield Chunk(first, last, span, (0, 0), "toplevel", "")

    def _own(
        self, start: int, end: int, unit: Definition, symbol: str, span: tuple[int, int]
    ) -> Iterator[Chunk]:
        """Yield the chunks of a unit's lines that are in none of its inner units."""
        if not self._worth(start, end):
            return
        for first, last in split_range(self._lines, start, end, self._is_border, self._limit):
            yield Chunk(first, last, span, unit.signature, unit.kind, symbol)

    def _opens(self, unit: Definition) -> bool:
        """Whether inner units get chunks of their own: a container, or too long to be shown."""
        if unit.kind in CONTAINERS or unit.kind == "section":
            return True
        size = sum(len(line) + 1 for line in self._lines[unit.start - 1 : unit.end])
        return size > self._limit

    def _worth(self, start: int, end: int) -> bool:
        """Return False for what only closes something: braces, blank lines."""
        if trim_blank(self._lines, start, end) is None:
            return False
        return any(
            line.strip(b" \t\r\f{}()[];,") not in (b"", b"end")
            for line in self._lines[start - 1 : end]
        )

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
