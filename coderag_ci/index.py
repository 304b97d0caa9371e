"""Brings the store up to date with a view, and searches that view."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from coderag_ci import snapshot, workers
from coderag_ci.gitrepo import GitRepo
from coderag_ci.parse.languages import (
    ACCESS_SHIFT,
    ACCESSES,
    BY_NAME,
    REFERENCE_KINDS,
    RELATION_KINDS,
    language_of,
    maker,
)
from coderag_ci.parse.relations import Relation
from coderag_ci.parse.row import CHUNK_FIELDS, CHUNK_KINDS, Row, decode_row, encode_row
from coderag_ci.parse.terms import name_hash, parts, term_hash
from coderag_ci.pathrules import GENERATED, TEST, VENDORED, PathRules, Skipped
from coderag_ci.segment import KIND_BITS, Array, Postings, Segment, SourceFile, build, module_key
from coderag_ci.store import RowKey, Store
from coderag_ci.view import View, read

_REBUILD_DOCS = 2000
_REBUILD_SHARE = 0.1
_WRITE_EVERY = 200
_RARE_SHARE = 0.02
_KIND_MASK = (1 << KIND_BITS) - 1
# Of a reference: its kind and access by the code; one that no parser gives reads as the first.
_CODES = [
    ((*REFERENCE_KINDS, *REFERENCE_KINDS)[code & ((1 << ACCESS_SHIFT) - 1)],
     (*ACCESSES, *ACCESSES)[code >> ACCESS_SHIFT])
    for code in range(1 << KIND_BITS)
]  # fmt: skip
_PACKAGE = RELATION_KINDS.index("package")
FAILED = "parser"  # reasons that begin so are told by path
_TOO_LARGE = "larger than 1 MiB"
NOT_HERE = "not in this clone"
_NOT_INDEXED = "not indexed"
_HURRIED = "deadline: no time to parse"
# Reasons for a row without chunks that say nothing of the content: another run may read it.
_PASSING = (NOT_HERE, _NOT_INDEXED, _HURRIED, workers.DIED)

Progress = Callable[[int, int], None]


class Update(NamedTuple):
    """What bringing the store up to date took."""

    indexed: int
    reused: int
    skipped: tuple[Skipped, ...]


class Doc(NamedTuple):
    """A chunk of the view. Lines are 1-based and inclusive; (0, 0) is no signature."""

    path: str
    blob: str
    language: str
    start: int
    end: int
    unit: tuple[int, int]
    signature: tuple[int, int]
    kind: str
    symbol: str
    flags: int


class Use(NamedTuple):
    """A place at which a name is defined or used, and how it is reached there."""

    doc: int
    line: int
    kind: str
    access: str = ""


def row_key(path: str, blob: str, chunk_size: int) -> RowKey:
    """Return the store's key for a file of a view."""
    language = language_of(path).name
    return blob, language, maker(language, chunk_size)


def update(
    repo: GitRepo,
    view: View,
    store: Store,
    progress: Progress = lambda done, total: None,
    file_seconds: float = workers.FILE_SECONDS,
    expired: Callable[[], bool] = lambda: False,
) -> tuple[Update, dict[RowKey, Row]]:
    """Parse the blobs that the store has never seen, and only those.

    Returns what it took and the new rows (also where they could not be stored). When
    ``expired`` says so, what is left is skipped by name.
    """
    keys = {row_key(entry.path, entry.blob, view.chunk_size): entry.path for entry in view.entries}
    missing = store.missing(keys)
    fresh: dict[RowKey, Row] = {}
    unsaved: list[tuple[RowKey, bytes]] = []
    left: set[int] = set(range(len(missing)))
    jobs = _jobs(repo, view, missing, fresh, left, expired)
    for index, data in workers.parse_all(jobs, len(missing), file_seconds, view.chunk_size):
        key = missing[index]
        row = decode_row(data)
        hung = row.skipped.startswith(workers.HUNG)
        if hung and row.skipped != f"{workers.HUNG} {workers.FILE_SECONDS:.0f} s":
            row = Row(skipped=_HURRIED)
        fresh[key] = row
        left.discard(index)
        if row.skipped not in _PASSING:
            unsaved.append((key, data))
        if len(unsaved) >= _WRITE_EVERY:
            store.add_rows(unsaved)
            unsaved = []
        progress(len(missing) - len(left), len(missing))
    large = [(key, encode_row(row)) for key, row in fresh.items() if row.skipped == _TOO_LARGE]
    store.add_rows([*unsaved, *large])
    skipped = [
        Skipped(keys[key], row.skipped) for key, row in fresh.items() if row.skipped in _PASSING
    ]
    skipped += [Skipped(keys[missing[i]], "deadline: not indexed") for i in sorted(left)]
    indexed = len(missing) - len(left)
    reused = len(keys) - len(missing)
    return Update(indexed, reused, tuple(sorted(skipped, key=lambda s: s.path))), fresh


