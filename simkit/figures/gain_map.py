"""Where speculation gains and where it loses: acceptance rate x cost of a draft call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from simkit.figures.points import Floats, column, widest
from simkit.figures.style import GRID, INK, MEASURED, PAPER, THEORY
from simkit.rules.acceptance import tokens_per_call
from simkit.sweeps.task import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OUTCOMES = {"gains": "o", "loses": "x", "undecided": "D"}
"""Outcome of the measured points -> its marker."""

LEVELS = (1.2, 1.5, 2.0, 3.0, 5.0)
"""Speed-ups whose lines are drawn beside that of 1."""

_HIGHEST_COST = 0.6


def gain_map(ax: Axes, rows: Sequence[Result], *, costs: Sequence[float], longest: int) -> Axes:
    """Draw lines of equal speed-up at the best draft length, the region of loss, and measured outcomes.

    Parameters
    ----------
    ax : Axes
        Where to draw.
    rows : sequence of mapping
        Rows of pairs with one state, over distances and draft lengths.
    costs : sequence of float
        Times of a draft call over that of a target call at which the rows are looked at.
    longest : int
        The longest draft considered.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> row = {"draft_length": 1, "total_variation": 0.5}
    >>> row |= {"tokens_per_call": 1.5, "tokens_per_call_error": 0.01}
    >>> ax = gain_map(Figure().subplots(), [row], costs=[0.1], longest=4)
    >>> ax.get_lines()[0].get_label()
    'c = a: speed-up 1'
    """
    border = np.linspace(0.0, _HIGHEST_COST, 61)
    ax.fill_between(border, border, _HIGHEST_COST, color=GRID, lw=0.0, label="theory: loses at every K")
    ax.plot(border, border, color=THEORY, marker="", lw=2.0, label="c = a: speed-up 1")
    for level in (level for level in LEVELS if level < longest + 1):
        rates, prices = level_line(level, longest)
        ax.plot(rates, prices, color=THEORY, marker="", lw=1.0)
        _name_line(ax, rates, prices, f"{level:g} ×")
    _mark(ax, rows, costs)
    ax.set(xlabel="acceptance rate a", ylabel="cost c of a draft call (target calls)")
    ax.set_xlim(0.0, 1.0)
    ax.set_ylim(-0.015, _HIGHEST_COST)
    ax.legend(loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=3, handlelength=1.4, columnspacing=1.2)
    return ax


def level_line(level: float, longest: int) -> tuple[Floats, Floats]:
    """Return acceptance rates, and the highest cost at which each still gives a speed-up of `level`.

    From (1 + a + ... + a^K) / (1 + cK) = level: c = ((1 + ... + a^K) / level - 1) / K, at the best K.

    Parameters
    ----------
    level : float
        A speed-up, above 1.
    longest : int
        The longest draft considered.

    Examples
    --------
    >>> rates, costs = level_line(1.25, 1)
    >>> round(float(costs[-1]), 6), float(costs.min()) >= 0.0  # (1 + 1) / 1.25 - 1
    (0.6, True)
    """
    rates, lengths = np.linspace(0.0, 1.0, 201), np.arange(1, longest + 1)
    costs = ((tokens_per_call(rates[:, None], lengths) / level - 1.0) / lengths).max(axis=1)
    reached = costs >= 0.0
    return rates[reached], costs[reached]


def _name_line(ax: Axes, rates: Floats, prices: Floats, name: str) -> None:
    """Write the name of a line on it, half-way up."""
    at = int(np.searchsorted(prices, min(0.5 * float(prices[-1]), 0.44)))
    ax.text(
        rates[at],
        prices[at],
        name,
        fontsize=8.0,
        color=INK,
        ha="center",
        va="center",
        bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 0.8},
    )


def _mark(ax: Axes, rows: Sequence[Result], costs: Sequence[float]) -> None:
    points = outcomes(rows, costs)
    for outcome, marker in OUTCOMES.items():
        shown = [(1.0 - distance, cost) for (distance, cost), found in points.items() if found == outcome]
        if shown:
            x, y = zip(*shown, strict=True)
            look: dict[str, Any] = {"ls": "", "marker": marker, "markersize": 4.0, "color": MEASURED}
            look["markerfacecolor"] = MEASURED if outcome == "gains" else PAPER
            ax.plot(x, y, label=f"measured: {outcome}", clip_on=False, **look)


def outcomes(rows: Sequence[Result], costs: Sequence[float]) -> dict[tuple[float, float], str]:
    """Return for each (total variation, cost) whether speculation "gains", "loses" or is "undecided".

    It gains when the speed-up at some draft length is above 1 beyond doubt, and loses when it is below 1
    beyond doubt at all of them; doubt is Bonferroni's over all rows and costs, 1e-6 in all.

    Parameters
    ----------
    rows : sequence of mapping
        Rows of pairs with one state, over distances and draft lengths.
    costs : sequence of float
        Times of a draft call over that of a target call.

    Examples
    --------
    >>> row = {"draft_length": 1, "total_variation": 0.5}
    >>> row |= {"tokens_per_call": 1.5, "tokens_per_call_error": 0.01}
    >>> list(outcomes([row], [0.1, 0.5, 0.9]).values())
    ['gains', 'undecided', 'loses']
    """
    doubt = widest(len(rows) * len(costs))
    found = {}
    for distance in sorted({float(row["total_variation"]) for row in rows}):
        group = [row for row in rows if row["total_variation"] == distance]
        tokens, error = column(group, "tokens_per_call"), column(group, "tokens_per_call_error")
        for cost in costs:
            gained = tokens - (1.0 + cost * column(group, "draft_length"))
            above, below = gained > doubt * error, gained < -doubt * error
            found[distance, cost] = "gains" if above.any() else "loses" if below.all() else "undecided"
    return found
