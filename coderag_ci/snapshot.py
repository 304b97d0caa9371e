"""A segment as a file that is memory-mapped, checked before use and replaced whole."""

from __future__ import annotations

import contextlib
import mmap
import os
import tempfile
import zlib
from dataclasses import astuple
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from coderag_ci.parse.languages import RELATION_KINDS
from coderag_ci.parse.row import CHUNK_FIELDS, CHUNK_KINDS, RELATION_FIELDS
from coderag_ci.segment import Postings, Segment, SourceFile

_MAGIC = b"coderag-snapshot-3\n"
_KEPT = 3
_ARRAYS = ("table", "file_of", "lengths", "flags", "relations", "relation_starts")
_POSTINGS = ("terms", "definitions", "references", "related")


class _Header(msgspec.Struct, array_like=True, frozen=True):
    files: tuple[tuple[bytes, str, str, int], ...]
    skipped: tuple[str, ...]
    symbols: tuple[str, ...]
    names: tuple[str, ...]
    arrays: dict[str, tuple[str, tuple[int, ...], int]]  # dtype, shape, offset
    size: int
    checksum: int


def save(segment: Segment, path: Path) -> None:
    """Write a segment beside its place, then rename. Raises OSError."""
    arrays = {name: getattr(segment, name) for name in _ARRAYS}
    for name in _POSTINGS:
        postings = getattr(segment, name)
        for field in ("keys", "offsets", "docs", "values"):
            arrays[f"{name}.{field}"] = getattr(postings, field)
    described: dict[str, tuple[str, tuple[int, ...], int]] = {}
    offset = 0
    checksum = 0
    blobs: list[bytes] = []
    for name, array in arrays.items():
        data = np.ascontiguousarray(array).tobytes()
        data += b"\0" * (-len(data) % 8)
        described[name] = (array.dtype.str, array.shape, offset)
        checksum = zlib.crc32(data, checksum)
        blobs.append(data)
        offset += len(data)
    files = tuple(
        (f.path.encode("utf-8", "surrogateescape"), f.blob, f.language, f.flags)
        for f in segment.files
    )
    header = msgspec.msgpack.encode(
        _Header(
            files,
            segment.skipped,
            segment.symbols,
            segment.names,
            described,
            offset,
            checksum,
        )
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".snapshot-")
    try:
        with os.fdopen(descriptor, "wb") as out:
            out.write(_MAGIC)
            out.write(len(header).to_bytes(8, "little"))
            out.write(zlib.crc32(header).to_bytes(4, "little"))
            out.write(header)
            out.write(b"\0" * (-out.tell() % 8))
            for data in blobs:
                out.write(data)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    _drop_old(path.parent)


def load(path: Path) -> Segment:
    """Map a snapshot file. Raises OSError or ValueError where it is not whole."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    start = len(_MAGIC) + 12
    if mapped[: len(_MAGIC)] != _MAGIC:
        raise ValueError("not a snapshot of this version")
    size = int.from_bytes(mapped[len(_MAGIC) : len(_MAGIC) + 8], "little")
    raw = mapped[start : start + size]
    if len(raw) != size or zlib.crc32(raw) != int.from_bytes(mapped[start - 4 : start], "little"):
        raise ValueError("header is damaged")
    try:
        header = msgspec.msgpack.decode(raw, type=_Header)
    except msgspec.MsgspecError as error:
        raise ValueError("header is damaged") from error
    body = start + size
    body += -body % 8
    view = memoryview(mapped)[body:]
    if len(view) != header.size or zlib.crc32(view) != header.checksum:
        raise ValueError("arrays are damaged")
    try:
        segment = _segment(header, view)
        whole = _consistent(segment)
    except (KeyError, TypeError, ValueError, OverflowError, MemoryError) as error:
        raise ValueError("arrays are damaged") from error
    if not whole:
        raise ValueError("arrays do not fit together")
    return segment


def _segment(header: _Header, view: memoryview) -> Segment:
    arrays = {name: _array(view, *described) for name, described in header.arrays.items()}
    fields = ("keys", "offsets", "docs", "values")
    parts: dict[str, Any] = {name: arrays[name] for name in _ARRAYS}
    for name in _POSTINGS:
        parts[name] = Postings(*(arrays[f"{name}.{field}"] for field in fields))
    return Segment(
        files=tuple(
            SourceFile(path.decode("utf-8", "surrogateescape"), blob, language, flags)
            for path, blob, language, flags in header.files
        ),
        skipped=header.skipped,
        symbols=header.symbols,
        names=header.names,
        **parts,
    )


def _consistent(segment: Segment) -> bool:
    """Whether every number points into what it counts: a cache can come from anywhere."""
    n = len(segment.file_of)
    table = segment.table
    if table.shape != (n, CHUNK_FIELDS) or len(segment.skipped) != len(segment.files):
        return False
    if not (segment.lengths.shape == segment.flags.shape == segment.file_of.shape == (n,)):
        return False
    if n and (
        int(segment.file_of.max()) >= len(segment.files)
        or int(table[:, 6].max()) >= len(CHUNK_KINDS)
        or int(table[:, 7].max()) >= len(segment.symbols)
    ):
        return False
    m, starts = len(segment.relations), segment.relation_starts
    if (
        segment.relations.shape != (m, RELATION_FIELDS)
        or starts.shape != (len(segment.files) + 1,)
        or int(starts[0]) != 0
        or int(starts[-1]) != m
        or (np.diff(starts.astype(np.int64)) < 0).any()
    ):
        return False
    if m and (
        int(segment.relations[:, 0].max()) >= len(RELATION_KINDS)
        or int(segment.relations[:, 1:].max()) >= len(segment.names)
        or int(segment.related.values.max(initial=0)) >= m
    ):
        return False
    if not _fits(segment.related, len(segment.files)) or (not m and len(segment.related.docs)):
        return False
    return all(_fits(getattr(segment, name), n) for name in _POSTINGS if name != "related")


def _fits(postings: Postings, n_docs: int) -> bool:
    entries, offsets = len(postings.docs), postings.offsets
    return bool(
        postings.keys.dtype == np.uint64
        and all(array.ndim == 1 and array.dtype.kind in "iu" for array in astuple(postings))
        and len(offsets) == len(postings.keys) + 1
        and len(postings.values) == entries
        and int(offsets[0]) == 0
        and int(offsets[-1]) == entries
        and not (np.diff(offsets.astype(np.int64)) < 0).any()
        and (not entries or int(postings.docs.max()) < n_docs)
    )


def newest(directory: Path) -> list[Path]:
    """List the snapshot files, the most recently used first."""
    found = []
    for path in directory.glob("*.snap"):
        with contextlib.suppress(OSError):
            found.append((path.stat().st_mtime_ns, path))
    return [path for _, path in sorted(found, reverse=True)]


def _drop_old(directory: Path) -> None:
    for path in newest(directory)[_KEPT:]:
        with contextlib.suppress(OSError):
            path.unlink()


def _array(view: memoryview, dtype: str, shape: tuple[int, ...], offset: int) -> Any:
    count = int(np.prod(shape, dtype=np.int64))
    return np.frombuffer(view, dtype, count, offset).reshape(shape)
