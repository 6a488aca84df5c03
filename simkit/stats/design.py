"""What a run of a planned size can tell: cells, error rates and the smallest distance that shows.

Everything here is a function of the law and the plan, never of the counts. A run of n draws sees the tokens
that expect enough draws to have a cell of their own; of the rest it sees only how often it comes up. So the
size of a run follows from the law, not from the length of its row. `simkit.stats.certificate` puts the counts
into the same cells.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from simkit.errors import InputError
from simkit.stats._input import (
    Floats,
    Ints,
    Law,
    Mask,
    as_at_least,
    as_probabilities,
    as_rate,
    as_visits,
    as_whole,
)

# The e-value of a run averages three concentrations.
COMPONENTS = 3
FALSE_ALARM = 1e-6
MISS = 1e-3
MIN_EXPECTED = 20.0

_MOST_SAMPLES = 1 << 62
_LEFT_OUT_SHARE = 0.1
# From here on the closed bound on the noncentrality is within a thousandth of the solution.
_LARGE_NONCENTRALITY = 1e9
_TINY = 1e-300


@dataclass(frozen=True)
class Layout:
    """Hold which tokens have cells: the plan of a certificate.

    Parameters
    ----------
    own
        Tokens with a cell of their own, bool (S, V).
    rest
        Probability of each state's other tokens, float64 (S,).
    tail
        States whose other tokens share one more cell, bool (S,).
    left_out
        States whose other tokens are in no cell, bool (S,).

    Examples
    --------
    >>> layout = lay_out(np.array([[0.6, 0.39, 0.01]]), np.array([1000.0]))
    >>> layout.own.tolist(), layout.left_out.tolist(), layout.cells.tolist()
    ([[True, True, False]], [True], [2])
    """

    own: Mask
    rest: Floats
    tail: Mask
    left_out: Mask

    @property
    def cells(self) -> Ints:
        """The number of cells of each state, int64 (S,), at least 1."""
        return np.asarray(self.own.sum(axis=1) + self.tail, dtype=np.int64)

    @property
    def degrees_of_freedom(self) -> int:
        """Cells less one, over all states."""
        return int((self.cells - 1).sum())

    @property
    def outside(self) -> Floats:
        """The probability of each state's tokens that are in no cell, float64 (S,)."""
        return np.where(self.left_out, self.rest, 0.0)

    def only(self, state: int) -> Layout:
        """Return the cells of one state."""
        one = slice(state, state + 1)
        return Layout(self.own[one], self.rest[one], self.tail[one], self.left_out[one])


def lay_out(rows: Floats, planned: Floats, min_expected: float = MIN_EXPECTED) -> Layout:
    """Return the cells of every state, a function of the law and the planned draws only.

    A token that expects `min_expected` draws or more has a cell of its own. The state's other tokens,
    impossible ones among them, share one more cell, the tail, if together they expect as much; else they are
    left out, and the state's test is conditional on the other cells. A big cell is never merged with them:
    that would hide it.

    A state without such tokens says nothing unless one token has more than half of the probability: then that
    token is its only cell, which needs no expectation since nothing is tested. Without any, the whole state
    is one tail.

    Parameters
    ----------
    rows
        Target laws, float64 (S, V).
    planned
        Planned draws of each state, float64 (S,).
    min_expected
        Least expectation of a tested cell, in draws.

    Examples
    --------
    >>> lay_out(np.array([[1 - 1e-9, 1e-9]]), np.array([1e6])).left_out.tolist()
    [True]
    """
    own = (rows > 0.5) | ((rows > 0.0) & (rows * planned[:, None] >= min_expected))
    rest = np.where(own, 0.0, rows).sum(axis=1)
    alone = own.sum(axis=1)
    tail = (alone < rows.shape[1]) & ((rest * planned >= min_expected) | (alone == 0))
    return Layout(own=own, rest=rest, tail=tail, left_out=(alone < rows.shape[1]) & ~tail)


