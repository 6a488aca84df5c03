"""Pearson's chi-square test on cells that are pooled by the plan, never by the counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simkit.errors import InputError
from simkit.stats._input import Floats, Ints, as_at_least, as_pair, as_probabilities, as_visits
from simkit.stats.result import CHI_SQUARE, LARGEST_Z, GoodnessOfFit

MIN_EXPECTED = 50.0
_ROUNDING = 2.0**-53
_TAILS = 1000

Mask = NDArray[np.bool_]


def pool(probabilities: ArrayLike, visits: ArrayLike, min_expected: float = MIN_EXPECTED) -> Ints:
    """Return the cell label of every token, a function of the probabilities and the planned visits only.

    Tokens are ranked by probability (ties by id). Those with an expectation of at least `min_expected` keep a
    cell of their own; the rest share one tail cell; while the tail expects less than `min_expected`, the
    smallest kept cell joins it. No cell is empty. Pooling by observed counts instead has a false-alarm rate
    of tens of percent.

    Parameters
    ----------
    probabilities
        Target law, float, shape (V,) or (S, V); rows sum to 1.
    visits
        Planned (expected) number of draws: a number for (V,), shape (S,) for (S, V).
    min_expected
        Least expectation of a cell, in draws; 50 keeps the chi-square law right down to about 1e-4.

    Returns
    -------
    int64 array of the shape of `probabilities`: 0 for the most probable cell, then up; -1 for tokens of
    probability 0, which belong to no cell.

    Raises
    ------
    InputError
        If a row does not sum to 1, or the visits do not match the rows.

    Examples
    --------
    >>> pool([0.6, 0.0, 0.1, 0.3], 600).tolist()
    [0, -1, 2, 1]
    >>> pool([0.6, 0.0, 0.1, 0.3], 200).tolist()
    [0, -1, 1, 1]
    """
    rows = as_probabilities(probabilities)
    planned = as_visits(visits, rows)
    labels = _pool_rows(np.atleast_2d(rows), planned, as_at_least("min_expected", min_expected, 0.0))
    return labels.reshape(rows.shape)


def _pool_rows(rows: Floats, visits: Floats, min_expected: float) -> Ints:
    """Return cell labels (S, V)."""
    order = np.argsort(-rows, axis=1, kind="stable")
    ranked = np.take_along_axis(rows, order, axis=1)
    tail_cell = _tail_rank(ranked, visits[:, None], min_expected)
    ranks = np.arange(rows.shape[1])[None, :]
    ranked_labels = np.where(ranked > 0, np.minimum(ranks, tail_cell), -1)
    labels = np.empty(rows.shape, dtype=np.int64)
    np.put_along_axis(labels, order, ranked_labels, axis=1)
    return labels


def _tail_rank(ranked: Floats, visits: Floats, min_expected: float) -> Ints:
    """Return, shape (S, 1), the rank where each state's tail cell starts (V if there is none)."""
    width = ranked.shape[1]
    kept = ((ranked > 0) & (ranked * visits >= min_expected)).sum(axis=1, keepdims=True)
    positive = (ranked > 0).sum(axis=1, keepdims=True)
    from_here = np.cumsum(ranked[:, ::-1], axis=1)[:, ::-1] * visits
    # from_here falls with the rank, so this counts the ranks at which a tail would expect enough.
    enough = (from_here >= min_expected).sum(axis=1, keepdims=True)
    start = np.maximum(np.minimum(kept, enough - 1), 0)
    return np.asarray(np.where(kept == positive, width, start))


@dataclass(frozen=True)
class _Cells:
    """Observed counts and probabilities of the cells of all testable states, flat, state by state."""

    observed: Floats
    probability: Floats
    draws: Floats
    states: int
    impossible: bool

    @property
    def degrees_of_freedom(self) -> int:
        """Return cells less one for each state."""
        return int(self.observed.size) - self.states


