"""Checks of single arguments that several makers share."""

from __future__ import annotations

import numpy as np

from simkit.errors import InputError


def whole_number(value: object, name: str, least: int, most: int | None = None) -> int:
    """Return value as an int when it is an integer from `least` to `most`.

    Parameters
    ----------
    value : object
        What the caller passed.
    name : str
        The argument's name, for the error.
    least : int
        The smallest number allowed.
    most : int or None
        The largest number allowed; None for no limit.

    Raises
    ------
    InputError
        For anything that is not an integer in the range.

    Examples
    --------
    >>> whole_number(3, "top_k", 1)
    3
    """
    limits = f"an integer of at least {least}" if most is None else f"an integer from {least} to {most}"
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InputError(f"{name}={value!r}; it needs {limits}")
    if value < least or (most is not None and value > most):
        raise InputError(f"{name}={value}; it needs {limits}")
    return int(value)
