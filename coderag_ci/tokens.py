"""Counts tokens for the budget: a tokenizer file, a tiktoken encoding, or a safe estimate."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from coderag_ci.errors import SetupError, UsageError

Counter = Callable[[str], int]

_PIECE = re.compile(r"[A-Z]?[a-z]+|[A-Z]+| ?[0-9]+|\n|[^\S\n]+|[^\x00-\x7f]+|.", re.DOTALL)


def estimate(text: str) -> int:
    """Estimate tokens from above: 5 letters, 3 capitals or 3 digits a token; each sign one.

    never below o200k_base on 4,108 passages of 8 repositories, 1.51 times it in
    total (BENCHMARKS.md). What is not ASCII counts by its UTF-8 bytes, which no byte-level
    BPE exceeds.
    """
    total = 0
    for piece in _PIECE.findall(text):
        first = piece[0]
        if not first.isascii():
            total += len(piece.encode("utf-8", "replace"))
        elif first.isalpha():
            total += -(-len(piece) // (3 if len(piece) > 1 and piece.isupper() else 5))
        elif piece[-1].isdigit():  # a space before digits is a token of its own
            total += -(-len(piece.strip()) // 3) + (first == " ")
        elif piece != " ":
            total += 1
    return total


def counter(name: str) -> Counter:
    """Return the counter that a config names.

    ``estimate``; a path to a ``tokenizer.json``; or a tiktoken encoding such as
    ``o200k_base``. Raises SetupError where it can not be loaded.
    """
    if name == "estimate":
        return estimate
    if name.endswith(".json"):
        return _from_file(name)
    try:
        import tiktoken
        import tiktoken.load
    except ImportError as error:
        raise UsageError(
            f"tokenizer: {name}: tiktoken is not installed", "pip install 'coderag-ci[tiktoken]'"
        ) from error
    tiktoken.load.read_file = _refuse_download  # called for what is not in its cache
    try:
        encoding = tiktoken.get_encoding(name)
    except Exception as error:
        raise SetupError(
            f"tokenizer: {name}: {type(error).__name__}: the encoding can not be loaded",
            "use tokenizer: estimate, or the path of a tokenizer.json",
        ) from error
    return lambda text: len(encoding.encode(text, disallowed_special=()))


def _refuse_download(blobpath: str) -> bytes:
    raise OSError(f"{blobpath} is not in tiktoken's cache, and nothing is downloaded here")


def _from_file(name: str) -> Counter:
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_str(Path(name).read_text(encoding="utf-8"))
    except Exception as error:
        raise SetupError(
            f"tokenizer: {name}: {error}", "name a tokenizer.json that exists, or estimate"
        ) from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)
