"""Files of counts, tokens, targets and visits: every form is read alike, and every defect is named."""

from __future__ import annotations

import io
import json
import pickle
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from simkit.errors import InputError, SimkitError, StoreError, UnknownNameError
from simkit.verify.counts_file import file_key, read_counts, read_target, read_visits

Save = Callable[[str, Any], Path]


def npy(values: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.asarray(values))
    return stream.getvalue()


@pytest.fixture
def save(tmp_path: Path) -> Save:
    """Return a writer: bytes and text as they are, anything else in the format of the suffix."""

    def write(name: str, content: Any) -> Path:
        path = tmp_path / name
        if isinstance(content, str):
            content = content.encode()
        elif not isinstance(content, bytes):
            content = npy(content) if path.suffix == ".npy" else json.dumps(content).encode()
        path.write_bytes(content)
        return path

    return write


def says(words: list[str], read: Callable[..., object], path: Path, *more: object) -> None:
    """Expect a refusal of one line that names the file and holds the words."""
    with pytest.raises(SimkitError) as refusal:
        read(path, *more)
    message = str(refusal.value)
    assert [word for word in [str(path), *words] if word not in message] == [], message
    assert "\n" not in message


COUNTS = [5, 0, 9]
TOKENS = [0] * 5 + [2] * 9


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.npy", COUNTS),
        ("a.npy", np.array(COUNTS, dtype=float)),
        ("a.npy", np.array(COUNTS, dtype=">u2")),
        ("a.npy", [COUNTS]),
        ("a.npy", [[n] for n in COUNTS]),
        ("a.NPY", npy(COUNTS)),
        ("a.csv", "5,0,9\n"),
        ("a.csv", "5\n0\n9"),
        ("a.csv", "5\r\n\r\n0\r\n9\r\n"),
        ("a.csv", '"5", 0 ,9.0'),
        ("a.csv", "count\n5\n0\n9\n"),
        ("a.csv", "token,count\n2,9\n0,5\n"),
        ("a.csv", "text,Count , token_id\nthe,9,2\n'a,5,0\n"),
        ("a.csv", "\N{BYTE ORDER MARK}token,count\n0,5\n1,0\n2,9\n"),
        ("a.json", COUNTS),
        ("a.json", [COUNTS]),
        ("a.json", {"counts": COUNTS}),
        ("a.json", {"counts": [5.0, 0.0, 9.0], "engine": "mine"}),
    ],
)
def test_counts_in_every_form(name: str, content: Any, save: Save) -> None:
    counts, kind, _ = read_counts(save(name, content), 3)
    assert (counts.tolist(), counts.dtype, kind) == (COUNTS, np.dtype(np.int64), "counts")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.npy", TOKENS),
        ("a.npy", np.array(TOKENS, dtype=np.uint8)),
        ("a.npy", np.array(TOKENS).reshape(7, 2)),
        ("a.csv", "\n".join(map(str, TOKENS))),
        ("a.csv", "token\n" + "\n".join(map(str, TOKENS))),
        ("a.csv", "0,0,0,0,0\n2,2,2\n2,2,2,2,2,2\n"),
        ("a.json", TOKENS),
        ("a.json", [[0, 0], [], [0, 0, 0], [2] * 9]),
        ("a.json", {"tokens": TOKENS}),
        ("a.json", {"tokens": [TOKENS[:10], TOKENS[10:]]}),
    ],
)
def test_tokens_in_every_form(name: str, content: Any, save: Save) -> None:
    counts, kind, _ = read_counts(save(name, content), 3)
    assert (counts.tolist(), kind) == (COUNTS, "tokens")


@given(data=st.data())
def test_tokens_and_their_counts_are_the_same_draws(data: st.DataObject, tmp_path_factory: Any) -> None:
    vocabulary = data.draw(st.integers(1, 6))
    tokens = data.draw(st.lists(st.integers(0, vocabulary - 1), min_size=1, max_size=20))
    counts = [tokens.count(token) for token in range(vocabulary)]
    folder = tmp_path_factory.getbasetemp()
    for name, content in [("a.npy", npy(tokens)), ("a.json", json.dumps({"tokens": tokens}).encode())]:
        (folder / name).write_bytes(content)
        assert read_counts(folder / name, (vocabulary,), "tokens").counts.tolist() == counts
    (folder / "b.npy").write_bytes(npy(counts))
    assert read_counts(folder / "b.npy", vocabulary, "counts").counts.tolist() == counts