def split(error: float, layout: Layout) -> tuple[float, float]:
    """Return the shares of an error rate: the chi-square's, and that of the left-out tokens' count.

    Nine tenths and one tenth where both are needed, else all for the one that is.

    Parameters
    ----------
    error
        The rate of both together.
    layout
        The cells.

    Examples
    --------
    >>> split(0.001, lay_out(np.array([[0.5, 0.5]]), np.array([100.0])))[0]
    0.001
    """
    if layout.degrees_of_freedom == 0 or not layout.left_out.any():
        return error, error
    return (1.0 - _LEFT_OUT_SHARE) * error, _LEFT_OUT_SHARE * error


def noncentrality_limit(statistic: float, degrees_of_freedom: int, error: float) -> float:
    """Return the noncentrality at which a chi-square statistic this small has probability `error`.

    0 where it is as improbable without any noncentrality.

    Parameters
    ----------
    statistic
        The statistic, >= 0.
    degrees_of_freedom
        Its degrees of freedom; 0 leaves nothing to be wrong, and the answer is 0.
    error
        The probability.

    References
    ----------
    .. [1] L. Birge, "An alternative point of view on Lepski's method" (2001), Lemma 8.1:
       P(X <= df + lambda - 2 sqrt((df + 2 lambda) x)) <= exp(-x), solved for lambda, is the upper bracket,
       and the answer itself where lambda passes 1e9.

    Examples
    --------
    >>> limit = noncentrality_limit(9.0, 9, 1e-3)
    >>> from scipy.stats import ncx2
    >>> round(limit, 3), round(float(ncx2.cdf(9.0, 9, limit)), 9)
    (25.614, 0.001)
    """
    from scipy.optimize import brentq
    from scipy.special import gammainc
    from scipy.stats import ncx2

    df = degrees_of_freedom
    central = float(gammainc(df / 2.0, statistic / 2.0)) if df > 0 else 0.0
    if central <= error:
        return 0.0
    exponent = float(-np.log(error))
    root = 2.0 * np.sqrt(exponent) + np.sqrt(max(4.0 * exponent - df + 2.0 * statistic, 0.0))
    most = float((root * root - df) / 2.0)
    if most > _LARGE_NONCENTRALITY:
        return most

    def surplus(noncentrality: float) -> float:
        chance = central if noncentrality == 0.0 else float(ncx2.cdf(statistic, df, noncentrality))
        # On the log scale the curve is nearly straight, which saves half of the steps.
        return float(np.log(max(chance, _TINY))) + exponent

    return float(brentq(surplus, 0.0, most, xtol=1e-12, rtol=1e-12))


def share_limit(count: float, draws: float, error: float) -> float:
    """Return the upper Clopper-Pearson limit: the share at which so few draws have probability `error`.

    Parameters
    ----------
    count, draws
        Draws of the kind in question, and all draws.
    error
        The probability.

    References
    ----------
    .. [1] C. Clopper and E. Pearson, "The use of confidence or fiducial limits illustrated in the case of the
       binomial", Biometrika 26 (1934), 404-413.

    Examples
    --------
    >>> round(share_limit(0, 100, 0.05), 6)  # 1 - 0.05 ** (1 / 100)
    0.029513
    """
    from scipy.special import betainccinv

    if count >= draws:
        return 1.0
    return float(betainccinv(count + 1.0, draws - count, error))


def spread_limit(noncentrality: float, weight: float, draws: float) -> float:
    """Return the most total variation per draw over the cells: sqrt(noncentrality x weight) / (2 n).

    By Cauchy-Schwarz, sum_s N_s TV_s <= 1/2 sum_s N_s w_s <= 1/2 sqrt(sum_s N_s^2/M_s) sqrt(sum_s M_s w_s^2)
    with w_s^2 = sum_c (q_c - p_c)^2 / p_c over the state's cells, N_s its draws and M_s those in its cells.

    Parameters
    ----------
    noncentrality
        sum_s M_s w_s^2, or a bound on it.
    weight
        sum_s N_s^2 / M_s over the states with two cells or more; n where no token is left out.
    draws
        All draws n.

    Examples
    --------
    >>> spread_limit(4.0, 10_000, 10_000)
    0.01
    """
    return float(0.5 * np.sqrt(noncentrality * weight) / draws)


