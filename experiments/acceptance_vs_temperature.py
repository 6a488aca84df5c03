"""How does temperature move the acceptance rate?

Question: How often are drafts kept when target and draft sample at temperatures of their own, from
greedy (0) to 2, and is it best to draft at the target's temperature?

Expectation: Acceptance is 1 - TV of the two tempered laws. Greedy against greedy it is all or nothing in
every context. Flat laws overlap, so acceptance rises with a common temperature; a draft that is the
target's copy in shape is best at the target's own temperature.

Finding: At a common temperature the Zipf and the n-gram pair keep 1.000 and 0.647 of their drafts when
greedy, 0.700 and 0.461 at 1 and 0.860 and 0.446 at 2; the Zipf pair keeps fewest at 0.75, the n-gram
pair at 2. Drafting at the target's own temperature is best at 7 of 8 target temperatures for the Zipf
pair, but at 1 for the n-gram pair: its target at 2 is best drafted at 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from simkit.figures.points import column, farthest
from simkit.figures.sheet import draw
from simkit.figures.temperature_diagonal import temperature_diagonal
from simkit.figures.temperature_map import temperature_map
from simkit.report.document import Badge, Block, Picture, Table, Text
from simkit.report.theory import on_theory
from simkit.sweeps.task import Result, Task

PLACE = 3
TEMPERATURES = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0)
HOTTEST = TEMPERATURES[-1]
BETWEEN = (0.125, 0.375, 0.625, 0.875, 1.125, 1.375, 1.75)
"""Further temperatures, on the diagonal only."""

PAIRS: Mapping[str, Mapping[str, int | float]] = {
    "zipf": {"vocabulary": 1000, "total_variation": 0.3},
    "ngram": {"requests": 48},
}
TITLES = {"zipf": "Zipf pair", "ngram": "n-gram pair"}
DRAFT_LENGTH, LENGTH, TRIALS = 4, 16, 60_000


def tasks() -> Sequence[Task]:
    """Return all combinations of the temperatures, and more on the diagonal, for both pairs."""
    grid = [(target, draft) for target in TEMPERATURES for draft in TEMPERATURES]
    points = [*grid, *((value, value) for value in BETWEEN)]
    return [_task(pair, target, draft) for pair in PAIRS for target, draft in points]


def _task(pair: str, target: float, draft: float) -> Task:
    return Task(
        pair,
        PAIRS[pair],
        target_temperature=target,
        draft_temperature=draft,
        draft_length=DRAFT_LENGTH,
        length=LENGTH,
        trials=TRIALS,
    )


def grid(rows: Sequence[Result], pair: str) -> list[Result]:
    """Return a pair's rows at the temperatures of the map."""
    return [row for row in _of(rows, pair) if row["target_temperature"] in TEMPERATURES]


def diagonal(rows: Sequence[Result], pair: str) -> list[Result]:
    """Return a pair's rows with equal temperatures, by temperature."""
    equal = [row for row in _of(rows, pair) if row["target_temperature"] == row["draft_temperature"]]
    return sorted(equal, key=lambda row: float(row["target_temperature"]))


def _of(rows: Iterable[Result], pair: str) -> list[Result]:
    return [row for row in rows if row["pair"] == pair]


def at(rows: Sequence[Result], pair: str, target: float, draft: float) -> float:
    """Return the measured acceptance of a pair at two temperatures."""
    found = [
        r for r in _of(rows, pair) if (r["target_temperature"], r["draft_temperature"]) == (target, draft)
    ]
    return float(found[0]["acceptance"])


def best_draft(rows: Sequence[Result], pair: str, target: float) -> float:
    """Return the draft temperature of the map with the largest measured acceptance; the lowest of equals."""
    line = [row for row in grid(rows, pair) if row["target_temperature"] == target]
    best = max(line, key=lambda row: (float(row["acceptance"]), -float(row["draft_temperature"])))
    return float(best["draft_temperature"])


def badges(rows: Sequence[Result]) -> Sequence[Badge]:
    """Return the verdict: all points on their theory."""
    return [on_theory(rows)]


