"""Poisson probabilities with small relative error at any mean."""

from __future__ import annotations

import numpy as np

from simkit.stats._binet import binet
from simkit.stats._input import Floats

_LOG_TWO_PI = float(np.log(2.0 * np.pi))


def log_poisson(counts: Floats, mean: float) -> Floats:
    """Return ln P(Poisson(mean) = count), in Loader's form: no difference of large numbers.

    Parameters
    ----------
    counts
        Whole numbers >= 0, float64, any shape.
    mean
        Mean > 0, in counts.

    References
    ----------
    .. [1] C. Loader, "Fast and accurate computation of binomial probabilities" (2000), eq. (4).
    """
    some = np.maximum(counts, 1.0)
    excess = (some - mean) / mean
    deviance = np.where(
        np.abs(excess) < 0.5,
        mean * ((1.0 + excess) * np.log1p(excess) - excess),
        some * np.log(some / mean) - (some - mean),
    )
    # Gamma(c + 1) = c Gamma(c), hence the Binet term of c and half a logarithm.
    value = -deviance - binet(some) - 0.5 * (np.log(some) + _LOG_TWO_PI)
    return np.where(counts > 0, value, -mean)
