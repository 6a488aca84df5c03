"""What every figure has: the theory it promises, labelled axes, intervals, points that follow the rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from simkit.figures import render
from simkit.figures import style as look
from simkit.figures.acceptance_by_distance import acceptance_by_distance, deviation_by_distance
from simkit.figures.acceptance_by_slot import acceptance_by_slot, slot_means
from simkit.figures.best_draft_length import best_length, measured_best
from simkit.figures.caught_by_test import caught_by_test
from simkit.figures.error_rates import error_rates
from simkit.figures.evidence_by_pair import evidence_by_pair
from simkit.figures.evidence_growth import evidence_growth
from simkit.figures.gain_map import gain_map, level_line, outcomes
from simkit.figures.loss_for_speed import least_variation, loss_for_speed
from simkit.figures.power_by_samples import power_by_samples
from simkit.figures.rules_compared import rules_compared
from simkit.figures.samples_to_see import samples_to_see
from simkit.figures.speedup_by_draft_length import speedup_by_draft_length
from simkit.figures.style import style
from simkit.figures.temperature_diagonal import temperature_diagonal
from simkit.figures.temperature_map import temperature_map
from simkit.figures.tokens_by_distance import tokens_by_distance
from simkit.figures.tokens_by_draft_length import tokens_by_draft_length
from simkit.figures.z_scores import z_scores
from simkit.laws.pair import Pair
from simkit.rules.exact import exact_accepted, exact_law

Row = Mapping[str, Any]


def fixed(distance: float, draft_length: int, off: float = 0.001) -> Row:
    """Return a row of a pair with one state whose measurements lie off their theory by a known bit."""
    rate = 1.0 - distance
    tokens = sum(rate**i for i in range(draft_length + 1))
    return {
        "total_variation": distance,
        "draft_length": draft_length,
        "acceptance": rate + off,
        "acceptance_error": 0.01,
        "acceptance_theory": rate,
        "tokens_per_call": tokens + off,
        "tokens_per_call_error": 0.02,
        "tokens_per_call_theory": tokens,
    }


FIXED = [fixed(distance, length) for distance in (0.25, 0.5) for length in (1, 2, 3)]


def warm(target: float, draft: float) -> Row:
    rate = 0.5 + 0.1 * target - 0.05 * draft
    return {
        "target_temperature": target,
        "draft_temperature": draft,
        "acceptance": rate + 0.001,
        "acceptance_error": 0.01,
        "acceptance_theory": rate,
    }


WARM = [warm(target, draft) for target in (0.0, 1.0, 2.0) for draft in (0.0, 1.0, 2.0)]
SLOTS = [
    {"accepted": [60 + n, 20, 20], "judged_by_slot": [100 + n, 40], "acceptance_by_slot_theory": [0.4, 0.5]}
    for n in (0, 4, 8)
]
JUDGED = [
    {"pair": pair, "rule": rule, "log_e": log_e, "tokens": tokens, "nats_per_token": 0.01}
    for pair, rule, log_e, tokens in (
        ("one", "token", -2.0, 1000),
        ("one", "replace-from-target", 500.0, 1000),
        ("two", "token", 1.0, 100_000),
        ("two", "replace-from-target", 900.0, 100_000),
    )
]
BELL = [{"z_histogram": [0] * 20 + [10, 20, 30, 40, 40, 30, 20, 10] + [0] * 20}]


def share(hits: int, **fields: object) -> Row:
    """Return a row of a share of 100 runs, with an interval of 0.08 on each side."""
    rate = hits / 100
    return {"share": rate, "low": rate - 0.08, "high": rate + 0.08, "most": 0.3, **fields}


RATES = [
    share(hits, label=label, test=test, rate=0.2)
    for label, test, hits in (("one", "a", 18), ("one", "b", 22), ("two", "a", 20), ("two", "b", 9))
]
CAUGHT = [
    share(hits, fault=fault, who=who)
    for fault, who, hits in (("one", "own", 40), ("one", "e", 60), ("two", "own", 10), ("two", "e", 90))
]
POWER = [share(hits, test="e-value", samples=samples) for samples, hits in ((1000, 20), (100_000, 80))]
NEEDED = [
    {"test": "A", "nats_per_token": 0.01, "samples": 4000},
    {"test": "B", "nats_per_token": 0.001, "samples": 32_000},
]


def against_bound(rule: str, verified: int, kept: float, bound: float | None, lossless: bool = True) -> Row:
    """Return a row of a rule whose measurement lies off its theory by a known bit."""
    return {
        "rule": rule,
        "lossless": lossless,
        "verified": verified,
        "tokens_per_call": 1.0 + kept + 0.001,
        "tokens_per_call_theory": 1.0 + kept,
        "kept_error": 0.01,
        "bound": bound,
    }


COMPARED = [
    against_bound("token", 1, 0.7, 0.7),
    against_bound("token", 2, 1.19, 1.22),
    against_bound("k-seq", 1, 0.7, 0.7),
    against_bound("k-seq", 2, 0.8, 0.86),
    against_bound("greedy", 1, 0.1, 0.7, lossless=False),
]


def paid(rule: str, lossless: bool, variation: float | None, kept: float) -> Row:
    return {
        "rule": rule,
        "lossless": lossless,
        "total_variation": variation,
        "tokens_per_call": 1.0 + kept + 0.001,
        "tokens_per_call_error": 0.01,
        "tokens_per_call_theory": 1.0 + kept,
        "bound": 0.6,
    }


PAID = [
    paid("lenience:1", True, 0.0, 0.5),
    paid("lenience:1/2", False, 0.2, 0.7),
    paid("token", True, 0.0, 0.5),
    paid("block", True, None, 0.6),
]


def growth(ax: Axes, rows: Sequence[Row]) -> Axes:
    right, broken = (
        [row for row in rows if row["rule"] == rule] for rule in ("token", "replace-from-target")
    )
    return evidence_growth(ax, right, broken, rejects=13.8, title="A pair")


@dataclass(frozen=True)
class Case:
    """A figure, rows for it, a field that it draws, and the theory it shows as (x, y), or why it has none."""

    draw: Callable[[Axes, Any], Axes]
    rows: Sequence[Row]
    field: str
    theory: Mapping[str, tuple[ArrayLike, ArrayLike]]
    intervals: bool = True


LINE = np.linspace(0.0, 1.0, 101)
EDGES = np.arange(-6.0, 6.25, 0.25)
BELL_CURVE = np.diff([NormalDist().cdf(edge) for edge in EDGES]) / 0.25
K = np.arange(1, 4)

CASES = {
    "z scores": Case(
        partial(z_scores, title="Right"),
        BELL,
        "z_histogram",
        {"standard normal law": (EDGES[:-1] + 0.125, BELL_CURVE)},
    ),
    "evidence by pair": Case(
        partial(evidence_by_pair, label=lambda row: row["pair"], rejects=13.8),
        JUDGED,
        "log_e",
        {"rejected to the right of this": ([13.8, 13.8], [0, 1])},
        intervals=False,
    ),
    "evidence growth": Case(
        growth,
        JUDGED,
        "log_e",
        {"samples × KL: no test gathers more": ([1000, 100_000], [10, 1000])},
        intervals=False,
    ),
    "acceptance by distance": Case(
        acceptance_by_distance, FIXED, "acceptance", {"1 − TV": (LINE, 1.0 - LINE)}
    ),
    "deviation by distance": Case(deviation_by_distance, FIXED, "acceptance", {"theory": ([0, 1], [0, 0])}),
    "tokens by distance": Case(
        tokens_by_distance, FIXED, "tokens_per_call", {"(1 − aᴷ⁺¹) / (1 − a)": (LINE, 2.0 - LINE)}
    ),
    "tokens by draft length": Case(
        partial(tokens_by_draft_length, rate=0.5),
        FIXED[:3],
        "tokens_per_call",
        {
            "exact forward pass": (K, [1.75, 2.3125, 2.734375]),
            "one rate a = 0.500": (K, [1.5, 1.75, 1.875]),
        },
    ),
    "acceptance by slot": Case(
        partial(acceptance_by_slot, rate=0.3),
        SLOTS,
        "judged_by_slot",
        {"exact forward pass": ([1, 2], [0.4, 0.5]), "one rate a = 0.300": ([0, 1], [0.3, 0.3])},
    ),
    "temperature diagonal": Case(
        lambda ax, rows: temperature_diagonal(ax, {"a pair": rows}),
        [WARM[0], WARM[4], WARM[8]],
        "acceptance",
        {"exact expectation": ([0, 1, 2], [0.5, 0.55, 0.6])},
    ),
    "speed-up by draft length": Case(
        partial(speedup_by_draft_length, cost=0.5),
        FIXED,
        "tokens_per_call",
        {"theory": (K, np.array([1.75, 2.3125, 2.734375]) / (1.0 + 0.5 * K))},
    ),
    "error rates": Case(
        partial(error_rates, title="Level 0.2"), RATES, "share", {"stated rate": ([1, 1], [0, 1])}
    ),
    "caught by test": Case(
        partial(caught_by_test, title="A test", faults=["one", "two"]), CAUGHT, "share", {}
    ),
    "power by samples": Case(
        partial(power_by_samples, title="A fault", theory={"planned": ([1000, 100_000], [0.2, 0.9])}),
        POWER,
        "share",
        {"planned": ([1000, 100_000], [0.2, 0.9])},
    ),
    "samples to see": Case(
        partial(samples_to_see, nats=10.0, sizes=[1000, 5000]),
        NEEDED,
        "samples",
        {"ln 10⁶ / KL: no e-value needs fewer": ([0.0005, 0.02], [20_000, 500])},
    ),
    "rules compared": Case(
        rules_compared,
        COMPARED,
        "tokens_per_call",
        {
            "bound, one path": ([1, 2], [1.7, 2.22]),
            "bound, with-replacement": ([1, 2], [1.7, 1.86]),
        },
    ),
    "loss for speed": Case(
        partial(loss_for_speed, distance=0.5, draft_length=1),
        PAID,
        "tokens_per_call",
        {
            "least, one draft at a time": (1.5 + 0.5 * LINE, 0.5 * LINE),
            "bound, lossless": ([1.6, 1.6], [0, 1]),
        },
    ),
    "gain map": Case(
        partial(gain_map, costs=[0.1, 0.55, 0.9], longest=3),
        [fixed(0.25, 1), fixed(0.5, 1)],
        "tokens_per_call",
        {"c = a: speed-up 1": (0.6 * np.linspace(0.0, 1.0, 61), 0.6 * np.linspace(0.0, 1.0, 61))},
        intervals=False,
    ),
}


def drawn(case: Case, rows: Sequence[Row] | None = None) -> Figure:
    with style():
        figure = Figure(figsize=(5.0, 3.0))
        case.draw(figure.subplots(), case.rows if rows is None else rows)
    return figure


def moved(value: Any) -> Any:
    """Return the field's value changed so much that a point must move."""
    return [value[0] + 500, *value[1:]] if isinstance(value, list) else value * 0.4 - 0.1


