"""Log e-values of all runs, a line for each pair: the right rule and the broken one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from simkit.figures.points import column, grouped
from simkit.figures.style import FAULT, MEASURED, REFERENCE
from simkit.sweeps.task import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RULES = (("token", MEASURED, "o"), ("replace-from-target", FAULT, "s"))
"""The rules shown, each with its colour and marker."""

LINEAR = 10.0
"""Log e-values up to this are drawn on a linear scale, larger ones on a logarithmic one."""


def evidence_by_pair(
    ax: Axes, rows: Sequence[Result], *, label: Callable[[Result], str], rejects: float
) -> Axes:
    """Draw a mark for each run at its log e-value, on the line of its pair.

    Parameters
    ----------
    ax : Axes
        Where to draw.
    rows : sequence of mapping
        Judged rows of the token rule and of others.
    label : callable (row) -> str
        Name of the row's pair.
    rejects : float
        The log e-value that rejects.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> row = {"rule": "token", "log_e": -1.0, "pair": "zipf"}
    >>> ax = evidence_by_pair(Figure().subplots(), [row], label=lambda row: row["pair"], rejects=13.8)
    >>> [tick.get_text() for tick in ax.get_yticklabels()]
    ['zipf']
    """
    names = list(dict.fromkeys(label(row) for row in rows))
    for rule, colour, marker in RULES:
        shown = [row for row in rows if row["rule"] == rule]
        if shown:
            lines = [names.index(label(row)) + (0.0 if rule == "token" else 0.18) for row in shown]
            look: dict[str, Any] = {"color": colour, "marker": marker, "ls": "", "fillstyle": "none"}
            ax.plot(column(shown, "log_e"), lines, label=f"rule {rule}", **look)
    ax.axvline(rejects, color=REFERENCE, ls="--", label="rejected to the right of this")
    ax.set_xscale("symlog", linthresh=LINEAR, linscale=1.0)
    ticks = [-10, 0, 10, 100, 1_000, 10_000, 100_000]
    ax.set_xticks(ticks, [grouped(tick) for tick in ticks])
    ax.set_xticks([], minor=True)
    ax.set_yticks(np.arange(len(names)), names)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.set_xlim(-LINEAR, 200_000)
    ax.set_xlabel("log e-value of a run (nats)")
    ax.legend(loc="upper center", bbox_to_anchor=(0.4, 1.12), ncols=3)
    return ax
