"""What commands print: JSON for machines, plain tables for people, and exit codes."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

import typer

from simkit.verify.judge import Status, Verdict

EXIT = {Status.PASS: 0, Status.FAIL: 1, Status.INCONCLUSIVE: 3}
"""Exit code of each verdict; 2 is bad usage or input."""

JSON = typer.Option("--json", help="Print one JSON document on stdout and nothing else there.")


def print_json(value: object) -> None:
    """Print a value as JSON; NaN and infinities, which JSON lacks, become strings."""
    print(json.dumps(_finite(value), indent=2, allow_nan=False))


def _finite(value: object) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: _finite(v) for key, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    return value


def print_table(rows: Sequence[Sequence[str]]) -> None:
    """Print rows of text in columns, the first row underlined."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for number, row in enumerate(rows):
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        if number == 0:
            print("  ".join("-" * width for width in widths))


def print_pairs(pairs: Sequence[tuple[str, str]]) -> None:
    """Print (name, text) lines, the names in one column."""
    width = max(len(name) for name, _ in pairs)
    for name, text in pairs:
        print(f"{name.ljust(width)}  {text}")


def verdict_json(verdict: Verdict) -> dict[str, object]:
    """Return a verdict as plain data."""
    return {
        "status": verdict.status.name,
        "reason": verdict.reason,
        "log_e_value": verdict.evidence.log_e,
        "components": dict(verdict.evidence.components),
        "impossible": verdict.impossible,
        "samples": verdict.samples,
        "informative": verdict.informative,
        "needed": verdict.needed,
        "false_alarm": verdict.plan.false_alarm,
        "miss": verdict.plan.miss,
        "tolerance": verdict.plan.tolerance,
        "tests": [
            {
                "name": test.name,
                "statistic": test.statistic,
                "p_value": test.p_value,
                "after_holm": adjusted,
                "degrees_of_freedom": test.degrees_of_freedom,
                "cells": test.cells,
                "samples": test.samples,
            }
            for test, adjusted in zip(verdict.tests, verdict.adjusted, strict=True)
        ],
    }
