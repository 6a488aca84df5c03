from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats as scipy_stats

from simkit.stats import chi_square, pool, z_scores

MENDEL = [315, 108, 101, 32]


def zipf(size: int, power: float = 1.0) -> np.ndarray:
    weights = np.arange(1, size + 1) ** -power
    return weights / weights.sum()


def by_hand(counts, weights) -> Fraction:
    """Return Pearson's statistic in rationals."""
    n, total = sum(counts), sum(weights)
    cells = [(c, Fraction(n * w, total)) for c, w in zip(counts, weights, strict=True)]
    return sum(((c - e) ** 2 / e for c, e in cells), Fraction(0))


def rounded(value, text):
    """Return the value with as many decimals as the text has."""
    return f"{value:.{len(text.split('.')[1])}f}"


@pytest.mark.parametrize(
    ("counts", "weights", "statistic", "p_value"),
    [
        (MENDEL, [9, 3, 3, 1], "0.4700239808", "0.925425895"),
        ([5, 3, 2], [2, 3, 5], "6.3", "0.0428521269"),
        ([2, 0, 0], [1, 1, 1], "4.0", "0.135335"),
        ([15, 36, 17], [1, 2, 1], "0.3529411765", "0.838223432"),
        ([42, 0, 13, 2, 109], [4, 1, 2, 1, 12], "17.08232932", "0.00186303"),
        ([1048, 660, 510, 420, 362], [1020, 690, 510, 420, 360], "2.08408638817846", "0.72029651761105"),
        ([4, 8, 12, 8], [1, 1, 1, 1], "4.0", "0.261464130"),
        ([2, 4, 2, 1, 1], [1, 1, 1, 1, 1], "3.0", "0.5578254"),
    ],
)
def test_reference_numbers(counts, weights, statistic, p_value):
    result = chi_square(counts, np.array(weights) / sum(weights), min_expected=0)
    exact = float(by_hand(counts, weights))
    assert rounded(exact, statistic) == statistic
    assert rounded(result.p_value, p_value) == p_value
    assert result.statistic == pytest.approx(exact, rel=1e-12)
    assert result.p_value == pytest.approx(scipy_stats.chi2.sf(exact, len(counts) - 1), rel=1e-12)


def test_p_value_has_its_closed_form_at_two_degrees_of_freedom():
    result = chi_square([5, 3, 2], [0.2, 0.3, 0.5], min_expected=0)
    assert result.p_value == pytest.approx(math.exp(-3.15), rel=1e-13)


def test_enumerated_p_value_of_the_statistic():
    # All 66 count vectors of 10 draws: the exact tail probability of our statistic at (5, 3, 2).
    p = [0.2, 0.3, 0.5]
    observed = chi_square([5, 3, 2], p, min_expected=0).statistic
    tail = 0.0
    for a, b in itertools.product(range(11), repeat=2):
        c = 10 - a - b
        if c >= 0 and chi_square([a, b, c], p, min_expected=0).statistic >= observed - 1e-9:
            tail += math.comb(10, a) * math.comb(10 - a, b) * p[0] ** a * p[1] ** b * p[2] ** c
    assert tail == pytest.approx(0.0426395875, abs=5e-11)


def pooled_by_hand(p, n, least):
    """Return labels by the rule as told: one token, one merge at a time."""
    ranked = sorted((i for i in range(len(p)) if p[i] > 0), key=lambda i: (-p[i], i))
    kept = [i for i in ranked if n * p[i] >= least]
    tail = ranked[len(kept) :]
    while tail and kept and n * sum(p[i] for i in tail) < least:
        tail.append(kept.pop())
    labels = [-1] * len(p)
    for cell, i in enumerate(kept):
        labels[i] = cell
    for i in tail:
        labels[i] = len(kept)
    return labels


@pytest.mark.parametrize("n", [0, 3, 64, 200, 1000, 10**6])
@pytest.mark.parametrize("least", [0.0, 5.0, 50.0])
def test_pool_follows_the_rule(rng, n, least):
    # Powers of 1/2 times whole weights: no product lies within rounding of the border by accident of order.
    p = rng.multinomial(4096, rng.dirichlet(np.full(12, 0.4)), size=40) / 4096
    labels = pool(p, np.full(40, n), min_expected=least)
    assert labels.tolist() == [pooled_by_hand(row, n, least) for row in p]
    assert pool(p[0], n, min_expected=least).tolist() == labels[0].tolist()


def test_no_cell_is_empty_or_too_small(rng):
    p = rng.dirichlet(np.full(33, 0.3), size=500)
    visits = rng.uniform(1, 5000, size=500)
    labels = pool(p, visits, min_expected=50)
    for row, law, n in zip(labels, p, visits, strict=True):
        expected = np.bincount(row, weights=law) * n
        assert expected.size == 1 or expected.min() >= 50 * (1 - 1e-9)


def test_pool_without_a_tail_adds_no_cell():
    assert pool([0.25] * 4, 400).tolist() == [0, 1, 2, 3]
    assert pool([0.25, 0.25, 0.5], 1000).tolist() == [1, 2, 0]


