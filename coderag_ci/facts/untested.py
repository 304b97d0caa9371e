"""Changed functions and classes whose name no test uses, where there are tests."""

from __future__ import annotations

from coderag_ci.facts.given import Given, count, fact, quote, units_at
from coderag_ci.pack import Fact, Place
from coderag_ci.parse.languages import language_of
from coderag_ci.parse.terms import name_hash


def facts(given: Given) -> list[Fact]:
    """Return one fact for all of them: a test may still reach each in another way."""
    tests_of = {language_of(path).name for path in given.index.test_paths()}
    unnamed: list[Place] = []
    for file in given.files:
        if (
            file.kind != "text"
            or file.status == "deleted"
            or given.rules.flags(file.path)
            or language_of(file.path).name not in tests_of
        ):
            continue
        for symbol, line in units_at(given.head.get(file.path), given.touched[file.path]):
            last = symbol.rpartition(".")[2]
            if last.startswith("_") or last in ("main", "constructor"):
                continue
            used = given.index.references(name_hash(last))
            if not any(given.index.is_test(use.doc) for use in used):
                unnamed.append(Place(file.path, line, symbol))
    if not unnamed:
        return []
    text = f"no test refers by name to {count(len(unnamed), 'changed unit')}"
    if len(unnamed) == 1:
        text = f"no test refers by name to {quote(unnamed[0].symbol)}"
    return [fact("no test by name", text, unnamed)]
