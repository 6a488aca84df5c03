"""What the tests of the experiments share: each file loaded once, and its committed rows."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from simkit.report.document import Badge
from simkit.report.experiment import Experiment, load_experiment
from simkit.sweeps.store import read_rows

ROOT = Path(__file__).parents[2]
NAMES = sorted(path.stem for path in (ROOT / "experiments").glob("[!_]*.py"))
Row = Mapping[str, Any]


@cache
def experiment(name: str) -> Experiment:
    return load_experiment(ROOT / "experiments" / f"{name}.py")


@cache
def module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"tested_{name}", ROOT / "experiments" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = loaded  # dataclasses look their module up
    spec.loader.exec_module(loaded)
    return loaded


@cache
def rows_of(name: str) -> Sequence[Row]:
    return tuple(read_rows(experiment(name).results(ROOT / "reports")))


def badges(name: str, rows: Sequence[Row]) -> Sequence[Badge]:
    return experiment(name).badges(rows)


def changed(rows: Sequence[Row], where: Row, **fields: object) -> list[Row]:
    """Return the rows with some fields of one of them replaced."""
    assert where in rows
    return [row | fields if row is where else row for row in rows]
