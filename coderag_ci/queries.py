"""From hunks to queries: one for each changed unit, of head, and of base for what was deleted."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from coderag_ci.diff import Diff, FileDiff, Hunk
from coderag_ci.parse.row import CHUNK_FIELDS, CHUNK_KINDS, NAME_FIELDS, Row
from coderag_ci.pathrules import GENERATED, VENDORED, PathRules, asks_nothing

MOST_QUERIES = 48
_MOST_LINES = 400  # of one unit and kind
_MOST_HUNK_LINES = 20_000  # of all files that ask
_MODEL_CHARACTERS = 800  # of changed lines that a model is given; what it reads is cut further
_IDENTIFIER = re.compile(r"[^\W\d]\w*")


@dataclass
class Query:
    """What one changed unit asks of the rest of the repository.

    ``added``, ``deleted`` and ``context`` are lines without their sign. ``names`` are the
    unit's own name and the names defined on changed lines, of base or head; ``lines``
    are the head lines of the unit (0, 0 where it is gone); ``weight`` is the number of
    its changed lines, of which no more than 400 of each kind are kept. ``old_path`` is
    set where the file was renamed.
    """

    path: str
    symbol: str
    kind: str
    lines: tuple[int, int]
    title: str = ""
    added: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    context: list[str] = field(default_factory=list)
    names: dict[str, None] = field(default_factory=dict)
    weight: int = 0
    old_path: str = ""

    def text(self) -> str:
        """Return the query as text, most telling first, as the trace shows it."""
        head = []
        if self.path:
            head = [f"# file: {self.path}", f"# symbol: {self.symbol}", f"# kind: {self.kind}"]
        return "\n".join([*head, *self.added, *self.deleted, *self.context, self.title])


@dataclass(frozen=True)
class Asked:
    """What a whole change asks: its units, the most changed first, and its title."""

    units: Sequence[Query]
    title: str

    @functools.cached_property
    def paths(self) -> list[str]:
        """The changed paths that ask."""
        return list(dict.fromkeys(unit.path for unit in self.units if unit.path))

    @functools.cached_property
    def added(self) -> list[str]:
        """The added lines."""
        return [line for unit in self.units for line in unit.added]

    @functools.cached_property
    def deleted(self) -> list[str]:
        """The deleted lines."""
        return [line for unit in self.units for line in unit.deleted]

    @functools.cached_property
    def whole(self) -> list[str]:
        """The whole diff: changed lines, context, symbols and paths."""
        context = [line for unit in self.units for line in unit.context]
        symbols = [unit.symbol for unit in self.units]
        return [*self.added, *self.deleted, *context, *symbols, *self.paths]

    @functools.cached_property
    def text(self) -> str:
        """What a model reads of a change: its title, then its most changed units."""
        lines = [self.title] if self.title else []
        size = 0
        for unit in self.units:
            some = [*unit.deleted, *unit.added]
            if unit.path:
                lines += [f"# file: {unit.path}", f"# symbol: {unit.symbol}"]
            lines += (stripped for line in some if (stripped := line.strip()))
            size += sum(map(len, some))
            if size > _MODEL_CHARACTERS:
                break
        return "\n".join(lines)

    def identifiers(self, *sides: Sequence[str]) -> set[str]:
        """Return the identifiers of some lines, single letters left out."""
        lines = (line for side in sides for line in side)
        return {name for line in lines for name in _IDENTIFIER.findall(line) if len(name) > 1}


class _Units:
    """The units and names of one side of a file, by line."""

    def __init__(self, row: Row | None) -> None:
        row = row or Row()
        self._names = row.names
        self._chunks = np.frombuffer(row.chunks, "<u4").reshape(-1, CHUNK_FIELDS)
        self._defined: dict[int, list[str]] = {}
        for name, _, line in (
            np.frombuffer(row.definitions, "<u4").reshape(-1, NAME_FIELDS).tolist()
        ):
            self._defined.setdefault(line, []).append(row.names[name])

    def at(self, line: int) -> tuple[str, str, tuple[int, int]]:
        """Return (symbol, kind, lines) of the unit that a line is in."""
        index = int(np.searchsorted(self._chunks[:, 0], line, side="right")) - 1
        if index < 0:
            return "", "", (0, 0)
        chunk = self._chunks[index].tolist()
        if line > max(chunk[1], chunk[3]):
            return "", "", (0, 0)
        return self._names[chunk[7]], CHUNK_KINDS[chunk[6]], (chunk[2], chunk[3])

    def defined_at(self, line: int) -> list[str]:
        """Return the qualified names defined on a line."""
        return self._defined.get(line, [])


def build(
    diff: Diff, head: Mapping[str, Row], base: Mapping[str, Row], rules: PathRules, title: str
) -> tuple[list[Query], str]:
    """Return the queries, the most changed unit first, and in words what did not ask.

    ``head`` and ``base`` give each side's row by path (of that side). Lock files, changelogs
    and what is generated or vendored ask nothing. Where no file is compared, the title asks.
    """
    if not diff.files:
        return [Query("", "", "", (0, 0), title)], ""
    found: dict[tuple[str, str], Query] = {}
    left = _MOST_HUNK_LINES
    for file in sorted(diff.files, key=lambda f: (f.added + f.deleted, f.path)):
        if (
            file.kind != "text"
            or asks_nothing(file.path)
            or rules.flags(file.path) & (GENERATED | VENDORED)
        ):
            continue
        new, old = _Units(head.get(file.path)), _Units(base.get(file.old_path))
        for hunk in file.hunks:
            if left > 0:
                _read_hunk(found, file, hunk, new, old, title, left)
            left -= len(hunk.lines)
    queries = sorted(found.values(), key=lambda q: (-q.weight, q.path, q.lines))
    queries = [query for query in queries if query.weight]
    limits = []
    if left < 0:
        limits.append(f"{-left:,} lines of hunks beyond {_MOST_HUNK_LINES:,} were not searched for")
    if len(queries) > MOST_QUERIES:
        more = len(queries) - MOST_QUERIES
        limits.append(f"{more:,} less changed units were not searched for")
    return queries[:MOST_QUERIES], "; ".join(limits)


def _read_hunk(
    found: dict[tuple[str, str], Query],
    file: FileDiff,
    hunk: Hunk,
    new: _Units,
    old: _Units,
    title: str,
    most: int,
) -> None:
    """Read a hunk; of one that is longer than ``most``, the first lines of each sign."""
    query: Query | None = None
    waiting: list[str] = []
    share = most if len(hunk.lines) <= most else most // 3
    seen = {" ": 0, "+": 0, "-": 0}
    for sign, old_line, new_line, text in hunk.numbered():
        seen[sign] += 1
        if seen[sign] > share:
            continue
        if sign == " ":
            if query is None or len(query.context) < _MOST_LINES:
                (query.context if query else waiting).append(text)
            continue
        side, line = (old, old_line) if sign == "-" else (new, new_line)
        symbol, kind, lines = side.at(line)
        query = found.get((file.path, symbol))
        if query is None:
            query = Query(file.path, symbol, kind, lines if sign == "+" else (0, 0), title)
            query.old_path = file.old_path if file.old_path != file.path else ""
            found[file.path, symbol] = query
            if symbol:
                query.names[symbol] = None
        if sign == "+" and query.lines == (0, 0):
            query.lines = lines
        lines_of_kind = query.deleted if sign == "-" else query.added
        query.weight += 1
        if len(lines_of_kind) < _MOST_LINES:
            lines_of_kind.append(text)
        if len(query.context) < _MOST_LINES:
            query.context += waiting
        waiting = []
        for name in side.defined_at(line):
            query.names[name] = None
