"""simkit simulate: what it prints, which exit code it gives, and how it refuses bad input."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from simkit.laws.named import PAIRS, make_pair
from simkit.rules.registry import RULES
from simkit.sampling import simulate as sampling
from simkit.sampling.simulate import BACKENDS, progress_line, simulate

Call = Callable[..., Any]
SMALL = ("simulate", "--vocab", 4, "--trials", 2000, "--length", 6, "--seed", 5, "--tolerance", 0.2)


def test_json_has_all_there_is_to_know(call: Call) -> None:
    result = call(*SMALL, "--tv", 0.25, "--draft-length", 2, "--json")
    assert (result.code, result.err) == (0, "")
    document = result.json
    tally = simulate(
        make_pair("zipf", vocabulary=4, total_variation=0.25), draft_length=2, length=6, trials=2000, seed=5
    )
    assert re.fullmatch("[0-9a-f]{64}", document["digest"])
    assert document["digest"] == tally.digest
    assert document["pair"] == {
        "name": "zipf",
        "digest": tally.pair.digest,
        "vocabulary": 4,
        "total_variation": 0.25,
    }
    assert document["settings"] == {
        "rule": "token",
        "draft_length": 2,
        "length": 6,
        "trials": 2000,
        "seed": 5,
        "target_temperature": 1.0,
        "draft_temperature": 1.0,
    }
    assert document["tokens"] == 12000
    assert sum(document["accepted"]) == document["target_calls"] == tally.calls
    assert document["acceptance"]["theory"] == pytest.approx(0.75)
    assert document["acceptance"]["measured"] == tally.acceptance.value
    low, high = document["acceptance"]["interval_95"]
    assert low < document["acceptance"]["measured"] < high
    assert set(document["tokens_per_call"]) == {"measured", "standard_error", "interval_95", "theory"}
    assert [test["name"] for test in document["tests"]] == [
        "chi-square",
        "largest z-score",
        "kolmogorov-smirnov (id order)",
        "kolmogorov-smirnov (rank order)",
    ]
    keys = {
        "name", "statistic", "p_value", "after_holm", "degrees_of_freedom", "cells", "samples", "method"
    }  # fmt: skip
    assert {frozenset(test) for test in document["tests"]} == {frozenset(keys)}
    assert document["log_e_value"] == document["verdict"]["log_e_value"]
    assert document["verdict"]["outcome"] == "PASS"
    assert document["verdict"]["samples"] == 12000
    assert document["verdict"]["certificate"]["total_variation"] <= 0.2


def test_digest_is_the_same_for_every_backend_and_number_of_threads(call: Call) -> None:
    ways: list[tuple[object, ...]] = [
        ("--backend", "numpy"),
        ("--backend", "numba", "--threads", 1),
        ("--backend", "numba", "--threads", 2),
        (),
    ]
    documents = [call(*SMALL, "--json", *way).json for way in ways]
    assert len({document["digest"] for document in documents}) == 1
    assert [document["backend"].split(" (")[0] for document in documents[:3]] == [
        "numpy, 1 thread",
        "numba, 1 thread",
        "numba, 2 threads",
    ]
    assert call(*SMALL, "--seed", 6, "--json").json["digest"] != documents[0]["digest"]


@pytest.mark.parametrize(
    ("more", "code", "status"),
    [
        ([], 0, "PASS"),
        (["--rule", "replace-from-target", "--tv", 0.7, "--draft-length", 1], 1, "FAIL"),
        (["--trials", 10], 3, "INCONCLUSIVE"),
    ],
)
def test_exit_code_is_the_verdict(more: list[object], code: int, status: str, call: Call) -> None:
    for form in ([], ["--json"]):
        result = call(*SMALL, *more, *form)
        assert result.code == code
        assert status in result.out
        assert result.err == ""


def test_budget_ends_at_the_first_verdict(call: Call) -> None:
    small = [option for option in SMALL if option not in ("--trials", 2000)]
    document = call(*small, "--budget", "1e7", "--json").json
    assert document["verdict"]["outcome"] == "PASS"
    assert document["verdict"]["plan"]["looks"] == 10
    # n0 * 2**j, and far from the whole budget: 0.2 is a large tolerance
    assert document["tokens"] < 10**6
    assert document["tokens"] == document["settings"]["trials"] * 6
    short = call("simulate", "--vocab", 4, "--budget", "1000", "--seed", 5, "--json")
    assert (short.code, short.json["verdict"]["outcome"]) == (3, "INCONCLUSIVE")
    assert short.json["tokens"] <= 1000


def test_text_is_for_people(call: Call) -> None:
    lines = dict(line.split("  ", 1) for line in call(*SMALL).out.splitlines())
    assert lines["acceptance, theory"].strip() == "0.7"
    assert {
        "pair",
        "acceptance",
        "tokens per target call",
        "digest",
        "verdict",
        "log e-value",
        "chi-square",
    } < set(lines)


def test_infinity_is_json(call: Call) -> None:
    # Two trials of length 1 with a greedy draft that is always refused: nothing kept, no error to state.
    document = call("simulate", "--pair", "disjoint", "--trials", 1, "--length", 1, "--json").json
    assert document["acceptance"]["measured"] == 0.0
    assert document["acceptance"]["standard_error"] == "inf"


def test_greedy_is_a_temperature(call: Call) -> None:
    greedy = ("--target-temperature", 0, "--draft-temperature", 0)
    document = call(*SMALL, "--tv", 0.1, *greedy, "--json").json
    assert document["acceptance"]["measured"] == document["acceptance"]["theory"] == 1.0
    assert document["verdict"]["outcome"] == "PASS"


def test_progress_goes_to_stderr(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "progress_line", lambda what: progress_line(what, after=-1.0))
    result = call(*SMALL, "--json")
    assert result.json["verdict"]["outcome"] == "PASS"
    assert re.search(r"drawing: 100%, \S+ trials/s, done", result.err)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--pair", "zip"], ["unknown pair 'zip'", *PAIRS, "Did you mean 'zipf'?"]),
        (["--rule", "tokens"], ["unknown rule 'tokens'", *RULES, "Did you mean 'token'?"]),
        (["--backend", "gpu"], ["unknown backend 'gpu'", *BACKENDS, "auto"]),
        (["--draft-length", 0], ["draft_length=0", "1 to 64"]),
        (["--draft-length", 65], ["draft_length=65", "1 to 64"]),
        (["--trials", 0], ["trials=0"]),
        (["--trials", -1], ["trials=-1"]),
        (["--length", 0], ["length=0"]),
        (["--threads", 0], ["threads=0"]),
        (["--tv", -0.1], ["total_variation=-0.1", "0 to 1"]),
        (["--tv", 1.5], ["total_variation=1.5"]),
        (["--tv", "nan"], ["total_variation=nan"]),
        (["--vocab", 0], ["vocabulary=0"]),
        (["--vocab", 10**9], ["vocabulary=1000000000"]),
        (["--tolerance", 0], ["tolerance=0.0"]),
        (["--tolerance", "nan"], ["tolerance=nan"]),
        (["--tolerance", 1], ["tolerance=1.0", "strictly between 0 and 1"]),
        (["--budget", "soon"], ["budget 'soon'", "60s"]),
        (["--budget", "0"], ["budget '0'"]),
        (["--budget", "-5s"], ["budget '-5s'"]),
        (["--budget", "100", "--length", 0], ["length=0"]),
        (["--budget", "100", "--trials", 5], ["--trials and --budget"]),
        (["--target-temperature", -1], ["temperature=-1.0"]),
        (["--target-temperature", "nan"], ["temperature=nan"]),
        (["--draft-temperature", "inf"], ["temperature=inf"]),
        (["--pair", "disjoint", "--vocab", 3], ["'disjoint' does not take vocabulary", "it is fixed"]),
        (["--pair", "ngram", "--tv", 0.1], ["'ngram' does not take total_variation", "order"]),
    ],
)
def test_bad_input_is_one_line_that_names_it(
    arguments: list[object], says: list[str], refused: Callable[..., str]
) -> None:
    size = () if "--budget" in arguments or "--trials" in arguments else ("--trials", 10)
    for form in ([], ["--json"]):
        message = refused("simulate", *size, *arguments, *form)
        assert [word for word in says if word not in message] == []


@pytest.mark.parametrize("arguments", [["--trials", "many"], ["--frobnicate"], ["extra"]])
def test_bad_usage_points_at_the_help(arguments: list[str], call: Call) -> None:
    result = call("simulate", *arguments)
    assert (result.code, result.out) == (2, "")
    assert "simulate --help" in result.err
    assert "Traceback" not in result.err


def test_a_rule_whose_theory_is_not_known_is_drawn_without_it(call: Call) -> None:
    arguments = ("simulate", "--rule", "block", "--vocab", 500, "--trials", 2000)
    assert "theory" not in call(*arguments).out
    assert call(*arguments, "--json").json["acceptance"]["theory"] is None
    assert "theory" in call(*arguments[:3], "--vocab", 4, "--trials", 2000, "--draft-length", 2).out
