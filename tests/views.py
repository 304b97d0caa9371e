"""Builds searchable views from words, without git and without a parser."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence

import numpy as np

from coderag_ci.bm25 import PostingsBM25
from coderag_ci.channels import Search
from coderag_ci.config import Bm25
from coderag_ci.index import Index
from coderag_ci.parse.languages import language_of
from coderag_ci.parse.parser import parse
from coderag_ci.parse.row import CHUNK_KINDS, Row, pack
from coderag_ci.parse.terms import name_hash, term_hash
from coderag_ci.segment import SourceFile, build

Doc = Sequence[str]


def row_of(docs: Sequence[Doc], symbols: Sequence[str] = ()) -> Row:
    """Return the row of a file whose chunks, one a line, hold the given words."""
    names = tuple(symbols) or ("",)
    words = sorted({word for doc in docs for word in doc})
    number = {word: n for n, word in enumerate(words)}
    chunks: list[int] = []
    offsets, terms, counts = [0], [], []
    for line, doc in enumerate(docs, 1):
        symbol = line - 1 if symbols else 0
        chunks += (line, line, line, line, 0, 0, CHUNK_KINDS.index("function"), symbol)
        for word, count in sorted(Counter(doc).items()):
            terms.append(number[word])
            counts.append(count)
        offsets.append(len(terms))
    return Row(
        lines=len(docs),
        names=names,
        chunks=pack(chunks, "<u4"),
        terms=pack([term_hash(word) for word in words], "<u8"),
        post_chunks=pack(offsets, "<u4"),
        post_terms=pack(terms, "<u4"),
        post_counts=pack(counts, "<u2"),
        name_keys=pack([name_hash(name) for name in names], "<u8"),
    )


def path_of(number: int) -> str:
    """Return a path that adds no terms to what it names: its parts are single digits."""
    return "/".join(f"{number:03d}")


def files_of(docs: Sequence[Doc]) -> list[tuple[SourceFile, Row]]:
    """Put each doc into a file of its own."""
    return [
        (SourceFile(path_of(n), f"{n:040x}", "text", 0), row_of([doc]))
        for n, doc in enumerate(docs)
    ]


def index_of(docs: Sequence[Doc]) -> Index:
    """Return the docs as a view of one segment."""
    segment = build(files_of(docs))
    return Index([(segment, np.ones(len(segment.table), bool))])


def search_of(files: dict[str, tuple[Sequence[str], Sequence[Doc]]]) -> Search:
    """Return a prepared view of files, each given by its symbols and the words of their units."""
    segment = build(
        [
            (SourceFile(path, f"{n:040x}", "python", 0), row_of(docs, symbols))
            for n, (path, (symbols, docs)) in enumerate(sorted(files.items()))
        ]
    )
    index = Index([(segment, np.ones(len(segment.table), bool))])
    return Search(index, PostingsBM25(index, Bm25()), index.alive, 200)


def parsed(files: dict[str, str]) -> Index:
    """Return a view of files that are parsed as the languages of their paths."""
    segment = build(
        [
            (
                SourceFile(path, f"{n:040x}", language_of(path).name, 0),
                parse(textwrap.dedent(text).lstrip("\n").encode(), language_of(path).name),
            )
            for n, (path, text) in enumerate(sorted(files.items()))
        ]
    )
    return Index([(segment, np.ones(len(segment.table), bool))])
