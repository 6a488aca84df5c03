"""A target call with a fault in it, slot by slot, and the token rule on rows that are read wrongly."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from simkit.laws.rows import IntRows
from simkit.rules.choose import Block, Choose, Emitted, Text
from simkit.rules.step import Law, Step, ratio, residual
from simkit.rules.tries import beside, smallest

Tokens = tuple[int, ...]


def slot_by_slot(
    model: Block,
    choose: Choose,
    judge: Callable[[Tokens], tuple[int, bool]],
    bonus: Callable[[Tokens], int] | None = None,
) -> Emitted:
    """Return what a call emits that goes on while drafts are kept.

    Parameters
    ----------
    model, choose
        See `simkit.rules.choose`.
    judge : callable
        The kept tokens to the next one, and whether that is a kept draft.
    bonus : callable or None
        The kept tokens to the bonus token; None to draw it from p.

    Examples
    --------
    >>> from simkit.laws.pair import Pair
    >>> from simkit.rules.choose import walk
    >>> def always(model, choose):
    ...     return slot_by_slot(model, choose, lambda kept: (choose(model.q(kept, len(kept))), True))
    >>> law = walk(always, Block(Pair.from_weights([1, 0], [0, 1]), state=0, draft_length=2))
    >>> [emitted.tokens for emitted in law]
    [(1, 1, 0)]
    """
    kept: Tokens = ()
    for slot in range(model.draft_length):
        token, is_kept = judge(kept)
        kept += (token,)
        if not is_kept or model.ended(kept):
            return Emitted(kept, slot + is_kept)
    return Emitted((*kept, choose(model.p(kept)) if bonus is None else bonus(kept)), model.draft_length)


def misread(
    *,
    target: Callable[[Block, Tokens, int], Law] | None = None,
    drawn: Callable[[Block, Tokens], Law] | None = None,
    recorded: Callable[[Block, Tokens], Law] | None = None,
    bonus: Callable[[Block, Tokens], Law] | None = None,
) -> Text:
    """Return the token rule that reads some of its rows elsewhere; each is the right one by default.

    Parameters
    ----------
    target : callable
        (model, kept tokens, draft) to the target's law by which the draft is judged and replaced.
    drawn : callable
        (model, kept tokens) to the law that the draft is drawn from.
    recorded : callable
        (model, kept tokens) to the draft's law in the test and in the residual.
    bonus : callable
        (model, kept tokens) to the law of the bonus token.

    Examples
    --------
    >>> from simkit.laws.pair import Pair
    >>> from simkit.rules.exact import exact_law
    >>> pair, wrong = Pair.from_weights([1, 2], [2, 1]), misread(recorded=lambda model, kept: model.p(kept))
    >>> [str(mass) for mass in exact_law(pair, wrong, draft_length=1, length=1)]
    ['2/3', '1/3']
    """

    def text(model: Block, choose: Choose) -> Emitted:
        def judge(kept: Tokens) -> tuple[int, bool]:
            draft = choose((drawn or _draft)(model, kept))
            p = model.p(kept) if target is None else target(model, kept, draft)
            q = (recorded or _draft)(model, kept)
            if keep(choose, p[draft], q[draft]):
                return draft, True
            return choose(excess(p, q)), False

        return slot_by_slot(
            model, choose, judge, None if bonus is None else lambda kept: choose(bonus(model, kept))
        )

    return text


def token_step(target: IntRows, draft: IntRows) -> Step:
    """Return `simkit.rules.step.token_rule` for rows that were cut, whose totals may have nothing in common.

    Parameters
    ----------
    target, draft : int64 arrays, shape (C, V)
        Weights of p and q, paired row by row.

    Examples
    --------
    >>> import numpy as np
    >>> token_step(np.array([[2**40 + 1, 2]]), np.array([[2**41, 2**41 + 1]])).correct
    array([[1, 0]])
    """
    p, q = beside(target, draft)
    return Step(draft, ratio(p, q), smallest(residual(p, q)), target)


def keep(choose: Choose, p: Fraction, q: Fraction) -> bool:
    """Return the outcome of the test u q < p; it is settled where q = 0, as it can be in a wrong row.

    Parameters
    ----------
    choose : Choose
        The decisions of the text.
    p, q : Fraction
        What the two rows say of the draft.

    Examples
    --------
    >>> keep(None, Fraction(1), Fraction(0)), keep(None, Fraction(0), Fraction(0))
    (True, False)
    """
    return choose.coin(p, q) if q else p > 0


def excess(p: Law, q: Law) -> Law:
    """Return the weights max(p - q, 0); p itself where they are all zero.

    Parameters
    ----------
    p, q : tuples of Fraction, length V
        The two laws.

    Examples
    --------
    >>> [str(mass) for mass in excess((Fraction(1, 3), Fraction(2, 3)), (Fraction(2, 3), Fraction(1, 3)))]
    ['0', '1/3']
    """
    left = tuple(max(a - b, Fraction(0)) for a, b in zip(p, q, strict=True))
    return left if any(left) else p


def _draft(model: Block, kept: Tokens) -> Law:
    return model.q(kept, len(kept))
