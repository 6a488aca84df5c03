from __future__ import annotations

import pytest

from simkit.rules.faults import CONTROLS, FAULTS
from simkit.rules.faults.measure import distance


def test_the_list_has_every_fault_and_every_control(call):
    document = call("faults", "--json").json
    assert [row["fault"] for row in document["faults"]] == list(FAULTS)
    assert [row["control"] for row in document["controls"]] == list(CONTROLS)
    plain = call("faults")
    assert plain.code == 0
    assert all(f"\n{name} " in plain.out for name in [*FAULTS, *CONTROLS])


def test_the_distances_are_the_exact_ones(call):
    rows = {row["fault"]: row for row in call("faults", "--json").json["faults"]}
    for name, fault in FAULTS.items():
        if fault.shows_in_a_law:
            assert rows[name]["total variation"].startswith(f"{distance(fault)} = ")
        else:
            assert "total variation" not in rows[name]


def test_a_fault_is_shown_with_both_laws(call):
    result = call("faults", "show", "gumbel-noise-reused")
    assert result.code == 0
    assert FAULTS["gumbel-noise-reused"].source in result.out
    assert [line.split() for line in result.out.splitlines()[-3:]] == [
        ["0", "1/10", "1/10", "+0.000000"],
        ["1", "51/80", "3/5", "+0.037500"],
        ["2", "21/80", "3/10", "-0.037500"],
    ]
    document = call("faults", "show", "gumbel-noise-reused", "--json").json
    assert document["law"] == ["1/10", "51/80", "21/80"]
    assert document["target_law"] == ["1/10", "3/5", "3/10"]


@pytest.mark.parametrize("name", [name for name, fault in FAULTS.items() if not fault.shows_in_a_law])
def test_a_fault_without_a_law_says_how_it_is_seen(call, name):
    result = call("faults", "show", name)
    assert result.code == 0
    assert FAULTS[name].seen_by in result.out


def test_a_fault_is_drawn_from_like_a_rule_and_fails(call):
    result = call("simulate", "--rule", "always-accept", "--vocab", 10, "--trials", 1000)
    assert result.code == 1


def test_an_unknown_fault_is_one_line(refused):
    assert "Did you mean 'gumbel-noise-reused'?" in refused("faults", "show", "gumbel-noise")
