"""The recall stage: every channel that is on, for every query, and the floor under them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from coderag_ci.bm25 import PostingsBM25
from coderag_ci.channels import CHANNELS, NAMED, Ranked, Search
from coderag_ci.config import CHANNEL_NAMES, Config
from coderag_ci.dense import CANDIDATES, Dense
from coderag_ci.fuse import fuse
from coderag_ci.gitrepo import GitRepo
from coderag_ci.index import Index
from coderag_ci.job import Found, Job
from coderag_ci.models import Embedder, ModelUnavailable
from coderag_ci.progress import Progress
from coderag_ci.queries import Query
from coderag_ci.store import Store
from coderag_ci.text import Texts
from coderag_ci.view import View

RESERVE = 4.0  # seconds that the stages after this one need
_MOST_EMBEDDED_QUERIES = 8  # the most changed units; each costs a run of the model

Rankings = Sequence[Mapping[str, Ranked]]  # a query: channel to what it found


def weights_of(config: Config) -> dict[str, float]:
    """Return the weight of each channel by name."""
    return {name: getattr(config.weights, name) for name in CHANNEL_NAMES}


def fused(ranked: Rankings, config: Config, prepared: Search) -> list[tuple[int, float]]:
    """Fuse what all channels found for all queries; returns (doc, score), best first."""
    orders = [{name: one.docs for name, one in per.items()} for per in ranked]
    return fuse(orders, weights_of(config), config.rrf_k, prepared.place)


def recall(
    job: Job,
    asked: Sequence[Query],
    prepared: Search,
    kept: Store,
    texts: Texts,
    degradations: list[str],
    found: Found,
) -> list[dict[str, Ranked]]:
    """Run each channel that is on, for each query."""
    weights = weights_of(job.config)
    ranked = [
        {name: run(prepared, query) for name, run in CHANNELS.items() if weights[name] > 0}
        for query in asked
    ]
    if weights["dense"] > 0 and asked and job.config.embedding_model != "none":
        try:
            _add_dense(job, asked, ranked, prepared, kept, texts, found)
        except ModelUnavailable as error:
            for per in ranked:
                per.pop("dense", None)
            degradations.append(f"no dense channel: {error}")
    return ranked


def _add_dense(
    job: Job,
    asked: Sequence[Query],
    ranked: list[dict[str, Ranked]],
    prepared: Search,
    kept: Store,
    texts: Texts,
    found: Found,
) -> None:
    """Rank by meaning, and note in the index's facts what was searched with which model."""

    def expired() -> bool:
        return job.deadline.within(RESERVE)

    if expired():
        raise ModelUnavailable("deadline")
    config = job.config
    embedder = Embedder(config.embedding_model)
    dense = Dense(prepared, kept, texts, embedder, (config.query_prefix, config.passage_prefix))
    candidates: list[int] = []
    if not dense.load_whole():
        candidates = [d for d, _ in fused(ranked, config, prepared)[:CANDIDATES]]
        with job.progress.task("embedding", len(candidates) > 0) as advance:
            dense.fill(candidates, advance, expired)
    for query, per in zip(asked[:_MOST_EMBEDDED_QUERIES], ranked, strict=False):
        if expired():
            raise ModelUnavailable("deadline")
        per["dense"] = dense.rank(query, candidates)
    whole = dense.whole or len(candidates) == int(prepared.allowed.sum())
    searched = "the whole view" if whole else f"the first {len(candidates)} candidates"
    found.index = msgspec.structs.replace(
        found.index, dense=f"{searched}, model {embedder.digest[:12]}"
    )


def embed_all(
    repo: GitRepo,
    head: View,
    index: Index,
    kept: Store,
    config: Config,
    progress: Progress,
) -> int:
    """Give every chunk that may be evidence its vector; returns how many were made.

    Raises ModelUnavailable.
    """
    allowed = index.alive & ~index.hidden()
    prepared = Search(index, PostingsBM25(index, config.bm25), allowed, config.recall)
    embedder = Embedder(config.embedding_model)
    prefixes = (config.query_prefix, config.passage_prefix)
    dense = Dense(prepared, kept, Texts(repo, head), embedder, prefixes)
    docs = np.flatnonzero(allowed).tolist()
    with progress.task("embedding", worth=True) as advance:
        dense.fill(docs, advance)
    return dense.embedded


def above_floor(
    hits: Sequence[tuple[int, dict[str, float]]], ranked: Rankings, floor: float
) -> list[tuple[int, dict[str, float]]]:
    """Keep hits linked by a name or by meaning, and those that share enough of some unit's diff.

    Enough: ``floor`` of the BM25 score that the diff's own words would have.
    """
    kept: set[int] = set()
    for per in ranked:
        for name, found in per.items():
            if name in NAMED or name == "dense":
                kept.update(found.docs)
            elif found.ideal > 0:
                least = floor * found.ideal
                kept.update(d for d, s in zip(found.docs, found.scores, strict=True) if s >= least)
    return [hit for hit in hits if hit[0] in kept]
