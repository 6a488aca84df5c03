"""What an experiment says, as plain data: no HTML, no Markdown, no matplotlib."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from types import MappingProxyType
from typing import Literal, TypeAlias, get_args
from xml.etree import ElementTree as ET

from simkit.errors import InputError
from simkit.report.numerals import number

Status: TypeAlias = Literal["pass", "fail", "inconclusive", "info"]
Cell: TypeAlias = "str | int | float | Badge | None"

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")
_RESERVED = frozenset({"index", "readme", "figures"})
# All that an SVG could load or run: elements that do, and references that are not to its own "#id".
_ACTIVE = frozenset({"script", "foreignObject", "image", "iframe", "a"})
_OUTSIDE = re.compile(r"url\(\s*['\"]?(?!#)|@import")


@dataclass(frozen=True)
class Badge:
    """A verdict in one word and a few more.

    Parameters
    ----------
    status
        ``"pass"``, ``"fail"``, ``"inconclusive"`` or ``"info"``.
    text
        What passed or failed, in a few words.

    Raises
    ------
    InputError
        If the status is not one of the four, or the text is empty.

    Examples
    --------
    >>> Badge("pass", "exact to 1e-12").status
    'pass'
    """

    status: Status
    text: str

    def __post_init__(self) -> None:
        """Check both fields."""
        if self.status not in get_args(Status):
            raise InputError(f"status={self.status!r}: need one of {', '.join(get_args(Status))}")
        _need_text("text of a badge", self.text)


@dataclass(frozen=True)
class Table:
    """Rows under named columns.

    Parameters
    ----------
    columns
        Column titles, with units.
    rows
        One cell for each column; None is an empty cell. Text stays as it is, so write what must not be
        rounded or grouped (a seed, a version) as ``str``.
    caption
        What the table shows, in a sentence.

    Raises
    ------
    InputError
        If a row has another length than ``columns``, or a cell is of another type.

    Examples
    --------
    >>> Table(["sampler", "p-value"], [["exact", 0.31]], "One test.").rows
    (('exact', 0.31),)
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    caption: str

    def __post_init__(self) -> None:
        """Check the shape and freeze the rows."""
        _need_text("caption of a table", self.caption)
        columns = tuple(self.columns)
        if not columns:
            raise InputError(f"table {self.caption!r} has no columns")
        for column in columns:
            _need_text(f"column title in table {self.caption!r}", column)
        rows = tuple(tuple(_plain_cell(cell, self.caption) for cell in row) for row in self.rows)
        for index, row in enumerate(rows):
            if len(row) != len(columns):
                raise InputError(
                    f"table {self.caption!r}: row {index} has {len(row)} cells, need {len(columns)}"
                )
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "rows", rows)


@dataclass(frozen=True)
class Picture:
    r"""A figure that is already drawn, and the data it was drawn from.

    Parameters
    ----------
    name
        File name without ending: lower-case letters, digits, ``-`` and ``_``; unique in the report.
    svg
        One ``<svg>`` element that loads nothing, as ``simkit.figures.render.svg`` gives it.
    alt
        What a reader who cannot see the picture needs to know of it.
    caption
        What the figure shows and how to read it.
    csv
        The data of the figure as CSV text.
    pdf
        The same figure for a paper, as ``simkit.figures.render.pdf`` gives it; needed by ``write_paper``.

    Raises
    ------
    InputError
        If a text is missing, the name is no file name, or the SVG is malformed, runs or loads anything.

    Examples
    --------
    >>> dot = '<svg xmlns="http://www.w3.org/2000/svg"><circle r="1"/></svg>'
    >>> Picture("dot", dot, "A dot.", "A dot, drawn.", "x,y\n0,0\n").name
    'dot'
    """

    name: str
    svg: str
    alt: str
    caption: str
    csv: str
    pdf: bytes | None = None

    def __post_init__(self) -> None:
        """Check the name, the texts and that the SVG is self-contained."""
        _need_name("picture", self.name)
        for what in ("alt", "caption", "csv"):
            _need_text(f"{what} of picture {self.name!r}", getattr(self, what))
        _need_closed_svg(self.name, self.svg)
        if self.pdf is not None and not self.pdf.startswith(b"%PDF-"):
            raise InputError(f"pdf of picture {self.name!r} is not a PDF file")


@dataclass(frozen=True)
class Text:
    """A paragraph; words between backticks are code.

    Parameters
    ----------
    paragraph
        Plain text, nothing in it is markup but the backtick.
    heading
        If given, starts a section with this title.

    Raises
    ------
    InputError
        If the paragraph is empty.

    Examples
    --------
    >>> Text("The sampler `exact` keeps the law.", heading="Exactness").heading
    'Exactness'
    """

    paragraph: str
    heading: str = ""

    def __post_init__(self) -> None:
        """Check that there is a paragraph."""
        _need_text("paragraph", self.paragraph)


Block: TypeAlias = Text | Table | Picture


