"""How many decodes it takes until a test sees a wrong law: predicted from that law, before any is drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, copysign, inf, log, sqrt
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simkit.errors import InputError, UnknownNameError
from simkit.laws.pair import Pair
from simkit.rules.exact import exact_law, no_drafts
from simkit.sampling.program import LARGEST_JOINT
from simkit.sampling.tally import Counts, Run, Tally
from simkit.stats import chi_square, evidence, ks, mix, threshold
from simkit.stats._input import as_rate
from simkit.verify.judge import weigh
from simkit.verify.plan import Plan, as_plan

Law = NDArray[Any]

DRAWS = 100
"""Runs from which the spread of a test's nats at one size is taken."""

MOST_DECODES = 10**10
_NEAR = 1.02
_LEAST_SPREAD = 1e-9


def tally_of_law(pair: Pair, law: Law, trials: int, rng: np.random.Generator) -> Tally:
    """Return the tally of decodes whose tokens follow a given joint law, whatever sampler would draw them.

    Parameters
    ----------
    pair : Pair
        The laws that the tally is judged against; without an end state.
    law : array of Fraction or float, shape (V,) * L, or (R,) + (V,) * L for R > 1 requests
        Joint law of the tokens of a decode, as `simkit.rules.exact.exact_law` gives it.
    trials : int
        Decodes, shared out among the requests as `simulate` does.
    rng : numpy Generator
        Source of the multinomial counts.

    Raises
    ------
    InputError
        For a pair with an end state, a law of another shape, or one that `simulate` would not count jointly.

    Examples
    --------
    >>> pair = Pair.from_weights([1, 1], [1, 1])
    >>> tally_of_law(pair, np.full((2, 2), 0.25), 1000, np.random.default_rng(1)).counts.sum()
    np.int64(2000)
    """
    cells = _by_request(pair, law).astype(np.float64)
    shares = zip(_shares(pair, trials), cells.reshape(len(cells), -1), strict=True)
    drawn = np.stack([rng.multinomial(decodes, row / (row.sum() or 1.0)) for decodes, row in shares])
    return _tally(pair, drawn.reshape(cells.shape), trials)


def _tally(pair: Pair, drawn: NDArray[np.int64], trials: int) -> Tally:
    """Return the tally of counted decodes, shape (R,) + (V,) * L."""
    length = drawn.ndim - 1
    joint_length = length if length > 1 else 0
    data = Counts.zeros(pair, 1, joint_length)
    for start, row in zip(pair.initial, drawn.reshape(len(drawn), -1), strict=True):
        state = np.full(row.size, start)
        for token in np.indices(drawn.shape[1:]).reshape(length, -1):
            np.add.at(data.counts, (state, token), row)
            state = pair.next_state[state, token % pair.next_state.shape[1]]
    if joint_length:
        data.joint[:] = drawn.reshape(len(drawn), -1)
    return Tally(pair, "law", 1, length, (Run(0, 0, trials),), data, joint_length)


def _by_request(pair: Pair, law: Law) -> Law:
    """Return the law with an axis for the requests."""
    requests, given = len(pair.initial), np.asarray(law)
    length = given.ndim - (requests > 1)
    shape = (requests, *(pair.vocabulary,) * length)
    if pair.end is not None:
        raise InputError("a law of decodes of one length needs a pair without an end state")
    if length < 1 or given.shape != shape[len(shape) - given.ndim :]:
        raise InputError(
            f"the law has shape {given.shape}; needed: an axis of {pair.vocabulary} for each token, and one "
            f"of {requests} before them where there are several requests"
        )
    if given.size > LARGEST_JOINT:
        raise InputError(f"the law has {given.size:,} cells; at most {LARGEST_JOINT:,} are counted jointly")
    return given.reshape(shape)


def _shares(pair: Pair, trials: int) -> NDArray[np.int64]:
    """Return the decodes of each request."""
    requests = len(pair.initial)
    return (trials + requests - 1 - np.arange(requests)) // requests


# ---- The tests: what each reads of the joint law of a decode, and how many nats it finds in counts.


class Detector(NamedTuple):
    """A test of decodes.

    Parameters
    ----------
    reads : callable (law, target) -> array
        What it compares of a law of shape (R,) + (V,) * L; it is blind where this is the target's own.
    nats : callable (tally, plan) -> float
        How sure it is of a difference; it rejects from ln(1 / false alarm) on. Infinite where one decode
        settles it.
    """

    reads: Callable[[Law, Law], Law]
    nats: Callable[[Tally, Plan], float]


