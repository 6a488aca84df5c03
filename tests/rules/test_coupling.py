"""The exponential race: its joint law against areas of polygons, marginals, bounds, and simulation."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import binom

from simkit.errors import InputError
from simkit.laws.pair import Pair
from simkit.laws.rows import Row
from simkit.rules.choose import RACE, Block, sample
from simkit.rules.coupling import race_law, run_race
from simkit.rules.matching import shared_gumbel
from simkit.sampling import philox


def rows(least: int, most: int) -> st.SearchStrategy:
    """Return a strategy of two rows of weights of one length."""
    cell = st.one_of(st.integers(0, 3), st.integers(0, 2**40))
    return st.integers(least, most).flatmap(
        lambda V: st.tuples(*[st.lists(cell, min_size=V, max_size=V).filter(any)] * 2)
    )


@given(rows(1, 7))
@example(([1, 0], [0, 1]))
@example(([2, 3, 5], [2, 3, 5]))
@example(([1, 2, 3], [3, 6, 9]))
def test_both_marginals_are_the_rows_and_the_diagonal_is_the_published_one(weights):
    # Red for a wrong piece of the integral, a wrong limit of it, or a token without weight in one row.
    q, r = (Row.from_weights(w).fractions for w in weights)
    law = race_law(*weights)
    V = range(len(q))
    assert [sum(law.get((i, j), Fraction(0)) for j in V) for i in V] == q
    assert [sum(law.get((i, j), Fraction(0)) for i in V) for j in V] == r
    assert all(mass > 0 for mass in law.values())
    for i in V:
        jaccard = 1 / sum(max(q[k] / q[i], r[k] / r[i]) for k in V) if q[i] and r[i] else 0
        assert law.get((i, i), 0) == jaccard
    assert race_law(*reversed(weights)) == {(j, i): mass for (i, j), mass in law.items()}
    assert race_law(q, r) == law


@given(rows(1, 7))
def test_the_winners_agree_as_often_as_the_bounds_say(weights):
    q, r = (Row.from_weights(w).fractions for w in weights)
    same = sum(mass for (i, j), mass in race_law(*weights).items() if i == j)
    distance = 1 - sum(min(a, b) for a, b in zip(q, r, strict=True))
    assert (1 - distance) / (1 + distance) <= same <= 1 - distance


Point = tuple[Fraction, ...]


def clipped(polygon: list[Point], normal: Point) -> list[Point]:
    """Return the part of a polygon where the linear form `normal` is >= 0 (Sutherland, Hodgman 1974)."""
    kept = []
    for here, there in zip(polygon, polygon[1:] + polygon[:1], strict=True):
        a, b = (sum(n * x for n, x in zip(normal, point, strict=True)) for point in (here, there))
        if a >= 0:
            kept.append(here)
        if a * b < 0:
            share = a / (a - b)
            kept.append(tuple(x + share * (y - x) for x, y in zip(here, there, strict=True)))
    return kept


def area(polygon: list[Point]) -> Fraction:
    """Return the polygon's share of the simplex of three clocks."""
    turned = zip(polygon, polygon[1:] + polygon[:1], strict=True) if polygon else ()
    return abs(sum((a[0] * b[1] - a[1] * b[0] for a, b in turned), Fraction(0)))


def by_area(q: list[int], r: list[int], i: int, j: int) -> Fraction:
    """Return P(i, j): the clocks' direction is uniform on the simplex, and i and j win in a polygon of it."""
    polygon = [tuple(Fraction(a == b) for b in range(3)) for a in range(3)]
    for weights, winner in ((q, i), (r, j)):
        for k in range(3):
            # E_winner / w_winner <= E_k / w_k
            normal = [Fraction(0)] * 3
            normal[k] += weights[winner]
            normal[winner] -= weights[k]
            polygon = clipped(polygon, tuple(normal)) if weights[winner] else []
    return area(polygon)


