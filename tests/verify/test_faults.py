"""Every fault of the catalogue that shows in a law is rejected on its own case, and no control is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from simkit.rules.faults import CONTROLS, FAULTS
from simkit.rules.faults.fault import base
from simkit.sampling.simulate import simulate
from simkit.verify.judge import judge

ROWS = Path(__file__).parents[2] / "reports" / "results" / "detection.jsonl"
NEEDED = {
    row["fault"]: row["needed"]["judge"]
    for row in map(json.loads, ROWS.read_text().splitlines())
    if "needed" in row
}
SEEN = [name for name, fault in FAULTS.items() if fault.shows_in_a_law]


@pytest.mark.parametrize("name", SEEN)
def test_a_fault_is_rejected_on_its_own_case(name, seed):
    """At false alarm 1e-6, with three times the decodes that show it with probability 0.99.

    A fault that one decode gives away is missed by three times as many with probability 0.01 cubed; evidence
    that adds up is further from its threshold still: at most 1e-6 a fault.
    """
    fault = FAULTS[name]
    options = {"draft_length": fault.draft_length, "length": fault.length, "trials": 3 * NEEDED[name]}
    drawn = simulate(fault.shown_by(), name, seed=seed, **options)
    assert judge(drawn).outcome == "FAIL"
    if options["trials"] < 10**6:  # the same size draws no blood from the right rule
        right = simulate(fault.shown_by(), "token", seed=seed, **options)
        assert judge(right).outcome != "FAIL"


@pytest.mark.parametrize("name", CONTROLS)
def test_a_control_is_not_rejected(name, seed):
    # Wrongly red with probability 1e-6. The broken rule is rejected with a two-hundredth of these decodes.
    drawn = simulate(base(), name, draft_length=2, length=3, trials=200_000, seed=seed)
    assert judge(drawn).outcome == "PASS"
    assert NEEDED["replace-from-target"] < 1_000
