"""simkit run and simkit report: results and pages, the same bytes again, and nothing lost on bad files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simkit.sampling import simulate as sampling
from simkit.sampling.simulate import progress_line
from simkit.sweeps import task as work

Call = Callable[..., Any]
Refused = Callable[..., str]


def contents(folder: Path) -> dict[str, bytes]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_run_and_report_make_results_pages_and_readme(place: Path, call: Call) -> None:
    ran = call("run", "--all")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines() == [
        "four: 2 rows in reports/results/four.jsonl",
        "six: 2 rows in reports/results/six.jsonl",
    ]
    reported = call("report")
    assert (reported.code, reported.err) == (0, "")
    assert reported.out == "2 pages, 6 files changed; open reports/index.html\n"
    files = contents(place / "reports")
    assert list(files) == [
        "README.md",
        "figures/four-line.svg",
        "figures/six-line.svg",
        "four.html",
        "index.html",
        "results/four.jsonl",
        "results/six.jsonl",
        "six.html",
    ]
    for name in ("README.md", "index.html", "four.html"):
        assert b"They do." in files[name]


def test_second_time_changes_no_byte(drawn: Path, call: Call) -> None:
    before = contents(drawn)
    assert call("run", "--all", "--json").json == {
        "experiments": [
            {"experiment": name, "rows": 2, "results": f"reports/results/{name}.jsonl"}
            for name in ("four", "six")
        ]
    }
    assert call("report", "--json").json == {"written": [], "pages": ["four", "six"]}
    assert contents(drawn) == before


def test_long_experiments_are_run_by_name_only_and_reported_like_any(drawn: Path, call: Call) -> None:
    before = contents(drawn / "reports")
    with (drawn / "experiments" / "six.py").open("a") as file:
        file.write("\n\nLONG = True\n")
    (drawn / "reports" / "results" / "six.jsonl").unlink()
    ran = call("run", "--all")
    assert (ran.code, ran.out) == (0, "four: 2 rows in reports/results/four.jsonl\n")
    assert ran.err == "left out, as they take minutes: six; run them with: simkit run six\n"
    assert "make it with: simkit run six" in call("report").err
    by_name = call("run", "six", "--json")
    assert by_name.err == ""
    assert [entry["experiment"] for entry in by_name.json["experiments"]] == ["six"]
    assert call("report", "--json").json == {"written": [], "pages": ["four", "six"]}
    assert contents(drawn / "reports") == before


def test_with_json_what_is_left_out_is_not_on_stdout(place: Path, call: Call) -> None:
    for name in ("four", "six"):
        with (place / "experiments" / f"{name}.py").open("a") as file:
            file.write("\n\nLONG = True\n")
    ran = call("run", "--all", "--json")
    assert (ran.code, ran.json) == (0, {"experiments": []})
    assert "simkit run four six" in ran.err


OWN = """
class Throws:
    seed = 1

    def __init__(self, heads):
        self.identity = f"throws {heads}"
        self.heads = heads

    def perform(self, progress):
        return {"identity": self.identity, "seed": 1, "tokens": 9, "acceptance": self.heads / 9}


def tasks():
    return [Throws(4), Throws(5)]
