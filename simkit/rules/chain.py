"""Chain: a rule whose drafts are judged one by one, as a text with its exact laws in closed form."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

import numpy as np

from simkit.errors import InputError
from simkit.rules.choose import Block, Choose, Emitted
from simkit.rules.step import Link, Rule, Step

Key = TypeVar("Key")


@dataclass(frozen=True)
class Chain:
    """A chain rule as a text, with its exact laws in closed form.

    Parameters
    ----------
    rule : callable
        What the rule does at one slot; see `simkit.rules.step.Rule`.

    Raises
    ------
    InputError
        When the rule returns no `Step`, or one for other rows than it was given: as soon as it is used.

    Examples
    --------
    >>> from simkit.laws.pair import Pair
    >>> from simkit.rules.choose import walk
    >>> from simkit.rules.step import token_rule
    >>> model = Block(Pair.from_weights([1, 2], [2, 1]), state=0, draft_length=1)
    >>> {emitted.tokens: str(mass) for emitted, mass in walk(Chain(token_rule), model).items()}
    {(0, 0): '1/9', (0, 1): '2/9', (1,): '1/3', (1, 0): '1/9', (1, 1): '2/9'}
    """

    rule: Rule

    def __call__(self, model: Block, choose: Choose) -> Emitted:
        """Run one target call (Leviathan et al. 2023, algorithm 1, with the rule's own rows)."""
        kept: tuple[int, ...] = ()
        for slot in range(model.draft_length):
            link = self.at(model, kept, slot)
            for accept in link.accept:
                draft = choose(link.propose)
                if choose.coin(accept[draft]):
                    break
            else:
                return Emitted((*kept, choose(link.replacement(draft))), slot)
            kept += (draft,)
            if model.ended(kept):
                return Emitted(kept, slot + 1)
        return Emitted((*kept, choose(self._after_all(model, kept).bonus)), model.draft_length)

    def at(self, model: Block, prefix: tuple[int, ...], slot: int) -> Link:
        """Return what the rule does with the draft in a slot, after a prefix."""
        key = (self, model.target_row(prefix), model.draft_row(prefix, slot))
        return model.remember(key, lambda: self._link(model.target(prefix), model.draft(prefix, slot)))

    def _link(self, target: tuple[int, ...], draft: tuple[int, ...]) -> Link:
        step: object = self.rule(np.array([target]), np.array([draft]))
        if not isinstance(step, Step) or step.propose.shape != (1, len(target)):
            raise InputError("a rule must return a Step with one row for each pair of rows that it is given")
        return step.link()

    def _after_all(self, model: Block, prefix: tuple[int, ...]) -> Link:
        """Return the link whose bonus ends a call; its draft row is the one of the pair's last slot."""
        return self.at(model, prefix, model.pair.slots - 1)

    def law(self, model: Block, most: int) -> dict[tuple[int, ...], Fraction]:
        """Return the exact law of a call's tokens, cut behind the first `most`, without walking.

        It needs about V**min(K + 1, most) operations, so the law of one token is had at any V.

        Parameters
        ----------
        model : Block
            The laws of the call.
        most : int
            Tokens at most, 1 or more.

        Examples
        --------
        >>> from simkit.laws.pair import Pair
        >>> from simkit.rules.faults import replace_from_target
        >>> model = Block(Pair.from_weights([5, 3, 2], [2, 3, 5]), state=0, draft_length=3)
        >>> {t: str(mass) for t, mass in Chain(replace_from_target).law(model, most=1).items()}
        {(0,): '7/20', (1,): '39/100', (2,): '13/50'}
        """
        law: dict[tuple[int, ...], Fraction] = {}
        running: dict[tuple[int, ...], Fraction] = {(): Fraction(1)}
        for slot in range(model.draft_length):
            kept_by_all: dict[tuple[int, ...], Fraction] = {}
            for prefix, mass in running.items():
                kept, replaced = self.at(model, prefix, slot).split()
                for token, (keep, replace) in enumerate(zip(kept, replaced, strict=True)):
                    tokens = (*prefix, token)
                    over = len(tokens) == most or model.ended(tokens)
                    add(law, tokens, mass * (replace + keep if over else replace))
                    add(kept_by_all, tokens, Fraction(0) if over else mass * keep)
            running = kept_by_all
        for prefix, mass in running.items():
            for token, bonus in enumerate(self._after_all(model, prefix).bonus):
                add(law, (*prefix, token), mass * bonus)
        return law

    def accepted(self, model: Block) -> list[Fraction]:
        """Return P(a call keeps k drafts) for k = 0 .. K, merged over the pair's states: exact at any V.

        Parameters
        ----------
        model : Block
            The laws of the call.

        Examples
        --------
        >>> from simkit.laws.pair import Pair
        >>> from simkit.rules.step import token_rule
        >>> model = Block(Pair.from_weights([1, 2], [2, 1]), state=0, draft_length=2)
        >>> [str(mass) for mass in Chain(token_rule).accepted(model)]
        ['1/3', '2/9', '4/9']
        """
        pair, law = model.pair, [Fraction(0)] * (model.draft_length + 1)
        running = {model.state: Fraction(1)}
        for slot in range(model.draft_length):
            following: dict[int, Fraction] = {}
            for state, mass in running.items():
                here = model if state == model.state else Block(pair, state, model.draft_length)
                kept, replaced = self.at(here, (), slot).split()
                law[slot] += mass * sum(replaced, Fraction(0))
                for token, keep in enumerate(kept):
                    if keep:
                        add(following, here.state_after((token,)), mass * keep)
            law[slot + 1] += following.pop(-1 if pair.end is None else pair.end, Fraction(0))
            running = following
        law[-1] += sum(running.values(), Fraction(0))
        return law


def add(law: dict[Key, Fraction], key: Key, mass: Fraction) -> None:
    """Add mass to a law's entry; nothing is added for no mass."""
    if mass:
        law[key] = law.get(key, Fraction(0)) + mass
