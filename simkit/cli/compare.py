"""simkit compare: hold what a sampler emitted against what a reference did."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from simkit.cli.output import EXIT, JSON, print_json, print_pairs


def compare(
    a: Annotated[Path, typer.Argument(metavar="A.jsonl", help="What the reference emitted.")],
    b: Annotated[Path, typer.Argument(metavar="B.jsonl", help="What the sampler in question emitted.")],
    baseline: Annotated[
        Path | None,
        typer.Option(metavar="A2.jsonl", help="A second run of the reference: what A and A alone differ by."),
    ] = None,
    false_alarm: Annotated[
        float, typer.Option(help="Chance that samplers of one law are told apart.")
    ] = 1e-6,
    miss: Annotated[float, typer.Option(help="Chance that a law beyond the tolerance passes.")] = 1e-3,
    tolerance: Annotated[float, typer.Option(help="Total variation per token that a pass certifies.")] = 0.01,
    length: Annotated[
        int | None, typer.Option(help="Compare this many tokens of each line. [default: all]")
    ] = None,
    permutations: Annotated[
        int, typer.Option(help="Permutations of each p-value; none is below 1/(1 + this).")
    ] = 999,
    seed: Annotated[int, typer.Option(help="Seed of permutations and pairing.")] = 0,
    greedy: Annotated[
        bool | None,
        typer.Option("--greedy/--sampled", help="What the output is. [default: greedy if lines repeat]"),
    ] = None,
    tie_gap: Annotated[float, typer.Option(help="Largest gap of two logits that are tied (greedy).")] = 0.25,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Compare what a sampler emitted with what a reference did: with speculation, and without.

    Each line of a file is a JSON object: {"prompt": "Once upon", "tokens": [318, 257, 640]}. Give many lines
    for each prompt, each drawn with a seed of its own. Tokens are compared after the same prompt and the same
    emitted prefix; position 0, which no draft has touched, apart from the later ones.

    FAIL (exit code 1): the e-value reached 1/false-alarm, and B is further from A than A's second run is.

    PASS (0): not so, and the total variation per token is certified to be within the tolerance. That takes
    very many lines of few tokens: 400,000 on each side, of two tokens from a vocabulary of two, give 0.017.

    INCONCLUSIVE (3): neither. With few lines --false-alarm 0.01 --permutations 999 lets p-values decide too.

    Greedy output must be equal, up to ties. Lines of A may say how close tokens were at each position: "gaps"
    are the logit of the best token less that of the second; "logits" are objects from token to logit.

    Example: simkit compare plain.jsonl speculative.jsonl --baseline plain2.jsonl --length 4
    """
    from simkit.verify.compare import compare as decide
    from simkit.verify.emitted import read_samples
    from simkit.verify.plan import Plan

    plan = Plan(false_alarm=false_alarm, miss=miss, tolerance=tolerance, length=length)
    found = decide(
        read_samples(a),
        read_samples(b),
        None if baseline is None else read_samples(baseline),
        plan,
        permutations=permutations,
        seed=seed,
        greedy=greedy,
        tie_gap=tie_gap,
    )
    if as_json:
        print_json(found.record())
    else:
        print_pairs(found.rows())
    raise typer.Exit(EXIT[found.outcome])
