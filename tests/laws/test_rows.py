"""Rows: float rows become integers by a stated rule, and their distances are exact."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from simkit.errors import InputError
from simkit.laws import rows as rows_module
from simkit.laws.rows import (
    LARGEST_TOTAL,
    TOTAL,
    Row,
    common,
    decimals,
    probabilities,
    reduced,
    rows_from_floats,
    rows_from_weights,
)

masses = st.floats(0.0, 1.0) | st.sampled_from([0.0, 1e-9, 2.0**-40, 1e-13, 1e-300, 5e-324])
float_rows = st.lists(masses, min_size=1, max_size=12).filter(lambda row: math.fsum(row) > 1e-3)
weights = st.lists(st.integers(0, 1000) | st.integers(0, 2**30), min_size=1, max_size=8).filter(any)


@st.composite
def two_rows(draw: st.DrawFn) -> tuple[Row, Row]:
    size = draw(st.integers(1, 8))
    row = st.lists(st.integers(0, 50), min_size=size, max_size=size).filter(any)
    return Row.from_weights(draw(row)), Row.from_weights(draw(row))


def normalised(masses: Sequence[float]) -> np.ndarray:
    return np.array(masses) / math.fsum(masses)


def slow_rows(p: list[Fraction]) -> list[int]:
    """Largest remainder in exact arithmetic, from the docstring: at least one unit where p > 0."""
    single: set[int] = set()
    while True:
        units = TOTAL - len(single)
        mass = sum(x for t, x in enumerate(p) if t not in single)
        quota = [Fraction(0) if t in single else x * units / mass for t, x in enumerate(p)]
        more = {t for t, x in enumerate(p) if x > 0 and t not in single and quota[t] < 1}
        if not more:
            break
        single |= more
    result = [math.floor(x) for x in quota]
    by_remainder = sorted(range(len(p)), key=lambda t: (result[t] - quota[t], t))
    for t in by_remainder[: units - sum(result)]:
        result[t] += 1
    return [1 if t in single else x for t, x in enumerate(result)]


# Float rows.


@given(float_rows)
@example([1.0])
@example([5e-324, 1.0])
@example([2.0**-41] * 3 + [1.0])
def test_total_and_support_survive(row: list[float]) -> None:
    p = normalised(row)
    result = rows_from_floats(p)
    assert result.dtype == np.int64
    assert result.sum() == TOTAL
    np.testing.assert_array_equal(result > 0, p > 0)


@given(st.lists(st.just(0.0) | st.floats(1e-6, 1.0), min_size=1, max_size=12).filter(any))
def test_error_is_below_one_unit_where_no_token_is_tiny(row: list[float]) -> None:
    p = normalised(row)
    assert np.abs(rows_from_floats(p) - p * TOTAL).max() < 1.001


@given(float_rows)
def test_tiny_tokens_get_one_unit_and_the_rest_pay_in_proportion(row: list[float]) -> None:
    p = normalised(row)
    result = rows_from_floats(p)
    assert (result[(p > 0) & (p * TOTAL < 1)] == 1).all()
    large = p * TOTAL >= 2**20
    assert np.abs(result - p * TOTAL)[large].max(initial=0.0) < 1.001 + len(p)


@given(st.lists(st.integers(0, 2**12) | st.integers(0, 2), min_size=1, max_size=10).filter(any))
def test_against_exact_arithmetic(numerators: list[int]) -> None:
    """Dyadic probabilities go through floats without error, so the slow rule must give the same units."""
    whole = 2 ** (sum(numerators) - 1).bit_length() if sum(numerators) > 1 else 1
    numerators = [*numerators, whole - sum(numerators)]
    p = [Fraction(n, whole) for n in numerators]
    assert rows_from_floats([float(x) for x in p]).tolist() == slow_rows(p)


def test_remainders_decide_and_ties_go_by_token_id() -> None:
    unit = 2.0**-40
    p = np.array([0.25 + 0.25 * unit, 0.25 + 0.5 * unit, 0.25 + 0.25 * unit, 0.25 - unit])
    assert rows_from_floats(p).tolist() == [TOTAL // 4, TOTAL // 4 + 1, TOTAL // 4, TOTAL // 4 - 1]
    thirds = rows_from_floats(np.full(3, 1 / 3)) - TOTAL // 3
    assert thirds.tolist() == [1, 0, 0]


def test_a_quota_that_falls_below_one_unit_while_others_are_served_gets_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ten tiny tokens take ten of 64 units; ten quotas of one unit then fall to 54/64, and all get one."""
    monkeypatch.setattr(rows_module, "TOTAL", 64)
    p = np.array([1e-300] * 10 + [1 / 64] * 10 + [54 / 64])
    assert rows_from_floats(p).tolist() == [1] * 20 + [44]


