"""bench: what a sample costs, as ratios to the random generator alone and to plain NumPy, in one run."""

from __future__ import annotations

import resource
import statistics
import sys
import time
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from simkit.laws.pair import Pair
from simkit.laws.rows import probabilities
from simkit.laws.synthetic import near_copy, zipf
from simkit.rules.chain import Chain
from simkit.sampling import cpu
from simkit.sampling.jit import kernel
from simkit.sampling.program import Program, compile_program
from simkit.sampling.simulate import Progress, default_threads, draw, find_backend, simulate

VOCABULARIES = (32, 1024, 32768, 131072, 262144)
TOTAL_VARIATION = 0.25
REPEATS = 7
DECODE = 64
RULE_VOCABULARY = 32_768
Row = dict[str, object]

_fill_line = cpu.fill_line


def bench_pair(vocabulary: int) -> Pair:
    """Return the pair that is timed: a Zipf target and a draft that overlaps it by 3/4.

    Examples
    --------
    >>> float(bench_pair(32).target_row().overlap(bench_pair(32).draft_row()))
    0.75
    """
    target = zipf(vocabulary)
    return Pair.from_rows(target=target, draft=near_copy(target, TOTAL_VARIATION), name="bench")


def bench_rows(
    vocabularies: Sequence[int] = VOCABULARIES,
    samples: int = 40_000_000,
    repeats: int = REPEATS,
    progress: Progress | None = None,
) -> list[Row]:
    """Return timings of the token rule at a single position, a row a vocabulary and number of threads.

    Floor, NumPy script and simulator take turns, and a ratio is the median over the turns: a change in the
    machine's pace, from one second to the next, meets all three.

    Parameters
    ----------
    vocabularies : sequence of int
        Sizes V.
    samples : int
        Samples of one timing of the simulator; the NumPy script gets a hundredth.
    repeats : int
        Timings of each.
    progress : callable or None
        Called with steps done and their number.

    Returns
    -------
    list of dict
        ``backend``, ``vocab``, ``threads``, ``ns_per_sample``, ``floor_ns`` (one 128-bit Philox block on one
        thread), ``ratio_to_floor``, ``numpy_ns`` (the script below), ``speedup_over_numpy``,
        ``speedup_over_one_thread``, ``table_ms``.
    """
    threads = sorted({1, min(2, default_threads())})
    rows: list[Row] = []
    _floor(512)
    for done, vocabulary in enumerate(vocabularies):
        pair = bench_pair(vocabulary)
        table = statistics.median(_seconds(_compile, pair) for _ in range(repeats))
        script = _NumpyScript(pair)
        program = compile_program(pair, draft_length=1, length=1, seed=0)
        draw(program, cpu.run, 0, 10_000, 1)
        times: dict[object, list[float]] = {"floor": [], "numpy": [], **{n: [] for n in threads}}
        for _ in range(repeats):
            times["floor"].append(_seconds(_floor, samples) / samples)
            times["numpy"].append(_seconds(script.run, samples // 100) / (samples // 100))
            for n in threads:
                times[n].append(_seconds(draw, program, cpu.run, 0, samples, n) / samples)
        rows += [_row(vocabulary, n, times, table) for n in threads]
        if progress is not None:
            progress(done + 1, len(vocabularies))
    return rows


def _row(vocabulary: int, threads: int, times: dict[object, list[float]], table: float) -> Row:
    ns, floor, numpy = (1e9 * statistics.median(times[key]) for key in (threads, "floor", "numpy"))

    def ratio(over: object, under: object) -> float:
        return statistics.median(x / y for x, y in zip(times[over], times[under], strict=True))

    return {
        "backend": "numba",
        "vocab": vocabulary,
        "threads": threads,
        "ns_per_sample": round(ns, 3),
        "floor_ns": round(floor, 3),
        "ratio_to_floor": round(ratio(threads, "floor"), 3),
        "numpy_ns": round(numpy, 2),
        "speedup_over_numpy": round(ratio("numpy", threads), 2),
        "speedup_over_one_thread": round(ratio(1, threads), 2),
        "table_ms": round(1e3 * table, 3),
    }


def bench_decode(samples: int = 10_000_000, progress: Progress | None = None) -> list[Row]:
    """Return timings of decodes that cross blocks: nanoseconds a token on all threads, and tokens a second.

    Parameters
    ----------
    samples : int
        Tokens of one timing.
    progress : callable or None
        Called with steps done and their number.
    """
    from simkit.laws.named import make_pair

    rows: list[Row] = []
    cases = [("zipf", 1024), ("zipf", 131072), ("ngram", None)]
    for done, (name, vocabulary) in enumerate(cases):
        pair = make_pair(name, vocabulary=vocabulary)
        for draft_length in (1, 4):
            options = {"draft_length": draft_length, "length": DECODE, "trials": samples // DECODE}
            simulate(pair, draft_length=draft_length, length=DECODE, trials=100)
            seconds = statistics.median(_seconds(simulate, pair, **options) for _ in range(3))
            tokens = samples // DECODE * DECODE
            rows.append(
                {
                    "pair": pair.name,
                    "vocab": pair.vocabulary,
                    "states": pair.states,
                    "draft_length": draft_length,
                    "length": DECODE,
                    "threads": default_threads(),
                    "ns_per_token": round(1e9 * seconds / tokens, 2),
                }
            )
        if progress is not None:
            progress(done + 1, len(cases))
    return rows


def bench_rules(
    samples: int = 4_000_000, repeats: int = REPEATS, progress: Progress | None = None
) -> list[Row]:
    """Return timings of other rules as ratios to the token rule, a row a rule and number of threads.

    The rules take turns on one pair of `RULE_VOCABULARY` tokens, at four drafts for a call; a ratio is the
    median over the turns. A rule that tries several drafts at a slot is compared by the draft, block
    verification by the token.

    Parameters
    ----------
    samples : int
        Tokens of one timing.
    repeats : int
        Timings of each.
    progress : callable or None
        Called with steps done and their number.
    """
    pair = bench_pair(RULE_VOCABULARY)
    trials = max(1, samples // DECODE)
    programs = {
        rule: compile_program(pair, rule, draft_length=4, length=DECODE, seed=0)
        for rule in ("token", "block", "with-replacement")
    }
    per_token = {rule: _drafts_per_token(program) for rule, program in programs.items()}
    rows: list[Row] = []
    counts = sorted({1, min(2, default_threads())})
    for done, threads in enumerate(counts):
        times: dict[str, list[float]] = {rule: [] for rule in programs}
        for _ in range(repeats):
            for rule, program in programs.items():
                run = find_backend("numba", program)
                times[rule].append(_seconds(draw, program, run, 0, trials, threads) / (trials * DECODE))
        for rule in programs:
            ratios = [x / y for x, y in zip(times[rule], times["token"], strict=True)]
            ratio = statistics.median(ratios)
            rows.append(
                {
                    "rule": rule,
                    "vocab": RULE_VOCABULARY,
                    "threads": threads,
                    "ns_per_token": round(1e9 * statistics.median(times[rule]), 2),
                    "times_token_rule": round(ratio, 2),
                    "times_token_rule_a_draft": round(ratio * per_token["token"] / per_token[rule], 2),
                }
            )
        if progress is not None:
            progress(done + 1, len(counts))
    return rows


def _drafts_per_token(program: Program) -> float:
    """Return how many drafts are drawn for a token: at each slot as many as are tried."""
    counts = draw(program, find_backend("numba", program), 0, 2_000, 1)
    tokens = float(counts.counts.sum())
    if not isinstance(program.text, Chain):
        return program.draft_length * float(counts.accepted.sum()) / tokens
    step = program.text.rule(program.pair.rows[:1], program.pair.rows[1:2])
    tried, left = 0.0, 1.0
    for numerator, denominator in step.tests:
        tried += left
        keep = np.minimum(1.0, numerator / denominator)
        left *= 1.0 - float((probabilities(step.propose) * keep).sum())
    return tried * float(counts.judged.sum()) / tokens


def bench_memory(small: int = 10**6, large: int = 10**9, progress: Progress | None = None) -> Row:
    """Return by how much the peak of resident memory grows from `small` to `large` samples, in MB.

    Parameters
    ----------
    small, large : int
        Samples of the two runs.
    progress : callable or None
        As for `simulate`, for the large run.
    """
    pair = bench_pair(1024)
    simulate(pair, draft_length=1, length=1, trials=small)
    before = _peak_mb()
    seconds = _seconds(simulate, pair, draft_length=1, length=1, trials=large, progress=progress)
    return {
        "samples": [small, large],
        "growth_mb": round(_peak_mb() - before, 2),
        "seconds": round(seconds, 2),
        "samples_per_second": round(large / seconds),
        "threads": default_threads(),
    }


def _peak_mb() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1e6 if sys.platform == "darwin" else 1e3)


def _seconds(work: Callable[..., object], *args: object, **options: object) -> float:
    begun = time.perf_counter()
    work(*args, **options)
    return time.perf_counter() - begun


def _compile(pair: Pair) -> None:
    program = compile_program(pair, draft_length=1, length=1, seed=0)
    tables = program.tables
    _ = tables.propose.packed, tables.accept.top, tables.replace.packed


def _floor(samples: int) -> None:
    words = np.empty((2, cpu.BATCH), dtype=np.uint64)
    _fill_many(samples // cpu.BATCH, words[0], words[1])


@kernel
def _fill_many(times, a, b):
    """Fill the same words over and over: the cost of the random generator alone."""
    zero = np.uint64(0)
    for i in range(times):
        _fill_line(np.uint64(i * len(a)), zero, zero, len(a), np.uint64(1), np.uint64(2), a, b)


class _NumpyScript:
    """What one would write in NumPy in ten lines, and what simkit is compared with."""

    def __init__(self, pair: Pair) -> None:
        self.p, self.q = pair.target_row().probabilities, pair.draft_row().probabilities
        residual = np.maximum(self.p - self.q, 0.0)
        self.residual = residual / residual.sum()
        self.rng = np.random.default_rng(0)

    def run(self, n: int) -> NDArray[np.intp]:
        """Return the counts of n samples."""
        vocabulary = len(self.p)
        tokens = self.rng.choice(vocabulary, size=n, p=self.q)
        refused = self.rng.random(n) >= self.p[tokens] / self.q[tokens]
        tokens[refused] = self.rng.choice(vocabulary, size=int(refused.sum()), p=self.residual)
        return np.bincount(tokens, minlength=vocabulary)
