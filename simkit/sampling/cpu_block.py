"""Block verification in Numba: lanes of trials in lock step, one target call a sweep.

A sweep reads the words of all slots, for all lanes, in loops that the compiler can vectorise; draws the
drafts slot by slot with their weights w_i; throws the coins, refused lanes losing one draft a round; and
draws what comes after the kept drafts. Two binary searches in the sorted head of a prefix's rows (see
`block_tables`) find where its residual ends, and a token of it. All lanes take the same step of their
searches together, so that they wait for memory together: one lane after the other, the whole took an eighth
more time at 32,768 tokens and a quarter more at 131,072.

Tokens are drawn in integers, as in `cpu`, but weights, residuals and coins are float64, where the text
decides on rationals. Numbers that are compared lie within 2**-42 of the exact ones, so that a coin falls
otherwise than in the text, or another token is drawn from a residual, with a probability of that order.
What the text cannot do is not done either, whatever the words: a token with w p <= q has no part in a
residual, since only those with w p/q above 1 + 2**-44 have one, and rounding (4 units of 2**-53 for each of
at most 64 drafts) stays below that. And w is exact where it is 0, or 1 since p >= q all along, as is the
empty residual of p = q.

Philox and the alias draw are those of `cpu`, written again: a kernel calls only kernels of its own file
(see `jit`), and a function that is inlined is compiled into its caller's cache entry just the same.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from simkit.sampling.jit import inlined, kernel
from simkit.sampling.program import Program
from simkit.sampling.tables import U32, U64
from simkit.sampling.tally import Counts, Ints

LANES = 256

_MASK = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_ONE = np.uint64(1)
_FIVE = np.uint64(5)
_ELEVEN = np.uint64(11)
_M0, _M1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_W0, _W1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
_TEXT, _PURPOSES = 3, 256
_ALWAYS, _UNIT = 2.0**63, 2.0**-53
_INSIDE = 1.0 + 2.0**-44
# what a lane knows of its trial: where its block starts, how far it is, and what its calls add up to
_TRIAL, _STATE, _START, _DRAFTED, _KEPT, _CELL, _CALLS, _ALL_KEPT, _TRIED, _OVER, _FIELDS = range(11)


class _Blocks(NamedTuple):
    """What happens in the lanes' blocks, by slot and lane; a weight or state is that before the slot."""

    choice: U64
    coin: U64
    token: U32
    state: Ints
    weight: NDArray[np.float64]


class _Residuals(NamedTuple):
    """Each lane's residual: the entries of a head between which it lies, and its mass."""

    begin: U64
    end: U64
    mass: NDArray[np.float64]


class _Searches(NamedTuple):
    """Binary searches in heads: which of `size` entries from `low` on is the last on its side of `bar`."""

    lane: Ints
    low: U64
    size: U64
    bar: NDArray[np.float64]
    rest: NDArray[np.float64]


def run(
    program: Program, first: int, count: int, counts: Counts, tokens: NDArray[np.int32] | None = None
) -> None:
    """Draw trials `first` to `first + count - 1` by block verification; see `simkit.sampling.cpu.run`.

    Parameters
    ----------
    program : Program
        What to draw.
    first, count : int
        Which trials.
    counts : Counts
        Where to add.
    tokens : int32 array of shape (count, L), filled with -1, or None
        Where to write the tokens, too.
    """
    tables = program.tables
    _block_kernel(
        first, count, *program.key, program.draft_length, program.length, program.end,
        program.pair.initial, program.pair.next_state,
        tables.propose_row, tables.step_row, tables.bonus_row,
        tables.propose.packed.ravel(), tables.propose.coins.exact.ravel(),
        tables.bonus.packed.ravel(), tables.bonus.coins.exact.ravel(), tables.ratio.ravel(), tables.heads,
        counts.counts, counts.accepted, counts.judged, counts.moments, counts.joint, program.joint_length,
        np.empty((0, 0), dtype=np.int32) if tokens is None else tokens,
    )  # fmt: skip


@inlined
def philox(c0, c1, c2, c3, k0, k1):
    """Return the two 64-bit words at a counter."""
    for _ in range(10):
        a, b = c0 * _M0, c2 * _M1
        c0, c1, c2, c3 = (b >> _HALF) ^ c1 ^ k0, b & _MASK, (a >> _HALF) ^ c3 ^ k1, a & _MASK
        k0, k1 = (k0 + _W0) & _MASK, (k1 + _W1) & _MASK
    return c0 | (c1 << _HALF), c2 | (c3 << _HALF)