def test_pool_by_counts_is_a_mutant_that_alarms(rng, most):
    # False alarms at .001 in 150 null runs: the plan's pooling passes the limit for .002 (rate of this test's
    # failure 1e-9); pooling by observed counts alarms in nearly every run, so its miss rate is below 1e-9.
    p, n, runs = zipf(2000), 20_000, 150
    draws = rng.multinomial(n, p, size=runs)
    planned = sum(chi_square(c, p).p_value <= 1e-3 for c in draws)
    peeked = 0
    for c in draws:
        cells = np.where(c >= 10, np.arange(p.size), p.size)
        observed, expected = (np.bincount(cells, weights=w, minlength=p.size + 1) for w in (c, n * p))
        seen = expected > 0
        x2 = ((observed - expected)[seen] ** 2 / expected[seen]).sum()
        peeked += scipy_stats.chi2.sf(x2, seen.sum() - 1) <= 1e-3
    assert planned <= most(runs, 0.002)
    assert peeked > most(runs, 0.05)


def test_calibration_and_power(rng, most, fewest):
    # Level .01 in 3,000 null runs, a quarter of allowance for the approximation; the mutant gives a fifth
    # of the top token's draws to the others, and its power is above .999. Either assertion slips at 1e-9.
    p, n, runs = zipf(100), 20_000, 3000
    hits = sum(chi_square(c, p).p_value <= 0.01 for c in rng.multinomial(n, p, size=runs))
    assert fewest(runs, 0.0075) <= hits <= most(runs, 0.0125)
    q = p.copy()
    q[0] *= 0.8
    q /= q.sum()
    found = sum(chi_square(c, p).p_value <= 0.01 for c in rng.multinomial(n, q, size=300))
    assert found >= fewest(300, 0.9)


def test_states_add_up(rng):
    p = rng.dirichlet(np.ones(6), size=5)
    visits = np.array([300.0, 1000.0, 2000.0, 4000.0, 60.0])
    counts = rng.multinomial(rng.poisson(visits), p)
    whole = chi_square(counts, p, visits=visits)
    parts = [chi_square(c, row, visits=n) for c, row, n in zip(counts, p, visits, strict=True)]
    assert whole.statistic == pytest.approx(sum(part.statistic for part in parts), rel=1e-12)
    assert whole.degrees_of_freedom == sum(part.degrees_of_freedom for part in parts)
    assert whole.samples == counts.sum()


def test_planned_visits_set_the_cells_and_real_ones_the_expectation():
    # Planned 200: both tokens keep a cell (100 each); real 40 draws: expected 20 each.
    result = chi_square([[30, 10]], [[0.5, 0.5]], visits=[200.0])
    assert (result.statistic, result.degrees_of_freedom) == (pytest.approx(10.0), 1)


def test_one_cell_says_nothing():
    result = chi_square([7, 3], [0.5, 0.5])
    assert (result.statistic, result.p_value, result.degrees_of_freedom) == (0.0, 1.0, 0)
    assert z_scores([7, 3], [0.5, 0.5]).size == 0
    assert chi_square([5], [1.0]).p_value == 1.0
    assert chi_square([0, 0], [0.5, 0.5]).p_value == 1.0


def test_an_unvisited_state_is_left_out():
    result = chi_square([[0, 0], [60, 40]], [[0.5, 0.5]] * 2, visits=[200.0, 200.0])
    assert (result.statistic, result.degrees_of_freedom) == (pytest.approx(4.0), 1)


def test_an_impossible_token_rejects_whatever_else():
    result = chi_square([500, 500, 1], [0.5, 0.5, 0.0])
    assert (result.statistic, result.p_value) == (math.inf, 0.0)
    assert chi_square([500, 500, 0], [0.5, 0.5, 0.0]).p_value == pytest.approx(1.0)
    assert chi_square([[1, 1], [0, 1]], [[0.5, 0.5], [1.0, 0.0]], visits=[1.0, 1.0]).p_value == 0.0


def test_z_scores_are_the_terms_of_the_statistic():
    p = np.array([0.5, 0.3, 0.2])
    counts = np.array([480, 330, 190])
    z = z_scores(counts, p)
    assert z == pytest.approx((counts - 1000 * p) / np.sqrt(1000 * p * (1 - p)), rel=1e-13)
    assert (z**2 * (1 - p)).sum() == pytest.approx(chi_square(counts, p).statistic, rel=1e-13)


def test_z_scores_of_states_and_pooled_tail():
    # Second state: 0.03 of 1,000 is 30 < 50, so the two small tokens share a cell of 0.1.
    p = [[0.5, 0.5, 0.0], [0.9, 0.07, 0.03]]
    z = z_scores([[500, 500, 0], [880, 60, 60]], p, visits=[1000.0, 1000.0])
    assert z.size == 4
    assert z[:2].tolist() == [0.0, 0.0]
    assert z[2:] == pytest.approx([-20 / math.sqrt(90), 20 / math.sqrt(90)])


def test_z_scores_of_an_all_but_certain_token_are_finite():
    assert z_scores([7, 0], [1.0, 1e-20], min_expected=0) == pytest.approx([0.0, 0.0], abs=1e-9)
