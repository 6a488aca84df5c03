"""The acceptance that no lossless rule can exceed: one token from several drafts, and one path of drafts.

One token. A rule is a coupling of the set S of drafted tokens with y ~ p, and y is a kept draft when it lies
in S. The most that P(y in S) can be is a maximal flow from sets to tokens, so it is a minimal cut:

    min over sets H of tokens of p(H) + 1 - P(S lies in H).

One path. Any lossless rule keeps a path's first i drafts x_1 .. x_i with at most b_i = min(q_i, b_{i-1}
p(x_i)), where q_i is the probability that they are drafted and b_0 = 1; block verification reaches all of
them. See `block_bound`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from fractions import Fraction
from itertools import accumulate

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simkit.errors import InputError, TooLargeError, UnknownNameError
from simkit.laws.checks import whole_number
from simkit.laws.pair import Pair
from simkit.laws.rows import as_array, check_floats
from simkit.rules.chain import add
from simkit.rules.choose import Block, normalised
from simkit.rules.coupling import Weights, exact_total
from simkit.rules.tries import MOST_DRAFTS

Floats = NDArray[np.float64]
Sets = dict[frozenset[int], Fraction]

MOST_TOKENS = 16
"""Tokens whose sets are all gone through; 2**16 sets take some ten seconds."""

MOST_WORK = 5_000_000
"""Products of 64-bit numbers that `block_bound` makes at most, over all slots: some ten seconds."""

_SMALLEST = 1e-300
_EARLIEST, _LATEST = 1e-5, 40.0


def drafted_sets(q: Weights, drafts: int, how: str) -> Sets:
    """Return the exact law of the set of tokens that are drafted for one position.

    Parameters
    ----------
    q : sequence of int or Fraction, length V
        Draft weights of at most 16 tokens.
    drafts : int
        Drafts n, 1 to 64.
    how : str
        ``with-replacement``: n independent draws from q. ``without-replacement``: each draw is from q
        without the tokens drawn before. ``greedy``: the n - 1 most likely tokens, and one draw from q
        without them. ``top``: the n most likely tokens. Where fewer tokens have weight, those are drafted;
        of equally likely ones the lowest come first.

    Raises
    ------
    InputError, UnknownNameError
        For weights that are no exact law, more tokens or drafts, or another `how`.

    References
    ----------
    Hu et al. 2025 (arXiv 2502.18779), on draft sampling methods, and on greedy draft sampling.

    Examples
    --------
    >>> {tuple(sorted(S)): str(mass) for S, mass in drafted_sets([1, 1, 2], 2, "without-replacement").items()}
    {(0, 1): '1/6', (0, 2): '5/12', (1, 2): '5/12'}
    """
    law = _exact(q, "q")
    fixed, drawn = _fixed_and_drawn(how, drafts)
    likely = sorted((token for token, mass in enumerate(law) if mass), key=lambda token: -law[token])
    sets = {frozenset(likely[:fixed]): Fraction(1)}
    for _ in range(drawn):
        sets = _one_more(sets, law, again=how == "with-replacement")
    return sets


def optimal_acceptance(p: Weights, drafted: Mapping[frozenset[int], Fraction]) -> Fraction:
    """Return the most that any lossless rule can keep at one position, from all 2**V sets H: exact.

    Parameters
    ----------
    p : sequence of int or Fraction, length V
        Target weights of at most 16 tokens.
    drafted : mapping from frozenset of int to Fraction
        Law of the set of drafts, from `drafted_sets` or any other.

    Raises
    ------
    InputError
        For weights that are no exact law, more tokens, or a law of sets that is none.

    References
    ----------
    Sun et al. 2023 (arXiv 2310.15141), SpecTr, for the transport problem; Hu et al. 2025 (arXiv 2502.18779)
    for its dual as a choice of H.

    Examples
    --------
    >>> p, q = [5, 3, 2], [2, 3, 5]
    >>> for how in ("with-replacement", "without-replacement", "greedy", "top"):
    ...     print(how, *(optimal_acceptance(p, drafted_sets(q, n, how)) for n in (1, 2)))
    with-replacement 7/10 43/50
    without-replacement 7/10 69/70
    greedy 7/10 9/10
    top 1/5 1/2
    """
    law = _exact(p, "p")
    exact_total(tuple(drafted.values()))
    tokens = frozenset(range(len(law)))
    if sum(drafted.values()) != 1 or not all(drawn <= tokens for drawn in drafted):
        raise InputError(
            f"drafted needs sets of the tokens 0 to {len(law) - 1}, with masses that sum to 1; "
            "drafted_sets makes such laws"
        )
    emitted = {frozenset({token}): mass for token, mass in enumerate(law)}
    cut: Fraction = (_inside(emitted, len(law)) + 1 - _inside(drafted, len(law))).min()
    return cut


def acceptance_bound(p: ArrayLike, q: ArrayLike, drafts: int, how: str) -> float:
    """Return the most that any lossless rule can keep at one position, at any vocabulary, to within 1e-11.

    A best H holds the tokens that are drafted for certain and, of the others in the order of p/q, all up to
    some point. To see it, let Q(H) be the probability that all draws lie in H, and a in H, b outside. Where H
    is best, taking a out and b in does not help: p(a) <= Q(H) - Q(H - a) and p(b) >= Q(H + b) - Q(H). So with

        (Q(H + b) - Q(H)) / q(b) >= (Q(H) - Q(H - a)) / q(a)

    no token left out has a lower p/q than one taken, and one with the same may be taken too. With
    replacement this holds as q(H)^n is convex in q(H). Without, give each token an exponential clock with
    rate q(x): tokens are drawn as their clocks ring, and Q(H) is the probability that n clocks in H ring
    before any outside. Let B be the time of ring n - 1 among the others of H, and w the rate outside of
    H + b. Both sides have the same part in which the token in question rings after B. What remains is, given
    B, at least e^{-wB} (1 - e^{-q(b)B}) / q(b) on the left, where a may ring before B or after it, and
    e^{-wB} e^{-q(b)B} (1 - e^{-q(a)B}) / q(a) on the right; B e^{-q(b)B} e^{-wB} lies between the two.

    Parameters
    ----------
    p, q : array_like, shape (V,)
        Target and draft weights, each against its own total.
    drafts : int
        Drafts n, 1 to 64.
    how : str
        See `drafted_sets`.

    Raises
    ------
    InputError, UnknownNameError
        For rows that are no laws, of different lengths, or with a draft probability between 0 and 1e-300, for
        another number of drafts, or another `how`.

    References
    ----------
    Hu et al. 2025 (arXiv 2502.18779), where such Q are called q-convex; Efraimidis, Spirakis 2006,
    Information Processing Letters 97, for the clocks.

    Examples
    --------
    >>> p, q = [5, 3, 2], [2, 3, 5]
    >>> for how in ("with-replacement", "without-replacement", "greedy", "top"):
    ...     print(how, round(acceptance_bound(p, q, 2, how), 9))
    with-replacement 0.86
    without-replacement 0.985714286
    greedy 0.9
    top 0.5
    """
    target, draft = _floats(p, "p"), _floats(q, "q")
    if len(target) != len(draft):
        raise InputError(f"p and q need the same tokens; they have {len(target)} and {len(draft)}")
    if (draft[draft > 0] < _SMALLEST).any():
        raise InputError(f"q has a probability between 0 and {_SMALLEST}; set it to 0")
    fixed, drawn = _fixed_and_drawn(how, drafts)
    likely = np.argsort(-draft, kind="stable")[: np.count_nonzero(draft)]
    top, others = likely[:fixed], likely[fixed:]
    order = others[np.argsort(target[others] / draft[others], kind="stable")]
    rates = draft[order] / draft[order].sum()
    if how == "with-replacement":
        inside = _prefix_sums(rates) ** drawn
    else:
        inside = _first_inside(rates, min(drawn, len(order)))
    cut = (_prefix_sums(target[order]) + 1.0 - inside).min()
    return float(np.clip(target[top].sum() + cut, 0.0, 1.0))


def block_bound(pair: Pair, *, draft_length: int, state: int | None = None) -> Fraction:
    """Return the most drafts of one path that a target call of any lossless rule keeps, on average: exact.

    The rule sees K drafts, x_i from q after x_1 .. x_{i-1}, and emits the first of them, one token of its own
    and what the next call makes of it. Let a_i be the probability that x_1 .. x_i are drafted and kept. Then
    a_i <= q_i, the probability that they are drafted. The output begins with x_1 .. x_{i-1}, but not as kept
    drafts, with p_{i-1} - a_{i-1}, and goes on from there with p; so x_1 .. x_i come out with p_i in all only
    if a_i <= a_{i-1} p(x_i). Hence a_i <= q_i w_i with w_i = min(1, w_{i-1} p(x_i) / q(x_i)) and w_0 = 1, and
    the bound is the sum over i of the mean of w_i. Block verification keeps x_1 .. x_i with w_i.

    Drafts that lead to the same state with the same w are merged. The last slot needs no products: the mean
    of its w is sum(min(w p, q)).

    Parameters
    ----------
    pair : Pair
        The laws.
    draft_length : int
        K drafts for the call.
    state : int or None
        State in which the call begins; None for the mean over the pair's requests.

    Raises
    ------
    InputError
        For a state that the pair does not have or that ends the text, or some ten seconds of products.

    References
    ----------
    Sun et al. 2024 (arXiv 2403.10444): block verification is optimal; p_i there is w_i here.

    Examples
    --------
    >>> pair = Pair.from_weights([1, 2], [2, 1])
    >>> [str(block_bound(pair, draft_length=K)) for K in (1, 2)]
    ['2/3', '11/9']
    """
    draft_length = Block(pair, 0, draft_length).draft_length
    if state is not None:
        whole_number(state, "state", 0, pair.states - 1)
    starts = pair.initial.tolist() if state is None else [state]
    if pair.end in starts:
        raise InputError(f"state {pair.end} ends the text, so no call begins there; give state=")
    running: dict[tuple[int, Fraction], Fraction] = {}
    for start in starts:
        add(running, (start, Fraction(1)), Fraction(1, len(starts)))
    kept, work = Fraction(0), 0
    for slot in range(draft_length):
        here = {state: _Ratios(pair, state, slot) for state in {state for state, _ in running}}
        kept += sum(mass * here[state].mean(w) for (state, w), mass in running.items())
        if slot + 1 < draft_length:
            work += _work(running, here)
            if work > MOST_WORK:
                raise TooLargeError(
                    f"the bound needs more than {work:,} products of 64 bits; at most {MOST_WORK:,} are "
                    "made: take a smaller vocabulary or draft_length"
                )
            running = _spread(running, here)
            running = {key: mass for key, mass in running.items() if key[0] != pair.end}
    return kept


class _Ratios:
    """The ratios p/q that a state's draft can have in a slot, with their probabilities under q."""

    def __init__(self, pair: Pair, state: int, slot: int) -> None:
        self.moves: dict[tuple[int, Fraction], Fraction] = {}
        following = np.broadcast_to(pair.next_state[state], pair.vocabulary).tolist()
        p, q = pair.target_row(state).fractions, pair.draft_row(state, slot).fractions
        for after, a, b in zip(following, p, q, strict=True):
            if a and b:
                add(self.moves, (after, a / b), b)
        by_ratio = sorted((ratio, mass) for (_, ratio), mass in self.moves.items())
        self._ratio = [ratio for ratio, _ in by_ratio]
        self._below = list(accumulate((r * mass for r, mass in by_ratio), initial=Fraction(0)))
        self._above = list(accumulate((mass for _, mass in reversed(by_ratio)), initial=Fraction(0)))[::-1]

    def mean(self, w: Fraction) -> Fraction:
        """Return the mean of min(1, w p/q), which is sum(min(w p, q))."""
        at = bisect_right(self._ratio, 1 / w)
        return w * self._below[at] + self._above[at]


