"""Any rule's text in Numba: each trial follows its random words down the trees of decisions.

The kernel reads a text's decisions from `simkit.sampling.decision_tables` and draws token for token what
`simkit.sampling.reference` draws from the text: alias tables and coins are integer arithmetic, and the clocks
of races are the same double-precision arithmetic as in `simkit.rules.coupling.run_race`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from simkit.sampling.jit import inlined, kernel
from simkit.sampling.program import Program
from simkit.sampling.tally import Counts

_MASK = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_ONE = np.uint64(1)
_M0, _M1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_W0, _W1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
_TEXT, _CLOCK, _PURPOSES = 3, 4, 256  # purposes of words: TEXT and RACE of simkit.sampling.philox
_COIN, _RACE, _ALONG = 1, 2, 3  # kinds of questions, of simkit.rules.choose
_MARGIN = 1.000001


def run(
    program: Program, first: int, count: int, counts: Counts, tokens: NDArray[np.int32] | None = None
) -> None:
    """Draw trials `first` to `first + count - 1` and add what they emit to `counts`; see `cpu.run`."""
    tables, pair = program.tables, program.pair
    _kernel(
        first, count, *program.key, program.draft_length, program.length, program.end,
        pair.initial, pair.next_state,
        tables.root, tables.node, tables.edge, tables.cell, tables.clock, tables.answer,
        tables.leaf, tables.token,
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
def _kernel(
    first, count, k0, k1, draft_length, length, end, initial, next_state,
    root, node, edge, cell, clock, answer, leaf, token,
    counts, accepted, judged, moments, joint, joint_length, out,
):  # fmt: skip
    """Draw `count` decodes of `length` tokens."""
    by_token, key0, key1 = next_state.shape[1] > 1, np.uint64(k0), np.uint64(k1)
    tried = np.zeros(draft_length + 1, dtype=np.int64)
    for i in range(count):
        trial = first + i
        low, high = np.uint64(trial) & _MASK, np.uint64(trial) >> _HALF
        request = trial % len(initial)
        state, position, joint_cell = np.int64(initial[request]), 0, np.int64(0)
        c = k = t = 0
        while position < length and state != end:
            at = np.int64(root[state])
            while at >= 0:
                asked = node[at]
                kind, number, table, size = asked["kind"], asked["number"], asked["table"], asked["size"]
                if kind == _RACE:
                    place = np.uint64(position + number)
                    found = race(low, high, place, key0, key1, clock, table, size, answer)
                else:
                    last = np.uint64(_PURPOSES * number + _TEXT)
                    a, b = philox(low, high, np.uint64(position), last, key0, key1)
                    if kind == _ALONG:
                        found = along(a, cell, table)
                    else:
                        found = pick(b if kind == _COIN else a, cell, table, size)
                at = np.int64(edge[asked["edge"] + found])
            call = leaf[~at]
            for n in range(call["length"]):
                if position < length:
                    x = np.int64(token[call["token"] + n])
                    counts[state, x] += 1
                    state = np.int64(next_state[state, x if by_token else 0])
                    if position < joint_length:
                        joint_cell = joint_cell * counts.shape[1] + x
                        if position == joint_length - 1:
                            joint[request, joint_cell] += 1
                    if out.shape[0] > 0:
                        out[i, position] = x
                position += 1
            drafts = min(call["length"], draft_length)
            accepted[call["accepted"]] += 1
            tried[drafts] += 1
            c, k, t = c + 1, k + call["accepted"], t + drafts
        for moment, value in enumerate((c, k, t, c * c, c * k, c * t, k * k, k * t, t * t)):
            moments[moment] += value
    for slot in range(draft_length):
        judged[slot] += tried[slot + 1 :].sum()


@inlined
def pick(word, cell, table, size):
    """Return the answer that a word draws from an alias table; a coin is a table of one cell."""
    cells = np.uint64(size)
    own = ((word >> _HALF) * cells + (((word & _MASK) * cells) >> _HALF)) >> _HALF
    c = cell[table + np.int64(own)]
    return c["kept"] if (word * cells) >> _ONE < c["coin"] else c["other"]


@inlined
def along(word, cell, table):
    """Return the answer that a word draws by prefix sums."""
    at = table
    while word > cell[at]["coin"]:
        at += 1
    return cell[at]["kept"]


@inlined
def race(low, high, place, k0, k1, clock, table, size, answer):
    """Return the answer to a race: which token is first under q, and which under r.

    A clock -log(1 - u) is u at least, so most tokens are out before their logarithm is taken. The margin is
    for rounding.
    """
    best_q = best_r = np.inf
    under_q = under_r = 0
    for n in range(size):
        c = clock[table + n]
        last = np.uint64(_PURPOSES) * np.uint64(c["token"]) + np.uint64(_CLOCK)
        u = uniform(philox(low, high, place, last, k0, k1)[0])
        if u < _MARGIN * best_q * c["q"] or u < _MARGIN * best_r * c["r"]:
            time = exponential(u)
            if c["q"] > 0 and time / c["q"] < best_q:
                best_q, under_q = time / c["q"], n
            if c["r"] > 0 and time / c["r"] < best_r:
                best_r, under_r = time / c["r"], n
    return answer[clock[table + under_q]["answer"] + under_r]


@inlined
def uniform(word):
    """Return the middle of a word's interval in (0, 1), the number that `coupling.run_race` reads."""
    return min((word + 0.5) * 2.0**-64, 1.0 - 2.0**-53)


@inlined
def exponential(u):
    """Return the exponential clock of a uniform number."""
    return -math.log1p(-u)
