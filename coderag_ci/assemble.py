"""Chooses what the pack shows: the diff within its quota, then evidence in what is left."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import msgspec

from coderag_ci import weights
from coderag_ci.diff import Diff, FileDiff, Hunk
from coderag_ci.index import Doc
from coderag_ci.pack import Channel, DiffFile, Dropped, Evidence, Fact, telling
from coderag_ci.parse.windows import LIMIT
from coderag_ci.pathrules import TEST, PathRules, flag_names, is_lock
from coderag_ci.text import Texts
from coderag_ci.tokens import Counter

# Tokens of what stands around content, in the more costly of Markdown and prompt.
_ENTRY_OVERHEAD = 36
_LINE_OVERHEAD = 1.2  # three digits of a line's number
_FILE_OVERHEAD = 60
_HUNK_OVERHEAD = 24
_NAMES_SHARE = 0.4  # of the diff's quota, for the headings of its files
_MOST_PARTS = 2  # chunks of one unit
_JOIN_GAP = 2  # lines between two ranges that are not worth a "…"
_LEADING = 5  # best pieces that go before shorter ones that are worth more for their place
_LEADING_SHARE = 0.23  # of the evidence budget, at most, for one that does
_OWN_SHARE = 0.15  # of the evidence budget, kept for the rest of the changed units


class _Floor(NamedTuple):
    """Room kept for a kind of evidence: its share, and what found it or what it is."""

    share: float
    channels: tuple[str, ...] = ()
    flag: int = 0
    languages: tuple[str, ...] = ()


# Kept of the evidence budget for the best pieces of each kind, where there are any: what ranks
# first may be of one kind only, and a reviewer needs a caller that was rightly left alone, too.
_FLOORS = {
    "callers": _Floor(0.04, ("uses", "gone")),
    "tests": _Floor(0.04, ("test",), flag=TEST),
    "partners": _Floor(0.04, ("co-changed-lines", "co-change", "kept", "deleted")),
    "definitions": _Floor(0.04, ("defines",)),
    "docs": _Floor(0.04, languages=("markdown", "rst")),
}
# What these find stays a candidate however many others rank before it.
LINKS = tuple(dict.fromkeys(name for floor in _FLOORS.values() for name in floor.channels))


@dataclass(frozen=True)
class Hit:
    """A doc that was found, its scores, its ranks by channel, and how to say what found it."""

    doc: Doc
    scores: dict[str, float]
    ranks: Mapping[str, int]
    explain: Callable[[], tuple[Channel, ...]]


ENCLOSING = "enclosing"  # the channel, and the kind, of the rest of a changed unit
Unit = tuple[str, tuple[int, int], str]  # path, lines and symbol: what one piece shows
Outcome = Literal["taken", "does not fit", "already shown", "in the diff", "beyond top-k"]


@dataclass(frozen=True)
class Try:
    """What became of one unit when the evidence was filled.

    ``kind`` is the kind of evidence whose room was tried, ``enclosing`` for the rest of a
    changed unit, empty for the room that all share. ``tokens`` is what the piece costs,
    ``left`` what there was for it; ``worth`` is what orders the filling.
    """

    unit: Unit
    outcome: Outcome
    ranges: tuple[tuple[int, int], ...] = ()
    kind: str = ""
    worth: float = 0.0
    tokens: int = 0
    left: int = 0


class Assembled(NamedTuple):
    """The evidence, the tokens it uses, what is not shown, and how it was filled, in order."""

    evidence: list[Evidence]
    used: int
    dropped: list[Dropped]
    tries: list[Try]


@dataclass
class _Piece:
    """One unit on its way into the pack."""

    doc: Doc
    ranges: list[tuple[int, int]]
    scores: dict[str, float]
    hits: list[Hit]
    costs: dict[tuple[tuple[int, int], ...], int] = field(default_factory=dict)  # by ranges

    @property
    def unit(self) -> Unit:
        """What the piece is of."""
        return unit_of(self.doc)

    @functools.cached_property
    def channels(self) -> tuple[Channel, ...]:
        """What found the piece; worked out for the pieces that are tried only."""
        return _channels(self.hits)


def assemble_diff(
    diff: Diff, quota: int, count: Counter, rules: PathRules
) -> tuple[tuple[DiffFile, ...], int]:
    """Fit the diff into its quota; returns the files in path order and the tokens used.

    Files are named first, as far as two fifths of the quota go. Hunks follow by the weight
    of their file's change: ordinary code, then tests, then what is generated or vendored,
    and in each the most changed first; but no file takes more than a third before each has
    had its turn. Lock files get no hunks. What is cut is counted.
    """
    order = sorted(
        diff.files, key=lambda f: (_rank_of_file(f, rules), -f.added - f.deleted, f.path)
    )
    left = quota
    fits: list[_Fit] = []
    for file in order:
        heading = count(file.path) + _FILE_OVERHEAD
        if left - heading >= quota * (1 - _NAMES_SHARE):
            left -= heading
            fits.append(_Fit(file, [] if is_lock(file.path) else list(file.hunks)))
    for most in (quota // 3, quota):
        for fit in fits:
            left -= _take(fit, min(left, most), count, whole=most < quota)
    shown = {fit.file.path: _shown(fit) for fit in fits}
    return tuple(shown[f.path] for f in diff.files if f.path in shown), quota - left


@dataclass
class _Fit:
    """A changed file on its way into the pack: hunks that wait and hunks that are in."""

    file: FileDiff
    waiting: list[Hunk]
    kept: list[Hunk] = field(default_factory=list)


def _take(fit: _Fit, left: int, count: Counter, *, whole: bool) -> int:
    """Move the next hunks that fit; returns the tokens used. ``whole``: never part of one."""
    used = 0
    while fit.waiting:
        hunk = fit.waiting[0]
        cost = left + 1
        if len(hunk.lines) <= left - used:  # a line is a token at least
            cost = count("\n".join(hunk.lines)) + _HUNK_OVERHEAD
        if used + cost > left:
            part = None if whole else _head_of(hunk, left - used, count)
            if part is not None:
                fit.kept.append(part)
                used += count("\n".join(part.lines)) + _HUNK_OVERHEAD
            return used
        fit.kept.append(fit.waiting.pop(0))
        used += cost
    return used


def _shown(fit: _Fit) -> DiffFile:
    file = fit.file
    return DiffFile(
        file.path,
        file.old_path,
        file.status,
        file.kind,
        f"{file.old_mode:06o}",
        f"{file.new_mode:06o}",
        file.added,
        file.deleted,
        tuple(fit.kept),
        cut_hunks=len(file.hunks) - len(fit.kept),
        cut_lines=_size(file) - sum(len(hunk.lines) for hunk in fit.kept),
    )


def assemble_facts(
    facts: Sequence[Fact], quota: int, count: Counter
) -> tuple[tuple[Fact, ...], int]:
    """Return the first facts that fit, and the tokens used."""
    kept: list[Fact] = []
    used = 0
    for fact in facts:
        places = " ".join(f"{place.path}:{place.line} {place.symbol}" for place in fact.places)
        cost = count(f"{fact.kind} {fact.text} {places}") + 15 * len(fact.places) + _FILE_OVERHEAD
        if used + cost <= quota:
            kept.append(fact)
            used += cost
    return tuple(kept), used


def _rank_of_file(file: FileDiff, rules: PathRules) -> int:
    if is_lock(file.path):
        return 3
    flags = flag_names(rules.flags(file.path))
    return 2 if "generated" in flags or "vendored" in flags else int("test" in flags)


def _size(file: FileDiff) -> int:
    return sum(len(hunk.lines) for hunk in file.hunks)


def _head_of(hunk: Hunk, left: int, count: Counter) -> Hunk | None:
    """Return the first lines of a hunk that fit, where that is worth showing."""
    if left < 60:
        return None
    low, high = 0, min(left, len(hunk.lines))
    while low < high:
        middle = (low + high + 1) // 2
        if count("\n".join(hunk.lines[:middle])) + _HUNK_OVERHEAD <= left:
            low = middle
        else:
            high = middle - 1
    lines = hunk.lines[:low]
    if not any(line[0] in "+-" for line in lines):
        return None
    return msgspec.structs.replace(
        hunk,
        lines=lines,
        old_count=sum(line[0] != "+" for line in lines),
        new_count=sum(line[0] != "-" for line in lines),
    )


def unit_of(doc: Doc) -> Unit:
    """Return the unit that a chunk is part of."""
    return doc.path, doc.unit, doc.symbol


def assemble_evidence(
    hits: Sequence[Hit],
    own: Sequence[Hit],
    diff: Diff,
    quota: int,
    top_k: int,
    count: Counter,
    texts: Texts,
) -> Assembled:
    """Fill the evidence section, one entry a unit; those chosen are shown best first.

    Chosen is by score and length, with room kept for the best of each kind. ``own`` are docs
    of changed units: what the diff does not show of them may take up to 15 %. A piece that
    does not fit is dropped by name and the next one is tried; lines that an earlier piece
    shows (a method of a class that is there whole) are left out.
    """
    in_diff = {file.path: [_span(hunk) for hunk in file.hunks] for file in diff.files}
    added = {file.path: file.added_lines() for file in diff.files}
    texts.load(hit.doc.blob for hit in (*hits, *own))
    pieces = _pieces(hits, in_diff, added, texts, widen=True)
    first = {(piece.doc.path, piece.doc.unit) for piece in pieces[:top_k]}
    others = [hit for hit in own if (hit.doc.path, hit.doc.unit) not in first]
    own_pieces = _pieces(others, in_diff, added, texts, widen=False)
    reserve = min(int(quota * _OWN_SHARE), sum(_cost(p, texts, count) for p in own_pieces))
    filling = _Filling(quota - reserve, top_k, count, texts)
    kinds = {piece.unit: _kinds(piece, top_k, early=n < top_k) for n, piece in enumerate(pieces)}
    tried = [p for n, p in enumerate(pieces) if n < top_k or kinds[p.unit]]
    filling.fill_by_worth(tried, kinds, {piece.unit for piece in pieces[:top_k]}, quota)
    place = {piece.unit: number for number, piece in enumerate(pieces)}
    filling.chosen.sort(key=lambda piece: place[piece.unit])
    filling.too_long.sort(key=lambda piece: place[piece.unit])
    kept = {piece.unit for piece in filling.chosen}
    told = {one.unit for one in filling.tries}
    beyond = [piece for piece in pieces if piece.unit not in told]
    filling.left += reserve
    filling.fill([piece for piece in own_pieces if piece.unit not in kept], ENCLOSING)
    dropped = [_drop(piece, "does not fit the budget") for piece in filling.too_long]
    dropped += [_drop(piece, "below the first entries") for piece in beyond]
    evidence = _by_file([_evidence(piece, texts) for piece in filling.chosen])
    seen = dict.fromkeys(unit_of(hit.doc) for hit in hits)
    tries = [
        *filling.tries,
        *(Try(piece.unit, "beyond top-k") for piece in beyond),
        *(Try(unit, "in the diff") for unit in seen if unit not in place),
    ]
    return Assembled(evidence, quota - filling.left, dropped, tries)


def _kinds(piece: _Piece, top_k: int, *, early: bool) -> tuple[str, ...]:
    """Return the kinds that a piece is of, where it is good enough for the room kept for them.

    Good enough is one of the first ``top_k`` of a channel of the kind; where the file decides
    the kind, one of the first of all pieces (``early``).
    """
    return tuple(
        kind
        for kind, floor in _FLOORS.items()
        if (early and (piece.doc.flags & floor.flag or piece.doc.language in floor.languages))
        or any(h.ranks.get(name, top_k + 1) <= top_k for h in piece.hits for name in floor.channels)
    )


class _Filling:
    """Takes pieces as long as they fit, and notes what became of each."""

    def __init__(self, left: int, top_k: int, count: Counter, texts: Texts) -> None:
        self.left = left
        self.chosen: list[_Piece] = []
        self.too_long: list[_Piece] = []
        self.tries: list[Try] = []
        self._top_k = top_k
        self._count = count
        self._texts = texts
        self._worth: dict[Unit, float] = {}
        self._shown: dict[str, list[tuple[int, int]]] = {}

    def fill_by_worth(
        self,
        pieces: Sequence[_Piece],
        kinds: Mapping[Unit, Sequence[str]],
        first: Container[Unit],
        quota: int,
    ) -> None:
        """Take the pieces that fit: the best five of the ranking, then those worth most.

        What is kept for a kind is closed to pieces that are not of it, until all were tried
        once. Pieces that are not among the ``first`` are taken only where room is still kept
        for their kind.
        """
        costs = {piece.unit: _cost(piece, self._texts, self._count) for piece in pieces}
        self._worth = {piece.unit: _worth(piece, costs[piece.unit]) for piece in pieces}
        leading = {
            piece.unit
            for piece in pieces[:_LEADING]
            if piece.unit in first and costs[piece.unit] <= quota * _LEADING_SHARE
        }
        ordered = sorted(pieces, key=lambda p: (p.unit not in leading, -self._worth[p.unit]))
        kept = _kept_room(ordered, kinds, costs, quota)
        waiting = []
        for piece in ordered:
            unseen = self._unseen(piece)
            if not unseen:
                self.tries.append(Try(piece.unit, "already shown"))
                continue
            if unseen != piece.ranges:
                piece.ranges = unseen
                costs[piece.unit] = _cost(piece, self._texts, self._count)
            cost = costs[piece.unit]
            own = [kind for kind in kinds[piece.unit] if kept.get(kind, 0) > 0]
            closed = [room for kind, room in kept.items() if kind not in own and room > 0]
            left = self.left - sum(closed)
            places = self._top_k - len(self.chosen) - min(len(closed), self._top_k // 4)
            if cost <= left and places > 0 and (own or piece.unit in first):
                needed = piece.unit not in first or cost > left - sum(kept[kind] for kind in own)
                self._take(piece, own[0] if own and needed else "", cost, left)
                kept.update({kind: max(0, kept[kind] - cost) for kind in own})
            elif piece.unit in first:
                waiting.append(piece)
        self.fill(waiting, most=self._top_k)

    def fill(self, pieces: Sequence[_Piece], kind: str = "", most: int | None = None) -> None:
        """Take the pieces that fit, in their order, until ``most`` are chosen."""
        for piece in pieces:
            piece.ranges = self._unseen(piece)
            if not piece.ranges:
                self.tries.append(Try(piece.unit, "already shown", kind=kind))
                continue
            if most is not None and len(self.chosen) >= most:
                continue
            cost = _cost(piece, self._texts, self._count)
            if cost <= self.left:
                self._take(piece, kind, cost, self.left)
            else:
                self.too_long.append(piece)
                self._note(piece, "does not fit", kind, cost, self.left)

    def _unseen(self, piece: _Piece) -> list[tuple[int, int]]:
        """Return the lines of a piece that no earlier one shows."""
        lines = self._texts.lines(piece.doc.blob)
        return _without(piece.ranges, self._shown.get(piece.doc.path, []), lines)

    def _take(self, piece: _Piece, kind: str, cost: int, left: int) -> None:
        self._note(piece, "taken", kind, cost, left)
        self.chosen.append(piece)
        self.left -= cost
        self._shown.setdefault(piece.doc.path, []).extend(piece.ranges)

    def _note(self, piece: _Piece, outcome: Outcome, kind: str, cost: int, left: int) -> None:
        worth = self._worth.get(piece.unit, 0.0)
        self.tries.append(Try(piece.unit, outcome, tuple(piece.ranges), kind, worth, cost, left))


def _kept_room(
    pieces: Sequence[_Piece],
    kinds: Mapping[Unit, Sequence[str]],
    costs: Mapping[Unit, int],
    quota: int,
) -> dict[str, int]:
    """Return the room that is kept for each kind, of pieces with those worth most first.

    That is what the best pieces take that fit into the kind's share.
    """
    room = {}
    for kind, floor in _FLOORS.items():
        share = int(quota * floor.share)
        used = 0
        for piece in pieces:
            if kind in kinds[piece.unit]:
                cost = costs[piece.unit]
                used += cost if used + cost <= share else 0
        room[kind] = used
    return room


def _pieces(
    hits: Sequence[Hit],
    in_diff: dict[str, list[tuple[int, int]]],
    added: dict[str, set[int]],
    texts: Texts,
    widen: bool,
) -> list[_Piece]:
    """Group hits by unit, in order of the best; lines that the diff shows are left out.

    A unit is shown by its best chunks, no more than ``_MOST_PARTS`` of them, so that one
    long function does not fill the pack.
    """
    pieces: dict[Unit, _Piece] = {}
    for hit in hits:
        doc = hit.doc
        key = unit_of(doc)
        ranges = [(doc.start, doc.end)]
        if widen and doc.symbol and _is_small(doc, texts):
            ranges = [doc.unit]
        elif doc.signature[0] and doc.start > doc.signature[1]:
            ranges.insert(0, doc.signature)
        piece = pieces.get(key)
        if piece is None:
            pieces[key] = _Piece(doc, ranges, hit.scores, [hit])
        elif len(piece.hits) < _MOST_PARTS:
            piece.ranges += ranges
            piece.hits.append(hit)
    found = []
    for piece in pieces.values():
        lines = texts.lines(piece.doc.blob)
        piece.ranges = _without(
            _joined(piece.ranges, lines), in_diff.get(piece.doc.path, []), lines
        )
        if piece.ranges:
            piece.ranges = _with_signature(piece, lines, added.get(piece.doc.path, set()))
            found.append(piece)
    return found


def _with_signature(piece: _Piece, lines: Sequence[str], added: set[int]) -> list[tuple[int, int]]:
    """Put back a signature that the diff shows as context, so that a piece has its beginning."""
    first, last = piece.doc.signature
    if not first or any(line in added for line in range(first, last + 1)):
        return piece.ranges
    return _joined([(first, last), *piece.ranges], lines)


def _is_small(doc: Doc, texts: Texts) -> bool:
    first, last = doc.unit
    return sum(len(line) + 1 for line in texts.lines(doc.blob)[first - 1 : last]) <= LIMIT


def _span(hunk: Hunk) -> tuple[int, int]:
    return hunk.new_start, hunk.new_start + hunk.new_count - 1


def _joined(ranges: Iterable[tuple[int, int]], lines: Sequence[str]) -> list[tuple[int, int]]:
    """Sort and join ranges that touch or that only a few lines part."""
    result: list[tuple[int, int]] = []
    for start, last in sorted(ranges):
        end = min(last, len(lines))
        if result and start <= result[-1][1] + 1 + _JOIN_GAP:
            result[-1] = (result[-1][0], max(end, result[-1][1]))
        elif start <= end:
            result.append((start, end))
    return result


def _without(
    ranges: Sequence[tuple[int, int]], shown: Sequence[tuple[int, int]], lines: Sequence[str]
) -> list[tuple[int, int]]:
    """Take lines out of ranges; what is left blank goes too."""
    result = list(ranges)
    for first, last in shown:
        cut: list[tuple[int, int]] = []
        for start, end in result:
            if last < start or first > end:
                cut.append((start, end))
                continue
            if start < first:
                cut.append((start, first - 1))
            if last < end:
                cut.append((last + 1, end))
        result = cut
    kept = []
    for start, end in result:
        full = [n for n in range(start, end + 1) if lines[n - 1].strip()]
        if any(c.isalnum() for n in full for c in lines[n - 1]):
            kept.append((full[0], full[-1]))
    return kept


def _text(piece: _Piece, texts: Texts) -> str:
    lines = texts.lines(piece.doc.blob)
    return "\n…\n".join("\n".join(lines[start - 1 : end]) for start, end in piece.ranges)


def _cost(piece: _Piece, texts: Texts, count: Counter) -> int:
    """Return the tokens that a piece takes as it is now; counted once."""
    shown = tuple(piece.ranges)
    if shown not in piece.costs:
        numbers = sum(math.ceil(len(str(end)) / 3) * (end - start + 1) for start, end in shown)
        reasons = " ".join(channel.reason for channel in telling(piece.channels))
        piece.costs[shown] = (
            count(_text(piece, texts))
            + count(f"{piece.doc.path} {piece.doc.symbol} {reasons}")
            + _ENTRY_OVERHEAD
            + math.ceil(_LINE_OVERHEAD * numbers)
        )
    return piece.costs[shown]


def _worth(piece: _Piece, cost: int) -> float:
    """Return what a piece is worth for its place: its score − 0.5 · ln(tokens + 20)."""
    return piece.scores.get("final", 0.0) - weights.LENGTH * math.log(cost + 20)


def _channels(hits: Sequence[Hit]) -> tuple[Channel, ...]:
    """Return each channel once, at its best rank among the hits of a piece."""
    best: dict[str, Channel] = {}
    for hit in hits:
        for channel in hit.explain():
            if channel.name not in best or channel.rank < best[channel.name].rank:
                best[channel.name] = channel
    return tuple(sorted(best.values(), key=lambda channel: (channel.rank, channel.name)))


def _drop(piece: _Piece, reason: str) -> Dropped:
    doc = piece.doc
    return Dropped(doc.path, piece.ranges[0][0], piece.ranges[-1][1], doc.symbol, reason)


def _evidence(piece: _Piece, texts: Texts) -> Evidence:
    doc = piece.doc
    return Evidence(
        path=doc.path,
        blob=doc.blob,
        side="head",
        start=piece.ranges[0][0],
        end=piece.ranges[-1][1],
        symbol=doc.symbol,
        kind=doc.kind,
        language=doc.language,
        flags=flag_names(doc.flags),
        text=_text(piece, texts),
        ranges=tuple(piece.ranges),
        scores=piece.scores,
        channels=piece.channels,
    )


def _by_file(evidence: Sequence[Evidence]) -> list[Evidence]:
    """Put pieces of the same file together, files in order of their best piece."""
    first: dict[str, int] = {}
    for rank, piece in enumerate(evidence):
        first.setdefault(piece.path, rank)
    return sorted(evidence, key=lambda piece: first[piece.path])
