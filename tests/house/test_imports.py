"""`import simkit` is quick, pulls in nothing heavy, and offers exactly the public names."""

from __future__ import annotations

import subprocess
import sys

import pytest

import simkit

PUBLIC = [
    "Pair",
    "Plan",
    "Row",
    "Status",
    "Tally",
    "Trace",
    "Verdict",
    "__version__",
    "draw_tokens",
    "judge",
    "make_pair",
    "plot",
    "simulate",
    "trace",
]
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


def test_public_names() -> None:
    assert sorted(simkit.__all__) == PUBLIC


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_there_and_documented(name: str) -> None:
    assert getattr(simkit, name).__doc__


def test_public_names_are_listed_for_completion() -> None:
    assert set(PUBLIC) <= set(dir(simkit))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        getattr(simkit, "no_such_name")  # noqa: B009
