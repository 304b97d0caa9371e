"""The lexical model: rank_bm25's scores where those make sense, else an order by rarity."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rank_bm25 import BM25Okapi

from coderag_ci.bm25 import PostingsBM25
from coderag_ci.channels import Search
from coderag_ci.config import Bm25
from coderag_ci.index import Index
from coderag_ci.parse.terms import term_hash
from coderag_ci.segment import build
from tests.views import files_of, index_of

WORDS = [f"word{n}" for n in range(12)]
DOCS = st.lists(st.lists(st.sampled_from(WORDS), max_size=12), min_size=1, max_size=40)
QUERY = st.lists(st.sampled_from([*WORDS, "unknown"]), max_size=8)


def scores(index: Index, query: list[str], parameters: Bm25 | None = None) -> np.ndarray:
    """Score the docs of a view for some words."""
    return PostingsBM25(index, parameters or Bm25()).get_scores([term_hash(w) for w in query])


def raw_idf(docs: list[list[str]], word: str) -> float:
    """Return the idf of a word before any floor."""
    n = sum(word in doc for doc in docs)
    return math.log(len(docs) - n + 0.5) - math.log(n + 0.5)


@settings(deadline=None, max_examples=200)
@given(
    DOCS.filter(any),
    QUERY,
    st.sampled_from([Bm25(), Bm25(k1=0.1), Bm25(b=0.0), Bm25(k1=2.5, b=0.9)]),
)
def test_scores_are_those_of_the_library(
    docs: list[list[str]], query: list[str], parameters: Bm25
) -> None:
    """Published results with rank_bm25 would not carry over to a model of our own making."""
    query = [word for word in query if raw_idf(docs, word) > 0]
    library = BM25Okapi(docs, k1=parameters.k1, b=parameters.b, epsilon=parameters.epsilon)
    expected = library.get_scores(query) if query else np.zeros(len(docs))
    np.testing.assert_allclose(scores(index_of(docs), query, parameters), expected, atol=1e-9)


@settings(deadline=None, max_examples=100)
@given(DOCS)
def test_a_common_word_counts_for_more_than_nothing_and_less_than_any_rare_one(
    docs: list[list[str]],
) -> None:
    """In a small repository most words are common: a match would rank below no match."""
    model = PostingsBM25(index_of(docs), Bm25())
    known = {word for doc in docs for word in doc}
    floored = [model.idf_of(term_hash(w)) for w in known if raw_idf(docs, w) <= 0]
    rare = [model.idf_of(term_hash(w)) for w in known if raw_idf(docs, w) > 0]
    assert all(value > 0 for value in floored)
    assert max(floored, default=0.0) < min(rare, default=math.inf)
    for word in known:
        found = model.get_scores([term_hash(word)])
        assert [score > 0 for score in found] == [word in doc for doc in docs]


@settings(deadline=None, max_examples=100)
@given(
    DOCS, st.lists(st.lists(st.sampled_from(WORDS), max_size=6), max_size=10), QUERY, st.randoms()
)
def test_a_snapshot_with_changes_scores_like_one_segment(
    docs: list[list[str]], gone: list[list[str]], query: list[str], chance
) -> None:
    """What is found would depend on which snapshot happened to be in the cache."""
    files = files_of([*docs, *gone])
    kept, dead = files[: len(docs)], files[len(docs) :]
    old = [file for file in kept if chance.random() < 0.6]
    new = [file for file in kept if file not in old]
    base = build(sorted([*old, *dead], key=lambda file: file[0].path))
    delta = build(new)
    wanted = {file.path for file, _ in old}
    alive = np.array([base.files[int(n)].path in wanted for n in base.file_of], bool)
    view = Index([(base, alive), (delta, np.ones(len(delta.table), bool))])
    whole = index_of(docs)
    assert (view.size, view.average_length) == (whole.size, whole.average_length)

    def by_path(index: Index) -> dict[str, float]:
        found = scores(index, query)
        assert not found[~index.alive].any()
        return {index.doc(n).path: found[n] for n in np.flatnonzero(index.alive).tolist()}

    assert by_path(view) == by_path(whole)


def test_repeated_words_of_a_query_count_each_time() -> None:
    """The title is given twice so that it weighs more; that must have an effect."""
    index = index_of([["cat"], ["dog"], ["cow"], ["hen"]])
    once, twice = scores(index, ["cat"]), scores(index, ["cat", "cat"])
    np.testing.assert_allclose(twice, 2 * once)


@pytest.mark.parametrize("docs", [[], [["cat", "dog"]], [[]], [[], []]])
def test_tiny_corpora_are_searched_without_complaint(docs: list[list[str]]) -> None:
    """A new repository has no files, or one; the first review must not fail."""
    index = index_of(docs)
    found = scores(index, ["cat", "unknown"])
    assert found.shape == (len(docs),)
    assert np.isfinite(found).all()
    assert [bool(score > 0) for score in found] == ["cat" in doc for doc in docs]


def test_an_empty_view_is_searched_without_complaint() -> None:
    """A view without any segment is what a repository of binaries gives."""
    index = Index([])
    assert (index.size, len(scores(index, ["cat"]))) == (0, 0)
    assert index.definitions(1) == index.references(1) == []


def test_unknown_words_and_empty_queries_score_nothing() -> None:
    """A query of words that occur nowhere must find nothing, not everything."""
    index = index_of([["cat"], ["dog"]])
    assert not scores(index, ["unknown"]).any()
    assert not scores(index, []).any()


def test_more_results_than_docs_may_be_asked_for() -> None:
    """A limit above the number of chunks is the normal case in small repositories."""
    index = index_of([["cat"], ["cat", "dog"], ["cow"]])
    model = PostingsBM25(index, Bm25())
    search = Search(index, model, index.alive, 10_000)
    assert sorted(search.rank(model.get_scores([term_hash("cat")])).docs) == [0, 1]


def test_the_limit_keeps_the_best_and_breaks_ties_by_path() -> None:
    """Equal scores would come in another order on another machine."""
    index = index_of([["cat"] for _ in range(30)] + [["dog", "dog"]] + [["cow"]] * 40)
    model = PostingsBM25(index, Bm25())
    search = Search(index, model, index.alive, 7)
    assert search.rank(model.get_scores([term_hash("cat")])).docs == list(range(7))
    assert search.rank(model.get_scores([term_hash("cat"), term_hash("dog")])).docs[0] == 30


def test_what_one_word_gives_a_doc_adds_up_to_its_score() -> None:
    """The reasons name the words that gave most; they have to be true."""
    docs = [["cat", "dog", "dog"], ["cat"], ["cow"], ["hen"], ["ant"], ["bee"]]
    index = index_of(docs)
    model = PostingsBM25(index, Bm25())
    query = [term_hash("cat"), term_hash("dog")]
    for doc in range(len(docs)):
        total = sum(model.term_score(term, doc) for term in query)
        assert total == pytest.approx(model.get_scores(query)[doc])
