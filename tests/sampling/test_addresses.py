"""No word is read twice: not in two blocks, not for two purposes, not by two trials, tasks or seeds."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from simkit.laws.pair import Pair
from simkit.laws.synthetic import corner_case
from simkit.rules.draws import draw, keep_coin
from simkit.rules.step import token_rule
from simkit.sampling import cpu, philox
from simkit.sampling.program import compile_program
from simkit.sampling.reference import block, step_at, weights
from tests.sampling.cases import PAIRS, run

LAST = 2**64 - 1


def read_by_reference(monkeypatch, program, trials, first=0) -> Counter:
    """Return how often the reference reads each (counter, key)."""
    read: Counter = Counter()
    original = philox.philox

    def spy(counter, key):
        read[counter, key] += 1
        return original(counter, key)

    with monkeypatch.context() as patch:
        patch.setattr(philox, "philox", spy)
        run(program, trials, first, "reference")
    return read


def read_by_numpy(monkeypatch, program, trials, first=0) -> Counter:
    read: Counter = Counter()
    original = philox.words_array

    def spy(trial, start, slot, purpose, key):
        for t, s, k in zip(trial.tolist(), start.tolist(), slot.tolist(), strict=True):
            read[philox.address(t, s, k, purpose), key] += 1
        return original(trial, start, slot, purpose, key)

    with monkeypatch.context() as patch:
        patch.setattr(philox, "words_array", spy)
        run(program, trials, first, "numpy")
    return read


def read_by_numba(monkeypatch, program, trials, first=0) -> Counter:
    """The chain kernel is run as plain Python, so that its calls of `fill` can be seen."""
    read: Counter = Counter()
    original = cpu.fill

    def spy(a, b, n, k0, k1):
        for x, y in zip(a[:n].tolist(), b[:n].tolist(), strict=True):
            read[(x % 2**32, x >> 32, y % 2**32, y >> 32), (int(k0), int(k1))] += 1
        original(a, b, n, k0, k1)

    with monkeypatch.context() as patch:
        patch.setattr(cpu, "_chain_kernel", cpu._chain_kernel.py_func)
        patch.setattr(cpu, "fill", spy)
        run(program, trials, first, "numba")
    return read


@pytest.mark.parametrize(
    "name", ["disjoint", "partial-overlap", "automaton", "by-slot-ends", "requests", "equal"]
)
def test_no_address_is_read_twice_and_all_backends_read_the_same(monkeypatch, rng, seed, name):
    pair = PAIRS[name](rng)
    for K, L, rule in ((1, 1, "one-hot"), (1, 9, "token"), (3, 9, "with-replacement:3"), (5, 4, "token")):
        program = compile_program(pair, rule, draft_length=K, length=L, seed=seed)
        first = int(rng.choice([0, 2**32 - 10]))
        read = read_by_reference(monkeypatch, program, 20, first)
        assert set(read.values()) == {1}
        assert {key for _, key in read} == {program.key}
        assert {(low + 2**32 * high) for (low, high, _, _), _ in read} <= set(range(first, first + 20))
        assert read_by_numpy(monkeypatch, program, 20, first) == read
        assert read_by_numba(monkeypatch, program, 20, first) == read


@pytest.mark.parametrize(
    "without",
    [
        lambda trial, start, slot, purpose: (trial, 0, 0, 256 * slot + purpose),
        lambda trial, start, slot, purpose: (trial, 0, start, purpose),
        lambda trial, start, slot, purpose: (trial, 0, start, 256 * slot),
        lambda trial, start, slot, purpose: (0, 0, start, 256 * slot + purpose),
    ],
    ids=["block start", "slot", "purpose", "trial"],
)
def test_an_address_that_leaves_something_out_is_read_twice(monkeypatch, seed, without):
    # The first mutant is the tempting one, and the token rule's own output hides it.
    program = compile_program(corner_case("partial-overlap"), draft_length=3, length=9, seed=seed)
    monkeypatch.setattr(philox, "address", without)
    read = read_by_reference(monkeypatch, program, 30)
    assert max(read.values()) > 1


def decide(words: dict, K: int = 1, L: int = 9):
    """Return the decisions of the first block of p = (.5, .5, 0), q = (.25, .25, .5) for given words."""
    program = compile_program(Pair.from_weights([2, 2, 0], [1, 1, 2]), draft_length=K, length=L, seed=0)
    return list(block(program, 0, 0, lambda *address: words[address])), program


def test_draft_word_0_proposes_and_word_1_is_the_coin():
    for word in (0, 2**62, 2**63, LAST):
        (decision, *rest), program = decide(
            {
                (0, 0, philox.DRAFT): (word, 0),
                (0, 0, philox.CORRECT): (0, LAST),
                (0, 1, philox.BONUS): (0, LAST),
            }
        )
        step = step_at(program.pair, token_rule, 0, 0)
        assert decision.draft == draw(weights(step.propose), word)
        assert decision.coin == 0
        assert decision.kept == (keep_coin(*(int(part[0, decision.draft]) for part in step.accept)) > 0)
        assert len(rest) == decision.kept  # a bonus token follows a kept draft


@pytest.mark.parametrize("replacement", [0, LAST])
def test_word_0_of_its_own_address_draws_the_replacement(replacement):
    tokens = []
    for other in (0, LAST):
        words = {(0, 0, philox.DRAFT): (LAST, LAST), (0, 0, philox.CORRECT): (replacement, other)}
        (decision,), program = decide(words)
        assert not decision.kept
        assert decision.token == draw(weights(step_at(program.pair, token_rule, 0, 0).correct), replacement)
        tokens.append(decision.token)
    assert tokens[0] == tokens[1]  # word 1 is not used


@pytest.mark.parametrize("bonus", [0, LAST])
def test_word_0_after_the_last_slot_draws_the_bonus_token(bonus):
    words = {(0, slot, philox.DRAFT): (0, 0) for slot in range(2)} | {(0, 2, philox.BONUS): (bonus, 5)}
    decisions, program = decide(words, K=2)
    assert [d.kept for d in decisions] == [True, True, True]
    assert decisions[-1].token == draw(weights(step_at(program.pair, token_rule, 0, 0).bonus), bonus)


def test_nothing_is_read_for_tokens_beyond_the_end():
    # Asking for a replacement or bonus word that is not in the table raises KeyError.
    refused = {(0, 0, philox.DRAFT): (0, 0), (0, 1, philox.DRAFT): (LAST, LAST)}
    decisions, _ = decide(refused, K=2, L=1)
    assert [(d.kept, d.token) for d in decisions] == [(True, decisions[0].draft), (False, None)]
    kept = {(0, slot, philox.DRAFT): (0, 0) for slot in range(2)}
    assert len(decide(kept, K=2, L=2)[0]) == 2


def test_tasks_and_seeds_never_share_words():
    pairs = [corner_case("equal"), corner_case("disjoint")]
    keys = [
        compile_program(pair, rule, draft_length=K, length=L, seed=seed).key
        for pair in pairs
        for rule in ("token", "replace-from-target")
        for K in (1, 2)
        for L in (1, 2)
        for seed in (0, 1, -1)
    ]
    assert len(set(keys)) == len(keys) == 48


def test_the_name_of_a_pair_and_the_words_have_nothing_to_do_with_each_other():
    named = [Pair.from_weights([1, 2], [2, 1], name=name) for name in ("a", "b")]
    one, other = (compile_program(pair, draft_length=1, length=1, seed=0) for pair in named)
    assert one.key == other.key
    assert np.array_equal(run(one, 50)[1], run(other, 50)[1])
