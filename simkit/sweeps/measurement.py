"""Measurement: work of an experiment's own, with random numbers of its own and a row of what it counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from simkit.sampling.simulate import Progress
from simkit.sweeps.task import Result, identify


@dataclass(frozen=True)
class Measurement:
    """The base of work that is not one run of the simulator; a subclass has fields, among them a seed.

    The identity comes from the name of the class, its format and its fields, and the random numbers from the
    identity: a row does not depend on which other work is done, in which order, or where. Raise ``FORMAT``
    with anything else that changes the row.

    Examples
    --------
    >>> @dataclass(frozen=True)
    ... class Heads(Measurement):
    ...     throws: int
    ...     seed: int = 1
    ...
    ...     def measure(self, rng):
    ...         return {"tokens": self.throws, "heads": int(rng.binomial(self.throws, 0.5))}
    >>> row = Heads(100).perform()
    >>> row["kind"], row["throws"], row == Heads(100).perform()
    ('Heads', 100, True)
    """

    FORMAT: ClassVar[int] = 1

    @property
    def identity(self) -> str:
        """What changes with everything that changes the row."""
        return identify({"format": self.FORMAT, "kind": type(self).__name__, **asdict(self)})

    def perform(self, progress: Progress | None = None) -> Result:
        """Return the row: identity, kind, fields, and what was measured."""
        rng = np.random.Generator(np.random.PCG64(int(self.identity, 16)))
        stated = {"identity": self.identity, "kind": type(self).__name__, **asdict(self)}
        return {**stated, **self.measure(rng)}

    def measure(self, rng: np.random.Generator) -> Mapping[str, Any]:
        """Return what was measured, with the samples drawn as "tokens": counts rather than floats.

        Parameters
        ----------
        rng : numpy Generator
            The measurement's own stream.
        """
        raise NotImplementedError
