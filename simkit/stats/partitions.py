"""Partitions of the vocabulary: the resolutions at which a run is held against its law.

A partition gives every token a cell, from the law and the planned visits only. Fewer cells see a smaller
fault, if the fault moves weight between them: a wrong temperature moves weight across ranks, a wrong shard
or block across ids, and anything in general position across hash buckets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from simkit.stats._input import Floats, Ints
from simkit.stats.chi_square import MIN_EXPECTED, pool

HEADS = (10, 100, 1000, 10_000)
BLOCKS = (16, 256)
BUCKETS = 64
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Partition:
    """Hold one way to sort tokens into cells.

    Parameters
    ----------
    name
        What it is, such as "rank split at 10"; no two partitions of a run share a name.
    family
        The kind it belongs to; kinds share the weight of a run's evidence evenly.
    cells
        Number of cells.
    build
        Returns the cell of every token, int64, shape (S, V) or (1, V) where it is the same in all states.
    describe
        Returns a cell in words.
    """

    name: str
    family: str
    cells: int
    build: Callable[[], Ints]
    describe: Callable[[int], str]

    def sums(self, values: Floats | Ints) -> Floats:
        """Return the sum of the values in each cell, float64, shape (S, cells).

        Parameters
        ----------
        values
            One number a state and token, shape (S, V).
        """
        states = len(values)
        labels = np.broadcast_to(self.build(), values.shape)
        flat = labels + np.arange(states)[:, None] * self.cells
        sums = np.bincount(flat.ravel(), weights=values.ravel(), minlength=states * self.cells)
        return np.asarray(sums.reshape(states, self.cells), dtype=np.float64)


def partitions(rows: Floats, visits: Floats) -> Iterator[Partition]:
    """Yield the partitions that suit these laws: pooled cells, head and tail, rank splits, blocks, buckets.

    Only those are given that differ from the whole vocabulary, cell for cell.

    Parameters
    ----------
    rows
        Target laws, float64, shape (S, V).
    visits
        Planned draws at each state, float64, shape (S,).

    Examples
    --------
    >>> law = np.full((1, 12), 1 / 12)
    >>> [p.name for p in partitions(law, np.array([6000.0]))]
    ['10 commonest and rest', 'rank split at 1', 'rank split at 3', 'rank split at 10']
    """
    vocabulary = rows.shape[1]
    possible = int((rows > 0).sum(axis=1).max())
    ranks = _Ranks(rows)
    pooled = _pooled(rows, visits)
    if pooled is not None:
        yield pooled
    for m in HEADS:
        if m + 1 < possible:
            yield _head(m, ranks)
    for m in _splits(possible):
        yield _split(m, ranks)
    for blocks in BLOCKS:
        if blocks < vocabulary:
            yield _blocks(blocks, vocabulary)
    if vocabulary > 2 * BUCKETS:
        yield _buckets(vocabulary)


class _Ranks:
    """The rank of each token by falling probability, ties by id, computed once and only if asked for."""

    def __init__(self, rows: Floats) -> None:
        self._rows = rows
        self._ranks: Ints | None = None

    def __call__(self) -> Ints:
        if self._ranks is None:
            order = np.argsort(-self._rows, axis=1, kind="stable")
            self._ranks = np.empty(order.shape, dtype=np.int64)
            np.put_along_axis(self._ranks, order, np.arange(order.shape[1])[None, :], axis=1)
        return self._ranks


def _pooled(rows: Floats, visits: Floats) -> Partition | None:
    """Return the cells of the chi-square test, or None where each token has a cell of its own."""
    labels = np.atleast_2d(pool(rows, visits, MIN_EXPECTED))
    cells = int(labels.max()) + 1
    if (labels.max(axis=1) + 1 == (rows > 0).sum(axis=1)).all():
        return None
    return Partition(
        "pooled cells",
        "pooled cells",
        cells,
        lambda: np.maximum(labels, 0),
        lambda cell: f"pooled cell {cell + 1} by rank",
    )


def _head(m: int, ranks: _Ranks) -> Partition:
    return Partition(
        f"{m} commonest and rest",
        "head and tail",
        m + 1,
        lambda: np.minimum(ranks(), m),
        lambda cell: f"rank {cell + 1}" if cell < m else f"ranks {m + 1} and up",
    )


def _splits(possible: int) -> Iterator[int]:
    """Yield 1, 3, 10, 30, ... below the number of possible tokens."""
    m = 1
    while m < possible and possible > 2:
        yield m
        m = 3 * m if str(m)[0] == "1" else m // 3 * 10


def _split(m: int, ranks: _Ranks) -> Partition:
    return Partition(
        f"rank split at {m}",
        "rank splits",
        2,
        lambda: (ranks() >= m).astype(np.int64),
        lambda cell: f"ranks {m + 1} and up" if cell else ("rank 1" if m == 1 else f"ranks 1 to {m}"),
    )


def _blocks(blocks: int, vocabulary: int) -> Partition:
    edges = [-(-block * vocabulary // blocks) for block in range(blocks + 1)]
    return Partition(
        f"{blocks} id blocks",
        "id blocks",
        blocks,
        lambda: (np.arange(vocabulary) * blocks // vocabulary)[None, :],
        lambda cell: f"ids {edges[cell]} to {edges[cell + 1] - 1}",
    )


def _buckets(vocabulary: int) -> Partition:
    """Return buckets by the leading bits of id times the golden ratio: neighbours fall far apart."""
    shift = np.uint64(64 - (BUCKETS - 1).bit_length())
    return Partition(
        f"{BUCKETS} hash buckets",
        "hash buckets",
        BUCKETS,
        lambda: ((np.arange(vocabulary, dtype=np.uint64) * _GOLDEN) >> shift).astype(np.int64)[None, :],
        lambda cell: f"hash bucket {cell}",
    )
