"""Pages of findings as plain data, and what is made of them: HTML, Markdown, files for a paper."""

from __future__ import annotations

from simkit.report.document import Badge, Page, Picture, Table, Text
from simkit.report.numerals import number
from simkit.report.write import write_paper, write_report

__all__ = ["Badge", "Page", "Picture", "Table", "Text", "number", "write_paper", "write_report"]
