"""The HTML stands alone, is well-formed, can be read by everyone, and shows what users wrote as text."""

from __future__ import annotations

import base64
import re
import sys
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from simkit.errors import MissingExtraError
from simkit.report import Page, Picture, html
from simkit.report.html import index_html, inline_svg, page_html

VOID = {"meta", "link", "br", "img", "hr", "input"}
Attributes = dict[str, str | None]


class Reader(HTMLParser):
    """Collects tags and text, and fails on a tag that is closed out of order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, Attributes]] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] != "style":
            self.text += data

    def values(self, name: str) -> list[str]:
        return [str(attrs[name]) for _, attrs in self.tags if name in attrs]

    def of(self, *tags: str) -> list[tuple[str, Attributes]]:
        return [(tag, attrs) for tag, attrs in self.tags if tag in tags]


@pytest.fixture(scope="module")
def documents(pages: list[Page]) -> dict[str, str]:
    return {"index": index_html(pages)} | {page.name: page_html(page, pages) for page in pages}


@pytest.fixture(scope="module")
def readers(documents: dict[str, str]) -> dict[str, Reader]:
    return {name: Reader(text) for name, text in documents.items()}


def test_the_reader_has_teeth() -> None:
    with pytest.raises(AssertionError):
        Reader("<p><b></p></b>")
    with pytest.raises(AssertionError):
        Reader("<div><p></p>")


def test_nothing_is_loaded(documents: dict[str, str], readers: dict[str, Reader]) -> None:
    for name, reader in readers.items():
        without_names = re.sub(r'xmlns(:\w+)?="[^"]*"', "", documents[name])
        assert "http://" not in without_names
        assert "https://" not in without_names
        assert "@import" not in without_names
        assert not reader.values("src")
        assert not reader.of("script", "img", "image", "iframe", "object", "embed")
        assert [attrs["href"] for _, attrs in reader.of("link")] == ["data:,"]
        assert not re.search(r"url\((?!#)", without_names)


def test_ids_are_unique_and_links_lead_somewhere(readers: dict[str, Reader]) -> None:
    for name, reader in readers.items():
        ids = reader.values("id")
        assert len(ids) == len(set(ids)), name
        for link in reader.values("href") + reader.values("xlink:href"):
            if link.startswith("#"):
                assert link[1:] in ids
            elif not link.startswith("data:"):
                assert link.removesuffix(".html") in readers
        for value in [value for _, attrs in reader.tags for value in attrs.values() if value]:
            assert set(re.findall(r"url\(#([^)]+)\)", value)) <= set(ids)


def test_three_pictures_would_clash_without_the_prefix(pictures: list[Picture]) -> None:
    def ids(texts: list[str]) -> list[str]:
        return [found for text in texts for found in re.findall(r' id="([^"]+)"', text)]

    before, after = ids([p.svg for p in pictures]), ids([inline_svg(p) for p in pictures])
    assert len(set(before)) < len(before) == len(after) == len(set(after))


def test_headings_go_down_one_step_at_a_time(readers: dict[str, Reader]) -> None:
    for reader in readers.values():
        levels = [int(tag[1]) for tag, _ in reader.of("h1", "h2", "h3", "h4", "h5", "h6")]
        assert levels[0] == 1
        assert levels.count(1) == 1
        assert all(after <= before + 1 for before, after in pairwise(levels))


def test_everyone_can_read_it(readers: dict[str, Reader], pages: list[Page]) -> None:
    for reader in readers.values():
        assert reader.of("html")[0][1] == {"lang": "en"}
        assert len(reader.of("title")) == 1
        assert len(reader.of("main")) == 1
        for _, attrs in reader.of("svg"):
            named = attrs.get("role") == "img" and attrs.get("aria-label")
            assert named or attrs.get("aria-hidden") == "true"
    alts = [attrs.get("aria-label") for _, attrs in readers["law"].of("svg")]
    assert [alt for alt in alts if alt] == [picture.alt for picture in pages[0].pictures]


def test_a_verdict_is_a_word_and_a_shape(readers: dict[str, Reader], documents: dict[str, str]) -> None:
    for word in ("pass", "fail", "inconclusive"):
        assert f"<b>{word}</b>" in documents["law" if word != "inconclusive" else "last"]
    shapes = {
        status: re.findall(rf'class="badge {status}"><svg.*?</svg>', "".join(documents.values()), re.DOTALL)
        for status in ("pass", "fail", "inconclusive", "info")
    }
    assert all(shapes.values())
    assert len({found[0].split(">", 1)[1] for found in shapes.values()}) == 4
    assert readers["index"].text.count("1 pass") == 1


def test_tables_scroll_in_their_own_box(documents: dict[str, str]) -> None:
    assert re.search(r'<div class="scroll"[^>]*>\s*<table>', documents["law"])
    assert re.search(r"\.scroll \{[^}]*overflow-x: auto", documents["law"])
    assert 'name="viewport"' in documents["law"]


def test_numbers_are_written_for_readers(readers: dict[str, Reader]) -> None:
    assert "1\u202f000\u202f000" in readers["law"].text
    assert "3 × 10⁻¹²" in readers["law"].text
    assert "20240917" in readers["law"].text  # a seed is copied, not read


def test_what_users_write_is_text(readers: dict[str, Reader], documents: dict[str, str]) -> None:
    hostile = "<script>alert('x')</script> & \"quoted\" a<b"
    # Two titles and the link to itself, question, expectation, finding, heading, paragraph, badge.
    assert readers["hostile"].text.count(hostile) == 9
    assert hostile in readers["law"].text  # in a table cell
    assert "<code>a&lt;b</code>" in documents["hostile"]
    for reader in readers.values():
        assert not [name for _, attrs in reader.tags for name in attrs if name.startswith("on")]


def test_an_alt_text_cannot_leave_its_attribute(pages: list[Page]) -> None:
    dot = '<svg xmlns="http://www.w3.org/2000/svg"><title>t</title><circle r="1"/></svg>'
    alt = '"><img src=x onerror=alert(1)>'
    page = Page(
        "a", "A", "?", "!", "!", pages[0].badges, [Picture("dot", dot, alt, alt, "x")], {"command": "c"}
    )
    reader = Reader(page_html(page, [page]))
    assert not reader.of("img")
    assert alt in reader.values("aria-label")


def test_the_data_is_in_the_page(pages: list[Page], readers: dict[str, Reader]) -> None:
    links = [attrs for _, attrs in readers["law"].of("a") if "download" in attrs]
    assert [link["download"] for link in links] == [f"{p.name}.csv" for p in pages[0].pictures]
    data = [base64.b64decode(str(link["href"]).partition("base64,")[2]).decode() for link in links]
    assert data == [picture.csv for picture in pages[0].pictures]


def test_pages_lead_to_each_other(readers: dict[str, Reader], pages: list[Page]) -> None:
    turns = {
        name: {attrs["rel"]: attrs["href"] for _, attrs in readers[name].of("a") if "rel" in attrs}
        for name in ("law", "hostile", "last")
    }
    assert turns == {
        "law": {"next": "hostile.html"},
        "hostile": {"prev": "law.html", "next": "last.html"},
        "last": {"prev": "hostile.html"},
    }
    alone = Reader(page_html(pages[0], []))
    assert not [attrs for _, attrs in alone.of("a") if "rel" in attrs]
    assert {"law.html", "hostile.html", "last.html"} <= set(readers["index"].values("href"))


def test_the_index_shows_the_first_picture_of_each(readers: dict[str, Reader], pages: list[Page]) -> None:
    labels = [attrs["aria-label"] for _, attrs in readers["index"].of("svg") if "aria-label" in attrs]
    assert labels == [pages[0].pictures[0].alt]


def _luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    low, high = sorted((_luminance(a), _luminance(b)))
    return (high + 0.05) / (low + 0.05)


def test_both_themes_have_contrast(documents: dict[str, str]) -> None:
    css = documents["last"].partition("<style>")[2].partition("</style>")[0]
    light, dark = css.split("@media (prefers-color-scheme: dark)")
    themes = [
        dict(re.findall(r"--(\w+): (#\w{6})", part.partition("*, ::before")[0])) for part in (light, dark)
    ]
    assert themes[0].keys() == themes[1].keys()
    assert themes[0] != themes[1]
    for theme in themes:
        for text in ("ink", "muted", "link", "pass", "fail", "inconclusive", "info"):
            for ground in ("paper", "wash"):
                assert contrast(theme[text], theme[ground]) >= 4.5, (text, ground)


def test_without_jinja2_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, pages: list[Page]) -> None:
    html._environment.cache_clear()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingExtraError, match=r"simkit-speculative\[reports\]"):
        index_html(pages)
