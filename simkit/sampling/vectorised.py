"""The token loop in NumPy: the same decisions as the reference, over arrays of trials."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

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


class _Batch:
    """Trials on their way: arrays of their states, and of where each stands in its block."""

    def __init__(self, program: Program, trial: I64, counts: Counts, out: NDArray[np.int32] | None) -> None:
        self.program, self.counts, self.out = program, counts, out
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
        """Put one draft of each trial to the test; return those refused, full, and over in the block."""
        program, slot = self.program, self.slot[live]
        row = np.minimum(slot, program.pair.slots - 1)
        state = self.state[live]
        proposal, coin = self._words(live, philox.DRAFT)
        token = draw(program.propose, program.propose_row[state, row].astype(np.int64), proposal)
        kept = coin >> np.uint64(1) < program.accept.exact[program.step_row[state, row], token]
        np.add.at(self.counts.judged, slot, 1)
        self.sums[live, 2] += 1
        goes_on, stops = live[kept], live[~kept]
        self._emit(goes_on, token[kept])
        self.slot[goes_on] += 1
        end = self.state[goes_on] == program.end
        full = ~end & (self.slot[goes_on] == program.draft_length)
        return stops, goes_on[full], goes_on[end]

    def _replace(self, refused: I64, full: I64) -> None:
        """Emit the replacement of each refused draft and the bonus token of each full block, inside L."""
        program = self.program
        refused, full = (who[self._position(who) < program.length] for who in (refused, full))
        slot = np.minimum(self.slot[refused], program.pair.slots - 1)
        correct = program.step_row[self.state[refused], slot]
        for who, row, purpose in (
            (refused, correct, philox.CORRECT),
            (full, program.bonus_row[self.state[full]], philox.BONUS),
        ):
            if len(who):
                self._emit(who, draw(program.replace, row.astype(np.int64), self._words(who, purpose)[0]))

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
