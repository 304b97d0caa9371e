"""Weighted reciprocal rank fusion, per query and then over queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

Place = Callable[[int], tuple[str, int]]


def reciprocal_rank_fusion(
    rankings: Sequence[tuple[float, Sequence[int]]], k: float, place: Place
) -> list[tuple[int, float]]:
    """Fuse rankings of docs: score(d) = Σ w / (k + rank(d)), ranks from 1.

    ``rankings`` holds (weight, docs best first). Returns (doc, score), best first; ties
    by ``place``. Source: Cormack, Clarke and Buettcher, SIGIR 2009.
    """
    scores: dict[int, float] = {}
    for weight, docs in rankings:
        for rank, doc in enumerate(docs, 1):
            scores[doc] = scores.get(doc, 0.0) + weight / (k + rank)
    return sorted(scores.items(), key=lambda item: (-item[1], *place(item[0])))


def fuse(
    per_query: Sequence[Mapping[str, Sequence[int]]],
    weights: Mapping[str, float],
    k: float,
    place: Place,
) -> list[tuple[int, float]]:
    """Fuse each query's channels, then add up what each query gives a doc.

    ``per_query`` maps channel to docs. A channel whose weight is 0 is left out.
    """
    return reciprocal_rank_fusion(
        [
            (weights[channel], docs)
            for channels in per_query
            for channel, docs in channels.items()
            if weights[channel] > 0
        ],
        k,
        place,
    )
