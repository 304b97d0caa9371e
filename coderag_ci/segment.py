"""Postings of a set of files: terms, definitions and references, in numpy arrays.

A segment is what a snapshot file holds; a view is searched through one snapshot and,
for what the snapshot does not have, a second segment in memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from coderag_ci.parse.languages import RELATION_KINDS
from coderag_ci.parse.row import CHUNK_FIELDS, NAME_FIELDS, RELATION_FIELDS, Row
from coderag_ci.parse.terms import name_hash, text_terms
from coderag_ci.pathrules import GENERATED

Array = npt.NDArray[Any]
KIND_BITS = 6  # of a name's value in the postings; the rest is its line
_ENDING = re.compile(r"\.[cm]?[jt]sx?$")
_SEPARATOR = re.compile(r"::|[/\\.]")
_BASE = RELATION_KINDS.index("base")


def module_key(module: str) -> int:
    """Return the key of a module by its last part, a JavaScript file's ending left out."""
    *_, last = _SEPARATOR.split(_ENDING.sub("", module))
    return name_hash("/" + last)


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
    ``values`` (n,): term counts (uint16), or line << KIND_BITS | kind (uint32) for names.
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
    those of its path included; ``flags`` (n_docs,) uint8. ``skipped`` says for each file
    why it has no docs, empty where it has.

    ``relations`` (m, 4) uint32 as in ``Row.relations``, with indexes into ``names``, in order
    of file: those of file i are ``relation_starts[i]:relation_starts[i + 1]``. ``related``
    finds them by ``module_key`` of their module, a base class by its name's hash: its docs are
    numbers of files, its values numbers of relations.
    """

    files: tuple[SourceFile, ...]
    skipped: tuple[str, ...]
    symbols: tuple[str, ...]
    table: Array
    file_of: Array
    lengths: Array
    flags: Array
    terms: Postings
    definitions: Postings
    references: Postings
    names: tuple[str, ...]
    relations: Array
    relation_starts: Array
    related: Postings


def build(files: Sequence[tuple[SourceFile, Row]]) -> Segment:
    """Make a segment of parsed files; files without chunks are kept, without docs."""
    rows = [row for _, row in files]
    table = _concatenated((row.chunks for row in rows), "<u4").reshape(-1, CHUNK_FIELDS).copy()
    n_docs = len(table)
    per_file = np.array([len(row.chunks) // (4 * CHUNK_FIELDS) for row in rows], np.int64)
    file_of = np.repeat(np.arange(len(rows)), per_file)
    symbols, table[:, 7] = _symbols(rows, table[:, 7], file_of)
    terms = _postings(
        *_own_terms(rows), *_path_terms([file.path for file, _ in files], file_of), n_docs
    )
    flags = np.array([file.flags | GENERATED * row.generated for file, row in files], np.uint8)
    starts = file_of << 32 | table[:, 0]
    return Segment(
        tuple(file for file, _ in files),
        tuple(row.skipped for row in rows),
        symbols,
        table,
        file_of.astype(np.uint32),
        np.bincount(terms.docs, terms.values, n_docs).astype(np.uint32),
        flags[file_of] if n_docs else np.zeros(0, np.uint8),
        terms,
        _names(rows, [row.definitions for row in rows], starts, table),
        _names(rows, [row.references for row in rows], starts, table),
        *_relations(rows),
    )


def _relations(rows: Sequence[Row]) -> tuple[tuple[str, ...], Array, Array, Postings]:
    """Return the last four fields of a segment."""
    names: dict[str, int] = {}
    tables = [np.zeros((0, RELATION_FIELDS), np.uint32)]
    lengths = np.zeros(len(rows) + 1, np.int64)
    for number, row in enumerate(rows):
        if not row.relations:
            continue
        table = np.frombuffer(row.relations, "<u4").reshape(-1, RELATION_FIELDS).copy()
        used, local = np.unique(table[:, 1:], return_inverse=True)
        shared = [names.setdefault(row.names[i], len(names)) for i in used.tolist()]
        table[:, 1:] = np.array(shared, np.uint32)[local.reshape(-1, RELATION_FIELDS - 1)]
        tables.append(table)
        lengths[number + 1] = len(table)
    relations, starts = np.concatenate(tables), np.cumsum(lengths)
    every = tuple(names)
    by_module = np.array([module_key(name) for name in every] or [0], np.uint64)
    by_name = np.array([name_hash(name) for name in every] or [0], np.uint64)
    bases = relations[:, 0] == _BASE
    keys = np.where(bases, by_name[relations[:, 2]], by_module[relations[:, 1]])
    files = np.repeat(np.arange(len(rows)), np.diff(starts))
    unique, owner = np.unique(keys, return_inverse=True)
    order = np.argsort(owner.reshape(-1), kind="stable")
    bounds = np.searchsorted(owner.reshape(-1)[order], np.arange(len(unique) + 1))
    related = Postings(
        unique, bounds.astype(np.int64), files[order].astype(np.uint32), order.astype(np.uint32)
    )
    return every, relations, starts, related


def _concatenated(parts: Iterable[bytes], dtype: str) -> Array:
    return np.frombuffer(b"".join(parts), dtype)


def _lengths(parts: Iterable[bytes], size: int) -> Array:
    return np.array([len(part) // size for part in parts], np.int64)


def _starts(lengths: Array) -> Array:
    return np.cumsum(lengths) - lengths


def _symbols(rows: Sequence[Row], local: Array, file_of: Array) -> tuple[tuple[str, ...], Array]:
    """Return the symbols of all files as one list, and each doc's number in it."""
    names = [name for row in rows for name in row.names]
    offsets = _starts(np.array([len(row.names) for row in rows], np.int64))
    used, number = np.unique(local + offsets[file_of], return_inverse=True)
    return tuple(names[i] for i in used.tolist()), number.reshape(-1)


