from __future__ import annotations

import itertools
import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy.special import gammaln

from simkit.errors import InputError
from simkit.stats import chi_square, concentration, evidence, log_e_value, mix, scales, threshold


def by_products(counts, p, k):
    """Return the log e-value without a gamma function: ln[Gamma(a+m)/(Gamma(a) a^m)] = sum log1p(i/a)."""
    terms = [math.log1p(i / (k * q)) for c, q in zip(counts, p, strict=True) for i in range(c)]
    return math.fsum(terms + [-math.log1p(i / k) for i in range(sum(counts))])


BERNOULLI = ((1, 6), (-1, 30), (1, 42), (-1, 30), (5, 66), (-691, 2730), (7, 6), (-3617, 510))


def decimal_log_gamma(z: Decimal) -> Decimal:
    """Return ln Gamma(z) to about 40 digits: the recurrence up to 200, then Stirling's series."""
    shift = Decimal(0)
    while z < 200:
        shift += z.ln()
        z += 1
    half_log_two_pi = Decimal("0.918938533204672741780329736405617639861397473637783412817")
    value = (z - Decimal("0.5")) * z.ln() - z + half_log_two_pi
    for i, (top, bottom) in enumerate(BERNOULLI, start=1):
        value += Decimal(top) / Decimal(bottom) / (2 * i * (2 * i - 1) * z ** (2 * i - 1))
    return value - shift


def by_decimals(counts, p, k):
    """Return the log e-value from its definition, in 60 digits."""
    with localcontext() as context:
        context.prec = 60
        concentration = Decimal(float(k))
        value = decimal_log_gamma(concentration) - decimal_log_gamma(concentration + sum(counts))
        for c, q in zip(counts, p, strict=True):
            share = Decimal(float(q))
            value += decimal_log_gamma(concentration * share + c) - decimal_log_gamma(concentration * share)
            value -= c * share.ln()
        return float(value)


@pytest.mark.parametrize(
    ("counts", "p", "k", "value"),
    [
        ([10, 0], [0.5, 0.5], 2, math.log(1024 / 11)),
        ([5, 0, 0], [1 / 3] * 3, 3, math.log(2 * 120 / 5040 * 243)),
        ([60, 40], [0.5, 0.5], 2, math.log(0.9130497784875794)),
        ([60, 40], [0.5, 0.5], 100, math.log(1.93264942004)),
        ([1048, 660, 510, 420, 362], np.array([1020, 690, 510, 420, 360]) / 3000, 100, -5.870350638714),
    ],
)
def test_reference_values(counts, p, k, value):
    assert log_e_value(counts, p, k) == pytest.approx(value, abs=1e-11)
    assert by_products(counts, p, k) == pytest.approx(value, abs=1e-11)


def test_reference_values_in_their_own_digits():
    assert math.exp(log_e_value([10, 0], [0.5, 0.5], 2)) == pytest.approx(93.0909090909, abs=1e-10)
    assert math.exp(log_e_value([5, 0, 0], [1 / 3] * 3, 3)) == pytest.approx(11.5714285714, abs=1e-10)


@pytest.mark.parametrize("k", [1e-3, 1.0, 37.5, 1e4, 1e6, 1e8, 1e10, 1e12])
def test_products_agree_at_every_concentration(rng, k):
    p = rng.dirichlet(np.full(40, 0.5)) + 1e-6
    p /= p.sum()
    counts = rng.multinomial(20_000, p)
    assert log_e_value(counts, p, k) == pytest.approx(by_products(counts.tolist(), p, k), rel=1e-12, abs=1e-9)


@pytest.mark.parametrize("n", [10**3, 10**7, 10**10])
@pytest.mark.parametrize("k", [0.1, 1e3, 1e6, 1e9, 1e12])
def test_sixty_digits_agree_up_to_the_largest_runs(rng, n, k):
    # Dyadic probabilities: their sum is 1 exactly, as the definition wants.
    p = np.array([512, 300, 150, 50, 11, 1]) / 1024
    counts = rng.multinomial(n, p)
    exact = by_decimals(counts.tolist(), p, k)
    assert log_e_value(counts, p, k) == pytest.approx(exact, rel=1e-12, abs=1e-9)
    # The mutant: plain differences of log-gamma lose digits as soon as counts and k are large.
    if n == 10**10 and k >= 1e6:
        plain = (
            gammaln(k)
            - gammaln(k + n)
            + (gammaln(k * p + counts) - gammaln(k * p) - counts * np.log(p)).sum()
        )
        assert abs(plain - exact) > 1e-9


