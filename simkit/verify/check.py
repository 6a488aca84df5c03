"""check: a first answer for a sampler that simkit did not write.

The verifier is called with batches whose rows differ by slot and by request, and drafts drawn by simkit. Each
emitted token is counted by request and slot: given that a token was emitted there, and given the tokens
before it, it has the target's law at that slot, whatever the verifier kept or refused before.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from simkit.errors import InputError
from simkit.laws.checks import whole_number
from simkit.laws.rows import probabilities, rows_from_floats
from simkit.stats import Evidence, mix
from simkit.stats.dependence import dependence
from simkit.verify.battery import overall, shared
from simkit.verify.judge import Plan, Run, Verdict, judge_run
from simkit.verify.plan import as_plan
from simkit.verify.readable import Readable
from simkit.verify.sequential import Budget, paced, schedule

BATCH = 257
PILOT = 40
"""Calls whose counts only tell how often each slot emits, so that cells and e-values can be planned."""

KEPT_CALLS = 64
"""Calls whose tokens are kept, to see whether slots, neighbours in the batch, or calls share randomness."""

Floats = NDArray[np.float64]
Tokens = NDArray[np.int64]


class Verifier(Protocol):
    """A function that keeps or replaces drafts.

    It is given draft_probs (B, K, V), draft_token_ids (B, K) and target_probs (B, K + 1, V), float64 and
    int64, and a `numpy.random.Generator`; it returns output_token_ids (B, K + 1), integers, with -1 after the
    last emitted token.
    """

    def __call__(
        self,
        draft_probs: Floats,
        draft_token_ids: Tokens,
        target_probs: Floats,
        rng: np.random.Generator,
        /,
    ) -> Any:
        """Return the emitted tokens."""
        ...


@dataclass(frozen=True)
class CheckCase:
    """Rows to hand to a verifier, by request and slot.

    Parameters
    ----------
    name : str
        What the case asks.
    draft : float64 array, shape (R, K, V)
        Draft rows.
    target : float64 array, shape (R, K + 1, V)
        Target rows.
    """

    name: str
    draft: Floats
    target: Floats

    @property
    def states(self) -> int:
        """Requests times slots."""
        return int(self.target.shape[0] * self.target.shape[1])


@dataclass(frozen=True)
class CaseResult:
    """The answer on one case: a verdict, or how the contract was broken.

    Parameters
    ----------
    name : str
        The case.
    outcome, reason : str
        The answer, and why.
    verdict : Verdict or None
        None where the contract was broken.
    """

    name: str
    outcome: str
    reason: str
    verdict: Verdict | None


@dataclass(frozen=True, repr=False)
class Check(Readable):
    """The answer on a verifier.

    Parameters
    ----------
    outcome : str
        "PASS" if every case passes, "FAIL" if one fails, else "INCONCLUSIVE".
    cases : tuple of CaseResult
        One a case, in order; a broken contract ends the run.
    seed : int
        Seed of drafts and of the generators handed over.
    plan : Plan
        Error rates of all cases together, and tolerance of each.
    """

    outcome: str
    cases: tuple[CaseResult, ...]
    seed: int
    plan: Plan

    @property
    def passed(self) -> bool:
        """Whether the outcome is PASS."""
        return self.outcome == "PASS"

    def rows(self) -> list[tuple[str, str]]:
        """Return what there is to read, as (name, text)."""
        return [
            ("check", f"{self.outcome} (seed {self.seed})"),
            *((case.name, f"{case.outcome}: {case.reason}") for case in self.cases),
        ]

    def record(self) -> dict[str, Any]:
        """Return the answer as plain data for JSON."""
        return {
            "outcome": self.outcome,
            "seed": self.seed,
            "false_alarm": self.plan.false_alarm,
            "tolerance": self.plan.limit,
            "cases": [
                {
                    "name": case.name,
                    "outcome": case.outcome,
                    "reason": case.reason,
                    **({} if case.verdict is None else {"verdict": case.verdict.record()}),
                }
                for case in self.cases
            ],
        }


def check(
    verifier: Verifier,
    *,
    plan: Plan | None = None,
    seed: int | None = None,
    budget: str = "60s",
    progress: Callable[[int, int], None] | None = None,
) -> Check:
    """Return whether a verifier's tokens follow the target law, on a handful of cases.

    Contract first: shape, integer ids in range, -1 only after the end, one token or more, inputs left as they
    were. Then each case is drawn until its verdict stands or its share of the budget is spent. Drafts are
    drawn by simkit from the rows handed over: faults between a drafter and its verifier (recorded
    probabilities that are not those drawn from, shared noise) are not tested.

    Parameters
    ----------
    verifier : callable
        ``verifier(draft_probs, draft_token_ids, target_probs, rng) -> output_token_ids``; see `Verifier`.
    plan : Plan or None
        Error rates of all cases together, and the tolerance of each.
    seed : int or None
        Seed of drafts and generators; None for a fresh one, which the result names.
    budget : str
        What all cases together may take: time ("60s") or emitted tokens ("1e7").
    progress : callable (done, total) or None
        Called with cases done and their number.

    Raises
    ------
    InputError
        For a plan, seed or budget that cannot be used. What the verifier does wrong is a FAIL, not an error.

    Examples
    --------
    >>> def always_keeps(draft_probs, draft_token_ids, target_probs, rng):
    ...     bonus = target_probs[:, -1].argmax(axis=1)
    ...     return np.column_stack([draft_token_ids, bonus])
    >>> check(always_keeps, seed=1).outcome
    'FAIL'
    """
    if not callable(verifier):
        raise InputError(f"verifier is a {type(verifier).__name__}; needed: a function, see simkit.check")
    plan = as_plan(plan)
    seed = secrets.randbits(32) if seed is None else whole_number(seed, "seed", 0)
    cases = check_cases()
    parts = shared(plan, len(cases))
    whole = Budget.parse(budget)
    share = Budget(
        samples=None if whole.samples is None else max(1, whole.samples // len(cases)),
        seconds=None if whole.seconds is None else whole.seconds / len(cases),
    )
    results: list[CaseResult] = []
    for number, case in enumerate(cases):
        try:
            verdict = _judge_case(case, verifier, parts, share, np.random.SeedSequence([seed, number]))
            results.append(CaseResult(case.name, verdict.outcome, verdict.reason, verdict))
        except _BrokenContractError as broken:
            results.append(CaseResult(case.name, "FAIL", str(broken), None))
            break
        if progress is not None:
            progress(number + 1, len(cases))
    return Check(overall([result.outcome for result in results]), tuple(results), seed, plan)


def check_cases() -> list[CheckCase]:
    """Return the cases: textbook rows, rows by slot and request, cut supports, one-hot drafts, 64 tokens.

    Examples
    --------
    >>> [case.states for case in check_cases()]
    [2, 12, 6, 6, 5]
    """
    rng = np.random.default_rng(20231)
    truncated = np.array([[0.5, 0.3, 0.2, 0.0, 0.0], [0.0, 0.1, 0.4, 0.5, 0.0], [0.3, 0.0, 0.3, 0.0, 0.4]])
    zipf = 1.0 / np.arange(1, 65)
    one_hot = np.eye(4)[[[1, 0], [2, 3]]]
    return [
        _case("textbook rows", [[[0.2, 0.3, 0.5]]], np.tile([0.5, 0.3, 0.2], (1, 2, 1))),
        _case(
            "rows that differ by slot and request",
            rng.dirichlet(np.ones(6), (3, 3)),
            rng.dirichlet(np.ones(6), (3, 4)),
        ),
        _case(
            "supports that overlap in part",
            np.stack([truncated[[1, 2]], truncated[[0, 1]]]),
            np.stack([truncated[[0, 1, 2]], truncated[[2, 0, 1]]]),
        ),
        _case("one-hot drafts", one_hot, rng.dirichlet(np.ones(4), (2, 3))),
        _case(
            "64 tokens, four drafts",
            np.tile(zipf[::-1] + zipf, (1, 4, 1)),
            np.tile(zipf, (1, 5, 1)),
        ),
    ]


def _case(name: str, draft: Any, target: Any) -> CheckCase:
    """Return a case whose rows are what integer rows give: exactly what is judged is handed over."""
    draft, target = (np.asarray(rows, dtype=np.float64) for rows in (draft, target))

    def exact(rows: Floats) -> Floats:
        flat = (rows / rows.sum(axis=-1, keepdims=True)).reshape(-1, rows.shape[-1])
        return probabilities(rows_from_floats(flat)).reshape(rows.shape)

    return CheckCase(name, exact(draft), exact(target))


class _BrokenContractError(Exception):
    """The verifier returned what no verifier may return."""


def _judge_case(
    case: CheckCase, verifier: Verifier, plan: Plan, budget: Budget, seeds: np.random.SeedSequence
) -> Verdict:
    """Return the verdict on one case, drawn until it stands or the budget is spent."""
    rng, own = (np.random.default_rng(child) for child in seeds.spawn(2))
    pilot = _Counter(case)
    for _ in range(PILOT):
        pilot.call(verifier, rng, own, checked=True)
    emitted = pilot.counts.sum(axis=1) / PILOT
    sizes = schedule(budget, int(emitted.sum()) or 1)
    # No look before the kept calls are all there: a pass would not have seen shared randomness.
    sizes = [size for size in sizes if size >= KEPT_CALLS] or [KEPT_CALLS]
    plan = replace(plan, looks=len(sizes))
    counter = _Counter(case)
    for look, done, size in paced(sizes, budget.seconds):
        for _ in range(size - done):
            counter.call(verifier, rng, own)
        verdict = judge_run(counter.run(emitted * size, verifier, seeds), plan, look)
        if verdict.outcome != "INCONCLUSIVE":
            break
    return verdict


class _Counter:
    """Calls a verifier with batches of one case and counts what it emits, by request and slot."""

    def __init__(self, case: CheckCase) -> None:
        self.case = case
        requests, drafts, self.vocabulary = case.draft.shape
        self.request = np.arange(BATCH) % requests
        self.draft = np.ascontiguousarray(case.draft[self.request])
        self.target = np.ascontiguousarray(case.target[self.request])
        self.edges = self.draft.cumsum(axis=2)
        self.edges /= self.edges[:, :, -1:]
        self.state = self.request[:, None] * (drafts + 1) + np.arange(drafts + 1)
        self.counts = np.zeros((case.states, self.vocabulary), dtype=np.int64)
        self.kept: list[Tokens] = []

    def call(
        self, verifier: Verifier, rng: np.random.Generator, own: np.random.Generator, checked: bool = False
    ) -> None:
        """Call the verifier once and count; `checked` also looks whether it changed its inputs."""
        uniforms = rng.random(self.edges.shape[:2])
        # Never an id of probability 0: a token is drawn where its edge first exceeds the uniform.
        drafts = (self.edges <= uniforms[:, :, None]).sum(axis=2)
        given = (self.draft.copy(), drafts.copy(), self.target.copy())
        try:
            answer = verifier(*given, own)
        except (Exception, SystemExit) as error:
            raise _BrokenContractError(f"the verifier raised {_text(error)} ({self._shapes()})") from error
        if checked and not all(
            np.array_equal(a, b) for a, b in zip(given, (self.draft, drafts, self.target), strict=True)
        ):
            raise _BrokenContractError(
                f"the verifier changed its inputs ({self._shapes()}); it must copy them"
            )
        tokens = self._valid(answer)
        if len(self.kept) < KEPT_CALLS:
            self.kept.append(tokens)
        emitted = tokens >= 0
        flat = self.state[emitted] * self.vocabulary + tokens[emitted]
        self.counts += np.bincount(flat, minlength=self.counts.size).reshape(self.counts.shape)

    def run(self, visits: Floats, verifier: Verifier, seeds: np.random.SeedSequence) -> Run:
        """Return what was counted, ready to be judged."""
        law = self.case.target.reshape(self.case.states, -1)
        within, between = self._dependence(law)
        return Run(
            counts=self.counts,
            law=law,
            visits=visits,
            sampler=getattr(verifier, "__qualname__", type(verifier).__name__),
            target=self.case.name,
            keys=(f"seed {seeds.entropy}",),
            log_e={
                "within calls": {_named("within calls", within): within.log_e},
                "between calls": {_named("between calls", between): between.log_e},
            },
        )

    def _dependence(self, law: Floats) -> tuple[Evidence, Evidence]:
        """Return the evidence of shared randomness within and between calls, once the planned ones are made.

        Within a call a token is bet on from those before it; between calls the first tokens are. The matrices
        have shapes fixed beforehand; until they are full, the evidence is none.
        """
        if len(self.kept) < KEPT_CALLS:
            return (mix({"no calls yet": 0.0}),) * 2
        states = np.tile(self.state, (KEPT_CALLS, 1))
        within = dependence(np.concatenate(self.kept), law, states).evidence
        first = np.stack([tokens[:, 0] for tokens in self.kept], axis=1)
        states = np.repeat(self.request[:, None], KEPT_CALLS, axis=1)
        return within, dependence(first, self.case.target[:, 0], states).evidence

    def _valid(self, answer: Any) -> Tokens:
        """Return the answer as int64, or say what is wrong with it."""
        try:
            tokens = np.asarray(answer)
        except Exception as error:
            raise _BrokenContractError(f"the answer is no array: {_text(error)}") from error
        if tokens.shape != self.state.shape or tokens.dtype.kind not in "iu":
            raise _BrokenContractError(
                f"the answer has shape {tokens.shape} and dtype {tokens.dtype}; needed: integers of shape "
                f"{self.state.shape}, (B, K + 1) ({self._shapes()})"
            )
        tokens = tokens.astype(np.int64)
        bad = (tokens < -1) | (tokens >= self.vocabulary)
        if bad.any():
            row, slot = (int(i) for i in np.argwhere(bad)[0])
            raise _BrokenContractError(
                f"row {row}, slot {slot} is {tokens[row, slot]}; needed: ids 0 to {self.vocabulary - 1}, "
                f"or -1 after the end ({self._shapes()})"
            )
        ended = tokens < 0
        if ended[:, 0].any():
            raise _BrokenContractError(
                f"row {int(ended[:, 0].argmax())} emits no token; a call emits one or more"
            )
        resumed = ended[:, :-1] & ~ended[:, 1:]
        if resumed.any():
            raise _BrokenContractError(
                f"row {int(np.argwhere(resumed)[0][0])} holds a token after -1; -1 stands only after the end"
            )
        return tokens

    def _shapes(self) -> str:
        batch, drafts = self.edges.shape[:2]
        return f"case {self.case.name!r}, B={batch}, K={drafts}, V={self.vocabulary}"


def _named(where: str, found: Evidence) -> str:
    return f"dependence {where} ({found.strongest})"


def _text(error: BaseException) -> str:
    """Return an error in words; its own text may fail, too."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return type(error).__name__
