"""The two interpreters: what one samples is what the other walks."""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from scipy.stats import binom

from simkit.errors import InputError
from simkit.laws.pair import Pair
from simkit.laws.synthetic import corner_case
from simkit.rules.block import block
from simkit.rules.choose import CHOICE, COIN, RACE, Block, Emitted, branches, sample, walk
from simkit.rules.coupling import race_law
from simkit.rules.exact import exact_law
from simkit.sampling import philox

HALF, THIRD = Fraction(1, 2), Fraction(1, 3)
PAIR = Pair.from_weights([5, 3, 2], [2, 3, 5])


def model(pair: Pair = PAIR, state: int = 0, K: int = 2) -> Block:
    return Block(pair, state, K)


def one(*tokens: int) -> Emitted:
    return Emitted(tokens, 0)


def two_decisions(model, choose) -> Emitted:
    first = choose((1, 2))
    if first and choose.coin(2, 5):
        return Emitted((first, choose((THIRD, 0, 2 * THIRD))), 1)
    return one(first)


TWO_DECISIONS = {
    one(0): THIRD,
    Emitted((1, 0), 1): Fraction(4, 45),
    Emitted((1, 2), 1): Fraction(8, 45),
    one(1): Fraction(2, 5),
}


def test_the_walk_is_the_law_by_hand():
    assert walk(two_decisions, model()) == TWO_DECISIONS


def test_each_branch_is_run_once_and_none_without_probability():
    seen = []

    def text(model, choose):
        path = (choose((0, 1, 3)), choose.coin(3, 2), choose.coin(0), choose((1, 1)))
        seen.append(path)
        return one(path[3])

    # Merged outcomes: four branches, two outcomes.
    assert walk(text, model()) == {one(0): HALF, one(1): HALF}
    assert seen == [(1, True, False, 0), (1, True, False, 1), (2, True, False, 0), (2, True, False, 1)]


def test_a_race_is_walked_by_its_law():
    q, r = (5, 3, 0), (1, 1, 2)

    def text(model, choose):
        return one(*choose.race(q, r))

    assert walk(text, model()) == {one(*winners): mass for winners, mass in race_law(q, r).items()}


