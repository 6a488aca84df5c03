"""The one door of `simkit.stats`: every public function checks and standardises its arguments here."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simkit.errors import InputError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_SUM_TOLERANCE = 1e-9


def as_probabilities(probabilities: ArrayLike) -> Floats:
    """Return probabilities as float64 rows, (V,) or (S, V), whose sums are 1 to the last bit or two.

    Rows are divided by their sum even inside the tolerance: at n = 1e10 draws a sum that is off by 1e-9 moves
    a log e-value by 10.
    """
    rows = np.asarray(probabilities, dtype=np.float64)
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


def as_row(probabilities: ArrayLike) -> Floats:
    """Return one row of probabilities, shape (V,)."""
    row = as_probabilities(probabilities)
    if row.ndim != 1:
        raise InputError(
            f"probabilities have shape {row.shape}; needed here: one row (V,). Call once for each row."
        )
    return row


def as_counts(counts: ArrayLike, shape: tuple[int, ...]) -> Ints:
    """Return counts as int64 of the given shape; floats are taken only if they are whole numbers."""
    given = np.asarray(counts)
    if given.shape != shape:
        raise InputError(
            f"counts have shape {given.shape} and probabilities {shape}; give both the same shape."
        )
    if given.dtype.kind not in "iuf":
        raise InputError(
            f"counts have dtype {given.dtype}; needed: whole numbers >= 0 (np.bincount gives them)."
        )
    if not np.isfinite(given).all() or (given < 0).any() or (given != np.floor(given)).any():
        raise InputError(
            "counts hold a negative, fractional or non-finite number; pass counts, not frequencies."
        )
    return given.astype(np.int64)


def as_pair(counts: ArrayLike, probabilities: ArrayLike) -> tuple[Ints, Floats]:
    """Return counts (int64) and probabilities (float64), both (V,) or both (S, V)."""
    rows = as_probabilities(probabilities)
    return as_counts(counts, rows.shape), rows


def as_visits(visits: ArrayLike, rows: Floats) -> Floats:
    """Return the planned visits of each state, float64 (S,), for rows (V,) (S = 1) or (S, V)."""
    states = 1 if rows.ndim == 1 else rows.shape[0]
    planned = np.asarray(visits, dtype=np.float64)
    if planned.shape != (states,) and not (states == 1 and planned.shape == ()):
        raise InputError(
            f"visits have shape {planned.shape}; needed: one planned number a state, ({states},)."
        )
    if not np.isfinite(planned).all() or (planned < 0).any():
        raise InputError("visits hold a negative or non-finite number; give the planned (expected) visits.")
    return planned.reshape(states)


def as_rate(name: str, value: float) -> float:
    """Return an error rate strictly between 0 and 1."""
    if not 0.0 < value < 1.0:
        raise InputError(f"{name}={value!r}; needed: a rate strictly between 0 and 1, such as 1e-6.")
    return float(value)


def as_at_least(name: str, value: float, least: float) -> float:
    """Return a finite number that is not below `least`."""
    if not (np.isfinite(value) and value >= least):
        raise InputError(f"{name}={value!r}; needed: a finite number >= {least:g}.")
    return float(value)


def as_whole(name: str, value: float, least: int) -> int:
    """Return a whole number that is not below `least`."""
    if as_at_least(name, value, least) != int(value):
        raise InputError(f"{name}={value!r}; needed: a whole number >= {least}.")
    return int(value)
