"""simkit combine: from nights of runs to one verdict, its exit codes, and what it refuses to put together."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simkit.verify.combine import combine
from simkit.verify.judge import Plan, judge

Call = Callable[..., Any]

PLAN = Plan(tolerance=0.05)


@pytest.fixture(scope="session")
def records() -> dict[str, dict[str, Any]]:
    """Return verdicts of six runs: three pass, one fails, one is short, one is of another law."""
    runs = {
        "monday": judge([5010, 4990], [0.5, 0.5], PLAN, sampler="mine", key="monday"),
        "tuesday": judge([4980, 5020], [0.5, 0.5], PLAN, sampler="mine", key="tuesday"),
        "fail": judge([5400, 4600], [0.5, 0.5], PLAN, sampler="mine", key="fail"),
        "short": judge([51, 49], [0.5, 0.5], PLAN, sampler="mine", key="short"),
        "law": judge([5010, 4990], [0.25, 0.75], PLAN, sampler="mine", key="law"),
        "keyless": judge([5010, 4990], [0.5, 0.5], PLAN, sampler="mine"),
    }
    return {name: verdict.record() for name, verdict in runs.items()}


@pytest.fixture
def folder(records: dict[str, dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder, with a file for each verdict."""
    monkeypatch.chdir(tmp_path)
    for name, record in records.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(record))
    (tmp_path / "keyless.json").write_text(json.dumps({**records["keyless"], "keys": []}))
    (tmp_path / "other.json").write_text('{"status": "PASS"}')
    (tmp_path / "half.json").write_text('{"format": "simkit ver')
    return tmp_path


@pytest.mark.parametrize(
    ("names", "code", "outcome"),
    [
        (["monday"], 0, "PASS"),
        (["monday", "tuesday"], 0, "PASS"),
        (["monday", "short"], 3, "INCONCLUSIVE"),
        (["monday", "fail"], 1, "FAIL"),
        (["short", "fail", "tuesday"], 1, "FAIL"),
    ],
)
def test_exit_code_is_the_verdict(
    names: list[str], code: int, outcome: str, folder: Path, call: Call
) -> None:
    for form in ([], ["--json"]):
        result = call("combine", *(f"{name}.json" for name in names), *form)
        assert (result.code, result.err) == (code, "")
        assert outcome in result.out


def test_the_record_is_that_of_the_library(
    folder: Path, call: Call, records: dict[str, dict[str, Any]]
) -> None:
    result = call("combine", "monday.json", "fail.json", "--json", "--out", "new/total.json")
    expected = combine([records["monday"], records["fail"]]).record()
    assert result.json == expected == json.loads(Path("new/total.json").read_text())
    assert result.json["log_e_value"] == records["monday"]["log_e_value"] + records["fail"]["log_e_value"]


def test_evidence_piles_up_from_night_to_night(folder: Path, call: Call) -> None:
    assert call("combine", "monday.json", "--out", "total.json").code == 0
    assert call("combine", "total.json", "tuesday.json", "--out", "total.json").code == 0
    assert call("combine", "total.json", "short.json", "--out", "total.json").code == 3
    total = json.loads(Path("total.json").read_text())
    assert total["keys"] == ["monday", "short", "tuesday"]
    assert total["samples"] == 20_100
    at_once = call("combine", "short.json", "tuesday.json", "monday.json", "--json").json
    assert {**total, "reason": ""} == {**at_once, "reason": ""}


def test_what_simulate_prints_is_a_verdict_too(folder: Path, call: Call) -> None:
    for seed in (1, 2):
        small = ("--vocab", 4, "--trials", 5000, "--length", 2, "--seed", seed, "--tolerance", 0.1)
        Path(f"{seed}.json").write_text(call("simulate", *small, "--json").out)
    combined = call("combine", "1.json", "2.json", "--json")
    assert combined.json["samples"] == 20_000
    assert combined.json["log_e_value"] == pytest.approx(
        sum(json.loads(Path(name).read_text())["log_e_value"] for name in ("1.json", "2.json"))
    )


def test_text_lists_the_runs(folder: Path, call: Call) -> None:
    lines = dict(
        line.split("  ", 1) for line in call("combine", "tuesday.json", "monday.json").out.splitlines()
    )
    assert lines["verdict"].strip().startswith("PASS: ")
    assert lines["run 1"].strip().endswith("10,000 tokens (monday)")
    assert lines["run 2"].strip().endswith("10,000 tokens (tuesday)")


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (["monday", "monday"], ["monday.json and monday.json share draws", "'monday'"]),
        (["monday", "law"], ["monday.json and law.json", "different targets"]),
        (["monday", "keyless"], ["keyless.json has no key"]),
        (["monday", "other"], ["other.json is not a verdict", "simkit judge --out"]),
        (["half", "monday"], ["half.json is not JSON"]),
        (["none"], ["cannot read none.json", "No such file"]),
    ],
)
def test_bad_input_is_one_line_that_names_it(
    names: list[str], says: list[str], folder: Path, refused: Callable[..., str]
) -> None:
    for form in ([], ["--json"], ["--out", "total.json"]):
        message = refused("combine", *(f"{name}.json" for name in names), *form)
        assert [word for word in says if word not in message] == [], message
    assert not Path("total.json").exists()


def test_bad_usage_points_at_the_help(folder: Path, call: Call) -> None:
    result = call("combine")
    assert (result.code, result.out) == (2, "")
    assert "combine --help" in result.err