def points(figure: Figure) -> list[tuple[str, float, float]]:
    return [
        (str(line.get_label()), float(x), float(y))
        for line in figure.axes[0].get_lines()
        for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)
    ]


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


def test_the_theory_line_is_the_formula(case: Case) -> None:
    lines = {line.get_label(): line for line in drawn(case).axes[0].get_lines()}
    for label, (x, y) in case.theory.items():
        assert np.allclose(lines[label].get_xdata(), x)
        assert np.allclose(lines[label].get_ydata(), y)


def test_both_axes_say_what_they_show(case: Case) -> None:
    ax = drawn(case).axes[0]
    assert ax.get_xlabel()
    assert ax.get_ylabel() or [tick.get_text() for tick in ax.get_yticklabels()] == ["one", "two"]


def test_measured_points_have_intervals(case: Case) -> None:
    bars = [c for c in drawn(case).axes[0].containers if isinstance(c, ErrorbarContainer)]
    assert bool(bars) == case.intervals
    assert all(bar.has_yerr or bar.has_xerr for bar in bars)


def test_the_same_rows_give_the_same_bytes_and_others_do_not(case: Case) -> None:
    first, again = (render.svg(drawn(case)) for _ in range(2))
    assert first == again
    changed = [case.rows[0] | {case.field: moved(case.rows[0][case.field])}, *case.rows[1:]]
    assert sorted(points(drawn(case, changed))) != sorted(points(drawn(case)))


