"""A sheet holds one drawing as SVG, PDF and data."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from matplotlib.axes import Axes

from simkit.figures.sheet import csv_text, draw

ROWS = [{"x": 1, "y": 0.25, "who": "a, b"}, {"x": 2, "y": 0.5}]


def _line(ax: Axes) -> None:
    ax.plot([row["x"] for row in ROWS], [row["y"] for row in ROWS])


def test_it_draws_each_panel_and_names_the_drawing() -> None:
    seen: list[Axes] = []
    sheet = draw(seen.append, _line, data=ROWS, columns=["x", "y"], title="Two <panels>")
    assert len(seen) == 1
    assert seen[0].figure.axes[1].get_lines()
    assert ET.fromstring(sheet.svg).findtext("{http://www.w3.org/2000/svg}title") == "Two <panels>"
    assert sheet.pdf.startswith(b"%PDF-")
    assert sheet.csv == "x,y\n1,0.25\n2,0.5\n"


def test_the_same_rows_give_the_same_bytes() -> None:
    first, second = (draw(_line, data=ROWS, columns=["x"], title="A line") for _ in range(2))
    assert first == second


def test_text_with_a_comma_is_quoted_and_a_missing_field_is_empty() -> None:
    assert csv_text(ROWS, ["who", "x"]) == 'who,x\n"a, b",1\n,2\n'
