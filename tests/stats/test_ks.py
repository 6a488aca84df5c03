from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from simkit.stats import chi_square, dkw_bound, ks, ks_p_value, ks_statistic
from simkit.stats._ks_exact import exact_exit
from simkit.stats._ks_limit import limit_exit
from simkit.stats._ks_plan import MAX_ATOMS, plan_passage
from simkit.stats._poisson import log_poisson

BINOMIAL_3 = [0.125, 0.375, 0.375, 0.125]


def uniform(size):
    return np.full(size, 1.0 / size)


def zipf(size, power=1.0):
    weights = np.arange(1, size + 1) ** -float(power)
    return weights / weights.sum()


# Each value was computed by two codes: the Poisson pass and a chain of binomial transitions.
@pytest.mark.parametrize(
    ("p", "n", "d", "exact", "digits"),
    [
        (uniform(3), 3, 2 / 3, 2 / 27, 1e-14),
        (uniform(2), 2, 0.0, 1.0, 0),
        (uniform(10), 25, 0.08, 0.9353949771748729, 2e-15),
        ([0.2, 0.05, 0.1, 0.05, 0.6], 166, 0.0566265060, 0.2407201087, 3e-10),
        ([0.25, 0.5, 0.25], 68, 0.0294117647, 0.8886445217, 1e-10),
        ([0.2, 0.2, 0.2, 0.4], 502, 0.0852589641, 2.0326651602e-4, 1e-10),
        (BINOMIAL_3, 400, 0.05, 0.05611849451, 1e-10),
        ([0.5, 0.3, 0.2], 20, 0.25, 0.04903784486, 2e-10),
        (uniform(10), 100, 0.1, 0.15113243159, 1e-10),
        (uniform(10), 1000, 0.05, 0.00449042443, 1e-9),
        (uniform(100), 10_000, 0.02, 4.35789124510e-4, 1e-11),
        (zipf(1000), 20_000, 0.01, 0.0278119994, 3e-9),
        (uniform(10), 1000, 0.1, 5.460966125e-10, 1e-10),
        (uniform(10), 1000, 0.2, 7.36385609e-37, 1e-9),
        (uniform(2), 1000, 0.1, 2.72846415607e-10, 3e-12),
        (uniform(2), 1000, 0.2, 1.766567801e-37, 3e-10),
        (uniform(2), 1000, 0.3, 1.644998736e-85, 4e-10),
        (uniform(5), 35, 9 / 35, 0.0060928532, 1e-8),
        (BINOMIAL_3, 100, 0.1, 0.0610895, 1e-6),
        (BINOMIAL_3, 10**6, 0.001, 0.0495656, 1e-6),
    ],
)
def test_reference_values(p, n, d, exact, digits):
    assert ks_p_value(d, p, n) == pytest.approx(exact, rel=digits, abs=0)


@pytest.mark.parametrize(
    ("counts", "p", "d", "p_value"),
    [
        ([1, 1, 1], uniform(3), 0.0, 1.0),
        ([3, 0, 0], uniform(3), 2 / 3, 2 / 27),
        ([1, 1], uniform(2), 0.0, 1.0),
        ([1, 2, 5, 3, 1, 1, 4, 3, 1, 4], uniform(10), 0.08, 0.9353949771748729),
        ([42, 0, 13, 2, 109], [0.2, 0.05, 0.1, 0.05, 0.6], 0.0566265060, 0.2407201087),
        ([15, 36, 17], [0.25, 0.5, 0.25], 0.0294117647, 0.8886445217),
        ([114, 118, 112, 158], [0.2, 0.2, 0.2, 0.4], 0.0852589641, 2.0326651602e-4),
        ([2, 18, 10, 4, 1], uniform(5), 9 / 35, 0.0060928532),
    ],
)
def test_reference_samples(counts, p, d, p_value):
    result = ks(counts, p)
    assert result.statistic == pytest.approx(d, abs=1e-10)
    assert result.p_value == pytest.approx(p_value, rel=1e-8)
    assert result.method == "exact"