def test_an_array_that_can_be_both_is_refused_until_said(save: Save) -> None:
    # Length 3 and every number below 3: counts (2, 0, 1), or the tokens 2, 0 and 1.
    for name, content in [("a.npy", [2, 0, 1]), ("a.csv", "2,0,1"), ("a.json", [2, 0, 1])]:
        path = save(name, content)
        says(["--counts or --tokens", "below 3"], read_counts, path, 3)
        assert read_counts(path, 3, "counts").counts.tolist() == [2, 0, 1]
        assert read_counts(path, 3, "tokens").counts.tolist() == [1, 1, 1]
    # Two decodes of three tokens, or counts of two states.
    path = save("b.npy", [[2, 0, 1], [1, 1, 1]])
    says(["(2, 3)", "--counts or --tokens"], read_counts, path, 3)
    assert read_counts(path, 3, "tokens").counts.tolist() == [1, 4, 1]
    # One number of 3 or more leaves one reading only; so does another length.
    assert read_counts(save("c.npy", [2, 0, 3]), 3).kind == "counts"
    assert read_counts(save("d.npy", [2, 0, 1, 1]), 3).kind == "tokens"


def test_what_a_file_calls_its_numbers_may_not_be_contradicted(save: Save) -> None:
    for content, kind in [({"counts": COUNTS}, "tokens"), ({"tokens": [0, 1, 2]}, "counts")]:
        path = save("a.json", content)
        says([*content, f"you say {kind}"], read_counts, path, 3, kind)
    assert read_counts(save("b.json", {"tokens": [0, 1, 2]}), 3, "tokens").counts.tolist() == [1, 1, 1]
    with pytest.raises(UnknownNameError, match="counts, tokens"):
        read_counts(save("a.npy", COUNTS), 3, "count")


def test_counts_by_state_have_the_shape_of_the_target(save: Save) -> None:
    # All numbers are below 3, and still only counts: tokens do not say in which state they were drawn.
    by_state = [[1, 2, 0], [2, 0, 1]]
    for name, content in [("a.npy", by_state), ("a.csv", "1,2,0\n2,0,1\n"), ("a.json", {"counts": by_state})]:
        counts, kind, _ = read_counts(save(name, content), (2, 3))
        assert (counts.tolist(), kind) == (by_state, "counts")
    for content, kind in [(by_state, "tokens"), (TOKENS, "tokens"), ({"tokens": TOKENS}, None)]:
        path = save("b.json", content)
        says(["which of 2 states", "(2, 3)"], read_counts, path, (2, 3), kind)
    path = save("c.json", [[1, 2], [1, 2, 3]])
    says(["which of 2 states"], read_counts, path, (2, 3))


