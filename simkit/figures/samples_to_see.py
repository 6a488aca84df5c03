"""Samples that the e-value needs to reject a fault, beside the bound that holds for every test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from simkit.figures.points import column, power_of_ten
from simkit.figures.style import CYCLE, MARKERS, REFERENCE, THEORY
from simkit.sweeps.task import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def samples_to_see(ax: Axes, rows: Sequence[Result], *, nats: float, sizes: Sequence[int]) -> Axes:
    """Draw the samples needed against nats per token, with a bar down to half of them, and the bound.

    Parameters
    ----------
    ax : Axes
        Where to draw.
    rows : sequence of mapping
        Rows with "test", "nats_per_token" and "samples".
    nats : float
        The log e-value that rejects.
    sizes : sequence of int
        Sample sizes in use elsewhere, shown as a band.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> row = {"test": "A", "nats_per_token": 0.01, "samples": 2000}
    >>> ax = samples_to_see(Figure().subplots(), [row], nats=13.8, sizes=[1000, 4000])
    >>> (ax.get_lines()[0].get_xdata() * ax.get_lines()[0].get_ydata()).round(6).tolist()
    [13.8, 13.8]
    """
    span = column(rows, "nats_per_token")
    ends = np.array([span.min() / 2.0, span.max() * 2.0])
    ax.axhspan(
        min(sizes), max(sizes), color=REFERENCE, alpha=0.18, lw=0.0, label="sizes of the field's tests"
    )
    ax.plot(ends, nats / ends, color=THEORY, marker="", label="ln 10⁶ / KL: no e-value needs fewer")
    for index, test in enumerate(dict.fromkeys(str(row["test"]) for row in rows)):
        shown = [row for row in rows if row["test"] == test]
        needed = column(shown, "samples")
        ax.errorbar(
            column(shown, "nats_per_token"),
            needed,
            yerr=(needed / 2.0, np.zeros_like(needed)),
            fmt=MARKERS[index + 1],
            color=CYCLE[(0, 1, 3, 4)[index % 4]],
            label=f"laws of {test}",
        )
    ax.set_xscale("log")
    ax.set_yscale("log")
    for axis, low, high in ((ax.xaxis, *ends), (ax.yaxis, *ax.get_ylim())):
        exponents = range(int(np.ceil(np.log10(low))), int(np.floor(np.log10(high))) + 1)
        axis.set_ticks([10.0**n for n in exponents], [power_of_ten(n) for n in exponents])
        axis.set_ticks([], minor=True)
    ax.set(xlabel="Kullback-Leibler divergence of the fault (nats per token)", ylabel="samples needed")
    ax.legend(loc="upper right", fontsize=7.5)
    return ax