def grid(cells: int) -> list[int]:
    """Return one word in the middle of each of `cells` equal parts of [0, 2**64)."""
    return [(2 * cell + 1) * 2**64 // (2 * cells) for cell in range(cells)]


def test_words_spread_evenly_give_exactly_the_walked_law():
    # 3, 5 and 3 equal parts resolve every decision of the text: no randomness, no tolerance.
    found: Counter[Emitted] = Counter()
    for choice, coin, last in itertools.product(grid(3), grid(5), grid(3)):
        served = {(CHOICE, 0, 0): choice, (COIN, 0, 0): coin, (CHOICE, 1, 0): last}
        found[sample(two_decisions, model(), lambda *address: served[address])] += 1  # noqa: B023
    assert {emitted: Fraction(count, 45) for emitted, count in found.items()} == TWO_DECISIONS


@pytest.mark.parametrize("word", [0, 1, 2**63 - 1, 2**63, 2**64 - 1])
def test_no_word_does_what_has_no_probability(word):
    def text(model, choose):
        assert choose((0, 3, 0)) == 1
        assert not choose.coin(0)
        assert choose.coin(1)
        assert choose.coin(7, 3)
        assert choose.race((0, 1, 0), (0, 0, 1)) == (1, 2)
        assert choose((1, 2**70)) == 1  # its coin would need 2**-70 and has 63 bits
        return one(choose.along((1, 2**70)))

    # 2**64 * 1 < 2**70 + 1 only at word 0: weights beyond 64 bits are compared exactly.
    assert sample(text, model(), lambda *address: word) == one(0 if word == 0 else 1)


def test_every_word_is_asked_for_once():
    asked = []

    def words(kind, number, token):
        asked.append((kind, number, token))
        return 2**62

    def text(model, choose):
        (
            choose((1, 1)),
            choose.coin(1, 2),
            choose((1, 1)),
            choose.race((1, 0, 1), (0, 0, 1)),
            choose.coin(1, 3),
        )
        choose.race((1, 0), (1, 1))
        return one(0)

    sample(text, model(), words)
    race = [(RACE, 0, 0), (RACE, 0, 2), (RACE, 1, 0), (RACE, 1, 1)]
    assert sorted(asked) == sorted([(CHOICE, 0, 0), (CHOICE, 1, 0), (COIN, 0, 0), (COIN, 1, 0), *race])


def word_at(trial: int, start: int, key: tuple[int, int], kind: int, number: int, token: int) -> int:
    return philox.words(trial, start, number, 3 + kind, key)[0]


def test_addressed_words_sample_the_walked_law():
    # 4000 decodes over block boundaries; each of the 8 cells is held to 1e-6 / 8, so a right sampler is
    # refused with less than 1e-6, whatever the seed.
    pair, trials, length = Pair.from_weights([[1, 3], [3, 1]], [[3, 1], [2, 3]]), 4_000, 3
    law = exact_law(pair, block, draft_length=2, length=length)
    models = [model(pair, state) for state in range(pair.states)]
    key, found = philox.key(5, {"test": "choose"}), Counter()
    for trial in range(trials):
        state, tokens = 0, ()
        while (start := len(tokens)) < length:
            words = partial(word_at, trial, start, key)
            emitted = sample(block, models[state], words)
            state, tokens = models[state].state_after(emitted.tokens), tokens + emitted.tokens
        found[tokens[:length]] += 1
    outside = [
        binom.cdf(found[cell], trials, float(mass)) < 6e-8
        or binom.sf(found[cell] - 1, trials, float(mass)) < 6e-8
        for cell, mass in np.ndenumerate(law)
    ]
    assert not any(outside)


def test_a_call_ends_with_the_text():
    pair = corner_case("automaton")  # token 3 ends it

    def beyond(model, choose):
        return Emitted((1, 3, 0), 2)

    assert walk(beyond, model(pair)) == {Emitted((1, 3), 2): 1}
    assert sample(beyond, model(pair), lambda *address: 0) == Emitted((1, 3), 2)
    assert walk(lambda *_: Emitted((3, 1), 2), model(pair)) == {Emitted((3,), 1): 1}
    assert [model(pair).ended(prefix) for prefix in [(), (1,), (1, 3), (3, 0)]] == [False, False, True, True]


def test_a_block_reads_the_rows_of_its_state_and_slot():
    pair = corner_case("automaton")
    assert model(pair).target((0,)) == (4, 2, 1, 1)
    assert model(pair).target((0, 1)) == (1, 5, 1, 1)
    assert model(pair, state=1).draft((), 0) == (1, 1, 5, 1)
    slots = Pair.by_slot(target=[0.5, 0.5], draft=[[0.5, 0.5], [0.25, 0.75]])
    assert [model(slots).q((0,), slot) for slot in (0, 1)] == [(HALF, HALF), (HALF / 2, 3 * HALF / 2)]
    assert model(corner_case("by-position")).p((3, 3, 3)) == (1, 0, 0, 0)


def test_too_many_branches_are_refused_early_with_the_number():
    runs = 0

    def text(model, choose):
        nonlocal runs
        runs += 1
        for _ in range(7):
            choose((1,) * 10)
        return one(0)

    with pytest.raises(InputError, match=r"about 10,000,000 branches for one target call; at most 2,000,000"):
        walk(text, model())
    assert runs < 3_100
    assert branches(text, model()) == 10**7


def test_a_tree_that_hides_its_size_is_refused_all_the_same():
    def text(model, choose):
        if all(choose((1,) * 40) == 39 for _ in range(3)):
            choose((1,) * 3000)
        return one(0)

    assert branches(text, model()) < 500
    with pytest.raises(InputError, match="more than 500 branches"):
        walk(text, model(), most=500)
    assert walk(text, model()) == {one(0): 1}


def fickle():
    turn = itertools.count()

    def text(model, choose):
        return one(choose((1, 1)) if next(turn) == 0 else int(choose.coin(1, 2)))

    return text


def falls_silent():
    turn = itertools.count()

    def text(model, choose):
        return one(choose((1, 1)) if next(turn) == 0 else 0)

    return text


def endless(model, choose):
    while choose.coin(1, 2):
        pass
    return one(0)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (lambda m, choose: one(choose(())), "got 0"),
        (lambda m, choose: one(choose((0, 0))), "not all zero"),
        (lambda m, choose: one(choose((2, -1))), "got 2: 2, -1"),
        (lambda m, choose: one(choose((0.5, 0.5))), "as ints or Fractions; got 2: 0.5, 0.5"),
        (lambda m, choose: one(choose(("1", "2"))), "as ints or Fractions"),
        (lambda m, choose: one(choose.coin(float("nan"))), "exact numerator >= 0"),
        (lambda m, choose: one(choose.coin(-1, 2)), "got -1, 2"),
        (lambda m, choose: one(choose.coin(1, 0)), "denominator > 0"),
        (lambda m, choose: one(*choose.race((1, 2), (1, 2, 3))), "they have 2 and 3 tokens"),
        (lambda m, choose: one(*choose.race((1, 2), (0, 0))), "not all zero"),
        (lambda m, choose: (0, 1), "must return Emitted"),
        (lambda m, choose: one(), "with a token"),
        (lambda m, choose: one(3), "token 3 is not in the vocabulary: 0 to 2"),
        (lambda m, choose: one(-1), "token -1 is not in the vocabulary"),
        (lambda m, choose: Emitted((0,), 2), "accepted 2 of 2 drafts and emitted 1 tokens"),
        (lambda m, choose: Emitted((0,) * 3, 3), "accepted 3 of 2 drafts"),
        (lambda m, choose: one(True), "whole numbers"),
        (lambda m, choose: one(1.0), "whole numbers"),
        (lambda m, choose: Emitted((0,), 0.5), "whole numbers"),
        (lambda m, choose: Emitted((0,), False), "whole numbers"),
        (lambda m, choose: one(choose.along((1, 2), [0, 0])), "different indices below 2"),
        (lambda m, choose: one(choose.along((1, 2), [1, 2])), "different indices below 2"),
        (lambda m, choose: one(choose.along((1, 2), [1])), "every index with weight"),
    ],
)
def test_both_interpreters_refuse_what_has_no_answer(text, says):
    with pytest.raises(InputError, match=says):
        walk(text, model())
    with pytest.raises(InputError, match=says):
        sample(text, model(), lambda *address: 2**63)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (fickle(), "other questions after the same answers"),
        (falls_silent(), "other questions after the same answers"),
        (endless, "more than 2000 questions"),
    ],
)
def test_a_text_that_cannot_be_walked_is_refused(text, says):
    with pytest.raises(InputError, match=says):
        walk(text, model())


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((PAIR, 1, 2), "state=1"),
        ((PAIR, 0, 0), "draft_length=0"),
        ((PAIR, 0, 65), "draft_length=65"),
        ((corner_case("draft-by-slot"), 0, 2.0), "draft_length=2.0"),
        ((Pair.by_slot(target=[1.0], draft=[[1.0], [1.0]]), 0, 3), "draft rows for 2 slots"),
        (([1, 2], 0, 1), "needs a Pair; got list"),
    ],
)
def test_a_block_that_the_pair_does_not_have_is_refused(arguments, says):
    with pytest.raises(InputError, match=says):
        Block(*arguments)
