"""simkit compare: exit codes, the table and the document, help that teaches, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer

from simkit.cli.compare import compare

Call = Callable[..., Any]
P = [0.4, 0.3, 0.2, 0.1]
WRONG = [0.1, 0.2, 0.3, 0.4]


@pytest.fixture(autouse=True)
def the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the command line have this command, whether or not it is registered."""
    app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)
    app.callback()(lambda: None)
    app.command()(compare)
    monkeypatch.setattr("simkit.cli.app.app", app)


@pytest.fixture
def files(tmp_path: Path) -> Callable[..., Path]:
    """Return a writer of lines drawn from a law, two tokens each."""

    def write(name: str, law: list[float], lines: int = 2000) -> Path:
        path = tmp_path / f"{name}.jsonl"
        tokens = np.random.default_rng().choice(4, p=law, size=(lines, 2)).tolist()
        path.write_text("".join(f'{{"prompt": "Once", "tokens": {pair}}}\n' for pair in tokens))
        return path

    return write


def test_exit_codes_and_document(files: Callable[..., Path], call: Call) -> None:
    # Total variation .4 at 2,000 lines: log e-values beyond 200; right samplers are rejected at 1e-6.
    a, b, again = files("a", P), files("b", WRONG), files("again", P)
    failed = call("compare", a, b, "--baseline", again, "--permutations", 99, "--seed", 5, "--json")
    assert (failed.code, failed.err) == (1, "")
    document = failed.json
    assert (document["format"], document["outcome"]) == ("simkit comparison 1", "FAIL")
    assert (document["seed"], document["permutations"], document["lines"]) == (5, 99, [2000] * 3)
    assert len(document["positions"]) == len(document["baseline"]) == 3
    assert call("compare", a, again, "--permutations", 9).code == 3
    loose = call(
        "compare", a, again, "--permutations", 9, "--tolerance", 0.9, "--miss", 0.01, "--false-alarm", 1e-7,
        "--json",
    )  # fmt: skip
    assert loose.code == 0
    plan = loose.json["plan"]
    assert (plan["tolerance"], plan["miss"], plan["false_alarm"]) == (0.9, 0.01, 1e-7)


def test_text_has_a_row_for_each_kind_of_position(files: Callable[..., Path], call: Call) -> None:
    a, b = files("a", P), files("b", P)
    result = call("compare", a, b, "--permutations", 9)
    lines = result.out.splitlines()
    assert lines[0].startswith("comparison ")
    assert "INCONCLUSIVE: not rejected" in lines[0]
    assert [line.split("  ")[0] for line in lines] == [
        "comparison",
        "lines",
        "position 0",
        "bound",
        "positions >= 1, after each prefix",
        "bound",
        "positions >= 1, whole sequences",
    ]
    cut = call("compare", a, b, "--permutations", 9, "--length", 1)
    assert "positions >= 1" not in cut.out


def test_greedy_outputs(tmp_path: Path, call: Call) -> None:
    a, b = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    a.write_text(json.dumps({"prompt": "Once", "tokens": [5, 6], "gaps": [3.0, 0.4]}) + "\n")
    b.write_text(json.dumps({"prompt": "Once", "tokens": [5, 7]}) + "\n")
    assert call("compare", a, a, "--greedy").code == 0
    parted = call("compare", a, b, "--greedy")
    assert parted.code == 1
    assert '"Once" at position 1, gap 0.4' in parted.out
    assert call("compare", a, b, "--greedy", "--tie-gap", 0.5).code == 0
    assert call("compare", a, b, "--sampled").code == 3


def test_help_teaches(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    text = " ".join(call("compare", "--help").out.split())
    for part in (
        '{"prompt": "Once upon", "tokens": [318, 257, 640]}',
        "FAIL (exit code 1)",
        "INCONCLUSIVE (3)",
        "Example: simkit compare plain.jsonl speculative.jsonl --baseline plain2.jsonl",
        "--false-alarm 0.01 --permutations 999",
        "--tie-gap",
    ):
        assert part in text


def test_bad_input(files: Callable[..., Path], tmp_path: Path, refused: Callable[..., str]) -> None:
    a = files("a", P, 3)
    broken = tmp_path / "broken.jsonl"
    broken.write_text(a.read_text() + '{"prompt": "Once", "tok')
    assert f"{broken}, line 4: not JSON" in refused("compare", a, broken)
    assert "cannot read" in refused("compare", a, tmp_path / "missing.jsonl")
    for option, value, says in (
        ("--permutations", 0, "permutations=0"),
        ("--seed", -1, "seed=-1"),
        ("--tolerance", 1, "tolerance=1.0"),
        ("--false-alarm", 0, "false_alarm=0.0"),
        ("--miss", 2, "miss=2.0"),
        ("--length", 0, "length=0"),
        ("--tie-gap", -1, "tie_gap=-1.0"),
    ):
        assert says in refused("compare", a, a, option, value)
