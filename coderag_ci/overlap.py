"""What candidates have in common with a change, token by token: names and sequences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from coderag_ci import weights
from coderag_ci.channels import Search
from coderag_ci.parse.terms import parts, words
from coderag_ci.queries import Asked
from coderag_ci.text import Texts, Tokens, grams_of


class Shared(NamedTuple):
    """What a candidate has in common with the change.

    ``names``: Jaccard of the parts of its name and of the nearest changed unit's. ``same`` and
    ``before``: ln(1 + Σ idf) of the token 4-grams that it shares with the changed lines, and
    with those that only deleted lines have: what still has the old pattern may have to follow.
    """

    names: float = 0.0
    same: float = 0.0
    before: float = 0.0

    def gain(self) -> float:
        """Return what this adds to the fused score."""
        return weights.NAMES * self.names + weights.SAME * self.same + weights.BEFORE * self.before


class Overlap:
    """Names like those of the changed units, and token sequences like those of changed lines."""

    def __init__(self, search: Search, texts: Texts) -> None:
        self._index = search.index
        self._texts = texts

    def terms(self, asked: Asked, docs: Sequence[int]) -> list[Shared]:
        """Compare docs with a change.

        4-grams stand within a line; their idf, ln(1 + (N − n + 0.5) / (n + 0.5)), is over
        the candidates.
        """
        names = [_subtokens(unit.symbol) for unit in asked.units if unit.symbol]
        deleted, added = grams_of(asked.deleted), grams_of(asked.added)
        wanted = deleted | added
        self._texts.load(self._index.doc(doc).blob for doc in docs)
        shared = [self._shared(doc, wanted) for doc in docs]
        times = Counter(gram for grams in shared for gram in grams)
        total = len(docs)
        rarity = {g: float(np.log1p((total - n + 0.5) / (n + 0.5))) for g, n in times.items()}

        def weight(grams: set[Tokens]) -> float:
            return float(np.log1p(sum(sorted(rarity[gram] for gram in grams))))

        found = []
        for doc, grams in zip(docs, shared, strict=True):
            own = _subtokens(self._index.doc(doc).symbol)
            similar = max((len(own & n) / len(own | n) for n in names if own | n), default=0.0)
            sides = (grams, grams - added)
            found.append(Shared(similar, *map(weight, sides)))
        return found

    def _shared(self, number: int, wanted: set[Tokens]) -> set[Tokens]:
        doc = self._index.doc(number)
        return grams_of(self._texts.lines(doc.blob)[doc.start - 1 : doc.end]) & wanted


def _subtokens(symbol: str) -> set[str]:
    last = symbol.rpartition(".")[2]
    return {part for word in words(last) for part in parts(word)}
