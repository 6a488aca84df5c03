"""Pairs that are language models: character n-grams counted from the King James Bible.

The counts were made by ``data/count_ngrams.py``, which says where the text comes from. A state is a context,
the last ``order - 1`` characters; its target row holds what followed it, as often as it did. The draft knows
fewer characters of the same context. Since the text was counted as a ring, every state can be reached from
every other, and the long-run share of a state is its share of the counts.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from simkit.errors import InputError
from simkit.laws.pair import Pair

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]

ORDER = 5
"""Characters in a counted gram; a model's order is at most this."""


@dataclass(frozen=True, eq=False)
class NgramCounts:
    """How often each gram of `ORDER` characters occurs on a ring of text.

    Parameters
    ----------
    alphabet : str
        The characters; a token is a place in this string.
    grams : int64 array, shape (G,)
        The grams that occur, ascending, as numbers in base V = len(alphabet), first character first.
    counts : int64 array, shape (G,)
        How often each occurs, at least once.

    Raises
    ------
    InputError
        For counts that cannot come from a ring of text.

    Examples
    --------
    >>> counts = bible_counts()
    >>> len(counts.alphabet), int(counts.counts.sum())
    (33, 4136693)
    >>> counts.decode(counts.encode("amen."))
    'amen.'
    """

    alphabet: str
    grams: Int64
    counts: Int64

    def __post_init__(self) -> None:
        base, grams, counts = len(self.alphabet), self.grams, self.counts
        if len(set(self.alphabet)) != base or grams.size == 0 or grams.shape != (counts.size,):
            raise InputError("n-gram counts need distinct characters and one count for each gram")
        if grams[0] < 0 or grams[-1] >= base**ORDER or (np.diff(grams) <= 0).any() or (counts <= 0).any():
            raise InputError("n-gram counts need ascending grams of the alphabet, each counted at least once")
        contexts = base ** (ORDER - 1)
        entered = np.bincount(grams % contexts, weights=counts, minlength=contexts)
        left = np.bincount(grams // base, weights=counts, minlength=contexts)
        if not np.array_equal(entered, left):
            raise InputError("n-gram counts of a ring enter each context as often as they leave it")
        for array in (grams, counts):
            array.setflags(write=False)

    def shorter(self, order: int) -> tuple[Int64, Int64]:
        """Return the grams of `order` characters (1 to `ORDER`), ascending, and their counts.

        Examples
        --------
        >>> letters, often = bible_counts().shorter(1)
        >>> bible_counts().decode([letters[often.argmax()]]), int(often.max())
        (' ', 789672)
        """
        prefix = self.grams // len(self.alphabet) ** (ORDER - order)
        first = np.flatnonzero(np.diff(prefix, prepend=-1))
        return prefix[first], np.add.reduceat(self.counts, first)

    def encode(self, text: str) -> Int64:
        """Return the tokens of a text, int64 of shape (len(text),).

        Raises
        ------
        InputError
            For characters outside the alphabet.
        """
        foreign = sorted(set(text) - set(self.alphabet))
        if foreign:
            raise InputError(f"characters {foreign} are not in the alphabet {self.alphabet!r}")
        return np.array([self.alphabet.index(character) for character in text], dtype=np.int64)

    def decode(self, tokens: Iterable[int]) -> str:
        """Return the text of some tokens, each from 0 to V - 1."""
        return "".join(self.alphabet[token] for token in tokens)


def read_counts(path: Path) -> NgramCounts:
    """Return the counts in a file that ``data/count_ngrams.py`` wrote.

    Parameters
    ----------
    path : Path
        An ``.npz`` file.

    Raises
    ------
    InputError
        For a file that cannot be read, is damaged, or holds something else.

    Examples
    --------
    >>> read_counts(Path("nowhere.npz"))
    Traceback (most recent call last):
        ...
    simkit.errors.InputError: cannot read n-gram counts from nowhere.npz: ...
    """
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            alphabet = bytes(arrays["alphabet"]).decode("ascii")
            gaps, counts = _joined(arrays["gram_gaps"]), _joined(arrays["counts"])
        return NgramCounts(alphabet, np.cumsum(gaps), counts)
    except (OSError, EOFError, KeyError, TypeError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(
            f"cannot read n-gram counts from {path}: {error}; "
            "write the file again with simkit/laws/data/count_ngrams.py, or reinstall simkit"
        ) from error


def _joined(planes: NDArray[np.uint8]) -> Int64:
    """Return the numbers whose bytes lie in four planes, the lowest first."""
    if planes.dtype != np.uint8 or planes.ndim != 2 or len(planes) != 4:
        raise ValueError(f"expected four planes of bytes, found {planes.dtype} of shape {planes.shape}")
    return np.ascontiguousarray(planes.T).view("<u4")[:, 0].astype(np.int64)


@cache
def bible_counts() -> NgramCounts:
    """Return the counts that come with simkit, read once.

    Examples
    --------
    >>> bible_counts().alphabet
    " ',.:;?abcdefghijklmnopqrstuvwxyz"
    """
    with as_file(files("simkit.laws") / "data" / "kjv_5grams.npz") as path:
        return read_counts(path)


def ngram_pair(
    order: int = 5, draft_order: int = 2, requests: int = 1, counts: NgramCounts | None = None
) -> Pair:
    """Return the pair of two character models: one state for each context of ``order - 1`` characters.

    A token that never followed a context leads to state 0; a lossless decode never gets there that way.

    Parameters
    ----------
    order : int
        Order of the target, from 1 to `ORDER`.
    draft_order : int
        Order of the draft, from 1 to `order`.
    requests : int
        Number R of initial states: the R most frequent contexts in which a sentence starts (those that end
        in a full stop and a space, as far as a context is long enough to tell).
    counts : NgramCounts or None
        The counts of another text; None takes those of the King James Bible.

    Raises
    ------
    InputError
        For orders or a number of requests outside their range, or damaged data.

    Examples
    --------
    >>> ngram_pair(order=2, draft_order=1)
    Pair('ngram-2-1', vocabulary 33, 33 states, 1 request)
      target: 0, 0, 1.26635e-06, 0, 0, 1.26635e-06, 2.5327e-06, ... 33 tokens
      draft:  0.190895, 0.000485895, 0.0170605, 0.0063338, 0.0030696, 0.00245099, 0.000797013, ... 33 tokens
    """
    if not 1 <= draft_order <= order <= ORDER:
        raise InputError(
            f"order={order}, draft_order={draft_order}; they need 1 <= draft_order <= order <= {ORDER}"
        )
    source = bible_counts() if counts is None else counts
    base = len(source.alphabet)
    contexts, target_rows = _rows(source, order)
    draft_contexts, draft_rows = _rows(source, draft_order)
    draft_state = np.searchsorted(draft_contexts, contexts % base ** (draft_order - 1))
    return Pair(
        rows=np.concatenate([target_rows, draft_rows]),
        target=np.arange(len(contexts), dtype=np.int32),
        draft=(len(contexts) + draft_state[:, None]).astype(np.int32),
        next_state=_next_states(contexts, base, order),
        initial=_sentence_starts(source, contexts, target_rows.sum(axis=1), order, requests),
        name=f"ngram-{order}-{draft_order}",
    )


def _rows(source: NgramCounts, order: int) -> tuple[Int64, Int64]:
    """Return the contexts of a model, ascending, and the row of counts (V tokens) at each."""
    base = len(source.alphabet)
    grams, counts = source.shorter(order)
    contexts, state = np.unique(grams // base, return_inverse=True)
    rows = np.zeros((len(contexts), base), dtype=np.int64)
    rows[state, grams % base] = counts
    return contexts, rows


def _next_states(contexts: Int64, base: int, order: int) -> Int32:
    """Return the state after each context and token; 0 where that context never occurs."""
    state_of = np.zeros(base ** (order - 1), dtype=np.int32)
    state_of[contexts] = np.arange(len(contexts))
    following = (contexts[:, None] * base + np.arange(base)) % base ** (order - 1)
    moves: Int32 = state_of[following]
    return moves


def _sentence_starts(source: NgramCounts, contexts: Int64, often: Int64, order: int, requests: int) -> Int32:
    """Return the states of the most frequent contexts that end in a full stop and a space."""
    base = len(source.alphabet)
    ending = source.encode(". ")[max(0, 3 - order) :]
    number = sum(int(token) * base**place for place, token in enumerate(ending[::-1]))
    starts = np.flatnonzero(contexts % base ** len(ending) == number)
    if not 1 <= requests <= len(starts):
        raise InputError(
            f"requests={requests}; order {order} has {len(starts)} contexts in which a sentence starts"
        )
    return starts[np.argsort(-often[starts], kind="stable")[:requests]].astype(np.int32)