@kernel
def fill(a, b, n, k0, k1):
    """Replace n addresses, trial in a and start + 2**32 * (last counter word) in b, by their words.

    In place, since the compiler gives up vectorising a loop over more arrays.
    """
    for i in range(n):
        a[i], b[i] = philox(a[i] & _MASK, a[i] >> _HALF, b[i] & _MASK, b[i] >> _HALF, k0, k1)


@inlined
def _draw(word, base, vocabulary, packed):
    """Return the token that a word draws from a table, and whether only the full coin can tell."""
    product = (word >> _HALF) * vocabulary + (((word & _MASK) * vocabulary) >> _HALF)  # word * V >> 32
    cell, high = product >> _HALF, product & _MASK
    entry = packed[base + cell]
    top = entry >> _HALF
    # a shift, not a choice: the compiler would make the choice a jump
    return ((entry << _HALF) | cell) >> (np.uint64(high >= top) << _FIVE), np.uint64(high == top)


@kernel
def choose(words, rows, n, vocabulary, packed, coin, tokens):
    """Draw n tokens, each from the alias table of its row."""
    ties = _ONE - _ONE
    for i in range(n):
        token, tie = _draw(words[i], rows[i] * vocabulary, vocabulary, packed)
        tokens[i] = np.uint32(token)
        ties |= tie
    if ties:
        choose_exactly(words, rows, n, vocabulary, packed, coin, tokens)


@kernel
def choose_exactly(words, rows, n, vocabulary, packed, coin, tokens):
    """Draw n tokens like `choose`, by the full coins."""
    for i in range(n):
        word = words[i]
        cell = ((word >> _HALF) * vocabulary + (((word & _MASK) * vocabulary) >> _HALF)) >> _HALF
        at = rows[i] * vocabulary + cell
        kept = ((word * vocabulary) >> _ONE) < coin[at]
        tokens[i] = np.uint32(cell) if kept else np.uint32(packed[at] & _MASK)


@kernel
def _block_kernel(
    first, count, k0, k1, draft_length, length, end, initial, next_state, propose_row, step_row, bonus_row,
    packed, coin, b_packed, b_coin, ratio, heads,
    counts, accepted, judged, moments, joint, joint_length, out,
):  # fmt: skip
    """Draw `count` decodes of `length` tokens."""
    n = min(LANES, count)
    lane, tried = np.zeros((_FIELDS, n), dtype=np.int64), np.zeros(draft_length + 1, dtype=np.int64)
    blocks, residuals, searches = _blocks(draft_length, n), _residuals(n), _searches(n)
    rows, refused, ready = np.empty(n, np.uint64), np.empty(n, np.int64), np.empty(n, np.int64)
    vocabulary, key0, key1 = np.uint64(counts.shape[1]), np.uint64(k0), np.uint64(k1)
    for i in range(n):
        lane[_TRIAL, i], lane[_STATE, i] = first + i, initial[(first + i) % len(initial)]
    seated = n
    while n > 0:
        _begin(lane, n, draft_length, blocks)
        for slot in range(draft_length + 1):
            words, coins = blocks.choice[slot], blocks.coin[slot]
            _address(lane, n, slot, words, coins)
            fill(words, coins, n, key0, key1)
            if slot < draft_length:
                _rows(blocks.state[slot], n, slot, propose_row, rows)
                choose(words, rows, n, vocabulary, packed, coin, blocks.token[slot])
                _rows(blocks.state[slot], n, slot, step_row, rows)
                _weigh(lane, n, slot, rows, vocabulary, ratio, next_state, end, blocks)
            else:  # a bonus token for every lane: cheaper than to ask which ones need it
                _rows(blocks.state[slot], n, 0, bonus_row, rows)
                choose(words, rows, n, vocabulary, b_packed, b_coin, blocks.token[slot])
        m, done = _throw_for_all(lane, n, blocks, refused), 0
        while m > 0:
            _shorten(lane, m, refused, step_row, blocks, heads, residuals, searches)
            m, done = _throw(lane, m, refused, blocks, heads, residuals, ready, done)
        _replace(lane, done, ready, blocks, heads, residuals, searches)
        _emit(
            lane, n, first, draft_length, length, end, next_state, blocks,
            counts, accepted, tried, joint, joint_length, out,
        )  # fmt: skip
        n, seated = _retire(lane, n, seated, first, count, initial, moments)
    for slot in range(draft_length):
        judged[slot] += tried[slot + 1 :].sum()


