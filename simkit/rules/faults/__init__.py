"""The fault catalogue: broken rules, as samplers have had or may have; and right ones that look broken.

One file a family. A fault is broken on purpose, and its record says what is known of it; how far off it is
gets computed, in `simkit.rules.faults.measure`.
"""

from __future__ import annotations

from simkit.rules.faults import (
    accept,
    blocks,
    noise,
    outside,
    position,
    proposal,
    residual,
    several,
    vocabulary,
)
from simkit.rules.faults.controls import CONTROLS
from simkit.rules.faults.fault import CLASSES, Control, Fault
from simkit.rules.faults.residual import replace_from_target

__all__ = ["CLASSES", "CONTROLS", "FAMILIES", "FAULTS", "Control", "Fault", "replace_from_target"]

FAMILIES = {
    "proposal": proposal.FAULTS,
    "accept": accept.FAULTS,
    "residual": residual.FAULTS,
    "position": position.FAULTS,
    "noise": noise.FAULTS,
    "block": blocks.FAULTS,
    "several drafts": several.FAULTS,
    "vocabulary": vocabulary.FAULTS,
    "outside the law": outside.FAULTS,
}
"""The faults by family."""

FAULTS = {fault.name: fault for family in FAMILIES.values() for fault in family}
"""The faults by name."""