@given(rows(3, 3))
def test_the_joint_law_of_three_tokens_is_a_share_of_the_simplex(weights):
    # Independent of the formula: no integral, no exponential, only polygons with rational corners.
    law = race_law(*weights)
    for i in range(3):
        for j in range(3):
            assert law.get((i, j), 0) == by_area(*weights, i, j)


def test_the_joint_law_of_five_tokens_is_what_clocks_do():
    # 25 cells of 400 000 races, each held to 1e-6 / 50 on either side: a right law is refused with < 1e-6.
    q, r, trials = np.array([8, 1, 5, 0, 4]), np.array([2, 6, 5, 3, 0]), 400_000
    clock = np.random.default_rng().exponential(size=(trials, 5))
    with np.errstate(divide="ignore"):
        i, j = (clock / q).argmin(axis=1), (clock / r).argmin(axis=1)
    found = np.bincount(5 * i + j, minlength=25).reshape(5, 5)
    law = race_law(q.tolist(), r.tolist())
    for cell, count in np.ndenumerate(found):
        mass = float(law.get(cell, 0))
        assert min(binom.cdf(count, trials, mass), binom.sf(count - 1, trials, mass)) > 2e-8


def test_a_race_from_words_is_what_clocks_do():
    # 10 000 races, 9 cells at 1e-7 each: see above; the words are Philox's.
    q, r, trials = [3, 1, 2], [1, 4, 1], 10_000
    found = np.zeros((3, 3), dtype=int)
    for trial in range(trials):
        found[run_race(q, r, lambda k: philox.words(trial, 0, k, 9, (1, 2))[0])] += 1  # noqa: B023
    for cell, count in np.ndenumerate(found):
        mass = float(race_law(q, r).get(cell, 0))
        assert min(binom.cdf(count, trials, mass), binom.sf(count - 1, trials, mass)) > 5e-8


@pytest.mark.parametrize("word", [0, 2**63, 2**64 - 1])
def test_equal_clocks_go_by_weight_and_then_to_the_lower_token(word):
    assert run_race([1, 3, 3], [0, 1, 2], lambda k: word) == (1, 2)
    assert run_race([2**62, 1], [1, 2**62], lambda k: word) == (0, 1)


@pytest.mark.parametrize("broken", [([1, 2], [1]), ([0, 0], [1, 1]), ([1, -1], [1, 1]), ([0.5, 0.5], [1, 1])])
def test_rows_that_cannot_race_are_refused(broken):
    with pytest.raises(InputError, match=r"a race needs two rows|a decision needs weights"):
        race_law(*broken)


def decode(pair: Pair, trial: int, K: int, by_position: bool) -> list[int]:
    tokens: list[int] = []
    while (start := len(tokens)) < 8:
        words = partial(word_at, trial, start, by_position)
        tokens += sample(shared_gumbel, Block(pair, 0, K), words).tokens
    return tokens[:8]


def word_at(trial: int, start: int, by_position: bool, kind: int, number: int, token: int) -> int:
    assert kind == RACE
    address = (start + number, 0) if by_position else (start, number)
    return philox.words(trial, *address, token, (3, 4))[0]


def test_noise_by_position_in_the_output_makes_the_output_independent_of_the_draft():
    # Red when a race is skipped, read twice, or the bonus token is drawn from other noise.
    target = [4, 3, 2, 1]
    drafts = ([1, 2, 3, 4], [4, 3, 2, 1], [0, 0, 0, 1], [1, 1, 1, 1])
    pairs = [Pair.from_weights(target, draft) for draft in drafts]
    same = {True: 0, False: 0}
    for by_position in same:
        for trial in range(40):
            outputs = {tuple(decode(pair, trial, K, by_position)) for pair in pairs for K in (1, 3)}
            same[by_position] += len(outputs) == 1
    assert same[True] == 40
    assert same[False] < 20  # noise by block start does depend on it: the check can see a difference
