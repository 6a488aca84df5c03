"""Tables against the rows they were built from, as rationals; nothing is drawn at random here."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from simkit.laws.rows import Row, rows_from_floats
from simkit.laws.synthetic import corner_cases, dirichlet, near_copy, zipf
from simkit.rules import draws
from simkit.sampling import tables
from simkit.sampling.tables import ALWAYS, Coins, alias_tables, coins
from simkit.sampling.vectorised import draw
from tests.sampling.cases import random_rows

WEIGHT = st.one_of(st.integers(0, 3), st.integers(0, 2**30), st.integers(0, 2**50))
ROWS = st.lists(WEIGHT, min_size=1, max_size=9).filter(any)
LARGE = st.one_of(st.integers(1, 9), st.integers(1, 2**62), st.integers(2**62 - 9, 2**62))
SUPERFINE = 2**61 + 1  # odd, so that no common divisor makes it smaller


def distance(row: list[int]) -> Fraction:
    """Return the total variation between a row and its table's law; the supports have to be the same."""
    law, total = alias_tables(np.array([row])).law(), sum(row)
    assert sum(law) == 1
    assert [f > 0 for f in law] == [w > 0 for w in row]
    return sum(abs(f - Fraction(w, total)) for f, w in zip(law, row, strict=True)) / 2


def near_enough(row: list[int]) -> bool:
    return distance(row) < Fraction(len(row), 2**63)


@given(ROWS)
@example([1])
@example([0, 0, 1])
@example([1, 0, 1, 0])
@example([2**62])
@example([2**59 - 1, 2**59])
def test_the_law_of_a_table_is_its_row(row):
    # Red for a wrong threshold, a wrong alias, or a word counted twice.
    assert near_enough(row)


@pytest.mark.parametrize("pair", corner_cases().values(), ids=lambda pair: pair.name)
def test_the_law_of_every_corner_case(pair):
    assert all(near_enough(row) for row in pair.rows[:8].tolist())


@pytest.mark.parametrize("size", [2, 17, 64, 257, 300])
@pytest.mark.parametrize("make", [zipf, lambda v: dirichlet(v, 0.05, 3), lambda v: near_copy(zipf(v), 0.3)])
def test_the_law_of_larger_rows(make, size):
    assert near_enough(make(size).weights.tolist())


@given(ROWS)
def test_powers_of_two_are_exact(row):
    # Weights against a total of 2**40 over 2**k tokens have coins without a remainder: the law is the row.
    size = 2 ** (len(row) - 1).bit_length()
    floats = np.array((row + [0] * size)[:size], dtype=float)
    weights = rows_from_floats(floats / floats.sum())
    law = alias_tables(weights[None]).law()
    assert law == Row(weights).fractions


def with_coins(change):
    """Return `coins` with its result changed."""
    return lambda n, d: Coins(np.minimum(change(coins(n, d).exact), np.uint64(ALWAYS)))


@pytest.mark.parametrize(
    "change",
    [
        lambda exact: exact >> np.uint64(31) << np.uint64(31),
        lambda exact: exact - (exact >> np.uint64(40)),
        lambda exact: exact + np.uint64(2**10),
        lambda exact: exact >> np.uint64(1),
    ],
    ids=["32 bits", "low by 1e-12", "high by 1e-16", "half"],
)
def test_a_wrong_threshold_is_seen(monkeypatch, change):
    row = [50, 30, 15, 4]
    assert near_enough(row)
    monkeypatch.setattr(tables, "coins", with_coins(change))
    assert not near_enough(row)


@given(st.lists(ROWS, min_size=1, max_size=3))
def test_tables_equal_the_plain_reference(rows):
    # Two texts, one in Numba and one over Python's integers and fractions.
    size = max(map(len, rows))
    rows = [row + [0] * (size - len(row)) for row in rows]
    built = alias_tables(np.array(rows))
    for at, row in enumerate(rows):
        cells = list(zip(built.coins.exact[at].tolist(), built.alias[at].tolist(), strict=True))
        assert cells == draws.alias_table(tuple(row))


def test_tables_equal_the_plain_reference_on_larger_rows(rng):
    rows = random_rows(rng, 5, 200)
    built = alias_tables(rows)
    for at, row in enumerate(rows.tolist()):
        cells = list(zip(built.coins.exact[at].tolist(), built.alias[at].tolist(), strict=True))
        assert cells == draws.alias_table(tuple(row))


