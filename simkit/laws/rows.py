"""Rows: probability laws over a vocabulary, held as integer weights against their own total.

With integers, overlap, residual and acceptance are rationals: laws are exact, tests of rules assert ``==``,
and every machine builds the same tables.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simkit.errors import InputError

IntRows = NDArray[np.int64]

TOTAL = 2**40
"""The total that a float row is given: weights are probabilities times this number."""

LARGEST_TOTAL = 2**62
"""The largest total that integer arithmetic on rows can carry."""


def rows_from_floats(values: ArrayLike, name: str = "row") -> IntRows:
    """Return int64 weights with total `TOTAL`, the nearest to the given probabilities by largest remainder.

    A token has weight >= 1 exactly where its probability is positive, so the support survives; remainders
    that tie are served by token id. A token whose quota is below one unit gets one unit, and the others
    share the rest in proportion.

    Parameters
    ----------
    values : array_like of float, shape (..., V)
        Probabilities along the last axis; sums within 1e-6 of one (1e-4 for float32 and below).
    name : str
        What to call the rows in an error.

    Raises
    ------
    InputError
        For an empty row, NaN, infinity, a negative entry, or a sum too far from one.

    Examples
    --------
    >>> rows_from_floats([0.5, 0.25, 0.25]) * 4 == np.array([2, 1, 1]) * TOTAL
    array([ True,  True,  True])
    """
    given = as_array(values, name)
    check_floats(given, name)
    flat = given.reshape(-1, given.shape[-1]).astype(np.float64)
    sums = np.array([_sum(row) for row in flat.tolist()])
    _check_sums(sums, given.dtype, name)
    return _apportion(flat / sums[:, None]).reshape(given.shape)


def as_array(values: ArrayLike, name: str) -> NDArray[Any]:
    """Return values as an array; raise `InputError` where they have no common shape.

    Parameters
    ----------
    values : array_like
        What the caller passed.
    name : str
        What to call it in the error.

    Examples
    --------
    >>> as_array([[1, 2], [3, 4]], "rows").shape
    (2, 2)
    """
    try:
        return np.asarray(values)
    except ValueError as error:
        raise InputError(f"{name} is not an array of one shape: {error}") from None


def check_floats(given: NDArray[Any], name: str) -> None:
    """Raise `InputError` unless `given` holds finite, non-negative numbers and at least one token.

    Parameters
    ----------
    given : numpy array, shape (..., V)
        What the caller passed.
    name : str
        What to call it in the error.

    Examples
    --------
    >>> check_floats(np.array([0.5, 0.5]), "target")
    """
    if given.dtype.kind not in "fiub":
        raise InputError(f"{name} must hold numbers; it has dtype {given.dtype}")
    if given.ndim == 0 or given.size == 0:
        raise InputError(f"{name} has shape {given.shape}; a row needs at least one token")
    for what, bad in (("NaN", np.isnan(given)), ("infinite", np.isinf(given)), ("negative", given < 0)):
        if bad.any():
            where = [int(i) for i in np.argwhere(bad)[0]]
            raise InputError(
                f"{name} has {int(bad.sum())} {what} entries, the first at {where}; "
                "every probability must be a finite number >= 0"
            )


def _sum(row: list[float]) -> float:
    try:
        return math.fsum(row)
    except OverflowError:
        return math.inf


def _check_sums(sums: NDArray[np.float64], dtype: np.dtype[Any], name: str) -> None:
    tolerance = 1e-6 if dtype.itemsize >= 8 or dtype.kind != "f" else 1e-4
    off = np.abs(sums - 1.0) > tolerance
    if off.any():
        at = int(np.argmax(off))
        raise InputError(
            f"{name} number {at} sums to {sums[at]:.9g}, more than {tolerance:g} from 1; "
            "normalise it first (row / row.sum()), or pass integer weights to from_weights"
        )


def _apportion(p: NDArray[np.float64]) -> IntRows:
    """Share `TOTAL` units over each row of p by largest remainder, at least one where p > 0."""
    positive = p > 0
    single = positive & (p * TOTAL < 1.0)
    while True:
        shared = np.where(single, 0.0, p)
        units = TOTAL - single.sum(axis=1)
        mass = np.array([math.fsum(row) for row in shared.tolist()]) if single.any() else np.ones(len(p))
        quota = shared * (units / mass)[:, None]
        more = positive & ~single & (quota < 1.0)
        if not more.any():
            break
        single |= more
    weights: IntRows = np.floor(quota).astype(np.int64)
    left = units - weights.sum(axis=1)
    for row in np.flatnonzero(left):
        by_remainder = np.argsort(-(quota[row] - weights[row]), kind="stable")
        weights[row, by_remainder[: left[row]]] += 1
    weights[single] = 1
    return weights


def rows_from_weights(values: ArrayLike, name: str = "row") -> IntRows:
    """Return the given integer weights as int64, as they are.

    Parameters
    ----------
    values : array_like of int, shape (..., V)
        Weights >= 0; every row needs a positive total of at most `LARGEST_TOTAL`.
    name : str
        What to call the rows in an error.

    Raises
    ------
    InputError
        For weights that are not integers, are negative, or sum to zero or to more than `LARGEST_TOTAL`.

    Examples
    --------
    >>> rows_from_weights([[1, 2], [2, 1]])
    array([[1, 2],
           [2, 1]])
    """
    given = as_array(values, name)
    if given.ndim == 0 or given.size == 0:
        raise InputError(f"{name} has shape {given.shape}; a row needs at least one token")
    if given.dtype.kind not in "iu":
        raise InputError(f"{name} needs integer weights; it has dtype {given.dtype}; floats go to from_rows")
    if (given < 0).any():
        raise InputError(f"{name} has a negative weight at {[int(i) for i in np.argwhere(given < 0)[0]]}")
    totals = given.astype(np.float64).sum(axis=-1)
    if (totals == 0).any():
        raise InputError(f"{name} has a row whose weights are all zero; at least one token needs weight")
    if (totals > LARGEST_TOTAL).any():
        raise InputError(f"{name} has total {totals.max():.4g}; at most 2**62 fits: divide the weights")
    return given.astype(np.int64)


def probabilities(rows: IntRows) -> NDArray[np.float64]:
    """Return the rows as float64 probabilities, each weight over its own row's total.

    Parameters
    ----------
    rows : integer array, shape (..., V)
        Weights.

    Examples
    --------
    >>> probabilities(np.array([1, 3]))
    array([0.25, 0.75])
    """
    return np.asarray(rows / rows.sum(axis=-1, keepdims=True), dtype=np.float64)


def reduced(rows: IntRows) -> IntRows:
    """Return the same laws with the smallest integer weights (each row over its greatest common divisor).

    Parameters
    ----------
    rows : int64 array, shape (..., V)
        Weights; an all-zero row stays as it is.

    Examples
    --------
    >>> reduced(np.array([2, 4, 0]))
    array([1, 2, 0])
    """
    divisor = np.gcd.reduce(rows, axis=-1, keepdims=True)
    return rows // np.maximum(divisor, 1)


def common(p: IntRows, q: IntRows) -> tuple[IntRows, IntRows]:
    """Return both rows as weights against one common total, so that they can be compared as integers.

    Parameters
    ----------
    p, q : int64 arrays, shape (..., V)
        Weights of the two laws; paired along the leading axes.

    Raises
    ------
    InputError
        When the common total would not fit into 62 bits.

    Examples
    --------
    >>> common(np.array([1, 2]), np.array([1, 1]))
    (array([2, 4]), array([3, 3]))
    """
    a, b = p.sum(axis=-1, keepdims=True), q.sum(axis=-1, keepdims=True)
    if np.array_equal(a, b):
        return p, q
    g = np.gcd(a, b)
    if ((a // g).astype(np.float64) * b > LARGEST_TOTAL).any():
        p, q = reduced(p), reduced(q)
        a, b = p.sum(axis=-1, keepdims=True), q.sum(axis=-1, keepdims=True)
        g = np.gcd(a, b)
        if ((a // g).astype(np.float64) * b > LARGEST_TOTAL).any():
            raise InputError(
                "the totals of target and draft weights have a common multiple above 2**62; "
                "use smaller weights, or float rows (which share one total)"
            )
    return p * (b // g), q * (a // g)


@dataclass(frozen=True, eq=False)
class Row:
    """One probability law over V tokens, as integer weights; prints as decimals.

    Parameters
    ----------
    weights : int64 array, shape (V,)
        Weights >= 0 against their own total.

    Raises
    ------
    InputError
        When the weights are not one row of integers with a positive total.

    Examples
    --------
    >>> p, q = Row.from_weights([1, 2]), Row.from_floats([0.5, 0.5])
    >>> p
    Row(0.333333, 0.666667)
    >>> p.total_variation(q), p.overlap(q), p.residual(q)
    (Fraction(1, 6), Fraction(5, 6), Row(0, 1))
    """

    weights: IntRows

    def __post_init__(self) -> None:
        weights = rows_from_weights(self.weights)
        if weights.ndim != 1:
            raise InputError(f"a Row is one row of weights; got shape {weights.shape}")
        weights.setflags(write=False)
        object.__setattr__(self, "weights", weights)

    @classmethod
    def from_floats(cls, values: ArrayLike) -> Row:
        """Return the row nearest to float probabilities, shape (V,); see `rows_from_floats`."""
        return cls(rows_from_floats(values))

    @classmethod
    def from_weights(cls, values: ArrayLike) -> Row:
        """Return the row with exactly these integer weights, shape (V,)."""
        return cls(rows_from_weights(values))

    @property
    def total(self) -> int:
        """The sum of the weights."""
        return int(self.weights.sum())

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """The law as float64, shape (V,)."""
        return probabilities(self.weights)

    @property
    def fractions(self) -> list[Fraction]:
        """The law as V exact fractions."""
        return [Fraction(w, self.total) for w in self.weights.tolist()]

    def overlap(self, other: Row) -> Fraction:
        """Return sum(min(p, q)), the acceptance rate of the token rule, exactly."""
        p, q = self._beside(other)
        return Fraction(int(np.minimum(p, q).sum()), int(p.sum()))

    def total_variation(self, other: Row) -> Fraction:
        """Return 1/2 sum|p - q|, exactly."""
        return 1 - self.overlap(other)

    def residual(self, other: Row) -> Row:
        """Return max(p - q, 0), normalised; raise `InputError` where it is empty (p = q)."""
        p, q = self._beside(other)
        if np.array_equal(p, q):
            raise InputError("the residual of a row against itself is empty: nothing is ever rejected")
        return Row(np.maximum(p - q, 0))

    def entropy(self) -> float:
        """Return the Shannon entropy in nats."""
        p = self.probabilities[self.weights > 0]
        return math.fsum((-p * np.log(p)).tolist())

    def kl(self, other: Row) -> float:
        """Return the Kullback-Leibler divergence KL(self || other) in nats, inf where support is missing."""
        self._beside(other)
        on = self.weights > 0
        p, q = self.probabilities[on], other.probabilities[on]
        if (q == 0).any():
            return math.inf
        return math.fsum((p * np.log(p / q)).tolist())

    def _beside(self, other: Row) -> tuple[IntRows, IntRows]:
        if len(self) != len(other):
            raise InputError(f"rows of {len(self)} and {len(other)} tokens cannot be compared")
        return common(self.weights, other.weights)

    def __len__(self) -> int:
        return len(self.weights)

    def __eq__(self, other: object) -> bool:
        """Two rows are equal when they are the same law, whatever their totals."""
        if not isinstance(other, Row):
            return NotImplemented
        return np.array_equal(reduced(self.weights), reduced(other.weights))

    def __hash__(self) -> int:
        return hash(reduced(self.weights).tobytes())

    def __repr__(self) -> str:
        return f"Row({decimals(self.weights)})"


def decimals(weights: IntRows, most: int = 8) -> str:
    """Return a row's probabilities as text with six significant digits, the middle cut when it is long.

    Parameters
    ----------
    weights : int64 array, shape (V,)
        The row.
    most : int
        How many probabilities to print.

    Examples
    --------
    >>> decimals(np.array([1, 1, 2]))
    '0.25, 0.25, 0.5'
    """
    total = int(weights.sum())
    shown = weights if len(weights) <= most else weights[: most - 1]
    text = ", ".join(f"{w / total:.6g}" for w in shown.tolist())
    return text if len(weights) <= most else f"{text}, ... {len(weights)} tokens"
