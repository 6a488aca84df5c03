from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats
from statsmodels.stats.power import GofChisquarePower

from simkit.stats import (
    chi_square_power,
    concentration,
    detection_power,
    evidence,
    log_e_value,
    samples_needed,
    threshold,
)


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
    # 600 runs off by TV .01, rate 1e-6. The formula is Laplace's approximation, given .05 of allowance; for
    # the mix it is a lower bound. Any assertion slips at 1e-9.
    runs = 600
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


@pytest.mark.parametrize("cells", [2, 10, 33, 1000, 262_144])
@pytest.mark.parametrize("tv", [0.3, 0.01, 1e-4])
def test_samples_needed_is_the_least(cells, tv):
    n = samples_needed(tv, cells, 1e-6, 1e-3)
    assert detection_power(tv, n, cells, 1e-6) >= 1 - 1e-3
    assert detection_power(tv, n - 1, cells, 1e-6) < 1 - 1e-3


def test_samples_needed_beside_chi_square():
    # Chi-square at (1e-6, 1e-3) needs 2.15e5 for K = 10, TV .01.
    n = GofChisquarePower().solve_power(effect_size=0.02, nobs=None, alpha=1e-6, power=0.999, n_bins=10)
    assert n == pytest.approx(2.15e5, rel=2e-3)
    assert 1.1 < samples_needed(0.01, 10, 1e-6, 1e-3) / n < 1.3


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


def test_noncentral_tail_at_scale():
    # The library's noncentral chi-square against reference numbers (Edgeworth agrees).
    for df, shift, power in (
        (1000, 300, 0.90279904),
        (32_000, 1500, 0.85773089),
        (256_000, 4000, 0.78924753),
    ):
        level = scipy_stats.chi2.isf(1e-6, df)
        assert scipy_stats.ncx2.sf(level, df, shift) == pytest.approx(power, abs=6e-9)
