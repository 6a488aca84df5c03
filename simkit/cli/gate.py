"""simkit gate: red or green."""

from __future__ import annotations

import secrets
from typing import Annotated

import typer

from simkit.cli.output import EXIT, JSON, print_json, print_table


def gate(
    rule: Annotated[str, typer.Option(help="Name of the rule to judge.")] = "token",
    seed: Annotated[
        int | None, typer.Option(help="Seed of all cases. [default: a fresh one, printed]")
    ] = None,
    false_alarm: Annotated[
        float, typer.Option(help="Chance that a right rule is rejected, over all cases.")
    ] = 1e-6,
    miss: Annotated[
        float, typer.Option(help="Chance that a rule beyond the tolerance is certified, over all cases.")
    ] = 1e-3,
    tolerance: Annotated[
        float, typer.Option(help="Total variation per token that a pass certifies at most.")
    ] = 0.01,
    backend: Annotated[str, typer.Option(help="numba, numpy, reference or auto.")] = "auto",
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Judge a built-in rule on every lossless case; green only if each case passes.

    A right rule is rejected with the stated probability over the whole gate, whatever the seed. A case
    passes when the total variation between its tokens and the target law is certified to be within the
    tolerance; a case that is neither rejected nor certified is "not enough evidence" (exit code 3), never
    a pass.
    """
    from simkit.sampling.simulate import progress_line
    from simkit.verify.battery import overall, run_gate
    from simkit.verify.judge import OUTCOMES, Plan

    seed = secrets.randbits(32) if seed is None else seed
    plan = Plan(false_alarm=false_alarm, miss=miss, tolerance=tolerance)
    progress = progress_line("judging", "cases")
    judged = list(run_gate(rule, seed=seed, plan=plan, backend=backend, progress=progress))
    outcome = overall([verdict.outcome for _, verdict in judged])
    if as_json:
        cases = [{"case": case.name, **verdict.record()} for case, verdict in judged]
        print_json(
            {"outcome": outcome, "rule": rule, "seed": seed, "false_alarm": false_alarm, "cases": cases}
        )
    else:
        rows = [("case", "verdict", "tokens", "log e", "certified tv", "smallest p after Holm")]
        for case, verdict in judged:
            smallest = f"{min(verdict.adjusted, default=1.0):.3g}"
            log_e = f"{verdict.evidence.log_e:.3g}"
            certified = f"{verdict.certificate.total_variation:.3g}"
            rows.append((case.name, verdict.outcome, f"{verdict.samples:,}", log_e, certified, smallest))
        print_table(rows)
        for case, verdict in judged:
            if not verdict.passed:
                print(f"{case.name}: {verdict.reason}")
        print(f"\n{outcome}: rule {rule!r}, seed {seed}, {len(judged)} cases; {OUTCOMES[outcome]}")
    raise typer.Exit(EXIT[outcome])
