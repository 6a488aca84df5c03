"""A drawing gives the same bytes everywhere, shows the same picture, and follows the reader's theme."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import Any
from xml.etree import ElementTree as ET

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure

from simkit.errors import InputError, MissingExtraError
from simkit.figures import render
from simkit.figures import style as look
from simkit.figures.render import heatmap, pdf, svg
from simkit.figures.style import style

SVG = "{http://www.w3.org/2000/svg}"


def drawing(nudge: float = 0.0, title: str = "Costs 1.23456 & more") -> Figure:
    x = np.linspace(0.0, 1.0, 7) * (1.0 + nudge)
    with style():
        figure = Figure(figsize=(5, 2.6))
        left, right = figure.subplots(1, 2)
        for power in range(6):
            left.plot(x, x**power, label=f"power {power}")
        left.set(title=title, xlabel=r"rate $\alpha^2$", ylabel="tokens")
        left.legend()
        right.bar([0, 1], [0.25, 0.5], color=[look.TARGET, look.DRAFT], hatch="//")
        right.errorbar([0, 1], [0.3, 0.4], yerr=0.05, fmt="o", color=look.MEASURED)
        right.axhline(0.3, color=look.REFERENCE, ls="--")
    return figure


def mapping(**changes: Any) -> Figure:
    with style():
        figure = Figure(figsize=(5, 2.6))
        parts: dict[str, Any] = {"label": "value"} | changes
        heatmap(figure.subplots(), [0, 1, 2, 3], [0, 1, 2], [[0.1, 0.2, np.nan], [0.7, -0.4, 0.9]], **parts)
    return figure


@pytest.fixture(scope="module")
def text() -> str:
    return svg(drawing())


def digest() -> str:
    """Run in a second process too."""
    import hashlib

    figure = drawing()
    parts = [svg(figure).encode(), pdf(figure), svg(mapping()).encode()]
    return " ".join(hashlib.sha256(part).hexdigest() for part in parts)


def test_two_drawings_are_equal_in_any_process() -> None:
    code = (
        "import importlib.util, sys\n"
        f"spec = importlib.util.spec_from_file_location('drawn', {__file__!r})\n"
        "module = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(module)\n"
        "print(module.digest())\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    root = os.path.dirname(os.path.dirname(os.path.dirname(look.__file__)))
    environment = {**os.environ, "PYTHONHASHSEED": "4711", "PYTHONPATH": root, "MPLBACKEND": "agg"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == digest()


def test_rendering_again_or_in_another_order_changes_nothing(text: str) -> None:
    figure = drawing()
    paper = pdf(figure)
    assert svg(figure) == text == svg(figure)
    assert pdf(figure) == paper


def test_the_last_bits_of_a_float_do_not_show(text: str) -> None:
    plain, moved = drawing(), drawing(nudge=1e-8)
    assert svg(moved) == text == svg(plain)
    # Teeth: in matplotlib's own bytes they do, and a move that can be seen is seen.
    raw = [render._matplotlib_bytes(figure, "svg", {"Date": None}) for figure in (plain, moved)]
    assert raw[0] != raw[1]
    assert svg(drawing(nudge=1e-2)) != text


def test_nothing_moves_and_no_colour_changes() -> None:
    figure = drawing()
    after = ET.fromstring(svg(figure))
    before = ET.fromstring(render._matplotlib_bytes(figure, "svg", {"Date": None}))
    for name in ("d", "transform", "x", "y", "width", "height"):
        pairs = [
            [element.get(name, "") for element in root.iter() if name in element.keys()][skip:]  # noqa: SIM118
            for root, skip in ((before, name in ("width", "height")), (after, name in ("width", "height")))
        ]
        assert len(pairs[0]) == len(pairs[1])
        for old, new in zip(*pairs, strict=True):
            assert re.findall("[a-zA-Z]+", old) == re.findall("[a-zA-Z]+", new)
            old_numbers, new_numbers = (np.array(re.findall(r"-?[\d.]+", part), float) for part in (old, new))
            assert np.abs(old_numbers - new_numbers).max(initial=0) < 0.00504
            if "scale" in old:
                assert re.findall(r"scale\([^)]*\)", old) == re.findall(r"scale\([^)]*\)", new)
    colours = [
        {colour for element in root.iter() for colour in re.findall(r"#\w{6}\b", element.get("style", ""))}
        for root in (before, after)
    ]
    assert colours[0] == colours[1]
    assert set(look.CYCLE) <= colours[1]


@pytest.mark.parametrize(
    ("raw", "rounded"),
    [
        ("12.125", "12.13"),
        ("12.124999", "12.13"),
        ("-0.000001", "0"),
        ("-0.004", "0"),
        ("3.100000", "3.1"),
        ("1e-07", "0"),
        ("M 1.23456 7 L -2.5 3", "M 1.23 7 L -2.5 3"),
        ("fill: #009e73", "fill: #009e73"),
        ("fill: #1e5000; stroke-width: 1.23456", "fill: #1e5000; stroke-width: 1.23"),
        ("url(#p1e-5)", "url(#p1e-5)"),
    ],
)
def test_rounding(raw: str, rounded: str) -> None:
    assert render._rounded(raw, 2) == rounded


def test_text_is_not_rounded(text: str) -> None:
    root = ET.fromstring(text)
    assert root.findtext(f"{SVG}title") == "Costs 1.23456 & more"


def test_it_can_be_inlined(text: str) -> None:
    root = ET.fromstring(text)
    assert text.startswith("<svg ")
    assert text.endswith("</svg>\n")
    assert root.get("role") == "img"
    assert root.get("viewBox") == "0 0 360 187.2"
    assert (root.get("width"), root.get("height")) == ("480", "250")
    assert "max-width: 100%" in root.get("style", "")
    without_names = re.sub(r'xmlns(:\w+)?="[^"]*"', "", text)
    for word in ("http", "<?xml", "DOCTYPE", "metadata", "Matplotlib", "<image"):
        assert word not in without_names


def test_every_reference_has_its_target_and_no_id_is_idle(text: str) -> None:
    ids = re.findall(r' id="([^"]+)"', text)
    used = set(re.findall(r'href="#([^"]+)"', text)) | set(re.findall(r"url\(#([^)]+)\)", text))
    assert len(ids) == len(set(ids))
    assert set(ids) == used
    # In the order in which they are referred to, not by matplotlib's hashes.
    assert used == {f"i{number}" for number in range(1, len(used) + 1)}


def test_both_themes(text: str) -> None:
    sheet = ET.fromstring(text).findtext(f"{SVG}style") or ""
    light, dark = sheet.split("@media (prefers-color-scheme: dark)")
    for name, (day, night) in look.THEME.items():
        assert f"--{name}: {day}" in light
        assert f"--{name}: {night}" in dark
    assert all(rule.strip().startswith("svg.simkit") for rule in re.findall(r"[^{};]+(?=\{-)", sheet))


@pytest.mark.parametrize("name", look.THEME)
def test_no_themed_colour_stays_fixed(text: str, name: str) -> None:
    body = text.partition("</style>")[2]
    plain = body.count(look.THEME[name][0])
    assert plain > 0
    assert plain == body.count(f"var(--{name})")
    # The fixed colour comes first, for viewers that know no variables.
    assert (
        body.count(f"{look.THEME[name][0]}; fill: var") + body.count(f"{look.THEME[name][0]}; stroke: var")
        == plain
    )


def test_the_title_can_be_given() -> None:
    assert "<title>A &lt; B</title>" in svg(Figure(), title="A < B")
    assert "<title>" not in svg(Figure())


def test_a_bitmap_is_refused() -> None:
    with style():
        figure = Figure()
        figure.subplots().imshow([[0, 1], [1, 0]])
    with pytest.raises(InputError, match="heatmap"):
        svg(figure)


def test_the_style_starts_from_the_defaults_and_ends(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with matplotlib.rc_context({"lines.linewidth": 9.0, "xtick.top": True, "font.size": 30.0}):
        with style():
            assert matplotlib.rcParams["lines.linewidth"] == 1.5
            assert not matplotlib.rcParams["xtick.top"]
        assert matplotlib.rcParams["font.size"] == 30.0
        assert svg(drawing()) == text
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match="reports"), style():
        pass


def test_series_differ_without_colour() -> None:
    assert len(set(look.CYCLE)) == len(set(look.MARKERS)) == len(look.CYCLE)
    lines = drawing().axes[0].get_lines()
    assert len({line.get_marker() for line in lines}) == 6


def test_the_roles_are_told_apart() -> None:
    roles = [look.TARGET, look.DRAFT, look.MEASURED, look.THEORY, look.FAULT, look.REFERENCE]
    assert len(set(roles)) == len(roles)


def test_a_heat_map_is_all_vectors() -> None:
    for figure in (mapping(), mapping(annotate=None, limits=(-1, 1), colours="viridis")):
        assert "<image" not in svg(figure)
    with style():
        figure = Figure()
        grid = np.arange(961.0).reshape(31, 31)
        heatmap(figure.subplots(), np.arange(32), np.arange(32), grid, label="many", annotate=None)
    assert "<image" not in svg(figure)
    # The bar is drawn in steps, but not so coarse that they show.
    assert 64 in [
        part.get_array().size for part in figure.axes[1].collections if part.get_array() is not None
    ]


def test_a_heat_map_writes_its_numbers() -> None:
    def words(figure: Figure) -> list[str]:
        return [note.get_text() for note in figure.axes[0].texts]

    assert words(mapping()) == ["0.10", "0.20", "0.70", "−0.40", "0.90"]  # none on the NaN
    assert words(mapping(annotate=[list("abc"), list("def")])) == ["a", "b", "d", "e", "f"]
    assert words(mapping(annotate=None)) == []
    assert mapping().axes[1].get_ylabel() == "value"


def test_an_empty_cell_takes_the_theme() -> None:
    mesh = mapping().axes[0].collections[0]
    assert matplotlib.colors.to_hex(mesh.to_rgba(np.ma.masked_invalid([np.nan]))[0]) == look.GRID


def test_numbers_on_cells_have_contrast() -> None:
    def luminance(colour: np.ndarray) -> float:
        linear = np.where(colour <= 0.04045, colour / 12.92, ((colour + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    for name in ("cividis", "viridis", "coolwarm"):
        for cell in matplotlib.colormaps[name](np.linspace(0, 1, 256)):
            note = matplotlib.colors.to_rgb(render._readable_on(cell))
            low, high = sorted((luminance(cell[:3]), luminance(np.array(note))))
            assert (high + 0.05) / (low + 0.05) >= 4.5
    # On a cell, which keeps its colour, a text must keep its colour too.
    assert not {look.CELL_DARK, look.CELL_LIGHT} & {light for light, _ in look.THEME.values()}


def test_a_log_scale_puts_numbers_in_the_middle_of_cells() -> None:
    with style():
        figure = Figure()
        ax = figure.subplots()
        ax.set_xscale("log")
        heatmap(ax, [1, 100, 10000], [0, 1], [[1e-3, 1e3]], label="rounds", log=True)
    assert [note.get_position()[0] for note in ax.texts] == pytest.approx([10.0, 1000.0])
    assert "<image" not in svg(figure)


def test_a_constant_heat_map_is_drawn() -> None:
    with style():
        heatmap(Figure().subplots(), [0, 1], [0, 1], [[0.0]], label="all zero")
        heatmap(Figure().subplots(), [0, 1], [0, 1], [[3.0]], label="all three", log=True)


@pytest.mark.parametrize(
    ("x", "y", "values", "more", "message"),
    [
        ([0, 1], [0, 1], [[1, 2]], {}, "need"),
        ([0, 1, 2], [0, 1], [1, 2], {}, "need"),
        ([0], [0, 1], [[]], {}, "need"),
        ([0, 2, 1], [0, 1], [[1, 2]], {}, "strictly increasing"),
        ([0, 1, 2], [1, 0], [[1, 2]], {}, "strictly increasing"),
        ([0, 1], [0, 1], [[np.nan]], {}, "no finite cell"),
        ([0, 1], [0, 1], [[-1.0]], {"log": True}, "no finite cell"),
        ([0, 1, 2], [0, 1], [[1, 2]], {"limits": (2, 1)}, "low < high"),
        ([0, 1, 2], [0, 1], [[1, 2]], {"limits": (0, 1), "log": True}, "low > 0"),
        ([0, 1, 2], [0, 1], [[1, 2]], {"annotate": [["a"]]}, "shape"),
    ],
)
def test_a_heat_map_that_does_not_fit(
    x: Any, y: Any, values: Any, more: dict[str, Any], message: str
) -> None:
    with style(), pytest.raises(InputError, match=message):
        heatmap(Figure().subplots(), x, y, values, label="z", **more)
