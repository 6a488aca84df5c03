"""simkit rules: list the rules, check one of your own, and hold it beside the others."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from simkit.cli.output import JSON, print_json, print_laws, print_pairs, print_table
from simkit.errors import InputError

if TYPE_CHECKING:
    from simkit.rules.check import Checked, Counterexample
    from simkit.sweeps.rules import Compared, Contender


def listing(context: typer.Context, as_json: Annotated[bool, JSON] = False) -> None:
    """List the rules, lossless and lossy, with their sources; check or compare one of your own.

    `simkit simulate --rule NAME` draws from any of them. NAME:VALUE sets the parameter of one that has it:
    lenience:0.8, with-replacement:4, without-replacement:3-2-1.
    """
    if context.invoked_subcommand is not None:
        return
    from simkit.rules.registry import RULES

    rows = [
        {
            "rule": name,
            "lossless": entry.lossless,
            "parameter": entry.parameter,
            "summary": entry.summary,
            "source": entry.source,
        }
        for name, entry in RULES.items()
    ]
    if as_json:
        print_json(rows)
        return
    for lossless, title in ((True, "lossless"), (False, "lossy")):
        table = [("rule", "parameter", "what it does", "source")]
        table += [
            (str(row["rule"]), str(row["parameter"]), str(row["summary"]), str(row["source"]))
            for row in rows
            if row["lossless"] is lossless
        ]
        print(f"{title}\n")
        print_table(table)
        print()
    print("broken on purpose: see simkit faults")


RULE = typer.Argument(metavar="FILE.py:NAME", help="A Python file and a function in it.")


def check(
    rule: Annotated[str, RULE],
    cases: Annotated[int, typer.Option(help="Small pairs to compare exact laws on.")] = 300,
    seed: Annotated[int, typer.Option(help="Another seed draws other pairs.")] = 0,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Compare the exact law of a rule of your own with the target's, on many small pairs.

    The function is a text, rule(model, choose) -> Emitted, as in simkit/rules/block.py, or a chain rule,
    rule(target, draft) -> Step, as in simkit/rules/single.py. Laws are compared as fractions, jointly over
    several tokens and the border of two calls. Exit code 0: equal on every pair. 1: not, and the smallest
    pair that shows it is printed with both laws. 3: equal, but on too few pairs, since the rule has too many
    branches on the others.

    Example: simkit rules check mine.py:rule
    """
    from simkit.rules.check import check_rule
    from simkit.rules.load import load_rule
    from simkit.sampling.simulate import progress_line

    found = check_rule(load_rule(rule), cases=cases, seed=seed, progress=progress_line("checking", "pairs"))
    if as_json:
        print_json(_checked_record(rule, found))
    elif found.counterexample is None:
        left = f"; {found.left_out} with too many branches left out" if found.left_out else ""
        few = "" if found.enough else ". These are too few to say: give the rule fewer drafts, or simulate it"
        print(f"lossless on all of {found.cases} pairs, exactly{left}{few}")
    else:
        _print_counterexample(found.counterexample)
    raise typer.Exit(1 if found.counterexample is not None else 0 if found.enough else 3)


def _checked_record(rule: str, found: Checked) -> dict[str, object]:
    record: dict[str, object] = {"rule": rule, "pairs": found.cases, "left_out": found.left_out}
    one = found.counterexample
    if one is None:
        return record | {"lossless": True if found.enough else None}
    record |= {"lossless": False, "draft_length": one.case.draft_length, "length": one.case.length}
    record |= {"target": one.case.target, "draft": one.case.draft, "next_state": one.case.next_state}
    record |= {"slots": one.case.slots, "ends": one.case.ends, "error": one.error}
    if one.law is not None and one.target is not None:
        record |= {"law": one.law.astype(str).tolist(), "target_law": one.target.astype(str).tolist()}
        record["total_variation"] = str(one.total_variation)
    return record


def _print_counterexample(one: Counterexample) -> None:
    case = one.case
    pairs = [("draft length K", str(case.draft_length)), ("tokens", str(case.length))]
    for state, p in enumerate(case.target):
        where = f" at state {state}" if len(case.target) > 1 else ""
        pairs.append((f"target{where}", _law(p)))
        for slot in range(case.slots):
            place = f"{where}, slot {slot}" if case.slots > 1 else where
            pairs.append((f"draft{place}", _law(case.draft[state * case.slots + slot])))
        if len(case.target) > 1:
            pairs.append((f"state after{where}", ", ".join(map(str, case.next_state[state]))))
    if case.ends:
        pairs.append(("end of the text", f"state {len(case.target) - 1}"))
    if one.law is None or one.target is None:
        print("the rule fails; the smallest pair on which it does\n")
        print_pairs([*pairs, ("it raises", one.error)])
        return
    print("not lossless; the smallest pair that shows it\n")
    print_pairs(
        [*pairs, ("total variation", f"{one.total_variation} = {float(one.total_variation or 0):.4g}")]
    )
    print()
    print_laws(one.law, one.target)


