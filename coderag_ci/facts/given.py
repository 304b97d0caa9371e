"""What the facts of a change are made from, and what the kinds share."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from coderag_ci.diff import Diff, FileDiff
from coderag_ci.gitrepo import GitRepo
from coderag_ci.graph import Graph
from coderag_ci.history import Past
from coderag_ci.index import Index
from coderag_ci.pack import Fact, Place
from coderag_ci.parse.row import CHUNK_FIELDS, CHUNK_KINDS, NAME_FIELDS, Row
from coderag_ci.pathrules import GENERATED, VENDORED, PathRules, asks_nothing
from coderag_ci.text import Texts

MOST_PLACES = 8  # of a fact
_MOST_FILES = 200
_MOST_SIGNATURE_LINES = 12
_MOST_QUOTED = 160  # characters
CALLABLE = frozenset({"function", "method", "macro"})
TYPES = frozenset({"class", "interface", "struct", "enum", "trait", "type"})


@dataclass(frozen=True)
class Given:
    """A change with both sides' rows of its files, head's whole view, and the past.

    ``head`` and ``base`` give rows by path of that side, ``paths`` are all of head's view;
    ``merge_base`` is empty where there is none. ``seconds``: what a kind that waits for git may
    take. What kept a fact from being looked for is added to ``limits``.
    """

    repo: GitRepo
    merge_base: str
    diff: Diff
    head: Mapping[str, Row]
    base: Mapping[str, Row]
    paths: frozenset[str]
    index: Index
    graph: Graph
    texts: Texts
    rules: PathRules
    past: Past
    seconds: float = math.inf
    limits: list[str] = field(default_factory=list)

    @functools.cached_property
    def files(self) -> list[FileDiff]:
        """The most changed files, in path order."""
        order = sorted(self.diff.files, key=lambda f: (-f.added - f.deleted, f.path))
        return sorted(order[:_MOST_FILES], key=lambda f: f.path)

    @functools.cached_property
    def touched(self) -> dict[str, set[int]]:
        """By path of head: the lines that were added or stand next to deleted ones."""
        return {f.path: f.touched_lines() for f in self.files if f.status != "deleted"}

    def is_touched(self, path: str, first: int, last: int) -> bool:
        """Whether the change has one of some lines of head."""
        lines = self.touched.get(path, set())
        return bool(lines) and any(line in lines for line in range(first, last + 1))

    def written(self, path: str) -> bool:
        """Whether people write a path's code: no lock file or changelog, not generated."""
        return not (asks_nothing(path) or self.rules.flags(path) & (GENERATED | VENDORED))


def fact(kind: str, text: str, places: Iterable[Place]) -> Fact:
    """Make a fact; its places come by path and line, those beyond the first few are counted."""
    return fact_in_order(kind, text, sorted(places, key=lambda place: (place.path, place.line)))


def fact_in_order(kind: str, text: str, places: Sequence[Place]) -> Fact:
    """Make a fact whose places come in an order of their own."""
    return Fact(kind, text, tuple(places[:MOST_PLACES]), max(0, len(places) - MOST_PLACES))


def count(number: int, noun: str) -> str:
    """Return ``1 place`` or ``3 places``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def quote(text: str) -> str:
    """Quote a piece of the repository on one line; a long one is cut."""
    text = " ".join(text.replace("`", "'").split())
    return f"`{text[:_MOST_QUOTED]}{'…' if len(text) > _MOST_QUOTED else ''}`"


def quote_where_it_differs(text: str, other: str) -> str:
    """Quote a text; a long one from a little before where it differs from the other."""
    if len(text) <= _MOST_QUOTED:
        return quote(text)
    pairs = enumerate(zip(text, other, strict=False))
    differs = next((i for i, (one, two) in pairs if one != two), len(other))
    start = max(0, differs - _MOST_QUOTED // 4)
    return quote(("…" if start else "") + text[start:])


def table(data: bytes, fields: int) -> list[list[int]]:
    """Return the lines of a row's table as lists of numbers."""
    found: list[list[int]] = np.frombuffer(data, "<u4").reshape(-1, fields).tolist()
    return found


def definitions(row: Row | None) -> dict[str, str]:
    """Return what a file defines: qualified name to kind."""
    if row is None:
        return {}
    return {
        row.names[name]: CHUNK_KINDS[kind] for name, kind, _ in table(row.definitions, NAME_FIELDS)
    }


def is_compound(name: str) -> bool:
    """Whether a name is made of several words, so that it is hardly anything else's."""
    return "_" in name.strip("_") or any(c.isupper() for c in name[1:])


def is_local(name: str, defined: Mapping[str, str]) -> bool:
    """Whether a name is defined inside a function, where nothing else can name it."""
    return defined.get(name.rpartition(".")[0]) in CALLABLE


def units_at(row: Row | None, lines: Iterable[int]) -> list[tuple[str, int]]:
    """Return (symbol, line) of the functions and types that some lines are in, in order."""
    wanted = set(lines)
    if row is None or not row.chunks or not wanted:
        return []
    found: dict[str, int] = {}
    for chunk in table(row.chunks, CHUNK_FIELDS):
        symbol = row.names[chunk[7]]
        named = CHUNK_KINDS[chunk[6]] in CALLABLE | TYPES and symbol not in found
        if named and any(line in wanted for line in range(chunk[0], chunk[1] + 1)):
            found[symbol] = chunk[4] or chunk[2]
    return sorted(found.items(), key=lambda item: item[1])


def signatures(row: Row | None, lines: Sequence[str]) -> dict[str, str]:
    """Return the signature of each function that is defined once, white space collapsed."""
    if row is None or not row.chunks:
        return {}
    found: dict[str, str] = {}
    twice: set[str] = set()
    seen: set[tuple[str, int]] = set()
    for chunk in table(row.chunks, CHUNK_FIELDS):
        symbol, first, last = row.names[chunk[7]], chunk[4], chunk[5]
        if CHUNK_KINDS[chunk[6]] not in CALLABLE or not first or (symbol, first) in seen:
            continue
        seen.add((symbol, first))
        if symbol in found:
            twice.add(symbol)
        text = " ".join(lines[first - 1 : last])
        for line in lines[last : last + _MOST_SIGNATURE_LINES]:  # one without a body ends early
            if text.count("(") <= text.count(")"):
                break
            text = f"{text} {line}"
        found[symbol] = " ".join(text.split()).rstrip("{:; ")
    return {symbol: text for symbol, text in found.items() if symbol not in twice}
