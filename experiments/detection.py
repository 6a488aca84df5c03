"""Which fault is seen by which test, and with how many decodes?

Question: Samplers have been wrong in ways that change what comes out. Which test sees which of these faults,
with how many decodes, and which tests are blind to one of them, however many decodes they read?

Expectation: A test sees a fault if what it reads of the output's law is not the target's, and the further off
that is, the sooner. A test that was made shorter (one draft, one row, one token, one request) leaves out the
place where some faults are, and then no number of decodes helps. Which ones follows from exact laws; the
number of decodes can be predicted from them, and the real sampler must then be rejected in 99 of 100 runs.

Finding: judge sees each of 62 faults, with 372 decodes in the median and 77.3 million at most. It rejects the
real sampler in 99.17 % of runs at the predicted number of decodes, and in 100 % at 1.5 times it. Tests that
leave something out are blind, whatever they draw: support only to 58, KS to 17, first token only to 17, base
pair to 17, K = 1 to 12, the same row at every position to 7, marginals only to 2, one request to 1.
Chi-square on the joint counts is blind to 0; read once, at a size fixed beforehand, it takes 0.93 times the
decodes of judge in the median. Of 14 rules that only look wrong, in 42 runs, 0 are rejected: log e-values up
to 2.0, where 13.8 rejects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from statistics import median
from typing import Any

import numpy as np

from simkit.errors import InputError
from simkit.figures.detection_matrix import detection_matrix
from simkit.figures.points import FALSE_ALARM
from simkit.figures.shares import is_above
from simkit.figures.sheet import draw
from simkit.laws.pair import Pair
from simkit.laws.synthetic import corner_case
from simkit.report.document import Badge, Block, Cell, Picture, Table, Text
from simkit.report.numerals import number
from simkit.rules.exact import exact_law
from simkit.rules.faults import CONTROLS, FAMILIES, FAULTS, Fault
from simkit.rules.faults.fault import base
from simkit.rules.faults.measure import distance
from simkit.sampling.simulate import simulate
from simkit.stats import threshold
from simkit.sweeps.measurement import Measurement
from simkit.sweeps.task import Result
from simkit.verify.detect import DETECTORS, MOST_DECODES, decodes_needed, is_blind
from simkit.verify.judge import weigh
from simkit.verify.plan import Plan

PLACE = 9
LONG = True

PLAN = Plan()
REJECTS = threshold(PLAN.false_alarm)
POWER, MARGIN = 0.99, 1.5
RUNS, FEW_RUNS, MANY_DECODES = 100, 10, 10**7
CONTROL_TOKENS, CONTROL_DRAFTS, CONTROL_LENGTH = 10**6, 3, 4

Rng = np.random.Generator


# ---- The tests: a way to set up the sampler, and what is read of its decodes.


@dataclass(frozen=True)
class Setup:
    """What a test draws from, how it is drawn, and which detector reads it."""

    pair: Pair
    draft_length: int
    length: int
    detector: str = "judge"


def setups(fault: Fault) -> dict[str, list[Setup]]:
    """Return the tests of a fault by name; of several set-ups the one that sees it first counts."""
    own = Setup(fault.shown_by(), fault.draft_length, fault.length)
    return {
        "judge": [own],
        "chi-square": [replace(own, detector="chi-square")],
        "KS": [replace(own, detector="KS")],
        "support only": [replace(own, detector="support")],
        "K = 1": [replace(own, draft_length=1)],
        "the same row at every position": [replace(own, pair=pair) for pair in _rows_alone(own.pair)],
        "first token only": [replace(own, length=1)],
        "marginals only": [replace(own, detector="marginals" if own.length > 1 else "judge")],
        "base pair": [replace(own, pair=base())],
        "one request": [replace(own, pair=pair) for pair in _requests_alone(own.pair)],
    }


def _rows_alone(pair: Pair) -> Iterator[Pair]:
    met = {(int(p), int(q)) for p, slots in zip(pair.target, pair.draft, strict=True) for q in slots}
    for p, q in sorted(met):
        yield Pair.from_weights(pair.rows[p], pair.rows[q])


def _requests_alone(pair: Pair) -> Iterator[Pair]:
    for state in pair.initial:
        yield replace(pair, initial=np.array([state]))


TESTS: Mapping[str, tuple[str, str]] = {
    "judge": ("judge", "the joint law of the whole decode, and tokens by state: nothing is left out"),
    "chi-square": ("chi-square", "the joint law of the whole decode: nothing is left out"),
    "KS": ("KS", "the first token alone: nothing behind it is read"),
    "support only": (
        "support",
        "whether a token of target weight 0 comes out: a wrong law of possible tokens has none",
    ),
    "K = 1": ("K = 1", "a call has one slot: nothing can go wrong between two drafts of a call"),
    "the same row at every position": (
        "one row",
        "all positions have one pair of rows: a row that is read in the wrong place is the right one",
    ),
    "first token only": (
        "first token",
        "a decode ends with its first token: the bonus token, later slots and the next call never come out",
    ),
    "marginals only": (
        "marginals",
        "each position by itself: tokens that depend on each other have the right law one by one",
    ),
    "base pair": (
        "base pair",
        "p = (.5, .3, .2), q = (.2, .3, .5) everywhere: the residual is one token for certain, no "
        "probability is 0, and no row changes",
    ),
    "one request": ("one request", "one request at a time: there is no other one whose rows could be read"),
}
"""Heading of each test, and what it reads or leaves out."""

SHORTENED = [test for test in TESTS if test not in ("judge", "chi-square")]


# ---- The work.


@dataclass(frozen=True)
class Detection(Measurement):
    """Decodes that each test needs for a fault, and how often `judge` rejects the sampler after as many."""

    fault: str
    total_variation: str
    seed: int = 1

    def measure(self, rng: Rng) -> Mapping[str, Any]:
        fault = FAULTS[self.fault]
        needed = _needed(fault, int(rng.integers(2**32)))
        sizes = [needed["judge"] or 0, int(np.ceil(MARGIN * (needed["judge"] or 0)))]
        runs = [FEW_RUNS if size > MANY_DECODES else RUNS for size in sizes]
        rejected = [_rejected(fault, *run, int(rng.integers(2**32))) for run in zip(sizes, runs, strict=True)]
        return {
            "class": fault.kind,
            "family": next(name for name, members in FAMILIES.items() if fault in members),
            "draft_length": fault.draft_length,
            "length": fault.length,
            "needed": needed,
            "decodes": sizes,
            "runs": runs,
            "rejected": rejected,
            "tokens": fault.length * int(np.dot(sizes, runs)),
        }


def _needed(fault: Fault, seed: int) -> dict[str, int | None]:
    """Return the decodes for each test, None where it is blind; equal set-ups have equal answers."""
    known: dict[tuple[object, ...], int | None] = {}
    found: dict[str, int | None] = {}
    for test, tried in setups(fault).items():
        for setup in tried:
            key = (setup.pair.digest, setup.draft_length, setup.length, setup.detector)
            if key not in known:
                known[key] = _decodes(fault, setup, seed)
            best = [value for value in (found.get(test), known[key]) if value is not None]
            found[test] = min(best, default=None)
    return found


def _decodes(fault: Fault, setup: Setup, seed: int) -> int | None:
    law = exact_law(setup.pair, fault.text, draft_length=setup.draft_length, length=setup.length)
    if is_blind(setup.pair, law, setup.detector):
        return None
    try:
        rng = np.random.default_rng(seed)
        return decodes_needed(setup.pair, law, setup.detector, PLAN, power=POWER, rng=rng)
    except InputError:
        return MOST_DECODES  # the test is not blind, and yet no feasible number will do


def _rejected(fault: Fault, decodes: int, runs: int, seed: int) -> int:
    """Return how many runs of the sampler itself `judge` rejects."""
    nats = DETECTORS["judge"].nats
    task = {"draft_length": fault.draft_length, "length": fault.length, "seed": seed}
    tallies = (
        simulate(fault.shown_by(), fault.name, **task, trials=decodes, first_trial=run * decodes)
        for run in range(runs)
    )
    return sum(nats(tally, PLAN) >= REJECTS for tally in tallies)


@dataclass(frozen=True)
class Acquittal(Measurement):
    """The evidence against a rule that looks wrong and is not, on each of some pairs."""

    control: str
    tokens_each: int = CONTROL_TOKENS
    seed: int = 1

    def measure(self, rng: Rng) -> Mapping[str, Any]:
        task = {"draft_length": CONTROL_DRAFTS, "length": CONTROL_LENGTH}
        trials = self.tokens_each // CONTROL_LENGTH
        log_e = {}
        for name, pair in control_pairs().items():
            seed = int(rng.integers(2**32))
            tally = simulate(pair, CONTROLS[self.control].text, **task, trials=trials, seed=seed)
            log_e[name] = round(weigh(tally, PLAN).log_e, 6)
        return {"log_e": log_e, "tokens": len(log_e) * trials * CONTROL_LENGTH}


def control_pairs() -> dict[str, Pair]:
    """Return the pairs on which controls are judged: one row, rows by position with zeros, three requests."""
    return {"base": base(), **{name: corner_case(name) for name in ("by-position", "requests")}}


def tasks() -> Sequence[Measurement]:
    """Return a detection for each fault with a law of its own, and an acquittal for each control."""
    return [
        *(Detection(name, str(distance(fault))) for name, fault in FAULTS.items() if fault.shows_in_a_law),
        *(Acquittal(name) for name in CONTROLS),
    ]


# ---- What the rows say.


def detections(rows: Sequence[Result]) -> list[Result]:
    """Return the rows of faults."""
    return [row for row in rows if row["kind"] == "Detection"]


def acquittals(rows: Sequence[Result]) -> list[Result]:
    """Return the rows of controls."""
    return [row for row in rows if row["kind"] == "Acquittal"]


def unseen(rows: Sequence[Result], test: str) -> list[Result]:
    """Return the faults to which a test is blind."""
    return [row for row in detections(rows) if row["needed"][test] is None]


def escaped(rows: Sequence[Result]) -> list[Result]:
    """Return the faults to which some shortened test is blind."""
    return [row for row in detections(rows) if any(row["needed"][test] is None for test in SHORTENED)]


def is_caught(row: Result, among: int) -> bool:
    """Return whether `judge` rejects a fault as often as it must at 1.5 times the decodes, one of several.

    A single decode that settles it is then missed with probability .01 ** 1.5 = .001; evidence that adds up
    is missed even less.
    """
    missed = row["runs"][1] - row["rejected"][1]
    return not is_above(missed, row["runs"][1], (1.0 - POWER) ** MARGIN, FALSE_ALARM / among)


def rejected(rows: Sequence[Result], size: int) -> tuple[int, int]:
    """Return in how many runs of how many faults are rejected, at one of the two sizes."""
    found = detections(rows)
    return sum(row["rejected"][size] for row in found), sum(row["runs"][size] for row in found)


def log_e_values(rows: Sequence[Result]) -> list[float]:
    """Return the log e-values of all controls on all pairs."""
    return [float(value) for row in acquittals(rows) for value in row["log_e"].values()]


def badges(rows: Sequence[Result]) -> Sequence[Badge]:
    """Return whether faults are rejected, controls are not, and what shortened tests miss is seen."""
    if not {task.identity for task in tasks()} <= {row["identity"] for row in rows}:
        return [Badge("fail", "measurements are missing")]
    faults, missed, values = detections(rows), escaped(rows), log_e_values(rows)
    caught = [row["fault"] for row in faults if is_caught(row, len(faults))]
    seen = [row for row in missed if row["fault"] in caught]
    alarms = [value for value in values if value >= REJECTS]
    (once, once_of), (more, more_of) = (rejected(rows, size) for size in (0, 1))
    return [
        Badge(
            "pass" if len(caught) == len(faults) else "fail",
            f"{len(caught)} of {len(faults)} faults rejected as predicted: at {MARGIN:g} × the decodes in "
            f"{more} of {more_of} runs",
        ),
        Badge("fail" if alarms else "pass", f"{len(alarms)} of {len(values)} runs of controls rejected"),
        Badge(
            "pass" if len(seen) == len(missed) else "fail",
            f"judge sees {len(seen)} of {len(missed)} faults to which a shortened test is blind",
        ),
        Badge("info", f"at the predicted decodes {_percent(once, once_of)} % of runs rejected, 99 planned"),
    ]


def _percent(hits: int, runs: int) -> str:
    return f"{100.0 * hits / runs:.4g}"


def finding(rows: Sequence[Result]) -> str:
    """Return the finding in a few sentences."""
    faults, values = detections(rows), log_e_values(rows)
    needed = [int(row["needed"]["judge"]) for row in faults]
    ratio = median(row["needed"]["chi-square"] / row["needed"]["judge"] for row in faults)
    blind = sorted(((len(unseen(rows, test)), test) for test in SHORTENED), key=lambda one: -one[0])
    return (
        f"judge sees each of {len(faults)} faults, with {median(needed):.0f} decodes in the median and "
        f"{max(needed) / 1e6:.3g} million at most. It rejects the real sampler in "
        f"{_percent(*rejected(rows, 0))} % of runs at the predicted number of decodes, and in "
        f"{_percent(*rejected(rows, 1))} % at {MARGIN:g} times it. Tests that leave something out are blind, "
        f"whatever they draw: {', '.join(f'{test} to {count}' for count, test in blind)}. Chi-square on the "
        f"joint counts is blind to {len(unseen(rows, 'chi-square'))}; read once, at a size fixed beforehand, "
        f"it takes {ratio:.2g} times the decodes of judge in the median. Of {len(acquittals(rows))} rules "
        f"that only look wrong, in {len(values)} runs, {sum(value >= REJECTS for value in values)} are "
        f"rejected: log e-values up to {max(values):.1f}, where {REJECTS:.1f} rejects."
    )


# ---- The page.

HALVES = (
    ("proposal", "accept", "residual"),
    ("position", "noise", "block", "several drafts", "vocabulary"),
)
"""Families of faults by picture."""


def blocks(rows: Sequence[Result]) -> Sequence[Block]:
    """Return the pictures and tables of the page."""
    hidden = [fault for fault in FAULTS.values() if not fault.shows_in_a_law]
    classes = ", ".join(sorted({fault.kind for fault in hidden}))
    return [
        Text(
            "Every fault stands on the smallest pair that shows it, with its own K drafts a call and L "
            "tokens a decode (`simkit faults show NAME`). Its exact law says which tests are blind: those "
            "for which all that they read is the target's, in fractions. For the others the law predicts "
            f"how many decodes it takes to reject it at 10⁻⁶ with probability {POWER:g}. The last six tests "
            "are `judge` on a set-up that was made shorter in one way; where a set-up is as short already, "
            "the number is the same."
        ),
        *(_matrix(rows, half) for half in (0, 1)),
        _reasons(rows),
        Text(
            "Predictions are only as good as the sampler that they are tried on. Every broken rule is drawn "
            f"by the kernel that its users would run: {RUNS} runs at the predicted number of decodes and at "
            f"{MARGIN:g} times it, {FEW_RUNS} where a run has more than ten million decodes. {len(hidden)} "
            f"more faults show in no law of tokens ({classes}): `simkit faults` says how they are seen.",
            heading="Predicted and measured",
        ),
        _faults(rows),
        Text(
            "A test that rejects everything sees all faults. These rules look wrong, and some were reported "
            "as faults, but their exact law is the target's.",
            heading="Rules that only look wrong",
        ),
        _controls(rows),
    ]


def _matrix(rows: Sequence[Result], half: int) -> Picture:
    shown = [row for row in detections(rows) if row["family"] in HALVES[half]]
    words = [{**row, **{t: "blind" if n is None else n for t, n in row["needed"].items()}} for row in shown]
    headings = {test: heading for test, (heading, _) in TESTS.items()}
    sheet = draw(
        partial(detection_matrix, rows=shown, tests=headings, apart=len(TESTS) - 6),
        data=words,
        columns=("family", "fault", "class", "total_variation", "draft_length", "length", *TESTS),
        title=f"Decodes that each test needs: {', '.join(HALVES[half])}",
        height=1.0 + 0.17 * len(shown),
    )
    return Picture(
        name=f"detection-{half + 1}",
        alt="judge and chi-square see every fault, support is blind to most, and shortened tests to some.",
        caption=f"Decodes for rejection at 10⁻⁶ with probability {POWER:g}, predicted from exact laws. "
        f"Families: {', '.join(HALVES[half])}. Grey: what the test reads is exactly the target's, so no "
        "number of decodes helps. Right of the gap: `judge` on set-ups that were made shorter.",
        **sheet._asdict(),
    )


def _reasons(rows: Sequence[Result]) -> Table:
    return Table(
        ("test", "what it reads or leaves out", "blind to"),
        [[heading, reason, len(unseen(rows, test))] for test, (heading, reason) in TESTS.items()],
        f"Why a test is blind, and to how many of {len(detections(rows))} faults. Chi-square is read on "
        "cells that expect 50 decodes or more, so never on fewer than 100 but for an impossible token; KS "
        "is the exact discrete test in the order of ids.",
    )


def _faults(rows: Sequence[Result]) -> Table:
    lines: list[list[Cell]] = [
        [
            str(row["fault"]),
            str(row["class"]),
            float(f"{float(Fraction(row['total_variation'])):.3g}"),
            int(row["draft_length"]),
            int(row["length"]),
            int(row["needed"]["judge"]),
            *(f"{hits} of {runs}" for hits, runs in zip(row["rejected"], row["runs"], strict=True)),
        ]
        for row in detections(rows)
    ]
    return Table(
        ("fault", "class", "TV", "K", "L", "decodes", "rejected", f"at × {MARGIN:g}"),
        lines,
        "Predicted decodes for `judge`, and runs of the real sampler that it rejects after as many and after "
        f"{MARGIN:g} times as many. TV: the total variation between the joint laws of L tokens.",
    )


def _controls(rows: Sequence[Result]) -> Table:
    return Table(
        ("rule", "why it looks wrong", *control_pairs()),
        [
            [
                str(row["control"]),
                CONTROLS[row["control"]].suspicion,
                *(round(value, 1) + 0.0 for value in log_e),
            ]
            for row in acquittals(rows)
            for log_e in [row["log_e"].values()]
        ],
        f"Log e-values after {number(CONTROL_TOKENS)} tokens on each of three pairs, K = {CONTROL_DRAFTS}; "
        f"{REJECTS:.1f} would reject. By-position: another row at each of five positions, with zeros; "
        "requests: three at once.",
    )
