"""Exponential, logarithm and power built from correctly rounded operations only.

The vendors' ``exp`` and ``log`` differ in the last bit from one processor to the next, and a last bit can
move a unit of an integer row. Sums, products and quotients are fixed by IEEE 754, so what is built from
them alone is the same on every machine; that is what makes rows, seeds and reports repeatable anywhere.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

_LN2_HIGH = 6.93147180369123816490e-01  # ln 2 to 33 bits: its products with small integers are exact
_LN2_LOW = 1.90821492927058770002e-10
_INVERSE_LN2 = 1.44269504088896338700  # a literal: the C library's log could differ
_EXP_SERIES = [1.0 / math.factorial(k) for k in range(14)]
_LOG_SERIES = [1.0 / (2 * k + 1) for k in range(12)]


def _horner(coefficients: list[float], x: NDArray[np.float64]) -> NDArray[np.float64]:
    result = np.full_like(x, coefficients[-1])
    for c in reversed(coefficients[:-1]):
        result *= x
        result += c
    return result


def exp(x: ArrayLike) -> NDArray[np.float64]:
    """Return e**x, within 2 units in the last place and with the same bits on every machine.

    Parameters
    ----------
    x : array_like of float64, any shape
        Exponents, at most 709; ``-inf`` gives 0, and so does anything below -708.

    Examples
    --------
    >>> exp([0.0, 1.0, -np.inf])
    array([1.        , 2.71828183, 0.        ])
    """
    x = np.asarray(x, dtype=np.float64)
    small = x < -708.0
    safe = np.where(small, 0.0, x)
    k = np.rint(safe * _INVERSE_LN2)
    r = (safe - k * _LN2_HIGH) - k * _LN2_LOW
    return np.where(small, 0.0, np.ldexp(_horner(_EXP_SERIES, r), k.astype(np.int32)))


def log(x: ArrayLike) -> NDArray[np.float64]:
    """Return the natural logarithm, within 4 units in the last place and the same bits everywhere.

    Parameters
    ----------
    x : array_like of float64, any shape
        Positive numbers, or 0, which gives ``-inf``.

    Examples
    --------
    >>> log([1.0, 0.0, np.e])
    array([  0., -inf,   1.])
    """
    x = np.asarray(x, dtype=np.float64)
    zero = x == 0.0
    mantissa, exponent = np.frexp(np.where(zero, 1.0, x))
    low = mantissa < math.sqrt(0.5)
    mantissa = np.where(low, 2.0 * mantissa, mantissa)
    k = exponent - low.astype(np.int32)
    f = (mantissa - 1.0) / (mantissa + 1.0)
    body = 2.0 * f * _horner(_LOG_SERIES, f * f)
    return np.where(zero, -np.inf, k * _LN2_HIGH + (body + k * _LN2_LOW))


def power(x: ArrayLike, exponent: float) -> NDArray[np.float64]:
    """Return ``x**exponent`` for x >= 0, with the same bits on every machine.

    Parameters
    ----------
    x : array_like of float64, any shape
        Bases, >= 0.
    exponent : float
        The exponent; 0 ** positive is 0.

    Examples
    --------
    >>> power([1.0, 2.0, 4.0], -0.5)
    array([1.        , 0.70710678, 0.5       ])
    """
    return exp(exponent * log(x)) if exponent else np.ones_like(np.asarray(x, dtype=np.float64))


def rounded(x: ArrayLike, bits: int = 24) -> NDArray[np.float64]:
    """Return x rounded to so many significant bits, which hides last-bit differences of foreign code.

    Parameters
    ----------
    x : array_like of float64, any shape
        Finite numbers.
    bits : int
        Significant bits kept.

    Examples
    --------
    >>> rounded([1.0 + 2.0**-40, 0.75])
    array([1.  , 0.75])
    """
    mantissa, exponent = np.frexp(np.asarray(x, dtype=np.float64))
    result: NDArray[np.float64] = np.ldexp(np.rint(mantissa * 2.0**bits), exponent - bits)
    return result
