from __future__ import annotations

import pytest

from simkit.errors import InputError
from simkit.laws.pair import Pair
from simkit.rules.chain import Chain
from simkit.rules.choose import Block, walk
from simkit.rules.load import load_rule
from tests.rules.test_chain import P, Q

FILE = """
from dataclasses import dataclass
from simkit.rules.chain import Chain
from simkit.rules.choose import Emitted
from simkit.rules.step import token_rule

@dataclass(frozen=True)
class Maker:
    times: int = 1

def text(model, choose):
    return Emitted((choose(model.target(())),), 0)

step = token_rule
made = Chain(token_rule)
number = 3
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(FILE)
    return path


QUITS = """
import sys
print("said aloud")

def rule(model, choose):
    print("said in a call")
    sys.exit(0)

def cannot_be_printed(model, choose):
    class Odd(Exception):
        def __str__(self):
            raise ValueError

    raise Odd

class Rule:
    pass
"""


def test_a_rule_that_quits_or_prints_is_an_error_and_stdout_stays_clean(tmp_path, capsys):
    (tmp_path / "quits.py").write_text(QUITS)
    model = Block(Pair.from_weights(P, Q), 0, 1)
    with pytest.raises(InputError, match="the rule raised SystemExit: 0"):
        walk(load_rule(f"{tmp_path / 'quits.py'}:rule"), model)
    with pytest.raises(InputError, match=r"raised Odd: \(it cannot be printed\)"):
        walk(load_rule(f"{tmp_path / 'quits.py'}:cannot_be_printed"), model)
    with pytest.raises(InputError, match="a rule is a function"):
        load_rule(f"{tmp_path / 'quits.py'}:Rule")
    (tmp_path / "exits.py").write_text("import sys; sys.exit(0)")
    with pytest.raises(InputError, match="cannot be run: SystemExit: 0"):
        load_rule(f"{tmp_path / 'exits.py'}:rule")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "said aloud" in captured.err
    assert "said in a call" in captured.err


def test_texts_steps_and_chains_are_told_apart(file):
    model = Block(Pair.from_weights(P, Q), 0, 1)
    assert not isinstance(load_rule(f"{file}:text"), Chain)
    assert sum(walk(load_rule(f"{file}:text"), model).values()) == 1
    assert load_rule(f"{file}:step") == load_rule(f"{file}:made")
    assert isinstance(load_rule(f"{file}:step"), Chain)


@pytest.mark.parametrize(
    ("place", "says"),
    [
        ("{file}", "names no rule; give FILE.py:NAME"),
        ("{file}:", "names no rule"),
        (":text", "names no rule"),
        ("{file}:txet", "has no 'txet'; its functions: .*text"),
        ("{file}:number", "is a int; a rule is a function"),
        ("{folder}:text", "there is no Python file"),
        ("{folder}/none.py:text", "there is no Python file"),
    ],
)
def test_what_is_no_rule_is_named(file, place, says):
    with pytest.raises(InputError, match=says):
        load_rule(place.format(file=file, folder=file.parent))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("x = 1 / 0", "cannot be run: ZeroDivisionError"),
        ("def rule(:", "cannot be run: SyntaxError"),
        ("import no_such_module", "cannot be run: ModuleNotFoundError"),
        ("", "has no 'rule'; its functions: none"),
    ],
)
def test_a_file_that_cannot_be_run_says_why(tmp_path, content, says):
    (tmp_path / "bad.py").write_text(content)
    with pytest.raises(InputError, match=says):
        load_rule(f"{tmp_path / 'bad.py'}:rule")
