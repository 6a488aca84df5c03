"""Rows read as points: their values, 95 % intervals, and their distance from theory."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from simkit.sweeps.task import Result

Floats = NDArray[np.float64]

Z95 = 1.96
"""Standard errors on each side of a 95 % interval."""

FALSE_ALARM = 1e-6
"""Probability, over all points of a page, that a right simulation is called off its theory."""


def column(rows: Sequence[Result], name: str) -> Floats:
    """Return one field of all rows as numbers.

    Parameters
    ----------
    rows : sequence of mapping
        Result rows.
    name : str
        A field that holds numbers.

    Examples
    --------
    >>> column([{"tokens": 4}, {"tokens": 6}], "tokens")
    array([4., 6.])
    """
    return np.array([float(row[name]) for row in rows], dtype=np.float64)


def lists(rows: Sequence[Result], name: str) -> Floats:
    """Return a field that holds a list of numbers, a line for each row.

    Parameters
    ----------
    rows : sequence of mapping
        Result rows whose lists are equally long.
    name : str
        A field such as "z_histogram".

    Examples
    --------
    >>> lists([{"accepted": [1, 2]}], "accepted")
    array([[1., 2.]])
    """
    return np.array([row[name] for row in rows], dtype=np.float64)


def half_widths(rows: Sequence[Result], name: str) -> Floats:
    """Return half the width of the 95 % interval of a measured field, clustered by trial.

    Parameters
    ----------
    rows : sequence of mapping
        Result rows.
    name : str
        A field that stands beside its standard error, such as "acceptance".

    Examples
    --------
    >>> half_widths([{"acceptance": 0.7, "acceptance_error": 0.01}], "acceptance")
    array([0.0196])
    """
    return Z95 * column(rows, f"{name}_error")


def deviations(rows: Sequence[Result], name: str) -> Floats:
    """Return (measured - theory) / standard error; infinite where a point without error is off.

    Parameters
    ----------
    rows : sequence of mapping
        Result rows.
    name : str
        A field that stands beside its standard error and its theory, such as "acceptance".

    Examples
    --------
    >>> row = {"acceptance": 0.72, "acceptance_error": 0.01, "acceptance_theory": 0.7}
    >>> deviations([row], "acceptance").round(6)
    array([2.])
    """
    difference = column(rows, name) - column(rows, f"{name}_theory")
    error = column(rows, f"{name}_error")
    certain = np.where(difference == 0.0, 0.0, np.copysign(np.inf, difference))
    return np.divide(difference, error, out=certain, where=error > 0.0)


def farthest(rows: Sequence[Result], names: Sequence[str]) -> float:
    """Return the largest of the `deviations` of several fields, regardless of sign.

    Parameters
    ----------
    rows : sequence of mapping
        Result rows.
    names : sequence of str
        Fields as for `deviations`.

    Examples
    --------
    >>> row = {"acceptance": 0.68, "acceptance_error": 0.01, "acceptance_theory": 0.7}
    >>> round(farthest([row], ["acceptance"]), 6)
    2.0
    """
    return float(max(np.abs(deviations(rows, name)).max() for name in names))


def grouped(value: int) -> str:
    r"""Return a whole number with its thousands apart and a minus that is one.

    Parameters
    ----------
    value : int
        The number.

    Examples
    --------
    >>> grouped(-12345).replace("\u202f", " ")
    '−12 345'
    """
    return f"{value:,}".replace(",", "\u202f").replace("-", "−")


def power_of_ten(exponent: int) -> str:
    """Return a power of ten as text that needs no mathematical typesetting, which takes a second a figure.

    Parameters
    ----------
    exponent : int
        The exponent.

    Examples
    --------
    >>> power_of_ten(-4)
    '10⁻⁴'
    """
    return "10" + str(exponent).translate(str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻"))


def widest(count: int, false_alarm: float = FALSE_ALARM) -> float:
    """Return how many standard errors the farthest of `count` right points may lie off (Bonferroni).

    Parameters
    ----------
    count : int
        Number of points looked at, 1 or more.
    false_alarm : float
        Probability that any right point lies farther off.

    Examples
    --------
    >>> round(widest(1, 0.05), 2), round(widest(100), 2)
    (1.96, 5.73)
    """
    return -NormalDist().inv_cdf(false_alarm / (2 * count))
