"""What terms a text is found by, and how they are counted."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coderag_ci
from coderag_ci.parse.terms import TermCounter, name_hash, parts, term_hash, text_terms, words

few = settings(max_examples=60, deadline=None)


def terms(text: str) -> list[str]:
    """List the terms of a text, repetitions kept."""
    return [term for word in words(text) for term in parts(word)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("parse", ["parse"]),
        ("PARSE", ["parse"]),
        ("parseRequest", ["parserequest", "parse", "request"]),
        ("ParseRequest", ["parserequest", "parse", "request"]),
        ("parse_request", ["parse_request", "parse", "request"]),
        ("PARSE_REQUEST", ["parse_request", "parse", "request"]),
        ("parse-request", ["parse-request", "parse", "request"]),
        ("__init__", ["init"]),
        ("_private_name", ["private_name", "private", "name"]),
        ("run_run", ["run_run", "run"]),
        ("HTTPServer", ["httpserver", "http", "server"]),
        ("parseHTTPRequest", ["parsehttprequest", "parse", "http", "request"]),
        ("userID", ["userid", "user", "id"]),
        ("parseHTTPRequest_v2", ["parsehttprequest_v2", "parse", "http", "request", "v2"]),
        ("utf8", ["utf8"]),
        ("sha256sum", ["sha256sum", "sha256", "sum"]),
        ("HTTP2", ["http2"]),
        ("2024", ["2024"]),
        ("int32_t", ["int32_t", "int32"]),
    ],
)
def test_identifiers_are_found_whole_and_in_parts(text, expected):
    """Camel case, snake case, kebab case, acronyms and digits are told apart; case is not."""
    assert terms(text) == expected


def test_words_are_separated_by_what_is_no_letter_or_digit():
    """A hyphen joins words only between two of them."""
    assert words("a.b(c, 'd-e') -f- --g=h\ti\n") == [*"abc", "d-e", *"fghi"]
    assert words("größe.naïve") == ["größe", "naïve"]


@pytest.mark.parametrize("text", ["a", "x", "7", "_", "-", "", "é", "a b c", "i = 0", "x_"])
def test_single_letters_and_digits_are_dropped(text):
    """They carry nothing."""
    assert terms(text) == []


def test_single_letters_stay_within_a_whole_word():
    """Only as terms of their own are they dropped."""
    assert terms("x_axis") == ["x_axis", "axis"]
    assert terms("x_y_z") == ["x_y_z"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("検索エンジン", ["検索", "索エ", "エン", "ンジ", "ジン"]),
        ("한국어", ["한국", "국어"]),
        ("猫", ["猫"]),
        ("parse検索json", ["parse", "検索", "json"]),
        ("検索 検索", ["検索", "検索"]),
        ("ああああ", ["ああ"]),
    ],
)
def test_scripts_without_spaces_give_bigrams(text, expected):
    """Latin letters beside them begin a word of their own; a lone character is kept."""
    assert terms(text) == expected


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("ＨＴＴＰＳｅｒｖｅｒ", "HTTPServer"),
        ("ﬁnal", "final"),
        ("ｶﾀｶﾅ", "カタカナ"),
        ("e\u0301t", "\u00e9t"),
    ],
)
def test_text_is_normalised_to_nfkc(text, plain):
    """Full-width letters, ligatures and combining accents are what they stand for."""
    assert terms(text) == terms(plain) != []


def test_very_long_words_are_dropped():
    """No one searches for what is longer than 120 characters."""
    assert terms("x" * 120) == ["x" * 120]
    assert terms("x" * 121) == []
    assert terms("before " + "QUJD" * 50 + " after") == ["before", "after"]


def test_a_name_is_hashed_by_its_last_part_and_apart_from_terms():
    """A qualified name meets the plain one, in its own case, and never a term."""
    assert name_hash("Outer.inner") == name_hash("inner")
    assert name_hash("inner") != name_hash("Inner")
    assert name_hash("inner") != term_hash("inner")


def test_hashes_are_the_same_in_every_process():
    """What one process stores another one finds, whatever seed Python hashes strings with."""
    text = "parseHTTPRequest_v2 検索エンジン größe"
    script = (
        "from coderag_ci.parse.terms import *\n"
        f"print(text_terms({text!r}), name_hash('A.b'), "
        f"[column.tolist() for column in TermCounter().count([{text!r}])])"
    )
    root = str(Path(coderag_ci.__file__).parents[1])
    answers = [
        subprocess.run(
            [sys.executable, "-c", script.encode("ascii", "backslashreplace").decode()],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": root},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    here = [column.tolist() for column in TermCounter().count([text])]
    assert answers == [f"{text_terms(text)} {name_hash('A.b')} {here}\n"] * 2


def test_the_hash_of_a_term_is_fixed():
    """No change of the hash goes unnoticed."""
    assert term_hash("parse") == 6495692958074113047
    assert text_terms("x parse") == [6495692958074113047]


TEXTS = st.lists(
    st.one_of(
        st.text(max_size=40),
        st.lists(
            st.sampled_from(["parseHTTP", "http", "run_run", "x", "検索エ", "-", "v2", "y" * 130]),
            max_size=12,
        ).map(" ".join),
    ),
    max_size=5,
)


def assert_counted(counter: TermCounter, texts: list[str]) -> None:
    """Compare with counting in the plain way, including the order."""
    keys, owners, counts = counter.count(texts)
    expected = [
        (owner, term_hash(term), count)
        for owner, text in enumerate(texts)
        for term, count in Counter(terms(text)).items()
    ]
    found = list(zip(owners.tolist(), keys.tolist(), counts.tolist(), strict=True))
    assert found == sorted(expected)


@given(st.lists(TEXTS, min_size=1, max_size=4))
@few
def test_counts_are_those_of_a_plain_counter(files):
    """One counter serves one file after another, with the words that it knows by then."""
    counter = TermCounter()
    for texts in files:
        assert_counted(counter, texts)


@given(st.lists(TEXTS, min_size=2, max_size=5))
@few
def test_counts_stay_right_when_the_vocabulary_starts_anew(files):
    """Nothing of the dropped vocabulary is left."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TermCounter, "_MOST_WORDS", 2)
        counter = TermCounter()
        for texts in files:
            assert_counted(counter, texts)


def test_the_vocabulary_starts_anew_when_it_is_full(monkeypatch):
    """Memory stays bounded: the next file begins with an empty one."""
    monkeypatch.setattr(TermCounter, "_MOST_WORDS", 3)
    counter = TermCounter()
    assert_counted(counter, ["one two three four", "two"])
    assert len(counter._vocabulary) == 4
    assert_counted(counter, ["two five"])
    assert len(counter._vocabulary) == 2


def test_many_words_are_counted_past_the_first_space():
    """The arrays grow with the vocabulary and keep what was in them."""
    texts = [
        " ".join(f"word{n}Of{n % 7}" for n in range(start, start + 6000)) for start in (0, 3000)
    ]
    counter = TermCounter()
    assert_counted(counter, ["the first oneOfMany"])
    assert_counted(counter, texts)
    assert_counted(counter, ["the first oneOfMany", *texts])


@pytest.mark.parametrize("texts", [[], [""], ["", "x"], ["-- ;"]])
def test_texts_without_terms_count_nothing(texts):
    """All three columns are empty."""
    assert [len(column) for column in TermCounter().count(texts)] == [0, 0, 0]
