"""What the store keeps of one blob: positions, names and hashed terms, never a line of source."""

from __future__ import annotations

import msgspec
import numpy as np
import numpy.typing as npt

from coderag_ci.parse.languages import NAME_KINDS, UNIT_KINDS

CHUNK_FIELDS = 8  # start, end, unit start, unit end, signature start, signature end, kind, symbol
NAME_FIELDS = 3  # name, kind, line
RELATION_FIELDS = 4  # kind, module, name, alias

CHUNK_KINDS = (*UNIT_KINDS, "toplevel", "window", *NAME_KINDS)


class Row(msgspec.Struct, array_like=True, frozen=True):
    """One parsed blob. Arrays are little-endian bytes; lines are 1-based and inclusive.

    ``chunks``: (n, 8) uint32; ``definitions`` and ``references``: (n, 3) uint32 whose
    first column indexes ``names``, of references with a kind | access << ``ACCESS_SHIFT``;
    ``relations``: (n, 4) uint32, a kind of ``RELATION_KINDS`` and three indexes into
    ``names``; ``terms``: (t,) uint64 of distinct terms;
    ``post_chunks`` (n + 1,) uint32 offsets into ``post_terms`` (indexes into ``terms``,
    uint32) and ``post_counts`` (uint16). ``name_keys``: (len(names),) uint64, the hash
    of each name's last part. ``generated``: the file says so of itself. ``skipped``
    says why there are no chunks.
    """

    skipped: str = ""
    lines: int = 0
    names: tuple[str, ...] = ()
    chunks: bytes = b""
    definitions: bytes = b""
    references: bytes = b""
    relations: bytes = b""
    terms: bytes = b""
    post_chunks: bytes = b""
    post_terms: bytes = b""
    post_counts: bytes = b""
    name_keys: bytes = b""
    generated: bool = False


_decoder = msgspec.msgpack.Decoder(Row)
_encoder = msgspec.msgpack.Encoder()


def encode_row(row: Row) -> bytes:
    """Serialise a row for the store."""
    return _encoder.encode(row)


def decode_row(data: bytes | memoryview) -> Row:
    """Read a stored row; raises msgspec.DecodeError or ValidationError on foreign bytes."""
    return _decoder.decode(data)


def pack(values: npt.ArrayLike, dtype: str) -> bytes:
    """Pack numbers as a little-endian array."""
    return np.asarray(values, dtype).tobytes()
