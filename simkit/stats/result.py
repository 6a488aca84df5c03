"""What a goodness-of-fit test returns."""

from __future__ import annotations

from dataclasses import dataclass

CHI_SQUARE = "chi-square"
LARGEST_Z = "largest z-score"
_CHI_SQUARE_FLOOR = 1e-4


@dataclass(frozen=True)
class GoodnessOfFit:
    """Hold one test's statistic and p-value, with the sizes needed to read them.

    Parameters
    ----------
    name
        The test, such as "chi-square" or "kolmogorov-smirnov (rank order)".
    statistic
        The test statistic, in its own unit.
    p_value
        The p-value itself, never rounded or floored; only the printed form is cautious.
    degrees_of_freedom
        Degrees of freedom of the reference law, where it has them.
    cells
        Number of cells (atoms) compared.
    samples
        Number of draws.
    method
        How the p-value was computed, where there is more than one way.

    Examples
    --------
    >>> print(GoodnessOfFit("chi-square", 6.3, 0.04285212687, degrees_of_freedom=2, cells=3, samples=10))
    chi-square: statistic 6.3, p 0.04285 (2 degrees of freedom, 3 cells, 10 samples)
    """

    name: str
    statistic: float
    p_value: float
    degrees_of_freedom: int | None = None
    cells: int | None = None
    samples: int | None = None
    method: str | None = None

    def __str__(self) -> str:
        """Return one line: name, statistic, p-value with four digits, sizes."""
        sizes = [
            f"{value} {unit}"
            for value, unit in (
                (self.degrees_of_freedom, "degrees of freedom"),
                (self.cells, "cells"),
                (self.samples, "samples"),
            )
            if value is not None
        ]
        if self.method is not None:
            sizes.append(f"{self.method} method")
        tail = f" ({', '.join(sizes)})" if sizes else ""
        return f"{self.name}: statistic {self.statistic:.6g}, p {self._printed_p()}{tail}"

    def _printed_p(self) -> str:
        """Return the p-value as printed: below 1e-4 the chi-square law is off by factors, so no digits."""
        if self.name == CHI_SQUARE and self.p_value < _CHI_SQUARE_FLOOR:
            return "< 1e-4"
        return f"{self.p_value:.4g}" if self.p_value > 0.0 else "< 1e-300"
