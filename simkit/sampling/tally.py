"""Tally: the additive integer counts of a run, the only thing that leaves the token loop."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from html import escape
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from simkit.errors import InputError
from simkit.laws.pair import Pair

Ints = NDArray[np.int64]
_FIELDS = ("counts", "accepted", "judged", "moments", "joint")
_PAIRS = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))


@dataclass(frozen=True, eq=False)
class Counts:
    """The arrays a backend adds to.

    Parameters
    ----------
    counts : int64 array, shape (S, V)
        Emitted tokens by the state that emitted them.
    accepted : int64 array, shape (K + 1,)
        Target calls by the number of drafts they kept. The last call of a decode is run to its end, so
        that it counts like any other: its drafts beyond the decode's length are judged, but not emitted.
        A call that reaches the end state stops there.
    judged : int64 array, shape (K,)
        How often the draft at each slot was put to the accept test.
    moments : int64 array, shape (9,)
        Sums over trials of (calls, kept drafts, judged drafts), then of their products: calls^2,
        calls * kept, calls * judged, kept^2, kept * judged, judged^2.
    joint : int64 array, shape (R, V**m)
        Decodes by their first m tokens, the first the most significant digit, for each request.
    """

    counts: Ints
    accepted: Ints
    judged: Ints
    moments: Ints
    joint: Ints

    @classmethod
    def zeros(cls, pair: Pair, draft_length: int, joint_length: int) -> Counts:
        """Return empty counts for a pair."""
        cells = pair.vocabulary**joint_length if joint_length else 0
        shapes = (
            (pair.states, pair.vocabulary),
            draft_length + 1,
            draft_length,
            9,
            (len(pair.initial), cells),
        )
        return cls(*(np.zeros(shape, dtype=np.int64) for shape in shapes))

    def add(self, other: Counts) -> None:
        """Add another's counts to these, in place."""
        for name in _FIELDS:
            getattr(self, name).__iadd__(getattr(other, name))


class Estimate(NamedTuple):
    """A measured ratio with its standard error, clustered by trial.

    Trials are taken as draws of one law; where several requests share them out evenly, that overstates the
    error, and intervals are wider than they need be.
    """

    value: float
    standard_error: float

    def __str__(self) -> str:
        return f"{self.value:.6g} +- {self.standard_error:.2g}"

    def interval(self, z: float = 1.96) -> tuple[float, float]:
        """Return value -+ z standard errors."""
        return self.value - z * self.standard_error, self.value + z * self.standard_error


class Run(NamedTuple):
    """Which trials of which seed a tally holds: trials first to stop - 1."""

    seed: int
    first: int
    stop: int