@given(ROWS)
def test_the_law_counts_the_words_that_draw(row):
    # `law` counts intervals of words; here the words at both ends of each interval are drawn.
    built, size = alias_tables(np.array([row])), len(row)
    for cell, (coin, other) in enumerate(draws.alias_table(tuple(row))):
        first, end, after = (
            -(-product // size) for product in (cell << 64, (cell << 64) + 2 * coin, (cell + 1) << 64)
        )
        wanted = {first: cell if coin else other, after - 1: other if coin < ALWAYS else cell}
        if 0 < coin < ALWAYS:
            wanted |= {end - 1: cell, end: other}
        words = np.array(list(wanted), dtype=np.uint64)
        rows = np.zeros(len(words), dtype=np.int64)
        assert draw(built, rows, words).tolist() == list(wanted.values())
        assert [draws.draw(tuple(row), word) for word in wanted] == list(wanted.values())


@given(LARGE, st.data())
def test_coins_are_python_s_integers(d, data):
    # Long division against Python: extremes of both sides, and the quotient's last bit.
    some = data.draw(st.lists(st.integers(0, d - 1), max_size=5))
    numerators = [0, d - 1, d, min(d + 1, 2**63 - 1), d // 2, d // 3, 2**63 - 1, *some]
    found = coins(np.array([numerators]), np.array([[d]])).exact[0].tolist()
    assert found == [2**63 * min(n, d) // d for n in numerators]
    assert (found[0], found[2]) == (0, ALWAYS)
    assert all(coin < ALWAYS for n, coin in zip(numerators, found, strict=True) if n < d)


@given(st.lists(st.tuples(LARGE, LARGE), min_size=1, max_size=6))
def test_coins_of_mixed_denominators(ratios):
    # The step of the long division comes from the largest denominator, and serves all.
    n, d = (np.array([side]) for side in zip(*ratios, strict=True))
    expected = [2**63 * min(a, b) // b for a, b in ratios]
    assert coins(n, d).exact[0].tolist() == expected


def test_never_is_0_and_always_is_2_to_the_63():
    coin = coins(np.array([[0, 7, 8, 6]]), np.array([[7, 7, 7, 7]]))
    assert coin.exact[0, :3].tolist() == [0, ALWAYS, ALWAYS]
    largest = 2**64 - 1
    assert int(coin.exact[0, 0]) == 0  # no word is below it
    assert all(largest >> 1 < int(c) for c in coin.exact[0, 1:3])
    assert not largest >> 1 < int(coin.exact[0, 3])
    assert coin.top[0].tolist() == [0, 2**32 - 1, 2**32 - 1, int(coin.exact[0, 3]) >> 31]


@pytest.mark.parametrize(
    "row", [[SUPERFINE, 2, 0, 0], [2**200 + 1, 2**199, 1, 0]], ids=["62 bits", "200 bits"]
)
def test_weights_too_fine_for_64_bits_are_as_exact(row):
    # Red when bits are dropped on the way to Python's integers, or the coins lose their 63 bits.
    rows = np.array([row], dtype=object if max(row) > 2**63 else np.int64)
    law, total = alias_tables(rows).law(), sum(row)
    assert sum(law) == 1
    assert all(abs(f - Fraction(w, total)) < Fraction(1, 2**61) for f, w in zip(law, row, strict=True))
    assert np.array_equal(alias_tables(rows.astype(object)).coins.exact, alias_tables(rows).coins.exact)


def test_coins_of_integers_beyond_64_bits_are_exact():
    n, d = np.array([[2**100, 2**100 - 1, 0]], dtype=object), np.array([[2**101, 2**100, 3]], dtype=object)
    assert coins(n, d).exact[0].tolist() == [2**62, 2**63 - 1, 0]


def test_a_common_divisor_makes_fine_weights_fit():
    fine = [3 * 2**59, 2**59, 0, 0]
    assert alias_tables(np.array([fine])).law() == Row.from_weights([3, 1, 0, 0]).fractions


def test_rows_of_different_totals_share_a_table():
    rows = [[1, 3], [10, 0], [2**40, 2**40]]
    built = alias_tables(np.array(rows))
    assert [built.law(at) for at in range(3)] == [Row.from_weights(row).fractions for row in rows]


def test_packed_holds_leading_bits_and_alias(rng):
    built = alias_tables(random_rows(rng, 3, 20))
    assert np.array_equal(built.packed >> np.uint64(32), built.coins.top)
    assert np.array_equal(built.packed & np.uint64(2**32 - 1), built.alias)