def _own_terms(rows: Sequence[Row]) -> tuple[Array, Array, Array, Array]:
    """Return (distinct terms a file, and for each posting its term's index, doc and count)."""
    terms = _concatenated((row.terms for row in rows), "<u8")
    at = _concatenated((row.post_terms for row in rows), "<u4").astype(np.int64)
    postings = _lengths((row.post_terms for row in rows), 4)
    at += np.repeat(_starts(_lengths((row.terms for row in rows), 8)), postings)
    ends = _concatenated((row.post_chunks for row in rows), "<u4").astype(np.int64)
    # Each file has one offset more than chunks; the step from one file to the next is dropped.
    per_doc = np.diff(ends)
    borders = np.cumsum(_lengths((row.post_chunks for row in rows), 4))
    inside = np.ones(len(per_doc), bool)
    between = borders[:-1] - 1
    inside[between[(between >= 0) & (between < len(per_doc))]] = False
    per_doc = per_doc[inside]
    docs = np.repeat(np.arange(len(per_doc)), per_doc)
    return terms, at, docs, _concatenated((row.post_counts for row in rows), "<u2")


def _path_terms(paths: Sequence[str], file_of: Array) -> tuple[Array, Array, Array]:
    """Return (terms of the paths, and for each doc's share of them their index and doc)."""
    found = [text_terms(path) for path in paths]
    lengths = np.array([len(terms) for terms in found], np.int64)
    per_doc = lengths[file_of] if len(file_of) else np.zeros(0, np.int64)
    docs = np.repeat(np.arange(len(file_of)), per_doc)
    first = _starts(lengths)[file_of] if len(file_of) else np.zeros(0, np.int64)
    at = np.arange(len(docs)) + np.repeat(first - _starts(per_doc), per_doc)
    return np.array([term for terms in found for term in terms], np.uint64), at, docs


def _postings(
    terms: Array, at: Array, docs: Array, counts: Array,
    path_terms: Array, path_at: Array, path_docs: Array, n_docs: int,
) -> Postings:  # fmt: skip
    """Group counted terms by term, adding up the counts of a term that a doc has twice."""
    keys, number = np.unique(np.concatenate([terms, path_terms]), return_inverse=True)
    number = number.reshape(-1)
    docs = np.concatenate([docs, path_docs])
    counts = np.concatenate([counts.astype(np.int64), np.ones(len(path_docs), np.int64)])
    composite = number[np.concatenate([at, path_at + len(terms)])] * max(n_docs, 1) + docs
    order = np.argsort(composite, kind="stable")
    composite, counts = composite[order], counts[order]
    if not len(composite):
        empty = np.zeros(0, np.uint32)
        return Postings(keys[:0], np.zeros(1, np.int64), empty, empty.astype(np.uint16))
    first = np.flatnonzero(np.r_[True, composite[1:] != composite[:-1]])
    counts = np.minimum(np.add.reduceat(counts, first), 0xFFFF).astype(np.uint16)
    owner, docs = np.divmod(composite[first], max(n_docs, 1))
    offsets = np.searchsorted(owner, np.arange(len(keys) + 1))
    return Postings(keys, offsets.astype(np.int64), docs.astype(np.uint32), counts)


def _names(rows: Sequence[Row], parts: Sequence[bytes], starts: Array, docs: Array) -> Postings:
    """Group definitions or references by name, in order of doc and line.

    ``starts`` (n_docs,): file number << 32 | first line of each doc. A name on a line that
    no doc has is left out.
    """
    table = _concatenated(parts, "<u4").reshape(-1, NAME_FIELDS).astype(np.int64)
    file_of = np.repeat(np.arange(len(rows)), _lengths(parts, 4 * NAME_FIELDS))
    names = _concatenated((row.name_keys for row in rows), "<u8")
    offsets = _starts(_lengths((row.name_keys for row in rows), 8))
    number, kind, line = table.T
    doc = np.searchsorted(starts, file_of << 32 | line, side="right") - 1
    inside = doc >= 0
    inside[inside] = (starts[doc[inside]] >> 32 == file_of[inside]) & (
        line[inside] <= docs[doc[inside], 1]
    )
    keys = names[(number + offsets[file_of])[inside]] if len(table) else names[:0]
    values = (line << KIND_BITS | kind)[inside].astype(np.uint32)
    unique, owner = np.unique(keys, return_inverse=True)
    owner, doc = owner.reshape(-1), doc[inside].astype(np.uint32)
    order = np.lexsort((values, doc, owner))
    bounds = np.searchsorted(owner[order], np.arange(len(unique) + 1))
    return Postings(unique, bounds.astype(np.int64), doc[order], values[order])
