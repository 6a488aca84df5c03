"""Read what somebody has already drawn: counts or raw tokens, and the target they are held against."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from simkit.errors import InputError, UnknownNameError
from simkit.files import store_error

FilePath: TypeAlias = str | os.PathLike[str]
Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]

KINDS = ("counts", "tokens")
"""The two readings of a file of draws."""

_NAMES: Mapping[str, str] = {
    "token": "tokens",
    "tokens": "tokens",
    "token_id": "tokens",
    "count": "counts",
    "counts": "counts",
    "probability": "probabilities",
    "probabilities": "probabilities",
    "weight": "weights",
    "weights": "weights",
    "visits": "visits",
}
# Floats are exact up to here, and so is every statistic that turns a count into one.
_LARGEST = 2**53


class Observed(NamedTuple):
    """Draws read from a file.

    Parameters
    ----------
    counts : int64 array, shape (V,) or (S, V)
        How often each token was drawn.
    kind : str
        What the file was read as: "counts" or "tokens".
    decodes : int64 array, shape (B, L), or None
        Tokens in rows of one length, each a decode, for `judge_tokens`; None where the file holds none.

    Examples
    --------
    >>> Observed(np.array([2, 1]), "tokens").decodes is None
    True
    """

    counts: Ints
    kind: str
    decodes: Ints | None = None

    @property
    def described(self) -> str:
        """What the file was read as, in words."""
        if self.decodes is not None:
            return f"{len(self.decodes):,} decodes"
        return "tokens in no order (randomness used twice goes unseen)" if self.kind == "tokens" else "counts"


@dataclass(frozen=True)
class _Content:
    """What a file holds: numbers, what it calls them, and the token of each if there is a column of ids.

    Ragged lists are held flat, with the length of each part.
    """

    path: str
    values: NDArray[Any]
    name: str | None = None
    ids: NDArray[Any] | None = None
    parts: tuple[int, ...] = ()

    def place(self, bad: NDArray[np.bool_]) -> str:
        """Return where the first bad value stands, as an index from 0."""
        flat = int(np.argmax(bad))
        if not self.parts:
            return str([int(i) for i in np.unravel_index(flat, bad.shape)])
        ends = np.cumsum(self.parts)
        part = int(np.searchsorted(ends, flat, side="right"))
        return str([part, flat - int(ends[part]) + self.parts[part]])

    def refuse(self, bad: NDArray[np.bool_], why: str) -> None:
        """Raise where anything is bad, naming the first and saying how many there are."""
        if bad.any():
            first = self.values.ravel()[int(np.argmax(bad))].item()
            raise InputError(
                f"{self.path} holds {first!r} at {self.place(bad)} ({int(bad.sum())} such); {why}"
            )


def read_counts(path: FilePath, shape: int | tuple[int, ...], kind: str | None = None) -> Observed:
    r"""Return the counts in a file of counts or of raw tokens.

    A file that names its numbers (`{"counts": ...}`, a column `token`) is read as it says, and a list of
    lists of different lengths as tokens. Else an array with the target's shape is counts, and whole numbers
    below V are token ids; an array that could be both is refused until `kind` says which.

    Parameters
    ----------
    path : path
        `.npy` (no pickle), `.csv` (a column, a row or rows of numbers, or a header with `token`, `count` or
        both) or `.json` (a list, `{"counts": [...]}` or `{"tokens": [...]}`).
    shape : int or tuple
        The target's vocabulary V, or its shape (V,) or (S, V). Tokens need (V,), since they do not say in
        which state they were drawn.
    kind : str or None
        "counts", "tokens", or None for the rule above.

    Raises
    ------
    StoreError
        When the file cannot be read.
    InputError
        When it is damaged, empty or ambiguous, or holds anything but whole numbers >= 0 that fit the target.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "drawn.csv").write_text("0\n2\n2\n0\n")
    ...     read_counts(Path(folder, "drawn.csv"), 3)
    Observed(counts=array([2, 0, 2]), kind='tokens', decodes=None)
    """
    if kind not in (None, *KINDS):
        raise UnknownNameError("kind of draws", kind, KINDS)
    wanted = (shape,) if isinstance(shape, int) else tuple(shape)
    content = _load(path, KINDS)
    numbers = _whole(content)
    kind = _kind(content, numbers, wanted, kind)
    counts = _as_counts(content, numbers, wanted) if kind == "counts" else _tally(content, numbers, wanted)
    if not counts.any():
        raise InputError(f"{content.path}: all counts are zero, so nothing was drawn; draw first")
    in_rows = kind == "tokens" and numbers.ndim == 2 and min(numbers.shape) > 1
    return Observed(counts, kind, numbers if in_rows else None)


def read_target(path: FilePath) -> Floats:
    """Return the target's probabilities, float64, shape (V,) or (S, V), each row with sum 1.

    Whole numbers with a sum above 1 are weights and are divided by their sum. Probabilities may be off by
    1e-6 (float32 and below: 1e-4), as rounded numbers are, and are divided by their sum too.

    Parameters
    ----------
    path : path
        `.npy`, `.csv` (a column, a row or rows of numbers, or a header with `probability` or `weight`, and
        `token` beside it if the rows are in another order than 0 to V - 1) or `.json` (a list,
        `{"probabilities": [...]}` or `{"weights": [...]}`).

    Raises
    ------
    StoreError
        When the file cannot be read.
    InputError
        When it is damaged or empty, holds a negative number, a NaN or a row of zeros, or when the
        probabilities do not sum to 1.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "target.json").write_text('{"weights": [1, 3]}')
    ...     read_target(Path(folder, "target.json"))
    array([0.25, 0.75])
    """
    content = _load(path, ("probabilities", "weights"))
    if content.parts:
        raise InputError(
            f"{content.path} holds rows of {sorted(set(content.parts))} numbers; needed: one length"
        )
    rows = _at_least_zero(content, "is it a file of logits or log-probabilities? Softmax or exp them first")
    if content.ids is not None:
        rows = _spread(content, rows, len(rows), complete=True)
    sums = rows.sum(axis=-1, keepdims=True)
    if (sums == 0).any():
        raise InputError(
            f"{content.path}: row {int(np.argmin(sums))} is all zero; a target needs some weight"
        )
    _check_law(content, rows, sums)
    return np.asarray(rows / sums, dtype=np.float64)


def read_visits(path: FilePath, states: int) -> Floats:
    """Return the planned draws of each state, float64, shape (S,).

    Parameters
    ----------
    path : path
        `.npy`, `.csv` or `.json` with S numbers >= 0; fractions are fine, since plans are expectations.
    states : int
        Rows S of the target.

    Raises
    ------
    StoreError
        When the file cannot be read.
    InputError
        When it is damaged, holds another number of numbers, or a negative one.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "visits.csv").write_text("100,50.5")
    ...     read_visits(Path(folder, "visits.csv"), 2)
    array([100. ,  50.5])
    """
    content = _load(path, ("visits",))
    visits = _at_least_zero(content, "give the planned draws of each state")
    if content.parts or content.ids is not None or visits.shape != (states,):
        raise InputError(
            f"{content.path} holds {visits.size} numbers of shape {visits.shape} and the target has {states} "
            "states; give one planned number of draws for each state"
        )
    return visits


def file_key(path: FilePath) -> str:
    """Return a name for the draws in a file, from its bytes: the same file is never counted twice.

    Parameters
    ----------
    path : path
        Any file.

    Raises
    ------
    StoreError
        When the file cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.csv").write_bytes(b"")
    ...     file_key(Path(folder, "a.csv"))
    'sha256:e3b0c44298fc1c14'
    """
    return f"sha256:{hashlib.sha256(_bytes(Path(path))).hexdigest()[:16]}"


# What the numbers mean.


def _at_least_zero(content: _Content, hint: str) -> Floats:
    """Return the numbers as float64; raise for NaN, infinities and negative ones."""
    values = np.asarray(content.values, dtype=np.float64)
    content.refuse(~np.isfinite(values), "needed: finite numbers")
    content.refuse(values < 0, f"needed: numbers >= 0; {hint}")
    return values


def _whole(content: _Content) -> Ints:
    """Return counts or token ids as int64; raise for anything but whole numbers >= 0."""
    values = _at_least_zero(content, "drop padding and missing tokens before you count")
    broken = values != np.floor(values)
    if broken.any() and np.allclose(values.sum(axis=-1), 1.0, rtol=0.0, atol=1e-4):
        raise InputError(
            f"{content.path} holds frequencies: fractions that sum to 1; give the counts themselves, since "
            "how much they prove depends on how many were drawn"
        )
    content.refuse(broken, "needed: whole numbers, either counts or token ids")
    content.refuse(values > _LARGEST, "needed: counts up to 2**53")
    return content.values.astype(np.int64)


def _kind(content: _Content, numbers: Ints, wanted: tuple[int, ...], kind: str | None) -> str:
    """Return whether the numbers are counts or tokens; raise when both readings or none are possible."""
    if kind is not None and content.name not in (None, kind):
        raise InputError(
            f"{content.path} calls its numbers {content.name} and you say {kind}; leave one of the two out"
        )
    said = kind or content.name or ("tokens" if content.parts else None)
    if said is not None:
        return said
    if len(wanted) == 2:
        return "counts"
    return _guess(content, numbers, wanted[0])


def _guess(content: _Content, numbers: Ints, vocabulary: int) -> str:
    """Return the only possible reading of an unnamed array against a target of one row."""
    as_counts, as_tokens = numbers.shape[-1] == vocabulary, bool(numbers.max() < vocabulary)
    what = f"{content.path} holds an array of shape {numbers.shape} and the target has {vocabulary} tokens"
    if as_counts and as_tokens:
        raise InputError(
            f"{what}: this could be counts, and as all numbers are below {vocabulary} also token ids; "
            "say --counts or --tokens"
        )
    if not as_counts and not as_tokens:
        beyond = numbers >= vocabulary
        raise InputError(
            f"{what}: as counts it needs {vocabulary} numbers, and as token ids "
            f"{int(numbers[beyond][0])} at {content.place(beyond)} is too large; is it the same vocabulary?"
        )
    return "counts" if as_counts else "tokens"


def _as_counts(content: _Content, numbers: Ints, wanted: tuple[int, ...]) -> Ints:
    """Return counts in the target's shape."""
    if content.ids is not None and len(wanted) == 1:
        return _spread(content, numbers, wanted[0])
    if content.parts:
        raise InputError(
            f"{content.path} holds rows of different lengths; counts need {wanted[-1]} in each row"
        )
    if numbers.shape != wanted:
        raise InputError(
            f"{content.path} holds counts of shape {numbers.shape} and the target has shape {wanted}; "
            "give one count for each token of the vocabulary, 0 for those never drawn"
        )
    return numbers


