"""The built-in rules against the target law, with any seed: right ones pass, and the broken one fails."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from simkit.laws.named import make_pair
from simkit.laws.pair import Pair
from simkit.laws.synthetic import corner_case
from simkit.rules.registry import find_chain
from simkit.sampling.simulate import simulate
from simkit.stats import detectable_tv
from simkit.verify.judge import Plan, judge
from tests.sampling.cases import SLIP

SAMPLES = 100_000
THREE = Pair.from_rows(target=[0.5, 0.3, 0.2], draft=[0.2, 0.3, 0.5], name="three")
PAIRS = {
    "three": THREE,
    "partial-overlap": corner_case("partial-overlap"),
    "many-token-residual": corner_case("many-token-residual"),
    "zipf": make_pair("zipf", vocabulary=100),
    "tempered-copy": make_pair("tempered-copy", vocabulary=50, temperature=2.5),
}


def bounds(law: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the counts between which each token stays, but with probability 1e-9 on either side."""
    return binom.ppf(SLIP, SAMPLES, law), binom.isf(SLIP, SAMPLES, law)


def inside(pair: Pair, rule: str, seed: int) -> bool:
    counts = simulate(pair, rule, draft_length=1, length=1, trials=SAMPLES, seed=seed).counts[0]
    low, high = bounds(pair.target_probabilities[0])
    return bool(((low <= counts) & (counts <= high)).all())


@pytest.mark.parametrize("name", PAIRS)
def test_each_token_is_as_frequent_as_its_target_says(name, seed):
    """Counts of a single position are binomial: exact bounds, false alarm 2e-9 a token.

    Power: the broken rule leaves the bounds of one token with probability above 0.99.
    """
    pair = PAIRS[name]
    low, high = bounds(pair.target_probabilities[0])
    rows = pair.target_row().weights[None], pair.draft_row().weights[None]
    broken = np.array([float(f) for f in find_chain("replace-from-target").rule(*rows).law()])
    caught = binom.cdf(low - 1, SAMPLES, broken) + binom.sf(high, SAMPLES, broken)
    assert caught.max() > 0.99
    assert inside(pair, "token", seed)
    assert not inside(pair, "replace-from-target", seed)


@pytest.mark.parametrize(("K", "L"), [(1, 1), (2, 4), (4, 10)])
@pytest.mark.parametrize("name", PAIRS)
def test_the_broken_rule_is_rejected_with_1e5_samples(name, K, L, seed):
    # By the log e-value, at a false-alarm rate of 1e-6: the rate at which the right rule passes below.
    found = simulate(
        PAIRS[name], "replace-from-target", draft_length=K, length=L, trials=SAMPLES // L, seed=seed
    )
    verdict = judge(found, plan=Plan(false_alarm=1e-6))
    assert found.tokens == SAMPLES
    assert verdict.evidence.rejects(1e-6)
    assert verdict.outcome == "FAIL"


def test_the_right_rule_passes_with_100_seeds(monkeypatch, rng):
    """A budget of 1e-6 for all 100 verdicts together; every one is a PASS, so none is for want of samples."""
    # statsmodels collects all garbage at each correction, 20 seconds here; Holm's p-values decide nothing.
    monkeypatch.setattr("simkit.verify.judge.holm", lambda p_values: p_values)
    plan = Plan(false_alarm=1e-8, tolerance=0.02)
    for pair in (THREE, PAIRS["partial-overlap"]):  # certified but for one run in 10^8
        assert detectable_tv(pair.target_row(), SAMPLES, 1e-8, plan.miss) < plan.tolerance
    for first in rng.integers(0, 2**62, 25).tolist():
        for number, (K, L) in enumerate(((1, 1), (2, 4), (4, 10), (64, 5))):
            pair = THREE if number % 2 else PAIRS["partial-overlap"]
            found = simulate(pair, draft_length=K, length=L, trials=SAMPLES // L, seed=first + number)
            verdict = judge(found, plan=plan)
            assert verdict.samples == SAMPLES
            assert verdict.outcome == "PASS", (first + number, verdict)


def test_tokens_without_weight_fail_without_statistics(monkeypatch, seed):
    # A rule that keeps every draft: one impossible token is enough, however few samples there are.
    from simkit.rules import registry
    from simkit.rules.chain import Chain
    from simkit.rules.step import Step, token_rule

    def keep_all(target, draft):
        step = token_rule(target, draft)
        return Step(step.propose, (step.accept[1], step.accept[1]), step.correct, step.bonus)

    entry = registry.Entry(Chain(keep_all), False, "keeps every draft", "made up")
    monkeypatch.setitem(registry.RULES, "keep-all", entry)
    verdict = judge(
        simulate(corner_case("disjoint"), "keep-all", draft_length=1, length=1, trials=1, seed=seed)
    )
    assert verdict.impossible == 1
    assert verdict.outcome == "FAIL"
