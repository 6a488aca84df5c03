"""Where a run departs from its law: the cell behind the strongest component of the evidence, in words."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from simkit.stats._input import Floats, Ints, as_pair, as_visits
from simkit.stats.evalue import LEAST, Evidence
from simkit.stats.partitions import Partition, partitions


def where(counts: ArrayLike, probabilities: ArrayLike, visits: ArrayLike, evidence: Evidence) -> str:
    """Return in words where the counts depart most from the law, at the resolution that shows it best.

    The strongest component names the resolution: all tokens, ranks, id blocks, hash buckets, or single
    states. In it, the cell is named whose count is least likely: the one with the largest deviance
    c ln(c/e) - c + e from its expectation e. A description, not a test: every run has such a cell.

    Parameters
    ----------
    counts
        Tokens seen, whole numbers, shape (V,) or (S, V).
    probabilities
        Target law, float, same shape.
    visits
        Planned draws: a number for (V,), shape (S,) for (S, V); as for `evidence`.
    evidence
        The evidence of these counts.

    Raises
    ------
    InputError
        As `evidence`.

    Examples
    --------
    >>> from simkit.stats.evalue import evidence
    >>> where([620, 380], [0.5, 0.5], 1000, evidence([620, 380], [0.5, 0.5], 1000))
    'token 1: 380 seen, 500 expected'
    """
    tallies, rows = as_pair(counts, probabilities)
    planned = np.maximum(as_visits(visits, rows), 1.0)
    tallies, rows = np.atleast_2d(tallies), np.atleast_2d(rows)
    impossible = (rows < LEAST) & (tallies > 0)
    if impossible.any():
        state, token = (int(i) for i in np.argwhere(impossible)[0])
        return f"token {token}{_state(state, rows)}: {tallies[state, token]:,} seen, weight 0"
    name = evidence.strongest
    for partition in partitions(rows, planned):
        if name.startswith(f"{partition.name}, "):
            seen, laws = partition.sums(tallies), partition.sums(rows)
            return _cell(seen, laws, _by_cell(partition), _deviance(seen, laws))
    deviance = _deviance(tallies, rows)
    if name.startswith("average "):  # one state stands out: look for the cell there
        excess = deviance.sum(axis=1) - ((rows > 0).sum(axis=1) - 1) / 2.0
        deviance[np.arange(len(rows)) != excess.argmax()] = -1.0
    return _cell(tallies, rows, lambda token, state: f"token {token}{_rank(rows[state], token)}", deviance)


def _deviance(seen: Ints | Floats, laws: Floats) -> Floats:
    """Return c ln(c/e) - c + e of each cell; -1 where nothing is expected."""
    expected = seen.sum(axis=1, keepdims=True) * laws
    possible = expected > 0
    e, c = np.where(possible, expected, 1.0), np.where(possible, seen, 1.0)
    return np.where(possible, c * np.log(np.maximum(c, 1e-300) / e) - c + e, -1.0)


def _cell(seen: Ints | Floats, laws: Floats, describe: Callable[[int, int], str], deviance: Floats) -> str:
    state, cell = (int(i) for i in np.unravel_index(int(deviance.argmax()), deviance.shape))
    expected = float(seen[state].sum()) * laws[state, cell]
    return (
        f"{describe(cell, state)}{_state(state, laws)}: {int(seen[state, cell]):,} seen, "
        f"{_number(expected)} expected"
    )


def _state(state: int, rows: Floats) -> str:
    return f" at state {state}" if len(rows) > 1 else ""


def _rank(row: Floats, token: int) -> str:
    """Return the rank of a token where it is not plain from a short row."""
    if row.size <= 10:
        return ""
    return f" (rank {1 + int((row > row[token]).sum())})"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.3g}"


def _by_cell(partition: Partition) -> Callable[[int, int], str]:
    return lambda cell, state: partition.describe(cell)
