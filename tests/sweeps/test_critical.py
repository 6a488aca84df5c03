"""CriticalDistance decides as the p-value does, on lattices too, and computes few of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simkit.stats import ks_p_value
from simkit.sweeps import critical
from simkit.sweeps.critical import CriticalDistance

LEVELS = (0.1, 0.01, 1e-6)
LAWS = {
    "two tokens": (np.array([0.3, 0.7]), 100),
    "ten tokens": (np.arange(1.0, 11.0) / 55.0, 200),
    "one token": (np.array([1.0]), 50),
}


def distances(law: np.ndarray, samples: int) -> list[float]:
    """Return distances around every place where a decision can change, ties with the lattice among them."""
    lattice = np.abs(np.arange(0, samples + 1, 2) / samples - law[0])
    rough = np.sqrt(np.log(2.0 / np.array(LEVELS)) / (2.0 * samples))
    return [0.0, *np.unique(lattice), *(rough[:, None] * np.linspace(0.6, 1.05, 15)).ravel()]


@pytest.mark.parametrize("name", LAWS)
def test_decisions_are_those_of_the_p_value(name: str) -> None:
    law, samples = LAWS[name]
    decide = CriticalDistance(law)
    for level in LEVELS:
        for distance in distances(law, samples):
            expected = ks_p_value(distance, law, samples) <= level
            assert decide.rejects(distance, samples, level) == expected, (level, distance)


def test_many_runs_cost_few_p_values(monkeypatch: pytest.MonkeyPatch) -> None:
    law, calls = LAWS["ten tokens"][0], []

    def counted(*arguments: Any) -> float:
        calls.append(arguments)
        return ks_p_value(*arguments)

    monkeypatch.setattr(critical, "ks_p_value", counted)
    decide = CriticalDistance(law)
    answers = [decide.rejects(distance, 500, 0.01) for distance in np.linspace(0.0, 0.2, 2001)]
    assert answers == sorted(answers)  # rejected from one distance on
    assert len(calls) <= 20


def test_sizes_and_levels_are_kept_apart() -> None:
    decide = CriticalDistance([0.5, 0.5])
    assert [decide.rejects(0.06, n, 0.01) for n in (100, 1000, 100)] == [False, True, False]
    assert [decide.rejects(0.06, 500, level) for level in (0.1, 1e-6)] == [True, False]
