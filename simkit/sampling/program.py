"""Program: a rule compiled for a pair, a draft length, a decode length and a seed."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from simkit.errors import InputError
from simkit.laws.checks import whole_number
from simkit.laws.pair import Index, Pair
from simkit.laws.rows import IntRows
from simkit.rules.registry import find_rule
from simkit.sampling import philox
from simkit.sampling.tables import AliasTables, Coins, alias_tables, coins

LONGEST_DRAFT = 64
LONGEST_DECODE = 2**31 - 1 - LONGEST_DRAFT
PRIVATE_CELLS = 2**17
"""Alias cells, 8 bytes each, up to which a thread gets packed tables of its own."""

LARGEST_JOINT = 4096
"""The joint law of the first tokens is counted while it has at most this many cells over all requests."""


@dataclass(frozen=True, eq=False)
class Program:
    """Everything a backend needs to draw trials, and nothing it has to decide.

    Parameters
    ----------
    pair : Pair
        The laws and the automaton.
    rule : str
        Name of the rule.
    draft_length : int
        Drafts K proposed for one target call.
    length : int
        Tokens L that a decode emits unless it reaches the end state.
    seed : int
        The user's seed.
    key : two ints
        Philox key of (seed, task).
    propose : AliasTables
        Draft laws, one row for each distinct law.
    accept : Coins
        Accept coins, one row for each pair of target and draft laws that meet at a state and slot.
    replace : AliasTables
        Replacement laws in the order of `accept`, then, if a bonus token can be emitted, bonus laws.
    propose_row, step_row : int32 arrays, shape (S, slots)
        Row of `propose`, and row of `accept` and `replace`, at each state and slot.
    bonus_row : int32 array, shape (S,)
        Row of `replace` that holds the bonus law at each state.
    joint_length : int
        How many first tokens are counted jointly; 0 for none.
    """

    pair: Pair
    rule: str
    draft_length: int
    length: int
    seed: int
    key: tuple[int, int]
    propose: AliasTables
    accept: Coins
    replace: AliasTables
    propose_row: Index
    step_row: Index
    bonus_row: Index
    joint_length: int

    @property
    def end(self) -> int:
        """The end state, or -1 where there is none."""
        return -1 if self.pair.end is None else self.pair.end

    def private(self) -> Program:
        """Return the program a thread should read: with packed tables of its own, where they are small.

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

    @property
    def task(self) -> dict[str, object]:
        """What identifies the task, beside seed and trial."""
        return task(self.pair, self.rule, self.draft_length, self.length)


def task(pair: Pair, rule: str, draft_length: int, length: int) -> dict[str, object]:
    """Return the identity of a task: all that changes its tokens, except seed and trial.

    Parameters
    ----------
    pair : Pair
        The laws.
    rule : str
        Name of the rule.
    draft_length, length : int
        K and L.

    Examples
    --------
    >>> sorted(task(Pair.from_weights([1], [1]), "token", 1, 1))
    ['draft_length', 'length', 'pair', 'rule']
    """
    return {"pair": pair.digest, "rule": rule, "draft_length": draft_length, "length": length}


def compile_program(pair: Pair, rule: str = "token", *, draft_length: int, length: int, seed: int) -> Program:
    """Return the program that draws from a pair by a rule.

    Parameters
    ----------
    pair : Pair
        The laws.
    rule : str
        Name of a registered rule.
    draft_length : int
        K, from 1 to 64.
    length : int
        L, 1 or more; decodes cross block boundaries.
    seed : int
        Any integer.

    Raises
    ------
    InputError, UnknownNameError
        For lengths out of range, a pair without draft rows for K slots, or an unknown rule.

    Examples
    --------
    >>> program = compile_program(Pair.from_weights([1, 2], [2, 1]), draft_length=1, length=1, seed=0)
    >>> program.accept.exact / 2**63
    array([[0.5, 1. ]])
    """
    if not isinstance(pair, Pair):
        raise InputError(f"pair is a {type(pair).__name__}; make one with Pair.from_rows(target=, draft=)")
    draft_length = whole_number(draft_length, "draft_length", 1, LONGEST_DRAFT)
    length = whole_number(length, "length", 1, LONGEST_DECODE)
    seed = _seed(seed)
    pair.check_draft_length(draft_length)
    if pair.end in pair.initial.tolist():
        raise InputError(
            f"a request starts in the end state {pair.end}, where nothing is drawn; leave it out"
        )
    meetings = pair.target[:, None].astype(np.int64) * len(pair.rows) + pair.draft
    codes, step_row = np.unique(meetings, return_inverse=True)
    step = find_rule(rule).rule(pair.rows[codes // len(pair.rows)], pair.rows[codes % len(pair.rows)])
    if getattr(step, "propose", np.empty(0)).shape != (len(codes), pair.vocabulary):
        raise InputError(f"rule {rule!r} must return a Step for all {len(codes)} pairs of rows at once")
    step_row = step_row.reshape(meetings.shape)
    propose, propose_of = _distinct(step.propose)
    bonus, bonus_of = (
        _distinct(step.bonus) if length > draft_length else (step.bonus[:0], np.zeros(len(codes), int))
    )
    return Program(
        pair=pair,
        rule=rule,
        draft_length=draft_length,
        length=length,
        seed=seed,
        key=philox.key(seed, task(pair, rule, draft_length, length)),
        propose=alias_tables(propose),
        accept=coins(*step.accept),
        replace=alias_tables(np.concatenate([step.correct, bonus])),
        propose_row=propose_of[step_row].astype(np.int32),
        step_row=step_row.astype(np.int32),
        bonus_row=(len(codes) + bonus_of[step_row[:, -1]]).astype(np.int32),
        joint_length=_joint_length(pair, length),
    )


def _seed(seed: int) -> int:
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
        raise InputError(f"seed={seed!r}; it needs an integer")
    return int(seed)


def _distinct(rows: IntRows) -> tuple[IntRows, NDArray[np.int64]]:
    """Return the distinct rows in order of first appearance, and where each given row is among them."""
    number: dict[bytes, int] = {}
    index = np.array([number.setdefault(row.tobytes(), len(number)) for row in rows], dtype=np.int64)
    first = np.unique(index, return_index=True)[1]
    return rows[first], index


def _joint_length(pair: Pair, length: int) -> int:
    """Return the largest m >= 2, at most `length`, with few enough cells; 0 where even two are too many."""
    requests, m = len(pair.initial), 0
    while m < length and m < 16 and requests * pair.vocabulary ** (m + 1) <= LARGEST_JOINT:
        m += 1
    return m if m >= 2 else 0
