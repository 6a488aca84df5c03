"""judge: counts, their law and a plan to a verdict. Pure: the same counts give the same verdict."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simkit.errors import InputError
from simkit.laws.checks import whole_number
from simkit.laws.rows import Row
from simkit.sampling.tally import Tally
from simkit.stats import (
    Certificate,
    Evidence,
    GoodnessOfFit,
    certificate,
    chi_square,
    detectable_tv,
    evidence,
    holm,
    ks,
    largest_z,
    where,
)
from simkit.stats._input import as_counts, as_probabilities, as_visits
from simkit.verify.plan import Plan, as_plan
from simkit.verify.verdict import OUTCOMES, Verdict

__all__ = ["OUTCOMES", "Plan", "Run", "Verdict", "judge", "judge_run", "weigh"]

Families = Mapping[str, Mapping[str, float]]
Table = tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]
_MOST_DRAWS = 1e18
_TOO_EVEN_FROM = 30
"""Degrees of freedom from which a chi-square near 0 is a sign, and not just a coarse law."""


def judge(
    counts: Tally | ArrayLike,
    target: ArrayLike | Row | None = None,
    plan: Plan | None = None,
    *,
    visits: ArrayLike | None = None,
    sampler: str = "",
    key: str | None = None,
    look: int | None = None,
    others: Families | None = None,
) -> Verdict:
    """Return the verdict on counts against the law they should have.

    FAIL is decided by the e-value, whose false-alarm rate is exact at any rate and sparsity, and by tokens of
    target weight 0, which need no statistics. PASS is decided by the certificate, an upper confidence bound
    on the total variation. FAIL beats PASS; where neither holds, the outcome is INCONCLUSIVE. Chi-square,
    largest z-score and Kolmogorov-Smirnov tests stand beside them.

    Parameters
    ----------
    counts : Tally or array of int, shape (V,) or (S, V)
        What was drawn, by token, or by state and token. Draws of a state are taken as independent.
    target : array of float of the same shape, or Row, or None
        Target law; rows sum to 1. A tally brings its own.
    plan : Plan or None
        Error rates and tolerance; None for the defaults.
    visits : array of float, shape (S,), or None
        Planned (expected) draws of each state; needed for counts (S, V), as the realised draws are random.
    sampler : str
        What to call the sampler; verdicts of one sampler combine.
    key : str or None
        What tells these draws from others, such as a seed; None for the digest of the counts.
    look : int or None
        Which of the plan's looks this is, from 1; None for the last.
    others : mapping of str to mapping of str to float, or None
        Log e-values of the same run from elsewhere, by family and name, such as `shared_randomness` of its
        tokens; each family joins with equal weight.

    Raises
    ------
    InputError
        For counts that are negative, fractional, all zero or of another shape than the target; for a target
        that is no law; for missing visits.

    Examples
    --------
    >>> judge([5012, 4988], [0.5, 0.5], Plan(tolerance=0.05)).outcome
    'PASS'
    >>> judge([5400, 4600], [0.5, 0.5]).outcome
    'FAIL'
    """
    plan = as_plan(plan)
    if isinstance(counts, Tally):
        if target is not None or visits is not None:
            raise InputError("a tally brings its target law and visits; judge its counts to give others")
        run = _of_tally(counts, plan, sampler)
    else:
        run = _of_counts(counts, target, visits, sampler)
    keys = run.keys if key is None else (key,)
    return judge_run(replace(run, keys=keys, log_e=_families(others)), plan, look)


def _families(others: object) -> Families:
    """Return families of log e-values, or none; their numbers are checked where they are mixed."""
    if others is None:
        return {}
    if not isinstance(others, Mapping) or not all(isinstance(m, Mapping) for m in others.values()):
        raise InputError(
            f"others={others!r}; needed: log e-values by family and name, such as {{'mine': {{'a': 1.5}}}}"
        )
    return others


@dataclass(frozen=True)
class Run:
    """What is judged: counts and law by state, planned draws, and evidence from elsewhere.

    Parameters
    ----------
    counts : int64 array, shape (S, V)
        Tokens by state.
    law : float64 array, shape (S, V)
        Target law of each state.
    visits : float64 array, shape (S,)
        Planned draws at each state up to this look.
    sampler, target, keys
        As in `Verdict`.
    tables : mapping of str to (counts, law, planned draws)
        Other counts of the same run, each with a law of its own: a family of evidence for each.
    log_e : mapping of str to mapping of str to float
        Log e-values of the same run from elsewhere, by family and name.
    """

    counts: NDArray[np.int64]
    law: NDArray[np.float64]
    visits: NDArray[np.float64]
    sampler: str
    target: str
    keys: tuple[str, ...]
    tables: Mapping[str, Table] = field(default_factory=dict)
    log_e: Families = field(default_factory=dict)


def _of_tally(tally: Tally, plan: Plan, sampler: str) -> Run:
    if plan.length not in (None, tally.length):
        raise InputError(
            f"the plan's sequences have length={plan.length} and the tally's decodes {tally.length} tokens; "
            "make both the same"
        )
    joint = {}
    if tally.joint_length:
        joint[f"first {tally.joint_length} tokens"] = _joint(tally)
    return Run(
        counts=tally.counts,
        law=tally.pair.target_probabilities,
        visits=tally.pair.expected_visits(tally.length) * tally.trials,
        sampler=sampler or f"simkit rule {tally.rule}, K={tally.draft_length}, L={tally.length}",
        target=tally.pair.digest,
        keys=tuple(f"seed {run.seed}, trials {run.first} to {run.stop - 1}" for run in tally.runs),
        tables=joint,
    )


def _of_counts(
    counts: ArrayLike, target: ArrayLike | Row | None, visits: ArrayLike | None, sampler: str
) -> Run:
    if target is None:
        raise InputError("judge(counts) needs the target: the probabilities that the counts should follow")
    law = as_probabilities(target)
    tokens = as_counts(counts, law.shape)
    if visits is None and law.ndim == 2 and len(law) > 1:
        raise InputError(
            f"counts of {len(law)} states need visits, the planned draws of each state: the realised ones "
            "are random, and cells pooled by them would depend on the counts"
        )
    total = int(tokens.sum())
    if total == 0:
        raise InputError("counts are all zero: nothing was drawn, so there is nothing to judge")
    if not law[tokens > 0].any():
        raise InputError(
            "the target gives weight 0 to every token that was seen; is its vocabulary in the same order?"
        )
    content = np.ascontiguousarray(tokens, dtype="<i8").tobytes()
    return Run(
        counts=np.atleast_2d(tokens),
        law=np.atleast_2d(law),
        visits=as_visits(total if visits is None else visits, law),
        sampler=sampler,
        target=hashlib.sha256(np.ascontiguousarray(law, dtype="<f8").tobytes()).hexdigest(),
        keys=(f"counts {hashlib.sha256(content).hexdigest()[:16]}",),
    )


def weigh(tally: Tally, plan: Plan | None = None) -> Evidence:
    """Return the evidence alone that `judge` would find in a tally: a tenth of the work of a verdict.

    Parameters
    ----------
    tally : Tally
        What was drawn.
    plan : Plan or None
        Its false-alarm rate is the one for which the e-value is tuned.

    Examples
    --------
    >>> from simkit.laws.pair import Pair
    >>> from simkit.sampling.simulate import simulate
    >>> tally = simulate(Pair.from_weights([1, 2], [2, 1]), "replace-from-target", trials=10_000)
    >>> weigh(tally).log_e == judge(tally).log_evidence
    True
    """
    plan = as_plan(plan)
    return _weigh(_of_tally(tally, plan, ""), plan, 1.0)


def judge_run(run: Run, plan: Plan, look: int | None = None) -> Verdict:
    """Return the verdict on a run at one of the plan's looks.

    Parameters
    ----------
    run : Run
        What was drawn so far.
    plan : Plan
        Error rates, tolerance and number of looks.
    look : int or None
        Which look, from 1; None for the last. Sizes double from look to look.

    Raises
    ------
    InputError
        For a look that the plan does not have.
    """
    look = plan.looks if look is None else whole_number(look, "look", 1, plan.looks)
    scale = 2.0 ** (plan.looks - look)
    found = _weigh(run, plan, scale)
    bound = certificate(run.counts, run.law, plan.confidence, visits=run.visits)
    tests = _tests(run, plan.ks_states)
    impossible = int(run.counts[run.law == 0.0].sum())
    place = _place(run, found, scale)
    outcome, reason = _decide(run, plan, impossible, found, bound, tests, place)
    return Verdict(
        outcome=outcome,
        reason=reason,
        where=place,
        evidence=found,
        certificate=bound,
        tests=tests,
        adjusted=tuple(holm([test.p_value for test in tests])),
        detectable_tv=_detectable(run, plan, found),
        impossible=impossible,
        samples=int(run.counts.sum()),
        plan=plan,
        sampler=run.sampler,
        target=run.target,
        keys=run.keys,
    )


def _place(run: Run, found: Evidence, scale: float) -> str:
    """Return where the counts depart most; the component's name where it is not about tokens by state."""
    elsewhere = [name for members in run.log_e.values() for name in members]
    if found.strongest in elsewhere or found.strongest.split(", ")[0] in run.tables:
        return found.strongest
    return where(run.counts, run.law, run.visits * scale, found)


