"""Hidden characters that the change adds: what a reviewer reads is not what a program does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from coderag_ci.characters import code_point, hidden
from coderag_ci.diff import FileDiff
from coderag_ci.facts.given import Given, count, fact
from coderag_ci.pack import Fact, Place

_MOST_NAMED = 6  # different characters
_MARK = "\ufeff"  # of the byte order, where a file begins


def facts(given: Given) -> list[Fact]:
    """Return one fact for all lines that gain a hidden character, and paths that hold one."""
    places: list[Place] = []
    found: Counter[str] = Counter()
    for file in given.diff.files:
        for line, characters in _added(file):
            places.append(Place(file.path, line))
            found.update(characters)
    if not places:
        return []
    named = ", ".join(
        code_point(character) + (f" ({number}×)" if number > 1 else "")
        for character, number in sorted(found.items())[:_MOST_NAMED]
    )
    more = len(found) - _MOST_NAMED
    rest = f" and {more} more" if more > 0 else ""
    text = (
        f"{count(found.total(), 'invisible or direction-changing character')} "
        f"in {count(len(places), 'added line')}: {named}{rest}"
    )
    return [fact("hidden characters", text, places)]


def _added(file: FileDiff) -> Iterator[tuple[int, list[str]]]:
    """Yield (new line, its hidden characters that no deleted line of the hunk has as often)."""
    in_path = [character for _, character in hidden(file.path)]
    if in_path and file.status in ("added", "renamed"):
        yield 1, in_path
    for hunk in file.hunks:
        before: Counter[str] = Counter()
        for line in hunk.lines:
            if line[0] == "-":
                before.update(character for _, character in hidden(line[1:].removesuffix("\r")))
        for sign, _, number, text in hunk.numbered():
            if sign != "+":
                continue
            new = []
            for place, character in hidden(text.removesuffix("\r")):
                if before[character]:
                    before[character] -= 1
                elif not (character == _MARK and number == 1 and place == 0):
                    new.append(character)
            if new:
                yield number, new
