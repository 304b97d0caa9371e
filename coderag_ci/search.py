"""From a diff and a view to evidence: index, queries, recall, fuse, rerank, assemble."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Collection, Sequence

import msgspec

from coderag_ci import (
    assemble,
    deadline,
    facts,
    findings,
    history,
    queries,
    recall,
    rerank,
    store,
    tokens,
    view,
)
from coderag_ci import index as indexing
from coderag_ci.bm25 import PostingsBM25
from coderag_ci.channels import Search, reason
from coderag_ci.config import Config
from coderag_ci.diff import Diff
from coderag_ci.facts.given import Given
from coderag_ci.graph import Graph, packages
from coderag_ci.job import Found, Job, Ranking, Scored
from coderag_ci.pack import Channel, Fact, IndexInfo
from coderag_ci.parse.row import Row
from coderag_ci.pathrules import PathRules, Skipped
from coderag_ci.render.text import counted
from coderag_ci.segment import Array
from coderag_ci.text import Texts
from coderag_ci.trace import Recorder
from coderag_ci.view import View
from coderag_ci.workers import FILE_SECONDS

_WORTH_A_BAR = 200
_MOST_OWN = 12
_TRACED = 1_000  # characters of a query that the trace keeps
_FACTS_SHARE = 0.15  # of the budget
_FRAME = 400  # tokens of header, instructions and what was left out
_CANDIDATES_PER_PIECE = 3  # several candidates can be parts of one piece
_MOST_LINKED = 5  # candidates of each channel of links, wherever the order has them


def search(
    job: Job,
    diff: Diff,
    head: View,
    rules: PathRules,
    recorder: Recorder,
    without: Collection[str] = (),
) -> Found:
    """Find and assemble the evidence of a change in its head view.

    Nothing of the paths in ``without`` becomes evidence.
    """
    kept = store.Store(job.index_dir)
    try:
        found = _search(job, diff, head, rules, recorder, without, kept, Found())
        if kept.rebuilt:  # rows were lost on the way: not all was searched
            recorder.degradations.clear()
            found = _search(job, diff, head, rules, recorder, without, kept, Found())
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
    without: Collection[str],
    kept: store.Store,
    found: Found,
) -> Found:
    config = job.config
    degradations = recorder.degradations
    count = tokens.counter(config.tokenizer)
    base = _base_view(job, diff, rules)
    with recorder.stage("index") as counts:
        index, rows = _index(job, head, base, kept, rules, found, degradations)
        counts.update(indexed=found.indexed, reused=found.reused, chunks=index.size)
    size = head.chunk_size
    new = [(f.path, f.new_blob) for f in diff.files]
    old = [(f.old_path, f.old_blob) for f in diff.files]
    head_rows = indexing.rows_of(kept, new, size, rows)
    base_rows = indexing.rows_of(kept, old, size, rows)
    with recorder.stage("queries") as counts:
        units, left_out = queries.build(diff, head_rows, base_rows, rules, job.change.title)
        asked = queries.Asked(units, job.change.title)
        counts["queries"] = len(units)
        if left_out:
            found.skipped = [*found.skipped, Skipped("…", left_out)]
    texts = Texts(job.repo, head)
    graph = Graph(index, packages(base_rows))
    with recorder.stage("history") as counts:
        past = _past(job, asked, kept, found, degradations)
        counts["commits"] = past.commits
    with recorder.stage("facts") as counts:
        collected: list[Fact] = []
        if job.deadline.within(deadline.LINKS):
            degradations.append("no facts: deadline")
        else:
            merge_base = job.change.merge_base
            left = job.deadline.left() - deadline.LINKS
            given = Given(
                job.repo, merge_base, diff, head_rows, base_rows,
                frozenset(entry.path for entry in head.entries),
                index, graph, texts, rules, past, left,
            )  # fmt: skip
            collected = facts.collect(given)
            found.skipped = [*found.skipped, *(Skipped("…", limit) for limit in given.limits)]
        found.facts, found.used_facts = assemble.assemble_facts(
            collected, int(config.budget * _FACTS_SHARE), count
        )
        found.facts_more = len(collected) - len(found.facts)
        counts["facts"] = len(collected)
    own, allowed = _evidence_docs(index, diff, without)
    prepared = Search(index, PostingsBM25(index, config.bm25), allowed, config.recall, graph)
    prepared.past = past
    with recorder.stage("recall") as counts:
        ranked = recall.recall(job, asked, prepared, kept, texts, degradations, found)
        counts["candidates"] = len({doc for found_ in ranked.values() for doc in found_.docs})
        not_followed = [Skipped("…", reason) for reason in prepared.not_followed]
        found.skipped = [*found.skipped, *not_followed]
    with recorder.stage("fuse") as counts:
        fused = recall.fused(ranked, config, prepared)
        counts["docs"] = len(fused)
    with recorder.stage("rerank") as counts:
        hits = rerank.rerank(job, asked, ranked, fused, prepared, texts, degradations, counts)
    with recorder.stage("assemble") as counts:
        worth = recall.above_floor(hits, ranked, config.floor)
        counts["below_floor"] = len(hits) - len(worth)
        found.ranking = Ranking(asked, ranked, fused, hits, worth, prepared, own, texts)
        _assemble(job, diff, rules, count, found)
        counts.update(evidence=len(found.evidence), dropped=len(found.dropped))
    found.degradations = degradations
    found.queries = [
        {"path": query.path, "unit": query.symbol, "text": query.text()[:_TRACED]}
        for query in units
    ]
    return found


def _base_view(job: Job, diff: Diff, rules: PathRules) -> View:
    if not job.change.merge_base:
        return View(())
    old = [file.old_path for file in diff.files if file.status != "added"]
    return view.of_paths(job.repo, job.change.merge_base, old, rules)


def _past(
    job: Job, asked: queries.Asked, kept: store.Store, found: Found, degradations: list[str]
) -> history.Past:
    """Read what went with the changed files; nothing where there is no base or no time."""
    if not job.change.merge_base or not asked.paths:
        return history.Past()
    if job.deadline.within(deadline.MODEL):
        degradations.append("no history: deadline")
        return history.Past()
    past = history.read(job.repo, job.change.merge_base, asked.paths, kept)
    if not past.commits:
        degradations.append("no history: git can not read it")
    elif past.unread:
        degradations.append(f"history: {counted(past.unread, 'commit')} could not be read")
    if job.repo.shallow and past.commits < history.MOST_COMMITS:
        known = f"{counted(past.commits, 'commit')}, the clone is shallow"
        found.index = msgspec.structs.replace(found.index, history=known)
    return past


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
    entries = tuple(dict.fromkeys([*head.entries, *base.entries]))
    both = dataclasses.replace(head, entries=entries)
    with job.progress.task("indexing", len(both.entries) > _WORTH_A_BAR) as advance:
        update, fresh = indexing.update(
            job.repo,
            both,
            kept,
            advance,
            file_seconds=max(1.0, min(FILE_SECONDS, job.deadline.left() - deadline.INDEX)),
            expired=lambda: job.deadline.within(deadline.INDEX),
        )
    opened = indexing.open_index(head, kept, rules, fresh)
    kept.touch_view(head.digest, [e.blob for e in both.entries])
    late = sum(skip.reason.startswith("deadline") for skip in update.skipped)
    if late:
        degradations.append(f"deadline: {counted(late, 'file')} not indexed")
    absent = sum(skip.reason == indexing.NOT_HERE for skip in update.skipped)
    if absent:
        degradations.append(f"not in this clone: {counted(absent, 'file')}")
    found.indexed, found.reused = update.indexed, update.reused
    failed = {
        skip.path
        for skip in (*update.skipped, *opened.skipped)
        if skip.reason.startswith(indexing.FAILED)
    }
    if failed:
        degradations.append(f"the parser failed on {counted(len(failed), 'file')}")
    found.skipped = [*head.skipped, *update.skipped, *opened.skipped]
    found.unread = {
        **head.left_out,
        **opened.left_out,
        **{skip.path: skip.reason for skip in found.skipped},
    }
    told = {skip.path for skip in found.skipped}
    left_out = Counter(reason for path, reason in found.unread.items() if path not in told)
    found.index = IndexInfo(len(head.entries), opened.index.size, dict(sorted(left_out.items())))
    return opened.index, fresh


def _evidence_docs(
    index: indexing.Index, diff: Diff, without: Collection[str]
) -> tuple[list[int], Array]:
    """Return the docs that the diff touches, and which others may be evidence.

    The former come with the most changed file first; the latter are neither generated nor
    vendored, and have no changed line.
    """
    allowed = index.alive & ~index.hidden()
    for path in without:
        allowed[index.docs_of(path)] = False
    own: list[int] = []
    for file in sorted(diff.files, key=lambda f: (-f.added - f.deleted, f.path)):
        lines = file.touched_lines()
        for number in index.docs_of(file.path) if lines else ():
            if not allowed[number]:  # thousands are in a vendored tree
                continue
            doc = index.doc(number)
            if any(line in lines for line in range(doc.start, doc.end + 1)):
                whole = doc.symbol or doc.start > 1  # the head of a file is imports
                if whole and file.status != "added":
                    own.append(number)
                allowed[number] = False
    return own, allowed


def _hit(number: int, scores: dict[str, float], ranking: Ranking) -> assemble.Hit:
    """Describe a hit; the reasons for its rank in each channel when it is shown."""
    ranks = {name: rank for name, one in ranking.ranked.items() if (rank := one.ranks.get(number))}

    def explain() -> tuple[Channel, ...]:
        if number in ranking.explained:
            return ranking.explained[number]
        ranking.explained[number] = tuple(
            Channel(name, rank, reason(ranking.prepared, name, ranking.asked, number))
            for name, rank in ranks.items()
        )
        return ranking.explained[number]

    rounded = {name: round(score, 9) for name, score in scores.items()}
    return assemble.Hit(ranking.prepared.index.doc(number), rounded, ranks, explain)


def _own_hit(index: indexing.Index, number: int, rank: int) -> assemble.Hit:
    channel = Channel(assemble.ENCLOSING, rank, "rest of a changed unit")
    return assemble.Hit(index.doc(number), {}, {}, lambda: (channel,))


def _assemble(job: Job, diff: Diff, rules: PathRules, count: tokens.Counter, found: Found) -> None:
    assert found.ranking is not None
    config = job.config
    found.quota_diff = int(config.budget * config.diff_share)
    found.lint, linted = findings.of_change(job.results, diff, found.quota_diff, count)
    left = found.quota_diff - linted
    found.diff, found.used_diff = assemble.assemble_diff(diff, left, count, rules)
    found.used_diff += linted
    frame = min(_FRAME, config.budget // 5)
    found.quota_evidence = max(0, config.budget - found.used_diff - found.used_facts - frame)
    assembled = evidence_of(
        found.ranking, found.ranking.worth, config, diff, found.quota_evidence, count
    )
    found.evidence, found.used_evidence, found.dropped, found.tries = assembled


def evidence_of(
    ranking: Ranking,
    order: Sequence[Scored],
    config: Config,
    diff: Diff,
    quota: int,
    count: tokens.Counter,
) -> assemble.Assembled:
    """Fill ``quota`` tokens with evidence from the best of an order, and from the changed units."""
    most = config.top_k * _CANDIDATES_PER_PIECE
    linked = {
        doc
        for name in assemble.LINKS
        if name in ranking.ranked
        for doc in ranking.ranked[name].docs[:_MOST_LINKED]
    }
    tried = [hit for n, hit in enumerate(order) if n < most or hit[0] in linked]
    hits = [_hit(doc, scores, ranking) for doc, scores in tried]
    index = ranking.prepared.index
    own = [_own_hit(index, doc, rank) for rank, doc in enumerate(ranking.own[:_MOST_OWN], 1)]
    return assemble.assemble_evidence(hits, own, diff, quota, config.top_k, count, ranking.texts)
