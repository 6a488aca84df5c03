"""compare: two samplers' outputs to PASS, FAIL or INCONCLUSIVE, without a law to hold them against."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simkit.errors import InputError
from simkit.laws.checks import whole_number
from simkit.stats import mix, threshold
from simkit.stats._input import as_at_least
from simkit.stats.two_sample import (
    END,
    PERMUTATIONS,
    PermutationTest,
    Sequences,
    first_tokens,
    later_tokens,
    pair_evidence,
    pair_sequences,
    pair_test,
    permutation_test,
    table_evidence,
    variation_bound,
)
from simkit.verify.comparison import Comparison, Divergence, Greedy, PositionTest
from simkit.verify.emitted import Gaps, Samples
from simkit.verify.plan import Plan, as_plan

TIE_GAP = 0.25
"""Logit gap up to which the two best tokens count as tied: two steps of bfloat16 for logits of 16 to 32."""

AT_FIRST = "position 0"
AFTER_PREFIX = "positions >= 1, after each prefix"
WHOLE = "positions >= 1, whole sequences"

_APART = 3.0
_DOUBT = 0.01

Emitted = Samples | Iterable[Mapping[str, Any]]


def compare(
    a: Emitted,
    b: Emitted,
    baseline: Emitted | None = None,
    plan: Plan | None = None,
    *,
    permutations: int = PERMUTATIONS,
    seed: int = 0,
    greedy: bool | None = None,
    tie_gap: float = TIE_GAP,
) -> Comparison:
    """Return whether two samplers, known by what they emitted, follow one law.

    Position 0, which comes from the prefill and is never speculated, is compared apart from the later
    positions, and these given the first token. Each has a permutation p-value, an e-value, an unbiased
    squared distance and an upper bound on the total variation of the next token, over the prefixes that A
    visited, weighted by its visits.

    * FAIL if the average of the e-values reaches 1/false_alarm. A p-value of B permutations is never below
      1/(B + 1); if it can matter, which is when false_alarm >= 2 x positions / (B + 1), e-value and p-value
      (after Bonferroni) get half the rate each. With a second run of A, the distance of A and B must also
      exceed that of the two runs by more than three standard errors.
    * PASS if not rejected and both bounds, which share the rate `miss`, are within the tolerance. A prefix
      that B reached fewer than four times counts as total variation 1, so a PASS takes short sequences
      (`Plan(length=...)` cuts them) or few likely ones, and many lines.
    * INCONCLUSIVE otherwise.

    Greedy outputs have no law: they must be equal up to ties. FAIL at a divergence whose gap is beyond
    `tie_gap`, PASS if there is none, INCONCLUSIVE if some cannot be judged.

    Parameters
    ----------
    a, b : Samples or iterable of mappings
        What the reference and the sampler in question emitted: `read_samples(path)`, or records as for
        `Samples.of`. Lines must be independent draws: no seed is used twice, in one of them or in both.
    baseline : Samples, iterable of mappings or None
        What a second run of the reference emitted.
    plan : Plan or None
        Error rates, tolerance, and the length that sequences are cut to; None for the defaults. Looks share
        false_alarm and miss, as these e-values hold for one look.
    permutations : int
        Permutations B of each p-value.
    seed : int
        Seed of permutations and pairing; the same seed gives the same comparison.
    greedy : bool or None
        Whether outputs are greedy; None: if all lines of each prompt are alike, and so many that a share
        `tolerance` of random tokens would have shown with probability 1 - miss.
    tie_gap : float
        Largest logit gap of a tie.

    Raises
    ------
    InputError
        If there is no prompt that both were given, or an argument is out of range.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> a, b, wrong = (
    ...     [{"prompt": 0, "tokens": t} for t in rng.choice(3, p=p, size=(20_000, 1)).tolist()]
    ...     for p in ([0.5, 0.3, 0.2], [0.5, 0.3, 0.2], [0.45, 0.33, 0.22])
    ... )
    >>> compare(a, b, plan=Plan(tolerance=0.1)).outcome
    'PASS'
    >>> compare(a, wrong).outcome
    'FAIL'
    """
    plan = as_plan(plan)
    whole_number(permutations, "permutations", 1)
    whole_number(seed, "seed", 0)
    tie = as_at_least("tie_gap", tie_gap, 0.0)
    runs = [_samples(run, name).cut(plan.length) for run, name in ((a, "A"), (b, "B"))]
    again = None if baseline is None else _samples(baseline, "A again").cut(plan.length)
    task = _Task(runs[0], runs[1], again, plan, permutations, seed)
    if greedy is None:
        greedy = task.looks_greedy()
    return task.greedy(tie) if greedy else task.sampled()


def _samples(run: Emitted, name: str) -> Samples:
    if isinstance(run, str | bytes | os.PathLike):
        raise InputError(
            f"{name} is the path {os.fspath(run)!r}; pass simkit.verify.emitted.read_samples(path)"
        )
    return run if isinstance(run, Samples) else Samples.of(run, name)


@dataclass(frozen=True)
class _Task:
    """One comparison, its input checked."""

    a: Samples
    b: Samples
    again: Samples | None
    plan: Plan
    permutations: int
    seed: int

    def __post_init__(self) -> None:
        for other in (self.b, self.again):
            if other is not None and not self.of_a.keys() & other.by_prompt().keys():
                raise InputError(
                    f"{self.a.name} and {other.name} share no prompt; write the same prompts in both, "
                    "letter by letter"
                )

    @cached_property
    def of_a(self) -> dict[str, dict[bytes, int]]:
        return self.a.by_prompt()

    @cached_property
    def of_b(self) -> dict[str, dict[bytes, int]]:
        return self.b.by_prompt()

    @cached_property
    def shared(self) -> list[str]:
        """The prompts that both samplers were given."""
        return [prompt for prompt in self.of_a if prompt in self.of_b]

    def looks_greedy(self) -> bool:
        """Return whether lines of each prompt are alike, often enough for randomness to have shown."""
        repeated = 0
        for run in (self.of_a, self.of_b):
            for prompt in self.shared:
                if len(run[prompt]) > 1 or sum(run[prompt].values()) < 2:
                    return False
                ((tokens, times),) = run[prompt].items()
                repeated += (times - 1) * (len(tokens) // 8)
        return repeated >= math.log(self.plan.looks / self.plan.miss) / self.plan.limit

    def comparison(self, outcome: str, reason: str, **found: Any) -> Comparison:
        nothing: dict[str, Any] = {
            "where": "",
            "p_value": math.nan,
            "log_evidence": math.nan,
            "distance": math.nan,
            "bound": math.nan,
            "positions": (),
            "baseline": (),
            "greedy": None,
        }
        runs = [self.a, self.b] + ([] if self.again is None else [self.again])
        return Comparison(
            outcome=outcome,
            reason=reason,
            lines=tuple(run.lines for run in runs),
            longest=(self.a.longest, self.b.longest),
            prompts=len(self.shared),
            unmatched=len(self.of_a.keys() ^ self.of_b.keys()),
            plan=self.plan,
            permutations=self.permutations,
            seed=self.seed,
            **{**nothing, **found},
        )

    # Sampled outputs.

    def sampled(self) -> Comparison:
        """Return the comparison by statistics."""
        found = self.measure(self.b)
        base = () if self.again is None else self.measure(self.again)
        rates = _Rates.of(self.plan, len(found), self.permutations)
        outcome, reason, worst = _decide(found, base, rates, self.plan)
        bounds = [position.bound.total_variation for position in found if position.bound is not None]
        return self.comparison(
            outcome,
            reason,
            where=worst.positions,
            p_value=min(1.0, len(found) * min(position.test.p_value for position in found)),
            log_evidence=_log_e(found),
            distance=worst.test.distance,
            bound=max(bounds),
            positions=found,
            baseline=base,
        )

    def measure(self, other: Samples) -> tuple[PositionTest, ...]:
        """Return what position 0 and, if there are any, later positions say about A and another run."""
        data = _sequences(self.a, other)
        later = data.longest > 1
        miss = self.plan.miss / self.plan.looks / (1 + later)
        found = [self.of_tables(AT_FIRST, data, later=False, miss=miss)]
        if later:
            pairs = pair_sequences(data, self.seed)
            evidence, test = pair_evidence(pairs), pair_test(pairs, self.permutations, self.seed)
            found.append(self.of_tables(AFTER_PREFIX, data, later=True, miss=miss))
            found.append(PositionTest(WHOLE, test, evidence.log_e, evidence.strongest, None))
        return tuple(found)

    def of_tables(self, name: str, data: Sequences, *, later: bool, miss: float) -> PositionTest:
        tables = later_tokens(data) if later else first_tokens(data)
        evidence = table_evidence(tables, self.plan.false_alarm)
        test = permutation_test(tables, self.permutations, self.seed)
        bound = variation_bound(data, miss, later=later)
        return PositionTest(name, test, evidence.log_e, evidence.strongest, bound)

    # Greedy outputs.

    def greedy(self, tie_gap: float) -> Comparison:
        """Return the comparison token by token."""
        of_again = {} if self.again is None else self.again.by_prompt()
        steady: dict[str, bytes] = {}
        for prompt in self.shared:
            outputs = set(self.of_a[prompt]) | set(of_again.get(prompt, ()))
            if len(outputs) == 1:
                steady[prompt] = outputs.pop()
        divergences = [self.divergence(prompt, tokens) for prompt, tokens in steady.items()]
        parted = tuple(divergence for divergence in divergences if divergence is not None)
        found = Greedy(len(steady), len(self.shared) - len(steady), parted, tie_gap)
        outcome, reason = _decide_greedy(found)
        first = found.clear or found.unknown or found.divergences
        return self.comparison(outcome, reason, where=str(first[0]) if first else "", greedy=found)

    def divergence(self, prompt: str, tokens: bytes) -> Divergence | None:
        """Return the first divergence of B from the one output of A."""
        ours = np.frombuffer(tokens, dtype=np.int64)
        places = {other: _parting(ours, np.frombuffer(other, dtype=np.int64)) for other in self.of_b[prompt]}
        parted = {other: position for other, position in places.items() if position is not None}
        if not parted:
            return None
        other = min(parted, key=lambda text: parted[text])
        position = parted[other]
        token = int(np.frombuffer(other, dtype=np.int64)[position]) if 8 * position < len(other) else END
        gaps = self.a.gaps.get((prompt, tokens), ())
        return Divergence(prompt, position, _gap_at(gaps, position, token))


def _parting(ours: NDArray[np.int64], theirs: NDArray[np.int64]) -> int | None:
    """Return the first position at which tokens differ, an end included; None if there is none."""
    common = min(ours.size, theirs.size)
    differ = np.flatnonzero(ours[:common] != theirs[:common])
    if differ.size:
        return int(differ[0])
    return None if ours.size == theirs.size else common


def _gap_at(gaps: Gaps, position: int, token: int) -> float | None:
    """Return the logit of the best token less that of the given one, as far as the line says."""
    if position >= len(gaps):
        return None
    gap = gaps[position]
    if not isinstance(gap, Mapping):
        return gap
    if token not in gap and len(gap) < 2:
        return None
    # A token that is not among those given lies below all of them.
    return max(gap.values()) - gap.get(token, min(gap.values()))


def _decide_greedy(found: Greedy) -> tuple[str, str]:
    if found.clear:
        return "FAIL", (
            f"{len(found.clear)} of {found.prompts} prompts part where the tokens are no tie; the first: "
            f"{found.clear[0]} (a tie is up to {found.tie_gap:g})"
        )
    if not found.prompts:
        return "INCONCLUSIVE", "of each prompt A gives several outputs: it is not greedy, or does not repeat"
    if found.unknown:
        return "INCONCLUSIVE", (
            f"{len(found.unknown)} of {found.prompts} prompts part, and no logits say whether at a tie; the "
            f"first: {found.unknown[0]}. Give gaps or logits in the lines of A"
        )
    ties = f", but for {len(found.divergences)} ties" if found.divergences else ""
    return "PASS", f"greedy outputs of {found.prompts} prompts are equal, token by token{ties}"


def _sequences(a: Samples, b: Samples) -> Sequences:
    """Return the distinct sequences of A's prompts with the counts of both.

    Prompts that only B was given are left out: there is nothing to hold them against. Those that only A was
    given stay, since the bound is over all that A visited.
    """
    prompts = {prompt: number for number, prompt in enumerate(sorted({prompt for prompt, _ in a.counts}))}
    # Sorted, so that the order of lines does not matter.
    keys = sorted({*a.counts, *(key for key in b.counts if key[0] in prompts)})
    return Sequences(
        prompt=np.array([prompts[prompt] for prompt, _ in keys]),
        tokens=np.frombuffer(b"".join(tokens for _, tokens in keys), dtype=np.int64),
        starts=np.cumsum([0, *(len(tokens) // 8 for _, tokens in keys)]),
        first=np.array([a.counts.get(key, 0) for key in keys]),
        second=np.array([b.counts.get(key, 0) for key in keys]),
    )


@dataclass(frozen=True)
class _Rates:
    """How the false-alarm rate is shared, fixed before the outputs are seen."""

    log_e: float
    p_value: float
    false_alarm: float

    @classmethod
    def of(cls, plan: Plan, positions: int, permutations: int) -> _Rates:
        """Return the limits; p-values that can never reach theirs take no share."""
        rate = plan.false_alarm / plan.looks
        if rate / 2.0 >= positions / (1 + permutations):
            return cls(threshold(rate / 2.0), rate / 2.0 / positions, rate)
        return cls(threshold(rate), 0.0, rate)

    def reject(self, found: PositionTest, positions: int) -> bool:
        """Return whether these positions on their own would do."""
        return found.log_evidence >= self.log_e + math.log(positions) or found.test.p_value <= self.p_value


def _log_e(found: tuple[PositionTest, ...]) -> float:
    return mix({position.positions: position.log_evidence for position in found}).log_e


def _rejected(found: tuple[PositionTest, ...], rates: _Rates) -> list[PositionTest]:
    """Return the positions that carry a rejection, the strongest first; none if there is no rejection."""
    by_strength = sorted(found, key=lambda position: (-position.log_evidence, position.test.p_value))
    alone = [position for position in by_strength if rates.reject(position, len(found))]
    return alone or (by_strength[:1] if _log_e(found) >= rates.log_e else [])


def _decide(
    found: tuple[PositionTest, ...], base: tuple[PositionTest, ...], rates: _Rates, plan: Plan
) -> tuple[str, str, PositionTest]:
    """Return outcome, reason, and the positions where A and B differ most."""
    rejected, unsteady = _rejected(found, rates), _rejected(base, rates) if base else []
    if rejected:
        return _decide_rejected(
            rejected, {position.positions: position for position in base}, unsteady, rates
        )
    worst = max(found, key=lambda position: position.log_evidence)
    wide = max(
        (position for position in found if position.bound is not None),
        key=lambda position: position.bound.total_variation if position.bound else 0.0,
    )
    assert wide.bound is not None
    again = "; A and its second run differ, though: the reference does not repeat its law" if unsteady else ""
    if wide.bound.total_variation <= plan.limit:
        return "PASS", f"not rejected, and {wide.bound}, the tolerance being {plan.limit:g}{again}", worst
    least = len(found) * min(position.test.p_value for position in found)
    doubt = f"; a p-value of {least:.2g} is a reason to" if least <= _DOUBT else ""
    return (
        "INCONCLUSIVE",
        f"not rejected, and not certified: at {wide.positions.split(',')[0]} {wide.bound}, and the tolerance "
        f"is {plan.limit:g}. Draw more lines a prompt, or cut them with a length (of greedy output, a line "
        f"a prompt, say so: --greedy){doubt}{again}",
        worst,
    )


def _decide_rejected(
    rejected: list[PositionTest],
    base: Mapping[str, PositionTest],
    unsteady: list[PositionTest],
    rates: _Rates,
) -> tuple[str, str, PositionTest]:
    """Return FAIL if A and B are further apart than A and its second run, else INCONCLUSIVE."""
    further = [found for found in rejected if _is_further(found.test, base.get(found.positions))]
    worst = (further or rejected)[0]
    said = (
        f"{worst.positions}: log e-value {worst.log_evidence:.4g}, p {worst.test.p_value:.3g}; samplers of "
        f"one law are rejected with probability at most {rates.false_alarm:g}"
    )
    if worst.positions in base:
        apart = base[worst.positions].test.distance
        said += f"; squared distance {worst.test.distance:.3g}, of A and its second run {apart:.3g}"
    if unsteady:
        said += "; A and its second run differ too: the reference does not repeat its law"
    if further:
        return "FAIL", said, worst
    return "INCONCLUSIVE", f"rejected, but no further apart than A and its second run. {said}", worst


def _is_further(test: PermutationTest, base: PositionTest | None) -> bool:
    """Return whether a distance exceeds the baseline's by more than chance.

    Where nothing of the baseline can be compared, its distance is taken to be 0.
    """
    if base is None:
        return True
    nothing = not math.isfinite(base.test.distance)
    distance, error = (0.0, 0.0) if nothing else (base.test.distance, base.test.error)
    return test.distance - distance > _APART * math.hypot(test.error, error)
