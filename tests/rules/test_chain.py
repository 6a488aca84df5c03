"""Chain rules: their stated laws, their closed forms against the walk, and the rules that lose nothing."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import exp, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simkit.errors import InputError
from simkit.laws.pair import Pair
from simkit.laws.rows import Row
from simkit.laws.synthetic import corner_case, zipf
from simkit.rules import lossy, matching, single
from simkit.rules.chain import Chain
from simkit.rules.choose import Block, Emitted, walk
from simkit.rules.faults import replace_from_target
from simkit.rules.registry import RULES
from simkit.rules.step import Step, token_rule

P, Q = [5, 3, 2], [2, 3, 5]
ONLY_2 = [0, 0, 1]
token, one_hot, greedy = Chain(token_rule), Chain(single.one_hot), Chain(single.greedy)
argmax_draft = Chain(single.argmax_draft)
ONE, HALF = Fraction(1), Fraction(1, 2)


def lenience(factor) -> Chain:
    return Chain(lossy.lenience(factor))


def thresholds(single=1, acc=1) -> Chain:
    return Chain(lossy.thresholds(single, acc))


def typical(*levels, **named) -> Chain:
    return Chain(lossy.typical(*levels, **named))


def ensemble(weight) -> Chain:
    return Chain(lossy.ensemble(weight))


cell = st.one_of(st.integers(0, 3), st.integers(0, 2**20))
ROWS = st.integers(1, 5).flatmap(
    lambda V: st.tuples(*[st.lists(cell, min_size=V, max_size=V).filter(any)] * 2)
)
SHARE = st.fractions(0, 1, max_denominator=20)
POSITIVE = SHARE.filter(bool)


def first(rule, p, q) -> list[Fraction]:
    """Return the exact law of the first token of a call."""
    law = {}
    for emitted, mass in walk(rule, Block(Pair.from_weights(p, q), 0, 1)).items():
        law[emitted.tokens[0]] = law.get(emitted.tokens[0], 0) + mass
    return [law.get(token, Fraction(0)) for token in range(len(p))]


def accepted(rule, p, q) -> Fraction:
    return sum(
        m for emitted, m in walk(rule, Block(Pair.from_weights(p, q), 0, 1)).items() if emitted.accepted
    )


@pytest.mark.parametrize(
    ("rule", "q", "law"),
    [
        (lenience(0.5), Q, ".3 .3 .4"),
        (lenience(Fraction(3, 10)), Q, ".2 .3 .5"),
        (thresholds(acc=0.5), ONLY_2, ".375 .225 .4"),
        (thresholds(single=0.2), ONLY_2, "0 0 1"),
        (thresholds(single=0.21), ONLY_2, ".5 .3 .2"),
        (typical(0.09, 1), ONLY_2, "0 0 1"),
        (typical(0.2, 1), ONLY_2, ".5 .3 .2"),
        (ensemble(0.5), Q, ".35 .3 .35"),
        (ensemble(0), Q, ".2 .3 .5"),
        (greedy, Q, "1 0 0"),
        (greedy, ONLY_2, "1 0 0"),
        (Chain(replace_from_target), Q, ".35 .39 .26"),
    ],
)
def test_a_lossy_rule_has_its_stated_law(rule, q, law):
    assert first(rule, P, q) == [Fraction(mass) for mass in law.split()]


def fractions(weights: list[int]) -> list[Fraction]:
    return Row.from_weights(weights).fractions


def spread(kept: list[Fraction], weights: list[Fraction]) -> list[Fraction]:
    """Return what is kept, with the rest of one spread by weights."""
    rest, total = 1 - sum(kept), sum(weights)
    return [k + (rest * w / total if rest else 0) for k, w in zip(kept, weights, strict=True)]


@settings(max_examples=50)
@given(ROWS, POSITIVE)
def test_lenience_spreads_what_its_cap_leaves(rows, share):
    p, q = map(fractions, rows)
    kept = [min(b, a / share) for a, b in zip(p, q, strict=True)]
    excess = [max(a - b, Fraction(0)) for a, b in zip(p, q, strict=True)]
    assert first(lenience(share), *rows) == spread(kept, excess)


@settings(max_examples=50)
@given(ROWS, SHARE)
def test_the_ensemble_is_the_mixture_at_every_token(rows, weight):
    p, q = map(fractions, rows)
    mixed = [weight * a + (1 - weight) * b for a, b in zip(p, q, strict=True)]
    law = walk(ensemble(weight), Block(Pair.from_weights(*rows), 0, 1))
    assert first(ensemble(weight), *rows) == mixed
    two = [[Fraction(0)] * len(p) for _ in p]
    for emitted, mass in law.items():
        if emitted.accepted:  # the bonus token is drawn from the mixture too
            two[emitted.tokens[0]][emitted.tokens[1]] += mass
    kept = [min(a, b) for a, b in zip(mixed, q, strict=True)]
    assert two == [[k * m for m in mixed] for k in kept]


def test_the_bonus_of_an_ensemble_takes_the_draft_of_the_last_slot():
    # As the kernels read a bonus row; the other slots' rows would make other mixtures.
    pair = Pair.by_slot(target=[0.5, 0.5], draft=[[0.5, 0.5], [0.25, 0.75]])
    law = walk(ensemble(0.5), Block(pair, 0, 2))
    all_kept = [law[Emitted((0, 0, x), 2)] for x in (0, 1)]
    assert [mass / sum(all_kept) for mass in all_kept] == [Fraction(3, 8), Fraction(5, 8)]


@settings(max_examples=50)
@given(ROWS, SHARE, POSITIVE)
def test_the_thresholds_keep_and_replace_as_the_kernel_does(rows, single, acc):
    p, q = map(fractions, rows)
    keep = [ONE if a >= single else min(ONE, a / acc) for a in p]
    law = [b * k for b, k in zip(q, keep, strict=True)]
    for x, b in enumerate(q):
        others = [a if y != x else Fraction(0) for y, a in enumerate(p)]
        if b * (1 - keep[x]):
            law = [m + b * (1 - keep[x]) * a / sum(others) for m, a in zip(law, others, strict=True)]
    assert first(thresholds(single, acc), *rows) == law


@settings(max_examples=50)
@given(ROWS, SHARE, SHARE)
def test_typical_acceptance_has_the_threshold_of_the_paper(rows, epsilon, delta):
    p, q = map(fractions, rows)
    level = min(float(epsilon), float(delta) * exp(sum(float(a) * log(a) for a in p if a)))
    if any(abs(float(a) - level) < 1e-9 for a in p):
        return  # floats cannot tell a tie here; the test below can
    kept = [b if a > level else Fraction(0) for a, b in zip(p, q, strict=True)]
    assert first(typical(epsilon, delta), *rows) == spread(kept, p)


@pytest.mark.parametrize("V", [2, 3, 7, 12])
def test_a_tie_with_the_threshold_is_not_above_it(V):
    # p = exp(-H) = 1/V, which no decimal holds for V = 3.
    level = [1] * V
    assert accepted(typical(1, 1), level, level) == 0
    assert accepted(typical(1, Fraction(10**30 - 1, 10**30)), level, level) == 1
    assert accepted(typical(Fraction(1, V), 1), level, level) == 0


@settings(max_examples=50)
@given(ROWS)
def test_what_the_rules_keep_is_known(rows):
    p, q = map(fractions, rows)
    pairs = list(zip(p, q, strict=True))
    assert accepted(token, *rows) == sum(min(a, b) for a, b in pairs)
    assert accepted(one_hot, *rows) == accepted(matching.sampled_match, *rows) == sum(a * b for a, b in pairs)
    assert accepted(argmax_draft, *rows) == p[q.index(max(q))]
    assert accepted(greedy, *rows) == q[p.index(max(p))]
    races = [1 / sum(max(c / a, d / b) for c, d in pairs) for a, b in pairs if a and b]
    assert accepted(matching.shared_gumbel, *rows) == sum(races)


NAMES = [
    "automaton",
    "by-position",
    "draft-by-slot",
    "partial-overlap",
    "one-hot-draft",
    "disjoint",
    "one-token",
]
CHAINS = {
    "token": token,
    "one-hot": one_hot,
    "argmax-draft": argmax_draft,
    "greedy": greedy,
    "lenience": lenience(0.4),
    "thresholds": thresholds(0.9, 0.5),
    "typical": typical(),
    "ensemble": ensemble(0.3),
    "replace-from-target": Chain(replace_from_target),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("rule", CHAINS.values(), ids=CHAINS.keys())
def test_the_closed_forms_are_what_the_walk_finds(rule: Chain, name):
    # Red for a wrong split of kept and replaced tokens, a wrong cut, or a wrong end of the text.
    pair = corner_case(name)
    for state in {int(s) for s in pair.initial} | {0, pair.states // 2}:
        model = Block(pair, state, 2)
        law = walk(rule, model)
        counts = [Fraction(0)] * 3
        for emitted, mass in law.items():
            counts[emitted.accepted] += mass
        assert rule.accepted(model) == counts
        for most in (1, 2, 3):
            cut: dict[tuple[int, ...], Fraction] = {}
            for emitted, mass in law.items():
                cut[emitted.tokens[:most]] = cut.get(emitted.tokens[:most], Fraction(0)) + mass
            assert rule.law(model, most) == cut


@settings(max_examples=50)
@given(ROWS, st.sampled_from(sorted(name for name in RULES if RULES[name].chain)))
def test_a_step_of_the_kernels_is_read_with_its_law(rows, name):
    rule = RULES[name].chain.rule
    step = rule(np.array([rows[0]]), np.array([rows[1]]))
    assert first(Chain(rule), *rows) == step.law()
    law = Chain(rule).law(Block(Pair.from_weights(*rows), 0, 1), most=1)
    assert [law.get((x,), 0) for x in range(len(rows[0]))] == step.law()


def taken_as_one_hot(model, choose) -> Emitted:
    """Return the token rule's call with each draft's law taken as one-hot, from the definition."""
    kept = ()
    while len(kept) < model.draft_length:
        p, draft = model.p(kept), choose(model.draft(kept, len(kept)))
        if not choose.coin(p[draft]):
            excess = [max(a - (x == draft), 0) for x, a in enumerate(p)]
            return Emitted((*kept, choose(excess)), len(kept))
        kept += (draft,)
    return Emitted((*kept, choose(model.target(kept))), len(kept))


@settings(max_examples=50)
@given(ROWS)
def test_a_step_that_draws_again_is_the_one_hot_rule(rows):
    model = Block(Pair.from_weights(*rows), 0, 2)
    assert walk(one_hot, model) == walk(taken_as_one_hot, model) == walk(matching.sampled_match, model)


@pytest.mark.parametrize("made", [None, (1, 2), token_rule(np.array([[1, 1]] * 2), np.array([[1, 1]] * 2))])
def test_a_rule_that_makes_no_step_is_refused(made):
    with pytest.raises(InputError, match="must return a Step with one row"):
        Chain(lambda p, q: made).law(Block(Pair.from_weights([1, 1], [1, 1]), 0, 1), 1)


def test_a_step_with_another_row_has_another_law():
    # The reading above sees all four rows.
    model = Block(Pair.from_weights(P, Q), 0, 1)

    def with_(**rows):
        def rule(p, q):
            return replace(token_rule(p, q), **{part: np.array([row]) for part, row in rows.items()})

        return walk(Chain(rule), model)

    assert with_() == walk(token, model)
    for part in ("propose", "correct", "bonus"):
        assert with_(**{part: [1, 1, 1]}) != walk(token, model)
    never = Chain(lambda p, q: replace(token_rule(p, q), accept=(0 * p, q)))
    assert all(emitted.accepted == 0 for emitted in walk(never, model))


def test_one_token_of_a_large_vocabulary_is_had_in_closed_form():
    p, q = zipf(5_000), zipf(5_000, exponent=1.1)
    model = Block(Pair.from_rows(target=p, draft=q), 0, 4)
    assert list(token.law(model, most=1).values()) == p.fractions
    assert list(one_hot.law(model, most=1).values()) == p.fractions


def test_greedy_decoding_is_the_token_rule_on_one_hot_rows():
    one_hot_target = [[1, 0, 0], [0, 0, 1]]
    pair = Pair.from_weights(one_hot_target, [P, Q])
    for rule in (token, greedy, one_hot, matching.sampled_match):
        law = walk(rule, Block(pair, 0, 2))
        assert {emitted.tokens for emitted in law} == {(0,), (0, 2), (0, 2, 2)}
        assert law[Emitted((0, 2, 2), 2)] == HALF * HALF


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: lenience(0), "factor=0; it needs a number above 0 and at most 1"),
        (lambda: lenience(1.5), "factor=1.5"),
        (lambda: lenience(float("nan")), "factor=nan"),
        (lambda: lenience("half"), "factor='half'"),
        (lambda: lenience(None), "factor=None"),
        (lambda: thresholds(single=-1), "single=-1; it needs a number from 0 to 1"),
        (lambda: thresholds(acc=0), "acc=0"),
        (lambda: typical(epsilon=2), "epsilon=2"),
        (lambda: typical(delta=float("inf")), "delta=inf"),
        (lambda: ensemble(-0.1), "weight=-0.1"),
    ],
)
def test_a_parameter_out_of_range_is_refused(make, says):
    with pytest.raises(InputError, match=says):
        make()


def test_numbers_are_taken_as_the_decimals_that_they_print_as():
    ways = [lenience(0.3), lenience(np.float64(0.3)), lenience("0.3"), lenience(Fraction(3, 10))]
    laws = [first(rule, P, Q) for rule in ways]
    assert laws == [laws[0]] * 4


def test_a_rule_that_refuses_the_only_replacement_is_refused():
    def refuse_all(p, q):
        return Step(q, (0 * q, 1 + 0 * q), p, p, redraw_refused=True)

    rule, model = Chain(refuse_all), Block(Pair.from_weights([1, 0], [1, 1]), 0, 1)
    with pytest.raises(InputError, match="the only token that its replacement can be"):
        rule.law(model, 1)
    with pytest.raises(InputError, match="not all zero"):
        walk(rule, model)
