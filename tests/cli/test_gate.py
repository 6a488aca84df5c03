"""simkit gate: exit codes, the table and the document, and a fresh seed that can be repeated."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from simkit.verify import battery
from simkit.verify.battery import Case

Call = Callable[..., Any]
CASES = [
    Case("four", "uniform", {"vocabulary": 4}, draft_length=2, length=4, trials=20_000),
    Case("fixed", "partial-overlap", draft_length=1, length=2, trials=20_000),
]


@pytest.fixture(autouse=True)
def two_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(battery, "gate_cases", lambda: CASES)


@pytest.mark.parametrize(
    ("rule", "code", "outcome"), [("token", 0, "PASS"), ("replace-from-target", 1, "FAIL")]
)
def test_json(rule: str, code: int, outcome: str, call: Call) -> None:
    result = call("gate", "--rule", rule, "--tolerance", 0.1, "--false-alarm", 1e-7, "--json")
    assert (result.code, result.err) == (code, "")
    document = result.json
    assert (document["outcome"], document["rule"], document["false_alarm"]) == (outcome, rule, 1e-7)
    assert [case["case"] for case in document["cases"]] == ["four", "fixed"]
    assert {case["outcome"] for case in document["cases"]} == {outcome}
    assert document["cases"][0]["plan"]["false_alarm"] == pytest.approx(5e-8)
    assert document["cases"][0]["plan"]["tolerance"] == 0.1


def test_too_few_trials_are_no_pass(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(battery, "gate_cases", lambda: [CASES[0], replace(CASES[1], trials=100)])
    result = call("gate", "--tolerance", 0.1)
    assert result.code == 3
    assert result.out.splitlines()[-1].startswith("INCONCLUSIVE: rule 'token'")
    assert re.search(
        r"fixed: not rejected, but .* it takes about [\d,]+ draws, and these are 200", result.out
    )


def test_a_gate_without_cases_is_no_pass(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(battery, "gate_cases", list)
    result = call("gate")
    assert result.code == 3
    assert result.out.splitlines()[-1].startswith("INCONCLUSIVE: rule 'token'")


def test_text_has_a_row_a_case_and_the_seed(call: Call) -> None:
    result = call("gate", "--tolerance", 0.1, "--seed", 12)
    lines = result.out.splitlines()
    assert result.code == 0
    assert " ".join(lines[0].split()) == "case verdict tokens log e certified tv smallest p after Holm"
    assert [line.split()[:3] for line in lines[2:4]] == [
        ["four", "PASS", "80,000"],
        ["fixed", "PASS", "40,000"],
    ]
    assert "seed 12, 2 cases" in lines[-1]


def test_seed_is_fresh_and_printed_so_that_it_can_be_repeated(call: Call) -> None:
    first, second = (call("gate", "--tolerance", 0.1, "--json").json for _ in range(2))
    assert first["seed"] != second["seed"]
    assert call("gate", "--tolerance", 0.1, "--seed", first["seed"], "--json").json == first


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--rule", "tokn"], "unknown rule 'tokn'; known: "),
        (["--backend", "gpu"], "unknown backend 'gpu'"),
        (["--tolerance", 0], "tolerance=0.0"),
        (["--false-alarm", 1], "false_alarm=1.0"),
        (["--miss", -1], "miss=-1.0"),
    ],
)
def test_bad_input(arguments: list[object], says: str, refused: Callable[..., str]) -> None:
    assert says in refused("gate", *arguments)
