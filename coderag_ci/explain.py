"""Says why a unit is or is not in the pack, from what the stages noted on their way."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from coderag_ci import ranker
from coderag_ci.assemble import ENCLOSING, Try, Unit, unit_of
from coderag_ci.channels import nothing, reason
from coderag_ci.config import CHANNEL_NAMES, weights_of
from coderag_ci.diff import Diff
from coderag_ci.errors import UsageError
from coderag_ci.fuse import gain
from coderag_ci.index import Doc
from coderag_ci.job import Found, Job, Ranking, Scored
from coderag_ci.pathrules import FLAG_NAMES, GENERATED, VENDORED
from coderag_ci.recall import MEASURED
from coderag_ci.text import Texts
from coderag_ci.view import View

SCHEMA_VERSION = 1
_MOST_DIGITS = 100  # of a line's number; Python refuses thousands
_MOST_SHOWN = 200  # characters of an unknown path
_MOST_NEAR = 3  # paths suggested for one that is unknown
_ALIKE = 0.75  # of a name's letters, for it to be suggested


class Place(NamedTuple):
    """A path from the top of the repository, and a line of it; 0 for all of them."""

    path: str
    line: int


class ChannelRank(msgspec.Struct, frozen=True):
    """A unit's rank in a channel (0: not found; the reason says why) and what it adds."""

    name: str
    weight: float
    rank: int
    adds: float
    reason: str


class Filled(msgspec.Struct, frozen=True):
    """A piece that was tried for the pack; ``room`` is the kind whose own room was tried."""

    path: str
    start: int
    end: int
    symbol: str
    room: str
    worth: float
    tokens: int
    left: int


class Explained(msgspec.Struct, frozen=True):
    """What became of one unit.

    ``outcome`` is in-pack, or what kept the unit out: changed, hidden, not-found,
    below-floor, beyond-candidates, beyond-top-k, does-not-fit, already-shown or in-diff.
    ``rank`` of ``candidates`` is its place among all that was found (0: not found). What is
    changed or hidden is not looked for, and has no ``channels``.
    ``learned`` is what each feature gives to the fitted ranker's score, the largest first.
    ``taken_before`` are the pieces that were put into the pack before it was tried.
    """

    start: int
    end: int
    symbol: str
    kind: str
    outcome: str
    why: str
    rank: int = 0
    candidates: int = 0
    scores: dict[str, float] = {}
    channels: tuple[ChannelRank, ...] = ()
    learned: dict[str, float] = {}
    tried: Filled | None = None
    taken_before: tuple[Filled, ...] = ()


class Explanation(msgspec.Struct, frozen=True):
    """The answer for a path, or for a line of it.

    Where no unit can be told, ``outcome`` (empty-change, deleted, renamed, not-in-view,
    not-indexed, no-units, blank, no-unit) and ``why`` say so; else ``outcome`` is ``units``.
    """

    schema_version: int
    path: str
    line: int
    outcome: str
    why: str
    units: tuple[Explained, ...] = ()
    degradations: tuple[str, ...] = ()


def find(job: Job, diff: Diff, head: View, given: str) -> Place:
    """Find what ``PATH`` or ``PATH:LINE`` names, from the current folder or from the top.

    Raises UsageError where the repository has no such path, with those that are near.
    """
    known = {entry.path for entry in head.entries} | head.left_out.keys()
    known.update(skip.path for skip in head.skipped)
    known.update(path for file in diff.files for path in (file.path, file.old_path))
    before, colon, after = given.rpartition(":")
    readings = [(given, 0)]
    if colon and before and after.isascii() and after.isdigit() and len(after) <= _MOST_DIGITS:
        readings.append((before, int(after)))
    for text, line in readings:
        _no_way_in(head, job.repo.from_root(text))
        for path in dict.fromkeys((job.repo.from_root(text), os.path.normpath(text))):
            if path in known or _on_disk(job, path):
                if text != given and line < 1:
                    raise UsageError(f"{given}: lines count from 1", "name a line of the file")
                return Place(path, line)
    path = job.repo.from_root(readings[-1][0])
    if path == "." or any(one.startswith(path.rstrip("/") + "/") for one in known):
        raise UsageError(f"{given or path} is a folder", "name a file, or a line of it: PATH:LINE")
    near = _near(path, known)
    hint = f"near: {', '.join(near)}" if near else "name a path of the repository"
    raise UsageError(f"no such path in what is compared: {_cut(path)}", hint)


def _no_way_in(head: View, path: str) -> None:
    """Raise UsageError for a path behind a link or a submodule, or outside of the repository."""
    parts = path.rstrip("/").split("/")
    if parts[0] == "..":
        raise UsageError(
            f"outside the repository: {_cut(path)}", "name a path of the repository, or --repo"
        )
    for number in range(1, len(parts)):
        folder = "/".join(parts[:number])
        if (kind := head.left_out.get(folder)) is not None:
            raise UsageError(
                f"{folder} is a {kind}, which is not followed", "name what it leads to"
            )


def _cut(path: str) -> str:
    return path if len(path) <= _MOST_SHOWN else f"{path[:_MOST_SHOWN]}…"


