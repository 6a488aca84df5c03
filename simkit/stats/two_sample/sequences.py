"""Sequences of two samplers, and tables of what follows each prompt and emitted prefix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from simkit.errors import InputError
from simkit.stats._input import Floats, Ints

END = -1
"""The symbol that stands for the end of a sequence, beside the token ids."""

MOST_TOKEN = 2**31 - 1
BLOCK = 1 << 20
"""Numbers that are worked on at once."""


@dataclass(frozen=True)
class Sequences:
    """Hold token sequences and how often each of two samplers emitted them.

    Parameters
    ----------
    prompt
        Number of each sequence's prompt, from 0, int64 (D,).
    tokens
        Token ids of all sequences, one after another, int64.
    starts
        Where each sequence starts in `tokens`, and the end of the last; int64 (D + 1,).
    first, second
        How often the first and the second sampler emitted it, int64 (D,).

    Examples
    --------
    >>> both = Sequences.of([0, 0], [[5, 6], [5]], first=[3, 1], second=[2, 2])
    >>> both.lengths.tolist(), both.pooled.tolist()
    ([2, 1], [5, 3])
    """

    prompt: Ints
    tokens: Ints
    starts: Ints
    first: Ints
    second: Ints

    @classmethod
    def of(
        cls, prompts: ArrayLike, tokens: Sequence[ArrayLike], first: ArrayLike, second: ArrayLike
    ) -> Sequences:
        """Return the sequences, checked.

        Parameters
        ----------
        prompts
            A whole number >= 0 for the prompt of each sequence, shape (D,).
        tokens
            The token ids of each sequence, D lists of whole numbers from 0 to 2**31 - 1; they may be empty.
        first, second
            How often each sampler emitted it, whole numbers >= 0, shape (D,). A sequence may be listed more
            than once; listed once it takes less time.

        Raises
        ------
        InputError
            If lengths differ, or a number is not whole or out of range.
        """
        rows = [_whole_numbers(f"tokens[{i}]", row, MOST_TOKEN) for i, row in enumerate(tokens)]
        if not rows:
            raise InputError("tokens hold no sequence; give one or more.")
        columns = {"prompts": prompts, "first": first, "second": second}
        checked = {name: _whole_numbers(name, values, 2**53) for name, values in columns.items()}
        for name, values in checked.items():
            if values.size != len(rows):
                raise InputError(
                    f"{name} has {values.size} numbers and tokens {len(rows)} lists; give as many."
                )
        starts = np.cumsum([0, *(row.size for row in rows)])
        prompt = np.unique(checked["prompts"], return_inverse=True)[1]
        return cls(prompt, np.concatenate(rows), starts, checked["first"], checked["second"])

    @property
    def lengths(self) -> Ints:
        """Return the number of tokens of each sequence, int64 (D,)."""
        return np.diff(self.starts)

    @property
    def pooled(self) -> Ints:
        """Return how often both samplers together emitted each sequence, int64 (D,)."""
        return self.first + self.second

    @property
    def longest(self) -> int:
        """Return the number of tokens of the longest sequence."""
        return int(self.lengths.max(initial=0))

    def symbols(self, rows: Ints, position: int) -> Ints:
        """Return the token of each of these sequences at a position, `END` where it has ended."""
        there = self.lengths[rows] > position
        found = np.full(rows.size, END, dtype=np.int64)
        found[there] = self.tokens[self.starts[rows[there]] + position]
        return found

    def openings(self) -> Ints:
        """Return a number for the prompt and first symbol of each sequence, int64 (D,)."""
        heads = np.column_stack([self.prompt, self.symbols(np.arange(self.prompt.size), 0)])
        return np.unique(heads, axis=0, return_inverse=True)[1].reshape(-1)


def _whole_numbers(name: str, values: ArrayLike, most: int) -> Ints:
    """Return a flat array of whole numbers from 0 to `most`."""
    needed = f"needed: a flat list of whole numbers from 0 to {most}."
    try:
        given: Any = np.asarray(values)
    except (ValueError, OverflowError):
        raise InputError(f"{name} is a list of lists of different lengths; {needed}") from None
    if given.shape == (0,):
        return np.empty(0, dtype=np.int64)
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise InputError(f"{name} has dtype {given.dtype} and shape {given.shape}; {needed}")
    if int(given.min()) < 0 or int(given.max()) > most:
        worst = int(given.min()) if int(given.min()) < 0 else int(given.max())
        raise InputError(f"{name} holds {worst}; {needed}")
    return np.asarray(given, dtype=np.int64)


class Level(NamedTuple):
    """The symbols at one position: of each cell (prefix, symbol) its sequences, prefix and symbol.

    In the order in which `walk` leaves the sequences, those of a cell are `first` to `last` - 1.
    """

    position: int
    first: Ints
    last: Ints
    node: Ints
    symbol: Ints


def walk(data: Sequences) -> tuple[Ints, list[Level]]:
    """Return an order of the sequences in which every prefix is a range, and the levels of their tree.

    One sort a position, no loop over sequences. A sequence leaves after its end, and once nothing else has
    its prefix. What would have come after the longest sequences nobody knows, so their end is no symbol.
    """
    base = int(data.tokens.max(initial=0)) + 2
    order, slots, rows = (np.arange(data.prompt.size) for _ in range(3))
    node, lengths, pooled = data.prompt, data.lengths, data.pooled
    levels = []
    for position in range(data.longest):
        if rows.size == 0:
            break
        keys = node * base + data.symbols(rows, position) + 1
        turn = np.argsort(keys, kind="stable")
        rows, keys = rows[turn], keys[turn]
        order[slots] = rows
        heads = np.flatnonzero(np.diff(keys, prepend=-1))
        sizes = np.diff(heads, append=rows.size)
        levels.append(
            Level(position, slots[heads], slots[heads] + sizes, keys[heads] // base, keys[heads] % base - 1)
        )
        shared = np.add.reduceat(pooled[rows], heads) > 1
        cell = np.repeat(np.arange(heads.size), sizes)
        stay = shared[cell] & (lengths[rows] > position)
        rows, slots, node = rows[stay], slots[stay], np.unique(cell[stay], return_inverse=True)[1]
    return order, levels


@dataclass(frozen=True)
class Tables:
    """Hold tables of counts, one a stratum, and the sequences that they count.

    Parameters
    ----------
    group
        Number of the group of each sequence, within which labels are exchangeable; sorted, int64 (D,).
    first, pooled
        How often the first sampler, and both together, emitted each sequence; int64 (D,).
    start, stop
        The sequences counted in each cell are `start` to `stop` - 1; int64 (C,).
    stratum
        Number of the stratum of each cell, sorted; int64 (C,).
    symbol
        Token of each cell, or `END`; int64 (C,).
    position
        Position of each stratum, int64 (S,). Strata of one group stand together.

    Examples
    --------
    >>> tables = count_tables([[10, 10, 20]], [[20, 20, 20]])
    >>> tables.cells(tables.first).tolist(), tables.strata
    ([10, 10, 20], 1)
    """

    group: Ints
    first: Ints
    pooled: Ints
    start: Ints
    stop: Ints
    stratum: Ints
    symbol: Ints
    position: Ints

    @property
    def strata(self) -> int:
        """Return the number of strata; each has two symbols or more."""
        return int(self.position.size)

    @property
    def home(self) -> Ints:
        """Return the group of each stratum, int64 (S,)."""
        return self.group[self.start[np.diff(self.stratum, prepend=-1) > 0]]

    def cells(self, counts: Any) -> Any:
        """Return the counts of the cells (C,) or (C, B) from those of the sequences (D,) or (D, B)."""
        running = np.zeros((counts.shape[0] + 1, *counts.shape[1:]), dtype=counts.dtype)
        np.cumsum(counts, axis=0, out=running[1:])
        return running[self.stop] - running[self.start]

    def totals(self, values: Ints | Floats) -> Floats:
        """Return the sums over each stratum (S,) of one number a cell."""
        return sums_by(self.stratum, values, self.strata)


def count_tables(first: ArrayLike, second: ArrayLike) -> Tables:
    """Return the tables of two arrays of counts, each row a stratum of independent draws.

    Parameters
    ----------
    first, second
        How often each sampler emitted each token, whole numbers >= 0, both (S, V).

    Raises
    ------
    InputError
        If shapes differ or the counts are not whole numbers >= 0.

    Examples
    --------
    >>> count_tables([[3, 1], [4, 0]], [[2, 2], [5, 0]]).strata  # the second row has one token only
    1
    """
    shape = np.shape(first)
    if shape != np.shape(second) or len(shape) != 2 or 0 in shape:
        raise InputError(f"counts have shapes {shape} and {np.shape(second)}; needed: both (S, V).")
    sides = [_whole_numbers("counts", np.ravel(side), 2**53) for side in (first, second)]
    tokens, prompts = np.tile(np.arange(shape[1]), shape[0]), np.repeat(np.arange(shape[0]), shape[1])
    seen = np.flatnonzero(sides[0] + sides[1])
    if seen.size == 0:
        raise InputError("counts are all 0; give the counts of one draw or more.")
    return first_tokens(Sequences.of(prompts[seen], list(tokens[seen, None]), sides[0][seen], sides[1][seen]))


def first_tokens(data: Sequences) -> Tables:
    """Return the tables of the symbols at position 0, a stratum a prompt.

    Examples
    --------
    >>> first_tokens(Sequences.of([0, 0], [[5, 6], [7]], [3, 1], [2, 2])).symbol.tolist()
    [5, 7]
    """
    opening = data.openings()
    example = np.unique(opening, return_index=True)[1]
    first, second = (sums_by(opening, side).astype(np.int64) for side in (data.first, data.second))
    prompt, symbol, each = data.prompt[example], data.symbols(example, 0), np.arange(example.size)
    return _tabulate(prompt, first, second, [Level(0, each, each + 1, prompt, symbol)])


def later_tokens(data: Sequences) -> Tables:
    """Return the tables of the symbols at positions >= 1, a stratum a prompt and emitted prefix.

    Examples
    --------
    >>> both = Sequences.of([0, 0, 0], [[5, 6], [5, 7], [8, 9]], [3, 1, 1], [2, 2, 1])
    >>> later_tokens(both).symbol.tolist()  # only 5 is followed by more than one token
    [6, 7]
    """
    order, levels = walk(data)
    return _tabulate(data.openings()[order], data.first[order], data.second[order], levels[1:])


def sums_by(index: Ints, values: Ints | Floats, size: int = 0) -> Floats:
    """Return the sums of values by index, at least `size` of them."""
    return np.asarray(np.bincount(index, values.astype(np.float64), size), dtype=np.float64)


def _tabulate(group: Ints, first: Ints, second: Ints, levels: list[Level]) -> Tables:
    """Return the tables of the levels' cells that say something; groups are sorted.

    A stratum with one symbol, and a group that one sampler never reached, are the same whatever the labels.
    """
    met = ((sums_by(group, first) > 0) & (sums_by(group, second) > 0))[group]
    columns: list[list[Ints]] = [[], [], [], [], []]
    for level in levels:
        kept = (np.bincount(level.node) > 1)[level.node] & met[level.first]
        heads = level.first[np.searchsorted(level.node, level.node[kept])]
        position = np.full(heads.size, level.position)
        for column, values in zip(
            columns, (heads, position, level.first[kept], level.last[kept], level.symbol[kept]), strict=True
        ):
            column.append(values)
    empty = np.empty(0, dtype=np.int64)
    head, position, start, stop, symbol = (np.concatenate([empty, *column]) for column in columns)
    turn = np.lexsort((start, position, head))
    new = (np.diff(head[turn], prepend=-1) != 0) | (np.diff(position[turn], prepend=-1) != 0)
    used = np.isin(group, group[head])
    place: Ints = np.cumsum(used) - used
    return Tables(
        group=np.unique(group[used], return_inverse=True)[1],
        first=first[used],
        pooled=(first + second)[used],
        start=place[start[turn]],
        stop=place[stop[turn] - 1] + 1,
        stratum=np.cumsum(new) - 1,
        symbol=symbol[turn],
        position=position[turn][new],
    )
