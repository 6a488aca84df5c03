from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simkit.errors import InputError, TooLargeError, UnknownNameError
from simkit.laws.pair import Pair
from simkit.laws.synthetic import corner_case, near_copy, zipf
from simkit.rules import acceptance
from simkit.rules.acceptance import (
    best_draft_length,
    expected_calls,
    known_calls,
    speedup,
    tokens_per_call,
)
from simkit.rules.exact import exact_accepted
from simkit.rules.registry import find_text

RATES = st.floats(0.0, 1.0)
COSTS = st.floats(0.0, 2.0)


def walk(pair: Pair, rule: str, K: int, state: int, slot: int = 0, mass: Fraction = Fraction(1)) -> Iterator:
    """Yield (probability, kept, judged, state after, tokens) of every path of a block, from the paper."""

    def after(token: int) -> int:
        return int(pair.next_state[state, token if pair.next_state.shape[1] > 1 else 0])

    p = pair.target_row(state).fractions
    if slot == K:
        yield from ((mass * w, K, K, after(t), K + 1) for t, w in enumerate(p) if w)
        return
    q = pair.draft_row(state, slot).fractions
    for t, drafted in enumerate(q):
        keep = mass * drafted * min(Fraction(1), p[t] / drafted) if drafted else 0
        if keep and after(t) == pair.end:
            yield keep, slot + 1, slot + 1, after(t), slot + 1
        elif keep:
            yield from walk(pair, rule, K, after(t), slot + 1, keep)
    residual = [max(a - b, Fraction(0)) for a, b in zip(p, q, strict=True)]
    for t, excess in enumerate(residual):
        refused = mass * (excess if rule == "token" else sum(residual) * p[t])
        if refused:
            yield refused, slot, slot + 1, after(t), slot + 1


def by_hand(pair: Pair, rule: str, K: int, L: int) -> tuple[list[Fraction], list[Fraction]]:
    """Return the expected accepted histogram and judged drafts of a decode, over all paths of all blocks."""

    @cache
    def rest(state: int, position: int) -> tuple[list[Fraction], list[Fraction]]:
        accepted, judged = [Fraction(0)] * (K + 1), [Fraction(0)] * K
        if position >= L or state == pair.end:
            return accepted, judged
        for mass, kept, tried, after, tokens in walk(pair, rule, K, state):
            accepted[kept] += mass
            more_accepted, more_judged = rest(after, position + tokens)
            accepted = [a + mass * b for a, b in zip(accepted, more_accepted, strict=True)]
            judged = [
                a + mass * ((i < tried) + b) for i, (a, b) in enumerate(zip(judged, more_judged, strict=True))
            ]
        return accepted, judged

    starts = [rest(int(state), 0) for state in pair.initial]
    mean = [
        [sum(cells) / len(starts) for cells in zip(*side, strict=True)] for side in zip(*starts, strict=True)
    ]
    return mean[0], mean[1]


@st.composite
def automata(draw: st.DrawFn) -> Pair:
    """Draw an automaton of up to three tokens, states, requests and draft slots, with or without an end."""
    V, S, slots = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.sampled_from([1, 3]))
    number = st.integers(0, S - 1)
    row = st.lists(st.integers(0, 4), min_size=V, max_size=V).filter(any)
    rows = draw(st.lists(row, min_size=1, max_size=4))
    which = st.integers(0, len(rows) - 1)
    columns = draw(st.sampled_from([1, V]))

    def table(cell, width):
        return draw(st.lists(st.lists(cell, min_size=width, max_size=width), min_size=S, max_size=S))

    end = draw(st.sampled_from([None, S - 1])) if S > 1 else None
    start = number if end is None else st.integers(0, S - 2)
    return Pair(
        rows=np.array(rows),
        target=np.array(draw(st.lists(which, min_size=S, max_size=S))),
        draft=np.array(table(which, slots)),
        next_state=np.array(table(number, columns)),
        initial=np.array(draw(st.lists(start, min_size=1, max_size=3))),
        end=end,
    )


@settings(max_examples=60)
@given(automata(), st.sampled_from(["token", "replace-from-target"]), st.integers(1, 3), st.integers(1, 4))
def test_expected_calls_are_those_of_every_path(pair, rule, K, L):
    # Red for a wrong move of kept, replaced or bonus tokens, of the end state, or of the last call's drafts.
    accepted, judged = by_hand(pair, rule, K, L)
    found = expected_calls(pair, rule, draft_length=K, length=L)
    assert found.accepted == pytest.approx([float(a) for a in accepted], abs=1e-13)
    assert found.judged == pytest.approx([float(j) for j in judged], abs=1e-13)
    kept = sum(i * a for i, a in enumerate(accepted))
    assert found.calls == pytest.approx(float(sum(accepted)), abs=1e-13)
    assert found.acceptance == pytest.approx(float(kept / sum(judged)), abs=1e-13)
    assert found.tokens_per_call == pytest.approx(float(1 + kept / sum(accepted)), abs=1e-13)


@pytest.mark.parametrize("name", ["by-position", "requests", "draft-by-slot", "automaton", "one-hot-draft"])
@pytest.mark.parametrize("rule", ["token", "replace-from-target"])
def test_expected_calls_of_corner_cases(name, rule):
    pair = corner_case(name)
    accepted, judged = by_hand(pair, rule, 2, 4)
    found = expected_calls(pair, rule, draft_length=2, length=4)
    assert found.accepted == pytest.approx([float(a) for a in accepted], abs=1e-13)
    assert found.judged == pytest.approx([float(j) for j in judged], abs=1e-13)


