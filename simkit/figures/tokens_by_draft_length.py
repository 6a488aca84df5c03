"""Tokens per target call of a pair with context: measured, exact, and as one rate for all would have it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from simkit.figures.points import column, half_widths
from simkit.figures.style import FAULT, MEASURED, THEORY
from simkit.rules.acceptance import tokens_per_call
from simkit.sweeps.task import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def tokens_by_draft_length(ax: Axes, rows: Sequence[Result], *, rate: float) -> Axes:
    """Draw measured tokens per call by draft length, the exact expectation, and the closed form of one rate.

    Parameters
    ----------
    ax : Axes
        Where to draw.
    rows : sequence of mapping
        Rows of one pair, by draft length.
    rate : float
        The acceptance rate that the closed form takes for every draft.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> row = {"draft_length": 2, "tokens_per_call": 1.7, "tokens_per_call_error": 0.1}
    >>> ax = tokens_by_draft_length(Figure().subplots(), [row | {"tokens_per_call_theory": 1.7}], rate=0.5)
    >>> ax.get_lines()[1].get_ydata()
    array([1.75])
    """
    lengths = column(rows, "draft_length")
    theory, one_rate = column(rows, "tokens_per_call_theory"), tokens_per_call(rate, lengths.astype(np.int64))
    ax.plot(lengths, theory, color=THEORY, marker="", label="exact forward pass")
    ax.plot(lengths, one_rate, color=FAULT, ls="--", marker="", label=f"one rate a = {rate:.3f}")
    ax.errorbar(
        lengths,
        column(rows, "tokens_per_call"),
        yerr=half_widths(rows, "tokens_per_call"),
        fmt="o",
        fillstyle="none",
        color=MEASURED,
        label="measured",
    )
    ax.set(xlabel="draft length K (tokens)", ylabel="tokens per target call")
    ax.set_xticks(lengths)
    ax.legend(loc="lower right")
    return ax
