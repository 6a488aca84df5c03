"""Put a report into a folder: whole files only, its own files only."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from simkit.errors import InputError, StoreError
from simkit.files import atomic_write, store_error
from simkit.report.document import Page, Picture, need_unique
from simkit.report.html import GENERATOR, index_html, page_html
from simkit.report.markdown import MARK, readme

_SVG_MARK = "<!-- simkit report -->"


def write_report(pages: Sequence[Page], folder: str | os.PathLike[str]) -> tuple[Path, ...]:
    """Write ``index.html``, a page each, ``README.md`` and ``figures/NAME.svg``; drop stale ones.

    Each file is replaced in one step. A file that would not change is left alone. HTML and SVG files of an
    earlier report that are not part of this one are removed; a file that no report wrote is never touched.

    Parameters
    ----------
    pages
        The pages in reading order, at least one.
    folder
        Where to write; made if missing.

    Returns
    -------
    tuple of pathlib.Path
        The files that were written, without those that were already as they should be.

    Raises
    ------
    InputError
        If there is no page, or two pages or two pictures share a name.
    StoreError
        If a file cannot be written, or one of the names is taken by a file that no report wrote.
    MissingExtraError
        If jinja2 is not installed.

    Examples
    --------
    >>> import tempfile
    >>> from simkit.report.document import Badge
    >>> page = Page("law", "Law", "Why?", "So.", "It is so.", [Badge("pass", "ok")], [], {"command": "run"})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first, second = write_report([page], folder), write_report([page], folder)
    >>> [path.name for path in first], second
    (['law.html', 'index.html', 'README.md'], ())
    """
    root = Path(folder)
    files = {root / name: text.encode("utf-8") for name, text in _report_files(pages).items()}
    before = {path: _read(path) for path in files}
    for path, content in before.items():
        if content is not None and not _is_ours(content):
            raise StoreError(
                f"{path} exists and was not written by simkit report: move it away or choose another folder"
            )
    changed = tuple(path for path, content in files.items() if before[path] != content)
    for path in changed:
        atomic_write(path, files[path])
    _remove_stale(root, keep=files.keys())
    return changed


def write_paper(figures: Iterable[Picture], folder: str | os.PathLike[str]) -> tuple[Path, ...]:
    r"""Write ``NAME.pdf`` and ``NAME.csv`` for each picture, to put into a paper.

    Parameters
    ----------
    figures
        Pictures that carry a ``pdf``.
    folder
        Where to write; made if missing.

    Returns
    -------
    tuple of pathlib.Path
        The files written.

    Raises
    ------
    InputError
        If a picture has no PDF, or two share a name; nothing is written then.
    StoreError
        If a file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> dot = '<svg xmlns="http://www.w3.org/2000/svg"/>'
    >>> picture = Picture("dot", dot, "A dot.", "A dot.", "x\n0\n", pdf=b"%PDF-1.4")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [path.name for path in write_paper([picture], folder)]
    ['dot.pdf', 'dot.csv']
    """
    pictures = list(figures)
    need_unique("picture", [picture.name for picture in pictures])
    without = [picture.name for picture in pictures if picture.pdf is None]
    if without:
        raise InputError(
            f"no PDF in: {', '.join(without)}; "
            "make each with Picture(..., pdf=simkit.figures.render.pdf(figure))"
        )
    files: dict[Path, bytes | str] = {}
    for picture in pictures:
        files[Path(folder) / f"{picture.name}.pdf"] = picture.pdf or b""
        files[Path(folder) / f"{picture.name}.csv"] = picture.csv
    for path, content in files.items():
        atomic_write(path, content)
    return tuple(files)


def _report_files(pages: Sequence[Page]) -> dict[str, str]:
    """All files by relative name; pictures first, so that no page ever points at a missing one."""
    if not pages:
        raise InputError("no pages: a report needs at least one experiment")
    pictures = [picture for page in pages for picture in page.pictures]
    need_unique("page", [page.name for page in pages])
    need_unique("picture", [picture.name for picture in pictures])
    files = {f"figures/{picture.name}.svg": f"{picture.svg.rstrip()}\n{_SVG_MARK}\n" for picture in pictures}
    files |= {f"{page.name}.html": page_html(page, pages) for page in pages}
    return files | {"index.html": index_html(pages), "README.md": readme(pages)}


def _is_ours(content: bytes) -> bool:
    return any(mark.encode("utf-8") in content for mark in (GENERATOR, MARK, _SVG_MARK))


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise store_error("read", path, error) from error


def _remove_stale(root: Path, keep: Iterable[Path]) -> None:
    kept = set(keep)
    found = [*sorted(root.glob("*.html")), *sorted((root / "figures").glob("*.svg"))]
    for path in found:
        if path in kept or not _is_ours(_read(path) or b""):
            continue
        try:
            path.unlink()
        except OSError as error:
            raise store_error("remove", path, error) from error
