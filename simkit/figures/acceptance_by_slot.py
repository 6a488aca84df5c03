"""Conditional acceptance by slot of the block: the rate that is one for all only without context."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from simkit.figures.points import Floats, lists
from simkit.figures.style import FAULT, MEASURED, THEORY
from simkit.sweeps.task import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes


T95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
"""Student's t at 97.5 % for 1 to 10 degrees of freedom; more take the last, which is a little wide."""


def acceptance_by_slot(ax: Axes, runs: Sequence[Result], *, rate: float) -> Axes:
    """Draw P(kept at slot i given kept before): the mean of independent runs, theory, and one rate for all.

    Parameters
    ----------
    ax : Axes
        Where to draw.
    runs : sequence of mapping
        Rows of one task with different seeds, at least two.
    rate : float
        The one rate.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> row = {"accepted": [5, 5], "judged_by_slot": [10], "acceptance_by_slot_theory": [0.5]}
    >>> acceptance_by_slot(Figure().subplots(), [row, row], rate=0.5).get_xlabel()
    'slot of the block'
    """
    mean, half = slot_means(runs)
    slots = np.arange(1, len(mean) + 1)
    theory = lists(runs[:1], "acceptance_by_slot_theory")[0]
    ax.plot(slots, theory, color=THEORY, marker="", label="exact forward pass")
    ax.axhline(rate, color=FAULT, ls="--", label=f"one rate a = {rate:.3f}")
    ax.errorbar(slots, mean, yerr=half, fmt="o", fillstyle="none", color=MEASURED, label="measured")
    ax.set(xlabel="slot of the block", ylabel="P(kept | kept before)")
    ax.set_xticks(slots)
    return ax


def slot_means(runs: Sequence[Result]) -> tuple[Floats, Floats]:
    """Return mean and 95 % half-width of the conditional acceptance by slot over independent runs.

    Calls of one decode depend on each other, so a binomial interval would be wrong; the spread between runs
    with different seeds is not.

    Parameters
    ----------
    runs : sequence of mapping
        Rows of one task with different seeds, at least two.

    Returns
    -------
    float64 arrays, shape (K,)

    Examples
    --------
    >>> rows = [{"accepted": [5, 5], "judged_by_slot": [10]}, {"accepted": [3, 7], "judged_by_slot": [10]}]
    >>> slot_means(rows)[0].round(6)
    array([0.6])
    """
    rates = np.array([_slot_rates(run) for run in runs])
    error = rates.std(axis=0, ddof=1) / np.sqrt(len(runs))
    return rates.mean(axis=0), T95[min(len(runs) - 1, len(T95)) - 1] * error


def _slot_rates(run: Result) -> Floats:
    kept = lists([run], "accepted")[0][::-1].cumsum()[::-1][1:]
    rates: Floats = kept / lists([run], "judged_by_slot")[0]
    return rates
