"""From a diff and a view to evidence: index, queries, recall, fuse, rerank, assemble."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from coderag_ci import assemble, facts, queries, store, tokens, view
from coderag_ci import index as indexing
from coderag_ci.bm25 import PostingsBM25
from coderag_ci.channels import CHANNELS, NAMED, Ranked, Search, reason
from coderag_ci.config import CHANNEL_NAMES, Config
from coderag_ci.dense import CANDIDATES, Dense, passage
from coderag_ci.diff import Diff
from coderag_ci.fuse import fuse
from coderag_ci.gitrepo import GitRepo
from coderag_ci.job import Found, Job
from coderag_ci.models import CrossEncoder, Embedder, ModelUnavailable
from coderag_ci.pack import Channel, IndexInfo
from coderag_ci.parse.row import Row
from coderag_ci.pathrules import PathRules, Skipped
from coderag_ci.progress import Progress
from coderag_ci.queries import Query
from coderag_ci.rerank import Heuristic, blend
from coderag_ci.segment import Array
from coderag_ci.text import Texts
from coderag_ci.trace import Recorder
from coderag_ci.view import View
from coderag_ci.workers import FILE_SECONDS

# Seconds that the stages after each need; less than that is left: the step is not taken.
_RESERVE_INDEX = 3.0
_RESERVE_DENSE = 4.0
_RESERVE_RERANK = 1.5
_WORTH_A_BAR = 200
_MOST_OWN = 12
_MOST_EMBEDDED_QUERIES = 8  # the most changed units; each costs a run of the model
_TRACED = 1_000  # characters of a query that the trace keeps
_FACTS_SHARE = 0.15  # of the budget
_CANDIDATES_PER_PIECE = 3  # several candidates can be parts of one piece


def search(job: Job, diff: Diff, head: View, rules: PathRules, recorder: Recorder) -> Found:
    """Find and assemble the evidence of a change in its head view."""
    kept = store.Store(job.index_dir)
    try:
        found = _search(job, diff, head, rules, recorder, kept, Found(), [])
        if kept.rebuilt:  # rows were lost on the way: not all was searched
            found = _search(job, diff, head, rules, recorder, kept, Found(), [])
        found.notes = tuple(kept.notes)
        return found
    finally:
        kept.close()


def _search(
    job: Job,
    diff: Diff,
    head: View,
    rules: PathRules,
    recorder: Recorder,
    kept: store.Store,
    found: Found,
    degradations: list[str],
) -> Found:
    config = job.config
    count = tokens.counter(config.tokenizer)
    base = _base_view(job, diff, rules)
    with recorder.stage("index") as counts:
        index, rows = _index(job, head, base, kept, rules, found, degradations)
        counts.update(indexed=found.indexed, reused=found.reused, chunks=index.size)
    head_rows = indexing.rows_of(kept, [(f.path, f.new_blob) for f in diff.files], rows)
    base_rows = indexing.rows_of(kept, [(f.old_path, f.old_blob) for f in diff.files], rows)
    with recorder.stage("queries") as counts:
        asked, left_out = queries.build(diff, head_rows, base_rows, rules, job.change.title)
        counts["queries"] = len(asked)
        if left_out:
            found.skipped = [*found.skipped, Skipped("…", left_out)]
    texts = Texts(job.repo, head)
    with recorder.stage("facts") as counts:
        collected = facts.collect(diff, head_rows, base_rows, index, texts, rules)
        found.facts, found.used_facts = assemble.assemble_facts(
            collected, int(config.budget * _FACTS_SHARE), count
        )
        found.facts_more = len(collected) - len(found.facts)
        counts["facts"] = len(collected)
    own, allowed = _evidence_docs(index, diff)
    prepared = Search(index, PostingsBM25(index, config.bm25), allowed, config.recall)
    with recorder.stage("recall") as counts:
        ranked = _recall(job, asked, prepared, kept, texts, degradations, found)
        counts["candidates"] = len({d for per in ranked for r in per.values() for d in r.docs})
    with recorder.stage("fuse") as counts:
        weights = {name: getattr(config.weights, name) for name in CHANNEL_NAMES}
        orders = [{name: found_.docs for name, found_ in per.items()} for per in ranked]
        fused = fuse(orders, weights, config.rrf_k, prepared.place)
        counts["docs"] = len(fused)
    with recorder.stage("rerank") as counts:
        hits = _rerank(job, asked, fused, prepared, texts, degradations, counts)
    with recorder.stage("assemble") as counts:
        worth = above_floor(hits, ranked, config.floor)
        counts["below_floor"] = len(hits) - len(worth)
        shown = worth[: config.top_k * _CANDIDATES_PER_PIECE]
        described = [_hit(doc, scores, asked, ranked, prepared) for doc, scores in shown]
        mine = [_own_hit(index, doc, rank) for rank, doc in enumerate(own[:_MOST_OWN], 1)]
        _assemble(job.config, diff, described, mine, rules, count, texts, found)
        counts.update(evidence=len(found.evidence), dropped=len(found.dropped))
    found.degradations = degradations
    found.queries = [
        {"path": query.path, "unit": query.symbol, "text": query.text()[:_TRACED]}
        for query in asked
    ]
    return found


def _base_view(job: Job, diff: Diff, rules: PathRules) -> View:
    if not job.change.merge_base:
        return View(())
    old = [file.old_path for file in diff.files if file.status != "added"]
    return view.of_paths(job.repo, job.change.merge_base, old, rules)


def _index(
    job: Job,
    head: View,
    base: View,
    kept: store.Store,
    rules: PathRules,
    found: Found,
    degradations: list[str],
) -> tuple[indexing.Index, dict[store.RowKey, Row]]:
    """Bring the store up to date with both views and open the head view."""
    both = View(tuple(dict.fromkeys([*head.entries, *base.entries])), local=head.local)
    with job.progress.task("indexing", len(both.entries) > _WORTH_A_BAR) as advance:
        update, fresh = indexing.update(
            job.repo,
            both,
            kept,
            advance,
            file_seconds=max(1.0, min(FILE_SECONDS, job.deadline.left() - _RESERVE_INDEX)),
            expired=lambda: job.deadline.within(_RESERVE_INDEX),
        )
    opened = indexing.open_index(head, kept, rules, fresh)
    kept.touch_view(head.digest, [indexing.row_key(e.path, e.blob) for e in both.entries])
    late = sum(skip.reason.startswith("deadline") for skip in update.skipped)
    if late:
        degradations.append(f"deadline: {late} files were not indexed")
    found.indexed, found.reused = update.indexed, update.reused
    found.skipped = [*head.skipped, *update.skipped, *opened.skipped]
    left_out = dict(head.left_out)
    for reason_, n in opened.left_out.items():
        left_out[reason_] = left_out.get(reason_, 0) + n
    found.index = IndexInfo(len(head.entries), opened.index.size, dict(sorted(left_out.items())))
    return opened.index, fresh


def _evidence_docs(index: indexing.Index, diff: Diff) -> tuple[list[int], Array]:
    """Return the docs that the diff touches, and which others may be evidence.

    The former come with the most changed file first; the latter are neither generated nor
    vendored, and have no changed line.
    """
    allowed = index.alive & ~index.hidden()
    own: list[int] = []
    for file in sorted(diff.files, key=lambda f: (-f.added - f.deleted, f.path)):
        lines = file.touched_lines()
        for number in index.docs_of(file.path) if lines else ():
            doc = index.doc(number)
            if any(line in lines for line in range(doc.start, doc.end + 1)):
                if allowed[number] and doc.symbol and file.status != "added":
                    own.append(number)
                allowed[number] = False
    return own, allowed


def _recall(
    job: Job,
    asked: Sequence[Query],
    prepared: Search,
    kept: store.Store,
    texts: Texts,
    degradations: list[str],
    found: Found,
) -> list[dict[str, Ranked]]:
    """Run each channel that is on, for each query."""
    weights = job.config.weights
    ranked = [
        {name: run(prepared, query) for name, run in CHANNELS.items() if getattr(weights, name) > 0}
        for query in asked
    ]
    if weights.dense > 0 and asked and job.config.embedding_model != "none":
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
    kept: store.Store,
    texts: Texts,
    found: Found,
) -> None:
    """Rank by meaning, and note in the index's facts what was searched with which model."""

    def expired() -> bool:
        return job.deadline.within(_RESERVE_DENSE)

    if expired():
        raise ModelUnavailable("deadline")
    config = job.config
    embedder = Embedder(config.embedding_model)
    dense = Dense(prepared, kept, texts, embedder, (config.query_prefix, config.passage_prefix))
    candidates: list[int] = []
    if not dense.load_whole():
        weights = {name: getattr(config.weights, name) for name in CHANNEL_NAMES}
        orders = [{name: one.docs for name, one in per.items()} for per in ranked]
        candidates = [d for d, _ in fuse(orders, weights, config.rrf_k, prepared.place)]
        candidates = candidates[:CANDIDATES]
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
    index: indexing.Index,
    kept: store.Store,
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