def _decodes(tally: Tally) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Return decodes by their tokens, their law and the planned decodes, a row for each request."""
    pair, length = tally.pair, tally.joint_length
    if length:
        shape = (len(pair.initial), *(pair.vocabulary,) * length)
        planned = np.full(shape[0], tally.trials / shape[0])
        return tally.joint.reshape(shape), pair.joint_law(length).reshape(shape), planned
    starts = np.unique(pair.initial)
    return tally.counts[starts], pair.target_probabilities[starts], pair.start()[starts] * tally.trials


def _position(law: Law, at: int) -> Law:
    """Return the law of the token at a position, from 1, a row for each request."""
    return np.asarray(law.sum(axis=tuple(axis for axis in range(1, law.ndim) if axis != at)))


def _nats(p_value: float) -> float:
    return -log(p_value) if p_value > 0.0 else inf


def _by_judge(tally: Tally, plan: Plan) -> float:
    return weigh(tally, plan).log_e


def _by_chi_square(tally: Tally, plan: Plan) -> float:
    counts, law, planned = _decodes(tally)
    rows = len(counts), -1
    return _nats(chi_square(counts.reshape(rows), law.reshape(rows), visits=planned).p_value)


def _by_ks(tally: Tally, plan: Plan) -> float:
    """Bonferroni's over the requests."""
    counts, law, _ = _decodes(tally)
    tests = [ks(*row) for row in zip(_position(counts, 1), _position(law, 1), strict=True)]
    return _nats(min(1.0, len(tests) * min(test.p_value for test in tests)))


def _by_position(tally: Tally, plan: Plan) -> float:
    """The average of one e-value for each position."""
    counts, law, planned = _decodes(tally)
    found = {
        str(at): evidence(_position(counts, at), _position(law, at), planned, plan.false_alarm).log_e
        for at in range(1, counts.ndim)
    }
    return mix(found).log_e


def _by_support(tally: Tally, plan: Plan) -> float:
    counts, law, _ = _decodes(tally)
    return inf if counts[law == 0.0].any() else 0.0


DETECTORS = {
    "judge": Detector(lambda law, target: law, _by_judge),
    "chi-square": Detector(lambda law, target: law, _by_chi_square),
    "KS": Detector(lambda law, target: _position(law, 1), _by_ks),
    "marginals": Detector(
        lambda law, target: np.stack([_position(law, at) for at in range(1, law.ndim)]), _by_position
    ),
    "support": Detector(lambda law, target: law[target == 0], _by_support),
}
"""Tests by name.

judge: the evidence of `simkit.judge`; chi-square: Pearson's test on the joint counts of whole decodes; KS:
the exact discrete Kolmogorov-Smirnov test on first tokens, by id; marginals: an e-value for each position,
averaged; support: whether there is a token of target weight 0.
"""


def is_blind(pair: Pair, law: Law, detector: str = "judge") -> bool:
    """Return whether a test takes a law for the target's, however many decodes it reads.

    Parameters
    ----------
    pair, law
        As in `tally_of_law`; with fractions the answer is exact.
    detector : str
        A name in `DETECTORS`.

    Raises
    ------
    InputError, UnknownNameError
        As `tally_of_law`, and for an unknown detector.

    Examples
    --------
    >>> pair = Pair.from_weights([1, 1], [1, 1])
    >>> same = np.array([[0.5, 0.0], [0.0, 0.5]])  # the second token repeats the first
    >>> [is_blind(pair, same, detector) for detector in ("judge", "marginals")]
    [False, True]
    """
    found = _by_request(pair, law)
    target = exact_law(pair, no_drafts, draft_length=1, length=found.ndim - 1).reshape(found.shape)
    reads = _find(detector).reads
    return bool((reads(found, target) == reads(target, target)).all())


def _find(detector: str) -> Detector:
    if detector not in DETECTORS:
        raise UnknownNameError("detector", detector, DETECTORS)
    return DETECTORS[detector]


# ---- The prediction.