def test_intervals_are_95_percent() -> None:
    case = CASES["acceptance by distance"]
    bar = drawn(case).axes[0].containers[0]
    (segments,) = (lines.get_segments() for lines in bar[2])
    assert np.ptp(segments[0][:, 1]) == pytest.approx(2 * 1.96 * 0.01)


def test_a_theory_line_is_drawn_for_each_draft_length() -> None:
    with style():
        ax = tokens_by_distance(Figure().subplots(), FIXED)
    theory = [line.get_ydata() for line in ax.get_lines() if len(line.get_xdata()) == len(LINE)]
    assert [float(y[0]) for y in theory] == [2.0, 3.0, 4.0]
    assert [line.get_color() for line in ax.get_lines() if len(line.get_xdata()) == len(LINE)] == [
        look.THEORY
    ] * 3


def test_a_map_shows_each_pair_of_temperatures_once_with_the_target_upwards() -> None:
    with style():
        figure = Figure()
        ax = temperature_map(figure.subplots(), WARM[::-1])
    (mesh,) = (part for part in ax.collections if isinstance(part, QuadMesh))
    expected = [[0.501 + 0.1 * target - 0.05 * draft for draft in (0, 1, 2)] for target in (0, 1, 2)]
    assert np.allclose(np.asarray(mesh.get_array()).reshape(3, 3), expected)
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["0", "1", "2"]
    assert ax.texts[0].get_text() == ".50"
    assert "target" in ax.get_ylabel()
    assert render.svg(figure)


