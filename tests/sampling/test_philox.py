from __future__ import annotations

import hashlib

import numpy as np
import pytest
from randomgen import Philox

from simkit.sampling import cpu, philox

# The known-answer tests of Random123 1.09 for Philox4x32-10: counter, key, words.
ONES = 0xFFFFFFFF
KNOWN = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((ONES,) * 4, (ONES, ONES), (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


def plain(counter, key):
    return philox.philox(counter, key)


def numpy(counter, key):
    # `words_array` splits the trial and packs slot and purpose; any last counter word is such a pair.
    c0, c1, c2, c3 = (np.array([c], dtype=np.uint64) for c in counter)
    pair = philox.words_array(c0 | c1 << np.uint64(32), c2, c3 >> np.uint64(8), c3 & np.uint64(255), key)
    return halves(int(w[0]) for w in pair)


def numba(counter, key):
    return halves(int(w) for w in cpu.philox(*(np.uint64(c) for c in (*counter, *key))))


def numba_fill(counter, key):
    a = np.array([counter[0] | counter[1] << 32], dtype=np.uint64)
    b = np.array([counter[2] | counter[3] << 32], dtype=np.uint64)
    cpu.fill(a, b, 1, *(np.uint64(k) for k in key))
    return halves((int(a[0]), int(b[0])))


def numba_fill_line(counter, key):
    a, b = np.empty(1, dtype=np.uint64), np.empty(1, dtype=np.uint64)
    first, start, last = counter[0] | counter[1] << 32, counter[2], counter[3]
    cpu.fill_line(*(np.uint64(x) for x in (first, start, last)), 1, *(np.uint64(k) for k in key), a, b)
    return halves((int(a[0]), int(b[0])))


def oracle(counter, key):
    """Return the words of an independent package, which advances its 128-bit counter before it draws."""
    number = sum(word << 32 * i for i, word in enumerate(counter))
    generator = Philox(counter=(number - 1) % 2**128, key=key[0] | key[1] << 32, number=4, width=32)
    return tuple(int(word) for word in generator.random_raw(4))


def halves(words):
    return tuple(half for word in words for half in (word & ONES, word >> 32))


READINGS = [plain, numpy, numba, numba_fill, numba_fill_line]


@pytest.mark.parametrize("reading", [*READINGS, oracle])
@pytest.mark.parametrize(("counter", "key", "words"), KNOWN)
def test_known_answers(reading, counter, key, words):
    assert reading(counter, key) == words


def test_all_readings_and_the_oracle_agree(rng):
    # Red for a lost carry or a swapped half at any address; the random counters pass 2**32 everywhere.
    for _ in range(200):
        counter = tuple(rng.integers(0, 2**32, 4).tolist())
        key = tuple(rng.integers(0, 2**32, 2).tolist())
        words = oracle(counter, key)
        assert all(reading(counter, key) == words for reading in READINGS)


@pytest.mark.parametrize("trial", [0, 1, 2**32 - 1, 2**32, 2**32 + 5, 2**62 - 1])
def test_words_of_an_address_are_the_oracle_s(trial):
    key = philox.key(1, {"task": "any"})
    for start, slot, purpose in ((0, 0, philox.DRAFT), (7, 3, philox.CORRECT), (2**31 - 1, 64, philox.BONUS)):
        x = oracle((trial % 2**32, trial // 2**32, start, 256 * slot + purpose), key)
        expected = (x[0] + 2**32 * x[1], x[2] + 2**32 * x[3])
        assert philox.words(trial, start, slot, purpose, key) == expected
        arrays = (np.array([n], dtype=np.uint64) for n in (trial, start, slot))
        assert tuple(int(w[0]) for w in philox.words_array(*arrays, purpose, key)) == expected


def test_a_line_is_consecutive_trials(rng):
    # Across 2**32, where the trial's low half wraps.
    first, n, key = 2**32 - 5, 11, tuple(rng.integers(0, 2**32, 2).tolist())
    a, b = np.empty(n, dtype=np.uint64), np.empty(n, dtype=np.uint64)
    cpu.fill_line(*(np.uint64(x) for x in (first, 9, 256 * 2 + 1)), n, *(np.uint64(k) for k in key), a, b)
    expected = [philox.words(first + i, 9, 2, 1, key) for i in range(n)]
    assert list(zip(a.tolist(), b.tolist(), strict=True)) == expected


def test_nine_rounds_are_not_enough(monkeypatch):
    # The known answers have teeth: they see a lost round.
    monkeypatch.setattr(philox, "ROUNDS", 9)
    assert all(plain(counter, key) != words for counter, key, words in KNOWN)


TASK = {"draft_length": 4, "length": 16, "pair": "00ff", "rule": "token"}


def test_the_key_is_the_head_of_a_hash_of_seed_and_task():
    text = '{"seed":7,"task":{"draft_length":4,"length":16,"pair":"00ff","rule":"token"}}'
    head = hashlib.sha256(text.encode()).digest()[:8]
    low, high = philox.key(7, TASK)
    assert (low + 2**32 * high).to_bytes(8, "little") == head


def test_the_key_is_stable():
    # Changing this number changes every result that anybody has stored.
    assert philox.key(7, TASK) == (1886206843, 2207287938)


def test_the_key_depends_on_all_of_the_task_and_not_on_its_order():
    others = [
        {**TASK, name: value}
        for name, value in (("draft_length", 5), ("length", 17), ("pair", "00fe"), ("rule", "t"))
    ]
    keys = {philox.key(seed, task) for seed in (-1, 0, 1, 2**70) for task in [TASK, *others]}
    assert len(keys) == 4 * 5
    assert philox.key(7, dict(reversed(TASK.items()))) == philox.key(7, TASK)
