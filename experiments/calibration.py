"""Are the stated error rates true?

Question: Does a right sampler fail each test as rarely as the test says, at every look, and do certificates
hold as often as they say?

Expectation: P-values for discrete laws are at or below their level, chi-square (an approximation) near it.
An e-value is ever at 1/a or above with probability a at most, however often it is looked at (Ville's
inequality). A certificate of confidence c is too small in a share 1 - c of runs at most, and nearly so often
where the law is off by the same share at every token.

Finding: In 62000 runs of right samplers 84 of 84 false-alarm rates of p-values are within chance of their
level or below; the highest is 1.20 times its level (largest z at 0.001, 12 of 10000 runs). E-values are ever
at 1/a in at most 0.40 times a of the runs; of 6000 0 reach 13.8, and the largest log e-value is 8.9.
Certificates are too small in at most 1.20 times the stated share of runs at their hardest law, within chance
in 8 of 8.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simkit.figures.error_rates import error_rates
from simkit.figures.points import FALSE_ALARM
from simkit.figures.shares import is_above, most, with_intervals
from simkit.figures.sheet import draw
from simkit.laws.named import make_pair
from simkit.laws.pair import Pair
from simkit.laws.rows import rows_from_floats
from simkit.laws.synthetic import dirichlet, zipf
from simkit.report.document import Badge, Block, Cell, Picture, Table, Text
from simkit.report.numerals import number
from simkit.sampling.simulate import simulate
from simkit.stats import certificate, chi_square, evidence, ks_statistic, largest_z, threshold
from simkit.stats.stream import log_ratios, prepare
from simkit.sweeps.critical import CriticalDistance
from simkit.sweeps.measurement import Measurement
from simkit.sweeps.task import Result

PLACE = 6
LONG = True

LEVELS = (0.1, 0.01, 0.001)
CHI_SQUARE, LARGEST_Z, KS_ID, KS_RANK, E_VALUE = (
    "chi-square",
    "largest z",
    "KS by id",
    "KS by rank",
    "e-value",
)
P_VALUES = (CHI_SQUARE, LARGEST_Z, KS_ID, KS_RANK)
REJECTS = threshold(FALSE_ALARM)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Rng = np.random.Generator


# ---- Shapes: laws, and right samplers of them.


@dataclass(frozen=True, eq=False)
class Shape:
    """A law by state, and a right sampler: the simulator on a pair, or a multinomial draw without one."""

    law: Floats
    units: int  # draws, or decodes of the pair
    pair: Pair | None = None
    length: int = 1

    @property
    def visits(self) -> Floats:
        """Planned draws of each state in one run."""
        each = np.ones(1) if self.pair is None else self.pair.expected_visits(self.length)
        return self.units * each

    def source(self, rng: Rng) -> Callable[[int], Ints]:
        """Return a function that draws as many more units and gives their counts (S, V)."""
        if self.pair is None:
            return lambda units: rng.multinomial(units, self.law[0])[None, :]
        pair, length, seed, at = self.pair, self.length, int(rng.integers(2**62)), 0

        def more(units: int) -> Ints:
            nonlocal at
            drawn = simulate(
                pair, draft_length=2, length=length, trials=units, seed=seed, first_trial=at, threads=1
            )
            at += units
            return drawn.counts

        return more


def _draws(law: Floats, samples: int) -> Shape:
    return Shape(law[None, :], samples)


def _decodes(pair: Pair, trials: int, length: int) -> Shape:
    return Shape(pair.target_probabilities, trials, pair, length)


def paired(weights: Floats) -> Floats:
    """Return a law whose tokens come in pairs of equal probability: it can be off evenly, and stay a law."""
    return np.repeat(weights / weights.sum(), 2) / 2.0


def evenly_off(law: Floats, distance: float) -> Floats:
    """Return the law off by the same share, 2 x distance, at each token: up and down within the pairs."""
    return law * (1.0 + 2.0 * distance * np.where(np.arange(law.shape[-1]) % 2, -1.0, 1.0))


def _automaton(distance: float = 0.0) -> Pair:
    """Return five contexts that recur in loops; its target may be off evenly."""
    law = np.stack([paired(dirichlet(4, 1.0, seed).probabilities) for seed in range(5)])
    draft = np.roll(law, 1, axis=0)
    token, context = np.arange(8)[None, :], np.arange(5)[:, None]
    return Pair(
        rows=np.concatenate([rows_from_floats(evenly_off(law, distance)), rows_from_floats(draft)]),
        target=np.arange(5),
        draft=np.arange(5, 10)[:, None],
        next_state=(context + token) % 5,
        initial=np.array([0]),
        name="automaton",
    )


def _batch() -> Pair:
    return Pair.requests([make_pair("dirichlet", vocabulary=20, seed=seed) for seed in range(4)])


def shuffled(law: Floats) -> Floats:
    """Return the law with its ids shuffled: in a real vocabulary ids are not ranks."""
    return np.random.Generator(np.random.PCG64(20)).permutation(law)


def _truncated() -> Floats:
    weights = zipf(1000).probabilities.copy()
    weights[550:600] = 1e-9
    weights[600:] = 0.0
    return shuffled(weights / weights.sum())


SHAPES: Mapping[str, Callable[[], Shape]] = {
    "2 tokens": lambda: _draws(np.array([0.3, 0.7]), 1000),
    "10 tokens, simulator": lambda: _decodes(make_pair("dirichlet", vocabulary=10), 500, 4),
    "1 000 tokens, Zipf": lambda: _draws(shuffled(zipf(1000).probabilities), 20_000),
    "32 000 tokens, Zipf": lambda: _draws(shuffled(zipf(32_000).probabilities), 1_000_000),
    "truncated, tokens of 10⁻⁹": lambda: _draws(_truncated(), 20_000),
    "automaton, simulator": lambda: _decodes(_automaton(), 200, 16),
    "batch of 4, simulator": lambda: _decodes(_batch(), 1000, 4),
}

NULL_RUNS = {shape: 2000 if "32 000" in shape else 10_000 for shape in SHAPES}
PATHS = {
    "2 tokens": 2000,
    "10 tokens, simulator": 1000,
    "1 000 tokens, Zipf": 500,
    "automaton, simulator": 1000,
    "batch of 4, simulator": 500,
}
LOOKS = 8
PASSED = (0.1, 0.01)


@cache
def shape_of(name: str) -> Shape:
    """Return a shape by name."""
    return SHAPES[name]()


@dataclass(frozen=True)
class Null(Measurement):
    """Runs of a right sampler: how often each test's p-value is at or below each level."""

    shape: str
    runs: int
    seed: int = 1

    def measure(self, rng: Rng) -> Mapping[str, Any]:
        shape = shape_of(self.shape)
        more, visits = shape.source(rng), shape.visits
        state = int(visits.argmax())
        orders = {KS_ID: np.arange(shape.law.shape[1]), KS_RANK: np.argsort(-shape.law[state], kind="stable")}
        found: dict[str, list[float]] = {name: [] for name in P_VALUES}
        draws, tokens = [], 0
        for _ in range(self.runs):
            counts = more(shape.units)
            found[CHI_SQUARE].append(chi_square(counts, shape.law, visits=visits).p_value)
            found[LARGEST_Z].append(largest_z(counts, shape.law, visits=visits).p_value)
            for name, order in orders.items():
                found[name].append(ks_statistic(counts[state][order], shape.law[state][order]))
            draws.append(int(counts[state].sum()))
            tokens += int(counts.sum())
        rejected = {
            name: [sum(p <= level for p in found[name]) for level in LEVELS]
            for name in (CHI_SQUARE, LARGEST_Z)
        }
        for name, order in orders.items():
            row = CriticalDistance(shape.law[state][order])
            rejected[name] = [
                sum(row.rejects(d, n, level) for d, n in zip(found[name], draws, strict=True))
                for level in LEVELS
            ]
        return {
            "samples": tokens // self.runs,
            "tokens": tokens,
            "levels": list(LEVELS),
            "rejected": rejected,
        }


