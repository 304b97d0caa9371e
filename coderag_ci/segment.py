"""Postings of a set of files: terms, definitions and references, in numpy arrays.

A segment is what a snapshot file holds; a view is searched through one snapshot and,
for what the snapshot does not have, a second segment in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from coderag_ci.parse.row import CHUNK_FIELDS, NAME_FIELDS, Row
from coderag_ci.parse.terms import text_terms
from coderag_ci.pathrules import GENERATED

Array = npt.NDArray[Any]


class SourceFile(NamedTuple):
    """One file of a segment: its path, blob, language and path flags."""

    path: str
    blob: str
    language: str
    flags: int


@dataclass(frozen=True, slots=True)
class Postings:
    """Key to entries: the entries of ``keys[i]`` are ``offsets[i]:offsets[i + 1]``.

    ``keys`` (k,) uint64 ascending; ``docs`` (n,) uint32 ascending within a key;
    ``values`` (n,): term counts (uint16), or line << 4 | kind (uint32) for names.
    """

    keys: Array
    offsets: Array
    docs: Array
    values: Array

    def get(self, key: int) -> tuple[Array, Array]:
        """Return (docs, values) of a key; empty where it does not occur."""
        at = int(np.searchsorted(self.keys, np.uint64(key)))
        if at == len(self.keys) or int(self.keys[at]) != key:
            return self.docs[:0], self.values[:0]
        part = slice(int(self.offsets[at]), int(self.offsets[at + 1]))
        return self.docs[part], self.values[part]


@dataclass(frozen=True, slots=True)
class Segment:
    """Files in path order and their chunks ("docs") in order of file and line.

    ``table`` (n_docs, 8) uint32 as in ``Row.chunks``, with the last column indexing
    ``symbols``; ``file_of`` (n_docs,) uint32; ``lengths`` (n_docs,) uint32 terms a doc,
    those of its path included; ``flags`` (n_docs,) uint8.
    """

    files: tuple[SourceFile, ...]
    symbols: tuple[str, ...]
    table: Array
    file_of: Array
    lengths: Array
    flags: Array
    terms: Postings
    definitions: Postings
    references: Postings


def build(files: Sequence[tuple[SourceFile, Row]]) -> Segment:
    """Make a segment of parsed files; files without chunks are kept, without docs."""
    parts = _Parts()
    symbols: dict[str, int] = {}
    n_docs = 0
    flags: list[int] = []
    for number, (file, row) in enumerate(files):
        chunks = np.frombuffer(row.chunks, "<u4").reshape(-1, CHUNK_FIELDS)
        n = len(chunks)
        flags.append(file.flags | (GENERATED if row.generated else 0))
        if n:
            table = chunks.copy()
            local = [symbols.setdefault(row.names[i], len(symbols)) for i in chunks[:, 7]]
            table[:, 7] = local
            parts.add("table", table)
            parts.add("file_of", np.full(n, number, np.uint32))
            _add_terms(parts, file, row, n_docs, n)
            keys = np.frombuffer(row.name_keys, "<u8")
            for kind, data in (("def", row.definitions), ("ref", row.references)):
                _add_names(parts, kind, keys, data, chunks, n_docs)
            n_docs += n
    file_of = parts.join("file_of", np.uint32)
    terms = _postings(
        parts.join("term", np.uint64),
        parts.join("term_at", np.int64),
        parts.join("term_doc", np.int64),
        parts.join("term_count", np.int64),
        n_docs,
    )
    lengths = np.zeros(n_docs, np.int64)
    np.add.at(lengths, terms.docs, terms.values)
    return Segment(
        tuple(file for file, _ in files),
        tuple(symbols),
        parts.join("table", np.uint32).reshape(-1, CHUNK_FIELDS),
        file_of,
        lengths.astype(np.uint32),
        np.array(flags, np.uint8)[file_of] if n_docs else np.zeros(0, np.uint8),
        terms,
        _names(parts, "def"),
        _names(parts, "ref"),
    )


class _Parts:
    """Arrays collected a file at a time."""

    def __init__(self) -> None:
        self._lists: dict[str, list[Array]] = {}
        self.n_terms = 0

    def add(self, name: str, values: Array) -> None:
        self._lists.setdefault(name, []).append(values)

    def join(self, name: str, dtype: npt.DTypeLike) -> Array:
        found = self._lists.pop(name, None)
        return np.concatenate(found).astype(dtype, copy=False) if found else np.zeros(0, dtype)


def _add_terms(parts: _Parts, file: SourceFile, row: Row, first_doc: int, n: int) -> None:
    """Add a file's term counts, and the terms of its path to each of its chunks."""
    terms = np.frombuffer(row.terms, "<u8")
    offsets = np.frombuffer(row.post_chunks, "<u4").astype(np.int64)
    parts.add("term", terms)
    parts.add("term_at", np.frombuffer(row.post_terms, "<u4").astype(np.int64) + parts.n_terms)
    parts.add("term_doc", np.repeat(np.arange(first_doc, first_doc + n), np.diff(offsets)))
    parts.add("term_count", np.frombuffer(row.post_counts, "<u2"))
    parts.n_terms += len(terms)
    of_path = text_terms(file.path)
    parts.add("term", np.array(of_path, np.uint64))
    here = np.arange(parts.n_terms, parts.n_terms + len(of_path))
    parts.add("term_at", np.tile(here, n))
    parts.add("term_doc", np.repeat(np.arange(first_doc, first_doc + n), len(of_path)))
    parts.add("term_count", np.ones(n * len(of_path), np.uint16))
    parts.n_terms += len(of_path)


