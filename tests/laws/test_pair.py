"""Pairs: what is refused at the door, and expectations against an enumeration of every decode."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import FrozenInstanceError, replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simkit.errors import InputError
from simkit.laws.pair import LARGEST_VOCABULARY, Pair
from simkit.laws.rows import TOTAL, Row


@st.composite
def pairs(draw: st.DrawFn) -> Pair:
    """Small automata of every shape: end state or none, one column or one a token, several requests."""
    states, vocabulary = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    slots, rows = draw(st.integers(1, 2)), draw(st.integers(1, 5))
    row = st.lists(st.integers(0, 5), min_size=vocabulary, max_size=vocabulary).filter(any)
    state, number = st.integers(0, states - 1), st.integers(0, rows - 1)
    columns = draw(st.sampled_from([1, vocabulary]))

    def lists(element: st.SearchStrategy[int], *shape: int) -> np.ndarray:
        size = int(np.prod(shape))
        return np.array(draw(st.lists(element, min_size=size, max_size=size))).reshape(shape)

    return Pair(
        rows=np.array(draw(st.lists(row, min_size=rows, max_size=rows))),
        target=lists(number, states),
        draft=lists(number, states, slots),
        next_state=lists(state, states, columns),
        initial=lists(state, draw(st.integers(1, 3))),
        end=draw(st.none() | state),
    )


def decodes(pair: Pair, state: int, length: int) -> Iterator[tuple[list[int], list[int], Fraction]]:
    """Yield each (tokens, states they were emitted from, probability); stops early in the end state."""
    if length == 0 or state == pair.end:
        yield [], [], Fraction(1)
        return
    for token, chance in enumerate(pair.target_row(state).fractions):
        following = int(pair.next_state[state, token if pair.next_state.shape[1] > 1 else 0])
        for tokens, states, rest in decodes(pair, following, length - 1):
            yield [token, *tokens], [state, *states], chance * rest


@given(pairs(), st.integers(0, 3))
@settings(max_examples=60)
def test_expected_visits_against_enumeration(pair: Pair, length: int) -> None:
    visits = [Fraction(0)] * pair.states
    for start in pair.initial.tolist():
        for _, states, chance in decodes(pair, start, length):
            for state in states:
                visits[state] += chance / len(pair.initial)
    np.testing.assert_allclose(pair.expected_visits(length), [float(v) for v in visits], atol=1e-12)


@given(pairs(), st.integers(0, 3))
@settings(max_examples=60)
def test_joint_law_against_enumeration(pair: Pair, length: int) -> None:
    law = np.zeros((len(pair.initial), pair.vocabulary**length))
    for request, start in enumerate(pair.initial.tolist()):
        for tokens, _, chance in decodes(pair, start, length):
            if len(tokens) == length:
                place = sum(t * pair.vocabulary ** (length - 1 - i) for i, t in enumerate(tokens))
                law[request, place] += float(chance)
    np.testing.assert_allclose(pair.joint_law(length), law, atol=1e-12)


@given(pairs())
def test_step_moves_all_mass_along_next_state(pair: Pair) -> None:
    mass = np.arange(1.0, pair.states + 1)
    law = np.arange(float(pair.states * pair.vocabulary)).reshape(pair.states, pair.vocabulary)
    expected = np.zeros(pair.states)
    for state in range(pair.states):
        for token in range(pair.vocabulary):
            to = pair.next_state[state, token if pair.next_state.shape[1] > 1 else 0]
            expected[to] += mass[state] * law[state, token]
    np.testing.assert_allclose(pair.step(mass, law), expected)


@given(pairs())
def test_rows_are_read_by_number(pair: Pair) -> None:
    for state in range(pair.states):
        assert pair.target_row(state) == Row(pair.rows[pair.target[state]])
        assert pair.draft_row(state, 7) == Row(pair.rows[pair.draft[state, -1]])
        np.testing.assert_array_equal(pair.target_probabilities[state], pair.target_row(state).probabilities)
    assert pair.start().sum() == pytest.approx(1.0)


# The door.

GOOD = {
    "rows": [[1, 2], [2, 1]],
    "target": [0, 1],
    "draft": [[1], [0]],
    "next_state": [[0, 1], [1, 1]],
    "initial": [0],
}


def build(**changes: object) -> Pair:
    fields = {**GOOD, **changes}
    end = fields.pop("end", None)
    return Pair(**{name: np.array(value) for name, value in fields.items()}, end=end)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rows": [[1, 2], [0, 0]]}, "rows has a row whose weights are all zero"),
        ({"rows": [[1, 2], [2, -1]]}, "rows has a negative weight"),
        ({"rows": [[0.5, 0.5], [1.0, 0.0]]}, "rows needs integer weights"),
        ({"rows": [1, 2]}, r"rows has shape \(2,\); it needs 2 axes"),
        ({"target": [[0, 1]]}, r"target has shape \(1, 2\); it needs 1 axes"),
        ({"draft": [1, 0]}, r"draft has shape \(2,\); it needs 2 axes"),
        ({"draft": np.zeros((2, 0), dtype=int)}, r"draft has shape \(2, 0\)"),
        ({"initial": np.zeros(0, dtype=int)}, r"initial has shape \(0,\)"),
        ({"next_state": [0, 1]}, r"next_state has shape \(2,\)"),
        ({"draft": [[1]]}, "target has 2 states, draft 1, next_state 2"),
        ({"next_state": [[0, 1]]}, "target has 2 states, draft 2, next_state 1"),
        ({"next_state": [[0, 0, 0], [0, 0, 0]]}, "next_state has 3 columns; .* the 2 tokens"),
        ({"target": [0, 2]}, r"target names number 2, but there are 2 rows \(0 to 1\)"),
        ({"draft": [[-1], [0]]}, "draft names number -1, but there are 2 rows"),
        ({"next_state": [[0, 1], [5, 1]]}, "next_state names number 5, but there are 2 states"),
        ({"initial": [2]}, "initial names number 2, but there are 2 states"),
        ({"initial": [2**32]}, "initial has an entry that is no number of a row or state"),
        ({"target": [0.0, np.inf]}, "target has an entry that is no number"),
        ({"target": [0.0, 0.5]}, "target holds numbers of rows or states"),
        ({"target": [0.0, np.nan]}, "target holds numbers of rows or states"),
        ({"target": ["a", "b"]}, "target holds numbers of rows or states"),
        ({"end": 2}, "end=2; it needs an integer from 0 to 1"),
        ({"end": -1}, "end=-1; it needs an integer from 0 to 1"),
        ({"end": 0.5}, "end=0.5; it needs an integer"),
    ],
)
def test_bad_pairs(changes: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        build(**changes)


def test_a_vocabulary_beyond_the_tables_is_refused() -> None:
    row = np.ones(LARGEST_VOCABULARY + 1, dtype=np.int64)
    with pytest.raises(InputError, match="vocabulary of 4194305 is too large"):
        Pair.from_weights(row, row)


@pytest.mark.parametrize(
    ("target", "draft", "message"),
    [
        ([0.5, np.nan], [0.5, 0.5], "target has 1 NaN"),
        ([0.5, 0.5], [1.5, -0.5], "draft has 1 negative"),
        ([0.5, 0.5], [np.inf, 0.5], "draft has 1 infinite"),
        ([], [], "target has shape"),
        ([0.5, 0.4], [0.5, 0.5], "target number 0 sums to 0.9"),
        ([0.5, 0.5], [0.5, 0.25, 0.25], r"target has shape \(2,\) and draft \(3,\); they need the same"),
        ([[0.5, 0.5]], [0.5, 0.5], "they need the same"),
        ([[0.5, 0.5], [1.0]], [0.5, 0.5], "target is not an array of one shape"),
        (
            [Row.from_weights([1]), Row.from_weights([1, 1])],
            [0.5, 0.5],
            "target is not an array of one shape",
        ),
        (np.full((1, 1, 1, 2), 0.5), np.full((1, 1, 1, 2), 0.5), "at most"),
    ],
)
def test_bad_rows_name_the_model(target: object, draft: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Pair.from_rows(target=target, draft=draft)  # type: ignore[arg-type]


# Makers.


def test_positions_are_a_line_whose_last_state_stays() -> None:
    pair = Pair.from_weights([[1, 0], [0, 1], [1, 1]], [[1, 1], [1, 1], [1, 0]])
    np.testing.assert_array_equal(pair.expected_visits(5), [1, 1, 3])
    assert pair.joint_law(3).tolist() == [[0, 0, 0.5, 0.5, 0, 0, 0, 0]]
    assert pair.draft_row(2) == Row.from_weights([1, 0])


def test_requests_start_apart_and_stay_apart() -> None:
    pair = Pair.from_weights([[[1, 0], [0, 1]], [[0, 1], [1, 0]]], [[[1, 1]] * 2] * 2)
    assert pair.initial.tolist() == [0, 2]
    np.testing.assert_array_equal(pair.expected_visits(3), [0.5, 1, 0.5, 1])
    assert pair.joint_law(2).argmax(axis=1).tolist() == [0b01, 0b10]


def test_float_rows_get_the_common_total() -> None:
    pair = Pair.from_rows(target=[0.7, 0.3], draft=[0.2, 0.8])
    assert pair.rows.sum(axis=1).tolist() == [TOTAL, TOTAL]


def test_row_objects_keep_their_weights() -> None:
    p, q = Row.from_weights([1, 2]), Row.from_weights([3, 1])
    assert Pair.from_rows(target=p, draft=q).rows.tolist() == [[1, 2], [3, 1]]
    assert Pair.from_rows(target=[p, q], draft=[q, p]).rows.tolist() == [[1, 2], [3, 1], [3, 1], [1, 2]]


def test_draft_by_slot() -> None:
    pair = Pair.by_slot(target=[0.5, 0.5], draft=[[0.5, 0.5], [0.9, 0.1], [1.0, 0.0]])
    assert [pair.draft_row(0, slot).probabilities[0] for slot in range(3)] == pytest.approx([0.5, 0.9, 1.0])
    pair.check_draft_length(3)
    with pytest.raises(InputError, match="3 slots; draft_length=4"):
        pair.check_draft_length(4)
    Pair.from_rows(target=[1.0], draft=[1.0]).check_draft_length(64)
    with pytest.raises(InputError, match=r"target \(V,\) and draft \(slots, V\)"):
        Pair.by_slot(target=[0.5, 0.5], draft=[0.5, 0.5])


def test_pairs_side_by_side() -> None:
    one = Pair.from_weights([[1, 5], [5, 1]], [[1, 1], [1, 1]])
    two = build()
    both = Pair.requests([one, two])
    np.testing.assert_array_equal(both.joint_law(3), np.concatenate([one.joint_law(3), two.joint_law(3)]))
    assert both.draft_row(3) == two.draft_row(1)
    for bad in ([], [one, build(end=1)], [build(end=1)], [one, Pair.from_weights([1], [1])]):
        with pytest.raises(InputError, match="one vocabulary"):
            Pair.requests(bad)


def test_end_state_stops_a_decode() -> None:
    pair = build(end=1)
    np.testing.assert_allclose(pair.expected_visits(3), [1 + 1 / 3 + 1 / 9, 0])
    assert pair.joint_law(2).sum() == pytest.approx(1 / 3)


# Identity.


def test_digest_changes_with_every_field_and_not_with_the_name() -> None:
    changed = [
        build(),
        build(rows=[[2, 1], [2, 1]]),
        build(target=[1, 1]),
        build(draft=[[1], [1]]),
        build(draft=[[1, 1], [0, 0]]),
        build(next_state=[[0, 0], [1, 1]]),
        build(next_state=[[0], [1]]),
        build(initial=[1]),
        build(initial=[0, 0]),
        build(end=0),
        build(end=1),
    ]
    assert len({pair.digest for pair in changed}) == len(changed)
    assert replace(build(), name="other").digest == build().digest
    assert build(end=np.int64(1)).digest == build(end=1).digest


def test_digest_tells_columns_from_requests() -> None:
    """Two pairs whose arrays hold the same numbers one after the other."""
    one_state = {"rows": [[1, 1]], "target": [0], "draft": [[0]]}
    one = build(**one_state, next_state=[[0, 0]], initial=[0])
    two = build(**one_state, next_state=[[0]], initial=[0, 0])
    assert one.digest != two.digest


def test_a_pair_cannot_be_changed() -> None:
    rows = np.array(GOOD["rows"])
    pair = replace(build(), rows=rows)
    rows[0, 0] = 9
    assert pair.rows[0, 0] == 1
    for field in ("rows", "target", "draft", "next_state", "initial", "target_probabilities"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(pair, field)[0] = 0
    with pytest.raises(FrozenInstanceError):
        pair.end = 1  # type: ignore[misc]


def test_printing_counts_and_shows_the_first_rows() -> None:
    assert repr(build(initial=[1, 1])).splitlines() == [
        "Pair('pair', vocabulary 2, 2 states, 2 requests)",
        "  target: 0.666667, 0.333333",
        "  draft:  0.333333, 0.666667",
    ]
