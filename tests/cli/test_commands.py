"""What holds for every command: help that teaches, one document on stdout, and exits that tell."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from simkit.cli import bench as bench_command
from simkit.cli.output import EXIT, print_json
from simkit.sampling import bench as sampling_bench
from simkit.sampling import simulate as sampling
from simkit.sampling.simulate import simulate
from simkit.verify import bench as verify_bench
from simkit.verify.verdict import OUTCOMES

Call = Callable[..., Any]

TEACHES = {
    "simulate": [
        "Draw speculative samples",
        "--draft-length",
        "1 to 64",
        "Example:",
        "exit code",
        "0 is greedy",
    ],
    "judge": ["--target", "--counts", "--tokens", "Example:"],
    "combine": ["independent", "multiply"],
    "compare": ["--baseline", "exit code 1", "--greedy"],
    "run": ["goes on where it stopped", "[EXPERIMENT]...", "--all"],
    "report": ["Nothing is drawn here", "simkit run --all", "--paper", "PDF"],
    "gate": ["exit code 3", "--false-alarm", "a fresh one, printed"],
    "bench": ["Read the ratios", "ratio_to_floor", "--samples"],
    "doctor": ["bug reports", "self-test", "exit code 1"],
}


@pytest.mark.parametrize("command", TEACHES)
def test_help_teaches(command: str, call: Call) -> None:
    result = call(command, "--help")
    text = " ".join(result.out.split())
    assert (result.code, result.err) == (0, "")
    assert [word for word in [*TEACHES[command], "--json"] if word not in text] == []


def test_help_lists_the_commands_and_the_exit_codes(call: Call) -> None:
    text = call("--help").out
    assert [name for name in TEACHES if f"  {name} " not in text] == []
    assert "0 pass, 1 fail, 2 bad usage or input, 3 not enough evidence" in text


@pytest.mark.parametrize("arguments", [[], ["simulat"], ["--frobnicate"]])
def test_no_command_is_bad_usage(arguments: list[str], call: Call) -> None:
    assert call(*arguments).code == 2


def test_exit_codes_of_verdicts() -> None:
    assert EXIT == {"PASS": 0, "FAIL": 1, "INCONCLUSIVE": 3}
    assert set(EXIT) == set(OUTCOMES)


def test_what_json_lacks_is_written_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"a": [float("inf"), (float("nan"), 1.5)], "b": {"c": -float("inf")}})
    assert json.loads(capsys.readouterr().out) == {"a": ["inf", ["nan", 1.5]], "b": {"c": "-inf"}}


def test_doctor_says_that_the_backends_agree(call: Call) -> None:
    result = call("doctor", "--json")
    assert (result.code, result.err) == (0, "")
    document = result.json
    assert document["self-test"] == "the backends agree"
    assert document["python"] == sys.version.split()[0]
    assert {"numpy", "numba", "scipy", "simkit-speculative", "cores", "backend"} < set(document)
    assert "the backends agree" in call("doctor").out


@pytest.mark.parametrize("odd", ["numba", "numpy", "reference"])
def test_doctor_fails_where_a_backend_differs(odd: str, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: Any, backend: str, **options: Any) -> Any:
        return simulate(*arguments, **options, backend=backend, seed=int(backend == odd))

    monkeypatch.setattr(sampling, "simulate", broken)
    result = call("doctor", "--json")
    assert result.code == 1
    assert result.json["self-test"].startswith("THE BACKENDS DISAGREE")


def test_bench_rows_have_the_stated_keys(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    # Small and short: what is measured here are keys, not speed.
    whole = sampling_bench.bench_rows
    monkeypatch.setattr(sampling_bench, "bench_rows", lambda **options: whole((32, 1024), **options))
    judged = verify_bench.bench_judge
    monkeypatch.setattr(verify_bench, "bench_judge", lambda **options: judged(repeats=1, **options))
    result = call("bench", "--samples", 20_000, "--repeats", 1, "--no-memory", "--json")
    assert result.code == 0
    document = result.json
    assert [row["vocab"] for row in document["rows"]] == [
        v for v in (32, 1024) for _ in range(len(document["rows"]) // 2)
    ]
    keys = "backend vocab threads ns_per_sample floor_ns ratio_to_floor numpy_ns speedup_over_numpy"
    keys += " speedup_over_one_thread table_ms"
    assert {tuple(sorted(row)) for row in document["rows"]} == {tuple(sorted(keys.split()))}
    assert len(document["decode"]) > 0
    assert {row["rule"] for row in document["rules"]} == {"token", "block", "with-replacement"}
    assert {tuple(sorted(row)) for row in document["judge"]} == {
        ("case", "cells", "samples", "seconds", "states")
    }
    assert "memory" not in document
    assert bench_command.__doc__


def test_bench_prints_tables(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling_bench, "bench_rows", lambda **_: [{"vocab": 32, "ratio_to_floor": 1.5}])
    monkeypatch.setattr(
        sampling_bench, "bench_decode", lambda *_, **__: [{"pair": "zipf", "ns_per_token": 7}]
    )
    monkeypatch.setattr(
        sampling_bench, "bench_rules", lambda *_, **__: [{"rule": "block", "times_token_rule": 2.0}]
    )
    monkeypatch.setattr(sampling_bench, "bench_memory", lambda **_: {"growth_mb": 0.5})
    monkeypatch.setattr(verify_bench, "bench_judge", lambda **_: [{"case": "judge", "seconds": 0.1}])
    result = call("bench")
    assert result.code == 0
    assert result.out.splitlines() == [
        "",
        "single position",
        "vocab  ratio_to_floor",
        "-----  --------------",
        "32     1.5",
        "",
        "decodes",
        "pair  ns_per_token",
        "----  ------------",
        "zipf  7",
        "",
        "rules",
        "rule   times_token_rule",
        "-----  ----------------",
        "block  2.0",
        "",
        "verdicts",
        "case   seconds",
        "-----  -------",
        "judge  0.1",
        "",
        "memory: {'growth_mb': 0.5}",
    ]
    assert call("bench", "--json").json["memory"] == {"growth_mb": 0.5}


def test_bench_refuses_a_run_too_short_to_time(call: Call) -> None:
    assert call("bench", "--samples", 10).code == 2


def test_interrupt_says_so_and_is_no_verdict(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sampling, "simulate", interrupted)
    result = call("simulate")
    assert (result.code, result.out) == (130, "")
    assert result.err.startswith("simkit: interrupted; ")


def test_a_reader_that_has_gone_is_no_verdict() -> None:
    # As in `simkit simulate | head -0`: neither a traceback, nor 0 for pass, nor 1 for fail.
    reading, writing = os.pipe()
    os.close(reading)
    command = [
        sys.executable,
        "-m",
        "simkit",
        "simulate",
        "--vocab",
        "4",
        "--trials",
        "10",
        "--backend",
        "numpy",
    ]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


def test_errors_of_files_are_one_line(refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied", "/some/file")

    monkeypatch.setattr(sampling, "simulate", fails)
    assert refused("simulate") == "simkit: /some/file: Permission denied; check it and run again\n"


def test_a_defect_is_neither_pass_nor_fail(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def defect(*_: object, **__: object) -> None:
        raise AssertionError("a bug")

    monkeypatch.setattr("simkit.verify.battery.gate_cases", defect)
    monkeypatch.delenv("SIMKIT_DEBUG", raising=False)
    result = call("gate")
    assert (result.code, result.out) == (70, "")
    assert result.err == "simkit: internal error, AssertionError: a bug; SIMKIT_DEBUG=1 shows where\n"
