"""Pairs by name, as the command line and the experiments ask for them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from inspect import signature

from simkit.errors import InputError, UnknownNameError
from simkit.laws.ngram import ngram_pair
from simkit.laws.pair import Pair
from simkit.laws.rows import Row
from simkit.laws.synthetic import CORNER_CASES, corner_case, dirichlet, near_copy, tempered, zipf

VOCABULARY = 1000
"""Tokens of a synthetic pair when none are asked for."""

TOTAL_VARIATION = 0.3
"""Distance of a synthetic draft from its target when none is asked for."""


def zipf_pair(
    *,
    vocabulary: int = VOCABULARY,
    total_variation: float = TOTAL_VARIATION,
    seed: int = 0,
    exponent: float = 1.0,
) -> Pair:
    """Return a Zipf target with a draft at a chosen distance; arguments as in `zipf` and `near_copy`.

    Examples
    --------
    >>> zipf_pair(vocabulary=4, total_variation=0.25)
    Pair('zipf', vocabulary 4, 1 state, 1 request)
      target: 0.48, 0.24, 0.16, 0.12
      draft:  0.23, 0.406667, 0.16, 0.203333
    """
    return _beside_copy("zipf", zipf(vocabulary, exponent), total_variation, seed)


def dirichlet_pair(
    *,
    vocabulary: int = VOCABULARY,
    total_variation: float = TOTAL_VARIATION,
    seed: int = 0,
    concentration: float = 1.0,
) -> Pair:
    """Return a Dirichlet target with a draft at a chosen distance; arguments as in `dirichlet`, `near_copy`.

    Examples
    --------
    >>> dirichlet_pair(vocabulary=50).vocabulary
    50
    """
    return _beside_copy("dirichlet", dirichlet(vocabulary, concentration, seed), total_variation, seed)


def uniform_pair(
    *, vocabulary: int = VOCABULARY, total_variation: float = TOTAL_VARIATION, seed: int = 0
) -> Pair:
    """Return a uniform target with a draft that leans towards token 0; arguments as in `near_copy`.

    Examples
    --------
    >>> uniform_pair(vocabulary=4, total_variation=0.25)
    Pair('uniform', vocabulary 4, 1 state, 1 request)
      target: 0.25, 0.25, 0.25, 0.25
      draft:  0.5, 0.166667, 0.166667, 0.166667
    """
    return _beside_copy("uniform", zipf(vocabulary, 0.0), total_variation, seed)


def tempered_copy_pair(*, vocabulary: int = VOCABULARY, temperature: float = 1.5) -> Pair:
    """Return a Zipf target whose draft is the same law at another temperature; arguments as in `tempered`.

    Examples
    --------
    >>> tempered_copy_pair(vocabulary=2, temperature=0.5)
    Pair('tempered-copy', vocabulary 2, 1 state, 1 request)
      target: 0.666667, 0.333333
      draft:  0.8, 0.2
    """
    target = zipf(vocabulary)
    return Pair.from_rows(target=target, draft=tempered(target, temperature), name="tempered-copy")


def _beside_copy(name: str, target: Row, total_variation: float, seed: int) -> Pair:
    return Pair.from_rows(target=target, draft=near_copy(target, total_variation, seed), name=name)


PAIRS: dict[str, Callable[..., Pair]] = {
    "zipf": zipf_pair,
    "dirichlet": dirichlet_pair,
    "uniform": uniform_pair,
    "tempered-copy": tempered_copy_pair,
    "ngram": ngram_pair,
    **{name: partial(corner_case, name) for name in CORNER_CASES},
}
"""Name -> maker; what a maker can be told are its keyword arguments."""


def make_pair(name: str, *, seed: int = 0, **options: object) -> Pair:
    """Return the pair of that name.

    Parameters
    ----------
    name : str
        A key of `PAIRS`.
    seed : int
        Seed of the pair's random choices; a pair without any takes every seed.
    **options : object
        Keyword arguments of the maker, such as `vocabulary`, `total_variation`, `concentration`, `order`;
        those that are None count as not given.

    Raises
    ------
    UnknownNameError
        For a name that is not in `PAIRS`; the message lists the known ones.
    InputError
        For an option that this pair does not take, or a value that its maker refuses.

    Examples
    --------
    >>> make_pair("zipf", vocabulary=1000, total_variation=0.3, seed=1)
    Pair('zipf', vocabulary 1000, 1 state, 1 request)
      target: 0.133592, 0.0667961, 0.0445307, 0.033398, 0.0267184, 0.0222654, 0.0190846, ... 1000 tokens
      draft:  0.0797475, 0.0398575, 0.0266742, 0.0200636, 0.0159738, 0.0135966, 0.0116638, ... 1000 tokens
    """
    if name not in PAIRS:
        raise UnknownNameError("pair", name, PAIRS)
    maker = PAIRS[name]
    given = {key: value for key, value in options.items() if value is not None}
    taken = list(signature(maker).parameters)
    refused = sorted(set(given) - set(taken))
    if refused:
        can = ", ".join(key for key in taken if key != "seed") or "no options: it is fixed"
        raise InputError(f"pair {name!r} does not take {', '.join(refused)}; it takes {can}")
    return maker(**given, seed=seed) if "seed" in taken else maker(**given)
