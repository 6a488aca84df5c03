from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from simkit.errors import InputError, UnknownNameError
from simkit.laws.pair import Pair
from simkit.laws.rows import Row
from simkit.rules.chain import Chain
from simkit.rules.choose import Block, walk
from simkit.rules.exact import exact_law
from simkit.rules.registry import RULES, find_rule
from simkit.rules.step import token_rule

# Unequal totals, zeros on either side, equal rows, one-hot rows, a residual of several tokens.
PAIRS = [
    ([5, 3, 2], [2, 3, 5]),
    ([1, 2], [1, 1]),
    ([7, 0, 3, 1], [0, 4, 1, 2]),
    ([3, 1], [3, 1]),
    ([0, 1], [1, 0]),
    ([4, 4, 1], [1, 2, 9]),
]


def emits_the_target(text, p, q) -> bool:
    """Whether two tokens, over calls of one draft, follow the target exactly."""
    pair = Pair.from_weights(p, q)
    law = Row.from_weights(p).fractions
    two = [[a * b for b in law] for a in law]
    return exact_law(pair, text, draft_length=1, length=2).tolist() == two


@pytest.mark.parametrize("name", list(RULES))
def test_an_entry_tells_the_truth_about_its_rule(name):
    # Red when a broken rule is registered as lossless, or the other way round.
    entry = find_rule(name)
    assert entry.lossless == all(emits_the_target(entry.text, p, q) for p, q in PAIRS)
    assert entry.summary
    assert entry.source


@pytest.mark.parametrize(
    "broken",
    [
        lambda p, q: replace(token_rule(p, q), bonus=q),
        lambda p, q: replace(token_rule(p, q), propose=p),
        lambda p, q: replace(token_rule(p, q), accept=(np.maximum(p, 1), np.maximum(q, 1))),
    ],
    ids=["bonus from the draft", "another law than q is drawn", "weights compared without a common total"],
)
def test_the_pairs_see_broken_rules(broken):
    assert not all(emits_the_target(Chain(broken), p, q) for p, q in PAIRS)


def test_an_unknown_rule_lists_the_known_ones():
    with pytest.raises(UnknownNameError, match=r"unknown rule 'tokn'; known: .*token") as error:
        find_rule("tokn")
    assert "Did you mean 'token'?" in str(error.value)
    assert isinstance(error.value, InputError)


@pytest.mark.parametrize("name", [name for name, entry in RULES.items() if entry.same_law])
@pytest.mark.parametrize(("p", "q"), PAIRS)
def test_a_chain_rule_said_to_have_the_same_law_has_it(name, p, q):
    entry, model = RULES[name], Block(Pair.from_weights(p, q), 0, 2)
    assert walk(entry.same_law, model) == walk(entry.text, model)


@pytest.mark.parametrize("name", [name for name, entry in RULES.items() if entry.make])
def test_a_parameter_is_set_behind_a_colon_and_has_the_stated_default(name):
    entry = RULES[name]
    default = entry.parameter.rpartition(", ")[2]
    model = Block(Pair.from_weights([80, 12, 5, 3], [1, 1, 1, 1]), 0, 2)
    assert walk(find_rule(f"{name}:{default}").text, model) == walk(entry.text, model)
    assert walk(find_rule(f"{name}:1").text, model) != walk(entry.text, model)
    assert find_rule(f"{name}:1").parameter.endswith(", 1")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("token:2", "rule 'token' has no parameter; got 'token:2'"),
        ("lenience:x", "factor='x'; it needs a number"),
        ("lenience:", "factor=''"),
        ("with-replacement:2.5", "drafts='2.5'; it needs a whole number"),
        ("k-seq:0", "drafts=0"),
        ("with-replacement:65", "drafts=65"),
    ],
)
def test_a_value_that_a_rule_does_not_take_is_named(name, says):
    with pytest.raises(InputError, match=says):
        find_rule(name)