@given(float_rows)
def test_permutation_moves_weights_with_tokens(row: list[float]) -> None:
    """Distinct remainders are served in any order alike; ties differ by one unit at most."""
    p = normalised(row)
    order = np.random.default_rng(len(row)).permutation(len(p))
    assert np.abs(rows_from_floats(p)[order] - rows_from_floats(p[order])).max() <= 1
    remainders = (p * TOTAL) % 1
    if (p * TOTAL >= 2).all() and len(set(np.round(remainders, 3))) == len(p):
        np.testing.assert_array_equal(rows_from_floats(p)[order], rows_from_floats(p[order]))


@given(float_rows)
def test_idempotent(row: list[float]) -> None:
    once = rows_from_floats(normalised(row))
    np.testing.assert_array_equal(rows_from_floats(probabilities(once)), once)


@given(st.lists(st.tuples(masses, masses, masses, masses), min_size=2, max_size=4))
def test_rows_do_not_depend_on_their_neighbours(rows: list[tuple[float, ...]]) -> None:
    rows = [row for row in rows if math.fsum(row) > 1e-3]
    assume(rows)
    both = rows_from_floats([normalised(row) for row in rows])
    for result, row in zip(both, rows, strict=True):
        np.testing.assert_array_equal(result, rows_from_floats(normalised(row)))


