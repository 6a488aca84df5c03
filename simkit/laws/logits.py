"""From logits to rows: temperature, top-k, top-p, min-p, then renormalise, in this order.

Each step is a pure function from logits to logits in which a removed token is ``-inf``; `rows_from_logits`
chains them in the order that transformers uses by default. Other engines differ: vLLM applies min-p before
top-k and top-p, llama.cpp applies the temperature last. Every later step sees the law that the earlier ones
left, renormalised: top-p counts mass among the tokens that top-k kept.

Two comparisons decide what is kept, the mass of a set against ``p`` and a probability against ``min_p``. Both
sides are rounded to whole units of 2**-40 first, the grid of float rows. Hence a sum that is ``p`` on paper
counts as reaching ``p``, whatever the last bits of floating point say.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simkit.errors import InputError
from simkit.laws.checks import whole_number
from simkit.laws.pair import Pair
from simkit.laws.portable import exp, log
from simkit.laws.rows import TOTAL, IntRows, probabilities, rows_from_floats

Logits = NDArray[np.float64]

_LOWEST = -float(np.finfo(np.float64).max)  # stands for "hardly ever": -inf would mean "removed"
_TINY = float(np.finfo(np.float64).tiny)


def rows_from_logits(
    logits: ArrayLike,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
) -> IntRows:
    """Return int64 rows with total 2**40 for logits after temperature, top-k, top-p and min-p, in this order.

    The support is exactly the tokens that are neither masked nor filtered, however small their probability.

    Parameters
    ----------
    logits : array_like of float, shape (..., V)
        Unnormalised log-probabilities; ``-inf`` masks a token.
    temperature : float
        Divides the logits; 0 is the greedy limit (all mass on the likeliest token, lowest id on ties).
    top_k : int or None
        Keep the k likeliest tokens; None, or k of V and above, keeps all.
    top_p : float or None
        Keep the smallest set of likeliest tokens with mass of at least this, in (0, 1].
    min_p : float or None
        Keep the tokens at least this fraction, in [0, 1], as likely as the likeliest.

    Raises
    ------
    InputError
        For NaN or +inf, a row in which every token is masked, or a parameter outside its range.

    Examples
    --------
    >>> rows_from_logits([0.0, 0.0, -np.inf]) / TOTAL
    array([0.5, 0.5, 0. ])
    >>> rows_from_logits([1.0, 2.0, 2.0], temperature=0) / TOTAL
    array([0., 1., 0.])
    """
    left = apply_temperature(logits, temperature)
    if top_k is not None:
        left = keep_top_k(left, top_k)
    if top_p is not None:
        left = keep_top_p(left, top_p)
    if min_p is not None:
        left = keep_min_p(left, min_p)
    return rows_from_floats(softmax(left), "the law of the logits")


def check_logits(logits: ArrayLike) -> Logits:
    """Return logits as float64 when every row can be turned into a law.

    Parameters
    ----------
    logits : array_like of float, shape (..., V)
        Unnormalised log-probabilities; ``-inf`` masks a token.

    Raises
    ------
    InputError
        For an empty row, NaN, +inf, or a row in which every token is masked.

    Examples
    --------
    >>> check_logits([0, -np.inf])
    array([  0., -inf])
    """
    given = np.asarray(logits)
    if given.dtype.kind not in "fiub":
        raise InputError(f"logits must hold numbers; they have dtype {given.dtype}")
    if given.ndim == 0 or given.size == 0:
        raise InputError(f"logits have shape {given.shape}; a row needs at least one token")
    for what, bad in (("NaN", np.isnan(given)), ("+inf", np.isposinf(given))):
        if bad.any():
            where = [int(i) for i in np.argwhere(bad)[0]]
            raise InputError(
                f"logits have {int(bad.sum())} {what} entries, the first at {where}; to mask a token use -inf"
            )
    values = given.astype(np.float64)
    masked = np.isneginf(values).all(axis=-1)
    if masked.any():
        where = [int(i) for i in np.argwhere(masked)[0]]
        raise InputError(f"logits mask every token of row {where}; at least one must be above -inf")
    return values


def apply_temperature(logits: ArrayLike, temperature: float) -> Logits:
    """Return logits divided by the temperature and shifted to a maximum of 0.

    The shift comes first and is rounded to float64: logits that differ by less than that become ties.

    Parameters
    ----------
    logits : array_like of float, shape (..., V)
        Unnormalised log-probabilities; ``-inf`` masks a token.
    temperature : float
        Finite and >= 0; at 0 only the largest logit stays, the lowest id on ties.

    Raises
    ------
    InputError
        For logits that `check_logits` refuses, or a temperature that is negative or not finite.

    Examples
    --------
    >>> apply_temperature([1.0, 3.0], 2.0)
    array([-1.,  0.])
    >>> apply_temperature([3.0, 3.0], 0.0)
    array([  0., -inf])
    """
    values = check_logits(logits)
    check_temperature(temperature)
    if temperature == 0:
        chosen = np.arange(values.shape[-1]) == values.argmax(axis=-1)[..., None]
        return np.where(chosen, 0.0, -np.inf)
    with np.errstate(over="ignore"):
        scaled = (values - values.max(axis=-1, keepdims=True)) / temperature
    return np.where(np.isneginf(values), -np.inf, np.maximum(scaled, _LOWEST))


def check_temperature(temperature: float) -> None:
    """Raise `InputError` unless a temperature is finite and >= 0.

    Parameters
    ----------
    temperature : float
        The temperature.

    Examples
    --------
    >>> check_temperature(0.7)
    """
    if not (math.isfinite(temperature) and temperature >= 0):
        raise InputError(f"temperature={temperature!r}; it needs a finite number >= 0 (0 is greedy)")


def keep_top_k(logits: ArrayLike, k: int) -> Logits:
    """Return logits with all but the k largest of each row masked.

    Exactly k tokens stay: of those that tie at the k-th place, the lowest ids. (Engines that compare with
    the k-th value keep every token that ties.)

    Parameters
    ----------
    logits : array_like of float, shape (..., V)
        Unnormalised log-probabilities; ``-inf`` masks a token.
    k : int
        At least 1; V and above keep everything.

    Raises
    ------
    InputError
        For logits that `check_logits` refuses, or k below 1.

    Examples
    --------
    >>> keep_top_k([1.0, 2.0, 2.0, 0.0], 1)
    array([-inf,   2., -inf, -inf])
    """
    values = check_logits(logits)
    k, vocabulary = whole_number(k, "top_k", 1), values.shape[-1]
    if k >= vocabulary:
        return values
    threshold = np.partition(values, vocabulary - k, axis=-1)[..., vocabulary - k, None]
    above, tied = values > threshold, values == threshold
    places = k - above.sum(axis=-1, keepdims=True)
    return np.where(above | (tied & (tied.cumsum(axis=-1) <= places)), values, -np.inf)


def keep_top_p(logits: ArrayLike, p: float) -> Logits:
    """Return logits with all but the smallest set of likeliest tokens with mass of at least p masked.

    The token that crosses p is kept. When the mass equals p (in units of 2**-40) no further token is; among
    tokens that tie, the lowest ids come first.

    Parameters
    ----------
    logits : array_like of float, shape (..., V)
        Unnormalised log-probabilities; ``-inf`` masks a token.
    p : float
        In (0, 1]; 1 keeps everything.

    Raises
    ------
    InputError
        For logits that `check_logits` refuses, or p outside (0, 1].

    Examples
    --------
    >>> np.isfinite(keep_top_p(log([0.5, 0.3, 0.1, 0.1]), 0.8))
    array([ True,  True, False, False])
    """
    values = check_logits(logits)
    if not 0 < p <= 1:
        raise InputError(f"top_p={p!r}; it needs a number above 0 and at most 1 (1 or None for no filter)")
    if p == 1:
        return values
    order = np.argsort(-values, axis=-1, kind="stable")
    # cumsum adds one by one, in this order, so its bits are the same on every machine
    mass = np.cumsum(np.take_along_axis(softmax(values), order, axis=-1), axis=-1)
    short = _units(mass) < _units(p)
    kept_places = np.concatenate([np.ones_like(short[..., :1]), short[..., :-1]], axis=-1)
    kept = np.empty_like(kept_places)
    np.put_along_axis(kept, order, kept_places, axis=-1)
    return np.where(kept, values, -np.inf)


def keep_min_p(logits: ArrayLike, min_p: float) -> Logits:
    """Return logits with the tokens masked that are less than `min_p` times as likely as the likeliest.

    Parameters
    ----------
    logits : array_like of float, shape (..., V)
        Unnormalised log-probabilities; ``-inf`` masks a token.
    min_p : float
        In [0, 1]; 0 keeps everything, 1 keeps the tokens that tie for the maximum. A token at the bound
        itself (in units of 2**-40) is kept.

    Raises
    ------
    InputError
        For logits that `check_logits` refuses, or `min_p` outside [0, 1].

    Examples
    --------
    >>> np.isfinite(keep_min_p(log([0.6, 0.3, 0.1]), 0.5))
    array([ True,  True, False])
    """
    values = check_logits(logits)
    if not 0 <= min_p <= 1:
        raise InputError(f"min_p={min_p!r}; it needs a number from 0 to 1 (0 or None for no filter)")
    relative = exp(_shifted(values))
    return np.where(_units(relative) >= _units(min_p), values, -np.inf)


def softmax(logits: ArrayLike) -> NDArray[np.float64]:
    """Return the law of each row of logits as float64, the same bits on every machine.

    Parameters
    ----------
    logits : array_like of float, shape (..., V)
        Unnormalised log-probabilities; ``-inf`` masks a token. Every other token gets a positive probability,
        so underflow takes nothing from the support.

    Raises
    ------
    InputError
        For logits that `check_logits` refuses.

    Examples
    --------
    >>> softmax([0.0, 0.0, -np.inf, 0.0, 0.0])
    array([0.25, 0.25, 0.  , 0.25, 0.25])
    """
    values = check_logits(logits)
    mass = np.where(np.isneginf(values), 0.0, np.maximum(exp(_shifted(values)), _TINY))
    flat = mass.reshape(-1, mass.shape[-1])
    sums = np.array([math.fsum(row) for row in flat.tolist()])
    law: NDArray[np.float64] = (flat / sums[:, None]).reshape(mass.shape)
    return law


def _shifted(values: Logits) -> Logits:
    with np.errstate(over="ignore"):
        shifted: Logits = values - values.max(axis=-1, keepdims=True)
    return shifted


def _units(mass: ArrayLike) -> NDArray[np.float64]:
    units: NDArray[np.float64] = np.rint(np.asarray(mass, dtype=np.float64) * TOTAL)
    return units


def tempered_rows(rows: IntRows, temperature: float) -> IntRows:
    """Return rows proportional to ``weights ** (1 / temperature)``, each against the total 2**40.

    Parameters
    ----------
    rows : int64 array, shape (..., V)
        Weights.
    temperature : float
        Finite and >= 0. At 1 the rows come back as they are; at 0 all mass is on the largest weight (lowest
        id on ties); at any other temperature the support is kept.

    Raises
    ------
    InputError
        For a temperature that is negative or not finite.

    Examples
    --------
    >>> tempered_rows(np.array([1, 2, 1]), 0.5) / TOTAL
    array([0.16666667, 0.66666667, 0.16666667])
    """
    check_temperature(temperature)
    if temperature == 1:
        return rows
    if temperature == 0:  # on the integers: logarithms of large weights may tie
        likeliest = rows.argmax(axis=-1)[..., None]
        return np.where(np.arange(rows.shape[-1]) == likeliest, np.int64(TOTAL), np.int64(0))
    relative = rows / rows.max(axis=-1, keepdims=True)
    return rows_from_logits(log(relative), temperature=temperature)


def tempered_pair(pair: Pair, target_temperature: float, draft_temperature: float) -> Pair:
    """Return the pair with every target row and every draft row at a temperature of its own.

    Parameters
    ----------
    pair : Pair
        Any pair; a row that both models use gets two versions.
    target_temperature, draft_temperature : float
        Finite and >= 0, as in `tempered_rows`; a model at temperature 1 keeps its law, brought to the total
        2**40 like the other's where that one is tempered.

    Raises
    ------
    InputError
        For a temperature that is negative or not finite.

    Examples
    --------
    >>> pair = Pair.from_rows(target=[0.5, 0.3, 0.2], draft=[0.2, 0.3, 0.5])
    >>> tempered_pair(pair, 0.0, 1.0)
    Pair('rows at T=0, draft T=1', vocabulary 3, 1 state, 1 request)
      target: 1, 0, 0
      draft:  0.2, 0.3, 0.5
    """
    rows = pair.rows
    if (target_temperature == 1) != (draft_temperature == 1):
        # one total for both: that of counts and tempered rows together is too fine for integer tables
        rows = rows_from_floats(probabilities(rows))
    target_rows, target = np.unique(pair.target, return_inverse=True)
    draft_rows, draft = np.unique(pair.draft, return_inverse=True)
    return Pair(
        rows=np.concatenate(
            [
                tempered_rows(rows[target_rows], target_temperature),
                tempered_rows(rows[draft_rows], draft_temperature),
            ]
        ),
        target=target.astype(np.int32),
        draft=(draft.reshape(pair.draft.shape) + len(target_rows)).astype(np.int32),
        next_state=pair.next_state,
        initial=pair.initial,
        end=pair.end,
        name=f"{pair.name} at T={target_temperature:g}, draft T={draft_temperature:g}",
    )
