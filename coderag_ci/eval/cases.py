"""Cases: what was changed or asked, and which code should have been shown. JSON Lines."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from coderag_ci.errors import SetupError
from coderag_ci.files import read_whole, write_whole

Kind = Literal["cochange", "signature", "missed", "twin", "query", "docstring"]
ONE_FILE = ("cochange", "signature")  # the view is base with one file of head
WHOLE = ("missed", "twin")  # the view is head, the query its whole diff
ASKED = ("query", "docstring")  # the view is base, the query a text


class Gold(msgspec.Struct, frozen=True):
    """A unit that should be shown; lines are 1-based and inclusive, in the case's view.

    Lines that meet one of ``hunks`` (read from a file: by default all of it) meet the item.
    ``file_only``: the place in the file is arbitrary, so the item counts for files alone.
    ``in_query_file``: in a file of the change.
    """

    path: str
    start: int
    end: int
    hunks: tuple[tuple[int, int], ...] = ()
    symbol: str = ""
    kind: str = ""
    is_test: bool = False
    insert_only: bool = False
    file_only: bool = False
    in_query_file: bool = False


class Case(msgspec.Struct, frozen=True):
    """One case. Fields of the format that are not read are not kept.

    ``base`` and ``head`` are full commit ids; ``query`` is the question of the kinds that
    ask one; ``docstring`` are the lines of ``gold[0].path`` that are blanked in the view;
    ``not_gold`` are paths, or folders that end with a slash, that no pack should show.
    """

    id: str
    kind: Kind
    repo: str
    base: str
    head: str = ""
    gold: tuple[Gold, ...] = ()
    language: str = ""
    date: str = ""
    query_files: tuple[str, ...] = ()
    subject: str = ""
    query: str = ""
    docstring: tuple[int, int] = (0, 0)
    not_gold: tuple[str, ...] = ()
    n_code_files: int = 0
    n_changed_lines: int = 0
    mech_share: float = 0.0
    gold_has_nontest: bool = False
    gold_has_test: bool = False
    fix: str = ""
    reference: str = ""

    @property
    def not_asked_for(self) -> tuple[str, ...]:
        """The paths that can not be evidence: a case of one file asks for others."""
        return self.query_files if self.kind in ONE_FILE else ()


class Skip(msgspec.Struct, frozen=True, omit_defaults=True):
    """A case, or a line of the file, that was not run. ``line`` counts from 1; 0: no line."""

    reason: str
    line: int = 0
    id: str = ""


_decoder = msgspec.json.Decoder(Case)


def read(path: str) -> tuple[list[tuple[int, Case]], list[Skip]]:
    """Read a file of cases; returns (line, case) pairs and the lines that are no case.

    Raises SetupError where the file can not be read or holds no case.
    """
    data = read_whole(path, "name a file of cases")
    found: list[tuple[int, Case]] = []
    skipped: list[Skip] = []
    seen: dict[str, int] = {}
    for number, line in enumerate(data.removeprefix(codecs.BOM_UTF8).split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            case = _completed(_decoder.decode(line))
            reason = _why_not(case)
        except (msgspec.MsgspecError, RecursionError) as error:
            skipped.append(Skip(f"not a case: {_plain(error)}", number))
            continue
        if case.id in seen:
            reason = f"the same id as line {seen[case.id]}"
        if reason:
            skipped.append(Skip(reason, number, case.id))
            continue
        seen[case.id] = number
        found.append((number, case))
    if not found and not skipped:
        raise SetupError(f"{path} holds no case", "name a file of cases, one JSON object a line")
    return found, skipped


def _completed(case: Case) -> Case:
    """Fill in what a person may leave out: all lines of a unit, and the head of a question."""
    gold = tuple(
        item if item.hunks else msgspec.structs.replace(item, hunks=((item.start, item.end),))
        for item in case.gold
    )
    head = case.head or (case.base if case.kind in ASKED else "")
    return msgspec.structs.replace(case, gold=gold, head=head)


def _why_not(case: Case) -> str:
    """Say what keeps a case that has the right shape from being run."""
    if not case.id or not case.repo:
        return "not a case: id and repo have to say something"
    if not case.gold and not case.not_gold:
        return "neither gold nor not_gold"
    if case.kind in ASKED and not case.query.strip():
        return f"a {case.kind} case without a query"
    if case.kind in ONE_FILE and len(case.query_files) != 1:
        return f"a {case.kind} case has one query file"
    if case.kind == "docstring" and len(case.gold) != 1:
        return "a docstring case has one gold item"
    for item in case.gold:
        if not item.hunks or any(first < 0 or last < first for first, last in item.hunks):
            return f"gold {item.path}: hunks are pairs of lines, first and last"
    return ""


def _plain(error: BaseException) -> str:
    text = " ".join(str(error).replace("`", "").split())
    return (text[:1].lower() + text[1:160]).replace("jSON", "JSON")


def encode(cases: Iterable[Case]) -> bytes:
    """Return cases as JSON Lines."""
    return b"".join(msgspec.json.encode(case) + b"\n" for case in cases)


def write(path: str, cases: Sequence[Case]) -> None:
    """Write cases to a file, whole or not at all. Raises SetupError."""
    write_whole(path, encode(cases))
