"""judge_tokens: the verdict on decodes, which show what counts cannot: draws that share randomness.

Counts by state lose the order of the tokens. A frozen random state, one uniform for several positions, or
batch rows that share a stream leave all these counts right.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simkit.errors import InputError
from simkit.laws.pair import Pair
from simkit.stats.dependence import dependence
from simkit.verify.judge import Run, judge_run
from simkit.verify.plan import Plan, as_plan
from simkit.verify.verdict import Verdict

Tokens = NDArray[np.int64]


def judge_tokens(
    tokens: ArrayLike,
    target: Pair | ArrayLike,
    plan: Plan | None = None,
    *,
    sampler: str = "",
    key: str | None = None,
) -> Verdict:
    """Return the verdict on decodes: each token against its law, and against its neighbours' randomness.

    Tokens are counted by state and judged as by `judge`; a family of e-values joins that bets each token on
    those before it in its decode and in the rows of the batch (`simkit.stats.dependence`). Rows are taken in
    the order in which the batch, or calls one after another, produced them.

    Parameters
    ----------
    tokens : array of int, shape (B, L)
        Decodes; -1 after the end of one.
    target : Pair, or array of float, shape (V,) or (L, V)
        The laws: of a pair, whose request t % R row t is; one for every token; or one a position.
    plan : Plan or None
        Error rates and tolerance.
    sampler, key : str
        As for `judge`.

    Raises
    ------
    InputError
        For tokens that are no decodes of this target: out of range, or after an end.

    Examples
    --------
    >>> rng = np.random.default_rng()
    >>> draws = rng.choice(3, p=[0.5, 0.3, 0.2], size=(4000, 8))
    >>> judge_tokens(draws, [0.5, 0.3, 0.2], Plan(tolerance=0.05)).outcome
    'PASS'
    >>> twins = np.repeat(draws[::2], 2, axis=0)  # each row twice: the counts are right
    >>> judge_tokens(twins, [0.5, 0.3, 0.2]).outcome
    'FAIL'
    """
    pair = target if isinstance(target, Pair) else Pair.from_rows(target=target, draft=target)
    drawn = _as_decodes(tokens, pair.vocabulary)
    states = _walk(drawn, pair)
    law = pair.target_probabilities
    alive = drawn >= 0
    flat = states[alive] * pair.vocabulary + drawn[alive]
    visits = pair.expected_visits(drawn.shape[1]) * len(drawn)
    content = hashlib.sha256(np.ascontiguousarray(drawn, dtype="<i8").tobytes()).hexdigest()
    run = Run(
        counts=np.bincount(flat, minlength=law.size).reshape(law.shape).astype(np.int64),
        law=law,
        visits=visits,
        sampler=sampler,
        target=pair.digest,
        keys=(key if key is not None else f"tokens {content[:16]}",),
        log_e=_shared(drawn, states, pair),
    )
    return judge_run(run, as_plan(plan))


def shared_randomness(tokens: ArrayLike, pair: Pair) -> dict[str, dict[str, float]]:
    """Return the log e-value of decodes against randomness that was used twice, as `judge` takes it.

    Parameters
    ----------
    tokens : array of int, shape (B, L)
        Decodes; -1 after the end of one.
    pair : Pair
        The laws; row t is of request t % R.

    Raises
    ------
    InputError
        As `judge_tokens`.

    Examples
    --------
    >>> pair = Pair.from_weights([1, 1], [1, 1])
    >>> list(shared_randomness([[0, 1], [1, 1]], pair))
    ['dependence']
    """
    drawn = _as_decodes(tokens, pair.vocabulary)
    return _shared(drawn, _walk(drawn, pair), pair)


def _shared(tokens: Tokens, states: Tokens, pair: Pair) -> dict[str, dict[str, float]]:
    found = dependence(tokens, pair.target_probabilities, states).evidence
    return {"dependence": {f"dependence ({found.strongest})": found.log_e}}


def _as_decodes(tokens: ArrayLike, vocabulary: int) -> Tokens:
    """Return decodes as int64 (B, L)."""
    try:
        given = np.asarray(tokens)
    except Exception as error:
        raise InputError(
            "tokens are no array, or ragged: fill decodes that end early with -1, to shape (B, L)"
        ) from error
    if given.ndim != 2 or given.size == 0 or given.dtype.kind not in "iu":
        raise InputError(f"tokens have shape {given.shape}, dtype {given.dtype}; needed: integers (B, L)")
    if given.min() < -1 or given.max() >= vocabulary:
        bad = int(given.min() if given.min() < -1 else given.max())
        raise InputError(f"tokens hold {bad}; needed: 0 to {vocabulary - 1}, or -1 after the end of a decode")
    return given.astype(np.int64)


def _walk(tokens: Tokens, pair: Pair) -> Tokens:
    """Return the state that each token was drawn from; raise where a decode stops or goes on wrongly."""
    state = pair.initial[np.arange(len(tokens)) % len(pair.initial)].astype(np.int64)
    states = np.empty_like(tokens)
    for position in range(tokens.shape[1]):
        token = tokens[:, position]
        over = np.zeros(len(tokens), dtype=bool) if pair.end is None else state == pair.end
        if ((token < 0) != over).any():
            row = int(((token < 0) != over).argmax())
            raise InputError(
                f"row {row} {'goes on after' if over[row] else 'stops before'} its end at position "
                f"{position}; needed: -1 from the end state on, and nowhere else"
            )
        states[:, position] = state
        column = np.maximum(token, 0) if pair.next_state.shape[1] > 1 else 0
        state = np.where(over, state, pair.next_state[state, column])
    return states
