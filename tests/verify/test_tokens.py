"""judge_tokens and judge_stream: shared randomness, contexts that never repeat, and input that cannot be."""

from __future__ import annotations

import numpy as np
import pytest

from simkit.errors import InputError
from simkit.laws.named import make_pair
from simkit.laws.pair import Pair
from simkit.sampling.simulate import draw_tokens, simulate
from simkit.stats.stream import Stream
from simkit.verify.judge import Plan, judge
from simkit.verify.stream import judge_stream
from simkit.verify.tokens import judge_tokens

ROW = [0.5, 0.3, 0.2]
ENDING = Pair(
    rows=[[1, 1], [1, 0]], target=[0, 1], draft=[[0], [1]], next_state=[[0, 1], [1, 1]], initial=[0], end=1
)


@pytest.mark.parametrize("name", ["by-position", "requests", "automaton"])
def test_counts_by_state_are_those_of_the_tally(name: str, seed: int) -> None:
    pair = make_pair(name)
    tokens = draw_tokens(pair, length=9, trials=3000, seed=seed)
    tally = simulate(pair, length=9, trials=3000, seed=seed)
    by_tokens, by_tally = judge_tokens(tokens, pair), judge(tally)
    assert by_tokens.outcome != "FAIL"
    assert by_tokens.tests == by_tally.tests
    assert by_tokens.certificate == by_tally.certificate
    shared = [name for name in by_tokens.evidence.components if name.startswith("dependence")]
    assert len(shared) == 1


def faults(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return draws whose every token has the law of `ROW`, with randomness used twice."""
    edges = np.cumsum(ROW)
    own = rng.random((1000, 8))
    return {
        "one uniform for all positions": np.searchsorted(edges, np.repeat(own[:, :1], 8, axis=1)),
        "rows in pairs": np.searchsorted(edges, np.repeat(own[::2], 2, axis=0)),
        "streams shifted by a step": np.searchsorted(
            edges, np.lib.stride_tricks.sliding_window_view(rng.random(1007), 8)
        ),
        "mirrored uniforms": np.searchsorted(edges, np.stack([own, 1 - own], axis=1).reshape(-1, 8)),
    }


@pytest.mark.parametrize(
    "fault",
    ["one uniform for all positions", "rows in pairs", "streams shifted by a step", "mirrored uniforms"],
)
def test_randomness_used_twice_fails_though_every_count_is_right(
    fault: str, rng: np.random.Generator
) -> None:
    # Thousands of dependent pairs: the evidence is in the thousands. Counts alone do not reject at 1e-6
    # for three of them; repeated rows are also overdispersed, so that is not asked of them.
    tokens = faults(rng)[fault]
    verdict = judge_tokens(tokens, ROW)
    assert verdict.outcome == "FAIL"
    assert verdict.where.startswith("dependence")


def test_independent_draws_are_certified(rng: np.random.Generator) -> None:
    verdict = judge_tokens(rng.choice(3, size=(4000, 10), p=ROW), ROW, Plan(tolerance=0.05))
    assert verdict.outcome == "PASS"


def test_draws_are_told_apart_by_their_digest_or_by_the_key_given() -> None:
    one, other = (judge_tokens(tokens, ROW).keys for tokens in ([[0, 1]], [[1, 0]]))
    assert one == judge_tokens([[0, 1]], ROW).keys != other
    assert len(one[0]) == len("tokens ") + 16
    assert judge_tokens([[0, 1]], ROW, key="monday").keys == ("monday",)


def test_ends_are_walked(seed: int) -> None:
    tokens = draw_tokens(ENDING, draft_length=2, length=5, trials=2000, seed=seed)
    assert (tokens < 0).any()
    assert judge_tokens(tokens, ENDING).outcome != "FAIL"
    with pytest.raises(InputError, match="stops before its end at position 1"):
        judge_tokens([[0, -1]], ENDING)
    with pytest.raises(InputError, match="goes on after its end at position 1"):
        judge_tokens([[1, 0]], ENDING)


@pytest.mark.parametrize(
    ("tokens", "says"),
    [
        ([[0, 3]], "tokens hold 3; needed: 0 to 2"),
        ([[0, -2]], "tokens hold -2"),
        ([0, 1], r"shape \(2,\)"),
        ([[0.0, 1.0]], "float64"),
        ([[0], [1, 2]], "ragged"),
        ([[]], "shape"),
        ([["a"]], "needed: integers"),
    ],
)
def test_tokens_that_are_no_decodes(tokens: object, says: str) -> None:
    with pytest.raises(InputError, match=says):
        judge_tokens(tokens, ROW)  # type: ignore[arg-type]


def contexts(rng: np.random.Generator, count: int, vocabulary: int) -> tuple[np.ndarray, np.ndarray]:
    """Return target and draft rows that never repeat."""
    p = rng.dirichlet(np.full(vocabulary, 0.1), size=count) + 1e-9
    q = rng.dirichlet(np.full(vocabulary, 0.1), size=count) + 1e-9
    p /= p.sum(axis=1, keepdims=True)
    q = 0.3 * p + 0.7 * q / q.sum(axis=1, keepdims=True)
    return p, q / q.sum(axis=1, keepdims=True)


def drawn(rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    edges = rows.cumsum(axis=1)
    return np.minimum(
        (edges <= rng.random(len(rows))[:, None] * edges[:, -1:]).sum(axis=1), rows.shape[1] - 1
    )


@pytest.mark.slow
def test_single_visits_fail_for_replacement_from_p_and_not_for_the_right_law(
    rng: np.random.Generator,
) -> None:
    """20,000 contexts of 1,000 tokens, each met once; a right sampler fails at a rate of 1e-6."""
    p, q = contexts(rng, 20_000, 1000)
    kept = np.minimum(p, q)
    wrong = kept + (1 - kept.sum(axis=1, keepdims=True)) * p
    broken, right = Stream(), Stream()
    for at in range(0, 20_000, 5000):  # in blocks, as a run too large for memory would be
        block = slice(at, at + 5000)
        broken.update(drawn(wrong[block], rng), p[block], q[block])
        right.update(drawn(p[block], rng), p[block], q[block])
    assert judge_stream(broken).outcome == "FAIL"
    assert "replace-from-target" in judge_stream(broken).where
    verdict = judge_stream(right, plan=Plan(false_alarm=1e-6))
    assert verdict.outcome == "INCONCLUSIVE"
    assert verdict.certificate.total_variation == 1.0


def test_an_impossible_token_fails_at_once() -> None:
    verdict = judge_stream([0, 1], [[0.5, 0.5], [1.0, 0.0]])
    assert (verdict.outcome, verdict.impossible) == ("FAIL", 1)


def test_a_stream_is_judged_alone() -> None:
    with pytest.raises(InputError, match="judge it alone"):
        judge_stream(Stream(), [[0.5, 0.5]])
    with pytest.raises(InputError, match="needs rows"):
        judge_stream([0])
    assert judge_stream(Stream()).outcome == "INCONCLUSIVE"