def _law(weights: Sequence[int]) -> str:
    total = sum(weights)
    return ", ".join(f"{weight}/{total}" if weight else "0" for weight in weights)


def compare(
    rule: Annotated[str | None, RULE] = None,
    against: Annotated[
        str, typer.Option(help="all, or names with commas between; see simkit rules.")
    ] = "all",
    drafts: Annotated[str, typer.Option(help="Draft tokens verified in one call: 4, or 1..8.")] = "1..8",
    pair: Annotated[str, typer.Option(help="Name of the pair.")] = "zipf",
    vocab: Annotated[int | None, typer.Option(help="Vocabulary of a synthetic pair. [default: 8]")] = None,
    tv: Annotated[float | None, typer.Option(help="Total variation between draft and target.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of what has to be drawn.")] = 0,
    csv: Annotated[Path | None, typer.Option(metavar="DIR", help="Write rules.csv there.")] = None,
    pdf: Annotated[Path | None, typer.Option(metavar="DIR", help="Write rules.pdf there.")] = None,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Hold a rule of your own beside the others: tokens for each target call, at equal tokens verified.

    A rule that drafts one path spends a budget of K on K drafts. One with several drafts spends it on one
    position, or on a tree. The bound is the most that a lossless rule can keep with the same drafts: optimal
    transport at one position, block verification over several. Figures are exact where the rule is a chain
    rule or has few branches, else drawn, with a standard error.

    Example: simkit rules compare mine.py:rule --against token,block --drafts 1..4
    """
    from simkit.files import atomic_write
    from simkit.laws.named import PAIRS, make_pair
    from simkit.sampling.simulate import progress_line
    from simkit.sweeps.rules import compare_rules

    options: dict[str, Any] = {"vocabulary": vocab, "total_variation": tv}
    if vocab is None and pair in PAIRS and "vocabulary" in signature(PAIRS[pair]).parameters:
        options["vocabulary"] = 8
    given = {name: value for name, value in options.items() if value is not None}
    rows = compare_rules(
        make_pair(pair, **given),
        _contenders(rule, against),
        _budgets(drafts),
        seed=seed,
        progress=progress_line("comparing", "settings"),
    )
    records = [row.row() for row in rows]
    if csv is not None:
        from simkit.figures.sheet import csv_text

        atomic_write(csv / "rules.csv", csv_text(records, list(records[0])))
    if pdf is not None:
        from simkit.figures.rules_compared import rules_compared
        from simkit.figures.sheet import draw

        sheet = draw(
            lambda ax: rules_compared(ax, records),
            data=records,
            columns=list(records[0]),
            title="Tokens for each target call",
            height=4.2,
        )
        atomic_write(pdf / "rules.pdf", sheet.pdf)
    if as_json:
        print_json(records)
    else:
        print_table([_HEAD, *map(_cells, rows)])
        _explain(rows)


def _explain(rows: Sequence[Compared]) -> None:
    """Say what it means when a rule of one's own keeps more than the bound."""
    above = [row for row in rows if row.lossless is None and row.bound is not None]
    if any(row.kept - 6 * row.kept_error > row.bound + 1e-9 for row in above if row.bound is not None):
        print(
            "\nabove the bound: the rule is lossy, or counts drafts as kept that it does not keep, or draws "
            "more drafts than one path from q; simkit rules check says whether it is lossless"
        )


_HEAD = ("rule", "lossless", "verified", "drafts x slots", "kept", "bound", "tokens per call")


def _cells(row: Compared) -> tuple[str, ...]:
    error = f" +- {row.kept_error:.1g}" if row.kept_error else ""
    return (
        row.rule,
        {True: "yes", False: "no", None: "not said"}[row.lossless],
        str(row.verified),
        f"{row.drafts} x {row.draft_length}",
        f"{row.kept:.4f}{error}",
        "" if row.bound is None else f"{row.bound:.4f}",
        f"{row.tokens_per_call:.4f}",
    )


def _contenders(rule: str | None, against: str) -> list[Contender]:
    from simkit.rules.load import load_rule
    from simkit.sweeps.rules import contender, everyone, of_text

    own = []
    if rule is not None:
        text = load_rule(rule)
        own = [of_text(rule.rpartition(":")[2], text)]
    names = [name.strip() for name in against.split(",") if name.strip()]
    others = everyone() if names == ["all"] else [contender(name) for name in names]
    if not own + others:
        raise InputError("nothing to compare; give FILE.py:NAME or --against")
    return own + others


def _budgets(text: str) -> list[int]:
    from simkit.rules.choose import LONGEST_DRAFT

    first, _, last = text.partition("..")
    try:
        span = range(int(first), int(last or first) + 1)
    except ValueError:
        span = range(0)
    if not span or span[0] < 1 or span[-1] > LONGEST_DRAFT:
        raise InputError(
            f"drafts={text!r}; it needs a number from 1 to {LONGEST_DRAFT}, or a range as in 1..8"
        )
    return list(span)
