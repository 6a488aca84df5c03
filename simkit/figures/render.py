"""Turn a matplotlib figure into an SVG or a PDF whose bytes depend on the drawing alone."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast
from xml.etree import ElementTree as ET

import numpy as np

from simkit.errors import InputError
from simkit.figures.style import CELL_DARK, CELL_LIGHT, GRID, PAPER, THEME, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike, NDArray

_SVG = "{http://www.w3.org/2000/svg}"
_XLINK = "http://www.w3.org/1999/xlink"
_HREF = f"{{{_XLINK}}}href"
_PX_PER_PT = 96 / 72
_BAR_STEPS = 64
_FEW_CELLS = 900

_GEOMETRY = frozenset({"d", "points", "x", "y", "width", "height", "cx", "cy", "r", "rx", "ry"})
# Not after "#" or a letter: the colour #009e73 holds something that looks like a number.
_NUMBER = re.compile(r"(?<![\w#.])-?(?:\d+\.\d+(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+)(?!\w)")
_CALL = re.compile(r"(\w+)\(([^)]*)\)")
_URL = re.compile(r"url\(#([^)]+)\)")
_COLOUR_OF = {light: name for name, (light, _dark) in THEME.items()}


def svg(figure: Figure, *, title: str = "") -> str:
    """Render ``figure`` as one ``<svg>`` element that follows the reader's light or dark theme.

    The same drawing gives the same bytes: no date, no version, ids numbered in order of appearance, and
    coordinates rounded to 0.01 pt so that the last bits of a float, which differ between machines, do not
    show. The text has neither XML declaration nor doctype and can stand in HTML or in a file as it is.

    Parameters
    ----------
    figure
        A ``matplotlib.figure.Figure`` (pyplot is not needed) drawn inside :func:`simkit.figures.style.style`.
    title
        Accessible name; if empty, the figure's own title or that of its first titled axes.

    Raises
    ------
    InputError
        If the figure holds a bitmap (``imshow``, rasterised artists): its compressed bytes depend on the
        zlib in use. Draw it with :func:`heatmap`.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> with style():
    ...     figure = Figure()
    ...     _ = figure.subplots().plot([0, 1], [0, 1])
    >>> text = svg(figure, title="A line")
    >>> text.startswith("<svg"), "<title>A line</title>" in text, "prefers-color-scheme: dark" in text
    (True, True, True)
    """
    root = ET.fromstring(_matplotlib_bytes(figure, "svg", {"Date": None}))
    if root.find(f".//{_SVG}image") is not None:
        raise InputError(
            "the figure holds a bitmap (imshow or a rasterised artist), whose bytes differ between machines; "
            "draw it with simkit.figures.render.heatmap"
        )
    _drop_boilerplate(root)
    for element in root.iter():
        _round_element(element)
        _theme_element(element)
    _renumber_ids(root)
    _frame(root, title or _title_of(figure))
    return _serialise(root)


def pdf(figure: Figure) -> bytes:
    """Render ``figure`` as a PDF for a paper: light theme, embedded TrueType fonts, no date and no version.

    Equal drawings give equal bytes with the same matplotlib and zlib.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> pdf(Figure())[:5]
    b'%PDF-'
    """
    if not _is_laid_out(figure):
        # Text is a hair wider in a PDF; laid out as SVG first, both show the same picture.
        _matplotlib_bytes(figure, "svg", {"Date": None})
    return _matplotlib_bytes(figure, "pdf", {"CreationDate": None, "Creator": None, "Producer": None})


def heatmap(
    ax: Axes,
    x_edges: ArrayLike,
    y_edges: ArrayLike,
    values: ArrayLike,
    *,
    label: str,
    annotate: str | Sequence[Sequence[str]] | None = ".2f",
    limits: tuple[float, float] | None = None,
    log: bool = False,
    colours: str = "cividis",
) -> QuadMesh:
    """Draw a table of values as coloured cells with a colour bar, as vectors only.

    Parameters
    ----------
    ax
        Axes to draw in; the colour bar takes its room from them.
    x_edges, y_edges
        Strictly increasing cell borders, shapes ``(columns + 1,)`` and ``(rows + 1,)``, in data units.
    values
        Float array of shape ``(rows, columns)``; NaN leaves a cell grey and without a number.
    label
        What the colours mean, with its unit; written along the colour bar.
    annotate
        A format for the number in each cell, texts of the same shape as ``values``, or None.
    limits
        Values of the first and the last colour; if None, the smallest and the largest finite value.
    log
        Whether the colours follow the logarithm of the values.
    colours
        A perceptually uniform matplotlib colour map.

    Raises
    ------
    InputError
        If the shapes do not fit, the edges do not increase, or the colours have no range to show.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> with style():
    ...     figure = Figure()
    ...     mesh = heatmap(figure.subplots(), [0, 1, 2], [0, 1], [[0.25, 0.75]], label="acceptance rate")
    >>> "<image" in svg(figure)
    False
    """
    from matplotlib.colors import LogNorm, Normalize

    x, y, cells = _checked_cells(x_edges, y_edges, values)
    low, high = limits if limits is not None else _finite_range(cells, log)
    if not low < high or (log and low <= 0):
        raise InputError(f"limits={(low, high)!r}: need low < high{' and low > 0 for log' if log else ''}")
    norm = LogNorm(low, high) if log else Normalize(low, high)
    few = cells.size <= _FEW_CELLS
    mesh = ax.pcolormesh(
        x,
        y,
        np.ma.masked_invalid(cells),
        norm=norm,
        cmap=colours,
        # A line of paper between a few cells; between many, their own colour closes the hairline gaps
        # that viewers leave between neighbouring polygons.
        edgecolors=PAPER if few else "face",
        linewidth=0.8 if few else 0.3,
    )
    mesh.set_cmap(mesh.get_cmap().with_extremes(bad=GRID))
    ax.grid(False)
    _vector_colour_bar(ax, mesh, label)
    if annotate is not None:
        _annotate_cells(ax, mesh, x, y, cells, annotate)
    return mesh


def _matplotlib_bytes(figure: Figure, kind: str, metadata: dict[str, None]) -> bytes:
    buffer = io.BytesIO()
    # The font, hash and outline settings are read when the figure is saved, not when it is drawn.
    with style():
        figure.savefig(buffer, format=kind, metadata=metadata)
    # A layout engine moves everything a little at each drawing: without this the second rendering of a
    # figure would differ from the first.
    figure.set_layout_engine("none")
    return buffer.getvalue()


def _is_laid_out(figure: Figure) -> bool:
    from matplotlib.layout_engine import PlaceHolderLayoutEngine

    return isinstance(figure.get_layout_engine(), PlaceHolderLayoutEngine | None)


def _drop_boilerplate(root: ET.Element) -> None:
    """Drop metadata (it names the version), matplotlib's page-wide ``*`` rule, and the indentation."""
    for parent in list(root.iter()):
        parent.text = None if not (parent.text or "").strip() else parent.text
        parent.tail = None
        for child in list(parent):
            is_rule = child.tag == f"{_SVG}defs" and child.find(f"{_SVG}style") is not None
            if is_rule or child.tag == f"{_SVG}metadata":
                parent.remove(child)


