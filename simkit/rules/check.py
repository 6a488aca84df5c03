"""Check a rule of one's own: exact laws over many small pairs, and the smallest pair on which it fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simkit.errors import InputError, TooLargeError
from simkit.laws.checks import whole_number
from simkit.laws.pair import Pair
from simkit.rules.choose import Block, Text, branches
from simkit.rules.exact import exact_law, no_drafts
from simkit.rules.guard import guarded

MOST_BRANCHES = 20_000
"""Pairs on which one target call has more branches than this are left out."""

MOST_CELLS = 300
_LARGEST_WEIGHT = 5

Progress = Callable[[int, int], None]
Weights = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Case:
    """A small pair with a draft length and a length.

    Parameters
    ----------
    target, draft : tuple of tuples of int, S and S * slots rows of V weights
        Rows by state, and the draft's by slot within a state; state 0 is where a decode starts.
    next_state : tuple of tuples of int, S rows of V states
        The state after each token.
    ends : bool
        Whether the last state ends the text.
    draft_length, length : int
        K and L.
    slots : int
        Draft rows of each state: 1, or K, by slot.
    """

    target: Weights
    draft: Weights
    next_state: Weights
    ends: bool
    draft_length: int
    length: int
    slots: int = 1

    @property
    def pair(self) -> Pair:
        """The pair."""
        states = len(self.target)
        return Pair(
            rows=np.array([*self.target, *self.draft]),
            target=np.arange(states),
            draft=np.arange(states * self.slots).reshape(states, self.slots) + states,
            next_state=np.array(self.next_state),
            initial=np.array([0]),
            end=states - 1 if self.ends else None,
            name="case",
        )

    @property
    def size(self) -> tuple[int, ...]:
        """What makes one case smaller than another."""
        weights = sum(map(sum, (*self.target, *self.draft)))
        shape = self.draft_length, self.length, len(self.target), len(self.target[0]), self.slots
        return *shape, self.ends, weights


@dataclass(frozen=True)
class Counterexample:
    """A case on which a rule is not lossless, or fails.

    Parameters
    ----------
    case : Case
        The case.
    error : str
        What the rule raised; empty where it has a law.
    law, target : object arrays of Fraction, shape (V,) * L, or None
        The rule's law and the target's.
    """

    case: Case
    error: str
    law: NDArray[Any] | None
    target: NDArray[Any] | None

    @property
    def total_variation(self) -> Fraction | None:
        """Distance of the two laws; None where the rule has none."""
        if self.law is None or self.target is None:
            return None
        return Fraction(abs(self.law - self.target).sum()) / 2


@dataclass(frozen=True)
class Checked:
    """What a check found.

    Parameters
    ----------
    cases : int
        Cases on which the rule's law was compared with the target's.
    left_out : int
        Cases with too many branches.
    telling : int
        Those of them with two tokens or more, and two drafts or more.
    counterexample : Counterexample or None
        The smallest that was found; None where all laws are equal.
    """

    cases: int
    left_out: int
    telling: int
    counterexample: Counterexample | None

    @property
    def enough(self) -> bool:
        """Whether equality on these cases says something: most were compared, and some are telling."""
        return self.left_out <= self.cases and self.telling > 0


def check_rule(text: Text, *, cases: int = 300, seed: int = 0, progress: Progress | None = None) -> Checked:
    """Return whether a rule's joint law is exactly the target's on small pairs, drawn at random.

    Vocabularies of 1 to 4 tokens, 1 to 3 drafts for a call, 1 to 3 states whose rows differ, with and without
    an end of the text, over the border of two calls. Equality is that of fractions. The first case that
    fails is made smaller as long as it still fails.

    Parameters
    ----------
    text : callable
        The rule; see `simkit.rules.choose.Text`.
    cases : int
        How many cases to draw, small ones first.
    seed : int
        Another seed draws other cases.
    progress : callable or None
        Called with cases done and their number.

    Raises
    ------
    InputError
        For a number of cases that is not from 1 to 100,000, or a negative seed.

    Examples
    --------
    >>> from simkit.rules.registry import find_text
    >>> check_rule(find_text("token"), cases=20).counterexample is None
    True
    >>> found = check_rule(find_text("replace-from-target"), cases=20).counterexample
    >>> found.case.target, found.case.draft, str(found.total_variation)
    (((1, 1),), ((0, 1),), '1/4')
    """
    whole_number(cases, "cases", 1, 100_000)
    whole_number(seed, "seed", 0)
    text = guarded(text)
    compared = left_out = telling = 0
    for done, case in enumerate(sorted(_draw(cases, seed), key=lambda case: case.size)):
        if progress is not None:
            progress(done, cases)
        try:
            found = _failure(text, case)
        except TooLargeError:
            left_out += 1
            continue
        compared += 1
        telling += case.draft_length > 1 and len(case.target[0]) > 1
        if found is not None:
            return Checked(compared, left_out, telling, _smallest(text, found))
    if progress is not None:
        progress(cases, cases)
    return Checked(compared, left_out, telling, None)


def _draw(cases: int, seed: int) -> Iterator[Case]:
    """Yield random cases."""
    rng = np.random.default_rng(seed)

    def table(rows: int, columns: int, most: int) -> Weights:
        return tuple(tuple(row) for row in rng.integers(0, most + 1, (rows, columns)).tolist())

    def weights(rows: int, columns: int) -> Weights:
        drawn = table(rows, columns, _LARGEST_WEIGHT)
        return tuple(row if any(row) else (1,) * columns for row in drawn)

    for _ in range(cases):
        V, S, K = (int(n) for n in rng.integers(1, (5, 4, 4)))
        length = min(K + int(rng.integers(1, 3)), int(np.log(MOST_CELLS) / np.log(max(V, 2))))
        ends = S > 1 and rng.random() < 0.25
        slots = K if rng.random() < 0.25 else 1
        rows = weights(S, V), weights(S * slots, V)
        yield Case(*rows, table(S, V, S - 1), bool(ends), K, length, slots)


def _failure(text: Text, case: Case) -> Counterexample | None:
    """Return the case as a counterexample, or None where the law is the target's."""
    pair = case.pair
    try:
        model = Block(pair, 0, case.draft_length)
        if branches(text, model, probes=100, enough=MOST_BRANCHES) > MOST_BRANCHES:
            raise TooLargeError("too many branches")
        law = exact_law(pair, text, draft_length=case.draft_length, length=case.length)
    except TooLargeError:
        raise
    except InputError as error:  # what a rule raises or returns wrongly is a finding
        return Counterexample(case, str(error), None, None)
    target = exact_law(pair, no_drafts, draft_length=1, length=case.length)
    return None if (law == target).all() else Counterexample(case, "", law, target)