def binomial_chain(p, n, band):
    """Return P(D_n >= band/n) by the other route: a chain of conditional binomials, exits summed."""
    rest = np.cumsum(p[::-1])[::-1]
    below = np.cumsum(p)
    state, mass, total = np.array([0]), np.array([1.0]), 0.0
    for j in range(len(p) - 1):
        share = p[j] / rest[j]
        inside = np.array([c for c in range(n + 1) if abs(c - n * below[j]) < band - 1e-6])
        under = binom.cdf(inside[0] - 1 - state, n - state, share)
        over = binom.sf(inside[-1] - state, n - state, share)
        total += float(mass @ (under + over))
        mass = mass @ binom.pmf(inside[None, :] - state[:, None], (n - state)[:, None], share)
        state = inside
    return total


@pytest.mark.parametrize(
    ("p", "n", "band"),
    [
        (uniform(20), 500, 25),
        (zipf(30), 400, 61.5),
        ([0.9, 0.04, 0.03, 0.03], 1000, 40),
        (zipf(12, 2), 300, 7),
    ],
)
def test_binomial_chain_agrees(p, n, band):
    assert ks_p_value(band / n, p, n) == pytest.approx(binomial_chain(np.array(p), n, band), rel=1e-11)


def all_counts(cells, n):
    """Yield every count vector."""
    for cuts in itertools.combinations(range(n + cells - 1), cells - 1):
        edges = (-1, *cuts, n + cells - 1)
        yield [b - a - 1 for a, b in itertools.pairwise(edges)]


def enumerate_law(weights, n):
    """Return the law of D_n as a dictionary, in rationals."""
    total = sum(weights)
    law: dict[Fraction, Fraction] = {}
    for counts in all_counts(len(weights), n):
        chance = Fraction(math.factorial(n))
        for c, w in zip(counts, weights, strict=True):
            chance *= Fraction(w, total) ** c / math.factorial(c)
        seen, due = itertools.accumulate(counts), itertools.accumulate(weights)
        d = max(abs(Fraction(a, n) - Fraction(b, total)) for a, b in zip(seen, due, strict=True))
        law[d] = law.get(d, Fraction(0)) + chance
    return law


TINY = [
    ((1, 1), 7),
    ((1, 2, 3), 6),
    ((5, 1, 1, 3), 5),
    ((1, 0, 2, 1), 6),
    ((2, 7, 1, 1, 4), 4),
    ((97, 1, 2), 9),
]


@pytest.mark.parametrize(("weights", "n"), TINY)
def test_every_p_value_by_enumeration(weights, n):
    law = enumerate_law(weights, n)
    p = np.array(weights) / sum(weights)
    for d in law:
        exact = sum((mass for e, mass in law.items() if e >= d), Fraction(0))
        assert ks_p_value(float(d), p, n) == pytest.approx(float(exact), rel=1e-12)


def continuous_p_value(d, n):
    """Return the asymptotic p-value of the continuous test: the mutant."""
    x2 = n * d * d
    return 2 * sum((-1) ** (k - 1) * math.exp(-2 * k * k * x2) for k in range(1, 101)) if d else 1.0


@pytest.mark.parametrize(("weights", "n"), TINY)
def test_the_continuous_p_value_fails_the_enumeration(weights, n):
    law = enumerate_law(weights, n)
    worst = 0.0
    for d in law:
        exact = sum((mass for e, mass in law.items() if e >= d), Fraction(0))
        worst = max(worst, abs(continuous_p_value(float(d), n) / float(exact) - 1))
    assert worst > 0.3


@pytest.mark.parametrize(("p", "n"), [(0.5, 1000), (0.1, 1000), (0.3, 17), (0.001, 10**6), (0.5, 10**7)])
def test_two_atoms_are_binomial_at_any_depth(p, n):
    scale = math.sqrt(n * p * (1 - p))
    for sigmas in (0.3, 1, 2, 5, 10, 19):
        d = min(math.ceil(sigmas * scale) + n * p - math.floor(n * p), n * max(p, 1 - p)) / n
        low, high = math.floor(n * (p - d) + 1e-6), math.ceil(n * (p + d) - 1e-6)
        exact = binom.cdf(low, n, p) + binom.sf(high - 1, n, p)
        assert ks_p_value(d, [p, 1 - p], n) == pytest.approx(exact, rel=1e-9, abs=0)


