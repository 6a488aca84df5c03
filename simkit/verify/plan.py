"""Plan: what a verdict promises, fixed before the counts are seen."""

from __future__ import annotations

from dataclasses import dataclass

from simkit.errors import InputError
from simkit.laws.checks import whole_number

MOST_LOOKS = 64
_LEAST_ERROR = 1e-14


@dataclass(frozen=True)
class Plan:
    """Error rates of a whole run and the distance that it tolerates.

    Parameters
    ----------
    false_alarm : float
        Largest probability that a right sampler is rejected, over all looks of the run.
    miss : float
        Largest probability that a law further off than the tolerance is certified, over all looks.
    tolerance : float
        Total variation per token, above 0 and below 1, that a PASS certifies at most; over many states,
        weighted by visits.
    tolerance_per_sequence : float or None
        Total variation of whole sequences of `length` tokens, instead: a law whose tokens are each off by tv
        is off by at most min(1, length tv), so that the tolerance per token is this over `length`.
    length : int or None
        Tokens L of a sequence; for a tally, that of its decodes.
    ks_states : int
        How many of the most visited states get Kolmogorov-Smirnov tests.
    looks : int
        How often the run is judged, at sizes that double and are fixed beforehand. Each certificate has
        confidence 1 - miss / looks; the e-value needs no correction.

    Raises
    ------
    InputError
        For rates or tolerances outside (0, 1), a tolerance per sequence without a length, or numbers below 0.

    Examples
    --------
    >>> Plan(tolerance=0.02).false_alarm
    1e-06
    >>> Plan(tolerance_per_sequence=0.1, length=16).limit
    0.00625
    """

    false_alarm: float = 1e-6
    miss: float = 1e-3
    tolerance: float = 0.01
    tolerance_per_sequence: float | None = None
    length: int | None = None
    ks_states: int = 2
    looks: int = 1

    def __post_init__(self) -> None:
        for name in ("false_alarm", "miss", "tolerance"):
            self._set(name, _share(name, getattr(self, name)))
        if self.length is not None:
            self._set("length", whole_number(self.length, "length", 1))
        if self.tolerance_per_sequence is not None:
            self._set("tolerance_per_sequence", _share("tolerance_per_sequence", self.tolerance_per_sequence))
            if self.length is None:
                raise InputError(
                    f"tolerance_per_sequence={self.tolerance_per_sequence!r} without length; give the tokens "
                    "of a sequence"
                )
        self._set("ks_states", whole_number(self.ks_states, "ks_states", 0))
        self._set("looks", whole_number(self.looks, "looks", 1, MOST_LOOKS))
        if not self.confidence < 1.0 - _LEAST_ERROR:
            raise InputError(
                f"miss={self.miss!r} for {self.looks} looks; needed: at least {_LEAST_ERROR:g} a look, where "
                "the confidence still differs from 1"
            )

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    @property
    def limit(self) -> float:
        """The total variation per token that a PASS certifies at most."""
        if self.tolerance_per_sequence is None:
            return self.tolerance
        return self.tolerance_per_sequence / (self.length or 1)

    @property
    def confidence(self) -> float:
        """The confidence of each look's certificate."""
        return 1.0 - self.miss / self.looks


def as_plan(plan: object) -> Plan:
    """Return the plan given, or the default for None.

    Parameters
    ----------
    plan : object
        What the caller passed.

    Raises
    ------
    InputError
        For anything else.

    Examples
    --------
    >>> as_plan(None) == Plan()
    True
    """
    if plan is None:
        return Plan()
    if not isinstance(plan, Plan):
        raise InputError(f"plan is {plan!r}; needed: a simkit.Plan, such as Plan(tolerance=0.01)")
    return plan


def _share(name: str, value: object) -> float:
    """Return a number strictly between 0 and 1 as float; NumPy's numbers, too, so that records are JSON."""
    if isinstance(value, bool | str | bytes):
        raise InputError(f"{name}={value!r}; it must lie strictly between 0 and 1")
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name}={value!r}; it must lie strictly between 0 and 1") from None
    if not 0.0 < number < 1.0:
        raise InputError(f"{name}={value!r}; it must lie strictly between 0 and 1")
    return number
