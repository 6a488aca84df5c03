"""`import simkit` is quick and pulls in nothing heavy; tests/test_public.py holds its names."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ["jinja2", "matplotlib", "numba", "pandas", "rich", "scipy", "seaborn", "statsmodels", "typer"]
LIMIT = 0.2
# The limit is for a quiet machine; a shared CI machine with a cold disk gets this much more.
SLACK = 1.5

MEASURE = "import time; start = time.perf_counter(); import simkit; print(time.perf_counter() - start)"
LOADED = "import sys, simkit; print(*sys.modules, sep='\\n')"


def fresh(code: str) -> str:
    """What a new interpreter prints for this code."""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return done.stdout


@pytest.mark.timing
def test_import_is_quick() -> None:
    best = min(float(fresh(MEASURE)) for _ in range(5))
    assert best < LIMIT * SLACK, f"import simkit took {best:.3f} s at best, at most {LIMIT} s is the promise"


def test_import_is_light() -> None:
    loaded = set(fresh(LOADED).split())
    assert not loaded.intersection(HEAVY)
