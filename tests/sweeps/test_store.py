"""The store: canonical lines, files that are whole or refused, and nothing lost when the disk is full."""

from __future__ import annotations

import errno
import json
import math
import os
from pathlib import Path
from typing import Any

import pytest

from simkit.errors import StoreError
from simkit.sweeps.store import Journal, line, read_rows, write_rows

ROWS = [{"identity": "a", "x": 1.5}, {"identity": "b", "x": [1, 2]}]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "results" / "coins.jsonl"


def fail_with(code: int) -> Any:
    def fail(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    return fail


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ({"b": 1, "a": 2}, '{"a":2,"b":1}'),
        ({"x": 1 / 3}, '{"x":0.333333}'),
        ({"x": 123456789.0}, '{"x":123457000.0}'),
        ({"x": 1.23456789e-300}, '{"x":1.23457e-300}'),
        ({"x": 123456789}, '{"x":123456789}'),  # decisions rest on integers: they are never rounded
        ({"x": 2**80}, f'{{"x":{2**80}}}'),
        ({"x": math.inf}, '{"x":"inf"}'),
        ({"x": -math.inf}, '{"x":"-inf"}'),
        ({"x": math.nan}, '{"x":"nan"}'),
        ({"x": [{"z": 2 / 3, "y": (1.0, None, True)}]}, '{"x":[{"y":[1.0,null,true],"z":0.666667}]}'),
        ({"x": "α\n"}, '{"x":"\\u03b1\\n"}'),
        ({}, "{}"),
    ],
)
def test_lines_are_canonical(row: dict[str, Any], text: str) -> None:
    assert line(row) == text
    assert line(json.loads(text)) == text  # reading and writing again changes nothing


def test_last_bits_of_a_float_do_not_show() -> None:
    assert line({"x": 0.1 + 0.2}) == line({"x": 0.3})
    assert line({"x": 0.300001}) != line({"x": 0.3})


def test_rows_come_back(path: Path) -> None:
    write_rows(path, ROWS)
    assert read_rows(path) == ROWS
    assert path.read_bytes() == b'{"identity":"a","x":1.5}\n{"identity":"b","x":[1,2]}\n'
    write_rows(path, [])
    assert read_rows(path) == []


def test_missing_results_say_how_to_make_them(path: Path) -> None:
    with pytest.raises(StoreError, match=r"no results in .*coins\.jsonl; make it with: simkit run coins$"):
        read_rows(path)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b'{"identity":"a"}\n{"identity":"b"', "coins.jsonl is cut off in line 2"),
        (b'{"identity":"a"}\n{"identity":"b"}', "coins.jsonl is cut off in line 2"),
        (b'{"identity":"a"', "coins.jsonl is cut off in line 1"),
        (b"\x93NUMPY\x01\x00\xff\xfe\n", "coins.jsonl is not text"),
        (b'{"identity":"a"}\n\0\0\0\n', "line 2 of .*coins.jsonl is not JSON"),
        (b'{"identity":"a"}\n{"identity":\n', "line 2 of .*coins.jsonl is not JSON"),
        (b'{"identity":"a"}\n\n', "line 2 of .*coins.jsonl is not JSON"),
        (b"<<<<<<< HEAD\n", "line 1 of .*coins.jsonl is not JSON"),
        (b"[1]\n", "line 1 of .*coins.jsonl is not a result row"),
        (b'{"x":1}\n', "line 1 of .*coins.jsonl is not a result row"),
        (b"7\n", "line 1 of .*coins.jsonl is not a result row"),
    ],
)
def test_broken_files_name_file_line_and_remedy(path: Path, content: bytes, says: str) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(StoreError, match=rf"{says}.*; make it with: simkit run coins$"):
        read_rows(path)


def test_a_folder_is_no_results_file(path: Path) -> None:
    path.mkdir(parents=True)
    with pytest.raises(StoreError, match=r"cannot read .*coins.jsonl: a folder has this name"):
        read_rows(path)


@pytest.mark.parametrize(("code", "says"), [(errno.ENOSPC, "the disk is full"), (errno.EDQUOT, "quota")])
@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_full_disk_leaves_the_old_file_and_nothing_else(
    path: Path, code: int, says: str, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_rows(path, ROWS)
    monkeypatch.setattr(os, call, fail_with(code))
    with pytest.raises(StoreError, match=f"cannot write .*coins.jsonl: .*{says}.* free some space"):
        write_rows(path, ROWS * 2)
    monkeypatch.undo()
    assert read_rows(path) == ROWS
    assert list(path.parent.iterdir()) == [path]


def test_interrupt_while_writing_leaves_the_old_file_and_nothing_else(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    write_rows(path, ROWS)
    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_rows(path, ROWS * 2)
    monkeypatch.undo()
    assert read_rows(path) == ROWS
    assert list(path.parent.iterdir()) == [path]


def test_unwritable_folder(path: Path) -> None:
    path.parent.write_text("a file where the folder should be")
    with pytest.raises(StoreError, match=r"cannot write .*coins.jsonl: .* choose another folder"):
        write_rows(path, ROWS)
    assert path.parent.read_text() == "a file where the folder should be"


def test_a_full_disk_while_appending_keeps_the_rows_before(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(path)
    journal.begin([])
    journal.append(ROWS[0])
    monkeypatch.setattr(Path, "open", fail_with(errno.ENOSPC))
    with pytest.raises(StoreError, match=r"cannot write .*coins.jsonl.partial: the disk is full"):
        journal.append(ROWS[1])
    monkeypatch.undo()
    assert journal.rows() == {"a": ROWS[0]}


def test_journal_gives_back_what_will_be_read(path: Path) -> None:
    # Else a row drawn now and the same row taken over after an interrupt would differ in their last bits.
    journal = Journal(path)
    journal.begin([])
    assert journal.append({"identity": "a", "x": 1 / 3}) == {"identity": "a", "x": 0.333333}


def test_journal_drops_a_last_line_cut_short(path: Path) -> None:
    journal = Journal(path)
    assert journal.rows() == {}
    journal.begin(ROWS)
    content = journal.partial.read_bytes()
    for cut in (1, 5, len(content) // 3):
        journal.partial.write_bytes(content[:-cut])
        assert list(journal.rows()) == ["a"]
    assert not path.exists()


def test_broken_journal_says_to_remove_it(path: Path) -> None:
    # Running again alone would meet the same line again.
    journal = Journal(path)
    journal.begin(ROWS)
    journal.partial.write_text('nonsense\n{"identity":"b"}\n')
    with pytest.raises(
        StoreError,
        match=r"line 1 of .*coins.jsonl.partial .*; remove it and start over with: simkit run coins$",
    ):
        journal.rows()


def test_finish_leaves_the_file_alone(path: Path) -> None:
    journal = Journal(path)
    journal.begin(ROWS[:1])
    journal.append(ROWS[1])
    journal.finish(ROWS)
    assert read_rows(path) == ROWS
    assert list(path.parent.iterdir()) == [path]
