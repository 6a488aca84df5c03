"""The look of every figure: one colour for each role, one set of sizes, one light and one dark theme."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

from simkit.errors import MissingExtraError

WIDTH = 6.4
"""Width of a figure in inches: the text width of a paper, and the column of the HTML report."""

# The light colours are also marks: `render.svg` finds exactly these values in what matplotlib wrote and
# replaces them by CSS variables that carry a dark value too. So they must not be used for anything else
# (text on a coloured cell, which looks the same in both themes, has the colours below).
INK = "#1f2328"
PAPER = "#ffffff"
GRID = "#d8dce2"
MUTED = "#59636e"

# Okabe & Ito (2008), "Color Universal Design": told apart with every common colour-vision deficiency.
BLUE = "#0072b2"
ORANGE = "#e69f00"
GREEN = "#009e73"
VERMILLION = "#d55e00"
PURPLE = "#cc79a7"
SKY = "#56b4e9"

TARGET = BLUE
"""The target model's distribution p."""
DRAFT = ORANGE
"""The draft model's distribution q."""
MEASURED = INK
"""What a sampler did: counts, estimates and their intervals (draw them as markers)."""
THEORY = GREEN
"""What a law predicts (draw it as a line)."""
FAULT = VERMILLION
"""A planted fault, a rejected hypothesis, a wrong sampler."""
REFERENCE = MUTED
"""A guide that is neither measured nor predicted: zero, the diagonal, a threshold."""

CELL_DARK = "#000000"
CELL_LIGHT = "#fefefe"
"""Text on a coloured cell; not ``INK`` and ``PAPER``, because a cell keeps its colour in the dark theme."""

CYCLE = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY)
MARKERS = ("o", "s", "^", "D", "v", "P")
"""Series differ by marker as well as by colour, for print in grey."""

THEME = MappingProxyType(
    {
        "ink": (INK, "#e6edf3"),
        "paper": (PAPER, "#0d1117"),
        "grid": (GRID, "#30363d"),
        "muted": (MUTED, "#9aa4af"),
        # The one Okabe-Ito colour too dark for a dark page; still darker than SKY.
        "blue": (BLUE, "#2a92d6"),
    }
)
"""Name of a CSS variable -> its (light, dark) value."""


@contextmanager
def style() -> Iterator[None]:
    """Draw in the project's style inside this block, whatever the user's matplotlibrc says.

    Starts from matplotlib's own defaults, so that the same code gives the same bytes on every machine.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> with style():
    ...     figure = Figure(figsize=(WIDTH, 3.2))
    ...     axes = figure.subplots()
    >>> axes.spines["top"].get_visible()
    False
    """
    try:
        import matplotlib
        from cycler import cycler
    except ImportError as error:
        raise MissingExtraError("matplotlib", "reports") from error

    cycle = cycler(color=CYCLE) + cycler(marker=MARKERS)
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        settings: Any = {**_text(), **_axes(), **_marks(), **_output(), "axes.prop_cycle": cycle}
        matplotlib.rcParams.update(settings)
        yield


def _text() -> dict[str, Any]:
    return {
        # DejaVu Sans comes with matplotlib: no machine falls back to another font.
        "font.family": "sans-serif",
        "font.sans-serif": ["DejaVu Sans"],
        "font.size": 9.0,
        "mathtext.fontset": "dejavusans",
        "text.color": INK,
        "axes.titlesize": 9.5,
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
        "axes.titlepad": 7.0,
        "axes.labelsize": 9.0,
        "xtick.labelsize": 8.0,
        "ytick.labelsize": 8.0,
        "legend.fontsize": 8.0,
        "legend.title_fontsize": 8.0,
        "figure.titlesize": 10.5,
        "figure.titleweight": "bold",
        # A locale's decimal comma or another minus sign would change the bytes.
        "axes.formatter.use_locale": False,
        "axes.unicode_minus": True,
        "axes.formatter.use_mathtext": True,
        "axes.formatter.useoffset": False,
    }


def _axes() -> dict[str, Any]:
    return {
        "figure.figsize": (WIDTH, 3.4),
        "figure.facecolor": PAPER,
        "figure.edgecolor": "none",
        "figure.constrained_layout.use": True,
        "figure.constrained_layout.w_pad": 0.06,
        "figure.constrained_layout.h_pad": 0.06,
        "axes.facecolor": PAPER,
        "axes.edgecolor": INK,
        "axes.labelcolor": INK,
        "axes.titlecolor": INK,
        "axes.linewidth": 0.7,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.axisbelow": True,
        "axes.grid": True,
        "axes.xmargin": 0.03,
        "axes.ymargin": 0.06,
        "grid.color": GRID,
        "grid.linewidth": 0.6,
        "xtick.color": INK,
        "ytick.color": INK,
        "xtick.major.width": 0.7,
        "ytick.major.width": 0.7,
        "xtick.minor.width": 0.5,
        "ytick.minor.width": 0.5,
        "xtick.direction": "out",
        "ytick.direction": "out",
        "legend.frameon": False,
        "legend.handlelength": 1.8,
        "legend.borderaxespad": 0.3,
    }


def _marks() -> dict[str, Any]:
    return {
        "lines.linewidth": 1.5,
        "lines.markersize": 4.5,
        "lines.markeredgewidth": 1.1,
        "errorbar.capsize": 2.0,
        "patch.linewidth": 0.6,
        "patch.edgecolor": PAPER,
        "hatch.linewidth": 0.7,
        "hatch.color": INK,
        "image.cmap": "cividis",
    }


def _output() -> dict[str, Any]:
    return {
        # Glyphs as outlines. As text the file would be smaller, but a viewer without DejaVu Sans (each
        # phone, macOS, Windows) would set it in another width: labels collide and formulas fall apart.
        # The words stay reachable through the title, the caption and the data beside the picture.
        "svg.fonttype": "path",
        "svg.hashsalt": "simkit",
        # TrueType, not Type 3: publishers ask for it, and the text can be searched.
        "pdf.fonttype": 42,
        "path.simplify": False,
        "savefig.bbox": None,
        "savefig.facecolor": "auto",
        "savefig.transparent": False,
    }
