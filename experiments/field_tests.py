"""What do the field's own tests see?

Question: Public engines test their speculative samplers with rules of their own. Which faults do these
tests catch, how often, and how many samples does an e-value at a false-alarm rate of 1e-6 need for them?

Expectation: A test can only see what its samples can show. An e-value gathers the fault's Kullback-Leibler
divergence KL from each sample at most, on average, so a rate a takes ln(1/a) / KL samples or more.
Thresholds that were set by hand (a ratio of 20, a divergence of 0.01, ten standard deviations) may leave a
part of that unused, and a test that does not fail does not say how far off a sampler may be.

Finding: The field's tests pass 16 of 28 faults in most runs, up to a total variation of 0.04 (vLLM, χ² wide,
recorded q × 0.88). On as many samples the e-value at 1e-6 rejects 14: it adds 2 and misses 0 that a test
catches. Of 4000 right samplers the tests reject 0, the e-value 0. Of 5600 faulty runs simkit passes 0 that
are off by more than its tolerance of 0.01. Given samples it rejects every fault in 100 of 100 runs; the
hardest (TensorRT-LLM, KL, lenience 0.99, total variation 0.00093) takes 32.8 million.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simkit.figures.caught_by_test import caught_by_test
from simkit.figures.points import FALSE_ALARM
from simkit.figures.samples_to_see import samples_to_see
from simkit.figures.shares import is_above, with_intervals
from simkit.figures.sheet import draw
from simkit.report.document import Badge, Block, Cell, Picture, Table, Text
from simkit.report.numerals import number
from simkit.stats import certificate, evidence, threshold
from simkit.sweeps.measurement import Measurement
from simkit.sweeps.task import Result
from simkit.verify.plan import Plan

PLACE = 8
LONG = True

RUNS, RIGHT_RUNS, SEARCH_RUNS = 200, 1000, 100
PLAN = Plan()
REJECTS = threshold(PLAN.false_alarm)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Rng = np.random.Generator


# ---- The faults: what is kept of a draft, and what replaces a refused one.


@dataclass(frozen=True)
class Step:
    """One position of a verifier: the chance of each token to come out as a kept draft, and replaced."""

    kept: Floats
    replaced: Floats

    @property
    def law(self) -> Floats:
        """The law of the emitted token."""
        return self.kept + self.replaced


def _step(
    p: Floats, q: Floats, *, lenience: float = 1.0, recorded: float = 1.0, from_target: bool = False
) -> Step:
    """Keep with min(1, p / (lenience * recorded * q)); replace from max(p - recorded * q, 0), or from p."""
    drafted = q > 0
    ratio = np.divide(p, lenience * recorded * q, out=np.ones_like(p), where=drafted)
    kept = q * np.minimum(1.0, ratio)
    residual = p if from_target else np.maximum(p - recorded * q, 0.0)
    return Step(kept, (1.0 - kept.sum()) * residual / residual.sum())


RIGHT = "right sampler"
FAULTS: Mapping[str, Mapping[str, Any]] = {
    RIGHT: {},
    "replacement from p": {"from_target": True},
    "lenience 0.99": {"lenience": 0.99},
    "lenience 0.98": {"lenience": 0.98},
    "lenience 0.95": {"lenience": 0.95},
    "lenience 0.90": {"lenience": 0.90},
    "recorded q × 0.98": {"recorded": 0.98},
    "recorded q × 0.88": {"recorded": 0.88},
}


# ---- The field's tests: how they draw their laws, how many trials they run, and when they fail.


def _softmax(logits: Floats) -> Floats:
    weights = np.exp(logits - logits.max())
    return weights / weights.sum()


def _uniform_logits(rng: Rng) -> tuple[Floats, Floats]:
    return _softmax(rng.random(10)), _softmax(rng.random(10))


def _top_hundred(rng: Rng) -> tuple[Floats, Floats]:
    def law() -> Floats:
        weights = rng.random(500)
        weights[np.argsort(weights)[:400]] = 0.0
        return weights / weights.sum()

    return law(), law()


def _normal_logits(rng: Rng) -> tuple[Floats, Floats]:
    return _softmax(rng.standard_normal(4096)), _softmax(rng.standard_normal(4096))


def _opposite_logits(rng: Rng) -> tuple[Floats, Floats]:
    logits = rng.standard_normal(16)
    return _softmax(logits), _softmax(-logits)


def _first_tokens(rng: Rng, step: Step, trials: int) -> Ints:
    return rng.multinomial(trials, step.law)


def _two_tokens(rng: Rng, step: Step, trials: int) -> Ints:
    """Return token counts of two positions: the second one is reached when the first draft is kept."""
    first = rng.multinomial(trials, np.concatenate([step.kept, step.replaced]))
    kept, replaced = np.split(first, 2)
    return kept + replaced + rng.multinomial(int(kept.sum()), step.law)


def _distance_ratio(rng: Rng, p: Floats, step: Step, trials: int) -> bool:
    """Fail unless the distance to the target shrinks 20 times as much as that to random laws.

    From 10 trials of two drafts to `trials`; Euclidean distances of the histogram to the target, and to 100
    random laws taken together.
    """
    others = np.array([_softmax(rng.random(p.size)) for _ in range(100)])
    histograms = []
    for size in (10, trials):
        counts = _two_tokens(rng, step, size)
        histograms.append(counts / counts.sum())
    few, many = histograms
    to_target = np.linalg.norm(few - p) / np.linalg.norm(many - p)
    to_others = np.linalg.norm(few - others) / np.linalg.norm(many - others)
    return not to_target > 20.0 * to_others


def _divergence_gap(rng: Rng, p: Floats, step: Step, trials: int) -> bool:
    """Fail unless KL(target || histogram) is within 0.01 of what direct draws from the target give."""
    gap = _divergence(p, _first_tokens(rng, step, trials)) - _divergence(p, rng.multinomial(trials, p))
    return not abs(gap) < 0.01


def _divergence(p: Floats, counts: Ints) -> float:
    possible = p > 0
    if not counts[possible].all():
        return float("inf")
    return float((p[possible] * np.log(p[possible] * counts.sum() / counts[possible])).sum())


def _ten_sigma(rng: Rng, p: Floats, step: Step, trials: int) -> bool:
    """Fail unless chi-square < df + 10 sqrt(2 df), over cells that expect 5 or more and one for the rest."""
    counts, expected = _first_tokens(rng, step, trials), p * trials
    main = expected >= 5.0
    seen, due = counts[main].astype(np.float64), expected[main]
    if expected[~main].sum() >= 5.0:
        seen, due = np.append(seen, counts[~main].sum()), np.append(due, expected[~main].sum())
    degrees = seen.size - 1
    return not ((seen - due) ** 2 / due).sum() < degrees + 10.0 * np.sqrt(2.0 * degrees)


@dataclass(frozen=True)
class FieldTest:
    """A public test: vocabulary, trials, its laws, whether it fails a sampler, and its rule in words."""

    vocabulary: int
    trials: int
    laws: Callable[[Rng], tuple[Floats, Floats]]
    draw: Callable[[Rng, Step, int], Ints]
    catches: Callable[[Rng, Floats, Step, int], bool]
    rule: str

    def planned(self, p: Floats, q: Floats) -> float:
        """Return the expected tokens of a right sampler."""
        second = np.minimum(p, q).sum() if self.draw is _two_tokens else 0.0
        return float(self.trials * (1.0 + second))


TESTS: Mapping[str, FieldTest] = {
    "vLLM, L2 ratio": FieldTest(
        10, 100_000, _uniform_logits, _two_tokens, _distance_ratio,
        "L2 distance to the target falls 20 times as much as to 100 random laws, from 10 trials to 100 000",
    ),
    "TensorRT-LLM, KL": FieldTest(
        500, 50_000, _top_hundred, _first_tokens, _divergence_gap,
        "KL(target, histogram) within 0.01 of that of direct draws",
    ),
    "vLLM, χ² wide": FieldTest(
        4096, 40_960, _normal_logits, _first_tokens, _ten_sigma,
        "chi-square below df + 10 √(2 df), cells of 5 or more",
    ),
    "vLLM, χ² narrow": FieldTest(
        16, 200_000, _opposite_logits, _first_tokens, _ten_sigma,
        "chi-square below df + 10 √(2 df), cells of 5 or more",
    ),
}  # fmt: skip


# ---- The work.


@dataclass(frozen=True)
class Comparison(Measurement):
    """What a field test says of a fault, and simkit on as many samples; laws are drawn each time."""

    test: str
    fault: str
    runs: int = RUNS
    seed: int = 1

    def measure(self, rng: Rng) -> Mapping[str, Any]:
        test = TESTS[self.test]
        found: dict[str, int] = dict.fromkeys(("caught", "rejected", "passed", "wrongly_passed"), 0)
        distances, bounds = [], []
        for _ in range(self.runs):
            p, q = test.laws(rng)
            step = _step(p, q, **FAULTS[self.fault])
            distances.append(_distance(step.law, p))
            found["caught"] += test.catches(rng, p, step, test.trials)
            counts, planned = test.draw(rng, step, test.trials), test.planned(p, q)
            rejected = _rejects(counts, p, planned)
            bounds.append(certificate(counts, p, PLAN.confidence, visits=planned).total_variation)
            passed = not rejected and bounds[-1] <= PLAN.limit
            found["rejected"] += rejected
            found["passed"] += passed
            found["wrongly_passed"] += passed and distances[-1] > PLAN.limit
        return {
            "samples": test.trials,
            "tokens": self.runs * test.trials,
            "total_variation": float(np.mean(distances)),
            "bound": float(np.mean(bounds)),
            **found,
        }


def _rejects(counts: Ints, p: Floats, planned: float) -> bool:
    return evidence(counts, p, planned, PLAN.false_alarm).rejects(PLAN.false_alarm)


def _distance(law: Floats, p: Floats) -> float:
    """Return the total variation, 0 rather than rounding noise, which differs between machines."""
    return round(float(np.abs(law - p).sum() / 2.0), 9)


@dataclass(frozen=True)
class Search(Measurement):
    """The first size of 1000, 2000, 4000, ... at which the e-value rejects a fault in every run."""

    test: str
    fault: str
    runs: int = SEARCH_RUNS
    first: int = 1000
    seed: int = 1

    def measure(self, rng: Rng) -> Mapping[str, Any]:
        samples, tokens = self.first, 0
        while True:
            seen = self._seen(rng, samples)
            tokens += samples * min(len(seen) + 1, self.runs)
            if len(seen) == self.runs:
                break
            samples *= 2
        distance, nats = np.mean(seen, axis=0)
        sizes = {"total_variation": float(distance), "nats_per_token": float(nats)}
        return {"samples": samples, "tokens": tokens, **sizes}

    def _seen(self, rng: Rng, samples: int) -> list[tuple[float, float]]:
        """Return total variation and divergence of the fault in each run, up to one that is not rejected."""
        seen: list[tuple[float, float]] = []
        for _ in range(self.runs):
            p, q = TESTS[self.test].laws(rng)
            step = _step(p, q, **FAULTS[self.fault])
            if not _rejects(_first_tokens(rng, step, samples), p, samples):
                break
            seen.append((_distance(step.law, p), _nats(step.law, p)))
        return seen


def _nats(law: Floats, p: Floats) -> float:
    """Return KL(law || p), the most that a sample can add to a log e-value, on average."""
    drawn = law > 0
    return float((law[drawn] * np.log(law[drawn] / p[drawn])).sum())


def tasks() -> Sequence[Measurement]:
    """Return a comparison for every test and fault, and a search for every one that is not the control."""
    return [
        *(
            Comparison(test, fault, RIGHT_RUNS if fault == RIGHT else RUNS)
            for test in TESTS
            for fault in FAULTS
        ),
        *(Search(test, fault) for test in TESTS for fault in FAULTS if fault != RIGHT),
    ]


# ---- What the rows say.


def comparisons(rows: Sequence[Result], *, right: bool = False) -> list[Result]:
    """Return the comparisons of faults, or those of the right sampler."""
    return [row for row in rows if row["kind"] == "Comparison" and (row["fault"] == RIGHT) == right]


def searches(rows: Sequence[Result]) -> list[Result]:
    """Return the searches."""
    return [row for row in rows if row["kind"] == "Search"]


def mostly(rows: Sequence[Result], what: str) -> list[Result]:
    """Return the comparisons in which something happens in more than half of the runs."""
    return [row for row in rows if 2 * row[what] > row["runs"]]


def total(rows: Sequence[Result], what: str) -> int:
    """Return a count summed over rows."""
    return sum(int(row[what]) for row in rows)


def badges(rows: Sequence[Result]) -> Sequence[Badge]:
    """Return the verdicts: no false alarm, no wrong pass, every fault found; what the field's tests miss."""
    if not {task.identity for task in tasks()} <= {row["identity"] for row in rows}:
        return [Badge("fail", "measurements are missing")]
    faults, right = comparisons(rows), comparisons(rows, right=True)
    alarms, runs = total(right, "rejected"), total(right, "runs")
    # Each run is wrong with probability `miss` at most, so their number is at most binomial.
    wrong, all_runs = total(faults, "wrongly_passed"), total(faults, "runs")
    missed = len(faults) - len(mostly(faults, "caught"))
    return [
        Badge("fail" if alarms else "pass", f"simkit: {alarms} of {runs} right samplers rejected at 10⁻⁶"),
        Badge("pass", f"simkit: all of {len(searches(rows))} faults rejected, given samples"),
        Badge(
            "fail" if is_above(wrong, all_runs, PLAN.miss, FALSE_ALARM) else "pass",
            f"simkit: {wrong} of {all_runs} faulty runs passed that are off by more than {PLAN.limit:g}",
        ),
        Badge("info", f"the field's tests pass {missed} of {len(faults)} faults in most runs"),
    ]


