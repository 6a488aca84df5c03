"""Certificates: an upper confidence bound on how far the law of the counts is from the target law.

A test that does not reject says nothing about the distance; a certificate does. Two routes lead to one, and
the law and the planned draws alone decide which is taken.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from simkit.stats._binet import binet
from simkit.stats._input import (
    Floats,
    Ints,
    Law,
    Mask,
    as_at_least,
    as_pair,
    as_planned,
    as_rate,
    as_whole,
)
from simkit.stats.design import (
    MIN_EXPECTED,
    Layout,
    lay_out,
    noncentrality_limit,
    planned_bound,
    share_limit,
    split,
    spread_limit,
)
from simkit.stats.result import CHI_SQUARE

DISTRIBUTION_FREE = "distribution-free"
# With fewer degrees of freedom a chi-square near 0 is what counts on a coarse grid may well give.
_EVEN_FROM = 30


@dataclass(frozen=True)
class Certificate:
    """Hold an upper confidence bound on the total variation between the sampler's law and the target.

    Parameters
    ----------
    total_variation
        The bound, 0 to 1: of TV for one state, of sum_s (N_s/N) TV_s, the total variation per token, for
        many, with the realised N_s.
    confidence
        Probability that the bound holds, whatever the sampler's law.
    method
        "chi-square" or "distribution-free".
    cells, degrees_of_freedom
        Cells compared, and those less one for each state with two cells or more; the distribution-free method
        compares every token and has no degrees of freedom.
    opaque
        The part of the bound that stands for tokens without a cell of their own; more draws lower it only by
        giving them cells. 0 in the distribution-free method.
    samples
        Draws N. A certificate of no draws is total variation 1.
    too_even
        Whether the chi-square, of 30 degrees of freedom or more, lies below its quantile of rate
        1 - confidence, as if draws were repeated or stratified. Independent draws of any law do so with about
        that rate at most.
    worst_state
        Of many states, the one whose own chi-square exceeds its degrees of freedom most, per draw: the
        largest (X2_s - df_s) / M_s with M_s draws in its cells. A point estimate that names a place to look;
        rarely visited states are named by chance more often. None for one state, where no state has two
        cells, and in the distribution-free method.
    worst_bound
        The bound on TV_s of that state alone. The error is divided by the number of states with two cells, so
        that such bounds of all of them hold together with the stated confidence. None where `worst_state` is.

    Examples
    --------
    >>> bound = certificate([50_080, 49_920], [0.5, 0.5], 0.999)
    >>> print(bound)
    total variation <= 0.006467 with confidence 0.999 (chi-square, 2 cells, opaque 0, 100000 samples)
    >>> round(bound.per_sequence(16), 4)
    0.1035
    """

    total_variation: float
    confidence: float
    method: str
    cells: int
    degrees_of_freedom: int
    opaque: float
    samples: int
    too_even: bool = False
    worst_state: int | None = None
    worst_bound: float | None = None

    def per_sequence(self, length: int) -> float:
        """Return the bound for sequences of `length` tokens: min(1, length x total_variation).

        The total variation of two sequence laws is at most the sum over slots of the expected total variation
        of the next-token laws, which is `length` times the visit-weighted one where the visits counted are
        those of such sequences.

        Parameters
        ----------
        length
            Tokens L >= 1.

        Raises
        ------
        InputError
            If the length is not a whole number >= 1.
        """
        return min(1.0, as_whole("length", length, 1) * self.total_variation)

    def __str__(self) -> str:
        """Return one line: bound, confidence, method, sizes."""
        even = ", counts more even than chance" if self.too_even else ""
        return (
            f"total variation <= {self.total_variation:.4g} with confidence {self.confidence:.10g} "
            f"({self.method}, {self.cells} cells, opaque {self.opaque:.3g}, {self.samples} samples{even})"
        )


def certificate(
    counts: ArrayLike,
    probabilities: Law,
    confidence: float,
    visits: ArrayLike | None = None,
    min_expected: float = MIN_EXPECTED,
) -> Certificate:
    """Return an upper confidence bound on the total variation between the law of the counts and the target.

    **Chi-square.** Cells follow from the target p and the planned draws (`simkit.stats.design.lay_out`). Let
    q be the sampler's law, T the tail cell or O the left-out tokens of a state, and q', p' the laws given
    "not O".

    * A tail cell: sum_T |q - p| <= q(T) + p(T) = |q(T) - p(T)| + 2 min(q(T), p(T)), so
      TV <= TV over the cells + p(T).
    * Left-out tokens: with a = p(O), b = q(O), m = max(a, b), writing the law of smaller weight on "not O" as
      the common part, sum over "not O" of |(1 - b) q' - (1 - a) p'| <= 2 (1 - m) TV' + |b - a|, and
      sum_O |q - p| <= a + b; so TV <= (1 - m) TV' + m <= TV' + p(O) + q(O).
    * TV' over the cells: U = sum (c - e)^2/e - sum (c - e)/e over the cells of all states, given the draws
      M_s in them, has mean sum_s (K_s - 1) + sum_s (M_s - 1) w_s^2, exactly, under any law. (Pearson's
      statistic alone has sum (q/p - 1) in its mean: far below its degrees of freedom where weight moved from
      many small cells to few large ones.) It is taken as noncentral chi-square with these degrees of
      freedom, and sum_s (M_s - 1) w_s^2 is at most lambda_U where P(chi-square(lambda_U) <= U) = error. A U
      below its degrees of freedom counts as these: 50 of 100 tosses do not show a fair coin. U is less
      steady than Pearson's statistic where cells expect few draws; the larger of both is taken.
      `simkit.stats.design.spread_limit` makes sqrt(lambda_U sum_s N_s^2/(M_s - 1)) / (2 N) of it.
      A law with |q - p| = 2 TV p attains it.
    * sum_s (N_s/N) q_s(O): Clopper-Pearson's limit for the number of left-out tokens among N draws. The
      probabilities differ by state, so the number is not binomial; but up to one draw below the mean its
      distribution function is at most the binomial's of the same mean (Hoeffding), and limits of error below
      1/4 are read there, since a binomial is at most its mean with a probability above 1/4.

    Where both are needed, nine tenths of the error go to chi-square and one tenth to the count.

    A state with fewer draws in its cells than half of those planned, or with one only, says nothing: its TV_s
    counts as 1. The chi-square law is asymptotic (20 draws a cell; at its worst alternatives it is tested by
    simulation), and where visits depend on the tokens, in loops, so is the conditioning on them.

    **Distribution-free.** TV(q, p) <= TV(counts/N, p) + (1/N) sum_sj E|S_c| + sqrt(2 ln(1/error) / N) with c
    the count of token j in state s and S_c a sum of c fair signs: the second term is the empirical Rademacher
    complexity of all sets of tokens, twice; symmetrisation puts the mean of TV(counts/N, q) below its mean;
    and one draw changes the difference of the two by at most 2/N, since E|S_c| rises by 0 to 1 with c, so
    McDiarmid's inequality gives the third. Valid at any sparsity; taken where, under p, its expected size is
    below that of the chi-square route.

    Parameters
    ----------
    counts
        Tokens seen, whole numbers, shape (V,) or (S, V). A token of probability 0 counts like any other that
        has no cell: the bound holds for laws that draw it.
    probabilities
        Target law, float, same shape, or anything with `probabilities` of that shape; rows sum to 1.
    confidence
        Probability that the bound holds, between 0 and 1.
    visits
        Planned draws: a number for (V,) (default: the number of counts, a fixed sample size), shape (S,) for
        (S, V), where it has no default because the realised visits are random.
    min_expected
        Least planned expectation of a tested cell, in draws, at least 1.

    Returns
    -------
    Certificate; total variation 1 where nothing was drawn.

    Raises
    ------
    InputError
        If shapes differ, counts are not whole, a row does not sum to 1, visits are missing for (S, V), or the
        confidence is not between 0 and 1.

    References
    ----------
    .. [1] S. Wellek, Testing Statistical Hypotheses of Equivalence and Noninferiority (2010), chapter 9:
       equivalence to a multinomial law.
    .. [2] W. Hoeffding, "On the distribution of the number of successes in independent trials", Ann. Math.
       Statist. 27 (1956), 713-721, theorem 4.
    .. [3] D. Cohen, A. Kontorovich and G. Wolfer, "Learning discrete distributions with infinite support",
       arXiv:2004.12680: the empirical bound, here with E|S_c| itself and with one use of McDiarmid's
       inequality in place of two.

    Examples
    --------
    >>> certificate([480, 520], [0.5, 0.5], 0.95).total_variation <= 0.05
    True
    >>> print(certificate([10**6, 0], [1 - 1e-9, 1e-9], 0.999))
    total variation <= 6.909e-06 with confidence 0.999 (chi-square, 0 cells, opaque 6.91e-06, 1000000 samples)
    """
    tallies, rows = as_pair(counts, probabilities)
    planned = as_planned(visits, tallies, rows)
    sure = as_rate("confidence", confidence, such_as="0.999")
    layout = lay_out(np.atleast_2d(rows), planned, as_at_least("min_expected", min_expected, 1.0))
    tallies, rows = np.atleast_2d(tallies), np.atleast_2d(rows)
    if not tallies.any():
        return Certificate(1.0, sure, CHI_SQUARE, 0, 0, 1.0, 0)
    if _prefers_distribution_free(rows, planned, layout, 1.0 - sure):
        return _distribution_free(tallies, rows, sure)
    return _chi_square(tallies, rows, planned, layout, sure)


@dataclass(frozen=True)
class _Seen:
    """What a run shows of each state: draws, and of its cells draws, sum (c - e)^2/e and sum (c - e)/e."""

    draws: Floats
    inside: Floats
    pearson: Floats
    shares: Floats
    tested: Mask


def _look(counts: Ints, rows: Floats, planned: Floats, layout: Layout) -> _Seen:
    """Return the counts of each state in its cells."""
    draws = counts.sum(axis=1).astype(np.float64)
    own = np.where(layout.own, counts, 0).sum(axis=1).astype(np.float64)
    inside = np.where(layout.left_out, own, draws)
    # Expectations given "not left out"; 1 stands for "no cell" and for "no draw".
    scale = (inside / (1.0 - layout.outside))[:, None]
    expected = np.where(layout.own & (scale > 0.0), rows * scale, 1.0)
    excess = np.where(layout.own, counts - expected, 0.0)
    rest = np.where(layout.tail & (draws > 0.0), layout.rest * draws, 1.0)
    tail = np.where(layout.tail, draws - own - rest, 0.0)
    shares = (excess / expected).sum(axis=1) + tail / rest
    pearson = (excess**2 / expected).sum(axis=1) + tail**2 / rest
    enough = np.maximum(planned * (1.0 - layout.outside) / 2.0, 2.0)
    tested = (layout.cells > 1) & (inside >= enough)
    return _Seen(draws, inside, pearson * tested, shares * tested, tested)


def _chi_square(
    counts: Ints, rows: Floats, planned: Floats, layout: Layout, confidence: float
) -> Certificate:
    """Return the bound of the chi-square route."""
    from scipy.special import chdtr

    error = 1.0 - confidence
    seen = _look(counts, rows, planned, layout)
    for_cells, for_count = split(error, layout)
    total = float(seen.draws.sum())
    statistic = _cautious(float(seen.pearson.sum()), float(seen.shares.sum()))
    df = int((layout.cells - 1)[seen.tested].sum())
    noncentrality = noncentrality_limit(max(statistic, df), df, for_cells)
    weight = float((seen.draws**2 / np.maximum(seen.inside - 1.0, 1.0))[seen.tested].sum())
    unseen = (layout.cells > 1) & ~seen.tested
    opaque = float(seen.draws @ np.where(unseen, 1.0, layout.rest)) / total
    if layout.left_out.any():
        count = float((seen.draws - seen.inside).sum())
        opaque += share_limit(count, total, for_count)
    worst, bound = _worst(seen, layout, error) if len(rows) > 1 else (None, None)
    return Certificate(
        total_variation=min(1.0, opaque + spread_limit(noncentrality, weight, total)),
        confidence=confidence,
        method=CHI_SQUARE,
        cells=int(layout.cells[seen.tested].sum()),
        degrees_of_freedom=df,
        opaque=min(1.0, opaque),
        samples=int(counts.sum()),
        too_even=bool(df >= _EVEN_FROM and chdtr(df, max(statistic, 0.0)) <= error),
        worst_state=worst,
        worst_bound=bound,
    )


def _cautious(pearson: float, shares: float) -> float:
    """Return the larger of Pearson's statistic and the unbiased one, which is less the sum of (c - e)/e."""
    return max(pearson, pearson - shares)


