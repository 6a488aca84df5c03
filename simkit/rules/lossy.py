"""Rules that give up the target's law for speed, on purpose: each maker says what comes out instead."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np

from simkit.errors import InputError
from simkit.laws.rows import IntRows, common
from simkit.rules.step import Rule, Step, ratio, residual, scaled

Number = int | float | str | Fraction

_DIGITS = 60
_TIE = Fraction(1, 10**40)


def lenience(factor: Number) -> Rule:
    """Return the token rule that keeps with min(1, p / (factor q)). Lossy below 1.

    It emits min(q, p / factor) plus what that leaves of one, spread as max(p - q, 0).

    Parameters
    ----------
    factor : number in (0, 1]
        The lenience l; 1 is the token rule.

    Raises
    ------
    InputError
        For any other factor.

    References
    ----------
    Leviathan, Kalman, Matias 2023 (arXiv 2211.17192), appendix on lenience: q is multiplied by l in the test.

    Examples
    --------
    >>> [str(mass) for mass in lenience(0.5)(np.array([[5, 3, 2]]), np.array([[2, 3, 5]])).law()]
    ['3/10', '3/10', '2/5']
    """
    share = as_share(factor, "factor", above_zero=True)

    def rule(target: IntRows, draft: IntRows) -> Step:
        p, q = common(target, draft)
        test = ratio(scaled(p, share.denominator), scaled(q, share.numerator))
        return Step(draft, test, residual(p, q), target)

    return rule


def thresholds(single: Number = 1, acc: Number = 1) -> Rule:
    """Return SGLang's rule: keep x when p(x) >= single, else with min(1, p(x) / acc). Lossy below 1 and 1.

    The replacement is drawn from p given other than the refused token. With both at 1 it is
    `simkit.rules.single.one_hot`.

    Parameters
    ----------
    single : number in [0, 1]
        ``speculative_accept_threshold_single``.
    acc : number in (0, 1]
        ``speculative_accept_threshold_acc``.

    Raises
    ------
    InputError
        For thresholds outside their ranges.

    References
    ----------
    SGLang, sgl-kernel, speculative_sampling.cuh: TreeSpeculativeSamplingTargetOnly, one child a node.

    Examples
    --------
    >>> [str(mass) for mass in thresholds(acc=0.5)(np.array([[5, 3, 2]]), np.array([[0, 0, 1]])).law()]
    ['3/8', '9/40', '2/5']
    """
    low, most = as_share(single, "single"), as_share(acc, "acc", above_zero=True)

    def rule(target: IntRows, draft: IntRows) -> Step:
        total = np.broadcast_to(target.sum(axis=-1, keepdims=True), target.shape)
        at_once = scaled(target, low.denominator) >= scaled(total, low.numerator)
        numerator = np.where(at_once, 1, scaled(target, most.denominator))
        denominator = np.where(at_once, 1, scaled(total, most.numerator))
        return Step(draft, (numerator, denominator), target, target, redraw_refused=True)

    return rule


def typical(epsilon: Number = Fraction(9, 100), delta: Number = Fraction(3, 10)) -> Rule:
    """Return Medusa's typical acceptance: keep x when p(x) > min(epsilon, delta exp(-H(p))). Lossy.

    A refused draft is replaced from p, so x comes out with q(x) where p(x) is above the threshold, plus p(x)
    times what q has on tokens that are not. exp(-H) is rounded to 60 digits; a p(x) within 1e-40 of the
    threshold counts as not above it.

    Parameters
    ----------
    epsilon, delta : numbers in [0, 1]
        The hard threshold and the one relative to the entropy; the defaults are those of the authors' code.

    Raises
    ------
    InputError
        For thresholds outside their range.

    References
    ----------
    Cai et al. 2024 (arXiv 2401.10774), section on typical acceptance.

    Examples
    --------
    >>> [str(mass) for mass in typical()(np.array([[5, 3, 2]]), np.array([[0, 0, 1]])).law()]
    ['0', '0', '1']
    """
    hard, relative = as_share(epsilon, "epsilon"), as_share(delta, "delta")

    def least_kept(row: IntRows) -> int:
        level = min(hard, relative * _exp_minus_entropy(row)) * (1 + _TIE)
        return int(level * int(row.sum())) + 1  # the least integer above

    def rule(target: IntRows, draft: IntRows) -> Step:
        least = np.array([[least_kept(row)] for row in target])
        keep = (target >= least).astype(np.int64)
        return Step(draft, (keep, np.ones_like(keep)), target, target)

    return rule


def _exp_minus_entropy(row: IntRows) -> Fraction:
    """Return exp(-H) to 60 digits; decimal arithmetic rounds alike on every machine."""
    with localcontext() as context:
        context.prec = _DIGITS
        total = Decimal(int(row.sum()))
        decimals = [Decimal(weight) / total for weight in row.tolist() if weight]
        return Fraction(sum((d * d.ln() for d in decimals), Decimal(0)).exp())


def ensemble(weight: Number) -> Rule:
    """Return the token rule against m = weight p + (1 - weight) q instead of p. Lossless against m.

    Parameters
    ----------
    weight : number in [0, 1]
        The target's weight in the mixture; 1 is the token rule.

    Raises
    ------
    InputError
        For a weight outside its range.

    References
    ----------
    Fu et al. 2025 (arXiv 2502.01662), Speculative Ensemble: the ensemble's law as the law that verifies.

    Examples
    --------
    >>> [str(mass) for mass in ensemble(0.5)(np.array([[5, 3, 2]]), np.array([[2, 3, 5]])).law()]
    ['7/20', '3/10', '7/20']
    """
    share = as_share(weight, "weight")
    parts, whole = share.numerator, share.denominator

    def rule(target: IntRows, draft: IntRows) -> Step:
        p, q = common(target, draft)
        mixed, drafted = scaled(p, parts) + scaled(q, whole - parts), scaled(q, whole)
        return Step(draft, ratio(mixed, drafted), residual(mixed, drafted), mixed)

    return rule


def as_share(value: Number, name: str, above_zero: bool = False) -> Fraction:
    """Return a number in [0, 1] as a fraction; a float as the decimal that it prints as.

    Parameters
    ----------
    value : int, float, str or Fraction
        The number.
    name : str
        What to call it in an error.
    above_zero : bool
        Whether zero is refused, too.

    Raises
    ------
    InputError
        For anything else.

    Examples
    --------
    >>> as_share(0.1, "factor"), as_share("1/3", "factor")
    (Fraction(1, 10), Fraction(1, 3))
    """
    try:
        share = Fraction(repr(float(value))) if isinstance(value, float) else Fraction(value)
    except (TypeError, ValueError, ZeroDivisionError):
        share = Fraction(-1)
    if not 0 <= share <= 1 or (above_zero and not share):
        span = "above 0 and at most 1" if above_zero else "from 0 to 1"
        raise InputError(f"{name}={value!r}; it needs a number {span}")
    return share
