"""Numbers as a reader wants them, the same text on every machine."""

from __future__ import annotations

import math

from simkit.errors import InputError

_THIN = "\u202f"
_MINUS = "\u2212"
_SUPERSCRIPT = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def number(x: int | float, *, digits: int = 6) -> str:
    """Write a number for a table: whole if whole, else with at most ``digits`` significant digits.

    Thousands are set apart by a narrow no-break space (U+202F), the minus is a minus (U+2212), and what
    would be ``1.2e-07`` becomes a power of ten.

    Parameters
    ----------
    x
        An int is written in full; a float is rounded.
    digits
        Most significant digits of a float, 1 to 15.

    Raises
    ------
    InputError
        If ``digits`` is out of range.

    Examples
    --------
    >>> [number(x) for x in (0.3, 0.1 + 0.2, 2.0, 1 / 3, 3.2e-9, float("nan"))]
    ['0.3', '0.3', '2', '0.333333', '3.2 × 10⁻⁹', 'NaN']
    >>> number(1_000_000).split(_THIN)
    ['1', '000', '000']
    """
    if not 1 <= digits <= 15:
        raise InputError(f"digits={digits!r}: need 1 to 15")
    if isinstance(x, int):
        return _signed(f"{x:,}")
    if math.isnan(x):
        return "NaN"
    if math.isinf(x):
        return _signed("∞" if x > 0 else "-∞")
    mantissa, _, exponent = f"{x + 0.0:.{digits}g}".partition("e")
    if exponent:
        return f"{_signed(mantissa)} × 10{str(int(exponent)).translate(_SUPERSCRIPT)}"
    whole, point, fraction = mantissa.partition(".")
    sign, whole = ("-", whole[1:]) if whole.startswith("-") else ("", whole)
    return _signed(f"{sign}{int(whole):,}{point}{fraction}")


def _signed(text: str) -> str:
    return text.replace(",", _THIN).replace("-", _MINUS)
