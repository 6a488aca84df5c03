"""An experiment: a Python file with a question, a sweep of tasks, and the page drawn from its rows.

The file's docstring has three parts, each led by its word: ``Question:``, ``Expectation:`` and ``Finding:``.
Its functions are ``tasks()``, the sweep; ``blocks(rows)``, the tables and pictures; ``badges(rows)``, the
verdicts; and ``finding(rows)``, what was found in a sentence, computed from the rows. The docstring states
the same finding for those who read the code, and a test holds the two together.

Two names are read if they are there: ``PLACE``, where in the report the page stands, and ``LONG``, for an
experiment that takes minutes and so is run by its name only.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType
from typing import Any

from simkit.errors import InputError, MissingExtraError, SimkitError, StoreError, UnknownNameError
from simkit.report.document import Badge, Block, Page
from simkit.sweeps.store import read_rows
from simkit.sweeps.task import Result, Work

FUNCTIONS = ("tasks", "blocks", "badges", "finding")
PARTS = ("Question", "Expectation", "Finding")
EXTRA = ("matplotlib", "seaborn", "jinja2")
LAST = 99
VERSIONS = ("numpy", "scipy", "numba", "statsmodels", "matplotlib", "seaborn")


@dataclass(frozen=True)
class Experiment:
    """One experiment file, loaded.

    Parameters
    ----------
    name : str
        The file's name without ending.
    title : str
        The first line of its docstring.
    parts : mapping of str to str
        Question, expectation and finding, as the docstring states them.
    tasks : callable () -> sequence of Work
        The sweep.
    blocks : callable (rows) -> sequence of Block
        The page's tables and pictures.
    badges : callable (rows) -> sequence of Badge
        The page's verdicts.
    finding : callable (rows) -> str
        The finding, from the rows.
    place : int
        Where in the report it stands: the file's ``PLACE``, smallest first; those without come last.
    long : bool
        Whether it is left out when all experiments are run: the file's ``LONG``.
    """

    name: str
    title: str
    parts: Mapping[str, str]
    tasks: Callable[[], Sequence[Work]]
    blocks: Callable[[Sequence[Result]], Sequence[Block]]
    badges: Callable[[Sequence[Result]], Sequence[Badge]]
    finding: Callable[[Sequence[Result]], str]
    place: int = LAST
    long: bool = False

    def results(self, reports: Path) -> Path:
        """Return the file of the experiment's rows under a reports folder."""
        return reports / "results" / f"{self.name}.jsonl"

    def page(self, reports: Path) -> Page:
        """Return the experiment's page, from stored rows only.

        Raises
        ------
        StoreError
            When the rows are missing, cut off, or of another version of the experiment.
        """
        rows = read_rows(self.results(reports))
        self._check(rows, self.results(reports))
        parts = {part: self._call(part, rows) for part in ("finding", "badges", "blocks")}
        try:
            return Page(
                name=self.name,
                title=self.title,
                question=self.parts["Question"],
                expectation=self.parts["Expectation"],
                provenance=_provenance(self.name, rows),
                **parts,
            )
        except (KeyError, TypeError) as error:
            raise _explained(f"the page of experiments/{self.name}.py cannot be made", error) from error

    def sweep(self) -> list[Work]:
        """Return the tasks of the experiment; raise `InputError` where there is none, or no `Work`."""
        tasks = list(self._call("tasks"))
        if not tasks or not all(_is_work(task) for task in tasks):
            raise InputError(
                f"tasks() of experiments/{self.name}.py must return one Task or more, or objects of your own "
                "with `identity` and `perform(progress)`"
            )
        return tasks

    def _call(self, function: str, *arguments: object) -> Any:
        """Return what a function of the file returns; an error in it becomes one that names it."""
        try:
            return getattr(self, function)(*arguments)
        except SimkitError:
            raise
        except Exception as error:
            raise _explained(f"{function}() of experiments/{self.name}.py failed", error) from error

    def _check(self, rows: Sequence[Result], path: Path) -> None:
        if [row["identity"] for row in rows] != [task.identity for task in self.sweep()]:
            raise StoreError(
                f"{path} holds other tasks than experiments/{self.name}.py asks for; "
                f"draw them anew with: simkit run {self.name}"
            )