@pytest.mark.parametrize(
    ("name", "content", "kind", "words"),
    [
        # Wrong for this vocabulary of three tokens.
        ("a.npy", [5, 0, 9, 1], "counts", ["(4,)", "(3,)", "0 for those never drawn"]),
        ("a.npy", [5, 0, 9, 1], None, ["shape (4,)", "3 tokens", "5 at [0]", "same vocabulary"]),
        ("a.npy", [[5, 0, 9], [5, 0, 9]], None, ["(2, 3)", "(3,)"]),
        ("a.npy", [0, 1, 3, 4], "tokens", ["3 at [2]", "2 such", "0 to 2"]),
        ("a.npy", [[0, 1], [2, 7]], "tokens", ["7 at [1, 1]", "0 to 2"]),
        ("a.json", [[0, 1], [], [2], [1, 3]], None, ["3 at [3, 1]", "1 such", "0 to 2"]),
        ("a.json", {"counts": [[5, 0], [1]]}, None, ["different lengths", "3 in each row"]),
        ("a.csv", "token,count\n3,1\n", None, ["3 at [0]", "0 to 2"]),
        ("a.csv", "token,count\n1,4\n1,5\n", None, ["2 lines for token 1"]),
        ("a.csv", "token,count\n1,4\n1.5,5\n", None, ["1.5 at [1]", "whole"]),
        # No counts at all.
        ("a.npy", [0, 0, 0], "counts", ["all counts are zero"]),
        ("a.npy", [5, np.nan, 9], None, ["nan at [1]", "finite"]),
        ("a.json", "[5, Infinity, 9]", None, ["inf at [1]", "finite"]),
        ("a.csv", "5\nnan\n9", None, ["nan at [1]", "finite"]),
        ("a.npy", [5, -1, 9], None, ["-1 at [1]", ">= 0"]),
        ("a.npy", [[0, 1], [2, -1]], None, ["-1 at [1, 1]", "padding"]),
        ("a.npy", [5.0, 0.5, 9.0], None, ["0.5 at [1]", "whole numbers"]),
        ("a.npy", [0.5, 0.25, 0.25], None, ["frequencies", "counts themselves"]),
        ("a.npy", np.array([0.4, 0.3, 0.3], dtype=np.float32), "counts", ["frequencies"]),
        ("a.npy", [[0.5, 0.5, 0.0], [0.1, 0.2, 0.7]], None, ["frequencies"]),
        ("a.npy", [5, 2**53 + 2, 9], None, ["9007199254740994 at [1]", "2**53"]),
        ("a.npy", np.array([5, 2**63 + 4096, 9], dtype=np.uint64), None, ["2**53"]),
        ("a.json", [5, 1e300, 9], None, ["1e+300 at [1]", "2**53"]),
        ("a.json", [5, 10**40, 9], None, ["object", "2**53"]),
        ("a.npy", [True, False, True], None, ["bool"]),
        ("a.npy", [1 + 2j, 0, 1], None, ["complex"]),
        ("a.npy", ["5", "0", "9"], None, ["<U1"]),
        ("a.npy", np.zeros(3, dtype=[("token", int)]), None, ["token"]),
        ("a.npy", np.zeros((2, 2, 2), dtype=int), None, ["(2, 2, 2)", "one or two axes"]),
        ("a.npy", 5, None, ["shape ()"]),
        ("a.npy", np.zeros((0, 3), dtype=int), None, ["no numbers"]),
        ("a.json", [], None, ["no numbers"]),
        ("a.json", [[], []], None, ["no numbers"]),
        ("a.json", [1, [2]], None, ["mixes numbers and lists"]),
        ("a.json", [[[1], [2, 3]], [[4]]], None, ["two levels"]),
        ("a.json", [[1, "2"], [3]], None, ["<U"]),
        ("a.json", [1, None], None, ["object"]),
        ("a.json", 5, None, ["shape ()"]),
        ("a.json", "null", None, ["shape ()"]),
        ("a.json", {"countz": COUNTS}, None, ["'countz'", "counts, tokens"]),
        ("a.json", {"counts": COUNTS, "tokens": TOKENS}, None, ["'counts', 'tokens'", "one of"]),
        ("a.json", {}, None, ["nothing", "one of counts, tokens"]),
        ("a.csv", "probability\n0.5\n", None, ["probability", "count"]),
        ("a.csv", "count,counts\n1,2\n", None, ["count,", "one column"]),
        ("a.csv", "token,count\n0,1,2\n", None, ["line 2", "3 cells", "2"]),
        ("a.csv", "token,count\n", None, ["no numbers"]),
        ("a.csv", "5\n0\nx\n", None, ["line 3", "'x'", "not a number"]),
        ("a.csv", "token,count\n0,five\n", None, ["line 2", "'five'"]),
        ("a.csv", "5;0;9\n", None, ["5;0;9"]),
        ("a.csv", '"5\n0\n' + "9" * 100 + '"', None, ["5 0 9", "9..."]),
        # Damaged files.
        ("a.npy", b"", None, ["empty"]),
        ("a.csv", " \n\n", None, ["empty"]),
        ("a.csv", "\N{BYTE ORDER MARK}", None, ["no numbers"]),
        ("a.csv", " , \n", None, ["no numbers"]),
        ("a.json", "", None, ["empty"]),
        ("a.npy", npy(range(1000))[:500], None, ["EOF", "8000 bytes"]),
        ("a.npy", npy(range(1000))[:50], None, ["EOF"]),
        ("a.npy", npy(COUNTS) + npy(COUNTS), None, ["goes on", "one array"]),
        ("a.npy", npy(COUNTS).replace(b"(3,), }         ", b"(10000000000000,)}"), None, ["cannot be read"]),
        ("a.npy", b"5,0,9", None, ["magic string"]),
        ("a.npy", pickle.dumps(COUNTS), None, ["magic string"]),
        ("a.npy", np.array([5, None, 9]), None, ["Python objects", "run any code"]),
        ("a.json", "[5, 0", None, ["not JSON", "line 1"]),
        ("a.json", "[" * 100_000, None, ["not JSON"]),
        ("a.json", b"\xff\xfe5", None, ["UTF-8", "byte 0"]),
        ("a.csv", b"5\n\xe9\n", None, ["UTF-8", "byte 2"]),
        ("a.csv", "5,0\0,9\n", None, []),
        ("a.txt", "5\n0\n9\n", None, ["'.txt'", ".npy, .csv, .json"]),
        ("counts", "5\n0\n9\n", None, ["''", ".npy, .csv, .json"]),
    ],
)  # fmt: skip
def test_bad_counts_are_refused_by_name(
    name: str, content: Any, kind: str | None, words: list[str], save: Save
) -> None:
    path = save(name, content)
    says(words, read_counts, path, 3, kind)


