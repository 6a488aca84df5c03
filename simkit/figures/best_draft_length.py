"""The draft length that pays most, by acceptance rate and cost of a draft call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from simkit.figures.points import Z95, column
from simkit.figures.style import CYCLE, INK, MARKERS
from simkit.rules.acceptance import best_draft_length
from simkit.sweeps.task import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def best_length(ax: Axes, rows: Sequence[Result], *, costs: Sequence[float], longest: int) -> Axes:
    """Draw the best draft length in theory as steps, and the best of the measured ones with its rivals.

    Parameters
    ----------
    ax : Axes
        Where to draw.
    rows : sequence of mapping
        Rows of pairs with one state, at every draft length up to `longest` for each distance.
    costs : sequence of float
        Times of a draft call over that of a target call, one step curve each.
    longest : int
        The longest draft considered.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> row = {"draft_length": 1, "total_variation": 0.5, "tokens_per_call": 1.5, "tokens_per_call_error": 0}
    >>> best_length(Figure().subplots(), [row], costs=[0.1], longest=1).get_ylabel()
    'best draft length K (tokens)'
    """
    rates = np.linspace(0.0, 1.0, 1001)
    distances = sorted({float(row["total_variation"]) for row in rows}, reverse=True)
    for number, cost in enumerate(costs):
        colour = CYCLE[number % len(CYCLE)]
        theory = [best_draft_length(float(rate), cost, longest)[0] for rate in rates]
        ax.step(rates, theory, where="mid", color=colour, marker="", lw=1.2)
        groups = [[row for row in rows if row["total_variation"] == distance] for distance in distances]
        found = np.array([measured_best(group, cost) for group in groups], dtype=np.float64)
        best = found[:, 0]
        ax.errorbar(
            1.0 - np.array(distances) + 0.004 * (number - (len(costs) - 1) / 2.0),
            best,
            yerr=[best - found[:, 1], found[:, 2] - best],
            fmt=MARKERS[number % len(MARKERS)],
            color=colour,
            fillstyle="none",
            markersize=4.0,
            label=f"c = {cost:g}",
        )
    ax.set(xlabel="acceptance rate a", ylabel="best draft length K (tokens)")
    ax.set_ylim(-0.6, longest + 0.8)
    ax.set_yticks(range(0, longest + 1, 2))
    ax.legend(loc="upper left", title="cost of a draft call")
    ax.annotate(
        "0: do not speculate",
        (1.0, 0.0),
        (0.0, 5.0),
        textcoords="offset points",
        ha="right",
        fontsize=8.0,
        color=INK,
    )
    return ax


def measured_best(rows: Sequence[Result], cost: float) -> tuple[int, int, int]:
    """Return the measured best draft length, and the shortest and longest that may be as good.

    A length may be as good when its 95 % interval of the difference to the best includes 0; not to speculate
    is length 0 with a speed-up of exactly 1.

    Parameters
    ----------
    rows : sequence of mapping
        Rows of one pair, one for each draft length.
    cost : float
        Time of a draft call over that of a target call.

    Examples
    --------
    >>> row = {"draft_length": 1, "tokens_per_call": 1.5, "tokens_per_call_error": 0.01}
    >>> measured_best([row], 0.1), measured_best([row], 0.49), measured_best([row], 0.9)
    ((1, 1, 1), (1, 0, 1), (0, 0, 0))
    """
    lengths = np.concatenate([[0], column(rows, "draft_length").astype(np.int64)])
    time = 1.0 + cost * lengths
    gains = np.concatenate([[1.0], column(rows, "tokens_per_call")]) / time
    errors = np.concatenate([[0.0], column(rows, "tokens_per_call_error")]) / time
    best = int(np.argmax(gains))
    rivals = lengths[gains[best] - gains <= Z95 * np.hypot(errors[best], errors)]
    return int(lengths[best]), int(rivals.min()), int(rivals.max())
