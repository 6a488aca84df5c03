"""How far a fault is from the target, exactly; and which shortened tests cannot see it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simkit.laws.pair import Pair
from simkit.rules.choose import Text
from simkit.rules.exact import exact_law, no_drafts
from simkit.rules.faults.fault import Fault, base


class Marginal(NamedTuple):
    """The position whose token is furthest from the target's law.

    Parameters
    ----------
    position : int
        From 0; the first of several.
    distance : Fraction
        Total variation of the token's law there.
    """

    position: int
    distance: Fraction


def distance(fault: Fault) -> Fraction:
    """Return the total variation between what a fault emits and the target, on the pair that shows it.

    It is that of the joint law of the first `fault.length` tokens; of several requests the worst counts.

    Parameters
    ----------
    fault : Fault
        The fault.

    Raises
    ------
    InputError
        For a fault without a rule.

    Examples
    --------
    >>> from simkit.rules.faults import FAULTS
    >>> distance(FAULTS["replace-from-target"])
    Fraction(3, 20)
    """
    return _joint(fault.text, fault.shown_by(), fault.draft_length, fault.length)


def marginal_distance(fault: Fault) -> Marginal:
    """Return where one token alone shows a fault best, on the pair that shows it.

    Parameters
    ----------
    fault : Fault
        The fault.

    Raises
    ------
    InputError
        For a fault without a rule.

    Examples
    --------
    >>> from simkit.rules.faults import FAULTS
    >>> marginal_distance(FAULTS["quantile-frozen"])
    Marginal(position=0, distance=Fraction(0, 1))
    """
    return _marginal(fault.text, fault.shown_by(), fault.draft_length, fault.length)


SHORTCUTS = (
    "K = 1",
    "the same row at every position",
    "first token only",
    "marginals only",
    "base pair",
    "one request",
)
"""Ways to make a test shorter.

K = 1: one draft a call; the same row at every position: each two rows of the pair that meet, by themselves;
base pair: p = (.5, .3, .2) and q = (.2, .3, .5), where the residual is one token and no probability is 0; one
request: each of the pair's requests by itself. All else is as where the fault is shown.
"""


def blind(fault: Fault) -> tuple[str, ...]:
    """Return the shortened tests that cannot see a fault, however many tokens they draw.

    Parameters
    ----------
    fault : Fault
        The fault.

    Returns
    -------
    tuple of str
        Those of `SHORTCUTS` in which what the fault emits has the target's law exactly.

    Raises
    ------
    InputError
        For a fault without a rule.

    Examples
    --------
    >>> from simkit.rules.faults import FAULTS
    >>> blind(FAULTS["gumbel-noise-reused"])
    ('base pair',)
    """
    text, pair, K, length = fault.text, fault.shown_by(), fault.draft_length, fault.length
    seen = (
        _joint(text, pair, 1, length),
        max(_joint(text, alone, K, length) for alone in _one_row(pair)),
        _joint(text, pair, K, 1),
        _marginal(text, pair, K, length).distance,
        _joint(text, base(), K, length),
        max(_joint(text, alone, K, length) for alone in _one_request(pair)),
    )
    return tuple(name for name, apart in zip(SHORTCUTS, seen, strict=True) if not apart)


def target_law(pair: Pair, length: int) -> NDArray[Any]:
    """Return the target's joint law of the first tokens, exactly.

    Parameters
    ----------
    pair : Pair
        The laws.
    length : int
        Tokens of the sequence.

    Returns
    -------
    object array of Fraction, shape (V,) * length, or (R,) + (V,) * length for a pair of R > 1 requests
        `Pair.joint_law` in fractions; see `simkit.rules.exact.exact_law` for decodes that end earlier.

    Examples
    --------
    >>> target_law(Pair.from_weights([1, 2], [2, 1]), 1)
    array([Fraction(1, 3), Fraction(2, 3)], dtype=object)
    """
    return exact_law(pair, no_drafts, draft_length=1, length=length)


def _joint(text: Text, pair: Pair, draft_length: int, length: int) -> Fraction:
    return max(_apart(*laws) for laws in _by_request(text, pair, draft_length, length))


def _marginal(text: Text, pair: Pair, draft_length: int, length: int) -> Marginal:
    laws = list(_by_request(text, pair, draft_length, length))
    worst = [max(_apart(*(_token(law, at) for law in both)) for both in laws) for at in range(length)]
    return Marginal(worst.index(max(worst)), max(worst))


def _by_request(
    text: Text, pair: Pair, draft_length: int, length: int
) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """Yield what the text emits and what the target does, for each request."""
    shape = (len(pair.initial), *(pair.vocabulary,) * length)
    found = exact_law(pair, text, draft_length=draft_length, length=length).reshape(shape)
    return zip(found, target_law(pair, length).reshape(shape), strict=True)


def _apart(law: NDArray[Any], other: NDArray[Any]) -> Fraction:
    return Fraction(abs(law - other).sum()) / 2


def _token(law: NDArray[Any], at: int) -> NDArray[Any]:
    """Return the law of the token at a position."""
    return np.asarray(law.sum(axis=tuple(axis for axis in range(law.ndim) if axis != at)))


def _one_row(pair: Pair) -> Iterator[Pair]:
    """Yield a pair of one state for each pair of rows that meet."""
    met = {(int(p), int(q)) for p, row in zip(pair.target, pair.draft, strict=True) for q in row}
    for p, q in sorted(met):
        yield Pair.from_weights(pair.rows[p], pair.rows[q])


def _one_request(pair: Pair) -> Iterator[Pair]:
    for state in pair.initial:
        yield replace(pair, initial=np.array([state]))
