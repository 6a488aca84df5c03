"""Verdict: one of three answers, what it rests on, and how it reads."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any

from simkit.stats import Certificate, Evidence, GoodnessOfFit, threshold
from simkit.verify.plan import Plan
from simkit.verify.readable import Readable

FORMAT = "simkit verdict 1"

OUTCOMES: Mapping[str, str] = MappingProxyType(
    {
        "PASS": "the sampler's law is certified to be within the tolerance",
        "FAIL": "rejected: the sampler does not draw from the target law",
        "INCONCLUSIVE": "neither rejected nor certified: draw more",
    }
)
"""The three answers and what they mean; the worst is FAIL, and only PASS is green."""


@dataclass(frozen=True, repr=False)
class Verdict(Readable):
    """What a run says about its sampler.

    Parameters
    ----------
    outcome : str
        "PASS", "FAIL" or "INCONCLUSIVE".
    reason : str
        Why, in one sentence.
    where : str
        Where the counts depart most from the law; every run has such a place.
    evidence : Evidence
        The e-value and its components; it decides FAIL.
    certificate : Certificate
        Upper confidence bound on the total variation; it decides PASS.
    tests : tuple of GoodnessOfFit
        Chi-square, largest z-score and Kolmogorov-Smirnov tests; they inform.
    adjusted : tuple of float
        Their p-values after Holm's correction.
    detectable_tv : float
        Smallest total variation that this run would have rejected with probability 1 - miss, whatever the
        law at that distance.
    impossible : int
        Emitted tokens that the target gives weight 0.
    samples : int
        Tokens drawn.
    plan : Plan
        The plan.
    sampler : str
        What was judged.
    target : str
        Digest of the target law, hex.
    keys : tuple of str
        Which draws were judged: verdicts that share one are not independent.

    Examples
    --------
    >>> from simkit.verify.judge import judge
    >>> verdict = judge([50, 50], [0.5, 0.5])
    >>> verdict.outcome, verdict.passed, round(verdict.certificate.total_variation, 2)
    ('INCONCLUSIVE', False, 0.21)
    """

    outcome: str
    reason: str
    where: str
    evidence: Evidence
    certificate: Certificate
    tests: tuple[GoodnessOfFit, ...]
    adjusted: tuple[float, ...]
    detectable_tv: float
    impossible: int
    samples: int
    plan: Plan
    sampler: str
    target: str
    keys: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether the outcome is PASS; neither FAIL nor INCONCLUSIVE is."""
        return self.outcome == "PASS"

    @property
    def log_evidence(self) -> float:
        """Natural log of the e-value."""
        return self.evidence.log_e

    def rows(self) -> list[tuple[str, str]]:
        """Return what there is to read, as (name, text)."""
        limit = threshold(self.plan.false_alarm)
        length = self.plan.length
        sequence = (
            [("per sequence", f"at most {self.certificate.per_sequence(length):.3g} over {length} tokens")]
            if length
            else []
        )
        detectable = (
            [("detectable", f"a total variation of {self.detectable_tv:.3g} would have been rejected")]
            if self.detectable_tv < 1.0
            else []
        )
        tests = [
            (test.name, f"{str(test).removeprefix(test.name + ': ')}; after Holm {_p(adjusted)}")
            for test, adjusted in zip(self.tests, self.adjusted, strict=True)
        ]
        return [
            ("verdict", f"{self.outcome}: {self.reason}"),
            ("log e-value", f"{self.log_evidence:.4g} (rejects at {limit:.4g}; {self.evidence.strongest})"),
            ("total variation", str(self.certificate).removeprefix("total variation ")),
            *sequence,
            *detectable,
            ("largest departure", self.where),
            *tests,
        ]

    def record(self) -> dict[str, Any]:
        """Return the verdict as plain data for JSON; numbers that are not finite become strings."""
        found = {
            "format": FORMAT,
            "outcome": self.outcome,
            "reason": self.reason,
            "where": self.where,
            "log_e_value": self.log_evidence,
            "components": dict(self.evidence.components),
            "certificate": asdict(self.certificate),
            "detectable_tv": self.detectable_tv,
            "impossible": self.impossible,
            "samples": self.samples,
            "plan": asdict(self.plan),
            "sampler": self.sampler,
            "target": self.target,
            "keys": list(self.keys),
            "tests": [
                {**asdict(test), "after_holm": adjusted}
                for test, adjusted in zip(self.tests, self.adjusted, strict=True)
            ],
        }
        plain = finite(found)
        assert isinstance(plain, dict)
        return plain


def finite(value: object) -> object:
    """Return plain data in which NaN and infinities, which JSON lacks, are strings.

    Parameters
    ----------
    value : object
        Numbers, strings, and lists, tuples and dicts of them.

    Examples
    --------
    >>> finite({"a": [1.5, math.inf]})
    {'a': [1.5, 'inf']}
    """
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: finite(v) for key, v in value.items()}
    if isinstance(value, list | tuple):
        return [finite(v) for v in value]
    return value


def _p(adjusted: float) -> str:
    """Return an adjusted p-value as text; small ones rest on approximations, so they get no digits."""
    return "< 1e-4" if adjusted < 1e-4 else f"{adjusted:.3g}"