def _rerank(
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
    if job.deadline.within(_RESERVE_DENSE):
        raise ModelUnavailable("deadline")
    encoder = CrossEncoder(job.config.rerank_model)
    texts.load(prepared.index.doc(doc).blob for doc in docs)
    query = asked[0].text() if asked else job.change.title
    scores: list[float] = []
    for doc in docs:
        if job.deadline.within(_RESERVE_RERANK):
            break
        scores += encoder.score(query, [passage(prepared.index.doc(doc), texts)])
    if not scores:
        raise ModelUnavailable("deadline")
    if len(scores) < len(docs):
        degradations.append(f"deadline: reranked {len(scores)} of {len(docs)} candidates")
    return scores, docs[: len(scores)]


def _hit(
    number: int,
    scores: dict[str, float],
    asked: Sequence[Query],
    ranked: Sequence[dict[str, Ranked]],
    prepared: Search,
) -> assemble.Hit:
    """Describe a hit; its best rank in each channel, with the reason, when it is shown."""

    def explain() -> tuple[Channel, ...]:
        best: dict[str, tuple[int, Query]] = {}
        for query, per in zip(asked, ranked, strict=True):
            for name, found in per.items():
                rank = found.ranks.get(number)
                if rank is not None and (name not in best or rank < best[name][0]):
                    best[name] = (rank, query)
        return tuple(
            Channel(name, rank, reason(prepared, name, query, number))
            for name, (rank, query) in best.items()
        )

    rounded = {name: round(score, 9) for name, score in scores.items()}
    return assemble.Hit(prepared.index.doc(number), rounded, explain)


def above_floor(
    hits: Sequence[tuple[int, dict[str, float]]], ranked: Sequence[dict[str, Ranked]], floor: float
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


def _own_hit(index: indexing.Index, number: int, rank: int) -> assemble.Hit:
    channel = Channel("enclosing", rank, "rest of a changed unit")
    return assemble.Hit(index.doc(number), {}, lambda: (channel,))


def _assemble(
    config: Config,
    diff: Diff,
    hits: Sequence[assemble.Hit],
    own: Sequence[assemble.Hit],
    rules: PathRules,
    count: tokens.Counter,
    texts: Texts,
    found: Found,
) -> None:
    found.quota_diff = int(config.budget * config.diff_share)
    found.diff, found.used_diff = assemble.assemble_diff(diff, found.quota_diff, count, rules)
    found.quota_evidence = config.budget - found.used_diff - found.used_facts
    found.evidence, found.used_evidence, found.dropped = assemble.assemble_evidence(
        hits, own, diff, found.quota_evidence, config.top_k, count, texts
    )