def _round_element(element: ET.Element) -> None:
    for name, value in element.items():
        if name in _GEOMETRY:
            element.set(name, " ".join(_rounded(value, 2).split()))
        elif name == "transform":
            element.set(name, _CALL.sub(_round_call, value))
        elif name == "style":
            element.set(name, _rounded(value, 3))


def _round_call(match: re.Match[str]) -> str:
    name, arguments = match.groups()
    # A scale multiplies whatever is inside it: glyphs are drawn 6400 units high and scaled by 0.0015625.
    return f"{name}({_rounded(arguments, 6 if name in ('scale', 'matrix') else 2)})"


def _rounded(text: str, decimals: int) -> str:
    # Layouts love halves (12.125), the very points where 12.124999 and 12.125 would part. The nudge moves
    # the border of rounding away from them; matplotlib writes six decimals.
    nudge = 0.3 * 10.0 ** -(decimals + 2) if decimals < 6 else 0.0

    def short(match: re.Match[str]) -> str:
        plain = f"{float(match.group()) + nudge:.{decimals}f}".rstrip("0").rstrip(".")
        return "0" if plain == "-0" else plain

    return _NUMBER.sub(short, text)


def _theme_element(element: ET.Element) -> None:
    declarations = [part.strip() for part in element.get("style", "").split(";") if part.strip()]
    # The ground of a hatch has its colour in an attribute, where no variable can stand.
    paints = [prop for prop in ("fill", "stroke") if prop in element.attrib]
    declarations += [f"{prop}: {element.attrib.pop(prop)}" for prop in paints]
    if declarations:
        element.set("style", "; ".join(_themed(declaration) for declaration in declarations))


