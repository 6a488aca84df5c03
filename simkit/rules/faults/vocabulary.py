"""Faults of the vocabulary: tokens that one side lacks, rows that are no laws, and tokens without weight."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from simkit.laws.rows import IntRows
from simkit.rules.chain import Chain
from simkit.rules.choose import Block, Choose, Emitted
from simkit.rules.faults.call import token_step
from simkit.rules.faults.fault import Fault, weights
from simkit.rules.faults.word import FLOAT32_WORDS
from simkit.rules.step import Step, scaled, token_rule

_TOKEN = Chain(token_rule)


def _nan_row(target: IntRows, draft: IntRows) -> Step:
    zeros = np.zeros_like(draft)
    zeros[:, 0] = 1
    return replace(
        token_rule(target, draft), accept=(np.zeros_like(draft), np.ones_like(draft)), correct=zeros
    )


def _unknown_becomes_zero(model: Block, choose: Choose) -> Emitted:
    tokens, accepted = _TOKEN(model, choose)
    return Emitted(tuple(token % (model.pair.vocabulary - 1 or 1) for token in tokens), accepted)


def _cut(target: IntRows, draft: IntRows) -> Step:
    shared = np.where(draft > 0, target, 0)
    return token_step(np.where(shared.any(axis=-1, keepdims=True), shared, target), draft)


def _drawn_from_zero(rows: IntRows) -> IntRows:
    """Return how many of the numbers u = k / 2**24 draw each token, as the first with u <= running sum."""
    cumulated = np.cumsum(scaled(rows, FLOAT32_WORDS), axis=-1) // rows.sum(axis=-1, keepdims=True)
    words: IntRows = np.diff(cumulated, axis=-1, prepend=0)
    words[:, 0] += 1  # k = 0
    last = (cumulated == FLOAT32_WORDS).argmax(axis=-1)
    words[np.arange(len(words)), last] -= 1  # there is no k = 2**24
    return words


def _zero_word(target: IntRows, draft: IntRows) -> Step:
    step = token_rule(target, draft)
    return replace(step, correct=_drawn_from_zero(step.correct), bonus=_drawn_from_zero(target))


FAULTS = (
    Fault(
        "nan-row-becomes-token-zero",
        "support",
        "a draft row of NaN refuses every draft, and the replacement is token 0 whatever the target",
        "accept: 0 instead of min(1, p / q); correct: token 0 instead of max(p - q, 0)",
        "vllm-project/vllm #41834",
        Chain(_nan_row),
        weights([0, 97, 3], [0, 97, 3]),
    ),
    Fault(
        "unknown-token-becomes-zero",
        "support",
        "a token that the output's vocabulary lacks, here the last one, comes out as token 0",
        "output: token 0 instead of the last token",
        "vllm-project/vllm #38174",
        _unknown_becomes_zero,
        weights([0, 97, 3], [0, 97, 3]),
    ),
    Fault(
        "target-cut-to-draft-vocabulary",
        "law",
        "the target's row is cut to the tokens that the draft has",
        "p: without the tokens where q = 0 instead of p, for every token",
        "vllm-project/vllm #5203, #7252, #10913, #42775; ggml-org/llama.cpp #3812",
        Chain(_cut),
        weights([5, 2, 3], [1, 1, 0]),
    ),
    Fault(
        "zero-word-draws-first-token",
        "support",
        "tokens are drawn by u <= running sum, so u = 0 draws token 0, also where it has no weight",
        "correct and bonus: the words k / 2**24 that draw each token instead of its probability",
        "pytorch/pytorch #48841; #192577 is a kin, by a NaN that wins the race",
        Chain(_zero_word),
        weights([0, 1], [1, 0]),
        seen_by="inject u = 0; it takes 2**24 draws to meet one",
    ),
)
"""Faults of the vocabulary."""
