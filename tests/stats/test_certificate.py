from __future__ import annotations

import math
import time
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom, chi2, ncx2

from simkit.errors import InputError
from simkit.laws.rows import Row
from simkit.stats._input import as_counts
from simkit.stats.certificate import Certificate, _expected_sums, _mean_sign_sum, certificate
from simkit.stats.design import lay_out, noncentrality_limit, share_limit


def even_shift(p, tv):
    """Return the law with |q - p| = 2 tv p, for a uniform p of even length: the hardest at its distance."""
    return p * (1 + 2 * tv * np.where(np.arange(len(p)) % 2, 1, -1))


def distance(p, q):
    return 0.5 * float(np.abs(np.asarray(p) - q).sum())


# The noncentrality limit.


@pytest.mark.parametrize(
    ("df", "shift", "power"),
    [(1000, 300, 0.90279904), (32_000, 1500, 0.85773089), (256_000, 4000, 0.78924753)],
)
def test_limit_inverts_reference_numbers(df, shift, power):
    # Published by two routes (SciPy, Edgeworth): sf of the noncentral chi-square at the 1e-6 point.
    level = chi2.isf(1e-6, df)
    assert ncx2.sf(level, df, shift) == pytest.approx(power, abs=6e-9)
    assert noncentrality_limit(level, df, 1 - power) == pytest.approx(shift, rel=1e-6)


@pytest.mark.parametrize("df", [1, 2, 9, 1000, 10**6])
@pytest.mark.parametrize("error", [0.3, 0.05, 1e-3, 1e-6, 1e-12])
@pytest.mark.parametrize("ratio", [1.0, 1.5, 40.0])
def test_limit_solves_its_equation(df, error, ratio):
    limit = noncentrality_limit(df * ratio, df, error)
    assert ncx2.cdf(df * ratio, df, limit) == pytest.approx(error, rel=1e-6)


def test_limit_at_the_ends():
    assert noncentrality_limit(5.0, 0, 1e-3) == 0.0
    low = chi2.ppf(1e-3, 50)
    assert noncentrality_limit(low * 0.999, 50, 1e-3) == 0.0 < noncentrality_limit(low * 1.001, 50, 1e-3)
    # Above 1e9 it is the closed bound, which lies above the root by less than a thousandth of it.
    closed, root = noncentrality_limit(2e9, 9, 1e-6), (math.sqrt(2e9) - chi2.isf(2e-6, 1) ** 0.5) ** 2
    assert closed == pytest.approx(2e9 + 2 * 4.7534 * math.sqrt(2e9), rel=1e-3)
    assert closed > root
    assert noncentrality_limit(1e14, 9, 1e-6) == pytest.approx(1e14, rel=1e-5)


# The left-out tokens' share.


def test_share_limit_by_its_definition():
    assert share_limit(0, 100, 0.05) == pytest.approx(1 - 0.05**0.01, rel=1e-12)
    assert binom.cdf(7, 300, share_limit(7, 300, 1e-4)) == pytest.approx(1e-4, rel=1e-9)
    assert share_limit(300, 300, 0.05) == 1.0


@pytest.mark.parametrize("error", [0.2, 0.05, 1e-4])
def test_share_limit_holds_for_unequal_probabilities(error):
    # Exact: the number of left-out tokens of two states is a convolution. Hoeffding 1956 makes it safe.
    for (n1, q1), (n2, q2) in product([(40, 0.0), (7, 0.4), (90, 0.01)], [(60, 0.05), (25, 0.3), (3, 0.9)]):
        law = np.convolve(binom.pmf(np.arange(n1 + 1), n1, q1), binom.pmf(np.arange(n2 + 1), n2, q2))
        limits = np.array([share_limit(count, n1 + n2, error) for count in range(n1 + n2 + 1)])
        assert law[limits < (n1 * q1 + n2 * q2) / (n1 + n2)].sum() <= error


# The cells.


