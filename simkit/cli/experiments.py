"""simkit run and simkit report: draw the experiments, and write what was found."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from simkit.cli.output import JSON, print_json
from simkit.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simkit.report.experiment import Experiment
    from simkit.sampling.simulate import Progress
    from simkit.sweeps.task import Work

FOLDER = Annotated[Path, typer.Option("--experiments", help="Folder of the experiment files.")]
REPORTS = Annotated[Path, typer.Option("--reports", help="Folder of results and pages.")]


def run(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="EXPERIMENT", help="Which experiments.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Run every experiment but the long ones.")
    ] = False,
    experiments: FOLDER = Path("experiments"),
    reports: REPORTS = Path("reports"),
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Draw experiments and store their results, one row a task.

    A run that was interrupted goes on where it stopped; a finished one is drawn anew. The rows are the same
    on every machine. Experiments that take minutes are run by their names only.
    """
    from simkit.report.experiment import load_experiments
    from simkit.sweeps.run import run_tasks

    if bool(names) == everything:
        raise InputError("name the experiments to run, or say --all")
    chosen = load_experiments(experiments, names or [])
    if everything:
        chosen = _without_long(chosen)
    done = []
    for experiment in chosen:
        path = experiment.results(reports)
        rows = run_tasks(experiment.sweep(), path, _progress(experiment.name))
        done.append({"experiment": experiment.name, "rows": len(rows), "results": str(path)})
    if as_json:
        print_json({"experiments": done})
    else:
        for entry in done:
            print(f"{entry['experiment']}: {entry['rows']} rows in {entry['results']}")


def _without_long(experiments: Sequence[Experiment]) -> list[Experiment]:
    """Return the experiments that are not long, and say on stderr how to run those that are."""
    long = [experiment.name for experiment in experiments if experiment.long]
    if long:
        print(
            f"left out, as they take minutes: {', '.join(long)}; run them with: simkit run {' '.join(long)}",
            file=sys.stderr,
        )
    return [experiment for experiment in experiments if not experiment.long]


class _progress:  # noqa: N801 - reads as the function it is
    """Say on stderr which task of how many is running, and how long the rest may take."""

    def __init__(self, name: str) -> None:
        from simkit.sampling.simulate import progress_line

        self.name, self.line = name, progress_line(name, "tasks")

    def __call__(self, done: int, total: int, task: Work) -> Progress | None:
        self.line(done, total)
        return None


def report(
    experiments: FOLDER = Path("experiments"),
    reports: REPORTS = Path("reports"),
    paper: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write each figure as PDF with its CSV there, instead.")
    ] = None,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Write the report from stored results: HTML pages, a README, and figures.

    Nothing is drawn here; run `simkit run --all` first. The same results give the same bytes.
    """
    from simkit.report import write_paper, write_report
    from simkit.report.experiment import load_experiments

    pages = [experiment.page(reports) for experiment in load_experiments(experiments)]
    if paper is None:
        changed = write_report(pages, reports)
        where = reports / "index.html"
    else:
        changed = write_paper([picture for page in pages for picture in page.pictures], paper)
        where = paper
    if as_json:
        print_json({"written": [str(path) for path in changed], "pages": [page.name for page in pages]})
    else:
        print(f"{len(pages)} pages, {len(changed)} files changed; open {where}")
    sys.stdout.flush()
