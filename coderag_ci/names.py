"""A search for the names of a diff over git: what is left where the index can not be searched."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from coderag_ci import assemble, findings, tokens, view
from coderag_ci.deadline import Deadline, LateError
from coderag_ci.diff import Diff
from coderag_ci.errors import CoderagError
from coderag_ci.index import Doc
from coderag_ci.job import Found, Job
from coderag_ci.pack import Channel
from coderag_ci.parse.languages import language_of
from coderag_ci.pathrules import GENERATED, VENDORED, PathRules, asks_nothing
from coderag_ci.text import Texts
from coderag_ci.trace import Recorder
from coderag_ci.view import View

_NAME = re.compile(r"[^\W\d]\w{3,60}")
_DEFINED = re.compile(
    r"\b(?:class|def|enum|fn|func|function|interface|module|struct|trait|type)\s+([^\W\d]\w{2,60})"
)
_MOST_LINES = 5_000  # of the diff
_MOST_NAMES = 12
_MOST_FILES = 40
_MOST_PLACES = 3  # in a file
_AROUND = 3  # lines
_LEAST_SECONDS = 1.0  # also where the deadline has passed
_MOST_SECONDS = 20.0
_FRAME = 400  # tokens of header and instructions


def search(
    job: Job, diff: Diff, head: View | None, rules: PathRules, recorder: Recorder, why: str
) -> Found:
    """Show the diff, and the lines elsewhere that hold its names. ``why``: what went wrong.

    Needs neither the store nor a parser nor a model. Where git fails, too, or hangs, the diff
    alone is shown. ``head``: the view, where it is known.
    """
    count = tokens.counter(job.config.tokenizer)
    quota = int(job.config.budget * job.config.diff_share)
    found = Found(quota_diff=quota)
    with recorder.stage("names") as counts:
        recorder.degradations.append(
            f"no search of the index: {why}; names alone were searched for"
        )
        found.lint, linted = findings.of_change(job.results, diff, quota, count)
        found.diff, found.used_diff = assemble.assemble_diff(diff, quota - linted, count, rules)
        found.used_diff += linted
        left = max(0, job.config.budget - found.used_diff - _FRAME)
        found.quota_evidence = left
        seconds = min(_MOST_SECONDS, max(_LEAST_SECONDS, job.deadline.left()))
        try:
            assembled = Deadline(seconds).run(
                lambda: _evidence(job, diff, head, rules, left, count, seconds), 0
            )
            found.evidence, found.used_evidence, found.dropped, found.tries = assembled
        except (CoderagError, OSError, LateError) as error:
            recorder.degradations.append(f"no search for names: {error}")
        counts["evidence"] = len(found.evidence)
    found.degradations = recorder.degradations
    return found


def _evidence(
    job: Job,
    diff: Diff,
    head: View | None,
    rules: PathRules,
    quota: int,
    count: tokens.Counter,
    seconds: float,
) -> assemble.Assembled:
    head = head or view.head_view(job.repo, job.change.kind, job.change.head, rules)
    hits = _hits(job, diff, head, rules, seconds / 2)
    return assemble.assemble_evidence(
        hits, [], diff, quota, job.config.top_k, count, Texts(job.repo, head)
    )


def _hits(job: Job, diff: Diff, head: View, rules: PathRules, seconds: float) -> list[assemble.Hit]:
    """Return the places of the names, those in the files that hold the rarest names first."""
    wanted = names_of(diff)
    if not wanted:
        return []
    blobs = {entry.path: entry.blob for entry in head.entries}
    changed = {file.path for file in diff.files}
    places: dict[str, dict[str, list[int]]] = {}
    word = re.compile(rf"\b(?:{'|'.join(map(re.escape, wanted))})\b")
    for path, number, line in job.repo.grep(wanted, job.change.sides, seconds):
        if path in changed or path not in blobs or rules.flags(path) & (GENERATED | VENDORED):
            continue
        for name in word.findall(line):
            places.setdefault(path, {}).setdefault(name, []).append(number)
    holders = Counter(name for held in places.values() for name in held)
    scores = {path: sum(1 / holders[name] for name in held) for path, held in places.items()}
    best = sorted(places, key=lambda path: (-scores[path], path))[:_MOST_FILES]
    return [
        _hit(path, blobs[path], held, number, scores[path], rank, rules)
        for rank, path in enumerate(best, 1)
        for held in [sorted(places[path], key=lambda name: (holders[name], name))]
        for number in _lines(places[path], held)
    ]


def _lines(places: dict[str, list[int]], names: Sequence[str]) -> list[int]:
    """Return the first line of each name, the rarest first."""
    return list(dict.fromkeys(places[name][0] for name in names))[:_MOST_PLACES]


def _hit(
    path: str,
    blob: str,
    names: Sequence[str],
    number: int,
    score: float,
    rank: int,
    rules: PathRules,
) -> assemble.Hit:
    lines = (max(1, number - _AROUND), number + _AROUND)
    doc = Doc(
        path, blob, language_of(path).name, *lines, lines, (0, 0), "lines", "", rules.flags(path)
    )
    channel = Channel("names", rank, f"holds {', '.join(names)}")
    return assemble.Hit(doc, {"final": round(score, 9)}, {"names": rank}, lambda: (channel,))


def names_of(diff: Diff) -> list[str]:
    """Return what the changed lines define, then what stands around them, then what they use.

    Of the last, names of two parts come first; the most frequent lead each group.
    """
    defined: Counter[str] = Counter()
    around: Counter[str] = Counter()
    used: Counter[str] = Counter()
    left = _MOST_LINES
    for hunk in (h for file in diff.files if not asks_nothing(file.path) for h in file.hunks):
        around.update(_DEFINED.findall(hunk.section))
        for line in hunk.lines[: max(0, left)]:
            (defined if line[0] in "+-" else around).update(_DEFINED.findall(line))
            if line[0] in "+-":
                used.update(_NAME.findall(line))
        left -= len(hunk.lines)
    parted = Counter({name: n for name, n in used.items() if _has_parts(name)})
    ordered = [name for group in (defined, around, parted, used) for name in _by_number(group)]
    return list(dict.fromkeys(ordered))[:_MOST_NAMES]


def _by_number(names: Counter[str]) -> list[str]:
    return sorted(names, key=lambda name: (-names[name], name))


def _has_parts(name: str) -> bool:
    return "_" in name.strip("_") or (name != name.lower() and not name.istitle())
