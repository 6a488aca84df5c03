"""Experiment files: the parts of the docstring, the functions, the order, and the page made from rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from simkit.errors import InputError, StoreError, UnknownNameError
from simkit.report.document import Badge, Text
from simkit.report.experiment import load_experiment, load_experiments
from simkit.sweeps.run import run_tasks
from simkit.sweeps.store import read_rows, write_rows

DOCSTRING = """Is a coin fair?

Question: Does it come up heads
half of the time?

Expectation: Yes: see theorem 1.
    Or: its proof.

Finding: It does.
"""
BODY = """
from simkit.report.document import Badge, Text
from simkit.sweeps.task import Task


def tasks():
    return [Task("uniform", {"vocabulary": 2}, length=2, trials=50, seed=seed) for seed in (9, 4)]


def blocks(rows):
    return [Text(f"{len(rows)} rows.")]


def badges(rows):
    return [Badge("pass", "fair")]


def finding(rows):
    return f"It does, {len(rows)} times."
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "experiments"
    folder.mkdir()
    return folder


def write(folder: Path, name: str = "coin", docstring: str = DOCSTRING, body: str = BODY) -> Path:
    path = folder / f"{name}.py"
    path.write_text(f'"""{docstring}"""\n{body}' if docstring else body)
    return path


def test_docstring_is_read_in_parts(folder: Path) -> None:
    experiment = load_experiment(write(folder))
    assert experiment.name == "coin"
    assert experiment.title == "Is a coin fair?"
    assert experiment.parts == {
        "Question": "Does it come up heads half of the time?",
        "Expectation": "Yes: see theorem 1. Or: its proof.",
        "Finding": "It does.",
    }
    assert [task.seed for task in experiment.tasks()] == [9, 4]


def test_a_title_loses_its_full_stop_only(folder: Path) -> None:
    path = write(folder, docstring=DOCSTRING.replace("Is a coin fair?", "A fair coin."))
    assert load_experiment(path).title == "A fair coin"


def test_a_part_begins_a_line(folder: Path) -> None:
    # "Finding:" inside a sentence is a word like any other.
    path = write(folder, docstring=DOCSTRING.replace("heads\nhalf", "heads (Finding: later)\nhalf"))
    assert (
        load_experiment(path).parts["Question"] == "Does it come up heads (Finding: later) half of the time?"
    )


@pytest.mark.parametrize(
    ("docstring", "says"),
    [
        (DOCSTRING.replace("Question:", "Ask:"), "coin.py has no Question: part"),
        (DOCSTRING.replace("Finding: It does.", "Finding:"), "coin.py has no Finding: part"),
        ("Only a title.", "coin.py has no Question: part and no Expectation: part and no Finding: part"),
        ("", "has no Question: part"),
    ],
)
def test_a_missing_part_is_named(folder: Path, docstring: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        load_experiment(write(folder, docstring=docstring))


@pytest.mark.parametrize("name", ["tasks", "blocks", "badges", "finding"])
@pytest.mark.parametrize("instead", ["def other(", "{name} = None\n\n\ndef other("])
def test_a_missing_function_is_named(folder: Path, name: str, instead: str) -> None:
    body = BODY.replace(f"def {name}(", instead.format(name=name))
    with pytest.raises(
        InputError, match=rf"coin.py has no function {name}; an experiment has tasks, blocks, "
    ):
        load_experiment(write(folder, body=body))


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("def tasks(:", "SyntaxError: .*line 1[01]"),
        ("import no_such_package", "ModuleNotFoundError: No module named 'no_such_package'"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
    ],
)
def test_a_file_that_cannot_be_imported_says_why(folder: Path, body: str, says: str) -> None:
    with pytest.raises(InputError, match=rf"coin.py cannot be imported: {says}"):
        load_experiment(write(folder, body=body))


def test_all_come_in_the_order_of_their_names_and_helpers_are_left_out(folder: Path) -> None:
    for name in ("zebra", "ant", "mole"):
        write(folder, name)
    write(folder, "_shared", body="1 / 0")
    (folder / "notes.txt").write_text("no experiment")
    assert [experiment.name for experiment in load_experiments(folder)] == ["ant", "mole", "zebra"]


def test_place_goes_before_the_name(folder: Path) -> None:
    for name, place in (("ant", ""), ("mole", "PLACE = 2\n"), ("zebra", "PLACE = 1\n"), ("bee", "")):
        write(folder, name, body=place + BODY)
    assert [experiment.name for experiment in load_experiments(folder)] == ["zebra", "mole", "ant", "bee"]
    assert [experiment.name for experiment in load_experiments(folder, ["ant", "mole"])] == ["mole", "ant"]


