"""Pair: a target and a draft model as one automaton with a row at each state."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simkit.errors import InputError
from simkit.laws.checks import whole_number
from simkit.laws.rows import (
    IntRows,
    Row,
    as_array,
    decimals,
    probabilities,
    rows_from_floats,
    rows_from_weights,
)

Index = NDArray[np.signedinteger[Any]]  # int32 once it is in a Pair
Values = ArrayLike | Row | Sequence[Row]

LARGEST_VOCABULARY = 2**22
"""The largest vocabulary: alias arithmetic needs total * V below 2**63 with totals of 2**40."""

_LARGEST_INDEX = 2**31 - 1


@dataclass(frozen=True, eq=False)
class Pair:
    """Target and draft laws for every context a decode can be in.

    A decode starts in one of the `initial` states (trial t in ``initial[t % R]``), emits a token from the
    state's target row, and moves to ``next_state[state, token]``. The draft's row may also depend on the
    slot, the number of drafts before it in the block.

    Parameters
    ----------
    rows : int64 array, shape (N, V)
        Weights of all laws, each against its own total.
    target : int32 array, shape (S,)
        Row number of the target's law at each state.
    draft : int32 array, shape (S, slots)
        Row number of the draft's law at each state and slot; one slot serves all.
    next_state : int32 array, shape (S, V) or (S, 1)
        The state after each token; one column when the token does not matter.
    initial : int32 array, shape (R,)
        The states in which the R requests of a batch start.
    end : int or None
        The state in which a decode stops (end of text).
    name : str
        What to call the pair in results.

    Raises
    ------
    InputError
        For shapes that do not fit together, or numbers of rows and states that do not exist.

    Examples
    --------
    >>> pair = Pair.from_rows(target=[0.5, 0.3, 0.2], draft=[0.2, 0.3, 0.5])
    >>> pair
    Pair('rows', vocabulary 3, 1 state, 1 request)
      target: 0.5, 0.3, 0.2
      draft:  0.2, 0.3, 0.5
    """

    rows: IntRows
    target: Index
    draft: Index
    next_state: Index
    initial: Index
    end: int | None = None
    name: str = "pair"

    def __post_init__(self) -> None:
        self._freeze("rows", rows_from_weights(self.rows, "rows"))
        for field in ("target", "draft", "next_state", "initial"):
            self._freeze(field, _index(getattr(self, field), field))
        self._check_shapes()
        self._check_numbers("target", len(self.rows), "rows")
        self._check_numbers("draft", len(self.rows), "rows")
        self._check_numbers("next_state", self.states, "states")
        self._check_numbers("initial", self.states, "states")
        if self.end is not None:
            object.__setattr__(self, "end", whole_number(self.end, "end", 0, self.states - 1))

    def _freeze(self, field: str, values: Index) -> None:
        array = np.ascontiguousarray(values)
        array.setflags(write=False)
        object.__setattr__(self, field, array)

    def _check_shapes(self) -> None:
        shapes = {"rows": 2, "target": 1, "draft": 2, "next_state": 2, "initial": 1}
        for field, ndim in shapes.items():
            array = getattr(self, field)
            if array.ndim != ndim or array.size == 0:
                raise InputError(f"{field} has shape {array.shape}; it needs {ndim} axes and an entry")
        if self.vocabulary > LARGEST_VOCABULARY:
            raise InputError(f"a vocabulary of {self.vocabulary} is too large; most is {LARGEST_VOCABULARY}")
        if len(self.draft) != self.states or len(self.next_state) != self.states:
            raise InputError(
                f"target has {self.states} states, draft {len(self.draft)}, next_state "
                f"{len(self.next_state)}; all three need one entry a state"
            )
        if self.next_state.shape[1] not in (1, self.vocabulary):
            raise InputError(
                f"next_state has {self.next_state.shape[1]} columns; it needs one, or one for each of "
                f"the {self.vocabulary} tokens"
            )

    def _check_numbers(self, field: str, limit: int, what: str) -> None:
        array = getattr(self, field)
        if array.min() < 0 or array.max() >= limit:
            bad = int(array.min() if array.min() < 0 else array.max())
            raise InputError(f"{field} names number {bad}, but there are {limit} {what} (0 to {limit - 1})")

    @classmethod
    def from_rows(cls, *, target: Values, draft: Values, name: str = "rows") -> Pair:
        """Return the pair of float laws (or `Row` objects), fixed, by position, or by request and position.

        Parameters
        ----------
        target, draft : array_like of float, shape (V,), (P, V) or (R, P, V)
            One law for every position; a law for each of P positions (the last one serves all later
            positions); the same for each of R requests. Both need the same shape.
        name : str
            What to call the pair.

        Raises
        ------
        InputError
            For rows that are not laws, or shapes that differ.

        Examples
        --------
        >>> Pair.from_rows(target=[[0.5, 0.5], [1.0, 0.0]], draft=[[0.5, 0.5], [0.5, 0.5]]).states
        2
        """
        return cls._from_positions(_weights(target, "target"), _weights(draft, "draft"), name)

    @classmethod
    def from_weights(cls, target: ArrayLike, draft: ArrayLike, name: str = "weights") -> Pair:
        """Return the pair with exactly these integer weights; shapes as in `from_rows`.

        Parameters
        ----------
        target, draft : array_like of int, shape (V,), (P, V) or (R, P, V)
            Weights, each row against its own total.
        name : str
            What to call the pair.

        Raises
        ------
        InputError
            For weights that are not rows of integers, or shapes that differ.

        Examples
        --------
        >>> Pair.from_weights([[1, 2]], [[2, 1]]).target_row(0)
        Row(0.333333, 0.666667)
        """
        return cls._from_positions(
            rows_from_weights(target, "target"), rows_from_weights(draft, "draft"), name
        )

    @classmethod
    def _from_positions(cls, target: IntRows, draft: IntRows, name: str) -> Pair:
        if target.shape != draft.shape:
            raise InputError(f"target has shape {target.shape} and draft {draft.shape}; they need the same")
        if target.ndim > 3:
            raise InputError(f"target has shape {target.shape}; at most (requests, positions, tokens)")
        shape = (1,) * (3 - target.ndim) + target.shape
        requests, positions, vocabulary = shape
        state = np.arange(requests * positions).reshape(requests, positions)
        following = np.minimum(np.arange(positions) + 1, positions - 1)
        return cls(
            rows=np.concatenate([target.reshape(-1, vocabulary), draft.reshape(-1, vocabulary)]),
            target=state.ravel(),
            draft=state.reshape(-1, 1) + state.size,
            next_state=state[:, following].reshape(-1, 1),
            initial=state[:, 0],
            name=name,
        )

    @classmethod
    def by_slot(cls, *, target: Values, draft: Values, name: str = "by slot") -> Pair:
        """Return the pair of one target law and a draft law for each slot of the block (parallel drafting).

        Parameters
        ----------
        target : array_like of float, shape (V,)
            The target's law at every position.
        draft : array_like of float, shape (slots, V)
            The draft's law at each slot.
        name : str
            What to call the pair.

        Examples
        --------
        >>> Pair.by_slot(target=[0.5, 0.5], draft=[[0.5, 0.5], [0.9, 0.1]]).slots
        2
        """
        p, q = _weights(target, "target"), _weights(draft, "draft")
        if p.ndim != 1 or q.ndim != 2 or q.shape[1] != len(p):
            raise InputError(f"by_slot needs target (V,) and draft (slots, V); got {p.shape} and {q.shape}")
        slots = np.arange(1, len(q) + 1)[None, :]
        zero = np.zeros((1, 1), dtype=np.int32)
        return cls(np.vstack([p[None], q]), zero[0], slots, zero, zero[0], name=name)

    @classmethod
    def requests(cls, pairs: Sequence[Pair], name: str = "requests") -> Pair:
        """Return one pair that holds the given ones side by side, as the requests of a batch.

        Parameters
        ----------
        pairs : sequence of Pair
            Pairs of one vocabulary, one number of slots, and no end state.
        name : str
            What to call the result.

        Examples
        --------
        >>> one = Pair.from_weights([1, 2], [2, 1])
        >>> Pair.requests([one, one]).initial
        array([0, 1], dtype=int32)
        """
        if not pairs or len({(p.vocabulary, p.slots, p.end) for p in pairs}) != 1 or pairs[0].end is not None:
            raise InputError("requests needs pairs of one vocabulary and number of slots, without end states")
        row_at = np.cumsum([0, *(len(p.rows) for p in pairs)])
        state_at = np.cumsum([0, *(p.states for p in pairs)])
        columns = max(p.next_state.shape[1] for p in pairs)
        moves = [np.broadcast_to(p.next_state, (p.states, columns)) for p in pairs]
        return cls(
            rows=np.concatenate([p.rows for p in pairs]),
            target=np.concatenate([p.target + at for p, at in zip(pairs, row_at, strict=False)]),
            draft=np.concatenate([p.draft + at for p, at in zip(pairs, row_at, strict=False)]),
            next_state=np.concatenate([m + at for m, at in zip(moves, state_at, strict=False)]),
            initial=np.concatenate([p.initial + at for p, at in zip(pairs, state_at, strict=False)]),
            name=name,
        )

    @property
    def vocabulary(self) -> int:
        """The number of tokens V."""
        return int(self.rows.shape[1])

    @property
    def states(self) -> int:
        """The number of states S."""
        return len(self.target)

    @property
    def slots(self) -> int:
        """How many slots of a block have a draft row of their own (1: the same row at every slot)."""
        return int(self.draft.shape[1])

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything that changes the law, as hex; the name is not part of it."""
        arrays = (self.rows, self.target, self.draft, self.next_state, self.initial)
        content = hashlib.sha256(repr(([array.shape for array in arrays], self.end)).encode())
        for array in arrays:
            content.update(array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes())
        return content.hexdigest()

    def target_row(self, state: int = 0) -> Row:
        """Return the target's law at a state."""
        return Row(self.rows[self.target[state]])

    def draft_row(self, state: int = 0, slot: int = 0) -> Row:
        """Return the draft's law at a state and slot."""
        return Row(self.rows[self.draft[state, min(slot, self.slots - 1)]])

    @cached_property
    def target_probabilities(self) -> NDArray[np.float64]:
        """The target's law at every state, float64 of shape (S, V)."""
        law = probabilities(self.rows[self.target])
        law.setflags(write=False)
        return law

    def check_draft_length(self, draft_length: int) -> None:
        """Raise `InputError` when the pair has draft rows by slot, but fewer than `draft_length` slots."""
        if self.slots not in (1, *range(draft_length, self.slots + 1)):
            raise InputError(
                f"the pair has draft rows for {self.slots} slots; draft_length={draft_length} needs one each"
            )

    def step(self, mass: NDArray[np.float64], law: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return where the mass on each state goes when each state emits a token with weights `law`.

        Parameters
        ----------
        mass : float64 array, shape (S,)
            Mass on each state.
        law : float64 array, shape (S, V)
            Weight of each token at each state; need not sum to one.

        Examples
        --------
        >>> pair = Pair.from_rows(target=[[0.5, 0.5], [1.0, 0.0]], draft=[[0.5, 0.5], [0.5, 0.5]])
        >>> pair.step(np.array([1.0, 0.0]), pair.target_probabilities)
        array([0., 1.])
        """
        flow = mass[:, None] * law
        if self.next_state.shape[1] == 1:
            flow = flow.sum(axis=1, keepdims=True)
        moved = np.bincount(self.next_state.ravel(), weights=flow.ravel(), minlength=self.states)
        return np.asarray(moved, dtype=np.float64)

    def start(self) -> NDArray[np.float64]:
        """Return the share of trials that start in each state, float64 of shape (S,)."""
        return np.bincount(self.initial, minlength=self.states) / len(self.initial)

    def expected_visits(self, length: int) -> NDArray[np.float64]:
        """Return how often a decode of `length` tokens emits from each state, on average.

        Parameters
        ----------
        length : int
            Tokens a decode emits unless it reaches the end state.

        Returns
        -------
        float64 array, shape (S,)
            Expected visits a trial; they sum to `length` where there is no end state.

        Examples
        --------
        >>> Pair.from_rows(target=[[0.5, 0.5], [1.0, 0.0]], draft=[[0.5, 0.5], [0.5, 0.5]]).expected_visits(3)
        array([1., 2.])
        """
        return _expected_visits(self, length)

    def joint_law(self, length: int) -> NDArray[np.float64]:
        """Return the target's joint law of the first `length` tokens for each request.

        Parameters
        ----------
        length : int
            Number of tokens m.

        Returns
        -------
        float64 array, shape (R, V**m)
            Probability of each sequence, the first token the most significant digit. Rows sum to less
            than one where a decode may end earlier.

        Examples
        --------
        >>> Pair.from_rows(target=[0.5, 0.5], draft=[0.5, 0.5]).joint_law(2)
        array([[0.25, 0.25, 0.25, 0.25]])
        """
        state: Index = self.initial[:, None]
        law: NDArray[np.float64] = np.ones(state.shape)
        for _ in range(length):
            if self.end is not None:
                law = law * (state != self.end)
            law = (law[:, :, None] * self.target_probabilities[state]).reshape(len(state), -1)
            moved = np.broadcast_to(self.next_state[state], (*state.shape, self.vocabulary))
            state = moved.reshape(len(state), -1)
        return law

    def __repr__(self) -> str:
        def count(n: int, what: str) -> str:
            return f"{n} {what}" if n == 1 else f"{n} {what}s"

        head = f"Pair({self.name!r}, vocabulary {self.vocabulary}, {count(self.states, 'state')}, "
        first = self.initial[0]
        return (
            f"{head}{count(len(self.initial), 'request')})\n"
            f"  target: {decimals(self.rows[self.target[first]])}\n"
            f"  draft:  {decimals(self.rows[self.draft[first, 0]])}"
        )


def _weights(values: Values, name: str) -> IntRows:
    """Return integer rows from floats, from a `Row`, or from a sequence of them."""
    if isinstance(values, Row):
        return values.weights
    try:
        if isinstance(values, list | tuple) and values and all(isinstance(v, Row) for v in values):
            return np.stack([v.weights for v in values if isinstance(v, Row)])
        array = np.asarray(values)
    except ValueError as error:
        raise InputError(f"{name} is not an array of one shape: {error}") from None
    return rows_from_floats(array, name)


def _index(values: ArrayLike, field: str) -> Index:
    array = as_array(values, field)
    if array.dtype.kind not in "iu" and not (array.dtype.kind == "f" and (array == np.rint(array)).all()):
        raise InputError(f"{field} holds numbers of rows or states; it has dtype {array.dtype}")
    if array.size and np.abs(array.astype(np.float64)).max() > _LARGEST_INDEX:
        raise InputError(f"{field} has an entry that is no number of a row or state: {array.max()}")
    return array.astype(np.int32)


@lru_cache(maxsize=8)
def _expected_visits(pair: Pair, length: int) -> NDArray[np.float64]:
    """Return `Pair.expected_visits`, kept: a run that is judged at every look asks for them at every look."""
    if pair.states == 1 and pair.end is None:
        return np.array([float(length)])
    mass, visits = pair.start(), np.zeros(pair.states)
    for _ in range(length):
        if pair.end is not None:
            mass[pair.end] = 0.0
        visits += mass
        mass = pair.step(mass, pair.target_probabilities)
    visits.setflags(write=False)
    return visits
