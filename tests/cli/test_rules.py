from __future__ import annotations

import csv

import pytest

from simkit.rules.registry import RULES

RIGHT = """
from simkit.rules.step import token_rule as rule
"""
WRONG = """
from simkit.rules.choose import Emitted

def rule(model, choose):
    return Emitted((choose(model.draft((), 0)),), 1)

def fails(model, choose):
    raise KeyError("no")
"""


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "right.py").write_text(RIGHT)
    (tmp_path / "wrong.py").write_text(WRONG)
    return tmp_path


def test_the_list_has_every_rule_with_lossless_or_lossy_and_source(call):
    result = call("rules", "--json")
    assert result.code == 0
    assert {row["rule"]: row["lossless"] for row in result.json} == {n: e.lossless for n, e in RULES.items()}
    assert all(row["source"] and row["summary"] for row in result.json)
    plain = call("rules").out
    lossless, lossy = plain.split("\nlossy\n")
    assert all((f"\n{name} " in lossless) == entry.lossless for name, entry in RULES.items())
    assert all((f"\n{name} " in lossy) != entry.lossless for name, entry in RULES.items())


def test_a_right_rule_passes(call, files):
    result = call("rules", "check", "right.py:rule", "--cases", 40)
    assert (result.code, result.out) == (0, "lossless on all of 40 pairs, exactly\n")
    assert call("rules", "check", "right.py:rule", "--cases", 40, "--json").json["lossless"] is True


def test_a_wrong_rule_fails_with_the_smallest_pair_and_both_laws(call, files):
    result = call("rules", "check", "wrong.py:rule")
    assert result.code == 1
    assert "not lossless; the smallest pair that shows it" in result.out
    assert "total variation  1 = 1" in result.out
    assert "tokens  this rule  target  difference" in result.out
    document = call("rules", "check", "wrong.py:rule", "--json").json
    assert document["lossless"] is False
    assert sorted([document["law"], document["target_law"]]) == [["0", "1"], ["1", "0"]]


def test_a_rule_that_raises_fails_and_says_so(call, files):
    result = call("rules", "check", "wrong.py:fails")
    assert result.code == 1
    assert "KeyError: 'no'" in result.out
    assert (
        call("rules", "check", "wrong.py:fails", "--json").json["error"] == "the rule raised KeyError: 'no'"
    )


def test_a_comparison_is_printed_and_written(call, files):
    result = call(
        "rules", "compare", "right.py:rule", "--against", "block", "--drafts", "1..2",
        "--csv", "out", "--pdf", "out",
    )  # fmt: skip
    assert result.code == 0
    assert result.out.count("\n") == 2 + 4
    rows = list(csv.DictReader((files / "out" / "rules.csv").read_text().splitlines()))
    assert [(row["rule"], row["verified"], row["lossless"]) for row in rows] == [
        ("rule", "1", ""), ("rule", "2", ""), ("block", "1", "True"), ("block", "2", "True"),
    ]  # fmt: skip
    assert (files / "out" / "rules.pdf").read_bytes().startswith(b"%PDF")
    as_json = call("rules", "compare", "--against", "token", "--drafts", "2", "--json").json
    assert as_json[0]["kept"] == pytest.approx(1.19)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["check", "none.py:rule"], "there is no Python file none.py"),
        (["check", "right.py"], "give FILE.py:NAME"),
        (["check", "right.py:rule", "--cases", 0], "cases=0"),
        (["compare", "--against", "tokne"], "unknown rule 'tokne'"),
        (["compare", "--against", ""], "nothing to compare"),
        (["compare", "--drafts", "0..3"], "drafts='0..3'"),
        (["compare", "--drafts", "3..1"], "drafts='3..1'"),
        (["compare", "--drafts", "1..65"], "1 to 64"),
        (["compare", "--drafts", "two"], "drafts='two'"),
        (["compare", "--pair", "nothing"], "unknown pair 'nothing'"),
    ],
)
def test_bad_input_is_one_line(refused, files, arguments, says):
    assert says in refused("rules", *arguments)
