"""What the tests of verdicts share: a fresh, printed seed, and tallies made up rather than drawn."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from numpy.typing import ArrayLike

from simkit.laws.pair import Pair
from simkit.sampling.tally import Counts, Run, Tally

MakeTally = Callable[..., Tally]


@pytest.fixture
def made_up() -> MakeTally:
    """Return a maker of tallies that hold the given counts, whatever sampler might have drawn them."""

    def make(
        pair: Pair,
        counts: ArrayLike,
        joint: ArrayLike | None = None,
        *,
        trials: int,
        length: int = 1,
        m: int = 0,
    ) -> Tally:
        data = Counts.zeros(pair, 1, m)
        data.counts[:] = counts
        if joint is not None:
            data.joint[:] = joint
        return Tally(pair, "token", 1, length, (Run(0, 0, trials),), data, m, "made up")

    return make
