"""The token loop in NumPy: the same decisions as the reference, over arrays of trials."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simkit.laws.rows import IntRows
from simkit.sampling import philox
from simkit.sampling.program import Program
from simkit.sampling.tables import AliasTables
from simkit.sampling.tally import Counts

I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]
BATCH = 2**15


def run(
    program: Program, first: int, count: int, counts: Counts, tokens: NDArray[np.int32] | None = None
) -> None:
    """Draw trials `first` to `first + count - 1` and add what they emit to `counts`; see `cpu.run`."""
    for begin in range(first, first + count, BATCH):
        trial = np.arange(begin, min(begin + BATCH, first + count), dtype=np.int64)
        out = None if tokens is None else tokens[begin - first :]
        _Batch(program, trial, counts, out).run()


def draw(tables: AliasTables, row: I64, word: U64) -> I64:
    """Return the token that each 64-bit word draws from its row's alias table."""
    vocabulary, half = np.uint64(tables.alias.shape[1]), np.uint64(32)
    low = word & np.uint64(0xFFFFFFFF)
    cell = ((word >> half) * vocabulary + (low * vocabulary >> half)) >> half
    kept = (word * vocabulary) >> np.uint64(1) < tables.coins.exact[row, cell]
    return np.where(kept, cell, tables.alias[row, cell]).astype(np.int64)


def draw_other(sums: IntRows, row: I64, refused: I64, word: U64) -> I64:
    """Return the token that each word draws from its row, given by running sums, other than a refused one."""
    tokens = np.empty(len(row), dtype=np.int64)
    for i, (r, x, w) in enumerate(zip(row.tolist(), refused.tolist(), word.tolist(), strict=True)):
        left = sums[r].copy()
        left[x:] -= sums[r, x] - (sums[r, x - 1] if x else 0)
        tokens[i] = np.searchsorted(left, w * int(left[-1]) >> 64, side="right")
    return tokens


class _Batch:
    """Trials on their way: arrays of their states, and of where each stands in its block."""

    def __init__(self, program: Program, trial: I64, counts: Counts, out: NDArray[np.int32] | None) -> None:
        self.program, self.counts, self.out = program, counts, out
        self.tables = program.tables
        self.draft = np.zeros(len(trial), dtype=np.int64)
        self.trial = trial
        self.request = trial % len(program.pair.initial)
        self.state = program.pair.initial[self.request].astype(np.int64)
        self.start, self.slot, self.cell = (np.zeros(len(trial), dtype=np.int64) for _ in range(3))
        self.sums = np.zeros((len(trial), 3), dtype=np.int64)

    def run(self) -> None:
        """Sweep until every trial is done: judge a draft, then replace refused ones and add bonus tokens."""
        live = np.arange(len(self.trial))
        while len(live):
            refused, full, over = self._judge(live)
            self._replace(refused, full)
            ended = self._finish(np.concatenate([refused, full, over]))
            live = live[~np.isin(live, ended)]
        totals = self.sums.sum(axis=0)
        products = self.sums.T @ self.sums
        self.counts.moments[:] += np.concatenate([totals, products[np.triu_indices(3)]])

    def _judge(self, live: I64) -> tuple[I64, I64, I64]:
        """Put the drafts of a slot to their tests; return those refused, full, and over in the block."""
        program = self.program
        np.add.at(self.counts.judged, self.slot[live], 1)
        self.sums[live, 2] += 1
        goes_on, refused = live[:0], live
        for test in range(self.tables.tests):
            kept = self._test(refused, test)
            goes_on, refused = np.concatenate([goes_on, refused[kept]]), refused[~kept]
        self._emit(goes_on, self.draft[goes_on])
        self.slot[goes_on] += 1
        end = self.state[goes_on] == program.end
        full = ~end & (self.slot[goes_on] == program.draft_length)
        return refused, goes_on[full], goes_on[end]

    def _test(self, who: I64, test: int) -> NDArray[np.bool_]:
        """Draw a draft of each trial, and return whether its accept test keeps it."""
        tables, row, state = self.tables, self._row(who), self.state[who]
        proposal, coin = self._words(who, philox.AGAIN + test if test else philox.DRAFT)
        token = draw(tables.propose, tables.propose_row[state, row].astype(np.int64), proposal)
        self.draft[who] = token
        at = tables.step_row[state, row] + test * tables.meetings
        kept: NDArray[np.bool_] = coin >> np.uint64(1) < tables.accept.exact[at, token]
        return kept

    def _row(self, who: I64) -> I64:
        return np.minimum(self.slot[who], self.program.pair.slots - 1)

    def _replace(self, refused: I64, full: I64) -> None:
        """Emit the replacement of each refused draft and the bonus token of each full block, inside L."""
        tables, length = self.tables, self.program.length
        refused, full = (who[self._position(who) < length] for who in (refused, full))
        if len(refused):
            row = tables.step_row[self.state[refused], self._row(refused)].astype(np.int64)
            word = self._words(refused, philox.CORRECT)[0]
            if tables.redraws:
                self._emit(refused, draw_other(tables.others, row, self.draft[refused], word))
            else:
                self._emit(refused, draw(tables.replace, row, word))
        if len(full):
            row = tables.bonus_row[self.state[full]].astype(np.int64)
            self._emit(full, draw(tables.replace, row, self._words(full, philox.BONUS)[0]))

    def _finish(self, who: I64) -> I64:
        """Count the calls that ended and start the next blocks; return the trials that are done."""
        slot = self.slot[who]
        np.add.at(self.counts.accepted, slot, 1)
        self.sums[who, 0] += 1
        self.sums[who, 1] += slot
        self.start[who] += slot + 1
        self.slot[who] = 0
        done: I64 = who[(self.start[who] >= self.program.length) | (self.state[who] == self.program.end)]
        return done

    def _position(self, who: I64) -> I64:
        return self.start[who] + self.slot[who]

    def _words(self, who: I64, purpose: int) -> tuple[U64, U64]:
        trial, start, slot = (a[who].astype(np.uint64) for a in (self.trial, self.start, self.slot))
        return philox.words_array(trial, start, slot, purpose, self.program.key)

    def _emit(self, who: I64, token: I64) -> None:
        """Record tokens that lie inside the decode, and move every trial to its next state."""
        pair, state, position = self.program.pair, self.state[who], self._position(who)
        inside = position < self.program.length
        np.add.at(self.counts.counts, (state[inside], token[inside]), 1)
        if self.out is not None:
            self.out[who[inside], position[inside]] = token[inside]
        first = position < self.program.joint_length
        self.cell[who[first]] = self.cell[who[first]] * pair.vocabulary + token[first]
        full = who[position == self.program.joint_length - 1]
        np.add.at(self.counts.joint, (self.request[full], self.cell[full]), 1)
        self.state[who] = pair.next_state[state, token if pair.next_state.shape[1] > 1 else 0]
