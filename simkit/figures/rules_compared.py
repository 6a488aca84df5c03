"""Tokens for each target call by rule, at equal draft tokens verified, with the bounds of lossless rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from simkit.figures.legend import name_marks
from simkit.figures.points import Floats, column, half_widths
from simkit.figures.style import CYCLE, INK, MARKERS
from simkit.rules.registry import RULES
from simkit.sweeps.task import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DASHES = {
    "one path": ":",
    "with-replacement": (0, (2.0, 2.0)),
    "without-replacement": (0, (1.0, 2.0)),
    "greedy": (0, (3.0, 1.0)),
    "top": (0, (2.0, 1.0, 0.7, 1.0)),
}
"""Dashes of the bound by way of drafting; they stay visible under a rule that reaches it."""


def rules_compared(
    ax: Axes, rows: Sequence[Result], *, title: str = "", legend: str | None = "outside right upper"
) -> Axes:
    """Draw tokens for each target call against draft tokens verified: a line a rule, hollow for lossy ones.

    Of several shapes with the same number of tokens the best is shown. A bound is drawn for each way in which
    the rules draw their drafts, since it depends on that.

    Parameters
    ----------
    ax : Axes
        Where to draw.
    rows : sequence of mapping
        `simkit.sweeps.rules.Compared` as rows. Where a row also has "tokens_per_call_theory" the line goes
        through that and the mark is what was measured; None leaves the mark without a line.
    title : str
        Which rules these are.
    legend : str or None
        Where it stands; see `simkit.figures.legend.name_marks`.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> row = {"rule": "token", "lossless": True, "verified": 1, "tokens_per_call": 1.7}
    >>> row |= {"kept_error": 0.0, "bound": 0.7}
    >>> ax = rules_compared(Figure().subplots(), [row])
    >>> [text.get_text() for text in ax.figure.legends[0].get_texts()]
    ['bound, one path', 'token']
    """
    for way, most in _bounds(rows).items():
        at, dashes = np.array(sorted(most)), DASHES.get(way, (0, (1.0, 1.0)))
        ax.plot(at, [most[n] for n in at], color=INK, marker="", ls=dashes, lw=2.0, label=f"bound, {way}")
    for index, rule in enumerate(dict.fromkeys(str(row["rule"]) for row in rows)):
        best = _best([row for row in rows if row["rule"] == rule])
        lossy = best[0]["lossless"] is False
        colour = CYCLE[index % len(CYCLE)]
        at = column(best, "verified")
        ax.plot(at, _theory(best), color=colour, marker="", ls="--" if lossy else "-", lw=1.0)
        ax.errorbar(
            at,
            column(best, "tokens_per_call"),
            yerr=half_widths(best, "kept"),
            color=colour,
            marker=MARKERS[(index + index // len(CYCLE)) % len(MARKERS)],
            mfc="none" if lossy else None,
            ls="",
            ms=4.0,
            label=f"{rule} (lossy)" if lossy else rule,
        )
    ax.set(title=title, xlabel="draft tokens verified in one target call")
    ax.set(ylabel="tokens for each target call")
    ax.set_xticks(sorted({int(row["verified"]) for row in rows}))
    name_marks(ax, legend, columns=1)
    return ax


def _bounds(rows: Sequence[Result]) -> dict[str, dict[int, float]]:
    """Return by way of drafting, then by tokens verified, the most tokens of a call.

    A rule whose bound is not that of the others of its way, since it drafts in a way of its own, has a line
    of its own.
    """
    bounds: dict[str, dict[int, float]] = {}
    for rule in dict.fromkeys(str(row["rule"]) for row in rows):
        held = [row for row in rows if row["rule"] == rule and row["bound"] is not None]
        most = {int(row["verified"]): 1.0 + float(row["bound"]) for row in held}
        way = (RULES[rule].proposal if rule in RULES else "") or "one path"
        known = bounds.get(way, {})
        own = any(known.get(n, value) != value for n, value in most.items())
        if most:
            bounds[rule if own else way] = most if own else known | most
    return bounds


def _best(rows: Sequence[Result]) -> list[Result]:
    """Return for each number of tokens the row with the most tokens for a call."""
    best: dict[int, Result] = {}
    for row in sorted(rows, key=lambda row: (row["verified"], row["tokens_per_call"])):
        best[row["verified"]] = row
    return list(best.values())


def _theory(rows: Sequence[Result]) -> Floats:
    """Return where the line goes: through theory, or through the values themselves where no row has any."""
    values = [row.get("tokens_per_call_theory", row["tokens_per_call"]) for row in rows]
    return np.array([np.nan if value is None else float(value) for value in values])