def test_rare_tokens_do_not_overflow():
    p = np.array([1.0 - 1e-15, 1e-15, 1e-300])
    assert log_e_value([5, 0, 1], p, 10.0) == pytest.approx(by_decimals([5, 0, 1], p, 10.0), rel=1e-12)
    assert log_e_value([0, 0, 1], p, 10.0) == pytest.approx(0.0, abs=1e-12)


def all_counts(cells, n):
    """Yield every count vector."""
    for cuts in itertools.combinations(range(n + cells - 1), cells - 1):
        edges = (-1, *cuts, n + cells - 1)
        yield [b - a - 1 for a, b in itertools.pairwise(edges)]


def chance(counts, p):
    """Return the multinomial probability of a count vector."""
    value = math.factorial(sum(counts))
    for c, q in zip(counts, p, strict=True):
        value = value / math.factorial(c) * q**c
    return value


@pytest.mark.parametrize(
    ("p", "n", "k"), [([0.3, 0.7], 10, 5), ([0.05, 0.15, 0.8], 12, 0.7), ([0.1, 0.2, 0.3, 0.4], 9, 50.0)]
)
def test_expectation_is_one_by_enumeration(p, n, k):
    total = math.fsum(chance(c, p) * math.exp(log_e_value(c, p, k)) for c in all_counts(len(p), n))
    assert total == pytest.approx(1.0, abs=1e-12)
    # The mutant that smooths the target in the prior but not in the likelihood is no e-value.
    flat = np.full(len(p), 1 / len(p))
    wrong = math.fsum(chance(c, p) * math.exp(log_e_value(c, flat, k)) for c in all_counts(len(p), n))
    assert wrong > 1.1


def test_expectation_of_a_whole_run_is_one_by_enumeration():
    p = [[0.3, 0.7, 0.0], [0.2, 0.3, 0.5]]
    total = 0.0
    for first, second in itertools.product(all_counts(2, 4), all_counts(3, 4)):
        weight = chance(first, p[0][:2]) * chance(second, p[1])
        total += weight * math.exp(evidence([[*first, 0], second], p, [4.0, 0.2]).log_e)
    assert total == pytest.approx(1.0, abs=1e-12)


def test_order_of_draws_does_not_matter(rng):
    # The e-value of added counts is the product of one-draw predictive ratios in any order.
    p, k = np.array([0.5, 0.2, 0.3]), 4.0
    tokens = rng.choice(3, p=p, size=60)
    for order in (tokens, tokens[::-1], rng.permutation(tokens)):
        seen, log_e = np.zeros(3), 0.0
        for token in order:
            log_e += math.log((k * p[token] + seen[token]) / (k + seen.sum()) / p[token])
            seen[token] += 1
        assert log_e_value(seen, p, k) == pytest.approx(log_e, abs=1e-12)


def test_ever_crossing_is_within_the_rate(rng, most, fewest):
    # 3,000 null paths, each looked at 30 times, at rate .1: slips at 1e-9. The mutant, a chi-square p
    # looked at as often, alarms in a third of the paths. The e-value finds a sampler off by TV .1 in
    # nearly all.
    p, alpha, runs, looks, batch = np.array([0.4, 0.3, 0.2, 0.1]), 0.1, 3000, 30, 40
    rows = np.tile(p, (runs, 1))
    k = concentration(looks * batch, 3, alpha)
    wrong = np.array([0.5, 0.3, 0.1, 0.1])
    ever = np.zeros((2, runs), dtype=bool)
    peeked = np.zeros(runs, dtype=bool)
    counts = np.zeros((2, runs, 4), dtype=np.int64)
    for _ in range(looks):
        for i, law in enumerate((p, wrong)):
            counts[i] += rng.multinomial(batch, law, size=runs)
            ever[i] |= log_e_value(counts[i], rows, k) >= threshold(alpha)
        due = counts[0].sum(axis=1, keepdims=True) * p
        peeked |= ((counts[0] - due) ** 2 / due).sum(axis=1) >= 6.251388631170325
    assert chi_square(counts[0, 0], p, min_expected=0).degrees_of_freedom == 3
    assert ever[0].sum() <= most(runs, alpha)
    assert peeked.sum() > most(runs, alpha)
    assert ever[1].sum() >= fewest(runs, 0.95)


