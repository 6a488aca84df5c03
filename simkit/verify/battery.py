"""The gate's cases: what the built-in rules are judged on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from simkit.errors import InputError
from simkit.laws.named import make_pair
from simkit.laws.synthetic import CORNER_CASES
from simkit.sampling.simulate import Progress, simulate
from simkit.verify.judge import Plan, Status, Verdict, judge


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
        Case("character n-gram model", "ngram", {}, 4, 32, 1_000_000),
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
    """Yield each case with its verdict; the plan's false-alarm rate is shared out over the cases.

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

    Raises
    ------
    InputError
        When there is no case: no evidence is never a pass.
    """
    cases = gate_cases() if cases is None else cases
    if not cases:
        raise InputError("the gate has no case to judge; no evidence is never a pass")
    plan = plan or Plan()
    share = replace(plan, false_alarm=plan.false_alarm / len(cases), miss=plan.miss / len(cases))
    for done, case in enumerate(cases):
        tally = simulate(
            make_pair(case.pair, **case.options),
            rule,
            draft_length=case.draft_length,
            length=case.length,
            trials=case.trials,
            seed=seed,
            backend=backend,
        )
        yield case, judge(tally, share)
        if progress is not None:
            progress(done + 1, len(cases))


def overall(verdicts: Sequence[Verdict]) -> Status:
    """Return FAIL if any case fails, else INCONCLUSIVE if any is, or there is none, else PASS.

    Parameters
    ----------
    verdicts : sequence of Verdict
        One a case.

    Examples
    --------
    >>> overall([]).name
    'INCONCLUSIVE'
    """
    found = {verdict.status for verdict in verdicts}
    if Status.FAIL in found:
        return Status.FAIL
    return Status.PASS if found == {Status.PASS} else Status.INCONCLUSIVE
