"""A page that lacks something a reader needs cannot be made."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest

from simkit.errors import InputError
from simkit.report import Badge, Page, Picture, Table, Text

DOT = '<svg xmlns="http://www.w3.org/2000/svg"><circle id="c" r="1"/><use href="#c"/></svg>'


def page(**changes: Any) -> Page:
    parts: dict[str, Any] = {
        "name": "law",
        "title": "Law",
        "question": "Why?",
        "expectation": "So.",
        "finding": "So.",
        "badges": [Badge("pass", "ok")],
        "blocks": [Text("Words.")],
        "provenance": {"command": "simkit run law"},
    }
    return Page(**(parts | changes))


def picture(**changes: Any) -> Picture:
    parts: dict[str, Any] = {"name": "dot", "svg": DOT, "alt": "A dot.", "caption": "A dot.", "csv": "x\n0\n"}
    return Picture(**(parts | changes))


def test_a_good_page_is_frozen_through_and_through() -> None:
    badges, known = [Badge("pass", "ok")], {"command": "run"}
    made = page(badges=badges, blocks=[picture()], provenance=known)
    badges.clear()
    known.clear()
    assert made.badges == (Badge("pass", "ok"),)
    assert made.provenance == {"command": "run"}
    assert made.pictures == (picture(),)
    with pytest.raises(TypeError):
        made.provenance["command"] = "other"  # type: ignore[index]
    with pytest.raises(FrozenInstanceError):
        made.title = "Other"  # type: ignore[misc]


@pytest.mark.parametrize("field", ["title", "question", "expectation", "finding"])
def test_no_empty_words(field: str) -> None:
    with pytest.raises(InputError, match=field):
        page(**{field: "  "})


@pytest.mark.parametrize("name", ["", "Law", "a/b", "../law", "a.b", "-a", "index", "readme", "law\n"])
def test_names_are_file_names(name: str) -> None:
    with pytest.raises(InputError, match="name"):
        page(name=name)
    with pytest.raises(InputError, match="name"):
        picture(name=name)


def test_a_page_has_a_verdict() -> None:
    with pytest.raises(InputError, match="no badge"):
        page(badges=[])


@pytest.mark.parametrize("provenance", [{}, {"seed": 7}, {"command": " "}])
def test_a_page_can_be_repeated(provenance: dict[str, object]) -> None:
    with pytest.raises(InputError, match="command"):
        page(provenance=provenance)


def test_a_page_takes_blocks_only() -> None:
    with pytest.raises(InputError, match="no Text, Table or Picture"):
        page(blocks=["words"])


def test_pictures_of_a_page_have_their_own_names() -> None:
    with pytest.raises(InputError, match="given twice: dot"):
        page(blocks=[picture(), picture()])


def test_badges_know_four_states() -> None:
    with pytest.raises(InputError, match="status='ok'"):
        Badge("ok", "fine")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="badge"):
        Badge("pass", "")


def test_numpy_scalars_become_plain_numbers() -> None:
    table = Table(["a", "b"], [[np.int64(3), np.float32(0.5)]], "Numbers.")
    assert [type(cell) for cell in table.rows[0]] == [int, float]


@pytest.mark.parametrize("cell", [True, np.True_, [1], 1j, b"x"])
def test_no_other_cells(cell: object) -> None:
    with pytest.raises(InputError, match="cell"):
        Table(["a"], [[cell]], "Cells.")  # type: ignore[list-item]


def test_rows_fit_the_columns() -> None:
    with pytest.raises(InputError, match="row 1 has 1 cells, need 2"):
        Table(["a", "b"], [[1, 2], [3]], "Ragged.")
    with pytest.raises(InputError, match="no columns"):
        Table([], [], "Empty.")


@pytest.mark.parametrize("field", ["alt", "caption", "csv"])
def test_a_picture_is_told_in_words_and_data(field: str) -> None:
    with pytest.raises(InputError, match=field):
        picture(**{field: ""})


@pytest.mark.parametrize(
    "inside",
    [
        "<script>1</script>",
        '<image href="#c"/>',
        '<foreignObject><a href="x"/></foreignObject>',
        '<use href="https://example.org/a.svg#b"/>',
        '<circle r="1" onclick="x()"/>',
        '<circle r="1" style="fill: url(http://example.org/x)"/>',
        '<circle r="1" fill="url( \'other.svg#a\')"/>',
        "<style>@import 'x.css';</style>",
    ],
)
def test_a_picture_loads_and_runs_nothing(inside: str) -> None:
    with pytest.raises(InputError, match="runs or loads"):
        picture(svg=f'<svg xmlns="http://www.w3.org/2000/svg">{inside}</svg>')


def test_a_picture_is_one_well_formed_element() -> None:
    with pytest.raises(InputError, match="start with '<svg'"):
        picture(svg=f'<?xml version="1.0"?>{DOT}')
    with pytest.raises(InputError, match="well-formed"):
        picture(svg="<svg><g></svg>")
    with pytest.raises(InputError, match="not a PDF"):
        picture(pdf=b"GIF89a")
