"""Tree tables: rules with several drafts on a pair, as sums over the tokens by falling p/q.

Drafts that are judged one by one leave residuals r_1 = p, r_{i+1} = max(r_i - m_i q / z_i, 0), where m_i is
the mass of r_i and z_i that of q without the refused drafts; z_i is 1 where they may be drawn again. By
induction

    r_i = max(p - a_i q, 0), with a_1 = 0 and a_{i+1} = a_i + m_i / z_i.

A refused draft x is no exception, although it is drawn no more: it had r_i(x) < m_i q(x) / z_i, so that
p(x) < a_{i+1} q(x). With the tokens sorted by falling p/q, r_i has its mass on the first ones, those with p/q
above a_i; and with Q_j and D_j the sums of q and of p - q over the first j tokens, its prefix sums are
D_j - (a_i - 1) Q_j. So one order serves every residual, whatever has been refused, and all that is asked of a
residual is met by binary search.

K-SEQ's residual p - F min(q, p / gamma) = max(p - F q, (1 - F / gamma) p) takes the same order. A greedy
draft is the token rule for p and q without the top tokens. A target tree draws from p without its candidates,
by running sums in token order, as other trees from q without the refused drafts.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from simkit.laws.pair import Index, Pair
from simkit.laws.rows import IntRows
from simkit.rules.block import by_ratio
from simkit.rules.draws import ALWAYS, keep_coin
from simkit.rules.multidraft import KINDS, Tree
from simkit.rules.tries import GAMMA_STEPS, beside, gamma_steps
from simkit.sampling.tables import U32, U64, alias_tables

Records = NDArray[np.void]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NODE = np.dtype(
    [
        ("tries", np.int64),
        ("total", np.int64),
        ("begin", np.int64),
        ("end", np.int64),
        ("gamma", np.float64),
        ("times", np.float64),
    ]
)
TOKEN = np.dtype([("coin", np.uint64), ("alias", np.int64), ("ratio", np.float64), ("running", np.int64)])
RANK = np.dtype([("edge", np.float64), ("q", np.float64), ("excess", np.float64), ("token", np.int64)])
CANDIDATE = np.dtype([("token", np.int64), ("coin", np.uint64)])
BONUS = np.dtype([("coin", np.uint64), ("alias", np.int64)])


@dataclass(frozen=True, eq=False)
class TreeTables:
    """What the kernel of trees reads.

    Nodes are told apart by their target law, draft law and number of candidates; there are C of them.

    Parameters
    ----------
    kind : int
        Place of the rule in `simkit.rules.multidraft.KINDS`.
    node : array of `NODE`, shape (C,)
        Drafts or candidates that are judged at most; the total of the running sums; the first and the last
        entry in `rank`; gamma and F of K-SEQ, 1 and 0 for the others.
    token : array of `TOKEN`, shape (C, V)
        Cells of the alias table of q (see `simkit.sampling.tables.AliasTables`), p/q, and running sums of the
        weights of q, or of p for a target tree. For a greedy draft q is without the top tokens. p/q is
        infinite where only q is 0, and 0 where both are.
    rank : array of `RANK`
        For the tokens with p > 0 by falling p/q, entry j stands for the first j: p/q of the j-th, infinite
        for j = 0, their sums Q_j and D_j, and the token that comes next, 0 behind the last.
    candidate : array of `CANDIDATE`, shape (C, N)
        The candidates of a target tree with the coins that keep them, or the top tokens of a greedy draft;
        -1 behind the last. N is 0 for the others.
    step_row : int32 array, shape (S, levels)
        The node at each state and level of the tree.
    bonus : array of `BONUS`, shape (B, V)
        Cells of the alias tables of the target laws.
    bonus_row : int32 array, shape (S,)
        Row of `bonus` at each state.
    """

    kind: int
    node: Records
    token: Records
    rank: Records
    candidate: Records
    step_row: Index
    bonus: Records
    bonus_row: Index

    def private(self) -> TreeTables:
        """Return the tables a thread should read: these, which may be large."""
        return self


@dataclass(frozen=True, eq=False)
class RaceTables:
    """What the kernel of shared Gumbel noise reads.

    Parameters
    ----------
    weight : float64 array, shape (R, V)
        The pair's rows.
    target : int32 array, shape (S,)
        Row of the target's law at each state.
    draft : int32 array, shape (S, slots)
        Row of the draft's law at each state and slot.
    """

    weight: Floats
    target: Index
    draft: Index

    def private(self) -> RaceTables:
        """Return the tables a thread should read: these, which may be large."""
        return self


def race_tables(pair: Pair) -> RaceTables:
    """Return the tables of shared Gumbel noise on a pair.

    Parameters
    ----------
    pair : Pair
        The laws and the automaton.

    Examples
    --------
    >>> race_tables(Pair.from_weights([1, 2], [2, 1])).weight
    array([[1., 2.],
           [2., 1.]])
    """
    return RaceTables(pair.rows.astype(np.float64), pair.target, pair.draft)


def tree_tables(pair: Pair, tree: Tree, draft_length: int) -> TreeTables:
    """Return the tables of a rule with several drafts on a pair.

    Floats are within 2**-51 of the rationals that they stand for, relatively, and p/q is exact where p = q.
    Laws whose totals have no small common multiple take Python's integers: slower, and as exact.

    Parameters
    ----------
    pair : Pair
        The laws and the automaton.
    tree : Tree
        The rule.
    draft_length : int
        Levels K of the tree.

    Examples
    --------
    >>> from simkit.rules.multidraft import without_replacement
    >>> tables = tree_tables(Pair.from_weights([3, 5, 2], [1, 4, 5]), without_replacement(2), 1)
    >>> tables.token["ratio"], tables.rank["excess"], tables.rank["token"]
    (array([[3.  , 1.25, 0.4 ]]), array([0. , 0.2, 0.3, 0. ]), array([0, 1, 2, 0]))
    """
    targets, drafts, n, step_row = _meetings(pair, tree, draft_length)
    target, draft, tries = pair.rows[targets], pair.rows[drafts], n
    order, candidate = by_ratio(target, draft), np.empty((len(n), 0), dtype=CANDIDATE)
    if tree.kind == "greedy-draft":
        candidate = _candidates(draft, n - 1)
        rest = _without(draft, candidate["token"])
        order, tries = by_ratio(target, rest), np.minimum(rest.sum(axis=1), 1)
        draft = np.where(tries[:, None] > 0, rest, draft)  # where nothing is drawn, any law will do
    elif tree.kind == "target-tree":
        candidate = _candidates(draft, n)
        candidate["coin"], tries = _coins(tree, target, candidate["token"])
    p, q = beside(target, draft)
    ratio = _ratio(p, q)
    begin, rank = _ranks(p, q, ratio, order)
    gamma, times = _k_seq(p, q, n) if tree.kind == "k-seq" else (1.0, 0.0)
    running = (target if tree.kind == "target-tree" else draft).cumsum(axis=1)
    extra, bonus_row = np.unique(pair.target, return_inverse=True)
    return TreeTables(
        kind=KINDS.index(tree.kind),
        node=_records(NODE, (len(n),), tries, running[:, -1], begin[:-1], begin[1:] - 1, gamma, times),
        token=_records(TOKEN, draft.shape, *_cells(draft), ratio, running),
        rank=rank,
        candidate=candidate,
        step_row=step_row,
        bonus=_records(BONUS, (len(extra), pair.vocabulary), *_cells(pair.rows[extra])),
        bonus_row=bonus_row.astype(np.int32),
    )


def _records(dtype: np.dtype[np.void], shape: tuple[int, ...], *columns: object) -> Records:
    """Return records of given columns."""
    records = np.empty(shape, dtype=dtype)
    for name, column in zip(dtype.names or (), columns, strict=True):
        records[name] = column
    return records


def _cells(rows: IntRows) -> tuple[U64, U32]:
    tables = alias_tables(rows)
    return tables.coins.exact, tables.alias


def _meetings(pair: Pair, tree: Tree, draft_length: int) -> tuple[Ints, Ints, Ints, Index]:
    """Return target row, draft row and candidates of each node, and the node at each state and level."""
    levels = range(min(draft_length, max(pair.slots, len(tree.shape))))
    shape = pair.states, len(levels)
    target = np.broadcast_to(pair.target[:, None], shape)
    draft = pair.draft[:, np.minimum(levels, pair.slots - 1)]
    n = np.broadcast_to([tree.candidates(level) for level in levels], shape)
    meetings = np.stack([target, draft, n]).astype(np.int64).reshape(3, -1)
    (targets, drafts, candidates), step_row = np.unique(meetings, axis=1, return_inverse=True)
    return targets, drafts, candidates, step_row.reshape(shape).astype(np.int32)


def _candidates(rows: IntRows, n: Ints) -> Records:
    """Return each row's n most likely tokens with weight, the lowest of equal ones first."""
    first = np.argsort(-rows, axis=1, kind="stable")[:, : n.max()]
    there = (np.take_along_axis(rows, first, axis=1) > 0) & (np.arange(first.shape[1]) < n[:, None])
    return _records(CANDIDATE, first.shape, np.where(there, first, -1), 0)


