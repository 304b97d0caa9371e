"""From the hunks of a commit to gold: which units of the view they stand in."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from coderag_ci.diff import FileDiff
from coderag_ci.eval.cases import Case, Gold
from coderag_ci.parse.languages import CONTAINERS, UNIT_KINDS, language_of
from coderag_ci.parse.row import CHUNK_FIELDS, CHUNK_KINDS, NAME_FIELDS, Row
from coderag_ci.pathrules import GENERATED, TEST, VENDORED, PathRules

_MOST_GOLD = 20
_WORD = re.compile(r"\w+")
_HOLDERS = (*CONTAINERS, "toplevel")  # where a new unit may stand in any place
_UNITS = frozenset(UNIT_KINDS)


class Edit(NamedTuple):
    """Consecutive deleted and added lines; ``old`` and ``new`` number the first of each side.

    A side without lines is numbered by what comes next on it.
    """

    old: int
    new: int
    deleted: tuple[str, ...]
    added: tuple[str, ...]

    @property
    def lines(self) -> tuple[int, int]:
        """Old lines, first and last; of an insertion those that it stands between."""
        if self.deleted:
            return self.old, self.old + len(self.deleted) - 1
        return max(self.old - 1, 0), max(self.old, 1)  # 0: before the first line

    @property
    def counts(self) -> bool:
        """Whether more than white space changed."""
        before, after = ("".join("".join(side).split()) for side in (self.deleted, self.added))
        return before != after

    def words(self) -> tuple[frozenset[tuple[str, int]], frozenset[tuple[str, int]]]:
        """Return the words that went and those that came, each with how many."""
        gone, come = (Counter(_WORD.findall("\n".join(s))) for s in (self.deleted, self.added))
        return frozenset((gone - come).items()), frozenset((come - gone).items())


class Place(NamedTuple):
    """A file of the view and what is changed in it. ``new_blob`` is what the edits led to."""

    path: str
    old_blob: str
    new_blob: str
    edits: tuple[Edit, ...]


class Candidate(NamedTuple):
    """A case that lacks its gold: ``asked`` are the edits of its query, ``places`` the others."""

    case: Case
    asked: tuple[Edit, ...]
    places: tuple[Place, ...]


class Unit(NamedTuple):
    """A unit of a file; of what stands between units, all up to the next."""

    start: int
    end: int
    symbol: str
    kind: str


class _Piece(NamedTuple):
    """Lines of one edit in one unit. ``anywhere``: a new unit, whose place is arbitrary."""

    lines: tuple[int, int]
    inserted: bool
    anywhere: bool


def is_code(path: str, rules: PathRules) -> bool:
    """Whether a path is code that a case may show: parsed, indexed, written by people."""
    language = language_of(path)
    return (
        path.isprintable()  # else no JSON can hold it
        and language.module != ""
        and language.name != "markdown"
        and not rules.flags(path) & (GENERATED | VENDORED)
        and rules.why_not(path, language.name) == ""
    )


def edits_of(file: FileDiff) -> list[Edit]:
    """Return the edits of a file in order of line."""
    found = []
    for hunk in file.hunks:
        for same, some in itertools.groupby(hunk.numbered(), key=lambda line: line[0] == " "):
            if same:
                continue
            lines = list(some)
            deleted = tuple(text for sign, _, _, text in lines if sign == "-")
            added = tuple(text for sign, _, _, text in lines if sign == "+")
            found.append(Edit(lines[0][1], lines[0][2], deleted, added))
    return found


class Units:
    """The units of a parsed file, by line."""

    def __init__(self, row: Row) -> None:
        """``row``: one without chunks has no units."""
        table = np.frombuffer(row.chunks, "<u4").reshape(-1, CHUNK_FIELDS).tolist()
        units = {Unit(c[2], c[3], row.names[c[7]], CHUNK_KINDS[c[6]]) for c in table}
        self._units = sorted(units, key=lambda unit: (unit.end - unit.start, unit))
        self._whole = Unit(1, max(row.lines, 1), "", "toplevel")
        self._defined = [
            line
            for _, kind, line in np.frombuffer(row.definitions, "<u4")
            .reshape(-1, NAME_FIELDS)
            .tolist()
            if CHUNK_KINDS[kind] in _UNITS
        ]

    def holding(self, first: int, last: int) -> list[Unit]:
        """Return the units that hold some lines, the smallest first; the last is the file."""
        found = [unit for unit in self._units if unit.start <= first and last <= unit.end]
        return [*found, self._whole]

    def around(self, first: int, last: int) -> Unit:
        """Return the smallest unit that holds some lines."""
        return self.holding(first, last)[0]

    def defines(self, first: int, last: int) -> bool:
        """Whether a unit is defined on one of some lines."""
        return any(first <= line <= last for line in self._defined)


def _pieces(edit: Edit, before: Units, after: Units) -> Iterator[tuple[Unit, _Piece]]:
    """Yield what of an edit stands in which unit."""
    if not edit.deleted:
        if all(map(_closes, edit.added)):  # the rest of what another edit began
            return
        unit = _around_insertion(edit, before, after)
        defines = after.defines(edit.new, edit.new + len(edit.added) - 1)
        yield unit, _Piece(edit.lines, True, defines and unit.kind in _HOLDERS)
        return
    numbered = [(edit.old + n, text) for n, text in enumerate(edit.deleted)]
    filled = [line for line, text in numbered if text.strip()]
    if not filled:  # blank lines that something took the place of
        yield before.around(*edit.lines), _Piece(edit.lines, False, False)
    for unit, some in itertools.groupby(filled, key=lambda line: before.around(line, line)):
        lines = list(some)
        yield unit, _Piece((lines[0], lines[-1]), False, False)


def _around_insertion(edit: Edit, before: Units, after: Units) -> Unit:
    """Return the unit that inserted lines belong to.

    At the border of two units both sides have to be asked: what is appended to a function
    stands behind its last line, a decorator before its first. A diff may also give the end of
    the unit above as new, and that of the new unit as old: the new one is then not in it.
    """
    telling = (n for n, text in enumerate(edit.added, edit.new) if not _closes(text))
    first = next(telling, edit.new)
    became, *outer = after.holding(first, first)
    above, below = max(edit.lines[0], 1), edit.lines[1]
    for line in (above, below):
        unit = before.around(line, line)
        if (unit.symbol, unit.kind) == (became.symbol, became.kind):
            return unit
    holding = before.holding(above, below)
    if any(unit.kind not in _HOLDERS for unit in outer):
        return holding[0]
    return next(unit for unit in holding if unit.kind in _HOLDERS)


def _closes(text: str) -> bool:
    return text.strip(" \t\r\f{}()[];,") in ("", "end")


def _items(place: Place, old: Row, new: Row, rules: PathRules, case: Case) -> Iterator[Gold]:
    """Yield the gold of one file."""
    before, after = Units(old), Units(new)
    by_unit: dict[Unit, list[_Piece]] = {}
    for edit in place.edits:
        for unit, piece in _pieces(edit, before, after):
            by_unit.setdefault(unit, []).append(piece)
    for unit, pieces in sorted(by_unit.items()):
        certain = [piece for piece in pieces if not piece.anywhere]
        if not certain and case.kind == "missed":
            continue
        told = certain or pieces  # beside other hunks, the place of a new unit says nothing
        yield Gold(
            path=place.path,
            start=unit.start,
            end=unit.end,
            hunks=tuple(piece.lines for piece in told),
            symbol=unit.symbol,
            kind=unit.kind,
            is_test=bool(rules.flags(place.path) & TEST),
            insert_only=all(piece.inserted for piece in told),
            file_only=not certain,
            in_query_file=place.path in case.query_files,
        )


def complete(
    candidate: Candidate, old: Mapping[str, Row], new: Mapping[str, Row], rules: PathRules
) -> Case | str:
    """Return the case with its gold, or why there is none.

    ``old`` and ``new`` give the parsed blobs of the places by path. Files that no parser
    got through, and those that say of themselves that they are generated, hold no gold.
    """
    places = [
        place
        for place in candidate.places
        if not (old[place.path].skipped or new[place.path].skipped or old[place.path].generated)
    ]
    gold: list[Gold] = []
    for place in sorted(places):
        gold += _items(place, old[place.path], new[place.path], rules, candidate.case)
    if not gold:
        return "no gold"
    if all(item.file_only for item in gold):
        return "new units alone, besides the query file"
    if len(gold) > _MOST_GOLD:
        return f"more than {_MOST_GOLD} gold units"
    return msgspec.structs.replace(
        candidate.case,
        gold=tuple(gold),
        mech_share=_mechanical(candidate.asked, [e for place in places for e in place.edits]),
        gold_has_test=any(item.is_test for item in gold),
        gold_has_nontest=any(not item.is_test for item in gold),
    )


def _mechanical(asked: Sequence[Edit], edits: Sequence[Edit]) -> float:
    """Return the share of edits that change the same words as one of the query's."""
    known = {edit.words() for edit in asked} - {(frozenset(), frozenset())}
    return round(sum(edit.words() in known for edit in edits) / len(edits), 3)
