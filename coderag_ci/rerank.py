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

    name: str

    def scores(self, queries: Sequence[Query], docs: Sequence[int]) -> list[float]:
        """Return a score for each doc, in order."""
        ...


class Heuristic:
    """Shared terms by idf and length, similar names, the same folder, a mirrored test."""

    name = "heuristic"

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
    scores: list[float] | None = None
    if model != "heuristic":
        try:
            scores, docs = _cross_encode(job, asked, docs, prepared, texts, degradations)
        except ModelUnavailable as error:
            degradations.append(f"no cross-encoder: {error}; the heuristic ranked")
    if scores is None:
        scores = Heuristic(prepared).scores(asked, docs)
    counts["depth"] = len(docs)
    of_fused = dict(fused)
    of_doc = dict(zip(docs, scores, strict=True))
    top = [
        (doc, {"fused": of_fused[doc], "rerank": of_doc[doc], "final": score})
        for doc, score in blend(docs, scores, config.rerank_weight, prepared)
    ]
    rest = [(doc, {"fused": s, "final": 0.0}) for doc, s in fused if doc not in of_doc]
    return [*top, *rest]


def _cross_encode(
    job: Job,
    asked: Sequence[Query],
    docs: list[int],
    prepared: Search,
    texts: Texts,
    degradations: list[str],
) -> tuple[list[float], list[int]]:
    """Score docs with the cross-encoder, in fused order, until the deadline's reserve."""
    if job.deadline.within(_RESERVE_LOADING):
        raise ModelUnavailable("deadline")
    encoder = CrossEncoder(job.config.rerank_model)
    texts.load(prepared.index.doc(doc).blob for doc in docs)
    query = asked[0].text() if asked else job.change.title
    scores: list[float] = []
    for doc in docs:
        if job.deadline.within(_RESERVE):
            break
        scores += encoder.score(query, [passage(prepared.index.doc(doc), texts)])
    if not scores:
        raise ModelUnavailable("deadline")
    if len(scores) < len(docs):
        degradations.append(f"deadline: reranked {len(scores)} of {len(docs)} candidates")
    return scores, docs[: len(scores)]
