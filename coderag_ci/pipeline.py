"""The flow, from a change to a pack: it names the stages in order and holds no detail."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from coderag_ci import __version__, diff, findings, pack, view
from coderag_ci.config import Config, keys, value_of
from coderag_ci.diff import Diff
from coderag_ci.errors import CoderagError, SetupError, where_raised
from coderag_ci.job import Found, Job
from coderag_ci.links import web_address
from coderag_ci.pathrules import PathRules, Skipped
from coderag_ci.trace import Recorder
from coderag_ci.view import View

if TYPE_CHECKING:  # it imports numpy, which an empty diff does without
    from coderag_ci.explain import Explanation

_MOST_SKIPPED = 50
_MOST_DROPPED = 50


def make_pack(job: Job) -> pack.Pack:
    """Make the pack of a change.

    A change without files gives an empty pack at once. Raises CoderagError where there is no
    diff; what goes wrong after it becomes a degradation, and where nothing else is left, the
    pack is the diff and what a search for its names gives.
    """
    recorder = Recorder()
    rules = PathRules(job.config)
    found, head = _compare_in_time(job, rules, recorder)
    if not found.files:
        lint, _ = findings.of_change(job.results, found, 0, len)
        return _seal(job, found, Found(lint=lint), recorder)
    return _seal(job, found, _search(job, found, head, rules, recorder), recorder)


def _search(
    job: Job, found: Diff, head: View | None, rules: PathRules, recorder: Recorder
) -> Found:
    """Search the index, or, where that fails or takes too long, for the names of the diff."""
    from coderag_ci import deadline, names, search

    made = Recorder()
    try:
        result = job.deadline.run(
            lambda: search.search(job, found, head or _head_view(job, rules), rules, made),
            deadline.SEARCH,
        )
    except deadline.LateError as error:
        why = str(error)
    except CoderagError as error:
        why = "; ".join(filter(None, (error.message, error.hint)))
    except Exception as error:
        why = f"a bug, {where_raised(error)}"
    else:
        recorder.stages += made.stages
        return result
    recorder.stages += made.stages.copy()  # what is late may still add to its own
    return names.search(job, found, head, rules, recorder, why)


def explain(job: Job, place: str) -> Explanation:
    """Say why the units of a path, or the one of a line of it, are or are not in the pack.

    Raises CoderagError.
    """
    from coderag_ci import explain, redact, search

    recorder = Recorder()
    rules = PathRules(job.config)
    found, head = _compare(job, rules, recorder)
    head = head or _head_view(job, rules)
    asked = explain.find(job, found, head, place)
    result = search.search(job, found, head, rules, recorder) if found.files else Found()
    told = explain.explain(job, found, head, result, asked)
    return redact.redact(told) if job.redact else told


def _compare_in_time(job: Job, rules: PathRules, recorder: Recorder) -> tuple[Diff, View | None]:
    """Compare as below, but do not wait for a git that never answers. Raises SetupError."""
    from coderag_ci.deadline import DIFF, LateError

    late = min(0.0, job.deadline.left() - DIFF)
    try:
        return job.deadline.run(lambda: _compare(job, rules, recorder), late)
    except LateError as error:
        raise SetupError(
            "git gave no diff before the deadline", "give more time with --deadline"
        ) from error


def _compare(job: Job, rules: PathRules, recorder: Recorder) -> tuple[Diff, View | None]:
    """Return the diff, and the head view where it takes part in making the diff."""
    head = _head_view(job, rules) if job.change.kind == "worktree" else None
    with recorder.stage("diff") as counts:
        found = diff.compute(job.repo, job.change.sides, head, job.change.paths)
        counts["files"] = len(found.files)
        counts["hunks"] = sum(len(file.hunks) for file in found.files)
    return found, head


def _head_view(job: Job, rules: PathRules) -> View:
    return view.head_view(job.repo, job.change.kind, job.change.head, rules)


def _seal(job: Job, found: Diff, result: Found, recorder: Recorder) -> pack.Pack:
    made = job.change
    config = job.config
    skipped = [*found.skipped, *result.skipped]
    if len(skipped) > _MOST_SKIPPED:
        more = len(skipped) - _MOST_SKIPPED
        skipped = [*skipped[:_MOST_SKIPPED], Skipped("…", f"and {more} more")]
    whole = pack.Pack(
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
            made.commits,
        ),
        diff=result.diff,
        facts=tuple(result.facts),
        facts_more=result.facts_more,
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
            result.used_facts,
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
        lint=result.lint,
        remote=web_address(job.repo.remote_url()),
        redacted=None,
    )
    if job.redact:
        from coderag_ci.redact import redacted

        whole = redacted(whole)
    return pack.sealed(whole)


def settings(config: Config) -> dict[str, str]:
    """Return the settings that differ from the defaults, as text, for the pack and ``verify``."""
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
        ("lint", one.lint, other.lint),
        ("index", (one.index, one.skipped), (other.index, other.skipped)),
        ("queries", one.trace.queries, other.trace.queries),
        ("facts", one.facts, other.facts),
        ("recall", found(one), found(other)),
        ("fuse", scores(one, "fused"), scores(other, "fused")),
        ("rerank", scores(one, "final"), scores(other, "final")),
        ("degradations", one.degradations, other.degradations),
    )
    return next((name for name, left, right in stages if left != right), "assemble")
