"""The exit probability of the multinomial path, count by count.

Counts of a multinomial are independent Poisson(n p_j) given that they add up to n. The pass carries the law
of the free Poisson path that has stayed in the band, and at each knot adds the mass that leaves it there,
times the chance that the rest adds up to n. Summing what leaves, not subtracting what stays from 1, has
positive terms only: a p-value of 1e-85 is as accurate as one of 0.5.
"""

from __future__ import annotations

import numpy as np

from simkit.stats._convolve import convolve
from simkit.stats._input import Floats
from simkit.stats._ks_plan import Plan, reach
from simkit.stats._poisson import log_poisson


def exact_exit(plan: Plan) -> float:
    """Return P(D_n >= d), to a relative error of about 1e-11.

    Parameters
    ----------
    plan
        Knots, band and reach, in counts.

    References
    ----------
    .. [1] J. Durbin, "Distribution theory for tests based on the sample distribution function" (SIAM, 1973),
    2.2:
       the Poisson form of the crossing probability, there for continuous laws.
    .. [2] D. Dimitrova, V. Kaishev and S. Tan, J. Stat. Software 95 (10) (2020), for discrete laws.
    """
    n = plan.samples
    log_end = float(log_poisson(np.array([float(n)]), float(n))[0])
    mass, start = np.ones(1), 0
    total = 0.0
    for j in range(plan.steps.size):
        mass, start = _step(mass, start, n * plan.steps[j], plan.log_inverse)
        mass, start = _crop(mass, start, n * plan.below[j], plan.path_reach[j], n)
        first = int(np.clip(plan.bottom[j] + 1 - start, 0, mass.size))
        last = int(np.clip(plan.top[j] - start, first, mass.size))
        rest = n * plan.above[j]
        total += _returning(mass[:first], start, n, rest, log_end)
        total += _returning(mass[last:], start + last, n, rest, log_end)
        mass, start = mass[first:last], start + first
        if mass.size == 0:
            break
    return total


def _step(mass: Floats, start: int, mean: float, log_inverse: float) -> tuple[Floats, int]:
    """Return the law after adding a Poisson(mean) count, cut where its tails are exp(-log_inverse)."""
    # The lower tail is the lighter one: cut like the upper, it would carry numbers near the smallest float.
    low = max(0, int(np.floor(mean - np.sqrt(2.0 * log_inverse * mean))))
    high = int(np.ceil(mean + reach(mean, log_inverse)))
    counts = np.arange(low, high + 1, dtype=np.float64)
    return convolve(mass, np.exp(log_poisson(counts, mean))), start + low


def _crop(mass: Floats, start: int, mean: float, span: float, most: int) -> tuple[Floats, int]:
    """Return the part of the law within `span` of the mean, and not above n."""
    first = max(0, int(np.floor(mean - span)) - start)
    last = max(first, min(most, int(np.ceil(mean + span))) - start + 1)
    return mass[first:last], start + first


def _returning(mass: Floats, start: int, n: int, rest: float, log_end: float) -> float:
    """Return the mass that leaves at these counts, weighted by the chance that the rest makes n."""
    if mass.size == 0:
        return 0.0
    missing = n - start - np.arange(mass.size, dtype=np.float64)
    return float(mass @ np.exp(log_poisson(missing, rest) - log_end))