def _tally(content: _Content, numbers: Ints, wanted: tuple[int, ...]) -> Ints:
    """Return how often each token id occurs."""
    if len(wanted) == 2:
        raise InputError(
            f"{content.path} holds tokens, which do not say in which of {wanted[0]} states they were drawn; "
            f"give counts of shape {wanted}, a row for each state"
        )
    vocabulary = wanted[0]
    content.refuse(numbers >= vocabulary, f"token ids of this target are 0 to {vocabulary - 1}")
    return np.bincount(numbers.ravel(), minlength=vocabulary).astype(np.int64)


def _spread(
    content: _Content, values: NDArray[Any], vocabulary: int, *, complete: bool = False
) -> NDArray[Any]:
    """Return values in the order of their ids; tokens without a line get 0, or are refused."""
    column = _Content(content.path, np.asarray(content.ids))
    ids = _whole(column)
    needed = (
        f"a target needs one line for each token from 0 to {vocabulary - 1}, as it has {vocabulary} lines"
    )
    allowed = f"token ids of this target are 0 to {vocabulary - 1}"
    column.refuse(ids >= vocabulary, needed if complete else allowed)
    lines = np.bincount(ids, minlength=vocabulary)
    if (lines > 1).any():
        raise InputError(
            f"{content.path} has {int(lines.max())} lines for token {int(lines.argmax())}; needed: one"
        )
    spread: NDArray[Any] = np.zeros(vocabulary, dtype=values.dtype)
    spread[ids] = values
    return spread


