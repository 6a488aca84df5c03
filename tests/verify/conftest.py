"""What the tests of verdicts share: a fresh, printed seed, and tallies made up rather than drawn."""

from __future__ import annotations

import secrets
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import ArrayLike

from simkit.laws.pair import Pair
from simkit.sampling.tally import Counts, Run, Tally

MakeTally = Callable[..., Tally]


@pytest.fixture
def seed() -> int:
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    return seed


@pytest.fixture
def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


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
