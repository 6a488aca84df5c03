"""Holm's correction: published values, order, and input that is none."""

from __future__ import annotations

import numpy as np
import pytest

from simkit.errors import InputError
from simkit.stats import holm

# pval0 of statsmodels' own tests, where R's multtest (mt.rawp2adjp, proc = "Holm") gave the adjusted values.
RAW = [
    0.838541367553, 0.642193923795, 0.680845947633, 0.967833824309, 0.71626938238,
    0.177096952723, 5.23656777208e-5, 0.0202732688798, 2.8140506198e-4, 0.0149877310796,
]  # fmt: skip


def test_published_values():
    adjusted = sorted(holm(RAW))
    assert adjusted[:4] == pytest.approx([5.23656777e-4, 2.53264556e-3, 0.119901849, 0.141912882], rel=1e-8)
    assert adjusted[4:] == [1.0] * 6  # 6 x .177 is above 1


def test_by_hand_and_in_the_order_given(rng):
    for _ in range(8):  # statsmodels collects all garbage each time: half a second in a full test run
        p = rng.random(int(rng.integers(1, 9))) ** 3
        order = np.argsort(p)
        steps = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
        expected = np.empty(len(p))
        expected[order] = np.minimum(steps, 1.0)
        assert holm(p.tolist()) == pytest.approx(expected)


def test_none_and_bad_ones():
    assert holm([]) == []
    for bad in ([1.5], [-0.1], [float("nan")]):
        with pytest.raises(InputError, match="p_values"):
            holm(bad)
