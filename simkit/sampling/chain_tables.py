"""Chain tables: a chain rule on a pair as integer tables."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from simkit.errors import InputError
from simkit.laws.pair import Index, Pair
from simkit.laws.rows import IntRows
from simkit.rules.step import Rule, Step
from simkit.sampling.tables import AliasTables, Coins, alias_tables, coins

PRIVATE_CELLS = 2**17
"""Alias cells, 8 bytes each, up to which a thread gets packed tables of its own."""


@dataclass(frozen=True, eq=False)
class ChainTables:
    """What the kernels of chain rules read.

    Parameters
    ----------
    propose : AliasTables
        Draft laws, one row for each distinct law.
    accept : Coins
        Accept coins: for each test of a slot, one row for each pair of target and draft laws that meet at a
        state and slot.
    replace : AliasTables
        Replacement laws in the order of the first test's rows, then, if a bonus token can be emitted, bonus
        laws.
    others : int64 array, shape (C, V) or (0, V)
        Running sums of the replacement laws, for rules whose replacement differs from the refused token.
    tests : int
        Drafts that a slot tries at most.
    propose_row, step_row : int32 arrays, shape (S, slots)
        Row of `propose`, and row of `replace` and of the first test in `accept`, at each state and slot; test
        t is `meetings` times t rows further on.
    bonus_row : int32 array, shape (S,)
        Row of `replace` that holds the bonus law at each state.
    """

    propose: AliasTables
    accept: Coins
    replace: AliasTables
    others: IntRows
    tests: int
    propose_row: Index
    step_row: Index
    bonus_row: Index

    @property
    def meetings(self) -> int:
        """How many pairs of target and draft laws meet."""
        return len(self.accept.exact) // self.tests

    @property
    def redraws(self) -> bool:
        """Whether a replacement differs from the refused token."""
        return len(self.others) > 0

    def private(self) -> ChainTables:
        """Return the tables a thread should read: packed tables of its own, where they are small.

        Cores that read the same lines hinder each other where the tables fill a core's cache: at 32,768
        tokens two threads that share them are 1.7 times as fast as one, with tables of their own 1.8 times.
        Tables that no such cache holds are shared: there a copy costs time and gains nothing.
        """
        if self.propose.alias.size + self.replace.alias.size > PRIVATE_CELLS:
            return self
        propose, replacement = (
            AliasTables(Coins(tables.coins.exact), tables.alias) for tables in (self.propose, self.replace)
        )
        return replace(self, propose=propose, accept=Coins(self.accept.exact), replace=replacement)


def chain_tables(pair: Pair, rule: Rule, name: str, *, bonus: bool = True) -> ChainTables:
    """Return the tables of a chain rule on a pair.

    Parameters
    ----------
    pair : Pair
        The laws and the automaton.
    rule : callable
        The chain rule.
    name : str
        What to call it in an error.
    bonus : bool
        Whether a bonus token can be emitted.

    Raises
    ------
    InputError
        When the rule returns no `Step` for its rows.

    Examples
    --------
    >>> from simkit.rules.step import token_rule
    >>> chain_tables(Pair.from_weights([1, 2], [2, 1]), token_rule, "token").accept.exact / 2**63
    array([[0.5, 1. ]])
    """
    meetings = pair.target[:, None].astype(np.int64) * len(pair.rows) + pair.draft
    codes, step_row = np.unique(meetings, return_inverse=True)
    step: object = rule(pair.rows[codes // len(pair.rows)], pair.rows[codes % len(pair.rows)])
    if not isinstance(step, Step) or step.propose.shape != (len(codes), pair.vocabulary):
        raise InputError(f"rule {name!r} must return a Step for all {len(codes)} pairs of rows at once")
    step_row = step_row.reshape(meetings.shape)
    propose, propose_of = _distinct(step.propose)
    extra, bonus_of = _distinct(step.bonus) if bonus else (step.bonus[:0], np.zeros(len(codes), int))
    return ChainTables(
        propose=alias_tables(propose),
        accept=Coins(np.concatenate([coins(*test).exact for test in step.tests])),
        replace=alias_tables(np.concatenate([step.correct, extra])),
        others=(step.correct if step.redraw_refused else step.correct[:0]).cumsum(axis=1).astype(np.int64),
        tests=len(step.tests),
        propose_row=propose_of[step_row].astype(np.int32),
        step_row=step_row.astype(np.int32),
        bonus_row=(len(codes) + bonus_of[step_row[:, -1]]).astype(np.int32),
    )


def _distinct(rows: IntRows) -> tuple[IntRows, NDArray[np.int64]]:
    """Return the distinct rows in order of first appearance, and where each given row is among them."""
    number: dict[object, int] = {}
    keys = (tuple(row.tolist()) if rows.dtype.kind == "O" else row.tobytes() for row in rows)
    index = np.array([number.setdefault(key, len(number)) for key in keys], dtype=np.int64)
    first = np.unique(index, return_index=True)[1]
    return rows[first], index
