"""Line ranges small enough to be shown: cut at blank lines and shallow statements."""

from __future__ import annotations

from collections.abc import Callable, Sequence

LIMIT = 1500  # bytes, by default; about 400 tokens, what an embedding model reads at once
BYTES_A_LINE = 25  # a chunk has at most limit / 25 lines, so that short lines make no long list


def split_range(
    lines: Sequence[bytes],
    start: int,
    end: int,
    is_border: Callable[[int], bool] | None = None,
    limit: int = LIMIT,
) -> list[tuple[int, int]]:
    """Split 1-based lines ``start..end`` into ranges of at most about ``limit`` bytes.

    Each cut falls in the second half of the part being filled, where the
    indentation is least, after a blank line if there is one, and where ``is_border``
    (does a statement begin on this line?) agrees. A single longer line stays whole.
    """
    most_lines = max(1, limit // BYTES_A_LINE)
    if end - start < most_lines and sum(map(len, lines[start - 1 : end])) < limit:
        whole = trim_blank(lines, start, end)
        return [whole] if whole else []
    ranges: list[tuple[int, int]] = []
    first = start
    size = 0
    row = start
    while row <= end:
        size += len(lines[row - 1]) + 1
        if (size > limit or row - first >= most_lines) and row > first:
            cut = _best_cut(lines, first, row, is_border)
            ranges.append((first, cut - 1))
            first = cut
            size = sum(len(line) + 1 for line in lines[first - 1 : row])
        row += 1
    ranges.append((first, end))
    return [trimmed for pair in ranges if (trimmed := trim_blank(lines, *pair))]


def trim_blank(lines: Sequence[bytes], start: int, end: int) -> tuple[int, int] | None:
    """Drop blank lines at both ends; None where nothing is left."""
    while start <= end and not lines[start - 1].strip():
        start += 1
    while end >= start and not lines[end - 1].strip():
        end -= 1
    return (start, end) if start <= end else None


def _best_cut(
    lines: Sequence[bytes], first: int, last: int, is_border: Callable[[int], bool] | None
) -> int:
    """Return the line in ``first+1..last`` at which the next part begins."""
    half = sum(len(line) + 1 for line in lines[first - 1 : last]) // 2
    size = 0
    ranked: list[tuple[int, int, int]] = []
    for row in range(first + 1, last + 1):
        size += len(lines[row - 2]) + 1
        line = lines[row - 1]
        text = line.lstrip()
        if size < half or not text or text[:1] in b"})]":
            continue
        after_blank = not lines[row - 2].strip()
        ranked.append((len(line) - len(text), not after_blank, -row))
    ranked.sort()
    for _, _, negative in ranked[:8]:
        if is_border is None or is_border(-negative):
            return -negative
    return -ranked[0][2] if ranked else last
