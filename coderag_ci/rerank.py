"""Orders the top candidates anew.

The new order is blended with the fused one, never put in its place: general
cross-encoders often make code retrieval worse when they decide alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from coderag_ci.channels import Search, terms_of
from coderag_ci.dense import passage
from coderag_ci.fuse import reciprocal_rank_fusion
from coderag_ci.job import Job
from coderag_ci.models import CrossEncoder, ModelUnavailable
from coderag_ci.parse.terms import parts, term_hash, words
from coderag_ci.queries import Query
from coderag_ci.text import Texts

_BLEND_K = 10
_RESERVE = 1.5  # seconds that the stages after this one need
_RESERVE_LOADING = 4.0  # and with them the loading of a model
_TEST_AFFIX = re.compile(r"^tests?[_-]|[_.-]?(?:tests?|specs?)$|(?:Tests?|Spec|IT)$")


class Reranker(Protocol):
    """Scores candidates for a change; higher is better."""

    def scores(self, queries: Sequence[Query], docs: Sequence[int]) -> list[float]:
        """Return a score for each doc in order; for fewer where time ran out.

        Raises ModelUnavailable where there is none at all.
        """
        ...


class Heuristic:
    """Shared terms by idf and length, similar names, the same folder, a mirrored test."""

    def __init__(self, search: Search) -> None:
        self._search = search

    def scores(self, queries: Sequence[Query], docs: Sequence[int]) -> list[float]:
        """Score = coverage / best coverage + Jaccard of names + 0.2 same folder + 0.3 mirror."""
        index, bm25 = self._search.index, self._search.bm25
        coverage = np.zeros(len(index.lengths))
        changed = (line for query in queries for line in (*query.added, *query.deleted))
        for term in sorted(set(terms_of(list(changed)))):
            found, _ = index.term(term_hash(term))
            coverage[found] += bm25.idf_of(term_hash(term))
        density = coverage / np.sqrt(index.lengths + 30)
        best = max((float(density[doc]) for doc in docs), default=0.0) or 1.0
        names = [_subtokens(name) for query in queries for name in query.names]
        folders = {query.path.rpartition("/")[0] for query in queries}
        stems = {_stem(query.path) for query in queries}
        result = []
        for number in docs:
            doc = index.doc(number)
            own = _subtokens(doc.symbol)
            similar = max((len(own & n) / len(own | n) for n in names if own | n), default=0.0)
            result.append(
                float(density[number]) / best
                + similar
                + 0.2 * (doc.path.rpartition("/")[0] in folders)
                + 0.3 * (_stem(doc.path) in stems)
            )
        return result


def blend(
    docs: Sequence[int], scores: Sequence[float], weight: float, search: Search
) -> list[tuple[int, float]]:
    """Fuse the given order with the order by score (RRF, k = 10); returns (doc, score)."""
    by_score = sorted(range(len(docs)), key=lambda i: (-scores[i], i))
    return reciprocal_rank_fusion(
        [(1.0, docs), (weight, [docs[i] for i in by_score])], _BLEND_K, search.place
    )


def _subtokens(symbol: str) -> set[str]:
    last = symbol.rpartition(".")[2]
    return {part for word in words(last) for part in parts(word)}


def _stem(path: str) -> str:
    name = path.rpartition("/")[2]
    dot = name.find(".", 1)
    return _TEST_AFFIX.sub("", name[:dot] if dot > 0 else name).lower()


def rerank(
    job: Job,
    asked: Sequence[Query],
    fused: list[tuple[int, float]],
    prepared: Search,
    texts: Texts,
    degradations: list[str],
    counts: dict[str, int | str],
) -> list[tuple[int, dict[str, float]]]:
    """Order the first candidates anew, blended with the fused order."""
    config = job.config
    depth = min(config.rerank, len(fused))
    model = config.rerank_model
    if not depth or model == "none" or config.rerank_weight == 0:
        return [(doc, {"fused": score, "final": score}) for doc, score in fused]
    docs = [doc for doc, _ in fused[:depth]]
    scores: list[float] = []
    for reranker in _ladder(job, prepared, texts):
        try:
            scores = reranker.scores(asked, docs)
            break
        except ModelUnavailable as error:
            degradations.append(f"no cross-encoder: {error}; the heuristic ranked")
    if len(scores) < len(docs):
        degradations.append(f"deadline: reranked {len(scores)} of {len(docs)} candidates")
        docs = docs[: len(scores)]
    counts["depth"] = len(docs)
    of_fused = dict(fused)
    of_doc = dict(zip(docs, scores, strict=True))
    top = [
        (doc, {"fused": of_fused[doc], "rerank": of_doc[doc], "final": score})
        for doc, score in blend(docs, scores, config.rerank_weight, prepared)
    ]
    rest = [(doc, {"fused": s, "final": 0.0}) for doc, s in fused if doc not in of_doc]
    return [*top, *rest]


def _ladder(job: Job, prepared: Search, texts: Texts) -> list[Reranker]:
    """Return what to rank with, best first: each step stands in for the one before."""
    heuristic = Heuristic(prepared)
    if job.config.rerank_model == "heuristic":
        return [heuristic]
    return [CrossEncoded(job, prepared, texts), heuristic]


class CrossEncoded:
    """The cross-encoder's score of the most changed unit's query with each passage."""

    def __init__(self, job: Job, prepared: Search, texts: Texts) -> None:
        self._job = job
        self._index = prepared.index
        self._texts = texts

    def scores(self, queries: Sequence[Query], docs: Sequence[int]) -> list[float]:
        """Score docs in order until the deadline's reserve."""
        deadline = self._job.deadline
        if deadline.within(_RESERVE_LOADING):
            raise ModelUnavailable("deadline")
        encoder = CrossEncoder(self._job.config.rerank_model)
        self._texts.load(self._index.doc(doc).blob for doc in docs)
        query = queries[0].text() if queries else self._job.change.title
        found: list[float] = []
        for doc in docs:
            if deadline.within(_RESERVE):
                break
            found += encoder.score(query, [passage(self._index.doc(doc), self._texts)])
        if not found:
            raise ModelUnavailable("deadline")
        return found
