"""Synthetic laws: Zipf and Dirichlet rows, a draft at a chosen distance from its target, corner cases."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from simkit.errors import InputError, UnknownNameError
from simkit.laws.checks import whole_number
from simkit.laws.logits import tempered_rows
from simkit.laws.pair import LARGEST_VOCABULARY, Pair
from simkit.laws.portable import exp, log, rounded
from simkit.laws.rows import IntRows, Row, rows_from_floats

_TINY = float(np.finfo(np.float64).tiny)
_SMALLEST_CONCENTRATION, _LARGEST_CONCENTRATION = 1e-6, 1e12
_PERMUTATION = 1  # keeps the words of `near_copy` apart from those of `dirichlet` with the same seed
_MOST_SLOTS = 64


def zipf(vocabulary: int, exponent: float = 1.0, offset: float = 0.0) -> Row:
    """Return the Zipf-Mandelbrot row, token t in proportion to ``(t + 1 + offset) ** -exponent``.

    Parameters
    ----------
    vocabulary : int
        Number of tokens V, from 1.
    exponent : float
        Finite and >= 0; 0 is the uniform law.
    offset : float
        Finite and above -1; a positive one flattens the head.

    Raises
    ------
    InputError
        For an argument outside its range.

    Examples
    --------
    >>> zipf(2)
    Row(0.666667, 0.333333)
    """
    vocabulary = whole_number(vocabulary, "vocabulary", 1, LARGEST_VOCABULARY)
    if not (math.isfinite(exponent) and exponent >= 0):
        raise InputError(f"exponent={exponent!r}; it needs a finite number >= 0")
    if not (math.isfinite(offset) and 1.0 + offset > 0):
        raise InputError(f"offset={offset!r}; it needs a finite number above -1")
    rank = log(np.arange(vocabulary) + (1.0 + offset))
    return _row_from_log_masses(-exponent * (rank - rank[0]))


def dirichlet(vocabulary: int, concentration: float, seed: int) -> Row:
    """Return a row drawn from the symmetric Dirichlet law; every token keeps a positive weight.

    A gamma variate of shape a is one of shape a + 1 times ``U ** (1 / a)``. Their logarithms do not
    underflow, so the row is right for small concentrations too.

    Parameters
    ----------
    vocabulary : int
        Number of tokens V, from 1.
    concentration : float
        Shape of each gamma variate, from 1e-6 (nearly all mass on one token) to 1e12 (nearly uniform).
    seed : int
        Seed >= 0 of a PCG64 stream; the same row comes from the same seed.

    Raises
    ------
    InputError
        For an argument outside its range.

    Examples
    --------
    >>> dirichlet(3, 1.0, seed=7)
    Row(0.778705, 0.112177, 0.109118)
    """
    vocabulary = whole_number(vocabulary, "vocabulary", 1, LARGEST_VOCABULARY)
    if not _SMALLEST_CONCENTRATION <= concentration <= _LARGEST_CONCENTRATION:
        raise InputError(
            f"concentration={concentration!r}; it needs a number from {_SMALLEST_CONCENTRATION:g} "
            f"to {_LARGEST_CONCENTRATION:g}"
        )
    generator = np.random.Generator(np.random.PCG64(whole_number(seed, "seed", 0)))
    gammas = rounded(generator.standard_gamma(concentration + 1.0, vocabulary), 24)
    uniforms = 1.0 - generator.random(vocabulary)
    log_masses = log(gammas) + log(uniforms) / concentration
    return _row_from_log_masses(log_masses - log_masses.max())


def near_copy(row: Row, total_variation: float, seed: int = 0) -> Row:
    """Return a row at exactly ``round(total_variation * row.total) / row.total`` from the given one.

    Mass moves towards the row's own weights in a random order. When that order is nearer than the distance
    asked for, mass moves towards the least likely token instead, which reaches up to 1 - min(p).

    A row that gives every token weight keeps that as long as the random order is far enough; in all other
    cases tokens may enter or leave the support.

    Parameters
    ----------
    row : Row
        The row to copy; the copy has the same total.
    total_variation : float
        Distance, from 0 to 1 minus the smallest probability of the row.
    seed : int
        Seed >= 0 of the random order.

    Raises
    ------
    InputError
        When the distance is negative, not a number, or more than this row allows.

    Examples
    --------
    >>> target = zipf(100)
    >>> draft = near_copy(target, 0.3)
    >>> float(target.total_variation(draft)), target.total == draft.total
    (0.3000000000001819, True)
    """
    if not (math.isfinite(total_variation) and total_variation >= 0):
        raise InputError(f"total_variation={total_variation!r}; it needs a number from 0 to 1")
    units = round(Fraction(total_variation) * row.total)
    most = row.total - int(row.weights.min())
    if units > most:
        raise InputError(
            f"total_variation={total_variation!r} is out of reach: the largest distance from this row is "
            f"{most / row.total!r} (1 minus its smallest probability)"
        )
    generator = np.random.Generator(np.random.PCG64([whole_number(seed, "seed", 0), _PERMUTATION]))
    towards = row.weights[generator.permutation(len(row))]
    if units > np.maximum(towards - row.weights, 0).sum():
        towards = np.zeros_like(row.weights)
        towards[row.weights.argmin()] = row.total
    gained = _share(units, np.maximum(towards - row.weights, 0))
    lost = _share(units, np.maximum(row.weights - towards, 0))
    return Row(row.weights + gained - lost)


def tempered(row: Row, temperature: float) -> Row:
    """Return the row with each probability raised to ``1 / temperature``, normalised.

    Parameters
    ----------
    row : Row
        The row.
    temperature : float
        Finite and >= 0: 1 returns the same row, 0 puts all mass on the likeliest token (lowest id on ties).
        At any other temperature the support is kept.

    Raises
    ------
    InputError
        For a temperature that is negative or not finite.

    Examples
    --------
    >>> tempered(Row.from_weights([1, 2, 1]), 0.5)
    Row(0.166667, 0.666667, 0.166667)
    """
    return Row(tempered_rows(row.weights, temperature))


def _share(units: int, parts: IntRows) -> IntRows:
    """Share units in proportion to parts by largest remainder, at most parts[t] to each token t.

    The bound holds as long as the units are no more than the parts: a quota is then at most its part, and
    a part is an integer. Python integers carry the products, which pass 64 bits.
    """
    whole = int(parts.sum())
    if units == 0:
        return np.zeros_like(parts)
    quotas = [divmod(units * part, whole) for part in parts.tolist()]
    shares = np.array([quota for quota, _ in quotas], dtype=np.int64)
    remainders = np.array([remainder for _, remainder in quotas], dtype=np.int64)
    shares[np.argsort(-remainders, kind="stable")[: units - int(shares.sum())]] += 1
    return shares


def _row_from_log_masses(log_masses: NDArray[np.float64]) -> Row:
    """Return the row of exp(log_masses), whose maximum is 0; no token underflows out of the support."""
    masses = np.maximum(exp(log_masses), _TINY)
    return Row(rows_from_floats(masses / math.fsum(masses.tolist())))


def _by_position() -> Pair:
    target = [[4, 3, 2, 1], [1, 1, 1, 1], [0, 0, 7, 3], [10, 0, 0, 0], [1, 2, 3, 4]]
    draft = [[1, 2, 3, 4], [1, 1, 1, 1], [5, 1, 3, 1], [1, 9, 0, 0], [0, 0, 5, 5]]
    return Pair.from_weights(target, draft)


def _requests() -> Pair:
    target = [[[5, 3, 2], [1, 1, 8]], [[1, 0, 0], [3, 3, 4]], [[2, 5, 3], [0, 1, 1]]]
    draft = [[[2, 3, 5], [1, 1, 8]], [[1, 1, 2], [4, 3, 3]], [[0, 0, 1], [1, 1, 0]]]
    return Pair.from_weights(target, draft)


def _draft_by_slot() -> Pair:
    """Parallel drafting: the draft flattens from slot to slot, towards the reversed target."""
    target = np.array([40, 30, 20, 10])
    slots = [target * (_MOST_SLOTS - slot) + target[::-1] * slot for slot in range(_MOST_SLOTS)]
    return Pair.by_slot(
        target=Row.from_weights(target), draft=[Row.from_weights(weights) for weights in slots]
    )


def _automaton() -> Pair:
    """Two contexts and the end of the text; token 3 ends it, tokens 1 and 2 lead to context 1."""
    return Pair(
        rows=np.array([[4, 2, 1, 1], [1, 5, 1, 1], [2, 2, 2, 2], [1, 1, 5, 1], [0, 0, 0, 8]]),
        target=np.array([0, 1, 4]),
        draft=np.array([[2], [3], [4]]),
        next_state=np.array([[0, 1, 1, 2], [0, 1, 1, 2], [2, 2, 2, 2]]),
        initial=np.array([0]),
        end=2,
    )


def _weights(target: list[int], draft: list[int]) -> Callable[[], Pair]:
    return lambda: Pair.from_weights(target, draft)


CORNER_CASES: dict[str, Callable[[], Pair]] = {
    "equal": _weights([5, 3, 2], [5, 3, 2]),
    "disjoint": _weights([3, 2, 0, 0], [0, 0, 1, 4]),
    "one-hot-target": _weights([0, 0, 1, 0], [4, 3, 2, 1]),
    "one-hot-draft": _weights([4, 3, 2, 1], [0, 1, 0, 0]),
    "partial-overlap": _weights([5, 3, 2, 0, 0, 0], [0, 0, 4, 4, 2, 0]),
    "many-token-residual": _weights([30, 30, 20, 10, 6, 4], [10, 10, 10, 10, 20, 40]),
    "rare-tokens": _weights([600_000_000, 399_999_998, 1, 1, 0], [500_000_000, 499_999_998, 1, 0, 1]),
    "one-token": _weights([1], [1]),
    "by-position": _by_position,
    "requests": _requests,
    "draft-by-slot": _draft_by_slot,
    "automaton": _automaton,
}
"""Name -> maker of each pair that a sampler is likely to get wrong."""


def corner_case(name: str) -> Pair:
    """Return a corner case by name.

    Parameters
    ----------
    name : str
        A key of `CORNER_CASES`.

    Raises
    ------
    UnknownNameError
        For any other name; the message lists the known ones.

    Examples
    --------
    >>> corner_case("disjoint")
    Pair('disjoint', vocabulary 4, 1 state, 1 request)
      target: 0.6, 0.4, 0, 0
      draft:  0, 0, 0.2, 0.8
    """
    if name not in CORNER_CASES:
        raise UnknownNameError("corner case", name, CORNER_CASES)
    return replace(CORNER_CASES[name](), name=name)


def corner_cases() -> dict[str, Pair]:
    """Return all corner cases by name.

    Examples
    --------
    >>> sorted(corner_cases())[:4]
    ['automaton', 'by-position', 'disjoint', 'draft-by-slot']
    """
    return {name: corner_case(name) for name in CORNER_CASES}
