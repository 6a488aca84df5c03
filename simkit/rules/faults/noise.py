"""Faults of randomness: a random word or a noise that is read more than once.

Each reading alone has the right law, so tests of one token at a time may see nothing. Where the words of a
whole run are frozen, the texts here show what that does inside one call.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from simkit.rules.block import block
from simkit.rules.choose import Block, Choose, Emitted, normalised
from simkit.rules.coupling import Weights
from simkit.rules.faults.call import Tokens, excess, keep, slot_by_slot
from simkit.rules.faults.fault import Fault, weights
from simkit.rules.faults.word import Word

_EQUAL = weights([5, 3, 2], [5, 3, 2])
"""Every draft is kept, so that marginals stay exact."""


def _quantile_frozen(model: Block, choose: Choose) -> Emitted:
    word = Word(choose)

    def judge(kept: Tokens) -> tuple[int, bool]:
        draft, token = word.index(model.q(kept, len(kept))), word.index(model.p(kept))
        return token, token == draft

    return slot_by_slot(model, choose, judge, lambda kept: word.index(model.p(kept)))


def _draft_noise_frozen(model: Block, choose: Choose) -> Emitted:
    word = Word(choose)

    def judge(kept: Tokens) -> tuple[int, bool]:
        p, q = model.p(kept), model.q(kept, len(kept))
        draft = word.index(q)
        if keep(choose, p[draft], q[draft]):
            return draft, True
        return choose(excess(p, q)), False

    return slot_by_slot(model, choose, judge)


def _coin_shared(model: Block, choose: Choose) -> Emitted:
    word = Word(choose)

    def judge(kept: Tokens) -> tuple[int, bool]:
        p, q = model.p(kept), model.q(kept, len(kept))
        draft = choose(q)
        if word.coin(p[draft] / q[draft]):
            return draft, True
        return choose(excess(p, q)), False

    return slot_by_slot(model, choose, judge)


def _gumbel_reused(model: Block, choose: Choose) -> Emitted:
    def judge(kept: Tokens) -> tuple[int, bool]:
        p, q = model.p(kept), model.q(kept, len(kept))
        draft, replacement = choose.race(q, excess(p, q))
        is_kept = keep(choose, p[draft], q[draft])
        return (draft if is_kept else replacement), is_kept

    return slot_by_slot(model, choose, judge)


def _coin_replaces(model: Block, choose: Choose) -> Emitted:
    def judge(kept: Tokens) -> tuple[int, bool]:
        p, q = model.p(kept), model.q(kept, len(kept))
        draft, word = choose(q), Word(choose)
        if word.coin(p[draft] / q[draft]):
            return draft, True
        return word.index(normalised(excess(p, q))), False

    return slot_by_slot(model, choose, judge)


def _draft_word_is_coin(model: Block, choose: Choose) -> Emitted:
    def judge(kept: Tokens) -> tuple[int, bool]:
        p, q = model.p(kept), model.q(kept, len(kept))
        word = Word(choose)
        draft = word.index(q)
        if word.coin(p[draft] / q[draft]):
            return draft, True
        return choose(excess(p, q)), False

    return slot_by_slot(model, choose, judge)


def _coin_draws_bonus(model: Block, choose: Choose) -> Emitted:
    word = Word(choose)

    def judge(kept: Tokens) -> tuple[int, bool]:
        nonlocal word
        p, q = model.p(kept), model.q(kept, len(kept))
        draft, word = choose(q), Word(choose)
        if word.coin(p[draft] / q[draft]):
            return draft, True
        return choose(excess(p, q)), False

    return slot_by_slot(model, choose, judge, lambda kept: word.index(model.p(kept)))


class _ByPosition:
    """Answers coins of block verification by one word for each position of the output.

    Block verification throws the coin of the whole block first, at the last of its positions.
    """

    def __init__(self, choose: Choose, words: dict[int, Word], last: int) -> None:
        self._choose, self._words, self._at = choose, words, last

    def __call__(self, weights: Weights) -> int:
        return self._choose(weights)

    def along(self, weights: Weights, order: Sequence[int] | None = None) -> int:
        return self._choose.along(weights, order)

    def race(self, q: Weights, r: Weights) -> tuple[int, int]:
        return self._choose.race(q, r)

    def coin(self, numerator: int | Fraction, denominator: int | Fraction = 1) -> bool:
        word = self._words.setdefault(self._at, Word(self._choose))
        self._at -= 1
        return word.coin(Fraction(numerator) / denominator)


def _words_reread(model: Block, choose: Choose) -> Emitted:
    K, words = model.draft_length, dict[int, Word]()
    first = block(model, _ByPosition(choose, words, K - 1))
    start = len(first.tokens)
    if start > K or model.ended(first.tokens):
        return first
    second = block(
        Block(model.pair, model.state_after(first.tokens), K), _ByPosition(choose, words, start + K - 1)
    )
    return Emitted((*first.tokens, *second.tokens)[: K + 1], first.accepted)


FAULTS = (
    Fault(
        "quantile-frozen",
        "joint",
        "the generator's state is frozen or replayed, so every draw takes the same quantile",
        "one word for all draws of a call; sampled-match otherwise",
        "NVIDIA/TensorRT-LLM #19505, #17599, #17172; NVIDIA/TensorRT-Edge-LLM #212; kekzl/imp #2013",
        _quantile_frozen,
        _EQUAL,
        length=2,
    ),
    Fault(
        "draft-noise-frozen",
        "joint",
        "the draft model draws with the same noise at every slot",
        "propose: one word for all slots of a call instead of one for each",
        "code pattern",
        _draft_noise_frozen,
        _EQUAL,
        draft_length=2,
        length=2,
    ),
    Fault(
        "uniform-shared-over-positions",
        "law",
        "one uniform number serves the coins of all slots: a draft that is kept by luck brings on the next",
        "accept: one u for all slots of a call instead of one for each",
        "code pattern",
        _coin_shared,
        draft_length=2,
        length=2,
    ),
    Fault(
        "gumbel-noise-reused",
        "law",
        "the Gumbel noise that drew the draft also draws its replacement",
        "correct: the winner under max(p - q, 0) of the draft's noise instead of a fresh one",
        "vllm-project/vllm #47386, #54282; local-inference-lab/vllm #653, #205, #209; "
        "vllm-project/vllm-ascend #15739",
        _gumbel_reused,
        weights([1, 6, 3], [6, 2, 2]),
    ),
    Fault(
        "coin-word-draws-replacement",
        "law",
        "the uniform number that refused the draft also draws its replacement, by running sums",
        "correct: u given that it refused the draft instead of a fresh one",
        "code pattern",
        _coin_replaces,
        weights([1, 6, 3], [6, 2, 2]),
    ),
    Fault(
        "draft-word-is-coin",
        "law",
        "the uniform number that drew the draft, by running sums, is also its coin",
        "accept: u given the draft instead of a fresh one",
        "code pattern",
        _draft_word_is_coin,
        weights([1, 2], [2, 1]),
    ),
    Fault(
        "coin-word-draws-bonus",
        "law",
        "the uniform number that kept the last draft also draws the bonus token, by running sums",
        "bonus: u given that it kept the draft instead of a fresh one",
        "code pattern",
        _coin_draws_bonus,
        weights([1, 2], [2, 1]),
        length=2,
    ),
    Fault(
        "words-reread-in-next-call",
        "law",
        "random words are addressed by position, so block verification reads those of refused drafts again",
        "accept: u given what an earlier call read of it instead of a fresh one; two calls in one here",
        "code pattern",
        _words_reread,
        weights([[1, 2], [1, 1], [0, 1]], [[2, 1], [2, 1], [1, 1]]),
        draft_length=2,
        length=2,
    ),
)
"""Faults of randomness."""