@dataclass(frozen=True)
class Page:
    """One experiment: what was asked, expected and found, the evidence, and how to repeat it.

    Parameters
    ----------
    name
        File name without ending, unique in the report; not ``index``, ``readme`` or ``figures``.
    title, question, expectation, finding
        A sentence or two each; plain text as in :class:`Text`.
    badges
        The verdicts, at least one.
    blocks
        Paragraphs, tables and pictures in reading order.
    provenance
        Seeds, versions and parameters by name, written as they are; ``"command"`` repeats the experiment.

    Raises
    ------
    InputError
        If a text, the badges or the command are missing, or two pictures share a name.

    Examples
    --------
    >>> page = Page("law", "The law", "Does it hold?", "Yes.", "It does.", [Badge("pass", "exact")],
    ...             [Text("See the proof.")], {"command": "simkit run law", "seed": 7})
    >>> page.provenance["seed"], page.pictures
    (7, ())
    """

    name: str
    title: str
    question: str
    expectation: str
    finding: str
    badges: Sequence[Badge]
    blocks: Sequence[Block]
    provenance: Mapping[str, str | int | float]

    def __post_init__(self) -> None:
        """Check that nothing a reader needs is missing, and freeze the parts."""
        _need_name("page", self.name)
        for what in ("title", "question", "expectation", "finding"):
            _need_text(f"{what} of page {self.name!r}", getattr(self, what))
        object.__setattr__(self, "badges", tuple(self.badges))
        object.__setattr__(self, "blocks", tuple(self.blocks))
        object.__setattr__(self, "provenance", MappingProxyType(dict(self.provenance)))
        # A page without a verdict would read as a page without a problem.
        if not self.badges:
            raise InputError(f"page {self.name!r} has no badge: say pass, fail, inconclusive or info")
        if not str(self.provenance.get("command", "")).strip():
            raise InputError(f"page {self.name!r}: provenance needs a 'command' that repeats the experiment")
        for block in self.blocks:
            if not isinstance(block, Text | Table | Picture):
                raise InputError(f"page {self.name!r}: block {block!r} is no Text, Table or Picture")
        need_unique("picture", [picture.name for picture in self.pictures])

    @property
    def pictures(self) -> tuple[Picture, ...]:
        """The pictures among the blocks, in order."""
        return tuple(block for block in self.blocks if isinstance(block, Picture))


def cell_text(cell: Cell) -> str:
    """The text of a table cell; a badge gives its text without its status.

    Examples
    --------
    >>> [cell_text(cell) for cell in ("seed 7", 0.50, None, Badge("pass", "exact"))]
    ['seed 7', '0.5', '', 'exact']
    """
    if cell is None:
        return ""
    if isinstance(cell, str):
        return cell
    return cell.text if isinstance(cell, Badge) else number(cell)


def need_unique(kind: str, names: Sequence[str]) -> None:
    """Raise :class:`InputError` if a name occurs twice: the second file would replace the first.

    Examples
    --------
    >>> need_unique("page", ["a", "b"])
    """
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"{kind} names must be unique in a report; given twice: {', '.join(twice)}")


def _plain_cell(cell: object, caption: str) -> Cell:
    if cell is None or isinstance(cell, str | Badge):
        return cell
    # A bool is an int to Python, but "1" says nothing to a reader.
    if not isinstance(cell, bool):
        # NumPy's scalars become int and float: plain data compares, pickles and prints without NumPy.
        if isinstance(cell, Integral):
            return int(cell)
        if isinstance(cell, Real):
            return float(cell)
    raise InputError(f"table {caption!r}: cell {cell!r} is no str, int, float, Badge or None")


def _need_text(what: str, text: object) -> None:
    if not isinstance(text, str) or not text.strip():
        raise InputError(f"{what} is {text!r}: need a text")


def _need_name(kind: str, name: str) -> None:
    if not _NAME.fullmatch(name) or name in _RESERVED:
        raise InputError(
            f"{kind} name {name!r}: need lower-case letters, digits, '-' and '_', "
            f"and none of {', '.join(sorted(_RESERVED))}"
        )


def _need_closed_svg(name: str, svg: str) -> None:
    if not svg.startswith("<svg"):
        raise InputError(f"svg of picture {name!r} must start with '<svg' (no XML declaration, no doctype)")
    try:
        elements = list(ET.fromstring(svg).iter())
    except ET.ParseError as error:
        raise InputError(f"svg of picture {name!r} is not well-formed: {error}") from error
    for element in elements:
        tag = element.tag.rpartition("}")[2]
        linked = [value for key, value in element.items() if key.rpartition("}")[2] == "href"]
        handlers = [key for key in element.keys() if key.startswith("on")]  # noqa: SIM118
        texts = [element.text or "", *element.attrib.values()]
        if (
            tag in _ACTIVE
            or handlers
            or any(not value.startswith("#") for value in linked)
            or any(_OUTSIDE.search(text) for text in texts)
        ):
            raise InputError(f"svg of picture {name!r}: <{tag}> runs or loads something; only drawings may")
