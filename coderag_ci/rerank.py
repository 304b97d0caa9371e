"""Orders the top candidates anew: by names and shared lines, and by a cross-encoder.

What these find is added to the fused score, never put in its place: general
cross-encoders often make code retrieval worse when they decide alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

from coderag_ci.channels import Search
from coderag_ci.dense import passage
from coderag_ci.job import Job, Scored
from coderag_ci.models import CrossEncoder, ModelUnavailable
from coderag_ci.parse.terms import parts, words
from coderag_ci.queries import Asked
from coderag_ci.text import Texts

_OVERLAP_DEPTH = 500  # candidates whose names and lines are compared
_NAMES_WEIGHT = 1.0
_GRAMS_WEIGHT = 0.1
_GRAM = 4  # tokens
_TOKEN = re.compile(r"\w+|[^\w\s]")
_RESERVE = 1.5  # seconds that the stages after this one need
_RESERVE_LOADING = 4.0  # and with them the loading of a model

_Gram = tuple[str, ...]


class Overlap:
    """Names like those of the changed units, and token sequences like those of changed lines."""

    def __init__(self, search: Search, texts: Texts) -> None:
        self._index = search.index
        self._texts = texts

    def terms(self, asked: Asked, docs: Sequence[int]) -> list[tuple[float, float]]:
        """Return (Jaccard of the names' parts, ln(1 + Σ idf of shared token 4-grams)) of each.

        4-grams stand within a line; their idf, ln(1 + (N − n + 0.5) / (n + 0.5)), is over
        the candidates.
        """
        names = [_subtokens(unit.symbol) for unit in asked.units if unit.symbol]
        wanted = _grams([*asked.deleted, *asked.added])
        self._texts.load(self._index.doc(doc).blob for doc in docs)
        shared = [self._shared(doc, wanted) for doc in docs]
        times = Counter(gram for grams in shared for gram in grams)
        total = len(docs)
        rarity = {g: float(np.log1p((total - n + 0.5) / (n + 0.5))) for g, n in times.items()}
        found = []
        for doc, grams in zip(docs, shared, strict=True):
            own = _subtokens(self._index.doc(doc).symbol)
            similar = max((len(own & n) / len(own | n) for n in names if own | n), default=0.0)
            same = float(np.log1p(sum(sorted(rarity[gram] for gram in grams))))
            found.append((similar, same))
        return found

    def _shared(self, number: int, wanted: set[_Gram]) -> set[_Gram]:
        doc = self._index.doc(number)
        return _grams(self._texts.lines(doc.blob)[doc.start - 1 : doc.end]) & wanted


def _grams(lines: Sequence[str]) -> set[_Gram]:
    found: set[_Gram] = set()
    for line in lines:
        tokens = _TOKEN.findall(line)
        found.update(tuple(tokens[i : i + _GRAM]) for i in range(len(tokens) - _GRAM + 1))
    return found


def _subtokens(symbol: str) -> set[str]:
    last = symbol.rpartition(".")[2]
    return {part for word in words(last) for part in parts(word)}


def rerank(
    job: Job,
    asked: Asked,
    fused: list[tuple[int, float]],
    prepared: Search,
    texts: Texts,
    degradations: list[str],
    counts: dict[str, int | str],
) -> list[Scored]:
    """Order the first candidates anew by what overlap and a cross-encoder add to their score."""
    config = job.config
    model = config.rerank_model
    if not config.rerank or model == "none" or not fused:
        return [(doc, {"fused": score, "final": score}) for doc, score in fused]
    docs = [doc for doc, _ in fused[:_OVERLAP_DEPTH]]
    overlap = {
        doc: _NAMES_WEIGHT * names + _GRAMS_WEIGHT * grams
        for doc, (names, grams) in zip(
            docs, Overlap(prepared, texts).terms(asked, docs), strict=True
        )
    }
    hits: list[Scored] = [
        (
            doc,
            {
                "fused": score,
                "overlap": overlap.get(doc, 0.0),
                "final": score + overlap.get(doc, 0.0),
            },
        )
        for doc, score in fused
    ]
    hits = _ordered(hits, prepared)
    counts["depth"] = len(docs)
    if model == "heuristic":
        return hits
    return _with_cross_encoder(job, asked, hits, prepared, texts, degradations, counts)


def _ordered(hits: Sequence[Scored], prepared: Search) -> list[Scored]:
    return sorted(hits, key=lambda hit: (-hit[1]["final"], *prepared.place(hit[0])))


def _with_cross_encoder(
    job: Job,
    asked: Asked,
    hits: list[Scored],
    prepared: Search,
    texts: Texts,
    degradations: list[str],
    counts: dict[str, int | str],
) -> list[Scored]:
    """Add the cross-encoder's order of the first hits as one more ranking of the fusion."""
    config = job.config
    docs = [doc for doc, _ in hits[: config.rerank]]
    try:
        scores = CrossEncoded(job, prepared, texts).scores(asked, docs)
    except ModelUnavailable as error:
        degradations.append(f"no cross-encoder: {error}; the heuristic ranked")
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
    """The cross-encoder's score of the most changed unit's query with each passage."""

    def __init__(self, job: Job, prepared: Search, texts: Texts) -> None:
        self._job = job
        self._index = prepared.index
        self._texts = texts

    def scores(self, asked: Asked, docs: Sequence[int]) -> list[float]:
        """Score docs in order until the deadline's reserve."""
        deadline = self._job.deadline
        if deadline.within(_RESERVE_LOADING):
            raise ModelUnavailable("deadline")
        encoder = CrossEncoder(self._job.config.rerank_model)
        self._texts.load(self._index.doc(doc).blob for doc in docs)
        query = asked.units[0].text() if asked.units else asked.title
        found: list[float] = []
        for doc in docs:
            if deadline.within(_RESERVE):
                break
            found += encoder.score(query, [passage(self._index.doc(doc), self._texts)])
        if not found:
            raise ModelUnavailable("deadline")
        return found
