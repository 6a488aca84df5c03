"""The token loop in Numba: lanes of trials in lock step, integer arithmetic only.

Every lane holds one trial. A sweep fills the Philox words of all lanes in one loop that the compiler can
vectorise, then proposes, judges and moves; lanes that refused a draft, or kept all, read one more word for
the replacement or the bonus token. A trial that is done leaves its lane to the next. A decode of one
position has a kernel of its own, since there every lane does the same.

Draws and tests compare the leading 32 bits first and leave ties to the exact 63-bit coins: that halves the
memory that a draw touches. A kernel that passes arrays counts references, atomically; so kernels are called
once a sweep, not once a token. Branches that depend on random bits are avoided where it pays: the compiler
must not turn a choice between two loaded values into a jump that is mispredicted every other time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simkit.sampling.jit import inlined, kernel
from simkit.sampling.program import Program
from simkit.sampling.tally import Counts

LANES = 512
BATCH = 1024  # of decodes of one position: few arrays, so that more of them stay in the first-level cache

_MASK = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_ONE = np.uint64(1)
_FIVE = np.uint64(5)
_M0, _M1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_W0, _W1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
_CORRECT, _BONUS, _AGAIN, _PURPOSES = 1, 2, 8, 256
# what a lane knows of its trial: where its block starts, how far it is, and what its calls add up to
_TRIAL, _STATE, _START, _SLOT, _TEST, _CELL, _CALLS, _KEPT, _TRIED, _OVER, _FIELDS = range(11)


def run(
    program: Program, first: int, count: int, counts: Counts, tokens: NDArray[np.int32] | None = None
) -> None:
    """Draw trials `first` to `first + count - 1` and add what they emit to `counts`.

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
    plain = tables.tests == 1 and not tables.redraws and tokens is None
    single = plain and program.draft_length == program.length == len(program.pair.initial) == 1
    (_single_position if single else _chain)(program, first, count, counts, tokens)


def _single_position(
    program: Program, first: int, count: int, counts: Counts, tokens: NDArray[np.int32] | None
) -> None:
    state, tables = program.pair.initial[0], program.tables
    propose, step = tables.propose_row[state, 0], tables.step_row[state, 0]
    refused = _single_kernel(
        first, count, *program.key,
        tables.propose.packed[propose], tables.propose.coins.exact[propose],
        tables.accept.top[step], tables.accept.exact[step],
        tables.replace.packed[step], tables.replace.coins.exact[step],
        counts.counts[state],
    )  # fmt: skip
    kept = count - int(refused)
    counts.accepted[:] += (int(refused), kept)
    counts.judged[:] += count
    counts.moments[:] += (count, kept, count, count, kept, count, kept, kept, count)