def _on_disk(job: Job, path: str) -> bool:
    root = job.repo.root
    if root is None or path.startswith("..") or os.path.isabs(path):
        return False
    return os.path.isfile(root / path)  # never raises: a path may be longer than any file's


def _near(path: str, known: Iterable[str]) -> list[str]:
    """Return paths with the same file name, else those with one that looks like it."""
    by_name: dict[str, list[str]] = {}
    for one in sorted(known):
        by_name.setdefault(one.rpartition("/")[2], []).append(one)
    name = path.rpartition("/")[2]
    names = [name] if name in by_name else difflib.get_close_matches(name, by_name, cutoff=_ALIKE)
    found = [one for near in names for one in by_name[near]]
    return difflib.get_close_matches(path, found, _MOST_NEAR, cutoff=0.0)


def explain(job: Job, diff: Diff, head: View, found: Found, place: Place) -> Explanation:
    """Explain the unit of a line, or each unit of a path. Raises UsageError: no such line."""
    outcome, why = _of_path(diff, head, found, place.path)
    units: tuple[Explained, ...] = ()
    if not outcome:
        assert found.ranking is not None
        teller = _Teller(job, diff, found, found.ranking)
        outcome, why, units = teller.of_place(place)
    return Explanation(
        SCHEMA_VERSION, place.path, place.line, outcome, why, units, tuple(found.degradations)
    )


def _of_path(diff: Diff, head: View, found: Found, path: str) -> tuple[str, str]:
    """Say why nothing of a path can be evidence; empty where something can."""
    if found.ranking is None:
        return "empty-change", "the change is empty, so its pack has no evidence"
    entry = next((entry for entry in head.entries if entry.path == path), None)
    skipped = {**head.left_out, **found.unread}
    if entry is None and path not in skipped:
        for file in diff.files:
            if path == file.path:
                return "deleted", "the change deletes it; only the diff shows it"
            if path == file.old_path:
                return "renamed", f"the change renames it to {file.path}"
        where = "the working tree as git sees it" if head.on_disk else "what is compared"
        return "not-in-view", f"it is on disk but not in {where}: git ignores or does not know it"
    if rule := skipped.get(path):
        return "not-indexed", f"it is not searched: {rule}"
    if not found.ranking.prepared.index.docs_of(path):
        return "no-units", "nothing in it can be searched for"
    return "", ""


