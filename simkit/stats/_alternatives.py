"""Laws that a faulty sampler would have: each is a function of the target rows p and the draft rows q.

A law is written so that its weight at one token needs only p and q there and a few totals of the row.
Evidence over a run then gathers one number a token, and never builds a row twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from simkit.stats._input import Floats

Pointwise = Callable[[Floats, Floats], Floats]
"""Weights at tokens from p and q at the same tokens; broadcasts, and looks at no other token."""

LENIENCES = (0.99, 0.98, 0.95, 0.9, 0.8, 0.5)
DRAFT_SCALES = (0.75, 0.88, 0.95, 0.98, 1.02)


@dataclass(frozen=True)
class Fault:
    """Hold the law of one step that keeps a draft or replaces it.

    The law is kept + (1 - sum kept) residual / sum residual. Called with rows (R, V) of p and q it returns
    its rows (R, V). Where the residual is empty p stands in for it, as in samplers that guard the division.

    Parameters
    ----------
    kept
        Probability that a token is drafted and kept.
    residual
        Law of the replacement, up to a factor.

    Examples
    --------
    >>> p, q = np.array([[0.5, 0.3, 0.2]]), np.array([[0.2, 0.3, 0.5]])
    >>> FAULTS["replace-from-target"](p, q).round(12).tolist()
    [[0.35, 0.39, 0.26]]
    """

    kept: Pointwise
    residual: Pointwise

    def __call__(self, p: Floats, q: Floats) -> Floats:
        """Return the rows of the law."""
        kept, residual = (part(p, q).sum(axis=-1, keepdims=True) for part in (self.kept, self.residual))
        return self.at(p, q, kept, residual)

    def at(self, p: Floats, q: Floats, kept_total: Floats, residual_total: Floats) -> Floats:
        """Return the law at tokens where p and q are known, from the totals of `kept` and `residual`."""
        refused = np.maximum(1.0 - kept_total, 0.0)
        empty = residual_total <= 0
        replacement = np.where(empty, p, self.residual(p, q) / np.where(empty, 1.0, residual_total))
        return np.asarray(self.kept(p, q) + refused * replacement)


def overlap(p: Floats, q: Floats) -> Floats:
    """Return min(p, q): drafts kept with probability min(1, p/q)."""
    return np.minimum(p, q)


def excess(p: Floats, q: Floats) -> Floats:
    """Return max(p - q, 0), the residual."""
    return np.maximum(p - q, 0.0)


def _target(p: Floats, q: Floats) -> Floats:
    return p


def _draft(p: Floats, q: Floats) -> Floats:
    return q


def _nothing(p: Floats, q: Floats) -> Floats:
    return np.zeros_like(p)


def _kept_by_inverted_ratio(p: Floats, q: Floats) -> Floats:
    """Return q min(1, q/p)."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        return np.fmin(q, q * (q / p))  # fmin takes q where p = q = 0


def _kept_if_likelier(p: Floats, q: Floats) -> Floats:
    """Return q where p >= q."""
    return np.asarray(q * (p >= q))


def _softmax_of_excess(p: Floats, q: Floats) -> Floats:
    """Return exp(max(p - q, 0)), which gives weight to tokens of residual 0."""
    return np.exp(excess(p, q))


def _match(p: Floats, q: Floats) -> Floats:
    """Return p q: the draft equals a token drawn from the target."""
    return p * q


@cache
def _kept_with_ratio_over(divisor: float) -> Pointwise:
    """Return the function q min(1, p / (divisor q)); the same one for the same divisor, to be summed once."""
    return lambda p, q: np.minimum(q, p * (1.0 / divisor))


def lenience(level: float) -> Fault:
    """Return the fault that keeps drafts with min(1, p / (level q)) and replaces from the right residual.

    Examples
    --------
    >>> p, q = np.array([[0.5, 0.3, 0.2]]), np.array([[0.2, 0.3, 0.5]])
    >>> lenience(0.5)(p, q).round(12).tolist()
    [[0.3, 0.3, 0.4]]
    """
    return Fault(_kept_with_ratio_over(level), excess)


def draft_scaled(scale: float) -> Fault:
    """Return the fault whose record of q is `scale` times the law q that drafts are drawn from.

    The ratio p / (scale q) and the residual max(p - scale q, 0) both read the record. A record taken before
    the draft's filter is such a one: on the tokens that pass the filter it is their mass times the law drawn
    from.

    Examples
    --------
    >>> raw, drawn = np.array([[0.4, 0.3, 0.2, 0.1]]), np.array([[4, 3, 2, 0]]) / 9
    >>> draft_scaled(0.9)(np.array([[0.5, 0.3, 0.2, 0.0]]), drawn).round(3).tolist()
    [[0.444, 0.333, 0.222, 0.0]]
    """
    return Fault(_kept_with_ratio_over(scale), lambda p, q: np.maximum(p - scale * q, 0.0))