def finding(rows: Sequence[Result]) -> str:
    """Return the finding in a sentence or two."""
    cold, one, hot = (
        " and ".join(f"{at(rows, pair, value, value):.3f}" for pair in PAIRS) for value in (0.0, 1.0, HOTTEST)
    )
    low = [f"{float(lowest(rows, pair)['target_temperature']):g}" for pair in PAIRS]
    same = [sum(best_draft(rows, pair, value) == value for value in TEMPERATURES) for pair in PAIRS]
    return (
        f"At a common temperature the Zipf and the n-gram pair keep {cold} of their drafts when greedy, "
        f"{one} at 1 and {hot} at {HOTTEST:g}; the Zipf pair keeps fewest at {low[0]}, the n-gram pair at "
        f"{low[1]}. Drafting at the target's own temperature is best at {same[0]} of {len(TEMPERATURES)} "
        f"target temperatures for the Zipf pair, but at {same[1]} for the n-gram pair: its target at "
        f"{HOTTEST:g} is best drafted at {best_draft(rows, 'ngram', HOTTEST):g}."
    )


def lowest(rows: Sequence[Result], pair: str) -> Result:
    """Return a pair's row with the smallest measured acceptance at a common temperature."""
    return min(diagonal(rows, pair), key=lambda row: float(row["acceptance"]))


def blocks(rows: Sequence[Result]) -> Sequence[Block]:
    """Return the pictures and tables of the page."""
    return [
        *(_map_picture(rows, pair) for pair in PAIRS),
        Text(
            "The greedy n-gram target writes one text from every start, and the lowest line of its map is "
            "the acceptance along that text (`and the lord of the lord of`). Where both are greedy "
            "nothing is random, and the point has no interval. Heat brings both laws of the Zipf pair "
            "towards the uniform one, so that they overlap more and more. It does not do so for the "
            "n-gram pair: the tokens that never follow a context stay impossible for the target at any "
            "temperature, and its draft, which knows one character, does not know which they are."
        ),
        _diagonal_picture(rows),
        _best_table(rows),
    ]


def _map_picture(rows: Sequence[Result], pair: str) -> Picture:
    shown = grid(rows, pair)
    sheet = draw(
        partial(temperature_map, rows=shown),
        data=shown,
        columns=_COLUMNS,
        title=f"Acceptance of the {TITLES[pair]} by target and draft temperature",
        height=3.6,
    )
    laws = {
        "zipf": "a Zipf target (V = 1 000) and, at temperature 1, its near copy at total variation 0.3",
        "ngram": "a 5-gram target and a 2-gram draft, over 48 contexts in which a sentence starts",
    }
    return Picture(
        name=f"temperature-map-{pair}",
        alt=f"Heat map of acceptance for the {TITLES[pair]}, target temperature upwards, draft "
        "temperature rightwards.",
        caption=f"Measured acceptance rate (kept / judged drafts, K = {DRAFT_LENGTH}) of {laws[pair]}. A "
        "map has no room for theory: the farthest of its cells is "
        f"{farthest(shown, ['acceptance']):.1f} standard errors from the exact expectation, "
        f"and no interval is wider than ±{_widest_interval(shown)}.",
        **sheet._asdict(),
    )


def _widest_interval(rows: Sequence[Result]) -> str:
    return f"{1.96 * column(rows, 'acceptance_error').max():.4f}"


def _diagonal_picture(rows: Sequence[Result]) -> Picture:
    series = {TITLES[pair]: diagonal(rows, pair) for pair in PAIRS}
    sheet = draw(
        partial(temperature_diagonal, series=series),
        data=[row for pair in PAIRS for row in diagonal(rows, pair)],
        columns=_COLUMNS,
        title="Acceptance at a common temperature",
    )
    return Picture(
        name="temperature-diagonal",
        alt="Acceptance against a common temperature for both pairs, measured points on the lines of theory.",
        caption="Acceptance rate when target and draft share a temperature, with 95 % intervals (smaller "
        "than the marks), on the exact expectation from the pairs' laws, computed at the same "
        "temperatures and joined by straight lines.",
        **sheet._asdict(),
    )


def _best_table(rows: Sequence[Result]) -> Table:
    lines = []
    for target in TEMPERATURES:
        line: list[str | int | float] = [target]
        for pair in PAIRS:
            best = best_draft(rows, pair, target)
            line += [best, *(f"{at(rows, pair, target, value):.3f}" for value in (best, target))]
        lines.append(line)
    columns = [
        "target T",
        *(f"{name}, {pair}" for pair in ("Zipf", "n-gram") for name in ("best T", "a", "a at T")),
    ]
    return Table(
        columns,
        lines,
        "The draft temperature of the maps that keeps most drafts at each target temperature T, the "
        "acceptance rate a there, and the rate when the draft samples at T too.",
    )


_COLUMNS = (
    "pair",
    "target_temperature",
    "draft_temperature",
    "acceptance",
    "acceptance_error",
    "acceptance_theory",
)
