"""simkit doctor: the environment, for bug reports."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated

import typer

from simkit.cli.output import JSON, print_json, print_pairs

PACKAGES = (
    "simkit-speculative",
    "numpy",
    "scipy",
    "numba",
    "statsmodels",
    "typer",
    "matplotlib",
    "seaborn",
    "jinja2",
)


def doctor(as_json: Annotated[bool, JSON] = False) -> None:
    """Print versions, backends and a self-test, for bug reports.

    The self-test draws a small run with every backend and compares the counts; exit code 1 if they differ.
    """
    from simkit.laws.pair import Pair
    from simkit.sampling.simulate import BACKENDS, choose_backend, default_threads, simulate

    pair = Pair.from_weights([5, 3, 2], [2, 3, 5])
    digests = {name: simulate(pair, trials=100, length=6, backend=name).digest for name in BACKENDS}
    same = len(set(digests.values())) == 1
    facts = {
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "cores": str(os.cpu_count()),
        "threads used": str(default_threads()),
        "backend": " ".join(choose_backend("auto")),
        **{name: _version(name) for name in PACKAGES},
        "self-test": "the backends agree" if same else f"THE BACKENDS DISAGREE: {digests}",
    }
    if as_json:
        print_json(facts)
    else:
        print_pairs(list(facts.items()))
    raise typer.Exit(0 if same else 1)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