def test_a_pickle_is_never_opened(save: Save, tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[Callable[[Path], None], tuple[Path]]:
            return Path.touch, (tmp_path / "sprung",)

    for path in (save("a.npy", np.array([Trap()])), save("b.npy", pickle.dumps(Trap()))):
        with pytest.raises(InputError):
            read_counts(path, 1)
    assert not (tmp_path / "sprung").exists()


def test_files_that_cannot_be_opened(tmp_path: Path) -> None:
    (tmp_path / "folder.npy").mkdir()
    for name, words in [("none.npy", ["No such file"]), ("folder.npy", ["folder"])]:
        path = tmp_path / name
        for read in (lambda p: read_counts(p, 3), read_target, lambda p: read_visits(p, 3), file_key):
            with pytest.raises(StoreError, match=r"cannot read") as refusal:
                read(path)
            assert [word for word in [str(path), *words] if word not in str(refusal.value)] == []


@given(damage=st.lists(st.tuples(st.integers(0, 200), st.integers(0, 255)), min_size=1, max_size=5))
def test_a_damaged_npy_is_refused_or_read_but_never_crashes(
    damage: list[tuple[int, int]], tmp_path_factory: Any
) -> None:
    data = bytearray(npy(COUNTS))
    for at, byte in damage:
        data[at % len(data)] = byte
    path = tmp_path_factory.getbasetemp() / "damaged.npy"
    path.write_bytes(bytes(data))
    with suppress(SimkitError):
        counts = read_counts(path, 3).counts
        assert counts.shape == (3,)
        assert (counts >= 0).all()


@given(text=st.text(max_size=40))
def test_text_is_refused_or_read_but_never_crashes(text: str, tmp_path_factory: Any) -> None:
    folder = tmp_path_factory.getbasetemp()  # a folder an example would take longer than the example
    for name in ("a.csv", "a.json"):
        (folder / name).write_bytes(text.encode("utf-8", "surrogatepass"))
        for read in (lambda p: read_counts(p, 3), read_target, lambda p: read_visits(p, 3)):
            with suppress(SimkitError):
                read(folder / name)


# The target.

QUARTERS = np.array([0.25, 0.0, 0.75])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.npy", QUARTERS),
        ("a.npy", [1, 0, 3]),
        ("a.npy", [1.0, 0.0, 3.0]),
        ("a.npy", [QUARTERS]),
        ("a.npy", QUARTERS[:, None]),
        ("a.npy", QUARTERS.astype(np.float32)),
        ("a.csv", "0.25,0,0.75"),
        ("a.csv", "0.25\n0\n0.75\n"),
        ("a.csv", "probability\n0.25\n0\n0.75\n"),
        ("a.csv", "token,probability\n2,0.75\n1,0\n0,0.25\n"),
        ("a.csv", "weight,token,text\n3,2,the\n0,1,a\n1,0,of\n"),
        ("a.json", [0.25, 0, 0.75]),
        ("a.json", {"probabilities": [0.25, 0, 0.75]}),
        ("a.json", {"weights": [2**60, 0, 3 * 2**60]}),
    ],
)
def test_targets_in_every_form(name: str, content: Any, save: Save) -> None:
    law = read_target(save(name, content))
    assert law.dtype == np.float64
    assert law.tolist() == QUARTERS.tolist()


def test_rows_by_state_each_have_their_own_sum(save: Save) -> None:
    expected = [[0.25, 0.75], [0.5, 0.5], [1.0, 0.0]]
    for name, content in [
        ("a.npy", [[1, 3], [2, 2], [1, 0]]),
        ("b.npy", expected),
        ("a.csv", "1,3\n2,2\n1,0\n"),
        ("a.json", {"weights": [[1, 3], [2, 2], [1, 0]]}),
    ]:
        assert read_target(save(name, content)).tolist() == expected


