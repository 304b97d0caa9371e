"""Text of the repository in Markdown: nothing in it is markup, a link, or a mention of anybody.

Code stands in fences, names and whatever a forge would link in inline code, the rest is escaped.
Hidden characters are written out.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator

from coderag_ci.characters import visible
from coderag_ci.parse.languages import BY_NAME
from coderag_ci.render.text import one_line

_FENCE_LANGUAGES = (frozenset(BY_NAME) - {"text"}) | {"diff"}

# What GitHub or GitLab makes a link of where it stands outside code: @name, #1, GH-1, !1, ~label,
# addresses. A name between backticks is code already.
_NAMED_OR_LINKED = re.compile(
    r"`([^`]*)`|((?<![^\s`])[^\s`]*(?:@|[#!$%&~]\w|\bGH-\d|://|\bwww\.)\S*)", re.IGNORECASE
)
_MARKUP = re.compile(r"([\\`*_\[\]#|~$])")
_BLOCK = re.compile(r"^(?=[-+=/]|\d+[.)](?:\s|$))(\d*)(.)")  # a list, a line; what GitLab obeys


def fenced(lines: Iterable[str], language: str) -> Iterator[str]:
    """Yield a code block whose fence is longer than any run of backticks in it."""
    text = [_shown(line) for line in lines]
    fence = "`" * max(3, _longest_run(text) + 1)
    yield fence + (language if language in _FENCE_LANGUAGES else "")
    yield from text
    yield fence


def code(text: str) -> str:
    """Return inline code that nothing in the text can end."""
    text = _line(text)
    ticks = "`" * (_longest_run([text]) + 1)
    pad = " " if text[:1] == "`" or text[-1:] == "`" or not text else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"


def prose(text: str) -> str:
    """Return a sentence for a line of Markdown; what stands between backticks is code."""
    text = _line(text)
    parts: list[str] = []
    end = 0
    for match in _NAMED_OR_LINKED.finditer(text):
        parts += [_escaped(text[end : match.start()]), code(match[2] or match[1])]
        end = match.end()
    parts.append(_escaped(text[end:]))
    return _BLOCK.sub(r"\1\\\2", _apart(part for part in parts if part))


def in_html(text: str) -> str:
    """Return text for inside an HTML element, or for a quoted attribute."""
    return html.escape(_line(text), quote=True)


def _apart(parts: Iterable[str]) -> str:
    """Join; two codes that touched would end each other."""
    joined = ""
    for part in parts:
        joined += (" " if joined[-1:] == part[:1] == "`" else "") + part
    return joined


def _escaped(text: str) -> str:
    return _MARKUP.sub(r"\\\1", html.escape(text, quote=False))


def _line(text: str) -> str:
    return one_line(visible(text.replace("\r\n", "\n")))


def _shown(line: str) -> str:
    return visible(line.removesuffix("\r"))


def _longest_run(lines: Iterable[str]) -> int:
    return max((len(run) for line in lines for run in re.findall("`+", line)), default=0)