def test_a_missing_temperature_leaves_its_cell_empty() -> None:
    with style():
        ax = temperature_map(Figure().subplots(), WARM[1:])
    assert len(ax.texts) == len(WARM) - 1


def test_slot_intervals_come_from_the_spread_between_runs() -> None:
    mean, half = slot_means(SLOTS)
    rates = np.array([[40 / (100 + n), 0.5] for n in (0, 4, 8)])
    assert mean == pytest.approx(rates.mean(axis=0))
    assert half == pytest.approx(4.303 * rates.std(axis=0, ddof=1) / np.sqrt(3), rel=1e-6)


def test_best_lengths_are_drawn_for_each_cost_beside_theory() -> None:
    with style():
        ax = best_length(Figure().subplots(), FIXED, costs=[0.1, 0.9], longest=3)
    steps = [line for line in ax.get_lines() if len(line.get_xdata()) == 1001]
    rates = steps[1].get_xdata()
    speculates = np.asarray(steps[1].get_ydata()) > 0
    assert np.array_equal(speculates, rates > 0.9)  # it pays exactly where a > c
    assert float(steps[0].get_ydata()[-1]) == 3.0
    assert len([c for c in ax.containers if isinstance(c, ErrorbarContainer)]) == 2


def test_a_measured_best_names_its_rivals() -> None:
    rows = [fixed(0.5, length, off=0.0) for length in (1, 2, 3)]
    # Speed-ups 1.5 / 1.25 = 1.2, 1.75 / 1.5 = 1.167, 1.875 / 1.75 = 1.071, with errors of .016, .013, .011.
    assert measured_best(rows, 0.25) == (1, 1, 2)
    assert measured_best(rows, 0.9) == (0, 0, 0)


def test_outcomes_follow_the_comparison_of_rate_and_cost() -> None:
    rows = [fixed(0.5, length, off=0.0) for length in (1, 2, 3)]
    found = outcomes(rows, [0.1, 0.5, 0.9])
    assert [found[0.5, cost] for cost in (0.1, 0.5, 0.9)] == ["gains", "undecided", "loses"]


