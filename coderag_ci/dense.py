"""The dense channel: cosine between a query's vector and the vectors of chunks."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

import numpy as np

from coderag_ci.channels import Ranked, Search
from coderag_ci.index import Doc
from coderag_ci.models import Embedder, ModelUnavailable
from coderag_ci.segment import Array
from coderag_ci.store import Store
from coderag_ci.text import Texts

CANDIDATES = 64
_AT_ONCE = 32  # texts embedded, then written
# Chunks of equal text share a vector, so fewer vectors than chunks may still be all of them.
_WORTH_READING = 0.9


class Dense:
    """Vectors of a view, filled by need.

    ``whole`` says that every chunk that may be evidence has a vector; then all are
    scored. Otherwise exactly the first ``CANDIDATES`` docs of the other channels are,
    and those of them without a vector are embedded first, so that what ranks never
    depends on a half-filled store.
    """

    def __init__(
        self,
        search: Search,
        store: Store,
        texts: Texts,
        embedder: Embedder,
        prefixes: tuple[str, str],
    ) -> None:
        """``prefixes``: what the model wants before a query and before a passage."""
        self._search = search
        self._store = store
        self._texts = texts
        self._embedder = embedder
        self._query_prefix, self._passage_prefix = prefixes
        store.touch_model(embedder.digest)
        self._vectors: dict[int, Array] = {}
        self.embedded = 0
        self.whole = False

    def load_whole(self) -> bool:
        """Use the whole view if all of it has vectors in the store."""
        docs = np.flatnonzero(self._search.allowed).tolist()
        known = self._store.vector_count(self._embedder.digest)
        if known < _WORTH_READING * len(docs):
            return False
        self._take_stored(docs)
        self.whole = len(self._vectors) >= len(docs)
        return self.whole

    def fill(
        self,
        docs: Sequence[int],
        progress: Callable[[int, int], None],
        expired: Callable[[], bool] = lambda: False,
    ) -> None:
        """Make sure that docs have vectors, embedding those that have none.

        Raises ModelUnavailable where the model fails or ``expired`` says so; vectors made
        until then are kept.
        """
        keys = self._take_stored(docs)
        missing = [doc for doc in docs if doc not in self._vectors]
        for start in range(0, len(missing), _AT_ONCE):
            if expired():
                raise ModelUnavailable("deadline")
            some = missing[start : start + _AT_ONCE]
            vectors = self._embedder.embed([self._passage(doc) for doc in some])
            new = [(keys[doc], vector.tobytes()) for doc, vector in zip(some, vectors, strict=True)]
            self._store.add_vectors(new, self._embedder.digest)
            self._vectors.update(zip(some, vectors, strict=True))
            self.embedded += len(some)
            progress(start + len(some), len(missing))

    def rank(self, query: str, candidates: Sequence[int]) -> Ranked:
        """Rank the whole view, or the candidates, by cosine."""
        docs = sorted(self._vectors) if self.whole else list(candidates)
        if not docs:
            return Ranked([], [])
        (wanted,) = self._embedder.embed([self._query_prefix + query])
        matrix = np.stack([self._vectors[doc] for doc in docs])
        scores = np.zeros(len(self._search.index.lengths))
        # The last bits of a product depend on a row's place; equal texts have to tie.
        scores[docs] = np.maximum(np.round(matrix @ wanted, 6), 0)
        return self._search.rank(scores)

    def _take_stored(self, docs: Sequence[int]) -> dict[int, bytes]:
        """Read stored vectors; returns the key of each doc's text."""
        wanted = [doc for doc in docs if doc not in self._vectors]
        self._texts.load(self._search.index.doc(doc).blob for doc in wanted)
        keys = {
            doc: hashlib.sha256(self._passage(doc).encode("utf-8", "replace")).digest()
            for doc in wanted
        }
        stored = self._store.vectors(list(keys.values()), self._embedder.digest)
        for doc, key in keys.items():
            if (data := stored.get(key)) is not None:
                self._vectors[doc] = np.frombuffer(data, np.float32)
        return keys

    def _passage(self, number: int) -> str:
        return self._passage_prefix + passage(self._search.index.doc(number), self._texts)


def passage(doc: Doc, texts: Texts) -> str:
    """Return what a model reads of a chunk: header and lines."""
    lines = texts.lines(doc.blob)
    parts = [f"# file: {doc.path}", f"# symbol: {doc.symbol}", f"# kind: {doc.kind}"]
    if doc.signature[0] and doc.start > doc.signature[1]:
        parts += lines[doc.signature[0] - 1 : doc.signature[1]]
    return "\n".join([*parts, *lines[doc.start - 1 : doc.end]])
