"""simkit faults: list the faults that samplers have had, and show what one of them emits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from numpy.typing import NDArray

from simkit.cli.output import JSON, print_json, print_laws, print_pairs, print_table
from simkit.errors import UnknownNameError

if TYPE_CHECKING:
    from simkit.rules.faults import Fault


def listing(context: typer.Context, as_json: Annotated[bool, JSON] = False) -> None:
    """List the fault catalogue: what goes wrong, how far off the output is, and where it was reported.

    The distance is the total variation between the fault's exact joint law and the target's, on the smallest
    pair that shows it. `simkit simulate --rule NAME` draws from a fault like from any rule.
    """
    if context.invoked_subcommand is not None:
        return
    from simkit.rules.faults import CONTROLS, FAMILIES

    if as_json:
        faults = [_record(fault, family) for family, members in FAMILIES.items() for fault in members]
        controls = [
            {"control": one.name, "suspicion": one.suspicion, "reason": one.reason, "source": one.source}
            for one in CONTROLS.values()
        ]
        print_json({"faults": faults, "controls": controls})
        return
    for family, members in FAMILIES.items():
        print(f"{family}\n")
        table = [("fault", "class", "distance", "what goes wrong")]
        table += [(fault.name, fault.kind, _distance(fault), fault.summary) for fault in members]
        print_table(table)
        print()
    print("positive controls: they look wrong and are exactly lossless\n")
    print_table([("control", "why it loses nothing"), *((one.name, one.reason) for one in CONTROLS.values())])


def show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A fault; see simkit faults.")],
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Show one fault: its source, the change it makes, the smallest pair that shows it, and both laws.

    Example: simkit faults show gumbel-noise-reused
    """
    from simkit.rules.faults import FAMILIES, FAULTS

    if name not in FAULTS:
        raise UnknownNameError("fault", name, FAULTS)
    fault = FAULTS[name]
    family = next(family for family, members in FAMILIES.items() if fault in members)
    record = _record(fault, family)
    if as_json:
        print_json(record | _laws(fault))
        return
    pairs = [(key, str(value)) for key, value in record.items() if value not in (None, "")]
    print_pairs(pairs)
    if fault.shows_in_a_law:
        print(f"\n{fault.shown_by()!r}\n")
        print_laws(*_both(fault))


def _record(fault: Fault, family: str) -> dict[str, object]:
    from simkit.rules.faults.measure import blind, distance

    record: dict[str, object] = {
        "fault": fault.name,
        "family": family,
        "class": fault.kind,
        "what goes wrong": fault.summary,
        "the change": fault.change,
        "source": fault.source,
        "seen by": fault.seen_by,
    }
    if fault.shows_in_a_law:
        record |= {
            "draft length K": fault.draft_length,
            "tokens": fault.length,
            "total variation": f"{distance(fault)} = {float(distance(fault)):.4g}",
            "invisible to": ", ".join(blind(fault)),
        }
    return record


def _laws(fault: Fault) -> dict[str, object]:
    if not fault.shows_in_a_law:
        return {}
    law, target = _both(fault)
    return {"law": law.astype(str).tolist(), "target_law": target.astype(str).tolist()}


def _both(fault: Fault) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the fault's joint law and the target's."""
    from simkit.rules.exact import exact_law
    from simkit.rules.faults.measure import target_law

    pair = fault.shown_by()
    law = exact_law(pair, fault.text, draft_length=fault.draft_length, length=fault.length)
    return law, target_law(pair, fault.length)


def _distance(fault: Fault) -> str:
    from simkit.rules.faults.measure import distance

    return f"{float(distance(fault)):.4g}" if fault.shows_in_a_law else "-"