def _check_law(content: _Content, rows: Floats, sums: Floats) -> None:
    """Raise unless the rows are weights or sum to 1."""
    whole = bool((rows == np.floor(rows)).all())
    if content.name == "weights" and not whole:
        content.refuse(rows != np.floor(rows), "weights are whole numbers; call the column probability")
    if whole and (sums > 1).any() and content.name != "probabilities":
        return
    short = content.values.dtype.kind == "f" and content.values.dtype.itemsize < 8
    tolerance = 1e-4 if short else 1e-6
    off = np.abs(sums - 1.0)
    if (off > tolerance).any():
        row = int(off.argmax())
        raise InputError(
            f"{content.path}: the probabilities of row {row} sum to {float(sums.ravel()[row]):.9g}, more "
            f"than {tolerance:g} from 1; normalise them in float64, or give weights, which are whole numbers"
        )


# From bytes to numbers.


def _load(path: FilePath, names: Sequence[str]) -> _Content:
    """Return the numbers of a file, one row or one column as a flat array."""
    path = Path(path)
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise InputError(
            f"{path} ends in {path.suffix!r}; known are {', '.join(_READERS)}: save it as one of these"
        )
    data = _bytes(path)
    if not data.strip():
        raise InputError(f"{path} is empty; was the run that wrote it finished?")
    content = reader(data, str(path), names)
    if content.name is not None and content.name not in names:
        raise InputError(f"{path} holds {content.name}; needed here: {' or '.join(names)}")
    return content


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise store_error("read", path, error) from error


