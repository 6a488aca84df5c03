"""Counted shares read as points: exact intervals, and how many hits chance allows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from simkit.stats.design import share_limit

CONFIDENCE = 0.95


def interval(hits: int, runs: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Return the Clopper-Pearson interval of a share.

    Parameters
    ----------
    hits, runs : int
        How often it happened, in how many independent runs.
    confidence : float
        Probability that the interval holds the true share, at least.

    References
    ----------
    .. [1] C. Clopper and E. Pearson, "The use of confidence or fiducial limits illustrated in the case of the
       binomial", Biometrika 26 (1934), 404-413.

    Examples
    --------
    >>> [round(end, 4) for end in interval(0, 100)], [round(end, 4) for end in interval(50, 100)]
    ([0.0, 0.0362], [0.3983, 0.6017])
    """
    each = (1.0 - confidence) / 2.0
    return 1.0 - share_limit(runs - hits, runs, each), share_limit(hits, runs, each)


def is_above(hits: int, runs: int, rate: float, error: float) -> bool:
    """Return whether so many hits have a probability of at most `error` if each has probability `rate`.

    Parameters
    ----------
    hits, runs : int
        How often it happened, in how many independent runs.
    rate : float
        The largest allowed probability of a hit.
    error : float
        Probability of answering yes although the rate is kept.

    Examples
    --------
    >>> is_above(10, 1000, 0.01, 1e-6), is_above(40, 1000, 0.01, 1e-6)
    (False, True)
    """
    return 1.0 - share_limit(runs - hits, runs, error) > rate


def is_below(hits: int, runs: int, rate: float, error: float) -> bool:
    """Return whether so few hits have a probability of at most `error` if each has probability `rate`.

    Parameters
    ----------
    hits, runs, rate, error
        As in `is_above`, with `rate` the smallest allowed probability.

    Examples
    --------
    >>> is_below(995, 1000, 0.999, 1e-6), is_below(960, 1000, 0.999, 1e-6)
    (False, True)
    """
    return share_limit(hits, runs, error) < rate


def most(runs: int, rate: float, error: float) -> int:
    """Return the largest number of hits that `is_above` does not object to.

    Parameters
    ----------
    runs, rate, error
        As in `is_above`.

    Examples
    --------
    >>> most(10_000, 0.001, 1e-6)
    28
    """
    few, many = 0, runs + 1
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if is_above(middle, runs, rate, error) else (middle, many)
    return few


def with_intervals(counted: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return rows with the share of hits and its 95 % interval, to six digits, as "share", "low" and "high".

    Parameters
    ----------
    counted : iterable of mapping
        Rows with "hits" and "runs".

    Examples
    --------
    >>> with_intervals([{"hits": 50, "runs": 100}])
    [{'hits': 50, 'runs': 100, 'share': 0.5, 'low': 0.398321, 'high': 0.601679}]
    """
    extended = []
    for row in counted:
        low, high = interval(row["hits"], row["runs"])
        found = {"share": row["hits"] / row["runs"], "low": low, "high": high}
        extended.append({**row, **{name: float(f"{value:.6g}") for name, value in found.items()}})
    return extended
