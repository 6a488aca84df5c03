"""Pages as HTML: each file stands alone, without a script and without a network."""

from __future__ import annotations

import base64
import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from simkit.errors import MissingExtraError
from simkit.figures.style import THEME
from simkit.report.document import Badge, Page, Picture, Table, Text, cell_text

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

GENERATOR = '<meta name="generator" content="simkit report">'
"""Stands in every HTML file of a report, so that the next report knows which files are its own."""

_SVG = "http://www.w3.org/2000/svg"
_XLINK = "http://www.w3.org/1999/xlink"
_CODE = re.compile(r"`([^`]+)`")
_URL = re.compile(r"url\(#([^)]+)\)")
_ID_LISTS = frozenset({"aria-labelledby", "aria-describedby"})


def page_html(page: Page, others: Sequence[Page]) -> str:
    """One experiment as a whole HTML document.

    Parameters
    ----------
    page
        The page to write.
    others
        All pages of the report in reading order, for the links; ``page`` may be among them.

    Returns
    -------
    str
        HTML that loads nothing, follows the reader's light or dark theme and fits a phone.

    Raises
    ------
    MissingExtraError
        If jinja2 is not installed.

    Examples
    --------
    >>> page = Page("law", "A < B", "Why?", "So.", "So.", [Badge("pass", "ok")], [], {"command": "run"})
    >>> "<h1>A &lt; B</h1>" in page_html(page, [page])
    True
    """
    pages = list(others)
    place = next((index for index, other in enumerate(pages) if other.name == page.name), None)
    before = pages[place - 1] if place else None
    after = pages[place + 1] if place is not None and place + 1 < len(pages) else None
    template = _environment().get_template("page.html.j2")
    return template.render(page=page, pages=pages, before=before, after=after)


def index_html(pages: Sequence[Page]) -> str:
    """The first page of a report: each experiment's question, finding, verdicts and first picture.

    Raises
    ------
    MissingExtraError
        If jinja2 is not installed.

    Examples
    --------
    >>> page = Page("law", "Law", "Why?", "So.", "It is so.", [Badge("pass", "ok")], [], {"command": "run"})
    >>> 'href="law.html"' in index_html([page])
    True
    """
    counts = Counter(badge.status for page in pages for badge in page.badges)
    return _environment().get_template("index.html.j2").render(pages=pages, counts=counts)


def inline_svg(picture: Picture) -> str:
    """The SVG of a picture for use inside a document: its ids carry the picture's name, its label is ``alt``.

    Two drawings in one document would otherwise share ids, and the second show the first one's glyphs.

    Examples
    --------
    >>> shape = '<svg xmlns="http://www.w3.org/2000/svg"><path id="a"/><use href="#a"/></svg>'
    >>> inlined = inline_svg(Picture("dot", shape, "A dot.", "A dot.", "x"))
    >>> 'id="dot.a"' in inlined, 'href="#dot.a"' in inlined, 'aria-label="A dot."' in inlined
    (True, True, True)
    """
    root = ET.fromstring(picture.svg)
    # A <title> would pop up as a tooltip wherever the mouse rests; the label says the same to a reader.
    for title in root.findall(f"{{{_SVG}}}title"):
        root.remove(title)
    for element in root.iter():
        # No picture name holds a dot, so "name.id" cannot meet the id of another picture or of the page.
        _prefix_ids(element, f"{picture.name}.")
    root.set("role", "img")
    root.set("aria-label", picture.alt)
    ET.register_namespace("", _SVG)
    ET.register_namespace("xlink", _XLINK)
    return ET.tostring(root, encoding="unicode")


def _prefix_ids(element: ET.Element, prefix: str) -> None:
    for key, value in element.items():
        name = key.rpartition("}")[2]
        if name == "id":
            element.set(key, prefix + value)
        elif name == "href":
            element.set(key, f"#{prefix}{value[1:]}")
        elif name in _ID_LISTS:
            element.set(key, " ".join(prefix + word for word in value.split()))
        elif "url(#" in value:
            element.set(key, _URL.sub(rf"url(#{prefix}\1)", value))


@cache
def _environment() -> Environment:
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError as error:
        raise MissingExtraError("jinja2", "reports") from error

    environment = Environment(
        loader=PackageLoader("simkit.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(prose=_prose, drawing=_drawing, data_link=_data_link, cell=cell_text)
    environment.tests.update(
        badge=lambda part: isinstance(part, Badge),
        text=lambda part: isinstance(part, Text),
        table=lambda part: isinstance(part, Table),
        numeric=lambda cell: isinstance(cell, int | float),
    )
    environment.globals.update(theme=THEME, generator=_markup(GENERATOR))
    return environment


def _markup(html: str) -> Markup:
    from markupsafe import Markup

    return Markup(html)


def _prose(text: str) -> Markup:
    """Escape plain text; words between backticks become code."""
    from markupsafe import escape

    return _markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))


def _drawing(picture: Picture) -> Markup:
    return _markup(inline_svg(picture))


def _data_link(picture: Picture) -> str:
    """The data inside the link itself: the file stands alone, and nothing is fetched."""
    return "data:text/csv;base64," + base64.b64encode(picture.csv.encode("utf-8")).decode("ascii")
