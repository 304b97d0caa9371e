"""The old pattern that the change removed, still present elsewhere."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from coderag_ci.facts.given import Given, count, fact, quote
from coderag_ci.gitrepo import encode_path
from coderag_ci.index import Index
from coderag_ci.pack import Fact, Place
from coderag_ci.parse.languages import language_of
from coderag_ci.parse.terms import parts, term_hash
from coderag_ci.pathrules import TEST
from coderag_ci.segment import Array

_GRAM = 4  # tokens
_SHORTEST = 6  # tokens of a pattern
_COVERED = 0.8  # of a pattern's tokens that stand elsewhere
_MOST_PLACES = 30  # where it still is; what more have is an idiom of the repository
_MOST_LINES = 400  # deleted, that are looked at
_COMMON = 0.02  # of the chunks have a word that is not rare
_MOST_DOCS = 200  # whose text is compared with one pattern
_TOKEN = re.compile(r"\w+|[^\w\s]")
_WORD = re.compile(r"[^\W\d]\w+")

_Tokens = tuple[str, ...]


@dataclass
class Pattern:
    """Tokens that a deleted line had and its unit no longer has."""

    tokens: _Tokens
    shown: str
    replaced: bool
    sources: set[tuple[str, int]] = field(default_factory=set)  # path, old line
    lines: set[frozenset[str]] = field(default_factory=set)  # tokens of each that it was in
    words: set[str] = field(default_factory=set)  # of these lines
    like: float = 0.0
    weight: float = 0.0
    rarest: float = 0.0
    places: list[Place] = field(default_factory=list)


def facts(given: Given) -> list[Fact]:
    found = []
    for pattern in patterns(given):
        text = (
            f"{quote(pattern.shown)} was removed from {count(len(pattern.sources), 'line')} of "
            f"`{min(pattern.sources)[0]}`, and the same tokens are still in "
            f"{count(len(pattern.places), 'place')}"
        )
        found.append(fact("twin", text, pattern.places))
    return found


def patterns(given: Given) -> list[Pattern]:
    """Return the patterns that are still somewhere, those with fewest places first."""
    found: dict[_Tokens, Pattern] = {}
    kept = grams(_added(given))
    lines = 0
    for file in sorted(given.files, key=lambda f: (-f.deleted, f.path)):
        if file.kind != "text" or not file.deleted or not given.written(file.old_path):
            continue
        if not language_of(file.old_path).module or language_of(file.old_path).name == "markdown":
            continue
        still = kept | grams(_units(given, file.path))
        for line, text, replaced in _deleted(file):
            lines += 1
            if lines > _MOST_LINES:
                break
            for tokens, shown in gone(text, still):
                if len(tokens) >= _SHORTEST:
                    one = found.setdefault(tokens, Pattern(tokens, shown, replaced))
                    one.sources.add((file.old_path, line))
                    one.lines.add(frozenset(_TOKEN.findall(text)))
                    one.words.update(_WORD.findall(text))
    taken: set[tuple[str, int]] = set()
    told = []
    for one in sorted(found.values(), key=lambda p: (-len(p.sources), -len(p.tokens), p.tokens)):
        one.places = [p for p in _places(given, one) if (p.path, p.line) not in taken]
        if 0 < len(one.places) <= _MOST_PLACES:
            taken.update((p.path, p.line) for p in one.places)
            told.append(one)
    return told


def _added(given: Given) -> Iterator[str]:
    for file in given.files:
        for hunk in file.hunks:
            yield from (line[1:] for line in hunk.lines if line[0] == "+")


def _units(given: Given, path: str) -> Iterator[str]:
    """Yield head's lines of the units that the change touches."""
    for number in given.index.docs_of(path):
        doc = given.index.doc(number)
        if given.is_touched(path, doc.start, doc.end):
            yield from given.texts.lines(doc.blob)[doc.start - 1 : doc.end]


def _deleted(file) -> Iterator[tuple[int, str, bool]]:
    for hunk in file.hunks:
        replaced = any(line[0] == "+" for line in hunk.lines)
        for sign, old, _, text in hunk.numbered():
            if sign == "-":
                yield old, text, replaced


def grams(lines: Iterable[str]) -> set[_Tokens]:
    """Return the sequences of four tokens in some lines, each within a line."""
    found: set[_Tokens] = set()
    for line in lines:
        tokens = _TOKEN.findall(line)
        found.update(tuple(tokens[i : i + _GRAM]) for i in range(len(tokens) - _GRAM + 1))
    return found


def gone(line: str, still: set[_Tokens]) -> Iterator[tuple[_Tokens, str]]:
    """Yield the longest runs of a line whose sequences of four tokens are all gone."""
    spans = list(_TOKEN.finditer(line))
    tokens = tuple(span.group() for span in spans)
    start = 0
    for i in range(len(tokens) - _GRAM + 2):
        if i > len(tokens) - _GRAM or tokens[i : i + _GRAM] in still:
            if i > start:
                end = i + _GRAM - 1
                yield tokens[start:end], line[spans[start].start() : spans[end - 1].end()]
            start = i + 1


def _places(given: Given, pattern: Pattern) -> list[Place]:
    """Return where a pattern still is, the lines most like its own first."""
    index = given.index
    docs = _candidates(given, pattern)
    least = max(_SHORTEST, math.ceil(_COVERED * len(pattern.tokens)))
    wanted = {pattern.tokens[i : i + least] for i in range(len(pattern.tokens) - least + 1)}
    given.texts.load(index.doc(doc).blob for doc in docs)
    found: list[tuple[float, Place]] = []
    for number in docs:
        doc = index.doc(number)
        lines = given.texts.lines(doc.blob)[doc.start - 1 : doc.end]
        for at, line in enumerate(lines, doc.start):
            tokens = tuple(_TOKEN.findall(line))
            runs = (tokens[i : i + least] for i in range(len(tokens) - least + 1))
            if not wanted.isdisjoint(runs) and not given.is_touched(doc.path, at, at):
                like = max(_similar(set(tokens), own) for own in pattern.lines)
                found.append((like, Place(doc.path, at, doc.symbol)))
    found.sort(key=lambda one: (-one[0], one[1].path, one[1].line))
    pattern.like = found[0][0] if found else 0.0
    return [place for _, place in found]


def _similar(one: set[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other)


def _candidates(given: Given, pattern: Pattern) -> list[int]:
    """Return the docs that hold all of the pattern's words and a rare one of its lines."""
    index = given.index
    common = max(20, int(_COMMON * index.size))
    held = {word: _holders(index, word) for word in pattern.words}
    own = [held[word] for token in pattern.tokens for word in _WORD.findall(token)]
    rare = [docs for docs in held.values() if 0 < len(docs) <= common]
    if not own or not rare:
        return []
    pattern.weight = sum(math.log(index.size / max(1, len(held[w]))) for w in {w for t in pattern.tokens for w in _WORD.findall(t)})
    pattern.rarest = min(len(d) for d in own)/index.size
    docs = functools.reduce(np.intersect1d, own)
    docs = np.intersect1d(docs, np.concatenate(rare))
    found = docs[~index.hidden()[docs]].tolist()
    return found if len(found) <= _MOST_DOCS else []


def _holders(index: Index, word: str) -> Array:
    terms = parts(word)
    return index.term(term_hash(terms[0]))[0] if terms else np.zeros(0, np.int64)
