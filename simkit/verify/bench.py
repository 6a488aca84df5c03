"""bench: what a verdict costs, in seconds."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from simkit.stats import ks
from simkit.verify.judge import judge

Row = dict[str, object]


def bench_judge(repeats: int = 3, progress: Callable[[int, int], None] | None = None) -> list[Row]:
    """Return what judging takes: a large vocabulary, many states, and the exact KS test.

    Parameters
    ----------
    repeats : int
        Timings of each; the median counts.
    progress : callable (done, total) or None
        Called with cases done and their number.

    Returns
    -------
    list of dict
        ``case``, ``states``, ``cells``, ``samples`` and ``seconds``.
    """
    cases = [
        ("judge, one state of 131,072 tokens", *_counts(1, 131_072, 10**7)),
        ("judge, 30,000 states of 33 tokens", *_counts(30_000, 33, 10**8)),
        ("exact KS, 2,048 cells", *_counts(1, 2048, 10**6)),
    ]
    rows: list[Row] = []
    for done, (name, counts, law) in enumerate(cases):
        work = _ks if name.startswith("exact KS") else _judge
        seconds = statistics.median(_seconds(work, counts, law) for _ in range(repeats))
        rows.append(
            {
                "case": name,
                "states": len(law),
                "cells": law.size,
                "samples": int(counts.sum()),
                "seconds": round(seconds, 3),
            }
        )
        if progress is not None:
            progress(done + 1, len(cases))
    return rows


def _counts(states: int, vocabulary: int, samples: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return counts of Zipf draws, by state, and their law."""
    law = np.tile(1.0 / np.arange(1, vocabulary + 1), (states, 1))
    law /= law.sum(axis=1, keepdims=True)
    return np.random.default_rng(0).multinomial(samples // states, law), law


def _judge(counts: NDArray[np.int64], law: NDArray[np.float64]) -> None:
    judge(counts, law, visits=np.full(len(law), counts.sum() / len(law)))


def _ks(counts: NDArray[np.int64], law: NDArray[np.float64]) -> None:
    if ks(counts[0], law[0], order="id").method != "exact":
        raise AssertionError("the exact test was to be timed")


def _seconds(work: Callable[..., None], *arguments: object) -> float:
    begun = time.perf_counter()
    work(*arguments)
    return time.perf_counter() - begun
