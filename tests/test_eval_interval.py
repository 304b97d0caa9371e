"""Bootstrap intervals by repository, and the three verdicts."""

from __future__ import annotations

import numpy as np
import pytest

from coderag_ci.eval.interval import Interval, intervals, verdict


def test_cases_of_one_repository_count_as_one_draw() -> None:
    """Ten repositories of ten equal cases are ten observations, not a hundred."""
    of_repo = np.array([0.0, 1.0] * 5)
    clustered = np.repeat(of_repo, 10)[:, None]
    (within,) = intervals(clustered, [f"r{n // 10}" for n in range(100)])
    (single,) = intervals(clustered, [f"r{n}" for n in range(100)])
    assert within.value == single.value == 0.5
    assert _width(within) == pytest.approx(_width(single) * np.sqrt(10), rel=0.15)


def test_the_interval_is_that_of_theory() -> None:
    """Of 400 independent cases: mean ± 1.96 standard errors."""
    values = np.random.default_rng(1).normal(0.3, 0.2, (400, 1))
    (found,) = intervals(values, [f"r{n}" for n in range(400)])
    error = 1.96 * float(values.std()) / 20
    assert found.low == pytest.approx(float(values.mean()) - error, abs=0.003)
    assert found.high == pytest.approx(float(values.mean()) + error, abs=0.003)


def test_with_one_repository_its_cases_are_drawn() -> None:
    """Else the interval of a team's own repository would have no width."""
    (found,) = intervals(np.array([[0.0], [1.0], [1.0], [0.0]]), ["own"] * 4)
    assert found.low is not None
    assert found.high is not None
    assert found.low < 0.5 < found.high


def test_a_case_that_does_not_count_changes_nothing() -> None:
    """NaN is neither 0 nor a case; a column of NaN has no figure."""
    values = np.array([[0.2, np.nan], [0.4, np.nan], [np.nan, np.nan]])
    known, unknown = intervals(values, ["a", "b", "c"])
    assert known.value == 0.3
    assert unknown == Interval(None, None, None)
    assert intervals(np.zeros((0, 2)), []) == [Interval(None, None, None)] * 2


def test_the_mean_of_repositories_weighs_each_alike() -> None:
    """Nine cases of one and one of another: 0.9 by case, 0.5 by repository."""
    values = np.array([[1.0]] * 9 + [[0.0]])
    of_repo = ["large"] * 9 + ["small"]
    assert intervals(values, of_repo)[0].value == 0.9
    assert intervals(values, of_repo, by_cluster=True)[0].value == 0.5


def test_the_same_values_give_the_same_interval() -> None:
    """A verdict must not change from one run to the next."""
    values = np.random.default_rng(2).random((60, 3))
    of_repo = [f"r{n % 7}" for n in range(60)]
    assert intervals(values, of_repo) == intervals(values, of_repo)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.001, 0.2, "better"),
        (-0.2, -0.001, "worse"),
        (-0.1, 0.1, "no difference"),
        (0.0, 0.1, "no difference"),
        (-0.1, 0.0, "no difference"),
        (None, None, "no difference"),
    ],
)
def test_only_a_difference_whose_interval_excludes_zero_is_one(
    low: float | None, high: float | None, expected: str
) -> None:
    """There are three verdicts."""
    assert verdict(Interval(0.0, low, high)) == expected


def _width(interval: Interval) -> float:
    assert interval.low is not None
    assert interval.high is not None
    return interval.high - interval.low
