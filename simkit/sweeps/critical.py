"""Kolmogorov-Smirnov decisions for many runs on one law, without a p-value for each."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from simkit.stats import ks_p_value

_WIDTH = 1.002
_LEAST = 1e-12


class CriticalDistance:
    """Decide whether a distance's p-value is at or below a level, as `ks_p_value` does.

    The p-value falls with the distance and costs up to seconds. So the place where it passes the level is
    bracketed once for each size and level, to 0.2 %; only a distance inside gets a p-value of its own.

    Parameters
    ----------
    law : array of float, shape (V,)
        Probabilities, in the order in which the distances are taken.

    Examples
    --------
    >>> critical = CriticalDistance([0.5, 0.3, 0.2])
    >>> [critical.rejects(distance, 1000, 0.01) for distance in (0.03, 0.06)]
    [False, True]
    """

    def __init__(self, law: ArrayLike) -> None:
        self._law = np.asarray(law, dtype=np.float64)
        self._brackets: dict[tuple[int, float], tuple[float, float]] = {}

    def rejects(self, distance: float, samples: int, level: float) -> bool:
        """Return whether P(D_n >= distance) <= level.

        Parameters
        ----------
        distance : float
            Observed `ks_statistic`.
        samples : int
            Number of draws n.
        level : float
            Level of the test.
        """
        if (samples, level) not in self._brackets:
            self._brackets[samples, level] = self._bracket(samples, level)
        low, high = self._brackets[samples, level]
        if low < distance < high:
            return self._passes(distance, samples, level)
        return distance >= high

    def _passes(self, distance: float, samples: int, level: float) -> bool:
        return ks_p_value(distance, self._law, samples) <= level

    def _bracket(self, samples: int, level: float) -> tuple[float, float]:
        """Return two distances, close together, with p-values above the level and at or below it."""
        high = float(np.sqrt(np.log(2.0 / level) / (2.0 * samples)))  # Massart: enough for every law
        low = 0.9 * high
        while self._passes(low, samples, level):
            low, high = 0.8 * low, low
            if low < _LEAST:  # one possible token: any distance at all is rejected
                return 0.0, high
        while high > _WIDTH * low:
            middle = float(np.sqrt(low * high))
            low, high = (low, middle) if self._passes(middle, samples, level) else (middle, high)
        return low, high