@dataclass(frozen=True)
class Paths(Measurement):
    """Runs of a right sampler, looked at while they double: how often any look's e-value passes 1/a."""

    shape: str
    runs: int
    looks: int = LOOKS
    seed: int = 1

    def measure(self, rng: Rng) -> Mapping[str, Any]:
        shape = shape_of(self.shape)
        more, first = shape.source(rng), shape.units // 4
        planned = shape.visits * (first * 2 ** (self.looks - 1) / shape.units)
        tops, tokens = [], 0
        for _ in range(self.runs):
            counts, seen = more(first), []
            for look in range(self.looks):
                counts = counts + more(first * 2 ** (look - 1)) if look else counts
                seen.append(evidence(counts, shape.law, planned, FALSE_ALARM, self.looks).log_e)
            tops.append(max(seen))
            tokens += int(counts.sum())
        return {"tokens": tokens, **_reached(tops)}


def _reached(tops: Sequence[float]) -> dict[str, Any]:
    """Return how many tops are at ln(1/a) or above, for each a, and the largest."""
    return {
        "passed": [sum(top >= threshold(rate) for top in tops) for rate in PASSED],
        "rejected": sum(top >= REJECTS for top in tops),
        "largest": float(max(tops)),
    }


@dataclass(frozen=True)
class Streams(Measurement):
    """Runs of a right sampler over contexts that never repeat: how often the stream's e-value passes 1/a.

    Every context has rows of its own: logits of scale 1 to 3 for the target, blurred for the draft.
    """

    runs: int = 1000
    contexts: int = 20_000
    vocabulary: int = 1000
    stride: int = 500
    seed: int = 1

    def measure(self, rng: Rng) -> Mapping[str, Any]:
        size = self.contexts, self.vocabulary
        logits = rng.standard_normal(size) * rng.uniform(1.0, 3.0, (self.contexts, 1))
        p = _softmax(logits)
        contexts = prepare(p, _softmax(0.8 * logits + 0.6 * rng.standard_normal(size)))
        # One sorted table for all contexts: that of context r lies between r and r + 1.
        place = np.arange(self.contexts)
        table = (np.minimum(np.cumsum(p, axis=1), 1.0) + place[:, None]).ravel()
        starts = np.arange(0, self.contexts, self.stride)
        tops = []
        for _ in range(self.runs):
            at = np.searchsorted(table, rng.random(self.contexts) + place, side="right")
            tokens = np.minimum(at - place * self.vocabulary, self.vocabulary - 1)
            gains = np.add.reduceat(log_ratios(tokens, contexts), starts)
            tops.append(float(contexts.mix(gains.cumsum(axis=0)).max()))
        return {"tokens": self.runs * self.contexts, **_reached(tops)}


