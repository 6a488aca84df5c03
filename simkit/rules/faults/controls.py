"""Positive controls: rules that look wrong, and some that were reported as wrong, but lose nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from simkit.laws.rows import IntRows
from simkit.rules import multidraft, single, tries
from simkit.rules.block import block
from simkit.rules.chain import Chain
from simkit.rules.choose import Block, Choose, Emitted
from simkit.rules.faults.call import Tokens, excess, keep, slot_by_slot, token_step
from simkit.rules.faults.fault import Control
from simkit.rules.faults.proposal import likeliest
from simkit.rules.matching import sampled_match, shared_gumbel
from simkit.rules.step import Step, token_rule

_TOKEN = Chain(token_rule)


def _no_bonus(model: Block, choose: Choose) -> Emitted:
    tokens, accepted = _TOKEN(model, choose)
    return Emitted(tokens[: model.draft_length], accepted)


def _first_only(model: Block, choose: Choose) -> Emitted:
    tokens, accepted = _TOKEN(model, choose)
    return Emitted(tokens[:1], min(accepted, 1))


def _unlikely(model: Block, kept: Tokens, draft: int) -> bool:
    q = model.q(kept, len(kept))
    return 2 * q[draft] < max(q)


def _stop_at_unlikely(model: Block, choose: Choose) -> Emitted:
    tokens: Tokens = ()
    for slot in range(model.draft_length):
        p, q = model.p(tokens), model.q(tokens, slot)
        draft = choose(q)
        if not keep(choose, p[draft], q[draft]):
            return Emitted((*tokens, choose(excess(p, q))), slot)
        last = _unlikely(model, tokens, draft)
        tokens += (draft,)
        if model.ended(tokens):
            return Emitted(tokens, slot + 1)
        if last:
            break
    return Emitted((*tokens, choose(model.p(tokens))), len(tokens))


def _unlikely_unmatched(model: Block, choose: Choose) -> Emitted:
    def judge(kept: Tokens) -> tuple[int, bool]:
        draft, token = choose(model.q(kept, len(kept))), choose(model.p(kept))
        return token, token == draft and not _unlikely(model, kept, draft)

    return slot_by_slot(model, choose, judge)


def _truncated(target: IntRows, draft: IntRows) -> Step:
    return token_step(target, likeliest(draft, 2))


def _drawn_from_target(target: IntRows, draft: IntRows) -> Step:
    one = np.ones_like(target)
    return replace(token_rule(target, target), accept=(one, 2 * one))


CONTROLS = {
    control.name: control
    for control in (
        Control(
            "sampled-match",
            "it keeps only drafts that the target draws itself, which seems to favour tokens that both like",
            "what comes out is the target's own draw, kept draft or not",
            "reported as biased in z-lab/dflash #74, ml-explore/mlx-swift-lm #459 and lablup/mlxcel #902; "
            "lablup/mlxcel #992 corrects the last",
            sampled_match,
        ),
        Control(
            "shared-gumbel",
            "draft and target read one noise",
            "what comes out is the winner under p, whatever the draft",
            "Daliri et al. 2024, arXiv 2408.07978",
            shared_gumbel,
        ),
        Control(
            "one-hot-with-sampled-draft",
            "drafts are drawn from q, and judged as if they had no law",
            "y comes out with q(y) p(y) plus (1 - q(y)) p(y), which is p(y)",
            "vllm-project/vllm #40651",
            Chain(single.one_hot),
        ),
        Control(
            "argmax-draft",
            "the draft is the draft model's most likely token at every temperature",
            "the test takes it as drawn from a one-hot law, which it is",
            "vllm-project/vllm #16899",
            Chain(single.argmax_draft),
        ),
        Control(
            "block",
            "the coin of a short prefix has little to do with min(1, p / q)",
            "at least i drafts are kept with probability w_i; see simkit.rules.block",
            "Sun et al. 2024, arXiv 2403.10444",
            block,
        ),
        Control(
            "with-replacement",
            "a second draft is judged although the first was refused",
            "it is judged against what the first one left",
            "Miao et al. 2024, arXiv 2305.09781",
            Chain(tries.with_replacement(2)),
        ),
        Control(
            "without-replacement",
            "a second draft is judged by another law than q",
            "it is drawn from that law: q without the first one",
            "Chen et al. 2024, arXiv 2402.12374",
            multidraft.without_replacement(2),
        ),
        Control(
            "target-tree",
            "the most likely tokens of q are candidates, and q takes no part in the test",
            "a candidate is kept when p draws it: the candidates are settled before anything is drawn",
            "SGLang with both thresholds at 1; EAGLE-2, reported as lossy in SafeAILab/EAGLE #329",
            multidraft.target_tree(2),
        ),
        Control(
            "draft-truncated-and-recorded",
            "the draft has a top-k filter that the target has not",
            "the test reads the row behind the filter, which the draft is drawn from",
            "code pattern",
            Chain(_truncated),
        ),
        Control(
            "no-bonus",
            "the bonus token is missing when all drafts are kept",
            "each token has its own law; whose call emits it does not matter",
            "code pattern",
            _no_bonus,
        ),
        Control(
            "first-token-only",
            "all that a call emits behind its first token is thrown away",
            "the first token of a call follows p, and the next call begins behind it",
            "code pattern",
            _first_only,
        ),
        Control(
            "stop-behind-unlikely-draft",
            "the number of drafts depends on the drafts themselves",
            "drafting stops behind an unlikely draft, which is judged like any other",
            "transformers' assistant_confidence_threshold; vllm-project/vllm #35301",
            _stop_at_unlikely,
        ),
        Control(
            "unlikely-draft-discarded-in-matching",
            "an unlikely draft is dropped unjudged, which is a fault of the token rule",
            "what comes out is the target's own draw, with or without a draft beside it",
            "ikawrakow/ik_llama.cpp #1820; ggml-org/llama.cpp #22506",
            _unlikely_unmatched,
        ),
        Control(
            "kept-by-half",
            "a fair coin refuses half of the drafts, whatever they are",
            "the draft is drawn from p, and so is its replacement",
            "code pattern: a target that drafts for itself",
            Chain(_drawn_from_target),
        ),
    )
}
"""Positive controls by name."""
