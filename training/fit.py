"""Fits the ranker on dumped cases and writes ``coderag_ci/ranker.json``.

    python training/fit.py --dump DIR [--check DIR] [--out coderag_ci/ranker.json]

The DIRs are what ``training/dump.py`` wrote: cases to fit on, and others. ``--check`` prints
what the formula, its weights fitted by the listwise softmax loss (ListNet, Cao et al. 2007),
the same over all features, and the ranker give on the others, with the ranker's paired
difference to the formula and its interval. The ranker is LambdaMART (Burges 2010), 0/1 gains,
on top of the formula. Each case is learnt twice, with its title and without, since a dirty work
tree has none. Gold at the top of a file, or of which the place is arbitrary, is left out, and so
are candidates that are nothing else. Needs lightgbm and scipy.
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

from coderag_ci import weights
from coderag_ci.channels import CHANNELS
from coderag_ci.eval.interval import intervals
from coderag_ci.eval.metrics import measure
from coderag_ci.features import NAMES, beside
from coderag_ci.files import write_whole
from coderag_ci.ranker import Fitted, Tree

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


def lambdamart(groups: Sequence[Group]) -> lightgbm.Booster:
    """Fit trees that correct the formula."""
    x, y, sizes = _stacked(groups)
    start = x[:, _COLUMN["formula:z"]].astype(np.float64)
    data = lightgbm.Dataset(x, y, group=sizes, init_score=start)
    return lightgbm.train(_PARAMETERS, data, _TREES)


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


def values_of(groups: Sequence[Group], ranker: Score, *, titled: bool) -> Numbers:
    """Return (cases, metrics) of a ranker."""
    rows = []
    for group in groups:
        score = ranker(group.titled if titled else group.untitled)
        ranks = ranks_of(group.gold, score)
        packs = [pack_recall(group, score, quota) for quota in _QUOTAS]
        rows.append([*(measure(name, ranks) for name in _METRICS), *packs])
    return np.array(rows)


def check(groups: Sequence[Group], rankers: dict[str, Score]) -> None:
    """Print the mean metrics of each ranker, and how each differs from the first."""
    labels = [*_METRICS, *(f"pack@{quota}" for quota in _QUOTAS)]
    repos = [group.repo for group in groups]
    for titled in (True, False):
        print("with title" if titled else "without title")
        first: Numbers = None
        for name, ranker in rankers.items():
            values = values_of(groups, ranker, titled=titled)
            means = zip(labels, values.mean(axis=0), strict=True)
            print(f"  {name:22}", "  ".join(f"{label} {mean:.3f}" for label, mean in means))
            if first is None:
                first = values
                continue
            found = intervals(values - first, repos)
            pairs = zip(labels, found, strict=True)
            told = [f"{label} {one.low:+.3f}…{one.high:+.3f}" for label, one in pairs]
            print(f"  {'':22}", "  ".join(told), flush=True)


def tree_of(node: dict[str, Any]) -> Tree:
    """Turn a tree as lightgbm dumps it into lists."""
    rows: list[Any] = []

    def add(some: dict[str, Any]) -> int:
        at = len(rows)
        rows.append(None)
        if "leaf_value" in some:
            rows[at] = (0, 0.0, at, at, some["leaf_value"])
        else:
            left, right = add(some["left_child"]), add(some["right_child"])
            split = some["split_feature"], some["threshold"]
            rows[at] = (*split, left, right, some["internal_value"])
        return at

    add(node)
    feature, threshold, left, right, value = zip(*rows, strict=True)
    return Tree(feature, threshold, left, right, tuple(round(one, 6) for one in value))


def write(booster: lightgbm.Booster, groups: Sequence[Group], path: Path) -> None:
    """Write the ranker's file, a tree a line."""
    trees = tuple(tree_of(one["tree_structure"]) for one in booster.dump_model()["tree_info"])
    command = "python training/fit.py --dump DIR --out coderag_ci/ranker.json"
    on = f"{len(groups)} cases of {len({group.repo for group in groups})} repositories"
    head, _, rest = msgspec.json.encode(Fitted(command, on, NAMES, trees)).partition(b'"trees":[')
    write_whole(str(path), head + b'"trees":[\n' + rest.replace(b"},{", b"},\n{") + b"\n")


def main() -> None:
    """Read the arguments; fit, check, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dump", type=Path, required=True)
    parser.add_argument("--check", type=Path)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    groups = read(given.dump)
    if not groups:
        sys.exit(f"{given.dump} holds no dumped case; run training/dump.py first")
    print(f"fitted on {len(groups)} cases of {len({group.repo for group in groups})} repositories")
    booster = lambdamart(groups)
    if given.out:
        write(booster, groups, given.out)
    if given.check:
        others = read(given.check)
        print(f"checked on {len(others)} others of {len({g.repo for g in others})} repositories")
        fitted, found = linear(groups, _TERMS)
        told = ", ".join(f"{name} {weight:.2f}" for name, weight in zip(_TERMS, found, strict=True))
        print("the formula's weights, fitted:", told)
        formula, base = _COLUMN["formula"], _COLUMN["formula:z"]
        rankers: dict[str, Score] = {
            "formula": lambda x: x[:, formula],
            "formula, fitted": fitted,
            "all features, linear": linear(groups, NAMES)[0],
            "LambdaMART": lambda x: x[:, base] + booster.predict(x),
        }
        check(others, rankers)


if __name__ == "__main__":
    main()
