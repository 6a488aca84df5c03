"""Rules with several drafts, and shared Gumbel noise, in Numba: trial after trial, at any vocabulary.

A draft costs a look-up in an alias table, and a refused one some binary searches (see `tree_tables`); a
position of shared noise costs a pass over the vocabulary.

Alias tables, draws without some tokens and the coins of a target tree are integer arithmetic, as in the text.
What else the text decides on rationals the kernel decides on float64. Let m be the mass that is left of p
when a draft is judged or a replacement drawn: it is also how likely a node is to come so far. Behind i
refusals, numbers that are compared lie within a gap of (i + 14)**2 2**-53 / m of the exact ones, 2**-45 / m
for a second draft. What lies within the gap of impossible or of sure is taken for that, so that ties fall as
in the text whatever the word; any other word falls otherwise with a probability of the order of the gap.
Weighed with m, that puts the law of a node with n drafts off by some n (n + 14)**2 2**-52 at most: 2**-43 for
two, 2**-33 for 64.

The gap, with u = 2**-53: a prefix sum is off by 10 u, and by its q times the error of a. As the mass falls
when a grows, a step from a_i to a_{i+1} does not widen the error of a, but adds 12 u / z_i and, for rounding,
u a_{i+1}; and a z is at most the sum of the masses so far, i at most. Before any refusal p/q is all that is
asked; it is exact where p = q, and otherwise right to 3 u, relatively.

Whatever is rounded, a kept draft has p/q > 0, and a replacement is one of the tokens with p > 0. The clocks
of races are the double-precision arithmetic of `simkit.rules.coupling.run_race`.

Functions that take arrays call no kernels that do: Numba would then count references to the arrays, which
threads share, and that takes longer than all else. So a kernel is one loop, with short functions in it.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from simkit.rules.matching import shared_gumbel
from simkit.rules.multidraft import KINDS
from simkit.sampling.jit import inlined, kernel
from simkit.sampling.program import Program
from simkit.sampling.tally import Counts

AHEAD = 8
CHUNK = 512

_MASK = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_ONE = np.uint64(1)
_ELEVEN = np.uint64(11)
_M0, _M1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_W0, _W1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
_TEXT, _CLOCK, _PURPOSES = 3, 4, 256  # purposes of words: TEXT and RACE of simkit.sampling.philox
_ALWAYS, _UNIT = 2.0**63, 2.0**-53
_MARGIN = 1.000001
_WITHOUT, _PATHS, _K_SEQ, _TARGET = (
    KINDS.index(kind) for kind in ("without-replacement", "independent-paths", "k-seq", "target-tree")
)
_CHOICE, _COIN = 0, 1
# of a call: how many choices and coins it has asked for, how many words of each are read, and their address
_READ, _LOW, _HIGH, _PLACE, _KEY0, _KEY1, _FIELDS = range(2, 9)


def run(
    program: Program, first: int, count: int, counts: Counts, tokens: NDArray[np.int32] | None = None
) -> None:
    """Draw trials `first` to `first + count - 1` and add what they emit to `counts`; see `cpu.run`."""
    tables = program.tables
    draws = (
        first, count, *program.key, program.draft_length, program.length, program.end,
        program.pair.initial, program.pair.next_state,
    )  # fmt: skip
    results = (
        counts.counts, counts.accepted, counts.judged, counts.moments, counts.joint, program.joint_length,
        np.empty((0, 0), dtype=np.int32) if tokens is None else tokens,
    )  # fmt: skip
    if program.text is shared_gumbel:
        _races(*draws, tables.weight, tables.target, tables.draft, *results)
    else:
        _trees(
            *draws, tables.kind, tables.node, tables.token, tables.rank, tables.candidate, tables.step_row,
            tables.bonus, tables.bonus_row, *results,
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
def _word(kind, words, call):
    """Return the word of a call's next choice or coin."""
    number, read = call[kind], np.int64(call[_READ])
    low, high, place, key0, key1 = call[_LOW], call[_HIGH], call[_PLACE], call[_KEY0], call[_KEY1]
    end = read + AHEAD * np.int64(number == call[_READ])
    for n in range(read, end):
        last = np.uint64(_PURPOSES * n + _TEXT)
        words[_CHOICE, n], words[_COIN, n] = philox(low, high, place, last, key0, key1)
    call[kind], call[_READ] = number + _ONE, end
    return words[kind, number]


