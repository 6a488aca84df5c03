"""What all tests share: the Hypothesis profile, and a refusal to run a red test twice."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

# No deadline and no complaint about slow data: the first example of a kernel compiles it.
# Not derandomised: a test here must pass with any seed; the printed blob repeats a failure.
settings.register_profile(
    "simkit", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("simkit")

RETRIES = ("rerunfailures", "flaky", "pytest_retry")


def pytest_configure(config: pytest.Config) -> None:
    """Stop if a plugin is there that repeats failed tests: it would turn every error rate into a guess."""
    found = [name for name in RETRIES if config.pluginmanager.hasplugin(name)]
    if found:
        raise pytest.UsageError(f"uninstall {', '.join(found)}: a red statistical test is never run again")


@pytest.fixture
def rng() -> np.random.Generator:
    """Return a generator with a fresh, printed seed: a test must pass with any."""
    entropy = np.random.SeedSequence().entropy
    print(f"seed {entropy}")
    return np.random.default_rng(entropy)


@pytest.fixture
def seed(rng: np.random.Generator) -> int:
    return int(rng.integers(2**63))
