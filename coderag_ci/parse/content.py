"""What the bytes of a file say of it before it is parsed."""

from __future__ import annotations

MAX_BYTES = 1 << 20
_MAX_LINE = 20_000
_PROBE = 8_000


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
