"""What commands print: JSON for machines, plain tables for people, and exit codes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import typer
from numpy import ndenumerate
from numpy.typing import NDArray

from simkit.verify.verdict import finite

EXIT = {"PASS": 0, "FAIL": 1, "INCONCLUSIVE": 3}
"""Exit code of each outcome; 2 is bad usage or input."""

JSON = typer.Option("--json", help="Print one JSON document on stdout and nothing else there.")


def print_json(value: object) -> None:
    """Print a value as JSON; NaN and infinities, which JSON lacks, become strings."""
    print(json.dumps(finite(value), indent=2, allow_nan=False))


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


def print_laws(law: NDArray[Any], target: NDArray[Any], most: int = 40) -> None:
    """Print two laws of sequences side by side, where either has mass."""
    beside: list[tuple[tuple[int, ...], Any]] = list(ndenumerate(law))
    cells = [(tokens, mass, target[tokens]) for tokens, mass in beside if mass or target[tokens]]
    table = [("tokens", "this rule", "target", "difference")]
    table += [
        (" ".join(map(str, tokens)), _number(mass), _number(wanted), f"{float(mass - wanted):+.6f}")
        for tokens, mass, wanted in cells[:most]
    ]
    print_table(table)
    if len(cells) > most:
        print(f"... and {len(cells) - most} more")


def _number(mass: Fraction) -> str:
    text = str(mass)
    return text if len(text) <= 15 else f"{float(mass):.10f}"
