"""Work, what a sweep is made of, and Task: one run of the simulator, and the result row that it gives."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np

from simkit.laws.logits import tempered_pair
from simkit.laws.named import make_pair
from simkit.laws.pair import Pair
from simkit.laws.portable import log
from simkit.rules.acceptance import known_calls
from simkit.rules.registry import find_rule
from simkit.sampling.simulate import Progress, simulate
from simkit.sampling.tally import Estimate, Tally
from simkit.stats import z_scores
from simkit.verify.judge import judge
from simkit.verify.plan import Plan
from simkit.verify.verdict import Verdict

Result = Mapping[str, Any]

FORMAT = 2
"""Number of the row's format: raise it with the fields of a row, so that old rows are drawn anew."""

Z_EDGES = np.arange(-6.0, 6.25, 0.25)
"""Edges of the stored histogram of z-scores; scores beyond fall into the outer bins."""


@runtime_checkable
class Work(Protocol):
    """What a sweep is made of: it knows its identity and gives one row.

    An experiment whose work is not one run of the simulator (many short runs, a test of a test) brings a
    frozen dataclass of its own. Its row must hold "identity", "seed" and "tokens" (the samples behind it),
    and no time, date or machine: the same work gives the same row everywhere.
    """

    @property
    def identity(self) -> str:
        """What changes with everything that changes the row: see `identify`."""
        ...

    def perform(self, progress: Progress | None = None) -> Result:
        """Return the result row."""
        ...


def identify(content: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the canonical JSON of all that changes a result row, as hex.

    Parameters
    ----------
    content : mapping
        Plain data: the parameters, the kind of work, and a number for the format of its row.

    Examples
    --------
    >>> identify({"kind": "coin", "seed": 1}) == identify({"seed": 1, "kind": "coin"})
    True
    """
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Task:
    """What to simulate and how to look at it.

    Parameters
    ----------
    pair : str
        Name of a pair.
    options : mapping
        Options of the pair, such as vocabulary or total_variation.
    target_temperature, draft_temperature : float
        Temperatures that the pair's rows are brought to.
    rule : str
        Name of the rule.
    draft_length, length, trials, seed : int
        As for `simulate`.
    judged : bool
        Whether to run the tests, too.
    tolerance : float
        Tolerance of the verdict's plan.
    """

    pair: str
    options: Mapping[str, Any] = field(default_factory=dict)
    target_temperature: float = 1.0
    draft_temperature: float = 1.0
    rule: str = "token"
    draft_length: int = 4
    length: int = 16
    trials: int = 1_000_000
    seed: int = 1
    judged: bool = False
    tolerance: float = 0.01

    @property
    def identity(self) -> str:
        """SHA-256 of the canonical JSON of all that changes the result row, as hex."""
        return identify({"format": FORMAT, **asdict(self)})

    def perform(self, progress: Progress | None = None) -> Result:
        """Return the result row: see `perform`."""
        return perform(self, progress)

    def make_pair(self) -> Pair:
        """Return the task's pair."""
        pair = make_pair(self.pair, **self.options)
        if self.target_temperature == self.draft_temperature == 1.0:
            return pair
        return tempered_pair(pair, self.target_temperature, self.draft_temperature)


def perform(task: Task, progress: Progress | None = None) -> Result:
    """Return the result row of a task: its parameters, what was counted, theory, and tests if asked for.

    Parameters
    ----------
    task : Task
        What to do.
    progress : callable or None
        As for `simulate`.

    Examples
    --------
    >>> row = perform(Task("zipf", {"vocabulary": 8}, draft_length=1, length=2, trials=1000))
    >>> row["tokens"], sum(row["accepted"]) == row["calls"]
    (2000, True)
    """
    pair = task.make_pair()
    tally = simulate(
        pair,
        task.rule,
        draft_length=task.draft_length,
        length=task.length,
        trials=task.trials,
        seed=task.seed,
        progress=progress,
    )
    row = {"identity": task.identity, **asdict(task), **_laws(pair), **_counted(tally), **_theory(task, pair)}
    if task.judged:
        row |= _judgement(tally, judge(tally, plan=Plan(tolerance=task.tolerance)))
        row |= _fault(task, pair)
    return row


def _laws(pair: Pair) -> Result:
    first = int(pair.initial[0])
    distance = pair.target_row(first).total_variation(pair.draft_row(first))
    return {
        "vocabulary": pair.vocabulary,
        "states": pair.states,
        "pair_digest": pair.digest,
        "total_variation": float(distance),
    }


def _counted(tally: Tally) -> Result:
    return {
        "tokens": tally.tokens,
        "calls": tally.calls,
        "accepted": tally.accepted.tolist(),
        "judged_by_slot": tally.judged.tolist(),
        "digest": tally.digest,
        **_estimate("acceptance", tally.acceptance),
        **_estimate("tokens_per_call", tally.tokens_per_call),
    }


def _estimate(name: str, estimate: Estimate) -> Result:
    return {name: estimate.value, f"{name}_error": estimate.standard_error}


def _theory(task: Task, pair: Pair) -> Result:
    expected = known_calls(pair, task.rule, draft_length=task.draft_length, length=task.length)
    if expected is None:
        names = ("acceptance_theory", "tokens_per_call_theory", "acceptance_by_slot_theory")
        return dict.fromkeys(names)
    return {
        "acceptance_theory": expected.acceptance,
        "tokens_per_call_theory": expected.tokens_per_call,
        "acceptance_by_slot_theory": expected.acceptance_by_slot.tolist(),
    }


def _judgement(tally: Tally, verdict: Verdict) -> Result:
    visits = tally.pair.expected_visits(tally.length) * tally.trials
    z = z_scores(tally.counts, tally.pair.target_probabilities, visits=visits)
    histogram = np.histogram(np.clip(z, Z_EDGES[0], Z_EDGES[-1] - 1e-9), Z_EDGES)[0]
    return {
        "status": verdict.outcome,
        "log_e": verdict.log_evidence,
        "strongest": verdict.evidence.strongest,
        "where": verdict.where,
        "tv_bound": verdict.certificate.total_variation,
        "detectable_tv": verdict.detectable_tv,
        "impossible": verdict.impossible,
        "tests": [
            {
                "name": test.name,
                "statistic": test.statistic,
                "p_value": test.p_value,
                "degrees_of_freedom": test.degrees_of_freedom,
                "after_holm": adjusted,
            }
            for test, adjusted in zip(verdict.tests, verdict.adjusted, strict=True)
        ],
        "z_histogram": histogram.tolist(),
        "z_largest": float(np.abs(z).max(initial=0.0)),
    }


def _fault(task: Task, pair: Pair) -> Result:
    """Return how far a step's law is from the target's, for pairs of one state: total variation and KL.

    No e-value grows faster, on average, than the KL divergence for each token that is not a bonus token.
    """
    entry = find_rule(task.rule)
    if entry.lossless:
        return {"fault": 0.0, "nats_per_token": 0.0}
    if pair.states > 1 or entry.chain is None:
        return {"fault": None, "nats_per_token": None}
    step = entry.chain.rule(pair.rows[pair.target], pair.rows[pair.draft[:, 0]])
    kept, replacement = step.split()
    law = kept + (1.0 - kept.sum()) * replacement
    target = pair.target_probabilities
    drawn = law > 0.0
    possible = bool((target[drawn] > 0.0).all())
    divergence = float((law[drawn] * log(law[drawn] / target[drawn])).sum()) if possible else math.inf
    return {"fault": float(np.abs(law - target).sum() / 2.0), "nats_per_token": divergence}
