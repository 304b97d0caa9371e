"""BM25 over the view's postings: rank_bm25's Okapi model, computed sparsely in numpy."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
from rank_bm25 import BM25Okapi

from coderag_ci.config import Bm25
from coderag_ci.index import Index
from coderag_ci.segment import Array

_REMEMBERED_TERMS = 512  # a common term's postings take a megabyte in a large repository


class PostingsBM25(BM25Okapi):  # type: ignore[misc]  # rank_bm25 is untyped
    """``BM25Okapi`` with the library's parameters and idf, over postings.

    idf(t) = ln((N − n + 0.5) / (n + 0.5)) (Robertson et al., TREC-3, 1994). Where that is
    not above 0, the library takes ``epsilon`` times the mean idf of the corpus, which on a
    few documents is itself negative, so that a match scores like no match. Here the floor
    is ``epsilon`` · ln(1 + 2/N): positive, and below every positive idf that N documents
    can give, so the order of terms by rarity holds. Scores equal the library's wherever
    every idf is above 0.
    """

    def __init__(self, index: Index, parameters: Bm25) -> None:
        self.index = index
        self.k1, self.b, self.epsilon = parameters.k1, parameters.b, parameters.epsilon
        self.corpus_size = index.size
        self.avgdl = index.average_length
        length = index.lengths / self.avgdl if self.avgdl else index.lengths
        self._term = functools.lru_cache(maxsize=_REMEMBERED_TERMS)(self._look_up)
        self._norm: Array = self.k1 * (1 - self.b + self.b * length)

    def idf_of(self, term: int) -> float:
        """Return the idf of a term, floored; 0 for a term that the view does not have."""
        return self._term(term)[2]

    def get_scores(self, query: Sequence[int]) -> Array:
        """Score every doc for a query of term hashes (repetitions count), shape (n_docs,)."""
        scores = np.zeros(len(self.index.lengths))
        for term, count in Counter(query).items():
            docs, gains, idf = self._term(term)
            scores[docs] += count * idf * gains
        return scores

    def term_score(self, term: int, doc: int) -> float:
        """Return what one occurrence of a term in the query gives one doc."""
        docs, gains, idf = self._term(term)
        at = int(docs.searchsorted(doc))
        return float(idf * gains[at]) if at < len(docs) and docs[at] == doc else 0.0

    def ideal_score(self, query: Sequence[int]) -> float:
        """Return what a doc with just the query's terms, as often, would score."""
        counts = Counter(query)
        norm = self.k1 * (1 - self.b + self.b * len(query) / (self.avgdl or 1.0))
        return sum(
            n * self.idf_of(term) * n * (self.k1 + 1) / (n + norm) for term, n in counts.items()
        )

    def _look_up(self, term: int) -> tuple[Array, Array, float]:
        """Return (docs, tf part of the score, idf) of a term."""
        docs, counts = self.index.term(term)
        tf = counts.astype(np.float64)
        n, total = len(docs), self.corpus_size
        if not n:
            return docs, tf, 0.0
        idf = math.log(total - n + 0.5) - math.log(n + 0.5)
        if idf <= 0:
            idf = self.epsilon * math.log(1 + 2 / total)
        return docs, tf * (self.k1 + 1) / (tf + self._norm[docs]), idf
