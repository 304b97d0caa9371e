"""Read a parsed row back in words, for the tests of the query files."""

from __future__ import annotations

import struct
import textwrap
from dataclasses import dataclass

from coderag_ci.parse import row as rows
from coderag_ci.parse.languages import ACCESS_SHIFT, ACCESSES, REFERENCE_KINDS, RELATION_KINDS
from coderag_ci.parse.parser import parse


@dataclass(frozen=True)
class Parsed:
    """What a file defines, uses and is cut into.

    ``definitions`` and ``references`` hold (name, kind, line); ``chunks`` holds
    (start, end, kind, symbol) in order; ``relations`` (kind, module, name, alias) and
    ``accesses`` (name, kind, access).
    """

    definitions: set[tuple[str, str, int]]
    references: set[tuple[str, str, int]]
    chunks: list[tuple[int, int, str, str]]
    relations: set[tuple[str, str, str, str]]
    accesses: set[tuple[str, str, str]]

    def uses(self, name: str) -> set[tuple[str, int]]:
        """Return (kind, line) of each recorded use of a name."""
        return {(kind, line) for used, kind, line in self.references if used == name}


def read(language: str, source: str) -> Parsed:
    """Parse dedented source as a language."""
    row = parse(textwrap.dedent(source).lstrip("\n").encode(), language)
    assert row.skipped == ""
    return Parsed(
        {(row.names[n], rows.CHUNK_KINDS[k], line) for n, k, line in _table(row.definitions, 3)},
        {(row.names[n], _kind(code), line) for n, code, line in _table(row.references, 3)},
        [(c[0], c[1], rows.CHUNK_KINDS[c[6]], row.names[c[7]]) for c in _table(row.chunks, 8)],
        {
            (RELATION_KINDS[kind], *(row.names[n] for n in names))
            for kind, *names in _table(row.relations, 4)
        },
        {
            (row.names[n], _kind(code), ACCESSES[code >> ACCESS_SHIFT])
            for n, code, _ in _table(row.references, 3)
        },
    )


def _kind(code: int) -> str:
    return REFERENCE_KINDS[code & ((1 << ACCESS_SHIFT) - 1)]


def _table(data: bytes, width: int) -> list[tuple[int, ...]]:
    return list(struct.iter_unpack(f"<{width}I", data))
