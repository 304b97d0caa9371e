"""What is known of each candidate, as numbers: what a ranker is fitted on and ranks with."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from coderag_ci.channels import CHANNELS, Ranked, Search, used_names
from coderag_ci.fuse import gain
from coderag_ci.overlap import Shared
from coderag_ci.pathrules import TEST
from coderag_ci.queries import Asked

DEPTH = 100  # first docs of each channel that are candidates
_K = 60.0
_STEEP_K = 10.0
_CALLABLE = frozenset({"function", "method", "macro"})
_LOOSE = frozenset({"toplevel", "window"})

Features = npt.NDArray[np.float32]

NAMES: tuple[str, ...] = (
    *(name for channel in CHANNELS for name in (channel, f"{channel}:top", f"{channel}:z")),
    "names",
    "same",
    "before",
    "channels",
    "length",
    "test",
    "callable",
    "section",
    "loose",
    "same-file",
    "same-folder",
    "same-language",
    "same-holder",
    "same-name",
    "calls",
    "imports",
    "together",
    "times",
    "often",
    "titled",
    "asks-in-test",
    "changed-lines",
    "chunks",
    "formula",
    "formula:z",
    "file-best",
    "file-gap",
    "file-rank",
    "file-candidates",
)


def candidates(search: Search, ranked: Mapping[str, Ranked]) -> list[int]:
    """Return the docs that are among the first 100 of a channel, in order of path and line."""
    found = {doc for one in ranked.values() for doc in one.docs[:DEPTH]}
    return sorted(found, key=search.place)


def matrix(
    search: Search,
    asked: Asked,
    ranked: Mapping[str, Ranked],
    shared: Mapping[int, Shared],
    weights: Mapping[str, float],
    docs: Sequence[int],
) -> Features:
    """Return (len(docs), len(NAMES)) features.

    Of each channel: 60/(60 + rank), 10/(10 + rank), and the score's distance from the mean
    of the channel's first 100 in standard deviations; 0 beyond them. ``shared`` is what a doc
    has in common with the change, ``weights`` are those of the formula. ``docs``: all candidates.
    """
    found = np.zeros((len(docs), len(NAMES)), np.float32)
    column = {name: number for number, name in enumerate(NAMES)}
    row = {doc: number for number, doc in enumerate(docs)}
    formula = np.array([shared.get(doc, Shared()).gain() for doc in docs], np.float32)
    for channel, one in ranked.items():
        for rank, doc in enumerate(one.docs[:DEPTH], 1):
            formula[row[doc]] += gain(weights[channel], _K, rank)
        if channel not in CHANNELS or not one.docs:  # the ranker was fitted without dense
            continue
        scores = np.asarray(one.scores[:DEPTH])
        mean, spread = float(scores.mean()), float(scores.std()) or 1.0
        for rank, (doc, score) in enumerate(zip(one.docs[:DEPTH], scores, strict=False), 1):
            at = row[doc]
            found[at, column[channel]] = _K / (_K + rank)
            found[at, column[f"{channel}:top"]] = _STEEP_K / (_STEEP_K + rank)
            found[at, column[f"{channel}:z"]] = min(max((score - mean) / spread, -5.0), 5.0)
            found[at, column["channels"]] += 1
    folders = {path.rpartition("/")[0] for path in asked.paths}
    languages = {search.index.doc(n).language for p in asked.paths for n in search.index.docs_of(p)}
    flags = [int(search.index.flags[n]) for p in asked.paths for n in search.index.docs_of(p)[:1]]
    symbols = {unit.symbol for unit in asked.units if unit.symbol}
    lasts = {symbol.rpartition(".")[2] for symbol in symbols}
    holders = {(unit.path, unit.symbol.rpartition(".")[0]) for unit in asked.units}
    uses: dict[int, set[str]] = {}
    for used in used_names(asked.units):
        if len(links := search.users(used)) <= search.index.common:
            for doc, link in links.items():
                uses.setdefault(doc, set()).add(link.use.kind)
    whole = (
        float(bool(ranked["subject"].docs) if "subject" in ranked else 0),
        float(any(flag & TEST for flag in flags)),
        math.log1p(len(asked.added) + len(asked.deleted)),
        math.log1p(search.index.size),
    )
    files: dict[str, list[int]] = {}
    for doc, at in row.items():
        about = search.index.doc(doc)
        files.setdefault(about.path, []).append(at)
        found[at, column["names"] : column["before"] + 1] = shared.get(doc, Shared())
        holder, _, last = about.symbol.rpartition(".")
        past = search.past
        found[at, column["length"] : column["formula"]] = (
            math.log1p(float(search.index.lengths[doc])),
            float(bool(about.flags & TEST)),
            float(about.kind in _CALLABLE),
            float(about.kind == "section"),
            float(about.kind in _LOOSE),
            float(about.path in asked.paths),
            float(about.path.rpartition("/")[0] in folders),
            float(about.language in languages),
            float(bool(holder) and (about.path, holder) in holders),
            float(bool(last) and last in lasts),
            float("call" in uses.get(doc, ())),
            float("import" in uses.get(doc, ())),
            past.together.get(about.path, 0.0),
            past.times.get(about.path, 0) / max(past.of, 1),
            math.log1p(past.often[about.path]),
            *whole,
        )
    found[:, column["formula"] :] = beside(formula, files.values())
    return found


def beside(formula: Features, files: Iterable[Sequence[int]]) -> Features:
    """Return (n, 6): the formula's score, its z-score, and how each stands within its file.

    ``files``: the rows of each file. The best other score of the file, the distance to its
    best, 1/(1 + rank) in it, and ln(1 + candidates in it).
    """
    found = np.zeros((len(formula), 6), np.float32)
    found[:, 0] = formula
    found[:, 1] = (formula - formula.mean()) / (float(formula.std()) + 1e-6)
    for rows in files:
        order = sorted(rows, key=lambda row: (-formula[row], row))
        for rank, row in enumerate(order):
            others = order[1:2] if rank == 0 else order[:1]
            found[row, 2] = formula[others[0]] if others else 0.0
            found[row, 3] = formula[row] - formula[order[0]]
            found[row, 4] = 1 / (1 + rank)
            found[row, 5] = math.log1p(len(order))
    return found
