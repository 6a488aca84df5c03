"""The Numba kernels compare leading 32 bits and leave ties to the exact coin: here every word is a tie.

A random word is a tie once in 2**32; no other test would meet one.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from simkit.laws.pair import Pair
from simkit.rules import draws
from simkit.sampling import cpu, philox, reference
from simkit.sampling.program import compile_program
from simkit.sampling.tables import ALWAYS, AliasTables, Coins, alias_tables, coins
from simkit.sampling.vectorised import draw
from tests.sampling.cases import equal, random_rows, run

LAST = 2**64 - 1
U64 = np.uint64


def chosen(kernel, tables: AliasTables, words: list[int], rows: list[int]) -> list[int]:
    """Return the tokens that a kernel draws, each word from its row."""
    tokens = np.empty(len(words), dtype=np.uint32)
    kernel(
        np.array(words, dtype=U64), np.array(rows, dtype=U64), len(words), U64(tables.alias.shape[1]),
        tables.packed.ravel(), tables.coins.exact.ravel(), tokens,
    )  # fmt: skip
    return tokens.tolist()


def refused(tables: Coins, words: list[int], rows: list[int], tokens: list[int]) -> list[bool]:
    """Return for each word whether the accept test refuses its token."""
    out = np.empty(len(words), dtype=np.uint8)
    cpu.judge(
        np.array(words, dtype=U64), np.array(rows, dtype=U64), len(words), U64(tables.exact.shape[1]),
        np.array(tokens, dtype=np.uint32), tables.top.ravel(), tables.exact.ravel(), out,
    )  # fmt: skip
    return out.astype(bool).tolist()


def by_integers(tables: AliasTables, word: int, row: int) -> int:
    cell, low = divmod(word * tables.alias.shape[1], 2**64)
    return cell if low >> 1 < int(tables.coins.exact[row, cell]) else int(tables.alias[row, cell])


def ties_of_draws(tables: AliasTables) -> list[tuple[int, int, bool]]:
    """Return (word, row, kept) of words whose low half ties with their cell's coin, on both sides of it."""
    found, size = [], tables.alias.shape[1]
    for row, line in enumerate(tables.coins.exact.tolist()):
        for cell, coin in enumerate(line):
            top = min(coin >> 31, 2**32 - 1)
            for low in (
                top << 32,
                2 * coin - size,
                2 * coin,
                2 * coin + size,
                (top << 32 | 0xFFFFFFFF) - size,
            ):
                word = -(-((cell << 64) + max(low, 0)) // size)
                where, rest = divmod(word * size, 2**64)
                if where == cell and rest >> 32 == top:
                    found.append((word, row, rest >> 1 < coin))
    return found


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 100])
def test_a_tie_is_settled_by_the_exact_coin(rng, size):
    rows = random_rows(rng, 6, size)
    if size > 1:  # a row whose coins are no multiples of 2**31, whatever was drawn
        rows[0] = np.arange(size) + 7 * size
    tables = alias_tables(rows)
    words, at, kept = (list(side) for side in zip(*ties_of_draws(tables), strict=True))
    expected = [by_integers(tables, word, row) for word, row in zip(words, at, strict=True)]
    assert chosen(cpu.choose, tables, words, at) == expected
    assert chosen(cpu.choose_exactly, tables, words, at) == expected
    assert draw(tables, np.array(at), np.array(words, dtype=U64)).tolist() == expected
    plain = [tuple(row) for row in rows.tolist()]
    assert [draws.draw(plain[row], word) for word, row in zip(words, at, strict=True)] == expected
    assert set(kept) == ({True, False} if size > 1 else {True})
    # Teeth: leading bits alone answer "not kept" to every tie, and one tie here contradicts that.
    assert any(kept)


def test_a_tie_among_many_words_changes_no_other(rng):
    tables = alias_tables(np.array([[50, 30, 15, 4, 1]]))
    ties = [word for word, _, _ in ties_of_draws(tables)]
    words = rng.integers(0, 2**64, 500, dtype=U64).tolist()
    words[10::90] = ties[: len(words[10::90])]
    expected = [by_integers(tables, word, 0) for word in words]
    assert chosen(cpu.choose, tables, words, [0] * len(words)) == expected


@pytest.mark.parametrize("size", [1, 5, 8])
def test_an_even_law_keeps_the_largest_word(size):
    # Every coin is 2**63, which has no leading 32 bits; its largest word ties with what stands for them.
    tables = alias_tables(np.ones((1, size), dtype=np.int64))
    assert set(tables.coins.exact[0].tolist()) == {ALWAYS}
    last = [-(-((cell + 1) << 64) // size) - 1 for cell in range(size)]
    for kernel in (cpu.choose, cpu.choose_exactly):
        assert chosen(kernel, tables, last, [0] * size) == list(range(size))
    assert draw(tables, np.zeros(size, dtype=np.int64), np.array(last, dtype=U64)).tolist() == list(
        range(size)
    )


def test_ties_of_the_accept_test(rng):
    n, d = rng.integers(0, 2**40, (2, 3, 7))
    table = coins(n, np.maximum(d, 1))
    cases = []
    for row, line in enumerate(table.exact.tolist()):
        for token, coin in enumerate(line):
            top = min(coin >> 31, 2**32 - 1)
            near = (top << 32, 2 * coin - 1, 2 * coin, 2 * coin + 1, top << 32 | 0xFFFFFFFF)
            cases += [(word, row, token) for word in near if 0 <= word <= LAST and word >> 32 == top]
    words, rows, tokens = (list(side) for side in zip(*cases, strict=True))
    expected = [word >> 1 >= int(table.exact[row, token]) for word, row, token in cases]
    assert refused(table, words, rows, tokens) == expected
    assert set(expected) == {True, False}  # leading bits alone would refuse them all


@pytest.mark.parametrize(
    ("coin", "word", "answer"),
    [
        (ALWAYS, LAST, False),
        (ALWAYS, 0, False),
        (ALWAYS - 1, LAST, True),
        (ALWAYS - 1, LAST - 2, False),
        (0, 0, True),
        (0, LAST, True),
        (1, 0, False),
        (1, 1, False),
        (1, 2, True),
        (2**31, 2**32, True),
        (2**31, 2**32 - 1, False),
    ],
)
def test_extreme_coins(coin, word, answer):
    table = Coins(np.array([[coin]], dtype=U64))
    assert refused(table, [word], [0], [0]) == [answer]
    assert (word >> 1 >= coin) == answer


@pytest.mark.parametrize("more", [0, 1], ids=["the coin is the word: refused", "one more: kept"])
@pytest.mark.parametrize("trial", [0, 5, 1023, 1024, 1500])
def test_a_tie_in_the_kernel_of_one_position_is_decided_by_the_full_coin(trial, more, seed):
    # Accept coins are made to measure for one trial's word; its neighbours, and their counts, must not move.
    program = compile_program(Pair.from_weights([3, 2, 1], [1, 2, 3]), draft_length=1, length=1, seed=seed)
    word, coin = philox.words(trial, 0, 0, philox.DRAFT, program.key)
    exact = program.tables.accept.exact.copy()
    exact[0, draws.draw(reference.weights(program.pair.rows[1:2]), word)] = (coin >> 1) + more
    tied = replace(program)
    tied.__dict__["tables"] = replace(program.tables, accept=Coins(exact))
    assert (coin >> 32) in tied.tables.accept.top
    alone = run(tied, 1600, 0, tokens=False)
    assert equal(alone, run(tied, 1600, 0, "numpy", tokens=False))
    assert equal(run(tied, 1, trial, tokens=False), run(tied, 1, trial, "numpy", tokens=False))
