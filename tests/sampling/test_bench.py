from __future__ import annotations

import pytest

from simkit.sampling import bench
from simkit.sampling.bench import bench_decode, bench_memory, bench_pair, bench_rows, bench_rules
from simkit.sampling.program import compile_program
from simkit.sampling.simulate import default_threads

KEYS = {
    "backend", "vocab", "threads", "ns_per_sample", "floor_ns", "ratio_to_floor", "numpy_ns",
    "speedup_over_numpy", "speedup_over_one_thread", "table_ms",
}  # fmt: skip
NOISE = 1.5  # by how much a shared machine may miss each stated ratio


def test_rows_have_the_stated_keys():
    told: list[tuple[int, int]] = []
    rows = bench_rows((32, 100), samples=20_000, repeats=1, progress=lambda *at: told.append(at))
    threads = sorted({1, min(2, default_threads())})
    assert [(row["vocab"], row["threads"]) for row in rows] == [(v, n) for v in (32, 100) for n in threads]
    assert told == [(1, 2), (2, 2)]
    for row in rows:
        assert set(row) == KEYS
        assert row["backend"] == "numba"
        assert row["ratio_to_floor"] == pytest.approx(
            row["ns_per_sample"] / row["floor_ns"], rel=0.01, abs=0.01
        )
        assert row["speedup_over_numpy"] == pytest.approx(
            row["numpy_ns"] / row["ns_per_sample"], rel=0.01, abs=0.01
        )


@pytest.mark.parametrize("vocabulary", [32, 1024, 5000])
def test_the_pair_overlaps_as_stated(vocabulary):
    pair = bench_pair(vocabulary)
    assert 0.7 <= pair.target_row().overlap(pair.draft_row()) <= 0.8


def test_the_script_draws_the_target():
    # What simkit is compared with is a right sampler, not a shortcut: six standard deviations, 4e-9 a token.
    script = bench._NumpyScript(bench_pair(8))
    n = 200_000
    counts = script.run(n)
    assert counts.sum() == n
    deviation = (n * script.p * (1 - script.p)) ** 0.5
    assert (abs(counts - n * script.p) < 6 * deviation).all()


def test_decodes_are_timed_by_token():
    rows = bench_decode(samples=20_000)
    keys = {"pair", "vocab", "states", "draft_length", "length", "threads", "ns_per_token"}
    assert all(set(row) == keys and row["ns_per_token"] > 0 for row in rows)
    assert {row["pair"] for row in rows} >= {"zipf"}


def test_rules_are_timed_beside_the_token_rule():
    rows = bench_rules(samples=20_000, repeats=1)
    assert {row["rule"] for row in rows} == {"token", "block", "with-replacement"}
    assert all(row["times_token_rule"] == 1 for row in rows if row["rule"] == "token")
    assert all(row["ns_per_token"] > 0 for row in rows)


@pytest.mark.parametrize(("rule", "drafts"), [("token", 1.0), ("with-replacement", 1.25)])
def test_drafts_are_counted_by_those_tried(rule, drafts):
    # With an overlap of 3/4 a second draft is tried at every fourth slot.
    program = compile_program(bench_pair(1024), rule, draft_length=1, length=1, seed=0)
    assert bench._drafts_per_token(program) == pytest.approx(drafts, abs=1e-9)


def test_memory_is_reported():
    row = bench_memory(10_000, 100_000)
    assert row["samples"] == [10_000, 100_000]
    assert {"growth_mb", "seconds", "samples_per_second", "threads"} <= set(row)


@pytest.mark.timing
@pytest.mark.slow
def test_the_ratios_hold():
    rows = bench_rows(samples=4_000_000, repeats=7)
    one = {row["vocab"]: row for row in rows if row["threads"] == 1}
    two = {row["vocab"]: row for row in rows if row["threads"] == 2}  # empty on a machine of one core
    missed = []

    def hold(what: str, vocab: int, value: float, least: float = 0.0, most: float = float("inf")) -> None:
        if not least / NOISE <= value <= most * NOISE:
            missed.append(f"V = {vocab}: {what} is {value:.3g}")

    for vocab, row in one.items():
        if vocab <= 131072:
            hold("ratio to floor", vocab, row["ratio_to_floor"], most=2.5 if vocab <= 32768 else 3.5)
        hold("speed-up over NumPy on one thread", vocab, row["speedup_over_numpy"], least=6)
    for vocab, row in two.items():
        hold("speed-up over NumPy on two threads", vocab, row["speedup_over_numpy"], least=11)
        hold("two threads over one", vocab, row["speedup_over_one_thread"], least=1.8)
    hold("table time in ms", 262144, one[262144]["table_ms"], most=60)
    for row in bench_rules(samples=1_000_000, repeats=7):
        if row["rule"] == "block":
            hold("block verification over the token rule", row["vocab"], row["times_token_rule"], most=3)
        hold("a draft over the token rule's", row["vocab"], row["times_token_rule_a_draft"], most=2)
    assert not missed