def test_cells_follow_the_plan():
    p = np.array([[0.5, 0.3, 0.15, 0.03, 0.02, 0.0]])
    layout = lay_out(p, np.array([1000.0]))  # every possible token expects 20; the impossible one is left out
    assert layout.own.tolist() == [[True] * 5 + [False]]
    assert (layout.tail[0], layout.left_out[0], layout.rest[0]) == (False, True, 0.0)
    layout = lay_out(p, np.array([500.0]))  # .03 and .02 expect 15 and 10: 25 together, so they are a tail
    assert layout.own.tolist() == [[True] * 3 + [False] * 3]
    assert (layout.tail[0], layout.left_out[0], layout.cells[0]) == (True, False, 4)
    assert layout.rest[0] == pytest.approx(0.05)
    layout = lay_out(p, np.array([300.0]))  # 15 together: left out
    assert (layout.tail[0], layout.left_out[0], layout.cells[0]) == (False, True, 3)
    layout = lay_out(p, np.array([30.0]))  # nobody expects 20: one cell, the whole state
    assert (layout.cells[0], layout.rest[0]) == (1, 1.0)
    layout = lay_out(np.array([[0.7, 0.3]]), np.array([3.0]))  # a token above one half may stand alone
    assert layout.own.tolist() == [[True, False]]
    assert layout.left_out[0]


# The bound, by hand.


def larger(counts, expected):
    """Return the larger of Pearson's statistic and U, which is less the sum of (c - e)/e."""
    excess = counts - expected
    return max(float((excess**2 / expected).sum()), float((excess * (excess - 1) / expected).sum()))


def test_one_state_by_hand():
    counts, p = np.array([310, 190, 500]), np.array([0.3, 0.2, 0.5])
    bound = certificate(counts, p, 0.99)
    # U is .85, below its 2 degrees of freedom, and counts as 2.
    assert larger(counts, 1000 * p) == pytest.approx(1 / 3 + 1 / 2 - 10 / 300 + 10 / 200)
    limit = noncentrality_limit(2.0, 2, 0.01)
    assert bound.total_variation == pytest.approx(0.5 * math.sqrt(limit / 999), rel=1e-9)
    counts = np.array([330, 210, 460])
    u = max(30 * 29 / 300 + 10 * 9 / 200 + 40 * 41 / 500, 30**2 / 300 + 10**2 / 200 + 40**2 / 500)
    bound = certificate(counts, p, 0.99)
    limit = bound.total_variation**2 * 4 * 999
    assert ncx2.cdf(u, 2, limit) == pytest.approx(0.01, rel=1e-6)
    assert (bound.cells, bound.degrees_of_freedom, bound.opaque, bound.samples) == (3, 2, 0.0, 1000)
    assert (bound.method, bound.worst_state, bound.worst_bound) == ("chi-square", None, None)
    assert bound.confidence == pytest.approx(0.99)


def test_tail_by_hand():
    p = np.array([0.5, 0.45] + [0.01] * 5)  # n = 1000: the five expect 10 each, 50 together
    counts = np.array([520, 430, 30, 0, 0, 10, 10])
    bound = certificate(counts, p, 0.99)
    u = max(20 * 19 / 500 + 20 * 21 / 450, 20**2 / 500 + 20**2 / 450)
    spread = 0.5 * math.sqrt(noncentrality_limit(max(u, 2.0), 2, 0.01) / 999)
    assert bound.opaque == pytest.approx(0.05)
    assert bound.total_variation == pytest.approx(0.05 + spread, rel=1e-9)
    assert bound.cells == 3


