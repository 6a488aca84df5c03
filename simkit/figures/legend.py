"""One legend for a panel, or for all panels of a sheet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def name_marks(ax: Axes, place: str | None, *, columns: int | None = None) -> None:
    """Name the marks of a panel.

    Parameters
    ----------
    ax : Axes
        The panel.
    place : str or None
        Where, as matplotlib names places; "outside ..." is above or beside all panels, None is nowhere.
    columns : int or None
        Columns of a legend outside; None for all marks in one line.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> ax = Figure().subplots()
    >>> _ = ax.plot([0, 1], [0, 1], label="a line")
    >>> name_marks(ax, "outside upper center")
    >>> [text.get_text() for text in ax.figure.legends[0].get_texts()]
    ['a line']
    """
    if place is None:
        return
    handles, names = ax.get_legend_handles_labels()
    owner: Any = ax
    if place.startswith("outside"):
        owner = ax.figure
        owner.legend(handles, names, loc=place, ncols=columns or len(names))
    else:
        owner.legend(handles, names, loc=place)
