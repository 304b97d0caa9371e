"""The flow, from a change to a pack: it names the stages in order and holds no detail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coderag_ci import __version__, diff, pack
from coderag_ci.change import Change
from coderag_ci.config import Config
from coderag_ci.deadline import Deadline
from coderag_ci.diff import Diff
from coderag_ci.gitrepo import GitRepo
from coderag_ci.links import web_address
from coderag_ci.pathrules import PathRules, Skipped
from coderag_ci.progress import Progress
from coderag_ci.trace import Recorder

_MOST_SKIPPED = 50
_MOST_DROPPED = 50


@dataclass(frozen=True)
class Job:
    """Everything that a pack is made from."""

    repo: GitRepo
    change: Change
    config: Config
    index_dir: Path
    deadline: Deadline
    progress: Progress


def make_pack(job: Job) -> pack.Pack:
    """Make the pack of a change.

    A change without files gives an empty pack at once. Raises CoderagError for what a
    person can mend; everything else that goes wrong on the way becomes a degradation.
    """
    recorder = Recorder()
    rules = PathRules(job.config)
    head = _head_view(job, rules) if job.change.kind == "worktree" else None
    with recorder.stage("diff") as counts:
        found = diff.compute(job.repo, job.change.sides, head, job.change.paths)
        counts["files"] = len(found.files)
        counts["hunks"] = sum(len(file.hunks) for file in found.files)
    if not found.files:
        return _seal(job, found, Found(), recorder)
    from coderag_ci import search

    head = head or _head_view(job, rules)
    result = search.search(job, found, head, rules, recorder)
    return _seal(job, found, result, recorder)


@dataclass
class Found:
    """What the search of a view gave for a change; empty where there was nothing to search."""

    diff: tuple[pack.DiffFile, ...] = ()
    facts: Sequence[pack.Fact] = ()
    evidence: Sequence[pack.Evidence] = ()
    dropped: Sequence[pack.Dropped] = ()
    skipped: Sequence[Skipped] = ()
    degradations: Sequence[str] = ()
    notes: Sequence[str] = ()
    index: pack.IndexInfo = pack.IndexInfo(0, 0, {})
    used_diff: int = 0
    used_evidence: int = 0
    quota_diff: int = 0
    quota_evidence: int = 0
    indexed: int = 0
    reused: int = 0
    queries: Sequence[Mapping[str, str]] = ()


def _head_view(job: Job, rules: PathRules) -> Any:
    from coderag_ci import view

    if job.change.kind == "worktree":
        return view.working_view(job.repo, rules)
    if job.change.kind == "staged":
        return view.staged_view(job.repo, rules)
    return view.commit_view(job.repo, job.change.head, rules)


def _seal(job: Job, found: Diff, result: Found, recorder: Recorder) -> pack.Pack:
    made = job.change
    config = job.config
    skipped = [*found.skipped, *result.skipped]
    if len(skipped) > _MOST_SKIPPED:
        more = len(skipped) - _MOST_SKIPPED
        skipped = [*skipped[:_MOST_SKIPPED], Skipped("…", f"and {more} more")]
    return pack.sealed(
        pack.Pack(
            schema_version=pack.SCHEMA_VERSION,
            tool=pack.Tool("coderag-ci", __version__),
            change=pack.ChangeInfo(
                made.kind,
                made.base,
                made.head,
                made.merge_base,
                made.title,
                len(found.files),
                sum(file.added for file in found.files),
                sum(file.deleted for file in found.files),
                made.paths,
            ),
            diff=result.diff,
            facts=tuple(result.facts),
            evidence=tuple(result.evidence),
            dropped=tuple(result.dropped[:_MOST_DROPPED]),
            dropped_more=max(0, len(result.dropped) - _MOST_DROPPED),
            skipped=tuple(skipped),
            degradations=tuple(result.degradations),
            budget=pack.Budget(
                config.budget,
                result.quota_diff,
                result.quota_evidence,
                result.used_diff,
                result.used_evidence,
                config.tokenizer,
            ),
            index=result.index,
            settings=settings(config),
            trace=pack.Trace(
                tuple(recorder.stages),
                result.indexed,
                result.reused,
                tuple(result.notes),
                tuple(dict(query) for query in result.queries),
            ),
            remote=web_address(job.repo.remote_url()),
        )
    )


def settings(config: Config) -> dict[str, str]:
    """Return the settings that differ from the defaults, as text, for the pack and ``verify``."""
    import msgspec

    from coderag_ci.config import keys, value_of

    default = Config()
    return {
        key: msgspec.json.encode(value_of(config, key)).decode()
        for key in keys()
        if value_of(config, key) != value_of(default, key)
    }


def first_difference(one: pack.Pack, other: pack.Pack) -> str:
    """Name the first stage whose result differs between two packs of the same change."""

    def found(made: pack.Pack) -> list[object]:
        return [(e.path, e.ranges, {c.name: c.rank for c in e.channels}) for e in made.evidence]

    def scores(made: pack.Pack, name: str) -> list[object]:
        return [(e.path, e.start, e.scores.get(name)) for e in made.evidence]

    stages = (
        ("change", one.change, other.change),
        ("settings", one.settings, other.settings),
        ("diff", [f.path for f in one.diff], [f.path for f in other.diff]),
        ("index", (one.index, one.skipped), (other.index, other.skipped)),
        ("queries", one.trace.queries, other.trace.queries),
        ("facts", one.facts, other.facts),
        ("recall", found(one), found(other)),
        ("fuse", scores(one, "fused"), scores(other, "fused")),
        ("rerank", scores(one, "rerank"), scores(other, "rerank")),
        ("degradations", one.degradations, other.degradations),
    )
    return next((name for name, left, right in stages if left != right), "assemble")