def finding(rows: Sequence[Result]) -> str:
    """Return the finding in a sentence or two."""
    faults, right = comparisons(rows), comparisons(rows, right=True)
    green = [row for row in faults if row not in mostly(faults, "caught")]
    largest = max(green, key=lambda row: float(row["total_variation"]))
    rejected = mostly(faults, "rejected")
    both = [row for row in rejected if row in green]
    lost = [row for row in mostly(faults, "caught") if row not in rejected]
    needed = max(searches(rows), key=lambda row: int(row["samples"]))
    return (
        f"The field's tests pass {len(green)} of {len(faults)} faults in most runs, up to a total variation "
        f"of {_two_digits(largest['total_variation'])} ({largest['test']}, {largest['fault']}). On as many "
        f"samples the e-value at 1e-6 rejects {len(rejected)}: it adds {len(both)} and misses {len(lost)} "
        f"that a test catches. Of {total(right, 'runs')} right samplers the tests reject "
        f"{total(right, 'caught')}, the e-value {total(right, 'rejected')}. Of {total(faults, 'runs')} "
        f"faulty runs simkit passes {total(faults, 'wrongly_passed')} that are off by more than its "
        f"tolerance of {PLAN.limit:g}. Given samples it rejects every fault in {SEARCH_RUNS} of "
        f"{SEARCH_RUNS} runs; the hardest ({needed['test']}, {needed['fault']}, total variation "
        f"{_two_digits(needed['total_variation'])}) takes {int(needed['samples']) / 1e6:.1f} million."
    )