def _is_work(task: object) -> bool:
    return isinstance(task, Work) and not isinstance(task, type)


def _provenance(name: str, rows: Sequence[Result]) -> dict[str, str | int | float]:
    seeds = sorted({row["seed"] for row in rows})
    return {
        "command": f"simkit run {name} && simkit report",
        "tasks": len(rows),
        "samples": sum(row["tokens"] for row in rows),
        "seeds": ", ".join(map(str, seeds)),
        "results": f"results/{name}.jsonl",
        **{package: _version(package) for package in ("simkit-speculative", *VERSIONS)},
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def load_experiments(folder: Path, names: Sequence[str] = ()) -> list[Experiment]:
    """Return the experiments of a folder, all of them or those named, by place and name.

    Parameters
    ----------
    folder : Path
        Where the files are.
    names : sequence of str
        Which ones; none for all.

    Raises
    ------
    InputError, UnknownNameError
        When there is no such folder or name, or a file is not an experiment.
    """
    files = {path.stem: path for path in sorted(folder.glob("*.py")) if not path.stem.startswith("_")}
    if not files:
        raise InputError(
            f"there are no experiments in {folder}; run this in a clone of the project, or name their folder "
            "with --experiments"
        )
    for name in names:
        if name not in files:
            raise UnknownNameError("experiment", name, files)
    chosen = [load_experiment(files[name]) for name in (dict.fromkeys(names) or files)]
    return sorted(chosen, key=lambda experiment: (experiment.place, experiment.name))


def load_experiment(path: Path) -> Experiment:
    """Return the experiment of a file.

    Parameters
    ----------
    path : Path
        The file.

    Raises
    ------
    InputError
        When the file cannot be imported, lacks a function, or its docstring lacks a part.
    """
    module = _import(path)
    missing = [name for name in FUNCTIONS if not callable(getattr(module, name, None))]
    if missing:
        raise InputError(
            f"{path} has no function {', '.join(missing)}; an experiment has {', '.join(FUNCTIONS)}"
        )
    title, parts = _read_docstring(path, module.__doc__ or "")
    functions = {name: getattr(module, name) for name in FUNCTIONS}
    place, long = getattr(module, "PLACE", LAST), getattr(module, "LONG", False)
    if not isinstance(place, int):
        raise InputError(f"PLACE of {path} is {place!r}; it needs a whole number")
    if not isinstance(long, bool):
        raise InputError(f"LONG of {path} is {long!r}; it needs True or False")
    return Experiment(name=path.stem, title=title, parts=parts, **functions, place=place, long=long)


def _import(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"experiments.{path.stem}", path)
    if spec is None or spec.loader is None:
        raise InputError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise _explained(f"{path} cannot be imported", error) from error
    return module


def _explained(what: str, error: Exception) -> SimkitError:
    """Return an error of the file as one that names it, or the extra whose package it misses."""
    if isinstance(error, ModuleNotFoundError) and error.name in EXTRA:
        return MissingExtraError(error.name, "reports")
    return InputError(f"{what}: {type(error).__name__}: {error}")


def _read_docstring(path: Path, text: str) -> tuple[str, dict[str, str]]:
    title, _, body = text.strip().partition("\n")
    pieces = re.split(rf"^({'|'.join(PARTS)}):", body, flags=re.MULTILINE)[1:]
    parts = {word: " ".join(content.split()) for word, content in zip(pieces[::2], pieces[1::2], strict=True)}
    missing = [part for part in PARTS if not parts.get(part)]
    if missing:
        raise InputError(f"the docstring of {path} has no {' and no '.join(f'{m}: part' for m in missing)}")
    return title.rstrip("."), parts
