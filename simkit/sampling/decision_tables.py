"""Decision tables: any rule's text on a small pair, as trees of decisions in arrays.

A text decides by `choose` alone, so the decisions of the calls that begin in a state form a tree: a node for
each question, an edge for each answer that has a probability, a leaf for what the call emits. The text is run
once along every branch of it, as in `simkit.rules.choose.walk`; after that a kernel follows random words down
the tree, and no rule has to be written a second time.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simkit.errors import InputError, TooLargeError
from simkit.laws.pair import Index, Pair
from simkit.rules.choose import (
    ALONG,
    COIN,
    MOST_BRANCHES,
    RACE,
    Block,
    Emitted,
    Question,
    Text,
    branches,
    decisions,
)
from simkit.rules.coupling import Weights
from simkit.rules.draws import WORD, alias_table, keep_coin

Records = NDArray[np.void]
Rows = Sequence[tuple[float, ...]]

NODE = np.dtype([(name, np.int32) for name in ("kind", "number", "table", "size", "edge")])
CELL = np.dtype([("coin", np.uint64), ("kept", np.int32), ("other", np.int32)])
CLOCK = np.dtype([("q", np.float64), ("r", np.float64), ("token", np.int32), ("answer", np.int32)])
LEAF = np.dtype([(name, np.int32) for name in ("token", "length", "accepted")])

_FREE = 2_000
_PROBES = 1_000


@dataclass(frozen=True, eq=False)
class DecisionTables:
    """What the kernel of decisions reads: a tree for each state in which a call can begin.

    A question with one possible answer has no node, so there are fewer nodes than branches. Nodes that ask
    the same share a table, and branches that emit the same share a leaf.

    Parameters
    ----------
    root : int32 array, shape (S,)
        Where the tree of each state begins: at a node, or at ``~leaf``; 0 for a state in which no call
        begins.
    node : array of `NODE`
        The question's kind and number (see `simkit.rules.choose.Question`), where its table begins and how
        long it is, and where its edges begin.
    edge : int32 array
        Where each answer leads: to a node, or to ``~leaf``.
    cell : array of `CELL`
        Tables of choices and coins. For a `CHOICE` the cells of an alias table: a coin, the answer when it is
        met, and the other answer. A `COIN` is one such cell. For an `ALONG` an answer at each cell, and in
        the place of the coin the last word that draws it.
    clock : array of `CLOCK`
        Tables of races: a token with its weights q and r, and where the answers begin in which it wins under
        q.
    answer : int32 array
        Answers of a race by the winner under r.
    leaf : array of `LEAF`
        Where the tokens of a call begin, how many there are, and how many drafts it keeps.
    token : int32 array
        Tokens of the leaves.
    """

    root: Index
    node: Records
    edge: Index
    cell: Records
    clock: Records
    answer: Index
    leaf: Records
    token: Index

    def private(self) -> DecisionTables:
        """Return the tables a thread should read: these, which may be large."""
        return self


MOST_TOKENS = 300


@lru_cache(maxsize=4)
def decision_tables(pair: Pair, text: Text, draft_length: int, rule: str) -> DecisionTables:
    """Return the decisions of a text on a pair, and keep them for the next run on the same pair.

    Parameters
    ----------
    pair : Pair
        The laws and the automaton.
    text : callable
        The rule.
    draft_length : int
        Drafts K for a call.
    rule : str
        What to call the rule in an error.

    Raises
    ------
    TooLargeError
        For a vocabulary of more than 300 tokens, where a single branch takes long; or for calls of more than
        two million branches over all states in which one can begin: after 2000 of them if probes say so.
    InputError
        For a text that cannot be walked; see `simkit.rules.choose.walk`.

    Examples
    --------
    >>> from simkit.rules.matching import sampled_match
    >>> tables = decision_tables(Pair.from_weights([1, 2], [2, 1]), sampled_match, 1, "sampled-match")
    >>> len(tables.node), len(tables.leaf), len(tables.cell)
    (5, 6, 4)
    """
    if pair.vocabulary > MOST_TOKENS:
        raise TooLargeError(
            f"rule {rule!r} has no kernel of its own and is compiled for vocabularies of up to {MOST_TOKENS} "
            f'tokens; this one has {pair.vocabulary:,}: take a smaller one, or backend="reference", which '
            "draws from any rule, slowly"
        )
    return _Trees(pair, text, draft_length, rule).tables()


class _Columns:
    """Records that are appended one by one."""

    def __init__(self, dtype: np.dtype[np.void]) -> None:
        self._dtype = dtype
        self._columns: dict[str, array[Any]] = {name: array(dtype[name].char) for name in dtype.names or ()}

    def __len__(self) -> int:
        return len(next(iter(self._columns.values())))

    def append(self, *values: float) -> None:
        for column, value in zip(self._columns.values(), values, strict=True):
            column.append(value)

    def records(self) -> Records:
        records = np.empty(len(self), dtype=self._dtype)
        for name, column in self._columns.items():
            records[name] = column
        return records


class _Trees:
    """The trees of all states in which a call can begin; arguments as for `decision_tables`."""

    def __init__(self, pair: Pair, text: Text, draft_length: int, rule: str) -> None:
        self._pair, self._text, self._draft_length, self._rule = pair, text, draft_length, rule
        self._branches = 0
        self._node, self._cell, self._clock, self._leaf = map(_Columns, (NODE, CELL, CLOCK, LEAF))
        self._edge, self._answer, self._token = array("i"), array("i"), array("i")
        self._leaf_of: dict[Emitted, int] = {}
        self._table_of: dict[tuple[int, tuple[Any, ...]], tuple[int, int]] = {}

    def tables(self) -> DecisionTables:
        root = np.zeros(self._pair.states, dtype=np.int32)
        states = sorted(set(self._pair.initial.tolist()))
        known = {self._pair.end, *states}
        for state in states:
            root[state], following = self._grow(state)
            states.extend(sorted(following - known))
            known |= following
        records = (columns.records() for columns in (self._node, self._cell, self._clock, self._leaf))
        node, cell, clock, leaf = records
        edge, answer, token = (np.array(ints, np.int32) for ints in (self._edge, self._answer, self._token))
        return DecisionTables(root, node, edge, cell, clock, answer, leaf, token)

    def _grow(self, state: int) -> tuple[int, set[int]]:
        """Add the tree of a state; return its root, and the states in which its calls end."""
        model = Block(self._pair, state, self._draft_length)
        following = set()
        root = len(self._edge)
        loose = [root]  # edges that lead nowhere as yet, the next one last
        self._edge.append(0)
        for what in decisions(self._text, model):
            edge = loose.pop()
            if isinstance(what, Emitted):
                self._count_branch()
                self._edge[edge] = ~self._leaf_at(what)
                following.add(model.state_after(what.tokens))
            elif len(what.answers) == 1:
                loose.append(edge)
            else:
                self._edge[edge] = len(self._node)
                self._node.append(what.kind, what.number, *self._table_at(what), len(self._edge))
                loose.extend(reversed(range(len(self._edge), len(self._edge) + len(what.answers))))
                self._edge.extend([0] * len(what.answers))
        return self._edge[root], following

    def _leaf_at(self, emitted: Emitted) -> int:
        if emitted not in self._leaf_of:
            self._leaf_of[emitted] = len(self._leaf)
            self._leaf.append(len(self._token), len(emitted.tokens), emitted.accepted)
            self._token.extend(emitted.tokens)
        return self._leaf_of[emitted]

    def _table_at(self, question: Question) -> tuple[int, int]:
        """Return where the table of a question begins, and its length."""
        key = question.kind, question.asked
        if key not in self._table_of:
            rows: Rows
            if question.kind == RACE:
                table, (rows, answers) = self._clock, _clocks(question, len(self._answer))
                self._answer.extend(answers)
            else:
                table, rows = self._cell, _cells(question)
            self._table_of[key] = len(table), len(rows)
            for row in rows:
                table.append(*row)
        return self._table_of[key]

    def _count_branch(self) -> None:
        self._branches += 1
        if self._branches == _FREE and (about := self._about()) > MOST_BRANCHES:
            self._refuse(f"about {about:,}")
        if self._branches > MOST_BRANCHES:
            self._refuse(f"more than {MOST_BRANCHES:,}")

    def _about(self) -> int:
        """Return about how many branches the trees of all states have that a decode can be in."""
        states = _reachable(self._pair)
        probes = max(1, _PROBES // len(states))
        models = (Block(self._pair, state, self._draft_length) for state in states)
        return sum(branches(self._text, model, probes=probes) for model in models)

    def _refuse(self, how_many: str) -> None:
        raise TooLargeError(
            f"rule {self._rule!r} needs {how_many} branches in all states together; at most "
            f"{MOST_BRANCHES:,} are compiled: take a smaller vocabulary or draft_length, or "
            'backend="reference", which draws from any rule, slowly'
        )


def _cells(question: Question) -> Rows:
    answer = {outcome: place for place, outcome in enumerate(question.answers)}
    if question.kind == COIN:
        return [(keep_coin(*question.asked), answer[True], answer[False])]
    if question.kind == ALONG:
        return [(last, answer[index], 0) for index, last in _last_words(*question.asked)]
    # An index without weight has coin 0 and is nobody's alias: its answer is not read.
    table = enumerate(alias_table(*question.asked))
    return [(coin, answer.get(own, 0), answer.get(alias, 0)) for own, (coin, alias) in table]


def _last_words(weights: Weights, order: Sequence[int] | None) -> Iterator[tuple[int, int]]:
    """Yield each index that a word can draw along an order, with the last of its words."""
    total, running, last = sum(weights, Fraction(0)), Fraction(0), -1
    for index in range(len(weights)) if order is None else order:
        running += weights[index]
        beyond = ceil(running * WORD / total)
        if beyond - 1 > last:
            last = beyond - 1
            yield index, last
    if last < WORD - 1:
        raise InputError(
            "an order of choose.along leaves out an index with weight; it needs all that have any"
        )


def _clocks(question: Question, begin: int) -> tuple[Rows, list[int]]:
    """Return the clocks of a race, and its answers; these will begin at `begin`.

    Rounding may name winners (i, j) that have no probability: then i != j and q_i r_j <= q_j r_i, so token j
    has weight in both rows, and (j, j) is taken.
    """
    q, r = question.asked
    answer = {outcome: place for place, outcome in enumerate(question.answers)}
    tokens = [token for token in range(len(q)) if q[token] or r[token]]
    rows = [(float(q[k]), float(r[k]), k, begin + n * len(tokens)) for n, k in enumerate(tokens)]
    return rows, [answer.get((i, j), answer.get((j, j), 0)) for i in tokens for j in tokens]


def _reachable(pair: Pair) -> list[int]:
    """Return the states that a decode can be in before its end."""
    reached = np.zeros(pair.states, dtype=bool)
    frontier = np.unique(pair.initial)
    while len(frontier):
        reached[frontier] = True
        following = np.unique(pair.next_state[frontier])
        frontier = following[~reached[following] & (following != pair.end)]
    return np.flatnonzero(reached).tolist()