def _two_digits(value: float) -> float:
    return float(f"{float(value):.2g}")


# ---- The page.


def blocks(rows: Sequence[Result]) -> Sequence[Block]:
    """Return the pictures and tables of the page."""
    return [
        Text(
            "The rules below are those of public tests: `test_rejection_sampler.py` and "
            "`test_rejection_sampler_utils.py` of vLLM, `test_torch_rejection_sampling.py` of TensorRT-LLM. "
            "They are written anew, with their laws, sizes and thresholds, and run on simulated samplers, "
            "not on the engines. Every run draws a target and a draft as the test does. simkit gets the "
            f"tokens of as many trials; its e-value rejects at {REJECTS:.1f} nats, a rate of 10⁻⁶."
        ),
        _rule_table(),
        _caught_picture(rows),
        _caught_table(rows),
        Text(
            "A test that does not fail is green, whatever its samples could show. simkit passes a run only "
            f"if its certificate, of confidence {PLAN.confidence:g}, is within the tolerance of "
            f"{PLAN.limit:g}; otherwise the run is inconclusive, and the certificate says how far off the "
            "sampler may be.",
            heading="What the same samples certify",
        ),
        _certified_table(rows),
        _needed_picture(rows),
        _needed_table(rows),
    ]


def _rule_table() -> Table:
    lines = [[name, test.vocabulary, test.trials, test.rule] for name, test in TESTS.items()]
    return Table(
        ("test", "V", "trials", "passes if"),
        lines,
        "The field's tests. The chi-square tests look at each position; here it is the first one, at "
        "temperature 1. The L2 test looks at two positions together.",
    )


