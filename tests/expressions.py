"""Evaluates the expressions of GitHub's workflows, as far as our files use them.

Known are names of contexts, strings, ``==``, ``!=`` and ``&&``. Anything else, and a name that
nothing has set, is an AssertionError: GitHub would take a misspelt name as empty without a word.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_TOKEN = re.compile(
    r"\s*(?:'(?P<text>(?:[^']|'')*)'|(?P<name>[A-Za-z_][\w.-]*)|(?P<sign>==|!=|&&))\s*"
)
_OPEN = ("github.event",)  # what an event lacks is empty


def filled(text: object, contexts: Mapping[str, Any]) -> str:
    """Put the values of its expressions into a text."""
    if isinstance(text, bool):
        return str(text).lower()
    return re.sub(r"\$\{\{(.*?)\}\}", lambda m: _shown(value(m[1], contexts)), str(text))


def value(expression: str, contexts: Mapping[str, Any]) -> object:
    """Return what an expression gives."""
    tokens = _tokens(expression.strip())
    found = _comparison(tokens, contexts)
    while tokens:
        sign = tokens.pop(0)
        assert sign == ("sign", "&&"), f"{expression}: this operator is not known here"
        right = _comparison(tokens, contexts)
        found = right if found else found
    return found


def _tokens(expression: str) -> list[tuple[str, str]]:
    found = []
    position = 0
    while position < len(expression):
        match = _TOKEN.match(expression, position)
        assert match, f"{expression}: not known here"
        kind = str(match.lastgroup)
        found.append((kind, match[kind]))
        position = match.end()
    return found


def _comparison(tokens: list[tuple[str, str]], contexts: Mapping[str, Any]) -> object:
    left = _operand(tokens, contexts)
    if not tokens or tokens[0][1] not in ("==", "!="):
        return left
    sign = tokens.pop(0)[1]
    right = _operand(tokens, contexts)
    same = _shown(left).casefold() == _shown(right).casefold()  # as GitHub compares strings
    return same == (sign == "==")


def _operand(tokens: list[tuple[str, str]], contexts: Mapping[str, Any]) -> object:
    kind, text = tokens.pop(0)
    assert kind != "sign", f"{text}: an operand was expected"
    return text.replace("''", "'") if kind == "text" else _looked_up(text, contexts)


def _looked_up(name: str, contexts: Mapping[str, Any]) -> object:
    found: Any = contexts
    for key in name.split("."):
        if name.startswith(_OPEN) and found is not contexts:
            found = found.get(key, "") if isinstance(found, Mapping) else ""
            continue
        assert key in found, f"{name}: nothing has set {key}"
        found = found[key]
    return found


def _shown(value: object) -> str:
    assert isinstance(value, (str, bool, int)), f"{value!r} is no value for a text"
    return str(value).lower() if isinstance(value, bool) else str(value)
