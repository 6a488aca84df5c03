"""The e-value of tables: an alternative over the hypergeometric law, one stratum after another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from simkit.stats._input import Floats, Ints, Mask, as_rate
from simkit.stats.evalue import FALSE_ALARM, Evidence, mix, mix_families, threshold
from simkit.stats.two_sample.sequences import (
    BLOCK,
    Tables,
    sums_by,
)

_WIDTHS: Mapping[str, float] = {"r*/2": 0.5, "r*": 1.0}
# A law against its own power 1 + b: .05 is a temperature off by 5 %.
_TILTS = (-0.8, -0.2, -0.05, 0.05, 0.2, 0.8)
LESSONS = 16
# Weights learned from few draws are held back as if four draws more had shown nothing ...
CAUTION = 4.0
# ... and a token, one of thousands, is bet on once it is three standard errors off.
_CONVINCED = 3.0


def table_evidence(tables: Tables, false_alarm: float = FALSE_ALARM) -> Evidence:
    """Return the evidence that the two samplers differ: alternative / hypergeometric, over all strata.

    A table of K symbols is read as K - 1 tables of two: rarest symbol first, each against all that are left.
    With H the hypergeometric law of a table of two, given its margins, the alternatives are

    * H^{1/(1 + r)}, normalised: wider than chance by a factor 1 + r in variance, whatever the direction. It
      is the exponential family of H in -ln H, the statistic of Freeman and Halton. As
      ln E ~ sum [r (X2 - df) / 2 - r^2 df / 4], r = u r* with weights u is best, where the evidence just
      rejects, for r* = 2 sqrt(ln(1/false_alarm) / sum(u^2 df)). df is twice the variance of -ln H: 1 for
      large counts, 0 for tables that cannot speak (a token of each sampler). Families: the product over
      strata, u = sqrt(N_s) as in `permutation_test`; and their average weighted by N_s, each with its own r*.
    * H(x) e^{theta x}, normalised (Fisher's noncentral hypergeometric law), in a direction that strata share:
      "the first sampler is sharper, or flatter", theta = b (ln c - mean ln c of those left), at six b; and
      "it likes these tokens", theta from the strata before (Peto's one-step log odds), position by position.

    Each has expectation 1 under the null, exactly, and so has their average. It holds for one look at the
    data: sequences that come later change the strata.

    Parameters
    ----------
    tables
        From `first_tokens`, `later_tokens` or `count_tables`.
    false_alarm
        The rate for which r* is best; the evidence is valid at every rate.

    Raises
    ------
    InputError
        If the rate is not strictly between 0 and 1.

    References
    ----------
    .. [1] G. H. Freeman and J. H. Halton, Biometrika 38 (1951), 141-149: the exact law of a table given its
       margins.
    .. [2] P. Grünwald, R. de Heide, W. Koolen, "Safe testing", J. R. Stat. Soc. B 86 (2024): alternative over
       null is an e-value, and conditional ones multiply.
    .. [3] R. Turner, A. Ly, P. Grünwald, "Generic E-variables for exact sequential k-sample tests that allow
       for optional stopping", arXiv:2106.02693: the relative that does not fix margins.
    .. [4] S. Yusuf, R. Peto et al., Prog. Cardiovasc. Dis. 27 (1985), 335-371: the one-step log odds.

    Examples
    --------
    >>> from simkit.stats.two_sample import count_tables
    >>> tables = count_tables([[600, 400]], [[500, 500]])
    >>> round(table_evidence(tables, 0.01).log_e, 1)
    6.3
    """
    rate = as_rate("false_alarm", false_alarm)
    if tables.strata == 0:
        return mix({"no strata": 0.0})
    chain = _Chain.of(tables)
    root, own, log_c = np.sqrt(chain.sizes), chain.freedom(), np.log(chain.counts)
    together = root * _best_width(float((root**2 * own).sum()), rate)
    found = chain.log_e(
        {
            **{f"product {k}": chain.wider(s * together) for k, s in _WIDTHS.items()},
            **{f"average {k}": chain.wider(s * _best_width(own, rate)) for k, s in _WIDTHS.items()},
            **{f"tilt {b}": chain.tilted(b * log_c) for b in _TILTS},
            "tokens": chain.tilted(_token_odds(tables, chain)),
        }
    )
    share = np.log(chain.sizes / chain.sizes.sum())
    over = {name: float(values.sum()) for name, values in found.items()}
    average = {k: float(np.logaddexp.reduce(share + v)) for k, v in found.items() if k.startswith("average")}
    tilts = mix({name: value for name, value in over.items() if name.startswith("tilt")})
    return mix_families(
        {
            "product": {name: value for name, value in over.items() if name.startswith("product")},
            "average": average if tables.strata > 1 else {},
            "direction": {"sharper or flatter": tilts.log_e, "tokens": over["tokens"]},
        }
    )


def _best_width(freedom: Any, false_alarm: float) -> Any:
    """Return r*; where there is no freedom, that of a tenth of a degree, which costs nothing there."""
    return 2.0 * np.sqrt(threshold(false_alarm) / np.maximum(freedom, 0.1))


class _Bet(NamedTuple):
    """An alternative H^power e^(theta x), one number a table of two."""

    power: Floats
    theta: Floats


@dataclass(frozen=True)
class _Chain:
    """Tables of two: of each stratum its symbols, rarest first, each against those that are left.

    Of each cell, in that order: `counts` c and `seen` of the first sampler; `left` and `left_first` in all
    from here on; `share`, the first sampler's of the group. The last cell of a stratum is no `table`.
    """

    stratum: Ints
    order: Ints
    counts: Floats
    seen: Floats
    left: Floats
    left_first: Floats
    share: Floats
    table: Mask
    sizes: Floats

    @classmethod
    def of(cls, tables: Tables) -> _Chain:
        counts, seen = (tables.cells(side).astype(np.float64) for side in (tables.pooled, tables.first))
        stratum = tables.stratum
        order = np.lexsort((counts, stratum))
        share = sums_by(tables.group, tables.first) / sums_by(tables.group, tables.pooled)
        return cls(
            stratum=stratum,
            order=order,
            counts=counts[order],
            seen=seen[order],
            left=_from_here(counts[order], stratum),
            left_first=_from_here(seen[order], stratum),
            share=share[tables.home][stratum],
            table=np.diff(stratum, append=-1) == 0,
            sizes=tables.totals(counts),
        )

    def totals(self, values: Floats) -> Floats:
        """Return the sums over each stratum (S,) of one number a table."""
        return sums_by(self.stratum[self.table], values, self.sizes.size)

    def wider(self, width: Floats) -> _Bet:
        """Return the bet on more than chance, by a width a stratum."""
        power = 1.0 / (1.0 + width[self.stratum][self.table])
        return _Bet(power, np.zeros_like(power))

    def tilted(self, log_odds: Floats) -> _Bet:
        """Return the bet on log odds of the symbols, one a cell: each against the mean of those left."""
        rest = _from_here(self.counts * log_odds, self.stratum) - self.counts * log_odds
        theta = (log_odds - rest / np.maximum(self.left - self.counts, 1.0))[self.table]
        return _Bet(np.ones_like(theta), theta)

    def freedom(self) -> Floats:
        """Return the degrees of freedom (S,): twice the variance of -ln H.

        They are those of planned margins, the group's share, not of realised ones, which are labels: what
        comes later in the order may not tune the bets before.
        """
        planned = np.rint(self.left * self.share)
        laws = _laws(self.counts[self.table], self.left[self.table], planned[self.table])
        return 2.0 * self.totals(np.concatenate([law.varentropy() for law in laws]))

    def log_e(self, bets: Mapping[str, _Bet]) -> dict[str, Floats]:
        """Return ln E (S,) of each bet."""
        seen, at = self.seen[self.table], 0
        found = {name: np.empty(seen.size) for name in bets}
        laws = _laws(self.counts[self.table], self.left[self.table], self.left_first[self.table])
        for law in laws:
            part = slice(at, at + law.starts.size)
            for name, bet in bets.items():
                found[name][part] = law.log_e(_Bet(bet.power[part], bet.theta[part]), seen[part])
            at = part.stop
        return {name: self.totals(values) for name, values in found.items()}


def _from_here(values: Floats, stratum: Ints) -> Floats:
    """Return the sums over this and all later cells of the same stratum."""
    running = np.append(np.cumsum(values[::-1])[::-1], 0.0)
    beyond = running[np.searchsorted(stratum, stratum, side="right")]
    return np.asarray(running[:-1] - beyond, dtype=np.float64)


@dataclass(frozen=True)
class _Laws:
    """The hypergeometric laws of some tables of two, their outcomes one after another."""

    starts: Ints  # of each table
    table: Ints  # of each outcome
    x: Floats  # of each outcome: the first sampler's count
    log_h: Floats

    def normalised(self, log_weights: Floats) -> Floats:
        """Return log weights less the log of their sum over the table."""
        top = np.maximum.reduceat(log_weights, self.starts)[self.table]
        total = np.add.reduceat(np.exp(log_weights - top), self.starts)
        return log_weights - top - np.log(total)[self.table]

    def log_e(self, bet: _Bet, seen: Floats) -> Floats:
        """Return ln of alternative over H at the seen outcome of each table."""
        log_bet = self.normalised(bet.power[self.table] * self.log_h + bet.theta[self.table] * self.x)
        here = self.starts + np.rint(seen - self.x[self.starts]).astype(np.int64)
        return np.asarray(log_bet[here] - self.log_h[here], dtype=np.float64)

    def varentropy(self) -> Floats:
        """Return the variance of -ln H of each table."""
        h = np.exp(self.log_h)
        mean = np.add.reduceat(h * self.log_h, self.starts)
        return np.add.reduceat(h * (self.log_h - mean[self.table]) ** 2, self.starts)


def _laws(counts: Floats, left: Floats, drawn: Floats) -> Iterator[_Laws]:
    """Yield the laws, some at a time: `drawn` of `left` are the first sampler's, `counts` are the symbol."""
    from scipy.special import gammaln

    low = np.maximum(0.0, counts + drawn - left)
    sizes = (np.minimum(counts, drawn) - low).astype(np.int64) + 1
    blocks = np.diff((np.cumsum(sizes) - 1) // BLOCK, prepend=-1, append=-1)
    for at, to in pairwise(np.flatnonzero(blocks).tolist()):
        table = np.repeat(np.arange(to - at), sizes[at:to])
        starts = np.cumsum(sizes[at:to]) - sizes[at:to]
        x = np.arange(table.size) - starts[table] + low[at:to][table]
        c, n, m = (values[at:to][table] for values in (counts, left, drawn))
        log_h = -(gammaln(x + 1) + gammaln(c - x + 1) + gammaln(m - x + 1) + gammaln(n - c - m + x + 1))
        plain = _Laws(starts, table, x, log_h)
        yield _Laws(starts, table, x, plain.normalised(log_h))


def _token_odds(tables: Tables, chain: _Chain) -> Floats:
    """Return, for each cell of the chain, the log odds of its token in the strata before it.

    Strata are taken by position, in lessons: what a lesson bets was learned in earlier ones. Sorting by
    position keeps a prefix before those that extend it.
    """
    by_position = np.argsort(tables.position, kind="stable")
    done = np.cumsum(chain.sizes[by_position])
    lesson = np.empty(tables.strata, dtype=np.int64)
    lesson[by_position] = (done - 1) * LESSONS / done[-1]
    first = tables.totals(tables.cells(tables.first))[chain.stratum]
    c, n = chain.counts, chain.sizes[chain.stratum]
    surplus = chain.seen - first * c / n
    variance = c * (n - c) * first * (n - first) / (n**2 * (n - 1))
    token = np.unique(tables.symbol[chain.order], return_inverse=True)[1]
    return learned(lesson[chain.stratum], token, surplus, variance)


def learned(lesson: Ints, token: Ints, surplus: Floats, variance: Floats) -> Floats:
    """Return for each entry the log odds of its token, as the entries of earlier lessons have them.

    They are 0 for tokens that chance may explain: thousands of small bets on noise lose.
    """
    shape = LESSONS, int(token.max(initial=0)) + 1
    place = lesson * shape[1] + token
    found, spread = (sums_by(place, x, shape[0] * shape[1]).reshape(shape) for x in (surplus, variance))
    found, spread = np.cumsum(found, axis=0) - found, np.cumsum(spread, axis=0) - spread
    sure = np.abs(found) > _CONVINCED * np.sqrt(spread)
    odds = np.where(sure, found / (spread + CAUTION), 0.0)
    return np.asarray(odds.reshape(-1)[place], dtype=np.float64)
