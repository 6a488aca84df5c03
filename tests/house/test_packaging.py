"""The requirements move nobody's pins, and what says the version says the same version."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
RUNTIME = {"numba", "numpy", "rich", "scipy", "statsmodels", "typer"}


def requirements() -> list[Requirement]:
    """All that the project and its extras ask for, less the extras that name each other."""
    lines = [*PROJECT["dependencies"], *(line for extra in EXTRAS.values() for line in extra)]
    return [one for one in map(Requirement, lines) if one.name != PROJECT["name"]]


def pins() -> list[Requirement]:
    """The lines of constraints.txt."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return [Requirement(line) for line in lines if line and not line.startswith("#")]


def test_distribution_name() -> None:
    # On the package index the bare name belongs to a computer-animation toolkit.
    assert PROJECT["name"] == "simkit-speculative"


def test_runtime_requirements_are_these() -> None:
    assert {Requirement(line).name for line in PROJECT["dependencies"]} == RUNTIME


def test_only_lower_bounds() -> None:
    for requirement in requirements():
        assert [specifier.operator for specifier in requirement.specifier] == [">="], str(requirement)


def test_constraints_are_exact_versions() -> None:
    for pin in pins():
        assert pin.url is None
        assert [specifier.operator for specifier in pin.specifier] == ["=="], str(pin)


def test_every_requirement_is_pinned_within_its_bound() -> None:
    pinned = {canonicalize_name(pin.name): next(iter(pin.specifier)).version for pin in pins()}
    wrong = [str(one) for one in requirements() if pinned[canonicalize_name(one.name)] not in one.specifier]
    assert not wrong


def test_one_version() -> None:
    version = PROJECT["version"]
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\n## [{version}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