def test_poisson_probabilities_against_log_gamma():
    counts = np.array([0.0, 1.0, 2.0, 15.0, 16.0, 17.0, 150.0])
    for mean in (1e-3, 0.7, 15.0, 16.5, 140.0):
        exact = [c * math.log(mean) - mean - math.lgamma(c + 1) for c in counts]
        assert log_poisson(counts, mean) == pytest.approx(exact, rel=1e-13, abs=1e-13)


def test_level_and_power(rng, most, fewest):
    # 4,000 null runs: the exact p-value passes at .1 and .01 (slip 1e-9). The mutant that takes D at every
    # draw, as if there were no ties, alarms always. A sampler off by TV .09 has power above .999.
    p, n, runs = np.array([0.3, 0.05, 0.25, 0.2, 0.2]), 60, 4000
    draws = rng.multinomial(n, p, size=runs)
    values = sorted({round(ks_statistic(c, p), 12) for c in draws})
    table = {d: ks_p_value(d, p, n) for d in values}
    levels = np.array([table[round(ks_statistic(c, p), 12)] for c in draws])
    for alpha in (0.1, 0.01):
        assert (levels <= alpha).sum() <= most(runs, alpha)
    untied = [continuous_p_value(max(c[0] / n, ks_statistic(c, p)), n) for c in draws]
    assert (np.array(untied) <= 0.01).sum() > most(runs, 0.01)
    wrong = np.array([0.27, 0.02, 0.22, 0.2, 0.29])
    found = [ks(c, p).p_value <= 0.01 for c in rng.multinomial(1000, wrong, size=200)]
    assert sum(found) >= fewest(200, 0.9)


def test_zero_atoms_change_nothing():
    p = np.array([0.2, 0.0, 0.0, 0.5, 0.0, 0.3])
    counts = np.array([10, 0, 0, 40, 0, 30])
    with_zeros, without = ks(counts, p), ks(counts[p > 0], p[p > 0])
    assert with_zeros == without
    assert ks_p_value(0.05, p, 80) == ks_p_value(0.05, p[p > 0], 80)


def test_an_impossible_token_has_p_zero():
    result = ks([50, 1, 50], [0.5, 0.0, 0.5])
    assert (result.p_value, result.method) == (0.0, "support")
    assert result.statistic == pytest.approx(51 / 101 - 0.5)


def test_one_atom_and_no_draw():
    assert ks([9], [1.0]).p_value == 1.0
    assert ks([0, 9, 0], [0.0, 1.0, 0.0]).p_value == 1.0
    assert ks_p_value(0.1, [1.0], 5) == 0.0
    assert ks([0, 0], [0.5, 0.5]).p_value == 1.0


def test_beyond_the_largest_distance_is_impossible():
    assert ks_p_value(0.95, [0.1, 0.9], 10) == 0.0
    assert ks_p_value(0.9, [0.1, 0.9], 10) == pytest.approx(0.1**10, rel=1e-12)


def test_one_draw():
    # D = .7, .3 or .6 for the three tokens.
    p = [0.3, 0.3, 0.4]
    assert ks_p_value(0.7, p, 1) == pytest.approx(0.3, rel=1e-12)
    assert ks_p_value(0.6, p, 1) == pytest.approx(0.7, rel=1e-12)


def test_rank_order_is_falling_probability_with_ties_by_id():
    p = np.array([0.1, 0.4, 0.1, 0.4])
    counts = np.array([1, 8, 4, 7])
    ranks = [1, 3, 0, 2]
    by_rank = ks(counts, p, order="rank")
    assert by_rank.statistic == pytest.approx(ks_statistic(counts[ranks], p[ranks]), abs=0)
    assert by_rank.p_value == ks_p_value(by_rank.statistic, p[ranks], 20)
    assert by_rank.statistic != ks(counts, p).statistic


def test_each_order_sees_its_fault():
    # The counts are the wrong laws' own expectations: nothing is random.
    p = np.random.default_rng(0).permutation(zipf(400))
    hot = p**0.98 / (p**0.98).sum()
    block = p * np.where(np.arange(400) < 200, 1.05, 1.0)
    block /= block.sum()
    n = 10**5
    assert ks(np.rint(n * hot), p, order="rank").p_value < 1e-9
    assert ks(np.rint(n * block), p, order="id").p_value < 1e-3
    assert ks(np.rint(n * p), p, order="id").p_value > 0.99
    assert ks(np.rint(n * p), p, order="rank").p_value > 0.99


