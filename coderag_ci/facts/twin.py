"""The old pattern that the change removed from several files, still present elsewhere."""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from coderag_ci.diff import FileDiff
from coderag_ci.facts.given import Given, count, fact_in_order, quote
from coderag_ci.index import Index
from coderag_ci.pack import Fact, Place
from coderag_ci.parse.languages import language_of
from coderag_ci.text import GRAM, TOKEN, Tokens, grams_of

SHORTEST = 6  # tokens of a pattern
FEWEST_FILES = 2  # that it was removed from: once may be about that one place
_COVERED = 0.8  # of a pattern's tokens that stand elsewhere
_MOST_PLACES = 30  # where it still is; what more have is an idiom of the repository
_LONGEST = 400  # characters of a line that is looked at; people write no longer ones
_MOST_LINES = 2_000  # replaced, that are looked at
_MOST_PATTERNS = 60
_MOST_DOCS = 200  # whose text is compared with one pattern
_WORD = re.compile(r"[^\W\d]\w+")


@dataclass
class _Pattern:
    """Consecutive tokens of replaced lines that their units no longer have."""

    tokens: Tokens
    shown: str
    sources: set[tuple[str, int]] = field(default_factory=set)  # path and line of base
    lines: set[frozenset[str]] = field(default_factory=set)  # tokens of each of these lines
    words: set[str] = field(default_factory=set)  # of these lines

    @property
    def files(self) -> int:
        return len({path for path, _ in self.sources})


def facts(given: Given) -> list[Fact]:
    """Return one fact a pattern, what was removed from most files first.

    The places are those with the lines most like the replaced ones first. A place that
    several patterns are in is told of once.
    """
    found = []
    taken: set[Place] = set()
    for pattern in _patterns(given):
        places = [place for place in _places(given, pattern) if place not in taken]
        if not 0 < len(places) <= _MOST_PLACES:
            continue
        taken.update(places)
        text = (
            f"{quote(pattern.shown)} was removed from {count(len(pattern.sources), 'line')} of "
            f"{count(pattern.files, 'file')}, and the same tokens are still in "
            f"{count(len(places), 'place')}"
        )
        found.append(fact_in_order("twin", text, places))
    return found


def _patterns(given: Given) -> list[_Pattern]:
    found: dict[Tokens, _Pattern] = {}
    added = grams(
        line[1:]
        for file in given.files
        for hunk in file.hunks
        for line in hunk.lines
        if line[0] == "+"
    )
    left = _MOST_LINES
    for file in sorted(given.files, key=lambda f: (-f.deleted, f.path)):
        if file.kind != "text" or not is_source(file.old_path) or not given.written(file.old_path):
            continue
        still = added | grams(_touched_units(given, file.path))
        for line, text in itertools.islice(replaced(file), left):
            left -= 1
            for tokens, shown in gone(text, still):
                one = found.setdefault(tokens, _Pattern(tokens, shown))
                one.sources.add((file.old_path, line))
                one.lines.add(frozenset(TOKEN.findall(text)))
                one.words.update(_WORD.findall(text))
    some = [one for one in found.values() if one.files >= FEWEST_FILES]
    some.sort(key=lambda one: (-one.files, -len(one.sources), -len(one.tokens), one.tokens))
    return some[:_MOST_PATTERNS]


def is_source(path: str) -> bool:
    """Whether a path is code: in a language that is parsed, and no prose."""
    language = language_of(path)
    return bool(language.module) and language.name != "markdown"


def _touched_units(given: Given, path: str) -> Iterator[str]:
    """Yield head's lines of what the change touches in a file."""
    for number in given.index.docs_of(path):
        doc = given.index.doc(number)
        if given.is_touched(path, doc.start, doc.end):
            yield from given.texts.lines(doc.blob)[doc.start - 1 : doc.end]


def replaced(file: FileDiff) -> Iterator[tuple[int, str]]:
    """Yield the deleted lines that something took the place of, with their old numbers."""
    for hunk in file.hunks:
        for same, some in itertools.groupby(hunk.numbered(), key=lambda line: line[0] == " "):
            lines = [] if same else list(some)
            if any(sign == "+" for sign, _, _, _ in lines):
                yield from (
                    (old, text) for sign, old, _, text in lines if sign == "-" and _is_short(text)
                )


def grams(lines: Iterable[str]) -> set[Tokens]:
    """Return the sequences of four tokens in the lines that people write, each within a line."""
    return grams_of(filter(_is_short, lines))


def _is_short(line: str) -> bool:
    return len(line) <= _LONGEST


def gone(line: str, still: set[Tokens]) -> Iterator[tuple[Tokens, str]]:
    """Yield the long runs of a line whose sequences of four tokens are all gone, and their text."""
    spans = list(TOKEN.finditer(line))
    tokens = tuple(span.group() for span in spans)
    start = 0
    for i in range(len(tokens) - GRAM + 2):
        if i > len(tokens) - GRAM or tokens[i : i + GRAM] in still:
            end = i + GRAM - 1
            if i > start and end - start >= SHORTEST:
                yield tokens[start:end], line[spans[start].start() : spans[end - 1].end()]
            start = i + 1


def _places(given: Given, pattern: _Pattern) -> list[Place]:
    """Return where a pattern still is, the lines most like its own first."""
    index = given.index
    docs = _candidates(given.index, pattern)
    least = max(SHORTEST, math.ceil(_COVERED * len(pattern.tokens)))
    wanted = {pattern.tokens[i : i + least] for i in range(len(pattern.tokens) - least + 1)}
    given.texts.load(index.doc(doc).blob for doc in docs)
    found: list[tuple[float, Place]] = []
    for number in docs:
        doc = index.doc(number)
        lines = given.texts.lines(doc.blob)[doc.start - 1 : doc.end]
        for at, line in enumerate(lines, doc.start):
            tokens = tuple(TOKEN.findall(line)) if _is_short(line) else ()
            runs = (tokens[i : i + least] for i in range(len(tokens) - least + 1))
            if not wanted.isdisjoint(runs) and not given.is_touched(doc.path, at, at):
                like = max(_similar(set(tokens), own) for own in pattern.lines)
                found.append((like, Place(doc.path, at, doc.symbol)))
    found.sort(key=lambda one: (-one[0], one[1].path, one[1].line))
    return [place for _, place in found]


def _similar(one: set[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other)


def _candidates(index: Index, pattern: _Pattern) -> list[int]:
    """Return the docs that hold all of a pattern's words and a rare one of its lines.

    None where there are so many that their text is not read.
    """
    held = {word: index.holders(word) for word in sorted(pattern.words)}
    own = [held[word] for token in set(pattern.tokens) for word in _WORD.findall(token)]
    rare = [docs for docs in held.values() if 0 < len(docs) <= index.common]
    if not own or not rare:
        return []
    docs = np.intersect1d(functools.reduce(np.intersect1d, own), np.concatenate(rare))
    found: list[int] = docs[~index.hidden()[docs]].tolist()
    return found if len(found) <= _MOST_DOCS else []
