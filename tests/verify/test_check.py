"""check: right verifiers pass, each fault fails for its own reason, and a broken contract is said plainly."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from simkit.errors import InputError
from simkit.verify.check import PILOT, _Counter, check, check_cases
from simkit.verify.judge import Plan

Arrays = tuple[np.ndarray, np.ndarray, np.ndarray, np.random.Generator]
PLAN = Plan(tolerance=0.03)
BUDGET = "6e5"


def pick(rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return one token a row, drawn by weight."""
    edges = rows.cumsum(axis=-1)
    edges /= edges[..., -1:]
    return (edges <= rng.random(edges.shape[:-1])[..., None]).sum(axis=-1)


def verify(
    draft: np.ndarray,
    ids: np.ndarray,
    target: np.ndarray,
    rng: np.random.Generator,
    *,
    ratio: Callable[[np.ndarray, np.ndarray], np.ndarray] = lambda p, q: p / q,
    residual: Callable[[np.ndarray, np.ndarray], np.ndarray] = lambda p, q: np.maximum(p - q, 0.0),
    bonus: Callable[[np.ndarray, np.ndarray], np.ndarray] = lambda p, q: p,
) -> np.ndarray:
    """The token rule as a person would write it over a batch, with the pieces a fault changes."""
    rows, slots = ids.shape
    at = np.arange(rows)[:, None], np.arange(slots), ids
    kept = rng.random(ids.shape) < ratio(target[at], draft[at])
    n = np.where(kept.all(axis=1), slots, kept.argmin(axis=1))
    out = np.full((rows, slots + 1), -1)
    for row in range(rows):
        out[row, : n[row]] = ids[row, : n[row]]
    last = np.minimum(n, slots - 1)
    each = np.arange(rows)
    p, q = target[each, n], draft[each, last]
    full = n == slots
    law = np.where(full[:, None], bonus(p, q), residual(p, q))
    empty = law.sum(axis=1) <= 1e-9  # p = q to the last bit: a refusal had probability zero
    law[empty] = p[empty]
    out[each, n] = pick(law, rng)
    return out


def faulty(**pieces: Any) -> Callable[..., np.ndarray]:
    return lambda *arrays: verify(*arrays, **pieces)


FAULTS = {
    "replacement from p": {"residual": lambda p, q: p},
    "residual of the wrong sign": {"residual": lambda p, q: np.maximum(q - p, 1e-300)},
    "always accept": {"ratio": lambda p, q: np.ones_like(p)},
    "lenience .8": {"ratio": lambda p, q: p / (0.8 * q)},
    "bonus from the residual": {"bonus": lambda p, q: np.maximum(p - q, 0.0) + 1e-12},
    "bonus too cold": {"bonus": lambda p, q: p**2},
}


def test_the_token_rule_passes_and_says_on_what(seed: int) -> None:
    found = check(verify, plan=PLAN, seed=seed, budget=BUDGET)
    assert found.passed, found
    assert [case.name for case in found.cases] == [case.name for case in check_cases()]
    for case in found.cases:
        assert case.verdict is not None
        assert case.verdict.certificate.total_variation <= 0.03
    record = found.record()
    assert (record["outcome"], record["seed"], record["tolerance"]) == ("PASS", seed, 0.03)
    assert str(seed) in repr(found)
    assert found._repr_html_().startswith("<table><tr><th>check</th>")


