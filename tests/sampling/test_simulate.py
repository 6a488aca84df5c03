from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from simkit.errors import InputError, UnknownNameError
from simkit.laws.pair import Pair
from simkit.laws.synthetic import corner_case
from simkit.rules.choose import Emitted
from simkit.sampling import simulate as module
from simkit.sampling.program import compile_program
from simkit.sampling.simulate import (
    choose_backend,
    default_threads,
    draw_tokens,
    find_backend,
    simulate,
)
from simkit.sampling.tally import Counts, Run

PAIR = corner_case("automaton")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"trials": 0}, "trials=0"),
        ({"trials": -5}, "trials=-5"),
        ({"trials": 1e6}, "trials=1000000.0; it needs an integer"),
        ({"first_trial": -1}, "first_trial=-1"),
        ({"first_trial": 2**62}, "trials are numbered 0 to 2"),
        ({"draft_length": 0}, "draft_length=0"),
        ({"draft_length": 65}, "draft_length=65"),
        ({"length": 0}, "length=0"),
        ({"length": -1}, "length=-1"),
        ({"seed": 1.5}, "seed=1.5"),
        (
            {"backend": "nump"},
            "unknown backend 'nump'; known: auto, numba, numpy, reference. Did you mean 'numpy'",
        ),
        ({"rule": "toke"}, "unknown rule 'toke'; known: .*token.*Did you mean 'token'"),
    ],
)
@pytest.mark.parametrize("function", [simulate, draw_tokens])
def test_bad_input_is_named(function, wrong, message):
    with pytest.raises(InputError, match=message):
        function(PAIR, **{"trials": 10, **wrong})


@pytest.mark.parametrize("backend", ["auto", "numba", "numpy", "reference"])
@pytest.mark.parametrize("threads", [0, -1, 1.5])
def test_bad_numbers_of_threads_are_named(threads, backend):
    with pytest.raises(InputError, match=f"threads={threads}"):
        simulate(PAIR, trials=1, threads=threads, backend=backend)


def test_too_few_slots_are_named():
    pair = Pair.by_slot(target=[0.5, 0.5], draft=[[0.5, 0.5], [0.9, 0.1]])
    with pytest.raises(InputError, match="draft rows for 2 slots; draft_length=4"):
        simulate(pair, trials=1)


def test_the_pair_alone_is_enough_and_defaults_are_stated(monkeypatch):
    monkeypatch.setattr(module, "_chunks", lambda first, trials, length: [(0, 100)])  # a short million
    found = simulate(PAIR)
    assert (found.rule, found.draft_length, found.length) == ("token", 4, 16)
    assert found.runs == (Run(0, 0, 1_000_000),)
    n = default_threads()
    assert found.backend == f"numba, {n} thread{'s' if n > 1 else ''} (auto: the fastest on a CPU)"


def test_a_backend_says_why_it_was_chosen():
    assert choose_backend("auto") == ("numba", "auto: the fastest on a CPU")
    assert choose_backend("reference") == ("reference", "asked for")
    with pytest.raises(UnknownNameError):
        choose_backend("cuda")
    assert (
        simulate(PAIR, trials=3, backend="reference", threads=3).backend == "reference, 1 thread (asked for)"
    )


@pytest.mark.parametrize("backend", ["numba", "numpy", "reference"])
def test_tokens_are_those_that_simulate_counts(seed, backend):
    asked = {"draft_length": 2, "length": 6, "trials": 40, "seed": seed, "first_trial": 7, "backend": backend}
    tokens, found = draw_tokens(PAIR, **asked), simulate(PAIR, **asked)
    assert tokens.dtype == np.int32
    assert tokens.shape == (40, 6)
    assert np.array_equal(np.bincount(tokens[tokens >= 0], minlength=4), found.counts.sum(axis=0))


def test_after_the_end_there_is_minus_one(seed):
    tokens = draw_tokens(PAIR, length=30, trials=200, seed=seed)
    ended = np.cumsum(tokens == 3, axis=1) > 0  # token 3 ends the text
    assert np.array_equal(tokens[:, 1:] == -1, ended[:, :-1])
    assert ended.any()


def test_numbers_from_numpy_leave_plain_integers_behind():
    found = simulate(PAIR, draft_length=np.int64(2), length=np.int32(3), trials=np.int64(4), seed=np.int64(5))
    assert json.dumps([found.draft_length, found.length, found.runs]) == "[2, 3, [[5, 0, 4]]]"


class Backend:
    """A backend that draws nothing, slowly; raises at one of its calls."""

    def __init__(self, raise_at: int = -1, error: type[BaseException] = KeyboardInterrupt) -> None:
        self.raise_at, self.error, self.calls, self.lock = raise_at, error, 0, threading.Lock()

    def __call__(self, program, first, count, counts, tokens=None) -> None:
        with self.lock:
            self.calls += 1
            me = self.calls
        if me == self.raise_at:
            raise self.error
        time.sleep(0.002)


