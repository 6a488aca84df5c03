"""The page on rules: its rows come again, agree with another computation, and each verdict has teeth."""

from __future__ import annotations

from fractions import Fraction

import pytest

from simkit.laws.named import make_pair
from simkit.sweeps.rules import compare_rules, contender
from simkit.sweeps.store import line
from tests.experiments.stored import Row, badges, changed, experiment, module, rows_of

ROWS = rows_of("rules")


def one(rule: str, **fields: object) -> Row:
    """Return the first row of a rule with these fields."""
    return next(
        row for row in ROWS if row["rule"] == rule and all(row[name] == fields[name] for name in fields)
    )


def statuses(row: Row, **fields: object) -> list[str]:
    return [badge.status for badge in badges("rules", changed(ROWS, row, **fields))]


@pytest.mark.parametrize("rule", ["token", "k-seq:2", "greedy-draft:3", "shared-gumbel", "block"])
def test_a_stored_row_is_measured_again_byte_for_byte(rule: str) -> None:
    row = one(rule)
    work = next(task for task in experiment("rules").tasks() if task.identity == row["identity"])
    assert line(work.perform()) == line(row)


@pytest.mark.parametrize("budget", [1, 2])
def test_theory_and_bound_are_those_of_the_comparison(budget: int) -> None:
    rules = module("rules")
    names = rules.ONE_PATH + rules.INDEPENDENT + rules.DIFFERENT
    for found in compare_rules(rules.pair_of(10), [contender(name) for name in names], [budget]):
        row = next(row for row in rules.compared(ROWS, [found.rule]) if row["verified"] == budget)
        assert row["tokens_per_call_theory"] == pytest.approx(found.tokens_per_call, rel=1e-5)
        if found.rule not in ("argmax-draft", "target-tree"):  # whose drafts are not drawn from q
            assert row["bound"] == pytest.approx(found.bound, rel=1e-5)
        assert found.kept_error == 0.0


def test_the_total_variation_is_that_of_the_emitted_law_and_a_wrong_rule_has_one() -> None:
    # replace-from-target emits min(p, q) + d p, so it is off by (d p - max(p - q, 0)) where that is positive.
    pair = make_pair("zipf", vocabulary=10, total_variation=0.3)
    p, q = pair.target_row().fractions, pair.draft_row().fractions
    d = sum((max(a - b, Fraction(0)) for a, b in zip(p, q, strict=True)), Fraction(0))
    off = sum(
        (max(d * a - max(a - b, Fraction(0)), Fraction(0)) for a, b in zip(p, q, strict=True)), Fraction(0)
    )
    run = module("rules").Run
    assert run("replace-from-target", 2, 10).total_variation() == off > 0
    assert run("token", 2, 10).total_variation() == 0
    assert run("token", 2, 10).kept() == (1 - d) + (1 - d) ** 2


def test_block_is_walked_where_its_row_says_so_and_is_then_at_its_bound() -> None:
    run = module("rules").Run
    assert run("block", 3, 10).kept() == run("block", 3, 10).bound() > run("token", 3, 10).kept()
    assert run("block", 4, 10).kept() is None
    walked = [
        row["draft_length"] for row in ROWS if row["rule"] == "block" and row["below_bound"] is not None
    ]
    assert walked == [1, 2, 3]


def test_the_formula_of_shared_noise_is_what_its_branches_give(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = module("rules")
    walked = rules.Run("shared-gumbel", 2, 10).kept()
    monkeypatch.setitem(rules.WALKED, "shared-gumbel", 1)
    assert rules.Run("shared-gumbel", 2, 10).kept() == walked
    assert rules.Run("shared-gumbel", 2, 10).total_variation() is None


def test_drafts_that_are_certain_have_the_bound_of_the_targets_own_probabilities() -> None:
    # Token 6 is the draft's most likely: a path of it is kept with p(6), p(6)^2, .. at most.
    row = make_pair("zipf", vocabulary=10, total_variation=0.3).target_row()
    p = row.fractions[6]
    run = module("rules").Run
    assert run("argmax-draft", 3, 10).bound() == run("argmax-draft", 3, 10).kept() == p + p**2 + p**3
    assert run("target-tree:1", 1, 10).bound() == p


def test_each_rule_is_there_at_each_number_of_drafts_and_each_family_over_its_range() -> None:
    rules = module("rules")
    for name in rules.ONE_PATH + rules.INDEPENDENT + rules.DIFFERENT:
        assert [row["verified"] for row in rules.compared(ROWS, [name])] == list(range(1, 9))
    for name in rules.FAMILIES:
        settings = [row for row in rules.traded(ROWS) if rules.family(row) == name]
        assert max(row["total_variation"] for row in settings) == pytest.approx(0.3, abs=1e-3)
    assert [row["rule"] for row in rules.traded(ROWS) if row["lossless"]] == [
        "token",
        "block",
        *rules.LOSSLESS_ENDS,
    ]


def test_a_rule_above_its_bound_turns_the_badge_of_bounds() -> None:
    assert statuses(one("k-seq:3"), below_bound=-1e-12) == ["pass", "fail", "pass", "pass"]
    drawn = one("without-replacement:8")
    allowed = 1.0 + drawn["bound"] + 5.0 * drawn["tokens_per_call_error"]  # widest(10) is 5.3
    assert statuses(drawn, tokens_per_call=allowed)[1] == "pass"
    assert statuses(drawn, tokens_per_call=allowed + drawn["tokens_per_call_error"])[1] == "fail"


def test_block_short_of_its_bound_turns_the_badge_of_bounds() -> None:
    assert statuses(one("block", draft_length=3), below_bound=1e-12)[1] == "fail"
    assert statuses(one("token", draft_length=3), below_bound=1e-12)[1] == "pass"


@pytest.mark.parametrize(("rule", "variation"), [("k-seq:3", 1e-12), ("lenience:9/10", 0.0)])
def test_a_rule_that_is_not_what_it_is_called_turns_the_badge_of_total_variation(
    rule: str, variation: float
) -> None:
    assert statuses(one(rule), total_variation=variation) == ["pass", "pass", "fail", "pass"]


@pytest.mark.parametrize(("rule", "overpaid"), [("typical:1/200", -1e-12), ("ensemble:1/2", 1e-12)])
def test_a_price_below_the_least_or_above_it_turns_the_badge_of_prices(rule: str, overpaid: float) -> None:
    assert statuses(one(rule), overpaid=overpaid) == ["pass", "pass", "pass", "fail"]


def test_what_is_drawn_without_theory_is_in_the_table_with_its_error() -> None:
    rules = module("rules")
    drawn = one("without-replacement:8") | {"tokens_per_call": 1.98306, "tokens_per_call_error": 0.000157}
    assert rules._cell(drawn) == "1.9831 ± 0.0002"
    assert rules._cell(one("without-replacement:4")) == pytest.approx(1.890, abs=1e-3)
