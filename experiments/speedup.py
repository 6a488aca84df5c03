"""When does speculation pay?

Question: What speed-up over plain decoding can be expected at a given acceptance rate a and cost c of a
draft call, which draft length K is best, and where does speculation lose at every draft length?

Expectation: A block costs 1 + cK target calls and emits (1 - a^(K+1)) / (1 - a) tokens (Leviathan et al.
2023, theorem 3.8). Speculation loses at every K exactly when a is below c, so K = 1 tells whether to
speculate at all.

Finding: All 160 measured tokens per call lie within 3.4 standard errors of theory. With a draft call of
0.05 target calls a = 0.9 is worth 4.69 x at K = 13; a = 0.7 is worth 2.35 x at K = 6; a = 0.4 is worth
1.42 x at K = 2. Of 60 points (a, c), 52 gain, all with a > c, and 5 lose at every K, all with a < c; the
3 on the border a = c cannot be told from a speed-up of 1. K = 1 tells whether to speculate: if it does
not pay, no longer draft does.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from simkit.figures.best_draft_length import best_length, measured_best
from simkit.figures.gain_map import gain_map, outcomes
from simkit.figures.points import farthest
from simkit.figures.sheet import draw
from simkit.figures.speedup_by_draft_length import speedup_by_draft_length
from simkit.report.document import Badge, Block, Picture, Table, Text
from simkit.report.theory import on_theory
from simkit.rules.acceptance import best_draft_length
from simkit.sweeps.task import Result, Task

PLACE = 4
_FIELDS = ("tokens_per_call",)
DISTANCES = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
LONGEST = 16
COSTS = (0.0, 0.01, 0.05, 0.1, 0.2, 0.5)
LENGTH, TRIALS, VOCABULARY = 64, 20_000, 1000


def tasks() -> Sequence[Task]:
    """Return a run for each distance and draft length."""
    return [
        Task(
            "zipf",
            {"vocabulary": VOCABULARY, "total_variation": distance},
            draft_length=draft_length,
            length=LENGTH,
            trials=TRIALS,
        )
        for distance in DISTANCES
        for draft_length in range(1, LONGEST + 1)
    ]


def badges(rows: Sequence[Result]) -> Sequence[Badge]:
    """Return the verdicts: all points on their theory, and the border of loss where it is derived to be."""
    found = outcomes(rows, COSTS)
    wrong = [point for point, outcome in found.items() if outcome not in (_expected(*point), "undecided")]
    open_points = [point for point, outcome in found.items() if outcome == "undecided" != _expected(*point)]
    return [
        on_theory(rows, _FIELDS),
        Badge(
            "fail" if wrong else "inconclusive" if open_points else "pass",
            f"{len(found) - len(wrong) - len(open_points)} of {len(found)} measured outcomes as a > c, a "
            "= c, a < c foretell",
        ),
    ]


def _expected(distance: float, cost: float) -> str:
    """Return what theory says of a point: compare a = 1 - TV with c, in the digits that rows have."""
    rate = round(1.0 - distance, 6)
    return "gains" if rate > cost else "loses" if rate < cost else "undecided"


def finding(rows: Sequence[Result]) -> str:
    """Return the finding in a sentence or two."""
    found = outcomes(rows, COSTS)
    gains, loses, ties = (
        [p for p, o in found.items() if o == word] for word in ("gains", "loses", "undecided")
    )
    examples = "; ".join(_example(rows, distance, 0.05) for distance in (0.1, 0.3, 0.6))
    return (
        f"All {len(rows)} measured tokens per call lie within {farthest(rows, _FIELDS):.1f} standard "
        f"errors of theory. With a draft call of 0.05 target calls {examples}. Of {len(found)} points "
        f"(a, c), {len(gains)} gain, all with a > c, and {len(loses)} lose at every K, all with a < c; the "
        f"{len(ties)} on the border a = c cannot be told from a speed-up of 1. K = 1 tells whether to "
        "speculate: if it does not pay, no longer draft does."
        if all(_expected(*point) == outcome for point, outcome in found.items())
        else f"{len(gains)} of {len(found)} points gain and {len(loses)} lose, not all as theory foretells."
    )


def _example(rows: Sequence[Result], distance: float, cost: float) -> str:
    best, _, _ = measured_best(_at(rows, distance), cost)
    row = next(row for row in _at(rows, distance) if row["draft_length"] == best)
    gain = float(row["tokens_per_call"]) / (1.0 + cost * best)
    return f"a = {1.0 - distance:g} is worth {gain:.2f} x at K = {best}"


def _at(rows: Sequence[Result], distance: float) -> list[Result]:
    return [row for row in rows if row["total_variation"] == distance]


def blocks(rows: Sequence[Result]) -> Sequence[Block]:
    """Return the pictures and tables of the page."""
    return [
        Text(
            "A block of K drafts takes the time of 1 + cK target calls, if verifying K + 1 tokens costs "
            "as much as decoding one, and emits 1 + a + ... + aᴷ tokens. What it gains over plain "
            "decoding is the sum over i from 1 to K of (aⁱ − c). If a ≤ c, no term of the sum is "
            "positive, and speculation loses at every K (at a = c and K = 1 it just breaks even). If a > "
            "c, the first term is positive, and K = 1 already gains. So K = 1 loses exactly when a < c, "
            "and then every longer draft loses too. The best K is the last one with a positive marginal "
            "gain; it grows with a and shrinks with c. "
            "(The gain of K = 1 is corollary 3.9 of Leviathan et al. 2023.)",
            heading="Where speculation loses",
        ),
        _gain_picture(rows),
        _length_picture(rows),
        _best_picture(rows),
        _table(rows),
    ]


def _gain_picture(rows: Sequence[Result]) -> Picture:
    sheet = draw(
        partial(gain_map, rows=rows, costs=COSTS, longest=LONGEST),
        data=rows,
        columns=_COLUMNS,
        title="Speed-up at the best draft length, by acceptance rate and cost of a draft call",
        height=3.9,
    )
    return Picture(
        name="speedup-map",
        alt="Lines of equal speed-up; measured points above the diagonal c = a lose, those below it gain.",
        caption=f"Speed-up over plain decoding at the best draft length from 1 to {LONGEST}: lines of "
        "equal speed-up and the region of loss from theory. Marks are measured: a point gains if at some "
        "K its speed-up is above 1 beyond doubt, loses if it is below 1 beyond doubt at every K (doubt "
        "is 10⁻⁶ for all points together), and is undecided otherwise.",
        **sheet._asdict(),
    )


def _length_picture(rows: Sequence[Result]) -> Picture:
    shown = [row for row in rows if row["total_variation"] in (0.1, 0.2, 0.3, 0.5, 0.7)]
    sheet = draw(
        *(partial(speedup_by_draft_length, rows=shown, cost=cost) for cost in (0.05, 0.2)),
        data=shown,
        columns=_COLUMNS,
        title="Speed-up against draft length",
        height=3.4,
    )
    return Picture(
        name="speedup-draft-length",
        alt="Speed-up rises with K to a maximum and falls again; a costly draft call moves it to short "
        "drafts.",
        caption="Speed-up over plain decoding by draft length: tokens per call measured by simulation, "
        "divided by 1 + cK, with 95 % intervals (smaller than the marks), on the theory curve of each "
        "acceptance rate a. Left, a cheap draft; right, one that costs a fifth of a target call.",
        **sheet._asdict(),
    )


def _best_picture(rows: Sequence[Result]) -> Picture:
    sheet = draw(
        partial(best_length, rows=rows, costs=COSTS[1:], longest=LONGEST),
        data=rows,
        columns=_COLUMNS,
        title="Best draft length against acceptance rate",
        height=3.6,
    )
    return Picture(
        name="speedup-best-length",
        alt="Steps of the best draft length rise with the acceptance rate, later for costlier drafts.",
        caption=f"The draft length from 1 to {LONGEST} with the largest speed-up: theory as steps, one "
        "colour for each cost c of a draft call (in target calls). Marks are the best of the measured "
        "lengths; bars reach over the lengths whose 95 % interval of the difference to the best holds 0. "
        "At c = 0 the longest draft is always best.",
        **sheet._asdict(),
    )


def _table(rows: Sequence[Result]) -> Table:
    lines = []
    for distance in DISTANCES:
        line: list[str | float] = [round(1.0 - distance, 6)]
        for cost in COSTS[1:]:
            length, gain = best_draft_length(1.0 - distance, cost, LONGEST)
            border = _expected(distance, cost) == "undecided"
            line.append(f"{gain:.2f} (K = {length})" if length and not border else "1" if border else "loses")
        lines.append(line)
    columns = ("a", *(f"c = {cost:g}" for cost in COSTS[1:]))
    return Table(
        columns, lines, f"Expected speed-up at the best draft length from 1 to {LONGEST}, from theory."
    )


_COLUMNS = (
    "total_variation",
    "draft_length",
    "tokens_per_call",
    "tokens_per_call_error",
    "tokens_per_call_theory",
    "tokens",
    "seed",
)
