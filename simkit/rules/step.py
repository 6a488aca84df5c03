"""Step: a chain rule of speculative sampling as four rows and a flag, and the token rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from simkit.errors import InputError
from simkit.laws.rows import IntRows, common, probabilities

Floats = NDArray[np.float64]
Accept = tuple[IntRows, IntRows]
Law = tuple[Fraction, ...]


@dataclass(frozen=True, eq=False)
class Step:
    """What a chain rule does at one slot, for C pairs of target and draft rows at once.

    Parameters
    ----------
    propose : integer array, shape (C, V)
        Weights of the law the draft is drawn from.
    accept : pair of integer arrays, shape (C, V)
        Numerator and denominator of the probability that a drafted token is kept, read as
        min(1, numerator / denominator).
    correct : integer array, shape (C, V)
        Weights of the law that replaces a draft which is not kept.
    bonus : integer array, shape (C, V)
        Weights of the law of the extra token when all drafts of a block are kept.
    redraw_refused : bool
        Whether the replacement is drawn until it differs from the refused token.
    again : tuple of pairs like `accept`
        Accept tests of further drafts at the same slot: each is drawn from `propose` when the one before
        it is refused, and `correct` replaces the last. Not together with `redraw_refused`.

    Raises
    ------
    InputError
        When a part is not an array of integers >= 0 of the common shape, a row has no weight, or a
        denominator is zero. Integers beyond 64 bits are given as an array of Python's.
    """

    propose: IntRows
    accept: Accept
    correct: IntRows
    bonus: IntRows
    redraw_refused: bool = False
    again: tuple[Accept, ...] = ()

    def __post_init__(self) -> None:
        shape = np.shape(self.propose)
        for name, rows in (("propose", self.propose), ("correct", self.correct), ("bonus", self.bonus)):
            _check_array(name, rows, shape)
            if not (rows.sum(axis=1) > 0).all():
                raise InputError(f"{name} of a Step has a row without weight; each of its rows is drawn from")
        for accept in self.tests:
            _check_accept(accept, shape)
        if self.redraw_refused and self.again:
            raise InputError("a Step has redraw_refused or further drafts in `again`, not both")

    @property
    def tests(self) -> tuple[Accept, ...]:
        """The accept tests of a slot in order."""
        return (self.accept, *self.again)

    def link(self, at: int = 0) -> Link:
        """Return the step of one of the C pairs of rows, in fractions."""
        return Link(
            propose=_law(self.propose[at]),
            accept=tuple(_ratios(numerator[at], denominator[at]) for numerator, denominator in self.tests),
            correct=_law(self.correct[at]),
            bonus=_law(self.bonus[at]),
            redraw_refused=self.redraw_refused,
        )

    def split(self) -> tuple[Floats, Floats]:
        """Return P(token drafted and kept), and the law of the replacement where none is kept.

        Returns
        -------
        two float64 arrays, shape (C, V)
            See `Link.split` for the same in fractions.

        Examples
        --------
        >>> kept, replacement = token_rule(np.array([[1, 3]]), np.array([[3, 1]])).split()
        >>> kept, replacement
        (array([[0.25, 0.25]]), array([[0., 1.]]))
        """
        propose, correct = probabilities(self.propose), probabilities(self.correct)
        kept, left = np.zeros_like(propose), np.ones((len(propose), 1))
        for numerator, denominator in self.tests:
            keep, less = np.ones_like(propose), numerator < denominator
            keep[less] = numerator[less] / denominator[less]
            kept += left * propose * keep
            left = 1.0 - kept.sum(axis=1, keepdims=True)
        if not self.redraw_refused:
            return kept, correct
        refused, others = propose - kept, 1.0 - correct
        each = np.divide(refused, others, out=np.zeros_like(refused), where=others > 0.0)
        replaced = correct * (each.sum(axis=1, keepdims=True) - each)
        total = replaced.sum(axis=1, keepdims=True)
        return kept, np.divide(replaced, total, out=correct, where=total > 0.0)

    def law(self, at: int = 0) -> list[Fraction]:
        """Return the exact law of the token that one step emits, as V fractions.

        A token comes out as a kept draft or as the replacement of refused ones.

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
        return [k + r for k, r in zip(*self.link(at).split(), strict=True)]


class Link(NamedTuple):
    """A `Step` for one pair of rows, in fractions.

    Parameters
    ----------
    propose : tuple of Fraction, length V
        The law the drafts are drawn from.
    accept : tuple of tuples of Fraction, length V
        For each draft of the slot, the probability that a token is kept; above 1 it counts as 1.
    correct : tuple of Fraction, length V
        The law that replaces the last refused draft.
    bonus : tuple of Fraction, length V
        The law of the extra token when all drafts are kept.
    redraw_refused : bool
        Whether the replacement is drawn until it differs from the refused token.
    """

    propose: Law
    accept: tuple[Law, ...]
    correct: Law
    bonus: Law
    redraw_refused: bool = False

    def replacement(self, refused: int) -> Law:
        """Return the weights of the law that replaces a refused token."""
        if not self.redraw_refused:
            return self.correct
        return (*self.correct[:refused], Fraction(0), *self.correct[refused + 1 :])

    def split(self) -> tuple[list[Fraction], list[Fraction]]:
        """Return P(token drafted and kept) and P(token replaces a refused draft), V fractions each.

        Takes a number of operations in proportion to V, also with `redraw_refused`.
        """
        kept, left = [Fraction(0)] * len(self.propose), Fraction(1)
        for accept in self.accept:
            here = [left * q * min(Fraction(1), a) for q, a in zip(self.propose, accept, strict=True)]
            kept = [k + h for k, h in zip(kept, here, strict=True)]
            left -= sum(here, Fraction(0))
        if not left:
            return kept, [Fraction(0)] * len(kept)
        if not self.redraw_refused:
            return kept, [left * c for c in self.correct]
        refused = [q - k for q, k in zip(self.propose, kept, strict=True)]
        if any(f and c == 1 for f, c in zip(refused, self.correct, strict=True)):
            raise InputError("a rule refuses the only token that its replacement can be")
        each = [f / (1 - c) if f else f for f, c in zip(refused, self.correct, strict=True)]
        every = sum(each, Fraction(0))
        return kept, [c * (every - f) for c, f in zip(self.correct, each, strict=True)]


