"""Plan: what a verdict promises, fixed before the counts are seen."""

from __future__ import annotations

from dataclasses import dataclass

from simkit.errors import InputError
from simkit.laws.checks import whole_number


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
            _check_share(name, getattr(self, name))
        if self.length is not None:
            whole_number(self.length, "length", 1)
        if self.tolerance_per_sequence is not None:
            _check_share("tolerance_per_sequence", self.tolerance_per_sequence)
            if self.length is None:
                raise InputError(
                    f"tolerance_per_sequence={self.tolerance_per_sequence!r} without length; give the tokens "
                    "of a sequence"
                )
        whole_number(self.ks_states, "ks_states", 0)
        whole_number(self.looks, "looks", 1)

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


def _check_share(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 < value < 1.0:
        raise InputError(f"{name}={value!r}; it must lie strictly between 0 and 1")