class _Teller:
    """Tells what became of the units of a change's head view."""

    def __init__(self, job: Job, diff: Diff, found: Found, ranking: Ranking) -> None:
        self._job = job
        self._found = found
        self._ranking = ranking
        self._index = ranking.prepared.index
        self._texts: Texts = ranking.texts
        self._added = {file.path: file.added_lines() for file in diff.files}
        self._places = {doc: place for place, (doc, _) in enumerate(ranking.hits, 1)}
        self._worth = {doc: place for place, (doc, _) in enumerate(ranking.worth, 1)}
        self._tries: dict[Unit, Try] = {}
        for one in found.tries:  # what was tried twice ends as the last try says
            self._tries[one.unit] = one

    def of_place(self, place: Place) -> tuple[str, str, tuple[Explained, ...]]:
        """Return the outcome for a path or a line, why, and the units meant."""
        docs = self._index.docs_of(place.path)
        lines = self._texts.lines(self._index.doc(docs[0]).blob)
        if place.line > len(lines):
            raise UsageError(f"{place.path} has no line {place.line}", f"it has {len(lines)} lines")
        by_unit: dict[Unit, list[int]] = {}
        for doc in docs:
            by_unit.setdefault(unit_of(self._index.doc(doc)), []).append(doc)
        if not place.line:
            return "units", "", tuple(self._of_unit(some, 0) for some in by_unit.values())
        at = [doc for doc in docs if _holds(self._index.doc(doc), place.line)]
        at = at or [d for d in docs if _covers(self._index.doc(d), place.line)]
        if at:
            unit = unit_of(min(map(self._index.doc, at), key=lambda d: d.unit[1] - d.unit[0]))
            return "units", "", (self._of_unit(by_unit[unit], place.line),)
        if not lines[place.line - 1].strip():
            return "blank", "a blank line between units", ()
        return "no-unit", "the line belongs to no unit that can be searched for", ()

    def _of_unit(self, docs: Sequence[int], line: int) -> Explained:
        best = min(docs, key=lambda doc: self._places.get(doc, len(self._places) + 1))
        doc = self._index.doc(best)
        scored = self._scored(best)
        tried = self._tries.get(unit_of(doc))
        outcome, why = self._outcome(docs, best, tried, line)
        told = tried is not None and tried.outcome in ("taken", "does not fit")
        shown = outcome in ("in-pack", "does-not-fit") and told
        return Explained(
            doc.unit[0],
            doc.unit[1],
            doc.symbol,
            doc.kind,
            outcome,
            why,
            self._places.get(best, 0),
            len(self._places),
            dict(scored[1]) if scored else {},
            self._channels(best) if self._ranking.prepared.allowed[best] else (),
            self._learned(best),
            _filled(tried) if tried and shown else None,
            self._before(tried) if tried and outcome == "does-not-fit" else (),
        )

    def _scored(self, doc: int) -> Scored | None:
        place = self._places.get(doc)
        return self._ranking.hits[place - 1] if place else None

    def _outcome(
        self, docs: Sequence[int], best: int, tried: Try | None, line: int
    ) -> tuple[str, str]:
        doc = self._index.doc(best)
        allowed = [d for d in docs if self._ranking.prepared.allowed[d]]
        if flags := doc.flags & (GENERATED | VENDORED):
            names = " and ".join(name for flag, name in FLAG_NAMES.items() if flag & flags)
            return "hidden", f"its file is {names}, and such files are never evidence"
        if line in self._added.get(doc.path, ()):
            rest = f"; of its unit, {_taken(tried)}" if tried and tried.outcome == "taken" else ""
            return "changed", f"a changed line: the diff shows it, evidence never does{rest}"
        if tried is not None:
            return self._of_try(tried, line)
        if not allowed:
            return "changed", "it has changed lines: the diff shows them, evidence never does"
        if best not in self._places:
            return "not-found", "no channel found it"
        if best not in self._worth:
            return "below-floor", self._below_floor(best)
        place, most = self._worth[best], self._job.config.top_k
        far = f"place {place:,} of those above the floor is too far down to be tried"
        return "beyond-candidates", f"{far} for one of {most} pieces"

    def _of_try(self, tried: Try, line: int) -> tuple[str, str]:
        if tried.outcome == "taken":
            told = _taken(tried)
            if line and not any(first <= line <= last for first, last in tried.ranges):
                told += f", line {line} not among them"
            return "in-pack", told
        if tried.outcome == "does not fit":
            quota = self._found.quota_evidence
            taken = sum(one.tokens for one in self._before(tried))
            kept = quota - taken - tried.left
            left = f"{tried.left:,} of {quota:,} were left for it ({taken:,} taken"
            left += f", {kept:,} kept for changed units and other kinds)" if kept else ")"
            return "does-not-fit", f"it takes {tried.tokens:,} tokens, and {left}"
        if tried.outcome == "already shown":
            return "already-shown", "other pieces of the pack show its lines"
        if tried.outcome == "in the diff":
            return "in-diff", "the diff shows its lines as context"
        most = self._job.config.top_k
        return (
            "beyond-top-k",
            f"the pack has room for {most} pieces (top-k), and others ranked first",
        )

    def _below_floor(self, doc: int) -> str:
        shares = []
        for name in MEASURED:
            one = self._ranking.ranked.get(name)
            if one is not None and (rank := one.ranks.get(doc)) and one.ideal:
                share = one.scores[rank - 1] / one.ideal
                shares.append(f"{share:.3f} in {name}")
        words = f"its words score {' and '.join(shares)}" if shares else "few words are shared"
        return (
            f"no name and no history links it, and {words}, "
            f"below the floor of {self._job.config.floor:g} of the best possible"
        )

    def _channels(self, doc: int) -> tuple[ChannelRank, ...]:
        ranking = self._ranking
        weights = weights_of(self._job.config)
        found = []
        for name in CHANNEL_NAMES:
            one = ranking.ranked.get(name)
            if one is None:
                found.append(ChannelRank(name, weights[name], 0, 0.0, "off"))
            elif rank := one.ranks.get(doc, 0):
                adds = gain(weights[name], self._job.config.rrf_k, rank)
                why = reason(ranking.prepared, name, ranking.asked, doc)
                found.append(ChannelRank(name, weights[name], rank, adds, why))
            else:
                why = nothing(ranking.prepared, name, one)
                found.append(ChannelRank(name, weights[name], 0, 0.0, why))
        return tuple(sorted(found, key=lambda channel: -channel.adds))

    def _learned(self, doc: int) -> dict[str, float]:
        known = self._ranking.prepared.features.get(doc)
        if known is None:
            return {}
        parts = ranker.load().parts(known)
        return dict(sorted(parts.items(), key=lambda part: -abs(part[1])))

    def _before(self, tried: Try) -> tuple[Filled, ...]:
        tries = list(self._found.tries)
        return tuple(_filled(one) for one in tries[: tries.index(tried)] if one.outcome == "taken")


def _holds(doc: Doc, line: int) -> bool:
    return doc.start <= line <= doc.end


def _covers(doc: Doc, line: int) -> bool:
    return doc.unit[0] <= line <= doc.unit[1]


def _taken(tried: Try) -> str:
    """Say which lines the pack shows, and in which room."""
    spans = ", ".join(f"{a}–{b}" if b > a else f"{a}" for a, b in tried.ranges)
    room = ""
    if tried.kind == ENCLOSING:
        room = ", as the rest of a changed unit"
    elif tried.kind:
        room = f", in the room kept for {tried.kind}"
    return f"the pack shows lines {spans}{room}"


def _filled(tried: Try) -> Filled:
    path, _, symbol = tried.unit
    first, last = tried.ranges[0][0], tried.ranges[-1][1]
    return Filled(path, first, last, symbol, tried.kind, tried.worth, tried.tokens, tried.left)