@dataclass(frozen=True, eq=False)
class Tally:
    """What was drawn, as counts, with all that is needed to draw it again.

    Tallies of one task add, and refuse to add trials they already hold.

    Parameters
    ----------
    pair : Pair
        The laws.
    rule : str
        The rule.
    draft_length, length : int
        K and L.
    runs : tuple of Run
        The trials held.
    data : Counts
        The counts.
    joint_length : int
        m of the joint counts, 0 for none.
    backend : str
        What drew them and why; the counts do not depend on it.

    Examples
    --------
    >>> from simkit.sampling.simulate import simulate
    >>> pair = Pair.from_weights([1, 2], [2, 1])
    >>> first, second = simulate(pair, trials=10), simulate(pair, trials=20, first_trial=10)
    >>> (first + second).digest == simulate(pair, trials=30).digest
    True
    """

    pair: Pair
    rule: str
    draft_length: int
    length: int
    runs: tuple[Run, ...]
    data: Counts
    joint_length: int
    backend: str = field(default="")

    def __post_init__(self) -> None:
        for name in _FIELDS:
            getattr(self.data, name).setflags(write=False)

    @property
    def counts(self) -> Ints:
        """Emitted tokens by state, shape (S, V)."""
        return self.data.counts

    @property
    def accepted(self) -> Ints:
        """Target calls by number of drafts kept, shape (K + 1,)."""
        return self.data.accepted

    @property
    def judged(self) -> Ints:
        """Drafts put to the accept test, by slot, shape (K,)."""
        return self.data.judged

    @property
    def joint(self) -> Ints:
        """Decodes by their first m tokens, shape (R, V**m)."""
        return self.data.joint

    @property
    def trials(self) -> int:
        """Number of decodes."""
        return sum(run.stop - run.first for run in self.runs)

    @property
    def tokens(self) -> int:
        """Number of emitted tokens."""
        return int(self.counts.sum())

    @property
    def calls(self) -> int:
        """Number of target calls."""
        return int(self.accepted.sum())

    @property
    def acceptance(self) -> Estimate:
        """Share of judged drafts that were kept (conditional acceptance, all slots together)."""
        return self._ratio(1, 2)

    @property
    def accepted_per_call(self) -> Estimate:
        """Drafts kept in a target call."""
        return self._ratio(1, 0)

    @property
    def tokens_per_call(self) -> Estimate:
        """1 + drafts kept in a target call (block efficiency), decode ends aside."""
        kept = self.accepted_per_call
        return Estimate(1.0 + kept.value, kept.standard_error)

    @property
    def acceptance_by_slot(self) -> NDArray[np.float64]:
        """P(kept at slot i given kept before), shape (K,); NaN at a slot that was never judged."""
        kept = self.accepted[::-1].cumsum()[::-1][1:]
        rates: NDArray[np.float64] = np.full(len(kept), np.nan)
        np.divide(kept, self.judged, out=rates, where=self.judged > 0)
        return rates

    def _ratio(self, over: int, under: int) -> Estimate:
        """Return sum(x)/sum(y) with the linearised standard error over trials, in exact arithmetic."""
        sums = [int(v) for v in self.data.moments[:3]]
        products = {pair: int(v) for pair, v in zip(_PAIRS, self.data.moments[3:], strict=True)}
        x, y, n = sums[over], sums[under], self.trials
        if y == 0:
            return Estimate(math.nan, math.nan)
        ratio = Fraction(x, y)
        low, high = min(over, under), max(over, under)
        squares = products[over, over] - 2 * ratio * products[low, high] + ratio**2 * products[under, under]
        variance = squares * Fraction(n, max(n - 1, 1)) / y**2
        return Estimate(float(ratio), math.sqrt(variance) if n > 1 else math.inf)

    @property
    def digest(self) -> str:
        """SHA-256 of the counts as hex: equal for equal counts, whatever drew them."""
        content = hashlib.sha256()
        for name in _FIELDS:
            array = getattr(self.data, name)
            content.update(repr((name, array.shape)).encode())
            content.update(array.astype("<i8", copy=False).tobytes())
        return content.hexdigest()

    def __add__(self, other: Tally) -> Tally:
        """Return the tally of both; raise `InputError` for another task or for trials held twice."""
        if not isinstance(other, Tally):
            return NotImplemented
        for name in ("rule", "draft_length", "length"):
            if getattr(self, name) != getattr(other, name):
                raise InputError(
                    f"tallies of {name}={getattr(self, name)!r} and {getattr(other, name)!r} do not add"
                )
        if self.pair.digest != other.pair.digest:
            raise InputError("tallies of two different pairs do not add")
        data = Counts(*(getattr(self.data, name) + getattr(other.data, name) for name in _FIELDS))
        runs = _merged([*self.runs, *other.runs])
        backend = self.backend if self.backend == other.backend else f"{self.backend}; {other.backend}"
        return Tally(
            self.pair, self.rule, self.draft_length, self.length, runs, data, self.joint_length, backend
        )

    def __radd__(self, other: int) -> Tally:
        """Let ``sum(tallies)`` start from 0."""
        return self if other == 0 else NotImplemented

    def summary(self) -> Mapping[str, object]:
        """Return the figures a person asks for first, by name."""
        acceptance, efficiency = self.acceptance, self.tokens_per_call
        return {
            "pair": self.pair.name,
            "rule": self.rule,
            "draft length": self.draft_length,
            "length": self.length,
            "trials": self.trials,
            "seeds": ", ".join(str(seed) for seed in sorted({run.seed for run in self.runs})),
            "tokens": self.tokens,
            "target calls": self.calls,
            "acceptance": str(acceptance),
            "tokens per target call": str(efficiency),
            "backend": self.backend,
            "digest": self.digest[:16],
        }

    def __repr__(self) -> str:
        lines = (f"  {name}: {value}" for name, value in self.summary().items())
        return "Tally\n" + "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><th>{k}</th><td>{escape(str(v))}</td></tr>" for k, v in self.summary().items())
        return f"<table>{rows}</table>"


def _merged(runs: Iterable[Run]) -> tuple[Run, ...]:
    """Return the runs in order, neighbours joined; raise `InputError` where two share a trial."""
    merged: list[Run] = []
    for run in sorted(runs):
        if merged and merged[-1].seed == run.seed and run.first < merged[-1].stop:
            raise InputError(
                f"both tallies hold trials {run.first} to {min(run.stop, merged[-1].stop) - 1} of seed "
                f"{run.seed}; adding them would count the same draws twice: use another seed or first_trial"
            )
        if merged and merged[-1].seed == run.seed and run.first == merged[-1].stop:
            merged[-1] = merged[-1]._replace(stop=run.stop)
        else:
            merged.append(run)
    return tuple(merged)
