"""Text to terms: identifiers whole and in their parts, hashed to 64 bits.

``parseHTTPRequest_v2`` gives ``parsehttprequest_v2``, ``parse``, ``http``, ``request``
and ``v2``. Text is normalised to NFKC and lower-cased; scripts written without spaces
give character bigrams. Single letters and digits carry nothing and are dropped.
"""

from __future__ import annotations

import functools
import hashlib
import re
import unicodedata
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_WORD = re.compile(rf"[{_UNSPACED}]+|[^\W{_UNSPACED}]+(?:-[^\W{_UNSPACED}]+)*")
_ASCII_WORD = re.compile(r"[A-Za-z0-9_]+(?:-[A-Za-z0-9_]+)*")
_PART = re.compile(
    r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+\d*|[A-Z]+\d*|\d+|[^\W\d_A-Za-z]+[a-z]*|[^\W_]"
)
_IS_UNSPACED = re.compile(rf"[{_UNSPACED}]")
_LONGEST_WORD = 120


def words(text: str) -> list[str]:
    """List the raw words of a text in order, before they are split and normalised."""
    if text.isascii():
        return _ASCII_WORD.findall(text)
    return _WORD.findall(unicodedata.normalize("NFKC", text))


@functools.lru_cache(maxsize=1 << 17)
def parts(word: str) -> tuple[str, ...]:
    """Split one raw word into its terms, the whole first, without repetition."""
    if _IS_UNSPACED.match(word):
        return tuple(dict.fromkeys(word[i : i + 2] for i in range(max(1, len(word) - 1))))
    if len(word) > _LONGEST_WORD:  # base64, hashes: no one searches for them
        return ()
    whole = word.strip("_-").lower()
    split = (part.lower() for part in _PART.findall(word))
    return tuple(term for term in dict.fromkeys([whole, *split]) if len(term) > 1)


@functools.lru_cache(maxsize=1 << 17)
def term_hash(term: str) -> int:
    """64-bit hash of a term, the same on every machine and in every run."""
    digest = hashlib.blake2b(term.encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def name_hash(name: str) -> int:
    """64-bit hash of the last part of a qualified name (case kept), apart from all terms."""
    return term_hash("=" + name[name.rfind(".") + 1 :])


def text_terms(text: str) -> list[int]:
    """Hashes of all terms of a text, repetitions kept."""
    return [term_hash(term) for word in words(text) for term in parts(word)]


class _Vocabulary(dict[str, int]):
    """Numbers raw words as they come, and remembers the terms of those not yet taken."""

    def __init__(self) -> None:
        super().__init__()
        self.new_terms: list[int] = []
        self.new_lengths: list[int] = []

    def __missing__(self, word: str) -> int:
        hashes = [term_hash(term) for term in parts(word)]
        self.new_terms += hashes
        self.new_lengths.append(len(hashes))
        self[word] = number = len(self)
        return number


class TermCounter:
    """Counts the terms of the chunks of one file after another."""

    _MOST_WORDS = 200_000  # then the vocabulary starts anew, so that memory stays bounded

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self._vocabulary = _Vocabulary()
        self._terms = _Growing(np.uint64)
        self._ends = _Growing(np.int64)  # of each word's terms; a leading 0 makes them starts too
        self._ends.extend(np.zeros(1, np.int64))

    def _take_new_words(self) -> None:
        vocabulary = self._vocabulary
        if vocabulary.new_lengths:
            ends = np.cumsum(vocabulary.new_lengths) + len(self._terms.values)
            self._terms.extend(np.array(vocabulary.new_terms, np.uint64))
            self._ends.extend(ends)
            vocabulary.new_terms, vocabulary.new_lengths = [], []

    def count(
        self, texts: Iterable[str]
    ) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Count terms per text.

        Returns ``keys`` (n,) uint64 terms, ``owners`` (n,) the index of the text and
        ``counts`` (n,), ordered by owner, then by term.
        """
        if len(self._vocabulary) > self._MOST_WORDS:
            self._reset()
        vocabulary = self._vocabulary
        flat: list[int] = []
        lengths: list[int] = []
        for text in texts:
            before = len(flat)
            flat += map(vocabulary.__getitem__, words(text))
            lengths.append(len(flat) - before)
        self._take_new_words()
        numbers = np.array(flat, np.int64)
        owners = np.repeat(np.arange(len(lengths)), lengths)
        terms, owner_of_term = self._expand(numbers, owners)
        order = np.lexsort((terms, owner_of_term))
        terms, owner_of_term = terms[order], owner_of_term[order]
        if not len(terms):
            return terms, owner_of_term, np.zeros(0, np.int64)
        new = np.ones(len(terms), bool)
        new[1:] = (terms[1:] != terms[:-1]) | (owner_of_term[1:] != owner_of_term[:-1])
        first = np.flatnonzero(new)
        counts = np.diff(np.append(first, len(terms)))
        return terms[first], owner_of_term[first], counts

    def _expand(
        self, numbers: npt.NDArray[np.int64], owners: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
        """Replace each word by its terms."""
        starts = self._ends.values[numbers]
        lengths = self._ends.values[numbers + 1] - starts
        total = int(lengths.sum())
        shift = np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
        return self._terms.values[np.arange(total) + shift], np.repeat(owners, lengths)


class _Growing:
    """An array that is appended to without being copied each time."""

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self._space = np.zeros(1 << 12, dtype)
        self._used = 0

    @property
    def values(self) -> npt.NDArray[Any]:
        """What has been appended so far."""
        return self._space[: self._used]

    def extend(self, values: npt.NDArray[Any]) -> None:
        """Append values, doubling the space where they do not fit."""
        end = self._used + len(values)
        if end > len(self._space):
            space = np.zeros(max(end, 2 * len(self._space)), self._space.dtype)
            space[: self._used] = self.values
            self._space = space
        self._space[self._used : end] = values
        self._used = end
