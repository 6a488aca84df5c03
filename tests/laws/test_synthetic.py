"""Synthetic laws: the shapes asked for, distances exact to the unit, corner cases as their names say."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from simkit.errors import InputError, UnknownNameError
from simkit.laws.rows import TOTAL, Row
from simkit.laws.synthetic import (
    CORNER_CASES,
    corner_case,
    corner_cases,
    dirichlet,
    near_copy,
    tempered,
    zipf,
)

BIG = 262_144
any_row = st.lists(st.integers(0, 9) | st.integers(0, 2**30), min_size=1, max_size=9).filter(any)


# Zipf.


@pytest.mark.parametrize(("exponent", "offset"), [(1.0, 0.0), (0.5, 2.7), (3.0, -0.5), (0.0, 0.0)])
def test_zipf_follows_its_formula(exponent: float, offset: float) -> None:
    masses = [(rank + offset) ** -exponent for rank in range(1, 51)]
    exact = np.array(masses) / math.fsum(masses) * TOTAL
    assert np.abs(zipf(50, exponent, offset).weights - exact).max() < 1.01


@pytest.mark.parametrize("vocabulary", [1, 2, BIG])
def test_zipf_of_any_size_gives_every_token_weight(vocabulary: int) -> None:
    row = zipf(vocabulary, 1.2)
    assert (len(row), row.total) == (vocabulary, TOTAL)
    assert row.weights.min() >= 1
    assert (np.diff(row.weights) <= 0).all()


def test_a_steep_zipf_keeps_its_support() -> None:
    assert zipf(5, 5000.0).weights.tolist() == [TOTAL - 4, 1, 1, 1, 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0,), "vocabulary=0; it needs an integer from 1 to 4194304"),
        ((2**22 + 1,), "vocabulary=4194305"),
        ((2.5,), "vocabulary=2.5; it needs an integer"),
        ((True,), "vocabulary=True; it needs an integer"),
        ((3, -1.0), "exponent=-1.0; it needs a finite number >= 0"),
        ((3, math.nan), "exponent=nan"),
        ((3, 1.0, -1.0), "offset=-1.0; it needs a finite number above -1"),
        ((3, 1.0, math.inf), "offset=inf"),
    ],
)
def test_bad_zipf(arguments: tuple[float, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        zipf(*arguments)  # type: ignore[arg-type]


# Dirichlet.


def test_dirichlet_is_repeatable_and_depends_on_the_seed() -> None:
    assert dirichlet(9, 0.7, seed=3) == dirichlet(9, 0.7, seed=3)
    assert dirichlet(9, 0.7, seed=3) != dirichlet(9, 0.7, seed=4)


@pytest.mark.parametrize("concentration", [0.2, 1.0, 5.0])
def test_dirichlet_has_its_mean_and_variance(concentration: float) -> None:
    """Bounds of 6 standard errors for the mean; the variance of V = 4 cells is 3 / (16 (4a + 1))."""
    cells = np.array([dirichlet(4, concentration, seed).probabilities for seed in range(1500)])
    variance = 3 / 16 / (4 * concentration + 1)
    assert np.abs(cells.mean(axis=0) - 0.25).max() < 6 * math.sqrt(variance / 1500)
    assert cells.var(axis=0).mean() == pytest.approx(variance, rel=0.15)


def test_a_small_concentration_puts_nearly_all_on_one_random_token() -> None:
    """Plain gamma variates would all underflow to 0 here."""
    rows = [dirichlet(8, 1e-5, seed) for seed in range(40)]
    assert all(row.weights.max() == TOTAL - 7 for row in rows)
    assert all(row.weights.min() == 1 for row in rows)
    assert len({int(row.weights.argmax()) for row in rows}) >= 6


def test_a_large_concentration_is_nearly_uniform() -> None:
    assert np.abs(dirichlet(10, 1e10, 0).probabilities - 0.1).max() < 1e-4
    assert len(dirichlet(BIG, 0.01, 1)) == BIG
    assert dirichlet(1, 1.0, 0).weights.tolist() == [TOTAL]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 1.0, 0), "vocabulary=0"),
        ((3, 0.0, 0), "concentration=0.0; it needs a number from 1e-06 to 1e"),
        ((3, math.nan, 0), "concentration=nan"),
        ((3, math.inf, 0), "concentration=inf"),
        ((3, 1.0, -1), "seed=-1; it needs an integer of at least 0"),
        ((3, 1.0, 1.5), "seed=1.5"),
    ],
)
def test_bad_dirichlet(arguments: tuple[float, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        dirichlet(*arguments)  # type: ignore[arg-type]


# Near copies.


@given(any_row, st.floats(0.0, 1.0), st.integers(0, 5))
@example([1], 0.0, 0)
@example([0, 1], 1.0, 0)
@example([1, 1, 1], 2 / 3, 0)
@example([5, 0, 0, 5], 0.7, 1)
def test_distance_is_exact_to_the_unit(weights: list[int], distance: float, seed: int) -> None:
    row = Row.from_weights(weights)
    units = round(Fraction(distance) * row.total)
    assume(units <= row.total - min(weights))
    copy = near_copy(row, distance, seed)
    assert copy.total == row.total
    assert row.total_variation(copy) == Fraction(units, row.total)


@pytest.mark.parametrize("distance", [0.0, 2.0**-40, 0.1, 0.3, 0.725, 0.99, 1.0])
def test_distance_on_the_grid_of_float_rows(distance: float) -> None:
    row = zipf(1000)
    if distance == 1.0:
        distance = 1.0 - row.probabilities.min()
    for seed in (0, 1):
        copy = near_copy(row, distance, seed)
        assert copy.total == TOTAL
        assert row.total_variation(copy) == Fraction(round(distance * TOTAL), TOTAL)


def test_a_large_vocabulary_at_a_distance() -> None:
    row = zipf(BIG)
    assert row.total_variation(near_copy(row, 0.3)) == Fraction(round(0.3 * TOTAL), TOTAL)


@given(st.lists(st.integers(1, 10**6), min_size=2, max_size=9), st.floats(0.0, 1.0), st.integers(0, 3))
def test_full_support_is_kept_within_reach_of_the_random_order(
    weights: list[int], distance: float, seed: int
) -> None:
    row = Row.from_weights(weights)
    order = np.random.Generator(np.random.PCG64([seed, 1])).permutation(len(row))
    reach = row.total_variation(Row(row.weights[order]))
    assume(round(Fraction(distance) * row.total) <= reach * row.total)
    assert near_copy(row, distance, seed).weights.min() >= 1


def test_at_its_full_reach_the_copy_is_the_row_in_random_order() -> None:
    row = zipf(30)
    order = np.random.Generator(np.random.PCG64([2, 1])).permutation(30)
    shuffled = Row(row.weights[order])
    assert near_copy(row, float(row.total_variation(shuffled)), seed=2) == shuffled


def test_mass_moves_in_proportion() -> None:
    """Half way to the largest distance every token of a uniform row gives half its mass to token 0."""
    copy = near_copy(Row.from_weights([100, 100, 100, 100]), 0.375)
    assert copy.weights.tolist() == [250, 50, 50, 50]


def test_seeds_choose_the_order() -> None:
    row = zipf(100)
    assert near_copy(row, 0.3, 1) == near_copy(row, 0.3, 1)
    assert near_copy(row, 0.3, 1) != near_copy(row, 0.3, 2)


@pytest.mark.parametrize(
    ("weights", "distance", "message"),
    [
        ([1, 3], 0.9, r"total_variation=0.9 is out of reach: .* is 0.75 \(1 minus its smallest"),
        ([1], 1.0, "out of reach"),
        ([1, 1], 1.5, "out of reach"),
        ([1, 1], -0.1, "total_variation=-0.1; it needs a number from 0 to 1"),
        ([1, 1], math.nan, "total_variation=nan"),
    ],
)
def test_distances_out_of_reach(weights: list[int], distance: float, message: str) -> None:
    with pytest.raises(InputError, match=message):
        near_copy(Row.from_weights(weights), distance)


# Temperature.


@given(any_row, st.floats(0.2, 5.0))
def test_tempered_follows_its_formula(weights: list[int], temperature: float) -> None:
    assume(temperature != 1.0)
    row = Row.from_weights(weights)
    result = tempered(row, temperature)
    masses = (row.weights / row.weights.max()) ** (1 / temperature)
    assert np.abs(result.probabilities - masses / masses.sum()).max() < 2e-11
    np.testing.assert_array_equal(result.weights > 0, row.weights > 0)
    assert result.total == TOTAL


def test_temperature_one_is_the_same_row_and_zero_the_argmax() -> None:
    row = Row.from_weights([1, 3, 3, 0])
    np.testing.assert_array_equal(tempered(row, 1.0).weights, row.weights)
    assert tempered(row, 0.0).probabilities.tolist() == [0, 1, 0, 0]
    close = Row.from_weights([2**61 - 1, 2**61])  # the same number in floating point
    assert tempered(close, 0.0).probabilities.tolist() == [0, 1]


def test_extreme_temperatures_keep_the_support() -> None:
    row = Row.from_weights([1, 3, 0])
    assert tempered(row, 1e-300).weights.tolist() == [1, TOTAL - 1, 0]
    assert tempered(row, 1e300).weights.tolist() == [TOTAL // 2, TOTAL // 2, 0]


@pytest.mark.parametrize("temperature", [-0.1, math.nan, math.inf])
def test_bad_temperatures(temperature: float) -> None:
    with pytest.raises(InputError, match=f"temperature={temperature}; it needs a finite number >= 0"):
        tempered(Row.from_weights([1, 2]), temperature)


# Corner cases.


def test_corner_cases_are_what_their_names_say() -> None:
    cases = corner_cases()
    assert list(cases) == list(CORNER_CASES)
    assert all(pair.name == name for name, pair in cases.items())
    p = {name: pair.target_row() for name, pair in cases.items()}
    q = {name: pair.draft_row() for name, pair in cases.items()}
    assert p["equal"] == q["equal"]
    assert p["disjoint"].overlap(q["disjoint"]) == 0
    assert (p["one-hot-target"].weights > 0).sum() == 1 < (q["one-hot-target"].weights > 0).sum()
    assert (q["one-hot-draft"].weights > 0).sum() == 1 < (p["one-hot-draft"].weights > 0).sum()
    on_p, on_q = p["partial-overlap"].weights > 0, q["partial-overlap"].weights > 0
    assert (on_p & on_q).any()
    assert (on_p & ~on_q).any()
    assert (~on_p & on_q).any()
    assert (~on_p & ~on_q).any()
    many = p["many-token-residual"].residual(q["many-token-residual"])
    assert (many.weights > 0).sum() >= 2
    assert Fraction(1, 10**9) in p["rare-tokens"].fractions
    assert Fraction(1, 10**9) in q["rare-tokens"].fractions
    assert cases["one-token"].vocabulary == 1


def test_corner_cases_with_structure() -> None:
    cases = corner_cases()
    assert len({cases["by-position"].target_row(s) for s in range(5)}) == 5
    assert len(cases["requests"].initial) == 3
    assert cases["requests"].states == 6
    slots = cases["draft-by-slot"]
    assert len({slots.draft_row(0, slot) for slot in range(64)}) == 64
    slots.check_draft_length(64)
    automaton = cases["automaton"]
    assert automaton.end is not None
    assert len(set(automaton.next_state[0].tolist())) > 1
    ended = 1 - automaton.joint_law(4).sum()
    assert 0.1 < ended < 0.9


def test_unknown_corner_case() -> None:
    with pytest.raises(
        UnknownNameError, match=r"unknown corner case 'disjont'; known: .*Did you mean 'disjoint'"
    ):
        corner_case("disjont")
