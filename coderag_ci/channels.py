"""The recall channels: each ranks docs of the view for one query, with a reason in words."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from coderag_ci.bm25 import PostingsBM25
from coderag_ci.index import Index, Use
from coderag_ci.parse.terms import name_hash, parts, term_hash, words
from coderag_ci.queries import Query
from coderag_ci.segment import Array

_MOST_TERMS = 256
_MOST_DEFINITIONS = 10
_REMEMBERED = 4096  # names
_TELLING = 2.0  # idf: about one chunk in eight has the word
_VERBS = {
    "call": "calls",
    "write": "writes",
    "import": "imports",
    "type": "names the type",
    "read": "reads",
}


_Words = list[tuple[str, list[int]]]  # a word and the hashes of its terms


@dataclass(frozen=True)
class Ranked:
    """What one channel found for one query: docs, best first, and their scores.

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
    """A view prepared for the channels: the index, the lexical model, what can be evidence."""

    def __init__(self, index: Index, bm25: PostingsBM25, allowed: Array, limit: int) -> None:
        """Take ``allowed`` (n_docs,) bool, what may be evidence, and the most docs of a channel."""
        self.index = index
        self.bm25 = bm25
        self.allowed = allowed
        self.limit = limit
        self.common = max(20, int(0.02 * index.size))
        self.users = functools.lru_cache(maxsize=_REMEMBERED)(self._users)
        self.definers = functools.lru_cache(maxsize=_REMEMBERED)(self._definers)
        self.explained: dict[tuple[str, str, str], _Words] = {}

    def _users(self, name: str) -> dict[int, Use]:
        """Return the docs that use a name, each with its first use."""
        found: dict[int, Use] = {}
        for use in self.index.references(name_hash(name)):
            found.setdefault(use.doc, use)
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
        order = sorted(positive.tolist(), key=lambda doc: (-scores[doc], *self.place(doc)))
        best = order[: self.limit]
        return Ranked(best, [float(scores[doc]) for doc in best])

    def place(self, doc: int) -> tuple[str, int]:
        """Path and line of a doc, the last word in every tie."""
        found = self.index.doc(doc)
        return found.path, found.start


def terms_of(lines: Sequence[str]) -> list[str]:
    """Return the terms of some lines, repetitions kept."""
    return [term for line in lines for word in words(line) for term in parts(word)]


def _lexical(search: Search, terms: list[str], measured: bool = False) -> Ranked:
    counts = Counter(terms)
    weight = {term: n * search.bm25.idf_of(term_hash(term)) for term, n in counts.items()}
    best = sorted(counts, key=lambda term: (-weight[term], term))[:_MOST_TERMS]
    query = [term_hash(term) for term in best for _ in range(counts[term])]
    ranked = search.rank(search.bm25.get_scores(query))
    return replace(ranked, ideal=search.bm25.ideal_score(query)) if measured else ranked


def diff_lines(query: Query) -> list[str]:
    """Return a unit's whole diff: changed lines, context, symbol, path, and the title twice."""
    lines = [*query.added, *query.deleted, *query.context, query.symbol, query.path]
    return [*lines, query.title, query.title]


def deleted_lines(query: Query) -> list[str]:
    """Return the deleted lines."""
    return query.deleted


def added_lines(query: Query) -> list[str]:
    """Return the added lines."""
    return query.added


def by_diff(search: Search, query: Query) -> Ranked:
    """BM25 of the whole diff."""
    return _lexical(search, terms_of(diff_lines(query)), measured=True)


def by_deleted(search: Search, query: Query) -> Ranked:
    """BM25 of the deleted lines: twins of the code before the change, readers of it."""
    return _lexical(search, terms_of(query.deleted))


def by_added(search: Search, query: Query) -> Ranked:
    """BM25 of the added lines."""
    return _lexical(search, terms_of(query.added))


def by_uses(search: Search, query: Query) -> Ranked:
    """Units that use a name of the changed unit, or a name defined on its changed lines."""
    scores = np.zeros(len(search.index.lengths))
    for name in used_names(query):
        docs = sorted(search.users(name))
        if docs and len(docs) <= search.common:
            scores[docs] += _rarity(search.index.size, len(docs))
    return search.rank(scores)


def by_defines(search: Search, query: Query) -> Ranked:
    """Units that define a name of the changed lines, where at most 10 do."""
    scores = np.zeros(len(search.index.lengths))
    own = {name.rpartition(".")[2] for name in query.names}
    for name in query.identifiers():
        docs = sorted(search.definers(name))
        if docs and len(docs) <= _MOST_DEFINITIONS and name not in own:
            used = len(search.index.term(term_hash(name.lower()))[0])
            scores[docs] += _rarity(search.index.size, max(used, 1)) / len(docs)
    return search.rank(scores)


NAMED = ("uses", "defines")
LEXICAL = {"diff": diff_lines, "deleted": deleted_lines, "added": added_lines}
CHANNELS: dict[str, Callable[[Search, Query], Ranked]] = {
    "diff": by_diff,
    "deleted": by_deleted,
    "added": by_added,
    "uses": by_uses,
    "defines": by_defines,
}


def reason(search: Search, channel: str, query: Query, doc: int) -> str:
    """Say in words why a channel found a doc."""
    if channel == "uses":
        return _uses_reason(search, query, doc)
    if channel == "defines":
        return _defines_reason(search, query, doc)
    if channel == "dense":
        return f"means something close to the change in `{query.label}`"
    best = _telling_words(search, channel, query, doc)
    if not best:
        return f"shares common words with the change in `{query.label}`"
    shared = ", ".join(f"`{word}`" for word in best)
    what = {"diff": "the change", "deleted": "the deleted lines", "added": "the added lines"}
    return f"shares {shared} with {what[channel]} in `{query.label}`"


def _telling_words(search: Search, channel: str, query: Query, doc: int) -> list[str]:
    """Return the words of a query that give a doc most of its score, as they are written.

    Words that much of the repository has are not named.
    """
    key = (channel, query.path, query.symbol)
    if key not in search.explained:
        search.explained[key] = _rare_words(search, LEXICAL[channel](query))
    gains: dict[str, float] = {}
    for word, terms in search.explained[key]:
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


def _uses_reason(search: Search, query: Query, doc: int) -> str:
    uses = {name: search.users(name).get(doc) for name in used_names(query)}
    found = [
        f"{_VERBS[use.kind]} `{name}` (line {use.line})"
        for name, use in uses.items()
        if use is not None
    ]
    return "; ".join(found[:3])


def _defines_reason(search: Search, query: Query, doc: int) -> str:
    found = [f"`{name}`" for name in query.identifiers() if doc in search.definers(name)]
    return f"defines {', '.join(found[:4])}, used in the changed `{query.label}`"


def used_names(query: Query) -> list[str]:
    """Last parts of the names that a change could break for others.

    A constructor stands for its class.
    """
    found: dict[str, None] = {}
    for name in query.names:
        *outer, last = name.split(".")
        if last in ("__init__", "__new__", "constructor", "initialize", "__construct") and outer:
            last = outer[-1]
        if len(last) > 1 and not (last.startswith("__") and last.endswith("__")):
            found[last] = None
    return list(found)


def _rarity(total: int, n: int) -> float:
    """Inverse document frequency, ln(1 + (N − n + 0.5) / (n + 0.5)): never negative."""
    return float(np.log1p((total - n + 0.5) / (n + 0.5)))
