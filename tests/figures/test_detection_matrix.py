"""The detection matrix: a cell for each fault and test, its number where the test sees it, else "blind"."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure

from simkit.figures import render
from simkit.figures import style as look
from simkit.figures.detection_matrix import BLIND, detection_matrix, short
from simkit.figures.style import style
from simkit.verify.detect import MOST_DECODES

TESTS = {"judge": "judge", "support only": "support", "K = 1": "one draft"}
ROWS = [
    {"fault": fault, "family": family, "needed": dict(zip(TESTS, needed, strict=True))}
    for fault, family, needed in (
        ("first", "a", (834, None, 834)),
        ("second", "a", (26, 12, None)),
        ("third", "b", (77_261_933, None, MOST_DECODES)),
    )
]


def drawn(rows: Any = ROWS, apart: int = 2) -> Axes:
    with style():
        return detection_matrix(Figure(figsize=(5.0, 3.0)).subplots(), rows, tests=TESTS, apart=apart)


def cells(ax: Axes) -> dict[tuple[str, str], tuple[str, float]]:
    """Return text and value of each cell by fault and heading, found by their places."""
    (mesh,) = (part for part in ax.collections if isinstance(part, QuadMesh))
    corners = mesh.get_coordinates()
    x, y, values = corners[0, :, 0], corners[:, 0, 1], np.ma.filled(mesh.get_array(), np.nan)
    faults = dict(zip(ax.get_yticks(), (tick.get_text() for tick in ax.get_yticklabels()), strict=True))
    tests = dict(zip(ax.get_xticks(), (tick.get_text() for tick in ax.get_xticklabels()), strict=True))
    found = {}
    for text in ax.texts:
        at_x, at_y = text.get_position()
        if at_x in tests:
            value = values[np.searchsorted(y, at_y) - 1, np.searchsorted(x, at_x) - 1]
            found[faults[at_y], tests[at_x]] = (text.get_text(), float(value))
    return found


def test_each_cell_has_its_number_and_colour_or_is_blind() -> None:
    found = cells(drawn())
    assert len(found) == 9
    for row in ROWS:
        for test, heading in TESTS.items():
            needed = row["needed"][test]
            text, value = found[row["fault"], heading]
            assert text == (BLIND if needed is None else short(needed))
            assert np.isnan(value) if needed is None else value == needed


def test_colours_follow_the_logarithm_and_are_the_same_in_every_picture() -> None:
    norms = [
        next(part for part in drawn(rows).collections if isinstance(part, QuadMesh)).norm
        for rows in (ROWS, ROWS[1:2])
    ]
    assert [(norm.vmin, norm.vmax) for norm in norms] == [(1.0, 1e8)] * 2
    assert np.allclose(norms[0]([1.0, 1e4, 1e8]), [0.0, 0.5, 1.0])


def test_families_and_the_two_groups_of_tests_stand_apart_and_the_first_fault_on_top() -> None:
    ax = drawn()
    assert np.diff(ax.get_yticks()).tolist() == [1.0, 1.25]
    assert np.diff(ax.get_xticks()).tolist() == [1.0, 1.25]
    assert np.diff(drawn(apart=0).get_xticks()).tolist() == [1.0, 1.0]
    top, bottom = ax.transData.transform([(0.0, ax.get_yticks()[0]), (0.0, ax.get_yticks()[-1])])[:, 1]
    assert top > bottom
    gaps = [patch for patch in ax.patches if patch.get_facecolor()[:3] == (1.0, 1.0, 1.0)]
    assert sorted(min(patch.get_width(), patch.get_height()) for patch in gaps) == [0.25, 0.25]
    families = [text for text in ax.texts if text.get_text() in ("a", "b")]
    assert [text.get_position()[1] for text in families] == [1.0, 2.75]


def test_the_same_rows_give_the_same_bytes_and_others_do_not() -> None:
    pictures = [render.svg(drawn(rows).figure) for rows in (ROWS, ROWS, ROWS[:2])]
    assert pictures[0] == pictures[1] != pictures[2]


def test_the_word_blind_follows_the_readers_theme() -> None:
    words = [text for text in drawn().texts if text.get_text() == BLIND]
    assert {text.get_color() for text in words} == {look.INK}
