"""What the tests of the command line share: a call that gives back exit code, stdout and stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from simkit.cli import main
from simkit.cli.experiments import report, run

EXPERIMENT = '''"""Is a die fair?

Question: Do {faces} faces come up
equally often?

Expectation: Yes.

Finding: They do.
"""
from matplotlib.figure import Figure

from simkit.figures.render import pdf, svg
from simkit.report import Badge, Picture, Table
from simkit.sweeps.task import Task


def tasks():
    return [
        Task("uniform", {{"vocabulary": {faces}, "total_variation": distance}}, length=2, trials=200)
        for distance in (0.1, 0.2)
    ]


def blocks(rows):
    figure = Figure()
    figure.subplots().plot([row["acceptance"] for row in rows])
    csv = "acceptance\\n" + "".join(f"{{row['acceptance']}}\\n" for row in rows)
    return [
        Table(["acceptance"], [[row["acceptance"]] for row in rows], "Each distance."),
        Picture("{name}-line", svg(figure), "A line.", "Acceptance.", csv, pdf(figure)),
    ]


def badges(rows):
    return [Badge("pass", "fair")]


def finding(rows):
    return "They do."
'''


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The document on stdout; nothing else may be there."""
        return json.loads(self.out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


Call = Callable[..., Outcome]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    """Return a caller of `simkit ...`, as the installed command runs it but in this process."""

    def invoke(*arguments: object) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["simkit", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as stopped:
            main()
        captured = capsys.readouterr()
        return Outcome(int(stopped.value.code or 0), captured.out, captured.err)

    return invoke


@pytest.fixture
def refused(call: Call) -> Callable[..., str]:
    """Return a caller that expects a refusal: exit code 2 and one line on stderr, which it gives back."""

    def invoke(*arguments: object) -> str:
        result = call(*arguments)
        assert (result.code, result.out) == (2, "")
        assert result.err.startswith("simkit: ")
        assert result.err.endswith("\n")
        assert result.err.count("\n") == 1, result.err
        return result.err

    return invoke


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with two small experiments that were run and reported; tests get a copy."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "experiments").mkdir()
    for name, faces in (("four", 4), ("six", 6)):
        (folder / "experiments" / f"{name}.py").write_text(EXPERIMENT.format(name=name, faces=faces))
    run(everything=True, experiments=folder / "experiments", reports=folder / "reports")
    report(experiments=folder / "experiments", reports=folder / "reports")
    return folder


@pytest.fixture
def place(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with two small experiments, which is also the current one."""
    copytree(finished / "experiments", tmp_path / "experiments")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def drawn(finished: Path, place: Path) -> Path:
    """Return that folder with results and report."""
    copytree(finished / "reports", place / "reports")
    return place
