"""What the sampling tests share: many small pairs, and one way to run a backend and compare two runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from simkit.laws.named import make_pair
from simkit.laws.pair import Pair
from simkit.laws.synthetic import CORNER_CASES, corner_case
from simkit.sampling import cpu, reference, vectorised
from simkit.sampling.program import Program
from simkit.sampling.tally import Counts

FIELDS = ("counts", "accepted", "judged", "moments", "joint")
BACKENDS = {"reference": reference, "numpy": vectorised, "numba": cpu}
SLIP = 1e-9  # false-alarm rate of one assertion about random counts


def random_rows(rng: np.random.Generator, number: int, vocabulary: int) -> np.ndarray:
    """Return small integer rows with many ties, zeros and different totals."""
    rows = rng.integers(0, 6, (number, vocabulary)) * (rng.random((number, vocabulary)) < 0.7)
    rows[np.arange(number), rng.integers(0, vocabulary, number)] += 1
    return rows


def automaton(
    rng: np.random.Generator,
    vocabulary: int = 3,
    states: int = 4,
    requests: int = 1,
    slots: int = 1,
    end: bool = False,
    by_token: bool = True,
) -> Pair:
    """Return a random automaton; with `end`, its last state is the end."""
    rows = random_rows(rng, 2 * states + 2, vocabulary)
    return Pair(
        rows=rows,
        target=rng.integers(0, len(rows), states),
        draft=rng.integers(0, len(rows), (states, slots)),
        next_state=rng.integers(0, states, (states, vocabulary if by_token else 1)),
        initial=rng.integers(0, states - end, requests),
        end=states - 1 if end else None,
    )


def by_request(rng: np.random.Generator) -> Pair:
    """Return float rows that differ by request and position, with holes in their supports."""
    rows = rng.random((2, 3, 4, 5)) * (rng.random((2, 3, 4, 5)) < 0.8) + 1e-9
    rows /= rows.sum(axis=-1, keepdims=True)
    return Pair.from_rows(target=rows[0], draft=rows[1])


# Every one is a maker that takes a generator, so that each run of the tests meets other random pairs.
PAIRS: dict[str, Callable[[np.random.Generator], Pair]] = {
    **{name: lambda rng, name=name: corner_case(name) for name in CORNER_CASES},
    "zipf-2": lambda rng: make_pair("zipf", vocabulary=2, total_variation=0.2),
    "zipf-64": lambda rng: make_pair("zipf", vocabulary=64, seed=int(rng.integers(99))),
    "zipf-1000": lambda rng: make_pair("zipf", vocabulary=1000, total_variation=0.6),
    "dirichlet-3": lambda rng: make_pair("dirichlet", vocabulary=3, seed=int(rng.integers(99))),
    "dirichlet-sparse": lambda rng: make_pair("dirichlet", vocabulary=40, concentration=0.02, seed=5),
    "uniform-257": lambda rng: make_pair("uniform", vocabulary=257),
    "tempered-copy": lambda rng: make_pair("tempered-copy", vocabulary=33),
    "requests-of-floats": by_request,
    "one-context": partial(automaton, states=1),
    "two-tokens": partial(automaton, vocabulary=2, states=3, requests=2),
    "by-token": partial(automaton, vocabulary=4, states=6),
    "by-step": partial(automaton, vocabulary=4, states=6, requests=3, by_token=False),
    "by-step-ends": partial(automaton, vocabulary=3, states=9, by_token=False, end=True),
    "by-slot": partial(automaton, slots=64),
    "by-slot-ends": partial(automaton, slots=64, end=True, requests=2),
    "ends-soon": partial(automaton, vocabulary=5, states=2, end=True),
    "ends": partial(automaton, vocabulary=5, states=5, end=True, requests=3),
    "one-token-ends": partial(automaton, vocabulary=1, states=4, end=True, by_token=False),
    "many-requests": partial(automaton, vocabulary=3, states=8, requests=11),
    "wide": partial(automaton, vocabulary=30, states=3),
}


def run(
    program: Program, trials: int, first: int = 0, backend: str = "numba", tokens: bool = True
) -> tuple[Counts, np.ndarray | None]:
    """Return the counts and, unless they are not wanted, the tokens that a backend draws."""
    out = np.full((trials, program.length), -1, dtype=np.int32) if tokens else None
    counts = Counts.zeros(program.pair, program.draft_length, program.joint_length)
    BACKENDS[backend].run(program, first, trials, counts, out)
    return counts, out


def equal(one: tuple[Counts, np.ndarray | None], other: tuple[Counts, np.ndarray | None]) -> bool:
    """Return whether two runs have the same counts, and the same tokens where both have them."""
    if one[1] is not None and other[1] is not None and not np.array_equal(one[1], other[1]):
        return False
    return all(np.array_equal(getattr(one[0], name), getattr(other[0], name)) for name in FIELDS)
