"""Files are whole or absent, ours or untouched."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path
from typing import Any, NoReturn

import pytest

from simkit.errors import InputError, StoreError
from simkit.files import atomic_write
from simkit.report import Page, Picture, write_paper, write_report

EXPECTED = {
    "README.md",
    "index.html",
    "law.html",
    "hostile.html",
    "last.html",
    "figures/line-1.svg",
    "figures/line-2.svg",
    "figures/map.svg",
}


def names(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def fails_with(code: int) -> Any:
    def fail(*_: object, **__: object) -> NoReturn:
        raise OSError(code, os.strerror(code))

    return fail


def test_a_report_is_complete(pages: list[Page], tmp_path: Path) -> None:
    folder = tmp_path / "new" / "reports"
    written = write_report(pages, folder)
    assert names(folder) == EXPECTED
    assert {path.relative_to(folder).as_posix() for path in written} == EXPECTED
    assert (folder / "figures/map.svg").read_text(encoding="utf-8").startswith("<svg")


def test_every_picture_of_the_readme_exists(pages: list[Page], tmp_path: Path) -> None:
    write_report(pages, tmp_path)
    links = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", (tmp_path / "README.md").read_text(encoding="utf-8"))
    assert len(links) == 3
    assert all((tmp_path / link).is_file() for link in links)


def test_only_what_changed_is_written(pages: list[Page], tmp_path: Path) -> None:
    write_report(pages, tmp_path)
    for path in tmp_path.rglob("*.*"):
        os.utime(path, (1, 1))
    assert write_report(pages, tmp_path) == ()
    assert {path.stat().st_mtime for path in tmp_path.rglob("*.*")} == {1.0}

    (tmp_path / "law.html").write_bytes((tmp_path / "law.html").read_bytes() + b"<!-- edited -->")
    assert write_report(pages, tmp_path) == (tmp_path / "law.html",)
    assert (tmp_path / "last.html").stat().st_mtime == 1.0


def test_stale_files_go_and_other_files_stay(pages: list[Page], tmp_path: Path) -> None:
    write_report(pages, tmp_path)
    for name in ("mine.html", "figures/mine.svg", "notes.txt", "results.jsonl", "figures/data.csv"):
        (tmp_path / name).write_text("mine", encoding="utf-8")
    write_report(pages[2:], tmp_path)
    mine = {"mine.html", "figures/mine.svg", "notes.txt", "results.jsonl", "figures/data.csv"}
    assert names(tmp_path) == {"README.md", "index.html", "last.html"} | mine


@pytest.mark.parametrize("name", ["README.md", "index.html", "law.html", "figures/map.svg"])
def test_a_file_of_the_user_is_never_overwritten(pages: list[Page], tmp_path: Path, name: str) -> None:
    (tmp_path / "figures").mkdir()
    (tmp_path / name).write_text("mine", encoding="utf-8")
    with pytest.raises(StoreError, match="not written by simkit report"):
        write_report(pages, tmp_path)
    assert names(tmp_path) == {name}
    assert (tmp_path / name).read_text(encoding="utf-8") == "mine"


def test_no_pages_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="at least one"):
        write_report([], tmp_path)


def test_names_are_unique_across_pages(pages: list[Page], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="page names"):
        write_report([pages[2], pages[2]], tmp_path)
    first = pages[0]
    twin = Page("twin", "T", "?", "!", "!", first.badges, first.pictures, first.provenance)
    with pytest.raises(InputError, match=r"picture names.*line-1"):
        write_report([first, twin], tmp_path)
    assert names(tmp_path) == set()


def test_a_file_in_the_place_of_the_folder(pages: list[Page], tmp_path: Path) -> None:
    (tmp_path / "reports").write_text("a file", encoding="utf-8")
    with pytest.raises(StoreError, match=r"reports.*choose another folder"):
        write_report(pages, tmp_path / "reports")


@pytest.mark.parametrize("step", ["replace", "fsync"])
@pytest.mark.parametrize(
    ("code", "advice"),
    [
        (errno.ENOSPC, "disk is full"),
        (errno.EACCES, "permission"),
        (errno.EROFS, "read-only"),
        (errno.EIO, "run again"),
    ],
)
def test_a_failing_disk_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, code: int, advice: str
) -> None:
    path = tmp_path / "a.txt"
    atomic_write(path, "old")
    monkeypatch.setattr(f"simkit.files.os.{step}", fails_with(code))
    with pytest.raises(StoreError, match=advice) as caught:
        atomic_write(path, "new")
    assert str(path) in str(caught.value)
    assert isinstance(caught.value.__cause__, OSError)
    assert names(tmp_path) == {"a.txt"}
    assert path.read_text(encoding="utf-8") == "old"


def test_an_interrupt_leaves_no_temporary_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_: int) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr("simkit.files.os.fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        atomic_write(tmp_path / "a.txt", "new")
    assert names(tmp_path) == set()


def test_a_report_on_a_full_disk(pages: list[Page], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simkit.files.os.replace", fails_with(errno.ENOSPC))
    with pytest.raises(StoreError, match="disk is full"):
        write_report(pages, tmp_path)
    assert names(tmp_path) == set()


def test_atomic_write_keeps_bytes_and_the_usual_mode(tmp_path: Path) -> None:
    atomic_write(tmp_path / "a.txt", "α\r\nb\n")
    atomic_write(tmp_path / "b.bin", b"\x00\xff")
    (tmp_path / "c.txt").write_text("c", encoding="utf-8")
    assert (tmp_path / "a.txt").read_bytes() == b"\xce\xb1\r\nb\n"
    assert (tmp_path / "b.bin").read_bytes() == b"\x00\xff"
    assert (tmp_path / "a.txt").stat().st_mode == (tmp_path / "c.txt").stat().st_mode


def test_a_paper_gets_figures_and_data(pictures: list[Picture], tmp_path: Path) -> None:
    write_paper(pictures, tmp_path / "paper")
    assert names(tmp_path / "paper") == {f"{p.name}.{kind}" for p in pictures for kind in ("pdf", "csv")}
    assert (tmp_path / "paper" / "map.pdf").read_bytes() == pictures[2].pdf
    assert (tmp_path / "paper" / "map.csv").read_text(encoding="utf-8") == pictures[2].csv


def test_a_paper_needs_every_pdf(pictures: list[Picture], tmp_path: Path) -> None:
    bare = Picture("bare", pictures[0].svg, "Alt.", "Caption.", "x\n")
    with pytest.raises(InputError, match="no PDF in: bare"):
        write_paper([pictures[0], bare], tmp_path)
    assert names(tmp_path) == set()