def _worst(seen: _Seen, layout: Layout, error: float) -> tuple[int | None, float | None]:
    """Return the state of largest excess chi-square per draw, and the bound on its own total variation."""
    if not seen.tested.any():
        return None, None
    df = layout.cells - 1
    excess = (seen.pearson - df) / np.maximum(seen.inside, 1.0)
    state = int(np.where(seen.tested, excess, -np.inf).argmax())
    alone = layout.only(state)
    for_cells, for_count = split(error / int((layout.cells > 1).sum()), alone)
    draws, inside = float(seen.draws[state]), float(seen.inside[state])
    statistic = _cautious(float(seen.pearson[state]), float(seen.shares[state]))
    noncentrality = noncentrality_limit(max(statistic, df[state]), int(df[state]), for_cells)
    bound = float(layout.rest[state]) + spread_limit(noncentrality, draws**2 / (inside - 1.0), draws)
    if alone.left_out.any():
        bound += share_limit(draws - inside, draws, for_count)
    return state, min(1.0, bound)


def _distribution_free(counts: Ints, rows: Floats, confidence: float) -> Certificate:
    """Return the bound of the distribution-free route."""
    draws = counts.sum(axis=1, keepdims=True)
    total = int(counts.sum())
    distance = 0.5 * float(np.abs(counts - draws * rows).sum()) / total
    complexity = float(_mean_sign_sum(counts).sum()) / total
    return Certificate(
        total_variation=min(1.0, distance + complexity + _deviation(total, 1.0 - confidence)),
        confidence=confidence,
        method=DISTRIBUTION_FREE,
        cells=int(rows.size),
        degrees_of_freedom=0,
        opaque=0.0,
        samples=total,
    )


