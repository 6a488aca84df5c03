"""Sequential runs: draw, look, draw as much again, until the verdict stands or the budget is spent."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from simkit.errors import InputError
from simkit.laws.checks import whole_number
from simkit.sampling.simulate import Progress
from simkit.sampling.tally import Tally
from simkit.verify.judge import Plan, Verdict, judge
from simkit.verify.plan import as_plan

FIRST = 2**14
"""Tokens at the first look, about."""

LOOKS_BY_TIME = 24
"""Looks that a run with a budget of time has: up to 2**37 tokens."""

MOST_SAMPLES = 2**62

Draw = Callable[[int, int, Progress | None], Tally]


@dataclass(frozen=True)
class Budget:
    """How much a run may draw, in samples or in seconds; one of them.

    Parameters
    ----------
    samples : int or None
        Tokens.
    seconds : float or None
        Wall-clock time.

    Raises
    ------
    InputError
        For a number that is not positive, or none or two of them.

    Examples
    --------
    >>> Budget.parse("60s"), Budget.parse("1e8")
    (Budget(samples=None, seconds=60.0), Budget(samples=100000000, seconds=None))
    """

    samples: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        if self.samples is not None and self.seconds is None:
            whole_number(self.samples, "samples", 1, MOST_SAMPLES)
        elif self.samples is not None or not _is_positive(self.seconds):
            raise InputError(
                f"a budget of {self.samples!r} samples and {self.seconds!r} seconds; give one positive number"
            )

    @classmethod
    def parse(cls, text: str) -> Budget:
        """Return the budget in a text: samples ("1e8"), or seconds, minutes or hours ("60s", "2m", "1h").

        Parameters
        ----------
        text : str
            What the user wrote.

        Raises
        ------
        InputError
            For anything else.
        """
        try:
            unit = {"s": 1.0, "m": 60.0, "h": 3600.0}.get(text[-1:])
            number = float(text[:-1] if unit else text)
            return cls(seconds=number * unit) if unit else cls(samples=int(number))
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError(
                f"budget {text!r}; write samples, as in 1e8, or time, as in 60s, 5m or 1h, above 0"
            ) from error


def _is_positive(value: object) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and math.isfinite(value) and value > 0  # type: ignore[arg-type, operator]


def schedule(budget: Budget, length: int) -> list[int]:
    """Return the decodes at each look, fixed before anything is drawn: they double from look to look.

    Parameters
    ----------
    budget : Budget
        Samples, of which the last look takes at most so many; or time, for which there are 24 looks.
    length : int
        Tokens of a decode.

    Examples
    --------
    >>> schedule(Budget(samples=100_000), 16)
    [1562, 3124, 6248]
    """
    whole_number(length, "length", 1)
    if budget.samples is None:
        first = max(1, FIRST // length)
        return [first * 2**j for j in range(LOOKS_BY_TIME)]
    most = max(1, budget.samples // length)
    looks = 1 + max(0, int(math.log2(max(1.0, most * length / FIRST))))
    first = max(1, most // 2 ** (looks - 1))
    return [first * 2**j for j in range(looks)]


def judge_until(
    draw: Draw,
    length: int,
    budget: Budget,
    plan: Plan | None = None,
    progress: Callable[[str], Progress | None] = lambda text: None,
    sampler: str = "",
) -> Iterator[tuple[Tally, Verdict]]:
    """Yield the tally and verdict of each look, until one says FAIL or PASS or the budget is spent.

    Error rates are those of the plan for the whole run: the e-value has fixed concentrations and is valid
    however often it is looked at (Ville's inequality), and each of J certificates has confidence
    1 - miss / J. The looks are at sizes n0 * 2**j fixed beforehand. A budget of time ends the run before the
    first look that would, at the pace of the one before, end after it.

    Parameters
    ----------
    draw : callable (first trial, trials, progress) -> Tally
        Draws more decodes; tallies add.
    length : int
        Tokens of a decode.
    budget : Budget
        How much to draw at most.
    plan : Plan or None
        Error rates and tolerance; its looks are replaced by those of the budget.
    progress : callable (text) -> progress callback or None
        Asked before each look.
    sampler : str
        As for `judge`.

    Examples
    --------
    >>> from simkit.laws.pair import Pair
    >>> from simkit.sampling.simulate import simulate
    >>> pair = Pair.from_weights([1, 2], [2, 1])
    >>> def draw(first, trials, progress):
    ...     return simulate(pair, trials=trials, first_trial=first, seed=1, length=16)
    >>> *_, (tally, verdict) = judge_until(draw, 16, Budget(samples=10**6))
    >>> verdict.outcome, tally.tokens < 10**6
    ('PASS', True)
    """
    sizes = schedule(budget, length)
    plan = replace(as_plan(plan), looks=len(sizes))
    tally: Tally | None = None
    for look, done, size in paced(sizes, budget.seconds):
        more = draw(done, size - done, progress(f"look {look} of {len(sizes)}"))
        tally = more if tally is None else tally + more
        verdict = judge(tally, plan=plan, look=look, sampler=sampler)
        yield tally, verdict
        if verdict.outcome != "INCONCLUSIVE":
            return


def paced(sizes: Sequence[int], seconds: float | None) -> Iterator[tuple[int, int, int]]:
    """Yield each look with the size before and its own, as long as, at the last pace, it ends in time.

    Parameters
    ----------
    sizes : sequence of int
        Sizes of the looks.
    seconds : float or None
        Time that all looks together may take; the first is always given. None for no limit.

    Examples
    --------
    >>> list(paced([10, 20, 40], None))
    [(1, 0, 10), (2, 10, 20), (3, 20, 40)]
    """
    begun = now = time.monotonic()
    done, pace = 0, 0.0
    for look, size in enumerate(sizes, 1):
        # The pace is the last look's: the first one compiles, too.
        if seconds is not None and done and now - begun + pace * (size - done) > seconds:
            return
        yield look, done, size
        last, now = now, time.monotonic()
        done, pace = size, (now - last) / (size - done)
