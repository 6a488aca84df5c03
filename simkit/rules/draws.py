"""How a random word becomes a decision, over Python's integers: alias tables, coins, prefix sums.

The kernels do the same with integer tables; nothing is shared with them, so that they can be held against
each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import lcm

WORD = 2**64
ALWAYS = 2**63
"""The coin that every word meets."""


def keep_coin(numerator: int | Fraction, denominator: int | Fraction = 1) -> int:
    """Return floor(2**63 * min(1, numerator / denominator)): met by words with ``word >> 1`` below it.

    Parameters
    ----------
    numerator, denominator : int or Fraction
        Numerator >= 0, denominator > 0.

    Examples
    --------
    >>> keep_coin(1, 2) == 2**62, keep_coin(3, 2) == ALWAYS
    (True, True)
    """
    return int(ALWAYS * min(Fraction(1), Fraction(numerator) / denominator))


def draw(weights: tuple[int | Fraction, ...], word: int) -> int:
    """Return the index that a word draws from the alias table of weights.

    The high half of ``word * V`` is a cell, the low half the coin that decides between the cell's own index
    and its alias.

    Parameters
    ----------
    weights : tuple of int or Fraction, length V
        Weights >= 0, not all zero.
    word : int in [0, 2**64)
        The random word.

    Examples
    --------
    >>> [draw((1, 3), word) for word in (0, 2**62, 2**63)]
    [0, 1, 1]
    """
    cell, coin = divmod(word * len(weights), WORD)
    threshold, alias = alias_table(weights)[cell]
    return cell if coin >> 1 < threshold else alias


@lru_cache(4096)
def alias_table(weights: tuple[int | Fraction, ...]) -> list[tuple[int, int]]:
    """Return for each cell the coin that keeps its own index, and its alias (Walker 1977; Vose 1991).

    Parameters
    ----------
    weights : tuple of int or Fraction, length V
        Weights >= 0, not all zero.

    Examples
    --------
    >>> alias_table((1, 3)) == [(2**62, 1), (2**63, 1)]
    True
    """
    unit = lcm(*(Fraction(weight).denominator for weight in weights))
    whole = [int(weight * unit) for weight in weights]
    total, share = sum(whole), [weight * len(whole) for weight in whole]
    alias = list(range(len(whole)))
    small = [j for j, s in enumerate(share) if s < total]
    large = [j for j, s in enumerate(share) if s >= total]
    while small and large:
        poor, rich = small.pop(), large[-1]
        alias[poor] = rich
        share[rich] -= total - share[poor]
        if share[rich] < total:
            small.append(large.pop())
    return [(min(ALWAYS, ALWAYS * s // total), a) for s, a in zip(share, alias, strict=True)]


def along(weights: Sequence[int | Fraction], word: int, order: Sequence[int] | None = None) -> int:
    """Return the first index, in an order, whose running sum exceeds word / 2**64 of the total.

    Parameters
    ----------
    weights : sequence of int or Fraction, length V
        Weights >= 0, not all zero.
    word : int in [0, 2**64)
        The random word.
    order : sequence of int or None
        Indices; those left out have no weight. None for 0 to V - 1.

    Examples
    --------
    >>> along([1, 3], 2**62), along([1, 3], 2**62, order=[1, 0]), along([1, 3], 2**64 - 1, order=[1, 0])
    (1, 1, 0)
    """
    mark, running = word * sum(weights), Fraction(0)
    for index in range(len(weights)) if order is None else order:
        running += weights[index]
        if mark < running * WORD:
            return index
    raise AssertionError("unreachable: a word is below 2**64")


def other_than(weights: Sequence[int], refused: int, word: int) -> int:
    """Return the index that a word draws from weights given other than one index.

    ``word * rest >> 64`` counts in units of weight, where rest is what the others have.

    Parameters
    ----------
    weights : sequence of int, length V
        Weights >= 0.
    refused : int
        The index that is left out; the others need some weight.
    word : int in [0, 2**64)
        The random word.

    Examples
    --------
    >>> [other_than([2, 4, 2], 1, word) for word in (0, 2**63)]
    [0, 2]
    """
    mark = word * (sum(weights) - weights[refused]) >> 64
    for index, weight in enumerate(weights):
        if index == refused:
            continue
        if mark < weight:
            return index
        mark -= weight
    raise AssertionError("unreachable: the mark lies below the sum")