def _add_names(
    parts: _Parts, kind: str, keys: Array, data: bytes, chunks: Array, first_doc: int
) -> None:
    """Add a file's definitions or references, each with the chunk that its line is in."""
    table = np.frombuffer(data, "<u4").reshape(-1, NAME_FIELDS)
    if not len(table):
        return
    doc = np.searchsorted(chunks[:, 0], table[:, 2], side="right").astype(np.int64) - 1
    inside = (doc >= 0) & (table[:, 2] <= chunks[np.maximum(doc, 0), 1])
    table, doc = table[inside], doc[inside]
    parts.add(kind + "_key", keys[table[:, 0]])
    parts.add(kind + "_doc", doc + first_doc)
    parts.add(kind + "_value", table[:, 2] << np.uint32(4) | table[:, 1] % np.uint32(16))


def _postings(terms: Array, at: Array, docs: Array, counts: Array, n_docs: int) -> Postings:
    """Group counted terms by term, adding up the counts of a term that a doc has twice."""
    keys, number = np.unique(terms, return_inverse=True)
    composite = number.reshape(-1)[at] * max(n_docs, 1) + docs
    order = np.argsort(composite, kind="stable")
    composite, counts = composite[order], counts[order]
    if not len(composite):
        return Postings(keys[:0], np.zeros(1, np.int64), docs.astype(np.uint32), counts)
    first = np.flatnonzero(np.r_[True, composite[1:] != composite[:-1]])
    counts = np.minimum(np.add.reduceat(counts, first), 0xFFFF).astype(np.uint16)
    composite = composite[first]
    owner, docs = np.divmod(composite, max(n_docs, 1))
    offsets = np.searchsorted(owner, np.arange(len(keys) + 1))
    return Postings(keys, offsets.astype(np.int64), docs.astype(np.uint32), counts)


def _names(parts: _Parts, kind: str) -> Postings:
    """Group definitions or references by name, in order of doc and line."""
    keys = parts.join(kind + "_key", np.uint64)
    docs = parts.join(kind + "_doc", np.uint32)
    values = parts.join(kind + "_value", np.uint32)
    order = np.lexsort((values, docs, keys))
    keys, docs, values = keys[order], docs[order], values[order]
    unique, first = np.unique(keys, return_index=True)
    return Postings(unique, np.append(first, len(keys)).astype(np.int64), docs, values)
