"""The fitted ranker: the formula, corrected by decision trees over a candidate's features.

``ranker.json`` holds it as plain numbers; ``training/fit.py`` wrote it.
"""

from __future__ import annotations

import functools
import importlib.resources
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from coderag_ci.features import NAMES, Features

_FORMULA = NAMES.index("formula:z")

Scores = npt.NDArray[np.float64]
_Numbers = npt.NDArray[Any]


class RankerUnavailableError(Exception):
    """The file of the fitted ranker is missing, damaged, or made for other features."""


class Tree(msgspec.Struct, frozen=True):
    """One tree, a list an attribute of its nodes, the root first.

    A node sends a candidate whose feature is at most the threshold to ``left``, else to
    ``right``; in a leaf both are the node itself. ``value`` is the score of a leaf, and in an
    inner node the mean of what the training saw under it.
    """

    feature: tuple[int, ...]
    threshold: tuple[float, ...]
    left: tuple[int, ...]
    right: tuple[int, ...]
    value: tuple[float, ...]


class Fitted(msgspec.Struct, frozen=True):
    """The file: the command that fits it, on what, the features by name, and the trees.

    A score is the z-score of the formula, which the trees correct.
    """

    command: str
    fitted_on: str
    features: tuple[str, ...]
    trees: tuple[Tree, ...]


class Ranker:
    """The trees as arrays."""

    def __init__(self, fitted: Fitted) -> None:
        """Join the trees into arrays. Raises RankerUnavailableError where they do not hold."""
        if fitted.features != NAMES:
            raise RankerUnavailableError("it was fitted on other features")
        sizes = [len(tree.feature) for tree in fitted.trees]
        starts = np.cumsum([0, *sizes])[:-1]
        self._roots = starts
        self._feature = _joined([tree.feature for tree in fitted.trees], np.int64)
        self._threshold = _joined([tree.threshold for tree in fitted.trees], np.float64)
        self._value = _joined([tree.value for tree in fitted.trees], np.float64)
        self._left, self._right = (
            _joined(
                [np.asarray(child) + at for child, at in zip(some, starts, strict=True)], np.int64
            )
            for some in ([t.left for t in fitted.trees], [t.right for t in fitted.trees])
        )
        arrays = (self._feature, self._threshold, self._value, self._left, self._right)
        nodes = np.arange(sum(sizes))
        if not sizes or min(sizes) == 0 or any(len(array) != len(nodes) for array in arrays):
            raise RankerUnavailableError("its trees are damaged")
        end = np.repeat(starts + sizes, sizes)  # of each node's tree
        leaf = self._left == nodes
        if not (
            (self._feature >= 0).all()
            and (self._feature < len(NAMES)).all()
            and (leaf == (self._right == nodes)).all()
            and (((self._left > nodes) & (self._left < end)) | leaf).all()
            and (((self._right > nodes) & (self._right < end)) | leaf).all()
        ):
            raise RankerUnavailableError("its trees are damaged")

    def scores(self, features: Features) -> Scores:
        """Return the score of each row of (n, len(NAMES)) features: higher is better."""
        found: Scores = self._value[self._leaves(features)].sum(axis=1)
        return found + features[:, _FORMULA]

    def parts(self, features: Features) -> dict[str, float]:
        """Say what each feature gives to the score of one candidate, (len(NAMES),).

        What a split changes in the mean of the training's scores counts for its feature
        (Saabas 2014); with ``start``, the mean of all, they add up to the score.
        """
        found = dict.fromkeys(("start", *NAMES), 0.0)
        found["start"] = float(self._value[self._roots].sum())
        found[NAMES[_FORMULA]] = float(features[_FORMULA])
        at = self._roots
        while True:
            below = self._step(at[None, :], features[None, :])[0]
            if (below == at).all():
                return {name: part for name, part in found.items() if part}
            for feature, gain in zip(
                self._feature[at], self._value[below] - self._value[at], strict=True
            ):
                found[NAMES[feature]] += float(gain)
            at = below

    def _leaves(self, features: Features) -> npt.NDArray[np.int64]:
        at = np.broadcast_to(self._roots, (len(features), len(self._roots)))
        while True:
            below = self._step(at, features)
            if (below == at).all():
                return below
            at = below

    def _step(self, at: npt.NDArray[np.int64], features: Features) -> npt.NDArray[np.int64]:
        """Send each (candidate, tree) one node down."""
        value = np.take_along_axis(features.astype(np.float64), self._feature[at], axis=1)
        return np.where(value <= self._threshold[at], self._left[at], self._right[at])


def _joined(arrays: Sequence[Sequence[float] | _Numbers], dtype: type) -> _Numbers:
    return np.concatenate([np.asarray(array, dtype) for array in arrays] or [np.zeros(0, dtype)])


@functools.cache
def load() -> Ranker:
    """Load the ranker that comes with the package. Raises RankerUnavailableError."""
    try:
        data = (importlib.resources.files(__package__) / "ranker.json").read_bytes()
        return Ranker(msgspec.json.decode(data, type=Fitted))
    except (OSError, msgspec.MsgspecError, ValueError, OverflowError) as error:
        raise RankerUnavailableError(str(error)) from error
