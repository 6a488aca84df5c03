"""Pairs of whole sequences, one of each sampler: either may have come from either."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from simkit.stats._input import Floats, Ints, as_whole
from simkit.stats.evalue import Evidence, mix
from simkit.stats.two_sample.evidence import CAUTION, LESSONS, learned
from simkit.stats.two_sample.permutation import PERMUTATIONS, PermutationTest, among_permutations
from simkit.stats.two_sample.sequences import BLOCK, Sequences, sums_by


@dataclass(frozen=True)
class Pairs:
    """Hold pairs of sequences of one prompt and first token, one of each sampler, and what they are told by.

    Parameters
    ----------
    first, second
        Numbers of the two sequences of each pair, int64 (n,); the first pair of every prompt and first token
        comes before any second one.
    counts
        How often each token occurs at positions >= 1, a sparse array (D, tokens).
    shape
        Of each sequence, at positions >= 1: tokens; tokens that repeat the one before; and the summed log
        share that a token has after the one before it, in the sequences of both samplers together. Each over
        its standard deviation, float64 (D, 3).
    mean
        Mean of `counts` over the sequences of both samplers, float64 (tokens,).

    Examples
    --------
    >>> pairs = pair_sequences(Sequences.of([0, 0], [[5, 6, 6], [5, 6, 7]], [3, 1], [2, 2]), seed=1)
    >>> pairs.first.size, pairs.mean.tolist()
    (4, [0.0, 1.625, 0.375])
    """

    first: Ints
    second: Ints
    counts: Any
    shape: Floats
    mean: Floats


def pair_sequences(data: Sequences, seed: int = 0) -> Pairs:
    """Return the sequences in pairs, drawn at random; those that find no partner are left out.

    Under the null either sequence of a pair may have come from either sampler, whatever the others are. That
    needs a random pairing: two sorted lists would make pairs of which this is not true.

    Parameters
    ----------
    data
        The sequences.
    seed
        Seed of the pairing, a whole number >= 0.

    Raises
    ------
    InputError
        If the seed is negative.

    Examples
    --------
    >>> pair_sequences(Sequences.of([0, 0], [[5, 6], [7, 6]], [1, 0], [0, 1])).first.size
    0
    """
    rng = np.random.default_rng(as_whole("seed", seed, 0))
    group, base = data.openings(), int(data.pooled.sum()) + 1
    lines, places = [], []
    for side in (data.first, data.second):
        line = rng.permutation(np.repeat(np.arange(side.size), side))
        line = line[np.argsort(group[line], kind="stable")]
        within = np.arange(line.size) - np.searchsorted(group[line], group[line])
        lines.append(line)
        places.append(group[line] * base + within)
    both, a, b = np.intersect1d(places[0], places[1], assume_unique=True, return_indices=True)
    turn = np.argsort(both % base, kind="stable")
    counts, shape = _features(data)
    mean = np.asarray(counts.T @ data.pooled / max(1, data.pooled.sum()), dtype=np.float64)
    return Pairs(lines[0][a[turn]], lines[1][b[turn]], counts, shape, mean)


def _features(data: Sequences) -> tuple[Any, Floats]:
    """Return `Pairs.counts` and `Pairs.shape`; they know both samplers' sequences and no labels."""
    from scipy.sparse import csr_array

    sequences = data.prompt.size
    row = np.repeat(np.arange(sequences), data.lengths)
    later = np.flatnonzero(np.diff(row, prepend=-1) == 0)
    row, times = row[later], data.pooled[row[later]].astype(np.float64)
    names, tokens = np.unique(data.tokens, return_inverse=True)
    token, before = tokens[later], tokens[later - 1]
    counts = csr_array((np.ones(row.size), (row, token)), shape=(sequences, names.size))
    step = np.unique(before * names.size + token, return_inverse=True)[1]
    share = np.bincount(step, times)[step] / np.bincount(before, times)[before]
    columns = (np.ones(row.size), token == before, np.log(share))
    shape = np.column_stack([np.bincount(row, values, sequences) for values in columns])
    spread = np.sqrt(np.cov(shape, rowvar=False, fweights=data.pooled, ddof=0).diagonal())
    return counts, shape / np.where(spread > 0, spread, 1.0)


