"""Step: a chain rule of speculative sampling as four rows, and the token rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from simkit.errors import InputError
from simkit.laws.rows import IntRows, common


@dataclass(frozen=True, eq=False)
class Step:
    """What a chain rule does with one draft, for C pairs of target and draft rows at once.

    Parameters
    ----------
    propose : int64 array, shape (C, V)
        Weights of the law the draft is drawn from.
    accept : pair of int64 arrays, shape (C, V)
        Numerator and denominator of the probability that a drafted token is kept, read as
        min(1, numerator / denominator).
    correct : int64 array, shape (C, V)
        Weights of the law that replaces a draft which is not kept.
    bonus : int64 array, shape (C, V)
        Weights of the law of the extra token when all drafts of a block are kept.

    Raises
    ------
    InputError
        When a part is not an array of integers >= 0 of the common shape, a row has no weight, or a
        denominator is zero.
    """

    propose: IntRows
    accept: tuple[IntRows, IntRows]
    correct: IntRows
    bonus: IntRows

    def __post_init__(self) -> None:
        shape = np.shape(self.propose)
        for name, rows in (("propose", self.propose), ("correct", self.correct), ("bonus", self.bonus)):
            _check_array(name, rows, shape)
            if not (rows.sum(axis=1) > 0).all():
                raise InputError(f"{name} of a Step has a row without weight; each of its rows is drawn from")
        accept: object = self.accept
        if not (isinstance(accept, tuple) and len(accept) == 2):
            raise InputError("accept of a Step is a pair of arrays: numerators and denominators")
        for name, part in zip(("accept numerator", "accept denominator"), self.accept, strict=True):
            _check_array(name, part, shape)
        if (self.accept[1] < 1).any():
            raise InputError(
                "an accept denominator of a Step is below 1; put 1/1 where a token is never drafted"
            )

    def law(self, at: int = 0) -> list[Fraction]:
        """Return the exact law of the token that one step emits, as V fractions.

        A token comes out as a kept draft or as the replacement of any refused one.

        Parameters
        ----------
        at : int
            Which of the C pairs of rows.

        Examples
        --------
        >>> step = token_rule(np.array([[1, 2]]), np.array([[2, 1]]))
        >>> step.law()
        [Fraction(1, 3), Fraction(2, 3)]
        """
        numerator, denominator = (a[at].tolist() for a in self.accept)
        keep = [min(Fraction(1), Fraction(n, d)) for n, d in zip(numerator, denominator, strict=True)]
        propose, correct = _fractions(self.propose[at]), _fractions(self.correct[at])
        kept = [q * k for q, k in zip(propose, keep, strict=True)]
        refused = 1 - sum(kept)
        return [k + refused * c for k, c in zip(kept, correct, strict=True)]


def _check_array(name: str, array: object, shape: tuple[int, ...]) -> None:
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "iu":
        raise InputError(f"{name} of a Step must be an array of integers; it is {type(array).__name__}")
    if array.ndim != 2 or array.shape != shape:
        raise InputError(f"{name} of a Step has shape {array.shape}; all need one shape (C, V), here {shape}")
    if (array < 0).any():
        raise InputError(f"{name} of a Step has a negative entry")


Rule = Callable[[IntRows, IntRows], Step]
"""A chain rule: target and draft weights, both of shape (C, V), to the `Step` that it takes."""


def token_rule(target: IntRows, draft: IntRows) -> Step:
    """Return the lossless token rule: keep with min(1, p/q), replace from max(p - q, 0), bonus from p.

    Parameters
    ----------
    target, draft : int64 arrays, shape (C, V)
        Weights of p and q, paired row by row.

    References
    ----------
    Leviathan, Kalman, Matias 2023 (arXiv 2211.17192), algorithm 1; Chen et al. 2023 (arXiv 2302.01318),
    algorithm 2 and theorem 1.

    Examples
    --------
    >>> token_rule(np.array([[1, 2]]), np.array([[2, 1]])).correct
    array([[0, 1]])
    """
    p, q = common(target, draft)
    return Step(draft, _ratio(p, q), _residual(p, q), target)


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
    return Step(draft, _ratio(p, q), target, target)


def _ratio(p: IntRows, q: IntRows) -> tuple[IntRows, IntRows]:
    """Return p/q; where q = 0 the token is never drafted, and 1/1 stands in for 0/0 and p/0."""
    never = q == 0
    return np.where(never, 1, p), np.where(never, 1, q)


def _residual(p: IntRows, q: IntRows) -> IntRows:
    """Return max(p - q, 0); where p = q nothing is ever refused, and p stands in for the empty row."""
    residual = np.maximum(p - q, 0)
    empty = ~residual.any(axis=-1, keepdims=True)
    return np.where(empty, p, residual)


def _fractions(weights: IntRows) -> list[Fraction]:
    total = int(weights.sum())
    return [Fraction(w, total) for w in weights.tolist()]
