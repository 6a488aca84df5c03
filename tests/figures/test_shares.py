"""Shares: Clopper-Pearson intervals, and limits that are the exact binomial's."""

from __future__ import annotations

import pytest
from scipy.stats import binom, binomtest

from simkit.figures.shares import interval, is_above, is_below, most, with_intervals

CASES = [(0, 1), (1, 1), (0, 50), (3, 50), (50, 50), (17, 10_000), (4000, 10_000)]


@pytest.mark.parametrize(("hits", "runs"), CASES)
@pytest.mark.parametrize("confidence", [0.5, 0.95, 1 - 1e-6])
def test_intervals_are_those_of_scipy(hits: int, runs: int, confidence: float) -> None:
    known = binomtest(hits, runs).proportion_ci(confidence, method="exact")
    assert interval(hits, runs, confidence) == pytest.approx((known.low, known.high), rel=1e-7, abs=1e-12)


@pytest.mark.parametrize(("runs", "rate"), [(10, 0.1), (1000, 0.001), (10_000, 0.01), (3000, 0.1)])
@pytest.mark.parametrize("error", [1e-3, 1e-6, 1e-8])
def test_the_most_is_the_binomial_quantile(runs: int, rate: float, error: float) -> None:
    allowed = most(runs, rate, error)
    # P(X >= allowed) > error >= P(X >= allowed + 1)
    assert binom.sf(allowed - 1, runs, rate) > error >= binom.sf(allowed, runs, rate)
    assert not is_above(allowed, runs, rate, error)
    assert is_above(allowed + 1, runs, rate, error)


@pytest.mark.parametrize(("hits", "runs", "rate"), [(90, 100, 0.99), (960, 1000, 0.999), (0, 1000, 0.02)])
def test_too_few_hits_are_seen_and_enough_are_not(hits: int, runs: int, rate: float) -> None:
    error = binom.cdf(hits, runs, rate)
    assert is_below(hits, runs, rate, error * 1.001)
    assert not is_below(hits, runs, rate, error * 0.999)


def test_limits_are_one_sided() -> None:
    assert not is_above(0, 1000, 0.5, 1e-6)
    assert not is_below(1000, 1000, 0.5, 1e-6)
    assert not is_above(1000, 1000, 1.0, 1e-6)
    assert not is_below(0, 1000, 0.0, 1e-6)


def test_rows_keep_their_fields_and_get_six_digits() -> None:
    row = {"name": "x", "hits": 1, "runs": 3}
    (found,) = with_intervals([row])
    assert found == {**row, "share": 0.333333, "low": 0.00840376, "high": 0.905701}
    assert "share" not in row
