"""How evidence grows with samples, beside the fastest that any e-value can grow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from simkit.figures.points import column, grouped, power_of_ten
from simkit.figures.style import FAULT, MEASURED, REFERENCE, THEORY
from simkit.sweeps.task import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def evidence_growth(
    ax: Axes, right: Sequence[Result], broken: Sequence[Result], *, rejects: float, title: str
) -> Axes:
    """Draw log e-values against samples, with the bound: samples times nats per token of the fault.

    Parameters
    ----------
    ax : Axes
        Where to draw.
    right, broken : sequence of mapping
        Judged rows of one pair with no bonus tokens, by samples: of a lossless rule, and of a broken one.
    rejects : float
        The log e-value that rejects.
    title : str
        Which pair this is.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> row = {"tokens": 1000, "log_e": 4.0, "nats_per_token": 0.005}
    >>> ax = evidence_growth(Figure().subplots(), [row], [row], rejects=13.8, title="A pair")
    >>> ax.get_lines()[0].get_ydata()
    array([5.])
    """
    tokens = column(broken, "tokens")
    bound = tokens * column(broken, "nats_per_token")
    ax.plot(tokens, bound, color=THEORY, marker="", label="samples × KL: no test gathers more")
    for rows, name, colour, marker in (
        (broken, "rule replace-from-target", FAULT, "s"),
        (right, "rule token", MEASURED, "o"),
    ):
        at, found = column(rows, "tokens"), column(rows, "log_e")
        ax.plot(at, found, color=colour, marker=marker, ls="", label=name)
    ax.axhline(rejects, color=REFERENCE, ls="--", label="rejected above this")
    ax.set_xscale("log")
    exponents = range(int(np.ceil(np.log10(tokens.min()))), int(np.floor(np.log10(tokens.max()))) + 1)
    ax.set_xticks([10.0**n for n in exponents], [power_of_ten(n) for n in exponents])
    ax.set_xticks([], minor=True)
    ax.set_yscale("symlog", linthresh=10.0, linscale=0.7)
    top = 10.0 * float(np.max(bound))
    ticks = [tick for tick in (0, 10, 100, 1_000, 10_000, 100_000) if tick <= top]
    ax.set_yticks(ticks, [grouped(tick) for tick in ticks])
    ax.set_yticks([], minor=True)
    ax.set_ylim(-8.0, top)
    ax.legend(loc="upper left")
    ax.set(title=title, xlabel="samples (tokens)", ylabel="log e-value (nats)")
    return ax
