"""Functions whose signature differs between base and head, with calls outside the change."""

from __future__ import annotations

import re

from coderag_ci.facts.given import (
    Given,
    count,
    definitions,
    fact,
    is_local,
    quote_where_it_differs,
    signatures,
)
from coderag_ci.facts.uses import Target, is_telling, place_of, uses
from coderag_ci.pack import Fact
from coderag_ci.parse.terms import name_hash

_MOST_DEFINITIONS = 3  # a name of so many places belongs to none of them


def facts(given: Given) -> list[Fact]:
    """Return one fact a function, those with most calls first."""
    found = []
    for file in given.files:
        if file.kind != "text" or file.status not in ("modified", "renamed"):
            continue
        before = signatures(given.base.get(file.old_path), given.texts.lines(file.old_blob))
        row = given.head.get(file.path)
        after = signatures(row, given.texts.lines(file.new_blob))
        defined = definitions(row)
        for symbol in sorted(before.keys() & after.keys()):
            target = Target(file.path, symbol, defined.get(symbol, ""), after[symbol])
            if _tokens(before[symbol]) == _tokens(after[symbol]) or is_local(symbol, defined):
                continue
            some = uses(given, target, {"call"}, by_name=_is_known_by_name(given, target))
            calls = [place_of(given.index, use) for use in some]
            calls = [p for p in calls if not given.is_touched(p.path, p.line, p.line)]
            if calls:
                text = (
                    f"`{symbol}` changed from "
                    f"{quote_where_it_differs(before[symbol], after[symbol])} to "
                    f"{quote_where_it_differs(after[symbol], before[symbol])}; "
                    f"{count(len(calls), 'unit')} outside the changed lines "
                    f"{'call' if len(calls) != 1 else 'calls'} it"
                )
                found.append(fact("signature", text, calls))
    return sorted(found, key=lambda one: -len(one.places) - one.more)


def _is_known_by_name(given: Given, target: Target) -> bool:
    defined = given.index.definitions(name_hash(target.called))
    return is_telling(target) and len(defined) < _MOST_DEFINITIONS


def _tokens(signature: str) -> list[str]:
    """Return what of a signature is more than layout and annotations."""
    plain = re.sub(r"@\w+(?:\([^()]*\))?|,\s*(?=[)\]>])", "", signature)
    return re.findall(r"\w+|[^\w\s]", plain)