def _jobs(
    repo: GitRepo,
    view: View,
    missing: list[RowKey],
    fresh: dict[RowKey, Row],
    left: set[int],
    expired: Callable[[], bool],
) -> Iterator[workers.Job]:
    contents = read(repo, view, [key[0] for key in missing])
    # ``read`` gives local blobs first, so answers are matched by id, not by position.
    by_blob: dict[str, list[int]] = {}
    for index, (blob, _, _) in enumerate(missing):
        by_blob.setdefault(blob, []).append(index)
    seen: set[str] = set()
    for blob, size, data in contents:
        if blob in seen:
            continue
        seen.add(blob)
        for index in by_blob[blob]:
            if expired():
                return
            if data is None:
                reason = NOT_HERE if size < 0 else _TOO_LARGE
                fresh[missing[index]] = Row(skipped=reason)
                left.discard(index)
            else:
                yield index, missing[index][1], data


class Index:
    """A searchable view: one snapshot and what it lacks, numbered as one list of docs."""

    def __init__(self, segments: list[tuple[Segment, Array]]) -> None:
        """``segments``: each with a boolean array of the docs that are in the view."""
        self._segments = segments
        self.doc = functools.lru_cache(maxsize=1 << 14)(self._describe)
        self._starts = np.cumsum([0, *(len(alive) for _, alive in segments)])
        self.alive: Array = _join([alive for _, alive in segments], bool)
        self.lengths: Array = _join([segment.lengths for segment, _ in segments], np.float64)
        self.flags: Array = _join([segment.flags for segment, _ in segments], np.uint8)
        self.size = int(self.alive.sum())
        self.average_length = float(self.lengths[self.alive].sum()) / max(self.size, 1)

    def term(self, key: int) -> tuple[Array, Array]:
        """Return (docs, counts) of the view's docs that have a term."""
        return self._get("terms", key)

    def holders(self, identifier: str) -> Array:
        """Return the docs in which an identifier stands, in any case."""
        terms = parts(identifier)
        return self.term(term_hash(terms[0]))[0] if terms else np.zeros(0, np.int64)

    @property
    def common(self) -> int:
        """Return how many docs may have what is called rare: 2 %, or 20."""
        return max(20, int(_RARE_SHARE * self.size))

    def definitions(self, name_key: int) -> list[Use]:
        """Return where a name is defined."""
        docs, values = self._get("definitions", name_key)
        return [
            Use(int(doc), int(value) >> KIND_BITS, CHUNK_KINDS[int(value) & _KIND_MASK])
            for doc, value in zip(docs, values, strict=True)
        ]

    def references(self, name_key: int) -> list[Use]:
        """Return where a name is used, the first use of each kind and access in each doc."""
        docs, values = self._get("references", name_key)
        return [
            Use(doc, value >> KIND_BITS, *_CODES[value & _KIND_MASK])
            for doc, value in zip(docs.tolist(), values.tolist(), strict=True)
        ]

    def _get(self, which: str, key: int) -> tuple[Array, Array]:
        docs, values = [], []
        for (segment, alive), start in zip(self._segments, self._starts, strict=False):
            postings: Postings = getattr(segment, which)
            found, value = postings.get(key)
            kept = alive[found]
            docs.append(found[kept].astype(np.int64) + start)
            values.append(value[kept])
        if not docs:
            return np.zeros(0, np.int64), np.zeros(0, np.uint32)
        return np.concatenate(docs), np.concatenate(values)

    def _describe(self, number: int) -> Doc:
        which = int(np.searchsorted(self._starts, number, side="right")) - 1
        segment = self._segments[which][0]
        local = number - int(self._starts[which])
        file = segment.files[int(segment.file_of[local])]
        start, end, *spans, kind, symbol = (int(value) for value in segment.table[local])
        return Doc(
            file.path,
            file.blob,
            file.language,
            start,
            end,
            (spans[0], spans[1]),
            (spans[2], spans[3]),
            CHUNK_KINDS[kind],
            segment.symbols[symbol],
            int(segment.flags[local]),
        )

    @functools.cached_property
    def _docs_of_path(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for (segment, alive), start in zip(self._segments, self._starts, strict=False):
            for local in np.flatnonzero(alive).tolist():
                path = segment.files[int(segment.file_of[local])].path
                found.setdefault(path, []).append(local + int(start))
        return found

    @functools.cached_property
    def places(self) -> list[int]:
        """Place of each doc in order of path and line: the last word in every tie."""
        names = sorted({file.path for segment, _ in self._segments for file in segment.files})
        rank = {path: number for number, path in enumerate(names)}
        file = _join(
            [
                np.array([rank[f.path] for f in segment.files], np.int64)[segment.file_of]
                for segment, _ in self._segments
            ],
            np.int64,
        )
        start = _join([segment.table[:, 0] for segment, _ in self._segments], np.int64)
        found = np.empty(len(file), np.int64)
        found[np.lexsort((start, file))] = np.arange(len(file))
        places: list[int] = found.tolist()
        return places

    def docs_of(self, path: str) -> list[int]:
        """Return the docs of a path in order of line."""
        return self._docs_of_path.get(path, [])

    def paths(self) -> list[str]:
        """Return the paths that have docs."""
        return list(self._docs_of_path)

    @functools.cached_property
    def _files(self) -> dict[str, tuple[int, int]]:
        """Each path that has docs, with the number of its segment and its own number there."""
        found: dict[str, tuple[int, int]] = {}
        for which, (segment, alive) in enumerate(self._segments):
            for number in np.unique(segment.file_of[alive]).tolist():
                found[segment.files[number].path] = which, number
        return found

    def relations(self, path: str) -> list[Relation]:
        """Return what a file says of others: its package, its imports, its classes' bases."""
        if path not in self._files:
            return []
        which, number = self._files[path]
        segment = self._segments[which][0]
        first, last = segment.relation_starts[number : number + 2].tolist()
        return [_relation(segment, row) for row in segment.relations[first:last].tolist()]

    def package(self, path: str) -> str:
        """Return the package or namespace that a file declares; empty where it has none."""
        if path not in self._files:
            return ""
        which, number = self._files[path]
        segment = self._segments[which][0]
        first, end = segment.relation_starts[number : number + 2].tolist()
        if first == end or int(segment.relations[first, 0]) != _PACKAGE:
            return ""
        return segment.names[int(segment.relations[first, 1])]

    def importers(self, module: str) -> list[tuple[str, Relation]]:
        """Return the relations, with their paths, to modules whose last part is a module's."""
        return [found for found in self._related(module_key(module)) if found[1].kind != "base"]

    def derived(self, base: str) -> list[tuple[str, Relation]]:
        """Return the ``base`` relations, with their paths, to classes of a name."""
        return [found for found in self._related(name_hash(base)) if found[1].kind == "base"]

    def _related(self, key: int) -> Iterator[tuple[str, Relation]]:
        for which, (segment, _) in enumerate(self._segments):
            files, numbers = segment.related.get(key)
            for file, number in zip(files.tolist(), numbers.tolist(), strict=True):
                path = segment.files[file].path
                if self._files.get(path) == (which, file):
                    yield path, _relation(segment, segment.relations[number].tolist())

    def hidden(self) -> Array:
        """Return which docs are never evidence: generated or vendored."""
        found: Array = (self.flags & (GENERATED | VENDORED)) != 0
        return found

    def test_paths(self) -> list[str]:
        """Return the paths of the view's test files."""
        return [path for path, docs in self._docs_of_path.items() if self.is_test(docs[0])]

    def is_test(self, number: int) -> bool:
        """Whether a doc is in a test file."""
        return bool(self.flags[number] & TEST)


def _relation(segment: Segment, row: list[int]) -> Relation:
    kind, module, name, alias = row
    names = segment.names
    return Relation(RELATION_KINDS[kind], names[module], names[name], names[alias])


@dataclass(frozen=True)
class Opened:
    """An index and how it came to be.

    ``left_out`` says of each path without docs why, ``skipped`` names those of them that no
    parser got through.
    """

    index: Index
    left_out: dict[str, str]
    skipped: tuple[Skipped, ...]
    snapshot: str


def open_index(view: View, store: Store, rules: PathRules, fresh: dict[RowKey, Row]) -> Opened:
    """Make a view searchable.

    The nearest snapshot is mapped and what it lacks is added; where that is a lot, a new
    one is saved. What is found does not depend on which snapshot was there.
    """
    files = [
        SourceFile(e.path, e.blob, language_of(e.path).name, rules.flags(e.path))
        for e in view.entries
    ]
    directory = store.directory / "snapshots"
    identity = _format(rules, view.chunk_size)
    base, name = _nearest(directory, identity, set(files))
    wanted = set(files)
    have = set(base.files) if base else set()
    lacking = [file for file in files if file not in have]
    rows = _rows(store, lacking, view.chunk_size, fresh)
    alive = _alive(base, wanted) if base else np.zeros(0, bool)
    dead = len(alive) - int(alive.sum())
    new = sum(len(row.chunks) for _, row in rows) // (4 * CHUNK_FIELDS)
    if base is None or new + dead > max(_REBUILD_DOCS, int(_REBUILD_SHARE * len(alive))):
        rows = rows if base is None else _rows(store, files, view.chunk_size, fresh)
        segment = build(_settled(rows))
        with contextlib.suppress(OSError):
            snapshot.save(segment, directory / f"{identity}-{view.digest}.snap")
        segments = [(segment, np.ones(len(segment.table), bool))]
        name = "built"
    else:
        delta = build(_settled(rows))
        segments = [(base, alive), (delta, np.ones(len(delta.table), bool))]
        name = f"{name} + {new} − {dead}"
    reasons = [
        (file.path, reason)
        for segment, _ in segments
        for file, reason in zip(segment.files, segment.skipped, strict=True)
        if reason and file in wanted
    ]
    failed = [Skipped(*pair) for pair in sorted(reasons) if pair[1].startswith(FAILED)]
    return Opened(Index(segments), dict(reasons), tuple(failed), name)


def _settled(rows: list[tuple[SourceFile, Row]]) -> list[tuple[SourceFile, Row]]:
    """Leave out files that another run may still read, so that no snapshot holds them as empty."""
    return [(file, row) for file, row in rows if row.skipped not in _PASSING]


def _format(rules: PathRules, chunk_size: int) -> str:
    """Digest of what, besides the files themselves, decides what a snapshot holds."""
    state = hashlib.blake2b(digest_size=8)
    for language in BY_NAME:
        state.update(maker(language, chunk_size).encode())
    state.update(rules.digest.encode("utf-8", "surrogateescape"))
    return state.hexdigest()


def _nearest(directory: Path, identity: str, wanted: set[SourceFile]) -> tuple[Segment | None, str]:
    """Return the snapshot that shares most files with a view."""
    best: tuple[int, Segment | None, Path | None] = (0, None, None)
    for path in snapshot.newest(directory):
        if not path.name.startswith(identity):
            continue
        try:
            segment = snapshot.load(path)
        except (OSError, ValueError):
            with contextlib.suppress(OSError):
                path.unlink()
            continue
        shared = len(wanted.intersection(segment.files))
        if shared > best[0]:
            best = (shared, segment, path)
        if shared == len(wanted):
            break
    if best[2] is None:
        return None, ""
    with contextlib.suppress(OSError):
        os.utime(best[2])  # the least recently used one goes first
    return best[1], best[2].stem[-12:]


def _alive(base: Segment, wanted: set[SourceFile]) -> Array:
    kept = np.array([file in wanted for file in base.files], bool)
    return kept[base.file_of] if len(base.file_of) else np.zeros(0, bool)


def _rows(
    store: Store, files: list[SourceFile], chunk_size: int, fresh: dict[RowKey, Row]
) -> list[tuple[SourceFile, Row]]:
    """Return each file's row; one that is nowhere comes back empty."""
    keys = {file: row_key(file.path, file.blob, chunk_size) for file in files}
    found = dict(fresh)
    wanted = {key for key in keys.values() if key not in found}
    for key, data in store.rows(wanted):
        with contextlib.suppress(msgspec.MsgspecError):
            found[key] = decode_row(data)
    return [(file, found.get(keys[file], Row(skipped=_NOT_INDEXED))) for file in files]


def _join(arrays: list[Array], dtype: type) -> Array:
    return np.concatenate(arrays).astype(dtype) if arrays else np.zeros(0, dtype)


def rows_of(
    store: Store, paths: Iterable[tuple[str, str]], chunk_size: int, fresh: dict[RowKey, Row]
) -> dict[str, Row]:
    """Return the rows of some (path, blob) pairs by path."""
    files = [SourceFile(path, blob, "", 0) for path, blob in paths]
    return {file.path: row for file, row in _rows(store, files, chunk_size, fresh)}