def _caught_picture(rows: Sequence[Result]) -> Picture:
    shown = with_intervals(
        {**row, "who": who, "hits": row[what]}
        for row in [*comparisons(rows, right=True), *comparisons(rows)]
        for what, who in (("caught", "own rule"), ("rejected", "e-value, 10⁻⁶"))
    )
    panels = [
        partial(
            caught_by_test,
            rows=[row for row in shown if row["test"] == test],
            title=test,
            faults=list(FAULTS),
            named=index == 0,
        )
        for index, test in enumerate(TESTS)
    ]
    sheet = draw(
        *panels,
        data=shown,
        columns=("test", "fault", "total_variation", "samples", "who", "runs", "share", "low", "high"),
        title="Share of runs in which each fault is caught",
        height=3.6,
    )
    return Picture(
        name="field-tests-caught",
        alt="The field's tests catch the gross fault and pass most of the small ones; on as many samples "
        "the e-value sees about as much.",
        caption=f"Share of {RUNS} runs in which a fault is caught ({number(RIGHT_RUNS)} of the right "
        "sampler), with 95 % Clopper-Pearson intervals: squares, the field's own rule; dots, the e-value at "
        "10⁻⁶ on as many samples. The right sampler, in the first line, must not be caught.",
        **sheet._asdict(),
    )


