"""The recall channels: each ranks docs of the view for a change, with a reason in words."""

from __future__ import annotations

import bisect
import functools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from coderag_ci.bm25 import PostingsBM25
from coderag_ci.graph import Graph, Level, Link
from coderag_ci.history import Past
from coderag_ci.index import Index
from coderag_ci.parse.terms import name_hash, parts, term_hash, words
from coderag_ci.pathrules import stem_of
from coderag_ci.queries import Asked, Query
from coderag_ci.segment import Array

_MOST_TERMS = 256
_MOST_DEFINITIONS = 10
_REMEMBERED = 4096  # names
_TELLING = 2.0  # idf: about one chunk in eight has the word
_MOST_PLACES = 5  # of a line in a file; more says nothing
_VERBS = {
    "call": "calls",
    "write": "writes",
    "import": "imports",
    "type": "names the type",
    "read": "reads",
}


# How much a use counts by what links it to the definition, and how the reason says so.
_WEIGHTS = {
    Level.SAME_FILE: 1.0,
    Level.INHERITED: 1.0,
    Level.IMPORTED: 1.0,
    Level.SAME_PACKAGE: 0.9,
    Level.ONLY_DEFINITION: 0.8,
    Level.ONE_OF_SEVERAL: 0.4,
}
_LEVELS = {
    Level.SAME_FILE: "",
    Level.INHERITED: ", through a base or derived class",
    Level.IMPORTED: ", imported from it",
    Level.SAME_PACKAGE: ", in the same package",
    Level.ONLY_DEFINITION: ", the only definition",
    Level.ONE_OF_SEVERAL: ", one of {of} definitions",
}
_MOST_SAID = 5  # names whose uses were not followed

_Words = list[tuple[str, list[int]]]  # a word and the hashes of its terms


class Used(NamedTuple):
    """A definition whose uses a change could break; ``paths`` are its file's of head and base."""

    name: str
    paths: tuple[str, ...]
    kind: str
    owner: str


@dataclass(frozen=True)
class Ranked:
    """What one channel found: docs, best first, and their scores.

    ``ideal`` is what a doc made of the query's own words would score; 0 where the channel
    has no such measure.
    """

    docs: list[int]
    scores: list[float]
    ideal: float = 0.0

    @functools.cached_property
    def ranks(self) -> dict[int, int]:
        """Rank of each doc, from 1."""
        return {doc: rank for rank, doc in enumerate(self.docs, 1)}


class Search:
    """A view prepared for the channels: the index, the lexical model, what can be evidence.

    ``past`` is what the history says of the changed paths, ``earlier`` maps a path to lines
    that earlier commits added with the changed units, with the lines where they stand now,
    ``features`` what the fitted ranker knew of each candidate.
    """

    def __init__(
        self,
        index: Index,
        bm25: PostingsBM25,
        allowed: Array,
        limit: int,
        graph: Graph | None = None,
    ) -> None:
        """Take ``allowed`` (n_docs,) bool, what may be evidence, and the most docs of a channel."""
        self.index = index
        self.graph = graph or Graph(index)
        self.bm25 = bm25
        self.allowed = allowed
        self.limit = limit
        self.users = functools.lru_cache(maxsize=_REMEMBERED)(self._users)
        self.overriding = functools.lru_cache(maxsize=_REMEMBERED)(self._overriding)
        self.not_followed: list[str] = []
        self.definers = functools.lru_cache(maxsize=_REMEMBERED)(self._definers)
        self.explained: dict[str, _Words] = {}
        self.past = Past()
        self.earlier: dict[str, dict[str, list[int]]] = {}
        self.asked_words: dict[str, tuple[list[int], Array]] = {}
        self.asked_names: dict[str, dict[str, Array]] = {}
        self.features: dict[int, Array] = {}

    def _users(self, used: Used) -> dict[int, Link]:
        """Return the docs that can use a definition, each with its surest use."""
        found: dict[int, Link] = {}
        for path in used.paths:
            for link in self.graph.users(used.name, path, used.kind, used.owner).links:
                known = found.get(link.use.doc)
                if known is None or link.level < known.level:
                    found[link.use.doc] = link
        return found

    def unlinked(self, used: Used) -> int:
        """Return how many uses of a name were not linked to a definition."""
        return max(
            self.graph.users(used.name, path, used.kind, used.owner).unlinked for path in used.paths
        )

    def _overriding(self, used: Used) -> dict[int, str]:
        """Return the docs with a method above or below a definition's class, and what to say."""
        if not used.owner:
            return {}
        found: dict[int, str] = {}
        for path in used.paths:
            above = {(base.path, base.name) for base in self.graph.bases(used.owner, path)}
            for d in self.graph.overrides(used.name, path, used.owner):
                verb = "is overridden by" if (d.path, d.owner) in above else "overrides"
                found.setdefault(d.doc, f"{verb} `{used.owner}.{used.name}`")
        return found

    def _definers(self, name: str) -> frozenset[int]:
        """Return the docs that define a name."""
        return frozenset(use.doc for use in self.index.definitions(name_hash(name)))

    def rank(self, scores: Array) -> Ranked:
        """Return the best allowed docs with a score above 0; ties by path and line."""
        scores = np.where(self.allowed, scores, 0.0)
        positive = np.flatnonzero(scores > 0)
        if len(positive) > self.limit:
            cut = np.partition(scores[positive], -self.limit)[-self.limit]
            positive = positive[scores[positive] >= cut]
        order = sorted(positive.tolist(), key=lambda doc: (-scores[doc], self.place(doc)))
        best = order[: self.limit]
        return Ranked(best, [float(scores[doc]) for doc in best])

    def place(self, doc: int) -> int:
        """Return the place of a doc by path and line, the last word in every tie."""
        return self.index.places[doc]

    def zeros(self) -> Array:
        """Return a score of 0 for each doc."""
        return np.zeros(len(self.index.lengths))


