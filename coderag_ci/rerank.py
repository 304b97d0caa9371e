"""Orders the candidates anew: by the formula or the fitted ranker, and by a cross-encoder.

What a cross-encoder finds is added to the score, never put in its place: general
cross-encoders often make code retrieval worse when they decide alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from coderag_ci import features, ranker
from coderag_ci.channels import Ranked, Search
from coderag_ci.config import weights_of
from coderag_ci.deadline import MODEL, RERANK
from coderag_ci.dense import passage
from coderag_ci.job import Job, Scored
from coderag_ci.models import CrossEncoder, ModelUnavailable
from coderag_ci.overlap import Overlap
from coderag_ci.queries import Asked
from coderag_ci.text import Texts

_OVERLAP_DEPTH = 500  # candidates whose names and lines are compared


def rerank(
    job: Job,
    asked: Asked,
    ranked: Mapping[str, Ranked],
    fused: list[tuple[int, float]],
    prepared: Search,
    texts: Texts,
    degradations: list[str],
    counts: dict[str, int],
) -> list[Scored]:
    """Order the candidates anew: by the formula or the fitted ranker, and by a cross-encoder."""
    config = job.config
    model = config.rerank_model
    if not config.rerank or model == "none" or not fused:
        return _as_fused(fused)
    if job.deadline.within(RERANK):
        degradations.append("not reranked: deadline")
        return _as_fused(fused)
    if model == "learned":
        try:
            return _by_ranker(job, asked, ranked, fused, prepared, texts, counts)
        except ranker.RankerUnavailableError as error:
            degradations.append(f"no fitted ranker: {error}; the formula ranked")
    hits = _by_formula(asked, fused, prepared, texts, counts)
    if model in ("heuristic", "learned"):
        return hits
    return _with_cross_encoder(job, asked, hits, prepared, texts, degradations, counts)


def _as_fused(fused: Sequence[tuple[int, float]]) -> list[Scored]:
    return [(doc, {"fused": score, "final": score}) for doc, score in fused]


def _by_formula(
    asked: Asked,
    fused: Sequence[tuple[int, float]],
    prepared: Search,
    texts: Texts,
    counts: dict[str, int],
) -> list[Scored]:
    """Add to the fused score of the first candidates what their names and lines share."""
    docs = [doc for doc, _ in fused[:_OVERLAP_DEPTH]]
    counts["depth"] = len(docs)
    shared = Overlap(prepared, texts).terms(asked, docs)
    gain = {doc: one.gain() for doc, one in zip(docs, shared, strict=True)}
    found: list[Scored] = []
    for doc, score in fused:
        more = gain.get(doc, 0.0)
        found.append((doc, {"fused": score, "overlap": more, "final": score + more}))
    return _ordered(found, prepared)


def _by_ranker(
    job: Job,
    asked: Asked,
    ranked: Mapping[str, Ranked],
    fused: Sequence[tuple[int, float]],
    prepared: Search,
    texts: Texts,
    counts: dict[str, int],
) -> list[Scored]:
    """Order the first candidates of each channel by the fitted ranker; the others follow."""
    fitted = ranker.load()
    docs = features.candidates(prepared, ranked)
    counts["depth"] = len(docs)
    shared = dict(zip(docs, Overlap(prepared, texts).terms(asked, docs), strict=True))
    known = features.matrix(prepared, asked, ranked, shared, weights_of(job.config), docs)
    learned = dict(zip(docs, fitted.scores(known).tolist(), strict=True))
    lowest = min(learned.values(), default=0.0)
    found: list[Scored] = []
    for doc, score in fused:
        scores = {"fused": score, "final": lowest - 1 / (1 + score)}
        if doc in learned:
            scores = {"fused": score, "overlap": shared[doc].gain(), "final": learned[doc]}
        found.append((doc, scores))
    prepared.features.update(zip(docs, known, strict=True))
    return _ordered(found, prepared)


def _ordered(hits: Sequence[Scored], prepared: Search) -> list[Scored]:
    return sorted(hits, key=lambda hit: (-hit[1]["final"], prepared.place(hit[0])))


def _with_cross_encoder(
    job: Job,
    asked: Asked,
    hits: list[Scored],
    prepared: Search,
    texts: Texts,
    degradations: list[str],
    counts: dict[str, int],
) -> list[Scored]:
    """Add the cross-encoder's order of the first hits as one more ranking of the fusion."""
    config = job.config
    docs = [doc for doc, _ in hits[: config.rerank]]
    try:
        scores = CrossEncoded(job, prepared, texts).scores(asked, docs)
    except ModelUnavailable as error:
        degradations.append(f"no cross-encoder: {error}; ranked without it")
        return hits
    if len(scores) < len(docs):
        degradations.append(f"deadline: reranked {len(scores)} of {len(docs)} candidates")
    counts["depth"] = len(scores)
    order = sorted(range(len(scores)), key=lambda i: (-scores[i], i))
    k = config.rrf_k
    gain = {docs[i]: config.rerank_weight * k / (k + rank) for rank, i in enumerate(order, 1)}
    raw = dict(zip(docs, scores, strict=False))
    found = [
        (doc, {**had, "rerank": raw[doc], "final": had["final"] + gain[doc]} if doc in raw else had)
        for doc, had in hits
    ]
    return _ordered(found, prepared)


class CrossEncoded:
    """The cross-encoder's score of the change's query with each passage."""

    def __init__(self, job: Job, prepared: Search, texts: Texts) -> None:
        self._job = job
        self._index = prepared.index
        self._texts = texts

    def scores(self, asked: Asked, docs: Sequence[int]) -> list[float]:
        """Score docs in order until the deadline's reserve."""
        deadline = self._job.deadline
        if deadline.within(MODEL):
            raise ModelUnavailable("deadline")
        encoder = CrossEncoder(self._job.config.rerank_model, deadline)
        self._texts.load(self._index.doc(doc).blob for doc in docs)
        query = asked.text
        found: list[float] = []
        for doc in docs:
            if deadline.within(RERANK):
                break
            found += encoder.score(query, [passage(self._index.doc(doc), self._texts)])
        if not found:
            raise ModelUnavailable("deadline")
        return found