@kernel
def _trees(
    first, count, k0, k1, draft_length, length, end, initial, next_state,
    kind, node, token, rank, candidate, step_row, bonus, bonus_row,
    counts, accepted, judged, moments, joint, joint_length, out,
):  # fmt: skip
    """Draw `count` decodes of `length` tokens by a rule on a tree of drafts."""
    by_token, last = next_state.shape[1] > 1, step_row.shape[1] - 1
    most = max(1, node["tries"].max())
    # a path may ask for two coins at a node: whether it leads there, and whether its draft is kept
    words, call = np.empty((2, 2 * most * draft_length + AHEAD), np.uint64), np.empty(_FIELDS, np.uint64)
    call[_KEY0], call[_KEY1] = k0, k1
    emitted, refused = np.empty(draft_length + 1, np.int64), np.empty(most, np.int64)
    for i in range(count):
        trial = first + i
        state, position, cell = np.int64(initial[trial % len(initial)]), 0, np.int64(0)
        c = k = t = 0
        call[_LOW], call[_HIGH] = np.uint64(trial) & _MASK, np.uint64(trial) >> _HALF
        while position < length and state != end:
            call[_PLACE] = position
            call[_CHOICE] = call[_COIN] = call[_READ] = 0
            at, m, kept, found = state, 0, 0, True
            paths, agree = node[step_row[state, 0]]["tries"] - 1, 1.0
            while found and m < draft_length and at != end:
                step = np.int64(step_row[at, min(m, last)])
                here = node[step]
                n, rest, share = here["tries"], here["total"], 1.0
                # what is left of p, max(p - above q, 0), has its mass on the tokens before an entry
                above, mass, entry, gap = 0.0, here["gamma"], here["end"], 0.0
                if kind == _PATHS:
                    n, limit = 1, np.uint64(agree * _ALWAYS)
                    for _ in range(paths):
                        n += int(_word(_COIN, words, call) >> _ONE < limit)
                x, found, j = np.int64(0), False, 0
                while not found and j < n and rest > 0:
                    if kind == _TARGET:
                        x, limit = candidate[step, j]["token"], candidate[step, j]["coin"]
                    else:
                        word = _word(_CHOICE, words, call)
                        if kind == _WITHOUT and j > 0:
                            x = _pick_other(word, step, rest, refused, j, token)
                        else:
                            x = _pick(word, step, token)
                        limit = _limit((token[step, x]["ratio"] - above) * share, mass, gap)
                    found = _word(_COIN, words, call) >> _ONE < limit
                    if not found and kind != _TARGET and kind != _K_SEQ:
                        above, gap = above + mass / share, (j + 15) ** 2 * _UNIT
                        entry = _last_above(above + gap / share, here["begin"], here["end"], rank)
                        mass = _sum(above, entry, rank)
                    if not found and kind in (_TARGET, _WITHOUT):
                        _insert(x, refused, j)
                        rest -= _weight(step, x, token)
                        share = rest / here["total"]
                    j += 1
                if kind == _PATHS:
                    paths, agree = n - j, _weight(step, x, token) / here["total"]
                if not found:
                    word, slope = _word(_CHOICE, words, call), 0.0
                    if kind == _TARGET:
                        x = _pick_other(word, step, rest, refused, j, token)
                    else:
                        if kind == _K_SEQ:
                            above, slope = here["times"], max(0.0, 1.0 - here["times"] / mass)
                            entry = _last_above(mass, here["begin"], here["end"], rank)
                        x = _replace(word, above, here["begin"], entry, slope, here["end"], rank)
                    for j in range(candidate.shape[1]):
                        found |= candidate[step, j]["token"] == x
                emitted[m] = x
                m, kept = m + 1, kept + int(found)
                at = np.int64(next_state[at, x if by_token else 0])
            if found and at != end:
                emitted[m] = _pick(_word(_CHOICE, words, call), np.int64(bonus_row[at]), bonus)
                m += 1
            state, cell = _emit(
                emitted, min(m, length - position), trial, i, position, state, cell, next_state,
                counts, joint, joint_length, out,
            )  # fmt: skip
            position += m
            c, k, t = c + 1, k + kept, t + min(m, draft_length)
            _count_call(kept, min(m, draft_length), accepted, judged)
        _count_trial(c, k, t, moments)