def test_a_level_line_has_its_speed_up_everywhere() -> None:
    rates, costs = level_line(2.0, 8)
    lengths = np.arange(1, 9)
    tokens = np.array([[sum(rate**i for i in range(k + 1)) for k in lengths] for rate in rates])
    gains = tokens / (1.0 + costs[:, None] * lengths)
    assert gains.max(axis=1) == pytest.approx(2.0)


def test_all_z_scores_of_all_rows_are_counted() -> None:
    with style():
        ax = z_scores(Figure().subplots(), [*BELL, *BELL], title="Two")
    assert "400 cells" in [text.get_text() for text in ax.get_legend().get_texts()]
    line = next(line for line in ax.get_lines() if len(line.get_xdata()) == 8)
    assert sum(line.get_ydata()) * 0.25 == pytest.approx(1.0)


def test_rates_are_drawn_over_the_stated_one_with_the_most_that_chance_allows() -> None:
    with style():
        ax = error_rates(Figure().subplots(), RATES, title="Level 0.2")
    bars = [c for c in ax.containers if isinstance(c, ErrorbarContainer)]
    assert [bar.lines[0].get_xdata().round(9).tolist() for bar in bars] == [[0.9, 1.0], [1.1, 0.45]]
    limits = [line for line in ax.get_lines() if line.get_marker() == "|" and len(line.get_xdata()) == 2]
    assert {float(x) for line in limits for x in line.get_xdata()} >= {0.3 / 0.2}
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["one", "two"]


def test_only_the_named_panel_of_a_row_has_labels_and_the_legend() -> None:
    with style():
        figure = Figure()
        first, second = figure.subplots(1, 2)
        caught_by_test(first, CAUGHT, title="A", faults=["one", "two"])
        caught_by_test(second, CAUGHT, title="B", faults=["one", "two"], named=False)
    assert [tick.get_text() for tick in second.get_yticklabels()] == ["", ""]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["own", "e"]
    assert len(figure.legends) == 1


def test_needed_samples_have_a_bar_down_to_the_size_before() -> None:
    with style():
        ax = samples_to_see(Figure().subplots(), NEEDED, nats=10.0, sizes=[1000, 5000])
    (segments,) = (lines.get_segments() for lines in ax.containers[0][2])
    assert segments[0][:, 1].tolist() == [2000.0, 4000.0]


def test_power_has_ticks_at_the_least_the_middle_and_the_largest_size() -> None:
    rows = [share(50, test="e-value", samples=n) for n in (268_358, 85_000, 110_000, 1_169_844, 130_000)]
    with style():
        ax = power_by_samples(Figure().subplots(), rows, title="A fault", theory={})
    assert ax.get_xticks().tolist() == [85_000, 130_000, 1_169_844]
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["85 k", "130 k", "1.2 M"]


def theory_lines(ax: Axes) -> list[list[tuple[float, float]]]:
    """Return the points of the lines that have neither a name nor a marker."""
    plain = [line for line in ax.get_lines() if line.get_marker() in ("", "None") and line.get_ls() != "None"]
    return [
        [(float(x), float(y)) for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)]
        for line in plain
        if str(line.get_label()).startswith("_")
    ]


def test_a_rules_line_goes_through_its_theory_and_ends_where_none_is_known() -> None:
    unknown = against_bound("token", 3, 1.5, None) | {"tokens_per_call_theory": None}
    with style():
        ax = rules_compared(Figure().subplots(), [*COMPARED[:2], unknown])
    ((first, second, third),) = theory_lines(ax)
    assert (first, second) == ((1.0, 1.7), (2.0, 2.19))
    assert np.isnan(third[1])
    (bar,) = (c for c in ax.containers if isinstance(c, ErrorbarContainer))
    assert np.allclose(bar.lines[0].get_ydata(), [1.701, 2.191, 2.501])


