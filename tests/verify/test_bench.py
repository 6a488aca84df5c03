"""What a verdict costs: the stated limits, with 1.5 times the time for a shared machine."""

from __future__ import annotations

import pytest

from simkit.verify.bench import bench_judge

NOISE = 1.5
LIMITS = {
    "judge, one state of 131,072 tokens": 2.0,
    "judge, 30,000 states of 33 tokens": 10.0,
    "exact KS, 2,048 cells": 1.0,
}


@pytest.mark.timing
def test_verdicts_take_no_longer_than_stated() -> None:
    told: list[tuple[int, int]] = []
    rows = bench_judge(repeats=1, progress=lambda *at: told.append(at))
    assert told == [(1, 3), (2, 3), (3, 3)]
    for row in rows:
        assert isinstance(row["seconds"], float)
        assert row["seconds"] <= NOISE * LIMITS[str(row["case"])], row
    assert [row["case"] for row in rows] == list(LIMITS)
    assert [row["cells"] for row in rows] == [131_072, 990_000, 2048]
