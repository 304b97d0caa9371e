"""Names that base defines in a changed file, head no longer does there, and head still uses."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from coderag_ci.facts import modules
from coderag_ci.facts.given import (
    CALLABLE,
    TYPES,
    Given,
    count,
    definitions,
    fact,
    is_local,
    signatures,
)
from coderag_ci.facts.uses import Target, is_telling, place_of, uses
from coderag_ci.pack import Fact
from coderag_ci.parse.terms import name_hash
from coderag_ci.resolve import family

_MOST_DEFINITIONS = 3  # at base; a name of so many places belongs to none of them
# Where a name that is imported from a file, or called as a folder's, has to be defined there.
_BY_FILE = frozenset({"python", "javascript", "go"})
_ANYTHING = r"\bimport\s+\*|\bexport\s+\*|\b__getattr__\b|\bglobals\(\)|\bexports\b.*\.\.\."
_BINDS = re.compile(
    r"\b(?:import|from|require|include|use|using|typedef|alias|define|extern|as)\b"
    r"|[\w)\]]\s*(?::?=(?![=>])|:)"
)


def facts(given: Given) -> list[Fact]:
    """Return one fact a name or file, those with most uses first."""
    found = []
    gone = list(_gone(given))
    times = Counter(target.called for target in gone)
    bound = _bound(given, set(times))
    for target in gone:
        elsewhere = bool(given.index.definitions(name_hash(target.called)))
        if (elsewhere or target.called in bound) and not _has_left(given, target):
            continue
        wanted = {"call", "import"} | ({"type"} if target.kind in TYPES else set())
        by_name = (
            is_telling(target)
            and times[target.called] < _MOST_DEFINITIONS
            and target.called not in bound
            and not elsewhere
        )
        some = uses(given, target, wanted, by_name=by_name)
        if some:
            now = "not there now" if elsewhere else "defined nowhere now"
            text = (
                f"`{target.name}` ({target.kind}) was defined in {target.path}, is "
                f"{now}, and is still used in {count(len(some), 'place')}"
            )
            found.append(fact("dangling", text, (place_of(given.index, use) for use in some)))
    found += modules.facts(given)
    return sorted(found, key=lambda one: -len(one.places) - one.more)


def _gone(given: Given) -> Iterator[Target]:
    """Yield what a changed file no longer defines and other files could name."""
    for file in given.files:
        before = definitions(given.base.get(file.old_path))
        after = definitions(given.head.get(file.path))
        if not before.keys() - after.keys():
            continue
        lines = given.texts.lines(file.old_blob)
        heads = signatures(given.base.get(file.old_path), lines)
        for name, kind in sorted(before.items()):
            target = Target(file.old_path, name, kind, heads.get(name, ""))
            if (
                name not in after
                and kind in CALLABLE | TYPES
                and not is_local(name, before)
                and target.called == name.rpartition(".")[2]  # a constructor goes with its class
                and not _is_guarded(target, lines)
            ):
                yield target


def _bound(given: Given, names: set[str]) -> set[str]:
    """Return the names that an added line may bind to something else, by import or assignment."""
    if not names:
        return set()
    found: set[str] = set()
    for file in given.files:
        for hunk in file.hunks:
            for line in hunk.lines:
                if line[0] == "+" and _BINDS.search(line):
                    found.update(names.intersection(re.findall(r"\w+", line)))
    return found


def _has_left(given: Given, target: Target) -> bool:
    """Whether a file is still there, and what imports a name from it finds nothing there."""
    docs = given.index.docs_of(target.path)
    if not docs or family(target.path) not in _BY_FILE:
        return False
    named = re.compile(rf"(?<![\w$]){re.escape(target.called)}(?![\w$])|{_ANYTHING}")
    return not any(map(named.search, given.texts.lines(given.index.doc(docs[0]).blob)))


def _is_guarded(target: Target, lines: Sequence[str]) -> bool:
    """Whether a macro was defined only where it was not yet: others define it, too."""
    if target.kind != "macro":
        return False
    guard = re.compile(rf"#\s*ifndef\s+{target.name}\b|!\s*defined\s*\(?\s*{target.name}\b")
    return any(guard.search(line) for line in lines)
