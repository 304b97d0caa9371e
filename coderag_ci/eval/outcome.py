"""What one case gave: for each ranking the rank at which each gold item was met."""

from __future__ import annotations

import functools
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from coderag_ci import search
from coderag_ci.config import CHANNEL_NAMES, Config
from coderag_ci.deadline import Deadline
from coderag_ci.eval.cases import Case
from coderag_ci.eval.sight import Sight
from coderag_ci.gitrepo import GitRepo
from coderag_ci.index import Index
from coderag_ci.job import Found, Job, Ranking, Scored
from coderag_ci.pack import Evidence
from coderag_ci.pathrules import TEST, PathRules
from coderag_ci.progress import Progress
from coderag_ci.tokens import Counter, counter
from coderag_ci.trace import Recorder

QUOTAS = (2000, 4000, 8000)  # evidence tokens
_FIRST = 10  # chunks whose length is told
WHOLE_PACK = 0  # the quota of the pack as the config makes it


class Ranks(msgspec.Struct, frozen=True):
    """Ranks, from 1, at which a ranking meets the gold; 0: never.

    ``chunk`` has one for each gold item, ``file`` one for each distinct path of the gold.
    ``pack`` maps evidence tokens to the indexes of the gold items that such a pack shows,
    ``shows_not_gold`` lists the packs that show a path of ``not_gold``.
    """

    chunk: tuple[int, ...]
    file: tuple[int, ...]
    chunk_nontest: tuple[int, ...]
    file_nontest: tuple[int, ...]
    pack: dict[int, tuple[int, ...]] = {}
    shows_not_gold: tuple[int, ...] = ()


class Outcome(msgspec.Struct, frozen=True):
    """One case under one config: ranks by ranking, chunks of the view, seconds by stage.

    ``degradations``: what the search went without, and what it could not keep for the next case.
    ``tokens``: those of the first ten chunks of the reranked order, in the median.
    """

    id: str
    rankings: dict[str, Ranks]
    chunks: int
    seconds: dict[str, float]
    degradations: tuple[str, ...] = ()
    tokens: float = 0.0


class Piece(NamedTuple):
    """A piece of a ranking: where it is, and whether it is test code."""

    path: str
    ranges: Sequence[tuple[int, int]]
    is_test: bool


def measure(
    repo: GitRepo,
    case: Case,
    sight: Sight,
    config: Config,
    rules: PathRules,
    index_dir: Path,
    channels: bool = True,
) -> Outcome:
    """Run the pipeline on a case and say where in each ranking its gold is.

    Without ``channels`` only the fused, the reranked and the final ranking are looked at.
    """
    job = Job(repo, sight.change, config, index_dir, Deadline(0), Progress(quiet=True))
    recorder = Recorder()
    found = search.search(job, sight.diff, sight.view, rules, recorder, case.not_asked_for)
    ranking = found.ranking
    assert ranking is not None
    count = functools.lru_cache(maxsize=1 << 14)(counter(config.tokenizer))
    rankings = {
        name: _of_order(case, sight, ranking, order, config, count)
        for name, order in _orders(ranking, channels).items()
    }
    rankings["final"] = _of_pack(case, sight, ranking, found, config, count)
    return Outcome(
        case.id,
        rankings,
        ranking.prepared.index.size,
        {stage.name: stage.seconds for stage in recorder.stages},
        (*found.degradations, *found.notes),
        _tokens_of_first(ranking, count),
    )


def _tokens_of_first(ranking: Ranking, count: Counter) -> float:
    """Return the median tokens of the first ten chunks: longer ones meet gold more easily."""
    docs = [ranking.prepared.index.doc(number) for number, _ in ranking.hits[:_FIRST]]
    lines = [ranking.texts.lines(doc.blob)[doc.start - 1 : doc.end] for doc in docs]
    return float(statistics.median(count("\n".join(some)) for some in lines)) if lines else 0.0


def _orders(ranking: Ranking, channels: bool) -> dict[str, list[Scored]]:
    """Return the order of each channel, the fused and the reranked one."""
    orders: dict[str, list[Scored]] = {}
    for name in CHANNEL_NAMES if channels else ():
        if (one := ranking.ranked.get(name)) is not None:
            pairs = zip(one.docs, one.scores, strict=True)
            orders[f"channel:{name}"] = [(doc, {"final": score}) for doc, score in pairs]
    orders["fused"] = [(doc, {"final": score}) for doc, score in ranking.fused]
    orders["reranked"] = list(ranking.hits)
    return orders