def test_rounded_probabilities_are_divided_by_their_sum(save: Save) -> None:
    assert read_target(save("a.json", [0.3333333] * 3)).tolist() == pytest.approx([1 / 3] * 3, rel=1e-15)
    # Ten thousand float32 numbers: each is right to 6e-8, their sum in float64 to about 1e-8.
    row: NDArray[np.float64] = 1.0 / np.arange(1, 10_001)
    row /= row.sum()
    law = read_target(save("a.npy", row.astype(np.float32)))
    assert abs(law.sum() - 1.0) < 1e-15
    assert np.abs(law / row - 1.0).max() < 2e-7
    # A sum that float32 may have, and float64 may not.
    off = [0.5, 0.50001]
    assert read_target(save("b.npy", np.array(off, dtype=np.float32))).sum() == 1.0
    says(["sum to 1.00001", "more than 1e-06"], read_target, save("c.npy", off))


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.npy", [0.5, 0.3, 0.1], ["row 0", "sum to 0.9", "weights"]),
        ("a.npy", [0.5, 1.5], ["row 0", "sum to 2"]),
        ("a.npy", [[0.5, 0.5], [0.5, 0.6]], ["row 1", "sum to 1.1"]),
        ("a.npy", [[1, 1], [0, 0]], ["row 1", "all zero"]),
        ("a.npy", [0, 0], ["row 0", "all zero"]),
        ("a.npy", [0.5, -0.5, 1.0], ["-0.5 at [1]", "logits"]),
        ("a.npy", [-0.69, -0.69], ["-0.69 at [0]", "log-probabilities"]),
        ("a.npy", [0.5, np.nan], ["nan at [1]", "finite"]),
        ("a.json", [[0.5, 0.5], [1]], ["[1, 2]", "one length"]),
        ("a.json", {"counts": [1, 3]}, ["'counts'", "probabilities, weights"]),
        ("a.json", {"weights": [0.5, 0.5]}, ["0.5 at [0]", "whole"]),
        ("a.json", {"probabilities": [1, 3]}, ["sum to 4"]),
        ("a.csv", "token,count\n0,1\n", ["token, count", "probability"]),
        ("a.csv", "token\n0\n", ["token", "probability"]),
        ("a.csv", "token,token,weight\n0,0,1\n", ["token, token, weight", "one column"]),
        ("a.csv", "token,weight\n0,1\n2,1\n", ["2 at [1]", "0 to 1", "2 lines"]),
        ("a.csv", "token,weight\n0,1\n0,1\n", ["2 lines for token 0"]),
        ("a.npy", npy(QUARTERS)[:-4], ["EOF"]),
        ("a.npy", np.array([0.5, None]), ["Python objects"]),
        ("a.npz", b"PK", ["'.npz'", ".npy, .csv, .json"]),
        ("a.csv", "", ["empty"]),
    ],
)
def test_bad_targets_are_refused_by_name(name: str, content: Any, words: list[str], save: Save) -> None:
    path = save(name, content)
    says(words, read_target, path)


def test_visits_are_one_planned_number_a_state(save: Save) -> None:
    for name, content in [("a.npy", [10, 2.5]), ("a.csv", "10\n2.5"), ("a.json", {"visits": [10, 2.5]})]:
        assert read_visits(save(name, content), 2).tolist() == [10.0, 2.5]
    assert read_visits(save("b.csv", "visits\n10\n"), 1).tolist() == [10.0]
    for content, words in [
        ([10], ["1 numbers", "2 states"]),
        ([[10, 2], [3, 4]], ["(2, 2)", "2 states"]),
        ([10, -2], ["-2 at [1]", "planned"]),
        ([[1], [2, 3]], ["2 states"]),
        ({"counts": [1, 2]}, ["'counts'", "visits"]),
    ]:
        path = save("c.json", content)
        says(words, read_visits, path, 2)
    path = save("d.csv", "token,visits\n0,10\n1,2\n")
    says(["one planned number"], read_visits, path, 2)


def test_a_key_is_the_content_and_not_the_name(save: Save) -> None:
    one, same, other = save("a.npy", COUNTS), save("b.npy", COUNTS), save("c.npy", [5, 0, 8])
    assert file_key(one) == file_key(same) == "sha256:" + sha256(npy(COUNTS)).hexdigest()[:16]
    assert file_key(other) != file_key(one)
