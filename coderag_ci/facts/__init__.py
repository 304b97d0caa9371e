"""What holds without a model, from names, tokens and the history.

Each fact comes with its places, bounded, the rest counted. None is a verdict.
"""

from __future__ import annotations

import itertools

from coderag_ci.facts import (
    dangling,
    documented,
    partner,
    reason,
    settings,
    signature,
    twin,
    unseen,
    untested,
)
from coderag_ci.facts.given import Given
from coderag_ci.pack import Fact

_KINDS = (
    settings,
    unseen,
    dangling,
    signature,
    twin,
    partner,
    untested,
    reason,
    documented,
)  # the gravest first


def collect(given: Given) -> list[Fact]:
    """Return the facts of the most changed files.

    The first of each kind come before the second of any, so that no kind displaces another.
    """
    given.texts.load(blob for file in given.files for blob in (file.old_blob, file.new_blob))
    turns = itertools.zip_longest(*(kind.facts(given) for kind in _KINDS))
    return [fact for turn in turns for fact in turn if fact is not None]