def _of_order(
    case: Case,
    sight: Sight,
    ranking: Ranking,
    order: Sequence[Scored],
    config: Config,
    count: Counter,
) -> Ranks:
    pieces = _pieces(ranking.prepared.index, [doc for doc, _ in order])
    packs = _packs(sight, ranking, order, config, count)
    return _ranks(case, pieces, packs)


def _of_pack(
    case: Case,
    sight: Sight,
    ranking: Ranking,
    found: Found,
    config: Config,
    count: Counter,
) -> Ranks:
    """Score the finished pack: its pieces in the order in which a reader meets them."""
    pieces = [Piece(e.path, e.ranges, "test" in e.flags) for e in found.evidence]
    packs = _packs(sight, ranking, ranking.worth, config, count)
    packs[WHOLE_PACK] = found.evidence
    ranks = _ranks(case, pieces, packs)
    shown = tuple(
        quota for quota, evidence in packs.items() if any(_is_wrong(case, e.path) for e in evidence)
    )
    return msgspec.structs.replace(ranks, shows_not_gold=shown)


def _packs(
    sight: Sight,
    ranking: Ranking,
    order: Sequence[Scored],
    config: Config,
    count: Counter,
) -> dict[int, Sequence[Evidence]]:
    return {
        quota: search.evidence_of(ranking, order, config, sight.diff, quota, count).evidence
        for quota in QUOTAS
    }


def _pieces(index: Index, docs: Sequence[int]) -> list[Piece]:
    found = []
    for number in docs:
        doc = index.doc(number)
        found.append(Piece(doc.path, ((doc.start, doc.end),), bool(doc.flags & TEST)))
    return found


def _ranks(case: Case, pieces: Sequence[Piece], packs: Mapping[int, Sequence[Evidence]]) -> Ranks:
    nontest = [piece for piece in pieces if not piece.is_test]
    return Ranks(
        chunk_ranks(case, pieces),
        file_ranks(case, pieces),
        chunk_ranks(case, nontest),
        file_ranks(case, nontest),
        {quota: _shown(case, evidence) for quota, evidence in packs.items()},
    )


def chunk_ranks(case: Case, pieces: Iterable[Piece]) -> tuple[int, ...]:
    """Return the rank of the first piece that meets each gold item; 0: none does."""
    found = [0] * len(case.gold)
    wanted: dict[str, list[int]] = {}
    for index, item in enumerate(case.gold):
        wanted.setdefault(item.path, []).append(index)
    for rank, piece in enumerate(pieces, 1):
        for index in wanted.get(piece.path, ()):
            if not found[index] and _meets(piece.ranges, case.gold[index].hunks):
                found[index] = rank
    return tuple(found)


def gold_paths(case: Case) -> list[str]:
    """Return the distinct paths of the gold in order."""
    return list(dict.fromkeys(item.path for item in case.gold))


def file_ranks(case: Case, pieces: Iterable[Piece]) -> tuple[int, ...]:
    """Return the rank of each gold path among the distinct paths of a ranking; 0: not there."""
    paths = {path: rank for rank, path in enumerate(dict.fromkeys(p.path for p in pieces), 1)}
    return tuple(paths.get(path, 0) for path in gold_paths(case))


def _shown(case: Case, evidence: Sequence[Evidence]) -> tuple[int, ...]:
    """Return the gold items that the lines of some evidence meet."""
    ranges: dict[str, list[tuple[int, int]]] = {}
    for piece in evidence:
        ranges.setdefault(piece.path, []).extend(piece.ranges)
    return tuple(
        index
        for index, item in enumerate(case.gold)
        if _meets(ranges.get(item.path, ()), item.hunks)
    )


def _meets(ranges: Sequence[tuple[int, int]], hunks: Sequence[tuple[int, int]]) -> bool:
    return any(start <= last and first <= end for start, end in ranges for first, last in hunks)


def _is_wrong(case: Case, path: str) -> bool:
    return any(path == one or (one.endswith("/") and path.startswith(one)) for one in case.not_gold)
