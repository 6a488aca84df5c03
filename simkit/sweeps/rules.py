"""Rules side by side: tokens for each target call, at equal draft tokens verified, and the bound."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from simkit.errors import TooLargeError
from simkit.laws.pair import Pair
from simkit.rules.acceptance import expected_calls
from simkit.rules.block import block
from simkit.rules.bound import acceptance_bound, block_bound
from simkit.rules.chain import Chain
from simkit.rules.choose import Block, Text, branches
from simkit.rules.matching import shared_gumbel
from simkit.rules.multidraft import Tree, verified
from simkit.rules.registry import RULES, drafts_of, find_rule, find_text
from simkit.sampling.simulate import simulate

LENGTH = 64
"""Tokens of the decodes over which calls are counted."""

WALKED = 20_000
"""A call with more branches than this is simulated, not walked."""

_KERNEL_WORK, _REFERENCE_WORK, _MOST_TRIALS = 100_000_000, 400_000, 20_000

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Contender:
    """A rule in a comparison.

    Parameters
    ----------
    name : str
        What to call it.
    text_at : callable
        Number of drafts at a slot to the text.
    lossless : bool or None
        Whether it is; None where that is not known.
    proposal : str
        See `simkit.rules.registry.Entry`; empty for rules that draft one path.
    shape : tuple of int
        Drafts at a node by level, where the name sets them; empty where the budget does.
    """

    name: str
    text_at: Callable[[int], Text]
    lossless: bool | None = None
    proposal: str = ""
    shape: tuple[int, ...] = ()


@dataclass(frozen=True)
class Compared:
    """One rule with one shape of drafts.

    Parameters
    ----------
    rule : str
        Its name.
    lossless : bool or None
        Whether it is; None where that is not known.
    verified : int
        Draft tokens verified in one target call.
    drafts, draft_length : int
        Drafts at each slot n, and slots K.
    kept, kept_error : float
        Drafts kept in a call on average, and the standard error; 0 where exact.
    bound : float or None
        The most that a lossless rule can keep with these drafts: by optimal transport at one slot, by block
        verification on one path. None where that is not known: for several slots with several drafts, for
        pairs of more than one state, and where it has too many products.
    """

    rule: str
    lossless: bool | None
    verified: int
    drafts: int
    draft_length: int
    kept: float
    kept_error: float
    bound: float | None

    @property
    def tokens_per_call(self) -> float:
        """1 + drafts kept."""
        return 1.0 + self.kept

    def row(self) -> dict[str, object]:
        """Return all of it as plain data."""
        return {**asdict(self), "tokens_per_call": self.tokens_per_call}


def contender(name: str) -> Contender:
    """Return a registered rule, or a fault, as a contender.

    Parameters
    ----------
    name : str
        See `simkit.rules.registry.find_rule`.

    Examples
    --------
    >>> contender("with-replacement").text_at(3) == find_text("with-replacement:3")
    True
    """
    entry = find_rule(name)
    if entry.proposal and ":" not in name:
        return Contender(name, lambda drafts: find_text(f"{name}:{drafts}"), entry.lossless, entry.proposal)
    return of_text(name, find_text(name), entry.lossless)


def of_text(name: str, text: Text, lossless: bool | None = None) -> Contender:
    """Return a text as a contender, with the drafts that it shows to draw.

    Parameters
    ----------
    name : str
        What to call it.
    text : callable
        The rule.
    lossless : bool or None
        Whether it is; None where that is not known.

    Examples
    --------
    >>> of_text("mine", find_text("k-seq:4")).shape
    (4,)
    """
    proposal, shape = drafts_of(text)
    return Contender(name, lambda _: text, lossless, proposal, shape)


def everyone() -> list[Contender]:
    """Return all registered rules as contenders."""
    return [contender(name) for name in RULES]


def compare_rules(
    pair: Pair,
    contenders: Sequence[Contender],
    budgets: Sequence[int],
    *,
    seed: int = 0,
    progress: Progress | None = None,
) -> list[Compared]:
    """Return what each rule keeps at each number of verified tokens, in every even shape that fits it.

    A rule that drafts one path has K drafts for a budget of K. One with several drafts has n at one slot,
    and also the trees of n >= 2 at K >= 2 slots whose n + .. + n^K tokens meet the budget.

    Exact where the rule is a chain rule or has few branches, else from decodes that are drawn.

    Parameters
    ----------
    pair : Pair
        The laws.
    contenders : sequence of Contender
        The rules.
    budgets : sequence of int
        Draft tokens verified in one call.
    seed : int
        Seed of what is drawn.
    progress : callable or None
        Called with settings done and their number.

    Examples
    --------
    >>> rows = compare_rules(Pair.from_weights([1, 2], [2, 1]), [contender("block")], [1, 2])
    >>> [(row.draft_length, round(row.kept, 6), round(row.bound, 6)) for row in rows]
    [(1, 0.666667, 0.666667), (2, 1.222222, 1.222222)]
    """
    settings = [(one, *shape) for one in contenders for budget in budgets for shape in _shapes(one, budget)]
    rows: list[Compared] = []
    for one, drafts, slots in settings:
        text = one.text_at(drafts)
        kept, error = _kept(pair, text, drafts, slots, seed)
        rows.append(
            Compared(
                rule=one.name,
                lossless=one.lossless,
                verified=verified(one.shape or drafts, slots) if one.proposal else slots,
                drafts=drafts,
                draft_length=slots,
                kept=kept,
                kept_error=error,
                bound=_bound(pair, text, one.proposal, drafts, slots),
            )
        )
        if progress is not None:
            progress(len(rows), len(settings))
    return rows


def _shapes(one: Contender, budget: int) -> Iterator[tuple[int, int]]:
    """Yield (drafts at a slot, slots) with which a rule verifies exactly so many tokens."""
    if not one.proposal:
        yield 1, budget
        return
    if one.shape:
        levels = range(1, budget + 1)
        yield from ((one.shape[0], slots) for slots in levels if verified(one.shape, slots) == budget)
        return
    yield budget, 1
    yield from (
        (drafts, slots)
        for slots in range(2, budget)
        for drafts in range(2, budget)
        if verified(drafts, slots) == budget
    )


def _kept(pair: Pair, text: Text, drafts: int, slots: int, seed: int) -> tuple[float, float]:
    """Return the mean number of drafts that a call keeps, with its standard error."""
    try:
        if not isinstance(text, Chain):
            first = Block(pair, int(pair.initial[0]), slots)
            if branches(text, first, probes=100, enough=WALKED) > WALKED:
                raise TooLargeError("too many branches to walk")
        expected = expected_calls(pair, text, draft_length=slots, length=LENGTH)
        return expected.tokens_per_call - 1.0, 0.0
    except TooLargeError:
        fast = isinstance(text, Tree) or text in (block, shared_gumbel)
        work = _KERNEL_WORK if fast else _REFERENCE_WORK // drafts
        trials = min(max(8, work // (LENGTH * pair.vocabulary)), _MOST_TRIALS)
        backend = "numba" if fast else "reference"
        tally = simulate(
            pair, text, draft_length=slots, length=LENGTH, trials=trials, seed=seed, backend=backend
        )
        return tally.accepted_per_call.value, tally.accepted_per_call.standard_error


def _bound(pair: Pair, text: Text, proposal: str, drafts: int, slots: int) -> float | None:
    """Return the most that a lossless rule can keep; drafts of a text that is no chain rule come from q."""
    if pair.states > 1 or (proposal and slots > 1):
        return None
    if proposal:
        p, q = pair.target_row().probabilities, pair.draft_row().probabilities
        return acceptance_bound(p, q, drafts, proposal)
    if isinstance(text, Chain):
        pair = _as_drafted(pair, text)
    try:
        return float(block_bound(pair, draft_length=slots))
    except TooLargeError:
        return None


def _as_drafted(pair: Pair, text: Chain) -> Pair:
    """Return a pair of one state whose draft rows are those that a chain rule draws from, by slot."""
    p, q = pair.rows[np.repeat(pair.target, pair.slots)], pair.rows[pair.draft[0]]
    rows = np.concatenate([p[:1], text.rule(p, q).propose])
    return replace(pair, rows=rows, target=np.array([0]), draft=np.arange(1, len(rows))[None])
