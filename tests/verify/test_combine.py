"""combine: e-values of independent runs multiply, error rates stay the plan's, and nothing counts twice."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multinomial

from simkit.errors import InputError, SimkitError, StoreError
from simkit.laws.pair import Pair
from simkit.sampling.simulate import simulate
from simkit.stats import log_e_value, threshold
from simkit.verify.combine import Combined, combine, read_verdict
from simkit.verify.judge import Plan, judge

Record = dict[str, Any]
KEYS = ("night 1", "night 2", "night 3", "night 4")
LIMIT = threshold(1e-6)


def run(key: str, log_e: float | str = 0.0, outcome: str = "PASS", **changes: Any) -> Record:
    """Return the record of a made-up run."""
    return {
        "format": "simkit verdict 1",
        "outcome": outcome,
        "reason": "made up",
        "where": f"token of {key}",
        "log_e_value": log_e,
        "components": {"full": log_e},
        "certificate": {"total_variation": 0.005, "confidence": 0.999},
        "detectable_tv": 0.01,
        "impossible": 0,
        "samples": 1000,
        "plan": {"false_alarm": 1e-6, "miss": 1e-3, "tolerance": 0.01},
        "sampler": "engine 1.2",
        "target": "c0ffee",
        "keys": [key],
        "tests": [],
        **changes,
    }


def through_json(combined: Combined) -> Record:
    """Return the record as another process reads it; NaN and infinities are no JSON."""
    record: Record = json.loads(json.dumps(combined.record(), allow_nan=False))
    return record


# Error rates, exactly.


def draws(n: int, law: list[float], k: float) -> Iterator[tuple[float, float]]:
    """Yield the probability and log e-value of every possible tally of n draws from the law."""
    for counts in product(range(n + 1), repeat=len(law)):
        if sum(counts) == n:
            yield float(multinomial.pmf(counts, n, law)), float(log_e_value(counts, law, k))


def test_the_product_has_expectation_one_under_the_target() -> None:
    # Two runs of different lengths and concentrations: every pair of tallies, with its exact probability.
    law = [0.5, 0.3, 0.2]
    first, second = list(draws(4, law, 2.0)), list(draws(3, law, 0.7))
    expectation = sum(
        p * q * math.exp(combine([run("a", e), run("b", f)]).log_evidence)
        for (p, e), (q, f) in product(first, second)
    )
    assert expectation == pytest.approx(1.0, abs=1e-12)
    # Teeth: the larger e-value, or the same draws twice, would promise more than there is.
    assert sum(p * q * math.exp(max(e, f)) for (p, e), (q, f) in product(first, second)) > 1.1
    assert sum(p * math.exp(2 * e) for p, e in first) > 1.5


def test_false_alarms_of_the_product_keep_the_rate_and_those_of_any_run_would_not() -> None:
    # Ten flips of a fair coin; k near 0 makes the e-value 1/P(all alike), the most that Markov allows.
    flips = list(draws(10, [0.5, 0.5], 1e-3))
    alpha = 1.001 * math.exp(-max(e for _, e in flips))
    plan = {"false_alarm": alpha, "miss": 1e-3}
    together = alone = 0.0
    for (p, e), (q, f) in product(flips, flips):
        outcomes = ["FAIL" if log_e >= threshold(alpha) else "PASS" for log_e in (e, f)]
        both = combine(
            [
                run(key, log_e, outcome, plan=plan)
                for key, log_e, outcome in zip(KEYS, (e, f), outcomes, strict=False)
            ]
        )
        together += p * q * (both.outcome == "FAIL")
        alone += p * q * ("FAIL" in outcomes)
        assert not (both.passed and "FAIL" in outcomes)
    assert 0 < together <= alpha
    assert alone > 1.9 * alpha


def test_short_runs_of_a_wrong_sampler_add_up_to_a_fail() -> None:
    # 1,070 heads of 2,000 flips: 3.1 standard deviations a night, 8.9 in eight nights.
    night = judge([1070, 930], [0.5, 0.5])
    assert night.outcome == "INCONCLUSIVE"
    assert 0 < night.log_evidence < LIMIT / 2
    records = [{**night.record(), "keys": [f"night {i}"]} for i in range(8)]
    outcomes = [combine(records[:many]).outcome for many in range(1, 9)]
    rejected = [many * night.log_evidence >= LIMIT for many in range(1, 9)]
    assert outcomes == ["FAIL" if reject else "INCONCLUSIVE" for reject in rejected]
    assert outcomes[-1] == "FAIL"
    right = judge([1000, 1000], [0.5, 0.5]).record()
    together = combine([{**right, "keys": [f"night {i}"]} for i in range(8)])
    assert together.outcome == "INCONCLUSIVE"
    assert together.log_evidence < 0


# The three answers.


@pytest.mark.parametrize(
    ("records", "outcome", "words"),
    [
        ([run("a"), run("b", -3.0)], "PASS", ["every verdict passed", "2 runs"]),
        ([run("a")], "PASS", ["1 run)"]),
        ([run("a"), run("b", outcome="INCONCLUSIVE")], "INCONCLUSIVE", ["1 of 2", "add their counts"]),
        ([run("a", 7.0), run("b", 6.8)], "PASS", []),
        ([run("a", 7.0), run("b", 6.9)], "FAIL", ["13.9", "2000 tokens", "1e-06"]),
        ([run("a", LIMIT / 2), run("b", LIMIT / 2)], "FAIL", []),
        ([run("a", 20.0, "FAIL"), run("b", -2.0)], "FAIL", ["log e-value 18"]),
        ([run("a", 14.0, "FAIL"), run("b", -2.0)], "INCONCLUSIVE", ["record 1 failed alone", "12 only"]),
        ([run("a", -20.0), run("b", 14.0, "FAIL")], "INCONCLUSIVE", ["record 2 failed alone"]),
        ([run("a", impossible=1, outcome="FAIL"), run("b")], "FAIL", ["1 of 2000 tokens", "weight 0"]),
        ([run("a", "inf", "FAIL"), run("b", "-inf")], "FAIL", ["inf"]),
        ([run("a", "-inf"), run("b", 20.0, "FAIL")], "INCONCLUSIVE", ["-inf only"]),
    ],
)
def test_outcome_and_reason(records: list[Record], outcome: str, words: list[str]) -> None:
    combined = combine(records)
    assert (combined.outcome, combined.passed) == (outcome, outcome == "PASS")
    assert [word for word in words if word not in combined.reason] == []


def test_a_fail_within_a_combined_record_is_never_forgotten() -> None:
    # 14 and -2: the night that failed alone is hidden in a record that says INCONCLUSIVE.
    hidden = through_json(combine([run("a", 14.0, "FAIL"), run("b", -2.0)]))
    again = combine([hidden, run("c", -1.0)], ["total.json", "c.json"])
    assert again.outcome == "INCONCLUSIVE"
    assert "total.json failed alone" in again.reason
    # Two nights that passed alone and failed together: a third may not make them green.
    together = combine([run("a", 7.0), run("b", 7.0)])
    assert together.outcome == "FAIL"
    assert combine([through_json(together), run("c", -9.0)]).outcome == "INCONCLUSIVE"


def test_numbers_of_the_whole() -> None:
    weak = {"total_variation": 0.02, "confidence": 0.999}
    combined = combine(
        [
            run("b", 1.5, samples=10, detectable_tv=0.03),
            run("a", 2.5, certificate=weak, impossible=2, outcome="FAIL"),
            run("c", -1.0, "INCONCLUSIVE"),
        ]
    )
    assert combined.log_evidence == 3.0
    assert combined.keys == ("a", "b", "c")
    assert combined.samples == 2010
    assert combined.impossible == 2
    assert combined.where == "token of a"
    assert dict(combined.certificate) == weak
    assert combined.detectable_tv == 0.03
    assert [(part.outcome, part.log_e) for part in combined.parts] == [
        ("FAIL", 2.5),
        ("PASS", 1.5),
        ("INCONCLUSIVE", -1.0),
    ]


# Order and grouping.

log_es = st.one_of(st.floats(-1e6, 1e6), st.sampled_from(["inf", "-inf"]))
some_runs = st.lists(
    st.tuples(log_es, st.sampled_from(["PASS", "FAIL", "INCONCLUSIVE"]), st.integers(0, 9)),
    min_size=3,
    max_size=4,
).map(
    lambda rows: [
        run(key, log_e, outcome, samples=n, certificate={"total_variation": n / 10})
        for key, (log_e, outcome, n) in zip(KEYS, rows, strict=False)
    ]
)


@given(records=some_runs)
def test_order_does_not_matter_to_the_last_bit(records: list[Record]) -> None:
    names = [record["keys"][0] for record in records]
    found = [
        through_json(combine([records[i] for i in order], [names[i] for i in order]))
        for order in permutations(range(len(records)))
    ]
    assert all(other == found[0] for other in found)


@given(records=some_runs)
def test_grouping_does_not_matter_to_the_last_bit(records: list[Record]) -> None:
    flat = combine(records)
    left = combine([through_json(combine(records[:2])), *records[2:]])
    right = combine([records[0], through_json(combine(records[1:]))])
    for grouped in (left, right):
        assert grouped.log_evidence == flat.log_evidence
        assert (grouped.parts, grouped.certificate) == (flat.parts, flat.certificate)
        assert (grouped.outcome == "FAIL") == (flat.outcome == "FAIL")
        assert not grouped.passed or flat.passed
    again = combine([through_json(flat)])
    assert (again.outcome, again.log_evidence, again.parts) == (flat.outcome, flat.log_evidence, flat.parts)


def test_naive_sums_would_depend_on_the_order() -> None:
    # Teeth of the two tests above.
    assert (0.1 + 0.2) + 0.3 != 0.1 + (0.2 + 0.3)
    assert combine([run("a", 0.1), run("b", 0.2), run("c", 0.3)]).log_evidence == 0.6


def test_the_record_is_a_verdict_record_with_its_runs() -> None:
    verdict = judge([5012, 4988], [0.5, 0.5], Plan(tolerance=0.05), key="a", sampler="mine")
    other = judge([4991, 5009], [0.5, 0.5], Plan(tolerance=0.05), key="b", sampler="mine")
    combined = combine([verdict.record(), other.record()])
    record = through_json(combined)
    assert set(record) == {*verdict.record(), "runs"}
    same = ("format", "plan", "sampler", "target", "detectable_tv")
    assert {name: record[name] for name in same} == {name: verdict.record()[name] for name in same}
    assert record["outcome"] == "PASS"
    assert record["log_e_value"] == pytest.approx(verdict.log_evidence + other.log_evidence)
    assert record["certificate"] in [verdict.record()["certificate"], other.record()["certificate"]]


# Refusals.


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"target": "decaf"}, ["different targets", "c0ffee", "decaf"]),
        ({"sampler": "engine 1.3"}, ["different samplers", "'engine 1.2'", "'engine 1.3'"]),
        ({"plan": {"false_alarm": 1e-6, "miss": 1e-3, "tolerance": 0.02}}, ["(tolerance 0.01 and 0.02)"]),
        ({"plan": {"false_alarm": 1e-9, "miss": 1e-3}}, ["alarm 1e-06 and 1e-09", "tolerance 0.01 and None"]),
        ({"keys": ["night 1"]}, ["share draws", "'night 1'", "--key"]),
        ({"keys": ["other", "night 1"]}, ["share draws", "'night 1'"]),
    ],
)  # fmt: skip
def test_runs_that_do_not_belong_together_are_named(changes: Record, words: list[str]) -> None:
    records, names = (
        [run("night 1"), run("night 3"), run("night 2", **changes)],
        ["a.json", "b.json", "c.json"],
    )
    with pytest.raises(InputError) as refusal:
        combine(records, names)
    assert [word for word in ["a.json and c.json", *words] if word not in str(refusal.value)] == []


def test_draws_are_found_again_within_combined_records() -> None:
    total = through_json(combine([run("a"), run("b")]))
    for twice in (run("b"), through_json(combine([run("c"), run("a")])), total):
        with pytest.raises(InputError, match=r"total\.json and twice\.json share draws"):
            combine([total, twice], ["total.json", "twice.json"])


def test_trials_of_one_seed_are_told_apart() -> None:
    pair = Pair.from_weights([1, 2], [2, 1])

    def drawn(seed: int, first: int) -> Record:
        tally = simulate(pair, draft_length=1, length=2, trials=100, first_trial=first, seed=seed)
        return judge(tally).record()

    one = drawn(seed=1, first=0)
    assert combine([one, drawn(seed=1, first=100), drawn(seed=2, first=0)]).samples == 600
    for first in (0, 50, 99):
        with pytest.raises(InputError, match="share draws"):
            combine([one, drawn(seed=1, first=first)])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"format": "simkit verdict 2"}, ["'simkit verdict 2'", "'simkit verdict 1'", "simkit judge --out"]),
        ({"format": None}, ["None", "not a verdict"]),
        ({"keys": []}, ["no key", "keys=[]"]),
        ({"keys": None}, ["no key"]),
        ({"keys": "abc"}, ["no key"]),
        ({"keys": [""]}, ["no key"]),
        ({"keys": [1]}, ["no key"]),
        ({"outcome": "GREEN"}, ["outcome='GREEN'", "PASS, FAIL, INCONCLUSIVE"]),
        ({"outcome": ["PASS"]}, ["outcome=['PASS']"]),
        ({"log_e_value": "a lot"}, ["log_e_value='a lot'", "a number"]),
        ({"log_e_value": "nan"}, ["log_e_value='nan'"]),
        ({"log_e_value": math.nan}, ["log_e_value=nan"]),
        ({"log_e_value": None}, ["log_e_value=None"]),
        ({"log_e_value": True}, ["log_e_value=True"]),
        ({"log_e_value": 10**400}, ["log_e_value=1000"]),
        ({"samples": -1}, ["samples=-1", "whole number >= 0"]),
        ({"samples": 1.5}, ["samples=1.5"]),
        ({"impossible": "none"}, ["impossible='none'"]),
        ({"certificate": None}, ["certificate=None"]),
        ({"certificate": {}}, ["total_variation=None"]),
        ({"detectable_tv": "small"}, ["detectable_tv='small'"]),
        ({"plan": None}, ["plan=None"]),
        ({"plan": {}}, ["false_alarm=None"]),
        ({"plan": {"false_alarm": 2.0}}, ["false_alarm=2.0", "between 0 and 1"]),
        ({"sampler": 3}, ["sampler=3"]),
        ({"target": None}, ["target=None"]),
        ({"where": None}, ["where=None"]),
        ({"runs": []}, ["runs=[]"]),
        ({"runs": "all"}, ["runs='all'"]),
        ({"runs": [5]}, ["runs holds 5"]),
        ({"runs": [run("night 1", 1.0)]}, ["do not add up", "edited"]),
        ({"runs": [run("night 2")]}, ["do not add up"]),
        ({"runs": [run("night 1", samples=999)]}, ["do not add up"]),
    ],
)
def test_a_bad_record_is_named(changes: Record, words: list[str]) -> None:
    with pytest.raises(InputError) as refusal:
        combine([run("night 0"), run("night 1", **changes)], ["good.json", "bad.json"])
    message = str(refusal.value)
    assert [word for word in ["bad.json", *words] if word not in message] == [], message
    assert "good.json" not in message


def test_no_verdict_and_no_record() -> None:
    with pytest.raises(InputError, match="no evidence is never a pass"):
        combine([])
    for wrong in (5, "verdict", None, [run("a")]):
        with pytest.raises(InputError, match="record 1 is not a verdict"):
            combine([wrong])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", ["not JSON"]),
        (b"[1, 2", ["not JSON", "simkit judge --out"]),
        (b"\xff\xfe{", ["not JSON"]),
        (b"[" * 100_000, ["not JSON"]),
        (b"[1, 2]", ["not a verdict", "simkit judge --out"]),
    ],
)
def test_a_file_that_is_no_record_is_named(content: bytes, words: list[str], tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(SimkitError) as refusal:
        read_verdict(path)
    assert [word for word in [str(path), *words] if word not in str(refusal.value)] == []
    with pytest.raises(StoreError, match="cannot read"):
        read_verdict(tmp_path / "none.json")


# What is read and shown.


def test_rows_for_people() -> None:
    combined = combine([run("b", 1.0, samples=2000), run("a", 2.0, "INCONCLUSIVE")])
    rows = dict(combined.rows())
    assert rows["verdict"].startswith("INCONCLUSIVE: ")
    assert rows["log e-value"].startswith("3 (rejects at 13.82")
    assert rows["total variation"].startswith("at most 0.005")
    assert rows["run 1"] == "INCONCLUSIVE, log e-value 2, 1,000 tokens (a)"
    assert rows["run 2"] == "PASS, log e-value 1, 2,000 tokens (b)"
    assert repr(combined).splitlines()[1] == f"  verdict: {rows['verdict']}"


def test_html_is_escaped() -> None:
    html = combine([run("<b>", 1.0)])._repr_html_()
    assert "token of &lt;b&gt;" in html
    assert "<b>" not in html


def test_a_result_cannot_be_changed() -> None:
    record = run("a")
    combined = combine([record])
    change: Callable[[], None]
    for change in (
        lambda: combined.plan.update(tolerance=1),  # type: ignore[attr-defined]
        lambda: combined.certificate.update(total_variation=0),  # type: ignore[attr-defined]
        lambda: setattr(combined, "outcome", "PASS"),
    ):
        with pytest.raises(AttributeError):
            change()
    record["plan"]["tolerance"] = 1.0
    assert combined.plan["tolerance"] == 0.01


def test_threshold_is_that_of_the_plan() -> None:
    for alpha in (1e-3, 1e-9):
        plan = {"false_alarm": alpha}
        limit = float(np.log(1 / alpha))
        below, above = (combine([run("a", limit + d, plan=plan)]) for d in (-1e-9, 1e-9))
        assert (below.outcome, above.outcome) == ("PASS", "FAIL")
