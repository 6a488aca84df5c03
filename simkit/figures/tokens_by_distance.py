"""Tokens per target call against total variation, a line for each draft length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from simkit.figures.acceptance_by_distance import by_draft_length
from simkit.figures.points import column, half_widths
from simkit.figures.style import CYCLE, INK, MARKERS, THEORY
from simkit.rules.acceptance import tokens_per_call
from simkit.sweeps.task import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def tokens_by_distance(ax: Axes, rows: Sequence[Result]) -> Axes:
    """Draw the measured tokens per call, and (1 - a^(K+1)) / (1 - a) at a = 1 - TV.

    Parameters
    ----------
    ax : Axes
        Where to draw.
    rows : sequence of mapping
        Rows of pairs with one state.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> row = {"draft_length": 2, "total_variation": 0.5, "tokens_per_call": 1.7, "tokens_per_call_error": 0}
    >>> ax = tokens_by_distance(Figure().subplots(), [row])
    >>> float(ax.get_lines()[0].get_ydata()[0])  # TV 0: all kept
    3.0
    """
    line = np.linspace(0.0, 1.0, 101)
    for number, (length, group) in enumerate(by_draft_length(rows).items()):
        theory = tokens_per_call(1.0 - line, length)
        ax.plot(line, theory, color=THEORY, marker="", label="(1 − aᴷ⁺¹) / (1 − a)" if number == 0 else "_")
        ax.annotate(
            f"K = {length}",
            (0.0, theory[0]),
            (-4.0, 0.0),
            textcoords="offset points",
            ha="right",
            va="center",
            fontsize=8.0,
            color=INK,
            annotation_clip=False,
        )
        ax.errorbar(
            column(group, "total_variation"),
            column(group, "tokens_per_call"),
            yerr=half_widths(group, "tokens_per_call"),
            fmt=MARKERS[number % len(MARKERS)],
            color=CYCLE[number % len(CYCLE)],
            fillstyle="none",
            label=f"measured, K = {length}",
        )
    ax.set(xlabel="total variation of p and q", ylabel="tokens per target call")
    ax.set_xlim(-0.12, 1.02)
    ax.set_xticks(np.linspace(0.0, 1.0, 6))
    ax.legend(loc="upper right")
    return ax
