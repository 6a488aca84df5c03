"""What the statistical tests share: a fresh, printed seed and the bounds that any seed must respect."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from scipy.stats import binom

# False-alarm rate of one assertion about simulated runs.
SLIP = 1e-9


@pytest.fixture
def most() -> Callable[[int, float], int]:
    """Return the number of hits that a rate of at most `rate` passes with probability at most 1e-9."""
    return lambda runs, rate: int(binom.isf(SLIP, runs, rate))


@pytest.fixture
def fewest() -> Callable[[int, float], int]:
    """Return the number of hits that a rate of at least `rate` stays under with probability at most 1e-9."""
    return lambda runs, rate: int(binom.ppf(SLIP, runs, rate))
