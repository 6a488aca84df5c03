"""Acceptance where target and draft are at the same temperature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from simkit.figures.points import column, half_widths
from simkit.figures.style import CYCLE, MARKERS, THEORY
from simkit.sweeps.task import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def temperature_diagonal(ax: Axes, series: Mapping[str, Sequence[Result]]) -> Axes:
    """Draw measured acceptance by temperature for some pairs, each on the line of its exact expectation.

    Parameters
    ----------
    ax : Axes
        Where to draw.
    series : mapping of str to sequence of mapping
        Name of a pair -> its rows by temperature, target and draft alike.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> row = {"target_temperature": 0.5, "acceptance": 0.7, "acceptance_error": 0, "acceptance_theory": 0.7}
    >>> temperature_diagonal(Figure().subplots(), {"zipf": [row]}).get_lines()[0].get_ydata()
    array([0.7])
    """
    for number, (name, rows) in enumerate(series.items()):
        at = column(rows, "target_temperature")
        theory = column(rows, "acceptance_theory")
        ax.plot(at, theory, color=THEORY, marker="", label="exact expectation" if number == 0 else "_")
        ax.errorbar(
            at,
            column(rows, "acceptance"),
            yerr=half_widths(rows, "acceptance"),
            fmt=MARKERS[number],
            color=CYCLE[number],
            fillstyle="none",
            label=f"measured, {name}",
        )
    ax.set(xlabel="temperature of target and draft (0 is greedy)", ylabel="acceptance rate")
    ax.set_ylim(0.0, 1.05)
    ax.legend(loc="lower right")
    return ax
