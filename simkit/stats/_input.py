"""The one door of `simkit.stats`: every public function checks and standardises its arguments here."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simkit.errors import InputError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

_SUM_TOLERANCE = 1e-9
_MOST_COUNTS = 2**62


class HasProbabilities(Protocol):
    """Anything that carries its probabilities, such as `simkit.laws.rows.Row`."""

    @property
    def probabilities(self) -> Floats:
        """The law as float64."""


Law = ArrayLike | HasProbabilities


def _as_array(name: str, values: Any) -> NDArray[Any]:
    """Return values as an array of numbers; strings, complex numbers and ragged lists are turned away."""
    try:
        given = np.asarray(values)
        if given.dtype.kind == "O":  # fractions and Python's long integers
            given = given.astype(np.float64)
    except Exception:  # whatever an array library of the user's raises, such as a tensor on another device
        raise InputError(
            f"{name} are not numbers in rows of one length; give a NumPy array of numbers."
        ) from None
    if given.dtype.kind not in "fiub":
        raise InputError(f"{name} have dtype {given.dtype}; needed: real numbers.")
    return given


def as_probabilities(probabilities: Law) -> Floats:
    """Return probabilities as float64 rows, (V,) or (S, V), whose sums are 1 to the last bit or two.

    Rows are divided by their sum even inside the tolerance: at n = 1e10 draws a sum that is off by 1e-9 moves
    a log e-value by 10.
    """
    given = getattr(probabilities, "probabilities", probabilities)
    rows = _as_array("probabilities", given).astype(np.float64)
    if rows.ndim not in (1, 2) or rows.size == 0:
        raise InputError(
            f"probabilities have shape {rows.shape}; needed: one row (V,) or a row a state (S, V)."
        )
    if not np.isfinite(rows).all() or (rows < 0).any():
        bad = rows[~(np.isfinite(rows) & (rows >= 0))][0]
        raise InputError(
            f"probabilities hold {bad!r}; needed: finite numbers >= 0. Look for an overflow or a NaN."
        )
    sums = rows.sum(axis=-1, keepdims=True)
    _check_sums(sums)
    return np.asarray(rows / sums, dtype=np.float64)


def _check_sums(sums: Floats) -> None:
    """Raise where a row's sum is not 1 within the tolerance, and say which row and how to normalise."""
    off = np.abs(sums - 1.0)
    if float(off.max()) > _SUM_TOLERANCE:
        row = int(off.argmax())
        raise InputError(
            f"probabilities of row {row} sum to {float(sums.ravel()[row])!r}; needed: 1 within "
            f"{_SUM_TOLERANCE:g}. Normalise in float64: p = np.float64(p); p /= p.sum(-1, keepdims=True)."
        )


def as_row(probabilities: Law) -> Floats:
    """Return one row of probabilities, shape (V,)."""
    row = as_probabilities(probabilities)
    if row.ndim != 1:
        raise InputError(
            f"probabilities have shape {row.shape}; needed here: one row (V,). Call once for each row."
        )
    return row


def as_counts(counts: ArrayLike, shape: tuple[int, ...]) -> Ints:
    """Return counts as int64 of the given shape; floats are taken only if they are whole numbers."""
    try:
        given = np.asarray(counts)
    except Exception:
        raise InputError(
            "counts are no array, or rows of different lengths; give a NumPy array, one count a token."
        ) from None
    if given.shape != shape:
        raise InputError(
            f"counts have shape {given.shape} and probabilities {shape}; give both the same shape."
        )
    if given.dtype.kind not in "iuf":
        raise InputError(
            f"counts have dtype {given.dtype}; needed: whole numbers >= 0 (np.bincount gives them)."
        )
    if given.dtype.kind == "f":
        _check_whole(given)
    elif given.dtype.kind == "i" and int(given.min()) < 0:
        raise InputError(f"counts hold the negative number {int(given.min())}; pass whole numbers >= 0.")
    total = float(given.sum(dtype=np.float64))
    if total > _MOST_COUNTS:
        raise InputError(f"counts sum to {total:.4g}; needed: a total of at most 2**62.")
    return given.astype(np.int64)


def _check_whole(given: NDArray[Any]) -> None:
    """Raise unless floats are whole numbers >= 0; frequencies are called by their name."""
    if np.isfinite(given).all() and (given >= 0).all():
        if (given == np.floor(given)).all():
            return
        if (given <= 1).all() and np.allclose(given.sum(axis=-1), 1.0, rtol=0.0, atol=1e-3):
            raise InputError(
                "counts lie between 0 and 1 and sum to 1: these look like frequencies; multiply by the "
                "number of draws or pass the counts, not frequencies."
            )
    raise InputError("counts hold a negative, fractional or non-finite number; pass counts, not frequencies.")


def as_pair(counts: ArrayLike, probabilities: Law) -> tuple[Ints, Floats]:
    """Return counts (int64) and probabilities (float64), both (V,) or both (S, V)."""
    rows = as_probabilities(probabilities)
    return as_counts(counts, rows.shape), rows


def as_planned(visits: ArrayLike | None, counts: Ints, rows: Floats) -> Floats:
    """Return the planned visits (S,); None stands for the number of counts, a fixed sample size, for (V,)."""
    if visits is None and rows.ndim == 2:
        raise InputError(
            f"visits=None for counts of shape {counts.shape}; needed: the expected visits of each state. "
            "The realised visits are random, and cells pooled by them would depend on the counts."
        )
    return as_visits(counts.sum() if visits is None else visits, rows)


def as_visits(visits: ArrayLike, rows: Floats) -> Floats:
    """Return the planned visits of each state, float64 (S,), for rows (V,) (S = 1) or (S, V)."""
    states = 1 if rows.ndim == 1 else rows.shape[0]
    planned = _as_array("visits", visits).astype(np.float64)
    if planned.shape != (states,) and not (states == 1 and planned.shape == ()):
        raise InputError(
            f"visits have shape {planned.shape}; needed: one planned number a state, ({states},)."
        )
    if not np.isfinite(planned).all() or (planned < 0).any():
        raise InputError("visits hold a negative or non-finite number; give the planned (expected) visits.")
    return planned.reshape(states)


def _as_number(name: str, value: Any) -> float:
    """Return one number as a float; text, None and arrays are turned away."""
    if isinstance(value, str | bytes) or np.ndim(value) != 0:
        raise InputError(f"{name}={value!r}; needed: one number.")
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name}={value!r}; needed: one number.") from None


def as_rate(name: str, value: float, such_as: str = "1e-6") -> float:
    """Return a rate, an error rate unless the example says otherwise, strictly between 0 and 1."""
    number = _as_number(name, value)
    if not 0.0 < number < 1.0:
        raise InputError(f"{name}={value!r}; needed: a rate strictly between 0 and 1, such as {such_as}.")
    return number


def as_at_least(name: str, value: float, least: float) -> float:
    """Return a finite number that is not below `least`."""
    number = _as_number(name, value)
    if not (np.isfinite(number) and number >= least):
        raise InputError(f"{name}={value!r}; needed: a finite number >= {least:g}.")
    return number


def as_whole(name: str, value: float, least: int) -> int:
    """Return a whole number that is not below `least`."""
    as_at_least(name, value, least)
    # Compared with the value itself: as a float, 2**53 + 1 would not be whole.
    if int(value) != value:
        raise InputError(f"{name}={value!r}; needed: a whole number >= {least}.")
    return int(value)
