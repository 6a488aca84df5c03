"""Acceptance over target temperature x draft temperature."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from simkit.figures.points import Floats
from simkit.figures.render import heatmap
from simkit.sweeps.task import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def temperature_map(ax: Axes, rows: Sequence[Result]) -> Axes:
    """Draw the measured acceptance rate at each pair of temperatures as a coloured cell with its number.

    Parameters
    ----------
    ax : Axes
        Where to draw.
    rows : sequence of mapping
        Rows of one pair at all combinations of its temperatures.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> row = {"target_temperature": 1.0, "draft_temperature": 0.5, "acceptance": 0.7}
    >>> [note.get_text() for note in temperature_map(Figure().subplots(), [row]).texts]
    ['.70']
    """
    of_target, of_draft = (temperatures(rows, who) for who in ("target", "draft"))
    cells = np.full((len(of_target), len(of_draft)), np.nan)
    for row in rows:
        at = of_target.index(_of(row, "target")), of_draft.index(_of(row, "draft"))
        cells[at] = float(row["acceptance"])
    edges_x, edges_y = np.arange(len(of_draft) + 1), np.arange(len(of_target) + 1)
    notes = [[_short(value) for value in line] for line in cells]
    heatmap(ax, edges_x, edges_y, cells, label="acceptance rate", annotate=notes, limits=(0.0, 1.0))
    ax.set_xticks(edges_x[:-1] + 0.5, [f"{value:g}" for value in of_draft])
    ax.set_yticks(edges_y[:-1] + 0.5, [f"{value:g}" for value in of_target])
    ax.set(xlabel="draft temperature (0 is greedy)", ylabel="target temperature (0 is greedy)")
    ax.grid(False)
    return ax


def temperatures(rows: Sequence[Result], who: str) -> list[float]:
    """Return the temperatures of the "target" or the "draft" that occur, ascending.

    Examples
    --------
    >>> temperatures([{"draft_temperature": 1.0}, {"draft_temperature": 0.0}], "draft")
    [0.0, 1.0]
    """
    return sorted({_of(row, who) for row in rows})


def _of(row: Result, who: str) -> float:
    return float(row[f"{who}_temperature"])


def _short(value: float | Floats) -> str:
    """Return two decimals without the leading zero, so that they fit into a cell."""
    text = f"{float(value):.2f}"
    return text.removeprefix("0")
