"""Fits rankers on dumped cases and prints what each gives, beside the formula.

    python training/fit.py --dump DIR --check DIR

The DIRs are what ``training/dump.py`` wrote: cases to fit on, and others. Fitted are the
formula's own weights by the listwise softmax loss (ListNet, Cao et al. 2007), the same over all
features, and LambdaMART (Burges 2010) on top of the formula. Each case is learnt twice, with
its title and without, since a dirty work tree has none. Gold at the top of a file, or of which
the place is arbitrary, is left out, and so are candidates that are nothing else. Needs lightgbm
and scipy.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
from features import NAMES, beside
from scipy import optimize

from coderag_ci import weights
from coderag_ci.channels import CHANNELS
from coderag_ci.eval.metrics import measure

_TREES = 100
_PENALTY = 1e-3
_QUOTAS = (2000, 4000, 8000)
_CHARACTERS_PER_TOKEN = 2.9  # of code, with the numbers of its lines
_TOKENS_AROUND = 60
_MOST_PIECES = 40
_MOST_CANDIDATES = 120
_PARAMETERS: dict[str, Any] = {
    "objective": "lambdarank",
    "lambdarank_truncation_level": 15,
    "learning_rate": 0.05,
    "num_leaves": 15,
    "min_data_in_leaf": 200,
    "feature_fraction": 0.4,
    "lambda_l2": 5.0,
    "verbose": -1,
    "seed": 1,
    "deterministic": True,
    "force_row_wise": True,
}
_COLUMN = {name: number for number, name in enumerate(NAMES)}
_TERMS = (*CHANNELS, "names", "same", "before")
_METRICS = ("recall@10", "hit@10", "mrr", "ndcg@10")

Numbers = Any  # numpy arrays, whose shapes the comments give
Score = Callable[[Numbers], Numbers]


@dataclass(frozen=True)
class Group:
    """One case's candidates: features with and without title, and which gold they meet."""

    repo: str
    titled: Numbers  # (n, features)
    untitled: Numbers  # (n, features)
    gold: Numbers  # (n, gold items) bool
    length: Numbers  # (n,) characters


def read(folder: Path) -> list[Group]:
    """Read the dumped cases that hold anything to learn from."""
    found = []
    for path in sorted(folder.glob("*/*.npz")):
        data = np.load(path)
        loose, gold = data["loose"], data["gold"]
        rows = gold[:, ~loose].any(axis=1) | ~gold.any(axis=1)
        if loose.all() or rows.sum() < 2:
            continue
        x, place = data["x"][rows], data["place"][rows]
        bare = untitled(x, place)
        found.append(Group(path.parent.name, x, bare, gold[rows][:, ~loose], data["length"][rows]))
    return found


def untitled(x: Numbers, place: Numbers) -> Numbers:
    """Return what the features of (n, features) would be for a change without title."""
    found = x.copy()
    found[:, _COLUMN["channels"]] -= found[:, _COLUMN["subject"]] > 0
    formula = found[:, _COLUMN["formula"]] - (
        weights.CHANNELS["subject"] * found[:, _COLUMN["subject"]]
    )
    for name in ("subject", "subject:top", "subject:z", "titled"):
        found[:, _COLUMN[name]] = 0
    files = [np.flatnonzero(place[:, 0] == file) for file in np.unique(place[:, 0])]
    found[:, _COLUMN["formula"] :] = beside(formula, [rows.tolist() for rows in files])
    return found


def _stacked(groups: Sequence[Group]) -> tuple[Numbers, Numbers, list[int]]:
    """Return features, labels and group sizes of all cases, each with and without title."""
    some = [group for group in groups if group.gold.any()]
    x = np.vstack([side for group in some for side in (group.titled, group.untitled)])
    y = np.concatenate([group.gold.any(axis=1) for group in some for _ in range(2)])
    return x, y.astype(np.int32), [len(group.gold) for group in some for _ in range(2)]


def lambdamart(groups: Sequence[Group]) -> Score:
    """Fit trees that correct the formula."""
    x, y, sizes = _stacked(groups)
    base = _COLUMN["formula:z"]
    data = lightgbm.Dataset(x, y, group=sizes, init_score=x[:, base].astype(np.float64))
    trees = lightgbm.train(_PARAMETERS, data, _TREES)
    return lambda some: some[:, base] + trees.predict(some)


