"""How many drafts a target call keeps: exactly for any pair, and in closed form for one rate.

The closed form takes one acceptance rate for every draft, independently. A model's rate depends on the
context, kept drafts lead to other contexts than refused ones, and the closed form is then wrong; the forward
pass over the pair's states is not.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simkit.errors import TooLargeError
from simkit.laws.checks import whole_number
from simkit.laws.pair import Pair
from simkit.laws.rows import probabilities
from simkit.rules.chain import Chain
from simkit.rules.choose import Block, Text, walk
from simkit.rules.registry import find_text

Floats = NDArray[np.float64]

MOST_TOKENS = 128
MOST_WALKED, MOST_BRANCHES = 1_000, 100_000
"""States in which calls begin, and branches of each call, that are walked at most: some ten seconds."""


@dataclass(frozen=True, eq=False)
class ExpectedCalls:
    """Expected counts of a decode, to hold against a tally's per trial.

    Parameters
    ----------
    accepted : float64 array, shape (K + 1,)
        Target calls by the number of drafts they keep; calls are run to their end.
    judged : float64 array, shape (K,)
        Drafts put to the accept test, by slot.
    """

    accepted: Floats
    judged: Floats

    @property
    def calls(self) -> float:
        """Target calls a decode takes."""
        return float(self.accepted.sum())

    @property
    def acceptance(self) -> float:
        """Share of judged drafts that are kept."""
        return float(self._kept / self.judged.sum())

    @property
    def tokens_per_call(self) -> float:
        """1 + drafts kept in a target call."""
        return 1.0 + float(self._kept / self.calls)

    @property
    def acceptance_by_slot(self) -> Floats:
        """P(kept at slot i given kept before), shape (K,); NaN at a slot that is never judged."""
        kept = self.accepted[::-1].cumsum()[::-1][1:]
        rates: Floats = np.divide(kept, self.judged, out=np.full(len(kept), np.nan), where=self.judged > 0)
        return rates

    @property
    def _kept(self) -> float:
        return float(self.accepted @ np.arange(len(self.accepted)))


def expected_calls(
    pair: Pair, rule: str | Text = "token", *, draft_length: int, length: int
) -> ExpectedCalls:
    """Return the expected calls of a decode, by a forward pass over positions, slots and states.

    For a rule that is no chain rule, the law of a call is walked at each state in which one can begin.

    Parameters
    ----------
    pair : Pair
        The laws.
    rule : str or callable
        See `simkit.rules.registry.find_text`.
    draft_length, length : int
        K drafts for one call, L tokens in a decode.

    Raises
    ------
    InputError, UnknownNameError
        For lengths out of range, a pair without draft rows for K slots, or an unknown rule.
    TooLargeError
        For a rule with too many branches to walk.

    Examples
    --------
    >>> pair = Pair.from_weights([1, 2], [2, 1])
    >>> round(expected_calls(pair, draft_length=2, length=6).tokens_per_call, 6)  # 1 + 2/3 + 4/9
    2.111111
    """
    draft_length = Block(pair, 0, draft_length).draft_length
    length, text = whole_number(length, "length", 1), find_text(rule)
    if not isinstance(text, Chain):
        return _by_walking(pair, text, draft_length, length)
    kept, corrected, bonus = _moves(pair, text, draft_length)
    accepted, judged = np.zeros(draft_length + 1), np.zeros(draft_length)
    # mass that starts a block at this position and the K + 1 next ones, in a ring
    starts = np.zeros((draft_length + 2, pair.states))
    starts[0] = pair.start()
    for position in range(length):
        mass = _running(pair, starts[position % len(starts)].copy())
        starts[position % len(starts)] = 0.0
        for slot in range(draft_length):
            judged[slot] += mass.sum()
            refused = mass * (1.0 - kept[slot].share)
            accepted[slot] += refused.sum()
            starts[(position + slot + 1) % len(starts)] += corrected[slot].step(refused)
            mass = kept[slot].step(mass)
            if pair.end is not None:
                accepted[slot + 1] += mass[pair.end]
            mass = _running(pair, mass)
        accepted[draft_length] += mass.sum()
        starts[(position + draft_length + 1) % len(starts)] += bonus.step(mass)
    return ExpectedCalls(accepted, judged)


def known_calls(
    pair: Pair, rule: str | Text = "token", *, draft_length: int, length: int
) -> ExpectedCalls | None:
    """Return `expected_calls`, or None where it takes more than seconds to walk a rule's branches.

    Parameters
    ----------
    pair, rule, draft_length, length
        As in `expected_calls`.

    Examples
    --------
    >>> pair = Pair.from_weights([1] * 500, [1] * 500)
    >>> known_calls(pair, "block", draft_length=4, length=6) is None
    True
    """
    text = find_text(rule)
    if not isinstance(text, Chain) and pair.vocabulary > MOST_TOKENS:
        return None
    try:
        return expected_calls(pair, text, draft_length=draft_length, length=length)
    except TooLargeError:
        return None


def _by_walking(pair: Pair, text: Text, draft_length: int, length: int) -> ExpectedCalls:
    """Return the expected calls of a rule that is no chain rule."""
    accepted, judged = np.zeros(draft_length + 1), np.zeros(draft_length)
    laws: dict[int, dict[tuple[int, int, int], float]] = {}
    starts = [dict.fromkeys(np.unique(pair.initial).tolist(), 0.0), *({} for _ in range(length - 1))]
    for state in pair.initial.tolist():
        starts[0][state] += 1.0 / len(pair.initial)
    for position, here in enumerate(starts):
        for state, mass in here.items():
            if state == pair.end:
                continue
            if state not in laws:
                if len(laws) >= MOST_WALKED:
                    raise TooLargeError(
                        f"a call can begin in more than {MOST_WALKED} states; at most so many are walked for "
                        "a rule that is no chain rule"
                    )
                laws[state] = _outcomes(text, Block(pair, state, draft_length))
            for (kept, tokens, after), chance in laws[state].items():
                accepted[kept] += mass * chance
                judged[: min(tokens, draft_length)] += mass * chance
                if position + tokens < length:
                    following = starts[position + tokens]
                    following[after] = following.get(after, 0.0) + mass * chance
    return ExpectedCalls(accepted, judged)


def _outcomes(text: Text, model: Block) -> dict[tuple[int, int, int], float]:
    """Return the law of (drafts kept, tokens emitted, state after) of a call."""
    law: dict[tuple[int, int, int], Fraction] = {}
    for (tokens, kept), mass in walk(text, model, most=MOST_BRANCHES).items():
        key = kept, len(tokens), model.state_after(tokens)
        law[key] = law.get(key, Fraction(0)) + mass
    return {key: float(mass) for key, mass in law.items()}


def _running(pair: Pair, mass: Floats) -> Floats:
    """Return the mass that has not reached the end state."""
    if pair.end is None:
        return mass
    mass = mass.copy()
    mass[pair.end] = 0.0
    return mass


class _Moves:
    """Where mass goes when each state emits a token with weights of one law, as `Pair.step` says.

    Holds the tokens that can occur only: at a state of an n-gram model nine in ten cannot.

    Parameters
    ----------
    pair : Pair
        The automaton.
    law : float64 array, shape (S, V)
        Weight of each token at each state.
    """

    def __init__(self, pair: Pair, law: Floats) -> None:
        self.share: Floats = law.sum(axis=1)
        self._states = pair.states
        if pair.next_state.shape[1] == 1:
            self._source, self._weight = np.arange(pair.states, dtype=np.int64), self.share
            self._landing = pair.next_state[:, 0]
        else:
            self._source, token = np.nonzero(law)
            self._weight, self._landing = law[self._source, token], pair.next_state[self._source, token]

    def step(self, mass: Floats) -> Floats:
        """Return the mass on each state after the token."""
        flow = mass[self._source] * self._weight
        moved = np.bincount(self._landing, weights=flow, minlength=self._states)
        return np.asarray(moved, dtype=np.float64)


def _moves(pair: Pair, text: Chain, draft_length: int) -> tuple[list[_Moves], list[_Moves], _Moves]:
    """Return by slot the moves of kept tokens and of their replacements, and the moves of the bonus token."""
    kept: list[_Moves] = []
    corrected: list[_Moves] = []
    bonus: Floats = np.empty(0)
    for slot in range(pair.slots):
        step = text.rule(pair.rows[pair.target], pair.rows[pair.draft[:, slot]])
        keep, replacement = step.split()
        kept.append(_Moves(pair, keep))
        corrected.append(_Moves(pair, replacement))
        bonus = probabilities(step.bonus)
    again = draft_length if pair.slots == 1 else 1
    return kept * again, corrected * again, _Moves(pair, bonus)


def tokens_per_call(acceptance: ArrayLike, draft_length: ArrayLike) -> Floats:
    """Return (1 - a^(K+1)) / (1 - a), the tokens of one target call when every draft is kept at rate a.

    Parameters
    ----------
    acceptance : array_like of float
        Rate a in [0, 1]; at 1 the limit K + 1.
    draft_length : array_like of int
        Drafts K for one call; broadcasts with `acceptance`.

    References
    ----------
    Leviathan et al. 2023 (arXiv 2211.17192), equation 1.

    Examples
    --------
    >>> tokens_per_call([0.0, 0.5, 1.0], 2)
    array([1.  , 1.75, 3.  ])
    """
    a, k = np.broadcast_arrays(np.asarray(acceptance, dtype=np.float64), np.asarray(draft_length))
    powers = np.arange(int(k.max()) + 1)
    total: Floats = np.where(powers <= k[..., None], a[..., None] ** powers, 0.0).sum(axis=-1)
    return total


def speedup(acceptance: ArrayLike, draft_length: ArrayLike, cost: ArrayLike) -> Floats:
    """Return the expected speed-up over plain decoding when a draft call costs `cost` target calls.

    Parameters
    ----------
    acceptance, draft_length
        As in `tokens_per_call`.
    cost : array_like of float
        Time of one draft call over that of one target call, >= 0. Verifying K + 1 tokens is taken to cost
        as much as decoding one.

    References
    ----------
    Leviathan et al. 2023 (arXiv 2211.17192), theorem 3.8.

    Examples
    --------
    >>> round(float(speedup(0.8, 4, 0.05)), 4)
    2.8013
    """
    result: Floats = tokens_per_call(acceptance, draft_length) / (
        np.asarray(cost) * np.asarray(draft_length) + 1.0
    )
    return result


def best_draft_length(acceptance: float, cost: float, longest: int = 64) -> tuple[int, float]:
    """Return the draft length with the largest expected speed-up, and that speed-up; (0, 1.0) if none gains.

    Parameters
    ----------
    acceptance, cost : float
        As in `speedup`.
    longest : int
        The longest draft tried.

    Examples
    --------
    >>> best_draft_length(0.2, 0.5)
    (0, 1.0)
    >>> best_draft_length(0.8, 0.05)[0]
    8
    """
    lengths = np.arange(1, longest + 1)
    gains = speedup(acceptance, lengths, cost)
    best = int(np.argmax(gains))
    return (int(lengths[best]), float(gains[best])) if gains[best] > 1.0 else (0, 1.0)
