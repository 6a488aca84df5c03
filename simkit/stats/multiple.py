"""Several tests of one run."""

from __future__ import annotations

from collections.abc import Sequence

from simkit.errors import InputError


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the p-values adjusted by Holm's method: rejecting those below a keeps the family's rate at a.

    Valid however the tests depend on each other.

    Parameters
    ----------
    p_values
        One p-value a test, each in [0, 1].

    Raises
    ------
    InputError
        If one is not a probability.

    References
    ----------
    .. [1] S. Holm, "A simple sequentially rejective multiple test procedure", Scand. J. Statist. 6 (1979).

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    if any(not 0.0 <= p <= 1.0 for p in p_values):
        raise InputError(f"p_values={list(p_values)!r}; needed: numbers from 0 to 1.")
    if not p_values:
        return []
    from statsmodels.stats.multitest import multipletests

    return [float(p) for p in multipletests(list(p_values), method="holm")[1]]