def _themed(declaration: str) -> str:
    prop, _, value = declaration.partition(":")
    name = _COLOUR_OF.get(value.strip().lower())
    # The plain colour first: a viewer that knows no variables skips the second declaration.
    return f"{declaration}; {prop}: var(--{name})" if name else declaration


def _renumber_ids(root: ET.Element) -> None:
    """Keep only ids that are referred to, under numbers: matplotlib's hashes see the unrounded floats."""
    used = [reference for element in root.iter() for reference in _references(element)]
    new = {old: f"i{number}" for number, old in enumerate(dict.fromkeys(used), start=1)}
    for element in root.iter():
        old = element.attrib.pop("id", None)
        if old in new:
            element.set("id", new[old])
        for name, value in element.items():
            if name == _HREF:
                element.set(name, f"#{new[value[1:]]}")
            elif "url(#" in value:
                element.set(name, _URL.sub(lambda match: f"url(#{new[match.group(1)]})", value))


def _references(element: ET.Element) -> list[str]:
    linked = element.get(_HREF, "").removeprefix("#")
    urls = [name for value in element.attrib.values() for name in _URL.findall(value)]
    return [linked, *urls] if linked else urls


def _frame(root: ET.Element, title: str) -> None:
    """Give the root a name, both themes, and a size in px that shrinks with the page."""
    width, height = (float(side) for side in root.get("viewBox", "0 0 0 0").split()[2:])
    view_box = _rounded(root.get("viewBox", ""), 2)
    root.attrib.clear()
    root.attrib.update(
        {
            "class": "simkit",
            "role": "img",
            "viewBox": view_box,
            "width": f"{width * _PX_PER_PT:.0f}",
            "height": f"{height * _PX_PER_PT:.0f}",
            "style": "max-width: 100%; height: auto",
        }
    )
    name = ET.Element(f"{_SVG}title")
    name.text = title
    sheet = ET.Element(f"{_SVG}style")
    sheet.text = _stylesheet()
    root[:0] = [name, sheet] if title else [sheet]


def _stylesheet() -> str:
    # Every rule is tied to the class: inside HTML a <style> in an SVG reaches the whole page.
    light = "; ".join(f"--{name}: {colours[0]}" for name, colours in THEME.items())
    dark = "; ".join(f"--{name}: {colours[1]}" for name, colours in THEME.items())
    return (
        f"svg.simkit {{{light}}} "
        f"@media (prefers-color-scheme: dark) {{svg.simkit {{{dark}}}}} "
        "svg.simkit * {stroke-linejoin: round; stroke-linecap: butt}"
    )


def _title_of(figure: Figure) -> str:
    own = [figure.get_suptitle()]
    of_axes = [ax.get_title(where) for ax in figure.axes for where in ("left", "center", "right")]
    return next((" ".join(text.split()) for text in own + of_axes if text.strip()), "")


