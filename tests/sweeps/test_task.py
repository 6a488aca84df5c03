"""Task: an identity that changes with all that changes the result, and the row that it gives."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from simkit.errors import InputError
from simkit.sweeps.store import line
from simkit.sweeps.task import Z_EDGES, Task, Work, identify, perform

SMALL = Task("zipf", {"vocabulary": 8}, draft_length=2, length=5, trials=400, seed=3)
OTHER: dict[str, Any] = {
    "pair": "uniform",
    "options": {"vocabulary": 9},
    "target_temperature": 0.5,
    "draft_temperature": 0.5,
    "rule": "replace-from-target",
    "draft_length": 3,
    "length": 6,
    "trials": 401,
    "seed": 4,
    "judged": True,
    "tolerance": 0.02,
}


def test_identity_is_the_same_in_every_version() -> None:
    # It is stored in every row under reports/: when it changes on purpose, all results are drawn anew.
    assert Task("zipf").identity == "29076f19e01c405c33ba238a997d2e29e0ae5320597d4fb7e1f2d19531a523a2"
    task = Task("ngram", {"order": 4, "draft_order": 2}, 0.5, 2.0, "token", 8, 32, 10, 7, True, 0.05)
    assert task.identity == "9aa5b594ace18cce74321dae143b40de7d7e1ae91467e4603b7e465b7d1374df"


@pytest.mark.parametrize("name", [field.name for field in fields(Task)])
def test_identity_changes_with_each_field(name: str) -> None:
    # A field that is forgotten in the identity would let a restart take over rows of another task.
    assert replace(SMALL, **{name: OTHER[name]}).identity != SMALL.identity


def test_a_task_is_work_and_performs_itself() -> None:
    assert isinstance(SMALL, Work)
    seen: list[tuple[int, int]] = []
    assert SMALL.perform(lambda done, total: seen.append((done, total))) == perform(SMALL)
    assert seen[-1] == (400, 400)


@pytest.mark.parametrize("other", [{"a": 2}, {"b": 1}, {"a": 1, "b": None}, {"a": "1"}, {"a": [1]}, {}])
def test_identities_of_different_contents_differ(other: dict[str, Any]) -> None:
    assert identify({"a": 1}) == identify({"a": 1})
    assert identify(other) != identify({"a": 1})


def test_identity_does_not_depend_on_the_order_of_options() -> None:
    options = {"vocabulary": 8, "total_variation": 0.1}
    backwards = dict(reversed(options.items()))
    assert Task("zipf", options).identity == Task("zipf", backwards).identity


def test_row_has_parameters_counts_and_theory() -> None:
    row = perform(SMALL)
    assert row["identity"] == SMALL.identity
    assert {name: row[name] for name in OTHER} == {name: getattr(SMALL, name) for name in OTHER}
    assert set(row) >= {"pair_digest", "states", "accepted", "judged_by_slot", "digest", "acceptance_error"}
    assert set(row) >= {"tokens_per_call", "tokens_per_call_error", "tokens_per_call_theory"}
    assert row["tokens"] == 2000
    assert sum(row["accepted"]) == row["calls"]  # type: ignore[call-overload]
    assert row["vocabulary"] == 8
    assert row["total_variation"] == pytest.approx(0.3)
    assert row["acceptance_theory"] == pytest.approx(0.7)


def test_judged_row_has_the_tests_too() -> None:
    row: Any = perform(replace(SMALL, judged=True, tolerance=0.3))
    more = {
        "status",
        "log_e",
        "strongest",
        "where",
        "tv_bound",
        "detectable_tv",
        "impossible",
        "tests",
        "z_histogram",
        "z_largest",
        "fault",
    }
    assert set(row) >= more
    assert not more & set(perform(SMALL))
    assert row["status"] == "PASS"
    assert [set(test) for test in row["tests"]] == 4 * [
        {"name", "statistic", "p_value", "degrees_of_freedom", "after_holm"}
    ]
    assert len(row["z_histogram"]) == len(Z_EDGES) - 1
    assert sum(row["z_histogram"]) == 8


def test_scores_beyond_the_edges_are_kept_in_the_outer_bins() -> None:
    # 10^5 tokens of a rule that is off by 0.1: clipped, not dropped.
    task = Task(
        "uniform", {"vocabulary": 4}, rule="replace-from-target", length=1, trials=100_000, judged=True
    )
    row: Any = perform(task)
    assert row["status"] == "FAIL"
    assert row["z_largest"] > 6
    assert sum(row["z_histogram"]) == 4
    assert row["z_histogram"][0] + row["z_histogram"][-1] >= 1


@pytest.mark.parametrize("name", ["many-token-residual", "partial-overlap", "one-hot-draft"])
def test_size_of_a_planted_fault_is_stated(name: str) -> None:
    # The broken rule emits min(p, q) + TV p; a lossless rule has no fault.
    task = Task(name, draft_length=1, length=1, trials=10, judged=True)
    pair = task.make_pair()
    p, q = pair.target_row().probabilities, pair.draft_row().probabilities
    law = np.minimum(p, q) + (1 - np.minimum(p, q).sum()) * p
    broken = perform(replace(task, rule="replace-from-target"))
    assert broken["fault"] == pytest.approx(np.abs(law - p).sum() / 2)
    assert broken["fault"] > 0.01  # type: ignore[operator]
    assert perform(task)["fault"] == 0.0


def test_row_survives_the_store() -> None:
    row = json.loads(line(perform(replace(SMALL, judged=True))))
    assert row["identity"] == replace(SMALL, judged=True).identity
    assert line(row) == line(perform(replace(SMALL, judged=True)))


def test_temperatures_reach_the_pair() -> None:
    assert SMALL.make_pair().digest != replace(SMALL, target_temperature=0.0).make_pair().digest
    greedy = replace(SMALL, target_temperature=0.0, draft_temperature=0.0).make_pair()
    assert np.count_nonzero(greedy.target_row().weights) == 1
    with pytest.raises(InputError, match="temperature=-1"):
        replace(SMALL, draft_temperature=-1.0).make_pair()


def test_progress_is_passed_on() -> None:
    seen: list[tuple[int, int]] = []
    perform(SMALL, lambda done, total: seen.append((done, total)))
    assert seen[-1] == (400, 400)


def test_a_rule_that_is_no_chain_rule_has_a_row_with_the_theory_that_is_known() -> None:
    small = perform(Task("zipf", {"vocabulary": 4}, rule="block", draft_length=2, length=4, trials=20_000))
    # Six standard errors: a right rule is outside with a probability below 1e-8.
    distance = abs(small["tokens_per_call"] - small["tokens_per_call_theory"])
    assert distance < 6 * small["tokens_per_call_error"]
    wide = perform(Task("zipf", {"vocabulary": 400}, rule="block", length=8, trials=100, judged=True))
    assert wide["tokens_per_call_theory"] is wide["acceptance_theory"] is None
    assert wide["fault"] == 0.0
    lost = perform(Task("zipf", {"vocabulary": 4}, rule="quantile-frozen", length=4, trials=9, judged=True))
    assert lost["fault"] is None
