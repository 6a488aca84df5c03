"""What a sampler emitted, line by line: prompts, tokens and gaps of logits."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simkit.errors import InputError
from simkit.files import store_error
from simkit.stats.two_sample import (
    MOST_TOKEN,
)

Key = tuple[str, bytes]
Gap = float | Mapping[int, float]
Gaps = tuple[Gap, ...]


@dataclass(frozen=True)
class Samples:
    """Hold what a sampler emitted: distinct pairs of prompt and tokens, and how often each came.

    Parameters
    ----------
    name : str
        What messages call it.
    counts : mapping
        From (prompt as JSON text, token ids as bytes of int64) to the number of lines.
    gaps : mapping
        From the same to the logits or gaps of the first such line that has them.

    Examples
    --------
    >>> run = Samples.of([{"prompt": "a", "tokens": [5, 6]}, {"prompt": "a", "tokens": [5, 6]}])
    >>> run.lines, len(run.counts)
    (2, 1)
    """

    name: str
    counts: Mapping[Key, int]
    gaps: Mapping[Key, Gaps]

    @classmethod
    def of(cls, lines: Iterable[Mapping[str, Any]], name: str = "A") -> Samples:
        """Return the samples of an iterable of records.

        Parameters
        ----------
        lines : iterable of mappings
            Each with "prompt" (text, or any JSON value that names it) and "tokens" (whole numbers from 0);
            and, if the output is greedy, "gaps" (of each position the logit of the best token less that of
            the second) or "logits" (of each position a mapping from token to logit, or a list of logits).
        name : str
            What messages call it.

        Raises
        ------
        InputError
            If there is no line, no token in all of them, or one is not like that; with its number.
        """
        return _collect(((f"{name}, line {n}", line) for n, line in zip(count(1), lines)), name)

    @property
    def lines(self) -> int:
        """The number of lines."""
        return sum(self.counts.values())

    @property
    def longest(self) -> int:
        """The number of tokens of the longest line."""
        return max(len(tokens) for _, tokens in self.counts) // 8

    def cut(self, length: int | None) -> Samples:
        """Return the samples with at most this many tokens a line; None cuts nothing."""
        if length is None or length >= self.longest:
            return self
        counts: dict[Key, int] = {}
        gaps: dict[Key, Gaps] = {}
        for (prompt, tokens), times in self.counts.items():
            key = prompt, tokens[: 8 * length]
            counts[key] = counts.get(key, 0) + times
            if (prompt, tokens) in self.gaps:
                gaps.setdefault(key, self.gaps[prompt, tokens])
        return Samples(self.name, counts, gaps)

    def by_prompt(self) -> dict[str, dict[bytes, int]]:
        """Return the counts of token sequences of each prompt."""
        found: dict[str, dict[bytes, int]] = {}
        for (prompt, tokens), times in self.counts.items():
            found.setdefault(prompt, {})[tokens] = times
        return found


def read_samples(path: str | os.PathLike[str]) -> Samples:
    r"""Return the samples of a JSONL file: one JSON object a line, as for `Samples.of`.

    Parameters
    ----------
    path : path
        The file; UTF-8. Empty lines are skipped.

    Raises
    ------
    StoreError
        If the file cannot be read.
    InputError
        If it is empty, or a line is not a record; with the line's number.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "a.jsonl"
    ...     _ = file.write_text('{"prompt": "a", "tokens": [5, 6]}\n')
    ...     read_samples(file).lines
    1
    """
    path = Path(path)
    return _collect(_records(path), str(path))


def _records(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the JSON values of a file's lines, each with its place."""
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield f"{path}, line {number}", _parsed(line, f"{path}, line {number}")
    except OSError as error:
        raise store_error("read", path, error) from error


def _parsed(line: bytes, place: str) -> Any:
    try:
        return json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InputError(f"{place}: not UTF-8 text ({error.reason} at byte {error.start})") from None
    except (ValueError, RecursionError) as error:  # ValueError: also an integer of more than 4300 digits
        cut = "" if line.endswith(b"\n") else "; the line has no end: was the run that wrote it finished?"
        raise InputError(f"{place}: not JSON ({error}){cut}") from None


