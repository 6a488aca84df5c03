"""Portable exp and log against 50-digit decimals: within the stated last places, with pinned bits."""

from __future__ import annotations

import hashlib
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from simkit.laws.portable import exp, log, power, rounded


def ulps(value: float, exact: Decimal) -> float:
    """How many units in the last place of the exact result the value is off."""
    return float(abs(Decimal(value) - exact) / Decimal(float(np.spacing(abs(float(exact))))))


@given(st.floats(-708.0, 709.0) | st.floats(-1.0, 1.0))
@example(709.0)
@example(-708.0)
@example(0.34657359027997264)  # half of ln 2, where the reduced argument is largest
def test_exp_is_within_two_last_places(x: float) -> None:
    with localcontext(prec=50):
        assert ulps(float(exp(x)), Decimal(x).exp()) <= 2.0


@given(st.floats(5e-324, 1.7e308) | st.floats(0.5, 2.0))
@example(0.7071067811865475)  # the two sides of the split of the mantissa
@example(0.7071067811865476)
@example(1.0 + 2.0**-52)
@example(1.0 - 2.0**-53)
@example(5e-324)
def test_log_is_within_four_last_places(x: float) -> None:
    with localcontext(prec=50):
        exact = Decimal(x).ln()
        assert float(log(x)) == 0.0 if exact == 0 else ulps(float(log(x)), exact) <= 4.0


@pytest.mark.parametrize("x", [-np.inf, -708.0001, -1e308])
def test_exp_is_zero_far_below(x: float) -> None:
    assert exp(x) == 0.0


def test_exact_values() -> None:
    assert exp(0.0) == 1.0
    assert log(1.0) == 0.0
    assert log(0.0) == -np.inf
    np.testing.assert_array_equal(power([0.0, 1.0, 7.0], 0.0), [1.0, 1.0, 1.0])
    np.testing.assert_array_equal(power([0.0, 1.0], 2.5), [0.0, 1.0])


@given(st.floats(1e-6, 1e6), st.floats(-5.0, 5.0))
def test_power_is_near_the_real_one(x: float, exponent: float) -> None:
    with localcontext(prec=50):
        exact = float((Decimal(exponent) * Decimal(x).ln()).exp())
    assert float(power(x, exponent)) == pytest.approx(exact, rel=1e-13)


@given(st.floats(-1e300, 1e300).filter(lambda x: x == 0 or abs(x) > 1e-300), st.integers(1, 52))
def test_rounded_keeps_so_many_bits(x: float, bits: int) -> None:
    value = float(rounded(x, bits))
    mantissa, _ = np.frexp(value)
    assert (mantissa * 2.0**bits).is_integer()
    assert abs(value - x) <= abs(x) * 2.0**-bits
    assert float(rounded(value, bits)) == value


def test_rounded_hides_a_last_bit() -> None:
    x = 0.7314159265358979
    assert rounded(np.nextafter(x, 1.0)) == rounded(x)
    assert rounded(x + 2.0**-23) != rounded(x)


def test_arrays_keep_their_shape_and_input() -> None:
    x = np.linspace(0.1, 5.0, 6).reshape(2, 3)
    before = x.copy()
    for function in (exp, log, rounded):
        assert function(x).shape == (2, 3)
    np.testing.assert_array_equal(x, before)


def test_bits_are_the_same_on_every_machine() -> None:
    """A library function in place of the series, or a fused multiply-add, changes these bits."""
    grid = np.arange(1, 100_001) / 137.0
    content = hashlib.sha256()
    for values in (exp(-grid), log(grid), power(grid, -1.3), rounded(grid)):
        content.update(values.astype("<f8").tobytes())
    assert content.hexdigest() == "97d13b162fc7ead1217a24e5d1c2d6da76fc1730bd7d55575c25e8c25bd933b1"
