from __future__ import annotations

import numpy as np
import pytest

from simkit.errors import InputError, UnknownNameError
from simkit.rules.registry import RULES, find_rule

PAIR = np.array([[5, 3, 2]]), np.array([[2, 3, 5]])


@pytest.mark.parametrize("name", list(RULES))
def test_an_entry_tells_the_truth_about_its_rule(name):
    # Red when a broken rule is registered as lossless, or the other way round.
    entry = find_rule(name)
    law = entry.rule(*PAIR).law()
    assert entry.lossless == ([float(f) for f in law] == [0.5, 0.3, 0.2])
    assert entry.summary


def test_an_unknown_rule_lists_the_known_ones():
    with pytest.raises(
        UnknownNameError, match=r"unknown rule 'tokn'; known: replace-from-target, token"
    ) as error:
        find_rule("tokn")
    assert "Did you mean 'token'?" in str(error.value)
    assert isinstance(error.value, InputError)