def test_left_out_by_hand():
    p = np.array([0.5, 0.49, 0.01, 0.0])  # n = 1000: .01 expects 10
    counts = np.array([540, 448, 9, 3])
    bound = certificate(counts, p, 0.99)
    inside, first = 988, 988 * 0.5 / 0.99
    x2 = larger(np.array([540, 448]), np.array([first, inside - first]))
    limit = noncentrality_limit(x2, 1, 0.9 * 0.01)
    hidden = share_limit(12, 1000, 0.1 * 0.01)
    assert bound.opaque == pytest.approx(0.01 + hidden, rel=1e-12)
    # N draws at stake, M inside: 1/2 sqrt(lambda/(M - 1)), not 1/2 sqrt(lambda/(N - 1)).
    spread = 0.5 * math.sqrt(limit / (inside - 1))
    assert bound.total_variation == pytest.approx(bound.opaque + spread, rel=1e-9)
    # The mutants that split nothing, divide by N, or forget the target's own mass outside.
    whole = noncentrality_limit(x2, 1, 0.01)
    assert bound.total_variation > bound.opaque + 1.001 * 0.5 * math.sqrt(whole / inside)
    assert spread > 1.005 * 0.5 * math.sqrt(limit / 1000)
    assert bound.opaque > hidden + 0.009


def test_many_states_by_hand():
    p = np.array(
        [[0.5, 0.3, 0.2, 0.0], [0.25, 0.25, 0.25, 0.25], [0.0, 0.0, 1.0, 0.0], [0.9, 0.05, 0.04, 0.01]]
    )
    planned = np.array([2000.0, 4000.0, 500.0, 300.0])
    counts = np.array([[980, 640, 410, 0], [1050, 940, 980, 1010], [0, 0, 480, 0], [270, 30, 4, 2]])
    bound = certificate(counts, p, 0.999, planned)
    # State 0: the impossible token is left out. State 1: four cells. State 2: one cell. State 3 (plan 300):
    # 270 and 30 draws, no; .05 expects 15, so .05, .04, .01 are a tail of 30.
    n = counts.sum(axis=1)
    total = n.sum()
    cells = [(counts[s, :k], n[s] * p[s, :k]) for s, k in ((0, 3), (1, 4))]
    cells.append((np.array([270, 36]), n[3] * np.array([0.9, 0.1])))
    x2 = [float(((c - e) ** 2 / e).sum()) for c, e in cells]
    u = [x - float(((c - e) / e).sum()) for x, (c, e) in zip(x2, cells, strict=True)]
    df, weight = 2 + 3 + 1, sum(m * m / (m - 1) for m in weight_of(n))
    limit = noncentrality_limit(max(sum(x2), sum(u)), df, 0.9e-3)
    opaque = 0.1 * n[3] / total + share_limit(0, total, 0.1e-3)
    assert bound.degrees_of_freedom == df
    assert bound.cells == 3 + 4 + 2
    assert bound.opaque == pytest.approx(opaque, rel=1e-9)
    assert bound.total_variation == pytest.approx(opaque + 0.5 * math.sqrt(limit * weight) / total, rel=1e-9)
    excess = [(x - d) / m for x, d, m in zip(x2, (2, 3, 1), weight_of(n), strict=True)]
    assert bound.worst_state == (0, 1, 3)[int(np.argmax(excess))] == 1
    own = 0.5 * math.sqrt(noncentrality_limit(max(x2[1], u[1], 3.0), 3, 1e-3 / 3) / (n[1] - 1))
    assert bound.worst_bound == pytest.approx(own, rel=1e-9)


def weight_of(n):
    return n[0], n[1], n[3]


def test_the_worst_state_is_named():
    p = np.full((5, 4), 0.25)
    counts = np.full((5, 4), 500)
    counts[3] = [650, 350, 650, 350]
    bound = certificate(counts, p, 0.999, np.full(5, 2000.0))
    assert bound.worst_state == 3
    assert 0.15 < bound.worst_bound < 0.25  # its total variation is .15, that of the run .03
    assert bound.total_variation < bound.worst_bound


def test_a_state_that_was_not_seen_counts_in_full():
    p = np.array([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0]])
    # All 100 draws of the second state are left-out tokens: nothing is known of its cells.
    bound = certificate([[10**5, 10**5, 0], [0, 0, 10**3]], p, 0.99, [2e5, 1e3])
    assert bound.degrees_of_freedom == 1
    assert bound.opaque == pytest.approx(1e3 / 201_000 + share_limit(1000, 201_000, 1e-3), rel=1e-9)


