"""The token loop in plain Python: what a reader holds beside the paper, and what the others must equal.

Nothing here is shared with the fast backends but the addresses of the random words: alias tables, accept
coins and the loop are written a second time, over Python's integers and fractions. Chain rules are drawn
from their steps, any other rule from its text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from simkit.errors import InputError
from simkit.laws.pair import Pair
from simkit.rules.chain import Chain
from simkit.rules.choose import CHOICE, RACE, Block, sample
from simkit.rules.draws import draw, keep_coin, other_than
from simkit.rules.step import Rule, Step
from simkit.sampling import philox
from simkit.sampling.program import Program
from simkit.sampling.tally import Counts

Words = Callable[[int, int, int], tuple[int, int]]


@dataclass(frozen=True)
class Decision:
    """One draft put to the test, or one bonus token: all that a table of a block shows.

    Parameters
    ----------
    start, slot : int
        Output position at which the block starts, and drafts before this one.
    state : int
        State in which the token is drawn.
    draft : int or None
        The drafted token; None for a bonus token.
    coin : int or None
        The accept test's word, 64 bits; u = coin / 2**64.
    kept : bool
        Whether the draft was kept.
    token : int or None
        The token that comes out; None for a refused draft beyond the decode's end, or with another draft to
        try.
    """

    start: int
    slot: int
    state: int
    draft: int | None
    coin: int | None
    kept: bool
    token: int | None


class Call(NamedTuple):
    """What one target call adds to a decode.

    Parameters
    ----------
    emitted : list of (state, token)
        Tokens inside the decode, with the states that emit them.
    kept, judged : int
        Drafts kept, and slots whose drafts were put to the test.
    length : int
        Output positions that the call takes up, also beyond the decode's end.
    """

    emitted: list[tuple[int, int]]
    kept: int
    judged: int
    length: int


def block(program: Program, state: int, start: int, words: Words) -> Iterator[Decision]:
    """Yield the decisions of one target call of a chain rule (Leviathan et al. 2023, algorithm 1).

    Parameters
    ----------
    program : Program
        What to draw.
    state : int
        State at the block's start.
    start : int
        Output position at which the block starts.
    words : callable
        (start, slot, purpose) of a trial to two 64-bit words: see `simkit.sampling.philox.words`.
    """
    pair, draft_length, rule = program.pair, program.draft_length, chain_of(program).rule
    for slot in range(draft_length):
        step = step_at(pair, rule, state, slot)
        last = len(step.tests) - 1
        for test, (numerator, denominator) in enumerate(step.tests):
            proposal, coin = words(start, slot, philox.AGAIN + test if test else philox.DRAFT)
            draft = draw(weights(step.propose), proposal)
            if coin >> 1 < keep_coin(int(numerator[0, draft]), int(denominator[0, draft])):
                yield Decision(start, slot, state, draft, coin, True, draft)
                break
            inside = test == last and start + slot < program.length
            token = replacement(step, draft, words(start, slot, philox.CORRECT)[0]) if inside else None
            yield Decision(start, slot, state, draft, coin, False, token)
        else:
            return
        state = follow(pair, state, draft)
        if state == pair.end:
            return
    if start + draft_length < program.length:
        step = step_at(pair, rule, state, pair.slots - 1)
        token = draw(weights(step.bonus), words(start, draft_length, philox.BONUS)[0])
        yield Decision(start, draft_length, state, None, None, True, token)


def chain_of(program: Program) -> Chain:
    """Return the chain rule of a program; raise `InputError` where its rule is none."""
    if not isinstance(program.text, Chain):
        raise InputError(f"rule {program.rule!r} does not judge its drafts one by one; take a chain rule")
    return program.text


def chain_call(program: Program, state: int, start: int, words: Words) -> Call:
    """Return one target call of a chain rule."""
    decisions = list(block(program, state, start, words))
    kept = sum(d.kept for d in decisions if d.draft is not None)
    judged = len({d.slot for d in decisions if d.draft is not None})
    emitted = [
        (d.state, d.token) for d in decisions if d.token is not None and d.start + d.slot < program.length
    ]
    return Call(emitted, kept, judged, kept + 1)


def text_call(program: Program, state: int, start: int, words: Words) -> Call:
    """Return one target call of any rule, from its text."""

    def word(kind: int, number: int, token: int) -> int:
        if kind == RACE:  # by its place in the output, so that the noise is there whatever the draft
            return words(start + number, token, philox.RACE)[0]
        return words(start, number, philox.TEXT)[0 if kind == CHOICE else 1]

    model = _model(program.pair, state, program.draft_length)
    tokens, kept = sample(program.text, model, word)
    inside = tokens[: program.length - start]
    emitted = [(model.state_after(tokens[:n]), token) for n, token in enumerate(inside)]
    return Call(emitted, kept, min(len(tokens), program.draft_length), len(tokens))


def decode(program: Program, trial: int) -> Iterator[Call]:
    """Yield the target calls of one trial."""
    pair = program.pair
    state, position = int(pair.initial[trial % len(pair.initial)]), 0
    call_at = chain_call if isinstance(program.text, Chain) else text_call

    def words(start: int, slot: int, purpose: int) -> tuple[int, int]:
        return philox.words(trial, start, slot, purpose, program.key)

    while position < program.length and state != pair.end:
        call = call_at(program, state, position, words)
        yield call
        position += call.length
        state = follow(pair, *call.emitted[-1])


def run(
    program: Program, first: int, count: int, counts: Counts, tokens: NDArray[np.int32] | None = None
) -> None:
    """Draw trials `first` to `first + count - 1` and add what they emit to `counts`; see `cpu.run`."""
    for trial in range(first, first + count):
        calls = list(decode(program, trial))
        emitted = [cell for call in calls for cell in call.emitted]
        for position, (state, token) in enumerate(emitted):
            counts.counts[state, token] += 1
            if tokens is not None:
                tokens[trial - first, position] = token
        _count_joint(program, trial, [token for _, token in emitted], counts)
        _count_calls(calls, counts)


def _count_joint(program: Program, trial: int, tokens: list[int], counts: Counts) -> None:
    m = program.joint_length
    if m and len(tokens) >= m:
        cell = 0
        for token in tokens[:m]:
            cell = cell * program.pair.vocabulary + token
        counts.joint[trial % len(program.pair.initial), cell] += 1


def _count_calls(calls: list[Call], counts: Counts) -> None:
    sums = np.zeros(3, dtype=np.int64)
    for call in calls:
        counts.accepted[call.kept] += 1
        counts.judged[: call.judged] += 1
        sums += (1, call.kept, call.judged)
    counts.moments[:3] += sums
    counts.moments[3:] += np.outer(sums, sums)[np.triu_indices(3)]


def step_at(pair: Pair, rule: Rule, state: int, slot: int) -> Step:
    """Return a chain rule's step for the rows that meet at a state and slot (a batch of one)."""
    target, draft = pair.target[state], pair.draft[state, min(slot, pair.slots - 1)]
    return rule(pair.rows[target][None], pair.rows[draft][None])


def replacement(step: Step, refused: int, word: int) -> int:
    """Return the token that a word draws in the place of a refused draft."""
    correct = weights(step.correct)
    return other_than(correct, refused, word) if step.redraw_refused else draw(correct, word)


def follow(pair: Pair, state: int, token: int) -> int:
    """Return the state after a token."""
    return int(pair.next_state[state, token if pair.next_state.shape[1] > 1 else 0])


def weights(row: NDArray[np.int64]) -> tuple[int, ...]:
    """Return weights of shape (1, V) as Python's integers."""
    return tuple(row[0].tolist())


@lru_cache(1024)
def _model(pair: Pair, state: int, draft_length: int) -> Block:
    """Return the laws of a call, with all that it remembers."""
    return Block(pair, state, draft_length)
