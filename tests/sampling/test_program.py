from __future__ import annotations

import numpy as np
import pytest

from simkit.errors import InputError, UnknownNameError
from simkit.laws.named import make_pair
from simkit.laws.pair import Pair
from simkit.laws.rows import Row
from simkit.laws.synthetic import corner_case, corner_cases
from simkit.sampling.program import LARGEST_JOINT, Program, compile_program
from tests.sampling.cases import PAIRS

PAIR = Pair.from_weights([1, 2], [2, 1])
GOOD = {"draft_length": 1, "length": 1, "seed": 0}


def near(law, row: Row) -> bool:
    return max(abs(a - b) for a, b in zip(law, row.fractions, strict=True)) < 1e-15


@pytest.mark.parametrize("name", [name for name in PAIRS if name not in ("zipf-1000", "uniform-257")])
def test_every_state_and_slot_finds_its_rows(rng, name):
    # Red when a row number is off: the tables are read back as laws and held against the pair.
    pair = PAIRS[name](rng)
    program = compile_program(pair, draft_length=1, length=2, seed=0)
    for state in range(pair.states):
        p = pair.target_row(state)
        assert near(program.tables.replace.law(program.tables.bonus_row[state]), p)
        for slot in range(min(pair.slots, 4)):
            q, step = pair.draft_row(state, slot), program.tables.step_row[state, slot]
            assert near(program.tables.propose.law(program.tables.propose_row[state, slot]), q)
            assert near(program.tables.replace.law(step), p if p == q else p.residual(q))
            keep = [min(1, a / b) if b else 1 for a, b in zip(p.fractions, q.fractions, strict=True)]
            assert program.tables.accept.exact[step].tolist() == [int(2**63 * k) for k in keep]


def test_bonus_laws_are_left_out_where_no_bonus_token_can_come():
    with_bonus, without = (compile_program(PAIR, draft_length=2, length=L, seed=0) for L in (3, 2))
    assert len(with_bonus.tables.replace.alias) == len(without.tables.replace.alias) + 1


def test_no_end_state_is_minus_one():
    ends = {name: compile_program(pair, **GOOD).end for name, pair in corner_cases().items()}
    assert ends.pop("automaton") == 2
    assert set(ends.values()) == {-1}


@pytest.mark.parametrize(
    ("pair", "length", "joint"),
    [
        (PAIR, 1, 0),
        (PAIR, 2, 2),
        (PAIR, 9, 9),
        (PAIR, 30, 12),
        (make_pair("zipf", vocabulary=64), 30, 2),
        (make_pair("zipf", vocabulary=65), 30, 0),
        (corner_case("requests"), 30, 6),
        (corner_case("one-token"), 30, 16),
    ],
    ids=str,
)
def test_how_many_first_tokens_are_counted_jointly(pair, length, joint):
    program = compile_program(pair, draft_length=1, length=length, seed=0)
    assert program.joint_length == joint
    assert len(pair.initial) * pair.vocabulary**joint <= LARGEST_JOINT


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"draft_length": 0}, "draft_length=0"),
        ({"draft_length": 65}, "draft_length=65.*from 1 to 64"),
        ({"draft_length": -1}, "draft_length=-1"),
        ({"draft_length": 1.5}, "draft_length=1.5"),
        ({"length": 0}, "length=0"),
        ({"length": 2**31}, "length=2147483648"),
        ({"length": 2.0}, "length=2.0"),
        ({"seed": 0.5}, "seed=0.5; it needs an integer"),
        ({"seed": True}, "seed=True"),
        ({"rule": "tokem"}, "unknown rule 'tokem'; known: .*token"),
    ],
)
def test_bad_input_is_named(wrong, message):
    with pytest.raises(InputError, match=message):
        compile_program(PAIR, **{**GOOD, **wrong})


def test_too_few_slots_and_unknown_rules_are_refused():
    with pytest.raises(InputError, match="draft rows for 2 slots; draft_length=3"):
        compile_program(
            Pair.by_slot(target=[0.5, 0.5], draft=[[0.5, 0.5]] * 2), draft_length=3, length=1, seed=0
        )
    with pytest.raises(UnknownNameError):
        compile_program(PAIR, "x", **GOOD)


def test_a_request_that_starts_at_the_end_is_refused():
    # It would emit nothing, and the three readings would not agree on that.
    zero = np.zeros((2, 1), dtype=int)
    arrays = {"rows": [[1, 1]], "target": zero[:, 0], "draft": zero, "next_state": zero}
    with pytest.raises(InputError, match="end"):
        compile_program(Pair(**arrays, initial=np.array([0, 1]), end=1), **GOOD)


def test_numbers_from_numpy_are_numbers():
    program = compile_program(PAIR, draft_length=np.int64(2), length=np.uint8(3), seed=np.int32(4))
    assert isinstance(program, Program)
    assert program.key == compile_program(PAIR, draft_length=2, length=3, seed=4).key


def test_a_private_program_draws_the_same_from_tables_of_its_own():
    # Red when a thread would read another's lines, or another law.
    program = compile_program(Pair.from_weights([3, 2, 1], [1, 2, 3]), draft_length=2, length=5, seed=1)
    own = program.private()
    for one, other in (
        (program.tables.propose.packed, own.tables.propose.packed),
        (program.tables.replace.packed, own.tables.replace.packed),
        (program.tables.accept.top, own.tables.accept.top),
    ):
        assert np.array_equal(one, other)
        assert not np.shares_memory(one, other)
    assert own.key == program.key


def test_large_tables_are_shared():
    program = compile_program(make_pair("zipf", vocabulary=70_000), draft_length=1, length=1, seed=1)
    assert program.private() is program