def test_accepting_when_the_target_drew_the_same_token_passes(seed: int) -> None:
    # Lossless though it looks wrong: emit the target's own draw, and go on while it equals the draft.
    def matched(
        draft: np.ndarray, ids: np.ndarray, target: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        drawn = pick(target, rng)
        go_on = np.cumprod(drawn[:, :-1] == ids, axis=1)
        out = drawn.copy()
        out[:, 1:][go_on == 0] = -1
        return out

    assert check(matched, plan=PLAN, seed=seed, budget=BUDGET).passed


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_fails(fault: str, seed: int) -> None:
    # Total variation .04 and more in some case: at 10^5 tokens a case the evidence is in the hundreds.
    found = check(faulty(**FAULTS[fault]), plan=PLAN, seed=seed, budget=BUDGET)
    assert found.outcome == "FAIL", found


def broken(change: Callable[[np.ndarray], Any]) -> Callable[..., Any]:
    return lambda *arrays: change(verify(*arrays))


def spoil(array: np.ndarray, *entries: tuple[int, int, int]) -> np.ndarray:
    for row, slot, value in entries:
        array[row, slot] = value
    return array


CONTRACTS = {
    "shape": (broken(lambda out: out[:, :-1]), r"shape \(257, 1\).*needed.*\(257, 2\)"),
    "dtype": (broken(lambda out: out.astype(float)), "dtype float64"),
    "none": (broken(lambda out: None), "dtype object"),
    "ragged": (broken(lambda out: [[1], [1, 2]]), "no array"),
    "range": (broken(lambda out: spoil(out, (3, 0, 3))), "row 3, slot 0 is 3; needed: ids 0 to 2"),
    "negative": (broken(lambda out: spoil(out, (3, 0, -2))), "row 3, slot 0 is -2"),
    "nothing": (broken(lambda out: spoil(out, (5, 0, -1), (5, 1, -1))), "row 5 emits no token"),
    "raises": (lambda *arrays: [][1], "raised IndexError: list index out of range"),
}


@pytest.mark.parametrize("name", CONTRACTS)
def test_a_broken_contract_is_a_fail_that_says_what_and_where(name: str, seed: int) -> None:
    verifier, says = CONTRACTS[name]
    found = check(verifier, plan=PLAN, seed=seed, budget="1000")
    assert (found.outcome, len(found.cases)) == ("FAIL", 1)
    assert found.cases[0].verdict is None
    assert re.search(says, found.cases[0].reason), found.cases[0].reason


def test_a_token_after_the_end_is_seen(seed: int) -> None:
    def resumed(*arrays: Any) -> np.ndarray:
        out = verify(*arrays)
        if out.shape[1] > 2:
            out[7] = [0, -1, 0, *out[7, 3:]]
        return out

    found = check(resumed, plan=Plan(tolerance=0.3), seed=seed, budget="1e5")
    assert (found.outcome, len(found.cases)) == ("FAIL", 2)
    assert "row 7 holds a token after -1" in found.cases[1].reason


def test_inputs_must_be_left_alone(seed: int) -> None:
    def rude(draft: np.ndarray, ids: np.ndarray, target: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        out = verify(draft, ids, target, rng)
        target[:] = 0.0
        return out

    found = check(rude, plan=PLAN, seed=seed, budget="1000")
    assert "changed its inputs" in found.cases[0].reason


def test_a_short_budget_is_inconclusive(seed: int) -> None:
    found = check(verify, seed=seed, budget="1000")
    assert found.outcome == "INCONCLUSIVE"
    assert not found.passed


def test_the_seed_repeats_the_draws() -> None:
    plan = Plan(tolerance=0.1)
    first, again = (check(verify, plan=plan, seed=3, budget="3e4").record() for _ in range(2))
    assert first == again
    assert first != check(verify, plan=plan, seed=4, budget="3e4").record()


def test_bad_arguments_are_errors_of_the_caller() -> None:
    with pytest.raises(InputError, match="budget"):
        check(verify, budget="soon")
    with pytest.raises(InputError, match="seed"):
        check(verify, seed=-1)


def test_batch_neighbours_that_share_randomness_fail(seed: int) -> None:
    # Each token has its law, and so have all tokens of a slot; only the row beside it knows.
    def twins(draft: np.ndarray, ids: np.ndarray, target: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        uniforms = np.repeat(rng.random((len(ids) // 2 + 1, ids.shape[1] + 1)), 2, axis=0)[: len(ids)]
        edges = target.cumsum(axis=2)
        out = (edges <= (uniforms * edges[:, :, -1])[:, :, None]).sum(axis=2)
        go_on = np.cumprod(out[:, :-1] == ids, axis=1)
        out[:, 1:][go_on == 0] = -1
        return out

    found = check(twins, plan=PLAN, seed=seed, budget=BUDGET)
    assert found.outcome == "FAIL"
    assert any("dependence" in case.reason for case in found.cases)


def test_each_case_has_its_share_of_the_rates_and_the_pilot_is_not_judged(seed: int) -> None:
    emitted: list[int] = []

    def counting(*arrays: Any) -> np.ndarray:
        out = verify(*arrays)
        emitted.append(int((out >= 0).sum()))
        return out

    plan = Plan(false_alarm=1e-5, miss=1e-2, tolerance=0.2)
    found = check(counting, plan=plan, seed=seed, budget="1e5")
    judged = [case.verdict for case in found.cases if case.verdict is not None]
    assert len(judged) == len(check_cases())
    for verdict in judged:
        assert verdict.plan.false_alarm == pytest.approx(1e-5 / len(judged))
        assert verdict.plan.miss == pytest.approx(1e-2 / len(judged))
    pilots(emitted, [verdict.samples for verdict in judged])


def pilots(emitted: list[int], samples: list[int]) -> None:
    """Assert that the samples of each case are those of its calls after the first 40, and of all of these."""
    at = 0
    for wanted in samples:
        at += PILOT
        counted = 0
        while counted < wanted:
            counted += emitted[at]
            at += 1
        assert counted == wanted
    assert at == len(emitted)


def test_one_uniform_for_all_slots_fails(seed: int) -> None:
    # Each slot has its law given that it was emitted; the tokens of a call follow from each other.
    def one_uniform(
        draft: np.ndarray, ids: np.ndarray, target: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        edges = target.cumsum(axis=2)
        return (edges <= rng.random((len(ids), 1, 1)) * edges[:, :, -1:]).sum(axis=2)

    found = check(one_uniform, plan=PLAN, seed=seed, budget=BUDGET)
    assert found.outcome == "FAIL"
    assert any("within calls" in case.reason for case in found.cases)


def test_an_exit_is_a_broken_contract_and_no_function_is_an_error(seed: int) -> None:
    def leaves(*_: Any) -> None:
        raise SystemExit(0)

    found = check(leaves, plan=PLAN, seed=seed, budget="1000")
    assert (found.outcome, "SystemExit" in found.cases[0].reason) == ("FAIL", True)
    with pytest.raises(InputError, match="needed: a function"):
        check(None)  # type: ignore[arg-type]


def test_a_draft_of_probability_zero_is_never_handed_over() -> None:
    # Uniforms of exactly 0, where the first token has probability 0: a strict comparison would draw it.
    class Zeros:
        def random(self, shape: tuple[int, ...]) -> np.ndarray:
            return np.zeros(shape)

    case = next(case for case in check_cases() if (case.draft[:, :, 0] == 0).any())
    counter = _Counter(case)

    def possible(
        draft: np.ndarray, ids: np.ndarray, target: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        assert (np.take_along_axis(draft, ids[:, :, None], axis=2) > 0).all()
        return verify(draft, ids, target, rng)

    counter.call(possible, Zeros(), np.random.default_rng())  # type: ignore[arg-type]
