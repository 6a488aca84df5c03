"""The results store: one line of canonical JSON a row, written whole or not at all."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path

from simkit.errors import StoreError
from simkit.files import atomic_write, store_error
from simkit.sweeps.task import Result

DIGITS = 6
"""Significant digits of stored floats: enough to draw and to read, and the same on every machine."""


PARTIAL = ".partial"
"""What is added to the name of a results file while its sweep is on its way."""


def line(row: Result) -> str:
    """Return a row as one line of JSON: keys sorted, floats with six significant digits.

    Parameters
    ----------
    row : mapping
        Strings, integers, floats, and lists and mappings of them.

    Examples
    --------
    >>> line({"b": 1 / 3, "a": [1, 2.0]})
    '{"a":[1,2.0],"b":0.333333}'
    """
    return json.dumps(_rounded(row), sort_keys=True, separators=(",", ":"))


def _rounded(value: object) -> object:
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {key: _rounded(v) for key, v in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(v) for v in value]
    return value


def write_rows(path: Path, rows: Iterable[Result]) -> None:
    """Write the rows to a file, under a temporary name first.

    Parameters
    ----------
    path : Path
        The file; parents are created.
    rows : iterable of mapping
        The rows, in order.

    Raises
    ------
    StoreError
        When the folder cannot be written, or the disk is full; the old file is then untouched.
    """
    atomic_write(path, "".join(line(row) + "\n" for row in rows))


def read_rows(path: Path) -> list[Result]:
    """Return the rows of a results file.

    Parameters
    ----------
    path : Path
        The file.

    Raises
    ------
    StoreError
        When the file is missing, cannot be read, or a line is cut or is not a row.
    """
    text = _read_text(path)
    if text and not text.endswith("\n"):
        raise StoreError(f"{path} is cut off in line {text.count(chr(10)) + 1}; {_again(path)}")
    return [_row(path, number, content) for number, content in enumerate(text.splitlines(), 1)]


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise StoreError(f"there are no results in {path}; {_again(path)}") from None
    except UnicodeDecodeError:
        raise StoreError(f"{path} is not text; {_again(path)}") from None
    except OSError as error:
        raise store_error("read", path, error) from error


def _row(path: Path, number: int, content: str) -> Result:
    try:
        row = json.loads(content)
    except json.JSONDecodeError as error:
        raise StoreError(f"line {number} of {path} is not JSON ({error.msg}); {_again(path)}") from None
    if not isinstance(row, dict) or "identity" not in row:
        raise StoreError(f"line {number} of {path} is not a result row; {_again(path)}")
    return row


def _again(path: Path) -> str:
    first = "remove it and start over" if path.name.endswith(PARTIAL) else "make it"
    return f"{first} with: simkit run {path.name.split('.')[0]}"


class Journal:
    """The rows of a sweep on its way: appended and flushed as they come, so that a restart goes on.

    Parameters
    ----------
    path : Path
        The file of a finished sweep; the journal lies beside it until then, ending in ``.partial``.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.partial = path.with_name(path.name + PARTIAL)

    def rows(self) -> dict[str, Result]:
        """Return the rows that an interrupted run left, by identity; a last line cut short is dropped."""
        if not self.partial.exists():
            return {}
        lines = _read_text(self.partial).split("\n")[:-1]
        rows = [_row(self.partial, number, content) for number, content in enumerate(lines, 1)]
        return {str(row["identity"]): row for row in rows}

    def begin(self, kept: Sequence[Result]) -> None:
        """Start the journal with the rows that are kept."""
        write_rows(self.partial, kept)

    def append(self, row: Result) -> Result:
        """Add a row, flush it, and return it as it will be read back."""
        text = line(row)
        try:
            with self.partial.open("a", encoding="utf-8") as file:
                file.write(text + "\n")
        except OSError as error:
            raise store_error("write", self.partial, error) from error
        stored: Result = json.loads(text)
        return stored

    def finish(self, rows: Sequence[Result]) -> None:
        """Write the finished file and remove the journal."""
        write_rows(self.path, rows)
        self.partial.unlink(missing_ok=True)
