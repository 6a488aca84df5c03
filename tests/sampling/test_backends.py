"""Three readings of one loop: the same tokens and the same counts for any seed, so all is `==`."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from simkit.laws.named import make_pair
from simkit.laws.synthetic import CORNER_CASES, corner_case
from simkit.rules.registry import RULES
from simkit.sampling import cpu, philox, simulate, vectorised
from simkit.sampling.program import compile_program
from simkit.sampling.tally import Counts
from tests.sampling.cases import BACKENDS, FIELDS, PAIRS, equal, run

DRAFT_LENGTHS = (1, 2, 3, 5, 64)
LENGTHS = (1, 2, 4, 9, 30)
FIRST = (0, 1, 2**32 - 3, 2**40 + 7)  # the third crosses from one low word of the trial to the next
PLAIN = ("token", "replace-from-target")
OTHERS = (  # a flag that draws again, further drafts at a slot, numbers beyond 64 bits, coins of 0 and 1
    *(name for name, entry in RULES.items() if entry.chain and name != "token"),
    "with-replacement:3",
    "k-seq:4",
    "lenience:1/3",
)


def lengths_for(pair):
    return [(K, L) for K in DRAFT_LENGTHS for L in LENGTHS if pair.slots == 1 or pair.slots >= K]


def test_there_are_enough_pairs():
    assert len(PAIRS) >= 30
    assert set(CORNER_CASES) <= set(PAIRS)


@pytest.mark.parametrize("name", PAIRS)
def test_all_readings_draw_the_same(name, rng):
    # Red when one backend's loop, table, coin or address differs from the other two's in anything.
    pair = PAIRS[name](rng)
    for K, L in lengths_for(pair):
        rule, first = str(rng.choice(PLAIN)), int(rng.choice(FIRST))
        program = compile_program(pair, rule, draft_length=K, length=L, seed=int(rng.integers(2**63)))
        plain = run(program, 5, first, "reference")
        assert equal(plain, run(program, 5, first, "numpy")), (K, L, rule, first)
        assert equal(plain, run(program, 5, first, "numba")), (K, L, rule, first)
        assert equal(plain, run(program, 5, first, "numba", tokens=False)), (K, L, rule, first)


@pytest.mark.parametrize("rule", OTHERS)
def test_all_readings_of_every_chain_rule_draw_the_same(rule, rng):
    for name in rng.permutation(sorted(PAIRS))[:8].tolist():
        pair = PAIRS[name](rng)
        if pair.vocabulary > 300:  # the reference is slow there
            continue
        K, L = lengths_for(pair)[int(rng.integers(len(lengths_for(pair))))]
        program = compile_program(pair, rule, draft_length=K, length=L, seed=int(rng.integers(2**63)))
        plain = run(program, 5, 0, "reference")
        assert equal(plain, run(program, 5, 0, "numpy")), (name, K, L)
        assert equal(plain, run(program, 5, 0, "numba")), (name, K, L)
        many = int(cpu.LANES + rng.integers(2, 300))
        assert equal(run(program, many, 0, "numpy"), run(program, many, 0, "numba")), (name, K, L)


@pytest.mark.parametrize("name", PAIRS)
def test_fast_backends_draw_the_same_when_lanes_are_used_again(name, rng):
    # More trials than lanes, and decodes that end early: lanes are seated again, moved, and run dry.
    pair = PAIRS[name](rng)
    for K, L in ((1, 4), (3, 9), (64, 2)):
        if (K, L) in lengths_for(pair):
            program = compile_program(pair, draft_length=K, length=L, seed=int(rng.integers(2**63)))
            trials, first = int(cpu.LANES * 2 + rng.integers(-2, 3)), int(rng.choice(FIRST))
            assert equal(run(program, trials, first, "numpy"), run(program, trials, first, "numba")), (K, L)


def test_the_character_model_draws_the_same(seed):
    program = compile_program(make_pair("ngram"), draft_length=3, length=12, seed=seed)
    plain = run(program, 10, 0, "reference")
    assert equal(plain, run(program, 10, 0, "numpy"))
    assert equal(plain, run(program, 10, 0, "numba"))


def test_tokens_are_those_counted(rng, seed):
    # The counts again, from the tokens alone.
    pair = PAIRS["ends"](rng)
    program = compile_program(pair, draft_length=3, length=9, seed=seed)
    counts, tokens = run(program, 300)
    state = pair.initial[np.arange(300) % len(pair.initial)]
    by_hand, joint, alive = np.zeros_like(counts.counts), np.zeros_like(counts.joint), np.ones(300, bool)
    cell = np.zeros(300, dtype=np.int64)
    for position, column in enumerate(tokens.T):
        assert np.array_equal(column >= 0, alive)
        np.add.at(by_hand, (state[alive], column[alive]), 1)
        if position < program.joint_length:
            cell = cell * pair.vocabulary + column
        if position == program.joint_length - 1:
            np.add.at(joint, ((np.arange(300) % len(pair.initial))[alive], cell[alive]), 1)
        state = np.where(alive, pair.next_state[state, np.maximum(column, 0)], state)
        alive = alive & (state != pair.end)
    assert program.joint_length >= 2
    assert np.array_equal(counts.counts, by_hand)
    assert np.array_equal(counts.joint, joint)


@pytest.mark.parametrize("count", [1, 513, 1023, 1024, 1025, 2500])
@pytest.mark.parametrize(
    "name", ["equal", "disjoint", "partial-overlap", "one-token", "by-position", "draft-by-slot"]
)
def test_the_kernel_of_one_position_equals_the_chain(name, count, seed):
    # Without an array for tokens, K = L = 1 takes a kernel of its own; with one, it takes the chain's.
    for first in (0, 2**32 - 200):
        program = compile_program(corner_case(name), draft_length=1, length=1, seed=seed)
        alone, chain = (run(program, count, first, tokens=tokens) for tokens in (False, True))
        assert equal(alone, chain)
        assert equal(alone, run(program, min(count, 513), first, "numpy")) or count > 513


@pytest.mark.parametrize("lanes", [1, 2, 3, 50])
def test_the_number_of_lanes_changes_nothing(monkeypatch, rng, seed, lanes):
    # The kernels run as plain Python, since compiled ones hold the number of lanes as a constant.
    programs = [
        compile_program(PAIRS["by-slot-ends"](rng), draft_length=3, length=5, seed=seed),
        compile_program(corner_case("partial-overlap"), draft_length=1, length=1, seed=seed),
    ]
    plain = [run(program, 20, 0, "reference", tokens=False) for program in programs]
    monkeypatch.setattr(cpu, "LANES", lanes)
    monkeypatch.setattr(cpu, "BATCH", lanes)
    for kernel in ("_chain_kernel", "_single_kernel"):
        monkeypatch.setattr(cpu, kernel, getattr(cpu, kernel).py_func)
    assert all(equal(p, run(program, 20, tokens=False)) for p, program in zip(plain, programs, strict=True))


@pytest.mark.parametrize("batch", [1, 3, 10, 1000])
def test_the_batch_of_numpy_changes_nothing(monkeypatch, rng, seed, batch):
    program = compile_program(PAIRS["ends"](rng), draft_length=3, length=5, seed=seed)
    plain = run(program, 33, 5, "reference")
    monkeypatch.setattr(vectorised, "BATCH", batch)
    assert equal(plain, run(program, 33, 5, "numpy"))


@pytest.mark.parametrize("backend", BACKENDS)
def test_any_split_into_shards_adds_up(rng, seed, backend):
    program = compile_program(PAIRS["many-requests"](rng), draft_length=3, length=5, seed=seed)
    whole = run(program, 40, 3, backend)
    cuts = [0, *sorted(rng.choice(np.arange(1, 40), 4, replace=False).tolist()), 40]
    total, tokens = Counts.zeros(program.pair, 3, program.joint_length), []
    for begin, end in itertools.pairwise(cuts):
        part, drawn = run(program, end - begin, 3 + begin, backend)
        total.add(part)
        tokens.append(drawn)
    assert equal(whole, (total, np.concatenate(tokens)))


@pytest.mark.parametrize(("K", "L"), [(1, 1), (3, 7)])
def test_threads_and_chunks_change_nothing(monkeypatch, rng, seed, K, L):
    # Chunks of about 100 tokens instead of two million, so that every thread gets many.
    pair, chunks = PAIRS["requests-of-floats"](rng), simulate._chunks
    asked = {"draft_length": K, "length": L, "trials": 2000, "seed": seed, "first_trial": 2**32 - 1000}
    whole = simulate.simulate(pair, **asked, threads=1)
    monkeypatch.setattr(simulate, "_chunks", lambda first, trials, length: chunks(first, trials, length, 100))
    for threads in (1, 2, 3):
        assert simulate.simulate(pair, **asked, threads=threads).digest == whole.digest
    assert simulate.simulate(pair, **asked, backend="numpy").digest == whole.digest


def plant_in_reference(monkeypatch, mutant):
    original = philox.words

    def words(trial, start, slot, purpose, key):
        start, purpose, coin_is_proposal = mutant(start, purpose)
        proposal, coin = original(trial, start, slot, purpose, key)
        return proposal, proposal if coin_is_proposal else coin

    monkeypatch.setattr(philox, "words", words)


def plant_in_numpy(monkeypatch, mutant):
    original = philox.words_array

    def words(trial, start, slot, purpose, key):
        start, purpose, coin_is_proposal = mutant(start, purpose)
        proposal, coin = original(trial, start, slot, purpose, key)
        return proposal, proposal if coin_is_proposal else coin

    monkeypatch.setattr(philox, "words_array", words)


def plant_in_numba(monkeypatch, mutant):
    """The chain kernel runs as plain Python, with a `fill` that reads other addresses."""
    original, low, half, slots = cpu.fill, np.uint64(2**32 - 1), np.uint64(32), np.uint64(2**64 - 2**40)

    def fill(a, b, n, k0, k1):
        start, purpose, coin_is_proposal = mutant(b & low, (b >> half) & np.uint64(255))
        b[:] = start | (b & slots) | np.asarray(purpose, dtype=np.uint64) << half
        original(a, b, n, k0, k1)
        if coin_is_proposal:
            b[:] = a

    monkeypatch.setattr(cpu, "_chain_kernel", cpu._chain_kernel.py_func)
    monkeypatch.setattr(cpu, "fill", fill)


PLANT = {"reference": plant_in_reference, "numpy": plant_in_numpy, "numba": plant_in_numba}
# (start, purpose) -> (start read, purpose read, whether the coin is the word that proposed)
MUTANTS = {
    "none": lambda start, purpose: (start, purpose, False),
    "coin read where the draft was": lambda start, purpose: (start, purpose, True),
    "block start left out": lambda start, purpose: (start * 0, purpose, False),
    "purpose ignored": lambda start, purpose: (start, purpose * 0, False),
}


@pytest.mark.parametrize("planted", PLANT)
@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_word_read_twice_turns_equality_red(monkeypatch, seed, planted, mutant):
    # "none" shows that the planting itself changes nothing. The others change one draw in ten at least, so
    # that 100 decodes of nine tokens come out equal with probability below 1e-30.
    program = compile_program(corner_case("partial-overlap"), draft_length=3, length=9, seed=seed)
    right = run(program, 100, 0, "numpy" if planted != "numpy" else "numba")
    PLANT[planted](monkeypatch, MUTANTS[mutant])
    wrong = run(program, 100, 0, planted)
    assert equal(right, wrong) == (mutant == "none")


@pytest.mark.parametrize("field", FIELDS)
def test_equal_sees_every_field(field, seed):
    program = compile_program(corner_case("requests"), draft_length=2, length=3, seed=seed)
    one, other = run(program, 10), run(program, 10)
    assert equal(one, other)
    getattr(other[0], field).flat[0] += 1
    assert not equal(one, other)
