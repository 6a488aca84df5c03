"""The one-sample Kolmogorov-Smirnov test for a discrete law, with its own p-value, not the continuous one."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from simkit.errors import UnknownNameError
from simkit.stats._input import Floats, Ints, as_at_least, as_counts, as_row, as_whole
from simkit.stats._ks_exact import exact_exit
from simkit.stats._ks_limit import limit_exit
from simkit.stats._ks_plan import knot_labels, merged, plan_passage
from simkit.stats.result import GoodnessOfFit

# Multiplications of one pass: about a second of one core. Above it, cells grow wider than one count.
_WORK = 3e9
# Below this, products of far tails come near the smallest float; a bound is as good as a number there.
_DEEPEST = 1e-120

Order = Literal["id", "rank"]


def dkw_bound(statistic: float, samples: int) -> float:
    """Return min(1, 2 exp(-2 n d^2)), which bounds P(D_n >= d) for every law and every n.

    Parameters
    ----------
    statistic
        d, the largest difference of distribution functions, 0 to 1.
    samples
        Number of draws n >= 1.

    Raises
    ------
    InputError
        If d is negative or n is not a whole number >= 1.

    References
    ----------
    .. [1] P. Massart, "The tight constant in the Dvoretzky-Kiefer-Wolfowitz inequality", Ann. Probab. 18
    (1990),
       1269-1283, corollary 1.

    Examples
    --------
    >>> round(dkw_bound(0.05, 1000), 6)
    0.013476
    """
    d, n = as_at_least("statistic", statistic, 0.0), as_whole("samples", samples, 1)
    return float(min(1.0, 2.0 * np.exp(-2.0 * n * d * d)))


def ks_statistic(counts: ArrayLike, probabilities: ArrayLike) -> float:
    """Return D_n, the largest |F_n - F| over the atoms in the given order.

    Parameters
    ----------
    counts
        Tokens seen, whole numbers, shape (V,).
    probabilities
        Target law, float, shape (V,), sum 1; with more than 2048 positive atoms, adjacent ones are merged as
        in `ks_p_value`.

    Raises
    ------
    InputError
        If shapes differ, counts are not whole, or the row does not sum to 1.

    Examples
    --------
    >>> ks_statistic([0, 1, 1], [0.5, 0.25, 0.25])
    0.5
    """
    row = as_row(probabilities)
    return _statistic(as_counts(counts, row.shape), row)


def _statistic(tallies: Ints, row: Floats) -> float:
    """Return D_n over the knots; 0 without draws."""
    labels = knot_labels(row)
    observed = np.cumsum(merged(tallies, labels))
    expected = np.cumsum(merged(row, labels))
    if observed[-1] == 0:
        return 0.0
    # Both end in 1: the last difference is rounding.
    return float(np.abs(observed / observed[-1] - expected)[:-1].max(initial=0.0))


def ks_p_value(statistic: float, probabilities: ArrayLike, samples: int) -> float:
    """Return P(D_n >= d) for n draws from a discrete law; ties (within 1e-10) count as reached.

    With up to 3e9 multiplications (about a second: V = 1,000 up to n of two or three millions, V = 10 up to
    3e7) the probability is exact: a relative error near 1e-11, at any depth down to 1e-120. Beyond, it is
    the Gaussian limit with continuity correction, summed over lattice cells of more than one count. Its
    relative error against the exact number, measured at the changeover, where it is largest, over Zipf, flat
    and very skewed laws: 1e-5 for p above .01, 8e-5 for p above 1e-7, 1e-3 for p above 5e-14; deeper, 1 % at
    5e-25 for a law with 97 % on one token, and below 2e-3 at 3e-26 for Zipf and flat laws.
    Where no knot is outside with probability 1e-120 or more, it is the smaller of the
    Dvoretzky-Kiefer-Wolfowitz bound and the union bound over atoms.

    More than 2048 atoms of positive probability are merged, adjacent ones, at fixed quantiles of the law: the
    statistic is then the maximum over at most 2048 knots, and the probability is that of this statistic.

    Parameters
    ----------
    statistic
        d, the observed `ks_statistic`, 0 to 1.
    probabilities
        Target law, float, shape (V,), sum 1, in the order in which the statistic was taken.
    samples
        Number of draws n, 1 to about 1e10.

    Raises
    ------
    InputError
        If d is negative, n is not a whole number >= 1, or the row does not sum to 1.

    References
    ----------
    .. [1] W. J. Conover, "A Kolmogorov goodness-of-fit test for discontinuous distributions", JASA 67 (1972),
       591-596: the problem. `_ks_exact` and `_ks_limit` name the sources of the two ways.

    Examples
    --------
    >>> round(27 * ks_p_value(2 / 3, [1 / 3, 1 / 3, 1 / 3], 3), 12)
    2.0
    """
    d, n = as_at_least("statistic", statistic, 0.0), as_whole("samples", samples, 1)
    return _p_value(d, as_row(probabilities), n)[0]


def _p_value(statistic: float, row: Floats, samples: int) -> tuple[float, str]:
    """Return the p-value and the way it was computed."""
    plan = None
    if statistic > 0:
        plan = plan_passage(merged(row, knot_labels(row)), samples, statistic)
    if plan is None:
        return float(statistic <= 0), "exact"
    if plan.single_exits.max() < _DEEPEST:
        union = float(plan.single_exits.sum())
        return min(union, dkw_bound(statistic, samples)), "bound"
    if plan.work <= _WORK:
        return min(1.0, exact_exit(plan)), "exact"
    # The work of a pass falls with the square of the cell's width.
    return min(1.0, limit_exit(plan, float(np.sqrt(plan.work / _WORK)))), "limit"


def ks(counts: ArrayLike, probabilities: ArrayLike, order: Order = "id") -> GoodnessOfFit:
    """Return the Kolmogorov-Smirnov test of counts against known probabilities.

    Run it twice: in id order it sees a drifting cumulative sum or a wrong block of the vocabulary, in rank
    order (falling probability, ties by id) a wrong temperature, nucleus or tail.

    Parameters
    ----------
    counts
        Tokens seen, whole numbers, shape (V,).
    probabilities
        Target law, float, shape (V,), sum 1.
    order
        "id" or "rank".

    Returns
    -------
    GoodnessOfFit with `method` "exact", "limit" or "bound" (see `ks_p_value`), or "support" with p-value 0
    where a token of probability 0 was seen. `cells` is the number of atoms compared, after merging.

    Raises
    ------
    InputError
        If shapes differ, counts are not whole, the row does not sum to 1, or the order is unknown.

    Examples
    --------
    >>> print(ks([15, 36, 17], [0.25, 0.5, 0.25]))
    kolmogorov-smirnov (id order): statistic 0.0294118, p 0.8886 (3 cells, 68 samples, exact method)
    """
    row = as_row(probabilities)
    tallies = as_counts(counts, row.shape)
    if order not in ("id", "rank"):
        raise UnknownNameError("order", order, ("id", "rank"))
    if order == "rank":
        ranks = np.argsort(-row, kind="stable")
        row, tallies = row[ranks], tallies[ranks]
    statistic, samples = _statistic(tallies, row), int(tallies.sum())
    p_value, method = _judge(tallies, row, statistic)
    atoms = int(np.count_nonzero(merged(row, knot_labels(row))))
    name = f"kolmogorov-smirnov ({order} order)"
    return GoodnessOfFit(name, statistic, p_value, cells=atoms, samples=samples, method=method)


def _judge(tallies: Ints, row: Floats, statistic: float) -> tuple[float, str]:
    """Return p-value and method; a token that cannot occur settles it without a law."""
    if tallies[row == 0].any():
        return 0.0, "support"
    samples = int(tallies.sum())
    return _p_value(statistic, row, samples) if samples else (1.0, "exact")
