"""judge_stream: the verdict on tokens whose contexts never repeat, such as a recorded run or a rollout."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simkit.errors import InputError
from simkit.stats import Certificate, threshold
from simkit.stats.stream import Stream
from simkit.verify.plan import Plan, as_plan
from simkit.verify.verdict import Verdict

Law = Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]


def judge_stream(
    tokens: ArrayLike | Stream,
    rows: ArrayLike | None = None,
    draft_rows: ArrayLike | None = None,
    plan: Plan | None = None,
    *,
    alternatives: Mapping[str, Law] | None = None,
    sampler: str = "",
    key: str = "",
) -> Verdict:
    """Return the verdict on tokens, each drawn once from a target row of its own.

    The outcome is FAIL or INCONCLUSIVE: what was drawn once cannot be certified. FAIL is decided by
    e-processes with alternatives that all contexts share (`simkit.stats.stream.Stream`), which may be looked
    at after any token. Rows that do not fit into memory go into a `Stream`, block by block, and that is
    judged.

    Parameters
    ----------
    tokens : array of int, shape (R,), or Stream
        The token drawn in each context, in order; or the stream that holds them.
    rows : array of float, shape (R, V), or None
        Target law of each token given its context; rows sum to 1. None with a stream.
    draft_rows : array of float, shape (R, V), or None
        Law of the drafts in each context; with them the laws of known faults are bet on.
    plan : Plan or None
        Error rates; None for the defaults.
    alternatives : mapping of str to callable, or None
        Further laws to bet on: functions of (target rows, draft rows) that return rows.
    sampler, key : str
        As for `judge`.

    Raises
    ------
    InputError
        For rows that are no laws, tokens out of range, shapes that differ, or rows given with a stream.

    Examples
    --------
    >>> rng = np.random.default_rng()
    >>> p = rng.dirichlet(np.ones(20), size=2000)
    >>> right = [rng.choice(20, p=row) for row in p]
    >>> greedy = p.argmax(axis=1)
    >>> judge_stream(right, p).outcome, judge_stream(greedy, p).outcome
    ('INCONCLUSIVE', 'FAIL')
    """
    plan = as_plan(plan)
    if isinstance(tokens, Stream):
        if rows is not None or draft_rows is not None or alternatives is not None:
            raise InputError("a stream holds its rows and alternatives; judge it alone")
        stream = tokens
    else:
        if rows is None:
            raise InputError("judge_stream(tokens) needs rows: the target law of each token, shape (R, V)")
        stream = Stream(alternatives)
        stream.update(tokens, rows, draft_rows)
    found = stream.evidence
    outcome, reason = _decide(stream, plan)
    return Verdict(
        outcome=outcome,
        reason=reason,
        where=f"all contexts together; the best bet is {found.strongest}",
        evidence=found,
        certificate=replace(NOT_CERTIFIED, confidence=plan.confidence, samples=stream.tokens),
        tests=(),
        adjusted=(),
        detectable_tv=1.0,
        impossible=stream.impossible,
        samples=stream.tokens,
        plan=plan,
        sampler=sampler,
        target="contexts that do not repeat",
        keys=(key,) if key else (),
    )


NOT_CERTIFIED = Certificate(
    total_variation=1.0,
    confidence=0.0,
    method="none: contexts do not repeat",
    cells=0,
    degrees_of_freedom=0,
    opaque=1.0,
    samples=0,
)
"""The certificate of draws that cannot be certified."""


def _decide(stream: Stream, plan: Plan) -> tuple[str, str]:
    found = stream.evidence
    if stream.impossible:
        return "FAIL", f"{stream.impossible} of {stream.tokens} tokens have target weight 0"
    if found.rejects(plan.false_alarm):
        return "FAIL", (
            f"log e-value {found.log_e:.4g} at {stream.tokens} tokens, which a right sampler reaches with "
            f"probability at most {plan.false_alarm:g}; the best bet is {found.strongest}"
        )
    return "INCONCLUSIVE", (
        f"log e-value {found.log_e:.4g} at {stream.tokens} tokens, where {threshold(plan.false_alarm):.4g} "
        "rejects; tokens whose contexts do not repeat can be rejected, but not certified"
    )