"""


def test_work_of_ones_own_is_run_and_reported(place: Path, call: Call) -> None:
    with (place / "experiments" / "four.py").open("a") as file:
        file.write(OWN)
    assert call("run", "--all").code == 0
    assert call("report").code == 0
    lines = (place / "reports" / "results" / "four.jsonl").read_text().splitlines()
    assert lines[0] == '{"acceptance":0.444444,"identity":"throws 4","seed":1,"tokens":9}'
    assert b"0.444444" in (place / "reports" / "four.html").read_bytes()


def test_names_choose_and_are_run_once(place: Path, call: Call) -> None:
    assert call("run", "six", "six").out.count("six:") == 1
    assert list(contents(place / "reports")) == ["results/six.jsonl"]


def test_other_folders(place: Path, call: Call, tmp_path_factory: pytest.TempPathFactory) -> None:
    (place / "experiments").rename(place / "mine")
    other = tmp_path_factory.mktemp("out")
    assert call("run", "--all", "--experiments", "mine", "--reports", other).code == 0
    assert call("report", "--experiments", place / "mine", "--reports", other).code == 0
    assert (other / "index.html").exists()
    assert not (place / "reports").exists()


def test_paper_writes_pdf_and_csv_of_every_picture_and_no_page(drawn: Path, call: Call) -> None:
    before = contents(drawn / "reports")
    result = call("report", "--paper", "paper", "--json")
    paper = contents(drawn / "paper")
    assert list(paper) == ["four-line.csv", "four-line.pdf", "six-line.csv", "six-line.pdf"]
    assert sorted(result.json["written"]) == [f"paper/{name}" for name in paper]
    assert paper["four-line.pdf"].startswith(b"%PDF-")
    assert paper["four-line.csv"].splitlines()[0] == b"acceptance"
    assert contents(drawn / "reports") == before


def test_run_wants_names_or_all(place: Path, refused: Refused) -> None:
    for arguments in ([], ["four", "--all"]):
        assert "name the experiments to run, or say --all" in refused("run", *arguments)


def test_unknown_experiment_lists_the_known_and_draws_nothing(place: Path, refused: Refused) -> None:
    message = refused("run", "four", "seven")
    assert "unknown experiment 'seven'; known: four, six" in message
    assert not (place / "reports").exists()


def test_no_experiments_here(tmp_path: Path, refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for command in (["run", "--all"], ["report"]):
        assert "there are no experiments in experiments; " in refused(*command)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("def tasks():", "def tasks(:", "six.py cannot be imported: SyntaxError"),
        (
            "from simkit.report import",
            "from simkit.reprot import",
            "six.py cannot be imported: ModuleNotFoundError",
        ),
        ("def badges", "def badge", "six.py has no function badges; an experiment has tasks, blocks"),
        ("Expectation:", "Hope:", "the docstring of experiments/six.py has no Expectation: part"),
    ],
)
def test_broken_experiment_is_named_before_anything_is_drawn(
    old: str, new: str, says: str, place: Path, refused: Refused
) -> None:
    path = place / "experiments" / "six.py"
    path.write_text(path.read_text().replace(old, new))
    assert says in refused("run", "--all")
    assert says in refused("report")
    assert not (place / "reports").exists()


def test_report_without_results_says_what_to_run(place: Path, refused: Refused) -> None:
    assert "there are no results in reports/results/four.jsonl; make it with: simkit run four" in refused(
        "report"
    )
    assert not (place / "reports").exists()


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda data: data[: len(data) // 2], "reports/results/six.jsonl is cut off in line "),
        (lambda data: data[:-1], "reports/results/six.jsonl is cut off in line 2"),
        (
            lambda data: data[: data.index(b"\n") + 1],
            "six.jsonl holds other tasks than experiments/six.py asks for",
        ),
        (lambda data: b"", "six.jsonl holds other tasks"),
        (lambda data: b"\xff\xfe\n", "six.jsonl is not text"),
        (lambda data: b"nonsense\n", "line 1 of reports/results/six.jsonl is not JSON"),
    ],
)
def test_damaged_results_leave_the_report_as_it_was(
    damage: Callable[[bytes], bytes], says: str, drawn: Path, refused: Refused, call: Call
) -> None:
    before = contents(drawn)
    results = drawn / "reports" / "results" / "six.jsonl"
    whole = results.read_bytes()
    results.write_bytes(damage(whole))
    for arguments in ([], ["--paper", "paper"]):
        message = refused("report", *arguments)
        assert says in message
        assert "simkit run six" in message
    results.write_bytes(whole)
    assert contents(drawn) == before
    # The remedy that the message names works.
    results.write_bytes(damage(whole))
    assert call("run", "six").code == 0
    assert contents(drawn) == before


def test_results_of_another_version_are_refused(drawn: Path, refused: Refused) -> None:
    path = drawn / "experiments" / "six.py"
    path.write_text(path.read_text().replace("trials=200", "trials=201"))
    assert "draw them anew with: simkit run six" in refused("report")


def test_unwritable_places(drawn: Path, refused: Refused) -> None:
    # A file in place of the folder: permission bits do not stop every user.
    (drawn / "taken").write_text("a file")
    assert "cannot write taken/" in refused("report", "--paper", "taken")
    assert "cannot write taken/results/four.jsonl" in refused("run", "four", "--reports", "taken")
    (drawn / "reports" / "figures").rename(drawn / "figures")
    (drawn / "reports" / "figures").write_text("a file")
    assert "reports/figures" in refused("report")


def test_a_page_that_no_report_wrote_is_not_overwritten(drawn: Path, refused: Refused) -> None:
    (drawn / "reports" / "six.html").write_text("mine")
    assert "was not written by simkit report" in refused("report")
    assert (drawn / "reports" / "six.html").read_text() == "mine"


def test_interrupted_run_says_so_and_goes_on(
    place: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    perform, done = work.perform, []

    def interrupted(task: Any, progress: Any) -> Any:
        if len(done) == 3:
            raise KeyboardInterrupt
        done.append(task)
        return perform(task, progress)

    monkeypatch.setattr(work, "perform", interrupted)
    result = call("run", "--all")
    assert result.code == 130
    assert result.err == "simkit: interrupted; rows that `simkit run` finished are kept\n"
    partial = place / "reports" / "results" / "six.jsonl.partial"
    assert len(partial.read_text().splitlines()) == 1
    done.clear()
    monkeypatch.setattr(
        work, "perform", lambda task, progress: (done.append(task), perform(task, progress))[1]
    )
    assert call("run", "six").code == 0
    assert len(done) == 1
    assert not partial.exists()


def test_progress_goes_to_stderr(place: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    eager = lambda what, unit: progress_line(what, unit, after=-1.0)  # noqa: E731
    monkeypatch.setattr(sampling, "progress_line", eager)
    result = call("run", "four", "--json")
    assert json.loads(result.out)["experiments"][0]["rows"] == 2
    assert "four: 50%" in result.err
    assert "tasks/s" in result.err


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ("def tasks():\n    return []\n", "must return one Task or more"),
        ("def tasks():\n    return ['zipf']\n", "must return one Task or more"),
        (
            "def tasks():\n    return [Task('uniform', trial=3)]\n",
            "tasks() of experiments/four.py failed: TypeError",
        ),
        ("def tasks():\n    return [Task]\n", "must return one Task or more, or objects of your own"),
        ("PLACE = 'first'\n", "PLACE of "),
        ("LONG = 'yes'\n", "LONG of experiments/four.py is 'yes'; it needs True or False"),
    ],
)
def test_a_wrong_sweep_is_refused_before_anything_is_drawn(
    place: Path, refused: Refused, wrong: str, says: str
) -> None:
    with (place / "experiments" / "four.py").open("a") as file:
        file.write(wrong)
    assert says in refused("run", "four")
    assert not list((place / "reports").rglob("*.jsonl*"))


@pytest.mark.parametrize("function", ["blocks", "badges", "finding"])
def test_an_error_in_a_page_is_named(drawn: Path, refused: Refused, function: str) -> None:
    with (drawn / "experiments" / "four.py").open("a") as file:
        file.write(f"def {function}(rows):\n    return 1 / 0\n")
    before = contents(drawn)
    assert f"{function}() of experiments/four.py failed: ZeroDivisionError" in refused("report")
    assert contents(drawn) == before


def test_a_missing_package_of_a_page_names_its_extra(drawn: Path, refused: Refused) -> None:
    with (drawn / "experiments" / "four.py").open("a") as file:
        file.write("def finding(rows):\n    raise ModuleNotFoundError('no', name='seaborn')\n")
    assert "simkit-speculative[reports]" in refused("report")
