"""The exact laws of a rule on a pair: of the tokens it emits, and of how many drafts a call keeps."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simkit.errors import InputError, TooLargeError
from simkit.laws.checks import whole_number
from simkit.laws.pair import Pair
from simkit.rules.chain import Chain, add
from simkit.rules.choose import MOST_BRANCHES, Block, Choose, Emitted, Text, walk
from simkit.rules.registry import find_text

Tokens = tuple[int, ...]

MOST_CELLS = 1_000_000
LONGEST = 32


def exact_law(pair: Pair, rule: str | Text, *, draft_length: int, length: int) -> NDArray[Any]:
    """Return the exact joint law of the first `length` tokens that a rule emits, for each request.

    Calls follow each other until `length` tokens are out; the last call drafts K tokens like the others, and
    what it emits behind `length` is dropped. The law of a call is taken once for each state in which calls
    begin: by `Chain.law` for chain rules, by `walk` for any other text.

    Parameters
    ----------
    pair : Pair
        The laws.
    rule : str or callable
        See `simkit.rules.registry.find_text`.
    draft_length, length : int
        K drafts for one call, tokens of the sequence.

    Returns
    -------
    object array of Fraction, shape (V,) * length, or (R,) + (V,) * length for a pair of R > 1 requests
        Probability of each sequence. A decode that ends before `length` tokens is in no cell, as in
        `Pair.joint_law`, so the cells sum to less than one where that can happen; one that ends with its
        last token is in its cell.

    Raises
    ------
    InputError
        When the law has more than a million cells, or the calls more than two million branches over all
        states in which one can begin: before any work for chain rules, early for other texts (see `walk`).
    UnknownNameError
        For an unknown rule.

    Examples
    --------
    >>> pair = Pair.from_weights([1, 2], [2, 1])
    >>> exact_law(pair, "block", draft_length=2, length=2)
    array([[Fraction(1, 9), Fraction(2, 9)],
           [Fraction(2, 9), Fraction(4, 9)]], dtype=object)
    """
    text = find_text(rule)
    length = whole_number(length, "length", 1, LONGEST)
    draft_length = Block(pair, 0, draft_length).draft_length  # refused here, before any work
    cells = len(pair.initial) * pair.vocabulary**length
    if cells > MOST_CELLS:
        raise TooLargeError(
            f"the exact law of {length} tokens has {cells:,} cells ({len(pair.initial)} requests, vocabulary "
            f"{pair.vocabulary}); at most {MOST_CELLS:,}: take a smaller length"
        )
    calls = _Calls(pair, text, draft_length, _most_branches(pair, text, draft_length, length))
    law = np.full((len(pair.initial), *(pair.vocabulary,) * length), Fraction(0), dtype=object)
    for request, state in enumerate(pair.initial.tolist()):
        for tokens, mass in _decode(calls, state, length).items():
            law[(request, *tokens)] = mass
    return law if len(law) > 1 else law[0]


def no_drafts(model: Block, choose: Choose) -> Emitted:
    """Emit one token of the target's: decoding without speculation, the law that lossless rules have.

    Parameters
    ----------
    model, choose
        See `simkit.rules.choose`.

    Examples
    --------
    >>> exact_law(Pair.from_weights([1, 2], [2, 1]), no_drafts, draft_length=1, length=1)
    array([Fraction(1, 3), Fraction(2, 3)], dtype=object)
    """
    return Emitted((choose(model.target(())),), accepted=0)


def exact_accepted(
    pair: Pair, rule: str | Text, *, draft_length: int, state: int | None = None
) -> list[Fraction]:
    """Return P(a target call keeps k drafts) for k = 0 .. K, exactly.

    Parameters
    ----------
    pair : Pair
        The laws.
    rule : str or callable
        See `simkit.rules.registry.find_text`.
    draft_length : int
        K drafts for the call.
    state : int or None
        State in which the call begins; None for the mean over the pair's requests.

    Raises
    ------
    InputError
        For a state that the pair does not have or that ends the text, or a call of more than two million
        branches.
    UnknownNameError
        For an unknown rule.

    Examples
    --------
    >>> pair = Pair.from_weights([1, 2], [2, 1])
    >>> for rule in ("token", "block"):
    ...     accepted = exact_accepted(pair, rule, draft_length=2)
    ...     print(str(sum(k * mass for k, mass in enumerate(accepted))))
    10/9
    11/9
    """
    text = find_text(rule)
    draft_length = Block(pair, 0, draft_length).draft_length
    if state is not None:
        whole_number(state, "state", 0, pair.states - 1)
    starts = pair.initial.tolist() if state is None else [state]
    if pair.end in starts:
        raise InputError(f"state {pair.end} ends the text, so no call begins there; give state=")
    law = [Fraction(0)] * (draft_length + 1)
    for start in sorted(set(starts)):
        share = Fraction(starts.count(start), len(starts))
        for kept, mass in enumerate(_accepted(text, Block(pair, start, draft_length))):
            law[kept] += share * mass
    return law


def _accepted(text: Text, model: Block) -> list[Fraction]:
    if isinstance(text, Chain):
        return text.accepted(model)
    law = [Fraction(0)] * (model.draft_length + 1)
    for emitted, mass in walk(text, model).items():
        law[emitted.accepted] += mass
    return law


class _Calls:
    """The law of a call's tokens by the state in which it begins, each taken once.

    Parameters
    ----------
    pair : Pair
        The laws.
    text : callable
        The rule.
    draft_length : int
        Drafts K for a call.
    most_branches : int
        Branches at most for one call.
    """

    def __init__(self, pair: Pair, text: Text, draft_length: int, most_branches: int) -> None:
        self.pair = pair
        self._text = text
        self._draft_length = draft_length
        self._most_branches = most_branches
        self._models: dict[int, Block] = {}
        self._laws: dict[tuple[int, int], dict[Tokens, Fraction]] = {}

    def model(self, state: int) -> Block:
        if state not in self._models:
            self._models[state] = Block(self.pair, state, self._draft_length)
        return self._models[state]

    def law(self, state: int, most: int) -> dict[Tokens, Fraction]:
        """Return the law of the first `most` tokens of a call that begins in a state."""
        if (state, most) not in self._laws:
            self._laws[state, most] = self._take(state, most)
        return self._laws[state, most]

    def _take(self, state: int, most: int) -> dict[Tokens, Fraction]:
        longest = self._draft_length + 1
        if most > longest:
            return self.law(state, longest)
        if isinstance(self._text, Chain):
            return self._text.law(self.model(state), most)
        law: dict[Tokens, Fraction] = {}
        if most == longest:
            for emitted, mass in walk(self._text, self.model(state), most=self._most_branches).items():
                add(law, emitted.tokens, mass)
        else:
            for tokens, mass in self.law(state, longest).items():
                add(law, tokens[:most], mass)
        return law


def _most_branches(pair: Pair, text: Text, draft_length: int, length: int) -> int:
    """Return how many branches each call may have; refuse a chain rule whose closed form needs more."""
    states = _reachable(pair, length - 1)
    most = MOST_BRANCHES // states
    needed = pair.vocabulary ** min(draft_length + 1, length) if isinstance(text, Chain) else 1
    if needed > most:
        raise TooLargeError(
            f"the exact law needs {needed:,} sequences of a call from each of {states:,} states; at most "
            f"{MOST_BRANCHES:,} in all: take a smaller vocabulary, draft_length or length, or simulate"
        )
    return most


def _reachable(pair: Pair, steps: int) -> int:
    """Return how many states a decode can be in within some steps."""
    reached = frontier = np.unique(pair.initial)
    for _ in range(steps):
        frontier = np.unique(pair.next_state[frontier])
        reached = np.union1d(reached, frontier)
    return len(reached)


def _decode(calls: _Calls, state: int, length: int) -> dict[Tokens, Fraction]:
    """Return the law of the first `length` tokens of a decode, merged where calls begin."""
    begin: list[dict[tuple[int, Tokens], Fraction]] = [{} for _ in range(length + 1)]
    begin[0][state, ()] = Fraction(1)
    for position in range(length):
        for (start, tokens), mass in begin[position].items():
            if start == calls.pair.end:
                continue
            for more, chance in calls.law(start, length - position).items():
                inside = more[: length - position]
                after = calls.model(start).state_after(inside)
                add(begin[position + len(inside)], (after, tokens + inside), mass * chance)
    return {tokens: mass for (_, tokens), mass in begin[length].items()}