@kernel
def _emit(emitted, m, trial, i, position, state, cell, next_state, counts, joint, joint_length, out):
    """Count m tokens of a call; return the state and the cell of the joint counts behind them."""
    for n in range(m):
        x = emitted[n]
        counts[state, x] += 1
        if position + n < joint_length:
            cell = cell * counts.shape[1] + x
            if position + n == joint_length - 1:
                joint[trial % joint.shape[0], cell] += 1
        if out.shape[0] > 0:
            out[i, position + n] = x
        state = np.int64(next_state[state, x if next_state.shape[1] > 1 else 0])
    return state, cell


@kernel
def _count_call(kept, tried, accepted, judged):
    """Count a call that keeps some drafts of those tried."""
    accepted[kept] += 1
    for slot in range(tried):
        judged[slot] += 1


@kernel
def _count_trial(c, k, t, moments):
    """Count a trial by its calls, drafts kept and drafts tried."""
    for at, value in enumerate((c, k, t, c * c, c * k, c * t, k * k, k * t, t * t)):
        moments[at] += value


@kernel
def _pick(word, row, cells):
    """Return the token that a word draws from an alias table."""
    vocabulary = np.uint64(cells.shape[1])
    own = ((word >> _HALF) * vocabulary + (((word & _MASK) * vocabulary) >> _HALF)) >> _HALF
    entry = cells[row, own]
    return np.int64(own) if (word * vocabulary) >> _ONE < entry["coin"] else entry["alias"]


@kernel
def _pick_other(word, step, rest, refused, n, token):
    """Return the token that a word draws by running sums without n tokens, which leave `rest` in weight."""
    mark = np.int64(_high(word, np.uint64(rest)))
    for j in range(n):
        weight = _weight(step, refused[j], token)
        mark += weight * np.int64(mark >= token[step, refused[j]]["running"] - weight)
    low, size = 0, token.shape[1]
    while size > 1:  # the first `low` tokens do not reach beyond the mark
        half = size >> 1
        low += half * np.int64(token[step, low + half - 1]["running"] <= mark)
        size -= half
    return low


@kernel
def _insert(x, tokens, n):
    """Insert a token in n sorted ones."""
    while n > 0 and tokens[n - 1] > x:
        tokens[n] = tokens[n - 1]
        n -= 1
    tokens[n] = x


@inlined
def _weight(step, x, token):
    """Return the weight of a token by the running sums."""
    before = token[step, x - 1]["running"] if x > 0 else 0
    return token[step, x]["running"] - before


@inlined
def _limit(excess, mass, gap):
    """Return the coin that is met with probability excess / mass, at most 1, where ties are a gap wide."""
    if excess <= gap:
        return np.uint64(0)
    return np.uint64(_ALWAYS) if excess >= mass - gap else np.uint64(excess / mass * _ALWAYS)


@kernel
def _last_above(bar, begin, end, rank):
    """Return the last entry with p/q above a bar."""
    size = end - begin + 1
    while size > 1:
        half = size >> 1
        begin += half * np.int64(rank[begin + half]["edge"] > bar)
        size -= half
    return begin


@inlined
def _sum(above, entry, rank):
    """Return the sum of p - above q over the tokens before an entry."""
    return rank[entry]["excess"] - (above - 1.0) * rank[entry]["q"]


