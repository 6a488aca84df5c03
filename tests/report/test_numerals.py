"""Every kind of number, as a reader sees it."""

from __future__ import annotations

import numpy as np
import pytest

from simkit.errors import InputError
from simkit.report import number

THIN = "\u202f"


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (0, "0"),
        (7, "7"),
        (-7, "−7"),
        (999, "999"),
        (1000, f"1{THIN}000"),
        (1_000_000, f"1{THIN}000{THIN}000"),
        (-1234567, f"−1{THIN}234{THIN}567"),
        (2**70, f"1{THIN}180{THIN}591{THIN}620{THIN}717{THIN}411{THIN}303{THIN}424"),
        (0.3, "0.3"),
        (0.1 + 0.2, "0.3"),
        (0.0, "0"),
        (-0.0, "0"),
        (2.0, "2"),
        (100.0, "100"),
        (1e5, f"100{THIN}000"),
        (1 / 3, "0.333333"),
        (-1 / 3, "−0.333333"),
        (12345.678, f"12{THIN}345.7"),
        (-1234.5, f"−1{THIN}234.5"),
        (0.05, "0.05"),
        (0.0001, "0.0001"),
        (0.000012, "1.2 × 10⁻⁵"),
        (3.456789e-12, "3.45679 × 10⁻¹²"),
        (-1e-7, "−1 × 10⁻⁷"),
        (5e-324, "4.94066 × 10⁻³²⁴"),
        (1e6, "1 × 10⁶"),
        (1.5e300, "1.5 × 10³⁰⁰"),
        (999999.7, "1 × 10⁶"),
        (float("nan"), "NaN"),
        (float("inf"), "∞"),
        (float("-inf"), "−∞"),
        (np.float64(0.25), "0.25"),
    ],
)
def test_number(x: float, text: str) -> None:
    assert number(x) == text


def test_fewer_digits() -> None:
    assert number(1 / 3, digits=2) == "0.33"
    assert number(12345, digits=2) == f"12{THIN}345"  # an int is never rounded


@pytest.mark.parametrize("digits", [0, 16, -1])
def test_digits_out_of_range(digits: int) -> None:
    with pytest.raises(InputError, match="need 1 to 15"):
        number(0.5, digits=digits)
