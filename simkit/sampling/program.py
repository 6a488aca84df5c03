"""Program: a rule on a pair, with a draft length, a decode length and a seed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from simkit.errors import InputError
from simkit.laws.checks import whole_number
from simkit.laws.pair import Pair
from simkit.rules.block import block
from simkit.rules.chain import Chain
from simkit.rules.choose import LONGEST_DRAFT, Text
from simkit.rules.matching import shared_gumbel
from simkit.rules.multidraft import Tree
from simkit.rules.registry import find_text
from simkit.sampling import philox
from simkit.sampling.block_tables import block_tables
from simkit.sampling.chain_tables import chain_tables
from simkit.sampling.decision_tables import decision_tables
from simkit.sampling.tree_tables import race_tables, tree_tables

LONGEST_DECODE = 2**31 - 1 - LONGEST_DRAFT

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
    text : callable
        The rule's text.
    draft_length : int
        Drafts K proposed for one target call.
    length : int
        Tokens L that a decode emits unless it reaches the end state.
    seed : int
        The user's seed.
    key : two ints
        Philox key of (seed, task).
    joint_length : int
        How many first tokens are counted jointly; 0 for none.
    """

    pair: Pair
    rule: str
    text: Text
    draft_length: int
    length: int
    seed: int
    key: tuple[int, int]
    joint_length: int

    @property
    def end(self) -> int:
        """The end state, or -1 where there is none."""
        return -1 if self.pair.end is None else self.pair.end

    @cached_property
    def tables(self) -> Any:
        """What the kernel of this kind of rule reads, built when first asked for; each kernel knows its own.

        Raises
        ------
        InputError
            For a rule that no kernel has been written for, and that has too many branches to be compiled.
        """
        if isinstance(self.text, Chain):
            return chain_tables(self.pair, self.text.rule, self.rule, bonus=self.length > self.draft_length)
        if self.text is block:
            return block_tables(self.pair)
        if isinstance(self.text, Tree):
            return tree_tables(self.pair, self.text, self.draft_length)
        if self.text is shared_gumbel:
            return race_tables(self.pair)
        return decision_tables(self.pair, self.text, self.draft_length, self.rule)

    def private(self) -> Program:
        """Return the program a thread should read: with tables of its own, where that pays."""
        tables = self.tables.private()
        if tables is self.tables:
            return self
        own = replace(self)
        own.__dict__["tables"] = tables
        return own

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


def compile_program(
    pair: Pair, rule: str | Text = "token", *, draft_length: int, length: int, seed: int
) -> Program:
    """Return the program that draws from a pair by a rule.

    Parameters
    ----------
    pair : Pair
        The laws.
    rule : str or callable
        A name or a text; see `simkit.rules.registry.find_rule`. A text goes by the name of its function.
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
    >>> program.tables.accept.exact / 2**63
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
    text = find_text(rule)
    name = _name(rule)
    return Program(
        pair=pair,
        rule=name,
        text=text,
        draft_length=draft_length,
        length=length,
        seed=seed,
        key=philox.key(seed, task(pair, name, draft_length, length)),
        joint_length=_joint_length(pair, length),
    )


def _name(rule: str | Text) -> str:
    """Return what to call a rule: of a text the name of its function, or what it is written as."""
    if isinstance(rule, str):
        return rule
    function = rule.rule if isinstance(rule, Chain) else rule
    return getattr(function, "__qualname__", repr(function))


def _seed(seed: int) -> int:
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
        raise InputError(f"seed={seed!r}; it needs an integer")
    return int(seed)


def _joint_length(pair: Pair, length: int) -> int:
    """Return the largest m >= 2, at most `length`, with few enough cells; 0 where even two are too many."""
    requests, m = len(pair.initial), 0
    while m < length and m < 16 and requests * pair.vocabulary ** (m + 1) <= LARGEST_JOINT:
        m += 1
    return m if m >= 2 else 0
