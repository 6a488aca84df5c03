"""The permutation test: whole sequences are dealt anew to the two samplers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from simkit.stats._input import Floats, as_whole
from simkit.stats.two_sample.sequences import (
    BLOCK,
    Tables,
)

PERMUTATIONS = 999


@dataclass(frozen=True)
class PermutationTest:
    """Hold a permutation test, and a distance with what chance alone does to it.

    Parameters
    ----------
    p_value
        Chance of a statistic as large: (1 + #{permuted >= observed}) / (1 + permutations).
    statistic
        What is compared; about 0 under the null.
    distance
        Estimate of the squared distance between the laws, 0 on average under the null. NaN where nothing can
        be compared.
    spread
        Standard deviation of the distance over the permutations: its noise if the laws are the same.
    error
        Standard error of the distance whatever the laws: spread, and the noise of the observed frequencies
        along their observed difference (delta method).
    compared
        Strata with two symbols or more, or pairs of sequences.
    permutations
        Permutations drawn.

    Examples
    --------
    >>> from simkit.stats.two_sample import count_tables
    >>> test = permutation_test(count_tables([[60, 40]], [[40, 60]]), 999, seed=1)
    >>> test.p_value < 0.05, round(test.distance, 4)
    (True, 0.0703)
    """

    p_value: float
    statistic: float
    distance: float
    spread: float
    error: float
    compared: int
    permutations: int


def permutation_test(tables: Tables, permutations: int = PERMUTATIONS, seed: int = 0) -> PermutationTest:
    """Return the test that deals the sequences of each group anew to the two samplers.

    The statistic is a sum over strata. That of a stratum with counts a_v and b_v, n1 and n2 in all, is
    Bhattacharya and Valiant's, sum_v [(n2 a_v - n1 b_v)^2 - n2^2 a_v - n1^2 b_v] / (a_v + b_v), over n1 n2
    and with a centring that is exact given n1 and n2: X2_s - (K_s - 1) N_s / (N_s - 1), or 0 where one
    sampler has no symbol. Its weight sqrt(N_s) lies between 1, which is best where faults stand out from
    chance equally everywhere, and N_s, which is best where laws are off equally everywhere. The distance is
    the unbiased estimate of the squared Euclidean one between the laws of the next symbol, averaged by N_s
    over strata in which both samplers have two symbols or more.

    Parameters
    ----------
    tables
        From `first_tokens`, `later_tokens` or `count_tables`.
    permutations
        How many are drawn, B >= 1; no p-value is below 1/(B + 1).
    seed
        Seed of the permutations, a whole number >= 0.

    Raises
    ------
    InputError
        If there is no permutation, or the seed is negative.

    References
    ----------
    .. [1] B. Bhattacharya and G. Valiant, "Testing closeness with unequal sized samples" (NeurIPS 2015),
       arXiv:1504.04599: the statistic.
    .. [2] B. Phipson and G. K. Smyth, "Permutation p-values should never be zero", Stat. Appl. Genet. Mol.
       Biol. 9 (2010), article 39: the 1 + ... that keeps the level.

    Examples
    --------
    >>> from simkit.stats.two_sample import count_tables
    >>> permutation_test(count_tables([[5, 5]], [[5, 5]]), 99).p_value
    1.0
    """
    draws, rng = as_whole("permutations", permutations, 1), np.random.default_rng(as_whole("seed", seed, 0))
    observed = _scores(tables, tables.first[:, None].astype(np.float64))
    dealt = np.zeros((3, draws))
    for part in _parts(tables):
        width = max(1, 4 * BLOCK // max(part.group.size, part.stratum.size))
        for at in range(0, draws, width):
            labels = _deal(part, min(width, draws - at), rng)
            dealt[:, at : at + width] += _scores(part, labels)
    distances = float(_distances(observed)[0]), _distances(dealt)
    variance = _variance_along(tables)
    return among_permutations(float(observed[0, 0]), dealt[0], *distances, variance, tables.strata)


def among_permutations(
    statistic: float, dealt: Floats, distance: float, distances: Floats, along: float, compared: int
) -> PermutationTest:
    """Return the test of a statistic and a distance among those of the permutations.

    `along` is the variance of the distance along the observed difference.
    """
    # Sums in another order differ in the last digits; a tie counts as reached.
    reached = int((dealt >= statistic - 1e-9 * (1.0 + abs(statistic))).sum())
    finite = distances[np.isfinite(distances)]
    spread = float(finite.std()) if finite.size else math.nan
    p_value, error = (1 + reached) / (1 + dealt.size), math.sqrt(spread**2 + along)
    return PermutationTest(p_value, statistic, distance, spread, error, compared, dealt.size)


def _variance_along(tables: Tables) -> float:
    """Return the variance of the distance that comes from 2 (a - b) times the noise of the frequencies."""
    first, pooled = tables.cells(tables.first), tables.cells(tables.pooled)
    sides = [first.astype(np.float64), (pooled - first).astype(np.float64)]
    sizes = [tables.totals(side) for side in sides]
    weight = (sizes[0] + sizes[1]) * (np.minimum(*sizes) > 1)
    shares = [x / np.maximum(n, 1.0)[tables.stratum] for x, n in zip(sides, sizes, strict=True)]
    gap = shares[0] - shares[1]
    noise = np.zeros(tables.strata)
    for share, n in zip(shares, sizes, strict=True):
        noise += (tables.totals(share * gap**2) - tables.totals(share * gap) ** 2) / np.maximum(n, 1.0)
    return float(4.0 * (weight**2 @ noise) / max(1.0, weight.sum()) ** 2)


def _scores(tables: Tables, labels: Floats) -> Floats:
    """Return statistic, summed squared distance and its weight (3, B) of labellings (D, B).

    A labelling says of each sequence how many are the first sampler's.
    """
    from scipy.sparse import csr_array

    if tables.strata == 0:
        return np.zeros((3, labels.shape[1]))
    cells, strata = tables.stratum.size, tables.strata
    c = tables.cells(tables.pooled)
    edges = np.flatnonzero(np.diff(tables.stratum, prepend=-1, append=-1))
    # Sums over strata as sparse products: `np.add.reduceat` is six times slower on strata of a few cells.
    plain, shares, counts = (
        csr_array((w, np.arange(cells), edges), shape=(strata, cells)) for w in (np.ones(cells), 1 / c, c)
    )
    a = tables.cells(labels)
    n1, across = plain @ a, counts @ a
    a *= a
    squares, of_shares = plain @ a, shares @ a
    symbols, n, c_squares = (tables.totals(x)[:, None] for x in (np.ones(cells), c, c * c))
    n2 = n - n1
    pairs = np.maximum(n1 * n2, 1.0)
    centred = n**2 / pairs * (of_shares - n1**2 / n) - (symbols - 1) * n / (n - 1)
    apart = (squares - n1) / np.maximum(n1 * (n1 - 1), 1.0) - 2 * (across - squares) / pairs
    apart += (c_squares - 2 * across + squares - n2) / np.maximum(n2 * (n2 - 1), 1.0)
    both = np.minimum(n1, n2) > 1
    each = (np.sqrt(n) * centred * (n1 * n2 > 0), n * apart * both, n * both)
    return np.stack([values.sum(axis=0) for values in each])


def _distances(scores: Floats) -> Floats:
    """Return distances (B,); NaN where no stratum has two symbols of each sampler."""
    return np.where(scores[2] > 0, scores[1] / np.maximum(scores[2], 1.0), math.nan)


def _parts(tables: Tables) -> Iterator[Tables]:
    """Yield the tables some groups at a time, few enough for many permutations of them to fit the memory."""
    groups = int(tables.group.max(initial=-1)) + 1
    rows = np.searchsorted(tables.group, np.arange(groups + 1))
    strata = np.searchsorted(tables.home, np.arange(groups + 1))
    cells = np.searchsorted(tables.stratum, strata)
    at = 0
    while at < groups:
        to = max(at + 1, int(np.searchsorted(rows, rows[at] + BLOCK // 256, side="right")) - 1)
        of_row, of_cell = slice(rows[at], rows[to]), slice(cells[at], cells[to])
        yield Tables(
            group=tables.group[of_row] - at,
            first=tables.first[of_row],
            pooled=tables.pooled[of_row],
            start=tables.start[of_cell] - rows[at],
            stop=tables.stop[of_cell] - rows[at],
            stratum=tables.stratum[of_cell] - strata[at],
            symbol=tables.symbol[of_cell],
            position=tables.position[strata[at] : strata[to]],
        )
        at = to


def _deal(tables: Tables, labellings: int, rng: np.random.Generator) -> Floats:
    """Return counts of the first sampler (D, B), dealt anew within each group."""
    dealt = np.empty((tables.group.size, labellings))
    for start, stop in pairwise(np.flatnonzero(np.diff(tables.group, prepend=-1, append=-1)).tolist()):
        pooled, size = tables.pooled[start:stop], int(tables.first[start:stop].sum())
        # Sequences that are mostly alike are dealt by their counts; others are quicker one by one.
        alike = 10 * pooled.size < pooled.sum()
        drawn = rng.multivariate_hypergeometric(pooled, size, labellings, "marginals" if alike else "count")
        dealt[start:stop] = drawn.T
    return dealt
