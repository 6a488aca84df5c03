"""The gate: what it is judged on, how the error rates are shared, and which answer wins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from simkit.errors import InputError, UnknownNameError
from simkit.laws.named import make_pair
from simkit.laws.pair import Pair
from simkit.laws.synthetic import CORNER_CASES
from simkit.sampling.simulate import simulate
from simkit.sampling.tally import Tally
from simkit.verify.battery import Case, gate_cases, overall, run_gate
from simkit.verify.judge import Plan, Status, Verdict, judge

CASES = [
    Case("four", "uniform", {"vocabulary": 4}, draft_length=2, length=4, trials=20_000),
    Case("fixed", "partial-overlap", draft_length=1, length=2, trials=20_000),
]
PLAN = Plan(tolerance=0.1)


def test_right_rule_is_green_and_broken_rule_red(seed: int) -> None:
    for rule, status in [("token", Status.PASS), ("replace-from-target", Status.FAIL)]:
        judged = list(run_gate(rule, seed=seed, plan=PLAN, cases=CASES))
        assert [case for case, _ in judged] == CASES
        assert {verdict.status for _, verdict in judged} == {status}


def test_error_rates_are_those_of_the_whole_gate(seed: int) -> None:
    # Unshared, twenty cases would reject a right sampler twenty times as often as promised.
    cases = [replace(CASES[0], name=str(i), trials=10) for i in range(5)]
    plan = Plan(false_alarm=1e-5, miss=1e-2, tolerance=0.1)
    for _, verdict in run_gate(seed=seed, plan=plan, cases=cases):
        assert (verdict.plan.false_alarm, verdict.plan.miss) == pytest.approx((2e-6, 2e-3))
        assert verdict.plan.tolerance == 0.1


def test_a_gate_without_cases_is_refused(seed: int) -> None:
    with pytest.raises(InputError, match="no evidence is never a pass"):
        list(run_gate(seed=seed, cases=[]))


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


def test_the_worst_answer_wins(made_up: Callable[..., Tally]) -> None:
    coin = Pair.from_weights([1, 1], [1, 1])

    def verdict(counts: list[int]) -> Verdict:
        return judge(made_up(coin, [counts], trials=sum(counts)), PLAN)

    good, short, bad = verdict([50_000, 50_000]), verdict([5, 5]), verdict([90_000, 10_000])
    assert [v.status for v in (good, short, bad)] == [Status.PASS, Status.INCONCLUSIVE, Status.FAIL]
    assert overall([good, good]) is Status.PASS
    assert overall([good, short]) is overall([short]) is Status.INCONCLUSIVE
    assert overall([good, short, bad]) is overall([bad, short]) is overall([bad, good]) is Status.FAIL
    assert overall([]) is Status.INCONCLUSIVE


def test_cases_hold_every_corner_and_the_model() -> None:
    pairs = [case.pair for case in gate_cases()]
    assert set(CORNER_CASES) < set(pairs)
    assert {"zipf", "dirichlet", "uniform", "tempered-copy", "ngram"} < set(pairs)
    # Decodes cross the border of a block in all cases, where words of the generator could be read twice.
    assert all(case.length > case.draft_length + 1 for case in gate_cases())


@pytest.mark.parametrize("case", gate_cases(), ids=lambda case: case.name)
def test_each_case_is_long_enough_for_a_pass(case: Case, seed: int) -> None:
    """With fewer trials `simkit gate` would say "not enough evidence" (exit code 3) for ever."""
    pair = make_pair(case.pair, **case.options)
    tally = simulate(pair, draft_length=case.draft_length, length=case.length, trials=2, seed=seed)
    cases, plan = len(gate_cases()), Plan()
    share = replace(plan, false_alarm=plan.false_alarm / cases, miss=plan.miss / cases)
    needed = judge(tally, share).needed
    # A hundredth more, so that chance in the length of decodes that end early does not decide.
    assert case.trials * pair.expected_visits(case.length).sum() > 1.01 * needed
