"""Rows read as points: intervals, deviations and their bound."""

from __future__ import annotations

from math import inf
from statistics import NormalDist

import numpy as np
import pytest

from simkit.figures.points import column, deviations, grouped, half_widths, lists, power_of_ten, widest

ROW = {"rate": 0.5, "rate_error": 0.1, "rate_theory": 0.2, "seed": 3, "hits": [1, 2]}


def test_columns_are_floats_even_where_the_store_wrote_text() -> None:
    assert column([{"x": "inf"}, {"x": 2}], "x").tolist() == [inf, 2.0]
    assert lists([ROW, ROW], "hits").shape == (2, 2)


def test_an_interval_is_1_96_standard_errors_wide() -> None:
    assert half_widths([ROW], "rate") == pytest.approx([0.196])


def test_deviations_count_standard_errors() -> None:
    assert deviations([ROW], "rate") == pytest.approx([3.0])


def test_a_point_without_error_is_right_or_infinitely_wrong() -> None:
    sure = ROW | {"rate_error": 0.0}
    found = deviations([sure, sure | {"rate_theory": 0.5}, sure | {"rate": 0.1}], "rate")
    assert found.tolist() == [inf, 0.0, -inf]


@pytest.mark.parametrize(("count", "alarm"), [(1, 0.05), (100, 1e-6), (10_000, 1e-6)])
def test_the_bound_keeps_the_false_alarm_rate_of_all_points(count: int, alarm: float) -> None:
    one = 2.0 * NormalDist().cdf(-widest(count, alarm))
    assert count * one == pytest.approx(alarm, rel=1e-6)


def test_numbers_in_figures_are_plain_text() -> None:
    assert grouped(1_234_567).split("\u202f") == ["1", "234", "567"]
    assert [power_of_ten(n) for n in (6, 0, -12)] == ["10⁶", "10⁰", "10⁻¹²"]
    assert np.all([grouped(n) == str(n) for n in (0, 10, 999)])
