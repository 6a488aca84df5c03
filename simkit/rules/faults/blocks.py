"""Faults of block verification: the weights w, the coins h, and the residual of the block."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from simkit.rules.choose import Block, Choose, Emitted, Text
from simkit.rules.faults.call import Tokens
from simkit.rules.faults.fault import Fault, weights

_ONE = Fraction(1)


def in_blocks(
    *,
    grow: Callable[[Fraction, Fraction], Fraction] = lambda w, ratio: min(_ONE, w * ratio),
    heads: Callable[[Fraction, Fraction], Fraction] = lambda w, rest: rest / (rest + 1 - w) if rest else rest,
    weigh: Callable[[Fraction], Fraction] = lambda w: w,
    stops: bool = False,
) -> Text:
    """Return block verification with some part of it exchanged; `simkit.rules.block.block` is the right one.

    Parameters
    ----------
    grow : callable
        (w_{i-1}, p / q) to w_i, which is read as min(1, w_i).
    heads : callable
        (w_i, R_i) to the coin of a prefix that is shorter than the block.
    weigh : callable
        w_i to the weight of p in the residual.
    stops : bool
        Whether the coins are thrown from the first prefix on and the first tails ends the call; the right
        rule goes on to the last heads.

    References
    ----------
    Sun et al. 2024 (arXiv 2403.10444), algorithm 2.

    Examples
    --------
    >>> from simkit.rules.block import block
    >>> from simkit.rules.choose import walk
    >>> from simkit.rules.faults.fault import base
    >>> model = Block(base(), state=0, draft_length=2)
    >>> walk(in_blocks(), model) == walk(block, model)
    True
    """

    def text(model: Block, choose: Choose) -> Emitted:
        drafts: Tokens = ()
        w = [_ONE]
        while len(drafts) < model.draft_length and not model.ended(drafts):
            p, q = model.p(drafts), model.q(drafts, len(drafts))
            draft = choose(q)
            w.append(grow(w[-1], p[draft] / q[draft]))
            drafts += (draft,)
        w = [min(_ONE, weight) for weight in w]
        kept = 0
        for length in range(1, len(drafts) + 1):
            coin = w[length]
            if length < len(drafts):
                rest = sum(_excess(model, drafts[:length], w[length]), Fraction(0))
                coin = heads(w[length], rest)
            if choose.coin(coin):
                kept = length
            elif stops:
                break
        if kept == len(drafts):
            return Emitted(drafts if model.ended(drafts) else (*drafts, choose(model.p(drafts))), kept)
        excess = _excess(model, drafts[:kept], weigh(w[kept]))
        if not any(excess):
            excess = model.p(drafts[:kept])
        return Emitted((*drafts[:kept], choose(excess)), kept)

    return text


def _excess(model: Block, kept: Tokens, weight: Fraction) -> tuple[Fraction, ...]:
    p, q = model.p(kept), model.q(kept, len(kept))
    return tuple(max(weight * a - b, Fraction(0)) for a, b in zip(p, q, strict=True))


FAULTS = (
    Fault(
        "block-coin-is-weight",
        "law",
        "prefixes of the block are kept with w instead of h, and replaced from the token rule's residual",
        "coin of a prefix: w instead of R / (R + 1 - w); correct: max(p - q, 0) instead of max(w p - q, 0)",
        "vllm-project/vllm-ascend #7808, #7807",
        in_blocks(heads=lambda w, rest: w, weigh=lambda w: _ONE),
        draft_length=2,
    ),
    Fault(
        "block-residual-of-token-rule",
        "law",
        "the block's coins are right, and the replacement comes from the token rule's residual",
        "correct: max(p - q, 0) instead of max(w p - q, 0)",
        "code pattern",
        in_blocks(weigh=lambda w: _ONE),
        weights([[5, 5, 0], [1, 6, 3]], [[6, 4, 0], [6, 2, 2]]),
        draft_length=2,
        length=2,
    ),
    Fault(
        "block-stops-at-first-tails",
        "law",
        "the coins of the prefixes are right, but the first tails ends the block as in the token rule",
        "output: the prefix in front of the first tails instead of the longest with heads",
        "code pattern",
        in_blocks(stops=True),
        draft_length=2,
    ),
    Fault(
        "block-weight-of-clamped-ratios",
        "law",
        "the weight of a block is the product of min(1, p / q) over its drafts",
        "w: w min(1, p / q) instead of min(1, w p / q)",
        "code pattern",
        in_blocks(grow=lambda w, ratio: w * min(_ONE, ratio)),
        draft_length=2,
        length=2,
    ),
    Fault(
        "block-weight-clamped-at-last",
        "law",
        "the weight of a block is the product of p / q over its drafts, clamped only where it is read",
        "w: w p / q instead of min(1, w p / q)",
        "code pattern",
        in_blocks(grow=lambda w, ratio: w * ratio),
        draft_length=2,
        length=2,
    ),
)
"""Faults of block verification."""
