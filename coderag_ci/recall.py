"""The recall stage: every channel that is on, and the floor under them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from coderag_ci import deadline, history
from coderag_ci.bm25 import PostingsBM25
from coderag_ci.channels import CHANNELS, LEXICAL, Ranked, Search
from coderag_ci.config import Config, weights_of
from coderag_ci.dense import CANDIDATES, Dense
from coderag_ci.fuse import fuse
from coderag_ci.gitrepo import GitRepo
from coderag_ci.index import Index
from coderag_ci.job import Found, Job
from coderag_ci.models import Embedder, ModelUnavailable
from coderag_ci.progress import Progress
from coderag_ci.queries import Asked
from coderag_ci.store import Store
from coderag_ci.text import Texts
from coderag_ci.view import View

MEASURED = ("subject", "diff")  # channels by words whose score can lift a hit over the floor


def fused(
    ranked: Mapping[str, Ranked], config: Config, prepared: Search
) -> list[tuple[int, float]]:
    """Fuse what all channels found; returns (doc, score), best first."""
    orders = {name: one.docs for name, one in ranked.items()}
    return fuse(orders, weights_of(config), config.rrf_k, prepared.place)


def recall(
    job: Job,
    asked: Asked,
    prepared: Search,
    kept: Store,
    texts: Texts,
    degradations: list[str],
    found: Found,
) -> dict[str, Ranked]:
    """Run each channel that is on; where no time is left to follow names, those of words."""
    weights = weights_of(job.config)
    if not asked.units:
        return {}
    if job.deadline.within(deadline.LINKS):
        degradations.append("words alone were searched: deadline")
        return {name: CHANNELS[name](prepared, asked) for name in LEXICAL if weights[name] > 0}
    if weights["co-changed-lines"] > 0 and prepared.past.recent:
        _read_earlier_lines(job, asked, prepared, texts)
    ranked = {name: run(prepared, asked) for name, run in CHANNELS.items() if weights[name] > 0}
    if weights["dense"] > 0 and job.config.embedding_model != "none":
        try:
            ranked["dense"] = _dense(job, asked, ranked, prepared, kept, texts, found)
        except ModelUnavailable as error:
            degradations.append(f"no dense channel: {error}")
    return ranked


def _read_earlier_lines(job: Job, asked: Asked, prepared: Search, texts: Texts) -> None:
    """Let the search know where the lines that came with the changed units are now."""
    units = {path: set(_lines_of(path, asked, prepared.index, texts)) for path in asked.paths}
    recent = {path: units[path] for path in prepared.past.recent}
    with_them = history.lines_with(job.repo, prepared.past, recent)
    docs = {path: prepared.index.docs_of(path) for path in with_them if path not in units}
    blobs = {path: prepared.index.doc(some[0]).blob for path, some in docs.items() if some}
    texts.load(blobs.values())
    for path, blob in blobs.items():
        places: dict[str, list[int]] = {}
        for number, line in enumerate(texts.lines(blob), 1):
            if (stripped := line.strip()) in with_them[path]:
                places.setdefault(stripped, []).append(number)
        prepared.earlier[path] = places


def _lines_of(path: str, asked: Asked, index: Index, texts: Texts) -> list[str]:
    """Return the stripped lines of a path's changed units, before and after."""
    docs = index.docs_of(path)
    lines = texts.lines(index.doc(docs[0]).blob) if docs else []
    found: list[str] = []
    for unit in asked.units:
        if unit.path == path:
            found += unit.deleted
            if unit.lines[0]:
                found += lines[unit.lines[0] - 1 : unit.lines[1]]
    return [line.strip() for line in found]


def _dense(
    job: Job,
    asked: Asked,
    ranked: Mapping[str, Ranked],
    prepared: Search,
    kept: Store,
    texts: Texts,
    found: Found,
) -> Ranked:
    """Rank by meaning, and note in the index's facts what was searched with which model."""

    def expired() -> bool:
        return job.deadline.within(deadline.MODEL)

    if expired():
        raise ModelUnavailable("deadline")
    config = job.config
    embedder = Embedder(config.embedding_model, job.deadline)
    dense = Dense(prepared, kept, texts, embedder, (config.query_prefix, config.passage_prefix))
    candidates: list[int] = []
    if not dense.load_whole():
        candidates = [d for d, _ in fused(ranked, config, prepared)[:CANDIDATES]]
        with job.progress.task("embedding", len(candidates) > 0) as advance:
            dense.fill(candidates, advance, expired)
    if expired():
        raise ModelUnavailable("deadline")
    order = dense.rank(asked.text, candidates)
    whole = dense.whole or len(candidates) == int(prepared.allowed.sum())
    searched = "the whole view" if whole else f"the first {len(candidates)} candidates"
    found.index = msgspec.structs.replace(
        found.index, dense=f"{searched}, model {embedder.digest[:12]}"
    )
    return order


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
    hits: Sequence[tuple[int, dict[str, float]]], ranked: Mapping[str, Ranked], floor: float
) -> list[tuple[int, dict[str, float]]]:
    """Keep hits linked by a name, by history or by meaning, and those that share enough words.

    Enough: ``floor`` of the BM25 score that the diff's, or the title's, own words would have.
    """
    kept: set[int] = set()
    for name, found in ranked.items():
        if name not in LEXICAL:
            kept.update(found.docs)
        elif name in MEASURED:
            least = floor * found.ideal
            kept.update(d for d, s in zip(found.docs, found.scores, strict=True) if s >= least)
    return [hit for hit in hits if hit[0] in kept]
