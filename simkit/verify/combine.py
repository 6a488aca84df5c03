"""Combine the verdicts of independent runs of one sampler: their e-values multiply."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from types import MappingProxyType
from typing import Any

from simkit.errors import InputError
from simkit.files import store_error
from simkit.stats import threshold
from simkit.verify.readable import Readable
from simkit.verify.verdict import FORMAT, OUTCOMES, finite

# How judge names the draws of a tally: two ranges of one seed may overlap and yet differ as text.
_RANGE = re.compile(r"seed (-?\d+), trials (\d+) to (\d+)")


@dataclass(frozen=True)
class Part:
    """One judged run within a combined verdict.

    Parameters
    ----------
    keys : tuple of str
        Which draws it judged.
    outcome : str
        Its own outcome.
    log_e : float
        Natural log of its e-value.
    samples : int
        Its tokens.
    where : str
        Where its counts depart most from the law.

    Examples
    --------
    >>> Part(("night 1",), "PASS", -2.5, 1000, "token 3").log_e
    -2.5
    """

    keys: tuple[str, ...]
    outcome: str
    log_e: float
    samples: int
    where: str

    def record(self) -> dict[str, Any]:
        """Return the run as plain data."""
        return {
            "keys": list(self.keys),
            "outcome": self.outcome,
            "log_e_value": self.log_e,
            "samples": self.samples,
            "where": self.where,
        }


@dataclass(frozen=True, repr=False)
class Combined(Readable):
    """What several independent runs say together.

    Parameters
    ----------
    outcome, reason : str
        As in `Verdict`.
    log_evidence : float
        Natural log of the product of the runs' e-values.
    parts : tuple of Part
        The runs, in the order of their keys.
    certificate : mapping
        The weakest of the runs' certificates: the largest bound on the total variation.
    detectable_tv : float
        Smallest total variation that each of the runs alone would have rejected with probability 1 - miss.
    impossible : int
        Emitted tokens that the target gives weight 0.
    plan : mapping
        The plan that all the runs share.
    sampler, target : str
        What was judged, and the digest of the law, which all the runs share.

    Examples
    --------
    >>> from simkit.verify.judge import judge
    >>> runs = [judge([60, 40], [0.5, 0.5]), judge([40, 60], [0.5, 0.5])]
    >>> both = combine([run.record() for run in runs])
    >>> both.outcome, both.samples
    ('INCONCLUSIVE', 200)
    """

    outcome: str
    reason: str
    log_evidence: float
    parts: tuple[Part, ...]
    certificate: Mapping[str, Any]
    detectable_tv: float
    impossible: int
    plan: Mapping[str, Any]
    sampler: str
    target: str

    @property
    def passed(self) -> bool:
        """Whether the outcome is PASS; neither FAIL nor INCONCLUSIVE is."""
        return self.outcome == "PASS"

    @property
    def keys(self) -> tuple[str, ...]:
        """Which draws were judged, in all the runs."""
        return tuple(sorted(key for part in self.parts for key in part.keys))

    @property
    def samples(self) -> int:
        """Tokens of all the runs."""
        return sum(part.samples for part in self.parts)

    @property
    def where(self) -> str:
        """Where the counts depart most from the law, in the run that has the largest e-value."""
        return max(self.parts, key=lambda part: part.log_e).where

    def rows(self) -> list[tuple[str, str]]:
        """Return what there is to read, as (name, text)."""
        limit = threshold(self.plan["false_alarm"])
        bound = _float(self.certificate["total_variation"])
        return [
            ("verdict", f"{self.outcome}: {self.reason}"),
            ("log e-value", f"{self.log_evidence:.4g} (rejects at {limit:.4g}; the sum over the runs)"),
            ("total variation", f"at most {bound:.3g}: the weakest certificate of the runs"),
            ("largest departure", self.where),
            *(
                (
                    f"run {number}",
                    f"{part.outcome}, log e-value {part.log_e:.4g}, {part.samples:,} tokens ({part.keys[0]})",
                )
                for number, part in enumerate(self.parts, 1)
            ),
        ]

    def record(self) -> dict[str, Any]:
        """Return plain data in the format of a verdict, so that it can be combined with more runs."""
        found = finite(
            {
                "format": FORMAT,
                "outcome": self.outcome,
                "reason": self.reason,
                "where": self.where,
                "log_e_value": self.log_evidence,
                "components": {"product of the runs": self.log_evidence},
                "certificate": dict(self.certificate),
                "detectable_tv": self.detectable_tv,
                "impossible": self.impossible,
                "samples": self.samples,
                "plan": dict(self.plan),
                "sampler": self.sampler,
                "target": self.target,
                "keys": list(self.keys),
                "tests": [],
                "runs": [part.record() for part in self.parts],
            }
        )
        assert isinstance(found, dict)
        return found


def combine(records: Sequence[Mapping[str, Any]], names: Sequence[str] | None = None) -> Combined:
    """Return the verdict of several independent runs of one sampler against one target.

    Under a right sampler each run's e-value has expectation at most 1, and so has their product, as the runs
    are independent: it reaches 1/false_alarm with probability at most false_alarm (Markov; over a growing
    series of runs, Ville). FAIL is decided by the product, and by tokens of target weight 0. To fail where
    one run among m does would happen up to m times as often as the plan says: such a run, where the product
    stays below, makes the outcome INCONCLUSIVE, never PASS. PASS takes a PASS of each run, which a sampler
    outside the tolerance gets with probability at most miss. Short runs do not add up to a PASS, since
    records hold no counts: add the counts and judge them once.

    All this holds for all the runs there are, not for a choice made after looking at them.

    Parameters
    ----------
    records : sequence of mapping
        What `Verdict.record` or `Combined.record` gave, one or more, in any order.
    names : sequence of str or None
        What to call them in errors, such as their files; None for "record 1" and so on.

    Raises
    ------
    InputError
        When there is no record, one is no verdict or has no key, two share a key (or trials of a seed), or
        their plans, targets or samplers differ.

    References
    ----------
    .. [1] V. Vovk and R. Wang, "E-values: calibration, combination and applications", Annals of Statistics 49
       (2021), 1736-1754, section 4: products of independent e-values.

    Examples
    --------
    >>> from simkit.verify.judge import judge
    >>> nights = [judge([1060, 940], [0.5, 0.5], key=f"night {i}") for i in (1, 2, 3)]
    >>> together = combine([night.record() for night in nights])
    >>> [night.outcome for night in nights], round(together.log_evidence / nights[0].log_evidence, 9)
    (['INCONCLUSIVE', 'INCONCLUSIVE', 'INCONCLUSIVE'], 3.0)
    """
    names = [f"record {number}" for number in range(1, len(records) + 1)] if names is None else list(names)
    if not records:
        raise InputError("there is no verdict to combine; no evidence is never a pass")
    read = [_read(record, name) for record, name in zip(records, names, strict=True)]
    for one, other in combinations(read, 2):
        _check_pair(one, other)
    parts = tuple(sorted((part for record in read for part in record.parts), key=lambda part: part.keys))
    log_e = _total(parts)
    impossible = sum(record.impossible for record in read)
    outcome, reason = _decide(read, parts, log_e, impossible)
    return Combined(
        outcome=outcome,
        reason=reason,
        log_evidence=log_e,
        parts=parts,
        certificate=max((record.certificate for record in read), key=_weakness),
        detectable_tv=max(record.detectable_tv for record in read),
        impossible=impossible,
        plan=read[0].plan,
        sampler=read[0].sampler,
        target=read[0].target,
    )


def read_verdict(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the verdict record in a JSON file.

    Parameters
    ----------
    path : path
        What `simkit judge --out` or `simkit combine --out` wrote, or `simkit simulate --json` printed, whose
        document holds its verdict.

    Raises
    ------
    StoreError
        When the file cannot be read.
    InputError
        When it is not a JSON object.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.json").write_text('{"format": "simkit verdict 1"}')
    ...     read_verdict(Path(folder, "a.json"))
    {'format': 'simkit verdict 1'}
    """
    path = Path(path)
    try:
        record = json.loads(path.read_bytes())
    except OSError as error:
        raise store_error("read", path, error) from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not JSON: {error}; give files that simkit judge --out wrote") from None
    if not isinstance(record, dict):
        raise InputError(f"{path} is not a verdict; give files that simkit judge --out wrote")
    verdict = record.get("verdict")
    return verdict if isinstance(verdict, dict) and "format" not in record else record


