"""The chain rules as exact laws: no random number, no tolerance."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simkit.errors import InputError
from simkit.laws.pair import Pair
from simkit.laws.rows import Row
from simkit.laws.synthetic import corner_cases
from simkit.rules.chain import Chain
from simkit.rules.faults import replace_from_target
from simkit.rules.registry import RULES, Entry
from simkit.rules.step import Step, token_rule
from simkit.sampling.simulate import simulate

# Corner cases for the tests by state and slot; `draft-by-slot` has 64 slots.
MEETINGS = [
    (name, pair, state, slot)
    for name, pair in corner_cases().items()
    for state in range(pair.states)
    for slot in range(min(pair.slots, 5))
]


def two_rows(cell: st.SearchStrategy, sizes: st.SearchStrategy) -> st.SearchStrategy:
    """Return a strategy of two lists of one length, neither of them all zero."""

    def lists(size: int) -> st.SearchStrategy:
        return st.lists(cell, min_size=size, max_size=size).filter(any)

    return sizes.flatmap(lambda size: st.tuples(lists(size), lists(size)))


CELL = st.one_of(st.integers(0, 3), st.integers(0, 2**28))
WEIGHTS = two_rows(CELL, st.integers(1, 6))
FLOATS = two_rows(st.one_of(st.just(0.0), st.floats(1e-12, 1.0)), st.integers(1, 6))


def rows_of_floats(values: tuple[list[float], list[float]]) -> tuple[Row, Row]:
    p, q = (Row.from_floats(np.array(v) / np.sum(v)) for v in values)
    return p, q


def rows_of_weights(values: tuple[list[int], list[int]]) -> tuple[Row, Row]:
    p, q = (Row.from_weights(v) for v in values)
    return p, q


def step(rule, p: Row, q: Row) -> Step:
    return rule(p.weights[None], q.weights[None])


def kept(of: Step) -> list[Fraction]:
    """Return the exact law of a draft that is kept, unnormalised, from the step's own rows."""
    total = int(of.propose[0].sum())
    ratios = zip(*(a[0].tolist() for a in of.accept), strict=True)
    keep = [min(Fraction(1), Fraction(n, d)) for n, d in ratios]
    return [Fraction(w, total) * k for w, k in zip(of.propose[0].tolist(), keep, strict=True)]


def broken_by_hand(p: Row, q: Row) -> list[Fraction]:
    """Return min(p, q) + TV(p, q) p, from the definition."""
    least = [min(a, b) for a, b in zip(p.fractions, q.fractions, strict=True)]
    distance = 1 - sum(least)
    return [m + distance * a for m, a in zip(least, p.fractions, strict=True)]


def check_both_rules(p: Row, q: Row) -> None:
    # Red when a ratio, a residual or a common total is off by one unit anywhere.
    right, broken = step(token_rule, p, q), step(replace_from_target, p, q)
    assert right.law() == p.fractions
    assert sum(kept(right)) == p.overlap(q)
    assert kept(right) == [min(a, b) for a, b in zip(p.fractions, q.fractions, strict=True)]
    assert Row(right.propose[0]) == q
    assert Row(right.bonus[0]) == p
    assert broken.law() == broken_by_hand(p, q)
    assert kept(broken) == kept(right)


@given(WEIGHTS)
def test_both_rules_have_their_law_on_integer_rows(values):
    check_both_rules(*rows_of_weights(values))


@given(FLOATS)
def test_both_rules_have_their_law_on_float_rows(values):
    check_both_rules(*rows_of_floats(values))


@pytest.mark.parametrize(("pair", "state", "slot"), [m[1:] for m in MEETINGS], ids=lambda x: str(x)[:24])
def test_both_rules_have_their_law_on_every_corner_case(pair: Pair, state, slot):
    check_both_rules(pair.target_row(state), pair.draft_row(state, slot))