def decodes_needed(
    pair: Pair,
    law: Law,
    detector: str = "judge",
    plan: Plan | None = None,
    *,
    power: float = 0.99,
    rng: np.random.Generator | None = None,
) -> int:
    """Return about how many decodes it takes until a test rejects a wrong law with some probability.

    At each size that is tried, runs are drawn from the wrong law, and the signed roots of the test's nats are
    taken as normal: nats grow like the square of a z-score. What a single decode settles, such as a token of
    target weight 0, enters by its own probability, exactly.

    Parameters
    ----------
    pair, law
        As in `tally_of_law`.
    detector : str
        A name in `DETECTORS`.
    plan : Plan or None
        Its false-alarm rate counts.
    power : float
        Probability of rejection.
    rng : numpy Generator or None
        Source of the runs; None for a fixed one.

    Returns
    -------
    int
        Decodes of all requests together; within some per cent, and exact where only single decodes count.

    Raises
    ------
    InputError
        For a law to which the test is blind, or that it does not tell from the target's within ten billion
        decodes; and as `tally_of_law`.
    UnknownNameError
        For an unknown detector.

    Examples
    --------
    >>> pair = Pair.from_weights([1, 1], [1, 1])
    >>> 1000 < decodes_needed(pair, np.array([0.6, 0.4])) < 2000
    True
    """
    miss = 1.0 - as_rate("power", power)
    if is_blind(pair, law, detector):
        raise InputError(
            f"what {detector} reads of this law is the target's own, so no number of decodes will do: "
            "take another detector"
        )
    runs = _split(pair, law, _find(detector), as_plan(plan), rng or np.random.default_rng(0))
    low, high, most = 0, 1, runs.enough(miss)
    while high < most and runs.miss(high) > miss:
        low, high = high, min(4 * high, most)
    if high == MOST_DECODES:
        raise InputError(
            f"{detector} does not tell the law from the target's within {MOST_DECODES:,} decodes"
        )
    while high > max(low + 1, _NEAR * low):
        middle = round(sqrt(max(low, 1) * high))
        if runs.miss(middle) > miss:
            low = middle
        else:
            high = middle
    return high


@dataclass(frozen=True)
class _Runs:
    """Runs of a test on a wrong law: decodes that settle it alone, and the law of all others."""

    pair: Pair
    detector: Detector
    plan: Plan
    rng: np.random.Generator
    rest: NDArray[np.float64]
    settled: NDArray[np.float64]

    def enough(self, miss: float) -> int:
        """Return how many decodes are enough by those that settle it alone; `MOST_DECODES` at most."""
        with np.errstate(divide="ignore"):  # where every decode settles it, one for each request will do
            rate = -np.log1p(-self.settled).sum()
        rounds = ceil(-log(miss) / rate) if rate * MOST_DECODES > -log(miss) else MOST_DECODES
        return min(max(rounds, 1) * len(self.settled), MOST_DECODES)

    def miss(self, decodes: int) -> float:
        """Return the probability that the test does not reject after so many decodes."""
        unsettled = float(np.prod((1.0 - self.settled) ** _shares(self.pair, decodes)))
        if not unsettled:
            return 0.0
        tallies = (tally_of_law(self.pair, self.rest, decodes, self.rng) for _ in range(DRAWS))
        roots = [_root(self.detector.nats(tally, self.plan)) for tally in tallies]
        spread = NormalDist(float(np.mean(roots)), max(float(np.std(roots)), _LEAST_SPREAD))
        return unsettled * spread.cdf(_root(threshold(self.plan.false_alarm)))


def _split(pair: Pair, law: Law, detector: Detector, plan: Plan, rng: np.random.Generator) -> _Runs:
    cells = _by_request(pair, law).astype(np.float64)
    alone = np.zeros(cells.shape, dtype=bool)
    for cell in np.argwhere(cells > 0.0):
        one = np.zeros(cells.shape, dtype=np.int64)
        one[tuple(cell)] = 1
        alone[tuple(cell)] = detector.nats(_tally(pair, one, len(pair.initial)), plan) == inf
    settled = np.where(alone, cells, 0.0).reshape(len(cells), -1).sum(axis=1)
    rest = np.where(alone, 0.0, cells).reshape(np.shape(law))
    return _Runs(pair, detector, plan, rng, rest, np.minimum(settled, 1.0))


def _root(nats: float) -> float:
    return copysign(sqrt(abs(nats)), nats)
