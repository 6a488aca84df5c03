"""simkit gate: red or green."""

from __future__ import annotations

import secrets
from typing import Annotated

import typer

from simkit.cli.output import EXIT, JSON, print_json, print_table, verdict_json


def gate(
    rule: Annotated[str, typer.Option(help="Name of the rule to judge.")] = "token",
    seed: Annotated[
        int | None, typer.Option(help="Seed of all cases. [default: a fresh one, printed]")
    ] = None,
    false_alarm: Annotated[
        float, typer.Option(help="Chance that a right rule is rejected, over all cases.")
    ] = 1e-6,
    miss: Annotated[float, typer.Option(help="Chance that a tolerated-size fault is not seen.")] = 1e-3,
    tolerance: Annotated[
        float, typer.Option(help="Total variation per token each case must be able to see.")
    ] = 0.01,
    backend: Annotated[str, typer.Option(help="numba, numpy, reference or auto.")] = "auto",
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Judge a built-in rule on every lossless case; green only if each case passes.

    A right rule is rejected with the stated probability over the whole gate, whatever the seed. A case
    passes when it is not rejected by a run long enough to see a fault of the tolerated size; too short
    a run is "not enough evidence" (exit code 3), never a pass.
    """
    from simkit.sampling.simulate import progress_line
    from simkit.verify.battery import overall, run_gate
    from simkit.verify.judge import Plan

    seed = secrets.randbits(32) if seed is None else seed
    plan = Plan(false_alarm=false_alarm, miss=miss, tolerance=tolerance)
    progress = progress_line("judging", "cases")
    judged = list(run_gate(rule, seed=seed, plan=plan, backend=backend, progress=progress))
    status = overall([verdict for _, verdict in judged])
    if as_json:
        cases = [{"case": case.name, **verdict_json(verdict)} for case, verdict in judged]
        print_json(
            {"status": status.name, "rule": rule, "seed": seed, "false_alarm": false_alarm, "cases": cases}
        )
    else:
        rows = [("case", "verdict", "tokens", "log e", "smallest p after Holm")]
        for case, verdict in judged:
            smallest = f"{min(verdict.adjusted, default=1.0):.3g}"
            log_e = f"{verdict.evidence.log_e:.3g}"
            rows.append((case.name, verdict.status.name, f"{verdict.samples:,}", log_e, smallest))
        print_table(rows)
        for case, verdict in judged:
            if not verdict.passed:
                print(f"{case.name}: {verdict.reason}")
        print(f"\n{status.name}: rule {rule!r}, seed {seed}, {len(judged)} cases; {status.value}")
    raise typer.Exit(EXIT[status])
