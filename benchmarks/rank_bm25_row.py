"""BM25 alone through rank_bm25 itself, beside the channel ``diff``: the check on ours.

    python benchmarks/rank_bm25_row.py CASES.jsonl REPOS [--limit N] [--index-dir DIR]

For each case, rank_bm25's own ``BM25Okapi`` is built over the view's chunks (the same terms) and
asked with the same queries; both rankings are scored by the same code. ``--limit`` takes the
first N cases of each repository.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections import defaultdict
from pathlib import Path

import numpy as np
from rank_bm25 import BM25Okapi

from coderag_ci import search
from coderag_ci.channels import Search, diff_lines, terms_of
from coderag_ci.config import Config
from coderag_ci.deadline import Deadline
from coderag_ci.eval import cases, places
from coderag_ci.eval.metrics import CHUNK, measure
from coderag_ci.eval.outcome import Piece, chunk_ranks
from coderag_ci.eval.sight import see
from coderag_ci.fuse import reciprocal_rank_fusion
from coderag_ci.gitrepo import GitRepo
from coderag_ci.job import Job, Ranking
from coderag_ci.parse.terms import term_hash
from coderag_ci.pathrules import TEST, PathRules
from coderag_ci.progress import Progress
from coderag_ci.trace import Recorder


def corpus_of(prepared: Search) -> list[list[int]]:
    """Return the terms of each doc of a view, as often as they occur; dead docs are empty."""
    corpus: list[list[int]] = [[] for _ in prepared.index.lengths]
    segments = [segment for segment, _ in prepared.index._segments]  # noqa: SLF001
    for key in np.unique(np.concatenate([segment.terms.keys for segment in segments])).tolist():
        docs, counts = prepared.index.term(key)
        for doc, count in zip(docs.tolist(), counts.tolist(), strict=True):
            corpus[doc] += [key] * count
    return corpus


def by_library(ranking: Ranking, config: Config) -> list[int]:
    """Rank with ``BM25Okapi``, one query a changed unit, fused as the channel's queries are."""
    prepared = ranking.prepared
    alive = np.flatnonzero(prepared.index.alive)
    corpus = corpus_of(prepared)
    library = BM25Okapi(
        [corpus[doc] for doc in alive],
        k1=config.bm25.k1,
        b=config.bm25.b,
        epsilon=config.bm25.epsilon,
    )
    lists = []
    for query in ranking.asked:
        scores = np.zeros(len(prepared.index.lengths))
        scores[alive] = library.get_scores([term_hash(t) for t in terms_of(diff_lines(query))])
        lists.append((1.0, prepared.rank(scores).docs))
    return [doc for doc, _ in reciprocal_rank_fusion(lists, config.rrf_k, prepared.place)]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases")
    parser.add_argument("repos")
    parser.add_argument("--limit", type=int, default=10_000)
    parser.add_argument("--index-dir", type=Path)
    given = parser.parse_args()
    config = Config()
    rules = PathRules(config)
    read, _ = cases.read(given.cases)
    found = places.find((case.repo for _, case in read), given.repos, None)
    taken: dict[str, int] = defaultdict(int)
    ranks: dict[str, list[tuple[int, ...]]] = {"channel diff": [], "rank_bm25": []}
    with tempfile.TemporaryDirectory() as temporary:
        for _, case in read:
            taken[case.repo] += 1
            if case.repo not in found or taken[case.repo] > given.limit:
                continue
            if case.kind != "cochange":
                continue
            repo = GitRepo(str(found[case.repo]))
            sight = see(repo, case, rules)
            folder = (given.index_dir or Path(temporary)) / case.repo.replace("/", "+")
            job = Job(repo, sight.change, config, folder, Deadline(0), Progress(quiet=True))
            ranking = search.search(job, sight.diff, sight.view, rules, Recorder()).ranking
            assert ranking is not None
            lists = [(1.0, per["diff"].docs) for per in ranking.ranked]
            ours = reciprocal_rank_fusion(lists, config.rrf_k, ranking.prepared.place)
            orders = {
                "channel diff": [d for d, _ in ours],
                "rank_bm25": by_library(ranking, config),
            }
            inside = [i for i, item in enumerate(case.gold) if not item.file_only]
            if not inside:
                continue
            for name, docs in orders.items():
                described = [ranking.prepared.index.doc(doc) for doc in docs]
                pieces = [
                    Piece(d.path, ((d.start, d.end),), bool(d.flags & TEST)) for d in described
                ]
                met = chunk_ranks(case, pieces)
                ranks[name].append(tuple(met[i] for i in inside))
    print(f"{'':14}" + " ".join(f"{name:>9}" for name in CHUNK))
    for name, some in ranks.items():
        means = [statistics.fmean(measure(metric, r) for r in some) for metric in CHUNK]
        print(f"{name:14}" + " ".join(f"{mean:9.4f}" for mean in means))
    print(f"{len(ranks['rank_bm25'])} cases")


if __name__ == "__main__":
    main()