def _chain(
    program: Program, first: int, count: int, counts: Counts, tokens: NDArray[np.int32] | None
) -> None:
    tables = program.tables
    _chain_kernel(
        first, count, *program.key, program.draft_length, program.length, program.end,
        program.pair.initial, program.pair.next_state,
        tables.propose_row, tables.step_row, tables.bonus_row, tables.tests, tables.meetings,
        tables.propose.packed.ravel(), tables.propose.coins.exact.ravel(),
        tables.accept.top.ravel(), tables.accept.exact.ravel(),
        tables.replace.packed.ravel(), tables.replace.coins.exact.ravel(), tables.others.ravel(),
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
def fill_line(first, start, last, n, k0, k1, a, b):
    """Fill the words of n consecutive trials at one address otherwise."""
    for i in range(n):
        trial = first + np.uint64(i)
        a[i], b[i] = philox(trial & _MASK, trial >> _HALF, start, last, k0, k1)


@kernel
def fill_some(a, start, last, n, k0, k1):
    """Replace n trial numbers by their first words at one address otherwise."""
    for i in range(n):
        a[i] = philox(a[i] & _MASK, a[i] >> _HALF, start, last, k0, k1)[0]


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
def judge(words, rows, n, vocabulary, tokens, top, coin, refused):
    """Write for n drafted tokens whether the accept test refuses them."""
    ties = _ONE - _ONE
    for i in range(n):
        at = rows[i] * vocabulary + np.uint64(tokens[i])
        high = words[i] >> _HALF
        refused[i] = high >= np.uint64(top[at])
        ties |= np.uint64(high == np.uint64(top[at]))
    if ties:
        for i in range(n):
            refused[i] = (words[i] >> _ONE) >= coin[rows[i] * vocabulary + np.uint64(tokens[i])]


@kernel
def _single_kernel(first, count, k0, k1, packed, coin, top, accept, r_packed, r_coin, counts):
    """Draw `count` decodes of one token with one draft; return how many drafts were refused."""
    a, b = np.empty(BATCH + 1, dtype=np.uint64), np.empty(BATCH, dtype=np.uint64)
    rows, tokens = np.zeros(BATCH, dtype=np.uint64), np.empty(BATCH, dtype=np.uint32)
    vocabulary, key0, key1 = np.uint64(len(coin)), np.uint64(k0), np.uint64(k1)
    zero, last = np.uint64(0), np.uint64(_CORRECT)
    total = 0
    for done in range(0, count, BATCH):
        n = min(BATCH, count - done)
        begin = np.uint64(first) + np.uint64(done)
        fill_line(begin, zero, zero, n, key0, key1, a, b)
        choose_line(a, rows, n, vocabulary, packed, coin, tokens)
        n = judge_line(begin, n, tokens, top, accept, counts, a, b)
        fill_some(a, zero, last, n, key0, key1)
        choose_line(a, rows, n, vocabulary, r_packed, r_coin, tokens)
        for i in range(n):
            counts[np.uint64(tokens[i])] += 1
        total += n
    return total


@kernel
def choose_line(words, rows, n, vocabulary, packed, coin, tokens):
    """Draw n tokens like `choose`, all from the one table there is; `rows` is all zero."""
    ties = zero = _ONE - _ONE
    for i in range(n):
        token, tie = _draw(words[i], zero, vocabulary, packed)
        tokens[i] = np.uint32(token)
        ties |= tie
    if ties:
        choose_exactly(words, rows, n, vocabulary, packed, coin, tokens)


@kernel
def judge_line(begin, n, tokens, top, coin, counts, a, b):
    """Count the kept of n drafts; return how many others there are, their trials at the head of `a`."""
    ties = m = _ONE - _ONE
    for i in range(n):
        at = np.uint64(tokens[i])
        high, limit = b[i] >> _HALF, np.uint64(top[at])
        refused = np.uint64(high >= limit)  # or undecided
        ties |= np.uint64(high == limit)
        counts[at] += np.int64(_ONE - refused)
        a[m] = begin + np.uint64(i)
        m += refused
    if ties:
        m = judge_exactly(begin, m, tokens, coin, counts, a, b)
    return np.int64(m)


@kernel
def judge_exactly(begin, n, tokens, coin, counts, a, b):
    """Keep those of n drafts in doubt that the full coin keeps; return how many remain in `a`."""
    m = _ONE - _ONE
    for j in range(n):
        i = a[j] - begin
        at = np.uint64(tokens[i])
        if (b[i] >> _ONE) < coin[at]:
            counts[at] += 1
        else:
            a[m] = a[j]
            m += _ONE
    return m


@kernel
def _chain_kernel(
    first, count, k0, k1, draft_length, length, end, initial, next_state, propose_row, step_row, bonus_row,
    tests, meetings, packed, coin, top, accept, r_packed, r_coin, others,
    counts, accepted, judged, moments, joint, joint_length, out,
):  # fmt: skip
    """Draw `count` decodes of `length` tokens."""
    n = min(LANES, count)
    lane, tried = np.zeros((_FIELDS, n), dtype=np.int64), np.zeros(draft_length + 1, dtype=np.int64)
    a, b = np.empty(n, dtype=np.uint64), np.empty(n, dtype=np.uint64)
    rows, tokens = np.empty(n, dtype=np.uint64), np.empty(n, dtype=np.uint32)
    refused, kept = np.empty(n, dtype=np.uint8), np.zeros(n, dtype=np.uint8)
    everyone, pending, other = np.arange(n), np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    vocabulary, key0, key1 = np.uint64(counts.shape[1]), np.uint64(k0), np.uint64(k1)
    recording = joint_length > 0 or out.shape[0] > 0
    for i in range(n):
        lane[_TRIAL, i], lane[_STATE, i] = first + i, initial[(first + i) % len(initial)]
    seated = n
    while n > 0:
        _address(lane, n, propose_row, tests, a, b, rows)
        fill(a, b, n, key0, key1)
        choose(a, rows, n, vocabulary, packed, coin, tokens)
        _step_rows(lane, n, step_row, tests, meetings, rows)
        judge(b, rows, n, vocabulary, tokens, top, accept, refused)
        if recording:
            _record(lane, everyone, refused, n, tokens, first, length, counts, joint, joint_length, out)
        m = _advance(
            lane, n, tokens, refused, draft_length, length, end, next_state, bonus_row, tests, meetings,
            counts, tried, pending, other, a, b, rows,
        )  # fmt: skip
        fill(a, b, m, key0, key1)
        choose(a, rows, m, vocabulary, r_packed, r_coin, tokens)
        if len(others) > 0:
            _choose_other(a, rows, m, vocabulary, others, other, tokens)
        if recording:
            _record(lane, pending, kept, m, tokens, first, length, counts, joint, joint_length, out)
        _replace(lane, m, tokens, pending, length, end, next_state, counts, accepted)
        n, seated = _retire(lane, n, seated, first, count, initial, accepted, moments)
    for slot in range(draft_length):
        judged[slot] += tried[slot + 1 :].sum()


@kernel
def _address(lane, n, propose_row, tests, a, b, rows):
    """Write where each lane's next draft reads its words, and which row it is drawn from."""
    slots = propose_row.shape[1]
    for i in range(n):
        slot = lane[_SLOT, i]
        a[i], b[i] = np.uint64(lane[_TRIAL, i]), _where(lane[_START, i], slot, 0)
        rows[i] = np.uint64(propose_row[lane[_STATE, i], min(slot, slots - 1)])

    if tests > 1:
        for i in range(n):
            test = lane[_TEST, i]
            b[i] += np.uint64((_AGAIN + test) * np.int64(test > 0)) << _HALF


@kernel
def _step_rows(lane, n, step_row, tests, meetings, rows):
    """Write the row of each lane's accept coins; that of the first test is the replacement's, too."""
    slots = step_row.shape[1]
    for i in range(n):
        rows[i] = np.uint64(step_row[lane[_STATE, i], min(lane[_SLOT, i], slots - 1)])
    if tests > 1:
        for i in range(n):
            rows[i] += np.uint64(lane[_TEST, i] * meetings)


@kernel
def _advance(
    lane, n, tokens, refused, draft_length, length, end, next_state, bonus_row, tests, meetings,
    counts, tried, pending, other, a, b, rows,
):  # fmt: skip
    """Move n lanes by their judged drafts; return how many wait for one more token, at `pending`.

    The token that it must differ from, if any, is written to `other`.
    """
    by_token, m = next_state.shape[1] > 1, 0
    for i in range(n):
        slot, state = lane[_SLOT, i], lane[_STATE, i]
        position = lane[_START, i] + slot
        other[m] = -1
        if refused[i]:
            test = lane[_TEST, i]
            if test + 1 < tests:
                lane[_TEST, i] = test + 1
                continue
            other[m] = np.int64(tokens[i])
            row, purpose = rows[i] - np.uint64(test * meetings), _CORRECT
        else:
            token = np.int64(tokens[i])
            if position < length:
                counts[state, token] += 1
            state = next_state[state, token if by_token else 0]
            slot += 1
            lane[_STATE, i], lane[_SLOT, i], lane[_TEST, i] = state, slot, 0
            if slot < draft_length and state != end:
                continue
            position += 1
            row, purpose = np.uint64(bonus_row[state]), _BONUS
        judged = slot + np.int64(refused[i])
        tried[judged] += 1
        lane[_TRIED, i] += judged
        if position >= length or state == end:  # the call ends here: nothing is left to emit
            lane[_OVER, i] = 1
        else:
            pending[m], rows[m] = i, row
            a[m], b[m] = np.uint64(lane[_TRIAL, i]), _where(lane[_START, i], slot, purpose)
            m += 1
    return m


@kernel
def _replace(lane, m, tokens, pending, length, end, next_state, counts, accepted):
    """Emit the replacement or bonus token of m pending lanes, and start their next blocks."""
    by_token = next_state.shape[1] > 1
    for j in range(m):
        i, token = pending[j], np.int64(tokens[j])
        slot, state = lane[_SLOT, i], lane[_STATE, i]
        counts[state, token] += 1
        state = next_state[state, token if by_token else 0]
        start = lane[_START, i] + slot + 1
        lane[_STATE, i] = state
        if start >= length or state == end:
            lane[_OVER, i] = 1
        else:
            accepted[slot] += 1
            lane[_CALLS, i] += 1
            lane[_KEPT, i] += slot
            lane[_START, i], lane[_SLOT, i], lane[_TEST, i] = start, 0, 0


@kernel
def _retire(lane, n, seated, first, count, initial, accepted, moments):
    """Count the lanes that are over and seat the next trials in them; return lanes and trials seated."""
    i = 0
    while i < n:
        if lane[_OVER, i] == 0:
            i += 1
            continue
        slot = lane[_SLOT, i]
        accepted[slot] += 1
        c, k, t = lane[_CALLS, i] + 1, lane[_KEPT, i] + slot, lane[_TRIED, i]
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


@kernel
def _record(lane, who, skip, n, tokens, first, length, counts, joint, joint_length, out):
    """Record emitted tokens in the joint counts of the first tokens, and in `out` where it is wanted."""
    for j in range(n):
        i, token = who[j], np.int64(tokens[j])
        position = lane[_START, i] + lane[_SLOT, i]
        if skip[j] or position >= length:
            continue
        if position < joint_length:
            lane[_CELL, i] = lane[_CELL, i] * counts.shape[1] + token
            if position == joint_length - 1:
                joint[lane[_TRIAL, i] % joint.shape[0], lane[_CELL, i]] += 1
        if out.shape[0] > 0:
            out[lane[_TRIAL, i] - first, position] = token


@kernel
def _choose_other(words, rows, n, vocabulary, sums, other, tokens):
    """Draw those of n tokens that must differ from a refused one, by running sums of their rows."""
    for i in range(n):
        if other[i] < 0:
            continue
        base, x = np.int64(rows[i] * vocabulary), other[i]
        weight = sums[base + x] - (sums[base + x - 1] if x > 0 else 0)
        mark = np.int64(_high(words[i], np.uint64(sums[base + np.int64(vocabulary) - 1] - weight)))
        low, high = np.int64(0), np.int64(vocabulary) - 1  # the token lies between them
        while low < high:
            middle = (low + high) // 2
            below = sums[base + middle] - (weight if middle >= x else 0)
            if below > mark:
                high = middle
            else:
                low = middle + 1
        tokens[i] = np.uint32(low)


@inlined
def _high(word, factor):
    """Return the high half of the 128-bit product of two 64-bit words."""
    low, middle = (word & _MASK) * (factor & _MASK), (word >> _HALF) * (factor & _MASK)
    other = (word & _MASK) * (factor >> _HALF)
    carry = (low >> _HALF) + (middle & _MASK) + (other & _MASK)
    return (word >> _HALF) * (factor >> _HALF) + (middle >> _HALF) + (other >> _HALF) + (carry >> _HALF)


@inlined
def _where(start, slot, purpose):
    """Return the second half of an address: start + 2**32 * (last counter word)."""
    return np.uint64(start) | np.uint64(_PURPOSES * slot + purpose) << _HALF
