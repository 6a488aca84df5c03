"""The bound: an upper confidence limit on the distance of two samplers' next-token laws."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from simkit.stats._input import Floats, Ints, as_rate
from simkit.stats.two_sample.sequences import Level, Sequences, sums_by, walk

# With three tokens on each side, all alike, the bound of a stratum is 1; below four none is compared.
_LEAST_COMPARED = 4


@dataclass(frozen=True)
class VariationBound:
    """Hold an upper confidence bound on the total variation between next-token laws, weighted by visits.

    It bounds sum_s (n_s/n) TV(a_s, b_s) over the prefixes s that the first sampler visited, n_s times each,
    for n tokens. A prefix without four symbols of each sampler is not compared, and counts as total variation
    1; so does all if the first sampler has no token.

    Parameters
    ----------
    total_variation
        The bound, 0 to 1: the sum of the next three, and at most 1.
    seen
        Total variation between the frequencies, where they are compared.
    radius
        What frequencies may differ from their laws.
    not_compared
        Share of the visits that is not compared.
    tokens
        n, tokens of the first sampler at these positions.
    confidence
        Probability that the bound holds, whatever the laws.

    Examples
    --------
    >>> both = Sequences.of([0, 0], [[0], [1]], [50_000, 50_000], [50_000, 50_000])
    >>> print(variation_bound(both, miss=0.001, later=False))
    total variation <= 0.02376 with confidence 0.999 (seen 0, chance 0.02376, not compared 0)
    """

    total_variation: float
    seen: float
    radius: float
    not_compared: float
    tokens: int
    confidence: float

    def __str__(self) -> str:
        """Return one line: bound, confidence, parts."""
        return (
            f"total variation <= {self.total_variation:.4g} with confidence {self.confidence:.10g} "
            f"(seen {self.seen:.4g}, chance {self.radius:.4g}, not compared {self.not_compared:.4g})"
        )


def variation_bound(data: Sequences, miss: float, *, later: bool) -> VariationBound:
    """Return the bound for position 0, or for all later positions together.

    TV(a, b) <= TV(a^, b^) + TV(a^, a) + TV(b^, b) with frequencies a^, b^. Given all tokens before a
    position, those at it are independent and the visits n_s, m_s of the samplers known. Then G, the sum over
    prefixes of n_s times the last two terms, has mean at most that of R = sum_s sum_v E|S(a_sv)| + (n_s/m_s)
    E|S(b_sv)|, with S(c) the sum of c random signs (symmetrisation). One token of the first sampler moves
    G - R by at most 2, one of the second by at most 2 n_s/m_s, so that G - R is sub-Gaussian with variance
    V = sum_s n_s + n_s^2/m_s. At position 0, G - R < sqrt(2 V ln(1/miss)) (McDiarmid). Over later positions
    V is random, and the sum of G - R stays below sqrt((V + rho) ln((V + rho)/(rho miss^2))), with rho half
    the first sampler's sequences (exp(u (G - R) - u^2 V/2), mixed over a half-normal u).

    Parameters
    ----------
    data
        The sequences, those of prompts that only the first sampler was given among them.
    miss
        Probability that the bound does not hold.
    later
        False for position 0, True for positions >= 1. The end of a sequence is a symbol like others, but no
        token of n.

    Raises
    ------
    InputError
        If the rate is not strictly between 0 and 1.

    References
    ----------
    .. [1] D. Cohen, A. Kontorovich, G. Wolfer, "Learning discrete distributions with infinite support"
       (NeurIPS 2020), arXiv:2004.12680: the empirical radius of one law.
    .. [2] S. R. Howard, A. Ramdas, J. McAuliffe, J. Sekhon, "Time-uniform, nonparametric, nonasymptotic
       confidence sequences", Ann. Statist. 49 (2021), arXiv:1810.08240: the normal mixture.

    Examples
    --------
    >>> both = Sequences.of([0, 0], [[0, 1], [0, 2]], [900, 100], [800, 200])
    >>> round(variation_bound(both, 0.01, later=True).seen, 6)
    0.1
    """
    rate = as_rate("miss", miss)
    ends, at_first = np.minimum(data.lengths + 1, data.longest), np.minimum(data.lengths, 1)
    tokens = int((data.first * (data.lengths - at_first if later else at_first)).sum())
    visits = int((data.first * (np.maximum(ends - 1, 0) if later else np.minimum(ends, 1))).sum())
    if tokens == 0:
        return VariationBound(1.0, 0.0, 0.0, 1.0, 0, 1.0 - rate)
    found = np.zeros(4)
    order, levels = walk(data)
    for level in levels[1:] if later else levels[:1]:
        found += _bound_terms(data.first[order], data.second[order], level)
    seen, complexity, variance, compared = found.tolist()
    chance = complexity + _deviation(variance, rate, float(data.first.sum()) / 2.0 if later else 0.0)
    shares = seen / tokens, chance / tokens, (visits - compared) / tokens
    return VariationBound(min(1.0, sum(shares)), *shares, tokens, 1.0 - rate)


def _bound_terms(first: Ints, second: Ints, level: Level) -> Floats:
    """Return one position's n TV(a^, b^), R, V and n, summed over the prefixes compared."""
    running = (np.concatenate([[0], np.cumsum(side)]) for side in (first, second))
    a, b = ((counts[level.last] - counts[level.first]).astype(np.float64) for counts in running)
    n, m = sums_by(level.node, a), sums_by(level.node, b)
    compared = np.minimum(n, m) >= _LEAST_COMPARED
    n, m = np.where(compared, n, 0.0), np.where(compared, m, 1.0)
    kept, weight = compared[level.node], (n / m)[level.node]
    seen = 0.5 * np.abs(a - weight * b)[kept].sum()
    complexity = (_mean_walk(a) + weight * _mean_walk(b))[kept].sum()
    return np.array([seen, complexity, (n + n**2 / m).sum(), n.sum()])


def _mean_walk(steps: Floats) -> Floats:
    """Return E|S| of the sum of this many random signs: 2m C(2m, m)/4^m with m = ceil(steps/2)."""
    from scipy.special import gammaln

    m = np.ceil(steps / 2.0)
    log_share = gammaln(2 * m + 1) - 2 * gammaln(m + 1) - 2 * m * math.log(2.0)
    return np.asarray(2 * m * np.exp(log_share), dtype=np.float64)


def _deviation(variance: float, miss: float, rho: float) -> float:
    """Return what a sub-Gaussian sum exceeds with probability `miss`; rho 0: its variance is known."""
    if variance == 0.0:
        return 0.0
    if rho == 0.0:
        return math.sqrt(2.0 * variance * math.log(1.0 / miss))
    whole = variance + rho
    return math.sqrt(whole * (math.log(whole / rho) - 2.0 * math.log(miss)))
