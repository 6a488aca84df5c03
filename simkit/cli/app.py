"""The commands of the command line."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import wraps

import typer

from simkit.cli import faults, rules
from simkit.cli.bench import bench
from simkit.cli.combine import combine
from simkit.cli.compare import compare
from simkit.cli.doctor import doctor
from simkit.cli.experiments import report, run
from simkit.cli.gate import gate
from simkit.cli.judge import judge
from simkit.cli.simulate import simulate

app = typer.Typer(
    help=(
        "Is a speculative sampler lossless, how often are its drafts accepted, and what is that worth?\n\n"
        "Exit codes: 0 pass, 1 fail, 2 bad usage or input, 3 not enough evidence."
    ),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that answers Ctrl-C and a closed pipe itself: typer says 1, fail, at a pipe."""

    @wraps(command)
    def guarded(**arguments: object) -> None:
        try:
            try:
                command(**arguments)
            finally:
                if sys.stdout is not None:  # None where the caller closed it
                    sys.stdout.flush()
        except KeyboardInterrupt:
            print("simkit: interrupted; rows that `simkit run` finished are kept", file=sys.stderr)
            sys.exit(128 + 2)
        except BrokenPipeError:  # the reader of our output has gone, as in `simkit ... | head`
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # else Python complains when it flushes at its end
            sys.exit(128 + 13)  # never 0: a verdict that nobody read is no pass

    return guarded


for command in (simulate, judge, compare, combine, gate, run, report, bench, doctor):
    app.command()(_guarded(command))


def _group(listing: Callable[..., None], *commands: Callable[..., None]) -> typer.Typer:
    """Return a command that lists something, with commands below it."""
    group = typer.Typer(invoke_without_command=True, rich_markup_mode=None)
    group.callback()(_guarded(listing))
    for below in commands:
        group.command()(_guarded(below))
    return group


app.add_typer(_group(rules.listing, rules.check, rules.compare), name="rules")
app.add_typer(_group(faults.listing, faults.show), name="faults")
