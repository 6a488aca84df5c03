"""trace: one target call as a table, for people who want to see the rule at work."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from simkit.laws.checks import whole_number
from simkit.laws.pair import Pair
from simkit.laws.rows import Row
from simkit.rules.step import Rule
from simkit.sampling import philox
from simkit.sampling.program import compile_program
from simkit.sampling.reference import Decision, block, chain_of, step_at

COLUMNS = ("slot", "draft", "p", "q", "p/q", "u", "kept", "residual", "emitted")


@dataclass(frozen=True)
class Trace:
    """One block, decision by decision.

    Parameters
    ----------
    rows : tuple of tuple of str
        A row a decision, under `COLUMNS`: slot, drafted token, its p and q, their ratio, the coin u in
        [0, 1), whether the draft is kept (u < min(1, p/q)), the residual law where it is not, and the token
        that comes out.
    tokens : tuple of int
        The emitted tokens.

    Examples
    --------
    >>> one = trace(Pair.from_weights([1, 0], [1, 1]), draft_length=1)
    >>> one.tokens[0], one.rows[0][0]
    (0, '0')
    """

    rows: tuple[tuple[str, ...], ...]
    tokens: tuple[int, ...]

    def __repr__(self) -> str:
        table = [COLUMNS, *self.rows]
        widths = [max(len(row[i]) for row in table) for i in range(len(COLUMNS))]
        lines = (
            "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in table
        )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        def cells(row: tuple[str, ...], tag: str) -> str:
            return "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in row)

        body = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in self.rows)
        return f"<table><thead><tr>{cells(COLUMNS, 'th')}</tr></thead><tbody>{body}</tbody></table>"


def trace(pair: Pair, rule: str = "token", *, draft_length: int = 4, seed: int = 0, trial: int = 0) -> Trace:
    """Return the first block of a trial, as `simulate` draws it with this draft length and length K + 1.

    Parameters
    ----------
    pair : Pair
        The laws.
    rule : str
        Name of a chain rule.
    draft_length : int
        Drafts K of the block, 1 to 64.
    seed, trial : int
        Which words to use; trial >= 0.

    Raises
    ------
    InputError, UnknownNameError
        For numbers out of range, or a rule that is unknown or no chain rule.

    Examples
    --------
    >>> trace(Pair.from_rows(target=[0.5, 0.3, 0.2], draft=[0.2, 0.3, 0.5]), draft_length=2, seed=3)
    slot  draft  p    q    p/q  u         kept  residual   emitted
    ...
    """
    whole_number(trial, "trial", 0, 2**62)
    program = compile_program(pair, rule, draft_length=draft_length, length=draft_length + 1, seed=seed)

    def words(start: int, slot: int, purpose: int) -> tuple[int, int]:
        return philox.words(trial, start, slot, purpose, program.key)

    first = int(pair.initial[trial % len(pair.initial)])
    decisions = list(block(program, first, 0, words))
    rows = tuple(_show(pair, chain_of(program).rule, decision) for decision in decisions)
    return Trace(rows, tuple(d.token for d in decisions if d.token is not None))


def _show(pair: Pair, rule: Rule, decision: Decision) -> tuple[str, ...]:
    emitted = "" if decision.token is None else str(decision.token)
    if decision.draft is None or decision.coin is None:
        return (str(decision.slot), "bonus", "", "", "", "", "", "", emitted)
    p = pair.target_row(decision.state).fractions[decision.draft]
    q = pair.draft_row(decision.state, decision.slot).fractions[decision.draft]
    correct = Row(step_at(pair, rule, decision.state, decision.slot).correct[0])
    return (
        str(decision.slot),
        str(decision.draft),
        f"{float(p):.6g}",
        f"{float(q):.6g}",
        f"{float(p / q):.6g}",
        f"{decision.coin / 2**64:.6f}",
        "yes" if decision.kept else "no",
        "" if decision.kept else str(correct)[4:-1],
        emitted,
    )
