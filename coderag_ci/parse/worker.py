"""A parser in a process of its own: frames in on stdin, rows out on stdout.

A frame is a 4-byte little-endian length and that many bytes. A request is msgpack of
(language, content, chunk size); the answer is the encoded row. The process ends when stdin does.
"""

from __future__ import annotations

import gc
import sys
from typing import BinaryIO

import msgspec


def read_frame(stream: BinaryIO) -> bytes | None:
    """Read one frame; None at the end of the stream or where it breaks off."""
    head = stream.read(4)
    if len(head) < 4:
        return None
    size = int.from_bytes(head, "little")
    data = stream.read(size)
    return data if len(data) == size else None


def write_frame(stream: BinaryIO, data: bytes) -> None:
    """Write one frame and flush it."""
    stream.write(len(data).to_bytes(4, "little") + data)
    stream.flush()


def main() -> None:
    """Serve until stdin ends."""
    from coderag_ci.parse.parser import parse
    from coderag_ci.parse.row import Row, encode_row

    gc.disable()  # a parse makes a million short-lived tuples and no cycles
    decoder = msgspec.msgpack.Decoder(tuple[str, bytes, int])
    sys.setrecursionlimit(10_000)
    while (frame := read_frame(sys.stdin.buffer)) is not None:
        language, data, limit = decoder.decode(frame)
        try:
            row = parse(data, language, limit)
        except Exception as error:
            row = Row(skipped=f"parser failed: {type(error).__name__}")
        write_frame(sys.stdout.buffer, encode_row(row))


if __name__ == "__main__":
    main()