def planned_bound(
    layout: Layout, planned: Floats, error: float, statistic: float, left_out_count: float
) -> float:
    """Return the bound that a certificate would give if states were visited as planned.

    Parameters
    ----------
    layout
        The cells.
    planned
        Draws of each state, float64 (S,).
    error
        One less the confidence.
    statistic
        Chi-square of the counts in the cells.
    left_out_count
        Draws of left-out tokens.

    Examples
    --------
    >>> planned = np.array([40_000.0])
    >>> round(planned_bound(lay_out(np.array([[0.5, 0.5]]), planned), planned, 0.001, 1.0, 0.0), 4)
    0.0102
    """
    draws = float(planned.sum())
    if draws == 0.0:
        return 1.0
    for_cells, for_count = split(error, layout)
    tested = layout.cells > 1
    weight = float((planned / (1.0 - layout.outside))[tested].sum())
    noncentrality = noncentrality_limit(statistic, layout.degrees_of_freedom, for_cells)
    bound = float(planned @ layout.rest) / draws + spread_limit(noncentrality, weight, draws)
    if layout.left_out.any():
        bound += share_limit(left_out_count, draws, for_count)
    return min(1.0, bound)


def detectable_tv(
    row: Law,
    n: float,
    false_alarm: float = FALSE_ALARM,
    miss: float = MISS,
    components: int | None = None,
    visits: ArrayLike | None = None,
) -> float:
    """Return the total variation from which on every law is rejected after n draws, but for rate `miss`.

    Two terms: the probability of the tokens without a cell of their own, among which anything may happen
    unseen, and sqrt(lambda/n)/2, where noncentrality lambda takes the chi-square of the cells past its
    threshold with probability 1 - miss; a law at total variation tv over the cells has n w^2 >= n (2 tv)^2.
    Tokens that are in no cell show by their number instead: they add the largest share that would not exceed
    the number a right sampler stays below, and then a tenth of each rate is theirs.

    The certificate turns the same sentence around: with ``components=None`` a right sampler's certificate at
    confidence 1 - miss is at most this number with probability 1 - false_alarm (chi-square route, visits as
    planned), since its chi-square stays below the threshold used here with just that probability.

    Parameters
    ----------
    row
        Target law, shape (V,) or (S, V), or anything with `probabilities` of such a shape.
    n
        Planned number of draws, >= 0; over all states.
    false_alarm
        Rate of rejecting a right sampler.
    miss
        Rate of not rejecting a law at this distance.
    components
        None for the chi-square test of n draws, fixed beforehand; m for the e-value of the counts in the same
        cells, one of m with equal weights.
    visits
        Expected visits of each state, shape (S,), at any scale: the n draws are shared in proportion.

    Returns
    -------
    float, 0 to 1; over several states, of sum_s (n_s/n) TV_s.

    Raises
    ------
    InputError
        If an argument is out of range, a row does not sum to 1, or visits are missing for (S, V).

    Examples
    --------
    >>> round(detectable_tv([0.1] * 10, 215_170), 6)
    0.01
    >>> round(detectable_tv([0.1] * 10, 215_170, components=1), 4)
    0.0108
    """
    rows, shares = _plan(row, visits)
    return _detectable(rows, shares * as_at_least("n", n, 0.0), *_rates(false_alarm, miss, components))


