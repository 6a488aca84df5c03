"""The check of one's own rule: right ones pass, broken ones are shown on a pair that cannot be smaller."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from simkit.errors import InputError
from simkit.rules.chain import Chain
from simkit.rules.check import Case, _failure, _smaller, check_rule
from simkit.rules.choose import Emitted
from simkit.rules.exact import exact_law, no_drafts
from simkit.rules.registry import RULES, find_text
from simkit.rules.step import token_rule

token = Chain(token_rule)


@pytest.mark.parametrize("name", [name for name, entry in RULES.items() if entry.lossless])
def test_lossless_rules_pass(name):
    found = check_rule(RULES[name].text, cases=120, seed=3)
    assert found.counterexample is None
    assert found.cases + found.left_out == 120
    assert found.cases > 100


@pytest.mark.parametrize("name", [name for name, entry in RULES.items() if not entry.lossless])
@pytest.mark.parametrize("seed", [0, 1])
def test_lossy_rules_are_shown_on_a_pair_of_two_tokens(name, seed):
    one = check_rule(find_text(name), seed=seed).counterexample
    assert one.case.draft_length == one.case.length == 1
    assert len(one.case.target[0]) == 2
    assert one.total_variation > 0


def second_block_only(model, choose) -> Emitted:
    """Be wrong at the second draft of a call alone."""
    emitted = token(model, choose)
    if emitted.accepted >= 2:
        return Emitted((*emitted.tokens[:-1], choose(model.draft((), 0))), emitted.accepted)
    return emitted


def wrong_after_token_1(model, choose) -> Emitted:
    """Be wrong in one context alone: behind a kept token 1."""
    draft = choose(model.draft((), 0))
    p, q = model.p(()), model.q((), 0)
    if not choose.coin(p[draft], q[draft]):
        return Emitted((choose([max(a - b, Fraction(0)) for a, b in zip(p, q, strict=True)]),), 0)
    if model.ended((draft,)):
        return Emitted((draft,), 1)
    after = (draft,) if draft != 1 else ()
    return Emitted((draft, choose(model.target(after))), 1)


@pytest.mark.parametrize(("text", "K"), [(second_block_only, 2), (wrong_after_token_1, 1)])
def test_a_fault_that_hides_is_found_and_kept_small(text, K):
    one = check_rule(text).counterexample
    assert one.case.draft_length == K
    assert all(_failure(text, case) is None for case in _smaller(one.case) if case.length > 1)
    assert (one.law != one.target).any()
    assert (exact_law(one.case.pair, text, draft_length=K, length=one.case.length) == one.law).all()
    right = exact_law(one.case.pair, no_drafts, draft_length=1, length=one.case.length)
    assert (right == one.target).all()


def divides(model, choose) -> Emitted:
    p, q = model.p(()), model.q((), 0)
    choose.coin(p[0] / q[0])  # where q = 0 this fails
    return Emitted((choose(model.target(())),), 0)


def test_what_a_rule_raises_is_a_finding():
    one = check_rule(divides).counterexample
    assert one.error.startswith("ZeroDivisionError")
    assert one.law is one.target is one.total_variation is None
    assert one.case.draft[0][0] == 0


def many(model, choose) -> Emitted:
    for _ in range(30):
        choose.coin(1, 2)
    return no_drafts(model, choose)


def test_a_rule_too_large_for_every_pair_is_refused():
    with pytest.raises(InputError, match="more than 20,000 branches for a call on every case"):
        check_rule(many, cases=5)
    with pytest.raises(InputError, match="cases=0"):
        check_rule(token, cases=0)


def test_progress_ends_at_the_number_of_cases():
    seen = []
    check_rule(token, cases=7, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(n, 7) for n in range(8)]


def test_smaller_cases_are_smaller():
    case = Case(((3, 1, 2), (1, 1, 1)), ((1, 0, 2), (2, 2, 1)), ((0, 1, 1), (1, 0, 0)), False, 2, 2)
    smaller = list(_smaller(case))
    assert all(one.size < case.size for one in smaller)
    assert replace(case, draft_length=1) in smaller
    assert list(_smaller(Case(((1, 0),), ((1, 0),), ((0, 0),), False, 1, 1))) == []
