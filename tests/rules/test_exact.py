"""Exact laws of whole decodes: every lossless rule has the target's joint law, every other one has not."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simkit.errors import InputError, UnknownNameError
from simkit.laws.pair import Pair
from simkit.laws.synthetic import corner_case, corner_cases
from simkit.rules.acceptance import expected_calls
from simkit.rules.chain import Chain
from simkit.rules.choose import Emitted
from simkit.rules.exact import exact_accepted, exact_law
from simkit.rules.lossy import ensemble, lenience
from simkit.rules.registry import RULES, find_text
from simkit.rules.step import token_rule

token = Chain(token_rule)
LOSSLESS = [name for name, entry in RULES.items() if entry.lossless]
BASE = Pair.from_weights([5, 3, 2], [2, 3, 5])


def target_law(pair: Pair, length: int) -> np.ndarray:
    """Return the target's joint law in fractions, from the definition."""
    shape = (pair.vocabulary,) * length
    law = np.full((len(pair.initial), *shape), Fraction(0), dtype=object)
    for request, start in enumerate(pair.initial.tolist()):
        for tokens in product(range(pair.vocabulary), repeat=length):
            state, mass = start, Fraction(1)
            for drawn in tokens:
                mass *= pair.target_row(state).fractions[drawn] if state != pair.end else 0
                state = int(pair.next_state[state, drawn if pair.next_state.shape[1] > 1 else 0])
            law[(request, *tokens)] = mass
    return law if len(law) > 1 else law[0]