def _weigh(run: Run, plan: Plan, scale: float) -> Evidence:
    """Return the evidence of a run: tokens by state, other counts of the same run, and what it brings."""
    others = {family: dict(members) for family, members in run.log_e.items()}
    for family, (counts, law, planned) in run.tables.items():
        joint = evidence(counts, law, planned * scale, plan.false_alarm, plan.looks)
        others[family] = {f"{family}, {name}": value for name, value in joint.components.items()}
    return evidence(run.counts, run.law, run.visits * scale, plan.false_alarm, plan.looks, others)


def _joint(tally: Tally) -> Table:
    """Return joint counts, law and planned decodes by request; decodes that end earlier have a cell."""
    requests = len(tally.pair.initial)
    before = [
        [(n - r + requests - 1) // requests for r in range(requests)] for run in tally.runs for n in run[1:]
    ]
    trials = np.array(before[1::2]).sum(axis=0) - np.array(before[::2]).sum(axis=0)
    planned = np.full(requests, tally.trials / requests)
    law = tally.pair.joint_law(tally.joint_length)
    if tally.pair.end is None:
        return tally.joint, law, planned
    early = np.maximum(1.0 - law.sum(axis=1), 0.0)
    early[early < 1e-12] = 0.0
    rest = trials - tally.joint.sum(axis=1)
    return np.column_stack([tally.joint, rest]), np.column_stack([law, early]), planned


def _tests(run: Run, ks_states: int) -> tuple[GoodnessOfFit, ...]:
    tests = [
        chi_square(run.counts, run.law, visits=run.visits),
        largest_z(run.counts, run.law, visits=run.visits),
    ]
    for state in np.argsort(-run.visits, kind="stable")[:ks_states].tolist():
        if run.counts[state].any():
            place = f", state {state}" if len(run.law) > 1 else ""
            for order in ("id", "rank"):
                test = ks(run.counts[state], run.law[state], order=order)
                tests.append(replace(test, name=f"{test.name}{place}"))
    return tuple(tests)


def _detectable(run: Run, plan: Plan, found: Evidence) -> float:
    """Return the smallest total variation that the e-value over all tokens would have caught."""
    whole = next(iter(found.shares.values()))
    draws = max(int(run.counts.sum()), 1)
    return detectable_tv(
        run.law,
        draws,
        plan.false_alarm,
        plan.miss,
        components=max(1, round(1.0 / whole)),
        visits=run.visits,
    )


def _decide(
    run: Run,
    plan: Plan,
    impossible: int,
    found: Evidence,
    bound: Certificate,
    tests: tuple[GoodnessOfFit, ...],
    place: str,
) -> tuple[str, str]:
    samples = int(run.counts.sum())
    if impossible:
        return "FAIL", f"{impossible} of {samples} tokens have target weight 0 ({place})"
    if found.rejects(plan.false_alarm):
        return "FAIL", (
            f"log e-value {found.log_e:.4g} at {samples} tokens, which a right sampler reaches with "
            f"probability at most {plan.false_alarm:g}; {place}"
        )
    if samples == 0:
        return "INCONCLUSIVE", "nothing was drawn"
    if _too_even(tests[0], plan.false_alarm):
        return "INCONCLUSIVE", (
            "the counts are closer to the law than independent draws come (chi-square "
            f"{tests[0].statistic:.4g} at {tests[0].degrees_of_freedom} degrees of freedom): are draws "
            "repeated or stratified?"
        )
    if bound.total_variation <= plan.limit:
        return "PASS", (
            f"total variation at most {bound.total_variation:.3g} per token with confidence "
            f"{bound.confidence:.6g}; tolerated {plan.limit:g}"
        )
    return "INCONCLUSIVE", (
        f"not rejected, but the total variation is only known to be at most {bound.total_variation:.3g}; "
        f"tolerated {plan.limit:g}: {_more(run, plan)}"
    )


def _too_even(test: GoodnessOfFit, false_alarm: float) -> bool:
    return (test.degrees_of_freedom or 0) >= _TOO_EVEN_FROM and 1.0 - test.p_value <= false_alarm


def _more(run: Run, plan: Plan) -> str:
    """Return about how many draws a PASS takes: the bound falls with their square root."""
    draws, miss = float(run.counts.sum()), plan.miss / plan.looks
    needed = draws
    for _ in range(8):
        seen = detectable_tv(run.law, needed, plan.false_alarm, miss, visits=run.visits)
        ratio = seen / plan.limit
        needed *= min(ratio, _MOST_DRAWS) ** 2
        if needed > _MOST_DRAWS:
            return "no feasible number of draws will do"
    return f"it takes about {float(f'{max(needed, 1.0):.3g}'):,.0f} draws, and these are {draws:,.0f}"
