"""How a verdict comes about: evidence against the law, and the distance that is certified, by samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from simkit.figures.points import column, power_of_ten
from simkit.figures.style import FAULT, MEASURED, PURPLE, REFERENCE, THEORY
from simkit.sweeps.task import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = (MEASURED, PURPLE, FAULT)
MARKS = ("o", "D", "s")


def evidence_by_look(ax: Axes, runs: Sequence[Sequence[Result]], *, rejects: float) -> Axes:
    """Draw log e-values of several samplers against samples; marks are filled where the verdict is FAIL.

    Parameters
    ----------
    ax : Axes
        Where to draw.
    runs : sequence of sequence of mapping
        Looks of up to three samplers, by samples: ``tokens``, ``log_e``, ``nats_per_token``, ``outcome`` and
        ``sampler``.
    rejects : float
        The log e-value that rejects.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> look = {"tokens": 100, "log_e": 1.0, "nats_per_token": 0.1, "outcome": "FAIL", "sampler": "a"}
    >>> evidence_by_look(Figure().subplots(), [[look]], rejects=13.8).get_xlabel()
    'samples (tokens)'
    """
    for rows, colour, mark in zip(runs, COLOURS, MARKS, strict=False):
        tokens = column(rows, "tokens")
        growth = tokens * column(rows, "nats_per_token")
        if growth.any():
            ax.plot(tokens, growth, color=THEORY, marker="", lw=1.0)
        _marks(ax, rows, "log_e", "FAIL", colour, mark)
    ax.axhline(rejects, color=REFERENCE, ls="--")
    place = ax.get_yaxis_transform()
    ax.text(0.98, rejects, "above: FAIL", va="top", ha="right", color=REFERENCE, transform=place)
    ax.set_yscale("symlog", linthresh=10.0, linscale=0.7)
    ax.set_yticks([-5, 0, 5, 10, 100, 1_000, 10_000], ["-5", "0", "5", "10", "100", "1 000", "10 000"])
    ax.set_yticks([], minor=True)
    ax.set_ylim(bottom=-8.0)
    ax.set(title="Evidence against the target law", ylabel="log e-value (nats)")
    return _samples_axis(ax, runs)


def bound_by_look(ax: Axes, runs: Sequence[Sequence[Result]], *, tolerance: float) -> Axes:
    """Draw certified total variations against samples; marks are filled where the verdict is PASS.

    Parameters
    ----------
    ax : Axes
        Where to draw.
    runs : sequence of sequence of mapping
        As for `evidence_by_look`, with ``tv_bound``, ``tv_bound_typical`` (of a right sampler) and ``fault``.
    tolerance : float
        The total variation that a PASS certifies at most.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> look = {"tokens": 100, "tv_bound": 0.1, "tv_bound_typical": 0.1, "fault": 0.0, "outcome": "PASS"}
    >>> bound_by_look(Figure().subplots(), [[look | {"sampler": "a"}]], tolerance=0.01).get_yscale()
    'log'
    """
    for rows, colour, mark in zip(runs, COLOURS, MARKS, strict=False):
        fault = float(rows[0]["fault"])
        if fault:
            ax.axhline(fault, color=THEORY, lw=1.0)
        else:
            ax.plot(column(rows, "tokens"), column(rows, "tv_bound_typical"), color=THEORY, marker="", lw=1.0)
        _marks(ax, rows, "tv_bound", "PASS", colour, mark)
    ax.axhline(tolerance, color=REFERENCE, ls="--")
    ax.text(0.02, tolerance, "PASS below this", va="top", color=REFERENCE, transform=ax.get_yaxis_transform())
    ax.set_yscale("log")
    ax.set(title="Certified distance from it", ylabel="upper bound on total variation")
    ax.legend(loc="lower left")
    return _samples_axis(ax, runs)


def _marks(ax: Axes, rows: Sequence[Result], name: str, filled: str, colour: str, mark: str) -> None:
    """Draw one sampler's looks, filled where its outcome is the one named."""
    tokens, values = column(rows, "tokens"), column(rows, name)
    decided = np.array([row["outcome"] == filled for row in rows])
    for where, face in ((decided, colour), (~decided, "none")):
        label = str(rows[0]["sampler"]) if where is decided else None
        ax.plot(tokens[where], values[where], mark, color=colour, mfc=face, ls="", ms=4.5, label=label)


def _samples_axis(ax: Axes, runs: Sequence[Sequence[Result]]) -> Axes:
    tokens = np.concatenate([column(rows, "tokens") for rows in runs])
    ax.set_xscale("log")
    exponents = range(int(np.ceil(np.log10(tokens.min()))), int(np.floor(np.log10(tokens.max()))) + 1)
    ax.set_xticks([10.0**n for n in exponents], [power_of_ten(n) for n in exponents])
    ax.set_xticks([], minor=True)
    ax.set(xlabel="samples (tokens)")
    return ax
