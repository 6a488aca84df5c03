"""judge: the three answers, what each rests on, and that a PASS means what it says."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import binom
from statsmodels.stats.multitest import multipletests

from simkit.errors import InputError
from simkit.laws.named import make_pair
from simkit.laws.pair import Pair
from simkit.sampling.simulate import simulate
from simkit.sampling.tally import Tally
from simkit.stats import chi_square, evidence, samples_needed
from simkit.verify.judge import Plan, Status, judge, weigh

MakeTally = Callable[..., Tally]

TEXTBOOK = Pair.from_rows(target=[0.5, 0.3, 0.2], draft=[0.2, 0.3, 0.5])
COIN = Pair.from_weights([1, 1], [1, 1])
# Token 1 ends the decode. Of two tokens: 00 and 01 in a quarter of the decodes each, the rest end early.
ENDING = Pair(
    rows=[[1, 1], [1, 0]], target=[0, 1], draft=[[0], [1]], next_state=[[0, 1], [1, 1]], initial=[0], end=1
)


def test_right_rule_passes_and_broken_rule_fails_at_the_same_length(seed: int) -> None:
    # Without a bonus token (length 1) each token of the broken rule has the law [.35, .39, .26]: TV 0.15.
    trials = 60_000
    assert trials >= samples_needed(0.15, 3, 1e-6, 1e-9)
    plan = Plan(tolerance=0.03)
    right = judge(simulate(TEXTBOOK, draft_length=1, length=1, trials=trials, seed=seed), plan)
    broken = judge(
        simulate(TEXTBOOK, "replace-from-target", draft_length=1, length=1, trials=trials, seed=seed), plan
    )
    assert (right.status, right.passed) == (Status.PASS, True)
    assert (broken.status, broken.passed) == (Status.FAIL, False)
    assert "log e-value" in broken.reason


def test_short_run_is_no_pass_and_says_how_long_it_must_be(seed: int) -> None:
    verdict = judge(simulate(TEXTBOOK, length=5, trials=100, seed=seed))
    assert verdict.status is Status.INCONCLUSIVE
    assert not verdict.passed
    assert verdict.samples == 500 < verdict.needed
    assert str(verdict.needed) in verdict.reason


def test_pass_begins_exactly_at_the_needed_tokens(made_up: MakeTally) -> None:
    # Turns red when samples and needed are compared the wrong way round or off by one.
    plan = Plan(tolerance=0.1)
    needed = samples_needed(0.1, 2, plan.false_alarm, plan.miss)
    for tokens, status in [(needed + 1, Status.PASS), (needed, Status.INCONCLUSIVE)]:
        # the first draw of a state says nothing: any law may give it
        verdict = judge(made_up(COIN, [[tokens // 2, tokens - tokens // 2]], trials=tokens), plan)
        assert (verdict.needed, verdict.status) == (needed, status)


def test_no_token_at_all_is_no_pass(made_up: MakeTally) -> None:
    for trials in (10, 10**9):
        assert judge(made_up(COIN, [[0, 0]], trials=trials)).status is Status.INCONCLUSIVE


def test_states_met_once_are_no_evidence(seed: int) -> None:
    # 5,000 states, one draw each: the e-value is 1 whatever is drawn, so no number of tokens may pass.
    many = Pair.from_weights(np.tile([1, 1], (5000, 1)), np.tile([1, 0], (5000, 1)))
    tally = simulate(many, "replace-from-target", draft_length=1, length=5000, trials=1, seed=seed)
    verdict = judge(tally, Plan(tolerance=0.25))
    assert (verdict.status, verdict.informative) == (Status.INCONCLUSIVE, 0)


def test_states_of_one_possible_token_are_no_evidence(seed: int) -> None:
    # One random draw a decode among a thousand: the others cannot carry a fault of total variation 0.01.
    pair = Pair(np.array([[1, 1], [1, 0]]), [0, 1], [[0], [1]], [[1], [1]], [0])
    verdict = judge(simulate(pair, draft_length=1, length=1000, trials=300, seed=seed))
    assert (verdict.status, verdict.informative) == (Status.INCONCLUSIVE, 299)


def test_one_impossible_token_fails_without_statistics(made_up: MakeTally) -> None:
    pair = Pair.from_weights([1, 1, 0], [1, 1, 1])
    for counts in ([1, 1, 1], [500_000, 499_999, 1]):
        verdict = judge(made_up(pair, [counts], trials=sum(counts)))
        assert verdict.status is Status.FAIL
        assert verdict.impossible == 1
        assert verdict.reason == f"1 of {sum(counts)} tokens have target weight 0"
    assert judge(made_up(pair, [[1, 1, 0]], trials=2)).status is Status.INCONCLUSIVE


def test_impossible_is_judged_by_state(made_up: MakeTally) -> None:
    # Token 1 is possible at state 0 and impossible at state 1; summed over the states it would hide.
    pair = Pair.from_weights([[1, 1], [1, 0]], [[1, 1], [1, 1]])
    assert judge(made_up(pair, [[5, 5], [10, 0]], trials=10, length=2)).impossible == 0
    assert judge(made_up(pair, [[5, 5], [9, 1]], trials=10, length=2)).status is Status.FAIL


def test_dependence_between_tokens_is_seen_by_the_joint_law_only(made_up: MakeTally) -> None:
    # The fault: the second token repeats the first. Each token alone has exactly the target's law.
    trials = 400_000
    counts = [[trials, trials]]
    twins = made_up(COIN, counts, [[trials // 2, 0, 0, trials // 2]], trials=trials, length=2, m=2)
    free = made_up(COIN, counts, np.full((1, 4), trials // 4), trials=trials, length=2, m=2)
    blind = made_up(COIN, counts, trials=trials, length=2)
    assert judge(twins).status is Status.FAIL
    assert judge(twins).evidence.strongest.startswith("first 2 tokens")
    assert [test.p_value for test in judge(twins).tests] == pytest.approx([1.0, 1.0, 1.0])
    assert judge(free).status is Status.PASS
    assert judge(blind).status is Status.PASS


def test_requests_have_joint_laws_of_their_own(made_up: MakeTally) -> None:
    # The fault: the decodes of the two requests are filed under each other's number.
    pair = Pair.from_weights([[[3, 1]], [[1, 3]]], [[[1, 1]], [[1, 1]]])
    half = 200_000
    counts = [[3 * half // 2, half // 2], [half // 2, 3 * half // 2]]
    joint = np.array([[9, 3, 3, 1], [1, 3, 3, 9]]) * (half // 16)
    assert judge(made_up(pair, counts, joint, trials=2 * half, length=2, m=2)).status is Status.PASS
    swapped = made_up(pair, counts, joint[::-1], trials=2 * half, length=2, m=2)
    assert judge(swapped).status is Status.FAIL
    assert judge(swapped).evidence.strongest.startswith("first 2 tokens")


def test_decodes_that_end_early_have_a_cell_of_their_own(made_up: MakeTally) -> None:
    # The fault: a quarter of the decodes end early instead of half. Tokens by state are exact, and so is the
    # joint law of the decodes that go on; only the cell for the ended ones shows it.
    trials = 400_000
    counts = [[3 * trials // 4, 3 * trials // 4], [0, 0]]
    right = made_up(ENDING, counts, [[trials // 4, trials // 4, 0, 0]], trials=trials, length=2, m=2)
    wrong = made_up(ENDING, counts, [[3 * trials // 8, 3 * trials // 8, 0, 0]], trials=trials, length=2, m=2)
    assert judge(right).status is Status.PASS
    assert judge(wrong).status is Status.FAIL
    assert judge(wrong).evidence.strongest.startswith("first 2 tokens")


def test_drawn_decodes_with_ends_pass(seed: int) -> None:
    tally = simulate(ENDING, draft_length=2, length=3, trials=300_000, seed=seed)
    assert tally.joint_length == 3
    assert tally.joint.sum() < tally.trials
    assert judge(tally, Plan(tolerance=0.02)).status is Status.PASS


@pytest.mark.parametrize("first", range(4))
@pytest.mark.parametrize("trials", [1, 2, 3, 7])
def test_trials_of_a_request_are_counted_from_the_first(first: int, trials: int, seed: int) -> None:
    # Requests 0 and 2 never end early: a decode booked to the wrong request would be an impossible one.
    pair = Pair(
        rows=[[1, 1], [1, 0]],
        target=[1, 0, 1],
        draft=[[1], [0], [1]],
        next_state=[[0, 0], [1, 2], [2, 2]],
        initial=[0, 1, 0],
        end=2,
    )
    tally = simulate(pair, length=4, trials=trials, first_trial=first, seed=seed)
    assert judge(tally).status is Status.INCONCLUSIVE


@pytest.mark.parametrize(
    "pair", [Pair.from_weights([1], [1]), Pair.from_weights([0, 1, 0], [1, 1, 1]), make_pair("one-token")]
)
def test_targets_without_chance(pair: Pair, seed: int) -> None:
    # ln(1000)/0.01 = 690.8 tokens meet a fault of 1 % with probability 0.999.
    assert judge(simulate(pair, length=1, trials=691, seed=seed)).status is Status.PASS
    assert judge(simulate(pair, length=1, trials=690, seed=seed)).status is Status.INCONCLUSIVE


def test_e_value_decides_against_a_small_chi_square_p(made_up: MakeTally) -> None:
    # p = 6e-7 is below the false-alarm rate, but the e-value is not above its inverse.
    n = 1_000_000
    verdict = judge(made_up(COIN, [[n // 2 + 2500, n // 2 - 2500]], trials=n))
    assert verdict.tests[0].p_value < 1e-6
    assert verdict.status is Status.PASS


def test_e_value_decides_against_a_large_chi_square_p(made_up: MakeTally) -> None:
    # A token of 2^-40, drawn five times in 10^5: chi-square pools it away, the e-value does not.
    pair = Pair.from_weights([2**39, 2**39 - 1, 1], [1, 1, 1])
    n = 100_000
    verdict = judge(made_up(pair, [[n // 2, n // 2 - 5, 5]], trials=n))
    assert min(test.p_value for test in verdict.tests) > 0.5
    assert verdict.status is Status.FAIL


def test_holm_column_is_that_of_statsmodels(made_up: MakeTally) -> None:
    n = 10_000
    uneven = np.array([[n // 2 + 120, n // 2 - 120], [n // 4 + 60, n - n // 4 - 60]])
    pair = Pair.from_weights([[2, 2], [1, 3]], [[1, 1], [1, 1]])
    verdict = judge(made_up(pair, uneven, trials=n, length=2))
    p_values = [test.p_value for test in verdict.tests]
    assert len(p_values) == 5
    assert max(p_values) < 0.5  # so that the correction has something to do
    assert verdict.adjusted == pytest.approx(multipletests(p_values, method="holm")[1])
    assert verdict.adjusted != pytest.approx(p_values)


def test_most_visited_states_get_the_ks_tests(seed: int) -> None:
    pair = Pair.from_weights([[1, 1], [1, 2], [1, 3]], [[1, 1]] * 3)
    tally = simulate(pair, length=6, trials=50, seed=seed)  # visits 1, 1, 4
    names = [test.name for test in judge(tally).tests]
    assert [re.findall(r"state \d", name) for name in names] == [
        [],
        ["state 2"],
        ["state 2"],
        ["state 0"],
        ["state 0"],
    ]
    assert len(judge(tally, Plan(ks_states=0)).tests) == 1
    assert len(judge(tally, Plan(ks_states=99)).tests) == 7


def test_same_counts_same_verdict_however_they_came(seed: int) -> None:
    whole = simulate(TEXTBOOK, trials=5_000, seed=seed)
    parts = [
        simulate(TEXTBOOK, trials=2_500, first_trial=first, seed=seed, backend=backend)
        for first, backend in [(2_500, "numpy"), (0, "numba")]
    ]
    digest = whole.digest
    assert judge(whole) == judge(whole) == judge(sum(parts))  # type: ignore[arg-type]
    assert whole.digest == digest
    assert judge(whole) != judge(parts[0])


def test_weigh_is_the_state_evidence_where_no_joint_is_counted(made_up: MakeTally) -> None:
    tally = made_up(COIN, [[40, 60]], trials=100)
    assert weigh(tally, np.array([100.0]), 1e-6) == evidence([[40, 60]], [[0.5, 0.5]], [100.0], 1e-6)
    assert judge(tally).tests[0].statistic == chi_square([40, 60], [0.5, 0.5]).statistic == pytest.approx(4.0)


def test_text_and_html_lead_with_the_verdict(made_up: MakeTally) -> None:
    verdict = judge(made_up(COIN, [[700_000, 300_000]], trials=1_000_000))
    assert repr(verdict).splitlines()[1].startswith("  verdict: FAIL: log e-value")
    assert "after Holm < 1e-4" in repr(verdict)  # no digits that rest on approximations
    assert verdict._repr_html_().startswith("<table><tr><th>verdict</th><td>FAIL")
    assert [name for name, _ in verdict.rows()][:3] == ["verdict", "log e-value", "chi-square"]


@pytest.mark.parametrize("name", ["false_alarm", "miss", "tolerance"])
@pytest.mark.parametrize("value", [0.0, 1.0, -0.1, 2.0, float("nan"), float("inf")])
def test_plan_refuses_rates_that_are_none(name: str, value: float) -> None:
    with pytest.raises(InputError, match=f"{name}={value!r}; it must"):
        Plan(**{name: value})


def test_plan_refuses_what_the_design_cannot_reach() -> None:
    # |q - p| = 2 TV p must not pass p; refused before a run is drawn for it, not after.
    with pytest.raises(InputError, match=r"at most 0\.5"):
        Plan(tolerance=0.51)
    with pytest.raises(InputError, match="ks_states=-1"):
        Plan(ks_states=-1)
    assert Plan(tolerance=0.5).tolerance == 0.5


@pytest.mark.parametrize(("states", "m"), [(1, 0), (4, 0), (4, 2)])
def test_a_pass_would_have_seen_the_fault_it_tolerates(
    states: int, m: int, made_up: MakeTally, rng: np.random.Generator
) -> None:
    """At the needed tokens, a law off by the same share at every token fails at the promised rate."""
    cells, runs = 10, 400
    plan = Plan(false_alarm=1e-9, miss=0.05, tolerance=0.05)
    pair = Pair.from_weights(np.ones((states, cells), int), np.ones((states, cells), int))

    def drawn(trials: int, fault: float) -> Tally:
        law = np.full(cells, 1 / cells) * (1 + 2 * fault * np.tile([1, -1], cells // 2))
        counts = rng.multinomial(trials, law, size=states)
        # The joint counts are those of the right law: the worst case, they only dilute the evidence.
        joint = rng.multinomial(trials, np.full(cells**m, cells**-m)) if m else None
        return made_up(pair, counts, joint, trials=trials, length=states, m=m)

    trials = -(-judge(drawn(1, 0.0), plan).needed // states)
    visits = np.full(states, float(trials))

    def failures(fault: float) -> int:
        # What decides in `judge`; the tests beside it, which only inform, would take minutes here.
        tallies = (drawn(trials, fault) for _ in range(runs))
        return sum(weigh(tally, visits, plan.false_alarm).rejects(plan.false_alarm) for tally in tallies)

    # The design is good to a few hundredths: 0.03 of slack; then 1e-9 for the false alarm of the assertion.
    bound = binom.ppf(1e-9, runs, 1 - plan.miss - 0.03)
    assert failures(plan.tolerance) >= bound
    # Teeth: half the fault stays under the bound, and a right law never fails.
    assert failures(plan.tolerance / 2) < bound
    assert failures(0.0) == 0
