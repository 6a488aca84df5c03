"""Faults of rules with two drafts at a slot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from simkit.laws.rows import IntRows, common
from simkit.rules import tries
from simkit.rules.chain import Chain
from simkit.rules.choose import Block, Choose, Emitted, Text, normalised
from simkit.rules.faults.call import Tokens, excess, slot_by_slot
from simkit.rules.faults.fault import Fault, weights
from simkit.rules.step import Law, Step, ratio, residual, token_rule

_FOUR = weights([10, 6, 3, 1], [1, 2, 3, 4])
_TWO_TOKENS = weights([1, 6, 3], [6, 2, 2])

_Second = Callable[[Law, int], Law]
"""The law of the second draft from q and the refused first one."""


def _again(q: Law, refused: int) -> Law:
    return q


def _without(q: Law, refused: int) -> Law:
    rest = tuple(Fraction(0) if token == refused else mass for token, mass in enumerate(q))
    return normalised(rest) if any(rest) else q


def _two_drafts(drawn: _Second, recorded: _Second) -> Text:
    """Return recursive rejection whose second draft comes from one law and is judged by another."""

    def text(model: Block, choose: Choose) -> Emitted:
        def judge(kept: Tokens) -> tuple[int, bool]:
            p, q = model.p(kept), model.q(kept, len(kept))
            first = choose(q)
            if choose.coin(p[first], q[first]):
                return first, True
            left, seen = normalised(excess(p, q)), recorded(q, first)
            second = choose(drawn(q, first))
            # A first draft that comes again has no weight left; 0 / 0 is no number, and fails every test.
            if left[second] and choose.coin(left[second], seen[second]):
                return second, True
            return choose(excess(left, seen)), False

        return slot_by_slot(model, choose, judge)

    return text


def _merged(model: Block, choose: Choose) -> Emitted:
    def judge(kept: Tokens) -> tuple[int, bool]:
        p, q = model.p(kept), model.q(kept, len(kept))
        for draft in dict.fromkeys((choose(q), choose(q))):
            if choose.coin(p[draft], q[draft]):
                return draft, True
            p = normalised(excess(p, q))
        return choose(p), False

    return slot_by_slot(model, choose, judge)


def _against_target(target: IntRows, draft: IntRows) -> Step:
    test = ratio(*common(target, draft))
    return replace(token_rule(target, draft), again=(test,))


def _after_first(target: IntRows, draft: IntRows) -> Step:
    return replace(tries.with_replacement(2)(target, draft), correct=residual(*common(target, draft)))


FAULTS = (
    Fault(
        "drafts-differ-judged-as-independent",
        "law",
        "the second draft never repeats the first, and is judged as if it could",
        "propose: q without the refused draft instead of q at the second draft",
        "code pattern",
        _two_drafts(_without, _again),
        _FOUR,
    ),
    Fault(
        "drafts-independent-judged-as-different",
        "law",
        "the second draft may repeat the first, and is judged as if it could not",
        "accept and correct: q without the refused draft instead of q at the second draft",
        "code pattern",
        _two_drafts(_again, _without),
        _FOUR,
    ),
    Fault(
        "equal-drafts-judged-once",
        "law",
        "equal drafts are merged into one candidate before they are judged",
        "accept: one test where both drafts are the same instead of two",
        "code pattern",
        _merged,
        _TWO_TOKENS,
    ),
    Fault(
        "second-draft-against-target",
        "law",
        "the second draft is judged against p, not against what the first one left",
        "accept and correct: p instead of max(p - q, 0) at the second draft",
        "code pattern",
        Chain(_against_target),
        weights([1, 2], [2, 1]),
    ),
    Fault(
        "residual-of-first-draft",
        "law",
        "the replacement behind two refused drafts is drawn from the residual of the first",
        "correct: max(p - q, 0) instead of what both drafts left",
        "code pattern",
        Chain(_after_first),
        _TWO_TOKENS,
    ),
)
"""Faults of rules with two drafts."""
