"""Chooses what the pack shows: the diff within its quota, then evidence in what is left."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import msgspec

from coderag_ci import weights
from coderag_ci.diff import Diff, FileDiff, Hunk
from coderag_ci.index import Doc
from coderag_ci.pack import Channel, DiffFile, Dropped, Evidence, Fact, telling
from coderag_ci.parse.windows import LIMIT
from coderag_ci.pathrules import PathRules, flag_names, is_lock
from coderag_ci.text import Texts
from coderag_ci.tokens import Counter

# Tokens of what stands around content, in the more costly of Markdown and prompt.
_ENTRY_OVERHEAD = 50
_LINE_OVERHEAD = 2  # a line's number
_FILE_OVERHEAD = 60
_HUNK_OVERHEAD = 24
_NAMES_SHARE = 0.4  # of the diff's quota, for the headings of its files
_MOST_PARTS = 2  # chunks of one unit
_JOIN_GAP = 2  # lines between two ranges that are not worth a "…"
_OWN_SHARE = 0.2  # of the evidence budget, kept for the rest of the changed units


@dataclass(frozen=True)
class Hit:
    """A doc that was found, its scores, and how to say what found it."""

    doc: Doc
    scores: dict[str, float]
    explain: Callable[[], tuple[Channel, ...]]


@dataclass
class _Piece:
    """One unit on its way into the pack."""

    doc: Doc
    ranges: list[tuple[int, int]]
    scores: dict[str, float]
    hits: list[Hit]

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


def assemble_evidence(
    hits: Sequence[Hit],
    own: Sequence[Hit],
    diff: Diff,
    quota: int,
    top_k: int,
    count: Counter,
    texts: Texts,
) -> tuple[list[Evidence], int, list[Dropped]]:
    """Fill the evidence section, one entry a unit; those chosen are shown best first.

    Chosen is by score and length. ``own`` are docs of changed units: what the diff does not
    show of them may take up to a fifth. A piece that does not fit is dropped by name and the
    next one is tried; lines that an earlier piece shows (a method of a class that is there
    whole) are left out. Returns (evidence, tokens used, dropped).
    """
    in_diff = {file.path: [_span(hunk) for hunk in file.hunks] for file in diff.files}
    added = {file.path: file.added_lines() for file in diff.files}
    texts.load(hit.doc.blob for hit in (*hits, *own))
    pieces = _pieces(hits, in_diff, added, texts, widen=True)
    found = {(piece.doc.path, piece.doc.unit) for piece in pieces[:top_k]}
    own = [hit for hit in own if (hit.doc.path, hit.doc.unit) not in found]
    own_pieces = _pieces(own, in_diff, added, texts, widen=False)
    chosen: list[_Piece] = []
    too_long: list[_Piece] = []
    shown: dict[str, list[tuple[int, int]]] = {}

    def take(some: Sequence[_Piece], left: int) -> int:
        for piece in some:
            path, lines = piece.doc.path, texts.lines(piece.doc.blob)
            piece.ranges = _without(piece.ranges, shown.get(path, []), lines)
            if not piece.ranges:
                continue
            cost = _cost(piece, texts, count)
            if cost <= left:
                chosen.append(piece)
                left -= cost
                shown.setdefault(path, []).extend(piece.ranges)
            else:
                too_long.append(piece)
        return left

    reserve = min(int(quota * _OWN_SHARE), sum(_cost(p, texts, count) for p in own_pieces))
    best = pieces[:top_k]
    worth = [_worth(piece, texts, count) for piece in best]
    by_worth = sorted(range(len(best)), key=lambda n: (-worth[n], n))
    left = take([best[n] for n in by_worth], quota - reserve)
    rank = {id(piece): number for number, piece in enumerate(best)}
    chosen.sort(key=lambda piece: rank[id(piece)])
    too_long.sort(key=lambda piece: rank[id(piece)])
    left = take(own_pieces, left + reserve)
    dropped = [_drop(piece, "does not fit the budget") for piece in too_long]
    dropped += [_drop(piece, "below the first entries") for piece in pieces[top_k:]]
    evidence = [_evidence(piece, texts) for piece in chosen]
    return _by_file(evidence), quota - left, dropped


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
    pieces: dict[tuple[str, tuple[int, int], str], _Piece] = {}
    for hit in hits:
        doc = hit.doc
        key = (doc.path, doc.unit, doc.symbol)
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
    lines = sum(end - start + 1 for start, end in piece.ranges)
    reasons = " ".join(channel.reason for channel in telling(piece.channels))
    return (
        count(_text(piece, texts))
        + count(f"{piece.doc.path} {piece.doc.symbol} {reasons}")
        + _ENTRY_OVERHEAD
        + _LINE_OVERHEAD * lines
    )


def _worth(piece: _Piece, texts: Texts, count: Counter) -> float:
    """Return what a piece is worth for its place: its score − 0.5 · ln(tokens + 20)."""
    return piece.scores.get("final", 0.0) - weights.LENGTH * math.log(
        _cost(piece, texts, count) + 20
    )


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
