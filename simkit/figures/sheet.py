"""A sheet: panels drawn side by side or one above the other, as SVG, as PDF, and with their data."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from simkit.figures import render
from simkit.figures.style import WIDTH, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Panel = Callable[["Axes"], object]


class Sheet(NamedTuple):
    """One drawing in the forms a report asks for, named as `simkit.report.Picture` names them.

    Parameters
    ----------
    svg : str
        For the page.
    pdf : bytes
        For a paper.
    csv : str
        The data it was drawn from.
    """

    svg: str
    pdf: bytes
    csv: str


def draw(
    *panels: Panel,
    data: Sequence[Mapping[str, object]],
    columns: Sequence[str],
    title: str,
    height: float = 3.2,
    widths: Sequence[float] | None = None,
) -> Sheet:
    """Return panels drawn side by side in the project's style.

    Parameters
    ----------
    *panels : callable (axes) -> anything
        What draws each panel.
    data : sequence of mapping
        The rows behind the drawing.
    columns : sequence of str
        Which fields of the rows go into the CSV.
    title : str
        Accessible name of the drawing.
    height : float
        Inches; the width is `WIDTH`.
    widths : sequence of float or None
        Relative widths of the panels; None for equal ones.

    Examples
    --------
    >>> row = {"x": 1, "y": 2.5}
    >>> sheet = draw(lambda ax: ax.plot([row["x"]], [row["y"]]), data=[row], columns="xy", title="A dot")
    >>> sheet.csv.split()
    ['x,y', '1,2.5']
    """
    from matplotlib.figure import Figure

    with style():
        figure = Figure(figsize=(WIDTH, height))
        axes = figure.subplots(1, len(panels), squeeze=False, width_ratios=widths)
        for panel, ax in zip(panels, axes[0], strict=True):
            panel(ax)
        return Sheet(render.svg(figure, title=title), render.pdf(figure), csv_text(data, columns))


def csv_text(rows: Sequence[Mapping[str, object]], columns: Sequence[str]) -> str:
    r"""Return some fields of the rows as CSV text.

    Parameters
    ----------
    rows : sequence of mapping
        The rows.
    columns : sequence of str
        Names of the fields, in order; a field that a row lacks is left empty.

    Examples
    --------
    >>> csv_text([{"a": 1, "b": 0.5}, {"a": 2}], ["a", "b"])
    'a,b\n1,0.5\n2,\n'
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([[row.get(name, "") for name in columns] for row in rows])
    return text.getvalue()