def pair_test(pairs: Pairs, permutations: int = PERMUTATIONS, seed: int = 0) -> PermutationTest:
    """Return the test of token counts that swaps the two sequences of each pair at random.

    With d_v the difference in a pair of the counts of token v, and m_v its mean count, the statistic is
    sum_v [(sum d_v)^2 - sum d_v^2] / m_v, summed over pairs. Over n (n - 1), for n pairs, it is the distance:
    an estimate of sum_v (mean count of the first sampler - of the second)^2 / m_v.

    Parameters
    ----------
    pairs
        From `pair_sequences`.
    permutations
        How many are drawn, B >= 1; no p-value is below 1/(B + 1).
    seed
        Seed of the permutations, a whole number >= 0.

    Raises
    ------
    InputError
        If there is no permutation, or the seed is negative.

    Examples
    --------
    >>> repeats = Sequences.of([0, 0], [[5, 6, 6], [5, 6, 7]], first=[60, 40], second=[10, 90])
    >>> pair_test(pair_sequences(repeats)).p_value
    0.001
    """
    draws = as_whole("permutations", permutations, 1)
    rng = np.random.default_rng([as_whole("seed", seed, 0), 1])  # not the words that drew the pairs
    ends = np.column_stack([pairs.first, pairs.second])
    ends, alike = np.unique(ends[ends[:, 0] != ends[:, 1]], axis=0, return_counts=True)
    gaps = (pairs.counts[ends[:, 0]] - pairs.counts[ends[:, 1]]).T.tocsr()
    weight = np.where(pairs.mean > 0, 1.0 / np.where(pairs.mean > 0, pairs.mean, 1.0), 0.0)
    own = float(weight @ ((gaps * gaps) @ alike))

    def statistic(kept: Any) -> Floats:
        return np.asarray(weight @ (gaps @ kept) ** 2 - own, dtype=np.float64)

    swapped = np.empty(draws)
    width = max(1, 4 * BLOCK // max(alike.size, weight.size))
    for at in range(0, draws, width):
        size = (alike.size, min(width, draws - at))
        # Of equal pairs some are swapped: what is left of their sum is those kept less those swapped.
        swapped[at : at + width] = statistic(alike[:, None] - 2.0 * rng.binomial(alike[:, None], 0.5, size))
    seen, n = float(statistic(alike[:, None].astype(np.float64))[0]), pairs.first.size
    scale = 1.0 / (n * (n - 1)) if n > 1 else math.nan
    slope = gaps.T @ (weight * (gaps @ alike)) / max(n, 1)
    along = 4.0 * float((slope - slope @ alike / max(n, 1)) ** 2 @ alike) / max(n, 1) ** 2
    return among_permutations(seen, swapped, scale * seen, scale * swapped, along, n)


def pair_evidence(pairs: Pairs) -> Evidence:
    """Return the evidence that the samplers differ, from bets on which sequence of a pair is whose.

    Given a pair without its order, and the pairs before, 2 / (1 + e^{-(f(a) - f(b))}) has expectation 1 under
    the null whatever f. f is linear, in sixteen lessons learned from the pairs before:

    * "tokens": in the counts of tokens, with weights 2 sum(d) / sum(d^2) of the differences d in a pair;
    * "shape": in the three numbers of `Pairs.shape`, with weights 2 M^-1 sum(d), M the sum of d d^T.

    Parameters
    ----------
    pairs
        From `pair_sequences`.

    References
    ----------
    .. [1] S. Shekhar and A. Ramdas, "Nonparametric two-sample testing by betting", IEEE Trans. Inf. Theory 70
       (2024), arXiv:2112.09162: bets on f(a) - f(b) with f learned from the past.

    Examples
    --------
    >>> repeats = Sequences.of([0, 0], [[5, 6, 6], [5, 6, 7]], first=[60, 40], second=[10, 90])
    >>> round(pair_evidence(pair_sequences(repeats)).log_e, 1)
    19.5
    """
    size = pairs.first.size
    if size == 0:
        return mix({"no pairs": 0.0})
    lesson = np.arange(size) * LESSONS // size
    gaps = pairs.counts[pairs.first] - pairs.counts[pairs.second]
    pair = np.repeat(np.arange(size), np.diff(gaps.indptr))
    odds = learned(lesson[pair], gaps.indices, gaps.data, gaps.data**2)
    found = {"tokens": _payoff(sums_by(pair, 2.0 * odds * gaps.data, size)), "shape": 0.0}
    total, moments = np.zeros(pairs.shape.shape[1]), CAUTION * np.eye(pairs.shape.shape[1])
    for now in range(LESSONS):
        here = lesson == now
        shape = pairs.shape[pairs.first[here]] - pairs.shape[pairs.second[here]]
        found["shape"] += _payoff(shape @ (2.0 * np.linalg.solve(moments, total)))
        total, moments = total + shape.sum(axis=0), moments + shape.T @ shape
    return mix(found)


def _payoff(gap: Floats) -> float:
    """Return the summed log of 2 / (1 + e^-gap)."""
    return float((math.log(2.0) - np.logaddexp(0.0, -gap)).sum())
