"""What each channel, the fusion and the reranker find, on cases of code changed together.

    python benchmarks/ranking.py CASES.jsonl REPOS [--limit N] [--set KEY=VALUE …] [--only NAME …]

A case (JSON Lines: ``repo``, ``base``, ``head``, ``query_files``, ``subject``, ``gold`` with
``path`` and ``hunks``) asks: given the change of one file, seen in the tree of ``base``, which
other code did the same commit change? REPOS holds ``owner+name/repo``, bare. ``--limit`` takes
the first N cases of each repository; ``--only`` names repositories.

Printed are Hit@10, Recall@10 and MRR of chunks, and the share of gold that the evidence of the
finished pack meets at 4,000 tokens of evidence.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import msgspec

from coderag_ci import (
    assemble,
    config,
    diff,
    fuse,
    index,
    pathrules,
    queries,
    recall,
    rerank,
    store,
)
from coderag_ci import view as views
from coderag_ci.bm25 import PostingsBM25
from coderag_ci.channels import CHANNELS, Ranked, Search
from coderag_ci.gitrepo import GitRepo, Sides
from coderag_ci.text import Texts
from coderag_ci.tokens import estimate

_EVIDENCE_TOKENS = 4000


class Case:
    """One case, its view and its queries."""

    def __init__(
        self, repo: GitRepo, kept: store.Store, raw: dict[str, Any], settings: Any
    ) -> None:
        self.gold = raw["gold"]
        self.path = raw["query_files"][0]
        rules = pathrules.PathRules(settings)
        base = views.commit_view(repo, raw["base"], rules)
        head = [e for e in repo.tree(raw["head"]) if e.path == self.path]
        others = [e for e in base.entries if e.path != self.path]
        self.view = views.View(tuple(sorted([*others, *head], key=lambda e: e.path.encode())))
        sides = Sides(raw["base"], raw["head"])
        self.diff = diff.compute(repo, sides, None, [f":(top,literal){self.path}"])
        both = views.View(tuple(dict.fromkeys([*self.view.entries, *base.entries])))
        _, fresh = index.update(repo, both, kept)
        self.index = index.open_index(self.view, kept, rules, fresh).index
        new = index.rows_of(kept, [(f.path, f.new_blob) for f in self.diff.files], fresh)
        old = index.rows_of(kept, [(f.old_path, f.old_blob) for f in self.diff.files], fresh)
        self.queries, _ = queries.build(self.diff, new, old, rules, raw["subject"])
        allowed = self.index.alive & ~self.index.hidden()
        allowed[self.index.docs_of(self.path)] = False
        bm25 = PostingsBM25(self.index, settings.bm25)
        self.search = Search(self.index, bm25, allowed, settings.recall)
        self.texts = Texts(repo, self.view)

    def met(self, path: str, ranges: list[tuple[int, int]]) -> set[int]:
        """Return which gold items some lines meet."""
        return {
            i
            for i, item in enumerate(self.gold)
            if item["path"] == path
            and any(s <= last and first <= e for s, e in ranges for first, last in item["hunks"])
        }

    def score(self, docs: list[int]) -> tuple[float, float, float]:
        """Return (Hit@10, Recall@10, reciprocal rank) of an order of docs."""
        found: set[int] = set()
        reciprocal = 0.0
        for rank, number in enumerate(docs, 1):
            doc = self.index.doc(number)
            met = self.met(doc.path, [(doc.start, doc.end)])
            if met and not reciprocal:
                reciprocal = 1 / rank
            if rank <= 10:
                found |= met
        return float(bool(found)), len(found) / len(self.gold), reciprocal


def rankings(case: Case, settings: Any) -> dict[str, list[int]]:
    """Return the order of each channel, fused and reranked, and what the pack would show."""
    weights = {name: getattr(settings.weights, name) for name in CHANNELS}
    ranked: list[dict[str, Ranked]] = [
        {name: run(case.search, query) for name, run in CHANNELS.items()} for query in case.queries
    ]
    found = {}
    for name in CHANNELS:
        orders = [(1.0, per[name].docs) for per in ranked]
        merged = fuse.reciprocal_rank_fusion(orders, settings.rrf_k, case.search.place)
        found[name] = [doc for doc, _ in merged]
    orders_of = [{name: r.docs for name, r in per.items()} for per in ranked]
    fused = [d for d, _ in fuse.fuse(orders_of, weights, settings.rrf_k, case.search.place)]
    found["fused"] = fused
    top = fused[: settings.rerank]
    if top and settings.rerank_weight:
        scores = rerank.Heuristic(case.search).scores(case.queries, top)
        blended = rerank.blend(top, scores, settings.rerank_weight, case.search)
        found["reranked"] = [*(d for d, _ in blended), *fused[settings.rerank :]]
    else:
        found["reranked"] = fused
    hits = [(doc, {"final": 0.0}) for doc in found["reranked"]]
    found["shown"] = [d for d, _ in recall.above_floor(hits, ranked, settings.floor)]
    return found


def pack_recall(case: Case, docs: list[int], settings: Any) -> float:
    """Return the share of gold met by the lines that a pack shows."""
    hits = [assemble.Hit(case.index.doc(doc), {}, tuple) for doc in docs[: settings.top_k * 3]]
    evidence, _, _ = assemble.assemble_evidence(
        hits, [], case.diff, _EVIDENCE_TOKENS, settings.top_k, estimate, case.texts
    )
    met: set[int] = set()
    for piece in evidence:
        met |= case.met(piece.path, list(piece.ranges))
    return len(met) / len(case.gold)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", type=Path)
    parser.add_argument("repos", type=Path)
    parser.add_argument("--limit", type=int, default=10_000)
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--index", type=Path, help="keep the indexes here between runs")
    given = parser.parse_args()
    flags = dict(item.split("=", 1) for item in given.set)
    flags = {key: config.convert(key, value, "--set", strict=False) for key, value in flags.items()}
    settings = config.resolve(None, "", {}, flags).config
    by_repo: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in given.cases.read_bytes().splitlines():
        raw = msgspec.json.decode(line)
        if raw["kind"] == "cochange":
            by_repo[raw["repo"]].append(raw)
    scores: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    packs: list[float] = []
    seconds: list[float] = []
    for name, cases in sorted(by_repo.items()):
        folder = given.repos / name.replace("/", "+") / "repo"
        if not folder.is_dir() or (given.only and name not in given.only):
            continue
        repo = GitRepo(str(folder))
        with tempfile.TemporaryDirectory() as temporary:
            place = (given.index or Path(temporary)) / name.replace("/", "+")
            kept = store.Store(place)
            for raw in cases[: given.limit]:
                case = Case(repo, kept, raw, settings)
                start = time.perf_counter()
                found = rankings(case, settings)
                packs.append(pack_recall(case, found.pop("shown"), settings))
                seconds.append(time.perf_counter() - start)
                for ranking, docs in found.items():
                    scores[ranking].append(case.score(docs))
            kept.close()
        print(json.dumps({"repo": name, "cases": min(len(cases), given.limit)}), flush=True)
    print(f"{'ranking':10} {'Hit@10':>7} {'R@10':>7} {'MRR':>7}   ({len(packs)} cases)")
    for ranking, values in scores.items():
        means = [statistics.mean(column) for column in zip(*values, strict=True)]
        print(f"{ranking:10} " + " ".join(f"{mean:7.3f}" for mean in means))
    print(f"pack recall at {_EVIDENCE_TOKENS} tokens of evidence: {statistics.mean(packs):.3f}")
    print(f"seconds a query, warm: median {statistics.median(seconds):.3f}")


if __name__ == "__main__":
    main()