@dataclass(frozen=True)
class _Record:
    """A record after its checks."""

    name: str
    outcome: str
    parts: tuple[Part, ...]
    certificate: Mapping[str, Any]
    detectable_tv: float
    impossible: int
    plan: Mapping[str, Any]
    sampler: str
    target: str

    @property
    def failed(self) -> bool:
        return any(outcome == "FAIL" for outcome in (self.outcome, *(part.outcome for part in self.parts)))


def _decide(read: Sequence[_Record], parts: Sequence[Part], log_e: float, impossible: int) -> tuple[str, str]:
    alpha = read[0].plan["false_alarm"]
    samples, many = sum(part.samples for part in parts), f"{len(parts)} run{'s' if len(parts) > 1 else ''}"
    if impossible:
        return "FAIL", f"{impossible} of {samples} tokens in {many} have target weight 0"
    if log_e >= threshold(alpha):
        return "FAIL", (
            f"log e-value {log_e:.4g} over {many} and {samples} tokens, which a right sampler reaches with "
            f"probability at most {alpha:g}"
        )
    if failed := sorted(record.name for record in read if record.failed):
        return "INCONCLUSIVE", (
            f"{', '.join(failed)} failed alone, which one of {many} does more often than with probability "
            f"{alpha:g}, and together they reach a log e-value of {log_e:.4g} only; run more"
        )
    passed = sum(record.outcome == "PASS" for record in read)
    if passed == len(read):
        return "PASS", f"every verdict passed alone ({many}), and their product does not reject"
    return "INCONCLUSIVE", (
        f"not rejected, but {len(read) - passed} of {len(read)} verdicts did not pass alone; short runs "
        "do not add up to a pass: add their counts and judge them once"
    )