@given(WEIGHTS)
def test_the_replacement_is_the_residual_and_never_the_refused_token(values):
    p, q = rows_of_weights(values)
    correct = Row(step(token_rule, p, q).correct[0])
    if p == q:  # nothing is refused; the row has to be a law all the same
        assert correct == p
    else:
        assert correct == p.residual(q)
        below = [
            a < b for a, b in zip(p.fractions, q.fractions, strict=True)
        ]  # the tokens that can be refused
        assert not correct.weights[below].any()


def test_the_published_fault_has_its_published_law():
    p, q = Row.from_floats([0.5, 0.3, 0.2]), Row.from_floats([0.2, 0.3, 0.5])
    assert [round(float(f), 12) for f in step(replace_from_target, p, q).law()] == [0.35, 0.39, 0.26]
    p, q = Row.from_weights([5, 3, 2]), Row.from_weights([2, 3, 5])
    assert step(replace_from_target, p, q).law() == [Fraction(n, 100) for n in (35, 39, 26)]


@given(st.lists(two_rows(CELL, st.just(3)), min_size=1, max_size=4), st.sampled_from("tb"))
def test_many_pairs_at_once_are_the_same_as_each_alone(many, which):
    # Red when rows are brought to a common total with another row's factor.
    rule = token_rule if which == "t" else replace_from_target
    target, draft = (np.array([pair[side] for pair in many]) for side in (0, 1))
    together = rule(target, draft)
    for at, values in enumerate(many):
        assert together.law(at) == step(rule, *rows_of_weights(values)).law()


@pytest.mark.parametrize(
    "mutant",
    [
        lambda s: Step(s.propose, s.accept[::-1], s.correct, s.bonus),
        lambda s: Step(s.propose, s.accept, s.propose, s.bonus),
        lambda s: Step(s.propose, (s.accept[0], s.accept[1] + 1), s.correct, s.bonus),
        lambda s: Step(s.propose, s.accept, s.correct + (s.correct > 0), s.bonus),
    ],
    ids=["ratio upside down", "replaced from the draft", "ratio one unit low", "residual one unit high"],
)
def test_a_wrong_row_is_seen_by_the_law(mutant):
    p, q = Row.from_weights([50, 30, 15, 5]), Row.from_weights([20, 30, 10, 40])
    assert step(token_rule, p, q).law() == p.fractions
    assert mutant(step(token_rule, p, q)).law() != p.fractions


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda s: replace(s, accept=(1.0, 1.0)), "accept numerator of a Step must be an array of integers"),
        (lambda s: replace(s, accept=s.accept[0]), "a pair of arrays"),
        (lambda s: replace(s, accept=(s.accept[0] / 2, s.accept[1])), "must be an array of integers"),
        (lambda s: replace(s, accept=(s.accept[0], 0 * s.accept[1])), "denominator of a Step is below 1"),
        (lambda s: replace(s, accept=(-s.accept[0], s.accept[1])), "negative"),
        (lambda s: replace(s, correct=0 * s.correct), "correct of a Step has a row without weight"),
        (lambda s: replace(s, bonus=s.bonus[0]), "bonus of a Step has shape"),
        (lambda s: replace(s, propose=s.propose[0]), "propose of a Step has shape"),
    ],
)
def test_a_malformed_step_is_refused_before_a_kernel_reads_it(wrong, says):
    step = token_rule(np.array([[3, 2, 1]]), np.array([[1, 2, 3]]))
    with pytest.raises(InputError, match=re.escape(says)):
        wrong(step)


@pytest.mark.parametrize("made", [None, (1, 2), token_rule(np.array([[1, 1]]), np.array([[1, 1]]))])
def test_a_rule_that_returns_no_step_for_its_rows_is_refused(monkeypatch, made):
    monkeypatch.setitem(RULES, "toy", Entry(Chain(lambda p, q: made), False, "a toy", "made up"))
    with pytest.raises(InputError, match="rule 'toy' must return a Step for all 1 pairs"):
        simulate(Pair.from_weights([3, 2, 1], [1, 2, 3]), "toy", trials=1)
