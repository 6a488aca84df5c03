"""Every public function turns away the same bad input, and says what to do."""

from __future__ import annotations

import numpy as np
import pytest

from simkit.errors import InputError, UnknownNameError
from simkit.stats import (
    chi_square,
    chi_square_power,
    concentration,
    detection_power,
    dkw_bound,
    evidence,
    ks,
    ks_p_value,
    log_e_value,
    mix,
    pool,
    samples_needed,
    threshold,
    z_scores,
)

ON_COUNTS = [
    chi_square,
    z_scores,
    ks,
    lambda counts, p: log_e_value(counts, p, 10.0),
    lambda counts, p: evidence(counts, p, 10.0),
]


@pytest.mark.parametrize("judge", ON_COUNTS)
@pytest.mark.parametrize(
    ("counts", "p", "says"),
    [
        ([1, 2], [0.5, 0.4], "0.9"),
        ([1, 2], [0.5, 0.4], "p.sum"),
        ([1, 2], [0.5, 0.5 + 3e-9], "within 1e-09"),
        ([1, 2], [1.5, -0.5], "-0.5"),
        ([1, 2], [np.nan, 1.0], "nan"),
        ([1, 2, 3], [0.5, 0.5], "same shape"),
        ([1, -2], [0.5, 0.5], "negative"),
        ([0.5, 0.5], [0.5, 0.5], "not frequencies"),
        ([1.0, np.inf], [0.5, 0.5], "non-finite"),
        ([True, False], [0.5, 0.5], "bincount"),
        ([], [], "shape"),
    ],
)
def test_bad_counts_and_laws_are_named(judge, counts, p, says):
    with pytest.raises(InputError, match=says):
        judge(counts, p)


def test_a_row_number_is_named():
    with pytest.raises(InputError, match="row 1"):
        pool([[0.5, 0.5], [0.5, 0.6]], [10, 10])


def test_whole_floats_and_small_rounding_pass():
    third = np.full(3, 1 / 3 + 1e-11)
    result = chi_square(np.array([1.0, 2.0, 3.0]), third, min_expected=0)
    assert result.statistic == pytest.approx(1.0)


@pytest.mark.parametrize(
    "call",
    [
        lambda: chi_square([[1, 2]], [[0.5, 0.5]]),
        lambda: pool([0.5, 0.5], [1, 2]),
        lambda: pool([0.5, 0.5], -1),
        lambda: pool([0.5, 0.5], 10, min_expected=-1),
        lambda: ks([[1, 2]], [[0.5, 0.5]]),
        lambda: ks_p_value(-0.1, [0.5, 0.5], 10),
        lambda: ks_p_value(0.1, [0.5, 0.5], 0),
        lambda: ks_p_value(0.1, [0.5, 0.5], 2.5),
        lambda: ks_p_value(float("nan"), [0.5, 0.5], 3),
        lambda: dkw_bound(0.1, 0),
        lambda: log_e_value([1, 2], [0.5, 0.5], 0.0),
        lambda: log_e_value([1, 2], [0.5, 0.5], [1.0, 2.0]),
        lambda: log_e_value([1, 2], [0.5, 0.5], np.inf),
        lambda: concentration(0, 3),
        lambda: concentration(10, 0),
        lambda: threshold(0.0),
        lambda: threshold(1.0),
        lambda: mix({}),
        lambda: mix({"x": float("nan")}),
        lambda: detection_power(0.6, 10, 3, 1e-6),
        lambda: detection_power(0.1, 0, 3, 1e-6),
        lambda: detection_power(0.1, 10, 1, 1e-6),
        lambda: detection_power(0.1, 10, 3, 1e-6, components=0),
        lambda: samples_needed(0.0, 3, 1e-6, 1e-3),
        lambda: samples_needed(0.1, 3, 1e-6, 0.0),
        lambda: chi_square_power(0.1, 0, 3, 0.05),
    ],
)
def test_bad_arguments_raise(call):
    with pytest.raises(InputError):
        call()


def test_unknown_order_lists_the_known():
    with pytest.raises(UnknownNameError, match="id, rank"):
        ks([1, 1], [0.5, 0.5], order="ranks")