@kernel
def _blocks(draft_length, n):
    """Return room for n blocks."""
    shape = (draft_length + 1, n)
    return _Blocks(
        np.empty(shape, np.uint64), np.empty(shape, np.uint64), np.empty(shape, np.uint32),
        np.empty(shape, np.int64), np.empty(shape, np.float64),
    )  # fmt: skip


@kernel
def _residuals(n):
    """Return room for n residuals."""
    return _Residuals(np.empty(n, np.uint64), np.empty(n, np.uint64), np.empty(n, np.float64))


@kernel
def _searches(n):
    """Return room for n searches."""
    return _Searches(
        np.empty(n, np.int64), np.empty(n, np.uint64), np.empty(n, np.uint64),
        np.empty(n, np.float64), np.empty(n, np.float64),
    )  # fmt: skip


@kernel
def _begin(lane, n, draft_length, blocks):
    """Start a block in n lanes."""
    for i in range(n):
        lane[_DRAFTED, i] = draft_length
        blocks.state[0, i], blocks.weight[0, i] = lane[_STATE, i], 1.0


@kernel
def _address(lane, n, slot, a, b):
    """Write where each lane reads the words of its slot-th choice and coin."""
    for i in range(n):
        a[i] = np.uint64(lane[_TRIAL, i])
        b[i] = np.uint64(lane[_START, i]) | np.uint64(_PURPOSES * slot + _TEXT) << _HALF


@kernel
def _rows(state, n, slot, row_of, rows):
    """Write the row of each lane's state and slot."""
    slot = min(slot, row_of.shape[1] - 1)
    for i in range(n):
        rows[i] = np.uint64(row_of[state[i], slot])


@kernel
def _weigh(lane, n, slot, rows, vocabulary, ratio, next_state, end, blocks):
    """Write the weights and states after a slot's drafts; a block counts its drafts up to the end state."""
    by_token = next_state.shape[1] > 1
    for i in range(n):
        token = blocks.token[slot, i]
        weight = blocks.weight[slot, i] * ratio[rows[i] * vocabulary + np.uint64(token)]
        state = next_state[blocks.state[slot, i], np.int64(token) if by_token else 0]
        blocks.weight[slot + 1, i], blocks.state[slot + 1, i] = min(1.0, weight), state
        if state == end:
            lane[_DRAFTED, i] = min(lane[_DRAFTED, i], slot + 1)


@kernel
def _throw_for_all(lane, n, blocks, refused):
    """Throw the coins of n whole blocks; return how many are refused, their lanes in `refused`."""
    m = 0
    for i in range(n):
        drafted = lane[_DRAFTED, i]
        lane[_KEPT, i] = drafted
        refused[m] = i
        m += int((blocks.coin[0, i] >> _ONE) >= np.uint64(blocks.weight[drafted, i] * _ALWAYS))
    return m


@kernel
def _shorten(lane, m, refused, step_row, blocks, heads, residuals, searches):
    """Take a draft from each of m refused prefixes, and find where its residual ends."""
    last, searched, widest = step_row.shape[1] - 1, 0, _ONE
    for j in range(m):
        i = refused[j]
        kept = lane[_KEPT, i] - 1
        lane[_KEPT, i] = kept
        row, weight = step_row[blocks.state[kept, i], min(kept, last)], blocks.weight[kept, i]
        begin, final = np.uint64(heads.begin[row]), np.uint64(heads.begin[row + 1]) - _ONE
        residuals.begin[i], residuals.end[i] = begin, final if weight == 1.0 else begin
        searches.lane[searched], searches.bar[searched] = i, _INSIDE / weight
        searches.low[searched], searches.size[searched] = begin, final - begin + _ONE
        widest = max(widest, final - begin + _ONE)
        # where not even the first token is inside there is nothing to search
        searched += int(weight < 1.0 and heads.edge[min(begin + _ONE, final)] > _INSIDE / weight)
    while widest > _ONE:
        for j in range(searched):
            half = searches.size[j] >> _ONE
            inside = heads.edge[searches.low[j] + half] > searches.bar[j]
            searches.low[j] += half * np.uint64(inside)
            searches.size[j] -= half
        widest -= widest >> _ONE
    for j in range(searched):
        residuals.end[searches.lane[j]] = searches.low[j]


