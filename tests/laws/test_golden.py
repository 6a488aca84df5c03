"""Rows and pairs have the same integers on every machine: their digests are pinned.

A change here is a change of every result that was ever stored. Make one on purpose only, and say so in the
changelog.
"""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from simkit.laws.logits import rows_from_logits, tempered_pair
from simkit.laws.named import make_pair
from simkit.laws.ngram import ngram_pair
from simkit.laws.rows import IntRows, rows_from_floats
from simkit.laws.synthetic import CORNER_CASES, corner_cases, dirichlet, near_copy, tempered, zipf


def digest(*rows: IntRows) -> str:
    content = hashlib.sha256()
    for row in rows:
        content.update(np.ascontiguousarray(row, dtype="<i8").tobytes())
    return content.hexdigest()[:16]


def float_rows() -> IntRows:
    masses = np.arange(1, 1001) ** 2 % 977
    return rows_from_floats(masses / masses.sum())  # one integer over another: rounded once


def logit_rows() -> IntRows:
    logits = np.arange(5000).reshape(5, 1000) * 7919 % 1009 / 101.0
    return rows_from_logits(logits, temperature=0.7, top_k=600, top_p=0.95, min_p=0.02)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (lambda: float_rows(), "44911231d7998690"),
        (lambda: zipf(1000).weights, "1dbf4fa86740f40d"),
        (lambda: zipf(262_144, 1.1, 2.7).weights, "232f6c8df6a68c06"),
        (lambda: dirichlet(1000, 1.0, 1).weights, "140f49e7faf6a17b"),
        (lambda: dirichlet(1000, 0.01, 2).weights, "e2eed1680ac24918"),
        (lambda: near_copy(zipf(1000), 0.3, 1).weights, "bafcad2b243308b8"),
        (lambda: near_copy(zipf(1000), 0.95, 1).weights, "1adb622bf106bc64"),
        (lambda: tempered(zipf(1000), 0.7).weights, "5575b6493bcfefdf"),
        (lambda: logit_rows(), "260a0cfa1b0c7067"),
    ],
    ids=["floats", "zipf", "zipf-large", "dirichlet", "dirichlet-small", "near", "far", "tempered", "logits"],
)
def test_rows(rows, expected: str) -> None:  # type: ignore[no-untyped-def]
    assert digest(rows()) == expected


@pytest.mark.parametrize(
    ("pair", "expected"),
    [
        (lambda: make_pair("zipf", vocabulary=1000, total_variation=0.3, seed=1), "0724d78e080a9de8"),
        (lambda: make_pair("dirichlet", seed=3), "98d909054c2d1089"),
        (lambda: make_pair("uniform"), "82ad8c4b94efc08e"),
        (lambda: make_pair("tempered-copy"), "82635a819e1eced2"),
        (lambda: ngram_pair(), "4f717ec0a3f709a5"),
        (lambda: ngram_pair(4, 1, requests=5), "db1995273f1a89dd"),
        (lambda: tempered_pair(ngram_pair(), 0.7, 1.5), "184e11042106a209"),
    ],
    ids=["zipf", "dirichlet", "uniform", "tempered-copy", "ngram", "ngram-4-1", "ngram-tempered"],
)
def test_pairs(pair, expected: str) -> None:  # type: ignore[no-untyped-def]
    assert pair().digest[:16] == expected


def test_corner_cases() -> None:
    """One digest for all: the cases are literal weights, so only a change of the list can move it."""
    digests = [corner_cases()[name].digest for name in sorted(CORNER_CASES)]
    assert hashlib.sha256("".join(digests).encode()).hexdigest()[:16] == "fa0075afa763e0a3"
