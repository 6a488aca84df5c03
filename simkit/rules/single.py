"""Rules for one draft that lose nothing, beside the token rule; and greedy decoding."""

from __future__ import annotations

import numpy as np

from simkit.laws.rows import IntRows
from simkit.rules.step import Step, one_hot_rows, ratio, residual, token_rule


def one_hot(target: IntRows, draft: IntRows) -> Step:
    """Return the rule that keeps x with p(x) and replaces it from p given other than x. Lossless.

    It is the token rule with the draft's law taken as one-hot at the token drafted, so it serves drafts that
    come without a law: argmax drafts, prompt lookup, n-grams. Whatever law q the draft is drawn from, token y
    comes out with q(y) p(y) plus the sum over other x of q(x) (1 - p(x)) p(y) / (1 - p(x)), which is p(y).

    Parameters
    ----------
    target, draft : int64 arrays, shape (C, V)
        Weights of p and q, paired row by row.

    References
    ----------
    vLLM's rejection sampler without draft probabilities (``NO_DRAFT_PROBS``); transformers' candidates
    without logits.

    Examples
    --------
    >>> one_hot(np.array([[5, 3, 2]]), np.array([[2, 3, 5]])).law()
    [Fraction(1, 2), Fraction(3, 10), Fraction(1, 5)]
    """
    total = np.broadcast_to(target.sum(axis=-1, keepdims=True), target.shape)
    return Step(draft, (target, total), target, target, redraw_refused=True)


def argmax_draft(target: IntRows, draft: IntRows) -> Step:
    """Return the token rule on the draft's most likely token, with its right one-hot law. Lossless.

    Parameters
    ----------
    target, draft : int64 arrays, shape (C, V)
        Weights of p and q, paired row by row; the lowest token of a tie is drafted.

    References
    ----------
    The common case of Leviathan, Kalman, Matias 2023 (arXiv 2211.17192), section 2.3, with a greedy draft.

    Examples
    --------
    >>> argmax_draft(np.array([[5, 3, 2]]), np.array([[2, 3, 5]])).correct
    array([[5, 3, 0]])
    """
    best = one_hot_rows(draft)
    total = np.broadcast_to(target.sum(axis=-1, keepdims=True), target.shape)
    one = np.where(best > 0, total, 0)
    return Step(best, ratio(target, one), residual(target, one), target)


def greedy(target: IntRows, draft: IntRows) -> Step:
    """Return the rule that emits the target's argmax. Lossy, but where p is one-hot: temperature zero.

    Parameters
    ----------
    target, draft : int64 arrays, shape (C, V)
        Weights of p and q, paired row by row; the lowest token of a tie is the argmax.

    References
    ----------
    Stern et al. 2018 (arXiv 1811.03115), blockwise parallel decoding, verified by exact match.

    Examples
    --------
    >>> greedy(np.array([[5, 3, 2]]), np.array([[2, 3, 5]])).law()
    [Fraction(1, 1), Fraction(0, 1), Fraction(0, 1)]
    """
    return token_rule(one_hot_rows(target), draft)
