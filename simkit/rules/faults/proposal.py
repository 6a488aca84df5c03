"""Faults of the proposal: the draft is not drawn from the law that its test and its residual take it from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from simkit.laws.logits import rows_from_logits
from simkit.laws.pair import Pair
from simkit.laws.portable import log, rounded
from simkit.laws.rows import IntRows, common
from simkit.rules.chain import Chain
from simkit.rules.choose import Block, Choose, Emitted
from simkit.rules.faults.call import Tokens, excess, keep, misread, slot_by_slot
from simkit.rules.faults.fault import Fault, weights
from simkit.rules.step import Law, Step, one_hot_rows, residual, token_rule

_BFLOAT16_BITS = 8
_LEAST_LOGIT = 4.0


def _argmax(target: IntRows, draft: IntRows) -> Step:
    return replace(token_rule(target, draft), propose=one_hot_rows(draft))


def _truncated(target: IntRows, draft: IntRows) -> Step:
    most = max(1, 3 * draft.shape[-1] // 4)
    return replace(token_rule(target, draft), propose=likeliest(draft, most))


def likeliest(rows: IntRows, most: int) -> IntRows:
    """Return rows without all but their likeliest tokens, the lowest of equal ones first.

    Parameters
    ----------
    rows : int64 array, shape (C, V)
        Weights.
    most : int
        Tokens to leave, 1 or more.

    Examples
    --------
    >>> likeliest(np.array([[1, 3, 2, 2]]), 2)
    array([[0, 3, 2, 0]])
    """
    rank = np.argsort(np.argsort(-rows, axis=-1, kind="stable"), axis=-1, kind="stable")
    return np.where(rank < most, rows, 0)


def _bfloat16(target: IntRows, draft: IntRows) -> Step:
    # Logits are known up to a constant; with the least of them at 4 the steps of bfloat16 are 1/32 and more.
    least = np.where(draft > 0, draft, draft.max()).min(axis=-1, keepdims=True)
    logits = log(draft / least) + _LEAST_LOGIT
    return replace(token_rule(target, draft), propose=rows_from_logits(rounded(logits, _BFLOAT16_BITS)))


def _bfloat16_pair() -> Pair:
    draft = rows_from_logits([5.015, 4.0])
    return Pair.from_weights(np.full_like(draft, draft.sum() // 2), draft)


def _other_ids(target: IntRows, draft: IntRows) -> Step:
    p, q = common(target, np.roll(draft, 1, axis=-1))
    missing = q == 0
    test = np.where(missing, np.minimum(p, 1), p), np.where(missing, 1, q)
    return Step(draft, test, residual(p, q), target)


def _previous_slot(model: Block, kept: Tokens) -> Law:
    return model.q(kept[:-1], max(len(kept) - 1, 0))


def _unlikely_discarded(model: Block, choose: Choose) -> Emitted:
    def judge(kept: Tokens) -> tuple[int, bool]:
        p, q = model.p(kept), model.q(kept, len(kept))
        draft = choose(q)
        if 2 * q[draft] < max(q):
            return choose(p), False
        if keep(choose, p[draft], q[draft]):
            return draft, True
        return choose(excess(p, q)), False

    return slot_by_slot(model, choose, judge)


FAULTS = (
    Fault(
        "argmax-reported-as-softmax",
        "law",
        "the draft is the draft model's most likely token, and the test takes it as drawn from q",
        "propose: the argmax of q instead of q",
        "huggingface/transformers #32867, #30778, #28166; jaymody/speculative-sampling #3, #4; "
        "alibaba/rtp-llm #1311, #1295; xllm #2175; apple/ml-recurrent-drafter #6 for beam search",
        Chain(_argmax),
        weights([6, 4], [8, 2]),
    ),
    Fault(
        "draft-truncated-after-recording",
        "law",
        "the draft is drawn behind a top-k filter, and the test reads the row in front of it",
        "propose: the likeliest three quarters of the tokens instead of q",
        "huggingface/transformers #47932, #47961",
        Chain(_truncated),
        weights([5, 3, 2, 0], [4, 3, 2, 1]),
    ),
    Fault(
        "draft-drawn-in-bfloat16",
        "law",
        "the draft is drawn from logits in bfloat16, and the test reads them in float32",
        "propose: the law of q's logits, the least at 4, rounded to 8 bits, instead of q",
        "deepseek-ai/DeepSpec #31, #30",
        Chain(_bfloat16),
        _bfloat16_pair,
    ),
    Fault(
        "draft-ids-not-remapped",
        "law",
        "the draft's row is read by ids of another vocabulary: each token finds its neighbour's probability",
        "accept and correct: q moved by one token instead of q; kept where that is 0",
        "alibaba/rtp-llm #1311; xllm #2175",
        Chain(_other_ids),
        weights([1, 2], [2, 1]),
    ),
    Fault(
        "draft-row-of-previous-slot",
        "law",
        "the buffer of draft rows is read too early: a slot finds the row of the slot before it",
        "accept and correct: q of the slot before instead of q",
        "sgl-project/sglang #37134 for a recycled buffer",
        misread(recorded=_previous_slot),
        weights([[5, 3, 2], [5, 3, 2]], [[5, 3, 2], [2, 3, 5]]),
        draft_length=2,
        length=2,
    ),
    Fault(
        "unlikely-draft-discarded",
        "law",
        "a draft that q finds unlikely is dropped unjudged, and the target draws in its place",
        "propose: where the draft is less than half as likely as the likeliest, p emits and the call ends",
        "ikawrakow/ik_llama.cpp #1820 and ggml-org/llama.cpp #22506, where sampled-match keeps it lossless; "
        "code pattern with the token rule",
        _unlikely_discarded,
    ),
)
"""Faults of the proposal."""
