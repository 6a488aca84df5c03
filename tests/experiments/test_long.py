"""The experiments that take minutes: their rows come again, and each verdict turns when a row is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from simkit.rules.faults import CONTROLS, FAULTS
from simkit.rules.faults.measure import SHORTCUTS, blind
from simkit.stats import certificate, chi_square, evidence
from simkit.sweeps.store import line
from tests.experiments.stored import NAMES, Row, badges, changed, experiment, module, rows_of

LONG = ["calibration", "detection", "field_tests", "power"]


def one(rows: Sequence[Row], **fields: object) -> Row:
    """Return the first row with these fields."""
    return next(row for row in rows if all(row.get(name) == value for name, value in fields.items()))


def statuses(name: str, rows: Sequence[Row]) -> list[str]:
    return [badge.status for badge in badges(name, rows)]


def test_only_those_that_take_minutes_are_long() -> None:
    assert [name for name in NAMES if experiment(name).long] == LONG


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("calibration", {"kind": "Coverage", "tokens_in_law": 10}),
        ("power", {"kind": "Planned", "cells": 10}),
        ("field_tests", {"kind": "Search", "fault": "replacement from p", "test": "vLLM, χ² narrow"}),
        ("field_tests", {"kind": "Comparison", "fault": "lenience 0.95", "test": "vLLM, χ² narrow"}),
        ("detection", {"kind": "Detection", "fault": "row-of-first-request"}),
        ("detection", {"kind": "Detection", "fault": "unknown-token-becomes-zero"}),
        ("detection", {"kind": "Acquittal", "control": "without-replacement"}),
    ],
)
def test_a_stored_row_is_measured_again_byte_for_byte(name: str, fields: dict[str, object]) -> None:
    row = one(rows_of(name), **fields)
    work = next(task for task in experiment(name).tasks() if task.identity == row["identity"])
    assert line(work.perform()) == line(row)


@pytest.mark.parametrize("name", LONG)
def test_a_row_that_is_missing_is_no_pass(name: str) -> None:
    rows = rows_of(name)
    for incomplete in ([], rows[1:], rows[:-1]):
        assert statuses(name, incomplete) == ["fail"]


def test_calibration_has_ten_thousand_runs_and_the_simulator_among_its_shapes() -> None:
    null = [row for row in rows_of("calibration") if row["kind"] == "Null"]
    assert len(null) >= 6
    assert sum(row["runs"] for row in null) >= 10_000
    assert sum("simulator" in row["shape"] for row in null) >= 3
    stream = one(rows_of("calibration"), kind="Streams")
    assert (stream["runs"], stream["contexts"], stream["vocabulary"]) == (1000, 20_000, 1000)


@pytest.mark.parametrize(
    ("kind", "field", "place"),
    [("Null", "rejected", 0), ("Paths", "passed", 1), ("Streams", "passed", 1), ("Coverage", "too_small", 2)],
)
def test_one_rate_above_what_is_stated_turns_its_badge(kind: str, field: str, place: int) -> None:
    rows = rows_of("calibration")
    row = one(rows, kind=kind)
    for share, expected in ((0.001, "pass"), (0.2, "fail")):
        hits = [round(share * row["runs"])] * 3
        wrong = {"chi-square": hits, "largest z": hits, "KS by id": hits, "KS by rank": hits}
        changed_to = wrong if kind == "Null" else hits[: len(row[field])]
        found = statuses("calibration", changed(rows, row, **{field: changed_to}))
        assert found[place] == expected
        assert found[:place] + found[place + 1 :] == ["pass"] * 3


def test_one_right_run_at_the_rejecting_e_value_turns_its_badge() -> None:
    rows = rows_of("calibration")
    row = one(rows, kind="Paths")
    assert statuses("calibration", changed(rows, row, rejected=1)) == ["pass", "pass", "pass", "fail"]


def test_every_comparison_shares_the_false_alarm_of_the_page() -> None:
    calibration, rows = module("calibration"), rows_of("calibration")
    claims = calibration.claims(rows)
    assert len(claims) >= 7 * 4 * 3 + 6 * 2 + 4 * 2
    assert calibration.share_of_alarm(rows) * len(claims) == pytest.approx(1e-6)


def test_shapes_are_laws_and_their_samplers_follow_the_plan() -> None:
    calibration = module("calibration")
    for name in calibration.SHAPES:
        shape = calibration.shape_of(name)
        assert shape.law.sum(axis=1) == pytest.approx(1.0)
        units = min(shape.units, 400)
        counts = shape.source(np.random.default_rng(1))(units)
        assert counts.shape == shape.law.shape
        assert counts.sum() == units * shape.length
        assert not counts[shape.law == 0.0].any()


def test_a_source_goes_on_where_it_stopped() -> None:
    shape = module("calibration").shape_of("automaton, simulator")
    whole, parts = (shape.source(np.random.default_rng(5)) for _ in range(2))
    assert np.array_equal(whole(60), parts(20) + parts(40))


def test_a_law_that_is_off_evenly_is_at_its_distance() -> None:
    calibration = module("calibration")
    for weights in (np.array([1.0]), np.array([5.0, 3.0, 2.0])):
        law = calibration.paired(weights)
        wrong = calibration.evenly_off(law, 0.02)
        assert wrong.sum() == pytest.approx(1.0)
        assert np.abs(wrong - law).sum() / 2.0 == pytest.approx(0.02)
        assert np.abs(wrong / law - 1.0) == pytest.approx(0.04)
    pairs = [calibration._automaton(distance) for distance in (0.0, 0.02)]
    stated, wrong = (pair.target_probabilities for pair in pairs)
    assert np.abs(wrong - stated).sum(axis=1) / 2.0 == pytest.approx(0.02)


def test_certificates_too_small_are_counted_one_by_one_or_by_bisection_alike() -> None:
    calibration, rng = module("calibration"), np.random.default_rng(3)
    law = calibration.paired(np.array([3.0, 2.0, 1.0]))
    drawn = rng.multinomial(2000, calibration.evenly_off(law, 0.05), size=150)
    order = np.argsort(((drawn - 2000 * law) ** 2 / law).sum(axis=1), kind="stable")
    one_by_one = sum(certificate(row, law, 0.6).total_variation < 0.05 for row in drawn)
    assert 0 < one_by_one < 150
    assert calibration.Coverage(6, 2000, 0.05)._too_small(drawn[order], law, 0.6) == one_by_one


def test_contexts_seen_once_are_drawn_from_their_own_rows() -> None:
    # Two contexts of certain tokens and no other: a shift of the table by one would show in every run.
    calibration = module("calibration")
    row = calibration.Streams(runs=3, contexts=40, vocabulary=5, stride=10).perform()
    assert row["tokens"] == 120
    assert row["rejected"] == 0


def test_the_eight_faults_have_the_distances_that_the_page_states() -> None:
    power = module("power")
    law = power._ranked()[0]
    sizes = {name: float(np.abs(wrong() - law).sum() / 2.0) for name, wrong in power.FAULTS.items()}
    known = (0.0075, 0.0042, 0.0041, 0.0017, 0.0029, 0.0025, 0.0040, 0.0019)
    assert list(sizes.values()) == pytest.approx(known, abs=4e-4)
    assert all(wrong().sum() == pytest.approx(1.0) for wrong in power.FAULTS.values())
    assert len({row["samples"] for row in rows_of("power") if row["kind"] == "Detection"}) >= 3


def test_a_planned_fault_is_the_hardest_of_its_distance() -> None:
    for cells in (10, 100):
        law, wrong = module("power").flat_and_off(cells)
        assert np.abs(wrong - law).sum() / 2.0 == pytest.approx(0.01)
        assert ((wrong - law) ** 2 / law).sum() == pytest.approx(0.02**2)


def test_a_planned_fault_that_goes_unseen_turns_the_badge() -> None:
    rows = rows_of("power")
    for test in ("e-value", "chi-square"):
        row = [row for row in rows if row["kind"] == "Planned" and row["cells"] == 100][-1]
        rejected = row["rejected"] | {test: round(0.9 * row["runs"])}
        assert statuses("power", changed(rows, row, rejected=rejected))[0] == "fail"


def test_the_chi_square_line_is_the_measured_power_of_its_formula() -> None:
    power = module("power")
    fault = "all tokens ± 1.5 %"
    samples, line_of = power._chi_square_line(fault)
    for row in rows_of("power"):
        if row.get("fault") == fault:
            planned = float(np.interp(row["samples"], samples, line_of))
            assert abs(row["rejected"]["chi-square"] / row["runs"] - planned) < 0.25  # five standard errors


BASE = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])


@pytest.mark.parametrize(
    ("rule", "law"),
    [
        ({}, [0.5, 0.3, 0.2]),
        ({"from_target": True}, [0.35, 0.39, 0.26]),
        ({"lenience": 0.5}, [0.3, 0.3, 0.4]),
        # Kept are .2, .3 and .4; the refused tenth is replaced from (.4, .15, 0) / .55.
        ({"recorded": 0.5}, [0.2 + 0.04 / 0.55, 0.3 + 0.015 / 0.55, 0.4]),
    ],
)
def test_faults_have_their_known_laws(rule: dict[str, Any], law: list[float]) -> None:
    assert module("field_tests")._step(*BASE, **rule).law == pytest.approx(law)


def test_field_tests_decide_by_their_published_rules() -> None:
    field, rng = module("field_tests"), np.random.default_rng(1)
    p = np.full(16, 1 / 16)
    gross = field.Step(np.zeros(16), np.repeat([1.5, 0.5], 8) / 16)
    right = field.Step(np.zeros(16), p)
    for rule in (field._distance_ratio, field._divergence_gap, field._ten_sigma):
        assert rule(rng, p, gross, 100_000)
    # A right sampler: KL gaps are below 1e-3, and 15 cells reach 15 + 10 sqrt(30) with probability 4e-9.
    assert not field._divergence_gap(rng, p, right, 100_000)
    assert not field._ten_sigma(rng, p, right, 100_000)
    # A token of the target that never comes out makes the divergence infinite.
    missing = field.Step(np.zeros(16), np.append(np.full(15, 1 / 15), 0.0))
    assert field._divergence_gap(rng, p, missing, 1000)


def test_two_positions_have_the_law_of_one_and_as_many_tokens_as_drafts_kept_allow() -> None:
    field = module("field_tests")
    step = field._step(*BASE)
    counts = field._two_tokens(np.random.default_rng(2), step, 10**6)
    test = field.TESTS["vLLM, L2 ratio"]
    # Kept drafts are binomial(10^6, .7): five standard errors are 2300 (false alarm 6e-7).
    assert abs(counts.sum() - 10**6 * (1.0 + 0.7)) < 2300
    assert test.planned(*BASE) == pytest.approx(test.trials * 1.7)
    assert not evidence(counts, BASE[0], 1.7e6).rejects(1e-6)
    assert chi_square(counts, BASE[0]).p_value > 1e-6


def test_sizes_and_thresholds_are_those_of_the_public_tests() -> None:
    tests = module("field_tests").TESTS
    assert [(test.vocabulary, test.trials) for test in tests.values()] == [
        (10, 100_000),
        (500, 50_000),
        (4096, 40_960),
        (16, 200_000),
    ]
    for test in tests.values():
        p, q = test.laws(np.random.default_rng(0))
        assert p.shape == q.shape == (test.vocabulary,)
        assert p.sum() == pytest.approx(1.0)
        assert q.sum() == pytest.approx(1.0)


def test_every_fault_is_found_and_a_false_alarm_or_a_wrong_pass_turns_its_badge() -> None:
    field, rows = module("field_tests"), rows_of("field_tests")
    faults = {(row["test"], row["fault"]) for row in field.searches(rows)}
    assert faults == {(test, fault) for test in field.TESTS for fault in field.FAULTS if fault != field.RIGHT}
    assert statuses("field_tests", rows) == ["pass", "pass", "pass", "info"]
    right = field.comparisons(rows, right=True)[1]
    assert statuses("field_tests", changed(rows, right, rejected=1))[0] == "fail"
    faulty = field.comparisons(rows)[3]
    assert statuses("field_tests", changed(rows, faulty, wrongly_passed=40))[2] == "fail"


def test_shortened_tests_are_blind_where_the_catalogue_says() -> None:
    found = {row["fault"]: row["needed"] for row in module("detection").detections(rows_of("detection"))}
    assert set(found) == {name for name, fault in FAULTS.items() if fault.shows_in_a_law}
    for name, needed in found.items():
        assert tuple(test for test in SHORTCUTS if needed[test] is None) == blind(FAULTS[name])
        assert (needed["KS"] is None) >= (
            needed["first token only"] is None
        )  # it reads that token and no more
        assert (needed["support only"] is not None) == (FAULTS[name].kind == "support")
        assert needed["judge"] is not None
        assert needed["chi-square"] is not None


def test_a_shortened_set_up_is_the_faults_own_but_for_one_thing() -> None:
    detection = module("detection")
    for name in ("row-of-first-request", "block-residual-of-token-rule"):
        setups = detection.setups(FAULTS[name])
        (own,) = setups["judge"]
        assert set(setups) == set(detection.TESTS) >= set(SHORTCUTS)
        for tried in setups.values():
            for setup in tried:
                same = (
                    setup.pair.digest == own.pair.digest,
                    setup.draft_length == own.draft_length,
                    setup.length == own.length,
                    setup.detector == own.detector,
                )
                assert sum(same) >= 3
    assert len(detection.setups(FAULTS["row-of-first-request"])["one request"]) == 2


def test_a_fault_that_goes_unseen_turns_two_badges_and_a_missed_run_does_not() -> None:
    detection, rows = module("detection"), rows_of("detection")
    row = one(rows, fault="gumbel-noise-reused")  # the base pair is blind to it
    for hits, expected in ((99, "pass"), (90, "fail")):
        found = statuses("detection", changed(rows, row, rejected=[100, hits]))
        assert found == [expected, "pass", expected, "info"]
    few = one(rows, fault="coin-reaches-zero")
    assert few["runs"] == [10, 10]
    assert statuses("detection", changed(rows, few, rejected=[10, 5]))[0] == "fail"
    assert detection.is_caught(row | {"rejected": [0, 100]}, 1)


def test_a_control_at_the_rejecting_e_value_turns_its_badge() -> None:
    rows = rows_of("detection")
    row = one(rows, control="block")
    for value, expected in ((13.8, "pass"), (13.9, "fail")):
        found = statuses("detection", changed(rows, row, log_e=row["log_e"] | {"base": value}))
        assert found == ["pass", expected, "pass", "info"]


def test_every_control_is_judged_on_every_kind_of_pair() -> None:
    detection, rows = module("detection"), rows_of("detection")
    assert {row["control"] for row in detection.acquittals(rows)} == set(CONTROLS)
    assert len(detection.log_e_values(rows)) == 3 * len(CONTROLS)
    pairs = detection.control_pairs()
    assert len(pairs["requests"].initial) > 1
    assert pairs["by-position"].states > 1
    assert (pairs["by-position"].rows == 0).any()


def test_every_family_of_shown_faults_is_in_one_picture() -> None:
    families = [family for half in module("detection").HALVES for family in half]
    assert sorted(families) == sorted({row["family"] for row in rows_of("detection") if "family" in row})
