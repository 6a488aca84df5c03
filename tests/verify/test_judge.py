"""judge: the three answers, what each rests on, and that a PASS means what it says."""

from __future__ import annotations

import json
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
from simkit.verify.judge import Plan, judge

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
    assert trials >= samples_needed([0.5, 0.3, 0.2], 0.03, 1e-9, 1e-3)
    plan = Plan(tolerance=0.03)
    right = judge(simulate(TEXTBOOK, draft_length=1, length=1, trials=trials, seed=seed), plan=plan)
    broken = judge(
        simulate(TEXTBOOK, "replace-from-target", draft_length=1, length=1, trials=trials, seed=seed),
        plan=plan,
    )
    assert (right.outcome, right.passed) == ("PASS", True)
    assert (broken.outcome, broken.passed) == ("FAIL", False)
    assert "log e-value" in broken.reason
    assert broken.certificate.total_variation > 0.15 > 0.03 > right.certificate.total_variation


def test_short_run_is_no_pass_and_says_how_long_it_must_be(seed: int) -> None:
    verdict = judge(simulate(TEXTBOOK, length=5, trials=100, seed=seed))
    assert verdict.outcome == "INCONCLUSIVE"
    assert not verdict.passed
    needed = samples_needed([0.5, 0.3, 0.2], 0.01, 1e-6, 1e-3)
    assert verdict.samples == 500 < needed
    said = re.search(r"it takes about ([\d,]+) draws, and these are 500", verdict.reason)
    assert said
    assert int(said[1].replace(",", "")) == pytest.approx(needed, rel=0.01)


def test_pass_begins_where_the_certificate_meets_the_tolerance(made_up: MakeTally) -> None:
    # Turns red when bound and tolerance are compared the wrong way round.
    verdict = judge(made_up(COIN, [[5050, 4950]], trials=10_000))
    bound = verdict.certificate.total_variation
    for tolerance, outcome in [(bound, "PASS"), (np.nextafter(bound, 0), "INCONCLUSIVE")]:
        plan = Plan(tolerance=float(tolerance))
        assert judge(made_up(COIN, [[5050, 4950]], trials=10_000), plan=plan).outcome == outcome