def test_many_atoms_are_merged_by_the_law_alone(rng):
    p = rng.dirichlet(np.full(5000, 0.5))
    counts = rng.multinomial(20_000, p)
    middle = np.cumsum(p) - p / 2
    cells = np.minimum((middle * MAX_ATOMS).astype(int), MAX_ATOMS - 1)
    pooled_p, pooled_counts = np.bincount(cells, weights=p), np.bincount(cells, weights=counts)
    result = ks(counts, p)
    assert result.cells == np.count_nonzero(pooled_p) <= MAX_ATOMS
    assert result.statistic == pytest.approx(
        ks_statistic(pooled_counts, pooled_p / pooled_p.sum()), rel=1e-12
    )
    plan = plan_passage(pooled_p, 20_000, result.statistic)
    assert result.p_value == pytest.approx(exact_exit(plan), rel=1e-9)


@pytest.mark.parametrize(
    ("p", "n", "width"), [(zipf(300), 300_000, 2.0), (uniform(12), 10**6, 5.0), (zipf(8, 2), 10**6, 5.0)]
)
@pytest.mark.parametrize(("x", "tolerance"), [(0.45, 2e-5), (1.2, 1e-4), (2.2, 4e-4)])
def test_limit_meets_the_exact_number(p, n, width, x, tolerance):
    # d is a value that D_n takes at the knot nearest 1/2, where the continuity correction counts.
    below = np.cumsum(p)
    knot = below[np.argmin(np.abs(below - 0.5))]
    d = (math.ceil(n * knot) + round(x * math.sqrt(n))) / n - knot
    plan = plan_passage(np.array(p), n, d)
    exact = exact_exit(plan)
    assert limit_exit(plan, width) == pytest.approx(exact, rel=tolerance)
    # The mutant without the correction of half a count.
    bare = plan_passage(np.array(p), n, d + 0.5 / n)
    assert abs(limit_exit(bare, width) / exact - 1) > 2 * tolerance


def test_cells_cut_by_the_band_keep_their_mean():
    # Steps of only 4 cells. Over bands that cut cells at all heights the error averages to 1.5e-4; it is
    # 1.0e-3 if the part of a cut cell that stays is not moved to its own mean.
    plans = [plan_passage(uniform(100), 20_000, count / 20_000) for count in range(160, 175)]
    errors = [limit_exit(plan, 3.7) / exact_exit(plan) - 1 for plan in plans]
    assert abs(np.mean(errors)) < 4e-4


def test_largest_run():
    p = zipf(33)
    d = 1.2 / math.sqrt(1e10)
    far = ks_p_value(d, p, 10**10)
    # At n = 1e6 the number is exact; both are within the continuity correction (4 x / sqrt(n)) of the limit.
    near = ks_p_value(1.2 / math.sqrt(1e6), p, 10**6)
    assert far == pytest.approx(near, rel=3e-3)


def test_the_bound_bounds():
    assert dkw_bound(0.0, 10) == 1.0
    assert dkw_bound(0.05, 1000) == pytest.approx(2 * math.exp(-5), rel=1e-14)
    for p in (uniform(10), zipf(40), [0.5, 0.5]):
        for d in (0.02, 0.05, 0.1):
            assert ks_p_value(d, p, 1000) <= dkw_bound(d, 1000)


def test_below_the_deepest_number_the_bound_stands():
    result = ks([10**6, 0], [0.5, 0.5])
    assert result.method == "bound"
    assert result.p_value == 0.0
    assert 0 < ks_p_value(0.35, uniform(4), 2400) <= dkw_bound(0.35, 2400) < 1e-250


def test_agrees_with_chi_square_on_two_tokens(rng):
    # Same data, two routes: for two tokens both tests rank samples by |count - n p|.
    counts = rng.multinomial(10**6, [0.5, 0.5])
    assert ks(counts, [0.5, 0.5]).p_value == pytest.approx(chi_square(counts, [0.5, 0.5]).p_value, abs=2e-3)
