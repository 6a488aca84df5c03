"""The verdict that most sweeps end with, on whether all measurements lie on their theory."""

from __future__ import annotations

from collections.abc import Sequence

from simkit.figures.points import farthest, widest
from simkit.report.document import Badge
from simkit.sweeps.task import Result


def on_theory(rows: Sequence[Result], names: Sequence[str] = ("acceptance", "tokens_per_call")) -> Badge:
    """Return a badge that passes when every measurement is within the distance chance allows.

    The distance is Bonferroni's: a right simulator exceeds it with probability 1e-6 over all measurements.

    Parameters
    ----------
    rows : sequence of mapping
        Result rows.
    names : sequence of str
        The fields compared with their theory.

    Examples
    --------
    >>> row = {"acceptance": 0.72, "acceptance_error": 0.01, "acceptance_theory": 0.7}
    >>> on_theory([row], ["acceptance"]).status
    'pass'
    """
    points, distance = len(names) * len(rows), farthest(rows, names)
    return Badge(
        "pass" if distance <= widest(points) else "fail",
        f"{points} measurements: farthest from theory {distance:.1f} standard errors, "
        f"{widest(points):.1f} allowed (false alarm 10⁻⁶ in all)",
    )
