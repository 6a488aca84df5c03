"""The public names: a snapshot, and that each is there, explained and shown by an example."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import simkit

# To add a name is a feature, to remove one breaks users: both are noted in CHANGELOG.md.
PUBLIC = [
    "Pair",
    "Plan",
    "Row",
    "Tally",
    "Trace",
    "Verdict",
    "check",
    "compare",
    "draw_tokens",
    "exact_accepted",
    "exact_law",
    "judge",
    "judge_stream",
    "judge_tokens",
    "make_pair",
    "plot",
    "simulate",
    "trace",
    "__version__",
]
ROOMS = ["errors", "laws", "rules", "sampling", "stats", "verify", "sweeps", "figures", "report"]


def test_names_are_those() -> None:
    assert simkit.__all__ == PUBLIC
    assert sorted(dir(simkit)) == sorted(PUBLIC + ROOMS)


@pytest.mark.parametrize("name", PUBLIC)
def test_each_is_there_explained_and_shown(name: str) -> None:
    thing = getattr(simkit, name)
    if name == "__version__":
        assert thing.count(".") == 2
        return
    assert thing.__name__ == name
    assert len(inspect.getdoc(thing) or "") > 20
    assert ">>> " in (thing.__doc__ or "")


@pytest.mark.parametrize("name", ROOMS)
def test_each_room_is_reached_and_explained(name: str) -> None:
    room = getattr(simkit, name)
    assert room.__name__ == f"simkit.{name}"
    assert room.__doc__


def test_star_import_gives_the_names() -> None:
    names: dict[str, object] = {}
    exec("from simkit import *", names)  # the one way in which a wrong __all__ shows
    assert set(names) - {"__builtins__"} == set(PUBLIC)


def test_unknown_name_lists_the_names() -> None:
    with pytest.raises(
        AttributeError, match=r"module 'simkit' has no attribute 'simulat'; it has Pair, .*simulate"
    ):
        simkit.simulat  # noqa: B018
    assert not hasattr(simkit, "cli_")


def test_names_for_type_checkers_are_the_same() -> None:
    # mypy reads the imports under TYPE_CHECKING, the interpreter the table: they must not drift apart.
    source = inspect.getsource(simkit)
    block = source.split("if TYPE_CHECKING:\n")[1].split("\n\n")[0]
    assert sorted(line.split(" as ")[1] for line in block.splitlines()) == sorted(
        set(PUBLIC) - {"__version__"}
    )


def test_module_is_the_command_line() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "simkit", "--help"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "simulate" in done.stdout
