"""run_tasks: each task once, in order, the same bytes whether or not the run was interrupted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from simkit.errors import InputError, StoreError
from simkit.sweeps import task as work
from simkit.sweeps.run import run_tasks
from simkit.sweeps.store import Journal, read_rows
from simkit.sweeps.task import Result, Task, Work, identify, perform

TASKS = [Task("uniform", {"vocabulary": 4}, length=4, trials=200, seed=seed) for seed in (5, 3, 4, 1)]


class Drawing:
    """Perform tasks and remember which; raise at the one with a given number."""

    def __init__(self, stop: int | None = None, error: type[BaseException] = KeyboardInterrupt) -> None:
        self.stop, self.error = stop, error
        self.seeds: list[int] = []

    def __call__(self, task: Task, progress: Any = None) -> Result:
        if len(self.seeds) == self.stop:
            raise self.error
        self.seeds.append(task.seed)
        return perform(task, progress)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "results" / "coins.jsonl"


@pytest.fixture
def expected(tmp_path: Path) -> bytes:
    other = tmp_path / "uninterrupted.jsonl"
    run_tasks(TASKS, other)
    return other.read_bytes()


def interrupt(tasks: Sequence[Task], path: Path, after: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "perform", Drawing(stop=after))
    with pytest.raises(KeyboardInterrupt):
        run_tasks(tasks, path)


def go_on(tasks: Sequence[Task], path: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Run again and return the seeds of the tasks that were drawn."""
    drawing = Drawing()
    monkeypatch.setattr(work, "perform", drawing)
    run_tasks(tasks, path)
    return drawing.seeds


def test_rows_come_in_the_order_of_the_tasks(path: Path) -> None:
    rows = run_tasks(TASKS, path)
    assert [row["seed"] for row in rows] == [5, 3, 4, 1]
    assert rows == read_rows(path)
    assert list(path.parent.iterdir()) == [path]


def test_second_run_draws_anew_and_changes_no_byte(
    path: Path, expected: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(2):
        assert go_on(TASKS, path, monkeypatch) == [5, 3, 4, 1]
        assert path.read_bytes() == expected


def test_interrupted_run_goes_on_where_it_stopped(
    path: Path, expected: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt(TASKS, path, 2, monkeypatch)
    assert not path.exists()
    assert go_on(TASKS, path, monkeypatch) == [4, 1]
    assert path.read_bytes() == expected
    assert list(path.parent.iterdir()) == [path]


def test_half_written_row_is_drawn_again(
    path: Path, expected: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt(TASKS, path, 2, monkeypatch)
    partial = Journal(path).partial
    partial.write_bytes(partial.read_bytes()[:-40])
    assert go_on(TASKS, path, monkeypatch) == [3, 4, 1]
    assert path.read_bytes() == expected


def test_interrupt_leaves_the_finished_file_as_it_was(
    path: Path, expected: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_tasks(TASKS, path)
    interrupt(TASKS, path, 1, monkeypatch)
    assert path.read_bytes() == expected


def test_interrupted_twice(path: Path, expected: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupt(TASKS, path, 1, monkeypatch)
    interrupt(TASKS, path, 2, monkeypatch)
    assert go_on(TASKS, path, monkeypatch) == [1]
    assert path.read_bytes() == expected


def test_rows_of_tasks_that_are_no_longer_asked_for_are_left_out(
    path: Path, expected: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = [replace(TASKS[0], trials=100), *TASKS[1:]]
    interrupt(changed, path, 2, monkeypatch)
    interrupt(TASKS, path, 0, monkeypatch)
    assert list(Journal(path).rows()) == [TASKS[1].identity]
    assert go_on(TASKS, path, monkeypatch) == [5, 4, 1]
    assert path.read_bytes() == expected


def test_order_of_the_tasks_decides_even_after_an_interrupt(
    path: Path, expected: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt(TASKS[::-1], path, 2, monkeypatch)
    assert go_on(TASKS, path, monkeypatch) == [5, 3]
    assert path.read_bytes() == expected


def test_two_equal_tasks_are_refused_before_anything_is_drawn(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "perform", Drawing(stop=0, error=AssertionError))
    with pytest.raises(InputError, match="two tasks of the sweep are the same"):
        run_tasks([TASKS[0], TASKS[1], replace(TASKS[0])], path)
    assert not path.parent.exists()


def test_unwritable_folder_is_met_before_anything_is_drawn(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.parent.write_text("a file where the folder should be")
    monkeypatch.setattr(work, "perform", Drawing(stop=0, error=AssertionError))
    with pytest.raises(StoreError, match="choose another folder"):
        run_tasks(TASKS, path)


def test_progress_is_told_before_each_task(path: Path) -> None:
    seen: list[tuple[int, int, int]] = []
    run_tasks(TASKS, path, lambda done, total, task: seen.append((done, total, task.seed)))
    assert seen == [(0, 4, 5), (1, 4, 3), (2, 4, 4), (3, 4, 1)]


@dataclass(frozen=True)
class Throws:
    """Work that is no run of the simulator, with a row that may be made wrong."""

    seed: int
    wrong: dict[str, Any] = field(default_factory=dict)
    missing: tuple[str, ...] = ()

    @property
    def identity(self) -> str:
        return identify(asdict(self))

    def perform(self, progress: Any = None) -> Result:
        row = {"identity": self.identity, "seed": self.seed, "tokens": 10, "heads": 4, **self.wrong}
        return {name: value for name, value in row.items() if name not in self.missing}


def test_work_of_ones_own_is_stored_beside_tasks(path: Path) -> None:
    own = Throws(8)
    assert isinstance(own, Work)
    rows = run_tasks([TASKS[0], own], path)
    assert [row["seed"] for row in rows] == [5, 8]
    assert rows[1] == {"identity": own.identity, "seed": 8, "tokens": 10, "heads": 4}
    assert rows == read_rows(path)


@pytest.mark.parametrize(
    ("work_of_ones_own", "says"),
    [
        (Throws(1, missing=("tokens",)), "a result row has no tokens; it needs identity, seed, tokens"),
        (Throws(1, missing=("identity", "seed")), "a result row has no identity, seed; it needs"),
        (Throws(1, wrong={"identity": "another"}), "has identity 'another' and its task '[0-9a-f]{64}'"),
    ],
)
def test_a_row_that_a_report_cannot_use_is_refused(path: Path, work_of_ones_own: Work, says: str) -> None:
    with pytest.raises(InputError, match=says):
        run_tasks([TASKS[0], work_of_ones_own], path)
    assert not path.exists()
    assert list(Journal(path).rows()) == [TASKS[0].identity]  # what was done before is kept