def terms_of(lines: Iterable[str]) -> list[str]:
    """Return the terms of some lines, repetitions kept."""
    return [term for line in lines for word in words(line) for term in parts(word)]


# ---- by words

LEXICAL: dict[str, Callable[[Asked], list[str]]] = {
    "subject": lambda asked: [asked.title],
    "diff": lambda asked: asked.whole,
    "deleted": lambda asked: asked.deleted,
    "changed": lambda asked: [*asked.added, *asked.deleted],
}


def _query_of(search: Search, lines: Iterable[str]) -> list[int]:
    """Return the hashes of the most telling terms, as often as they occur."""
    counts = Counter(terms_of(lines))
    weight = {term: n * search.bm25.idf_of(term_hash(term)) for term, n in counts.items()}
    best = sorted(counts, key=lambda term: (-weight[term], term))[:_MOST_TERMS]
    return [term_hash(term) for term in best for _ in range(counts[term])]


def _scored(search: Search, channel: str, asked: Asked) -> tuple[list[int], Array]:
    """Return the query of a channel by words and the BM25 of each doc, worked out once."""
    if channel not in search.asked_words:
        query = _query_of(search, LEXICAL[channel](asked))
        search.asked_words[channel] = query, search.bm25.get_scores(query)
    return search.asked_words[channel]


def _by_words(channel: str) -> Callable[[Search, Asked], Ranked]:
    def ranked(search: Search, asked: Asked) -> Ranked:
        query, scores = _scored(search, channel, asked)
        found = search.rank(scores)
        return replace(found, ideal=search.bm25.ideal_score(query))

    return ranked


# ---- by identifiers that not much of the repository has

IDENTIFIERS: dict[str, Callable[[Asked], set[str]]] = {
    "gone": lambda a: a.identifiers(a.deleted) - a.identifiers(a.added),
    "kept": lambda a: a.identifiers(a.deleted) & a.identifiers(a.added),
    "new": lambda a: a.identifiers(a.added) - a.identifiers(a.deleted),
}


def _rare_holders(search: Search, channel: str, asked: Asked) -> dict[str, Array]:
    """Return the identifiers of a channel that are rare, with their docs, worked out once."""
    if channel not in search.asked_names:
        held = {name: search.index.holders(name) for name in sorted(IDENTIFIERS[channel](asked))}
        search.asked_names[channel] = {
            name: docs for name, docs in held.items() if 0 < len(docs) <= search.index.common
        }
    return search.asked_names[channel]


def _by_identifiers(channel: str) -> Callable[[Search, Asked], Ranked]:
    def ranked(search: Search, asked: Asked) -> Ranked:
        scores = search.zeros()
        for docs in _rare_holders(search, channel, asked).values():
            scores[docs] += _rarity(search.index.size, len(docs))
        return search.rank(scores)

    return ranked