def test_a_state_with_fewer_draws_than_half_of_the_plan_counts_in_full():
    # One draw a state tells nothing, whatever is drawn: U is then the degrees of freedom.
    always_the_first = np.tile([1, 0], (2000, 1))
    p = np.full((2000, 2), 0.5)
    assert certificate(always_the_first, p, 0.999, np.full(2000, 40.0)).total_variation == 1.0
    p = np.full((2, 2), 0.5)
    thin = certificate([[5000, 5000], [10, 9]], p, 0.999, [10_000.0, 40.0])
    assert thin.degrees_of_freedom == 1
    assert thin.opaque == pytest.approx(19 / 10_019)
    assert certificate([[5000, 5000], [10, 10]], p, 0.999, [10_000.0, 40.0]).degrees_of_freedom == 2


@pytest.mark.parametrize("tv", [0.025, 0.03, 0.035])
def test_coverage_where_weight_moves_from_many_small_cells_to_a_large_one(rng, most, tv):
    """Pearson's statistic falls short there: its mean holds sum(q/p - 1), here -2 tv 2000 (1 - 1/2000).

    600 runs at error .01; the bound by X2 alone, the mutant, is wrong in 18 to 34 % of them.
    """
    small, draws = 2000, 80_001
    p = np.r_[0.5, np.full(small, 0.5 / small)]
    q = p + np.r_[tv, np.full(small, -tv / small)]
    counts = rng.multinomial(draws, q, size=600)
    wrong = sum(certificate(c, p, 0.99).total_variation < tv for c in counts)
    assert wrong <= most(600, 0.012)
    x2 = ((counts - draws * p) ** 2 / (draws * p)).sum(axis=1)
    # The mutant's bound is below tv where X2 is below this point: 108 of 600 at least, with a deviation of 9.
    point = ncx2.ppf(0.01, small, 4 * draws * tv * tv)
    assert (x2 < point).sum() > most(600, 0.03)


def test_coverage_over_many_sparse_states(rng, most):
    # 20,000 states of two tokens, 72 draws each, off by .015: 60 runs at error .05.
    states, tv = 20_000, 0.015
    p = np.tile([0.72, 0.28], (states, 1))
    visits = np.full(states, 72.0)
    wrong = 0
    for _ in range(60):
        n = rng.poisson(72, states)
        c = rng.binomial(n, 0.28 - tv)
        wrong += certificate(np.column_stack([n - c, c]), p, 0.95, visits).total_variation < tv
    assert wrong <= most(60, 0.055)


def test_planned_cells_do_not_move_with_the_counts():
    # The second token expects 19.9 or 20.1; its count does not matter.
    p = [0.9, 0.06, 0.04]
    assert certificate([400, 99, 1], p, 0.99, 20.1 / 0.06).cells == 2
    assert certificate([475, 0, 25], p, 0.99, 500).cells == 3


# Cases that have an answer.


def test_a_rare_token_is_not_merged_with_a_big_one():
    bound = certificate([10**6, 0], [1 - 1e-9, 1e-9], 0.999)
    assert bound.total_variation == pytest.approx(-math.log(1e-3) / 1e6, rel=1e-3)
    assert certificate([10**6 - 900, 900], [1 - 1e-9, 1e-9], 0.999).total_variation > 9e-4


def test_a_certain_token():
    bound = certificate([0, 1000], [0.0, 1.0], 0.999)
    assert bound.total_variation == pytest.approx(1 - 1e-3**1e-3, rel=1e-12)
    assert certificate([17], [1.0], 0.999).total_variation == 0.0


def test_an_impossible_token_is_counted():
    p = np.array([0.5, 0.5, 0.0])
    clean = certificate([50_000, 50_000, 0], p, 0.999)
    seen = certificate([49_500, 49_500, 1000], p, 0.999)
    assert clean.total_variation < 0.01 < seen.total_variation  # the law is at least about .01 away
    assert seen.opaque > 0.01


