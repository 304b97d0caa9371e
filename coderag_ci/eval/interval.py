"""Means with bootstrap intervals, clustered by repository, and what a difference is worth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np

from coderag_ci.segment import Array

_DRAWS = 2000
_LOW, _HIGH = 2.5, 97.5
_SEED = 20_260_101

Verdict = Literal["better", "no difference", "worse"]


class Interval(msgspec.Struct, frozen=True):
    """A mean and its 95 % interval; None where no case counts."""

    value: float | None
    low: float | None
    high: float | None


def intervals(
    values: Array, clusters: Sequence[str], *, by_cluster: bool = False
) -> list[Interval]:
    """Return the mean of each column, with the interval of the cluster bootstrap.

    ``values``: (n, m), NaN where a case does not count; ``clusters``: the repository of each
    case, since cases of one repository resemble each other. Whole repositories are drawn with
    replacement (2,000 draws, percentile interval; Field and Welsh, 2007); with one repository
    its cases are drawn. ``by_cluster``: the mean of the repositories' means.
    """
    names = sorted(set(clusters))
    if len(names) > 1:
        place = {name: i for i, name in enumerate(names)}
        of_case = np.array([place[name] for name in clusters])
    else:
        of_case = np.arange(len(clusters))
    groups = len(names) if len(names) > 1 else len(clusters)
    if not groups:
        return [Interval(None, None, None)] * values.shape[1]
    known = ~np.isnan(values)
    sums = np.zeros((groups, values.shape[1]))
    counts = np.zeros((groups, values.shape[1]))
    np.add.at(sums, of_case, np.where(known, values, 0.0))
    np.add.at(counts, of_case, known.astype(float))
    if by_cluster and len(names) > 1:
        sums = np.divide(sums, counts, out=np.zeros_like(sums), where=counts > 0)
        counts = (counts > 0).astype(float)
    draws = np.random.default_rng(_SEED).multinomial(groups, [1 / groups] * groups, _DRAWS)
    drawn, weight = draws @ sums, draws @ counts
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.where(weight > 0, drawn / weight, np.nan)
        mean = sums.sum(axis=0) / counts.sum(axis=0)
    return [_interval(mean[column], means[:, column]) for column in range(values.shape[1])]


def _interval(mean: float, drawn: Array) -> Interval:
    drawn = drawn[~np.isnan(drawn)]
    if np.isnan(mean) or not len(drawn):
        return Interval(None, None, None)
    low, high = np.percentile(drawn, [_LOW, _HIGH])
    return Interval(round(float(mean), 4), round(float(low), 4), round(float(high), 4))


def verdict(difference: Interval) -> Verdict:
    """Say what a paired difference (new − old) is worth: only one that excludes 0 is one."""
    if difference.low is None or difference.high is None:
        return "no difference"
    if difference.low > 0:
        return "better"
    return "worse" if difference.high < 0 else "no difference"
