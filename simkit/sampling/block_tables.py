"""Block tables: block verification on a pair as ratios p/q, and as prefix sums along them.

The residual of a block, max(w p - q, 0), has its mass on the tokens with p/q > 1/w. As w is at most 1,
these are among the tokens with p > q, the head; by falling p/q they are its first ones, however small w is.
With P_j and D_j the sums of p and of p - q over the first j tokens, the residual's prefix sums are D_j - (1
- w) P_j. So one sorted head serves every w, and binary search finds where a residual ends, and each of its
tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from simkit.laws.pair import Index, Pair
from simkit.laws.rows import IntRows, common
from simkit.rules.block import by_ratio
from simkit.sampling.tables import U32, AliasTables, alias_tables

Floats = NDArray[np.float64]


class Heads(NamedTuple):
    """The tokens with p > q by falling p/q, for C pairs of rows one behind the other.

    A head of n tokens has n + 1 entries; entry j stands for its first j tokens.

    Parameters
    ----------
    begin : int64 array, shape (C + 1,)
        Where each head's entries begin; the last is their number N.
    edge : float64 array, shape (N,)
        p/q of the j-th token, infinite for j = 0.
    sums : float64 array, shape (N, 2)
        P_j and D_j, the sums of p and of p - q over the first j tokens.
    token : uint32 array, shape (N,)
        The token that comes after the first j; 0 for j = n.
    """

    begin: NDArray[np.int64]
    edge: Floats
    sums: Floats
    token: U32


@dataclass(frozen=True, eq=False)
class BlockTables:
    """What the kernel of block verification reads.

    Parameters
    ----------
    propose, bonus : AliasTables
        The rows from which drafts and bonus tokens are drawn.
    ratio : float64 array, shape (C, V)
        p/q for each pair of target and draft rows that meet at a state and slot; 0 where q = 0.
    heads : Heads
        Heads of the same pairs.
    propose_row, step_row : int32 arrays, shape (S, slots)
        Row of `propose`, and row of `ratio` and `heads`, at each state and slot.
    bonus_row : int32 array, shape (S, 1)
        Row of `bonus` at each state.
    """

    propose: AliasTables
    bonus: AliasTables
    ratio: Floats
    heads: Heads
    propose_row: Index
    step_row: Index
    bonus_row: Index

    def private(self) -> BlockTables:
        """Return the tables a thread should read: these, as two threads that share them are 1.8 times one."""
        return self


def block_tables(pair: Pair) -> BlockTables:
    """Return the tables of block verification on a pair.

    Floats are within 2**-51 of the rationals that they stand for, relatively, and are exact where p = q.

    Parameters
    ----------
    pair : Pair
        The laws and the automaton.

    Raises
    ------
    InputError
        Where the totals of rows that meet have a common multiple above 2**62, as for the token rule.

    Examples
    --------
    >>> tables = block_tables(Pair.from_weights([3, 5, 2], [1, 4, 5]))
    >>> tables.ratio
    array([[3.  , 1.25, 0.4 ]])
    >>> tables.heads.edge, tables.heads.sums[:, 1], tables.heads.token
    (array([ inf, 3.  , 1.25]), array([0. , 0.2, 0.3]), array([0, 1, 0], dtype=uint32))
    """
    meetings = pair.target[:, None].astype(np.int64) * len(pair.rows) + pair.draft
    codes, step_row = np.unique(meetings, return_inverse=True)
    target, draft = pair.rows[codes // len(pair.rows)], pair.rows[codes % len(pair.rows)]
    p, q = common(target, draft)
    ratio = np.divide(p, q, out=np.zeros(p.shape), where=q > 0)
    drawn, propose_row = np.unique(pair.draft, return_inverse=True)
    extra, bonus_row = np.unique(pair.target, return_inverse=True)
    return BlockTables(
        propose=alias_tables(pair.rows[drawn]),
        bonus=alias_tables(pair.rows[extra]),
        ratio=ratio,
        heads=_heads(p, q, ratio, by_ratio(target, draft)),
        propose_row=propose_row.reshape(meetings.shape).astype(np.int32),
        step_row=step_row.reshape(meetings.shape).astype(np.int32),
        bonus_row=bonus_row.reshape(-1, 1).astype(np.int32),
    )


def _heads(p: IntRows, q: IntRows, ratio: Floats, order: NDArray[np.int64]) -> Heads:
    """Return the heads of rows with common totals, their tokens in the order of the rule's text."""
    tokens = [line[a[line] > b[line]] for line, a, b in zip(order, p, q, strict=True)]
    parts = [_head(*row) for row in zip(tokens, p, q, ratio, strict=True)]
    edge, sums, token = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return Heads(np.cumsum([0, *(len(t) + 1 for t in tokens)]), edge, sums, token)


def _head(tokens: NDArray[np.int64], p: IntRows, q: IntRows, ratio: Floats) -> tuple[Floats, Floats, U32]:
    total = p.sum()
    edge = np.where(q[tokens] > 0, ratio[tokens], np.inf)
    sums = np.stack([p[tokens], p[tokens] - q[tokens]]).cumsum(axis=1) / total
    return (
        np.concatenate([[np.inf], edge]),
        np.concatenate([[[0.0, 0.0]], sums.T]),
        np.concatenate([tokens, [0]]).astype(np.uint32),
    )
