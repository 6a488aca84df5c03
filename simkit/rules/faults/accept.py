"""Faults of the accept test: drafts are kept too often, too seldom, or by the wrong number."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from simkit.laws.rows import IntRows, common
from simkit.rules import lossy
from simkit.rules.chain import Chain
from simkit.rules.faults.fault import Fault, weights
from simkit.rules.faults.word import FLOAT32_WORDS
from simkit.rules.single import greedy
from simkit.rules.step import Step, one_hot_rows, ratio, scaled, token_rule


def _total(rows: IntRows) -> IntRows:
    return np.broadcast_to(rows.sum(axis=-1, keepdims=True), rows.shape)


def _always(target: IntRows, draft: IntRows) -> Step:
    one = np.ones_like(draft)
    return replace(token_rule(target, draft), accept=(one, one))


def _inverted(target: IntRows, draft: IntRows) -> Step:
    p, q = common(target, draft)
    return replace(token_rule(target, draft), accept=ratio(q, p))


def _swapped(target: IntRows, draft: IntRows) -> Step:
    return replace(token_rule(draft, target), propose=draft)


def _larger(target: IntRows, draft: IntRows) -> Step:
    p, q = common(target, draft)
    return replace(token_rule(target, draft), accept=((p >= q).astype(np.int64), np.ones_like(p)))


def _by_likeliest(target: IntRows, draft: IntRows) -> Step:
    most = np.broadcast_to(target.max(axis=-1, keepdims=True), target.shape)
    return replace(token_rule(target, draft), accept=(target, most))


def _match_or_ratio(target: IntRows, draft: IntRows) -> Step:
    p, q = (rows.astype(object) for rows in common(target, draft))
    matched, ratio_of = p * q, (_total(p) - p) * np.minimum(p, q)  # against q times the total
    test = ratio(matched + ratio_of, q * _total(p))
    return replace(token_rule(target, draft), accept=test)


def _coin_reaches_zero(target: IntRows, draft: IntRows) -> Step:
    p, q = ratio(*common(target, draft))
    met = scaled(p, FLOAT32_WORDS) // q + 1  # the words k with k / 2**24 <= p / q
    return replace(token_rule(target, draft), accept=(met, np.full_like(q, FLOAT32_WORDS)))


def _argmax_but_bonus(target: IntRows, draft: IntRows) -> Step:
    return replace(token_rule(one_hot_rows(target), draft), bonus=target)


FAULTS = (
    Fault(
        "always-accept",
        "law",
        "every draft is kept",
        "accept: 1 instead of min(1, p / q)",
        "huggingface/transformers #28508, where the number of matches was always K; code pattern",
        Chain(_always),
    ),
    Fault(
        "lenient-acceptance",
        "law",
        "a lenience below 1 is left on",
        "accept: min(1, 2 p / q) instead of min(1, p / q)",
        "code pattern",
        Chain(lossy.lenience("1/2")),
    ),
    Fault(
        "threshold-acceptance",
        "law",
        "an acceptance threshold below 1 is left on",
        "accept: min(1, 2 p) instead of p, for drafts without a law",
        "code pattern: SGLang's speculative_accept_threshold_acc at 0.5",
        Chain(lossy.thresholds(acc="1/2")),
        weights([5, 3, 2], [0, 0, 1]),
    ),
    Fault(
        "typical-acceptance",
        "law",
        "drafts that are typical of the target are kept for certain",
        "accept: whether p is above min(0.09, 0.3 exp(-entropy)); correct: p",
        "code pattern: Medusa's typical acceptance",
        Chain(lossy.typical()),
        weights([5, 3, 2], [0, 0, 1]),
    ),
    Fault(
        "ratio-inverted",
        "law",
        "the ratio in the accept test is upside down",
        "accept: min(1, q / p) instead of min(1, p / q)",
        "code pattern",
        Chain(_inverted),
    ),
    Fault(
        "arguments-swapped",
        "law",
        "the verifier is given the two models' rows the wrong way round",
        "accept: min(1, q / p); correct: max(q - p, 0); bonus: q",
        "code pattern",
        Chain(_swapped),
    ),
    Fault(
        "accept-where-target-is-larger",
        "law",
        "the accept test has no coin: a draft is kept where p >= q",
        "accept: whether p >= q instead of min(1, p / q)",
        "code pattern",
        Chain(_larger),
    ),
    Fault(
        "accept-by-likeliest",
        "law",
        "the target's largest probability stands in for the draft's",
        "accept: p / max(p) instead of min(1, p / q)",
        "1bit-MONSTER/1bit-MONSTER #637",
        Chain(_by_likeliest),
    ),
    Fault(
        "match-or-ratio",
        "law",
        "a draft has two chances: it is kept when the target draws it, and else by the coin",
        "accept: p + (1 - p) min(1, p / q) instead of min(1, p / q)",
        "alibaba/rtp-llm #1295",
        Chain(_match_or_ratio),
    ),
    Fault(
        "coin-reaches-zero",
        "support",
        "the coin is compared with <=, so a draft that the target never emits is kept when the coin is 0",
        "accept: u <= p / q instead of u < p / q, for u a multiple of 2**-24",
        "sgl-project/sglang #35771",
        Chain(_coin_reaches_zero),
        weights([1, 0], [0, 1]),
        seen_by="inject u = 0; it takes 2**24 coins to meet one",
    ),
    Fault(
        "argmax-verification",
        "law",
        "verification falls back to the target's most likely token at every temperature",
        "p: its argmax instead of p, for every token",
        "sgl-project/sglang #31214, #32922, #37134, #39253; flexflow-serve #10, #1302",
        Chain(greedy),
    ),
    Fault(
        "argmax-but-bonus",
        "law",
        "all drafts are verified against the target's most likely token; only the bonus token is drawn",
        "accept and correct: the argmax of p instead of p",
        "ROCm/ATOM #2318",
        Chain(_argmax_but_bonus),
    ),
)
"""Faults of the accept test."""