def test_shapes_and_dtypes() -> None:
    assert rows_from_floats(np.full((2, 3, 4), 0.25)).shape == (2, 3, 4)
    assert rows_from_floats([0, 1]).tolist() == [0, TOTAL]
    assert rows_from_floats(np.array([0.25, 0.75], dtype=np.float32)).tolist() == [TOTAL // 4, 3 * TOTAL // 4]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([0.5, math.nan], r"row has 1 NaN entries, the first at \[1\]"),
        ([[0.5, 0.5], [math.inf, 0.5]], r"row has 1 infinite entries, the first at \[1, 0\]"),
        ([1.5, -0.5], r"row has 1 negative entries, the first at \[1\]; .* finite number >= 0"),
        ([], r"shape \(0,\); a row needs at least one token"),
        (np.zeros((3, 0)), r"shape \(3, 0\); a row needs at least one token"),
        (0.5, r"shape \(\)"),
        (["a", "b"], "must hold numbers"),
        (np.array([0.5, 0.5j]), "must hold numbers"),
        ([0.5, 0.500002], r"number 0 sums to 1.000002, more than 1e-06 from 1; normalise it first"),
        ([[0.5, 0.5], [0.5, 0.499]], r"number 1 sums to 0.999, .* \(row / row.sum\(\)\)"),
        (np.array([0.5, 0.4998], dtype=np.float32), r"more than 0.0001 from 1"),
        ([0.0, 0.0], "sums to 0,"),
        ([1, 2], "sums to 3, .* pass integer weights to from_weights"),
    ],
)
def test_bad_float_rows(values: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        rows_from_floats(values)  # type: ignore[arg-type]


def test_sums_a_little_off_are_normalised() -> None:
    assert rows_from_floats([0.5, 0.5000009]).sum() == TOTAL
    assert rows_from_floats(np.array([0.5, 0.49991], dtype=np.float32)).sum() == TOTAL
    assert rows_from_floats(np.array([0.5, 0.49991], dtype=np.float16)).sum() == TOTAL


def test_the_error_names_the_row() -> None:
    with pytest.raises(InputError, match=r"^target has 1 NaN"):
        rows_from_floats([math.nan], "target")


# Weights.


@given(weights)
def test_weights_are_kept(row: list[int]) -> None:
    assert rows_from_weights(row).tolist() == row


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1, -1, 2], r"negative weight at \[1\]"),
        ([[1, 1], [0, 0]], "all zero"),
        ([0.5, 0.5], "integer weights; it has dtype float64"),
        ([True, False], "integer weights"),
        ([], "at least one token"),
        (3, "at least one token"),
        ([2**62, 2**62], r"total 9.223e\+18; at most 2\*\*62"),
        (np.array([2**64 - 1], dtype=np.uint64), r"at most 2\*\*62"),
    ],
)
def test_bad_weights(values: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        rows_from_weights(values)  # type: ignore[arg-type]


def test_the_largest_total_is_allowed() -> None:
    assert Row.from_weights([LARGEST_TOTAL]).total == LARGEST_TOTAL


@given(weights)
def test_reduced_is_the_same_law_in_lowest_terms(row: list[int]) -> None:
    result = reduced(np.array(row, dtype=np.int64)).tolist()
    assert math.gcd(*result) == 1
    assert [Fraction(w, sum(result)) for w in result] == [Fraction(w, sum(row)) for w in row]


@given(two_rows())
def test_common_is_the_same_laws_against_one_total(rows: tuple[Row, Row]) -> None:
    p, q = common(rows[0].weights, rows[1].weights)
    assert p.sum() == q.sum()
    assert [Fraction(w, int(p.sum())) for w in p.tolist()] == rows[0].fractions
    assert [Fraction(w, int(q.sum())) for w in q.tolist()] == rows[1].fractions
    assert p.sum() == math.lcm(rows[0].total, rows[1].total)


def test_common_reduces_before_it_gives_up() -> None:
    big = 2**40
    p, q = common(np.array([2 * big, big]), np.array([3 * big, 4 * big]))
    assert (p.tolist(), q.tolist()) == ([14 * big, 7 * big], [9 * big, 12 * big])
    p, q = common(np.array([2**60, 2**60]), np.array([3**38, 2 * 3**38]))
    assert (p.tolist(), q.tolist()) == ([3, 3], [2, 4])
    with pytest.raises(InputError, match=r"common multiple above 2\*\*62"):
        common(np.array([2**40, 1]), np.array([2**40, 3]))


def test_common_works_row_by_row() -> None:
    p, q = common(np.array([[1, 1], [1, 2]]), np.array([[1, 2], [1, 2]]))
    assert (p.tolist(), q.tolist()) == ([[3, 3], [1, 2]], [[2, 4], [1, 2]])


# Distances.


@given(two_rows())
def test_distances_against_fractions(rows: tuple[Row, Row]) -> None:
    p, q = rows
    pairs = list(zip(p.fractions, q.fractions, strict=True))
    assert p.overlap(q) == sum(min(a, b) for a, b in pairs)
    assert p.total_variation(q) == sum(abs(a - b) for a, b in pairs) / 2
    assert p.overlap(q) + p.total_variation(q) == 1
    assert p.overlap(q) == q.overlap(p)
    assert (p.total_variation(q) == 0) == (p == q)


@given(two_rows())
def test_residual_against_fractions(rows: tuple[Row, Row]) -> None:
    p, q = rows
    assume(p != q)
    gap = [max(a - b, Fraction(0)) for a, b in zip(p.fractions, q.fractions, strict=True)]
    assert p.residual(q).fractions == [g / sum(gap) for g in gap]


@given(two_rows())
def test_the_token_rule_is_lossless(rows: tuple[Row, Row]) -> None:
    """min(p, q) + TV * residual = p, in fractions."""
    p, q = rows
    assume(p != q)
    residual, refused = p.residual(q).fractions, p.total_variation(q)
    for t, (a, b) in enumerate(zip(p.fractions, q.fractions, strict=True)):
        assert min(a, b) + refused * residual[t] == a


def test_residual_of_equal_rows_is_refused() -> None:
    with pytest.raises(InputError, match="residual of a row against itself is empty"):
        Row.from_weights([1, 1]).residual(Row.from_weights([2, 2]))


@pytest.mark.parametrize("method", ["overlap", "total_variation", "residual", "kl"])
def test_rows_of_different_sizes_cannot_be_compared(method: str) -> None:
    with pytest.raises(InputError, match="rows of 1 and 2 tokens"):
        getattr(Row.from_weights([1]), method)(Row.from_weights([1, 1]))


@given(two_rows())
def test_entropy_and_divergence(rows: tuple[Row, Row]) -> None:
    p, q = rows
    terms = [float(a) * (math.log(a.numerator) - math.log(a.denominator)) for a in p.fractions if a]
    assert p.entropy() == pytest.approx(-math.fsum(terms), abs=1e-12)
    assert -1e-12 <= p.entropy() <= math.log(len(p)) + 1e-12
    gaps = [
        math.inf if b == 0 else float(a) * math.log(a / b)
        for a, b in zip(p.fractions, q.fractions, strict=True)
        if a
    ]
    assert p.kl(q) == pytest.approx(sum(gaps), abs=1e-12)
    assert p.kl(q) >= 2 * float(p.total_variation(q)) ** 2 - 1e-12  # Pinsker


def test_known_entropies() -> None:
    assert Row.from_weights([1, 1, 1, 1]).entropy() == pytest.approx(math.log(4))
    assert Row.from_weights([0, 5]).entropy() == 0.0
    assert Row.from_weights([1, 1]).kl(Row.from_weights([2, 0])) == math.inf


# The object.


def test_equal_laws_are_equal_rows_and_hash_alike() -> None:
    small, large = Row.from_weights([1, 2, 0]), Row.from_weights([50, 100, 0])
    assert small == large
    assert hash(small) == hash(large)
    assert small != Row.from_weights([1, 2])
    assert small != Row.from_weights([2, 1, 0])
    assert small != [1, 2, 0]


def test_a_row_cannot_be_changed() -> None:
    given_weights = np.array([1, 2])
    row = Row(given_weights)
    given_weights[0] = 7
    assert row.weights.tolist() == [1, 2]
    with pytest.raises(ValueError, match="read-only"):
        row.weights[0] = 7


def test_a_row_has_one_axis() -> None:
    with pytest.raises(InputError, match=r"one row of weights; got shape \(1, 2\)"):
        Row.from_weights([[1, 2]])


def test_printing() -> None:
    assert repr(Row.from_weights([1, 3, 0])) == "Row(0.25, 0.75, 0)"
    assert decimals(np.arange(1, 11), most=4) == "0.0181818, 0.0363636, 0.0545455, ... 10 tokens"
    assert decimals(np.arange(1, 5), most=4) == "0.1, 0.2, 0.3, 0.4"
    assert Row.from_floats([0.5, 0.5]).probabilities.tolist() == [0.5, 0.5]
