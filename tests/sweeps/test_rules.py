"""Rules side by side: known numbers, exact and drawn alike, and nobody above the bound."""

from __future__ import annotations

import numpy as np
import pytest

from simkit.laws.named import make_pair
from simkit.laws.pair import Pair
from simkit.laws.synthetic import corner_case
from simkit.rules.bound import acceptance_bound
from simkit.rules.exact import exact_accepted
from simkit.sweeps import rules
from simkit.sweeps.rules import Contender, compare_rules, contender, everyone

BASE = Pair.from_weights([5, 3, 2], [2, 3, 5])


def kept(pair, name, budget, **options) -> float:
    return compare_rules(pair, [contender(name)], [budget], **options)[0].kept


def test_known_numbers():
    # Sun et al. 2024 for block; the others are derived in tests/rules/test_multidraft.py.
    assert kept(BASE, "token", 2) == pytest.approx(1.19, abs=1e-12)
    assert kept(BASE, "block", 3) == pytest.approx(1.695, abs=1e-12)
    assert kept(BASE, "with-replacement", 2) == pytest.approx(0.76, abs=1e-12)
    assert kept(BASE, "without-replacement", 2) == pytest.approx(0.82, abs=1e-12)
    assert kept(BASE, "greedy-draft", 2) == pytest.approx(0.9, abs=1e-12)


def test_the_shapes_of_a_budget():
    one = Contender("tree", lambda drafts: None, True, "top")
    assert list(rules._shapes(one, 6)) == [(6, 1), (2, 2)]
    assert list(rules._shapes(one, 14)) == [(14, 1), (2, 3)]
    assert list(rules._shapes(one, 12)) == [(12, 1), (3, 2)]
    assert list(rules._shapes(Contender("path", lambda drafts: None), 6)) == [(1, 6)]


def test_no_lossless_rule_is_above_its_bound_and_block_reaches_it():
    found = compare_rules(BASE, everyone(), [1, 2, 3])
    held = [row for row in found if row.lossless and row.bound is not None]
    assert len(held) > 25
    assert all(row.kept <= row.bound + 1e-9 for row in held)
    assert all(abs(row.kept - row.bound) < 1e-9 for row in held if row.rule == "block")
    # Teeth: what is lossy goes above it.
    assert any(row.kept > row.bound + 0.1 for row in found if row.lossless is False)


def test_a_name_with_a_parameter_is_one_contender_with_that_shape():
    names = ["with-replacement:3", "lenience:1/4", "without-replacement:2-1"]
    found = compare_rules(BASE, [contender(name) for name in names], [3, 4])
    assert [(row.rule, row.drafts, row.draft_length) for row in found] == [
        ("with-replacement:3", 3, 1), ("lenience:1/4", 1, 3), ("lenience:1/4", 1, 4),
        ("without-replacement:2-1", 2, 2),
    ]  # fmt: skip
    assert [row.verified for row in found] == [3, 3, 4, 4]
    assert found[0].kept <= found[0].bound == acceptance_bound([5, 3, 2], [2, 3, 5], 3, "with-replacement")
    exact = exact_accepted(BASE, "with-replacement:3", draft_length=1)
    assert found[0].kept == pytest.approx(float(exact[1]))


@pytest.mark.parametrize(("name", "budget"), [("block", 3), ("shared-gumbel", 2), ("without-replacement", 2)])
def test_what_is_drawn_agrees_with_what_is_exact(monkeypatch, name, budget, seed):
    # Within 6 standard errors: less than 1e-8 of right runs are outside.
    exact = kept(BASE, name, budget)
    monkeypatch.setattr(rules, "WALKED", 1)
    (row,) = compare_rules(BASE, [contender(name)], [budget], seed=seed)
    assert row.kept_error > 0
    assert abs(row.kept - exact) < 6 * row.kept_error
    assert abs(row.kept - kept(BASE, "token", 1)) > 6 * row.kept_error or budget == 1


@pytest.mark.parametrize(
    ("rule", "p", "q"), [("argmax-draft", [9, 1], [6, 4]), ("target-tree", [5, 4], [1, 2])]
)
def test_the_bound_is_that_of_the_drafts_which_the_rule_draws(rule, p, q):
    # Both draft the most likely token, and keep it with its p: more than sum(min(p, q)), or less.
    (row,) = compare_rules(Pair.from_weights(p, q), [contender(rule)], [1])
    assert row.kept == pytest.approx(row.bound, abs=1e-12)
    assert row.bound == pytest.approx(9 / 10 if rule == "argmax-draft" else 4 / 9, abs=1e-12)


def test_the_bound_reads_the_draft_row_of_each_slot():
    # Equal to the target in one slot, off by .3 in the other: either row alone has the bound 2.0 or 1.25.
    p, q = [5, 3, 2], [2, 3, 5]
    for rows in ([q, p], [p, q]):
        pair = Pair(
            rows=np.array([p, *rows]), target=np.array([0]), draft=np.array([[1, 2]]),
            next_state=np.array([[0]]), initial=np.array([0]),
        )  # fmt: skip
        token, block = compare_rules(pair, [contender("token"), contender("block")], [2])
        assert token.bound == pytest.approx(block.kept, abs=1e-12)
        assert token.bound == block.bound
        assert token.kept <= token.bound + 1e-12


def test_pairs_of_several_states_have_no_bound():
    (row,) = compare_rules(corner_case("by-position"), [contender("token")], [2])
    assert row.bound is None
    assert row.row()["tokens_per_call"] == 1 + row.kept


def test_a_large_vocabulary_is_had_for_chain_rules_and_block():
    pair = make_pair("zipf", vocabulary=2_000)
    found = compare_rules(pair, [contender(name) for name in ("token", "block", "k-seq")], [2])
    assert [row.kept_error > 0 for row in found] == [False, True, False]
    assert found[1].bound > found[0].kept