@kernel
def _throw(lane, m, refused, blocks, heads, residuals, ready, done):
    """Throw the coins of m prefixes; return how many are refused again, and how many are done in all."""
    again = 0
    for j in range(m):
        i = refused[j]
        kept, end = lane[_KEPT, i], residuals.end[i]
        rest = 1.0 - blocks.weight[kept, i]
        mass = max(heads.sums[end, 1] - rest * heads.sums[end, 0], 0.0)
        residuals.mass[i] = mass
        # 0/0 does not occur: where w = 1 and p = q, a longer prefix is kept for certain
        limit = np.uint64(mass / (mass + rest) * _ALWAYS)
        settled = kept == 0 or (blocks.coin[lane[_DRAFTED, i] - kept, i] >> _ONE) < limit
        ready[done], refused[again] = i, i
        done += int(settled)
        again += int(not settled)
    return again, done


@kernel
def _replace(lane, m, ready, blocks, heads, residuals, searches):
    """Draw the token after the kept drafts of m lanes from their residuals."""
    widest = _ONE
    for j in range(m):
        i = ready[j]
        word = blocks.choice[lane[_DRAFTED, i], i]
        searches.low[j], searches.size[j] = residuals.begin[i], residuals.end[i] - residuals.begin[i]
        searches.bar[j] = residuals.mass[i] * (np.float64(word >> _ELEVEN) * _UNIT)
        searches.rest[j] = 1.0 - blocks.weight[lane[_KEPT, i], i]
        widest = max(widest, searches.size[j])
    while widest > _ONE:
        for j in range(m):
            half = searches.size[j] >> _ONE
            at = searches.low[j] + half
            below = heads.sums[at, 1] - searches.rest[j] * heads.sums[at, 0] <= searches.bar[j]
            searches.low[j] += half * np.uint64(below)
            searches.size[j] -= half
        widest -= widest >> _ONE
    for j in range(m):
        i = ready[j]
        blocks.token[lane[_KEPT, i], i] = heads.token[searches.low[j]]


@kernel
def _emit(
    lane, n, first, draft_length, length, end, next_state, blocks,
    counts, accepted, tried, joint, joint_length, out,
):  # fmt: skip
    """Count what the calls of n lanes emit, and move the lanes behind it."""
    by_token = next_state.shape[1] > 1
    for i in range(n):
        kept, start = lane[_KEPT, i], lane[_START, i]
        emitted, state = kept, blocks.state[kept, i]
        if state != end:
            state = next_state[state, np.int64(blocks.token[kept, i]) if by_token else 0]
            emitted += 1
        for slot in range(min(emitted, length - start)):
            token, position = np.int64(blocks.token[slot, i]), start + slot
            counts[blocks.state[slot, i], token] += 1
            if position < joint_length:
                lane[_CELL, i] = lane[_CELL, i] * counts.shape[1] + token
                if position == joint_length - 1:
                    joint[lane[_TRIAL, i] % joint.shape[0], lane[_CELL, i]] += 1
            if out.shape[0] > 0:
                out[lane[_TRIAL, i] - first, position] = token
        judged = min(emitted, draft_length)
        tried[judged] += 1
        accepted[kept] += 1
        lane[_CALLS, i] += 1
        lane[_ALL_KEPT, i] += kept
        lane[_TRIED, i] += judged
        lane[_STATE, i], lane[_START, i] = state, start + emitted
        lane[_OVER, i] = np.int64(start + emitted >= length or state == end)


@kernel
def _retire(lane, n, seated, first, count, initial, moments):
    """Count the lanes that are over and seat the next trials in them; return lanes and trials seated."""
    i = 0
    while i < n:
        if lane[_OVER, i] == 0:
            i += 1
            continue
        c, k, t = lane[_CALLS, i], lane[_ALL_KEPT, i], lane[_TRIED, i]
        for at, value in enumerate((c, k, t, c * c, c * k, c * t, k * k, k * t, t * t)):
            moments[at] += value
        if seated < count:
            for field in range(_FIELDS):
                lane[field, i] = 0
            lane[_TRIAL, i], lane[_STATE, i] = first + seated, initial[(first + seated) % len(initial)]
            seated += 1
            i += 1
        else:  # no trial is left: the last lane moves in here, and is looked at next
            n -= 1
            for field in range(_FIELDS):
                lane[field, i] = lane[field, n]
    return n, seated
