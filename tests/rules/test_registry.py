from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from simkit.errors import InputError, UnknownNameError
from simkit.laws.rows import Row
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


def emits_the_target(rule, p, q) -> bool:
    """Whether a step of the rule, and its bonus token, follow the target exactly."""
    step = rule(np.array([p]), np.array([q]))
    return step.law() == Row.from_weights(p).fractions and Row(step.bonus[0]) == Row.from_weights(p)


@pytest.mark.parametrize("name", list(RULES))
def test_an_entry_tells_the_truth_about_its_rule(name):
    # Red when a broken rule is registered as lossless, or the other way round.
    entry = find_rule(name)
    assert entry.lossless == all(emits_the_target(entry.rule, p, q) for p, q in PAIRS)
    assert entry.summary


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
    assert not all(emits_the_target(broken, p, q) for p, q in PAIRS)


def test_an_unknown_rule_lists_the_known_ones():
    with pytest.raises(UnknownNameError, match=r"unknown rule 'tokn'; known: .*token") as error:
        find_rule("tokn")
    assert "Did you mean 'token'?" in str(error.value)
    assert isinstance(error.value, InputError)
