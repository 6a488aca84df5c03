"""Drawing: a matplotlib figure that Jupyter shows by itself."""

from __future__ import annotations

from base64 import b64encode

from matplotlib.figure import Figure

from simkit.figures.render import svg


class Drawing(Figure):
    """A figure with the face that the report gives it; a notebook shows it without pyplot.

    Examples
    --------
    >>> drawing = Drawing()
    >>> _ = drawing.subplots().plot([1, 2])
    >>> drawing._repr_html_().startswith("<img src='data:image/svg+xml;base64,")
    True
    """

    def _repr_html_(self) -> str:
        # as an image, not as markup: the ids of two figures would clash in one page
        return f"<img src='data:image/svg+xml;base64,{b64encode(svg(self).encode()).decode()}' alt='figure'>"
