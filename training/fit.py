"""Fits the ranker on dumped cases and writes ``coderag_ci/ranker.json``.

    python training/fit.py --dump DIR [--check DIR] [--out coderag_ci/ranker.json]

DIR is what ``training/dump.py`` wrote. Folds are by repository: what is printed for the
ranker of the folds is out of fold. ``--check`` prints the same for the finished ranker on cases
that it was not fitted on. Needs lightgbm and scipy.

The ranker is LambdaMART (Burges 2010), 0/1 gains. Each case is learnt twice, with its title and
without, since a dirty work tree has none. Gold of a place inside a file that is arbitrary, and
candidates that are nothing but such gold, are left out.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lightgbm
import msgspec
import numpy as np
from scipy import optimize

from coderag_ci.config import Config, weights_of
from coderag_ci.eval.metrics import measure
from coderag_ci.features import NAMES, beside
from coderag_ci.files import write_whole
from coderag_ci.ranker import Fitted, Tree

_FOLDS = 5
_TREES = 300
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
        kept = ~data["only"]
        if not kept.any() or len(data["x"]) < 2:
            continue
        x, gold = data["x"], data["gold"][:, kept]
        found.append(Group(path.parent.name, x, untitled(x, data["place"]), gold, data["length"]))
    return found


def untitled(x: Numbers, place: Numbers) -> Numbers:
    """Return what the features of (n, features) would be for a change without title."""
    found = x.copy()
    found[:, _COLUMN["channels"]] -= found[:, _COLUMN["subject"]] > 0
    formula = found[:, _COLUMN["formula"]] - (
        weights_of(Config())["subject"] * found[:, _COLUMN["subject"]]
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


def lambdamart(groups: Sequence[Group]) -> lightgbm.Booster:
    """Fit the trees."""
    x, y, sizes = _stacked(groups)
    return lightgbm.train(_PARAMETERS, lightgbm.Dataset(x, y, group=sizes), _TREES)


def linear(groups: Sequence[Group], penalty: float = 1e-3) -> Score:
    """Fit weights by the listwise softmax loss (ListNet, Cao et al. 2007), for comparison."""
    x, y, sizes = _stacked(groups)
    mean, spread = x.mean(axis=0), x.std(axis=0) + 1e-6
    z = (x - mean) / spread
    starts = np.cumsum([0, *sizes])[:-1]
    of_case = np.repeat(np.arange(len(sizes)), sizes)
    share = y / np.add.reduceat(y, starts)[of_case]

    def loss(weight: Numbers) -> tuple[float, Numbers]:
        score = z @ weight
        score -= np.maximum.reduceat(score, starts)[of_case]
        total = np.add.reduceat(np.exp(score), starts)
        log = score - np.log(total)[of_case]
        gradient = z.T @ (np.exp(log) - share)
        value = -float((share * log).sum()) / len(sizes) + penalty * float(weight @ weight)
        return value, gradient / len(sizes) + 2 * penalty * weight

    found = optimize.minimize(
        loss, np.zeros(x.shape[1]), jac=True, method="L-BFGS-B", options={"maxiter": 80}
    )
    return lambda features: (features - mean) / spread @ found.x


def ranks_of(gold: Numbers, score: Numbers) -> list[int]:
    """Return the rank, from 1, of the first candidate that meets each gold item; 0: none."""
    ordered = gold[np.argsort(-score, kind="stable")]
    return np.where(ordered.any(axis=0), ordered.argmax(axis=0) + 1, 0).tolist()


def describe(label: str, groups: Sequence[Group], scores: Sequence[Numbers]) -> None:
    """Print the mean metrics of some scores."""
    ranks = [ranks_of(group.gold, score) for group, score in zip(groups, scores, strict=True)]
    values = {name: np.mean([measure(name, one) for one in ranks]) for name in _METRICS}
    print(
        f"{label:24}",
        "  ".join(f"{name} {value:.3f}" for name, value in values.items()),
        flush=True,
    )


def cross_validate(groups: Sequence[Group]) -> None:
    """Print the formula's figures, and out of fold those of the fitted rankers."""
    repos = sorted({group.repo for group in groups})
    np.random.default_rng(0).shuffle(repos)
    fold = {repo: number % _FOLDS for number, repo in enumerate(repos)}
    found: dict[str, list[Numbers]] = {name: [None] * len(groups) for name in _LABELS}
    for number in range(_FOLDS):
        rest = [group for group in groups if fold[group.repo] != number]
        trees, weights = lambdamart(rest), linear(rest)
        for at, group in enumerate(groups):
            if fold[group.repo] == number:
                found["LambdaMART"][at] = trees.predict(group.titled)
                found["LambdaMART, no title"][at] = trees.predict(group.untitled)
                found["linear"][at] = weights(group.titled)
                found["linear, no title"][at] = weights(group.untitled)
    column = _COLUMN["formula"]
    describe("formula", groups, [group.titled[:, column] for group in groups])
    describe("formula, no title", groups, [group.untitled[:, column] for group in groups])
    for label, scores in found.items():
        describe(label, groups, scores)


_LABELS = ("linear", "linear, no title", "LambdaMART", "LambdaMART, no title")


def tree_of(node: dict[str, Any]) -> Tree:
    """Turn a tree as lightgbm dumps it into lists."""
    rows: list[list[float]] = []

    def add(some: dict[str, Any]) -> int:
        at = len(rows)
        if "leaf_value" in some:
            rows.append([0, 0.0, at, at, some["leaf_value"]])
            return at
        rows.append([])
        left, right = add(some["left_child"]), add(some["right_child"])
        rows[at] = [some["split_feature"], some["threshold"], left, right, some["internal_value"]]
        return at

    add(node)
    feature, threshold, left, right, value = zip(*rows, strict=True)
    return Tree(
        tuple(map(int, feature)),
        tuple(threshold),
        tuple(map(int, left)),
        tuple(map(int, right)),
        tuple(round(one, 6) for one in value),
    )


def write(booster: lightgbm.Booster, groups: Sequence[Group], path: Path) -> None:
    """Write the ranker's file, a tree a line."""
    trees = tuple(tree_of(one["tree_structure"]) for one in booster.dump_model()["tree_info"])
    command = "python training/fit.py --dump DIR --out coderag_ci/ranker.json"
    on = f"{len(groups)} cases of {len({group.repo for group in groups})} repositories"
    head, _, rest = msgspec.json.encode(Fitted(command, on, NAMES, trees)).partition(b'"trees":[')
    write_whole(str(path), head + b'"trees":[\n' + rest.replace(b"},{", b"},\n{") + b"\n")


def main() -> None:
    """Read the arguments; cross-validate, fit, check, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dump", type=Path, required=True)
    parser.add_argument("--check", type=Path)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    groups = read(given.dump)
    if not groups:
        sys.exit(f"{given.dump} holds no dumped case; run training/dump.py first")
    print(f"{len(groups)} cases of {len({group.repo for group in groups})} repositories")
    cross_validate(groups)
    booster = lambdamart(groups)
    if given.check:
        others = read(given.check)
        column = _COLUMN["formula"]
        print(f"checked on {len(others)} other cases")
        describe("formula", others, [group.titled[:, column] for group in others])
        describe("LambdaMART", others, [booster.predict(group.titled) for group in others])
        describe(
            "LambdaMART, no title", others, [booster.predict(group.untitled) for group in others]
        )
    if given.out:
        write(booster, groups, given.out)


if __name__ == "__main__":
    main()