def test_rules_without_any_theory_are_joined_themselves_the_best_shape_of_each_number() -> None:
    rows = [{k: v for k, v in row.items() if k != "tokens_per_call_theory"} for row in COMPARED[:2]]
    worse = rows[1] | {"tokens_per_call": 1.5, "bound": None}
    for order in ([*rows, worse], [worse, *rows]):
        with style():
            ax = rules_compared(Figure().subplots(), order)
        assert theory_lines(ax) == [[(1.0, pytest.approx(1.701)), (2.0, pytest.approx(2.191))]]


def test_a_rule_with_a_bound_of_its_own_has_a_line_of_its_own() -> None:
    rows = [*COMPARED[:2], against_bound("argmax-draft", 1, 0.2, 0.2), against_bound("block", 3, 1.6, 1.6)]
    with style():
        lines = {
            str(line.get_label()): line for line in rules_compared(Figure().subplots(), rows).get_lines()
        }
    assert lines["bound, one path"].get_ydata() == pytest.approx([1.7, 2.22, 2.6])
    assert list(lines["bound, argmax-draft"].get_ydata()) == [1.2]


@pytest.mark.parametrize("figure", ["rules compared", "loss for speed"])
def test_lossy_rules_are_called_lossy_and_are_hollow(figure: str) -> None:
    ax = drawn(CASES[figure]).axes[0]
    bars = {str(c.get_label()): c.lines[0].get_markerfacecolor() for c in ax.containers}
    lossy = [name for name in bars if name.endswith("(lossy)")]
    assert lossy == [{"rules compared": "greedy (lossy)", "loss for speed": "lenience (lossy)"}[figure]]
    assert [name for name, face in bars.items() if face == "none"] == lossy


def test_lossless_rules_stand_at_zero_each_with_its_name_at_its_theory() -> None:
    ax = drawn(CASES["loss for speed"]).axes[0]
    assert [(text.get_text(), text.xy[0]) for text in ax.texts] == [("token", 1.5), ("block", 1.6)]
    stand = [c.lines[0] for c in ax.containers if not str(c.get_label()).endswith("(lossy)")]
    assert np.allclose([line.get_xdata() for line in stand], [[1.501], [1.601]])
    assert all(line.get_ydata() == [0.0] for line in stand)
    upright = [line.get_xdata() for line in ax.get_lines() if list(line.get_ydata()) == [0, 1]]
    assert upright == [[1.6, 1.6], [1.5, 1.5], [1.6, 1.6]]  # the bound, token, block
    assert theory_lines(ax)[-1] == [(1.5, 0.0), (1.7, 0.2)]  # of the family, its lossless end with it


def test_the_least_variation_is_that_of_lenience_and_no_rule_with_one_draft_at_a_time_pays_less() -> None:
    # Exactly, by a - (1 - d); a target and a draft with a token that only one of them has.
    pair = Pair.from_weights([5, 3, 1, 1, 0], [1, 3, 4, 0, 2])
    p, d = pair.target_row(), pair.target_row().total_variation(pair.draft_row())

    def price(rule: str) -> tuple[float, float]:
        law = exact_law(pair, rule, draft_length=1, length=1)
        paid = sum(abs(a - b) for a, b in zip(law, p.fractions, strict=True)) / 2
        return float(paid), float(exact_accepted(pair, rule, draft_length=1)[1] - (1 - d))

    for rule in ("lenience:2/3", "lenience:1/4", "ensemble:1/3", "ensemble:0"):
        paid, least = price(rule)
        assert paid == pytest.approx(least, abs=1e-12)
        tokens, variation = least_variation(float(d), 1)
        assert np.interp(1.0 + least + 1.0 - float(d), tokens, variation) == pytest.approx(paid)
    for rule in ("thresholds:1/4", "thresholds:1/16", "typical:1/100", "greedy"):
        paid, least = price(rule)
        assert paid > least + 0.01


def test_a_panel_may_show_a_part() -> None:
    with style():
        ax = loss_for_speed(
            Figure().subplots(), PAID, distance=0.5, draft_length=1, limits=((1.4, 1.7), (0.0, 0.1))
        )
    assert (ax.get_xlim(), ax.get_ylim()) == ((1.4, 1.7), (0.0, 0.1))