def test_the_two_rules_are_told_apart():
    # Without this, the comparison above could not see a forward pass that ignores its rule.
    pair = corner_case("automaton")
    right, broken = (by_hand(pair, rule, 2, 4)[0] for rule in ("token", "replace-from-target"))
    assert max(abs(a - b) for a, b in zip(right, broken, strict=True)) > 0.01


@given(st.integers(1, 6), st.integers(1, 12), st.floats(0.0, 0.8))
def test_one_state_has_the_closed_form_at_any_length(K, L, distance):
    # The last call is run to its end, so that the decode's length leaves no trace.
    target = zipf(7)
    pair = Pair.from_rows(target=target, draft=near_copy(target, distance))
    a = float(pair.target_row().overlap(pair.draft_row()))
    found = expected_calls(pair, draft_length=K, length=L)
    assert found.acceptance == pytest.approx(a, abs=1e-12)
    assert found.tokens_per_call == pytest.approx(float(tokens_per_call(a, K)), abs=1e-12)
    assert found.judged == pytest.approx(found.calls * a ** np.arange(K), abs=1e-12)


def test_expected_calls_refuse_what_they_cannot_use():
    with pytest.raises(UnknownNameError, match=r"known: .*token"):
        expected_calls(corner_case("equal"), "tokens", draft_length=1, length=1)
    slots = Pair.by_slot(target=[0.5, 0.5], draft=[[0.5, 0.5]] * 2)
    with pytest.raises(InputError, match="draft rows for 2 slots; draft_length=3"):
        expected_calls(slots, draft_length=3, length=1)
    good = {"pair": slots, "draft_length": 1, "length": 1}
    for wrong in ({"draft_length": 0}, {"draft_length": 65}, {"length": 0}, {"length": 1.5}, {"pair": None}):
        for rule in ("token", "block"):
            with pytest.raises(InputError):
                expected_calls(rule=rule, **{**good, **wrong})


@given(RATES, st.integers(0, 64))
def test_tokens_per_call_is_the_geometric_sum(a, K):
    exact = float(sum(Fraction(a) ** i for i in range(K + 1)))
    assert float(tokens_per_call(a, K)) == pytest.approx(exact, rel=1e-13)
    if a < 0.999:
        assert float(tokens_per_call(a, K)) == pytest.approx((1 - a ** (K + 1)) / (1 - a), rel=1e-9)
    assert 1 <= float(tokens_per_call(a, K)) <= K + 1


def test_tokens_per_call_broadcasts():
    a, K = np.array([[0.0], [0.5], [1.0]]), np.array([1, 2, 3])
    assert tokens_per_call(a, K).tolist() == [[1, 1, 1], [1.5, 1.75, 1.875], [2, 3, 4]]


@given(RATES, st.integers(1, 64), COSTS)
def test_speedup_is_tokens_over_time(a, K, c):
    assert float(speedup(a, K, c)) == pytest.approx(float(tokens_per_call(a, K)) / (K * c + 1), rel=1e-13)


@given(st.integers(0, 100), st.integers(0, 100))
def test_one_draft_loses_exactly_where_acceptance_is_below_cost(a, c):
    gain = float(speedup(a / 100, 1, c / 100))
    assert (gain < 1) == (a < c)


@given(st.integers(0, 99), st.integers(0, 100), st.integers(1, 64))
def test_the_best_draft_length_is_the_best_of_all(a, c, longest):
    K, gain = best_draft_length(a / 100, c / 100, longest)
    every = [float(tokens_per_call(a / 100, k)) / (k * c / 100 + 1) for k in range(1, longest + 1)]
    if a > c:
        assert 1 <= K <= longest
        assert gain == pytest.approx(max(every), rel=1e-13)
        assert gain == pytest.approx(every[K - 1], rel=1e-13)
    elif a < c:  # a + ... + a^K <= K a < K c: where one draft loses, more lose as well
        assert (K, gain) == (0, 1.0)
        assert max(every) < 1


@pytest.mark.parametrize("name", ["automaton", "by-position", "requests", "draft-by-slot"])
@pytest.mark.parametrize(("K", "L"), [(1, 1), (2, 5), (3, 4)])
def test_walking_a_text_gives_what_the_forward_pass_gives(name, K, L):
    # The token rule as a text that does not show that it is a chain rule.
    pair, token = corner_case(name), find_text("token")
    walked = expected_calls(pair, lambda model, choose: token(model, choose), draft_length=K, length=L)
    passed = expected_calls(pair, "token", draft_length=K, length=L)
    assert walked.accepted == pytest.approx(passed.accepted, abs=1e-12)
    assert walked.judged == pytest.approx(passed.judged, abs=1e-12)


def test_a_rule_that_is_walked_has_the_acceptance_of_its_exact_law():
    pair = Pair.from_weights([5, 3, 2], [2, 3, 5])
    found = expected_calls(pair, "block", draft_length=3, length=9)
    exact = exact_accepted(pair, "block", draft_length=3)
    assert found.tokens_per_call == pytest.approx(1 + float(sum(k * m for k, m in enumerate(exact))))
    assert found.accepted / found.calls == pytest.approx([float(m) for m in exact])


def test_what_cannot_be_walked_is_not_known():
    wide = Pair.from_weights([1] * 300, [1] * 300)
    assert known_calls(wide, "block", draft_length=4, length=5) is None
    with pytest.raises(TooLargeError, match="branches"):
        expected_calls(wide, "block", draft_length=4, length=5)
    assert known_calls(wide, "token", draft_length=4, length=5).tokens_per_call == pytest.approx(5)


def test_too_many_states_are_not_walked(monkeypatch):
    monkeypatch.setattr(acceptance, "MOST_WALKED", 2)
    with pytest.raises(TooLargeError, match="more than 2 states"):
        expected_calls(corner_case("by-position"), "block", draft_length=1, length=4)
