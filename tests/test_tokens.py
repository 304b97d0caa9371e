"""Token counts: what a budget is measured in."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers

from coderag_ci import assemble, search, store
from coderag_ci.errors import SetupError, UsageError
from coderag_ci.tokens import counter, estimate
from tests.conftest import Command
from tests.packs import pack_of, shop
from tests.repository import Repository


@pytest.fixture
def words(tmp_path: Path) -> Path:
    """Return a tokenizer.json that counts words and signs."""
    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=4)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    return tmp_path / "tokenizer.json"


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("call", 2),  # 1.18 times what it looks like
        ("one two six ten new", 6),  # a word takes the space before it
        ("one responsible", 3),  # up to 12 letters are one token
        ("responsible", 4),  # at the start of a line or in a name 4 are, 3 more are one more
        ("HTTPSError", 4),  # two capitals a token
        ("12345678", 4),
        ("f(x)[0]", 6),
        ("done();\n", 3),  # signs take the end of their line
        ("    return", 3),
        ("ü", 2),  # as many as its bytes
        ("日本", 6),
        ("\ud800", 1),
    ],
)
def test_the_estimate_counts_words_signs_and_bytes(text: str, tokens: int) -> None:
    """The default budget rests on this rule alone, since no tokenizer is shipped."""
    assert estimate(text) == tokens


@settings(deadline=None)
@given(st.text(), st.text())
def test_the_estimate_never_shrinks_when_lines_are_added(one: str, other: str) -> None:
    """A longer piece that counts for less would slip past the budget."""
    both = estimate(one + "\n" + other)
    assert max(estimate(one), estimate(other)) <= both <= estimate(one) + estimate(other) + 2


@pytest.mark.parametrize("module", [assemble, search, store])
def test_the_estimate_is_not_below_a_real_tokenizer(module: object) -> None:
    """An estimate that is too low ends in a prompt that the model refuses."""
    tiktoken = pytest.importorskip("tiktoken")
    try:
        encoding = tiktoken.get_encoding("o200k_base")
    except Exception:
        pytest.skip("the encoding is not on this machine and nothing is downloaded")
    text = inspect.getsource(module)  # type: ignore[arg-type]
    assert estimate(text) >= len(encoding.encode(text))


def test_a_tokenizer_file_counts_without_cutting_or_padding(words: Path) -> None:
    """A file made for a model cuts at its context length; every long piece would look cheap."""
    count = counter(str(words))
    assert count("one two  three four five six") == 6
    assert count("one") == 1
    assert count("") == 0


def test_a_pack_is_measured_with_the_configured_tokenizer(
    repository: Repository, command: Command, words: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who knows the model's tokenizer gets more evidence into the same budget."""
    shop(repository)
    by_estimate = pack_of(command, repository, "--base", "main")
    monkeypatch.setenv("CODERAG_TOKENIZER", str(words))
    pack = pack_of(command, repository, "--base", "main")
    assert pack["budget"]["tokenizer"] == str(words)
    assert pack["budget"]["used_diff"] < by_estimate["budget"]["used_diff"]


def test_a_tokenizer_that_can_not_be_loaded_is_an_error_with_a_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counting with something else than asked for would break the budget without a word."""
    (tmp_path / "bad.json").write_text("{")
    for name in (str(tmp_path / "missing.json"), str(tmp_path / "bad.json")):
        with pytest.raises(SetupError, match="tokenizer") as caught:
            counter(name)
        assert "estimate" in caught.value.hint
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "tiktoken", None)
        with pytest.raises(UsageError) as missing:
            counter("o200k_base")
        assert "pip install" in missing.value.hint
    pytest.importorskip("tiktoken")
    with pytest.raises(SetupError, match="no-such-encoding"):
        counter("no-such-encoding")
