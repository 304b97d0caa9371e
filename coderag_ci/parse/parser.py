"""One blob to one row."""

from __future__ import annotations

import numpy as np
import tree_sitter

from coderag_ci.parse import row as rows
from coderag_ci.parse import terms, units, windows
from coderag_ci.parse.languages import BY_NAME, grammar

MAX_BYTES = 1 << 20
_MAX_LINE = 20_000
_PROBE = 8_000
_KIND_CODE = {kind: code for code, kind in enumerate(rows.CHUNK_KINDS)}
_counter = terms.TermCounter()


def is_binary(data: bytes) -> bool:
    """Our own test for binary content: a NUL in the first 8,000 bytes (git's rule)."""
    return b"\0" in data[:_PROBE]


def is_lfs_pointer(data: bytes) -> bool:
    """Whether a blob is a Git LFS pointer rather than content."""
    return len(data) < 1024 and data.startswith(b"version https://git-lfs.github.com/spec/")


def why_not(data: bytes) -> str:
    """Say why a blob is not indexed; empty where it is."""
    if not data:
        return "empty"
    if is_binary(data):
        return "binary"
    if is_lfs_pointer(data):
        return "Git LFS pointer"
    if len(data) > MAX_BYTES:
        return "larger than 1 MiB"
    if max(map(len, data.split(b"\n"))) > _MAX_LINE:
        return "a line longer than 20,000 bytes"
    return ""


def parse(data: bytes, language_name: str) -> rows.Row:
    """Parse a blob's bytes as one language.

    Lines are what git calls lines: they end at LF alone. Never raises for content;
    what is not indexed comes back as a row with ``skipped`` set.
    """
    if reason := why_not(data):
        return rows.Row(skipped=reason)
    language = BY_NAME[language_name]
    lines = data.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    if not language.module:
        found = [
            units.Chunk(start, end, (start, end), (0, 0), "window", "")
            for start, end in windows.split_range(lines, 1, len(lines))
        ]
        return _row(lines, found, [], [])
    root = tree_sitter.Parser(grammar(language_name)).parse(data).root_node
    defined, uses = units.scan(root, language)
    qualified = units.qualify(defined)
    found = units.chunks(defined, root, lines)
    names = [(qualified[id(d)], d.kind, d.line) for d in defined]
    return _row(lines, found, names, _distinct_uses(data, uses, found))


def _distinct_uses(
    data: bytes, uses: dict[int, units.Use], found: list[units.Chunk]
) -> list[tuple[str, int, int]]:
    """Keep the first use of a name, by kind, in each chunk: (name, kind code, line)."""
    if not uses:
        return []
    starts = np.array(sorted(uses), np.int64)
    newlines = np.flatnonzero(np.frombuffer(data, np.uint8) == 10)
    lines = np.searchsorted(newlines, starts) + 1
    owners = np.searchsorted([chunk.start for chunk in found], lines, side="right")
    first: dict[tuple[bytes, int, int], int] = {}
    for start, line, owner in zip(starts.tolist(), lines.tolist(), owners.tolist(), strict=True):
        end, kind = uses[start]
        first.setdefault((data[start:end], kind, owner), line)
    return [(name.decode("utf-8", "replace"), kind, line) for (name, kind, _), line in first.items()]


def _row(
    lines: list[bytes],
    found: list[units.Chunk],
    defined: list[tuple[str, str, int]],
    used: list[tuple[str, int, int]],
) -> rows.Row:
    names: dict[str, int] = {}
    chunks: list[int] = []
    for chunk in found:
        chunks += (chunk.start, chunk.end, *chunk.unit, *chunk.signature)
        chunks += (_KIND_CODE[chunk.kind], names.setdefault(chunk.symbol, len(names)))
    definitions: list[int] = []
    for name, kind_name, line in defined:
        definitions += (names.setdefault(name, len(names)), _KIND_CODE[kind_name], line)
    references: list[int] = []
    for name, kind, line in used:
        references += (names.setdefault(name, len(names)), kind, line)
    keys, owners, counts = _counter.count(chunk_text(lines, chunk) for chunk in found)
    terms, post_terms = np.unique(keys, return_inverse=True)
    return rows.Row(
        lines=len(lines),
        names=tuple(names),
        chunks=rows.pack(chunks, "<u4"),
        definitions=rows.pack(definitions, "<u4"),
        references=rows.pack(references, "<u4"),
        terms=rows.pack(terms, "<u8"),
        post_chunks=rows.pack(np.searchsorted(owners, np.arange(len(found) + 1)), "<u4"),
        post_terms=rows.pack(post_terms, "<u4"),
        post_counts=rows.pack(np.minimum(counts, 0xFFFF), "<u2"),
    )


def chunk_text(lines: list[bytes], chunk: units.Chunk) -> str:
    """Text that a chunk is found by: symbol and kind, the signature for a later part, its lines."""
    parts = [chunk.symbol.encode(), chunk.kind.encode()] if chunk.symbol else []
    if chunk.signature[0] and chunk.start > chunk.signature[1]:
        parts += lines[chunk.signature[0] - 1 : chunk.signature[1]]
    parts += lines[chunk.start - 1 : chunk.end]
    return b"\n".join(parts).decode("utf-8", "replace")
