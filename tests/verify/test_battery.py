"""The gate: what it is judged on, how the error rates are shared, and which answer wins."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from simkit.errors import UnknownNameError
from simkit.laws.named import make_pair
from simkit.laws.synthetic import CORNER_CASES
from simkit.stats import detectable_tv
from simkit.verify import battery
from simkit.verify.battery import Case, gate_cases, overall, run_gate, shared
from simkit.verify.judge import Plan

CASES = [
    Case("four", "uniform", {"vocabulary": 4}, draft_length=2, length=4, trials=20_000),
    Case("fixed", "partial-overlap", draft_length=1, length=2, trials=20_000),
]
PLAN = Plan(tolerance=0.1)


def test_right_rule_is_green_and_broken_rule_red(seed: int) -> None:
    for rule, outcome in [("token", "PASS"), ("replace-from-target", "FAIL")]:
        judged = list(run_gate(rule, seed=seed, plan=PLAN, cases=CASES))
        assert [case for case, _ in judged] == CASES
        assert {verdict.outcome for _, verdict in judged} == {outcome}


def test_error_rates_are_those_of_the_whole_gate(seed: int) -> None:
    # Unshared, twenty cases would reject a right sampler twenty times as often as promised.
    cases = [replace(CASES[0], name=str(i), trials=10) for i in range(5)]
    plan = Plan(false_alarm=1e-5, miss=1e-2, tolerance=0.1)
    for _, verdict in run_gate(seed=seed, plan=plan, cases=cases):
        assert (verdict.plan.false_alarm, verdict.plan.miss) == pytest.approx((2e-6, 2e-3))
        assert verdict.plan.tolerance == 0.1


def test_a_gate_without_cases_is_no_pass(seed: int) -> None:
    assert overall(verdict.outcome for _, verdict in run_gate(seed=seed, cases=[])) == "INCONCLUSIVE"


def test_unknown_rule_and_backend_are_named(seed: int) -> None:
    with pytest.raises(UnknownNameError, match="token"):
        list(run_gate("tokens", seed=seed, cases=CASES))
    with pytest.raises(UnknownNameError, match="reference"):
        list(run_gate(seed=seed, cases=CASES, backend="gpu"))


def test_progress_counts_cases(seed: int) -> None:
    seen: list[tuple[int, int]] = []
    cases = [replace(case, trials=10) for case in CASES]
    list(run_gate(seed=seed, cases=cases, progress=lambda done, total: seen.append((done, total))))
    assert seen == [(1, 2), (2, 2)]


def test_seed_repeats_a_gate(seed: int) -> None:
    cases = [replace(CASES[0], trials=1000)]
    first, again, other = (list(run_gate(seed=s, cases=cases)) for s in (seed, seed, seed + 1))
    assert first == again != other


def test_the_worst_answer_wins() -> None:
    assert overall(["PASS", "PASS"]) == "PASS"
    assert overall(["PASS", "INCONCLUSIVE"]) == overall(["INCONCLUSIVE"]) == "INCONCLUSIVE"
    assert overall(["PASS", "INCONCLUSIVE", "FAIL"]) == overall(["FAIL", "PASS"]) == "FAIL"
    assert overall([]) == "INCONCLUSIVE"


def test_cases_hold_every_corner_and_the_model() -> None:
    pairs = [case.pair for case in gate_cases()]
    assert set(CORNER_CASES) < set(pairs)
    assert {"zipf", "dirichlet", "uniform", "tempered-copy", "ngram"} < set(pairs)
    # Decodes cross the border of a block in all cases, where words of the generator could be read twice.
    assert all(case.length > case.draft_length + 1 for case in gate_cases())


@pytest.mark.parametrize("case", gate_cases(), ids=lambda case: case.name)
def test_each_case_is_long_enough_for_a_pass(case: Case) -> None:
    """A right rule is certified but for one gate in 10^6; shorter, `simkit gate` could exit with 3."""
    pair = make_pair(case.pair, **case.options)
    share = shared(Plan(), len(gate_cases()))
    visits = pair.expected_visits(case.length) * case.trials
    draws = int(visits.sum())
    law = pair.target_probabilities
    assert detectable_tv(law, draws, share.false_alarm, share.miss, visits=visits) < 0.01


def test_the_gate_sees_randomness_that_is_used_twice(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    # The fault: each decode is drawn with the words of the one before. All counts are right.
    drawn = battery.draw_tokens

    def twins(*args: Any, **options: Any) -> Any:
        return drawn(*args, **options).repeat(2, axis=0)[: options["trials"]]

    monkeypatch.setattr(battery, "draw_tokens", twins)
    for _, verdict in run_gate(seed=seed, plan=PLAN, cases=CASES):
        assert verdict.outcome == "FAIL"
        assert verdict.where.startswith("dependence")
