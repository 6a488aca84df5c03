"""Partitions: functions of law and plan, cells that cover every token once, and what each can see."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from simkit.stats import evidence, threshold
from simkit.stats.partitions import BUCKETS, partitions
from simkit.stats.where import where


def zipf(vocabulary: int) -> np.ndarray:
    law = 1.0 / np.arange(1, vocabulary + 1)
    return law / law.sum()


@given(
    arrays(np.int64, st.tuples(st.integers(1, 3), st.integers(1, 400)), elements=st.integers(0, 5)),
    st.floats(0, 1e6),
)
def test_every_token_has_one_cell(weights: np.ndarray, draws: float) -> None:
    weights[:, 0] += 1
    rows = weights / weights.sum(axis=1, keepdims=True)
    visits = np.full(len(rows), draws)
    names = set()
    for partition in partitions(rows, visits):
        labels = np.broadcast_to(partition.build(), rows.shape)
        assert labels.min() >= 0
        assert labels.max() < partition.cells
        assert partition.sums(rows).sum(axis=1) == pytest.approx(np.ones(len(rows)))
        assert partition.sums(weights).sum() == weights.sum()
        assert partition.name not in names
        names.add(partition.name)


def test_cells_of_a_small_law_by_hand() -> None:
    law = np.array([[0.1, 0.5, 0.0, 0.3, 0.1]])
    found = {p.name: p for p in partitions(law, np.array([1e6]))}
    assert list(found) == ["rank split at 1", "rank split at 3"]
    assert found["rank split at 1"].build().tolist() == [[1, 0, 1, 1, 1]]
    assert found["rank split at 3"].build().tolist() == [[0, 0, 1, 0, 1]]  # equal weights by id
    assert found["rank split at 3"].describe(1) == "ranks 4 and up"


def test_partitions_suit_every_state():
    wide, narrow = np.full(12, 1 / 12), np.eye(12)[0]
    # One state of two has tokens to split, or to pool; the other has not.
    names = [p.name for p in partitions(np.stack([narrow, wide]), np.array([1e6, 1e6]))]
    assert "10 commonest and rest" in names
    assert "pooled cells" not in names
    names = [p.name for p in partitions(np.stack([narrow, wide]), np.array([1e6, 60.0]))]
    assert names[0] == "pooled cells"
    for vocabulary, has in ((2 * BUCKETS, False), (2 * BUCKETS + 1, True)):
        law = np.full((1, vocabulary), 1 / vocabulary)
        assert any("hash" in p.name for p in partitions(law, np.array([1e6]))) is has


def test_id_blocks_are_even_and_say_their_edges() -> None:
    for vocabulary in (17, 100, 1000, 4097):
        blocks = next(
            p
            for p in partitions(np.full((1, vocabulary), 1 / vocabulary), np.array([1e9]))
            if p.name == "16 id blocks"
        )
        labels = blocks.build()[0]
        sizes = np.bincount(labels)
        assert sizes.max() - sizes.min() <= 1
        for cell in range(16):
            ids = np.flatnonzero(labels == cell)
            assert blocks.describe(cell) == f"ids {ids[0]} to {ids[-1]}"


def test_hash_buckets_are_filled_evenly_and_part_neighbours() -> None:
    buckets = next(p for p in partitions(np.full((1, 32768), 1 / 32768), np.array([1e9])) if "hash" in p.name)
    labels = buckets.build()[0]
    sizes = np.bincount(labels, minlength=BUCKETS)
    assert sizes.min() > 0.9 * 32768 / BUCKETS
    assert (np.diff(labels) != 0).all()


# Each fault moves weight in a way of its own; the named component must see it first, and where.
FAULTS = {
    "id blocks": (lambda p: np.where((np.arange(p.size) // 256) == 5, p * 1.5, p), "ids 1280 to 1535"),
    "rank splits": (lambda p: p**0.97, "rank"),
}


@pytest.mark.parametrize("family", FAULTS)
def test_the_strongest_component_names_the_fault(family: str) -> None:
    change, place = FAULTS[family]
    rng = np.random.default_rng(7)
    law = zipf(4096)[rng.permutation(4096)]  # ids in general position, so that ranks and ids are unrelated
    wrong = change(law)
    wrong /= wrong.sum()
    n = 2_000_000
    counts = np.round(n * wrong).astype(np.int64)  # the expected counts: no chance, whatever the seed
    found = evidence(counts, law, counts.sum())
    assert found.log_e > threshold(1e-6)
    strongest = max(
        (name for name in found.components if not name.startswith("full")), key=lambda c: found.components[c]
    )
    assert strongest.startswith({"id blocks": "16 id blocks", "rank splits": "rank split"}[family])
    # The whole vocabulary is blind to it, or weaker: that is what partitions are for.
    full = max(value for name, value in found.components.items() if name.startswith("full"))
    assert full < found.components[strongest]
    assert found.strongest == strongest
    assert place in where(counts, law, counts.sum(), found)


def test_where_names_state_and_token() -> None:
    law = np.tile([0.25, 0.25, 0.25, 0.25], (50, 1))
    counts = np.full((50, 4), 1000)
    counts[17] = [1300, 900, 900, 900]
    visits = np.full(50, 4000.0)
    found = evidence(counts, law, visits)
    assert found.strongest.startswith("average")
    assert where(counts, law, visits, found) == "token 0 at state 17: 1,300 seen, 1,000 expected"


def test_where_names_an_impossible_token_first() -> None:
    law = np.array([[0.5, 0.5, 0.0], [0.5, 0.0, 0.5]])
    counts = np.array([[9000, 1000, 0], [5, 1, 4]])
    found = evidence(counts, law, [10_000, 10])
    assert where(counts, law, [10_000, 10], found) == "token 1 at state 1: 1 seen, weight 0"
