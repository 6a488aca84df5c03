"""Chain rules as texts: drafts are judged one by one, and the first one refused ends the call.

Most rules here are one `Link`: what the rule does with one draft, given the two rows. `from_step` reads a
`Step` of the kernels as such a text. A lossless rule's output follows the target exactly; the docstring of a
lossy one says what its output follows instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import NamedTuple, TypeVar

import numpy as np

from simkit.errors import InputError
from simkit.rules.choose import Block, Choose, Emitted, normalised
from simkit.rules.step import Rule, Step

Key = TypeVar("Key")
Law = tuple[Fraction, ...]
Number = int | float | Fraction

_DIGITS = 60
_TIE = Fraction(1, 10**40)


class Link(NamedTuple):
    """What a chain rule does with one draft: a `Step` for one pair of rows, in fractions.

    Parameters
    ----------
    propose : tuple of Fraction, length V
        The law the draft is drawn from.
    accept : tuple of Fraction, length V
        Probability that a drafted token is kept; above 1 it counts as 1.
    correct : tuple of Fraction, length V
        Weights of the law that replaces a refused draft; they need no total of one.
    bonus : tuple of Fraction, length V
        The law of the extra token when all drafts are kept.
    redraw_refused : bool
        Whether the replacement is drawn until it differs from the refused token.
    """

    propose: Law
    accept: Law
    correct: Law
    bonus: Law
    redraw_refused: bool = False

    def replacement(self, refused: int) -> Law:
        """Return the weights of the law that replaces a refused token."""
        if not self.redraw_refused:
            return self.correct
        return (*self.correct[:refused], Fraction(0), *self.correct[refused + 1 :])

    def split(self) -> tuple[list[Fraction], list[Fraction]]:
        """Return P(token drafted and kept) and P(token replaces a refused draft), V fractions each.

        Takes a number of operations in proportion to V, also with `redraw_refused`.
        """
        kept = [q * min(Fraction(1), a) for q, a in zip(self.propose, self.accept, strict=True)]
        refused = [q - k for q, k in zip(self.propose, kept, strict=True)]
        mass = sum(refused, Fraction(0))
        if not mass:
            return kept, [Fraction(0)] * len(kept)
        correct = normalised(self.correct)
        if not self.redraw_refused:
            return kept, [mass * c for c in correct]
        if any(f and c == 1 for f, c in zip(refused, correct, strict=True)):
            raise InputError("a rule refuses the only token that its replacement can be")
        each = [f / (1 - c) if f else f for f, c in zip(refused, correct, strict=True)]
        every = sum(each, Fraction(0))
        return kept, [c * (every - f) for c, f in zip(correct, each, strict=True)]


@dataclass(frozen=True)
class Chain:
    """A chain rule as a text, with its exact laws in closed form.

    Parameters
    ----------
    link : callable
        The target's and the draft's integer weights at one position to the `Link`; see `chain` for one that
        reads them as laws.

    Examples
    --------
    >>> from simkit.laws.pair import Pair
    >>> from simkit.rules.choose import walk
    >>> model = Block(Pair.from_weights([1, 2], [2, 1]), state=0, draft_length=1)
    >>> {emitted.tokens: str(mass) for emitted, mass in walk(token, model).items()}
    {(0, 0): '1/9', (0, 1): '2/9', (1,): '1/3', (1, 0): '1/9', (1, 1): '2/9'}
    """

    link: Callable[[tuple[int, ...], tuple[int, ...]], Link]

    def __call__(self, model: Block, choose: Choose) -> Emitted:
        """Run one target call (Leviathan et al. 2023, algorithm 1, with the rule's own rows)."""
        kept: tuple[int, ...] = ()
        for slot in range(model.draft_length):
            link = self.at(model, kept, slot)
            draft = choose(link.propose)
            if not choose.coin(link.accept[draft]):
                return Emitted((*kept, choose(link.replacement(draft))), slot)
            kept += (draft,)
            if model.ended(kept):
                return Emitted(kept, slot + 1)
        return Emitted((*kept, choose(self._after_all(model, kept).bonus)), model.draft_length)

    def at(self, model: Block, prefix: tuple[int, ...], slot: int) -> Link:
        """Return what the rule does with the draft in a slot, after a prefix."""
        key = (self, model.target_row(prefix), model.draft_row(prefix, slot))
        return model.remember(key, lambda: self.link(model.target(prefix), model.draft(prefix, slot)))

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
        >>> model = Block(Pair.from_weights([5, 3, 2], [2, 3, 5]), state=0, draft_length=3)
        >>> {tokens: str(mass) for tokens, mass in lenience(Fraction(1, 2)).law(model, most=1).items()}
        {(0,): '3/10', (1,): '3/10', (2,): '2/5'}
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
        >>> [str(mass) for mass in token.accepted(Block(Pair.from_weights([1, 2], [2, 1]), 0, 2))]
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


def chain(link: Callable[[Law, Law], Link]) -> Chain:
    """Return the chain rule of a link that reads the target's and the draft's law, V fractions each."""
    return Chain(lambda p, q: link(normalised(p), normalised(q)))


def from_step(rule: Rule) -> Chain:
    """Return the text of a rule that the kernels run as a `Step`.

    A step that has ``redraw_refused`` set is read with it.

    Parameters
    ----------
    rule : callable
        See `simkit.rules.step.Rule`.

    Examples
    --------
    >>> from simkit.laws.pair import Pair
    >>> from simkit.rules.step import replace_from_target
    >>> model = Block(Pair.from_weights([5, 3, 2], [2, 3, 5]), state=0, draft_length=1)
    >>> {tokens: str(mass) for tokens, mass in from_step(replace_from_target).law(model, most=1).items()}
    {(0,): '7/20', (1,): '39/100', (2,): '13/50'}
    """

    def link(target: tuple[int, ...], draft: tuple[int, ...]) -> Link:
        step: object = rule(np.array([target]), np.array([draft]))
        if not isinstance(step, Step) or step.propose.shape != (1, len(target)):
            raise InputError("a rule must return a Step with one row for each pair of rows that it is given")
        numerator, denominator = (part[0].tolist() for part in step.accept)
        return Link(
            propose=normalised(step.propose[0].tolist()),
            accept=tuple(Fraction(n, d) for n, d in zip(numerator, denominator, strict=True)),
            correct=normalised(step.correct[0].tolist()),
            bonus=normalised(step.bonus[0].tolist()),
            redraw_refused=bool(getattr(step, "redraw_refused", False)),
        )

    return Chain(link)


def _token_link(p: Law, q: Law) -> Link:
    excess = tuple(max(a - b, Fraction(0)) for a, b in zip(p, q, strict=True))
    return Link(propose=q, accept=_ratio(p, q), correct=excess, bonus=p)


def _ratio(p: Law, q: Law) -> Law:
    """Return p/q, and 1 where q = 0: such a token is never drafted."""
    return tuple(a / b if b else Fraction(1) for a, b in zip(p, q, strict=True))


def _one_hot(row: Law) -> Law:
    """Return the row's largest entry as a law of one token; the lowest token of a tie."""
    best = row.index(max(row))
    return tuple(Fraction(token == best) for token in range(len(row)))


token = chain(_token_link)
"""Lossless. Keep with min(1, p/q), replace from max(p - q, 0), bonus from p.

Leviathan, Kalman, Matias 2023 (arXiv 2211.17192), algorithm 1; Chen et al. 2023 (arXiv 2302.01318),
algorithm 2. With a one-hot target row (temperature zero) it keeps a draft exactly when that is the target's
argmax.
"""

one_hot = chain(lambda p, q: Link(propose=q, accept=p, correct=p, bonus=p, redraw_refused=True))
"""Lossless, whatever law the draft is drawn from. Keep x with p(x), replace from p given other than x.

It is the token rule with the draft's law taken as one-hot at the token drafted, so it serves drafts that
come without a law: argmax drafts, prompt lookup, n-grams. Token y comes out with q(y) p(y) plus the sum over
other x of q(x) (1 - p(x)) p(y) / (1 - p(x)), which is p(y).
"""

argmax_draft = chain(lambda p, q: _token_link(p, _one_hot(q)))
"""Lossless. The token rule on the draft's most likely token, with the one-hot law that it was drawn from."""

greedy = chain(lambda p, q: _token_link(_one_hot(p), q))
"""Lossy: emits the target's argmax, the lowest token of a tie; exact where p is one-hot.

Stern et al. 2018 (arXiv 1811.03115), blockwise parallel decoding, verified by exact match.
"""


def sampled_match(model: Block, choose: Choose) -> Emitted:
    """Emit the target's own sample, and go on while it equals the draft. Lossless.

    It keeps a draft with sum(p q), never more than the token rule's sum(min(p, q)), and it needs no law of
    the draft. It has the law of `one_hot`.

    Parameters
    ----------
    model, choose
        See `simkit.rules.choose`.

    References
    ----------
    Reported as biased in a public thread (z-lab/dflash 74); it is not.

    Examples
    --------
    >>> from simkit.laws.pair import Pair
    >>> from simkit.rules.choose import walk
    >>> model = Block(Pair.from_weights([1, 2], [2, 1]), state=0, draft_length=1)
    >>> walk(sampled_match, model) == walk(one_hot, model)
    True
    """
    tokens: tuple[int, ...] = ()
    for slot in range(model.draft_length):
        draft = choose(model.draft(tokens, slot))
        tokens += (choose(model.target(tokens)),)
        if tokens[-1] != draft or model.ended(tokens):
            return Emitted(tokens, slot + (tokens[-1] == draft))
    return Emitted((*tokens, choose(model.target(tokens))), model.draft_length)


def shared_gumbel(model: Block, choose: Choose) -> Emitted:
    """Read draft and target from one noise at each position, and go on while they agree. Lossless.

    What comes out is the target's winner, so for given noise the output does not depend on the draft. It
    keeps a draft with sum_i 1 / sum_k max(q_k / q_i, p_k / p_i): at least (1 - d) / (1 + d), where d is the
    total variation of p and q, and at most the token rule's 1 - d. The n-th race of a call gives its n-th
    token, so noise may be addressed by position in the output.

    Parameters
    ----------
    model, choose
        See `simkit.rules.choose`.

    References
    ----------
    Daliri, Musco, Suresh 2024 (arXiv 2408.07978), drafter-invariant speculative decoding by Gumbel sampling.

    Examples
    --------
    >>> from simkit.laws.pair import Pair
    >>> from simkit.rules.choose import walk
    >>> law = walk(shared_gumbel, Block(Pair.from_weights([1, 2], [2, 1]), state=0, draft_length=1))
    >>> str(sum(mass * emitted.accepted for emitted, mass in law.items()))
    '2/3'
    """
    tokens: tuple[int, ...] = ()
    for slot in range(model.draft_length):
        draft, winner = choose.race(model.draft(tokens, slot), model.target(tokens))
        tokens += (winner,)
        if draft != winner or model.ended(tokens):
            return Emitted(tokens, slot + (draft == winner))
    target = model.target(tokens)
    return Emitted((*tokens, choose.race(target, target)[0]), model.draft_length)


def lenience(factor: Number) -> Chain:
    """Return the token rule that keeps with min(1, p / (factor q)). Lossy below 1.

    It emits min(q, p / factor) plus what that leaves of one, spread as max(p - q, 0).

    Parameters
    ----------
    factor : number in (0, 1]
        The lenience l; 1 is the token rule.

    Raises
    ------
    InputError
        For any other factor.

    References
    ----------
    Leviathan, Kalman, Matias 2023 (arXiv 2211.17192), appendix on lenience: q is multiplied by l in the test.

    Examples
    --------
    >>> from simkit.laws.pair import Pair
    >>> model = Block(Pair.from_weights([5, 3, 2], [2, 3, 5]), state=0, draft_length=1)
    >>> [str(mass) for mass in lenience(0.5).law(model, most=1).values()]
    ['3/10', '3/10', '2/5']
    """
    share = _share(factor, "factor", above_zero=True)

    def link(p: Law, q: Law) -> Link:
        return _token_link(p, q)._replace(accept=tuple(a / share for a in _ratio(p, q)))

    return chain(link)


def thresholds(single: Number = 1, acc: Number = 1) -> Chain:
    """Return SGLang's rule: keep x when p(x) >= single, else with min(1, p(x) / acc). Lossy below 1 and 1.

    The replacement is drawn from p given other than the refused token. With both at 1 it is `one_hot`.

    Parameters
    ----------
    single : number in [0, 1]
        ``speculative_accept_threshold_single``.
    acc : number in (0, 1]
        ``speculative_accept_threshold_acc``.

    Raises
    ------
    InputError
        For thresholds outside their ranges.

    References
    ----------
    SGLang, sgl-kernel, speculative_sampling.cuh: TreeSpeculativeSamplingTargetOnly, one child a node.

    Examples
    --------
    >>> from simkit.laws.pair import Pair
    >>> model = Block(Pair.from_weights([5, 3, 2], [0, 0, 1]), state=0, draft_length=1)
    >>> [str(mass) for mass in thresholds(acc=0.5).law(model, most=1).values()]
    ['3/8', '9/40', '2/5']
    """
    low, most = _share(single, "single"), _share(acc, "acc", above_zero=True)

    def link(p: Law, q: Law) -> Link:
        accept = tuple(Fraction(1) if a >= low else a / most for a in p)
        return Link(propose=q, accept=accept, correct=p, bonus=p, redraw_refused=True)

    return chain(link)


def typical(epsilon: Number = Fraction(9, 100), delta: Number = Fraction(3, 10)) -> Chain:
    """Return Medusa's typical acceptance: keep x when p(x) > min(epsilon, delta exp(-H(p))). Lossy.

    A refused draft is replaced from p, so x comes out with q(x) where p(x) is above the threshold, plus p(x)
    times what q has on tokens that are not. exp(-H) is rounded to 60 digits; a p(x) within 1e-40 of the
    threshold counts as not above it.

    Parameters
    ----------
    epsilon, delta : numbers in [0, 1]
        The hard threshold and the one relative to the entropy; the defaults are those of the authors' code.

    Raises
    ------
    InputError
        For thresholds outside their range.

    References
    ----------
    Cai et al. 2024 (arXiv 2401.10774), section on typical acceptance.

    Examples
    --------
    >>> from simkit.laws.pair import Pair
    >>> model = Block(Pair.from_weights([5, 3, 2], [0, 0, 1]), state=0, draft_length=1)
    >>> typical().law(model, most=1)
    {(2,): Fraction(1, 1)}
    """
    hard, relative = _share(epsilon, "epsilon"), _share(delta, "delta")

    def link(p: Law, q: Law) -> Link:
        level = min(hard, relative * _exp_minus_entropy(p)) * (1 + _TIE)
        return Link(propose=q, accept=tuple(Fraction(a > level) for a in p), correct=p, bonus=p)

    return chain(link)


def _exp_minus_entropy(p: Law) -> Fraction:
    """Return exp(-H) to 60 digits; decimal arithmetic rounds alike on every machine."""
    with localcontext() as context:
        context.prec = _DIGITS
        decimals = [Decimal(a.numerator) / Decimal(a.denominator) for a in p if a]
        return Fraction(sum((d * d.ln() for d in decimals), Decimal(0)).exp())


def ensemble(weight: Number) -> Chain:
    """Return the token rule against m = weight p + (1 - weight) q instead of p. Lossless against m.

    Parameters
    ----------
    weight : number in [0, 1]
        The target's weight in the mixture; 1 is the token rule.

    Raises
    ------
    InputError
        For a weight outside its range.

    References
    ----------
    Fu et al. 2025 (arXiv 2502.01662), Speculative Ensemble: the ensemble's law as the law that verifies.

    Examples
    --------
    >>> from simkit.laws.pair import Pair
    >>> model = Block(Pair.from_weights([5, 3, 2], [2, 3, 5]), state=0, draft_length=1)
    >>> [str(mass) for mass in ensemble(0.5).law(model, most=1).values()]
    ['7/20', '3/10', '7/20']
    """
    share = _share(weight, "weight")

    def link(p: Law, q: Law) -> Link:
        return _token_link(tuple(share * a + (1 - share) * b for a, b in zip(p, q, strict=True)), q)

    return chain(link)


def _share(value: Number, name: str, above_zero: bool = False) -> Fraction:
    """Return a number in [0, 1] as a fraction; a float as the decimal that it prints as."""
    try:
        share = Fraction(repr(value)) if isinstance(value, float) else Fraction(value)
    except (TypeError, ValueError):
        share = Fraction(-1)
    if not 0 <= share <= 1 or (above_zero and not share):
        span = "above 0 and at most 1" if above_zero else "from 0 to 1"
        raise InputError(f"{name}={value!r}; it needs a number {span}")
    return share