def _smallest(text: Text, found: Counterexample) -> Counterexample:
    """Return a counterexample of which no single step makes a smaller one."""
    for case in _smaller(found.case):
        try:
            failure = _failure(text, case)
        except TooLargeError:
            continue
        if failure is not None and bool(failure.error) == bool(found.error):
            return _smallest(text, failure)
    return found


def _smaller(case: Case) -> Iterator[Case]:
    """Yield the cases one step smaller."""
    if case.slots > 1:
        yield replace(case, draft=case.draft[:: case.slots], slots=1)
    if case.draft_length > 1 and case.slots == 1:
        yield replace(case, draft_length=case.draft_length - 1)
    if case.length > 1:
        yield replace(case, length=case.length - 1)
    yield from _one_state(case)
    if len(case.target[0]) > 2:
        for token in range(len(case.target[0])):
            target, draft, next_state = (
                _without(rows, token) for rows in (case.target, case.draft, case.next_state)
            )
            if all(map(any, (*target, *draft))):
                yield replace(case, target=target, draft=draft, next_state=next_state)
    for side in ("target", "draft"):
        for rows in _lighter(case.target if side == "target" else case.draft):
            yield replace(case, target=rows) if side == "target" else replace(case, draft=rows)


def _one_state(case: Case) -> Iterator[Case]:
    """Yield each state of several by itself."""
    for kept in range(len(case.target)) if len(case.target) > 1 else ():
        yield replace(
            case,
            target=case.target[kept : kept + 1],
            draft=case.draft[kept * case.slots : (kept + 1) * case.slots],
            next_state=((0,) * len(case.target[0]),),
            ends=False,
        )


def _lighter(rows: Weights) -> Iterator[Weights]:
    """Yield the rows with one weight made smaller."""
    for at, row in enumerate(rows):
        for token, weight in enumerate(row):
            for less in sorted({0, weight // 2, weight - 1} - {weight, -1}):
                changed = (*row[:token], less, *row[token + 1 :])
                if any(changed):
                    yield (*rows[:at], changed, *rows[at + 1 :])


def _without(rows: Weights, token: int) -> Weights:
    return tuple((*row[:token], *row[token + 1 :]) for row in rows)
