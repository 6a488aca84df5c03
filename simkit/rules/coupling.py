"""One noise read under two rows: the exponential race, or shared Gumbel noise, and its exact joint law.

Give every token k a clock E_k, exponential with mean one. The token whose E_k / q_k is least follows q, and
the one whose E_k / r_k is least follows r; minus the logarithm of E_k is Gumbel noise, so this is the Gumbel
trick with the noise shared. The two winners are often the same token, without either side knowing the
other's row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from simkit.errors import InputError

Weights = Sequence[int] | Sequence[Fraction] | Sequence[int | Fraction]


def race_law(q: Weights, r: Weights) -> dict[tuple[int, int], Fraction]:
    """Return P(the winner under q is i, the winner under r is j) for every pair (i, j) that can occur.

    Let s_k = q_k / r_k and M(s) = sum_k max(q_k, s r_k), which is linear between neighbouring s_k. Then

    - P(i, i) = q_i / M(s_i) = 1 / sum_k max(q_k / q_i, r_k / r_i);
    - P(i, j) = q_i r_j (integral of ds / M(s)^2 from s_j to s_i) for s_i > s_j, and 0 otherwise.

    Proof. Token i wins under both rows when E_k > max(E_i q_k / q_i, E_i r_k / r_i) for every other k: given
    E_i = t this has probability exp(-t sum_{k != i} max(q_k / q_i, r_k / r_i)), and the integral against
    exp(-t) is the first line. For i != j write E_i = a q_i and E_j = b r_j; the density of (a, b) is q_i r_j
    exp(-a q_i - b r_j). Both win when E_k > max(a q_k, b r_k) for all other k, b r_j > a q_j and a q_i >
    b r_i. With b = a s the last two say s_j < s < s_i, where q_i = max(q_i, s r_i) and s r_j = max(q_j,
    s r_j), so the exponents add up to a M(s). The measure is a da ds, and the integral over a of a
    exp(-a M(s)) is 1 / M(s)^2. On a piece where M(s) = A + B s the integral from s to t is (t - s) / (M(s)
    M(t)), and from s to infinity 1 / (B M(s)): every probability is rational.

    Parameters
    ----------
    q, r : sequences of int or Fraction, length V
        Weights of the two rows, each against its own total.

    Raises
    ------
    InputError
        For rows of different lengths, a negative weight, or a row without weight.

    References
    ----------
    Daliri, Musco, Suresh 2024 (arXiv 2408.07978), Gumbel sampling; Moulton, Jiang 2018 (arXiv 1809.04052),
    the diagonal as a Jaccard index of laws. The off-diagonal is derived above.

    Examples
    --------
    >>> {pair: str(mass) for pair, mass in race_law([2, 1], [1, 2]).items()}
    {(0, 0): '1/3', (0, 1): '1/3', (1, 1): '1/3'}
    """
    _check_rows(q, r)
    integral, inverse = _integral(q, r)
    law = {}
    for i, q_i in enumerate(q):
        for j, r_j in enumerate(r):
            if not q_i or not r_j:
                continue
            mass = q_i * inverse[i] if i == j else q_i * r_j * (integral[i] - integral[j])
            if mass > 0:
                law[i, j] = Fraction(mass)
    return law


def exact_total(weights: Weights) -> int | Fraction:
    """Return the sum of the weights of a decision.

    Parameters
    ----------
    weights : sequence of int or Fraction
        What a rule decides by.

    Raises
    ------
    InputError
        For a weight that is negative or not exact, or weights that are all zero.

    Examples
    --------
    >>> exact_total([1, Fraction(1, 2)])
    Fraction(3, 2)
    """
    exact = all(isinstance(w, int | Fraction) for w in weights)
    total = sum(weights) if exact else 0
    if not total or min(weights) < 0:
        shown = ", ".join(repr(w) for w in weights[:8]) + (", ..." if len(weights) > 8 else "")
        raise InputError(
            f"a decision needs weights >= 0, not all zero, as ints or Fractions; got {len(weights)}: {shown}"
        )
    return total


def _check_rows(q: Weights, r: Weights) -> None:
    if len(q) != len(r):
        raise InputError(f"a race needs two rows of one length; they have {len(q)} and {len(r)} tokens")
    exact_total(q)
    exact_total(r)


def _integral(q: Weights, r: Weights) -> tuple[list[Fraction], list[Fraction]]:
    """Return by token k the integral of 1 / M^2 from the least s to s_k, and 1 / M(s_k).

    A token without weight in r has s_k at infinity. One without weight in either row gets zeros.
    """
    at = [Fraction(q_k) / r_k if r_k else None for q_k, r_k in zip(q, r, strict=True)]
    knots = sorted({s for s in at if s is not None})
    height = [
        sum((max(Fraction(q_k), s * r_k) for q_k, r_k in zip(q, r, strict=True)), Fraction(0)) for s in knots
    ]
    inverse = [Fraction(1) / h for h in height]
    area = [Fraction(0)]
    for left, right, low, high in zip(knots, knots[1:], inverse, inverse[1:], strict=False):
        area.append(area[-1] + (right - left) * low * high)
    beyond = area[-1] + inverse[-1] / sum(r, Fraction(0))
    place = [None if s is None else knots.index(s) for s in at]
    return (
        [beyond if n is None else area[n] for n in place],
        [Fraction(0) if n is None else inverse[n] for n in place],
    )


def run_race(q: Weights, r: Weights, word: Callable[[int], int]) -> tuple[int, int]:
    """Return the winners of one race under q and under r.

    Clocks are double precision, so their law differs from the exact one by about 2**-52 a token; a tie goes
    to the lower token.

    Parameters
    ----------
    q, r : sequences of int or Fraction, length V
        Weights of the two rows.
    word : callable
        Token to a uniform integer in [0, 2**64); it is asked only for tokens that have weight.

    Examples
    --------
    >>> run_race([2, 1], [1, 2], lambda token: 2**63)
    (0, 1)
    """
    _check_rows(q, r)
    clock = {k: _exponential(word(k)) for k in range(len(q)) if q[k] or r[k]}
    return _winner(q, clock), _winner(r, clock)


def _exponential(word: int) -> float:
    """Return an exponential clock from 64 random bits; the small clocks, which win, keep full precision."""
    u = (word + 0.5) * 2.0**-64
    return -math.log1p(-min(u, 1.0 - 2.0**-53))


def _winner(weights: Weights, clock: dict[int, float]) -> int:
    return min((k for k in clock if weights[k]), key=lambda k: clock[k] / float(weights[k]))
