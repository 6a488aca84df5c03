"""Logits to rows against a slow reference in exact arithmetic, and the stated order and ties."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from simkit.errors import InputError
from simkit.laws.logits import (
    apply_temperature,
    check_logits,
    keep_min_p,
    keep_top_k,
    keep_top_p,
    rows_from_logits,
    softmax,
    tempered_pair,
    tempered_rows,
)
from simkit.laws.ngram import ngram_pair
from simkit.laws.pair import Pair
from simkit.laws.portable import log
from simkit.laws.rows import TOTAL, Row, probabilities
from simkit.laws.synthetic import corner_cases

MASK = -math.inf
# Six decimals: logits that differ by less than a last place of their distance from the largest become ties.
some_logits = st.lists(
    st.floats(-12.0, 12.0).map(lambda x: round(x, 6)) | st.integers(-3, 3).map(float) | st.just(MASK),
    min_size=1,
    max_size=9,
).filter(lambda row: max(row) > MASK)
few_values = st.lists(st.sampled_from([MASK, 0.0, 1.0, 2.0]), min_size=1, max_size=9).filter(
    lambda row: max(row) > MASK
)


def slow_law(
    logits: list[float], temperature: float, top_k: int | None, top_p: float | None, min_p: float | None
) -> dict[int, Decimal]:
    """The law of the tokens that are left, one token at a time, in 50 digits."""
    with localcontext(prec=50):
        left = [t for t, x in enumerate(logits) if x > MASK]
        left.sort(key=lambda t: (-logits[t], t))  # likeliest first, lowest id on ties
        if temperature == 0:
            left, temperature = left[:1], 1.0
        mass = {
            t: ((Decimal(logits[t]) - Decimal(logits[left[0]])) / Decimal(temperature)).exp() for t in left
        }
        if top_k is not None:
            left = left[:top_k]
        if top_p is not None:
            whole, kept, sum_so_far = sum(mass[t] for t in left), [], Decimal(0)
            for t in left:
                if top_p < 1 and round(sum_so_far / whole * TOTAL) >= round(Decimal(top_p) * TOTAL):
                    break
                kept.append(t)
                sum_so_far += mass[t]
            left = kept
        if min_p is not None:
            left = [t for t in left if round(mass[t] * TOTAL) >= round(Decimal(min_p) * TOTAL)]
        whole = sum(mass[t] for t in left)
        return {t: mass[t] / whole for t in left}


@given(
    some_logits | few_values,
    st.sampled_from([0.0, 0.3, 0.7, 1.0, 2.0]),
    st.none() | st.integers(1, 10),
    st.none() | st.sampled_from([0.05, 0.5, 0.9, 0.999, 1.0]),
    st.none() | st.sampled_from([0.0, 0.01, 0.3, 1.0]),
)
def test_rows_against_the_slow_reference(
    logits: list[float], temperature: float, top_k: int | None, top_p: float | None, min_p: float | None
) -> None:
    rows = rows_from_logits(logits, temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p)
    law = slow_law(logits, temperature, top_k, top_p, min_p)
    assert np.flatnonzero(rows).tolist() == sorted(law)
    assert rows.sum() == TOTAL
    for token, probability in law.items():
        assert abs(int(rows[token]) - float(probability) * TOTAL) < 2 + len(logits)


def test_rows_for_any_leading_axes() -> None:
    logits = np.random.default_rng(0).integers(-4, 5, (2, 3, 7)).astype(float)
    options: dict[str, Any] = {"temperature": 0.8, "top_k": 5, "top_p": 0.9, "min_p": 0.05}
    rows = rows_from_logits(logits, **options)
    assert rows.dtype == np.int64
    for i in range(2):
        for j in range(3):
            np.testing.assert_array_equal(rows[i, j], rows_from_logits(logits[i, j], **options))


# The order of the steps.


def test_top_k_comes_before_top_p_and_renormalises() -> None:
    """Of 0.4, 0.3, 0.3 top-k leaves 4/7 and 3/7: 0.5 is reached by the first alone only after that."""
    logits = log([0.4, 0.3, 0.3])
    assert np.flatnonzero(rows_from_logits(logits, top_k=2, top_p=0.5)).tolist() == [0]
    assert np.flatnonzero(rows_from_logits(logits, top_p=0.5)).tolist() == [0, 1]


def test_temperature_comes_first() -> None:
    """At temperature 1/2 the law is 36/46, 9/46, 1/46: both filters see that one."""
    logits = log([0.6, 0.3, 0.1])
    assert np.flatnonzero(rows_from_logits(logits, top_p=0.75)).tolist() == [0, 1]
    assert np.flatnonzero(rows_from_logits(logits, temperature=0.5, top_p=0.75)).tolist() == [0]
    assert np.flatnonzero(rows_from_logits(logits, min_p=0.4)).tolist() == [0, 1]
    assert np.flatnonzero(rows_from_logits(logits, temperature=0.5, min_p=0.4)).tolist() == [0]


def test_top_p_comes_before_min_p() -> None:
    """min-p first would leave 0.4, 0.3 with 4/7 for the first; top-p first needs both to reach 0.55."""
    logits = log([0.4, 0.3, 0.15, 0.15])
    assert np.flatnonzero(rows_from_logits(logits, top_p=0.55, min_p=0.5)).tolist() == [0, 1]


# Temperature.


def test_zero_temperature_takes_the_lowest_id_of_the_largest() -> None:
    assert (rows_from_logits([[1.0, 5.0, 5.0], [2.0, 2.0, MASK]], temperature=0) / TOTAL).tolist() == [
        [0, 1, 0],
        [1, 0, 0],
    ]


@given(some_logits, st.floats(0.01, 100.0))
def test_temperature_divides_differences(logits: list[float], temperature: float) -> None:
    result = apply_temperature(logits, temperature)
    assert result.max() == 0.0
    np.testing.assert_allclose(result, (np.array(logits) - max(logits)) / temperature)


def test_a_tiny_temperature_masks_nothing() -> None:
    result = apply_temperature([1e308, -1e308, 0.0, MASK], 5e-324)
    np.testing.assert_array_equal(np.isfinite(result), [True, True, True, False])
    assert rows_from_logits([1e308, -1e308, MASK], temperature=1e-3).tolist() == [TOTAL - 1, 1, 0]


# Top-k.


def test_top_k_keeps_exactly_k_and_ties_go_by_id() -> None:
    assert np.isfinite(keep_top_k([1.0, 2.0, 1.0, 1.0], 2)).tolist() == [True, True, False, False]
    assert np.isfinite(keep_top_k([0.0, 0.0, 0.0], 1)).tolist() == [True, False, False]
    assert np.isfinite(keep_top_k([[3.0, 2.0, 1.0], [1.0, 2.0, 3.0]], 2)).tolist() == [
        [True, True, False],
        [False, True, True],
    ]


@given(some_logits | few_values, st.integers(1, 12))
def test_top_k_counts(logits: list[float], k: int) -> None:
    kept = np.isfinite(keep_top_k(logits, k))
    assert kept.sum() == min(k, np.isfinite(logits).sum())
    if not kept.all():
        assert min(np.array(logits)[kept]) >= max(np.array(logits)[~kept])


# Top-p.


def test_top_p_stops_when_the_sum_is_p_on_paper() -> None:
    """In floating point the mass of the first two is just below or above 0.8, as the last bits fall."""
    assert np.isfinite(keep_top_p(log([0.5, 0.3, 0.1, 0.1]), 0.8)).sum() == 2
    assert np.isfinite(keep_top_p(log([0.1] * 10), 0.3)).sum() == 3
    assert np.isfinite(keep_top_p(log([0.1] * 10), 0.7)).sum() == 7
    assert np.isfinite(keep_top_p(log([0.1] * 10), 0.9)).sum() == 9


def test_top_p_keeps_the_token_that_crosses_and_at_least_one() -> None:
    law = log([0.1, 0.5, 0.4])
    assert np.isfinite(keep_top_p(law, 0.51)).tolist() == [False, True, True]
    assert np.isfinite(keep_top_p(law, 0.5)).tolist() == [False, True, False]
    assert np.isfinite(keep_top_p(law, 1e-300)).tolist() == [False, True, False]
    assert np.isfinite(keep_top_p([0.0, 0.0, 0.0], 0.4)).tolist() == [True, True, False]


def test_top_p_of_one_keeps_even_what_is_below_the_grid() -> None:
    assert np.isfinite(keep_top_p([0.0, -600.0], 1.0)).all()
    assert np.isfinite(keep_top_p([0.0, -600.0], 0.999)).sum() == 1


# Min-p.


def test_min_p_is_relative_to_the_largest_and_keeps_the_bound() -> None:
    assert np.isfinite(keep_min_p(log([0.06, 0.6, 0.05, 0.29]), 0.1)).tolist() == [True, True, False, True]
    assert np.isfinite(keep_min_p([1.0, 2.0, 2.0], 1.0)).tolist() == [False, True, True]
    assert np.isfinite(keep_min_p([1.0, MASK, -700.0], 0.0)).tolist() == [True, False, True]


# Softmax.


@given(some_logits)
@example([0.0, -800.0, MASK])
def test_softmax_is_a_law_with_the_support_of_the_logits(logits: list[float]) -> None:
    law = softmax(logits)
    assert math.fsum(law.tolist()) == pytest.approx(1.0, abs=1e-15)
    np.testing.assert_array_equal(law > 0, np.isfinite(logits))


@given(some_logits, st.floats(-100.0, 100.0).map(round))
def test_a_constant_changes_nothing(logits: list[float], constant: int) -> None:
    logits = [round(x, 2) if x > MASK else x for x in logits]
    shifted = [float(Fraction(x) + constant) if x > MASK else x for x in logits]
    np.testing.assert_allclose(softmax(shifted), softmax(logits), rtol=1e-11)


# The door.


@pytest.mark.parametrize(
    ("logits", "message"),
    [
        ([0.0, math.nan], r"logits have 1 NaN entries, the first at \[1\]; to mask a token use -inf"),
        ([[0.0, 0.0], [math.inf, 0.0]], r"logits have 1 \+inf entries, the first at \[1, 0\]"),
        ([[0.0, 0.0], [MASK, MASK]], r"logits mask every token of row \[1\]"),
        ([MASK], "at least one must be above -inf"),
        ([], r"logits have shape \(0,\); a row needs at least one token"),
        (1.0, r"logits have shape \(\)"),
        (["a"], "logits must hold numbers; they have dtype <U1"),
    ],
)
def test_bad_logits(logits: Any, message: str) -> None:
    for refuses in (check_logits, rows_from_logits, softmax):
        with pytest.raises(InputError, match=message):
            refuses(logits)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"temperature": -1.0}, "temperature=-1.0; it needs a finite number >= 0"),
        ({"temperature": math.nan}, "temperature=nan"),
        ({"temperature": math.inf}, "temperature=inf"),
        ({"top_k": 0}, "top_k=0; it needs an integer of at least 1"),
        ({"top_k": -3}, "top_k=-3"),
        ({"top_k": 2.0}, "top_k=2.0; it needs an integer"),
        ({"top_p": 0.0}, "top_p=0.0; it needs a number above 0"),
        ({"top_p": 1.1}, "top_p=1.1"),
        ({"top_p": math.nan}, "top_p=nan"),
        ({"min_p": -0.1}, "min_p=-0.1; it needs a number from 0 to 1"),
        ({"min_p": 1.5}, "min_p=1.5"),
        ({"min_p": math.nan}, "min_p=nan"),
    ],
)
def test_bad_options(option: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        rows_from_logits([0.0, 1.0], **option)  # type: ignore[arg-type]


def test_integers_and_float32_are_logits_too() -> None:
    np.testing.assert_array_equal(rows_from_logits([0, 1]), rows_from_logits([0.0, 1.0]))
    half = np.array([0.1, 0.7], dtype=np.float32)
    np.testing.assert_array_equal(rows_from_logits(half), rows_from_logits(half.astype(float)))


def test_steps_leave_their_input_alone() -> None:
    logits = np.array([0.0, 1.0, 2.0])
    for result in (apply_temperature(logits, 1.0), keep_top_k(logits, 5), keep_top_p(logits, 1.0)):
        result[:] = 7.0
    assert logits.tolist() == [0.0, 1.0, 2.0]


# Tempered pairs.


@pytest.mark.parametrize("name", corner_cases())
def test_a_tempered_pair_tempers_each_row_of_each_model(name: str) -> None:
    pair = corner_cases()[name]
    hot = tempered_pair(pair, 0.0, 2.0)
    assert hot.name == f"{name} at T=0, draft T=2"
    for state in range(pair.states):
        np.testing.assert_array_equal(
            hot.target_row(state).weights, tempered_rows(pair.target_row(state).weights, 0.0)
        )
        for slot in range(pair.slots):
            np.testing.assert_array_equal(
                hot.draft_row(state, slot).weights, tempered_rows(pair.draft_row(state, slot).weights, 2.0)
            )
    for field in ("next_state", "initial"):
        np.testing.assert_array_equal(getattr(hot, field), getattr(pair, field))
    assert hot.end == pair.end


def test_a_row_of_both_models_gets_two_versions() -> None:
    zero = np.zeros((1, 1), dtype=np.int32)
    shared = Pair(np.array([[1, 2]]), zero[0], zero, zero, zero[0])
    result = tempered_pair(shared, 1.0, 0.0)
    assert result.target_row() == Row.from_floats([1 / 3, 2 / 3])
    assert result.draft_row().probabilities.tolist() == [0, 1]


def test_one_tempered_model_brings_the_other_to_its_total() -> None:
    # Counts beside tempered rows have a common total that no integer table can hold.
    pair = tempered_pair(ngram_pair(order=3), 1.0, 2.0)
    assert set(pair.rows.sum(axis=1).tolist()) == {TOTAL}
    kept = probabilities(pair.rows[pair.target])
    np.testing.assert_allclose(kept, ngram_pair(order=3).target_probabilities, atol=40 / TOTAL)


def test_temperature_one_leaves_the_rows() -> None:
    pair = ngram_pair(order=3)
    same = tempered_pair(pair, 1.0, 1.0)
    assert same.digest == pair.digest


def test_tempered_rows_keep_support_and_row_independence() -> None:
    pair = ngram_pair(order=3)
    rows = tempered_rows(pair.rows, 0.5)
    np.testing.assert_array_equal(rows > 0, pair.rows > 0)
    np.testing.assert_array_equal(rows[17], tempered_rows(pair.rows[17], 0.5))
    squares = pair.rows[17] ** 2
    assert np.abs(rows[17] - squares / squares.sum() * TOTAL).max() < 10
