"""Speed-up over plain decoding against draft length, at one cost of a draft call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from simkit.figures.points import column, half_widths
from simkit.figures.style import CYCLE, INK, MARKERS, REFERENCE, THEORY
from simkit.rules.acceptance import speedup
from simkit.sweeps.task import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def speedup_by_draft_length(ax: Axes, rows: Sequence[Result], *, cost: float) -> Axes:
    """Draw measured speed-ups, each acceptance rate on its theory curve; plain decoding is the line at 1.

    Parameters
    ----------
    ax : Axes
        Where to draw.
    rows : sequence of mapping
        Rows of pairs with one state, over distances and draft lengths.
    cost : float
        Time of a draft call over that of a target call.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> row = {"draft_length": 2, "total_variation": 0.5, "tokens_per_call": 1.7, "tokens_per_call_error": 0}
    >>> ax = speedup_by_draft_length(Figure().subplots(), [row], cost=0.25)
    >>> float(ax.get_lines()[1].get_ydata()[1])  # 1.75 / 1.5
    1.1666666666666667
    """
    ax.axhline(1.0, color=REFERENCE, ls="--", label="plain decoding")
    lengths = np.arange(1, int(column(rows, "draft_length").max()) + 1)
    distances = sorted({float(row["total_variation"]) for row in rows})
    for number, distance in enumerate(distances):
        group = [row for row in rows if row["total_variation"] == distance]
        theory = speedup(1.0 - distance, lengths, cost)
        ax.plot(lengths, theory, color=THEORY, marker="", label="theory" if number == 0 else "_")
        ax.annotate(
            f"a = {1.0 - distance:g}",
            (lengths[-1], theory[-1]),
            (6.0, 0.0),
            textcoords="offset points",
            ha="left",
            va="center",
            fontsize=8.0,
            color=INK,
            annotation_clip=False,
        )
        k = column(group, "draft_length")
        ax.errorbar(
            k,
            column(group, "tokens_per_call") / (1.0 + cost * k),
            yerr=half_widths(group, "tokens_per_call") / (1.0 + cost * k),
            fmt=MARKERS[number % len(MARKERS)],
            color=CYCLE[number % len(CYCLE)],
            fillstyle="none",
            markersize=3.5,
        )
    ax.set_xlim(0.0, 1.22 * lengths[-1])
    ax.set_xticks([length for length in (1, 2, 4, 6, 8, 10, 12, 14, 16) if length <= lengths[-1]])
    ax.set(title=f"draft call = {cost:g} target calls", xlabel="draft length K (tokens)")
    ax.set_ylabel("speed-up over plain decoding")
    return ax
