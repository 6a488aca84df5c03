"""Rows to integer tables: alias tables for drawing, 63-bit coins for accepting.

A token is drawn from a row by one 64-bit word: the high half of ``word * V`` is a cell, the low half is the
coin that decides between the cell's own token and its alias (Walker 1977; Vose 1991). A coin is met when
``word >> 1 < floor(2**63 * probability)``, so probability 0 never happens and 1 always does. All of it is
integer arithmetic; the sampler's own law differs from the row by less than V * 2**-63 in total variation.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from simkit.laws.rows import IntRows, reduced
from simkit.rules.draws import ALWAYS, alias_table
from simkit.sampling.jit import kernel

U64 = NDArray[np.uint64]
U32 = NDArray[np.uint32]


@dataclass(frozen=True, eq=False)
class Coins:
    """N x V coins, each met with probability coin / 2**63.

    Parameters
    ----------
    exact : uint64 array, shape (N, V)
        The coins.
    """

    exact: U64

    @cached_property
    def top(self) -> U32:
        """The leading 32 bits of each coin, for a fast test that leaves ties to `exact`."""
        top: U32 = np.minimum(self.exact >> np.uint64(31), np.uint64(2**32 - 1)).astype(np.uint32)
        return top


@dataclass(frozen=True, eq=False)
class AliasTables:
    """Alias tables of N rows over V tokens.

    Parameters
    ----------
    coins : Coins, N x V
        The coin that keeps a cell's own token.
    alias : uint32 array, shape (N, V)
        The token of a cell when its coin is not met.
    """

    coins: Coins
    alias: U32

    @cached_property
    def packed(self) -> U64:
        """Leading coin bits and alias of each cell in one word, so that a draw reads one place."""
        return self.coins.top.astype(np.uint64) << np.uint64(32) | self.alias

    def law(self, row: int = 0) -> list[Fraction]:
        """Return the exact law of a token drawn by a uniform 64-bit word, by counting the words.

        Cell j is chosen by the words from ceil(j 2**64 / V) on; of these, its own token keeps the ones
        whose low half is below twice the coin.

        Parameters
        ----------
        row : int
            Which row's table.

        Examples
        --------
        >>> [float(f) for f in alias_tables(np.array([[1, 3]])).law()]
        [0.25, 0.75]
        """
        coins, alias = self.coins.exact[row].tolist(), self.alias[row].tolist()
        vocabulary, words = len(coins), [0] * len(coins)
        for j, (coin, other) in enumerate(zip(coins, alias, strict=True)):
            first, last = (-(-(cell << 64) // vocabulary) for cell in (j, j + 1))
            cut = min(last, -(-((j << 64) + 2 * coin) // vocabulary))
            words[j] += cut - first
            words[other] += last - cut
        return [Fraction(n, 2**64) for n in words]


def coins(numerator: IntRows, denominator: IntRows) -> Coins:
    """Return coins of floor(2**63 * min(1, numerator / denominator)), exactly.

    Parameters
    ----------
    numerator, denominator : integer arrays, shape (N, V)
        Integers >= 0; denominators >= 1, and up to 2**62 in arrays of int64.

    Examples
    --------
    >>> coins(np.array([[1, 3]]), np.array([[2, 2]])).exact
    array([[4611686018427387904, 9223372036854775808]], dtype=uint64)
    """
    numerator, denominator = np.broadcast_arrays(numerator, denominator)
    out = np.empty(numerator.shape, dtype=np.uint64)
    if "O" in (numerator.dtype.kind, denominator.dtype.kind):
        whole = np.minimum(ALWAYS, ALWAYS * numerator.astype(object) // denominator)
        return Coins(whole.astype(np.uint64))
    bits = 64 - int(denominator.max()).bit_length()
    _divide(np.ravel(numerator), np.ravel(denominator), np.uint64(bits), out.ravel())
    return Coins(out)


def alias_tables(rows: IntRows) -> AliasTables:
    """Return the alias tables of integer rows.

    Parameters
    ----------
    rows : integer array, shape (N, V)
        Weights. Where a row's total times V does not fit into 63 bits, Python's integers take over: a hundred
        times slower, and just as exact.

    Examples
    --------
    >>> alias_tables(np.array([[1, 3]])).alias
    array([[1, 1]], dtype=uint32)
    """
    vocabulary = rows.shape[1]
    totals = rows.sum(axis=1)
    if int(totals.max()) * vocabulary >= 2**63:
        rows = reduced(rows)
        totals = rows.sum(axis=1)
    if rows.dtype.kind == "O" or int(totals.max()) * vocabulary >= 2**63:
        tables = np.array([alias_table(tuple(row)) for row in rows.tolist()], dtype=np.uint64)
        return AliasTables(Coins(tables[..., 0].copy()), tables[..., 1].astype(np.uint32))
    scaled = rows * np.int64(vocabulary)
    alias = np.empty(rows.shape, dtype=np.uint32)
    _vose(scaled, totals, alias)
    return AliasTables(coins(scaled, totals[:, None]), alias)


@kernel
def _divide(numerator, denominator, step, out):
    """Long division: write floor(2**63 * min(1, n / d)), `step` bits of the quotient at a time.

    A remainder is below d, so that 64 bits leave room to shift it by 64 less the bits of the largest d.
    """
    for i in range(len(out)):
        n, d = np.uint64(numerator[i]), np.uint64(denominator[i])
        if n >= d:
            out[i] = np.uint64(9223372036854775808)
            continue
        quotient, left = np.uint64(0), np.uint64(63)
        while left > np.uint64(0):
            bits = min(step, left)
            n <<= bits
            digit = n // d
            n -= digit * d
            quotient = (quotient << bits) | digit
            left -= bits
        out[i] = quotient


@kernel
def _vose(scaled, totals, alias):
    """Fill `alias`; cells of `scaled` (weight * V) are cut down to what their own token keeps of `totals`."""
    rows, vocabulary = scaled.shape
    small, large = np.empty(vocabulary, dtype=np.int64), np.empty(vocabulary, dtype=np.int64)
    for r in range(rows):
        total, n_small, n_large = totals[r], 0, 0
        for j in range(vocabulary):
            alias[r, j] = j
            if scaled[r, j] < total:
                small[n_small] = j
                n_small += 1
            else:
                large[n_large] = j
                n_large += 1
        while n_small > 0 and n_large > 0:
            n_small -= 1
            poor, rich = small[n_small], large[n_large - 1]
            alias[r, poor] = rich
            scaled[r, rich] -= total - scaled[r, poor]
            if scaled[r, rich] < total:
                n_large -= 1
                small[n_small] = rich
                n_small += 1
