"""What no file of the project may hold, and what every module must have."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BINARY = {".npz", ".pdf", ".png"}

# Written in pieces, so that this file does not hold them.
HOSTS = ("pypi" + ".org", "python" + "hosted.org", "registry." + "npmjs", "deb." + "debian")
# An absolute path into somebody's machine; not a part of a relative path or of an address.
MACHINE_PATH = re.compile(r"(?<![\w.}~/-])/(?:work|root|home|Users|opt)/\w")
# SciPy's continuous Kolmogorov-Smirnov tests are wrong for tokens; simkit.stats has one for discrete laws.
CONTINUOUS_KS = {"ks_" + "1samp", "ks_" + "2samp", "ks" + "test"}


def listed(*patterns: str) -> list[Path]:
    """Files that are committed or would be by `git add`."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", "--", *patterns]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    return [ROOT / name for name in names if name and (ROOT / name).is_file()]


def texts() -> Iterator[tuple[str, str]]:
    """Name and text of every file that is not binary."""
    for path in listed():
        if path.suffix not in BINARY:
            yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")


def parsed(*patterns: str) -> Iterator[tuple[str, ast.Module]]:
    """Name and syntax tree of every module."""
    for path in listed(*patterns):
        yield str(path.relative_to(ROOT)), ast.parse(path.read_text(encoding="utf-8"))


def used_names(tree: ast.AST) -> Iterator[str]:
    """Every identifier, attribute and imported name of a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.ImportFrom):
            yield from (alias.name for alias in node.names)


def test_no_registry_host() -> None:
    found = [(name, host) for name, text in texts() for host in HOSTS if host in text]
    assert not found


def test_no_path_of_one_machine() -> None:
    found = [(name, match[0]) for name, text in texts() for match in MACHINE_PATH.finditer(text)]
    assert not found


@pytest.mark.parametrize(
    ("text", "is_one"), [("in {}x", True), ("({}x)", True), ("a{}x", False), ("../a{}x", False)]
)
def test_path_pattern(text: str, is_one: bool) -> None:
    assert bool(MACHINE_PATH.search(text.format("/root" + "/"))) is is_one


def test_every_module_says_what_it_is_for() -> None:
    modules = dict(parsed("simkit/*.py", "experiments/*.py"))
    assert modules
    assert not [name for name, tree in modules.items() if not ast.get_docstring(tree)]


def test_no_continuous_ks_test() -> None:
    modules = dict(parsed("simkit/*.py", "tests/*.py", "experiments/*.py"))
    assert modules
    assert not [name for name, tree in modules.items() if CONTINUOUS_KS.intersection(used_names(tree))]


def test_continuous_ks_would_be_seen() -> None:
    name = sorted(CONTINUOUS_KS)[0]
    assert name in used_names(ast.parse(f"scipy.stats.{name}(x, y)"))
    assert name in used_names(ast.parse(f"from scipy.stats import {name} as test"))