def test_nothing_drawn_certifies_nothing():
    for bound in (
        certificate([0, 0], [0.5, 0.5], 0.99),
        certificate([[0, 0]] * 2, [[0.5] * 2] * 2, 0.9, [9, 9]),
    ):
        assert (bound.total_variation, bound.samples) == (1.0, 0)
    assert certificate([3, 4], [0.5, 0.5], 0.99).total_variation == 1.0
    assert certificate([[3, 4]] * 2, [[0.5, 0.5]] * 2, 0.99, [0, 0]).total_variation == 1.0


def test_no_certificate_from_even_counts():
    # 50 of 100 heads come from coins of .4 to .6; the chi-square of 0 must not certify distance 0.
    bound = certificate([50, 50], [0.5, 0.5], 0.95)
    assert bound.total_variation > 0.1
    assert not bound.too_even
    even = certificate([500] * 100, [0.01] * 100, 0.999)
    assert even.too_even
    assert "more even than chance" in str(even)
    assert even.total_variation == pytest.approx(0.5 * math.sqrt(noncentrality_limit(99, 99, 1e-3) / 49_999))


def test_a_row_is_a_law():
    row = Row.from_weights([1, 2, 1])
    assert certificate([250, 510, 240], row, 0.99) == certificate([250, 510, 240], [0.25, 0.5, 0.25], 0.99)


def test_sequences_and_text():
    bound = Certificate(0.02, 0.999, "chi-square", 3, 2, 0.001, 1000)
    assert bound.per_sequence(16) == pytest.approx(0.32)
    assert bound.per_sequence(100) == 1.0
    text = "total variation <= 0.02 with confidence 0.999 (chi-square, 3 cells, opaque 0.001, 1000 samples)"
    assert str(bound) == text
    for length in (0, 1.5, "long", math.nan):
        with pytest.raises(InputError, match="length"):
            bound.per_sequence(length)


def test_bound_is_monotone():
    p = np.full(10, 0.1)
    by_confidence = [certificate(np.full(10, 1000), p, c).total_variation for c in (0.5, 0.9, 0.99, 1 - 1e-9)]
    by_fault = [
        certificate(np.round(10_000 * even_shift(p, tv)), p, 0.99).total_variation
        for tv in np.arange(0, 0.5, 0.05)
    ]
    by_draws = [certificate(np.full(10, n), p, 0.99).total_variation for n in (10**5, 10**4, 10**3, 10**2)]
    for rising in (by_confidence, by_fault, by_draws):
        assert rising == sorted(rising)
    assert all(bound > tv for bound, tv in zip(by_fault, np.arange(0, 0.5, 0.05), strict=True))


# Coverage.


@pytest.mark.parametrize(("cells", "draws"), [(2, 4000), (10, 5000), (100, 10_000)])
@pytest.mark.parametrize("times", [1.1, 2.0])
def test_coverage_at_the_hardest_law(rng, most, fewest, cells, draws, times):
    # 20,000 runs at error .05, each bound wrong with that rate and hardly less: slips at 1e-9 a side. The
    # lower limit stands for sharpness, since the law attains the bound.
    runs, p = 20_000, np.full(cells, 1 / cells)
    tv = times * 0.5 * math.sqrt(noncentrality_limit(cells - 1.0, cells - 1, 0.05) / draws)
    counts = rng.multinomial(draws, even_shift(p, tv), size=runs)
    x2 = ((counts - draws * p) ** 2 / (draws * p)).sum(axis=1)
    # The bound is below tv where X2 is below this point, as certificates on both sides of it agree.
    point = ncx2.ppf(0.05, cells - 1, 4 * (draws - 1) * tv * tv)
    near = np.argsort(np.abs(x2 - point))[:40]
    bounds = np.array([certificate(counts[i], p, 0.95).total_variation for i in near])
    assert ((bounds < tv) == (x2[near] < point)).all()
    wrong = int((x2 < point).sum())
    assert fewest(runs, 0.042) <= wrong <= most(runs, 0.052)
    # The mutant that takes the point estimate X2 - df for a limit is wrong often.
    assert (x2 - cells + 1 < 4 * draws * tv * tv).sum() > most(runs, 0.3)


