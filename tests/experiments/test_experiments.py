"""The experiments on their committed rows: they ask what is stored, and say what the rows say."""

from __future__ import annotations

from fractions import Fraction
from math import log

import pytest

from simkit.figures import render
from simkit.report.document import Picture, Table
from simkit.rules.registry import find_chain
from tests.experiments.stored import NAMES, ROOT, badges, changed, experiment, module, rows_of


@pytest.mark.parametrize("name", NAMES)
def test_each_task_is_there_once_and_its_row_is_stored(name: str) -> None:
    identities = [task.identity for task in experiment(name).tasks()]
    assert len(set(identities)) == len(identities)
    assert identities == [task.identity for task in experiment(name).tasks()]
    assert identities == [row["identity"] for row in rows_of(name)]


@pytest.mark.parametrize("name", NAMES)
def test_the_docstring_states_the_finding_of_the_rows(name: str) -> None:
    found = experiment(name).finding(rows_of(name))
    assert " ".join(found.split()) == experiment(name).parts["Finding"]


@pytest.mark.parametrize("name", NAMES)
def test_the_committed_rows_pass(name: str) -> None:
    found = badges(name, rows_of(name))
    assert found[0].status == "pass"
    assert {badge.status for badge in found} <= {"pass", "info"}


@pytest.mark.parametrize("name", NAMES)
def test_the_page_has_its_pictures_and_a_table(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(render, "pdf", lambda figure: b"%PDF-")  # half of the time, and tested with the sheet
    page = experiment(name).page(ROOT / "reports")
    assert 1 <= len(page.pictures) <= 4
    assert any(isinstance(block, Table) for block in page.blocks)
    for picture in page.pictures:
        assert isinstance(picture, Picture)
        assert "<image" not in picture.svg
        assert picture.csv.count("\n") > 8


@pytest.mark.parametrize("name", ["acceptance_vs_quality", "acceptance_vs_temperature", "speedup", "rules"])
@pytest.mark.parametrize("standard_errors", [-7.0, 7.0])
def test_one_point_off_its_theory_turns_the_badge(name: str, standard_errors: float) -> None:
    rows = rows_of(name)
    row = next(row for row in rows if row["tokens_per_call_error"] > 0)
    off = row["tokens_per_call_theory"] + standard_errors * row["tokens_per_call_error"]
    assert badges(name, changed(rows, row, tokens_per_call=off))[0].status == "fail"


def test_lossless_draws_enough_of_the_right_rule() -> None:
    tasks = [task for task in experiment("lossless").tasks() if task.rule == "token"]
    assert sum(task.trials * task.length for task in tasks) >= 10**8
    assert all(task.judged for task in tasks)
    assert {task.draft_length for task in tasks} >= {1, 2, 4, 8, 16}
    vocabularies = [task.options.get("vocabulary") for task in tasks]
    assert {8, 32768, None} <= set(vocabularies)  # None: the n-gram pair


def test_lossless_judges_the_broken_rule_on_as_many_samples() -> None:
    lossless, rows = module("lossless"), rows_of("lossless")
    size = {(row["pair_digest"], row["draft_length"]): row["tokens"] for row in lossless.right(rows)}
    for row in [*lossless.controls(rows), *lossless.too_small(rows)]:
        assert size[row["pair_digest"], row["draft_length"]] == row["tokens"]
    assert len(lossless.controls(rows)) >= 10
    assert all(row["fault"] is None or row["fault"] >= row["tolerance"] for row in lossless.controls(rows))


def test_the_stored_fault_is_that_of_the_broken_rule() -> None:
    row = next(row for row in module("lossless").controls(rows_of("lossless")) if row["vocabulary"] == 8)
    pair = next(t for t in experiment("lossless").tasks() if t.identity == row["identity"]).make_pair()
    law = find_chain(row["rule"]).rule(pair.rows[pair.target], pair.rows[pair.draft[:, 0]]).law()
    target = [Fraction(weight, pair.target_row().total) for weight in pair.target_row().weights.tolist()]
    fault = sum(abs(a - b) for a, b in zip(law, target, strict=True)) / 2
    nats = sum(float(a) * log(a / b) for a, b in zip(law, target, strict=True))
    assert row["fault"] == pytest.approx(float(fault), rel=1e-5)
    assert row["nats_per_token"] == pytest.approx(nats, rel=1e-5)


@pytest.mark.parametrize(("status", "badge"), [("FAIL", "fail"), ("INCONCLUSIVE", "inconclusive")])
def test_a_right_rule_that_does_not_pass_turns_the_badge(status: str, badge: str) -> None:
    rows = rows_of("lossless")
    for row in module("lossless").right(rows)[:3]:
        assert badges("lossless", changed(rows, row, status=status))[0].status == badge


@pytest.mark.parametrize(("status", "badge"), [("PASS", "fail"), ("INCONCLUSIVE", "inconclusive")])
def test_a_broken_rule_that_is_not_rejected_turns_the_badge(status: str, badge: str) -> None:
    rows = rows_of("lossless")
    for row in module("lossless").controls(rows)[:3]:
        found = badges("lossless", changed(rows, row, status=status))
        assert [one.status for one in found[:2]] == ["pass", badge]


def test_a_short_run_that_is_rejected_turns_its_badge() -> None:
    rows = rows_of("lossless")
    row = module("lossless").growth(rows, "token")[2]
    assert badges("lossless", changed(rows, row, status="FAIL"))[2].status == "fail"


def test_no_rows_are_no_pass() -> None:
    assert [badge.status for badge in badges("lossless", [])[:2]] == ["fail", "fail"]


def test_p_values_that_the_chi_square_law_does_not_hold_for_are_not_printed() -> None:
    lossless = module("lossless")
    tests = [{"name": "chi-square", "after_holm": 3e-9}, {"name": "ks (id order)", "after_holm": 0.25}]
    assert lossless._p_value({"tests": tests}, "chi-square") == "< 10⁻⁴"
    assert lossless._p_value({"tests": tests}, "id order") == 0.25


def test_the_context_of_the_n_gram_pair_matters() -> None:
    quality, rows = module("acceptance_vs_quality"), rows_of("acceptance_vs_quality")
    last, rate = quality.by_length(rows)[-1], quality.one_rate(rows)
    half = 1.96 * last["tokens_per_call_error"] / last["tokens_per_call"] * 100.0
    assert abs(quality.excess(last, rate)) > 5 * half
    assert abs(quality.excess(quality.by_length(rows)[0], rate)) < half


def test_an_outcome_against_theory_turns_the_badge_of_the_border() -> None:
    rows = rows_of("speedup")
    row = next(row for row in rows if row["draft_length"] == 1 and row["total_variation"] == 0.9)
    assert badges("speedup", changed(rows, row, tokens_per_call=1.9))[1].status == "fail"


def test_temperatures_cover_greedy_to_two_for_both_pairs() -> None:
    temperature, rows = module("acceptance_vs_temperature"), rows_of("acceptance_vs_temperature")
    for pair in ("zipf", "ngram"):
        grid = temperature.grid(rows, pair)
        assert len(grid) == 64
        corners = {(row["target_temperature"], row["draft_temperature"]) for row in grid}
        assert {(0.0, 0.0), (0.0, 2.0), (2.0, 0.0), (2.0, 2.0)} <= corners
        line = [row["target_temperature"] for row in temperature.diagonal(rows, pair)]
        assert line == sorted(line)
        assert len(line) == 15
