"""The weights of the formula that ranks, in one place.

score = Σ w·k/(k + rank) over the channels + names + same + before (see ``overlap.Shared``);
a pack is filled by score − LENGTH · ln(tokens + 20). ``python training/fit.py`` fits the same
terms anew on mined cases and prints both, with what each ranks; BENCHMARKS.md has the figures.
"""

from __future__ import annotations

CHANNELS = {
    "subject": 2.0,
    "uses": 1.75,
    "gone": 1.75,
    "co-changed-lines": 1.25,
    "diff": 1.0,
    "co-change": 1.0,
    "deleted": 0.75,
    "defines": 0.75,
    "kept": 0.75,
    "changed": 0.5,
    "new": 0.5,
    "test": 0.5,
    "dense": 2.0,
}
NAMES = 1.0  # the Jaccard of a name's parts
SAME = 0.1  # ln(1 + Σ idf) of token sequences shared with the changed lines
BEFORE = 0.25  # the same of those that only the deleted lines have: the code before the change
LENGTH = 0.5  # how much a long piece has to be better than a short one
