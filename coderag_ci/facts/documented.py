"""Markdown sections that name what changed and are not in the change themselves."""

from __future__ import annotations

import re

from coderag_ci.facts.given import Given, count, fact, is_compound, units_at
from coderag_ci.pack import Fact, Place
from coderag_ci.parse.languages import language_of

_MOST_SECTIONS = 20  # that name one thing; what more name is a word of the project
_MOST_NAMES = 3  # told


def facts(given: Given) -> list[Fact]:
    """Return one fact for all sections."""
    index = given.index
    sections: dict[str, list[Place]] = {}
    for name in _names(given):
        holders = index.holders(name).tolist()
        docs = [doc for doc in holders if index.doc(doc).language == "markdown"]
        if not docs or len(docs) > _MOST_SECTIONS:
            continue
        for number in docs:
            doc = index.doc(number)
            if given.is_touched(doc.path, doc.start, doc.end) or not given.written(doc.path):
                continue
            lines = given.texts.lines(doc.blob)[doc.start - 1 : doc.end]
            pattern = _pattern(name)
            at = next((n for n, line in enumerate(lines, doc.start) if pattern.search(line)), 0)
            if at:
                sections.setdefault(name, []).append(Place(doc.path, at, doc.symbol))
    if not sections:
        return []
    places = {place for some in sections.values() for place in some}
    names = sorted(sections, key=lambda name: (len(sections[name]), name))
    shown = ", ".join(f"`{name}`" for name in names[:_MOST_NAMES])
    more = f" and {count(len(names) - _MOST_NAMES, 'more name')}" * (len(names) > _MOST_NAMES)
    text = (
        f"{shown}{more} {'is' if len(names) == 1 else 'are'} named in "
        f"{count(len(places), 'Markdown section')} that the change does not touch"
    )
    return [fact("documented elsewhere", text, places)]


def _names(given: Given) -> list[str]:
    """Return the last parts of the names of changed units, of head and of base."""
    found: dict[str, None] = {}
    for file in given.files:
        if file.kind != "text" or language_of(file.path).name == "markdown":
            continue
        if given.rules.flags(file.path):
            continue
        old = {line for hunk in file.hunks for sign, line, _, _ in hunk.numbered() if sign == "-"}
        units = units_at(given.head.get(file.path), given.touched.get(file.path, ()))
        for symbol, _ in [*units, *units_at(given.base.get(file.old_path), old)]:
            last = symbol.rpartition(".")[2]
            if len(last) >= 4 and not last.startswith("__"):
                found[last] = None
    return list(found)


def _pattern(name: str) -> re.Pattern[str]:
    """Return what finds a name: a word that could be anyone's counts in backticks alone."""
    word = rf"(?<![\w$]){re.escape(name)}(?![\w$])"
    return re.compile(word if is_compound(name) else rf"`[^`]*{word}[^`]*`")
