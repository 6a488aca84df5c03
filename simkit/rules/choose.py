"""A rule's text and its two interpreters: one samples it, the other walks every branch of it.

A text is a plain function of one target call. It asks ``choose`` for every decision, so it can be held beside
the paper, sampled from addressed random words, and enumerated exactly, without being written twice::

    def first_token_only(model: Block, choose: Choose) -> Emitted:
        return Emitted((choose(model.target(())),), accepted=0)

A text must decide by ``choose`` alone: asked again with the same answers it must ask the same questions.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple, Protocol, TypeVar, cast

import numpy as np

from simkit.errors import InputError, TooLargeError
from simkit.laws.checks import whole_number
from simkit.laws.pair import Pair
from simkit.rules import draws
from simkit.rules.coupling import Weights, exact_total, race_law, run_race

T = TypeVar("T")

MOST_BRANCHES = 2_000_000
"""Branches that are walked at most; each takes 25 to 300 microseconds, some minutes in all."""

MOST_RACERS = 128
"""Tokens of a race that is walked at most: its law takes time with their square."""

LONGEST_DRAFT = 64
_LONGEST_BRANCH = 2_000
_WORD = 2**64
_PROBES = 1_000
_FREE = 2_000


class Emitted(NamedTuple):
    """What comes out of one target call.

    Parameters
    ----------
    tokens : tuple of int
        The call's tokens, at least one.
    accepted : int
        How many drafts the call keeps.
    """

    tokens: tuple[int, ...]
    accepted: int


class Choose(Protocol):
    """What a text asks for its decisions; every question is answered independently of all others."""

    def __call__(self, weights: Weights) -> int:
        """Return an index with probability in proportion to its weight."""

    def along(self, weights: Weights, order: Sequence[int] | None = None) -> int:
        """Return an index by weight, like a call; a sampler looks for it by prefix sums in this order.

        An order changes no law. It is that of the kernels, so that text and kernel draw the same token.
        """

    def coin(self, numerator: int | Fraction, denominator: int | Fraction = 1) -> bool:
        """Return True with probability min(1, numerator / denominator)."""

    def race(self, q: Weights, r: Weights) -> tuple[int, int]:
        """Return the winners under q and r of one noise; see `simkit.rules.coupling.race_law`."""


@dataclass(frozen=True, eq=False)
class Block:
    """The laws of one target call: what a text reads.

    A prefix is the tuple of tokens since the call began. A call that emits the pair's end state is over:
    texts ask `ended` after each token they keep, and whatever a text emits behind the end is cut off by the
    interpreters.

    Parameters
    ----------
    pair : Pair
        The models.
    state : int
        State in which the call begins.
    draft_length : int
        Drafts K for the call.

    Raises
    ------
    InputError
        For a state or draft length that the pair does not have.

    Examples
    --------
    >>> model = Block(Pair.from_weights([1, 2], [2, 1]), state=0, draft_length=2)
    >>> model.target(()), model.draft((1,), slot=1), model.p(())
    ((1, 2), (2, 1), (Fraction(1, 3), Fraction(2, 3)))
    """

    pair: Pair
    state: int
    draft_length: int
    _memory: dict[Hashable, object] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.pair, Pair):
            raise InputError(f"a Block needs a Pair; got {type(self.pair).__name__}")
        state = whole_number(self.state, "state", 0, self.pair.states - 1)
        draft_length = whole_number(self.draft_length, "draft_length", 1, LONGEST_DRAFT)
        object.__setattr__(self, "state", state)
        object.__setattr__(self, "draft_length", draft_length)
        self.pair.check_draft_length(self.draft_length)

    def target(self, prefix: tuple[int, ...]) -> tuple[int, ...]:
        """Return the target's integer weights after a prefix, V of them."""
        return self._weights(self.target_row(prefix))

    def draft(self, prefix: tuple[int, ...], slot: int) -> tuple[int, ...]:
        """Return the draft's integer weights after a prefix in a slot of the block, V of them."""
        return self._weights(self.draft_row(prefix, slot))

    def p(self, prefix: tuple[int, ...]) -> tuple[Fraction, ...]:
        """Return the target's law after a prefix, V fractions."""
        return self._law(self.target_row(prefix))

    def q(self, prefix: tuple[int, ...], slot: int) -> tuple[Fraction, ...]:
        """Return the draft's law after a prefix in a slot of the block, V fractions."""
        return self._law(self.draft_row(prefix, slot))

    def ended(self, prefix: tuple[int, ...]) -> bool:
        """Whether the prefix has reached the pair's end state."""
        end = self.pair.end
        return end is not None and any(self.state_after(prefix[:n]) == end for n in range(1, len(prefix) + 1))

    def state_after(self, prefix: tuple[int, ...]) -> int:
        """Return the state after a prefix."""
        return self.remember(("state", prefix), lambda: self._follow(prefix))

    def target_row(self, prefix: tuple[int, ...]) -> int:
        """Return the number of the pair's row that holds the target's law after a prefix."""
        return int(self.pair.target[self.state_after(prefix)])

    def draft_row(self, prefix: tuple[int, ...], slot: int) -> int:
        """Return the number of the pair's row that holds the draft's law after a prefix in a slot."""
        return int(self.pair.draft[self.state_after(prefix), min(slot, self.pair.slots - 1)])

    def remember(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return ``make()``, made once for a key: a walk runs a text many times over the same rows."""
        if key not in self._memory:
            self._memory[key] = make()
        return cast(T, self._memory[key])

    def _weights(self, row: int) -> tuple[int, ...]:
        return self.remember(("weights", row), lambda: tuple(self.pair.rows[row].tolist()))

    def _law(self, row: int) -> tuple[Fraction, ...]:
        return self.remember(("law", row), lambda: normalised(self._weights(row)))

    def _follow(self, prefix: tuple[int, ...]) -> int:
        if not prefix:
            return self.state
        token = prefix[-1]
        if not 0 <= token < self.pair.vocabulary:
            raise InputError(f"token {token} is not in the vocabulary: 0 to {self.pair.vocabulary - 1}")
        before = self.state_after(prefix[:-1])
        return int(self.pair.next_state[before, token if self.pair.next_state.shape[1] > 1 else 0])


Text = Callable[[Block, Choose], Emitted]
"""A rule for one target call, as plain Python."""

CHOICE, COIN, RACE = range(3)
ALONG = 3
"""A choice that is looked for by prefix sums; it is numbered with the choices and reads their words."""

Words = Callable[[int, int, int], int]
"""(kind, number, token) to a uniform integer in [0, 2**64).

It serves the number-th decision of its kind (`CHOICE`, `COIN`, `RACE`) in this call; a race reads a word for
each token, the others read token 0.
"""


def normalised(weights: Weights) -> tuple[Fraction, ...]:
    """Return weights over their total, as fractions.

    Parameters
    ----------
    weights : sequence of int or Fraction
        Weights >= 0, not all zero.

    Examples
    --------
    >>> normalised([1, 3])
    (Fraction(1, 4), Fraction(3, 4))
    """
    total = sum(weights, Fraction(0))
    return tuple(Fraction(w) / total for w in weights)


def sample(text: Text, model: Block, words: Words) -> Emitted:
    """Return what a text emits when its decisions are read from random words.

    Choices are drawn by alias table, coins have 63 bits (see `simkit.rules.draws`): both follow the exact law
    to within 2**-63 an index.

    Parameters
    ----------
    text : callable
        The rule.
    model : Block
        The laws of the call.
    words : callable
        See `Words`. No word may be served twice, neither in a call nor over the calls of a decode. Races
        may be addressed by ``start + number``, the token's position in the output: the races of
        `simkit.rules.chain.shared_gumbel` then give the same output whatever the draft.

    Raises
    ------
    InputError
        For a question without an answer (weights that are negative, all zero or not exact), or an `Emitted`
        that does not fit the call.

    Examples
    --------
    >>> model = Block(Pair.from_weights([1, 2], [2, 1]), state=0, draft_length=1)
    >>> def plain(model: Block, choose: Choose) -> Emitted:
    ...     return Emitted((choose(model.target(())),), accepted=0)
    >>> [sample(plain, model, lambda kind, number, token: word).tokens[0] for word in (0, 2**63)]
    [0, 1]
    """
    return _finished(text(model, _Sampler(words)), model)


class _Sampler:
    """Answers a text's questions from random words."""

    def __init__(self, words: Words) -> None:
        self._words = words
        self._asked = [0, 0, 0]

    def __call__(self, weights: Weights) -> int:
        exact_total(weights)
        return draws.draw(tuple(weights), self._word(CHOICE))

    def along(self, weights: Weights, order: Sequence[int] | None = None) -> int:
        exact_total(weights)
        _check_order(weights, order)
        return draws.along(weights, self._word(CHOICE), order)

    def coin(self, numerator: int | Fraction, denominator: int | Fraction = 1) -> bool:
        _chance(numerator, denominator)
        return self._word(COIN) >> 1 < draws.keep_coin(numerator, denominator)

    def race(self, q: Weights, r: Weights) -> tuple[int, int]:
        number = self._count(RACE)
        return run_race(q, r, lambda token: self._words(RACE, number, token))

    def _word(self, kind: int) -> int:
        return self._words(kind, self._count(kind), 0)

    def _count(self, kind: int) -> int:
        number = self._asked[kind]
        self._asked[kind] += 1
        return number


def walk(text: Text, model: Block, *, most: int = MOST_BRANCHES) -> dict[Emitted, Fraction]:
    """Return the exact law of what a text emits, by running it once for every branch of its decisions.

    Branches of probability zero are not walked, and branches that emit the same are merged.

    Parameters
    ----------
    text : callable
        The rule.
    model : Block
        The laws of the call.
    most : int
        Branches at most.

    Raises
    ------
    InputError
        When the text has more branches: after `most` of them, or after 2000 when probes say so (see
        `branches`). Also for a text that does not decide by `choose` alone, and as `sample`.

    Examples
    --------
    >>> model = Block(Pair.from_weights([1, 2], [2, 1]), state=0, draft_length=1)
    >>> def plain(model: Block, choose: Choose) -> Emitted:
    ...     return Emitted((choose(model.target(())),), accepted=0)
    >>> walk(plain, model)
    {Emitted(tokens=(0,), accepted=0): Fraction(1, 3), Emitted(tokens=(1,), accepted=0): Fraction(2, 3)}
    """
    law: dict[Emitted, Fraction] = {}
    waiting: list[tuple[Script, Fraction]] = [((), Fraction(1))]
    walked = 0
    while waiting:
        if walked == min(_FREE, most):
            _refuse_above(most, text, model)
        if walked >= most:
            raise TooLargeError(_too_many("more than", most, most))
        branch = _Branch(*waiting.pop())
        emitted = branch.follow(text, model)
        law[emitted] = law.get(emitted, Fraction(0)) + branch.probability
        waiting.extend(branch.passed_by)
        walked += 1
    return law


def decisions(text: Text, model: Block) -> Iterator[Question | Emitted]:
    """Yield the tree of a text's decisions: each question, then for each answer in turn what follows it.

    What follows an answer is the next question with what follows that one, or what the text emits.

    Parameters
    ----------
    text, model
        As in `walk`.

    Raises
    ------
    InputError
        As `walk`, but for the number of branches: whoever reads the tree says when it is too large.

    Examples
    --------
    >>> model = Block(Pair.from_weights([1, 2], [2, 1]), state=0, draft_length=1)
    >>> for node in decisions(lambda model, choose: Emitted((choose((1, 3)),), 0), model):
    ...     print(node)
    Question(kind=0, number=0, asked=((1, 3),), answers=(0, 1))
    Emitted(tokens=(0,), accepted=0)
    Emitted(tokens=(1,), accepted=0)
    """
    waiting: list[Script] = [()]
    while waiting:
        branch = _Noted(waiting.pop())
        emitted = branch.follow(text, model)
        yield from branch.questions
        yield emitted
        waiting.extend(script for script, _ in branch.passed_by)


def branches(text: Text, model: Block, *, probes: int = _PROBES, enough: int | None = None) -> int:
    """Return about how many branches a text has: the mean over probes of the product of its choices.

    For probes at random the estimate has no bias; the probes here are fixed, so that it is the same on every
    run. A thousand of them come within some ten per cent for a rule on a few tokens.

    Parameters
    ----------
    text, model
        As in `walk`.
    probes : int
        How many branches to run.
    enough : int or None
        Probes stop when no further one can bring the mean below this; it is then taken over those run.

    References
    ----------
    Knuth 1975, "Estimating the efficiency of backtrack programs", Mathematics of Computation 29.

    Examples
    --------
    >>> model = Block(Pair.from_weights([1, 2], [2, 1]), state=0, draft_length=1)
    >>> branches(lambda model, choose: Emitted((choose((1, 1)), choose((3, 4))), 0), model)
    4
    """
    total, run = 0, 0
    while run < probes and (enough is None or total < enough * probes):
        branch = _Branch((), Fraction(1), probe=run * 0x9E3779B97F4A7C15 % _WORD)
        branch.follow(text, model)
        total, run = total + branch.size, run + 1
    return -(-total // run)


def _refuse_above(most: int, text: Text, model: Block) -> None:
    about = branches(text, model, enough=most + 1)
    if about > most:
        raise TooLargeError(_too_many("about", about, most))


def _too_many(how: str, count: int, most: int) -> str:
    return (
        f"the exact law needs {how} {count:,} branches for one target call; at most {most:,} are walked: "
        "take a smaller vocabulary or draft_length, or simulate"
    )


Outcome = int | bool | tuple[int, int]
Script = tuple[Outcome, ...]
Options = list[tuple[Outcome, Fraction]]


class Question(NamedTuple):
    """One decision of a text.

    Parameters
    ----------
    kind : int
        `CHOICE`, `ALONG`, `COIN` or `RACE`.
    number : int
        How many decisions of its kind the call has asked for before; see `Words`.
    asked : tuple
        What the text asks with: (weights,), (weights, order), (numerator, denominator) or (q, r).
    answers : tuple
        The answers that have a probability.
    """

    kind: int
    number: int
    asked: tuple[Any, ...]
    answers: tuple[Outcome, ...]


class _Branch:
    """Answers a text's questions along one branch, and notes the branches that it passes by.

    Parameters
    ----------
    script : tuple
        Answers to the first questions; behind them the branch takes one of the possible answers.
    probability : Fraction
        Probability of the script, and after `follow` of the branch.
    probe : int or None
        Which answers to take behind the script, as digits in mixed radix, without noting what is passed by;
        None for the first answer each time.
    """

    def __init__(self, script: Script, probability: Fraction, probe: int | None = None) -> None:
        self.probability = probability
        self.passed_by: list[tuple[Script, Fraction]] = []
        self.size = 1
        self._script = list(script)
        self._planned = len(script)
        self._at = 0
        self._probe = probe

    def follow(self, text: Text, model: Block) -> Emitted:
        emitted = _finished(text(model, self), model)
        if self._at < self._planned:
            raise InputError(_FICKLE)
        return emitted

    def __call__(self, weights: Weights) -> int:
        return cast(int, self._answer(int, lambda: _choices(weights)))

    def along(self, weights: Weights, order: Sequence[int] | None = None) -> int:
        _check_order(weights, order)
        return self(weights)

    def coin(self, numerator: int | Fraction, denominator: int | Fraction = 1) -> bool:
        return cast(bool, self._answer(bool, lambda: _sides(numerator, denominator)))

    def race(self, q: Weights, r: Weights) -> tuple[int, int]:
        if len(q) > MOST_RACERS:
            raise TooLargeError(
                f"the exact law of a race has {len(q):,} tokens; at most {MOST_RACERS} are taken: take a "
                "smaller vocabulary, or simulate"
            )
        return cast(tuple[int, int], self._answer(tuple, lambda: _winners(tuple(q), tuple(r))))

    def _answer(self, kind: type, options: Callable[[], Options]) -> Outcome:
        if self._at < self._planned:
            outcome = self._script[self._at]
            if type(outcome) is not kind:
                raise InputError(_FICKLE)
        else:
            outcome = self._branch_off(options())
            self._script.append(outcome)
        self._at += 1
        if self._at > _LONGEST_BRANCH:
            raise InputError(f"a text asked more than {_LONGEST_BRANCH} questions in one call; does it end?")
        return outcome

    def _branch_off(self, options: Options) -> Outcome:
        self.size *= len(options)
        if self._probe is not None:
            self._probe, digit = divmod(self._probe, len(options))
            return options[digit][0]
        outcome, chance = options[0]
        if len(options) > 1:
            before, mass = tuple(self._script), self.probability
            self.passed_by.extend(((*before, other), mass * share) for other, share in reversed(options[1:]))
            self.probability = mass * chance
        return outcome


class _Noted(_Branch):
    """A branch that notes the questions behind its script."""

    def __init__(self, script: Script) -> None:
        super().__init__(script, Fraction(1))
        self.questions: list[Question] = []
        self._asked = [0, 0, 0]

    def __call__(self, weights: Weights) -> int:
        self._note(CHOICE, tuple(weights))
        return super().__call__(weights)

    def along(self, weights: Weights, order: Sequence[int] | None = None) -> int:
        self._note(ALONG, tuple(weights), None if order is None else tuple(order))
        return super().__call__(weights)

    def coin(self, numerator: int | Fraction, denominator: int | Fraction = 1) -> bool:
        self._note(COIN, numerator, denominator)
        return super().coin(numerator, denominator)

    def race(self, q: Weights, r: Weights) -> tuple[int, int]:
        self._note(RACE, tuple(q), tuple(r))
        return super().race(q, r)

    def _note(self, kind: int, *asked: object) -> None:
        counted = CHOICE if kind == ALONG else kind
        self._question = Question(kind, self._asked[counted], asked, ())
        self._asked[counted] += 1

    def _branch_off(self, options: Options) -> Outcome:
        answers = tuple(answer for answer, _ in options)
        self.questions.append(self._question._replace(answers=answers))
        return super()._branch_off(options)


_FICKLE = (
    "a text asked other questions after the same answers; it must depend on its model and on choose alone "
    "(no random module, no state kept between calls)"
)


def _choices(weights: Weights) -> Options:
    total = exact_total(weights)
    return [(index, Fraction(w) / total) for index, w in enumerate(weights) if w]


def _sides(numerator: int | Fraction, denominator: int | Fraction) -> Options:
    heads = _chance(numerator, denominator)
    return [(side, mass) for side, mass in ((True, heads), (False, 1 - heads)) if mass]


@lru_cache(64)
def _winners(q: tuple[int | Fraction, ...], r: tuple[int | Fraction, ...]) -> Options:
    """Return the winners of a race with their probabilities; kept, since a walk asks the same many times."""
    return list(race_law(q, r).items())


def _check_order(weights: Weights, order: Sequence[int] | None) -> None:
    """Raise `InputError` for an order that names an index twice, one that is none, or not all with weight."""
    if order is None:
        return
    named = set(order)
    if len(named) < len(order) or not named <= set(range(len(weights))):
        raise InputError(
            f"choose.along needs an order of different indices below {len(weights)}; got {order!r}"
        )
    if any(weight for index, weight in enumerate(weights) if index not in named):
        raise InputError("choose.along needs an order that names every index with weight")


def _chance(numerator: int | Fraction, denominator: int | Fraction) -> Fraction:
    """Return min(1, numerator / denominator)."""
    exact = all(isinstance(number, int | Fraction) for number in (numerator, denominator))
    if not exact or numerator < 0 or denominator <= 0:
        raise InputError(
            f"choose.coin needs an exact numerator >= 0 and denominator > 0; got {numerator}, {denominator}"
        )
    return Fraction(numerator) / denominator if numerator < denominator else Fraction(1)


def _finished(emitted: object, model: Block) -> Emitted:
    """Return what a text emitted, checked, and cut behind the end state."""
    if not isinstance(emitted, Emitted) or not emitted.tokens:
        raise InputError(f"a text must return Emitted(tokens, accepted) with a token; got {emitted!r}")
    tokens, accepted = tuple(emitted.tokens), emitted.accepted
    if not all(type(number) is int or isinstance(number, np.integer) for number in (*tokens, accepted)):
        raise InputError(f"a text must return whole numbers, of tokens and of drafts kept; got {emitted!r}")
    model.state_after(tokens)  # refuses what is no token
    if not 0 <= accepted <= min(model.draft_length, len(tokens)):
        raise InputError(
            f"a text accepted {accepted} of {model.draft_length} drafts and emitted {len(tokens)} tokens"
        )
    if model.pair.end is None:
        return Emitted(tokens, accepted)
    running = 1
    while running < len(tokens) and model.state_after(tokens[:running]) != model.pair.end:
        running += 1
    return Emitted(tokens[:running], min(accepted, running))
