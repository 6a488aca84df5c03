"""Several independent drafts at each slot, tried one after another: chain rules with more than one test.

The drafts of a call form a tree of which only the nodes on the kept path matter: the children of the others
are independent of all that is emitted. So a slot draws its own drafts, from q, when it is reached.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from simkit.laws.checks import whole_number
from simkit.laws.rows import IntRows
from simkit.rules.step import Rule, Step, ratio, residual

MOST_DRAFTS = 64
GAMMA_STEPS = 2**20
"""K-SEQ's gamma is a multiple of one over this, so that its laws are rational."""


def with_replacement(drafts: int = 2) -> Rule:
    """Return recursive rejection with replacement: the token rule against what earlier drafts left. Lossless.

    Draft i is kept with min(1, p_i / q), where p_1 = p and p_{i+1} = max(p_i - q, 0), normalised; the last
    refused draft is replaced from p_{n+1}. Given that i drafts are refused what comes out follows p_{i+1}:
    true for i = n, and one step down it is the token rule.

    Parameters
    ----------
    drafts : int
        Drafts n at each slot, 1 to 64.

    Raises
    ------
    InputError
        For any other number.

    References
    ----------
    Miao et al. 2024 (arXiv 2305.09781), SpecInfer, algorithm 2: multi-step speculative sampling.

    Examples
    --------
    >>> step = with_replacement(2)(np.array([[5, 3, 2]]), np.array([[2, 3, 5]]))
    >>> [str(mass) for mass in step.law()], str(sum(step.link().split()[0]))
    (['1/2', '3/10', '1/5'], '19/25')
    """
    n = whole_number(drafts, "drafts", 1, MOST_DRAFTS)

    def rule(target: IntRows, draft: IntRows) -> Step:
        left, tests = target, []
        for _ in range(n):
            p, drafted = beside(left, draft)
            tests.append(ratio(p, drafted))
            left = smallest(residual(p, drafted))
        return Step(draft, tests[0], left, target, again=tuple(tests[1:]))

    return rule


def k_seq(drafts: int = 2) -> Rule:
    """Return K-SEQ: every draft has the same test min(1, p / (gamma q)). Lossless.

    With c = min(q, p / gamma), b = sum(c) and F = (1 - (1 - b)^n) / b, a token is kept with c F, and
    p - c F replaces the last refused draft. That is a law as soon as F <= gamma; the smallest such gamma
    keeps the most.

    Parameters
    ----------
    drafts : int
        Drafts n at each slot, 1 to 64.

    Raises
    ------
    InputError
        For any other number.

    References
    ----------
    Sun et al. 2023 (arXiv 2310.15141), SpecTr, algorithm 2; gamma is rho there.

    Examples
    --------
    >>> step = k_seq(2)(np.array([[5, 3, 2]]), np.array([[2, 3, 5]]))
    >>> [str(mass) for mass in step.law()]
    ['1/2', '3/10', '1/5']
    """
    n = whole_number(drafts, "drafts", 1, MOST_DRAFTS)

    def rule(target: IntRows, draft: IntRows) -> Step:
        p, q = beside(target, draft)
        steps = np.array([[gamma_steps(a, b, n)] for a, b in zip(p, q, strict=True)], dtype=object)
        whole, divided = p.astype(object) * GAMMA_STEPS, q.astype(object) * steps
        test = ratio(whole, divided)
        correct = np.stack([_left(a, b, n) for a, b in zip(whole, divided, strict=True)])
        return Step(draft, test, smallest(correct), target, again=(test,) * (n - 1))

    return rule


def gamma_steps(p: IntRows, q: IntRows, drafts: int) -> int:
    """Return K-SEQ's gamma in units of 1 / `GAMMA_STEPS`: the smallest with 1 - (1 - b)^n <= gamma b.

    Parameters
    ----------
    p, q : int64 arrays, shape (V,)
        Weights against one total.
    drafts : int
        Drafts n at a slot.

    Examples
    --------
    >>> gamma_steps(np.array([1, 2]), np.array([2, 1]), 1) / GAMMA_STEPS
    1.0
    """
    total = int(p.sum())
    law_p, law_q = p / total, q / total

    def serves(steps: int) -> bool:
        b = _kept(p, q, steps)
        return 1 - (1 - b) ** drafts <= Fraction(steps, GAMMA_STEPS) * b

    low, high = GAMMA_STEPS, drafts * GAMMA_STEPS
    while high - low > 1:  # in floats, which come within a few steps
        middle = (low + high) // 2
        b = float(np.minimum(law_q, law_p * (GAMMA_STEPS / middle)).sum())
        low, high = (low, middle) if 1 - (1 - b) ** drafts <= middle / GAMMA_STEPS * b else (middle, high)
    while not serves(high):
        high += 1
    while high > GAMMA_STEPS and serves(high - 1):
        high -= 1
    return high


def _kept(p: IntRows, q: IntRows, steps: int) -> Fraction:
    """Return b = sum(min(q, p / gamma))."""
    least = np.minimum(p.astype(object) * GAMMA_STEPS, q.astype(object) * steps)
    return Fraction(int(least.sum()), int(q.sum()) * steps)


def _left(p: NDArray[np.object_], q: NDArray[np.object_], drafts: int) -> NDArray[np.object_]:
    """Return weights of p - c F, where p and q are weights of p / gamma and q against gamma's total."""
    total, least = int(q.sum()), np.minimum(p, q)
    kept = int(least.sum())
    if not kept:
        return p
    share = (1 - (1 - Fraction(kept, total)) ** drafts) * Fraction(total, kept)
    gamma = Fraction(total, int(p.sum()))
    weights: NDArray[np.object_] = p * (gamma.numerator * share.denominator) - least * (
        share.numerator * gamma.denominator
    )
    return weights if weights.any() else p  # nothing is ever refused


def beside(p: IntRows, q: IntRows) -> tuple[IntRows, IntRows]:
    """Return both rows as weights against one total, as Python's integers where they outgrow 62 bits.

    Parameters
    ----------
    p, q : integer arrays, shape (C, V)
        Weights of the two laws, paired row by row.

    Examples
    --------
    >>> beside(np.array([[1, 2]]), np.array([[1, 1]]))
    (array([[2, 4]]), array([[3, 3]]))
    """
    a, b = p.sum(axis=-1, keepdims=True), q.sum(axis=-1, keepdims=True)
    g = np.gcd(a, b)
    if p.dtype.kind != "O" and ((a // g).astype(np.float64) * b >= 2.0**62).any():
        return beside(p.astype(object), q.astype(object))
    return p * (b // g), q * (a // g)


def smallest(rows: IntRows | NDArray[np.object_]) -> IntRows:
    """Return each row over its greatest common divisor, as int64 where 62 bits hold every total.

    Parameters
    ----------
    rows : integer array, shape (C, V)
        Weights.

    Examples
    --------
    >>> smallest(np.array([[2**70, 2**69]], dtype=object))
    array([[2, 1]])
    """
    over = rows // np.gcd.reduce(rows, axis=-1, keepdims=True)
    return over.astype(np.int64) if over.sum(axis=-1).max() < 2**62 else over
