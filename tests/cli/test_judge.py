"""simkit judge: files in, verdict out; its exit codes, its record, and how it refuses bad files."""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simkit.verify.judge import Plan, judge

Call = Callable[..., Any]

LAW = [0.5, 0.3, 0.2]
GOOD = [5012, 2990, 1998]
BAD = [5512, 2990, 1498]  # total variation 0.05
LOOSE = ("--tolerance", 0.05)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder, which is also the current one, with counts, tokens and targets."""
    monkeypatch.chdir(tmp_path)
    for name, values in {
        "good": np.array(GOOD),
        "bad": np.array(BAD),
        "short": np.array([50, 30, 20]),
        "impossible": np.array([500, 300, 200, 1]),
        "law": np.array(LAW),
        "law4": np.array([*LAW, 0.0]),
        "shift": np.array([0.0, 0.0, 0.0, 1.0]),
        "states": np.array([GOOD, GOOD[::-1]]),
        "laws": np.array([LAW, LAW[::-1]]),
        "visits": np.array([10_000, 10_000]),
    }.items():
        np.save(tmp_path / f"{name}.npy", values)
    tokens = np.repeat(np.arange(3), GOOD)
    (tmp_path / "tokens.csv").write_text("token\n" + "\n".join(map(str, tokens)) + "\n")
    (tmp_path / "weights.json").write_text('{"weights": [5, 3, 2]}')
    return tmp_path


@pytest.mark.parametrize(
    ("counts", "more", "code", "outcome"),
    [
        ("good.npy", LOOSE, 0, "PASS"),
        ("tokens.csv", LOOSE, 0, "PASS"),
        ("bad.npy", LOOSE, 1, "FAIL"),
        ("good.npy", ("--tolerance", 0.01), 3, "INCONCLUSIVE"),
        ("short.npy", (), 3, "INCONCLUSIVE"),
    ],
)
def test_exit_code_is_the_verdict(
    counts: str, more: tuple[object, ...], code: int, outcome: str, files: Path, call: Call
) -> None:
    for form in ([], ["--json"]):
        result = call("judge", counts, "--target", "law.npy", *more, *form)
        assert (result.code, result.err) == (code, "")
        assert outcome in result.out


def test_an_impossible_token_fails(files: Path, call: Call) -> None:
    result = call("judge", "impossible.npy", "--target", "law4.npy", "--json")
    assert result.code == 1
    assert (result.json["impossible"], result.json["log_e_value"]) == (1, "inf")


def test_the_record_is_that_of_the_library(files: Path, call: Call) -> None:
    settings = (
        "--false-alarm",
        1e-4,
        "--miss",
        0.01,
        "--tolerance",
        0.07,
        "--length",
        16,
        "--sampler",
        "mine",
    )
    result = call("judge", "good.npy", "--target", "weights.json", *settings, "--json", "--out", "new/a.json")
    key = "sha256:" + sha256(Path("good.npy").read_bytes()).hexdigest()[:16]
    plan = Plan(false_alarm=1e-4, miss=0.01, tolerance=0.07, length=16)
    expected = judge(GOOD, LAW, plan, sampler="mine", key=key).record()
    assert result.json == json.loads(json.dumps(expected))
    assert json.loads(Path("new/a.json").read_text()) == result.json
    assert result.json["keys"] == [key]


def test_a_key_of_ones_own(files: Path, call: Call) -> None:
    assert call("judge", "good.npy", "--target", "law.npy", "--key", "night 1", "--json").json["keys"] == [
        "night 1"
    ]


def test_counts_tokens_and_formats_give_one_verdict(files: Path, call: Call) -> None:
    forms = [
        ("good.npy", "law.npy"),
        ("good.npy", "weights.json"),
        ("tokens.csv", "law.npy"),
        ("tokens.csv", "law.npy", "--tokens"),
        ("good.npy", "law.npy", "--counts"),
    ]
    records = [
        call("judge", counts, "--target", law, *more, "--key", "k", "--json").json
        for counts, law, *more in forms
    ]
    assert all(record == records[0] for record in records)
    assert records[0]["samples"] == sum(GOOD)


def test_text_says_how_the_file_was_read(files: Path, call: Call) -> None:
    as_tokens = "tokens in no order (randomness used twice goes unseen)"
    for counts, kind in [("good.npy", "counts"), ("tokens.csv", as_tokens)]:
        lines = dict(
            line.split("  ", 1) for line in call("judge", counts, "--target", "law.npy").out.splitlines()
        )
        assert lines["read"].strip() == f"{counts}, as {kind}: 10,000 draws from a vocabulary of 3"
        assert {"verdict", "log e-value", "chi-square"} < set(lines)


def test_states_need_planned_visits(files: Path, call: Call, refused: Callable[..., str]) -> None:
    arguments = ("judge", "states.npy", "--target", "laws.npy")
    message = refused(*arguments)
    assert [word for word in ["2 states", "--visits FILE", "random"] if word not in message] == []
    result = call(*arguments, *LOOSE, "--visits", "visits.npy", "--json")
    assert result.code == 0
    expected = judge([GOOD, GOOD[::-1]], [LAW, LAW[::-1]], Plan(tolerance=0.05), visits=[10_000, 10_000])
    assert result.json["log_e_value"] == pytest.approx(expected.log_evidence, rel=1e-12)
    assert call("judge", "states.npy", "--target", "laws.npy", "--visits", "realised", "--json").code == 2
    assert "2 states" in refused(*arguments, "--visits", "good.npy")


def test_sequences_have_a_tolerance_of_their_own(
    files: Path, call: Call, refused: Callable[..., str]
) -> None:
    arguments = ("judge", "good.npy", "--target", "law.npy", "--tolerance-per-sequence", 0.2)
    assert call(*arguments, "--length", 4).code == 0
    assert call(*arguments, "--length", 50).code == 3
    assert "length" in refused(*arguments)


def test_a_fail_is_written_too(files: Path, call: Call) -> None:
    assert call("judge", "bad.npy", "--target", "law.npy", "--out", "bad.json").code == 1
    assert json.loads(Path("bad.json").read_text())["outcome"] == "FAIL"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["none.npy", "--target", "law.npy"], ["cannot read none.npy", "No such file"]),
        (["good.npy", "--target", "none.npy"], ["cannot read none.npy"]),
        (["good.npy", "--target", "law4.npy"], ["good.npy", "(3,)", "4 tokens"]),
        (["good.npy", "--target", "law4.npy", "--counts"], ["(3,)", "(4,)"]),
        (["good.npy", "--target", "law.npy", "--tokens"], ["5012 at [0]", "0 to 2"]),
        (["tokens.csv", "--target", "law.npy", "--counts"], ["tokens.csv", "tokens", "counts"]),
        (["impossible.npy", "--target", "good.npy"], ["(4,)", "3 tokens"]),
        (["law.npy", "--target", "law.npy"], ["law.npy", "frequencies"]),
        (["ids.npy", "--target", "law.npy"], ["ids.npy", "--counts or --tokens"]),
        (["text.npy", "--target", "law.npy"], ["text.npy", "cannot be read as .npy"]),
        (["good.txt", "--target", "law.npy"], ["good.txt", ".npy, .csv, .json"]),
        (["three.npy", "--target", "shift.npy"], ["weight 0", "order"]),
        (["good.npy", "--target", "law.npy", "--tolerance", 0], ["tolerance=0"]),
        (["good.npy", "--target", "law.npy", "--false-alarm", 1], ["false_alarm=1"]),
        (["good.npy", "--target", "law.npy", "--miss", "nan"], ["miss=nan"]),
        (["good.npy", "--target", "law.npy", "--length", 0], ["length=0"]),
        (["good.npy", "--target", "law.npy", "--visits", "law.npy"], ["3 numbers", "1 state"]),
        (["good.npy", "--target", "law.npy", "--out", "law.npy/a.json"], ["cannot write", "not a folder"]),
    ],
)
def test_bad_input_is_one_line_that_names_it(
    arguments: list[object], says: list[str], files: Path, refused: Callable[..., str]
) -> None:
    np.save("ids.npy", [0, 1, 2])
    np.save("three.npy", [9, 8, 7, 0])
    Path("text.npy").write_text("5\n0\n9\n")
    Path("good.txt").write_text("5\n0\n9\n")
    for form in ([], ["--json"]):
        message = refused("judge", *arguments, *form)
        assert [word for word in says if word not in message] == [], message


@pytest.mark.parametrize("arguments", [[], ["good.npy"], ["good.npy", "--target", "law.npy", "extra"]])
def test_bad_usage_points_at_the_help(arguments: list[str], files: Path, call: Call) -> None:
    result = call("judge", *arguments)
    assert (result.code, result.out) == (2, "")
    assert "judge --help" in result.err
    assert "Traceback" not in result.err


def test_decodes_are_held_against_each_other(files: Path, call: Call) -> None:
    # Each row twice: the counts are right, and one of two decodes is not drawn.
    rng = np.random.default_rng()
    drawn = rng.choice(3, p=[0.5, 0.3, 0.2], size=(500, 20))
    np.save(files / "decodes.npy", drawn)
    np.save(files / "twins.npy", drawn.repeat(2, axis=0))
    np.save(files / "row.npy", [0.5, 0.3, 0.2])
    right = call("judge", "decodes.npy", "--target", "row.npy", "--tokens", "--tolerance", 0.1)
    assert (right.code, "as 500 decodes: 10,000 draws" in right.out) == (0, True)
    assert call("judge", "twins.npy", "--target", "row.npy", "--tokens", "--tolerance", 0.1).code == 1