def _without(rows: IntRows, tokens: Ints) -> IntRows:
    """Return the rows with no weight on their tokens."""
    rest = rows.copy()
    row, place = np.nonzero(tokens >= 0)
    rest[row, tokens[row, place]] = 0
    return rest


def _coins(tree: Tree, target: IntRows, tokens: Ints) -> tuple[U64, Ints]:
    """Return the coin that keeps each candidate when those before it are refused, and their numbers."""
    coins, tries = np.zeros(tokens.shape, dtype=np.uint64), (tokens >= 0).sum(axis=1)
    for row, last in enumerate(tries.tolist()):
        total, left = int(target[row].sum()), tree.acc
        for place in range(last):
            mass = Fraction(int(target[row, tokens[row, place]]), total)
            coins[row, place] = ALWAYS if mass >= min(tree.single, left) else keep_coin(mass, left)
            left -= mass
    return coins, tries


def _ratio(p: IntRows, q: IntRows) -> Floats:
    ratio = np.where(p > 0, np.inf, 0.0)
    ratio[q > 0] = p[q > 0] / q[q > 0]
    return ratio


def _ranks(p: IntRows, q: IntRows, ratio: Floats, order: Ints) -> tuple[Ints, Records]:
    """Return where each node's entries begin, and where the last ones end, with the entries."""
    size = (p > 0).sum(axis=1)
    begin = np.cumsum([0, *(size + 1)])
    rank = _records(RANK, (begin[-1],), np.inf, 0.0, 0.0, 0)
    for row, (first, n) in enumerate(zip(begin, size, strict=False)):
        token, entries = order[row, :n], rank[first : first + n + 1]
        entries["token"][:-1], entries["edge"][1:] = token, ratio[row, token]
        for name, part in (("q", q[row]), ("excess", p[row] - q[row])):
            entries[name][1:] = part[token].cumsum() / p[row].sum()
    return begin, rank


def _k_seq(p: IntRows, q: IntRows, n: Ints) -> tuple[Floats, Floats]:
    """Return gamma, and F: how often in n drafts each is reached, on average."""
    gamma = np.array([gamma_steps(*row) for row in zip(p, q, n.tolist(), strict=True)]) / GAMMA_STEPS
    total = p.sum(axis=1, keepdims=True)
    tested = np.minimum((q / total).astype(np.float64), (p / total).astype(np.float64) / gamma[:, None])
    refused = 1.0 - np.minimum(tested.sum(axis=1), 1.0)
    return gamma, np.array([sum(r**i for i in range(m)) for r, m in zip(refused, n, strict=True)])
