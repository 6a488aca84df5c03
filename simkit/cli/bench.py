"""simkit bench: what a sample costs."""

from __future__ import annotations

from typing import Annotated

import typer

from simkit.cli.output import JSON, print_json, print_table


def bench(
    samples: Annotated[int, typer.Option(help="Samples of one timing.", min=10_000)] = 40_000_000,
    repeats: Annotated[int, typer.Option(help="Timings; the median counts.", min=1)] = 7,
    memory: Annotated[bool, typer.Option(help="Also draw 10^9 samples and watch memory.")] = True,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Measure the simulator against the bare random generator and a plain NumPy script, in one run.

    Read the ratios, not the nanoseconds: they mean the same on another machine. `ratio_to_floor` is the cost
    of a sample over that of one 128-bit Philox block, below which no counter-based sampler can go;
    `speedup_over_numpy` is how much longer choice / accept / choice / bincount takes.
    """
    from simkit.sampling.bench import bench_decode, bench_memory, bench_rows, bench_rules
    from simkit.sampling.simulate import progress_line
    from simkit.verify.bench import bench_judge

    document: dict[str, object] = {}
    rows = bench_rows(samples=samples, repeats=repeats, progress=progress_line("single position", "sizes"))
    decode = bench_decode(samples, progress=progress_line("decodes", "pairs"))
    rules = bench_rules(samples // 10, repeats, progress=progress_line("rules", "runs"))
    verdicts = bench_judge(progress=progress_line("verdicts", "cases"))
    document |= {"rows": rows, "decode": decode, "rules": rules, "judge": verdicts}
    if memory:
        document["memory"] = bench_memory(progress=progress_line("10^9 samples", "samples"))
    if as_json:
        print_json(document)
        return
    for title, table in (
        ("single position", rows),
        ("decodes", decode),
        ("rules", rules),
        ("verdicts", verdicts),
    ):
        print(f"\n{title}")
        print_table([tuple(table[0]), *(tuple(str(value) for value in row.values()) for row in table)])
    if memory:
        print(f"\nmemory: {document['memory']}")
