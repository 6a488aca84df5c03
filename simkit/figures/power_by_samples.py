"""How often a fault is rejected, by the samples of a run and by test, beside what theory says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from simkit.figures.legend import name_marks
from simkit.figures.points import column
from simkit.figures.style import BLUE, MEASURED, ORANGE, PURPLE, THEORY
from simkit.sweeps.task import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LOOKS = ((MEASURED, "o"), (BLUE, "s"), (PURPLE, "^"), (ORANGE, "D"))
DASHES = ("-", "--")


def power_by_samples(
    ax: Axes,
    rows: Sequence[Result],
    *,
    title: str,
    theory: Mapping[str, tuple[ArrayLike, ArrayLike]],
    named: bool = True,
    legend: str | None = None,
) -> Axes:
    """Draw measured shares with their intervals against samples, a mark for each test, and theory lines.

    Parameters
    ----------
    ax : Axes
        Where to draw.
    rows : sequence of mapping
        Rows with "test", "samples", "share" and its interval "low" and "high".
    title : str
        Which fault this is.
    theory : mapping
        Name of a line -> its samples and shares; the first is drawn through, the second dashed.
    named : bool
        Whether to name the vertical axis.
    legend : str or None
        Where tests and lines are named, as for `name_marks`.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> row = {"test": "e-value", "samples": 1000, "share": 0.5, "low": 0.4, "high": 0.6}
    >>> ax = power_by_samples(
    ...     Figure().subplots(), [row], title="A fault", theory={"planned": ([500, 2000], [0.1, 0.9])}
    ... )
    >>> ax.get_lines()[0].get_ydata()
    array([0.1, 0.9])
    """
    for (name, (samples, share)), dash in zip(theory.items(), DASHES, strict=False):
        ax.plot(np.asarray(samples), np.asarray(share), color=THEORY, marker="", ls=dash, label=name)
    for index, test in enumerate(dict.fromkeys(str(row["test"]) for row in rows)):
        shown = [row for row in rows if row["test"] == test]
        share = column(shown, "share")
        ends = (share - column(shown, "low"), column(shown, "high") - share)
        colour, marker = LOOKS[index]
        ax.errorbar(
            column(shown, "samples") * (1.0 + 0.02 * index),
            share,
            yerr=np.maximum(ends, 0.0),
            fmt=marker,
            color=colour,
            markersize=3.5,
            capsize=1.2,
            elinewidth=0.9,
            label=test,
        )
    _scales(ax, sorted({float(row["samples"]) for row in rows}))
    ax.set_title(title, fontsize=8.0)
    ax.set_xlabel("samples")
    if named:
        ax.set_ylabel("share rejected")
    name_marks(ax, legend, columns=3)
    return ax


def _scales(ax: Axes, sizes: Sequence[float]) -> None:
    """Set an axis of sizes with ticks at the least, the middle and the largest, and one from 0 to 1."""
    ax.set_xscale("log")
    ticks = sorted({sizes[0], sizes[len(sizes) // 2], sizes[-1]})
    ax.set_xticks(ticks, [_size(tick) for tick in ticks])
    ax.set_xticks([], minor=True)
    ax.set_ylim(-0.04, 1.04)
    ax.set_yticks([0.0, 0.5, 1.0], ["0", "½", "1"])


def _size(samples: float) -> str:
    """Return a number of samples in thousands or millions, to two digits."""
    unit, name = (1e6, "M") if samples >= 1e6 else (1e3, "k")
    return f"{float(f'{samples / unit:.2g}'):g} {name}"