@st.composite
def pairs(draw: st.DrawFn) -> Pair:
    """Draw an automaton of up to four tokens, three states and draft slots, with or without an end."""
    V, S, slots = draw(st.integers(1, 4)), draw(st.integers(1, 3)), draw(st.sampled_from([1, 3]))
    # A row is one integer, its weights the digits: chosen apart for every state, so that p and q differ.
    numbers = draw(st.lists(st.integers(1, 5**V - 1), min_size=S * (1 + slots), max_size=S * (1 + slots)))
    rows = [[number // 5**digit % 5 for digit in range(V)] for number in numbers]

    def table(below, width):
        entry = st.integers(0, below - 1)
        return np.array(
            draw(st.lists(st.lists(entry, min_size=width, max_size=width), min_size=S, max_size=S))
        )

    end = draw(st.sampled_from([None, S - 1])) if S > 1 else None
    return Pair(
        rows=np.array(rows),
        target=np.arange(S),
        draft=np.arange(S, S * (1 + slots)).reshape(S, slots),
        next_state=table(S, draw(st.sampled_from([1, V]))),
        initial=np.array(draw(st.lists(st.integers(0, S - 1), min_size=1, max_size=2))),
        end=end,
    )


@pytest.mark.parametrize("rule", LOSSLESS)
@settings(max_examples=250)
@given(pair=pairs(), K=st.integers(1, 3), length=st.integers(1, 4))
def test_a_lossless_rule_has_the_targets_joint_law(rule, pair, K, length):
    # 250 pairs for each rule, over block boundaries; == on every cell.
    assert (exact_law(pair, rule, draft_length=K, length=length) == target_law(pair, length)).all()


@pytest.mark.parametrize("rule", LOSSLESS)
@pytest.mark.parametrize("name", sorted(set(corner_cases()) - {"partial-overlap", "many-token-residual"}))
def test_a_lossless_rule_has_the_targets_joint_law_in_corner_cases(rule, name):
    pair = corner_case(name)
    assert (exact_law(pair, rule, draft_length=2, length=3) == target_law(pair, 3)).all()


@pytest.mark.parametrize("rule", LOSSLESS)
@pytest.mark.parametrize("name", ["partial-overlap", "many-token-residual"])
def test_a_lossless_rule_has_the_targets_joint_law_on_six_tokens(rule, name):
    pair = corner_case(name)
    assert (exact_law(pair, rule, draft_length=1, length=3) == target_law(pair, 3)).all()


@pytest.mark.parametrize("rule", [*sorted(set(RULES) - set(LOSSLESS)), "replace-from-target"])
def test_a_lossy_rule_has_not(rule):
    assert (exact_law(BASE, rule, draft_length=2, length=2) != target_law(BASE, 2)).any()


@pytest.mark.parametrize("name", ["by-position", "requests"])
def test_the_ensemble_has_the_joint_law_of_the_mixture(name):
    pair = corner_case(name)
    p, q = pair.rows[pair.target], pair.rows[pair.draft[:, 0]]
    mixture = p * q.sum(axis=1, keepdims=True) + q * p.sum(axis=1, keepdims=True)  # p + q, twice the mean
    mixed = Pair(
        rows=mixture,
        target=np.arange(pair.states),
        draft=np.arange(pair.states)[:, None],
        next_state=pair.next_state,
        initial=pair.initial,
    )
    found = exact_law(pair, Chain(ensemble(0.5)), draft_length=2, length=3)
    assert (found == target_law(mixed, 3)).all()


def second_draft_unseen(model, choose) -> Emitted:
    """Keep the second draft unverified: red only where blocks are longer than one draft."""
    emitted = token(model, choose)
    if emitted.accepted == 1:
        return Emitted((emitted.tokens[0], choose(model.draft(emitted.tokens[:1], 1))), 1)
    return emitted


def draft_noise_kept(model, choose) -> Emitted:
    """Emit one token twice, as a sampler does whose noise is frozen: each marginal is right."""
    drawn = choose(model.target(()))
    return Emitted((drawn, drawn), 1)


def test_the_joint_law_sees_what_marginals_hide():
    # Red here means the comparison above could pass anything.
    assert (exact_law(BASE, second_draft_unseen, draft_length=2, length=2) != target_law(BASE, 2)).any()
    frozen, right = exact_law(BASE, draft_noise_kept, draft_length=2, length=2), target_law(BASE, 2)
    assert abs(frozen - right).sum() / 2 == Fraction(62, 100)
    for axis in (0, 1):
        assert (frozen.sum(axis=axis) == right.sum(axis=axis)).all()


def test_a_decode_that_ends_earlier_is_in_no_cell():
    pair = corner_case("automaton")  # token 3 ends the text, with 1/8 at the first token
    law = exact_law(pair, "block", draft_length=2, length=2)
    assert law.sum() == Fraction(7, 8)
    assert law[3].tolist() == [0, 0, 0, 0]
    assert law[0, 3] == Fraction(4, 8) * Fraction(1, 8)  # it ends with its last token
    assert law.astype(float).ravel() == pytest.approx(pair.joint_law(2)[0], abs=1e-15)


def ends_after_token_2(after_the_end: int) -> Pair:
    rows = [[4, 2, 2], [1, 3, 2], [1, 6, 1], [5, 1, 1]]
    return Pair(
        rows=np.array(rows),
        target=np.array([0, after_the_end]),
        draft=np.array([[1], [2]]),
        next_state=np.array([[0, 0, 1], [0, 0, 0]]),
        initial=np.array([0]),
        end=1,
    )


@pytest.mark.parametrize("rule", RULES)
def test_no_rule_reads_the_rows_behind_the_end(rule):
    # Red when tokens or kept drafts behind the end of the text count. Drafting on behind it would do no harm:
    # at least i drafts are kept with the same probability whatever follows them.
    one, other = ends_after_token_2(2), ends_after_token_2(3)
    for K in (2, 3):
        assert exact_accepted(one, rule, draft_length=K) == exact_accepted(other, rule, draft_length=K)
        assert (
            exact_law(one, rule, draft_length=K, length=2) == exact_law(other, rule, draft_length=K, length=2)
        ).all()


def test_requests_are_the_leading_axis():
    pair = corner_case("requests")
    law = exact_law(pair, "token", draft_length=1, length=2)
    assert law.shape == (3, 3, 3)
    assert [law[r].sum() for r in range(3)] == [1, 1, 1]
    one = Pair.from_weights([[[5, 3, 2], [1, 1, 8]]], [[[2, 3, 5], [1, 1, 8]]])
    assert (exact_law(one, "token", draft_length=1, length=2) == law[0]).all()


@pytest.mark.parametrize("rule", ["token", "replace-from-target"])
@pytest.mark.parametrize("name", ["automaton", "by-position", "draft-by-slot", "requests"])
def test_the_acceptance_is_that_of_the_forward_pass(rule, name):
    pair = corner_case(name)
    exact = exact_accepted(pair, rule, draft_length=3)
    floats = expected_calls(pair, rule, draft_length=3, length=1).accepted
    assert [float(mass) for mass in exact] == pytest.approx(floats.tolist(), abs=1e-14)


def test_the_acceptance_is_taken_at_a_state_or_over_the_requests():
    pair = corner_case("requests")
    each = [exact_accepted(pair, "block", draft_length=2, state=int(s)) for s in pair.initial]
    mean = [sum(law) / 3 for law in zip(*each, strict=True)]
    assert exact_accepted(pair, "block", draft_length=2) == mean
    assert each[0] != each[1]
    twice = replace(pair, initial=pair.initial[[0, 0, 1]])
    mean = [(2 * a + b) / 3 for a, b in zip(*each[:2], strict=True)]
    assert exact_accepted(twice, "block", draft_length=2) == mean
    assert exact_accepted(BASE, Chain(lenience(0.4)), draft_length=1) == [0, 1]


def test_numbers_of_numpy_are_numbers():
    law = exact_law(BASE, "block", draft_length=np.int64(2), length=np.int64(2))
    assert (law == target_law(BASE, 2)).all()
    assert len(exact_accepted(BASE, "token", draft_length=np.int64(2), state=np.int32(0))) == 3


def test_rules_are_found_by_name():
    assert find_text("token") == token
    assert find_text(token) is token
    assert exact_law(BASE, "replace-from-target", draft_length=1, length=1).tolist() == [
        Fraction(n, 100) for n in (35, 39, 26)
    ]
    with pytest.raises(UnknownNameError, match=r"known: .*block.*token.*Did you mean 'block'"):
        find_text("blok")
    with pytest.raises(InputError, match="a rule is a name or a text; got int"):
        find_text(3)


LARGE = Pair.from_weights([1] * 200, [1] * 200)
MANY = Pair.from_weights([[[1] * 10] * 5] * 5, [[[1] * 10] * 5] * 5)
LINE = Pair.from_weights([[1] * 12] * 40, [list(range(1, 13))] * 40)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: exact_law(LARGE, "token", draft_length=1, length=3), "3 tokens has 8,000,000 cells"),
        (
            lambda: exact_law(LARGE, "block", draft_length=3, length=1),
            r"about [\d,]+ branches for one target call",
        ),
        (lambda: exact_law(LINE, "block", draft_length=5, length=3), "at most 666,666 are walked"),
        (lambda: exact_law(MANY, "token", draft_length=5, length=5), "of a call from each of 25 states"),
        (lambda: exact_accepted(LARGE, "block", draft_length=3), "branches for one target call"),
        (lambda: exact_law(BASE, "token", draft_length=1, length=0), "length=0"),
        (lambda: exact_law(BASE, "token", draft_length=1, length=33), "length=33"),
        (lambda: exact_law(BASE, "token", draft_length=0, length=1), "draft_length=0"),
        (lambda: exact_law([1, 2], "token", draft_length=1, length=1), "needs a Pair"),
        (lambda: exact_accepted(BASE, "token", draft_length=1, state=1), "state=1"),
        (lambda: exact_accepted(BASE, "token", draft_length="2"), "draft_length='2'"),
        (lambda: exact_accepted(corner_case("automaton"), "token", draft_length=1, state=2), "ends the text"),
        (lambda: exact_accepted(corner_case("draft-by-slot"), "token", draft_length=65), "draft_length=65"),
    ],
)
def test_what_cannot_be_had_is_refused(call, says):
    with pytest.raises(InputError, match=says if "\\" in says else re.escape(says)):
        call()