def by_uses(search: Search, asked: Asked) -> Ranked:
    """Units that use a changed unit, or a name defined on its changed lines.

    A use counts by what links it to that definition, and a method that overrides a changed one,
    or that one overrides, like a sure use. Names whose uses say too little are left out, and
    ``search.not_followed`` says why.
    """
    scores = search.zeros()
    many: dict[str, int] = {}
    unknown: dict[str, int] = {}
    for used in used_names(asked.units):
        links = search.users(used)
        if len(links) > search.index.common:
            many[used.name] = len(links)
        elif links:
            docs = sorted(links)
            weights = np.array([_WEIGHTS[links[doc].level] for doc in docs])
            scores[docs] += weights * _rarity(search.index.size, len(docs))
        elif unlinked := search.unlinked(used):
            unknown[used.name] = unlinked
        overriding = sorted(search.overriding(used))
        if 0 < len(overriding) <= search.index.common:
            scores[overriding] += _rarity(search.index.size, len(overriding))
    search.not_followed = [
        f"{reason}: {_said(left_out)}"
        for reason, left_out in (
            ("uses of unknown meaning were not followed", unknown),
            ("used in so many units that it ranks none of them", many),
        )
        if left_out
    ]
    return search.rank(scores)


def _said(numbers: Mapping[str, int]) -> str:
    """Return the names with the highest numbers, and how many more there are."""
    most = sorted(numbers.items(), key=lambda item: (-item[1], item[0]))
    said = [f"`{name}` ({n:,})" for name, n in most[:_MOST_SAID]]
    if len(most) > _MOST_SAID:
        said.append(f"and {len(most) - _MOST_SAID} more names")
    return ", ".join(said)


def by_defines(search: Search, asked: Asked) -> Ranked:
    """Units that define a name of the changed lines, where at most 10 do."""
    scores = search.zeros()
    own = {name.rpartition(".")[2] for unit in asked.units for name in unit.names}
    for name in sorted(asked.identifiers(asked.added, asked.deleted) - own):
        docs = sorted(search.definers(name))
        if docs and len(docs) <= _MOST_DEFINITIONS:
            used = len(search.index.term(term_hash(name.lower()))[0])
            scores[docs] += _rarity(search.index.size, max(used, 1)) / len(docs)
    return search.rank(scores)


# ---- by history and by path


def by_co_change(search: Search, asked: Asked) -> Ranked:
    """Units of files that changed together with the changed ones, by BM25 of the diff inside."""
    _, lexical = _scored(search, "diff", asked)
    scores = search.zeros()
    for path, weight in search.past.together.items():
        docs = search.index.docs_of(path)
        scores[docs] = weight * lexical[docs]
    return search.rank(scores)


def by_co_changed_lines(search: Search, _: Asked) -> Ranked:
    """Units that still hold lines which earlier commits added with lines of the changed units."""
    scores = search.zeros()
    for path, places in search.earlier.items():
        docs = search.index.docs_of(path)  # a line is in one of them at most
        spans = [search.index.doc(doc) for doc in docs]
        starts = [span.start for span in spans]
        for at in places.values():
            for line in at if len(at) <= _MOST_PLACES else ():
                number = bisect.bisect_right(starts, line) - 1
                if number >= 0 and line <= spans[number].end:
                    scores[docs[number]] += 1 / len(at)
    return search.rank(scores)


def by_test(search: Search, asked: Asked) -> Ranked:
    """Units of files whose name is that of a changed file but for a test's affix."""
    _, lexical = _scored(search, "diff", asked)
    scores = search.zeros()
    stems = {stem_of(path) for path in asked.paths}
    for path in search.index.paths():
        if path not in asked.paths and stem_of(path) in stems:
            docs = search.index.docs_of(path)
            scores[docs] = 1e-3 + lexical[docs]
    return search.rank(scores)


CHANNELS: dict[str, Callable[[Search, Asked], Ranked]] = {
    "subject": _by_words("subject"),
    "uses": by_uses,
    "gone": _by_identifiers("gone"),
    "co-changed-lines": by_co_changed_lines,
    "diff": _by_words("diff"),
    "co-change": by_co_change,
    "deleted": _by_words("deleted"),
    "defines": by_defines,
    "kept": _by_identifiers("kept"),
    "changed": _by_words("changed"),
    "new": _by_identifiers("new"),
    "test": by_test,
}

_WHAT = {
    "subject": "the title",
    "diff": "the change",
    "deleted": "the deleted lines",
    "changed": "the changed lines",
}
_STANDS = {
    "gone": "which the change takes away",
    "kept": "which the changed lines have before and after",
    "new": "which the change adds",
}