def _cells(
    counts: ArrayLike, probabilities: ArrayLike, min_expected: float, visits: ArrayLike | None
) -> _Cells:
    """Return the pooled cells; states with one cell, or with no draw, say nothing and are left out."""
    tallies, rows = as_pair(counts, probabilities)
    if visits is None and rows.ndim == 2:
        raise InputError(
            f"visits=None for counts of shape {tallies.shape}; needed: the expected visits of each state. "
            "The realised visits are random, and cells pooled by them would depend on the counts."
        )
    planned = as_visits(tallies.sum() if visits is None else visits, rows)
    tallies, rows = np.atleast_2d(tallies), np.atleast_2d(rows)
    labels = _pool_rows(rows, planned, as_at_least("min_expected", min_expected, 0.0))
    draws = tallies.sum(axis=1)
    tested = (labels.max(axis=1) > 0) & (draws > 0)
    flat, belongs = _flat_cells(labels, tested)
    return _Cells(
        observed=_cell_sums(flat, tallies[belongs]),
        probability=_cell_sums(flat, rows[belongs]),
        draws=np.repeat(draws[tested], labels.max(axis=1)[tested] + 1).astype(np.float64),
        states=int(tested.sum()),
        impossible=bool(tallies[labels < 0].any()),
    )


def _cell_sums(flat: Ints, values: Floats | Ints) -> Floats:
    """Return the sum of the values in each cell, as float64 even where there is no cell."""
    return np.bincount(flat, weights=values).astype(np.float64)


def _flat_cells(labels: Ints, tested: Mask) -> tuple[Ints, Mask]:
    """Return the running cell number of each token in a tested cell, and the mask of those tokens."""
    sizes = np.where(tested, labels.max(axis=1) + 1, 0)
    first = np.cumsum(sizes) - sizes
    belongs = (labels >= 0) & tested[:, None]
    return (labels + first[:, None])[belongs], belongs


def chi_square(
    counts: ArrayLike,
    probabilities: ArrayLike,
    min_expected: float = MIN_EXPECTED,
    visits: ArrayLike | None = None,
) -> GoodnessOfFit:
    """Return Pearson's chi-square test of counts against known probabilities, summed over states.

    The statistic is the sum over states s and pooled cells c of (O - N_s p_c)^2 / (N_s p_c) with the realised
    N_s; its degrees of freedom are the sum of (cells - 1) over the states that have two cells or more and
    were visited. The p-value is the chi-square law's, which is not to be believed below about 1e-4: let the
    e-value decide there.

    Parameters
    ----------
    counts
        Tokens seen, whole numbers, shape (V,) or (S, V).
    probabilities
        Target law, float, same shape; rows sum to 1.
    min_expected
        Least planned expectation of a cell, in draws; 0 pools nothing.
    visits
        Planned draws, by which cells are pooled: a number for (V,) (default: the number of counts, a fixed
        sample size), shape (S,) for (S, V), where it has no default because the realised visits are random.

    Returns
    -------
    GoodnessOfFit; statistic inf and p-value 0 if a token of probability 0 was seen; statistic 0, p-value 1
    and no degrees of freedom if no state has two cells.

    Raises
    ------
    InputError
        If shapes differ, counts are not whole, a row does not sum to 1, or visits are missing for (S, V).

    References
    ----------
    .. [1] K. Pearson, "On the criterion that a given system of deviations...", Phil. Mag. 50 (1900), 157-175.

    Examples
    --------
    >>> print(chi_square([5, 3, 2], [0.2, 0.3, 0.5], min_expected=0))
    chi-square: statistic 6.3, p 0.04285 (2 degrees of freedom, 3 cells, 10 samples)
    """
    cells = _cells(counts, probabilities, min_expected, visits)
    statistic = float("inf") if cells.impossible else _pearson(cells)
    return GoodnessOfFit(
        name=CHI_SQUARE,
        statistic=statistic,
        p_value=_upper_tail(statistic, cells.degrees_of_freedom),
        degrees_of_freedom=cells.degrees_of_freedom,
        cells=int(cells.observed.size),
        samples=int(np.asarray(counts).sum()),
    )