def samples_needed(
    row: Law,
    tv: float,
    false_alarm: float = FALSE_ALARM,
    miss: float = MISS,
    components: int | None = None,
    visits: ArrayLike | None = None,
) -> int:
    """Return a number of draws at which `detectable_tv` is at most `tv`, and at one less is not.

    It is the least such number but for the few draws around each one at which a token gets its own cell,
    where `detectable_tv` may rise a little.

    Parameters
    ----------
    row, false_alarm, miss, components, visits
        As in `detectable_tv`.
    tv
        Total variation to be seen, between 0 and 1.

    Raises
    ------
    InputError
        As in `detectable_tv`, or where more than 4.6e18 draws would be needed.

    Examples
    --------
    >>> samples_needed([0.1] * 10, 0.01)
    215170
    >>> samples_needed([0.0, 1.0], 0.01)  # nothing is random: ln(miss) / ln(1 - tv)
    688
    """
    rows, shares = _plan(row, visits)
    rates = _rates(false_alarm, miss, components)
    limit = as_rate("tv", tv, such_as="0.01")
    enough = 1
    while _detectable(rows, shares * enough, *rates) > limit:
        enough *= 2
        if enough > _MOST_SAMPLES:
            raise InputError(f"tv={tv!r} cannot be seen in 2**62 draws; ask for a larger distance.")
    short = enough // 2
    while enough - short > 1:
        middle = (enough + short) // 2
        if _detectable(rows, shares * middle, *rates) > limit:
            short = middle
        else:
            enough = middle
    return enough


def _plan(row: Law, visits: ArrayLike | None) -> tuple[Floats, Floats]:
    """Return rows (S, V) and the share of the draws that each state gets (S,)."""
    rows = as_probabilities(row)
    if visits is None:
        if rows.ndim == 2 and len(rows) > 1:
            raise InputError(f"visits=None for {len(rows)} states; give the expected visits of each state.")
        return np.atleast_2d(rows), np.ones(1)
    planned = as_visits(visits, rows)
    if not planned.any():
        raise InputError("visits are all 0; give the expected visits of each state, at any scale.")
    return np.atleast_2d(rows), planned / planned.sum()


def _rates(false_alarm: float, miss: float, components: int | None) -> tuple[float, float, int | None]:
    """Return the checked rates and number of components."""
    number = None if components is None else as_whole("components", components, 1)
    return as_rate("false_alarm", false_alarm), as_rate("miss", miss), number


def _detectable(
    rows: Floats, planned: Floats, false_alarm: float, miss: float, components: int | None
) -> float:
    """Return `detectable_tv` of checked arguments."""
    from scipy.special import chdtri
    from scipy.stats import poisson

    layout = lay_out(rows, planned)
    df = layout.degrees_of_freedom
    for_cells, for_count = split(false_alarm, layout)
    level = 0.0
    if df > 0:
        level = chdtri(df, for_cells) if components is None else _boundary(df, false_alarm, components)
    # The number of left-out tokens has unequal probabilities; its upper tail lies below Poisson's.
    count = float(poisson.isf(for_count, planned @ layout.outside))
    return planned_bound(layout, planned, miss, float(level), count)


def draws_for_relative_error(
    probability: float, relative_error: float, false_alarm: float = FALSE_ALARM, miss: float = MISS
) -> int:
    """Return the draws after which a relative error of one token's probability shows.

    n = (z_a + z_b)^2 (1 - p) / (p r^2), by the normal law, with z_a two-sided at `false_alarm` and z_b
    one-sided at `miss`. It tells which dtype must define the target: rounding to bfloat16 (r = 2^-9) shows
    after 3.2e7 draws at p = 0.3, rounding to float32 never.

    Parameters
    ----------
    probability
        Target probability p of the token, between 0 and 1.
    relative_error
        r = |q - p| / p, between 0 and 1.
    false_alarm
        Rate of rejecting a right sampler.
    miss
        Rate of not seeing the error.

    Raises
    ------
    InputError
        If an argument is out of range.

    Examples
    --------
    >>> draws_for_relative_error(0.3, 2**-9, miss=0.01)
    31867561
    """
    from scipy.special import ndtri

    p = as_rate("probability", probability, such_as="0.3")
    r = as_rate("relative_error", relative_error, such_as="0.01")
    z = ndtri(as_rate("false_alarm", false_alarm) / 2.0) + ndtri(as_rate("miss", miss))
    return int(np.ceil(z * z * (1.0 - p) / (p * r * r)))


