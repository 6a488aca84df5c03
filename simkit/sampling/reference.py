"""The token loop in plain Python: what a reader holds beside the paper, and what the others must equal.

Nothing here is shared with the fast backends but the addresses of the random words: alias tables, accept
coins and the loop are written a second time, over Python's integers and fractions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import NDArray

from simkit.laws.pair import Pair
from simkit.rules.registry import find_rule
from simkit.rules.step import Step
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
        The token that comes out; None for a refused draft beyond the decode's end.
    """

    start: int
    slot: int
    state: int
    draft: int | None
    coin: int | None
    kept: bool
    token: int | None


def block(program: Program, state: int, start: int, words: Words) -> Iterator[Decision]:
    """Yield the decisions of one target call (Leviathan et al. 2023, algorithm 1).

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
    pair, rule, draft_length = program.pair, program.rule, program.draft_length
    for slot in range(draft_length):
        step = step_at(pair, rule, state, slot)
        proposal, coin = words(start, slot, philox.DRAFT)
        draft = draw(step.propose, proposal)
        if coin >> 1 < keep_coin(step, draft):
            yield Decision(start, slot, state, draft, coin, True, draft)
            state = follow(pair, state, draft)
            if state == pair.end:
                return
        else:
            inside = start + slot < program.length
            token = draw(step.correct, words(start, slot, philox.CORRECT)[0]) if inside else None
            yield Decision(start, slot, state, draft, coin, False, token)
            return
    if start + draft_length < program.length:
        step = step_at(pair, rule, state, pair.slots - 1)
        token = draw(step.bonus, words(start, draft_length, philox.BONUS)[0])
        yield Decision(start, draft_length, state, None, None, True, token)


def decode(program: Program, trial: int) -> Iterator[list[Decision]]:
    """Yield the blocks of one trial, each as the list of its decisions."""
    pair = program.pair
    state, position = int(pair.initial[trial % len(pair.initial)]), 0

    def words(start: int, slot: int, purpose: int) -> tuple[int, int]:
        return philox.words(trial, start, slot, purpose, program.key)

    while position < program.length and state != pair.end:
        decisions = list(block(program, state, position, words))
        yield decisions
        position += len(decisions)
        token = decisions[-1].token
        state = follow(pair, decisions[-1].state, token) if token is not None else state


def run(
    program: Program, first: int, count: int, counts: Counts, tokens: NDArray[np.int32] | None = None
) -> None:
    """Draw trials `first` to `first + count - 1` and add what they emit to `counts`; see `cpu.run`."""
    for trial in range(first, first + count):
        blocks = list(decode(program, trial))
        emitted = [d for decisions in blocks for d in decisions if d.start + d.slot < program.length]
        for position, decision in enumerate(emitted):
            counts.counts[decision.state, decision.token] += 1
            if tokens is not None and decision.token is not None:
                tokens[trial - first, position] = decision.token
        _count_joint(program, trial, [d.token for d in emitted if d.token is not None], counts)
        _count_calls(blocks, counts)


def _count_joint(program: Program, trial: int, tokens: list[int], counts: Counts) -> None:
    m = program.joint_length
    if m and len(tokens) >= m:
        cell = 0
        for token in tokens[:m]:
            cell = cell * program.pair.vocabulary + token
        counts.joint[trial % len(program.pair.initial), cell] += 1


def _count_calls(blocks: list[list[Decision]], counts: Counts) -> None:
    sums = np.zeros(3, dtype=np.int64)
    for decisions in blocks:
        drafts = [d for d in decisions if d.draft is not None]
        kept = sum(d.kept for d in drafts)
        counts.accepted[kept] += 1
        for d in drafts:
            counts.judged[d.slot] += 1
        sums += (1, kept, len(drafts))
    counts.moments[:3] += sums
    counts.moments[3:] += np.outer(sums, sums)[np.triu_indices(3)]


def step_at(pair: Pair, rule: str, state: int, slot: int) -> Step:
    """Return the rule's step for the rows that meet at a state and slot (a batch of one)."""
    target, draft = pair.target[state], pair.draft[state, min(slot, pair.slots - 1)]
    return find_rule(rule).rule(pair.rows[target][None], pair.rows[draft][None])


def follow(pair: Pair, state: int, token: int) -> int:
    """Return the state after a token."""
    return int(pair.next_state[state, token if pair.next_state.shape[1] > 1 else 0])


def keep_coin(step: Step, token: int) -> int:
    """Return the accept test's coin, floor(2**63 * min(1, n / d))."""
    n, d = (int(array[0, token]) for array in step.accept)
    return int(2**63 * min(Fraction(1), Fraction(n, d)))


def draw(row: NDArray[np.int64], word: int) -> int:
    """Return the token that a 64-bit word draws from weights of shape (1, V)."""
    weights = tuple(row[0].tolist())
    cell, coin = divmod(word * len(weights), 2**64)
    threshold, alias = alias_table(weights)[cell]
    return cell if coin >> 1 < threshold else alias


@cache
def alias_table(weights: tuple[int, ...]) -> list[tuple[int, int]]:
    """Return for each cell the coin that keeps its own token, and its alias (Vose 1991)."""
    total, share = sum(weights), [weight * len(weights) for weight in weights]
    alias = list(range(len(weights)))
    small = [j for j, s in enumerate(share) if s < total]
    large = [j for j, s in enumerate(share) if s >= total]
    while small and large:
        poor, rich = small.pop(), large[-1]
        alias[poor] = rich
        share[rich] -= total - share[poor]
        if share[rich] < total:
            small.append(large.pop())
    return [(int(2**63 * min(Fraction(1), Fraction(s, total))), a) for s, a in zip(share, alias, strict=True)]
