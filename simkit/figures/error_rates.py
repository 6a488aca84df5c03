"""Measured error rates against the stated ones, as shares of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from simkit.figures.legend import name_marks
from simkit.figures.points import column
from simkit.figures.style import BLUE, MARKERS, MEASURED, PURPLE, REFERENCE, THEORY, VERMILLION
from simkit.sweeps.task import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = (MEASURED, BLUE, VERMILLION, PURPLE)


def error_rates(
    ax: Axes, rows: Sequence[Result], *, title: str, named: bool = True, legend: str | None = None
) -> Axes:
    """Draw each measured rate over its stated rate, a line for each label and a mark for each test.

    A short grey bar is the largest number that chance allows a test which keeps its rate.

    Parameters
    ----------
    ax : Axes
        Where to draw.
    rows : sequence of mapping
        Rows with "label", "test", "rate" (the stated one), and "share", its interval "low" and "high", and
        the largest allowed share "most".
    title : str
        Which rates these are.
    named : bool
        Whether to write the labels.
    legend : str or None
        Where the tests are named, as for `name_marks`.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> row = {"label": "coins", "test": "t", "rate": 0.1, "share": 0.09, "low": 0.07, "high": 0.12}
    >>> row["most"] = 0.15
    >>> ax = error_rates(Figure().subplots(), [row], title="Level 0.1")
    >>> ax.containers[0].lines[0].get_xdata().round(6).tolist()
    [0.9]
    """
    labels = list(dict.fromkeys(str(row["label"]) for row in rows))
    tests = list(dict.fromkeys(str(row["test"]) for row in rows))
    step = 0.7 / len(tests)
    ax.axvline(1.0, color=THEORY, label="stated rate", zorder=1.5)
    for index, test in enumerate(tests):
        shown = [row for row in rows if row["test"] == test]
        rate = column(shown, "rate")
        share, low, high, allowed = (column(shown, name) / rate for name in ("share", "low", "high", "most"))
        places = np.array([labels.index(str(row["label"])) for row in shown], dtype=np.float64)
        places += (index - (len(tests) - 1) / 2.0) * step
        ax.errorbar(
            share,
            places,
            xerr=(np.maximum(share - low, 0.0), np.maximum(high - share, 0.0)),
            fmt=MARKERS[index],
            color=COLOURS[index],
            markersize=3.0,
            capsize=1.0,
            elinewidth=0.9,
            label=test,
        )
        ax.plot(allowed, places, ls="", marker="|", markersize=5.0, color=REFERENCE)
    ax.set_yticks(np.arange(len(labels)), labels if named else [""] * len(labels))
    inside = legend is not None and not legend.startswith("outside")
    ax.set_ylim(len(labels) - 0.4, -1.8 if inside else -0.6)  # room for the legend
    ax.set_xlim(left=0.0)
    ax.set(title=title, xlabel="measured / stated rate")
    name_marks(ax, legend)
    return ax
