"""simkit combine: the verdicts of independent runs as one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from simkit.cli.output import EXIT, JSON, print_json, print_pairs


def combine(
    verdicts: Annotated[
        list[Path], typer.Argument(metavar="VERDICT...", help="Files that simkit judge --out wrote.")
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the combined verdict there.")
    ] = None,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Combine verdicts of independent runs of one sampler, target and plan: their e-values multiply.

    FAIL when the product rejects at the plan's false-alarm rate, PASS when each run passed alone and the
    product does not reject. Give all the runs, not a choice of them. The result can be combined again.

    Example: simkit combine total.json tonight.json --out total.json
    """
    from simkit.files import atomic_write
    from simkit.verify.combine import combine as multiply
    from simkit.verify.combine import read_verdict

    together = multiply([read_verdict(path) for path in verdicts], [str(path) for path in verdicts])
    if out is not None:
        atomic_write(out, json.dumps(together.record(), indent=2, allow_nan=False) + "\n")
    if as_json:
        print_json(together.record())
    else:
        print_pairs(together.rows())
    raise typer.Exit(EXIT[together.outcome])
