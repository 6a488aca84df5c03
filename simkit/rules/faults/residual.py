"""Faults of the replacement: a refused draft is replaced from another law than the residual."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from simkit.laws.portable import exp
from simkit.laws.rows import TOTAL, IntRows, common
from simkit.rules.chain import Chain
from simkit.rules.choose import Block, Choose, Emitted
from simkit.rules.faults.call import Tokens, excess, keep, slot_by_slot
from simkit.rules.faults.fault import Fault, weights
from simkit.rules.single import one_hot
from simkit.rules.step import Step, one_hot_rows, ratio, residual, token_rule

_TWO_TOKENS = weights([1, 6, 3], [6, 2, 2])
"""The residual has two tokens; with one alone its weights do not matter."""


def replace_from_target(target: IntRows, draft: IntRows) -> Step:
    """Return a broken rule: the token rule with replacements drawn from p instead of the residual.

    It emits min(p, q) + TV(p, q) p, too often what the draft likes. It is the negative control of every
    lossless test here: a test that nobody has seen reject says nothing.

    Parameters
    ----------
    target, draft : int64 arrays, shape (C, V)
        Weights of p and q, paired row by row.

    References
    ----------
    Reported for a public trainer as "on rejection resample from p" (Spec-RL issue 14).

    Examples
    --------
    >>> [str(f) for f in replace_from_target(np.array([[5, 3, 2]]), np.array([[2, 3, 5]])).law()]
    ['7/20', '39/100', '13/50']
    """
    p, q = common(target, draft)
    return Step(draft, ratio(p, q), target, target)


def _from_draft(target: IntRows, draft: IntRows) -> Step:
    return replace(token_rule(target, draft), correct=draft)


def _by_softmax(target: IntRows, draft: IntRows) -> Step:
    p, q = common(target, draft)
    clamped = np.maximum(p - q, 0) / p.sum(axis=-1, keepdims=True)
    units = np.rint(exp(clamped) * TOTAL).astype(np.int64)
    return replace(token_rule(target, draft), correct=units)


def _reversed(target: IntRows, draft: IntRows) -> Step:
    p, q = common(target, draft)
    return replace(token_rule(target, draft), correct=residual(q, p))


def _absolute(target: IntRows, draft: IntRows) -> Step:
    p, q = common(target, draft)
    apart = abs(p - q)
    return replace(token_rule(target, draft), correct=np.where(apart.any(axis=-1, keepdims=True), apart, p))


def _argmax(target: IntRows, draft: IntRows) -> Step:
    step = token_rule(target, draft)
    return replace(step, correct=one_hot_rows(step.correct))


def _from_others(target: IntRows, draft: IntRows) -> Step:
    return replace(one_hot(target, draft), accept=token_rule(target, draft).accept)


def _drawn_again(target: IntRows, draft: IntRows) -> Step:
    return replace(one_hot(target, draft), redraw_refused=False)


def _match_then_residual(target: IntRows, draft: IntRows) -> Step:
    return replace(token_rule(target, draft), accept=one_hot(target, draft).accept)


def _of_first_slot(model: Block, choose: Choose) -> Emitted:
    def judge(kept: Tokens) -> tuple[int, bool]:
        p, q = model.p(kept), model.q(kept, len(kept))
        draft = choose(q)
        if keep(choose, p[draft], q[draft]):
            return draft, True
        return choose(excess(model.p(()), model.q((), 0))), False

    return slot_by_slot(model, choose, judge)


FAULTS = (
    Fault(
        "replace-from-target",
        "law",
        "the replacement of a refused draft is drawn from p, not from the residual",
        "correct: p instead of max(p - q, 0)",
        "ShopeeLLM/Spec-RL #14",
        Chain(replace_from_target),
    ),
    Fault(
        "replace-from-draft",
        "law",
        "the replacement of a refused draft is drawn from q",
        "correct: q instead of max(p - q, 0)",
        "code pattern",
        Chain(_from_draft),
    ),
    Fault(
        "replace-from-others",
        "law",
        "the replacement is drawn from p given other than the draft, right only for drafts without a law",
        "correct: p without the refused token instead of max(p - q, 0)",
        "code pattern",
        Chain(_from_others),
    ),
    Fault(
        "residual-by-softmax",
        "law",
        "the residual is normalised by a softmax, which gives weight to every token",
        "correct: exp(max(p - q, 0)), in units of 2**-40, instead of max(p - q, 0)",
        "huggingface/transformers #28508",
        Chain(_by_softmax),
    ),
    Fault(
        "residual-reversed",
        "law",
        "the residual is taken the wrong way round",
        "correct: max(q - p, 0) instead of max(p - q, 0)",
        "code pattern",
        Chain(_reversed),
    ),
    Fault(
        "residual-absolute",
        "law",
        "the residual is made positive by its absolute value",
        "correct: |p - q| instead of max(p - q, 0)",
        "code pattern",
        Chain(_absolute),
    ),
    Fault(
        "residual-argmax",
        "law",
        "the replacement is the residual's most likely token",
        "correct: the argmax of max(p - q, 0) instead of a draw from it",
        "code pattern",
        Chain(_argmax),
        _TWO_TOKENS,
    ),
    Fault(
        "residual-of-first-slot",
        "law",
        "the residual is computed once a call, and serves every slot",
        "correct: max(p - q, 0) by the rows of slot 0 instead of the slot's own",
        "code pattern",
        _of_first_slot,
        weights([[1, 1], [2, 1]], [[1, 1], [1, 2]]),
        draft_length=2,
        length=2,
    ),
    Fault(
        "refused-draft-drawn-again",
        "law",
        "a draft without a law is kept with p, and its replacement may be the same token again",
        "correct: p instead of p without the refused token",
        "z-lab/dflash #74, ml-explore/mlx-swift-lm #459 as a wrong remedy; code pattern for one-hot drafts",
        Chain(_drawn_again),
        weights([5, 3, 2], [0, 1, 0]),
    ),
    Fault(
        "match-then-residual",
        "law",
        "a draft is kept when the target draws it, and else replaced from the residual of the token rule, as "
        "if a coin were compared with p",
        "accept: p instead of min(1, p / q)",
        "z-lab/dflash #74, ml-explore/mlx-swift-lm #459 as a wrong remedy",
        Chain(_match_then_residual),
    ),
)
"""Faults of the replacement."""
