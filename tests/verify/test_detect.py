"""Predicted decodes have the power that is asked for, and a test is blind where it reads nothing wrong."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, inf, log

import numpy as np
import pytest
from scipy import stats

from simkit.errors import InputError, UnknownNameError
from simkit.laws.pair import Pair
from simkit.laws.synthetic import corner_case
from simkit.rules.exact import exact_law
from simkit.rules.faults import FAULTS
from simkit.sampling.simulate import simulate
from simkit.stats import threshold
from simkit.verify import detect
from simkit.verify.detect import DETECTORS, decodes_needed, is_blind, tally_of_law
from simkit.verify.judge import judge, weigh
from simkit.verify.plan import Plan

COIN = Pair.from_weights([1, 1], [1, 1])
TWO_COINS = Pair.from_weights([[[1, 1]], [[1, 1]]], [[[1, 1]], [[1, 1]]])
PLAN = Plan()


def fractions(text: str) -> np.ndarray:
    return np.array([[Fraction(cell) for cell in line.split()] for line in text.split(";")])


def binomial_power(decodes: int, share: float, level: float = 1e-6) -> float:
    """Return how often the exact two-sided test of a fair coin rejects one that is not fair."""
    heads = np.arange(decodes + 1)
    p_value = 2.0 * stats.binom.cdf(np.minimum(heads, decodes - heads), decodes, 0.5)
    return float(stats.binom.pmf(heads, decodes, share)[p_value <= level].sum())


# ---- Predictions.


@pytest.mark.parametrize(("detector", "power"), [("chi-square", 0.9), ("KS", 0.99)])
def test_a_predicted_size_has_the_power_asked_for_by_the_exact_binomial_law(
    detector, power, rng, monkeypatch
):
    # 800 runs give the quantile to .07 of a standard deviation (five times that is .35), and sizes are
    # searched to 2 %, which moves it by another .07.
    monkeypatch.setattr(detect, "DRAWS", 800)
    decodes = decodes_needed(COIN, np.array([0.6, 0.4]), detector, power=power, rng=rng)
    found, asked = stats.norm.ppf(binomial_power(decodes, 0.6)), stats.norm.ppf(power)
    assert abs(found - asked) < 0.45
    # A size that is off by a quarter has another power: sizes go with the square of 4.89 + asked.
    assert abs(stats.norm.ppf(binomial_power(round(0.75 * decodes), 0.6)) - asked) > 0.45


def test_the_plans_false_alarm_counts(rng, monkeypatch):
    # Normal law: n = ((z(5e-4) sqrt(.25) + z(.01) sqrt(.24)) / .1) ** 2 = 775; at 1e-6 it would be 1286.
    monkeypatch.setattr(detect, "DRAWS", 800)
    decodes = decodes_needed(COIN, np.array([0.6, 0.4]), "chi-square", Plan(false_alarm=1e-3), rng=rng)
    assert decodes == pytest.approx(775, rel=0.15)


@pytest.mark.parametrize("detector", ["judge", "chi-square"])
def test_more_power_takes_more_decodes(detector, rng):
    # Sizes come within 5 % (one standard error); these differ by 1.6 and more.
    law = np.array([0.6, 0.4])
    sizes = [decodes_needed(COIN, law, detector, power=power, rng=rng) for power in (0.5, 0.95, 0.9999)]
    assert sizes == sorted(set(sizes))


IMPOSSIBLE = Pair.from_weights([97, 3, 0], [1, 1, 1])


@pytest.mark.parametrize(
    ("mass", "power"), [(0.03, 0.99), (0.03, 0.5), (0.5, 0.9), (1e-4, 0.99), (6e-8, 0.99)]
)
def test_an_impossible_token_is_seen_by_a_formula(mass, power):
    law = np.array([0.97 * (1.0 - mass), 0.03 * (1.0 - mass), mass])
    decodes = decodes_needed(IMPOSSIBLE, law, "support", power=power)
    assert decodes == ceil(log(1.0 - power) / np.log1p(-mass))
    assert (1.0 - mass) ** decodes <= (1.0 - power) * (1.0 + 1e-9) < (1.0 - mass) ** (decodes - 1)


@pytest.mark.parametrize("detector", DETECTORS)
def test_where_nothing_else_is_wrong_every_test_needs_what_support_needs(detector):
    # .97 ** 152 = .00976 and .97 ** 151 = .01006; ten times as many possible tokens say nothing.
    law = np.array(
        [Fraction(97, 100) * Fraction(97, 100), Fraction(97, 100) * Fraction(3, 100), Fraction(3, 100)]
    )
    assert decodes_needed(IMPOSSIBLE, law, detector) == 152


def test_evidence_beside_an_impossible_token_makes_it_sooner():
    law = np.array([0.5, 0.499, 0.001])  # by support alone 4603
    assert decodes_needed(IMPOSSIBLE, law, "support") == 4603
    assert decodes_needed(IMPOSSIBLE, law, "judge") < 60


def test_what_one_decode_settles_and_what_adds_up_count_together(rng, monkeypatch):
    # Alone each takes about 1280 decodes: ln .01 / ln .9964 = 1277, and the fair coin that is .6. Together a
    # run is missed by both: at 823 decodes .9964 ** 823 = .051, times the .195 that the coin misses (normal
    # law, as above).
    monkeypatch.setattr(detect, "DRAWS", 800)
    pair, law = Pair.from_weights([1, 1, 0], [1, 1, 1]), np.array([0.6 * 0.9964, 0.4 * 0.9964, 0.0036])
    assert decodes_needed(pair, law, "support") == 1277
    assert decodes_needed(pair, law, "chi-square", rng=rng) == pytest.approx(823, rel=0.15)


def test_of_two_requests_the_one_that_shows_an_impossible_token_counts():
    two = Pair.from_weights([[[1, 0]], [[1, 0]]], [[[1, 1]], [[1, 1]]])
    first, second, rare = np.array([[0, 1], [1, 0]]), np.array([[1, 0], [0, 1]]), [[1.0, 0.0], [0.97, 0.03]]
    assert [decodes_needed(two, law, "support") for law in (first, second)] == [1, 2]
    assert decodes_needed(two, np.array(rare), "support") == 2 * 152


def test_the_sampler_itself_is_rejected_as_often_as_predicted(seed):
    # The size's error of 5 % moves the quantile of .99 by .2 of a standard deviation, so that fewer than 171
    # of 200 have a probability of 1e-7. With a third of the decodes the power is below .4 (5 standard
    # errors), where more than 120 of 200 have one of 4e-9.
    fault = FAULTS["replace-from-target"]
    decodes = decodes_needed(
        fault.shown_by(), exact_law(fault.shown_by(), fault.text, draft_length=1, length=1)
    )

    def hits(size: int) -> int:
        one = {"draft_length": 1, "length": 1, "trials": size, "seed": seed}
        runs = (simulate(fault.shown_by(), fault.name, **one, first_trial=run * size) for run in range(200))
        return sum(weigh(run).log_e >= threshold() for run in runs)

    assert hits(decodes) >= 171
    assert hits(decodes // 3) <= 120


# ---- What a test reads.


INDEPENDENT = "1/4 1/4; 1/4 1/4"
LAWS = {
    "tokens that repeat": ("1/2 0; 0 1/2", {"judge", "chi-square"}),
    "second token": ("3/8 1/8; 3/8 1/8", {"judge", "chi-square", "marginals"}),
    "first token": ("3/8 3/8; 1/8 1/8", {"judge", "chi-square", "marginals", "KS"}),
    "nothing": (INDEPENDENT, set()),
}


@pytest.mark.parametrize("name", LAWS)
def test_a_test_is_blind_exactly_where_what_it_reads_is_the_targets(name):
    text, seeing = LAWS[name]
    assert {detector for detector in DETECTORS if not is_blind(COIN, fractions(text), detector)} == seeing


def test_support_sees_only_tokens_of_target_weight_0():
    wrong, impossible = fractions("1/2 1/2 0")[0], fractions("96/100 3/100 1/100")[0]
    assert is_blind(IMPOSSIBLE, wrong, "support")
    assert not is_blind(IMPOSSIBLE, impossible, "support")
    assert not is_blind(IMPOSSIBLE, wrong, "judge")


def test_a_law_that_is_wrong_for_one_request_only_is_seen():
    law = np.array([fractions(INDEPENDENT), fractions("1/2 0; 0 1/2")])
    assert not is_blind(TWO_COINS, law)
    assert is_blind(TWO_COINS, law, "marginals")
    # The mean over the requests is right here, and each of them wrong.
    mirrored = np.array([fractions("3/8 3/8; 1/8 1/8"), fractions("1/8 1/8; 3/8 3/8")])
    assert not is_blind(TWO_COINS, mirrored, "KS")


def test_detectors_are_the_tests_that_they_are_named_after(rng):
    pair, law = TWO_COINS, np.array([[[0.3, 0.2], [0.3, 0.2]], [[0.25, 0.25], [0.1, 0.4]]])
    tally = tally_of_law(pair, law, 2000, rng)
    nats = {name: detector.nats(tally, PLAN) for name, detector in DETECTORS.items()}
    assert nats["judge"] == judge(tally).log_evidence
    statistic = ((tally.joint - 250.0) ** 2 / 250.0).sum()
    assert nats["chi-square"] == pytest.approx(-stats.chi2.logsf(statistic, 6), rel=1e-9)
    first = tally.joint.reshape(2, 2, 2).sum(axis=2)[:, 0]
    smallest = min(stats.binomtest(int(heads), 1000, 0.5).pvalue for heads in first)
    assert nats["KS"] == pytest.approx(-log(min(1.0, 2.0 * smallest)), rel=1e-6, abs=1e-9)
    assert nats["support"] == 0.0


def test_marginals_are_one_e_value_a_position_and_at_one_position_the_judge(rng):
    tally = tally_of_law(TWO_COINS, np.full((2, 2, 2), 0.25), 500, rng)
    decodes = tally.joint.reshape(2, 2, 2)
    alone = [detect._tally(TWO_COINS, decodes.sum(axis=axis), 500) for axis in (2, 1)]
    values = [weigh(one).log_e for one in alone]
    assert DETECTORS["marginals"].nats(tally, PLAN) == pytest.approx(np.logaddexp(*values) - log(2.0))
    assert [DETECTORS["marginals"].nats(one, PLAN) for one in alone] == values


@pytest.mark.parametrize("detector", ["judge", "marginals"])
def test_e_values_are_tuned_for_the_plans_false_alarm(detector, rng):
    tally, plan = tally_of_law(COIN, np.array([0.6, 0.4]), 500, rng), Plan(false_alarm=1e-3)
    assert DETECTORS[detector].nats(tally, plan) == judge(tally, plan=plan).log_evidence
    assert DETECTORS[detector].nats(tally, plan) != DETECTORS[detector].nats(tally, PLAN)


@pytest.mark.parametrize("detector", DETECTORS)
def test_one_impossible_token_settles_it(detector):
    counts = np.array([[1000, 30, 0]])
    nats = DETECTORS[detector].nats
    assert nats(detect._tally(IMPOSSIBLE, counts, 1030), PLAN) < threshold()
    assert nats(detect._tally(IMPOSSIBLE, np.array([[1000, 30, 1]]), 1031), PLAN) == inf


# ---- Tallies of laws.


PAIRS = {name: corner_case(name) for name in ("requests", "by-position")}
PAIRS["states by token"] = FAULTS["context-keeps-refused-draft"].shown_by()


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("length", [1, 2, 3])
def test_counted_decodes_give_the_counts_by_state_that_the_sampler_gives(name, length, seed):
    pair = PAIRS[name]
    drawn = simulate(pair, draft_length=2, length=length, trials=1001, seed=seed)
    shape = (len(pair.initial), *(pair.vocabulary,) * length)
    # Requests start in states of their own, so that one token's counts by request are those of the states.
    decodes = drawn.joint if length > 1 else drawn.counts[pair.initial]
    made = detect._tally(pair, decodes.reshape(shape), 1001)
    assert (made.counts == drawn.counts).all()
    assert weigh(made).log_e == weigh(drawn).log_e


def test_decodes_are_shared_out_among_requests_as_the_sampler_does(rng):
    pair = corner_case("requests")
    law = exact_law(pair, "token", draft_length=1, length=2)
    drawn = simulate(pair, length=2, trials=1001)
    assert (tally_of_law(pair, law, 1001, rng).joint.sum(axis=1) == drawn.joint.sum(axis=1)).all()


def test_tallies_follow_the_law_that_is_given(rng):
    # 10 ** 6 decodes: each of four cells within five standard errors (2500), false alarm 2e-6 in all.
    law = np.array([[0.1, 0.2], [0.3, 0.4]])
    joint = tally_of_law(COIN, law, 10**6, rng).joint[0]
    assert (np.abs(joint - 1e6 * law.ravel()) < 2500).all()
    assert not (np.abs(joint - 1e6 * law.T.ravel()) < 2500).all()


# ---- Refusals.


def test_a_blind_test_is_refused_and_so_is_one_that_needs_too_many():
    with pytest.raises(InputError, match="what marginals reads of this law is the target's own"):
        decodes_needed(COIN, fractions("1/2 0; 0 1/2"), "marginals")
    with pytest.raises(InputError, match=r"judge does not tell the law .* within 10,000,000,000 decodes"):
        decodes_needed(COIN, np.array([0.5 + 1e-8, 0.5 - 1e-8]))
    with pytest.raises(InputError, match=r"support does not tell the law .* within 10,000,000,000 decodes"):
        decodes_needed(IMPOSSIBLE, np.array([0.97, 0.03, 1e-12]), "support")


@pytest.mark.parametrize("power", [0.0, 1.0, 99])
def test_a_power_that_is_no_probability_is_refused(power):
    with pytest.raises(InputError, match="power"):
        decodes_needed(COIN, np.array([0.6, 0.4]), power=power)


def test_an_unknown_detector_is_refused():
    with pytest.raises(UnknownNameError, match=r"unknown detector 'chi'; known: .*chi-square"):
        decodes_needed(COIN, np.array([0.6, 0.4]), "chi")


@pytest.mark.parametrize(
    ("pair", "law", "text"),
    [
        (corner_case("automaton"), np.full(4, 0.25), "without an end state"),
        (COIN, np.array([0.2, 0.3, 0.5]), r"the law has shape \(3,\); needed: an axis of 2 for each token"),
        (COIN, np.array(1.0), r"the law has shape \(\)"),
        (TWO_COINS, np.array([0.5, 0.5]), r"the law has shape \(2,\)"),
        (COIN, np.full((2,) * 13, 2.0**-13), "the law has 8,192 cells; at most 4,096 are counted jointly"),
    ],
)
def test_a_law_that_does_not_fit_is_refused(pair, law, text, rng):
    with pytest.raises(InputError, match=text):
        tally_of_law(pair, law, 100, rng)
    with pytest.raises(InputError, match=text):
        is_blind(pair, law)