def _softmax(logits: Floats) -> Floats:
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


CONFIDENCES = (0.95, 0.999)


@dataclass(frozen=True)
class Coverage(Measurement):
    """Runs of a sampler that is off by the same share at each token: how often a certificate is too small."""

    tokens_in_law: int
    samples: int
    distance: float
    runs: int = 20_000
    seed: int = 1

    def measure(self, rng: Rng) -> Mapping[str, Any]:
        law = paired(zipf(self.tokens_in_law // 2).probabilities)
        drawn = rng.multinomial(self.samples, evenly_off(law, self.distance), size=self.runs)
        order = np.argsort(((drawn - self.samples * law) ** 2 / law).sum(axis=1), kind="stable")
        too_small = [self._too_small(drawn[order], law, confidence) for confidence in CONFIDENCES]
        return {"tokens": self.runs * self.samples, "too_small": too_small}

    def _too_small(self, drawn: Ints, law: Floats, confidence: float) -> int:
        """Return how many certificates are below the distance: bounds rise with chi-square, so bisect."""
        few, many = 0, len(drawn)
        while few < many:
            middle = (few + many) // 2
            bound = certificate(drawn[middle], law, confidence).total_variation
            few, many = (middle + 1, many) if bound < self.distance else (few, middle)
        return few


@dataclass(frozen=True)
class LoopCoverage(Measurement):
    """The same for a decode whose contexts recur: the simulator draws from a target that is off evenly."""

    distance: float
    trials: int
    length: int = 16
    runs: int = 2000
    seed: int = 1

    def measure(self, rng: Rng) -> Mapping[str, Any]:
        stated = _decodes(_automaton(), self.trials, self.length)
        more = _decodes(_automaton(self.distance), self.trials, self.length).source(rng)
        too_small, tokens = [0, 0], 0
        for _ in range(self.runs):
            counts = more(self.trials)
            tokens += int(counts.sum())
            for index, confidence in enumerate(CONFIDENCES):
                bound = certificate(counts, stated.law, confidence, visits=stated.visits)
                too_small[index] += bound.total_variation < self.distance
        return {"tokens": tokens, "samples": tokens // self.runs, "too_small": too_small}


def tasks() -> Sequence[Measurement]:
    """Return all measurements."""
    return [
        *(Null(shape, runs) for shape, runs in NULL_RUNS.items()),
        *(Paths(shape, runs) for shape, runs in PATHS.items()),
        Streams(),
        *(Coverage(*size) for size in ((10, 20_000, 0.02), (100, 50_000, 0.02), (1000, 200_000, 0.02))),
        LoopCoverage(0.02, 1000),
    ]


# ---- What the rows say.

P_VALUE, LOOKED, CERTIFIED = "p-value", "e-value", "certificate"
CONTEXTS = "contexts seen once"


def claims(rows: Sequence[Result]) -> list[dict[str, Any]]:
    """Return every stated error rate, with how often the error was seen and in how many runs."""
    return [claim for row in rows for claim in CLAIMS[row["kind"]](row)]


def _claim(part: str, label: str, test: str, rate: float, hits: int, runs: int) -> dict[str, Any]:
    return {"part": part, "label": label, "test": test, "rate": rate, "hits": hits, "runs": runs}


def _level_claims(row: Result) -> Iterable[dict[str, Any]]:
    for test in P_VALUES:
        for rate, hits in zip(row["levels"], row["rejected"][test], strict=True):
            yield _claim(P_VALUE, row["shape"], test, rate, hits, row["runs"])


def _ville_claims(row: Result) -> Iterable[dict[str, Any]]:
    for rate, hits in zip(PASSED, row["passed"], strict=True):
        yield _claim(LOOKED, row.get("shape", CONTEXTS), f"e ≥ {1 / rate:g}", rate, hits, row["runs"])


def _confidence_claims(row: Result) -> Iterable[dict[str, Any]]:
    label = f"{number(row['tokens_in_law'])} tokens" if "tokens_in_law" in row else "automaton, simulator"
    for confidence, hits in zip(CONFIDENCES, row["too_small"], strict=True):
        yield _claim(
            CERTIFIED, label, f"confidence {confidence:g}", round(1.0 - confidence, 6), hits, row["runs"]
        )


CLAIMS: Mapping[str, Callable[[Result], Iterable[dict[str, Any]]]] = {
    "Null": _level_claims,
    "Paths": _ville_claims,
    "Streams": _ville_claims,
    "Coverage": _confidence_claims,
    "LoopCoverage": _confidence_claims,
}


def parts(rows: Sequence[Result], part: str) -> list[dict[str, Any]]:
    """Return the claims of one part."""
    return [claim for claim in claims(rows) if claim["part"] == part]


def share_of_alarm(rows: Sequence[Result]) -> float:
    """Return the error rate of one comparison: all of them call a right engine wrong at 1e-6."""
    return FALSE_ALARM / len(claims(rows))


def broken(rows: Sequence[Result], part: str) -> list[dict[str, Any]]:
    """Return the claims of a part whose errors are more than chance allows."""
    error = share_of_alarm(rows)
    return [one for one in parts(rows, part) if is_above(one["hits"], one["runs"], one["rate"], error)]


def alarms(rows: Sequence[Result]) -> tuple[int, int, float]:
    """Return how many right runs ever reach the rejecting e-value, of how many, and the largest."""
    shown = [row for row in rows if "largest" in row]
    largest = max(float(row["largest"]) for row in shown)
    return sum(int(row["rejected"]) for row in shown), sum(int(row["runs"]) for row in shown), largest


def badges(rows: Sequence[Result]) -> Sequence[Badge]:
    """Return the verdicts: each kind of rate is as stated, and no right run reaches the rejecting e-value."""
    if not {task.identity for task in tasks()} <= {row["identity"] for row in rows}:
        return [Badge("fail", "measurements are missing")]
    found, (seen, runs, _) = [], alarms(rows)
    for part, text in (
        (P_VALUE, "p-values: {} of {} false-alarm rates within their level"),
        (LOOKED, "e-values: {} of {} rates within Ville's bound, over all looks"),
        (CERTIFIED, "certificates: {} of {} too small as rarely as stated"),
    ):
        total, bad = len(parts(rows, part)), len(broken(rows, part))
        found.append(Badge("fail" if bad else "pass", text.format(total - bad, total)))
    text = f"e-values: {seen} of {runs} right runs ever reach {REJECTS:.1f}"
    return [*found, Badge("fail" if seen else "pass", text)]


def finding(rows: Sequence[Result]) -> str:
    """Return the finding in a sentence or two."""
    levels, looked, certified = (parts(rows, part) for part in (P_VALUE, LOOKED, CERTIFIED))
    runs = sum(int(row["runs"]) for row in rows if row["kind"] == "Null")
    seen, paths, largest = alarms(rows)
    high = max(levels, key=_ratio)
    return (
        f"In {runs} runs of right samplers {len(levels) - len(broken(rows, P_VALUE))} of {len(levels)} "
        f"false-alarm rates of p-values are within chance of their level or below; the highest is "
        f"{_ratio(high):.2f} times its level ({high['test']} at {high['rate']:g}, {high['hits']} of "
        f"{high['runs']} runs). E-values are ever at 1/a in at most {max(map(_ratio, looked)):.2f} times a "
        f"of the runs; of {paths} {seen} reach {REJECTS:.1f}, and the largest log e-value is {largest:.1f}. "
        f"Certificates are too small in at most {max(map(_ratio, certified)):.2f} times the stated share of "
        f"runs at their hardest law, within chance in {len(certified) - len(broken(rows, CERTIFIED))} of "
        f"{len(certified)}."
    )


def _ratio(claim: Mapping[str, Any]) -> float:
    return float(claim["hits"] / claim["runs"] / claim["rate"])


# ---- The page.


def blocks(rows: Sequence[Result]) -> Sequence[Block]:
    """Return the pictures and tables of the page."""
    simulated = sum("simulator" in shape for shape in SHAPES)
    return [
        Text(
            "That a test rejects a right sampler at a stated rate is itself tested here, by many runs of "
            f"samplers that are right, or wrong by a known amount. {simulated} of {len(SHAPES)} shapes are "
            "drawn by the simulator itself, the others as multinomial counts. A rate is called broken if the "
            "exact binomial law gives so many errors a probability below 10⁻⁶, shared out over all rates of "
            "this page."
        ),
        _level_picture(rows),
        _level_table(rows),
        Text(
            "An e-value may be looked at while the run goes on: each run is looked at "
            f"{LOOKS} times while its size doubles, with concentrations fixed beforehand, or after every "
            f"{Streams.stride} contexts; what counts is the largest of all looks. A certificate is asked "
            "whether it is below the true distance. The laws are off by the same share at every token, the "
            "hardest case; a right sampler's certificate cannot be too small.",
            heading="E-values and certificates",
        ),
        _promise_picture(rows),
        _promise_table(rows),
    ]


_COLUMNS = ("part", "label", "test", "rate", "hits", "runs", "share", "low", "high", "most")


def _drawn(rows: Sequence[Result], part: str) -> list[dict[str, Any]]:
    """Return the claims of a part with intervals and the largest share that chance allows."""
    error = share_of_alarm(rows)
    return [
        {**one, "most": most(one["runs"], one["rate"], error) / one["runs"]}
        for one in with_intervals(parts(rows, part))
    ]


def _level_picture(rows: Sequence[Result]) -> Picture:
    shown = _drawn(rows, P_VALUE)
    panels = [
        partial(
            error_rates,
            rows=[one for one in shown if one["rate"] == level],
            title=f"Level {level:g}",
            named=index == 0,
            legend="outside upper center" if index == 0 else None,
        )
        for index, level in enumerate(LEVELS)
    ]
    sheet = draw(
        *panels,
        data=shown,
        columns=_COLUMNS,
        title="False-alarm rates of the p-value tests, over their levels",
        height=4.4,
    )
    return Picture(
        name="calibration-p-values",
        alt="The measured false-alarm rates lie around the stated level or below it, none beyond the limit.",
        caption="False-alarm rate of each test over its level, with 95 % Clopper-Pearson intervals, in "
        f"{number(max(NULL_RUNS.values()))} runs a shape ({number(min(NULL_RUNS.values()))} of the largest). "
        "Line: the level. Grey bars: the most that chance allows. Tests of few tokens, and the largest z "
        "(Bonferroni), lie below their level by their nature.",
        **sheet._asdict(),
    )


def _level_table(rows: Sequence[Result]) -> Table:
    lines: list[list[Cell]] = [
        [
            str(row["shape"]),
            int(row["samples"]),
            int(row["runs"]),
            *(" · ".join(number(hits) for hits in row["rejected"][test]) for test in P_VALUES),
        ]
        for row in rows
        if row["kind"] == "Null"
    ]
    runs, error = max(NULL_RUNS.values()), share_of_alarm(rows)
    allowed = " · ".join(number(most(runs, level, error)) for level in LEVELS)
    return Table(
        ("shape", "samples a run", "runs", *P_VALUES),
        lines,
        f"Rejections of a right sampler at the levels {' · '.join(f'{level:g}' for level in LEVELS)}. A test "
        f"that keeps its level may have {allowed} in {number(runs)} runs.",
    )


def _promise_picture(rows: Sequence[Result]) -> Picture:
    looked, certified = _drawn(rows, LOOKED), _drawn(rows, CERTIFIED)
    sheet = draw(
        partial(error_rates, rows=looked, title="E-values, all looks", legend="upper right"),
        partial(error_rates, rows=certified, title="Certificates", legend="upper right"),
        data=[*looked, *certified],
        columns=_COLUMNS,
        title="Rates of e-values and certificates, over what is stated",
        height=3.6,
    )
    return Picture(
        name="calibration-promises",
        alt="E-values pass bounds more rarely than allowed; certificates fail about as often as stated.",
        caption="Left, runs of right samplers whose e-value is ever 1/a or more, over a. Right, certificates "
        "below the true distance, over one minus their confidence. 95 % Clopper-Pearson intervals; line: the "
        "stated rate; grey bars: the most that chance allows.",
        **sheet._asdict(),
    )


def _promise_table(rows: Sequence[Result]) -> Table:
    error = share_of_alarm(rows)
    lines: list[list[Cell]] = [
        [
            one["label"],
            one["test"],
            one["rate"],
            one["runs"],
            one["hits"],
            float(f"{one['hits'] / one['runs']:.3g}"),
            most(one["runs"], one["rate"], error),
        ]
        for one in [*parts(rows, LOOKED), *parts(rows, CERTIFIED)]
    ]
    return Table(
        ("shape", "event", "stated rate", "runs", "seen", "share", "chance allows"),
        lines,
        "How often a right sampler's e-value is ever so large, and how often a certificate of this "
        "confidence is too small.",
    )
