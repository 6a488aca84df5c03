"""Random words by address: Philox4x32-10 (Salmon et al., "Parallel random numbers", SC 2011).

A word is a pure function of (seed, task, trial, block start, slot, purpose); nothing is streamed. The same
seed therefore gives the same tokens whatever the backend, batch, thread or shard, and no word is read in
two blocks or for two purposes: a word that refused a draft is conditioned by the refusal, and a second
reading would carry that condition into the next block.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)
ROUNDS = 10

DRAFT = 0  # word 0 proposes the token, word 1 is the coin of the accept test
CORRECT = 1  # word 0 draws the replacement of a rejected draft
BONUS = 2  # word 0 draws the extra token when all drafts are kept
TEXT = 3  # of a text's n-th choice and n-th coin, with n in the place of the slot: word 0 and word 1
RACE = 4  # of a token's clock in a race, with the token in the place of the slot: word 0
AGAIN = 8  # AGAIN + t is DRAFT for the t-th further draft of a slot
PURPOSES = 256  # the last counter word is PURPOSES * slot + purpose

Words = NDArray[np.uint64]


def key(seed: int, task: Mapping[str, object]) -> tuple[int, int]:
    """Return the two 32-bit key words of a task: the head of SHA-256 over (seed, task identity).

    Parameters
    ----------
    seed : int
        The user's seed, any integer.
    task : mapping of str to JSON values
        All that changes the result except trial and seed; two tasks never share words.

    Examples
    --------
    >>> key(1, {"rule": "token"}) == key(2, {"rule": "token"})
    False
    """
    text = json.dumps({"seed": seed, "task": task}, sort_keys=True, separators=(",", ":"))
    head = hashlib.sha256(text.encode()).digest()
    return int.from_bytes(head[:4], "little"), int.from_bytes(head[4:8], "little")


def philox(counter: tuple[int, int, int, int], key: tuple[int, int]) -> tuple[int, int, int, int]:
    """Return the four 32-bit words at a counter, in plain integers.

    Parameters
    ----------
    counter : four ints in [0, 2**32)
        The address.
    key : two ints in [0, 2**32)
        The key.

    References
    ----------
    Salmon et al. 2011, section 3.3; the constants are those of the Random123 library.

    Examples
    --------
    >>> [f"{word:08x}" for word in philox((0, 0, 0, 0), (0, 0))]
    ['6627e8d5', 'e169c58d', 'bc57ac4c', '9b00dbd8']
    """
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(ROUNDS):
        a, b = MULTIPLIERS[0] * c0, MULTIPLIERS[1] * c2
        c0, c1, c2, c3 = (b >> 32) ^ c1 ^ k0, b & 0xFFFFFFFF, (a >> 32) ^ c3 ^ k1, a & 0xFFFFFFFF
        k0, k1 = (k0 + WEYL[0]) & 0xFFFFFFFF, (k1 + WEYL[1]) & 0xFFFFFFFF
    return c0, c1, c2, c3


def address(trial: int, start: int, slot: int, purpose: int) -> tuple[int, int, int, int]:
    """Return the counter of a decision.

    Parameters
    ----------
    trial : int in [0, 2**64)
        Number of the trial.
    start : int in [0, 2**32)
        Output position at which the block starts.
    slot : int
        Drafts before this one in the block.
    purpose : int
        `DRAFT`, `CORRECT`, `BONUS`, `TEXT`, `RACE` or `AGAIN` + t.

    Examples
    --------
    >>> address(2**32 + 5, 7, 1, CORRECT)
    (5, 1, 7, 257)
    """
    return trial & 0xFFFFFFFF, trial >> 32, start, PURPOSES * slot + purpose


def words(trial: int, start: int, slot: int, purpose: int, key: tuple[int, int]) -> tuple[int, int]:
    """Return the two 64-bit words at an address, as plain integers; arguments as in `address`.

    Examples
    --------
    >>> words(0, 0, 0, DRAFT, (0, 0)) == (0xE169C58D6627E8D5, 0x9B00DBD8BC57AC4C)
    True
    """
    x0, x1, x2, x3 = philox(address(trial, start, slot, purpose), key)
    return x0 | x1 << 32, x2 | x3 << 32


def words_array(
    trial: Words, start: Words, slot: Words, purpose: Words | int, key: tuple[int, int]
) -> tuple[Words, Words]:
    """Return the two 64-bit words at each address, as uint64 arrays.

    Parameters
    ----------
    trial, start, slot, purpose : uint64 arrays of one shape
        Addresses; see `address`.
    key : two ints
        The key.

    Examples
    --------
    >>> zero = np.zeros(1, dtype=np.uint64)
    >>> int(words_array(zero, zero, zero, DRAFT, (0, 0))[0][0]) == words(0, 0, 0, DRAFT, (0, 0))[0]
    True
    """
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    c0, c1, c2 = trial & low, trial >> half, start
    c3 = slot * np.uint64(PURPOSES) + np.asarray(purpose, dtype=np.uint64)
    m0, m1 = (np.uint64(m) for m in MULTIPLIERS)
    k0, k1 = key
    for _ in range(ROUNDS):
        a, b = c0 * m0, c2 * m1
        c0, c1, c2, c3 = (b >> half) ^ c1 ^ np.uint64(k0), b & low, (a >> half) ^ c3 ^ np.uint64(k1), a & low
        k0, k1 = (k0 + WEYL[0]) & 0xFFFFFFFF, (k1 + WEYL[1]) & 0xFFFFFFFF
    return c0 | c1 << half, c2 | c3 << half
