"""Reads what linters found, from SARIF 2.1.0: ruff's, semgrep's, CodeQL's.

A report is data that anybody may have written: it is read with limits, its paths are compared
and never opened. https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar, cast
from urllib.parse import unquote

import msgspec

from coderag_ci.errors import SetupError

MOST_BYTES = 50 << 20
VERSION = "2.1.0"
LEVELS = ("error", "warning", "note", "none")
_MOST_BASES = 10  # that lead from one to the next
_MOST_MESSAGE = 200  # characters
_MOST_NAME = 80
_FINDS = ("fail", "open", "review")  # kinds of results that a person should see
_LINK = re.compile(r"\[([^\[\]]*)\]\(\d+\)")  # to a related location
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(.*)", re.DOTALL)  # one letter is a drive
_DRIVE = re.compile(r"/?[A-Za-z]:/")
_HINT = "name a file that a linter wrote as SARIF 2.1.0"

T = TypeVar("T")
Level = Literal["error", "warning", "note", "none"]


class Result(NamedTuple):
    """One finding. ``spots`` are its places in the repository: path, first and last line.

    ``suppressed`` says whether its report has it as one that somebody decided to live with.
    """

    tool: str
    rule: str
    level: Level
    message: str
    spots: tuple[tuple[str, int, int], ...]
    suppressed: bool


class _Struct(msgspec.Struct, rename="camel"):
    """Part of a report; what is not named here is skipped."""


class _Text(_Struct):
    text: str | None = None


class _Artifact(_Struct):
    uri: str | None = None
    uri_base_id: str | None = None
    index: int = -1


class _Located(_Struct):
    location: _Artifact | None = None


class _Region(_Struct):
    start_line: int | None = None
    end_line: int | None = None


class _Physical(_Struct):
    artifact_location: _Artifact | None = None
    region: _Region | None = None


class _Location(_Struct):
    physical_location: _Physical | None = None


class _Default(_Struct):
    level: str | None = None


class _Rule(_Struct):
    id: str = ""
    default_configuration: _Default | None = None
    short_description: _Text | None = None


class _Component(_Struct):
    name: str = ""
    rules: list[_Rule] | None = None


class _Tool(_Struct):
    driver: _Component
    extensions: list[_Component] | None = None


class _Part(_Struct):
    index: int = -1


class _Reference(_Struct):
    id: str | None = None
    index: int = -1
    tool_component: _Part | None = None


class _Suppression(_Struct):
    status: str | None = None


class _Result(_Struct):
    rule_id: str | None = None
    rule_index: int = -1
    rule: _Reference | None = None
    level: str | None = None
    kind: str | None = None
    message: _Text | None = None
    locations: list[_Location] | None = None
    suppressions: list[_Suppression] | None = None
    baseline_state: str | None = None


class _Run(_Struct):
    tool: _Tool
    results: list[_Result] | None = None
    artifacts: list[_Located] | None = None
    original_uri_base_ids: dict[str, _Artifact] | None = None


class _Version(_Struct):
    version: str | None = None


class _Log(_Struct):
    runs: list[_Run]


def read(file: str, root: Path | None) -> Iterator[Result]:
    """Yield the findings in a report; ``root`` is the working tree, where there is one.

    Raises SetupError where the file is not there, too large, or no SARIF 2.1.0.
    """
    data = _bytes(file)
    try:
        version = msgspec.json.decode(data, type=_Version).version
        if version != VERSION:
            said = f"SARIF {version[:_MOST_NAME]}" if version else "JSON without a version"
            raise SetupError(f"{file}: {said}, this reads {VERSION}", _HINT)
        runs = msgspec.json.decode(data, type=_Log).runs
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise SetupError(f"{file}: not SARIF {VERSION}: {error}", _HINT) from error
    except RecursionError as error:
        raise SetupError(f"{file}: not SARIF {VERSION}: nested too deeply", _HINT) from error
    for run in runs:
        yield from _Reader(run, root).results()


def _bytes(file: str) -> bytes:
    try:
        with open(file, "rb") as opened:
            data = opened.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SetupError(
            f"{file}: {reason}", "name a file that can be read with --sarif"
        ) from error
    if len(data) > MOST_BYTES:
        raise SetupError(
            f"{file}: larger than {MOST_BYTES >> 20} MiB", "let the linter write fewer findings"
        )
    return data.removeprefix(b"\xef\xbb\xbf")


class _Reader:
    """Reads one run, in which findings refer to rules, files and bases of paths."""

    def __init__(self, run: _Run, root: Path | None) -> None:
        self._run = run
        self._root = root
        tool = run.tool
        self._components = [tool.driver, *(tool.extensions or ())]
        self._rules = {rule.id: rule for part in self._components for rule in part.rules or ()}

    def results(self) -> Iterator[Result]:
        """Yield the findings, without what passed and what a baseline says is gone."""
        for result in self._run.results or ():
            if (result.kind or "fail") in _FINDS and result.baseline_state != "absent":
                yield self._result(result)

    def _result(self, result: _Result) -> Result:
        rule = self._rule(result)
        default = rule.default_configuration
        level = result.level or (default.level if default else None)
        message = result.message or _Text()
        text = message.text or (rule.short_description or _Text()).text or ""
        places = [place.physical_location or _Physical() for place in result.locations or ()]
        found = [(self._path(place.artifact_location), place.region) for place in places]
        return Result(
            _short(self._run.tool.driver.name, _MOST_NAME),
            _short(result.rule_id or rule.id, _MOST_NAME),
            cast("Level", level if level in LEVELS else "warning"),
            _short(_LINK.sub(r"\1", text), _MOST_MESSAGE),
            tuple((path, *_lines(region)) for path, region in found if path),
            any(one.status in (None, "accepted") for one in result.suppressions or ()),
        )

    def _rule(self, result: _Result) -> _Rule:
        """Return the rule by its place, else by its name."""
        reference = result.rule or _Reference()
        part = reference.tool_component
        component = _at(self._components, part.index + 1 if part and part.index >= 0 else 0)
        number = reference.index if reference.index >= 0 else result.rule_index
        name = result.rule_id or reference.id or ""
        by_place = _at(component.rules or (), number) if component else None
        return by_place or self._rules.get(name) or _Rule(id=name)

    def _path(self, place: _Artifact | None) -> str:
        """Return a path of the repository; empty for any other place."""
        if place and place.uri is None:
            known = _at(self._run.artifacts or (), place.index)
            place = known.location if known else None
        if place is None or not place.uri:
            return ""
        bases: Mapping[str, _Artifact] = self._run.original_uri_base_ids or {}
        return _in_repository(_whole(place, bases), self._root)


def _at(items: Sequence[T], number: int) -> T | None:
    return items[number] if 0 <= number < len(items) else None


def _whole(place: _Artifact, bases: Mapping[str, _Artifact]) -> str:
    """Return an address with its bases before it; of an unknown one, as if it were the root."""
    whole, base = place.uri or "", place.uri_base_id
    for _ in range(_MOST_BASES):
        known = bases.get(base or "")
        if known is None or _SCHEME.match(whole) or whole.startswith("/"):
            break
        before = known.uri or ""
        whole = f"{before}{'/' if before and not before.endswith('/') else ''}{whole}"
        base = known.uri_base_id
    return whole


def _in_repository(address: str, root: Path | None) -> str:
    """Return the path from the root of the repository; empty where it is not inside."""
    if scheme := _SCHEME.fullmatch(address):
        address = scheme[2]
        if address.startswith("//"):
            host, _, rest = address[2:].partition("/")
            address = f"/{rest}" if host in ("", "localhost") else ""
        if scheme[1].lower() != "file":
            address = ""
    path = unquote(address, errors="surrogateescape").replace("\\", "/")
    path = posixpath.normpath(path) if path else ".."
    if drive := _DRIVE.match(path):
        path = path.removeprefix("/")
    if path.startswith("/") or drive:
        top = root.as_posix().rstrip("/") + "/" if root else path
        return path[len(top) :] if path.startswith(top) else ""
    return "" if path in (".", "..") or path.startswith("../") else path


def _lines(region: _Region | None) -> tuple[int, int]:
    start = (region.start_line if region else None) or 0
    return start, max(start, (region.end_line if region else None) or start)


def _short(text: str, most: int) -> str:
    text = " ".join(text[: most * 10].split())
    return text if len(text) <= most else text[: most - 1] + "…"