def _work(running: dict[tuple[int, Fraction], Fraction], here: dict[int, _Ratios]) -> int:
    """Return how many products the next slot takes, each counted by the 64-bit words of its numbers."""
    bits = max((w.denominator.bit_length() for _, w in running), default=0)
    return sum(len(here[state].moves) for state, _ in running) * (1 + bits // 64)


def _spread(
    running: dict[tuple[int, Fraction], Fraction], here: dict[int, _Ratios]
) -> dict[tuple[int, Fraction], Fraction]:
    """Return the mass on each (state, w) one draft later."""
    following: dict[tuple[int, Fraction], Fraction] = {}
    for (state, w), mass in running.items():
        for (after, ratio), share in here[state].moves.items():
            add(following, (after, min(Fraction(1), w * ratio)), mass * share)
    return following


def _exact(weights: Weights, name: str) -> tuple[Fraction, ...]:
    if len(weights) > MOST_TOKENS:
        raise InputError(
            f"{name} has {len(weights)} tokens; all sets of at most {MOST_TOKENS} are gone through: "
            "take acceptance_bound"
        )
    exact_total(weights)
    return normalised(weights)


def _fixed_and_drawn(how: str, drafts: int) -> tuple[int, int]:
    """Return how many of the most likely tokens are drafted for certain, and how many are drawn."""
    n = whole_number(drafts, "drafts", 1, MOST_DRAFTS)
    fixed = {"with-replacement": 0, "without-replacement": 0, "greedy": n - 1, "top": n}
    if how not in fixed:
        raise UnknownNameError("proposal", how, fixed)
    return fixed[how], n - fixed[how]


def _one_more(sets: Sets, law: tuple[Fraction, ...], again: bool) -> Sets:
    """Return the law of the set after one more draw; without `again` it is a token not yet drawn."""
    more: Sets = {}
    for drawn, mass in sets.items():
        left = {token: share for token, share in enumerate(law) if share and (again or token not in drawn)}
        if not left:
            add(more, drawn, mass)
        total = sum(left.values())
        for token, share in left.items():
            add(more, drawn | {token}, mass * share / total)
    return more


def _inside(law: Mapping[frozenset[int], Fraction], vocabulary: int) -> NDArray[np.object_]:
    """Return P(the set lies in H), for H by its V memberships: shape (2, ..., 2)."""
    inside = np.full((2,) * vocabulary, Fraction(0), dtype=object)
    for drawn, mass in law.items():
        inside[tuple(int(token in drawn) for token in range(vocabulary))] += mass
    for token in range(vocabulary):
        inside = inside.cumsum(axis=token)
    return inside


def _floats(values: ArrayLike, name: str) -> Floats:
    weights = as_array(values, name)
    check_floats(weights, name)
    if weights.ndim != 1 or not weights.any():
        raise InputError(f"{name} must be one row with some weight; it has shape {weights.shape}")
    share = weights / weights.max()  # a sum of large weights could overflow
    law: Floats = share / share.sum(dtype=np.float64)
    return law


def _prefix_sums(values: Floats) -> Floats:
    return np.concatenate([[0.0], np.cumsum(values)])


def _first_inside(rates: Floats, drawn: int) -> Floats:
    """Return P(the first draws without replacement are all among the first k tokens), for k = 0 .. V.

    It is the integral over t of R e^{-Rt} P(so many of the k clocks have rung by t), R the rate of the rest:
    by the trapezium rule in log t, whose error falls exponentially as the spacing gets small beside the width
    of the integrand, about 1 / sqrt(draws). What is cut off on the left is below t^3, on the right e^{-Rt}.
    """
    if drawn < 2:
        return _prefix_sums(rates) ** drawn
    spacing = 0.6 / np.sqrt(max(drawn, 9))
    t = np.exp(np.arange(np.log(_EARLIEST), np.log(_LATEST / rates.min()) + spacing, spacing))
    rung = np.zeros((drawn + 1, len(t)))  # P(so many clocks have rung by t); the last row holds all above
    rung[0] = 1.0
    rest = np.cumsum(rates[::-1])[::-1]
    inside = np.zeros(len(rates) + 1)
    inside[-1] = 1.0
    for k in range(1, len(rates)):
        rings = rung[:-1] * -np.expm1(-rates[k - 1] * t)
        rung[:-1] -= rings
        rung[1:] += rings
        inside[k] = spacing * rest[k] * (t * np.exp(-rest[k] * t)) @ rung[-1]
    return inside