def detection_power(
    total_variation: float,
    samples: int,
    cells: int,
    false_alarm: float,
    components: int = COMPONENTS,
) -> float:
    """Return the probability that the mixed e-value reaches 1/false_alarm after n draws from a wrong law.

    The law is off by the same share at every token, |q - p| = 2 TV p: of all laws at this total variation
    distance it has the least chi-square divergence w^2 = (2 TV)^2, so it is the hardest to see. Then ln E_k ~
    [n/(n+k) X2 - (K-1) ln(1 + n/k)]/2 with X2 noncentral chi-square, and the average of m e-values is at
    least the one at k* divided by m: the power is a lower bound in that respect. Good to a few hundredths
    where the smallest cell expects 50 draws or more.

    Parameters
    ----------
    total_variation
        Total variation distance of the wrong law from the target, 0 to 1/2.
    samples
        Number of draws n >= 1; also the number for which k* is planned.
    cells
        Tokens of positive probability K >= 2.
    false_alarm
        Rate of rejecting a right sampler.
    components
        Number m of e-values in the average.

    Raises
    ------
    InputError
        If an argument is out of range.

    References
    ----------
    .. [1] The approximation is Laplace's for the Dirichlet integral; the test compares it with simulation.

    Examples
    --------
    >>> round(detection_power(0.01, 150_000, 10, 1e-6), 2)
    0.75
    """
    noncentrality = as_whole("samples", samples, 1) * _effect(total_variation) ** 2
    df = as_whole("cells", cells, 2) - 1
    level = _boundary(df, false_alarm, components)
    return _noncentral_tail(level, df, noncentrality)


def _effect(total_variation: float) -> float:
    """Return w = 2 TV, Cohen's effect size of the proportional alternative."""
    if not 0.0 <= total_variation <= 0.5:
        raise InputError(
            f"total_variation={total_variation!r}; needed: 0 to 0.5 (|q - p| = 2 TV p must not pass p)."
        )
    return 2.0 * total_variation


def _boundary(df: int, false_alarm: float, components: int) -> float:
    """Return the chi-square statistic at which the e-value at k* reaches components/false_alarm."""
    log_alarm = -np.log(as_rate("false_alarm", false_alarm))
    log_bound = log_alarm + np.log(as_whole("components", components, 1))
    # n/k* does not depend on n.
    ratio = 2.0 * np.sqrt(log_alarm / df)
    return float((1.0 + 1.0 / ratio) * (df * np.log1p(ratio) + 2.0 * log_bound))


def _noncentral_tail(level: float, df: int, noncentrality: float) -> float:
    """Return P(noncentral chi-square >= level)."""
    from scipy.stats import chi2, ncx2

    if noncentrality == 0:
        return float(chi2.sf(level, df))
    return float(ncx2.sf(level, df, noncentrality))


def chi_square_power(total_variation: float, samples: float, cells: int, false_alarm: float) -> float:
    """Return the power of the fixed-n chi-square test against the same law, from statsmodels.

    Parameters
    ----------
    total_variation
        Total variation distance of the wrong law from the target, 0 to 1/2.
    samples
        Number of draws n >= 1.
    cells
        Number of cells K >= 2.
    false_alarm
        Level of the test.

    Raises
    ------
    InputError
        If an argument is out of range.

    References
    ----------
    .. [1] J. Cohen, Statistical Power Analysis for the Behavioral Sciences (1988), chapter 7.

    Examples
    --------
    >>> round(chi_square_power(0.05, 1000, 5, 0.05), 9)
    0.71598635
    """
    from statsmodels.stats.gof import chisquare_power

    return float(
        chisquare_power(
            _effect(total_variation),
            as_at_least("samples", samples, 1.0),
            as_whole("cells", cells, 2),
            as_rate("false_alarm", false_alarm),
        )
    )