def test_states_are_judged_each_by_itself(rng):
    p = rng.dirichlet(np.ones(5), size=7)
    counts = rng.multinomial(100, p)
    k = rng.uniform(1, 100, size=7)
    each = [log_e_value(c, row, a) for c, row, a in zip(counts, p, k, strict=True)]
    assert log_e_value(counts, p, k) == pytest.approx(each, abs=1e-11)
    assert log_e_value(counts, p, 9.0)[3] == pytest.approx(log_e_value(counts[3], p[3], 9.0), abs=1e-11)


def test_blocks_of_states_are_joined(rng):
    # 12,000 states of 33 tokens are more than one block.
    p = np.tile(rng.dirichlet(np.ones(33)), (12_000, 1))
    counts = rng.multinomial(50, p[0], size=12_000)
    whole = log_e_value(counts, p, 20.0)
    for at in (0, 7943, 7944, 11_999):
        assert whole[at] == pytest.approx(log_e_value(counts[at], p[at], 20.0), abs=1e-12)


def test_impossible_tokens():
    assert log_e_value([3, 1], [1.0, 0.0], 5.0) == math.inf
    assert log_e_value([3, 0], [1.0, 0.0], 5.0) == 0.0
    assert log_e_value([4, 6, 0], [0.5, 0.5, 0.0], 5.0) == log_e_value([4, 6], [0.5, 0.5], 5.0)
    run = evidence([[5, 5, 0], [3, 2, 1]], [[0.5, 0.5, 0.0]] * 2, [10.0, 6.0])
    assert run.log_e == math.inf
    assert run.rejects(1e-300)


def test_no_draws_are_no_evidence():
    assert log_e_value([0, 0], [0.5, 0.5], 3.0) == 0.0
    assert evidence([[0, 0], [0, 0]], [[0.5, 0.5]] * 2, [0.0, 0.0]).log_e == pytest.approx(0.0, abs=1e-15)


def test_first_draw_of_a_state_is_no_evidence():
    assert log_e_value([[1, 0, 0], [0, 0, 1]], [[0.2, 0.3, 0.5]] * 2, 7.0) == pytest.approx([0, 0], abs=1e-14)


def test_best_concentration_is_where_the_log_e_peaks():
    # At the boundary X2 the approximation ln E = [n/(n+k) X2 - df ln(1 + n/k)]/2 reaches ln(1/alpha) near k*.
    n, df, alpha = 10**6, 999, 1e-6
    best = concentration(n, df, alpha)
    assert best == pytest.approx(n / 2 * math.sqrt(df / math.log(1e6)), rel=1e-14)

    def statistic_needed(k):
        return (n + k) / n * (df * math.log1p(n / k) + 2 * math.log(1 / alpha))

    grid = best * np.linspace(0.5, 2, 301)
    least = grid[np.argmin([statistic_needed(k) for k in grid])]
    assert least == pytest.approx(best, rel=0.15)


def test_threshold():
    assert threshold(1e-6) == pytest.approx(6 * math.log(10), rel=1e-15)


def test_components_of_one_state_and_of_many():
    p = [0.5, 0.5]
    one = evidence([620, 380], p, 1000)
    assert list(one.components) == ["full 4k*", "full k*", "full k*/4"]
    assert evidence([[620, 380]], [p], [1000.0]) == one
    values = [log_e_value([620, 380], p, concentration(1000, 1) * scale) for scale in (4.0, 1.0, 0.25)]
    assert list(one.components.values()) == pytest.approx(values, abs=1e-12)
    assert one.log_e == pytest.approx(math.log(sum(math.exp(v) for v in values) / 3), abs=1e-12)
    two = evidence([[620, 380], [50, 50]], [p, p], [1000.0, 100.0])
    assert sorted({name.split()[0] for name in two.components}) == ["average", "product"]
    assert len(two.components) == 6
    with pytest.raises(TypeError):
        two.components["product k*"] = 0.0  # type: ignore[index]


def test_families_have_equal_weight():
    p = np.full(200, 1 / 200)
    run = evidence(np.full(200, 100), p, 20_000, others={"mine": {"a": 1.0, "b": 2.0}})
    weights: dict[str, float] = {}
    for name, share in run.shares.items():
        family = name.split(",")[0].split(" ")
        kind = {"a": "mine", "b": "mine", "rank": "rank splits", "full": "full"}.get(family[0], family[-1])
        weights[kind] = weights.get(kind, 0.0) + share
    assert sorted(weights) == ["blocks", "buckets", "full", "mine", "rank splits", "rest"]
    assert list(weights.values()) == pytest.approx([1 / 6] * 6)
    by_hand = sum(run.shares[name] * math.exp(value) for name, value in run.components.items())
    assert run.log_e == pytest.approx(math.log(by_hand), abs=1e-12)


