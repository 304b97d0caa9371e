"""Lines of blobs, read from git when they are shown or embedded, and their tokens."""

from __future__ import annotations

import re
from collections.abc import Iterable

from coderag_ci.gitrepo import GitRepo
from coderag_ci.view import View, read

_MOST_BLOBS = 2000
GRAM = 4  # tokens
TOKEN = re.compile(r"\w+|[^\w\s]")

Tokens = tuple[str, ...]


class Texts:
    """Decoded lines of blobs, read in batches and kept for the run."""

    def __init__(self, repo: GitRepo, view: View) -> None:
        self._repo = repo
        self._view = view
        self._lines: dict[str, list[str]] = {}

    def load(self, blobs: Iterable[str]) -> None:
        """Read blobs that are not yet here with one call to git."""
        wanted = [blob for blob in dict.fromkeys(blobs) if blob not in self._lines]
        if len(self._lines) > _MOST_BLOBS:
            self._lines.clear()
        for blob, _, data in read(self._repo, self._view, wanted):
            text = (data or b"").split(b"\n")
            if text[-1] == b"":
                text.pop()
            self._lines[blob] = [line.decode("utf-8", "replace") for line in text]

    def lines(self, blob: str) -> list[str]:
        """Return a blob's lines; they end at LF alone, as git counts them."""
        if blob not in self._lines:
            self.load([blob])
        return self._lines[blob]


def grams_of(lines: Iterable[str]) -> set[Tokens]:
    """Return the sequences of four tokens in some lines, each within a line."""
    found: set[Tokens] = set()
    for line in lines:
        tokens = TOKEN.findall(line)
        found.update(tuple(tokens[i : i + GRAM]) for i in range(len(tokens) - GRAM + 1))
    return found
