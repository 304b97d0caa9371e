"""Takes secrets out of a finished pack before anything of it is written, and out of each log line.

A value is replaced by its kind and an ordinal, the same for the same value within a pack, wherever
it stands: in diff, evidence, facts, paths, subjects, reasons, queries and notes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import msgspec

from coderag_ci import secretforms

T = TypeVar("T")
Pack = TypeVar("Pack", bound=msgspec.Struct)  # one with a trace and with counts of what is redacted
_LEAST_EVERYWHERE = 8  # characters of a value that is looked for where nothing tells what it is
_LEAST_CUT = 12  # of one that is cut
_MARK = re.compile(r"‹redacted: ([a-z-]{1,30}) (\d{1,9})›")
_SETTINGS_FILE = re.compile(
    r"(?:^|/)(?:\.env(?:\.[\w.-]*)?|[\w.-]*\.env|\.netrc|\.npmrc|\.pypirc)$"
)


def redacted(made: Pack) -> Pack:
    """Return a pack without secrets, and with how many of each kind it shows; not sealed."""
    without = redact(made)
    counts: dict[str, int] = {}
    shown = msgspec.to_builtins(without)
    del shown["trace"], shown["redacted"]
    for text, _ in _texts(shown, env=False):
        for kind, number in _MARK.findall(text):
            counts[kind] = max(counts.get(kind, 0), int(number))
    return msgspec.structs.replace(without, redacted=dict(sorted(counts.items())))


def redact(made: T) -> T:
    """Return a struct, or a list, without secrets in any of its texts."""
    plain = msgspec.to_builtins(made)
    values = _Values()
    for text, env in _texts(plain, env=False):
        values.learn(text, env)
    if not values.marks:
        return made
    return msgspec.convert(_map(plain, values.without), type(made))


def line(text: str) -> str:
    """Return a line for a log, without secrets."""
    return redact([text])[0]


class _Values:
    """The secrets of a pack: each value with the mark that stands for it."""

    def __init__(self) -> None:
        self.marks: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        self._found: dict[tuple[str, bool], list[secretforms.Secret]] = {}

    def learn(self, text: str, env: bool) -> None:
        """Note the secrets in a text, and the marks that it has already."""
        for kind, number in _MARK.findall(text):
            self._counts[kind] = max(self._counts.get(kind, 0), int(number))
        if (text, env) in self._found:
            return
        found = sorted(secretforms.find(text, env), key=lambda one: (one.start, -one.end))
        self._found[text, env] = found
        end = 0
        for one in found:
            value = text[one.start : one.end]
            if one.start >= end and value not in self.marks and not _MARK.search(value):
                self.marks[value] = self._mark(one.kind, one.whole or value)
            end = max(end, one.end)

    def _mark(self, kind: str, whole: str) -> str:
        if whole not in self.marks:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self.marks[whole] = f"‹redacted: {kind} {self._counts[kind]}›"
        return self.marks[whole]

    def without(self, text: str, env: bool) -> str:
        """Return a text in which each value is replaced, also where it is cut at the end."""
        spans = {
            (one.start, one.end): mark
            for one in self._found[text, env]
            if (mark := self.marks.get(text[one.start : one.end]))
        }
        for value, mark in self.marks.items():
            if len(value) >= _LEAST_EVERYWHERE:
                spans.update(((start, end), mark) for start, end in _places(text, value))
        parts: list[str] = []
        done = 0
        for (start, end), mark in sorted(spans.items(), key=lambda item: (item[0][0], -item[0][1])):
            if start >= done:
                parts += [text[done:start], mark]
                done = end
            elif end > done:  # it overlaps one that was replaced
                done = end
        return "".join([*parts, text[done:]])


def _places(text: str, value: str) -> Iterator[tuple[int, int]]:
    """Yield where a value stands whole, or cut at the end of a line or before a ``…``."""
    start = text.find(value[:_LEAST_EVERYWHERE])
    while start >= 0:
        length = _LEAST_EVERYWHERE
        rest = text[start : start + len(value)]
        while length < len(rest) and rest[length] == value[length]:
            length += 1
        end = start + length
        cut = length >= _LEAST_CUT and (end == len(text) or text[end] in "…\n")
        if length == len(value) or cut:
            yield start, end
        start = text.find(value[:_LEAST_EVERYWHERE], start + 1)


def _texts(value: Any, env: bool) -> Iterator[tuple[str, bool]]:
    """Yield every text, and whether it is of a file of settings; lines of a list as one text."""
    if isinstance(value, str):
        yield value, env
    elif isinstance(value, dict):
        inside = _of_settings(value) or env
        for key, item in value.items():
            yield key, False
            yield from _texts(item, inside)
    elif _is_lines(value):
        yield "\n".join(value), env
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _texts(item, env)


def _map(value: Any, change: Callable[[str, bool], str], env: bool = False) -> Any:
    if isinstance(value, str):
        return change(value, env)
    if isinstance(value, dict):
        inside = _of_settings(value) or env
        return {change(key, False): _map(item, change, inside) for key, item in value.items()}
    if _is_lines(value):
        return change("\n".join(value), env).split("\n")
    return (
        [_map(item, change, env) for item in value] if isinstance(value, (list, tuple)) else value
    )


def _is_lines(value: Any) -> bool:
    return (
        isinstance(value, (list, tuple))
        and bool(value)
        and all(isinstance(item, str) and "\n" not in item for item in value)
    )


def _of_settings(value: Mapping[str, Any]) -> bool:
    path = value.get("path")
    return isinstance(path, str) and _SETTINGS_FILE.search(path) is not None
