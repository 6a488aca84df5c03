"""How often each fault is caught: by a test of the field, and by the e-value on as many samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from simkit.figures.legend import name_marks
from simkit.figures.points import column
from simkit.figures.style import FAULT, MEASURED
from simkit.sweeps.task import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LOOKS = ((FAULT, "s", -0.16), (MEASURED, "o", 0.16))
"""Colour, marker and shift of the first and the second who catches."""


def caught_by_test(
    ax: Axes, rows: Sequence[Result], *, title: str, faults: Sequence[str], named: bool = True
) -> Axes:
    """Draw the shares of runs in which each fault is caught, a line for each fault, with their intervals.

    Parameters
    ----------
    ax : Axes
        Where to draw.
    rows : sequence of mapping
        Rows with "fault", "who" catches it, "share", and its interval "low" and "high".
    title : str
        Name of the test.
    faults : sequence of str
        The faults in order, from the top.
    named : bool
        Whether to write the faults' names and the legend.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> row = {"fault": "f", "who": "own rule", "share": 0.5, "low": 0.4, "high": 0.6}
    >>> ax = caught_by_test(Figure().subplots(), [row], title="A test", faults=["f"])
    >>> [tick.get_text() for tick in ax.get_yticklabels()]
    ['f']
    """
    for who, (colour, marker, shift) in zip(dict.fromkeys(row["who"] for row in rows), LOOKS, strict=False):
        shown = [row for row in rows if row["who"] == who]
        places = np.array([faults.index(row["fault"]) for row in shown], dtype=np.float64)
        share = column(shown, "share")
        ends = (share - column(shown, "low"), column(shown, "high") - share)
        look: dict[str, Any] = {"color": colour, "markersize": 3.5, "capsize": 1.5, "clip_on": False}
        ax.errorbar(share, places + shift, xerr=np.maximum(ends, 0.0), fmt=marker, label=str(who), **look)
    ax.set_yticks(np.arange(len(faults)), list(faults) if named else [""] * len(faults))
    ax.set_ylim(len(faults) - 0.5, -0.5)
    ax.set_xlim(0.0, 1.0)
    ax.set_xticks([0.0, 0.5, 1.0], ["0", "½", "1"])
    ax.set_title(title, fontsize=7.8)
    ax.set_xlabel("share caught")
    name_marks(ax, "outside upper center" if named else None)
    return ax
