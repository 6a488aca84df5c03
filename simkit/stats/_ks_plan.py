"""What an exit-probability pass needs to know: the knots, the band, and how far a path matters."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from simkit.stats._input import Floats, Ints

MAX_ATOMS = 2048
# Share of the p-value that may be cut off with the far tails of the kernels: far below every stated accuracy.
_CUT = 1e-13
_TIE = 1e-10
_TIE_IN_COUNTS = 0.01


def knot_labels(probabilities: Floats) -> Ints:
    """Return the cell of each atom: its own number, or beyond 2048 atoms, that of a fixed quantile."""
    if np.count_nonzero(probabilities) <= MAX_ATOMS:
        return np.arange(probabilities.size)
    middle = np.cumsum(probabilities) - probabilities / 2.0
    return np.minimum((middle * MAX_ATOMS).astype(np.int64), MAX_ATOMS - 1)


def reach(variance: Floats | float, log_inverse: float) -> Floats:
    """Return r with P(|X - EX| >= r) <= 2 exp(-log_inverse) for a binomial or Poisson X (Bernstein)."""
    linear = log_inverse / 3.0
    return np.asarray(linear + np.sqrt(linear**2 + 2.0 * log_inverse * variance))


@dataclass(frozen=True)
class Plan:
    """The path C_1, C_2, ... of cumulative counts at the knots, and the band it must leave for D >= d.

    Parameters
    ----------
    steps, below, above
        Probability of each atom, of all atoms up to it, and of all atoms after it; float64 (J,). The last
        atom is left out: there the deviation is 0.
    samples
        Number of draws n.
    bottom, top
        Largest count that is out of the band below, smallest that is out above; float64 (J,), whole numbers.
    """

    steps: Floats
    below: Floats
    above: Floats
    samples: int
    bottom: Floats
    top: Floats

    @cached_property
    def single_exits(self) -> Floats:
        """Return P(path is out of the band at knot j) for each knot: binomial tails."""
        from scipy.special import betainc

        n, low, high = self.samples, self.bottom, self.top
        inside_low, inside_high = np.maximum(low, 0.0), np.minimum(high, n)
        under = np.where(
            low >= 0, betainc(np.maximum(n - inside_low, 0.5), inside_low + 1.0, self.above), 0.0
        )
        over = np.where(
            high <= n, betainc(np.maximum(inside_high, 0.5), n - inside_high + 1.0, self.below), 0.0
        )
        return np.asarray(under + over)

    @cached_property
    def log_inverse(self) -> float:
        """Return L such that what has probability exp(-L) at each knot is nothing beside the p-value."""
        floor = float(self.single_exits.max()) * _CUT / (4.0 * self.steps.size)
        return float(-np.log(floor))

    @cached_property
    def kernel_reach(self) -> Floats:
        """Return how far one step's count can be from its mean, in counts, and matter."""
        return reach(self.samples * self.steps, self.log_inverse)

    @cached_property
    def path_reach(self) -> Floats:
        """Return how far the path can be from its mean at each knot, in counts, and matter."""
        return reach(self.samples * self.below * self.above, self.log_inverse)

    @cached_property
    def work(self) -> float:
        """Return the multiplications of a pass over every count."""
        support = np.minimum(self.top - self.bottom, 2.0 * self.path_reach)
        before = np.concatenate([[1.0], support[:-1]])
        return float((before * (2.0 * self.kernel_reach + 1.0)).sum())


def merged(values: Floats | Ints, labels: Ints) -> Floats:
    """Return the sum of the values in each cell."""
    return np.bincount(labels, weights=values).astype(np.float64)


def plan_passage(probabilities: Floats, samples: int, statistic: float) -> Plan | None:
    """Return the plan for positive atoms, or None where one atom leaves nothing to cross."""
    atoms = probabilities[probabilities > 0]
    if atoms.size < 2:
        return None
    below = np.cumsum(atoms)[:-1]
    above = np.cumsum(atoms[::-1])[::-1][1:]
    slack = min(_TIE * samples, _TIE_IN_COUNTS)
    return Plan(
        steps=atoms[:-1],
        below=below,
        above=above,
        samples=samples,
        bottom=np.floor(samples * (below - statistic) + slack),
        top=np.ceil(samples * (below + statistic) - slack),
    )
