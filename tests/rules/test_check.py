"""The check of one's own rule: right ones pass, broken ones are shown on a pair that cannot be smaller."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from simkit.errors import InputError, TooLargeError
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
    assert one.error.startswith("the rule raised ZeroDivisionError")
    assert one.law is one.target is one.total_variation is None
    assert one.case.draft[0][0] == 0


def many(model, choose) -> Emitted:
    for _ in range(30):
        choose.coin(1, 2)
    return no_drafts(model, choose)


def hides_behind_branches(model, choose) -> Emitted:
    """Emit the draft, and be too large to be looked at wherever that shows."""
    if model.pair.vocabulary > 1:
        return many(model, choose)
    return Emitted((choose(model.draft((), 0)),), 1)


def says_it_is_too_large(model, choose) -> Emitted:
    if model.pair.vocabulary > 1:
        raise TooLargeError("not for you")
    return no_drafts(model, choose)


def test_a_rule_that_is_too_large_has_not_passed():
    found = check_rule(many, cases=5)
    assert (found.cases, found.left_out, found.counterexample, found.enough) == (0, 5, None, False)
    hidden = check_rule(hides_behind_branches, cases=60)
    assert hidden.counterexample is None
    assert (hidden.cases > 0, hidden.telling, hidden.enough) == (True, 0, False)
    assert "TooLargeError: not for you" in check_rule(says_it_is_too_large).counterexample.error
    assert check_rule(token, cases=60).enough


@pytest.mark.parametrize("wrong", [{"cases": 0}, {"cases": 100_001}, {"seed": -1}])
def test_a_check_out_of_range_is_refused(wrong):
    with pytest.raises(InputError, match="|".join(f"{name}={value}" for name, value in wrong.items())):
        check_rule(token, **wrong)


def first_slots_row(model, choose) -> Emitted:
    """Judge every draft by the draft row of the first slot."""
    kept = ()
    while len(kept) < model.draft_length:
        p, q = model.p(kept), model.q(kept, 0)
        draft = choose(model.q(kept, len(kept)))
        if not choose.coin(p[draft], q[draft] or 1):
            excess = [max(a - b, Fraction(0)) for a, b in zip(p, q, strict=True)]
            return Emitted((*kept, choose(excess if any(excess) else p)), len(kept))
        kept += (draft,)
        if model.ended(kept):
            return Emitted(kept, len(kept))
    return Emitted((*kept, choose(model.target(kept))), len(kept))


def goes_on_behind_the_end(model, choose) -> Emitted:
    """Draw the bonus token from the draft where the pair has an end."""
    emitted = token(model, choose)
    if model.pair.end is None or emitted.accepted < model.draft_length or model.ended(emitted.tokens[:-1]):
        return emitted
    return Emitted((*emitted.tokens[:-1], choose(model.draft(emitted.tokens[:-1], 0))), emitted.accepted)


def wrong_with_four_tokens(model, choose) -> Emitted:
    if model.pair.vocabulary < 4:
        return no_drafts(model, choose)
    return Emitted((choose(model.draft((), 0)),), 1)


def wrong_at_the_next_call(model, choose) -> Emitted:
    """Be right in the state where a decode starts, and wrong where only a later call begins."""
    if model.state == 0:
        return no_drafts(model, choose)
    return Emitted((choose(model.draft((), 0)),), 1)


@pytest.mark.parametrize(
    ("text", "shows"),
    [
        (first_slots_row, lambda case: case.slots > 1),
        (goes_on_behind_the_end, lambda case: case.ends),
        (wrong_with_four_tokens, lambda case: len(case.target[0]) == 4),
        (wrong_at_the_next_call, lambda case: len(case.target) > 1 and case.length > 1),
    ],
)
def test_the_cases_reach_every_corner(text, shows):
    assert shows(check_rule(text).counterexample.case)


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
