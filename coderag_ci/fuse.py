"""Weighted reciprocal rank fusion of ranked lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

Place = Callable[[int], Any]  # what orders docs of the same score


def fuse(
    rankings: Mapping[str, Sequence[int]], weights: Mapping[str, float], k: float, place: Place
) -> list[tuple[int, float]]:
    """Fuse rankings of docs: score(d) = Σ w · k / (k + rank(d)), ranks from 1.

    ``rankings`` maps a channel to its docs, best first; one whose weight is 0 is left out.
    Returns (doc, score), best first; ties by ``place``. Source: Cormack, Clarke and Buettcher,
    SIGIR 2009, times k, so that a first rank is worth about its weight whatever k is.
    """
    scores: dict[int, float] = {}
    for name, docs in rankings.items():
        weight = weights[name]
        if weight > 0:
            for rank, doc in enumerate(docs, 1):
                scores[doc] = scores.get(doc, 0.0) + gain(weight, k, rank)
    return sorted(scores.items(), key=lambda item: (-item[1], place(item[0])))


def gain(weight: float, k: float, rank: int) -> float:
    """Return what a rank, from 1, in a ranking of some weight adds to a score."""
    return weight * k / (k + rank)