def test_rejection_beats_certificate(made_up: MakeTally) -> None:
    # Off by 0.001 in 10^8 draws: surely not the target, and surely within the tolerance.
    n = 10**8
    verdict = judge(made_up(COIN, [[n // 2 + n // 1000, n // 2 - n // 1000]], trials=n))
    assert verdict.certificate.total_variation < 0.01
    assert verdict.outcome == "FAIL"


def test_tolerance_per_sequence_is_shared_out_over_its_tokens(made_up: MakeTally) -> None:
    tally = made_up(COIN, [[500_500, 499_500]], trials=100_000, length=10)
    bound = judge(tally).certificate.total_variation
    within = Plan(tolerance_per_sequence=10 * bound * 1.001, length=10)
    beyond = Plan(tolerance_per_sequence=10 * bound * 0.999, length=10)
    assert judge(tally, plan=within).outcome == "PASS"
    assert judge(tally, plan=beyond).outcome == "INCONCLUSIVE"
    assert dict(judge(tally, plan=within).rows())["per sequence"].startswith(
        f"at most {10 * bound:.3g} over 10"
    )


def test_no_token_at_all_is_no_pass(made_up: MakeTally) -> None:
    for trials in (10, 10**9):
        assert judge(made_up(COIN, [[0, 0]], trials=trials)).outcome == "INCONCLUSIVE"


def test_states_met_once_are_no_evidence(seed: int) -> None:
    # 5,000 states, one draw each: the e-value is 1 whatever is drawn, so no number of tokens may pass.
    many = Pair.from_weights(np.tile([1, 1], (5000, 1)), np.tile([1, 0], (5000, 1)))
    tally = simulate(many, "replace-from-target", draft_length=1, length=5000, trials=1, seed=seed)
    assert judge(tally, plan=Plan(tolerance=0.25)).outcome == "INCONCLUSIVE"


def test_tokens_without_chance_do_not_hide_the_random_ones(made_up: MakeTally) -> None:
    # One random draw in a thousand: a fault of half of them is a total variation of 0.0005 a token, within
    # the tolerance; certified for all tokens together, and named as the state that is furthest off.
    pair = Pair(np.array([[1, 1], [1, 0]]), [0, 1], [[0], [1]], [[1], [1]], [0])
    right = made_up(pair, [[145, 155], [299_700, 0]], trials=300, length=1000)
    assert judge(right).outcome == "PASS"
    assert judge(right, plan=Plan(tolerance=1e-4)).outcome == "INCONCLUSIVE"
    wrong = made_up(pair, [[300, 0], [299_700, 0]], trials=300, length=1000)
    assert judge(wrong).outcome == "FAIL"
    assert "state 0" in judge(wrong).where


def test_one_impossible_token_fails_without_statistics(made_up: MakeTally) -> None:
    pair = Pair.from_weights([1, 1, 0], [1, 1, 1])
    for counts in ([1, 1, 1], [500_000, 499_999, 1]):
        verdict = judge(made_up(pair, [counts], trials=sum(counts)))
        assert verdict.outcome == "FAIL"
        assert verdict.impossible == 1
        assert verdict.reason.startswith(f"1 of {sum(counts)} tokens have target weight 0 (token 2: 1 seen")
    assert judge(made_up(pair, [[1, 1, 0]], trials=2)).outcome == "INCONCLUSIVE"


def test_impossible_is_judged_by_state(made_up: MakeTally) -> None:
    # Token 1 is possible at state 0 and impossible at state 1; summed over the states it would hide.
    pair = Pair.from_weights([[1, 1], [1, 0]], [[1, 1], [1, 1]])
    assert judge(made_up(pair, [[5, 5], [10, 0]], trials=10, length=2)).impossible == 0
    assert judge(made_up(pair, [[5, 5], [9, 1]], trials=10, length=2)).outcome == "FAIL"


def test_dependence_between_tokens_is_seen_by_the_joint_law_only(made_up: MakeTally) -> None:
    # The fault: the second token repeats the first. Each token alone has exactly the target's law.
    trials = 400_000
    counts = [[trials, trials]]
    twins = made_up(COIN, counts, [[trials // 2, 0, 0, trials // 2]], trials=trials, length=2, m=2)
    free = made_up(COIN, counts, np.full((1, 4), trials // 4), trials=trials, length=2, m=2)
    blind = made_up(COIN, counts, trials=trials, length=2)
    assert judge(twins).outcome == "FAIL"
    assert judge(twins).evidence.strongest.startswith("first 2 tokens")
    assert [test.p_value for test in judge(twins).tests] == pytest.approx([1.0] * 4)
    assert judge(free).outcome == "PASS"
    assert judge(blind).outcome == "PASS"


def test_requests_have_joint_laws_of_their_own(made_up: MakeTally) -> None:
    # The fault: the decodes of the two requests are filed under each other's number.
    pair = Pair.from_weights([[[3, 1]], [[1, 3]]], [[[1, 1]], [[1, 1]]])
    half = 200_000
    counts = [[3 * half // 2, half // 2], [half // 2, 3 * half // 2]]
    joint = np.array([[9, 3, 3, 1], [1, 3, 3, 9]]) * (half // 16)
    assert judge(made_up(pair, counts, joint, trials=2 * half, length=2, m=2)).outcome == "PASS"
    swapped = made_up(pair, counts, joint[::-1], trials=2 * half, length=2, m=2)
    assert judge(swapped).outcome == "FAIL"
    assert judge(swapped).evidence.strongest.startswith("first 2 tokens")


def test_decodes_that_end_early_have_a_cell_of_their_own(made_up: MakeTally) -> None:
    # The fault: a quarter of the decodes end early instead of half. Tokens by state are exact, and so is the
    # joint law of the decodes that go on; only the cell for the ended ones shows it.
    trials = 400_000
    counts = [[3 * trials // 4, 3 * trials // 4], [0, 0]]
    right = made_up(ENDING, counts, [[trials // 4, trials // 4, 0, 0]], trials=trials, length=2, m=2)
    wrong = made_up(ENDING, counts, [[3 * trials // 8, 3 * trials // 8, 0, 0]], trials=trials, length=2, m=2)
    assert judge(right).outcome == "PASS"
    assert judge(wrong).outcome == "FAIL"
    assert judge(wrong).evidence.strongest.startswith("first 2 tokens")
    table = [3 * trials // 8, 3 * trials // 8, 0, 0, trials // 4], [0.25, 0.25, 0.0, 0.0, 0.5]
    by_hand = evidence(*table, visits=trials, false_alarm=1e-6).components
    seen = judge(wrong).evidence.components
    assert {name: seen[f"first 2 tokens, {name}"] for name in by_hand} == dict(by_hand)


def test_drawn_decodes_with_ends_pass(seed: int) -> None:
    tally = simulate(ENDING, draft_length=2, length=3, trials=300_000, seed=seed)
    assert tally.joint_length == 3
    assert tally.joint.sum() < tally.trials
    assert judge(tally, plan=Plan(tolerance=0.02)).outcome == "PASS"


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
    assert judge(tally).outcome == "INCONCLUSIVE"


@pytest.mark.parametrize("pair", [Pair.from_weights([1, 0], [1, 1]), Pair.from_weights([0, 1, 0], [1, 1, 1])])
def test_targets_without_chance(pair: Pair, seed: int) -> None:
    # Nothing is random: n draws without a fault bound its share by -ln(miss)/n.
    verdict = judge(simulate(pair, length=1, trials=1000, seed=seed))
    bound = verdict.certificate.total_variation
    assert -np.log(1e-3) / 1000 * 0.99 < bound < -np.log(1e-4) / 1000 * 1.01
    assert verdict.outcome == "PASS"
    assert judge(simulate(pair, length=1, trials=500, seed=seed)).outcome == "INCONCLUSIVE"


def test_a_single_token_is_always_right(seed: int) -> None:
    for pair in (Pair.from_weights([1], [1]), make_pair("one-token")):
        verdict = judge(simulate(pair, length=1, trials=1, seed=seed))
        assert (verdict.outcome, verdict.certificate.total_variation) == ("PASS", 0.0)


def test_e_value_decides_against_a_small_chi_square_p(made_up: MakeTally) -> None:
    # p = 6e-7 is below the false-alarm rate, but the e-value is not above its inverse.
    n = 1_000_000
    verdict = judge(made_up(COIN, [[n // 2 + 2500, n // 2 - 2500]], trials=n))
    assert verdict.tests[0].p_value < 1e-6
    assert verdict.outcome == "PASS"


def test_e_value_decides_against_a_large_chi_square_p(made_up: MakeTally) -> None:
    # A token of 2^-40, drawn five times in 10^5: chi-square pools it away, the e-value does not.
    pair = Pair.from_weights([2**39, 2**39 - 1, 1], [1, 1, 1])
    n = 100_000
    verdict = judge(made_up(pair, [[n // 2, n // 2 - 5, 5]], trials=n))
    assert min(test.p_value for test in verdict.tests) > 0.5
    assert verdict.outcome == "FAIL"


def test_holm_column_is_that_of_statsmodels(made_up: MakeTally) -> None:
    n = 10_000
    uneven = np.array([[n // 2 + 120, n // 2 - 120], [n // 4 + 60, n - n // 4 - 60]])
    pair = Pair.from_weights([[2, 2], [1, 3]], [[1, 1], [1, 1]])
    verdict = judge(made_up(pair, uneven, trials=n, length=2))
    p_values = [test.p_value for test in verdict.tests]
    assert len(p_values) == 6
    assert max(p_values) < 0.5  # so that the correction has something to do
    assert verdict.adjusted == pytest.approx(multipletests(p_values, method="holm")[1])
    assert verdict.adjusted != pytest.approx(p_values)


def test_most_visited_states_get_the_ks_tests(seed: int) -> None:
    pair = Pair.from_weights([[1, 1], [1, 2], [1, 3]], [[1, 1]] * 3)
    tally = simulate(pair, length=6, trials=50, seed=seed)  # visits 1, 1, 4
    names = [test.name for test in judge(tally).tests]
    assert [re.findall(r"state \d", name) for name in names] == [
        [],
        [],
        ["state 2"],
        ["state 2"],
        ["state 0"],
        ["state 0"],
    ]
    assert len(judge(tally, plan=Plan(ks_states=0)).tests) == 2
    assert len(judge(tally, plan=Plan(ks_states=99)).tests) == 8


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


def test_evidence_is_that_of_the_counts_where_no_joint_is_counted(made_up: MakeTally) -> None:
    tally = made_up(COIN, [[40, 60]], trials=100)
    assert judge(tally).evidence == evidence([[40, 60]], [[0.5, 0.5]], [100.0], 1e-6)
    assert judge(tally).tests[0].statistic == chi_square([40, 60], [0.5, 0.5]).statistic == pytest.approx(4.0)


def test_counts_are_judged_like_the_tally_that_holds_them(made_up: MakeTally) -> None:
    counts, law = [[40, 60], [30, 30]], [[0.5, 0.5], [0.5, 0.5]]
    pair = Pair.from_weights([[1, 1], [1, 1]], [[1, 1], [1, 1]])
    tally = judge(made_up(pair, counts, trials=80, length=2))
    array = judge(counts, law, visits=[80, 80])
    assert (array.outcome, array.evidence, array.tests) == (tally.outcome, tally.evidence, tally.tests)
    assert array.certificate == tally.certificate
    one = judge([40, 60], pair.target_row())
    assert one == judge(np.array([40, 60]), [0.5, 0.5])


def test_early_looks_spend_the_miss_and_keep_the_concentrations(made_up: MakeTally) -> None:
    plan = Plan(looks=4)
    early, last = (
        judge(made_up(COIN, [[n, n]], trials=2 * n), plan=plan, look=look)
        for n, look in [(500, 1), (4000, 4)]
    )
    assert early.certificate.confidence == last.certificate.confidence == 1 - 1e-3 / 4
    assert early.evidence == evidence([[500, 500]], [[0.5, 0.5]], [8000.0], 1e-6, looks=4)
    with pytest.raises(InputError, match="look=5"):
        judge(made_up(COIN, [[1, 1]], trials=2), plan=plan, look=5)


def test_counts_that_are_too_even_are_no_pass(rng: np.random.Generator) -> None:
    # Stratified draws come closer to the law than independent ones; the certificate rests on independence.
    law = np.full(64, 1 / 64)
    even = judge(np.full(64, 10_000), law)
    assert even.certificate.total_variation < 0.01
    assert even.outcome == "INCONCLUSIVE"
    assert "repeated or stratified" in even.reason
    assert judge(rng.multinomial(640_000, law), law).outcome == "PASS"


@pytest.mark.parametrize(
    ("counts", "target", "says"),
    [
        ([1, -1], [0.5, 0.5], "negative"),
        ([0.5, 0.5], [0.5, 0.5], "frequencies"),
        ([1.5, 2.0], [0.5, 0.5], "fractional"),
        ([1, 2, 3], [0.5, 0.5], r"\(3,\)"),
        ([0, 0], [0.5, 0.5], "all zero"),
        ([0, 5], [1.0, 0.0], "same order"),
        ([5, 5], [0.5, 0.6], "sum"),
        ([5, 5], None, "needs the target"),
        ([[5, 5], [5, 5]], [[0.5, 0.5], [0.5, 0.5]], "visits"),
        (["a", "b"], [0.5, 0.5], "counts"),
        ([5, 5], ["a", "b"], "probabilities"),
    ],
)
def test_bad_counts_and_targets_are_named(counts: object, target: object, says: str) -> None:
    with pytest.raises(InputError, match=says):
        judge(counts, target)  # type: ignore[arg-type]


def test_a_tally_brings_its_law(made_up: MakeTally) -> None:
    with pytest.raises(InputError, match="brings its target"):
        judge(made_up(COIN, [[1, 1]], trials=2), [0.5, 0.5])


def test_record_is_plain_json_and_says_what_was_judged(made_up: MakeTally) -> None:
    pair = Pair.from_weights([1, 1, 0], [1, 1, 1])
    record = judge(made_up(pair, [[50, 49, 1]], trials=100)).record()
    again = json.loads(json.dumps(record, allow_nan=False))
    assert again == record
    assert record["format"] == "simkit verdict 1"
    assert (record["outcome"], record["log_e_value"], record["impossible"]) == ("FAIL", "inf", 1)
    assert record["keys"] == ["seed 0, trials 0 to 99"]
    assert record["target"] == pair.digest
    assert record["plan"]["tolerance"] == 0.01


def test_text_and_html_lead_with_the_verdict(made_up: MakeTally) -> None:
    verdict = judge(made_up(COIN, [[700_000, 300_000]], trials=1_000_000))
    assert repr(verdict).splitlines()[1].startswith("  verdict: FAIL: log e-value")
    assert "after Holm < 1e-4" in repr(verdict)  # no digits that rest on approximations
    assert verdict._repr_html_().startswith("<table><tr><th>verdict</th><td>FAIL")
    assert [name for name, _ in verdict.rows()][:3] == ["verdict", "log e-value", "total variation"]


@pytest.mark.parametrize("name", ["false_alarm", "miss", "tolerance"])
@pytest.mark.parametrize("value", [0.0, 1.0, -0.1, 2.0, float("nan"), float("inf")])
def test_plan_refuses_rates_that_are_none(name: str, value: float) -> None:
    with pytest.raises(InputError, match=f"{name}={value!r}; it must"):
        Plan(**{name: value})


def test_plan_refuses_what_it_cannot_use() -> None:
    with pytest.raises(InputError, match="without length"):
        Plan(tolerance_per_sequence=0.1)
    with pytest.raises(InputError, match=r"tolerance_per_sequence=1\.5"):
        Plan(tolerance_per_sequence=1.5, length=2)
    with pytest.raises(InputError, match="length=0"):
        Plan(length=0)
    with pytest.raises(InputError, match="ks_states=-1"):
        Plan(ks_states=-1)
    with pytest.raises(InputError, match="looks=0"):
        Plan(looks=0)
    with pytest.raises(InputError, match="tolerance='x'"):
        Plan(tolerance="x")  # type: ignore[arg-type]


@pytest.mark.parametrize("states", [1, 4])
def test_a_fault_of_the_detectable_size_is_rejected(
    states: int, made_up: MakeTally, rng: np.random.Generator
) -> None:
    """A law that is off by the same share at every token, the hardest to see, fails at the promised rate."""
    cells, runs, trials = 10, 300, 5000
    plan = Plan(false_alarm=1e-9, miss=0.05, tolerance=0.05, ks_states=0)
    pair = Pair.from_weights(np.ones((states, cells), int), np.ones((states, cells), int))

    def drawn(fault: float) -> Tally:
        law = np.full(cells, 1 / cells) * (1 + 2 * fault * np.tile([1, -1], cells // 2))
        return made_up(pair, rng.multinomial(trials, law, size=states), trials=trials, length=states)

    seen = judge(drawn(0.0), plan=plan).detectable_tv
    assert 0.02 < seen < 0.1

    visits = np.full(states, float(trials))

    def failures(fault: float) -> int:
        # What decides in `judge`; the tests beside it, which only inform, would take minutes here.
        drawn_counts = (drawn(fault).counts for _ in range(runs))
        return sum(
            evidence(counts, pair.target_probabilities, visits, plan.false_alarm).rejects(plan.false_alarm)
            for counts in drawn_counts
        )

    # The design is good to a few hundredths: 0.03 of slack; then 1e-9 for the false alarm of the assertion.
    bound = binom.ppf(1e-9, runs, 1 - plan.miss - 0.03)
    assert failures(seen) >= bound
    # Teeth: half the fault stays under the bound, and a right law never fails.
    assert failures(seen / 2) < bound
    assert failures(0.0) == 0


def test_what_is_no_plan_is_named() -> None:
    for plan in (0.02, {}, [], "", 0):
        with pytest.raises(InputError, match="needed: a simkit"):
            judge([5, 5], [0.5, 0.5], plan)  # type: ignore[arg-type]
    for miss in (1e-15, 1e-17):
        with pytest.raises(InputError, match="miss="):
            Plan(miss=miss)
    with pytest.raises(InputError, match="looks="):
        Plan(looks=1100)
    numpy_plan = Plan(tolerance=np.float32(0.25), length=np.int64(4))  # type: ignore[arg-type]
    assert json.dumps(judge([5, 5], [0.5, 0.5], numpy_plan).record())
    assert judge([5, 5], [0.5, 0.5], Plan(tolerance=1e-300)).reason.endswith(
        "no feasible number of draws will do"
    )


def test_evidence_from_elsewhere_joins_and_takes_no_place() -> None:
    counts, law = [5400, 4600], [0.5, 0.5]
    assert judge(counts, law, others={"mine": {"a": 0.0}}).outcome == "FAIL"
    assert judge([50, 50], law, others={"mine": {"a": 90.0}}).where == "a"
    for others in ({"full": {"x": 0.0}}, {"mine": {"full k*": -99.0}}):
        with pytest.raises(InputError, match="others hold full"):
            judge(counts, law, others=others)
    for wrong in (5, {"m": 5}, {"m": {"a": "x"}}):
        with pytest.raises(InputError, match="others="):
            judge(counts, law, others=wrong)  # type: ignore[arg-type]


def test_a_token_below_the_smallest_number_is_impossible() -> None:
    for least in (1e-310, 5e-324):
        verdict = judge([999_900, 100], [1.0, least])
        assert verdict.outcome == "FAIL"
        assert "weight 0" in verdict.where


def test_the_certificate_counts_what_was_drawn_and_not_what_was_planned() -> None:
    # One draw a state of 40 planned: whatever is drawn, the chi-square is its degrees of freedom.
    verdict = judge(
        np.tile([1, 0], (2000, 1)), np.full((2000, 2), 0.5), Plan(tolerance=0.2), visits=np.full(2000, 40.0)
    )
    assert verdict.outcome != "PASS"
    assert verdict.certificate.total_variation == 1.0


def test_arrays_that_cannot_be_read_are_named() -> None:
    class OnAnotherDevice:
        def __array__(self, *_: object, **__: object) -> np.ndarray:
            raise RuntimeError("copy the tensor to the host first")

    with pytest.raises(InputError, match="counts are no array"):
        judge(OnAnotherDevice(), [0.5, 0.5])  # type: ignore[arg-type]
    with pytest.raises(InputError, match="probabilities are not numbers"):
        judge([5, 5], OnAnotherDevice())  # type: ignore[arg-type]


def test_sequences_of_a_plan_are_the_decodes_of_the_tally(made_up: MakeTally) -> None:
    tally = made_up(COIN, [[50, 50]], trials=50, length=2)
    judge(tally, plan=Plan(length=2))
    with pytest.raises(InputError, match="length=64 and the tally's decodes 2"):
        judge(tally, plan=Plan(tolerance_per_sequence=0.1, length=64))
