"""A fresh, printed seed: a test must pass with any."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture
def rng() -> np.random.Generator:
    entropy = np.random.SeedSequence().entropy
    print(f"seed {entropy}")
    return np.random.default_rng(entropy)


@pytest.fixture
def seed(rng: np.random.Generator) -> int:
    return int(rng.integers(2**63))
