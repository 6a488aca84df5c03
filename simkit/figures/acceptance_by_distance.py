"""Acceptance against total variation, on the line 1 - TV, and how far from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from simkit.figures.points import column, half_widths
from simkit.figures.style import CYCLE, MARKERS, THEORY
from simkit.sweeps.task import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def acceptance_by_distance(ax: Axes, rows: Sequence[Result]) -> Axes:
    """Draw the acceptance rate of each row at its pair's total variation, and the line 1 - TV.

    Parameters
    ----------
    ax : Axes
        Where to draw.
    rows : sequence of mapping
        Rows of pairs with one state.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> row = {"draft_length": 1, "total_variation": 0.3, "acceptance": 0.7, "acceptance_error": 0.01}
    >>> acceptance_by_distance(Figure().subplots(), [row]).get_ylabel()
    'acceptance rate (kept / judged drafts)'
    """
    line = np.linspace(0.0, 1.0, 101)
    ax.plot(line, 1.0 - line, color=THEORY, marker="", label="1 − TV")
    for number, (length, group) in enumerate(by_draft_length(rows).items()):
        ax.errorbar(
            column(group, "total_variation"),
            column(group, "acceptance"),
            yerr=half_widths(group, "acceptance"),
            fmt=MARKERS[number % len(MARKERS)],
            color=CYCLE[number % len(CYCLE)],
            fillstyle="none",
            label=f"K = {length}",
        )
    ax.set(xlabel="total variation of p and q", ylabel="acceptance rate (kept / judged drafts)")
    ax.set_title("Measured on the theory line")
    ax.legend(loc="upper right")
    return ax


def deviation_by_distance(ax: Axes, rows: Sequence[Result], *, unit: float = 1e-3) -> Axes:
    """Draw measured less theoretical acceptance with 95 % intervals, the draft lengths side by side.

    Parameters
    ----------
    ax : Axes
        Where to draw.
    rows : sequence of mapping
        Rows as for `acceptance_by_distance`.
    unit : float
        Unit of the vertical axis.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> row = {"draft_length": 1, "total_variation": 0.3, "acceptance": 0.7, "acceptance_error": 0.01}
    >>> deviation_by_distance(Figure().subplots(), [row | {"acceptance_theory": 0.7}]).get_ylabel()
    'measured − theory (thousandths)'
    """
    groups = by_draft_length(rows)
    ax.axhline(0.0, color=THEORY, label="theory")
    for number, (length, group) in enumerate(groups.items()):
        beside = 0.007 * (number - (len(groups) - 1) / 2.0)
        ax.errorbar(
            column(group, "total_variation") + beside,
            (column(group, "acceptance") - column(group, "acceptance_theory")) / unit,
            yerr=half_widths(group, "acceptance") / unit,
            fmt=MARKERS[number % len(MARKERS)],
            markersize=2.5,
            capsize=0.0,
            elinewidth=0.9,
            color=CYCLE[number % len(CYCLE)],
            label=f"K = {length}",
        )
    ax.set(xlabel="total variation of p and q", ylabel="measured − theory (thousandths)")
    ax.set_xlim(0.0, 1.0)
    ax.set_title("How far from it")
    return ax


def by_draft_length(rows: Sequence[Result]) -> dict[int, list[Result]]:
    """Return the rows of each draft length, ascending.

    Examples
    --------
    >>> list(by_draft_length([{"draft_length": 4}, {"draft_length": 1}]))
    [1, 4]
    """
    lengths = sorted({int(row["draft_length"]) for row in rows})
    return {length: [row for row in rows if row["draft_length"] == length] for length in lengths}
