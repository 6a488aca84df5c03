"""Block verification: published numbers, a second writing of the paper, and mistakes that have been made."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simkit.laws.pair import Pair
from simkit.laws.synthetic import corner_case, corner_cases
from simkit.rules.block import block
from simkit.rules.chain import Chain
from simkit.rules.choose import Block, Emitted, walk
from simkit.rules.exact import exact_accepted, exact_law
from simkit.rules.step import token_rule

token = Chain(token_rule)
BASE = ([5, 3, 2], [2, 3, 5])
TOY = ([1, 2], [2, 1])


def mean(law: list[Fraction]) -> Fraction:
    return sum((k * mass for k, mass in enumerate(law)), Fraction(0))


def kept(weights: tuple, rule, K: int) -> Fraction:
    return mean(exact_accepted(Pair.from_weights(*weights), rule, draft_length=K))


@pytest.mark.parametrize(
    ("weights", "K", "by_token", "by_block"),
    [
        (TOY, 2, "10/9", "11/9"),  # Sun et al. 2024, section 2: two coins
        (BASE, 2, "1.19", "1.25"),
        (BASE, 3, "1.533", "1.695"),
        (([25, 45, 30], [60, 20, 20]), 2, "1.0725", "1.16"),
        (([25, 45, 30], [60, 20, 20]), 3, "1.347125", "1.567875"),
        (([10, 60, 30], [60, 20, 20]), 2, "0.75", "0.80"),
    ],
)
def test_the_mean_number_of_kept_drafts_is_the_known_one(weights, K, by_token, by_block):
    assert kept(weights, "token", K) == Fraction(by_token)
    assert kept(weights, "block", K) == Fraction(by_block)


def paper(heads: str = "h", residual: str = "block"):
    """Return algorithm 2 written a second time: coins from first to last, the last success counts."""

    def text(model: Block, choose) -> Emitted:
        X, p_i, tau, residuals = (), [Fraction(1)], 0, []
        while len(X) < model.draft_length and not model.ended(X):
            M_b, M_s = model.p(X), model.q(X, len(X))
            weight = p_i[-1] if residual == "block" else Fraction(1)
            residuals.append([max(weight * b - s, Fraction(0)) for b, s in zip(M_b, M_s, strict=True)])
            X += (choose(M_s),)
            p_i.append(min(p_i[-1] * M_b[X[-1]] / M_s[X[-1]], Fraction(1)))
        gamma = len(X)
        for i in range(1, gamma + 1):
            h = p_i[i]
            if i < gamma and heads == "h":
                M_b, M_s = model.p(X[:i]), model.q(X[:i], i)
                above = sum(max(p_i[i] * b - s, Fraction(0)) for b, s in zip(M_b, M_s, strict=True))
                h = above / (above + 1 - p_i[i]) if above + 1 - p_i[i] else Fraction(0)
            if choose.coin(h):
                tau = i
        if tau < gamma:
            return Emitted((*X[:tau], choose(residuals[tau])), tau)
        return Emitted(X if model.ended(X) else (*X, choose(model.p(X))), tau)

    return text


@pytest.mark.parametrize(
    "name", ["automaton", "by-position", "partial-overlap", "draft-by-slot", "one-hot-draft"]
)
def test_a_second_writing_of_the_paper_has_the_same_law(name):
    # Red when coins thrown from the longest prefix down are not the last success of all of them.
    pair = corner_case(name)
    for state in range(pair.states):
        if state != pair.end:
            assert walk(block, Block(pair, state, 2)) == walk(paper(), Block(pair, state, 2))


def joint(pair: Pair, text, K: int = 2, length: int = 2) -> np.ndarray:
    return exact_law(pair, text, draft_length=K, length=length)


def distance(law: np.ndarray, other: np.ndarray) -> Fraction:
    return abs(law - other).sum() / 2


FIRST = ([[5, 5, 0], [1, 6, 3]], [[6, 4, 0], [6, 2, 2]])
SECOND = ([[45, 55, 0], [10, 50, 40]], [[60, 40, 0], [60, 30, 10]])


@pytest.mark.parametrize(
    ("weights", "right", "wrong", "apart"),
    [
        (FIRST, ["0.05", "0.3", "0.15"], ["0.05", "0.288", "0.162"], "0.012"),
        (SECOND, ["0.045", "0.225", "0.18"], ["0.045", "0.246", "0.159"], "0.021"),
    ],
)
def test_the_token_rules_residual_inside_a_block_is_seen_by_rows_that_differ(weights, right, wrong, apart):
    pair = Pair.from_weights(*weights)
    mistaken = joint(pair, paper(residual="token"))
    assert joint(pair, block)[0].tolist() == [Fraction(mass) for mass in right]
    assert mistaken[0].tolist() == [Fraction(mass) for mass in wrong]
    assert distance(mistaken, joint(pair, block)) == Fraction(apart)


def test_the_token_rules_residual_inside_a_block_hides_where_all_rows_are_equal():
    # Why the rows above differ by position.
    for weights in (BASE, ([25, 45, 30], [60, 20, 20]), ([10, 60, 30], [60, 20, 20])):
        pair = Pair.from_weights(*weights)
        assert distance(joint(pair, paper(residual="token")), joint(pair, block)) == 0


@pytest.mark.parametrize(
    ("weights", "K", "first", "apart"),
    [
        (BASE, 2, ["0.38", "0.3", "0.32"], "0.12"),
        (TOY, 2, ["1/2", "1/2"], "1/6"),
        (BASE, 3, ["1057/3125", "0.3", "2261/6250"], "1011/6250"),
    ],
)
def test_the_weight_taken_for_the_coin_is_seen_by_the_first_token(weights, K, first, apart):
    # Reported as vllm-ascend 7808: coins p_i instead of h_i, and the token rule's residual.
    pair = Pair.from_weights(*weights)
    law = joint(pair, paper("weight", "token"), K, 1)
    assert law.tolist() == [Fraction(mass) for mass in first]
    assert distance(law, joint(pair, block, K, 1)) == Fraction(apart)


@dataclass
class Reread:
    """Answers coins from words addressed by position in the output, so that a block can read one again.

    A word is known to lie in an interval once it has been compared; its next coin is drawn given that.
    """

    choose: object
    positions: list[int]  # of this call's coins, in the order in which they are thrown
    known: dict[int, tuple[Fraction, Fraction]] = field(default_factory=dict)

    def __call__(self, weights):
        return self.choose(weights)

    def along(self, weights, order=None):
        return self.choose.along(weights, order)

    def coin(self, numerator, denominator=1) -> bool:
        position, chance = self.positions.pop(0), min(Fraction(1), Fraction(numerator) / denominator)
        low, high = self.known.get(position, (Fraction(0), Fraction(1)))
        heads = self.choose.coin(min(max((chance - low) / (high - low), Fraction(0)), Fraction(1)))
        self.known[position] = (low, min(high, chance)) if heads else (max(low, chance), high)
        return heads


def two_calls(text, remember: bool, from_last: bool):
    """Return the first two tokens of two calls, the second of which may read words of the first again."""

    def both(model: Block, choose) -> Emitted:
        tokens, known, K = (), {}, model.draft_length
        while len(tokens) < 2:
            start, state = len(tokens), model.state_after(tokens)
            positions = list(range(start, start + K))[:: -1 if from_last else 1]
            answers = Reread(choose, positions, known if remember else {})
            tokens += text(Block(model.pair, state, K), answers).tokens
        return Emitted(tokens[:2], 0)

    return both


def law_of_two(text, pair: Pair) -> np.ndarray:
    law = np.full((pair.vocabulary,) * 2, Fraction(0), dtype=object)
    for emitted, mass in walk(text, Block(pair, int(pair.initial[0]), 2)).items():
        law[emitted.tokens] += mass
    return law


def test_a_word_read_twice_across_blocks_is_seen_in_block_verification_and_hidden_by_the_token_rule():
    # Coins of refused prefixes are conditioned by the refusal; the token rule never reads past its refusal.
    # Three rows that differ, with a second block in which h is neither 0 nor 1; elsewhere it hides here too.
    pair = Pair.from_weights([[1, 2], [1, 1], [0, 1]], [[2, 1], [2, 1], [1, 1]])
    target = joint(pair, block)
    assert (law_of_two(two_calls(block, False, True), pair) == target).all()
    reread = law_of_two(two_calls(block, True, True), pair)
    assert reread.sum() == 1
    assert distance(reread, target) == Fraction(1, 27)
    assert (law_of_two(two_calls(token, True, False), pair) == target).all()


ROW = st.lists(st.integers(0, 4), min_size=3, max_size=3).filter(any)


@settings(max_examples=60)
@given(st.lists(ROW, min_size=3, max_size=3), st.lists(ROW, min_size=3, max_size=3), st.integers(1, 3))
def test_block_verification_never_keeps_fewer_drafts_than_the_token_rule(target, draft, K):
    # Sun et al. 2024, theorem 2; and at least k drafts are kept as often, for every k.
    pair = Pair.from_weights(target, draft)
    by_token, by_block = (exact_accepted(pair, rule, draft_length=K) for rule in ("token", "block"))
    assert sum(by_block) == sum(by_token) == 1
    assert all(sum(by_block[k:]) >= sum(by_token[k:]) for k in range(K + 1))
    if K == 1:
        assert by_block == by_token


@pytest.mark.parametrize("name", sorted(set(corner_cases()) - {"draft-by-slot"}))
def test_block_verification_never_keeps_fewer_in_corner_cases(name):
    pair = corner_case(name)
    by_token, by_block = (exact_accepted(pair, rule, draft_length=2) for rule in ("token", "block"))
    assert mean(by_block) >= mean(by_token)