def _deviation(draws: float, error: float) -> float:
    """Return McDiarmid's term: n draws that change the value by at most 2/n each."""
    return float(np.sqrt(2.0 * np.log(1.0 / error) / draws))


def _mean_sign_sum(counts: Ints) -> Floats:
    """Return E|S_c| = 2 m C(2m, m) / 4^m, m = ceil(c/2), the mean absolute sum of c fair signs.

    C(2m, m) / 4^m = exp(binet(2m) - 2 binet(m)) / sqrt(pi m), which keeps its digits at any count.
    """
    seen = counts > 0
    half = ((counts[seen] + 1) // 2).astype(np.float64)
    value = np.zeros(counts.shape)
    value[seen] = 2.0 * np.sqrt(half / np.pi) * np.exp(binet(2.0 * half) - 2.0 * binet(half))
    return value


def _prefers_distribution_free(rows: Floats, planned: Floats, layout: Layout, error: float) -> bool:
    """Return whether under the target the distribution-free bound is expected to be the smaller one."""
    total = float(planned.sum())
    if total == 0.0:
        return False
    count = float(planned @ layout.outside)
    other = planned_bound(layout, planned, error, float(layout.degrees_of_freedom), count)
    deviation = _deviation(total, error)
    # The first test spares the second, which looks at every token.
    return deviation < other and deviation + _expected_sums(rows, planned[:, None]) / total < other


def _expected_sums(rows: Floats, planned: Floats) -> float:
    """Return the mean, under the target, of n times the counts' distance from it, and of the sign sums.

    For a Poisson count c of mean m, E|c - m|/2 and E|S_c| are m near 0, and sqrt(m/(2 pi)) and sqrt(2 m/pi)
    far up; the forms here meet both ends and are off by at most a fifth between. They only choose the route.
    """
    mean = rows * planned
    halves = np.sqrt(1.0 - np.minimum(rows, 1.0)) / np.sqrt(1.0 + 2.0 * np.pi * mean)
    return float((mean * (halves + 1.0 / np.sqrt(1.0 + 0.5 * np.pi * mean))).sum())
