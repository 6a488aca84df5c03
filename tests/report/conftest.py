"""Small pages with real figures in them, drawn once."""

from __future__ import annotations

import pytest

from simkit.figures.render import heatmap, pdf, svg
from simkit.figures.style import MEASURED, THEORY, style
from simkit.report import Badge, Page, Picture, Table, Text

HOSTILE = "<script>alert('x')</script> & \"quoted\" `a<b`"


def _line(power: int) -> Picture:
    from matplotlib.figure import Figure

    with style():
        figure = Figure(figsize=(3, 2))
        ax = figure.subplots()
        ax.plot([0, 1, 2], [0, 1, 2**power], color=THEORY)
        ax.errorbar([0, 1], [0, 1], yerr=0.1, fmt="o", color=MEASURED)
        ax.set(xlabel="x", title=f"power {power}")
    return Picture(f"line-{power}", svg(figure), f"A line {power}.", "A line.", "x,y\n0,0\n", pdf(figure))


def _map() -> Picture:
    from matplotlib.figure import Figure

    with style():
        figure = Figure(figsize=(3, 2))
        heatmap(figure.subplots(), [0, 1, 2], [0, 1, 2], [[0, 1], [2, 3]], label="value")
    return Picture("map", svg(figure), "A map.", "A map.", "x,y,z\n0,0,0\n", pdf(figure))


@pytest.fixture(scope="session")
def pictures() -> list[Picture]:
    return [_line(1), _line(2), _map()]


@pytest.fixture(scope="session")
def pages(pictures: list[Picture]) -> list[Page]:
    rows = [
        ["exact | sampler", 1_000_000, 3e-12, Badge("pass", "as expected")],
        [HOSTILE, None, float("nan"), Badge("inconclusive", "few rounds")],
    ]
    table = Table(["sampler", "rounds", "p-value", "verdict"], rows, "Each sampler.")
    known = {"command": "simkit run law --seed 7 && true", "seed": 20240917, "numpy": "2.4.6"}
    first = Page(
        "law",
        "The law",
        "Does it hold?",
        "Yes, by Theorem 1.",
        "It does.",
        [Badge("pass", "exact"), Badge("fail", "planted fault")],
        [Text("First."), pictures[0], Text("Then `code`.", heading="Part"), table, *pictures[1:]],
        known,
    )
    badges = [Badge("info", HOSTILE)]
    second = Page("hostile", HOSTILE, HOSTILE, HOSTILE, HOSTILE, badges, [Text(HOSTILE, HOSTILE)], known)
    third = Page("last", "Last", "Why?", "So.", "So.", [Badge("inconclusive", "few")], [], known)
    return [first, second, third]
