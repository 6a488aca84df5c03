"""Measurement: a row that depends on the work alone, not on what else is done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from simkit.sweeps.measurement import Measurement
from simkit.sweeps.run import run_tasks
from simkit.sweeps.task import Work


@dataclass(frozen=True)
class Uniforms(Measurement):
    count: int = 5
    seed: int = 1

    def measure(self, rng: np.random.Generator) -> Mapping[str, Any]:
        return {"tokens": self.count, "drawn": rng.integers(2**40, size=self.count).tolist()}


@dataclass(frozen=True)
class OtherUniforms(Uniforms):
    """The same fields under another name."""


@dataclass(frozen=True)
class NewUniforms(Uniforms):
    FORMAT: ClassVar[int] = 2


def test_row_has_identity_kind_fields_and_what_was_measured() -> None:
    work = Uniforms(3, seed=4)
    assert isinstance(work, Work)
    row = work.perform()
    assert row | {"drawn": None} == {
        "identity": work.identity,
        "kind": "Uniforms",
        "count": 3,
        "seed": 4,
        "tokens": 3,
        "drawn": None,
    }


def test_stream_is_the_same_in_every_version() -> None:
    # PCG64 seeded by the identity: if this changes, every stored measurement has to be drawn anew.
    assert Uniforms().identity == "f9799834062496b7b9c01540f47f6f20cd7df243ce1ee7c31d8b40f19471b89a"
    assert Uniforms().perform()["drawn"] == [
        1017892969008,
        17909387627,
        988456022083,
        145898509319,
        1095108094122,
    ]


@pytest.mark.parametrize("other", [Uniforms(6), Uniforms(seed=2), OtherUniforms(), NewUniforms()])
def test_identity_and_stream_change_with_fields_name_and_format(other: Uniforms) -> None:
    own = replace(other, count=5).perform() if other.count != 5 else other.perform()
    assert other.identity != Uniforms().identity
    if other.count == 5:
        assert own["drawn"] != Uniforms().perform()["drawn"]


def test_a_row_does_not_depend_on_the_rows_before_it(tmp_path: Path) -> None:
    work = [Uniforms(seed=seed) for seed in range(4)]
    forwards, backwards = (
        {row["seed"]: row for row in run_tasks(order, tmp_path / "x.jsonl")} for order in (work, work[::-1])
    )
    assert forwards == backwards


def test_a_measurement_must_say_what_it_measures() -> None:
    @dataclass(frozen=True)
    class Nothing(Measurement):
        seed: int = 1

    with pytest.raises(NotImplementedError):
        Nothing().perform()
