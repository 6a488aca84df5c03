"""How many decodes each test takes to see each fault, and which faults it never sees."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from simkit.figures.points import Floats
from simkit.figures.render import heatmap
from simkit.figures.style import INK, PAPER
from simkit.sweeps.task import Result
from simkit.verify.detect import MOST_DECODES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLIND = "blind"
LIMITS = (1.0, 1e8)
"""Decodes of the first and the last colour."""

_GAP = 0.25
_FAMILY: Mapping[str, Any] = {"rotation": 270, "va": "center", "fontsize": 6.0, "weight": "bold"}


def detection_matrix(ax: Axes, rows: Sequence[Result], *, tests: Mapping[str, str], apart: int = 0) -> Axes:
    """Draw a line of cells for each fault: decodes by test, coloured by their logarithm, or "blind".

    Parameters
    ----------
    ax : Axes
        Where to draw.
    rows : sequence of mapping
        Rows with "fault", "family" and "needed", the decodes by test, None for a test that is blind; families
        stand together.
    tests : mapping of str to str
        Which tests, in order, and how their columns are headed.
    apart : int
        Columns in front of which a gap is drawn; 0 for none.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> row = {"fault": "a", "family": "b", "needed": {"judge": 834, "support only": None}}
    >>> tests = {"judge": "judge", "support only": "support"}
    >>> ax = detection_matrix(Figure().subplots(), [row], tests=tests)
    >>> [text.get_text() for text in ax.texts]
    ['830', 'blind', 'b']
    """
    needed = np.array([[row["needed"][test] or np.nan for test in tests] for row in rows], dtype=np.float64)
    families = [str(row["family"]) for row in rows]
    (left, x_edges), (top, y_edges) = _placed([at >= apart for at in range(len(tests))]), _placed(families)
    places = np.ix_(np.searchsorted(y_edges, top), np.searchsorted(x_edges, left))
    cells = np.full((len(y_edges) - 1, len(x_edges) - 1), np.nan)
    cells[places] = needed
    notes = [["" if np.isnan(value) else short(int(value)) for value in line] for line in cells]
    heatmap(ax, x_edges, y_edges, cells, label="decodes", annotate=notes, limits=LIMITS, log=True)
    for row, column in np.argwhere(np.isnan(needed)):
        ax.text(left[column] + 0.5, top[row] + 0.5, BLIND, ha="center", va="center", color=INK)
    for text in ax.texts:
        text.set_fontsize(6.5)
    _hide_gaps(ax.axvspan, x_edges)
    _hide_gaps(ax.axhspan, y_edges)
    for family in dict.fromkeys(families):
        middle = float(np.mean([at for at, name in zip(top, families, strict=True) if name == family])) + 0.5
        ax.text(x_edges[-1] + 0.15, middle, family, color=INK, **_FAMILY)
    ax.set_xticks(left + 0.5, list(tests.values()), rotation=90)
    ax.set_yticks(top + 0.5, [str(row["fault"]) for row in rows], fontsize=7.0)
    ax.xaxis.tick_top()
    ax.invert_yaxis()
    ax.tick_params(length=0.0)
    ax.spines[:].set_visible(False)
    return ax


def _placed(groups: Sequence[object]) -> tuple[Floats, Floats]:
    """Return where each member of groups begins, with a gap between groups, and all borders."""
    changes = np.cumsum([False, *(one != other for one, other in pairwise(groups))])
    begins = np.arange(len(groups)) + _GAP * changes
    return begins, np.unique([begins, begins + 1.0])


def _hide_gaps(span: Callable[..., object], edges: Floats) -> None:
    for low, high in pairwise(edges.tolist()):
        if high - low == _GAP:
            span(low, high, color=PAPER, lw=0.0)


def short(decodes: int) -> str:
    """Return a number of decodes to two digits, as narrow as can be.

    Parameters
    ----------
    decodes : int
        The number, 1 or more; `MOST_DECODES` stands for more than that.

    Examples
    --------
    >>> [short(n) for n in (7, 834, 9637, 62_758, 996_000, 77_265_161, 10**10)]
    ['7', '830', '9.6 k', '63 k', '1 M', '77 M', '> 10 G']
    """
    if decodes >= MOST_DECODES:
        return "> 10 G"
    rounded = float(f"{decodes:.2g}")
    for unit, name in ((1e6, " M"), (1e3, " k")):
        if rounded >= unit:
            return f"{rounded / unit:g}{name}"
    return f"{rounded:g}"
