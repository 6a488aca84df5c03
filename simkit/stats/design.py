"""How many draws a run needs: power of the e-value gate, and of the chi-square test beside it."""

from __future__ import annotations

import numpy as np

from simkit.errors import InputError
from simkit.stats._input import as_at_least, as_rate, as_whole

# The e-value of a run averages three concentrations.
COMPONENTS = 3
_MOST_SAMPLES = 1 << 62


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


def samples_needed(
    total_variation: float,
    cells: int,
    false_alarm: float,
    miss: float,
    components: int = COMPONENTS,
) -> int:
    """Return the least number of draws with `detection_power` of at least 1 - miss.

    Parameters
    ----------
    total_variation
        Total variation distance to be seen, above 0 and up to 1/2.
    cells
        Tokens of positive probability K >= 2.
    false_alarm
        Rate of rejecting a right sampler.
    miss
        Rate of not rejecting a sampler that is this far off.
    components
        Number of e-values in the average.

    Raises
    ------
    InputError
        If an argument is out of range, or more than 4.6e18 draws would be needed.

    Examples
    --------
    >>> samples_needed(0.01, 10, 1e-6, 1e-3)
    261472
    """
    as_rate("miss", miss)
    # Power rises with n, because only the noncentrality depends on it.
    enough = 1
    while detection_power(total_variation, enough, cells, false_alarm, components) < 1.0 - miss:
        enough *= 2
        if enough > _MOST_SAMPLES:
            raise InputError(
                f"total_variation={total_variation!r} cannot be seen; ask for a larger distance."
            )
    short = enough // 2
    while enough - short > 1:
        middle = (enough + short) // 2
        if detection_power(total_variation, middle, cells, false_alarm, components) < 1.0 - miss:
            short = middle
        else:
            enough = middle
    return enough


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