def _pearson(cells: _Cells) -> float:
    """Return the sum of (O - E)^2 / E."""
    expected = cells.draws * cells.probability
    return float(((cells.observed - expected) ** 2 / expected).sum())


def _upper_tail(statistic: float, degrees_of_freedom: int) -> float:
    """Return P(chi-square >= statistic)."""
    from scipy.special import gammaincc

    if np.isinf(statistic):
        return 0.0
    if degrees_of_freedom == 0:
        return 1.0
    return float(gammaincc(degrees_of_freedom / 2.0, statistic / 2.0))


def z_scores(
    counts: ArrayLike,
    probabilities: ArrayLike,
    min_expected: float = MIN_EXPECTED,
    visits: ArrayLike | None = None,
) -> Floats:
    """Return the standard scores (O - N p) / sqrt(N p (1 - p)) of the cells that `chi_square` compares.

    Parameters
    ----------
    counts, probabilities, min_expected, visits
        As in `chi_square`.

    Returns
    -------
    float64, shape (number of cells,), state by state, most probable cell first; in standard deviations.
    Tokens of probability 0 have no score: `chi_square` reports them.

    Raises
    ------
    InputError
        As `chi_square`.

    Examples
    --------
    >>> z_scores([60, 40], [0.5, 0.5]).tolist()
    [2.0, -2.0]
    """
    return _scores(_cells(counts, probabilities, min_expected, visits))


def _scores(cells: _Cells) -> Floats:
    """Return (O - E) / sqrt(E (1 - p))."""
    expected = cells.draws * cells.probability
    # A cell of probability 1 - 1e-17 is 1 in float64; the rest of the law is then below one rounding.
    rest = np.maximum(1.0 - cells.probability, _ROUNDING)
    return np.asarray((cells.observed - expected) / np.sqrt(expected * rest))


def largest_z(
    counts: ArrayLike,
    probabilities: ArrayLike,
    min_expected: float = MIN_EXPECTED,
    visits: ArrayLike | None = None,
) -> GoodnessOfFit:
    """Return the test by the largest |z| of the cells that `chi_square` compares.

    It sees a single wrong token that chi-square drowns among many. The p-value is Bonferroni's: the number of
    cells times the smallest two-sided binomial tail (twice the smaller one) of the 1,000 outermost, so that
    its level is never above the nominal one, given the draws of each state.

    Parameters
    ----------
    counts, probabilities, min_expected, visits
        As in `chi_square`.

    Raises
    ------
    InputError
        As `chi_square`.

    Examples
    --------
    >>> print(largest_z([60, 40], [0.5, 0.5]))
    largest z-score: statistic 2, p 0.1138 (2 cells, 100 samples)
    """
    from scipy.special import betainc

    cells = _cells(counts, probabilities, min_expected, visits)
    samples, size = int(np.asarray(counts).sum()), int(cells.observed.size)
    if size == 0 or cells.impossible:
        statistic, p_value = (float("inf"), 0.0) if cells.impossible else (0.0, 1.0)
        return GoodnessOfFit(LARGEST_Z, statistic, p_value, cells=size, samples=samples)
    z = np.abs(_scores(cells))
    # The tails of the others would only make the smallest one smaller, and take seconds for a million cells.
    outer = np.argsort(-z)[:_TAILS]
    seen, draws, p = cells.observed[outer], cells.draws[outer], cells.probability[outer]
    # P(X >= c) and P(X <= c) of a binomial X; where one of them is 1 its beta function has no such parameter.
    above = np.where(seen > 0, betainc(np.maximum(seen, 0.5), draws - seen + 1, p), 1.0)
    below = np.where(seen < draws, betainc(np.maximum(draws - seen, 0.5), seen + 1, 1.0 - p), 1.0)
    tail = 2.0 * np.minimum(below, above)
    p_value = float(min(1.0, tail.min() * size))
    return GoodnessOfFit(LARGEST_Z, float(z.max()), p_value, cells=size, samples=samples)