def _serialise(root: ET.Element) -> str:
    ET.register_namespace("", _SVG[1:-1])
    ET.register_namespace("xlink", _XLINK)
    text = ET.tostring(root, encoding="unicode")
    # One element a line: a change in a figure then shows as a few lines in a diff.
    return text.replace("><", ">\n<") + "\n"


def _checked_cells(
    x_edges: ArrayLike, y_edges: ArrayLike, values: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    x, y, cells = (np.asarray(array, dtype=np.float64) for array in (x_edges, y_edges, values))
    if x.ndim != 1 or y.ndim != 1 or cells.shape != (y.size - 1, x.size - 1) or not cells.size:
        raise InputError(
            f"values has shape {cells.shape}, x_edges {x.shape}, y_edges {y.shape}: "
            "need (rows, columns), (columns + 1,) and (rows + 1,), with at least one cell"
        )
    if not (np.diff(x) > 0).all() or not (np.diff(y) > 0).all():
        raise InputError("x_edges and y_edges must be strictly increasing")
    return x, y, cells


def _finite_range(cells: NDArray[np.float64], log: bool) -> tuple[float, float]:
    shown = cells[np.isfinite(cells) & (cells > 0 if log else True)]
    if not shown.size:
        raise InputError("values has no finite cell to colour; give limits=(low, high)")
    low, high = float(shown.min()), float(shown.max())
    # A constant table is a fair result, not an error; any range around it will do.
    return (low, high) if low < high else (low * 0.5, low * 2) if log else (low - 0.5, low + 0.5)


def _vector_colour_bar(ax: Axes, mesh: QuadMesh, label: str) -> None:
    from matplotlib.cm import ScalarMappable

    steps = ScalarMappable(norm=mesh.norm, cmap=mesh.get_cmap().resampled(_BAR_STEPS))
    bar = ax.figure.colorbar(steps, ax=ax, label=label, pad=0.02, aspect=24)
    # From 50 steps on matplotlib makes the bar a bitmap unless told otherwise.
    solids = cast("QuadMesh", bar.solids)
    solids.set_rasterized(False)
    solids.set_edgecolor("face")
    solids.set_linewidth(0.3)
    bar.outline.set_visible(False)


def _annotate_cells(
    ax: Axes,
    mesh: QuadMesh,
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    cells: NDArray[np.float64],
    annotate: str | Sequence[Sequence[str]],
) -> None:
    texts = _cell_texts(cells, annotate)
    colours = mesh.to_rgba(cells)
    for (row, column), value in np.ndenumerate(cells):
        if not np.isfinite(value):
            continue
        ax.text(
            _middle(x, column, ax.get_xscale()),
            _middle(y, row, ax.get_yscale()),
            texts[row][column],
            ha="center",
            va="center",
            fontsize=7.5,
            color=_readable_on(colours[row, column]),
        )


def _cell_texts(
    cells: NDArray[np.float64], annotate: str | Sequence[Sequence[str]]
) -> Sequence[Sequence[str]]:
    if isinstance(annotate, str):
        return [[format(float(value), annotate).replace("-", "\u2212") for value in row] for row in cells]
    if [len(row) for row in annotate] != [cells.shape[1]] * cells.shape[0]:
        raise InputError(f"annotate must have the shape of values, {cells.shape}")
    return annotate


def _middle(edges: NDArray[np.float64], cell: int, scale: str) -> float:
    low, high = float(edges[cell]), float(edges[cell + 1])
    return (low * high) ** 0.5 if scale == "log" else (low + high) / 2


def _readable_on(colour: NDArray[np.float64]) -> str:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour[:3]]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    # Where black and white text have the same contrast, 4.6 (WCAG 2.1, relative luminance).
    return CELL_DARK if luminance > 0.179 else CELL_LIGHT
