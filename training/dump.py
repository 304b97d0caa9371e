"""Writes what the pipeline knows of each case's candidates, and which of them are gold.

    python training/dump.py --cases FILE.jsonl… --repos DIR --index-dir DIR --out DIR [--jobs N]
                            [--texts]

One REPOSITORY/CASE.npz a case: ``x`` (n, features) float32, ``gold`` (n, gold items) bool,
``length`` (n,) characters, ``place`` (n, 3) path number, first line, first line of the unit,
``loose`` (gold items,) bool: the top of a file (imports, as a rule), or a place inside it that
is arbitrary. Cases that are there are not made again. With ``--texts`` also CASE.json.gz, what a
cross-encoder is trained on: ``title``, ``query``, ``names`` of the changed units, and
``passages``, the best 24 by the formula and six more of the gold, each with its text and
whether it is gold.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import gzip
import json
import multiprocessing
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from coderag_ci import features, overlap, search
from coderag_ci.config import Config, weights_of
from coderag_ci.deadline import Deadline
from coderag_ci.dense import passage
from coderag_ci.errors import CoderagError
from coderag_ci.eval import cases
from coderag_ci.eval.outcome import Piece, chunk_ranks
from coderag_ci.eval.run import index_directory, index_views
from coderag_ci.eval.sight import Sight, Unusable, see
from coderag_ci.gitrepo import GitRepo
from coderag_ci.job import Job, Ranking
from coderag_ci.pathrules import TEST, PathRules
from coderag_ci.progress import Progress
from coderag_ci.trace import Recorder

_LOOSE = frozenset({"toplevel", "module"})
_SLICE = 8  # cases whose blobs are parsed at once
_BEST = 24  # by the formula, whose texts are kept
_MORE_GOLD = 6  # and of the gold that is not among them
_MOST_CHARACTERS = 2_500
_CONFIG = Config(top_k=1, rerank_model="none")


def dump(
    case: cases.Case, sight: Sight, repo: GitRepo, index_dir: Path, out: Path, *, texts: bool
) -> None:
    """Write the features and the gold of one case's candidates."""
    config, rules = _CONFIG, PathRules(_CONFIG)
    job = Job(repo, sight.change, config, index_dir, Deadline(0), Progress(quiet=True))
    found = search.search(job, sight.diff, sight.view, rules, Recorder(), case.not_asked_for)
    ranking = found.ranking
    if ranking is None:
        return
    docs = features.candidates(ranking.prepared, ranking.ranked)
    shared = overlap.Overlap(ranking.prepared, ranking.texts).terms(ranking.asked, docs)
    by_doc = dict(zip(docs, shared, strict=True))
    weights = weights_of(config)
    x = features.matrix(ranking.prepared, ranking.asked, ranking.ranked, by_doc, weights, docs)
    index = ranking.prepared.index
    gold = np.zeros((len(docs), len(case.gold)), bool)
    length = np.zeros(len(docs), np.int32)
    paths: dict[str, int] = {}
    place = np.zeros((len(docs), 3), np.int32)
    for at, number in enumerate(docs):
        doc = index.doc(number)
        piece = Piece(doc.path, ((doc.start, doc.end),), bool(doc.flags & TEST))
        gold[at] = [rank > 0 for rank in chunk_ranks(case, [piece])]
        length[at] = sum(
            len(line) + 1 for line in ranking.texts.lines(doc.blob)[doc.start - 1 : doc.end]
        )
        place[at] = (paths.setdefault(doc.path, len(paths)), doc.start, doc.unit[0])
    loose = np.array([item.file_only or item.kind in _LOOSE for item in case.gold], bool)
    if texts:
        order = np.argsort(-x[:, features.NAMES.index("formula")], kind="stable").tolist()
        write_texts(ranking, docs, order, gold[:, ~loose].any(axis=1).tolist(), out)
    temporary = out.with_suffix(".tmp.npz")
    np.savez_compressed(temporary, x=x, gold=gold, length=length, place=place, loose=loose)
    temporary.rename(out)


def write_texts(
    ranking: Ranking, docs: Sequence[int], order: Sequence[int], gold: Sequence[bool], out: Path
) -> None:
    """Write what a cross-encoder would read of one case's best candidates."""
    chosen = order[:_BEST]
    chosen += [at for at in order[_BEST:] if gold[at]][:_MORE_GOLD]
    about = [(ranking.prepared.index.doc(docs[at]), gold[at]) for at in chosen]
    found = {
        "title": ranking.asked.title,
        "query": ranking.asked.text,
        "names": [unit.symbol.rpartition(".")[2] for unit in ranking.asked.units if unit.symbol],
        "passages": [
            {"text": passage(doc, ranking.texts)[:_MOST_CHARACTERS], "gold": is_gold}
            for doc, is_gold in about
        ],
    }
    temporary = out.with_suffix(".tmp.gz")
    with gzip.open(temporary, "wt", encoding="utf-8", errors="replace") as file:
        json.dump(found, file)
    temporary.rename(out.with_suffix(".json.gz"))


def _some(task: tuple[str, Path, list[cases.Case], Path, Path, bool]) -> tuple[str, int, str]:
    name, place, some, index_dir, out, texts = task
    repo = GitRepo(str(place))
    made, last = 0, ""
    rules = PathRules(_CONFIG)
    folder = index_directory(repo, index_dir, name)
    out = out / name.replace("/", "+")
    out.mkdir(parents=True, exist_ok=True)
    files = {case.id: out / (case.id.replace("/", "+") + ".npz") for case in some}
    left = [case for case in some if not files[case.id].exists()]
    made += len(some) - len(left)
    for start in range(0, len(left), _SLICE):
        sights: dict[str, Sight] = {}
        for case in left[start : start + _SLICE]:
            try:
                sights[case.id] = see(repo, case, rules)
            except Unusable as error:
                last = str(error)
        index_views(repo, list(sights.values()), folder)
        for case in left[start : start + _SLICE]:
            if case.id not in sights:
                continue
            try:
                dump(case, sights[case.id], repo, folder, files[case.id], texts=texts)
                made += 1
            except CoderagError as error:
                last = str(error)
    return name, made, last


def main() -> None:
    """Read the arguments, dump in processes, say what was made."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=Path, nargs="+", required=True)
    parser.add_argument("--repos", type=Path, required=True)
    parser.add_argument("--index-dir", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--every", type=int, default=1, help="take every Nth case")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--texts", action="store_true")
    given = parser.parse_args()
    tasks = []
    for file in given.cases:
        found, _ = cases.read(str(file))
        by_repo: dict[str, list[cases.Case]] = {}
        for _, case in found[:: given.every]:
            name = file.stem.replace("+", "/") if "+" in file.stem else case.repo
            by_repo.setdefault(name, []).append(case)
        for repo, some in by_repo.items():
            some.sort(key=lambda case: (case.date, case.id))
            place = given.repos / repo.replace("/", "+")
            tasks.append((repo, place, some, given.index_dir, given.out, given.texts))
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(given.jobs, context) as pool:
        for name, made, last in pool.map(_some, tasks):
            print(name, made, last, flush=True)


if __name__ == "__main__":
    main()