# A residual of the wrong sign, max(q - p, 0), gives min(p, q) + max(q - p, 0) = q: that is draft-always-kept.
FAULTS: Mapping[str, Fault] = MappingProxyType(
    {
        "replace-from-target": Fault(overlap, _target),
        "draft-always-kept": Fault(_draft, excess),
        "ratio-inverted": Fault(_kept_by_inverted_ratio, excess),
        "keep-if-likelier": Fault(_kept_if_likelier, excess),
        "softmax-of-residual": Fault(overlap, _softmax_of_excess),
        "residual-only": Fault(_nothing, excess),
        "match-then-redraw": Fault(_match, _target),
        "match-then-residual": Fault(_match, excess),
        **{f"lenience {level:g}": lenience(level) for level in LENIENCES},
        **{f"draft-scaled {scale:g}": draft_scaled(scale) for scale in DRAFT_SCALES},
    }
)
"""Laws of known faults by name; the words are those of the rule that is broken."""


TEMPERATURES = (0.5, 0.8, 0.9, 0.95, 0.98, 1.02, 1.05, 1.1, 1.25, 2.0)


def tempered(p: Floats, temperature: float) -> Floats:
    """Return p^(1/T) / sum p^(1/T), rows (R, V): the law at temperature T times the right one.

    Examples
    --------
    >>> tempered(np.array([[0.5, 0.3, 0.2]]), 0.5).round(3).tolist()
    [[0.658, 0.237, 0.105]]
    """
    weights = p ** (1.0 / temperature)
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def log_tilt_sums(p: Floats) -> Floats:
    """Return ln sum p^(1/T), (R, temperatures), which turns `tempered` into a law known from p at a token."""
    with np.errstate(divide="ignore"):
        log_p = np.log(p)
    sums, powers = np.empty((len(p), len(TEMPERATURES))), np.empty_like(p)
    for i, temperature in enumerate(TEMPERATURES):
        # One logarithm and an exponential each take half the time of powers, and no new memory a quarter.
        np.multiply(log_p, 1.0 / temperature, out=powers)
        np.exp(powers, out=powers).sum(axis=1, out=sums[:, i])
    return np.log(sums)


def greedy(p: Floats) -> Floats:
    """Return the law that always takes the likeliest token, rows (R, V); tied tokens share.

    Examples
    --------
    >>> greedy(np.array([[0.5, 0.3, 0.2], [0.4, 0.2, 0.4]])).tolist()
    [[1.0, 0.0, 0.0], [0.5, 0.0, 0.5]]
    """
    best = p == p.max(axis=-1, keepdims=True)
    return np.asarray(best / best.sum(axis=-1, keepdims=True))


BUCKETS = 16


def buckets(p: Floats) -> tuple[Floats, Floats]:
    """Return edges and masses of BUCKETS buckets of about equal mass, of rising probability.

    The cumulative mass at the middle of a token decides its bucket; tokens of equal p join the highest bucket
    that one of them is in, so that p alone tells the bucket: the number of edges that are at most p.
    """
    height, width = p.shape
    ranked = np.sort(p, axis=1)
    mass = np.cumsum(ranked, axis=1)
    total = mass[:, -1:]
    bucket = np.minimum((mass - ranked / 2) * (BUCKETS / total), BUCKETS - 1).astype(np.int64)
    row = np.arange(height)[:, None]
    # Whole numbers that rise over all rows, so one search finds where each bucket of each row starts.
    keys = (bucket + BUCKETS * row).ravel()
    start = np.searchsorted(keys, BUCKETS * row + np.arange(1, BUCKETS)) - width * row
    there = start < width
    start = np.take_along_axis(_first_equals(ranked), np.minimum(start, width - 1), axis=1)
    edges = np.where(there, np.take_along_axis(ranked, start, axis=1), np.inf)
    below = np.where(start > 0, np.take_along_axis(mass, np.maximum(start - 1, 0), axis=1), 0.0)
    bounds = np.concatenate([np.zeros_like(total), np.where(there, below, total), total], axis=1) / total
    return edges, np.diff(bounds, axis=1)


def _first_equals(ranked: Floats) -> NDArray[np.int32]:
    """Return for each entry of sorted rows the position of the first that equals it."""
    start = np.zeros(ranked.shape, dtype=np.int32)
    np.multiply(
        ranked[:, 1:] != ranked[:, :-1], np.arange(1, ranked.shape[1], dtype=np.int32), out=start[:, 1:]
    )
    return np.maximum.accumulate(start, axis=1)
