"""The rules by name."""

from __future__ import annotations

from dataclasses import dataclass

from simkit.errors import UnknownNameError
from simkit.rules.step import Rule, replace_from_target, token_rule


@dataclass(frozen=True)
class Entry:
    """A rule with what a reader of a result has to know about it.

    Parameters
    ----------
    rule : callable
        See `simkit.rules.step.Rule`.
    lossless : bool
        Whether its output law is the target's.
    summary : str
        One sentence.
    """

    rule: Rule
    lossless: bool
    summary: str


RULES = {
    "token": Entry(token_rule, True, "keep with min(1, p/q), replace from the residual"),
    "replace-from-target": Entry(
        replace_from_target,
        False,
        "broken on purpose: the replacement is drawn from p, not from the residual",
    ),
}


def find_rule(name: str) -> Entry:
    """Return the entry of a rule.

    Parameters
    ----------
    name : str
        A key of `RULES`.

    Raises
    ------
    UnknownNameError
        For a name that is not registered; the message lists those that are.

    Examples
    --------
    >>> find_rule("token").lossless
    True
    """
    if name not in RULES:
        raise UnknownNameError("rule", name, RULES)
    return RULES[name]