def linear(groups: Sequence[Group], names: Sequence[str]) -> tuple[Score, Numbers]:
    """Fit weights of some features; returns the score and the weights."""
    x, y, sizes = _stacked(groups)
    columns = [_COLUMN[name] for name in names]
    spread = x[:, columns].std(axis=0) + 1e-6
    z = x[:, columns] / spread
    starts = np.cumsum([0, *sizes])[:-1]
    of_case = np.repeat(np.arange(len(sizes)), sizes)
    share = y / np.add.reduceat(y, starts)[of_case]

    def loss(weight: Numbers) -> tuple[float, Numbers]:
        score = z @ weight
        score -= np.maximum.reduceat(score, starts)[of_case]
        log = score - np.log(np.add.reduceat(np.exp(score), starts))[of_case]
        gradient = z.T @ (np.exp(log) - share)
        value = -float((share * log).sum()) / len(sizes) + _PENALTY * float(weight @ weight)
        return value, gradient / len(sizes) + 2 * _PENALTY * weight

    found = optimize.minimize(
        loss, np.zeros(len(columns)), jac=True, method="L-BFGS-B", options={"maxiter": 80}
    )
    weight = found.x / spread
    return lambda some: some[:, columns] @ weight, weight


def ranks_of(gold: Numbers, score: Numbers) -> list[int]:
    """Return the rank, from 1, of the first candidate that meets each gold item; 0: none."""
    ordered = gold[np.argsort(-score, kind="stable")]
    return np.where(ordered.any(axis=0), ordered.argmax(axis=0) + 1, 0).tolist()


def pack_recall(group: Group, score: Numbers, quota: int) -> float:
    """Return what share of the gold about ``quota`` tokens of the best candidates show."""
    tokens = group.length / _CHARACTERS_PER_TOKEN + _TOKENS_AROUND
    best = np.argsort(-score, kind="stable")[:_MOST_CANDIDATES]
    worth = score[best] - weights.LENGTH * np.log(tokens[best] + 20)
    left, taken = float(quota), []
    for at in best[np.argsort(-worth, kind="stable")]:
        if tokens[at] <= left and len(taken) < _MOST_PIECES:
            left -= tokens[at]
            taken.append(at)
    return float(group.gold[taken].any(axis=0).mean()) if taken else 0.0


def describe(label: str, groups: Sequence[Group], ranker: Score) -> None:
    """Print the mean metrics of a ranker with title, and without."""
    for side, titled in (("", True), (", no title", False)):
        some = [group.titled if titled else group.untitled for group in groups]
        found = [ranker(x) for x in some]
        ranks = [ranks_of(group.gold, one) for group, one in zip(groups, found, strict=True)]
        values = {name: np.mean([measure(name, one) for one in ranks]) for name in _METRICS}
        for quota in _QUOTAS:
            shown = [pack_recall(g, one, quota) for g, one in zip(groups, found, strict=True)]
            values[f"pack@{quota}"] = np.mean(shown)
        text = "  ".join(f"{name} {value:.3f}" for name, value in values.items())
        print(f"{label + side:32}", text, flush=True)


def main() -> None:
    """Read the arguments, fit, and print what each gives on the cases to check on."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dump", type=Path, required=True)
    parser.add_argument("--check", type=Path, required=True)
    given = parser.parse_args()
    groups, others = read(given.dump), read(given.check)
    for folder, some in ((given.dump, groups), (given.check, others)):
        if not some:
            sys.exit(f"{folder} holds no dumped case; run training/dump.py first")
        print(f"{folder}: {len(some)} cases of {len({group.repo for group in some})} repositories")
    describe("formula", others, lambda x: x[:, _COLUMN["formula"]])
    for name in _TERMS:
        describe(f"formula without {name}", others, _without(name))
    fitted, found = linear(groups, _TERMS)
    print("fitted:", ", ".join(f"{n} {w:.2f}" for n, w in zip(_TERMS, found, strict=True)))
    describe("fitted weights", others, fitted)
    describe("all features, linear", others, linear(groups, NAMES)[0])
    describe("LambdaMART", others, lambdamart(groups))


def _without(name: str) -> Score:
    terms = {"names": weights.NAMES, "same": weights.SAME, "before": weights.BEFORE}
    weight = {**weights.CHANNELS, **terms}[name]
    return lambda x: x[:, _COLUMN["formula"]] - weight * x[:, _COLUMN[name]]


if __name__ == "__main__":
    main()
