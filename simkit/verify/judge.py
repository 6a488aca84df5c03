"""judge: a tally, its law and a plan to a verdict. Pure: the same counts give the same verdict."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import Enum
from html import escape

import numpy as np
from numpy.typing import NDArray

from simkit.errors import InputError
from simkit.laws.checks import whole_number
from simkit.sampling.tally import Tally
from simkit.stats import (
    Evidence,
    GoodnessOfFit,
    chi_square,
    evidence,
    holm,
    ks,
    mix,
    samples_needed,
    threshold,
)


class Status(Enum):
    """The three answers; the value is what it means.

    Examples
    --------
    >>> print(Status.FAIL.value)
    rejected: the sampler does not draw from the target law
    """

    PASS = "not rejected, by a run that would have seen a fault of the tolerated size"
    FAIL = "rejected: the sampler does not draw from the target law"
    INCONCLUSIVE = "not rejected, but the run is too short to see a fault of the tolerated size: draw more"


@dataclass(frozen=True)
class Plan:
    """What a verdict promises, fixed before the counts are seen.

    Parameters
    ----------
    false_alarm : float
        Largest probability that a right sampler is rejected.
    miss : float
        Largest probability that a law at the tolerated distance is not rejected, for PASS.
    tolerance : float
        Total variation per token, up to 0.5, that a run must be able to see before it may pass. It is seen
        with the stated probability when the law is off by the same share at every token, the hardest case at
        a given distance; a PASS is not a certificate for every law at that distance.
    ks_states : int
        How many of the most visited states get Kolmogorov-Smirnov tests.

    Raises
    ------
    InputError
        For rates outside (0, 1), a tolerance outside (0, 0.5], or a negative number of states.

    Examples
    --------
    >>> Plan(tolerance=0.02).false_alarm
    1e-06
    """

    false_alarm: float = 1e-6
    miss: float = 1e-3
    tolerance: float = 0.01
    ks_states: int = 2

    def __post_init__(self) -> None:
        for name in ("false_alarm", "miss", "tolerance"):
            value = getattr(self, name)
            if not isinstance(value, int | float) or not 0.0 < value < 1.0:
                raise InputError(f"{name}={value!r}; it must lie strictly between 0 and 1")
        if self.tolerance > 0.5:
            raise InputError(f"tolerance={self.tolerance!r}; it must be above 0 and at most 0.5")
        whole_number(self.ks_states, "ks_states", 0)


@dataclass(frozen=True)
class Verdict:
    """What a run says about its sampler.

    Parameters
    ----------
    status : Status
        The answer.
    reason : str
        Why, in one sentence.
    evidence : Evidence
        The e-value and its components; it decides.
    tests : tuple of GoodnessOfFit
        Chi-square and Kolmogorov-Smirnov tests; they inform.
    adjusted : tuple of float
        Their p-values after Holm's correction.
    impossible : int
        Emitted tokens that the target gives weight 0.
    samples, informative, needed : int
        Tokens drawn; expected tokens that can speak against a fault (those of states with two possible tokens
        or more, less the first of each state, which any law may give); and how many of these a PASS needs.
    plan : Plan
        The plan.

    Examples
    --------
    >>> from simkit.laws.pair import Pair
    >>> from simkit.sampling.simulate import simulate
    >>> verdict = judge(simulate(Pair.from_weights([1, 2], [2, 1]), trials=100, seed=1))
    >>> verdict.status.name, verdict.samples < verdict.needed
    ('INCONCLUSIVE', True)
    """

    status: Status
    reason: str
    evidence: Evidence
    tests: tuple[GoodnessOfFit, ...]
    adjusted: tuple[float, ...]
    impossible: int
    samples: int
    informative: int
    needed: int
    plan: Plan

    @property
    def passed(self) -> bool:
        """Whether the answer is PASS; neither FAIL nor INCONCLUSIVE is."""
        return self.status is Status.PASS

    def rows(self) -> list[tuple[str, str]]:
        """Return what there is to read, as (name, text)."""
        limit = threshold(self.plan.false_alarm)
        tests = [
            (test.name, f"{str(test).removeprefix(test.name + ': ')}; after Holm {_p(adjusted)}")
            for test, adjusted in zip(self.tests, self.adjusted, strict=True)
        ]
        return [
            ("verdict", f"{self.status.name}: {self.reason}"),
            ("log e-value", f"{self.evidence.log_e:.4g} (rejects at {limit:.4g}; {self.evidence.strongest})"),
            *tests,
        ]

    def __repr__(self) -> str:
        return "Verdict\n" + "\n".join(f"  {name}: {text}" for name, text in self.rows())

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><th>{name}</th><td>{escape(text)}</td></tr>" for name, text in self.rows())
        return f"<table>{rows}</table>"


def judge(tally: Tally, plan: Plan | None = None) -> Verdict:
    """Return the verdict on a tally against the target law of its pair.

    The e-value decides, since its false-alarm rate is exact at any rate and sparsity; a token of target
    weight 0 fails at once, without statistics. Chi-square and Kolmogorov-Smirnov tests stand beside it.

    Parameters
    ----------
    tally : Tally
        Counts of a run.
    plan : Plan or None
        Error rates and tolerance; None for the defaults.

    Examples
    --------
    >>> from simkit.laws.pair import Pair
    >>> from simkit.sampling.simulate import simulate
    >>> pair = Pair.from_weights([1, 2], [2, 1])
    >>> judge(simulate(pair, trials=20_000, seed=1)).status.name
    'PASS'
    >>> judge(simulate(pair, "replace-from-target", trials=10_000, seed=1)).status.name
    'FAIL'
    """
    plan = plan or Plan()
    visits = tally.pair.expected_visits(tally.length) * tally.trials
    law = tally.pair.target_probabilities
    impossible = int(tally.counts[law == 0.0].sum())
    found = weigh(tally, visits, plan.false_alarm)
    tests = _tests(tally, visits, plan.ks_states)
    needed, informative = (
        _needed(law, len(found.components), plan),
        min(_informative(law, visits), tally.tokens),
    )
    status, reason = _decide(impossible, found, tally.tokens, informative, needed, plan)
    return Verdict(
        status=status,
        reason=reason,
        evidence=found,
        tests=tests,
        adjusted=tuple(holm([test.p_value for test in tests])),
        impossible=impossible,
        samples=tally.tokens,
        informative=informative,
        needed=needed,
        plan=plan,
    )


def _p(adjusted: float) -> str:
    """Return an adjusted p-value as text; small ones rest on approximations, so they get no digits."""
    return "< 1e-4" if adjusted < 1e-4 else f"{adjusted:.3g}"


def weigh(tally: Tally, visits: NDArray[np.float64], false_alarm: float) -> Evidence:
    """Return the evidence of a tally: tokens by state, and the first tokens jointly.

    Parameters
    ----------
    tally : Tally
        Counts of a run.
    visits : float64 array, shape (S,)
        Expected visits of the whole run.
    false_alarm : float
        The rate for which the e-values are tuned; it does not touch their validity.
    """
    parts = dict(evidence(tally.counts, tally.pair.target_probabilities, visits, false_alarm).components)
    if tally.joint_length:
        counts, law = _joint(tally)
        planned = np.full(len(counts), tally.trials / len(counts))
        joint = evidence(counts, law, planned, false_alarm)
        parts |= {f"first {tally.joint_length} tokens, {name}": e for name, e in joint.components.items()}
    return mix(parts)


def _joint(tally: Tally) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return joint counts and law of the first tokens by request, and decodes that end earlier."""
    requests = len(tally.pair.initial)
    before = [
        [(n - r + requests - 1) // requests for r in range(requests)] for run in tally.runs for n in run[1:]
    ]
    trials = np.array(before[1::2]).sum(axis=0) - np.array(before[::2]).sum(axis=0)
    law = tally.pair.joint_law(tally.joint_length)
    if tally.pair.end is None:
        return tally.joint, law
    early = np.maximum(1.0 - law.sum(axis=1), 0.0)
    early[early < 1e-12] = 0.0
    rest = trials - tally.joint.sum(axis=1)
    return np.column_stack([tally.joint, rest]), np.column_stack([law, early])


def _tests(tally: Tally, visits: NDArray[np.float64], ks_states: int) -> tuple[GoodnessOfFit, ...]:
    law = tally.pair.target_probabilities
    tests = [chi_square(tally.counts, law, visits=visits)]
    for state in np.argsort(-visits, kind="stable")[:ks_states].tolist():
        if tally.counts[state].any():
            where = f", state {state}" if tally.pair.states > 1 else ""
            for order in ("id", "rank"):
                test = ks(tally.counts[state], law[state], order=order)
                tests.append(replace(test, name=f"{test.name}{where}"))
    return tuple(tests)


def _needed(law: NDArray[np.float64], components: int, plan: Plan) -> int:
    """Return the tokens after which a fault of the tolerated size would have been seen."""
    cells = int((law > 0).sum()) - len(law) + 1
    if cells == 1:  # nothing is random: a fault is a token of weight 0, met at the rate of the distance
        return math.ceil(math.log(1.0 / plan.miss) / plan.tolerance)
    return samples_needed(plan.tolerance, cells, plan.false_alarm, plan.miss, components=components)


def _informative(law: NDArray[np.float64], visits: NDArray[np.float64]) -> int:
    """Return how many of the expected draws can carry evidence; all of them where nothing is random.

    The first draw of a state has an e-value of exactly 1, and so has every draw of a single possible token.
    """
    random = (law > 0).sum(axis=1) > 1
    if not random.any():
        return int(visits.sum())
    return int(np.maximum(visits[random] - 1.0, 0.0).sum())


def _decide(
    impossible: int, found: Evidence, samples: int, informative: int, needed: int, plan: Plan
) -> tuple[Status, str]:
    if impossible:
        return Status.FAIL, f"{impossible} of {samples} tokens have target weight 0"
    if found.rejects(plan.false_alarm):
        return Status.FAIL, (
            f"log e-value {found.log_e:.4g} at {samples} tokens; a right sampler reaches "
            f"{threshold(plan.false_alarm):.4g} with probability at most {plan.false_alarm:g}"
        )
    if informative < needed:
        return Status.INCONCLUSIVE, (
            f"{samples} tokens show nothing; to see a fault of total variation {plan.tolerance:g} takes "
            f"{needed} that can show one, and {informative} can"
        )
    return Status.PASS, (
        f"not rejected at {samples} tokens; an even fault of total variation {plan.tolerance:g} would have "
        f"been, with probability {1 - plan.miss:g}"
    )