@kernel
def _replace(word, above, begin, end, slope, final, rank):
    """Return the token that a word draws from p - above q before the entry `end`, slope times p behind it."""
    mass, before = _sum(above, end, rank), _sum(0.0, end, rank)
    behind = slope * (_sum(0.0, final, rank) - before)
    mark, low, size = (mass + behind) * (np.float64(word >> _ELEVEN) * _UNIT), begin, end - begin
    if mark >= mass and behind > 0.0:
        mark, above, low, size = (mark - mass) / slope + before, 0.0, end, final - end
    while size > 1:
        half = size >> 1
        low += half * np.int64(_sum(above, low + half, rank) <= mark)
        size -= half
    return rank[low]["token"]


@inlined
def _high(word, factor):
    """Return the high half of the 128-bit product of two 64-bit words."""
    low, middle = (word & _MASK) * (factor & _MASK), (word >> _HALF) * (factor & _MASK)
    other = (word & _MASK) * (factor >> _HALF)
    carry = (low >> _HALF) + (middle & _MASK) + (other & _MASK)
    return (word >> _HALF) * (factor >> _HALF) + (middle >> _HALF) + (other >> _HALF) + (carry >> _HALF)


@kernel
def _races(
    first, count, k0, k1, draft_length, length, end, initial, next_state, weight, target, draft,
    counts, accepted, judged, moments, joint, joint_length, out,
):  # fmt: skip
    """Draw `count` decodes of `length` tokens from shared noise."""
    by_token, last, noise = next_state.shape[1] > 1, draft.shape[1] - 1, np.empty(CHUNK, np.float64)
    key0, key1 = np.uint64(k0), np.uint64(k1)
    emitted = np.empty(draft_length + 1, np.int64)
    for i in range(count):
        trial = first + i
        low, high = np.uint64(trial) & _MASK, np.uint64(trial) >> _HALF
        state, position, cell = np.int64(initial[trial % len(initial)]), 0, np.int64(0)
        c = k = t = 0
        while position < length and state != end:
            at, m, kept, same = state, 0, 0, True
            while same and m <= draft_length and at != end:
                p = np.int64(target[at])
                q = np.int64(draft[at, min(m, last)]) if m < draft_length else p
                place = np.uint64(position + m)
                drafted, emitted[m] = _race(low, high, place, key0, key1, q, p, weight, noise)
                same = drafted == emitted[m]
                kept += int(same and m < draft_length)
                at = np.int64(next_state[at, emitted[m] if by_token else 0])
                m += 1
            state, cell = _emit(
                emitted, min(m, length - position), trial, i, position, state, cell, next_state,
                counts, joint, joint_length, out,
            )  # fmt: skip
            position += m
            c, k, t = c + 1, k + kept, t + min(m, draft_length)
            _count_call(kept, min(m, draft_length), accepted, judged)
        _count_trial(c, k, t, moments)


@kernel
def _race(low, high, place, k0, k1, q, p, weight, noise):
    """Return the winners of a race under rows q and p.

    A clock -log(1 - u) is u at least, so most tokens are out before their logarithm is taken. The margin is
    for rounding.
    """
    best_q = best_p = np.inf
    under_q = under_p = 0
    for begin in range(0, weight.shape[1], CHUNK):
        size = min(CHUNK, weight.shape[1] - begin)
        for n in range(size):
            last = np.uint64(_PURPOSES) * np.uint64(begin + n) + np.uint64(_CLOCK)
            word = philox(low, high, place, last, k0, k1)[0]
            noise[n] = min((word + 0.5) * 2.0**-64, 1.0 - 2.0**-53)
        for n in range(size):
            u, a, b = noise[n], weight[q, begin + n], weight[p, begin + n]
            if u < _MARGIN * best_q * a or u < _MARGIN * best_p * b:
                time = -math.log1p(-u)
                if a > 0.0 and time / a < best_q:
                    best_q, under_q = time / a, begin + n
                if b > 0.0 and time / b < best_p:
                    best_p, under_p = time / b, begin + n
    return under_q, under_p