def test_coverage_with_a_tail_and_left_out_tokens(rng, most):
    # 300 runs at error .05 over two states: one has a tail that the sampler reshuffles, the other loses its
    # left-out tokens to an impossible one. Slips at 1e-9.
    tail = np.r_[0.5, 0.4, np.full(20, 0.005)]
    p = np.array([tail, np.r_[0.6, 0.3994, np.full(6, 1e-4), np.zeros(14)]])
    q = p.copy()
    q[0, 2:] = np.r_[np.full(10, 0.01), np.zeros(10)]
    q[1] = np.r_[0.5994, 0.4, np.zeros(6), 6e-4, np.zeros(13)]
    draws = np.array([3000, 6000])
    truth = sum(n * distance(a, b) for n, a, b in zip(draws, p, q, strict=True)) / draws.sum()
    runs = 300
    bounds = [certificate(rng.multinomial(draws, q), p, 0.95, draws) for _ in range(runs)]
    assert sum(b.total_variation < truth for b in bounds) <= most(runs, 0.05)
    # Without the opaque part the certificate is wrong nearly always.
    assert all(b.method == "chi-square" for b in bounds)
    assert sum(b.total_variation - b.opaque < truth for b in bounds) > most(runs, 0.5)


def test_coverage_over_many_states(rng, most, fewest):
    # 300 runs of 50 states, all shifted evenly: rate .05, slips at 1e-9 a side.
    p = np.full((50, 4), 0.25)
    draws, runs = rng.integers(200, 2000, size=50), 300
    tv = 1.3 * 0.5 * math.sqrt(noncentrality_limit(150.0, 150, 0.05) / draws.sum())
    q = np.array([even_shift(row, tv) for row in p])
    bounds = [certificate(rng.multinomial(draws, q), p, 0.95, draws).total_variation for _ in range(runs)]
    wrong = sum(bound < tv for bound in bounds)
    assert fewest(runs, 0.04) <= wrong <= most(runs, 0.052)


@pytest.mark.parametrize("cells", [2, 10, 1000])
def test_a_wrong_sampler_is_not_certified(rng, cells):
    # 2 million draws: at its 1e-9 point a right sampler's bound is .0077 (1000 cells) or less; that of a law
    # at TV .02 is below .012 with a rate far below 1e-9.
    p = np.full(cells, 1 / cells)
    for tv in (0.0, 0.02):
        bound = certificate(rng.multinomial(2 * 10**6, even_shift(p, tv)), p, 0.999)
        assert (bound.total_variation <= 0.01) == (tv == 0.0)
        assert bound.total_variation > 0.6 * tv


@pytest.mark.parametrize(("cells", "draws"), [(2, 134_300), (10, 193_100), (100, 375_900), (1000, 924_800)])
def test_reference_sizes(cells, draws):
    # n to certify .01 at error 1e-6 in 99 of 100 runs of a right sampler: the bound at its 99 % point.
    df = cells - 1
    point = chi2.isf(0.01, df)
    assert 0.5 * math.sqrt(noncentrality_limit(point, df, 1e-6) / draws) == pytest.approx(0.01, rel=3e-4)
    # Counts with that chi-square, every cell off by as much; whole counts miss the point by little.
    expected = round(draws / cells)
    counts = expected + np.where(np.arange(cells) % 2, 1, -1) * round(math.sqrt(point * expected / cells))
    bound = certificate(counts, np.full(cells, 1 / cells), 1 - 1e-6)
    assert bound.total_variation == pytest.approx(0.01, rel=4e-3)


# The distribution-free route.


