"""Pages as one Markdown file, for readers on a code host: the same findings, verdicts and pictures."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from types import MappingProxyType

from simkit.report.document import Badge, Block, Cell, Page, Picture, Table, Text, cell_text

MARK = "<!-- Written by `simkit report`; it will be overwritten. -->"
"""First line of the README of a report, so that no other README is ever overwritten."""

_SIGN = MappingProxyType({"pass": "✓", "fail": "✗", "inconclusive": "◇", "info": "▪"})
_CODE = re.compile(r"(`[^`]+`)")
_SPECIAL = re.compile(r"([\\`*_\[\]<>|$~&#])")
_LIST_MARK = re.compile(r"^([-+]|\d+(?=[.)]))(?=\s|[.)]\s)")


def readme(pages: Sequence[Page]) -> str:
    """The whole report as Markdown, with pictures at ``figures/NAME.svg``.

    Parameters
    ----------
    pages
        The pages in reading order.

    Examples
    --------
    >>> page = Page("law", "Law", "Why?", "So.", "It is so.", [Badge("pass", "ok")], [], {"command": "run"})
    >>> print(readme([page]).splitlines()[2])
    # simkit report
    """
    parts = [MARK, "# simkit report", _overview(pages)]
    for page in pages:
        parts.extend(_page(page))
    return "\n\n".join(parts) + "\n"


def _overview(pages: Sequence[Page]) -> str:
    rows = [(f"[{_prose(page.title)}](#{page.name})", _badges(page.badges)) for page in pages]
    return _grid(["Experiment", "Verdict"], rows, [False, False])


def _page(page: Page) -> Iterator[str]:
    # The host makes the anchor of a heading from its words; a name of our own stays when words change.
    yield f'<a id="{page.name}"></a>'
    yield f"## {_prose(page.title)}"
    yield f"*{_prose(page.question)}*"
    yield _badges(page.badges)
    yield f"**Finding.** {_prose(page.finding)}"
    yield f"**Expectation.** {_prose(page.expectation)}"
    tables, pictures = 0, 0
    for block in page.blocks:
        tables += isinstance(block, Table)
        pictures += isinstance(block, Picture)
        yield _block(block, pictures if isinstance(block, Picture) else tables)
    yield "**How to repeat it.**"
    yield _fenced(str(page.provenance["command"]))
    known = {name: value for name, value in page.provenance.items() if name != "command"}
    if known:
        rows = [(_prose(name), _prose(str(value))) for name, value in known.items()]
        yield _grid(["Parameter", "Value"], rows, [False, False])


def _block(block: Block, count: int) -> str:
    if isinstance(block, Text):
        heading = f"### {_prose(block.heading)}\n\n" if block.heading else ""
        return heading + _paragraph(block.paragraph)
    if isinstance(block, Table):
        return f"**Table {count}.** {_prose(block.caption)}\n\n{_table(block)}"
    image = f"![{_prose(block.alt)}](figures/{block.name}.svg)"
    return f"{image}\n\n**Figure {count}.** {_prose(block.caption)}"


def _table(table: Table) -> str:
    columns = [_prose(column) for column in table.columns]
    rows = [[_cell(cell) for cell in row] for row in table.rows]
    right = [any(isinstance(row[i], int | float) for row in table.rows) for i in range(len(columns))]
    return _grid(columns, rows, right)


def _grid(columns: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[bool]) -> str:
    rule = ["--:" if flag else "---" for flag in right]
    return "\n".join("| " + " | ".join(row) + " |" for row in [columns, rule, *rows])


def _cell(cell: Cell) -> str:
    return _badge(cell) if isinstance(cell, Badge) else _prose(cell_text(cell))


def _badges(badges: Sequence[Badge]) -> str:
    return " · ".join(_badge(badge) for badge in badges)


def _badge(badge: Badge) -> str:
    return f"{_SIGN[badge.status]} **{badge.status}** {_prose(badge.text)}"


def _paragraph(text: str) -> str:
    """Prose that starts a block, where a dash or "1." would start a list."""
    return _LIST_MARK.sub(lambda match: _escape_list_mark(match.group()), _prose(text))


def _escape_list_mark(mark: str) -> str:
    return f"\\{mark}" if mark in "-+" else f"{mark}\\"


def _prose(text: str) -> str:
    """Escape plain text and put it on one line; code between backticks stays, but for the cell border."""
    parts = _CODE.split(" ".join(text.split()))
    return "".join(
        part.replace("|", "\\|") if _CODE.fullmatch(part) else _SPECIAL.sub(r"\\\1", part) for part in parts
    )


def _fenced(command: str) -> str:
    fence = "`" * (max((len(run) for run in re.findall("`+", command)), default=2) + 1)
    fence = fence if len(fence) >= 3 else "```"
    return f"{fence}sh\n{command}\n{fence}"