def _collect(records: Iterable[tuple[str, Any]], name: str) -> Samples:
    """Return the samples of records, each with its place."""
    counts: dict[Key, int] = {}
    gaps: dict[Key, Gaps] = {}
    for place, record in records:
        key = _key(record, place)
        counts[key] = counts.get(key, 0) + 1
        if key not in gaps and ("gaps" in record or "logits" in record):
            gaps[key] = _gaps(record, len(key[1]) // 8, place)
    if not counts:
        raise InputError(f"{name} is empty; needed: one JSON object a line, with prompt and tokens")
    if not any(tokens for _, tokens in counts):
        raise InputError(f"{name} has {sum(counts.values())} lines and no token in any; did the run fail?")
    return Samples(name, counts, gaps)


def _key(record: Any, place: str) -> Key:
    """Return prompt and tokens of one record."""
    if not isinstance(record, Mapping):
        raise InputError(f"{place}: holds {_cut(record)}; needed: an object with prompt and tokens")
    for name in ("prompt", "tokens"):
        if record.get(name) is None:
            keys = ", ".join(map(repr, record)) or "nothing"
            raise InputError(f"{place}: no {name!r}, only {keys}; needed: prompt and tokens in each line")
    tokens = record["tokens"]
    if isinstance(tokens, np.ndarray):
        tokens = tokens.tolist()
    if not isinstance(tokens, list | tuple):
        raise InputError(f"{place}: tokens are {_cut(tokens)}; needed: a list of token ids")
    return _prompt(record["prompt"], place), _ids(tokens, place).tobytes()


def _ids(tokens: list[Any] | tuple[Any, ...], place: str) -> NDArray[np.int64]:
    """Return token ids; JSON's true, 5.0 and "5" are none."""
    if all(kind is int or issubclass(kind, np.integer) for kind in set(map(type, tokens))):
        try:
            ids = np.array(tokens, dtype=np.int64)
        except OverflowError:
            ids = np.array([-1])
        if not ids.size or (ids.min() >= 0 and ids.max() <= MOST_TOKEN):
            return ids
    for position, token in enumerate(tokens):
        if isinstance(token, bool) or not isinstance(token, int | np.integer) or not 0 <= token <= MOST_TOKEN:
            raise InputError(
                f"{place}: token {position} is {_cut(token)}; needed: whole numbers from 0 to {MOST_TOKEN}"
            )
    raise AssertionError


def _prompt(value: Any, place: str) -> str:
    """Return a prompt as JSON text, in which "1" and 1 differ."""
    try:
        return json.dumps(value, sort_keys=True)
    except (TypeError, ValueError):
        raise InputError(f"{place}: prompt is {_cut(value)}; needed: text, or a JSON value") from None


def _gaps(record: Mapping[str, Any], length: int, place: str) -> Gaps:
    """Return of each position the gap, or the logits of some tokens."""
    name = "gaps" if "gaps" in record else "logits"
    values = record[name]
    if not isinstance(values, list | tuple) or len(values) != length:
        size = len(values) if isinstance(values, list | tuple) else _cut(values)
        raise InputError(f"{place}: {name} has {size} entries and tokens {length}; give one a position")
    try:
        return tuple(_gap(value) for value in values)
    except (TypeError, ValueError, IndexError, AttributeError):
        raise InputError(
            f"{place}: {name} hold something else than numbers; needed at each position: a gap, a list of "
            "two logits or more, or an object from token id to logit"
        ) from None


def _gap(value: Any) -> Gap:
    """Return one position's gap, or its logits by token; raise one of four errors at anything else."""
    if isinstance(value, Mapping):
        logits = {int(token): _number(logit) for token, logit in value.items()}
        if not logits:
            raise ValueError
        return logits
    if isinstance(value, list | tuple):
        best, second = sorted(map(_number, value), reverse=True)[:2]
        return best - second
    return abs(_number(value))


def _number(value: Any) -> float:
    if isinstance(value, bool | str) or not math.isfinite(value):
        raise ValueError
    return float(value)


def _cut(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