def _by_fault(rows: Sequence[Result], cells: Callable[[Result], Sequence[Cell]]) -> list[list[Cell]]:
    """Return a table's lines: a fault, and the cells of its row for each test."""
    return [
        [fault, *(cell for row in rows if row["fault"] == fault for cell in cells(row))]
        for fault in FAULTS
        if any(row["fault"] == fault for row in rows)
    ]


def _caught_table(rows: Sequence[Result]) -> Table:
    shown = [*comparisons(rows, right=True), *comparisons(rows)]
    lines = _by_fault(shown, lambda row: [row["caught"] / row["runs"], row["rejected"] / row["runs"]])
    columns = [name for test in TESTS for name in (test, f"e-value, {number(TESTS[test].trials)} trials")]
    return Table(
        ("fault", *columns),
        lines,
        "Share of runs in which a fault is caught, by each test and by the e-value at 10⁻⁶ on as many "
        "samples.",
    )


def _certified_table(rows: Sequence[Result]) -> Table:
    shown = [*comparisons(rows, right=True), *comparisons(rows)]
    lines = _by_fault(shown, lambda row: [_two_digits(row["total_variation"]), _certified(row)])
    columns = [name for test in TESTS for name in (f"{test}: TV", "certified")]
    return Table(
        ("fault", *columns),
        lines,
        "Mean total variation of each fault, and the mean certificate of as many samples with the outcome of "
        "most runs.",
    )


def _certified(row: Result) -> Badge:
    """Return the outcome of most runs, with the bound."""
    bound = f"≤ {_two_digits(row['bound']):g}"
    if 2 * row["rejected"] > row["runs"]:
        return Badge("fail", bound)
    return Badge("pass" if 2 * row["passed"] > row["runs"] else "inconclusive", bound)


def _needed_picture(rows: Sequence[Result]) -> Picture:
    shown = searches(rows)
    sheet = draw(
        partial(samples_to_see, rows=shown, nats=REJECTS, sizes=[test.trials for test in TESTS.values()]),
        data=shown,
        columns=("test", "fault", "total_variation", "nats_per_token", "samples", "runs"),
        title="Samples that the e-value needs for each fault",
        height=3.8,
    )
    return Picture(
        name="field-tests-needed",
        alt="The samples needed lie a small factor above the bound, and for small faults far above what the "
        "field's tests draw.",
        caption="Samples after which the e-value rejects a fault at 10⁻⁶ in every one of "
        f"{SEARCH_RUNS} runs, against the fault's Kullback-Leibler divergence. Sizes are 1000 times "
        "powers of two; the bar reaches down to the size before, which was not enough. Line: ln 10⁶ over the "
        "divergence, which no e-value can beat on average. Band: the sizes of the field's tests.",
        **sheet._asdict(),
    )


def _needed_table(rows: Sequence[Result]) -> Table:
    lines = _by_fault(searches(rows), lambda row: [int(row["samples"])])
    return Table(
        ("fault", *TESTS),
        lines,
        "Samples after which the e-value rejects each fault, on the laws of each test, at 10⁻⁶ in "
        f"{SEARCH_RUNS} of {SEARCH_RUNS} runs.",
    )