def reason(search: Search, channel: str, asked: Asked, doc: int) -> str:
    """Say in words why a channel found a doc."""
    if channel in LEXICAL:
        best = _telling_words(search, channel, asked, doc)
        shared = ", ".join(f"`{word}`" for word in best) or "common words"
        return f"shares {shared} with {_WHAT[channel]}"
    if channel in IDENTIFIERS:
        held = _rare_holders(search, channel, asked)
        names = sorted((n for n, docs in held.items() if doc in docs), key=lambda n: (-len(n), n))
        return f"has {', '.join(f'`{name}`' for name in names[:3])}, {_STANDS[channel]}"
    if channel == "uses":
        return _uses_reason(search, asked, doc)
    if channel == "defines":
        own = sorted(asked.identifiers(asked.added, asked.deleted))
        found = [f"`{name}`" for name in own if doc in search.definers(name)]
        return f"defines {', '.join(found[:4])}, used in the changed lines"
    path = search.index.doc(doc).path
    if channel == "co-change":
        n = search.past.times[path]
        return f"its file changed in {n} of the last {search.past.of} commits of the changed files"
    if channel == "co-changed-lines":
        return "holds lines that earlier commits added together with lines of the changed units"
    if channel == "test":
        return "its file is named like a changed one"
    return "means something close to the change"


_NOTHING = {
    "subject": "shares no word with the title",
    "uses": "uses no name that the change defines or touches, but for very common ones",
    "gone": "has no rare identifier that the change takes away",
    "co-changed-lines": "holds no line that came with lines of the changed units",
    "diff": "shares no word with the change",
    "co-change": "its file did not change with the changed ones",
    "deleted": "shares no word with the deleted lines",
    "defines": "defines no rare name of the changed lines",
    "kept": "has no rare identifier that stands before and after",
    "changed": "shares no word with the changed lines",
    "new": "has no rare identifier that the change adds",
    "test": "its file is not named like a changed one",
    "dense": "not among the candidates that were embedded",
}


def nothing(search: Search, channel: str, found: Ranked) -> str:
    """Say in words why a channel did not find a doc that it could have found."""
    if len(found.docs) >= search.limit:
        return f"not among its first {search.limit:,}"
    return _NOTHING[channel]


def _telling_words(search: Search, channel: str, asked: Asked, doc: int) -> list[str]:
    """Return the words of a query that give a doc most of its score, as they are written.

    Words that much of the repository has are not named.
    """
    if channel not in search.explained:
        search.explained[channel] = _rare_words(search, LEXICAL[channel](asked))
    gains: dict[str, float] = {}
    for word, terms in search.explained[channel]:
        if (first := search.bm25.term_score(terms[0], doc)) > 0:
            gains[word] = first + sum(search.bm25.term_score(term, doc) for term in terms[1:])
    taken: set[str] = set()
    best = []
    for word in sorted(gains, key=lambda word: (-gains[word], word)):
        if parts(word)[0] not in taken:
            taken.update(parts(word))
            best.append(word)
    return best[:4]


def _rare_words(search: Search, lines: Sequence[str]) -> _Words:
    """Return the words of some lines that not much of the repository has, with their terms."""
    found = []
    for word in dict.fromkeys(word for line in lines for word in words(line)):
        terms = [term_hash(term) for term in parts(word)]
        if terms and search.bm25.idf_of(terms[0]) > _TELLING:
            found.append((word, terms))
    return found


def _uses_reason(search: Search, asked: Asked, doc: int) -> str:
    links = [
        (used.name, link)
        for used in used_names(asked.units)
        if (link := search.users(used).get(doc)) is not None
    ]
    links.sort(key=lambda pair: pair[1].level)
    found = []
    for name, link in links:
        alias = f" as `{link.name}`" if link.name != name else ""
        how = _LEVELS[link.level].format(of=link.of)
        if (link.use.kind, link.level) == ("import", Level.IMPORTED):
            how = ""  # the verb says so
        found.append(f"{_VERBS[link.use.kind]} `{name}`{alias} (line {link.use.line}){how}")
    found += [
        said
        for used in used_names(asked.units)
        if (said := search.overriding(used).get(doc)) is not None
    ]
    return "; ".join(list(dict.fromkeys(found))[:3])


def used_names(units: Iterable[Query]) -> list[Used]:
    """Return the definitions that a change could break for others.

    A constructor stands for its class.
    """
    found: dict[Used, None] = {}
    for unit in units:
        paths = (unit.path, unit.old_path) if unit.old_path else (unit.path,)
        for name in unit.names:
            *outer, last = name.split(".")
            kind = unit.kind if name == unit.symbol else "field" if outer else "function"
            if last in ("__init__", "__new__", "constructor", "initialize", "__construct") and (
                outer
            ):
                last, kind = outer.pop(), "class"
            if len(last) > 1 and not (last.startswith("__") and last.endswith("__")):
                found[Used(last, paths, kind, outer[-1] if outer else "")] = None
    return list(found)


def _rarity(total: int, n: int) -> float:
    """Inverse document frequency, ln(1 + (N − n + 0.5) / (n + 0.5)): never negative."""
    return float(np.log1p((total - n + 0.5) / (n + 0.5)))
