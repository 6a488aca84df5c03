"""The z-scores of pooled cells against the standard normal law."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from simkit.figures.points import Z95, Floats, grouped, lists, power_of_ten
from simkit.figures.style import MEASURED, THEORY
from simkit.sweeps.task import Z_EDGES, Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDEST = 6.0


def z_scores(ax: Axes, rows: Sequence[Result], *, title: str, colour: str = MEASURED) -> Axes:
    """Draw the histogram of the rows' z-scores, all together, and the law that they follow if all is right.

    A bin is a point with a 95 % interval of its count; empty bins have none.

    Parameters
    ----------
    ax : Axes
        Where to draw.
    rows : sequence of mapping
        Judged rows.
    title : str
        Which runs these are.
    colour : str
        Colour of the points.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> row = {"z_histogram": [0] * 23 + [5, 4] + [0] * 23}
    >>> z_scores(Figure().subplots(), [row], title="Nine cells").get_ylabel()
    'density of cells'
    """
    counts = lists(rows, "z_histogram").sum(axis=0)
    middles, density = (Z_EDGES[1:] + Z_EDGES[:-1]) / 2.0, 1.0 / (counts.sum() * np.diff(Z_EDGES))
    hit = counts > 0
    ax.plot(middles, normal_density(), color=THEORY, marker="", label="standard normal law")
    ax.errorbar(
        middles[hit],
        (counts * density)[hit],
        yerr=Z95 * (np.sqrt(counts) * density)[hit],
        fmt="o",
        markersize=3.0,
        color=colour,
        label=f"{grouped(int(counts.sum()))} cells",
    )
    ax.set_yscale("log", nonpositive="clip")
    lowest = 0.3 * float(density.min())
    exponents = range(int(np.ceil(np.log10(lowest))), 1)
    ax.set_yticks([10.0**n for n in exponents], [power_of_ten(n) for n in exponents])
    ax.set_yticks([], minor=True)
    ax.set_ylim(lowest, 2.0)
    ax.set(title=title, xlabel="z-score of a cell (standard errors)", ylabel="density of cells")
    ax.set_xticks(np.arange(-WIDEST, WIDEST + 1.0, 2.0))
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 0.0))
    return ax


def normal_density() -> Floats:
    """Return the standard normal law's mean density in each bin of the histogram.

    Examples
    --------
    >>> round(float(normal_density().sum() * 0.25), 6)
    1.0
    """
    cumulative = np.array([NormalDist().cdf(float(edge)) for edge in Z_EDGES])
    density: Floats = np.diff(cumulative) / np.diff(Z_EDGES)
    return density
