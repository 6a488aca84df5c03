"""run: the work of a sweep, one piece after the other, with resume and progress."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from simkit.errors import InputError
from simkit.sampling.simulate import Progress
from simkit.sweeps.store import Journal
from simkit.sweeps.task import Result, Work

FIELDS = ("identity", "seed", "tokens")
"""What every row must have."""


def run_tasks(
    tasks: Sequence[Work],
    path: Path,
    progress: Callable[[int, int, Work], Progress | None] = lambda done, total, task: None,
) -> list[Result]:
    """Return the rows of all tasks, in their order, and store them in a file.

    Rows that an interrupted run left are taken over; a finished file is drawn anew.

    Parameters
    ----------
    tasks : sequence of Work
        What to do; each once.
    path : Path
        The results file.
    progress : callable (done, total, task) -> progress callback or None
        Called before each task.

    Raises
    ------
    InputError
        When two tasks are the same, or a row lacks a field that every row has or is of another task.
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
            row = _checked(task.perform(progress(done, len(tasks), task)), task.identity)
            known[task.identity] = journal.append(row)
    rows = [known[identity] for identity in identities]
    journal.finish(rows)
    return rows


def _checked(row: Result, identity: str) -> Result:
    """Return the row; raise where a report could not be made of it, or a restart would draw it again."""
    missing = [name for name in FIELDS if name not in row]
    if missing:
        raise InputError(f"a result row has no {', '.join(missing)}; it needs {', '.join(FIELDS)}")
    if row["identity"] != identity:
        raise InputError(
            f"a result row has identity {row['identity']!r} and its task {identity!r}; they must be the same"
        )
    return row
