from __future__ import annotations

import numpy as np
import pytest

from simkit.errors import InputError, UnknownNameError
from simkit.laws.pair import Pair
from simkit.laws.synthetic import corner_case
from simkit.sampling.simulate import draw_tokens
from simkit.sampling.trace import COLUMNS, trace

NAMES = ["equal", "partial-overlap", "many-token-residual", "requests", "draft-by-slot", "automaton"]
PAIR = Pair.from_rows(target=[0.5, 0.3, 0.2], draft=[0.2, 0.3, 0.5])


def records(found):
    return [dict(zip(COLUMNS, row, strict=True)) for row in found.rows]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("rule", ["token", "replace-from-target"])
def test_a_trace_is_the_block_that_is_drawn(seed, name, rule):
    pair = corner_case(name)
    drawn = draw_tokens(pair, rule, draft_length=4, length=5, trials=30, seed=seed)
    for trial in range(30):
        found = trace(pair, rule, draft_length=4, seed=seed, trial=trial)
        assert list(found.tokens) == drawn[trial, : len(found.tokens)].tolist()
        assert [int(row["emitted"]) for row in records(found)] == list(found.tokens)
        assert [row["slot"] for row in records(found)] == [str(i) for i in range(len(found.rows))]


@pytest.mark.parametrize("name", NAMES)
def test_the_numbers_of_a_row_explain_its_answer(seed, name):
    # Red when p, q or u of another state, slot or word are shown.
    pair = corner_case(name)
    for trial in range(30):
        state = int(pair.initial[trial % len(pair.initial)])
        for slot, row in enumerate(records(trace(pair, draft_length=4, seed=seed, trial=trial))):
            if row["draft"] == "bonus":
                assert slot == 4
                assert not any(row[column] for column in ("p", "q", "p/q", "u", "kept", "residual"))
                continue
            token = int(row["draft"])
            p, q = (
                pair.target_row(state).probabilities[token],
                pair.draft_row(state, slot).probabilities[token],
            )
            assert (row["p"], row["q"], row["p/q"]) == (f"{p:.6g}", f"{q:.6g}", f"{p / q:.6g}")
            u = float(row["u"])
            assert 0 <= u <= 1
            if abs(u - p / q) > 2e-6:  # u is rounded to six digits
                assert row["kept"] == ("yes" if u < p / q else "no")
            if row["kept"] == "yes":
                assert row["emitted"] == row["draft"]
                assert row["residual"] == ""
            else:
                residual = pair.target_row(state).residual(pair.draft_row(state, slot))
                assert row["residual"] == str(residual)[4:-1]
                assert residual.weights[int(row["emitted"])] > 0
            state = int(pair.next_state[state, token if pair.next_state.shape[1] > 1 else 0])


def seed_of_both_answers() -> int:
    """Return the first seed whose block has a kept draft, then a refused one."""
    return next(
        seed for seed in range(1000) if [r["kept"] for r in records(trace(PAIR, seed=seed))] == ["yes", "no"]
    )


def test_it_prints_as_a_table():
    found = trace(PAIR, seed=seed_of_both_answers())
    head, *lines = repr(found).splitlines()
    assert tuple(head.split()) == COLUMNS
    assert len(lines) == len(found.rows) == 2
    assert "1, 0, 0" in lines[1]  # the residual of (.5, .3, .2) over (.2, .3, .5)
    assert found.tokens[-1] == 0


def test_it_is_a_table_in_a_notebook():
    html = trace(PAIR, seed=seed_of_both_answers())._repr_html_()
    assert html.startswith("<table>")
    assert html.count("<th>") == len(COLUMNS) == 9
    assert html.count("<td>") == 2 * len(COLUMNS)
    assert "<th>p/q</th>" in html


def test_another_seed_or_trial_is_another_block():
    uniform = Pair.from_weights(np.ones(1000, dtype=int), np.ones(1000, dtype=int))
    tokens = {trace(uniform, seed=seed, trial=trial).tokens for seed in (0, 1) for trial in (0, 1, 2**32)}
    assert len(tokens) == 6


def test_bad_input_is_named():
    with pytest.raises(InputError, match="trial=-1"):
        trace(PAIR, trial=-1)
    with pytest.raises(InputError, match="draft_length=0"):
        trace(PAIR, draft_length=0)
    with pytest.raises(UnknownNameError, match=r"known: .*token"):
        trace(PAIR, "toke")