def test_mean_sign_sums():
    # By enumeration of all signs, and by Stirling at large counts.
    for count in range(1, 12):
        sums = np.abs([sum(signs) for signs in product((-1, 1), repeat=count)])
        assert _mean_sign_sum(np.array([count]))[0] == pytest.approx(sums.mean(), rel=1e-13)
    assert _mean_sign_sum(np.arange(6)).round(12).tolist() == [0.0, 1.0, 1.0, 1.5, 1.5, 1.875]
    big = np.array([10**6, 10**10, 10**15])
    series = np.sqrt(2 * big / np.pi) * (1 - 1 / (4 * big))
    assert _mean_sign_sum(big) * 0.0 + _mean_sign_sum(big) == pytest.approx(
        series * (1 + 1 / (2 * big)), rel=1e-6
    )


def test_symmetrisation_and_differences_exactly():
    # E TV(counts/n, q) <= E sum_j E|S_c| / n over all samples, and one more draw adds 0 to 1 to E|S_c|.
    q, n = np.array([0.5, 0.3, 0.2]), 5
    gap = complexity = 0.0
    for sample in product(range(3), repeat=n):
        counts = np.bincount(sample, minlength=3)
        chance = float(np.prod(q[list(sample)]))
        gap += chance * distance(counts / n, q)
        complexity += chance * float(_mean_sign_sum(counts).sum()) / n
    assert gap <= complexity
    assert gap > 0.4 * complexity
    steps = np.diff(_mean_sign_sum(np.arange(2000)))
    assert ((steps > -1e-12) & (steps < 1 + 1e-12)).all()


def test_distribution_free_by_hand():
    # 5 draws a token: none expects 20, so the plan takes the other route.
    counts = np.full(200, 5)
    counts[:40], counts[40:50] = 4, 9
    p = np.full(200, 1 / 200)
    bound = certificate(counts, p, 0.9)
    assert (bound.method, bound.opaque, bound.cells) == ("distribution-free", 0.0, 200)
    signs = 40 * 1.5 + 10 * 10 * math.comb(10, 5) / 4**5 + 150 * 1.875
    assert bound.total_variation == pytest.approx(0.04 + signs / 1000 + math.sqrt(2 * math.log(10) / 1000))
    # Weighted by visits over two states.
    rows, two = np.tile(p, (2, 1)), np.array([counts, np.full(200, 2)])
    bound = certificate(two, rows, 0.9, [1000, 400])
    by_hand = (1000 * 0.04 + signs + 200) / 1400 + math.sqrt(2 * math.log(10) / 1400)
    assert bound.total_variation == pytest.approx(by_hand)


def test_distribution_free_is_chosen_by_the_plan_and_holds(rng, most):
    # Zipf law over 20,000 tokens at n = 100,000; error .05, 100 runs a law. Slips at 1e-9.
    p = 1 / np.arange(1, 20_001)
    p /= p.sum()
    q = p.copy()
    q[1::2] *= 1.5
    q /= q.sum()
    runs, n = 100, 10**5
    for law in (p, q):
        bounds = [certificate(rng.multinomial(n, law), p, 0.95) for _ in range(runs)]
        assert {bound.method for bound in bounds} == {"distribution-free"}
        assert sum(bound.total_variation < distance(p, law) for bound in bounds) <= most(runs, 0.05)
        assert max(bound.total_variation for bound in bounds) < 0.9
    # The bound is the expected size that the plan compares, and less than the other route's opaque part.
    expected = _expected_sums(p[None, :], np.array([[float(n)]])) / n + math.sqrt(2 * math.log(20) / n)
    right = certificate(rng.multinomial(n, p), p, 0.95).total_variation
    assert right == pytest.approx(expected, rel=0.1)
    layout = lay_out(p[None, :], np.array([float(n)]))
    assert right < layout.rest[0] + 0.5 * math.sqrt(layout.degrees_of_freedom / n)
    # At ten million draws most tokens have cells and the chi-square takes over.
    assert certificate(rng.multinomial(10**7, p), p, 0.95).method == "chi-square"