def _total(parts: Sequence[Part]) -> float:
    """Return the sum of the log e-values, rounded once, so that order and grouping do not matter.

    An infinite e-value has probability 0 under the target, so one of 0 beside it takes nothing back.
    """
    values = [part.log_e for part in parts]
    return math.inf if math.inf in values else math.fsum(values)


def _weakness(certificate: Mapping[str, Any]) -> tuple[float, str]:
    """Return what certificates are ordered by; the text breaks ties, whatever the order."""
    return _float(certificate["total_variation"]), json.dumps(dict(certificate), sort_keys=True)


# Two records together.


def _check_pair(one: _Record, other: _Record) -> None:
    """Raise unless two records are independent runs of the same sampler, target and plan."""
    both = f"{one.name} and {other.name}"
    if one.target != other.target:
        raise InputError(
            f"{both} have different targets ({one.target[:12]} and {other.target[:12]}); only runs against "
            "one law combine"
        )
    if one.sampler != other.sampler:
        raise InputError(
            f"{both} judge different samplers ({one.sampler!r} and {other.sampler!r}); only "
            "runs of one combine"
        )
    if one.plan != other.plan:
        fields = sorted({*one.plan, *other.plan})
        differ = [
            f"{field} {one.plan.get(field)} and {other.plan.get(field)}"
            for field in fields
            if one.plan.get(field) != other.plan.get(field)
        ]
        raise InputError(f"{both} have different plans ({'; '.join(differ)}); judge both by one plan")
    _check_keys(one, other, both)


def _check_keys(one: _Record, other: _Record, both: str) -> None:
    for key in (key for part in one.parts for key in part.keys):
        for twin in (key for part in other.parts for key in part.keys):
            if key == twin or _overlap(key, twin):
                which = repr(key) if key == twin else f"{key!r} and {twin!r}"
                raise InputError(
                    f"{both} share draws ({which}), which would count twice; leave one out, or give "
                    "runs that are different a --key each"
                )


def _overlap(key: str, twin: str) -> bool:
    """Return whether two keys of tallies share trials of one seed."""
    ranges = [match.groups() for match in (_RANGE.fullmatch(key), _RANGE.fullmatch(twin)) if match]
    if len(ranges) < 2:
        return False
    (seed, first, last), (seed_too, first_too, last_too) = (map(int, group) for group in ranges)
    return seed == seed_too and first <= last_too and first_too <= last


