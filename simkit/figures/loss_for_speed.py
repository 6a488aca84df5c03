"""How much total variation lossy rules pay for their speed, beside what lossless rules reach for nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from simkit.figures.legend import name_marks
from simkit.figures.points import Floats, column, half_widths
from simkit.figures.style import CYCLE, INK, MARKERS, REFERENCE
from simkit.rules.acceptance import tokens_per_call
from simkit.sweeps.task import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def loss_for_speed(
    ax: Axes,
    rows: Sequence[Result],
    *,
    distance: float,
    draft_length: int,
    title: str = "",
    limits: tuple[tuple[float, float], tuple[float, float]] | None = None,
    legend: str | None = "upper left",
) -> Axes:
    """Draw the total variation of a token against tokens for each target call: a line a lossy family.

    Lossless rules stand at zero, each with a vertical line through its theory; the black one is the most that
    any of them can emit. Dotted is the least total variation of a rule that judges one draft at a time, see
    `least_variation`.

    Parameters
    ----------
    ax : Axes
        Where to draw.
    rows : sequence of mapping
        With "rule", "lossless", "bound" (drafts kept at most), "total_variation" (not read where a lossless
        rule has one row), and "tokens_per_call" with its error and theory. Rules with parameters,
        ``NAME:VALUE``, are a family.
    distance : float
        Total variation d of draft and target.
    draft_length : int
        Drafts K for a call.
    title : str
        Which part this is.
    limits : pair of pairs or None
        Ends of both axes; None for all.
    legend : str or None
        Where it stands; see `simkit.figures.legend.name_marks`.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> row = {"rule": "lenience:1/2", "lossless": False, "total_variation": 0.1, "bound": 0.7}
    >>> row |= {"tokens_per_call": 1.8, "tokens_per_call_error": 0.01, "tokens_per_call_theory": 1.8}
    >>> ax = loss_for_speed(Figure().subplots(), [row], distance=0.3, draft_length=1)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['least, one draft at a time', 'bound, lossless', 'lenience (lossy)']
    """
    least = least_variation(distance, draft_length)
    ax.plot(*least, color=INK, ls=":", lw=2.0, marker="", label="least, one draft at a time")
    most = 1.0 + float(rows[0]["bound"])
    ax.axvline(most, color=INK, ls=(0, (3.0, 1.0)), lw=2.0, marker="", label="bound, lossless")
    families = _families(rows)
    lossless = [name for name, group in families.items() if len(group) == 1 and group[0]["lossless"]]
    for number, name in enumerate(lossless):
        _stand(ax, families.pop(name), before=number == 0)
    for number, (name, group) in enumerate(families.items()):
        variation = column(group, "total_variation")
        colour = CYCLE[number % len(CYCLE)]
        ax.plot(column(group, "tokens_per_call_theory"), variation, color=colour, ls="--", lw=1.0, marker="")
        ax.errorbar(
            column(group, "tokens_per_call"),
            variation,
            xerr=half_widths(group, "tokens_per_call"),
            fmt=MARKERS[number % len(MARKERS)],
            color=colour,
            mfc="none",
            label=f"{name} (lossy)",
        )
    ax.set(title=title, xlabel="tokens for each target call", ylabel="total variation of a token")
    if limits is not None:
        ax.set(xlim=limits[0], ylim=limits[1])
    name_marks(ax, legend, columns=3)
    return ax


def least_variation(distance: float, draft_length: int) -> tuple[Floats, Floats]:
    """Return tokens for each target call, and the least total variation that they cost one draft at a time.

    A rule that keeps a draft with probability a keeps x with at most q(x), and at most what comes out as x,
    r(x). So a <= 1 - TV(q, r) <= 1 - d + TV(p, r), where d = TV(p, q): it pays at least a - (1 - d).

    Parameters
    ----------
    distance : float
        Total variation d of draft and target.
    draft_length : int
        Drafts K for a call.

    References
    ----------
    Yin et al. 2024 (arXiv 2411.00841), on the trade-off of speed and output quality.

    Examples
    --------
    >>> tokens, variation = least_variation(0.5, 1)
    >>> [float(value) for value in (tokens[0], variation[0], tokens[-1], variation[-1])]
    [1.5, 0.0, 2.0, 0.5]
    """
    variation = np.linspace(0.0, distance, 101)
    return tokens_per_call(1.0 - distance + variation, draft_length), variation


def _families(rows: Sequence[Result]) -> dict[str, list[Result]]:
    families: dict[str, list[Result]] = {}
    for row in rows:
        families.setdefault(str(row["rule"]).partition(":")[0], []).append(row)
    return families


def _stand(ax: Axes, rows: Sequence[Result], before: bool) -> None:
    """Draw a lossless rule at zero, with its name along the line through its theory."""
    theory, name = float(rows[0]["tokens_per_call_theory"]), str(rows[0]["rule"])
    ax.axvline(theory, color=REFERENCE, lw=0.8)
    ax.errorbar(
        column(rows, "tokens_per_call"), [0.0], xerr=half_widths(rows, "tokens_per_call"), fmt="o", color=INK
    )
    ax.annotate(
        name,
        (theory, 1.0),
        (-3.0 if before else 3.0, -2.0),
        xycoords=ax.get_xaxis_transform(),
        textcoords="offset points",
        rotation=90.0,
        ha="right" if before else "left",
        va="top",
        fontsize=7.5,
        color=INK,
    )
