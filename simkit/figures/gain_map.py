"""Where speculation gains and where it loses: acceptance rate x cost of a draft call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from simkit.figures.points import column, widest
from simkit.figures.render import heatmap
from simkit.figures.style import CELL_DARK, CELL_LIGHT
from simkit.rules.acceptance import speedup
from simkit.sweeps.task import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OUTCOMES = {"gains": "o", "loses": "X", "undecided": "D"}
"""Outcome of the measured points -> its marker."""

_HIGHEST_COST = 0.6
_CELLS = 30


def gain_map(ax: Axes, rows: Sequence[Result], *, costs: Sequence[float], longest: int) -> Axes:
    """Draw the speed-up at the best draft length as a map, the line cost = acceptance, and measured outcomes.

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
    >>> gain_map(Figure().subplots(), [row], costs=[0.1], longest=4).get_xlabel()
    'acceptance rate a'
    """
    rates, prices = np.linspace(0.0, 1.0, _CELLS + 1), np.linspace(-0.02, _HIGHEST_COST, _CELLS + 1)
    middle = (rates[1:] + rates[:-1]) / 2.0
    price = np.maximum((prices[1:] + prices[:-1]) / 2.0, 0.0)
    lengths = np.arange(1, longest + 1)
    gains = speedup(middle[None, :, None], lengths, price[:, None, None]).max(axis=-1)
    label = "speed-up at the best K ≥ 1"
    heatmap(ax, rates, prices, gains, label=label, annotate=None, limits=(0.5, 8.0), log=True)
    ax.plot([0.0, _HIGHEST_COST], [0.0, _HIGHEST_COST], color=CELL_LIGHT, marker="", lw=1.6, label="c = a")
    _mark(ax, rows, costs)
    ax.set(xlabel="acceptance rate a", ylabel="cost c of a draft call (target calls)")
    ax.set_ylim(-0.02, _HIGHEST_COST)
    ax.grid(False)
    return ax


def _mark(ax: Axes, rows: Sequence[Result], costs: Sequence[float]) -> None:
    points = outcomes(rows, costs)
    for outcome, marker in OUTCOMES.items():
        shown = [(1.0 - distance, cost) for (distance, cost), found in points.items() if found == outcome]
        if shown:
            x, y = zip(*shown, strict=True)
            look: dict[str, Any] = {
                "ls": "",
                "markersize": 5.5,
                "mew": 0.8,
                "mfc": CELL_LIGHT,
                "mec": CELL_DARK,
            }
            ax.plot(x, y, marker=marker, label=f"measured: {outcome}", clip_on=False, **look)
    ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=4, handlelength=1.4, columnspacing=1.2)


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
    for distance in sorted({float(str(row["total_variation"])) for row in rows}):
        group = [row for row in rows if row["total_variation"] == distance]
        tokens, error = column(group, "tokens_per_call"), column(group, "tokens_per_call_error")
        for cost in costs:
            gained = tokens - (1.0 + cost * column(group, "draft_length"))
            above, below = gained > doubt * error, gained < -doubt * error
            found[distance, cost] = "gains" if above.any() else "loses" if below.all() else "undecided"
    return found
