"""The gate's cases: what the built-in rules are judged on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from simkit.laws.named import make_pair
from simkit.laws.synthetic import CORNER_CASES
from simkit.sampling.simulate import Progress, draw_tokens, simulate
from simkit.verify.judge import Plan, Verdict, judge
from simkit.verify.plan import as_plan
from simkit.verify.tokens import shared_randomness

DECODES = 500
"""Decodes of each case whose tokens are looked at one by one, for randomness that was used twice."""


@dataclass(frozen=True)
class Case:
    """A pair with the lengths it is judged at.

    Parameters
    ----------
    name : str
        What to call the case.
    pair : str
        Name of a pair.
    options : mapping
        Options of the pair.
    draft_length, length, trials : int
        As for `simulate`; trials are enough for a PASS at the default plan.
    """

    name: str
    pair: str
    options: Mapping[str, Any] = field(default_factory=dict)
    draft_length: int = 4
    length: int = 12
    trials: int = 100_000


def gate_cases() -> list[Case]:
    """Return the lossless cases: synthetic laws, an n-gram model, and every corner case.

    Examples
    --------
    >>> len({case.name for case in gate_cases()}) == len(gate_cases())
    True
    """
    corners = [Case(name, name, draft_length=3, length=8, trials=200_000) for name in CORNER_CASES]
    return [
        Case("zipf, 1000 tokens, K=1", "zipf", {"vocabulary": 1000}, 1, 16, 200_000),
        Case("zipf, 1000 tokens, K=4", "zipf", {"vocabulary": 1000}, 4, 16, 200_000),
        Case("zipf, far draft", "zipf", {"vocabulary": 100, "total_variation": 0.8}, 4, 16, 100_000),
        Case("zipf, 32768 tokens", "zipf", {"vocabulary": 32768}, 4, 16, 1_000_000),
        Case("dirichlet, 50 tokens", "dirichlet", {"vocabulary": 50}, 8, 16, 100_000),
        Case("uniform, 257 tokens", "uniform", {"vocabulary": 257}, 2, 16, 100_000),
        Case("tempered copy", "tempered-copy", {"vocabulary": 256}, 4, 16, 100_000),
        Case("character n-gram model", "ngram", {}, 4, 32, 2_000_000),
        *corners,
    ]


def run_gate(
    rule: str = "token",
    *,
    seed: int,
    plan: Plan | None = None,
    cases: Sequence[Case] | None = None,
    backend: str = "auto",
    progress: Progress | None = None,
) -> Iterator[tuple[Case, Verdict]]:
    """Yield each case with its verdict; the plan's error rates are shared out over the cases.

    Parameters
    ----------
    rule : str
        Name of a registered rule.
    seed : int
        Seed of all cases; a gate should use a fresh one each run, and print it.
    plan : Plan or None
        Error rates of the whole gate and tolerance of each case.
    cases : sequence of Case or None
        The cases; None for `gate_cases`.
    backend : str
        As for `simulate`.
    progress : callable or None
        Called with cases done and their number.
    """
    cases = gate_cases() if cases is None else cases
    share = shared(as_plan(plan), len(cases))
    for done, case in enumerate(cases):
        pair = make_pair(case.pair, **case.options)
        k, length = case.draft_length, case.length
        tally = simulate(
            pair, rule, draft_length=k, length=length, trials=case.trials, seed=seed, backend=backend
        )
        tokens = draw_tokens(
            pair, rule, draft_length=k, length=length, trials=DECODES, seed=seed, backend=backend
        )
        yield case, judge(tally, plan=share, others=shared_randomness(tokens, pair))
        if progress is not None:
            progress(done + 1, len(cases))


def shared(plan: Plan, cases: int) -> Plan:
    """Return the plan of one of several cases: its share of the error rates of them all.

    Parameters
    ----------
    plan : Plan
        Error rates of all cases together.
    cases : int
        How many there are.

    Examples
    --------
    >>> shared(Plan(false_alarm=1e-6), 4).false_alarm
    2.5e-07
    """
    parts = max(cases, 1)
    return replace(plan, false_alarm=plan.false_alarm / parts, miss=plan.miss / parts)


def overall(outcomes: Iterable[str]) -> str:
    """Return FAIL if any case fails, else INCONCLUSIVE if any is, or there is none, else PASS.

    No evidence is never a pass.

    Parameters
    ----------
    outcomes : iterable of str
        One a case.

    Examples
    --------
    >>> overall(["PASS", "INCONCLUSIVE"]), overall([])
    ('INCONCLUSIVE', 'INCONCLUSIVE')
    """
    found = set(outcomes)
    if "FAIL" in found:
        return "FAIL"
    return "PASS" if found == {"PASS"} else "INCONCLUSIVE"