def _text(data: bytes, path: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text ({error.reason} at byte {error.start})") from None


def _from_npy(data: bytes, path: str, names: Sequence[str]) -> _Content:
    stream = io.BytesIO(data)
    try:
        values = np.lib.format.read_array(stream, allow_pickle=False)
    except Exception as error:  # a damaged header surfaces as half a dozen types, MemoryError among them
        reason = " ".join(str(error).split())
        if "allow_pickle" in reason:
            reason = (
                "it holds Python objects, and unpickling a file can run any code; save an array of numbers"
            )
        raise InputError(f"{path} cannot be read as .npy: {reason}") from None
    if stream.tell() != len(data):
        raise InputError(f"{path} goes on after its array ends; save one array in a file")
    return _numbers(values, path)


def _from_json(data: bytes, path: str, names: Sequence[str]) -> _Content:
    try:
        value = json.loads(_text(data, path))
    except (ValueError, RecursionError) as error:  # ValueError: also an integer of more than 4300 digits
        raise InputError(f"{path} is not JSON: {error}") from None
    if not isinstance(value, dict):
        return _lists(value, path)
    found = [name for name in value if _NAMES.get(name) in names]
    if len(found) != 1:
        keys = ", ".join(map(repr, value)) or "nothing"
        raise InputError(
            f"{path} holds an object with {_cut(keys)}; needed: a list, or one of {', '.join(names)}"
        )
    return _lists(value[found[0]], path, _NAMES[found[0]])


def _from_csv(data: bytes, path: str, names: Sequence[str]) -> _Content:
    text = _text(data, path)
    table = _table(text) if text.strip() else None
    if table is not None:
        return _numbers(table, path)
    reader = csv.reader(io.StringIO(text, newline=""))
    try:
        lines = [(reader.line_num, row) for row in reader if any(cell.strip() for cell in row)]
    except csv.Error as error:
        raise InputError(f"{path} is not CSV: line {reader.line_num}: {error}") from None
    if not lines:
        raise InputError(f"{path} holds no numbers; was the run that wrote it finished?")
    header = lines[0][1]
    if all(_is_number(cell) for cell in header):
        return _lists([[_number(cell, line, path) for cell in row] for line, row in lines], path)
    return _columns([cell.strip().lower() for cell in header], lines[1:], path, names)


def _table(text: str) -> NDArray[Any] | None:
    """Return rows of nothing but numbers, much faster than cell by cell; None for anything else."""
    try:
        table = np.loadtxt(io.StringIO(text), delimiter=",", comments=None, ndmin=2)
    except ValueError:
        return None
    whole = (table == np.floor(table)) & (np.abs(table) <= _LARGEST)
    return table.astype(np.int64) if whole.all() else table


def _columns(
    header: list[str], lines: list[tuple[int, list[str]]], path: str, names: Sequence[str]
) -> _Content:
    """Return the column that is asked for, with that of the token ids beside it."""
    kinds = [_NAMES.get(cell) for cell in header]
    values = [kind for kind in kinds if kind in names and kind != "tokens"]
    wanted = [*values, *(["tokens"] if "tokens" in kinds else [])]
    if len(values) > 1 or kinds.count("tokens") > 1 or not (values or "tokens" in (set(names) & set(kinds))):
        known = ", ".join(name for name, kind in _NAMES.items() if kind in names)
        raise InputError(
            f"{path} starts with {_cut(', '.join(header))}; needed: numbers, or one column called {known}"
        )
    for line, row in lines:
        if len(row) != len(header):
            raise InputError(f"{path}: line {line} has {len(row)} cells and the header {len(header)}")
    found = [
        _numbers(np.array([_number(row[kinds.index(kind)], line, path) for line, row in lines]), path).values
        for kind in wanted
    ]
    return _Content(path, found[0], wanted[0], found[1] if len(found) == 2 else None)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _number(cell: str, line: int, path: str) -> float:
    """Return a cell's number, an int where it is one."""
    try:
        return int(cell) if cell.strip().isdigit() else float(cell)
    except ValueError:
        raise InputError(f"{path}: line {line} holds {_cut(repr(cell))}, which is not a number") from None


def _lists(value: object, path: str, name: str | None = None) -> _Content:
    """Return the numbers of a list, or of a list of lists."""
    try:
        values = np.asarray(value)
    except ValueError:  # numpy's word for lists of different lengths
        return _ragged(value, path, name)
    return _numbers(values, path, name)


def _ragged(value: object, path: str, name: str | None) -> _Content:
    """Return the numbers of lists of different lengths, one after another."""
    if not isinstance(value, list) or not all(isinstance(part, list) for part in value):
        raise InputError(
            f"{path} mixes numbers and lists; needed: a list of numbers, or a list of such lists"
        )
    try:
        flat = np.asarray([number for part in value for number in part])
    except ValueError:
        raise InputError(f"{path} holds lists in lists in a list; needed: two levels at most") from None
    lengths = tuple(len(part) for part in value)
    return _Content(path, _numbers(flat, path).values, name, parts=lengths)


def _numbers(values: NDArray[Any], path: str, name: str | None = None) -> _Content:
    """Return an array of numbers with one or two axes; one row or one column becomes flat."""
    if values.ndim not in (1, 2):
        raise InputError(f"{path} holds an array of shape {values.shape}; needed: one or two axes")
    if values.size == 0:
        raise InputError(f"{path} holds no numbers; was the run that wrote it finished?")
    if values.dtype.kind not in "iuf":
        raise InputError(f"{path} holds values of type {values.dtype}; needed: plain numbers up to 2**53")
    return _Content(path, values.ravel() if 1 in values.shape else values, name)


def _cut(text: str) -> str:
    """Return a text that is not ours as a part of one line."""
    text = " ".join(text.split())
    return text if len(text) <= 60 else f"{text[:57]}..."


_READERS: Mapping[str, Callable[[bytes, str, Sequence[str]], _Content]] = {
    ".npy": _from_npy,
    ".csv": _from_csv,
    ".json": _from_json,
}
