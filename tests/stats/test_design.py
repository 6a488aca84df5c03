from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats
from statsmodels.stats.gof import chisquare_effectsize
from statsmodels.stats.power import GofChisquarePower

from simkit.errors import InputError
from simkit.laws.rows import Row
from simkit.stats.certificate import certificate
from simkit.stats.design import (
    chi_square_power,
    detectable_tv,
    detection_power,
    draws_for_relative_error,
    lay_out,
    noncentrality_limit,
    planned_bound,
    samples_needed,
    share_limit,
    split,
)
from simkit.stats.evalue import concentration, evidence, log_e_value, threshold
from simkit.stats.ks import dkw_bound


def uniform(cells):
    return np.full(cells, 1 / cells)


def zipf(size, exponent=1.0):
    law = 1 / np.arange(1, size + 1) ** exponent
    return law / law.sum()


# The e-value's power, and chi-square's.


@pytest.mark.parametrize(
    ("cells", "samples", "power", "more"),
    [(10, 137_115, 0.714, 0.921), (1000, 747_362, 0.784, 0.981), (32_000, 3_890_241, 0.783, 0.987)],
)
def test_reference_powers(cells, samples, power, more):
    # The draws at which chi-square has power .9: an e-value needs a quarter more for the same.
    assert detection_power(0.01, samples, cells, 1e-6, components=1) == pytest.approx(power, abs=5e-4)
    assert detection_power(0.01, samples * 5 // 4, cells, 1e-6, components=1) == pytest.approx(more, abs=6e-4)
    assert chi_square_power(0.01, samples, cells, 1e-6) == pytest.approx(0.9, abs=5e-6)


def test_formula_by_hand():
    n, df, w2 = 150_000, 9, 0.02**2
    k = concentration(n, df, 1e-6)
    level = (n + k) / n * (df * math.log1p(n / k) + 2 * (math.log(1e6) + math.log(3)))
    assert detection_power(0.01, n, 10, 1e-6) == pytest.approx(
        scipy_stats.ncx2.sf(level, df, n * w2), rel=1e-12
    )


@pytest.mark.parametrize(("cells", "samples"), [(10, 150_000), (200, 350_000)])
def test_simulation_agrees(rng, most, fewest, cells, samples):
    # 250 runs off by TV .01, rate 1e-6. The formula is Laplace's approximation, given .05 of allowance; for
    # the mix it is a lower bound. Any assertion slips at 1e-9.
    runs = 250
    p = np.full(cells, 1 / cells)
    q = p * (1 + 0.02 * np.where(np.arange(cells) % 2, 1, -1))
    draws = rng.multinomial(samples, q, size=runs)
    alone = log_e_value(draws, np.tile(p, (runs, 1)), concentration(samples, cells - 1)) >= threshold()
    power = detection_power(0.01, samples, cells, 1e-6, components=1)
    assert fewest(runs, power - 0.05) <= alone.sum() <= most(runs, power + 0.05)
    mixed = sum(evidence(c, p, samples).rejects() for c in draws)
    assert mixed >= fewest(runs, detection_power(0.01, samples, cells, 1e-6) - 0.05)
    # The mutant that forgets the factor 2 of w = 2 TV predicts far too little.
    assert alone.sum() > most(runs, detection_power(0.005, samples, cells, 1e-6, components=1) + 0.05)


def test_power_at_no_fault_is_below_the_rate():
    assert 0 < detection_power(0.0, 10**6, 1000, 1e-3, components=1) < 1e-3


def test_power_is_monotone():
    by_samples = [detection_power(0.01, n, 50, 1e-6) for n in range(50_000, 600_000, 50_000)]
    by_distance = [detection_power(tv, 200_000, 50, 1e-6) for tv in np.linspace(0.001, 0.03, 12)]
    by_cells = [detection_power(0.01, 300_000, cells, 1e-6) for cells in (2, 10, 100, 1000, 10_000)]
    by_rate = [detection_power(0.01, 200_000, 50, rate) for rate in (1e-9, 1e-6, 1e-3)]
    by_parts = [detection_power(0.01, 200_000, 50, 1e-6, components=m) for m in (1, 3, 6, 20)]
    for rising in (by_samples, by_distance, by_cells[::-1], by_rate, by_parts[::-1]):
        assert rising == sorted(rising)
        assert rising[-1] > rising[0]


@pytest.mark.parametrize(
    ("w", "n", "power"),
    [
        (0.1, 5, 0.05246644635810126),
        (0.1, 100, 0.1054845044462312),
        (0.1, 1000, 0.715986350467412),
        (1.0, 5, 0.396188517504065),
    ],
)
def test_chi_square_power_of_r(w, n, power):
    assert chi_square_power(w / 2, n, 5, 0.05) == pytest.approx(power, rel=1e-9)
    critical = scipy_stats.chi2.isf(0.05, 4)
    assert scipy_stats.ncx2.sf(critical, 4, n * w * w) == pytest.approx(power, rel=1e-9)


def test_reference_size_of_statsmodels():
    n = GofChisquarePower().solve_power(effect_size=0.1, nobs=None, alpha=1e-6, power=0.99, n_bins=1000)
    assert n == pytest.approx(35_986.87, abs=0.01)
    assert chi_square_power(0.05, n, 1000, 1e-6) == pytest.approx(0.99, rel=1e-9)


def test_effect_size_is_at_least_twice_the_distance():
    # R's pwr prints this effect size; Cauchy-Schwarz is what detectable_tv stands on.
    p, q = np.array([1020, 690, 510, 420, 360]) / 3000, np.array([1050, 660, 510, 420, 360]) / 3000
    assert chisquare_effectsize(p, q) == pytest.approx(0.02699815282115563, rel=1e-12)
    assert chisquare_effectsize(p, q) > 2 * 0.5 * np.abs(p - q).sum() == pytest.approx(0.02)
    even = uniform(10) * (1 + 0.02 * np.where(np.arange(10) % 2, 1, -1))
    assert chisquare_effectsize(uniform(10), even) == pytest.approx(0.02, rel=1e-9)


# The size of a run.


def test_reference_size_of_a_run():
    # K = 10, TV .01, (1e-6, 1e-3); statsmodels solves the same equation.
    assert samples_needed(uniform(10), 0.01) == 215_170
    n = GofChisquarePower().solve_power(effect_size=0.02, nobs=None, alpha=1e-6, power=0.999, n_bins=10)
    assert n == pytest.approx(215_170, abs=1)
    # Certifying .01 at error 1e-6 in 99 of 100 runs is the same question with the rates exchanged.
    for cells, draws in ((2, 134_300), (10, 193_100), (100, 375_900), (1000, 924_800)):
        assert samples_needed(uniform(cells), 0.01, false_alarm=0.01, miss=1e-6) == pytest.approx(
            draws, rel=5e-4
        )


@pytest.mark.parametrize(
    "row", [uniform(2), uniform(33), zipf(1000), zipf(5000, 1.5), [0.5, 0.499, 1e-3, 0.0]]
)
@pytest.mark.parametrize("tv", [0.2, 0.03, 1e-3])
@pytest.mark.parametrize("components", [None, 4])
def test_size_and_distance_are_inverse(row, tv, components):
    n = samples_needed(row, tv, components=components)
    assert (
        detectable_tv(row, n, components=components) <= tv < detectable_tv(row, n - 1, components=components)
    )


def test_the_row_decides_and_not_its_length():
    rare = np.r_[[0.5, 0.5 - 1e-6], np.full(10_000, 1e-10)]
    assert samples_needed(rare, 0.01) < 1.1 * samples_needed(uniform(2), 0.01)
    assert samples_needed(uniform(10_002), 0.01) > 10 * samples_needed(rare, 0.01)
    # A Zipf law of 32,000 tokens: .002 in tokens that expect less than 20 takes millions of draws.
    assert samples_needed(zipf(32_000), 0.01) > 5e6


def test_by_hand():
    p = np.array([0.5, 0.45] + [0.01] * 5)  # n = 1000: the five are a tail of 50
    level = scipy_stats.chi2.isf(1e-6, 2)
    spread = 0.5 * math.sqrt(noncentrality_limit(level, 2, 1e-3) / 1000)
    assert scipy_stats.ncx2.sf(level, 2, 4 * 1000 * spread**2) == pytest.approx(0.999, rel=1e-9)
    assert detectable_tv(p, 1000) == pytest.approx(0.05 + spread, rel=1e-9)
    # The e-value's threshold in the same cells: the formula of test_formula_by_hand.
    ratio = 2 * math.sqrt(math.log(1e6) / 2)
    level = (1 + 1 / ratio) * (2 * math.log1p(ratio) + 2 * math.log(5e6))
    spread = 0.5 * math.sqrt(noncentrality_limit(level, 2, 1e-3) / 1000)
    assert detectable_tv(p, 1000, components=5) == pytest.approx(0.05 + spread, rel=1e-9)


def test_left_out_by_hand():
    p = np.array([0.5, 0.49, 0.01, 0.0])  # n = 1000: .01 expects 10, so a right sampler shows up to c of them
    count = scipy_stats.poisson.isf(0.1e-6, 10)
    hidden = share_limit(count, 1000, 0.1e-3)
    level = scipy_stats.chi2.isf(0.9e-6, 1)
    spread = 0.5 * math.sqrt(noncentrality_limit(level, 1, 0.9e-3) / 990)
    assert detectable_tv(p, 1000) == pytest.approx(0.01 + hidden + spread, rel=1e-9)
    # More of them than that would be rejected for their number, but for a tenth of the miss rate.
    assert scipy_stats.binom.cdf(count, 1000, hidden) == pytest.approx(1e-4, rel=1e-6)
    assert scipy_stats.binom.sf(count, 1000, 0.01) < 1e-7


def test_a_certain_token():
    # A fault shows as an impossible token, at the rate of its distance: (1 - tv)^n <= miss.
    n = samples_needed([0.0, 1.0, 0.0], 0.01)
    assert 0.99**n <= 1e-3 < 0.99 ** (n - 1)
    assert n <= math.ceil(math.log(1e3) / 0.01)
    # With one token in the vocabulary nothing can go wrong.
    assert samples_needed([1.0], 0.01) == 1


def test_many_states():
    rows = np.array([[0.5, 0.5], [0.2, 0.8], [0.9, 0.1]])
    visits = np.array([3.0, 2.0, 1.0])
    level = scipy_stats.chi2.isf(1e-6, 3)
    spread = 0.5 * math.sqrt(noncentrality_limit(level, 3, 1e-3) / 60_000)
    assert detectable_tv(rows, 60_000, visits=visits) == pytest.approx(spread, rel=1e-9)
    n = samples_needed(rows, 0.01, visits=visits)
    assert detectable_tv(rows, n, visits=visits * 7) <= 0.01 < detectable_tv(rows, n - 1, visits=visits)
    # One state as a table of one row is the same question.
    assert detectable_tv([[0.5, 0.5]], 1000, visits=[1000]) == detectable_tv([0.5, 0.5], 1000)


def test_a_row_is_a_law():
    assert samples_needed(Row.from_weights([1, 1]), 0.01) == samples_needed([0.5, 0.5], 0.01)


def test_the_e_values_size_agrees_with_its_power():
    for cells in (2, 10, 300):
        n = samples_needed(uniform(cells), 0.01, components=3)
        assert detection_power(0.01, n, cells, 1e-6) >= 0.999 > detection_power(0.01, n - 1, cells, 1e-6)
        assert 1.1 < n / samples_needed(uniform(cells), 0.01) < 1.4


def test_right_and_wrong_samplers_at_the_planned_size(rng, most, fewest):
    # 20,000 runs a side at rates (.05, .01), TV .02: slips at 1e-9. Both rates are met, not only kept.
    p, runs = uniform(10), 20_000
    n = samples_needed(p, 0.02, false_alarm=0.05, miss=0.01)
    q = p * (1 + 0.04 * np.where(np.arange(10) % 2, 1, -1))
    right, wrong = (
        ((rng.multinomial(n, law, size=runs) - n / 10) ** 2).sum(axis=1) * 10 / n for law in (p, q)
    )
    level = scipy_stats.chi2.isf(0.05, 9)
    assert fewest(runs, 0.045) <= (right > level).sum() <= most(runs, 0.055)
    assert fewest(runs, 0.008) <= (wrong <= level).sum() <= most(runs, 0.012)
    # A right sampler is certified within .02 at confidence .99 just where it is not rejected.
    for counts in rng.multinomial(n, p, size=60):
        x2 = ((counts - n / 10) ** 2).sum() * 10 / n
        assert (certificate(counts, p, 0.99).total_variation <= detectable_tv(p, n, 0.05, 0.01)) == (
            x2 <= level
        )


def test_every_law_at_that_distance_is_seen(rng, fewest):
    # Faults of many shapes, at the distance that n = 20,000 draws see, at rates (.01, .01): 300 runs each are
    # rejected by chi-square over the cells or by the number of left-out tokens. Slips at 1e-9.
    p, n, runs = np.array([0.4, 0.3, 0.2, 0.0992, 4e-4, 4e-4, 0.0]), 20_000, 300
    tv = detectable_tv(p, n, 0.01, 0.01)
    layout = lay_out(p[None, :], np.array([float(n)]))
    assert layout.left_out[0]
    for gives, takes in (([0], [1]), ([0, 1], [2, 3]), ([0], [4]), ([1], [6]), ([4, 5, 0], [6])):
        q = move(p, gives, takes, tv)
        counts = rng.multinomial(n, q, size=runs)
        out = counts[:, 4:].sum(axis=1)
        inside = (n - out)[:, None] * p[:4] / p[:4].sum()
        x2 = ((counts[:, :4] - inside) ** 2 / inside).sum(axis=1)
        rejected = (x2 > scipy_stats.chi2.isf(0.009, 3)) | (out > scipy_stats.poisson.isf(0.001, n * 8e-4))
        assert rejected.sum() >= fewest(runs, 0.99)
        # At a fifth of the distance most runs show nothing.
    weak = rng.multinomial(n, move(p, [0, 1], [2, 3], tv / 5), size=runs)[:, :4]
    inside = weak.sum(axis=1, keepdims=True) * p[:4] / p[:4].sum()
    assert (((weak - inside) ** 2 / inside).sum(axis=1) > scipy_stats.chi2.isf(0.009, 3)).sum() < fewest(
        runs, 0.9
    )


def move(p, gives, takes, tv):
    """Return p with tv moved from some tokens to others; a token gives what it has, in order of the list."""
    q, left = p.copy(), tv
    for token in gives:
        part = min(q[token], left)
        q[token], left = q[token] - part, left - part
    assert left < 1e-15
    q[takes] += tv / len(takes)
    return q


def test_distance_is_monotone():
    row = zipf(300)
    by_draws = [detectable_tv(row, n) for n in (10**7, 10**6, 10**5, 10**4, 10**3, 10, 0)]
    by_miss = [detectable_tv(row, 10**6, miss=rate) for rate in (0.1, 1e-3, 1e-6)]
    by_alarm = [detectable_tv(row, 10**6, false_alarm=rate) for rate in (0.1, 1e-3, 1e-6)]
    by_parts = [detectable_tv(row, 10**6, components=m) for m in (1, 3, 30)]
    for rising in (by_draws, by_miss, by_alarm, by_parts):
        assert rising == sorted(rising)
        assert rising[-1] > rising[0]
    assert by_draws[-1] == 1.0


def test_split_of_the_error():
    planned = np.array([1000.0])
    assert split(0.01, lay_out(np.array([[0.5, 0.5]]), planned)) == (0.01, 0.01)
    assert split(0.01, lay_out(np.array([[1.0, 0.0]]), planned)) == (0.01, 0.01)
    assert split(0.01, lay_out(np.array([[0.5, 0.5, 0.0]]), planned)) == pytest.approx((0.009, 0.001))


def test_planned_bound_of_no_draws():
    assert planned_bound(lay_out(np.array([[0.5, 0.5]]), np.zeros(1)), np.zeros(1), 0.1, 1.0, 0.0) == 1.0


@pytest.mark.parametrize(
    ("probability", "error", "draws"),
    [(0.3, 2**-9, 3.2e7), (0.1, 0.01, 4.7e6), (1e-4, 0.05, 2.1e8), (1e-6, 0.5, 2.1e8)],
)
def test_reference_draws_for_one_cell(probability, error, draws):
    # Two-sided 1e-6, power .99.
    n = draws_for_relative_error(probability, error, 1e-6, 0.01)
    assert n == pytest.approx(draws, rel=0.02)
    z = math.sqrt(n * probability / (1 - probability)) * error
    assert scipy_stats.norm.sf(scipy_stats.norm.isf(0.5e-6) - z) == pytest.approx(0.99, abs=1e-6)


@pytest.mark.parametrize(("distance", "draws"), [(0.05, 11_606.9), (0.01, 290_173)])
def test_reference_draws_of_dkw(distance, draws):
    # n = ln(2/alpha) / (2 (d/2)^2) for both rates 1e-6.
    assert math.log(2e6) / (2 * (distance / 2) ** 2) == pytest.approx(draws, rel=1e-5)
    assert (
        dkw_bound(distance / 2, math.ceil(draws) + 1) <= 1e-6 < dkw_bound(distance / 2, math.floor(draws) - 1)
    )


# The door.


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: samples_needed([0.5, 0.5], 0.0), "tv=0.0"),
        (lambda: samples_needed([0.5, 0.5], 1.0), "such as 0.01"),
        (lambda: samples_needed([0.5, 0.5], math.nan), "tv=nan"),
        (lambda: samples_needed([0.5, 0.5], 1e-12), "larger distance"),
        (lambda: samples_needed([0.5, 0.4], 0.01), "sum to 0.9"),
        (lambda: samples_needed("row", 0.01), "probabilities"),
        (lambda: samples_needed([0.5, 0.5], 0.01, miss=0), "miss"),
        (lambda: samples_needed([0.5, 0.5], 0.01, false_alarm=2), "false_alarm"),
        (lambda: samples_needed([0.5, 0.5], 0.01, components=0), "components"),
        (lambda: samples_needed([0.5, 0.5], 0.01, components=1.5), "components"),
        (lambda: detectable_tv([0.5, 0.5], -1), "n=-1"),
        (lambda: detectable_tv([0.5, 0.5], "many"), "n='many'"),
        (lambda: detectable_tv([[0.5, 0.5]] * 2, 10), "visits=None"),
        (lambda: detectable_tv([[0.5, 0.5]] * 2, 10, visits=[1]), "visits"),
        (lambda: detectable_tv([[0.5, 0.5]] * 2, 10, visits=[0, 0]), "all 0"),
        (lambda: draws_for_relative_error(0.0, 0.1), "probability"),
        (lambda: draws_for_relative_error(0.1, [0.1]), "one number"),
    ],
)
def test_bad_input_is_named(call, says):
    with pytest.raises(InputError, match=says):
        call()