def _check_accept(accept: object, shape: tuple[int, ...]) -> None:
    if not (isinstance(accept, tuple) and len(accept) == 2):
        raise InputError("accept of a Step is a pair of arrays: numerators and denominators")
    for name, part in zip(("accept numerator", "accept denominator"), accept, strict=True):
        _check_array(name, part, shape)
    if (accept[1] < 1).any():
        raise InputError("an accept denominator of a Step is below 1; put 1/1 where a token is never drafted")


def _check_array(name: str, array: object, shape: tuple[int, ...]) -> None:
    if not isinstance(array, np.ndarray) or not _of_integers(array):
        raise InputError(f"{name} of a Step must be an array of integers; it is {type(array).__name__}")
    if array.ndim != 2 or array.shape != shape:
        raise InputError(f"{name} of a Step has shape {array.shape}; all need one shape (C, V), here {shape}")
    if (array < 0).any():
        raise InputError(f"{name} of a Step has a negative entry")


def _of_integers(array: NDArray[np.generic]) -> bool:
    return array.dtype.kind in "iu" or (
        array.dtype.kind == "O" and all(type(entry) is int for entry in array.ravel().tolist())
    )


Rule = Callable[[IntRows, IntRows], Step]
"""A chain rule: target and draft weights, both of shape (C, V), to the `Step` that it takes."""


def token_rule(target: IntRows, draft: IntRows) -> Step:
    """Return the lossless token rule: keep with min(1, p/q), replace from max(p - q, 0), bonus from p.

    With a one-hot target row (temperature zero) it keeps a draft exactly when that is the target's argmax.

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
    return Step(draft, ratio(p, q), residual(p, q), target)


def ratio(p: IntRows, q: IntRows) -> Accept:
    """Return p/q; where q = 0 the token is never drafted, and 1/1 stands in for 0/0 and p/0.

    Parameters
    ----------
    p, q : integer arrays, shape (C, V)
        Weights against one total.

    Examples
    --------
    >>> ratio(np.array([[1, 2, 1]]), np.array([[3, 1, 0]]))
    (array([[1, 2, 1]]), array([[3, 1, 1]]))
    """
    never = q == 0
    return np.where(never, 1, p), np.where(never, 1, q)


def residual(p: IntRows, q: IntRows) -> IntRows:
    """Return max(p - q, 0); where p = q nothing is ever refused, and p stands in for the empty row.

    Parameters
    ----------
    p, q : integer arrays, shape (C, V)
        Weights against one total.

    Examples
    --------
    >>> residual(np.array([[5, 3], [1, 1]]), np.array([[2, 6], [1, 1]]))
    array([[3, 0],
           [1, 1]])
    """
    excess = np.maximum(p - q, 0)
    empty = ~(excess > 0).any(axis=-1, keepdims=True)
    return np.where(empty, p, excess)


def one_hot_rows(rows: IntRows) -> IntRows:
    """Return each row's largest entry, the lowest token of a tie, as a law of one token with the row's total.

    Parameters
    ----------
    rows : int64 array, shape (C, V)
        Weights.

    Examples
    --------
    >>> one_hot_rows(np.array([[1, 3, 3]]))
    array([[0, 7, 0]])
    """
    best = rows.argmax(axis=-1)[:, None] == np.arange(rows.shape[-1])
    return np.where(best, rows.sum(axis=-1, keepdims=True), 0)


def scaled(rows: IntRows, factor: int) -> IntRows:
    """Return rows times a factor, as an array of Python's integers where 62 bits do not hold a row's total.

    Parameters
    ----------
    rows : integer array, shape (C, V)
        Weights.
    factor : int
        At least 0.

    Examples
    --------
    >>> scaled(np.array([[1, 3]]), 2), scaled(np.array([[1, 3]]), 2**70).dtype
    (array([[2, 6]]), dtype('O'))
    """
    if rows.dtype.kind != "O" and factor * int(rows.sum(axis=-1).max()) >= 2**62:
        rows = rows.astype(object)
    return rows * factor


def _law(weights: IntRows) -> Law:
    total = int(weights.sum())
    return tuple(Fraction(w, total) for w in weights.tolist())


def _ratios(numerator: IntRows, denominator: IntRows) -> Law:
    return tuple(Fraction(n, d) for n, d in zip(numerator.tolist(), denominator.tolist(), strict=True))