def test_partitions_weigh_the_merged_counts():
    p = np.array([0.4, 0.3, 0.2, 0.1])
    counts = np.array([430, 280, 190, 100])
    run = evidence(counts, p, 1000)
    k = concentration(1000, 1)
    assert run.components["rank split at 1, k*"] == pytest.approx(log_e_value([430, 570], [0.4, 0.6], k))
    assert run.components["rank split at 3, k*"] == pytest.approx(log_e_value([900, 100], [0.9, 0.1], k))


def test_looks_add_smaller_concentrations_and_touch_no_other():
    assert list(scales(1)) == ["4k*", "k*", "k*/4"]
    # Sizes double: the first of 5 looks is at 1/16 of the planned draws, where k*/16 is the best k.
    assert list(scales(5)) == ["4k*", "k*", "k*/4", "k*/16", "k*/64"]
    one, five = (evidence([620, 380], [0.5, 0.5], 1000, looks=looks).components for looks in (1, 5))
    assert {name: five[name] for name in one} == dict(one)


def test_mix_refuses_weights_that_do_not_fit():
    for shares in ({"a": 1.0}, {"a": 1.0, "c": 1.0}, {"a": 1.0, "b": 0.0}, {"a": 1.0, "b": math.nan}):
        with pytest.raises(InputError, match="shares"):
            mix({"a": 0.0, "b": 1.0}, shares)
    half = mix({"a": 0.0, "b": math.log(5)}, {"a": 3.0, "b": 1.0})
    assert half.log_e == pytest.approx(math.log(2))


def test_product_takes_its_concentration_from_all_states(rng):
    p = rng.dirichlet(np.ones(4), size=3)
    p[0] = [0.5, 0.5, 0.0, 0.0]
    visits = np.array([10.0, 200.0, 0.3])
    counts = rng.multinomial([12, 190, 2], p)  # two draws where .3 are planned: k is that of one
    k = np.maximum(visits, 1.0) / 2 * math.sqrt((1 + 3 + 3) / threshold())
    run = evidence(counts, p, visits)
    assert run.components["product k*"] == pytest.approx(log_e_value(counts, p, k).sum(), abs=1e-11)
    own = np.maximum(visits, 1.0) / 2 * np.sqrt(np.array([1, 3, 3]) / threshold())
    mean = np.exp(log_e_value(counts, p, own)).mean()
    assert run.components["average k*"] == pytest.approx(math.log(mean), abs=1e-11)


def test_each_component_sees_its_fault(rng):
    # 2,000 states of 50 draws. A fault that all states share (noncentrality 4,000 over 14,000 degrees of
    # freedom: 24 sigma, ln E 231 with deviation 17) is seen by the product; one broken state of 200 draws,
    # TV .49, by the average (ln E above 60). A right sampler reaches 1e9 with probability at most 1e-9.
    states, width = 2000, 8
    p = np.full((states, width), 1 / width)
    sign = np.where(np.arange(width) % 2, 1, -1)
    visits = np.full(states, 50)
    visits[7] = 200
    shared_fault = rng.multinomial(visits, p * (1 + 0.2 * sign))
    shared = evidence(shared_fault, p, visits)
    assert shared.rejects(1e-6)
    assert shared.strongest.startswith("product")
    counts = rng.multinomial(visits, p)
    assert not evidence(counts, p, visits).rejects(1e-9)
    counts[7] = rng.multinomial(visits[7], p[7] * (1 + 0.98 * sign))
    single = evidence(counts, p, visits)
    assert single.rejects(1e-6)
    assert single.strongest.startswith("average")
    # The mutant: with each state's own k, the product has no power at all (ln E about -2,700).
    assert log_e_value(shared_fault, p, concentration(50, width - 1)).sum() < 0


def test_mix_is_the_average():
    run = mix({"a": 0.0, "b": -math.inf, "c": 700.0, "d": 710.0})
    assert run.log_e == pytest.approx(710 + math.log((1 + math.exp(-10)) / 4), abs=1e-12)
    assert mix({"a": -math.inf}).log_e == -math.inf
