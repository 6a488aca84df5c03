"""simkit judge: hold counts or tokens that somebody has drawn against their target."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from simkit.cli.output import EXIT, JSON, print_json, print_pairs
from simkit.errors import InputError


def judge(
    counts: Annotated[
        Path, typer.Argument(metavar="COUNTS", help=".npy, .csv or .json: counts of tokens, or token ids.")
    ],
    target: Annotated[
        Path,
        typer.Option(metavar="ROW", help=".npy, .csv or .json: probabilities, or weights (whole numbers)."),
    ],
    visits: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Planned draws of each state; for counts of several states."),
    ] = None,
    tokens: Annotated[
        bool | None, typer.Option("--tokens/--counts", help="What COUNTS holds. [default: by its shape]")
    ] = None,
    tolerance: Annotated[float, typer.Option(help="Total variation per token that a pass certifies.")] = 0.01,
    tolerance_per_sequence: Annotated[
        float | None, typer.Option(help="Total variation of sequences of --length tokens, instead.")
    ] = None,
    length: Annotated[int | None, typer.Option(help="Tokens of a sequence.")] = None,
    false_alarm: Annotated[float, typer.Option(help="Chance that a right sampler is rejected.")] = 1e-6,
    miss: Annotated[float, typer.Option(help="Chance that a law beyond the tolerance passes.")] = 1e-3,
    sampler: Annotated[str, typer.Option(metavar="NAME", help="What to call the sampler.")] = "",
    key: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="What tells these draws from others. [default: digest of COUNTS]"),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the verdict there, for simkit combine.")
    ] = None,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Judge counts, or raw tokens, that any sampler has drawn: PASS, FAIL or INCONCLUSIVE, and why.

    An array as long as the target is counts; other whole numbers below its length are token ids. Where both
    are possible, say --counts or --tokens. Draws are taken as independent, at each state; tokens in rows of
    one length are decodes, and are also held against each other for randomness that was used twice.

    Example: simkit judge counts.npy --target probabilities.npy --sampler "my engine 1.2" --out tonight.json
    """
    from simkit.files import atomic_write
    from simkit.verify.counts_file import file_key, read_counts, read_target, read_visits
    from simkit.verify.judge import Plan
    from simkit.verify.judge import judge as decide
    from simkit.verify.tokens import judge_tokens

    plan = Plan(
        false_alarm=false_alarm,
        miss=miss,
        tolerance=tolerance,
        tolerance_per_sequence=tolerance_per_sequence,
        length=length,
    )
    law = read_target(target)
    kind = None if tokens is None else "tokens" if tokens else "counts"
    drawn = read_counts(counts, law.shape, kind)
    if law.ndim == 2 and visits is None:
        raise InputError(
            f"{target} has {len(law)} states: say --visits FILE with the planned draws of each; the realised "
            "ones are random, and may not stand in for them"
        )
    key = file_key(counts) if key is None else key
    if drawn.decodes is not None:
        verdict = judge_tokens(drawn.decodes, law, plan, sampler=sampler, key=key)
    else:
        planned = None if visits is None else read_visits(visits, len(law) if law.ndim == 2 else 1)
        verdict = decide(drawn.counts, law, plan, visits=planned, sampler=sampler, key=key)
    if out is not None:
        atomic_write(out, json.dumps(verdict.record(), indent=2, allow_nan=False) + "\n")
    if as_json:
        print_json(verdict.record())
    else:
        size = f"{verdict.samples:,} draws from a vocabulary of {law.shape[-1]:,}"
        read_as = f"{counts}, as {drawn.described}: {size}"
        print_pairs([("read", read_as), *verdict.rows()])
    raise typer.Exit(EXIT[verdict.outcome])
