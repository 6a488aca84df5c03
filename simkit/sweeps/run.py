"""run: the tasks of a sweep, one after the other, with resume and progress."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from simkit.errors import InputError
from simkit.sampling.simulate import Progress
from simkit.sweeps.store import Journal
from simkit.sweeps.task import Result, Task, perform


def run_tasks(
    tasks: Sequence[Task],
    path: Path,
    progress: Callable[[int, int, Task], Progress | None] = lambda done, total, task: None,
) -> list[Result]:
    """Return the rows of all tasks, in their order, and store them in a file.

    Rows that an interrupted run left are taken over; a finished file is drawn anew.

    Parameters
    ----------
    tasks : sequence of Task
        What to do; each once.
    path : Path
        The results file.
    progress : callable (done, total, task) -> progress callback or None
        Called before each task.

    Raises
    ------
    InputError
        When two tasks are the same.
    StoreError
        When the file cannot be read or written.
    """
    identities = [task.identity for task in tasks]
    if len(set(identities)) < len(tasks):
        raise InputError("two tasks of the sweep are the same; a row must belong to one task")
    journal = Journal(path)
    known = {key: row for key, row in journal.rows().items() if key in identities}
    journal.begin(list(known.values()))
    for done, task in enumerate(tasks):
        if task.identity not in known:
            known[task.identity] = journal.append(perform(task, progress(done, len(tasks), task)))
    rows = [known[identity] for identity in identities]
    journal.finish(rows)
    return rows
