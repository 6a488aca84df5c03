"""simkit simulate: draw from one pair, and hold the counts against the law."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from simkit.cli.output import EXIT, JSON, print_json, print_pairs
from simkit.errors import InputError

TRIALS = 1_000_000


def simulate(
    pair: Annotated[str, typer.Option(help="Name of the pair; a wrong one lists those there are.")] = "zipf",
    vocab: Annotated[int | None, typer.Option(help="Vocabulary of a synthetic pair. [default: 1000]")] = None,
    tv: Annotated[
        float | None, typer.Option(help="Total variation between draft and target, 0 to 1. [default: 0.3]")
    ] = None,
    target_temperature: Annotated[float, typer.Option(help="Temperature of the target; 0 is greedy.")] = 1.0,
    draft_temperature: Annotated[float, typer.Option(help="Temperature of the draft; 0 is greedy.")] = 1.0,
    rule: Annotated[str, typer.Option(help="Name of the rule.")] = "token",
    draft_length: Annotated[int, typer.Option(help="Drafts K for one target call, 1 to 64.")] = 4,
    length: Annotated[int, typer.Option(help="Tokens of a decode.")] = 16,
    trials: Annotated[int | None, typer.Option(help="Number of decodes. [default: 1000000]")] = None,
    budget: Annotated[
        str | None,
        typer.Option(help="Instead of trials: draw until the verdict stands, at most 1e8 samples, or 60s."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the draws.")] = 0,
    backend: Annotated[str, typer.Option(help="numba, numpy, reference or auto.")] = "auto",
    threads: Annotated[int | None, typer.Option(help="Threads for numba. [default: all cores]")] = None,
    tolerance: Annotated[float, typer.Option(help="Total variation per token that a pass certifies.")] = 0.01,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Draw speculative samples from a pair and test them against the target law.

    Prints acceptance beside theory, chi-square and KS tests, the log e-value that decides, and a digest
    of the counts that does not depend on backend or threads. The exit code is the verdict's: 0 pass (the
    total variation is certified to be within the tolerance), 1 fail, 3 not enough samples for either.

    Example: simkit simulate --pair zipf --vocab 1000 --tv 0.3 --draft-length 4 --trials 1000000

    Example: simkit simulate --pair ngram --budget 60s
    """
    from simkit.rules.acceptance import known_calls
    from simkit.sampling.simulate import Progress, progress_line
    from simkit.sampling.simulate import simulate as draw_tally
    from simkit.sampling.tally import Tally
    from simkit.sweeps.task import Task
    from simkit.verify.judge import Plan, judge
    from simkit.verify.sequential import Budget, judge_until

    plan = Plan(tolerance=tolerance)
    options = {"vocabulary": vocab, "total_variation": tv}
    given = {name: value for name, value in options.items() if value is not None}
    laws = Task(pair, given, target_temperature, draft_temperature).make_pair()

    def draw(first: int, count: int, progress: Progress | None) -> Tally:
        return draw_tally(
            laws,
            rule,
            draft_length=draft_length,
            length=length,
            trials=count,
            seed=seed,
            first_trial=first,
            backend=backend,
            threads=threads,
            progress=progress,
        )

    if budget is None:
        tally = draw(0, TRIALS if trials is None else trials, progress_line("drawing"))
        verdict = judge(tally, plan=plan)
    elif trials is not None:
        raise InputError("--trials and --budget both say how much to draw; give one of them")
    else:
        *_, (tally, verdict) = judge_until(draw, length, Budget.parse(budget), plan, progress_line)
        if verdict.outcome == "INCONCLUSIVE":
            print(f"stopped: another look would not fit into a budget of {budget}", file=sys.stderr)
    theory = known_calls(laws, rule, draft_length=draft_length, length=length)
    measured = {
        "acceptance": (tally.acceptance, theory and theory.acceptance),
        "tokens_per_call": (tally.tokens_per_call, theory and theory.tokens_per_call),
    }
    if as_json:
        print_json(
            {
                "digest": tally.digest,
                "pair": {"name": laws.name, "digest": laws.digest, "vocabulary": laws.vocabulary, **given},
                "settings": {
                    "rule": rule,
                    "draft_length": draft_length,
                    "length": length,
                    "trials": tally.trials,
                    "seed": seed,
                    "target_temperature": target_temperature,
                    "draft_temperature": draft_temperature,
                },
                "backend": tally.backend,
                "tokens": tally.tokens,
                "target_calls": tally.calls,
                "accepted": tally.accepted.tolist(),
                **{
                    name: {
                        "measured": estimate.value,
                        "standard_error": estimate.standard_error,
                        "interval_95": list(estimate.interval()),
                        "theory": expected,
                    }
                    for name, (estimate, expected) in measured.items()
                },
                "log_e_value": verdict.log_evidence,
                "tests": verdict.record()["tests"],
                "verdict": verdict.record(),
            }
        )
    else:
        theories = [
            (f"{name.replace('_', ' ')}, theory", f"{expected:.6g}")
            for name, (_, expected) in measured.items()
            if expected is not None
        ]
        print_pairs([*((k, str(v)) for k, v in tally.summary().items()), *theories, *verdict.rows()])
    raise typer.Exit(EXIT[verdict.outcome])