def test_distribution_free_coverage_exactly():
    # Every coin, every outcome of 12 tosses with no cell of 20: wrong with a rate of at most .2; the bound
    # without its two radii is wrong about half the time.
    heads, p = np.arange(13), np.array([0.5, 0.5])
    parts = [distance(np.array([h, 12 - h]) / 12, p) for h in heads]
    radii = [
        float(_mean_sign_sum(np.array([h, 12 - h])).sum()) / 12 + math.sqrt(2 * math.log(5) / 12)
        for h in heads
    ]
    for q in np.linspace(0.05, 0.45, 9):
        law, truth = binom.pmf(heads, 12, q), 0.5 - q
        assert law[np.add(parts, radii) < truth].sum() <= 0.2
        assert law[np.array(parts) < truth - 1e-12].sum() > 0.3 or q > 0.3


@pytest.mark.parametrize("mean", [1e-3, 0.1, 1.0, 3.5, 40.0, 1e4])
def test_expected_sums_are_close(mean):
    from scipy.stats import poisson

    counts = np.arange(int(mean + 12 * math.sqrt(mean) + 20))
    law = poisson.pmf(counts, mean)
    exact = 0.5 * law @ np.abs(counts - mean) + law @ _mean_sign_sum(counts)
    assert _expected_sums(np.array([[1e-9]]), np.array([[mean * 1e9]])) == pytest.approx(exact, rel=0.2)


# The door.


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (([1, 2], [0.5, 0.5], 0.0), "confidence"),
        (([1, 2], [0.5, 0.5], 1.0), "such as 0.999"),
        (([1, 2], [0.5, 0.5], math.nan), "confidence"),
        (([1, 2], [0.5, 0.5], "sure"), "confidence='sure'"),
        (([1, 2], [0.5, 0.5], None), "one number"),
        (([1.5, 2], [0.5, 0.5], 0.9), "fractional"),
        (([-1, 2], [0.5, 0.5], 0.9), "negative number -1"),
        (([1, 2, 3], [0.5, 0.5], 0.9), "same shape"),
        (([[1, 2]], [[0.5, 0.5]], 0.9), "visits=None"),
        (([0.25, 0.75], [0.5, 0.5], 0.9), "multiply by the number of draws or pass the counts"),
        (([[0.25, 0.75], [0.5, 0.5]], [[0.5, 0.5]] * 2, 0.9, [1, 1]), "look like frequencies"),
        (([0.25, 0.25], [0.5, 0.5], 0.9), "fractional"),
        (([1, 2], [0.5, 0.5], 0.9, [1, 2]), "visits"),
        (([1, 2], [0.5, 0.5], 0.9, "many"), "visits"),
        (([1, 2], [0.5, 0.5], 0.9, 3, 0.5), "min_expected"),
        (([1, 2], ["a", "b"], 0.9), "probabilities"),
        (([1, 2], [[0.5], [0.5, 0.5]], 0.9), "one length"),
        (([[1], [1, 2]], [0.5, 0.5], 0.9), "different lengths"),
        (([1, 2], [0.5, 0.5j], 0.9), "real numbers"),
        (([1, 1e300], [0.5, 0.5], 0.9), "2\\*\\*62"),
        (([1, 2**63], [0.5, 0.5], 0.9), "2\\*\\*62"),
        (([], [], 0.9), "shape"),
    ],
)
def test_bad_input_is_named(arguments, says):
    with pytest.raises(InputError, match=says):
        certificate(*arguments)


def test_one_draw_is_a_count():
    assert as_counts([0.0, 1.0], (2,)).tolist() == [0, 1]


@pytest.mark.timing
def test_large_laws_are_quick(rng):
    rows = rng.dirichlet(np.full(33, 0.1), size=30_000)
    visits = 1e7 / np.arange(1, 30_001)
    counts = rng.multinomial(rng.poisson(visits), rows)
    zipf = 1 / np.arange(1, 262_145)
    zipf /= zipf.sum()
    tokens = rng.multinomial(10**6, zipf)
    certificate([1, 2], [0.5, 0.5], 0.9)
    start = time.perf_counter()
    certificate(counts, rows, 0.999, visits)
    middle = time.perf_counter()
    certificate(tokens, zipf, 0.999)
    end = time.perf_counter()
    assert middle - start < 1.0
    assert end - middle < 0.3