# One record.


def _read(record: object, name: str) -> _Record:
    """Return a record after its checks."""
    if not isinstance(record, Mapping) or record.get("format") != FORMAT:
        found = record.get("format") if isinstance(record, Mapping) else type(record).__name__
        raise InputError(
            f"{name} is not a verdict: its format is {found!r}, needed: {FORMAT!r}; give files that "
            "simkit judge --out wrote"
        )
    runs = record.get("runs")
    if runs is not None and (not isinstance(runs, list) or not runs):
        raise InputError(f"{name}: runs={runs!r}; needed: the runs of a combined verdict")
    whole, parts = _part(record, name), [_part(run, name) for run in runs or [record]]
    _check_sums(whole, parts, name)
    return _Record(
        name=name,
        outcome=whole.outcome,
        parts=tuple(parts),
        certificate=_certificate(record, name),
        detectable_tv=_number(record, "detectable_tv", name),
        impossible=_whole(record, "impossible", name),
        plan=_plan(record, name),
        sampler=_text(record, "sampler", name),
        target=_text(record, "target", name),
    )


def _part(record: object, name: str) -> Part:
    if not isinstance(record, Mapping):
        raise InputError(f"{name}: runs holds {record!r}; needed: an object for each run")
    keys = record.get("keys")
    if not isinstance(keys, list) or not keys or not all(isinstance(key, str) and key for key in keys):
        raise InputError(
            f"{name} has no key (keys={keys!r}), so the same draws could count twice; "
            "judge them again with a key"
        )
    outcome = record.get("outcome")
    if not isinstance(outcome, str) or outcome not in OUTCOMES:
        raise InputError(f"{name}: outcome={outcome!r}; needed: one of {', '.join(OUTCOMES)}")
    return Part(
        keys=tuple(sorted(keys)),
        outcome=outcome,
        log_e=_number(record, "log_e_value", name),
        samples=_whole(record, "samples", name),
        where=_text(record, "where", name),
    )


def _check_sums(whole: Part, parts: Sequence[Part], name: str) -> None:
    """Raise unless a combined record is the sum of its runs."""
    keys = tuple(sorted(key for part in parts for key in part.keys))
    if (whole.keys, whole.log_e, whole.samples) != (keys, _total(parts), sum(part.samples for part in parts)):
        raise InputError(
            f"{name}: its runs do not add up to its log e-value, samples and keys; was it edited?"
        )


def _plan(record: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    plan = record.get("plan")
    if not isinstance(plan, Mapping):
        raise InputError(f"{name}: plan={plan!r}; needed: the plan it was judged by")
    if not 0.0 < _number(plan, "false_alarm", name) < 1.0:
        raise InputError(f"{name}: false_alarm={plan['false_alarm']!r}; it must lie strictly between 0 and 1")
    return MappingProxyType(dict(plan))


def _certificate(record: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    certificate = record.get("certificate")
    if not isinstance(certificate, Mapping):
        raise InputError(f"{name}: certificate={certificate!r}; needed: the bound it was judged by")
    _number(certificate, "total_variation", name)
    return MappingProxyType(dict(certificate))


def _number(record: Mapping[str, Any], field: str, name: str) -> float:
    """Return a field's number; "inf" and "-inf" stand for themselves, since JSON lacks them."""
    value = record.get(field)
    number = _float(value)
    if math.isnan(number):
        raise InputError(f"{name}: {field}={value!r}; needed: a number")
    return number


def _float(value: object) -> float:
    """Return a JSON number, or an infinity in a string, as a float; NaN for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return math.nan
    if isinstance(value, str) and value not in ("inf", "-inf"):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan


def _whole(record: Mapping[str, Any], field: str, name: str) -> int:
    value = record.get(field)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InputError(f"{name}: {field}={value!r}; needed: a whole number >= 0")
    return value


def _text(record: Mapping[str, Any], field: str, name: str) -> str:
    value = record.get(field)
    if not isinstance(value, str):
        raise InputError(f"{name}: {field}={value!r}; needed: text")
    return value