def test_long_is_read_and_the_default_is_not(folder: Path) -> None:
    assert not load_experiment(write(folder)).long
    assert load_experiment(write(folder, "slow", body="LONG = True\n" + BODY)).long


def test_a_long_that_is_no_truth_value_is_refused(folder: Path) -> None:
    with pytest.raises(InputError, match=r"LONG of .*coin.py is 1; it needs True or False"):
        load_experiment(write(folder, body="LONG = 1\n" + BODY))


OWN = BODY.replace(
    """    return [Task("uniform", {"vocabulary": 2}, length=2, trials=50, seed=seed) for seed in (9, 4)]""",
    """    return [Throw(), Task("uniform", {"vocabulary": 2}, length=2, trials=50)]


class Throw:
    identity = "a throw"

    def perform(self, progress):
        return {"identity": self.identity, "seed": 7, "tokens": 5}""",
)


def test_work_of_ones_own_makes_a_page_like_any(folder: Path) -> None:
    experiment = load_experiment(write(folder, body=OWN))
    run_tasks(experiment.sweep(), experiment.results(folder))
    known: Any = dict(experiment.page(folder).provenance)
    assert (known["tasks"], known["samples"], known["seeds"]) == (2, 105, "1, 7")


@pytest.mark.parametrize("instead", ["[]", "['coin']", "[Task]", "[object()]", "[3, Task('uniform')]"])
def test_what_is_no_work_is_refused(folder: Path, instead: str) -> None:
    body = f"{BODY}\n\ndef tasks():\n    return {instead}\n"
    with pytest.raises(InputError, match=r"tasks\(\) of experiments/coin.py must return one Task or more"):
        load_experiment(write(folder, body=body)).sweep()


def test_named_ones_come_once_and_without_the_others(folder: Path) -> None:
    for name in ("ant", "mole"):
        write(folder, name)
    write(folder, "zebra", body="1 / 0")  # not asked for, so not imported
    assert [e.name for e in load_experiments(folder, ["mole", "ant", "mole"])] == ["ant", "mole"]


def test_an_unknown_name_lists_the_known(folder: Path) -> None:
    write(folder, "ant")
    write(folder, "mole")
    with pytest.raises(
        UnknownNameError, match=r"unknown experiment 'mule'; known: ant, mole\. Did you mean 'mole'"
    ):
        load_experiments(folder, ["mule"])


def test_a_folder_without_experiments_says_what_to_do(folder: Path) -> None:
    for place in (folder, folder / "nowhere"):
        with pytest.raises(InputError, match=r"there are no experiments in .*--experiments"):
            load_experiments(place)


def test_page_is_made_from_the_stored_rows(folder: Path) -> None:
    experiment = load_experiment(write(folder))
    reports = folder.parent / "reports"
    assert experiment.results(reports) == reports / "results" / "coin.jsonl"
    run_tasks(experiment.tasks(), experiment.results(reports))
    page = experiment.page(reports)
    assert (page.name, page.title, page.question) == ("coin", "Is a coin fair?", experiment.parts["Question"])
    assert page.finding == "It does, 2 times."  # computed from the rows, not the docstring's
    assert tuple(page.badges) == (Badge("pass", "fair"),)
    assert tuple(page.blocks) == (Text("2 rows."),)
    known: Any = dict(page.provenance)
    assert known["command"] == "simkit run coin && simkit report"
    assert (known["tasks"], known["samples"], known["seeds"]) == (2, 200, "4, 9")
    assert {"simkit-speculative", "numpy", "scipy", "numba"} < set(known)
    # What differs between machines must not be on a committed page.
    assert not {"python", "platform", "date", "cores"} & set(known)


@pytest.mark.parametrize(
    "change", [lambda rows: rows[:1], lambda rows: rows[::-1], lambda rows: [*rows, rows[0]]]
)
def test_rows_of_other_tasks_are_refused(folder: Path, change: Any) -> None:
    experiment = load_experiment(write(folder))
    path = experiment.results(folder)
    run_tasks(experiment.tasks(), path)
    write_rows(path, change(read_rows(path)))
    with pytest.raises(
        StoreError, match=r"coin.jsonl holds other tasks .*; draw them anew with: simkit run coin$"
    ):
        experiment.page(folder)
