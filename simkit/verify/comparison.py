"""Comparison: what two samplers' outputs say about their laws, and how it reads."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from simkit.stats.two_sample import (
    PermutationTest,
    VariationBound,
)
from simkit.verify.plan import Plan
from simkit.verify.readable import Readable
from simkit.verify.verdict import finite

FORMAT = "simkit comparison 1"


@dataclass(frozen=True)
class PositionTest:
    """Hold what some positions say.

    Parameters
    ----------
    positions : str
        Which, and how they were compared.
    test : PermutationTest
        p-value, and squared distance with its error.
    log_evidence : float
        Natural log of the e-value.
    strongest : str
        The component of the e-value that is largest.
    bound : VariationBound or None
        Upper bound on the total variation; None for whole sequences, which have none of their own.

    Examples
    --------
    >>> a = [{"prompt": 0, "tokens": [t]} for t in (0, 1) * 50]
    >>> from simkit.verify.compare import compare
    >>> found = compare(a, a).positions[0]
    >>> found.positions, found.test.p_value
    ('position 0', 1.0)
    """

    positions: str
    test: PermutationTest
    log_evidence: float
    strongest: str
    bound: VariationBound | None

    def __str__(self) -> str:
        """Return one line: p-value, e-value, distance."""
        test = self.test
        return (
            f"p {test.p_value:.3g}, log e-value {self.log_evidence:.4g} ({self.strongest}), squared distance "
            f"{test.distance:.3g} +- {test.error:.2g} ({test.spread:.2g} by chance alone)"
        )

    def rows(self) -> list[tuple[str, str]]:
        """Return what there is to read, as (name, text)."""
        bound = [("bound", str(self.bound))] if self.bound is not None else []
        return [(self.positions, str(self)), *bound]


@dataclass(frozen=True)
class Divergence:
    """Hold where greedy outputs of a prompt part.

    Parameters
    ----------
    prompt : str
        The prompt, as JSON text.
    position : int
        The first position at which tokens differ.
    gap : float or None
        Logit of the first sampler's token less that of the second's (of the runner-up, where that is all the
        line says); None where the line has no logits.

    Examples
    --------
    >>> a = [{"prompt": "a", "tokens": [5, 6], "gaps": [2.0, 0.01]}]
    >>> from simkit.verify.compare import compare
    >>> print(compare(a, [{"prompt": "a", "tokens": [5, 7]}], greedy=True).greedy.divergences[0])
    "a" at position 1, gap 0.01
    """

    prompt: str
    position: int
    gap: float | None

    def __str__(self) -> str:
        """Return one line."""
        gap = "no logits" if self.gap is None else f"gap {self.gap:.3g}"
        prompt = self.prompt if len(self.prompt) <= 40 else f"{self.prompt[:37]}..."
        return f"{prompt} at position {self.position}, {gap}"


@dataclass(frozen=True)
class Greedy:
    """Hold the comparison of greedy outputs.

    Parameters
    ----------
    prompts : int
        Prompts whose output the first sampler repeats, and which both samplers were given.
    unsteady : int
        Prompts left out: the first sampler, or its second run, gives several outputs.
    divergences : tuple of Divergence
        The first of each prompt that has one.
    tie_gap : float
        Gap up to which a divergence is a tie.

    Examples
    --------
    >>> from simkit.verify.compare import compare
    >>> a = [{"prompt": "a", "tokens": [5, 6]}]
    >>> compare(a, a, greedy=True).greedy.share
    0.0
    """

    prompts: int
    unsteady: int
    divergences: tuple[Divergence, ...]
    tie_gap: float

    @property
    def share(self) -> float:
        """The share of prompts that diverge."""
        return len(self.divergences) / self.prompts if self.prompts else math.nan

    @property
    def clear(self) -> tuple[Divergence, ...]:
        """The divergences at a gap beyond a tie."""
        return tuple(d for d in self.divergences if d.gap is not None and d.gap > self.tie_gap)

    @property
    def unknown(self) -> tuple[Divergence, ...]:
        """The divergences without logits to judge by."""
        return tuple(d for d in self.divergences if d.gap is None)


@dataclass(frozen=True, repr=False)
class Comparison(Readable):
    """What two samplers' outputs say about their laws.

    Parameters
    ----------
    outcome : str
        "PASS", "FAIL" or "INCONCLUSIVE".
    reason : str
        Why, in one sentence.
    where : str
        Which positions differ most.
    p_value : float
        Smallest p-value of the positions, after Bonferroni. NaN for greedy outputs.
    log_evidence : float
        Natural log of the e-value, the average over the positions'. NaN for greedy outputs.
    distance : float
        Squared distance of the positions named in `where`.
    bound : float
        Upper bound on the total variation per token, the larger of position 0's and the later positions'.
    positions : tuple of PositionTest
        What position 0 and later positions say.
    baseline : tuple of PositionTest
        The same of the first sampler against its second run; empty without one.
    greedy : Greedy or None
        The comparison of greedy outputs, which takes the place of statistics.
    lines : tuple of int
        Lines of A, of B and, if there is one, of the second run of A.
    longest : tuple of int
        Tokens of the longest line of A and of B.
    prompts, unmatched : int
        Prompts that both were given; prompts that one was given.
    plan : Plan
        Error rates and tolerance.
    permutations, seed : int
        Permutations drawn; seed of them and of the pairing.

    Examples
    --------
    >>> a = [{"prompt": 0, "tokens": [t]} for t in (0, 1) * 50]
    >>> b = [{"prompt": 0, "tokens": [0]} for _ in range(100)]
    >>> from simkit.verify.compare import compare
    >>> found = compare(a, b)
    >>> found.outcome, found.where
    ('FAIL', 'position 0')
    """

    outcome: str
    reason: str
    where: str
    p_value: float
    log_evidence: float
    distance: float
    bound: float
    positions: tuple[PositionTest, ...]
    baseline: tuple[PositionTest, ...]
    greedy: Greedy | None
    lines: tuple[int, ...]
    longest: tuple[int, int]
    prompts: int
    unmatched: int
    plan: Plan
    permutations: int
    seed: int

    @property
    def passed(self) -> bool:
        """Whether the outcome is PASS; neither FAIL nor INCONCLUSIVE is."""
        return self.outcome == "PASS"

    def rows(self) -> list[tuple[str, str]]:
        """Return what there is to read, as (name, text)."""
        names = ("A", "B", "A again")
        lines = ", ".join(f"{n} {size:,}" for n, size in zip(names, self.lines, strict=False))
        alone = f", that one was given: {self.unmatched:,}" if self.unmatched else ""
        a, b = self.longest
        ends = [("longest", f"A {a} tokens, B {b}: an end counts as a symbol")] if a != b else []
        return [
            ("comparison", f"{self.outcome}: {self.reason}"),
            ("lines", f"{lines}; prompts that both were given: {self.prompts:,}{alone}"),
            *ends,
            *(row for found in self.positions for row in found.rows()),
            *((f"A again, {found.positions}", str(found)) for found in self.baseline),
            *self._greedy_rows(),
        ]

    def _greedy_rows(self) -> list[tuple[str, str]]:
        if self.greedy is None:
            return []
        found = self.greedy
        parted = f"{len(found.divergences)} of {found.prompts} prompts ({found.share:.3g})"
        ties = len(found.divergences) - len(found.clear) - len(found.unknown)
        return [
            ("diverging", f"{parted}; {ties} at ties, {len(found.unknown)} without logits"),
            ("left out", f"{found.unsteady} prompts of which A gives several outputs"),
            *(("divergence", str(divergence)) for divergence in found.divergences[:10]),
        ]

    def record(self) -> dict[str, Any]:
        """Return the comparison as plain data for JSON; numbers that are not finite become strings."""
        greedy = None if self.greedy is None else {**asdict(self.greedy), "share": self.greedy.share}
        found = {
            "format": FORMAT,
            "outcome": self.outcome,
            "reason": self.reason,
            "where": self.where,
            "p_value": self.p_value,
            "log_e_value": self.log_evidence,
            "distance": self.distance,
            "bound": self.bound,
            "positions": [asdict(position) for position in self.positions],
            "baseline": [asdict(position) for position in self.baseline],
            "greedy": greedy,
            "lines": list(self.lines),
            "longest": list(self.longest),
            "prompts": self.prompts,
            "unmatched": self.unmatched,
            "plan": asdict(self.plan),
            "permutations": self.permutations,
            "seed": self.seed,
        }
        plain = finite(found)
        assert isinstance(plain, dict)
        return plain
