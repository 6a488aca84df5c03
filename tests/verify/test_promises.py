"""What a verdict promises, on samplers and models that people ask about: sizes predicted, states named."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from simkit.laws.named import make_pair
from simkit.laws.pair import Pair
from simkit.sampling.simulate import simulate
from simkit.stats import certificate, samples_needed
from simkit.verify.judge import Plan, judge

TEN = make_pair("zipf", vocabulary=10, total_variation=0.15)


def test_two_per_cent_of_the_draft_fail(seed: int) -> None:
    """Total variation .003: nearly all published tests pass it.

    The noncentrality at 8 million tokens is 930 over 9 degrees of freedom: ln E about 430.
    """
    p, q = TEN.target_probabilities[0], TEN.draft_row().probabilities
    mixed = Pair.from_rows(target=0.98 * p + 0.02 * q, draft=q)
    assert np.abs(mixed.target_probabilities[0] - p).sum() / 2 == pytest.approx(0.003, abs=1e-9)
    tally = simulate(mixed, draft_length=1, length=1, trials=8_000_000, seed=seed)
    verdict = judge(tally.counts[0], p)
    assert verdict.outcome == "FAIL"
    assert verdict.certificate.total_variation > 0.003
    right = simulate(TEN, draft_length=1, length=1, trials=8_000_000, seed=seed)
    assert judge(right.counts[0], p).outcome == "PASS"


def test_a_right_sampler_is_certified_with_the_predicted_samples(rng: np.random.Generator) -> None:
    """The prediction of 19 certificates in 20 lies between 3/4 and 5/4 of the samples that it takes.

    Each assertion fails by chance at a rate of 1e-6 at most if the share of certificates is on its side.
    """
    p, runs = TEN.target_probabilities[0], 400
    predicted = samples_needed(p, 0.01, false_alarm=0.05, miss=1e-3)

    def certified(samples: float) -> int:
        drawn = rng.multinomial(round(samples), p, size=runs)
        return sum(certificate(counts, p, 0.999).total_variation <= 0.01 for counts in drawn)

    assert certified(0.75 * predicted) < binom.ppf(1e-6, runs, 0.95)
    assert certified(1.25 * predicted) > binom.ppf(1e-6, runs, 0.95)
    share = certified(predicted)
    assert binom.ppf(1e-6, runs, 0.93) <= share <= binom.isf(1e-6, runs, 0.97)


def test_the_predicted_samples_pass(seed: int) -> None:
    trials = samples_needed(TEN.target_row(), 0.01)  # but for one run in a million
    assert trials == 215_170
    tally = simulate(TEN, draft_length=1, length=1, trials=trials, seed=seed)
    assert judge(tally).outcome == "PASS"


@pytest.mark.slow
def test_the_language_model_passes_and_a_fault_in_one_context_is_named(seed: int) -> None:
    """32,437 contexts: certified for all tokens together, rejected for one context that is off by .1."""
    pair = make_pair("ngram")
    tally = simulate(pair, draft_length=4, length=64, trials=1_000_000, seed=seed)
    verdict = judge(tally)
    assert tally.tokens <= 10**8
    assert verdict.outcome == "PASS", verdict
    assert verdict.certificate.worst_state is not None

    visits = pair.expected_visits(64)
    state = int(visits.argmax())
    row = pair.rows[pair.target[state]].copy()
    commonest, second = np.argsort(row)[::-1][:2]
    moved = row[commonest] // 3
    row[commonest] -= moved
    row[second] += moved
    assert moved / row.sum() > 0.05
    target = pair.target.copy()
    target[state] = len(pair.rows)
    faulty = replace(pair, rows=np.vstack([pair.rows, row]), target=target)
    drawn = simulate(faulty, draft_length=4, length=64, trials=50_000, seed=seed)
    # Given its context each token of the others has its law; visits differ, which conditioning takes care of.
    broken = judge(drawn.counts, pair.target_probabilities, Plan(), visits=visits * 50_000)
    assert broken.outcome == "FAIL"
    assert f"at state {state}:" in broken.where
