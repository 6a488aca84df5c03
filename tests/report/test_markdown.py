"""The README says what the HTML says, and nothing in it is markup by accident."""

from __future__ import annotations

import re

from simkit.report import Badge, Page, Table, Text
from simkit.report.markdown import readme

KNOWN = {"command": "simkit run a"}


def one(*blocks: Text | Table, finding: str = "So.") -> str:
    return readme([Page("a", "A", "Why?", "So.", finding, [Badge("pass", "ok")], blocks, KNOWN)])


def test_it_says_what_was_found(pages: list[Page]) -> None:
    text = readme(pages)
    for page in pages[::2]:
        assert f"## {page.title}" in text
        assert f"*{page.question}*" in text
        assert f"**Finding.** {page.finding}" in text
        assert f"**Expectation.** {page.expectation}" in text
        assert f"](#{page.name})" in text
        assert f'<a id="{page.name}"></a>' in text
    assert "✓ **pass** exact · ✗ **fail** planted fault" in text
    assert "```sh\nsimkit run law --seed 7 && true\n```" in text
    assert "| seed | 20240917 |" in text
    for picture in pages[0].pictures:
        assert f"![{picture.alt}](figures/{picture.name}.svg)" in text


def test_html_of_users_is_escaped(pages: list[Page]) -> None:
    lines = [line for line in readme(pages).splitlines() if "script" in line]
    assert lines
    for line in lines:
        assert not re.search(r"(?<!\\)<", re.sub(r"`[^`]*`", "", line))


def test_tables_keep_their_columns(pages: list[Page]) -> None:
    rows = [line for line in readme(pages).splitlines() if line.startswith("| ") and "sampler" in line]
    assert len(rows) == 2
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {5}
    assert "| --- | --: | --: | --- |" in readme(pages)


def test_a_bar_in_code_stays_in_its_cell() -> None:
    assert "| `a\\|b` |" in one(Table(["x"], [["`a|b`"]], "Bars."))


def test_specials_are_text() -> None:
    text = one(Text("a*b*c _d_ [e](f) $g$ #h ~i~ \\j `k_l`"))
    assert r"a\*b\*c \_d\_ \[e\](f) \$g\$ \#h \~i\~ \\j `k_l`" in text


def test_a_paragraph_is_not_a_list() -> None:
    text = one(Text("- one"), Text("1. two"), Text("+ three"), Text("-4 is a number"))
    assert "\n\\- one\n" in text
    assert "\n1\\. two\n" in text
    assert "\n\\+ three\n" in text
    assert "\n-4 is a number\n" in text


def test_lines_are_joined() -> None:
    assert "**Finding.** one two" in one(finding="one\n\n  two")


def test_a_command_with_backticks_stays_in_its_fence() -> None:
    page = Page("a", "A", "?", "!", "!", [Badge("info", "x")], [], {"command": "echo ```x```"})
    assert "````sh\necho ```x```\n````" in readme([page])