@pytest.fixture
def plant(monkeypatch):
    """Return a function that puts a backend in place, and cuts runs into chunks of one token."""

    def put(backend: Backend) -> Backend:
        chunks = module._chunks
        monkeypatch.setattr(module, "find_backend", lambda name, program: backend)
        monkeypatch.setattr(module, "_chunks", lambda first, trials, length: chunks(first, trials, length, 1))
        return backend

    return put


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize(
    ("threads", "progress"), [(1, None), (1, lambda *_: None), (3, None), (3, lambda *_: None)]
)
def test_an_error_in_a_backend_ends_the_run(plant, threads, progress, error):
    # Red when the other workers draw on: 10,000 chunks would take 20 seconds, and 10,000 calls.
    backend, before = plant(Backend(5, error)), threading.active_count()
    with pytest.raises(error):
        simulate(PAIR, trials=10_000, threads=threads, progress=progress)
    assert backend.calls < 2000
    assert threading.active_count() == before


@pytest.mark.parametrize("threads", [1, 3])
def test_an_interrupt_while_waiting_ends_the_run(plant, threads):
    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    backend, before = plant(Backend()), threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        simulate(PAIR, trials=10_000, threads=threads, progress=interrupt)
    assert backend.calls < 9000
    assert threading.active_count() == before


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_progress_is_monotone_and_ends_at_the_total_once(plant, threads):
    told: list[tuple[int, int]] = []
    backend = plant(Backend())
    simulate(PAIR, trials=500, threads=threads, progress=lambda done, total: told.append((done, total)))
    done = [d for d, _ in told]
    assert done == sorted(done)
    assert told[-1] == (500, 500)
    assert done.count(500) == 1
    assert {total for _, total in told} == {500}
    assert backend.calls == 500


def test_progress_does_not_change_the_counts(seed):
    plain = simulate(PAIR, trials=1000, seed=seed, threads=1)
    assert simulate(PAIR, trials=1000, seed=seed, threads=1, progress=lambda *_: None).digest == plain.digest


@pytest.mark.parametrize(
    ("first", "trials", "length"), [(0, 1, 1), (5, 100, 7), (0, 7, 1000), (2**40, 33, 16)]
)
def test_chunks_are_all_trials_once(first, trials, length):
    chunks = list(module._chunks(first, trials, length, 64))
    assert [t for begin, n in chunks for t in range(begin, begin + n)] == list(range(first, first + trials))
    assert all(1 <= n <= max(1, 64 // length) for _, n in chunks)


MEMORY = """
import json
from simkit.sampling.bench import bench_memory
print(json.dumps(bench_memory(10**5, 10**7)))
"""


@pytest.mark.timing
def test_memory_is_flat_in_the_number_of_trials():
    # A process of its own, since a peak never falls. Keeping 10**7 tokens at 8 bytes would take 80 MB.
    done = subprocess.run(
        [sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True, timeout=120
    )
    found = json.loads(done.stdout)
    assert found["samples"] == [10**5, 10**7]
    assert found["growth_mb"] < 64


def mine(model, choose) -> Emitted:
    """The token rule for one draft, without a bonus token."""
    p, q = model.p(()), model.q((), 0)
    draft = choose(q)
    if choose.coin(p[draft], q[draft]):
        return Emitted((draft,), 1)
    return Emitted((choose([max(a - b, Fraction(0)) for a, b in zip(p, q, strict=True)]),), 0)


def test_a_function_of_ones_own_goes_in_the_place_of_a_name():
    found = simulate(PAIR, mine, draft_length=2, length=6, trials=500, seed=3)
    assert found.rule == "mine"
    options = {"draft_length": 2, "length": 6, "seed": 3}
    assert found.digest == simulate(PAIR, mine, trials=500, backend="reference", **options).digest
    parts = [simulate(PAIR, mine, trials=n, first_trial=m, **options) for n, m in ((200, 0), (300, 200))]
    assert found.digest == sum(parts).digest
    assert found.calls == found.tokens  # a call emits one token, kept or not


def test_numpy_says_that_it_draws_chain_rules_only():
    with pytest.raises(InputError, match="the numpy backend draws chain rules, and 'block' is none"):
        simulate(PAIR, "block", trials=1, backend="numpy")


@pytest.mark.parametrize("rule", ["shared-gumbel", "token"])
def test_shared_gumbel_noise_gives_the_same_text_whatever_the_draft(rule):
    # The words of one program, read with two drafts: only this rule's output does not depend on the draft.
    target, drafts = [4, 3, 2, 1], ([1, 1, 1, 1], [1, 2, 3, 4], [9, 0, 0, 1])
    programs = [
        compile_program(Pair.from_weights(target, draft), rule, draft_length=3, length=12, seed=5)
        for draft in drafts
    ]
    texts = []
    for program in programs:
        same = replace(program, key=programs[0].key)
        tokens = np.full((40, 12), -1, dtype=np.int32)
        find_backend("reference", same)(same, 0, 40, Counts.zeros(same.pair, 3, same.joint_length), tokens)
        texts.append(tokens)
    assert all(np.array_equal(texts[0], text) for text in texts) == (rule == "shared-gumbel")
