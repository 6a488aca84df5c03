"""Bounds on acceptance: against linear programmes, against each other, and against every rule there is."""

from __future__ import annotations

import re
from fractions import Fraction
from itertools import combinations, permutations, product
from math import comb, prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from simkit.errors import InputError, UnknownNameError
from simkit.laws.pair import Pair
from simkit.laws.synthetic import corner_case, near_copy, zipf
from simkit.rules.bound import acceptance_bound, block_bound, drafted_sets, optimal_acceptance
from simkit.rules.choose import Block, normalised
from simkit.rules.exact import exact_accepted
from simkit.rules.registry import RULES

DRAWN = ["with-replacement", "without-replacement"]
PROPOSALS = [*DRAWN, "greedy", "top"]
P, Q = [5, 3, 2], [2, 3, 5]
LEANING = ([25, 45, 30], [60, 20, 20])
LOSSLESS = [name for name, entry in RULES.items() if entry.lossless]
SEVERAL = [name for name in LOSSLESS if RULES[name].proposal]
REACHED = ["greedy-draft", "target-tree"]


def row(V: int, most: int = 6) -> st.SearchStrategy:
    """Draw weights 0 to `most` of V tokens, as the digits of a number: two rows are then seldom alike."""
    base = most + 1
    return st.integers(1, base**V - 1).map(lambda number: [number // base**k % base for k in range(V)])


def rows(least: int = 2, most: int = 4) -> st.SearchStrategy:
    return st.integers(least, most).flatmap(lambda V: st.tuples(row(V), row(V)))


def overlap(p, q) -> Fraction:
    return sum(map(min, normalised(p), normalised(q)), Fraction(0))


def optimum(p, q, n: int, how: str) -> Fraction:
    return optimal_acceptance(p, drafted_sets(q, n, how))


def ordered(q, n: int, how: str) -> dict[tuple[int, ...], Fraction]:
    """Return the law of the drafts in the order of drawing, each proposal from its own definition."""
    q = normalised(q)
    with_weight = [token for token, mass in enumerate(q) if mass]
    best = sorted(with_weight, key=lambda token: (-q[token], token))[:n]
    if how == "with-replacement":
        return {x: prod(q[t] for t in x) for x in product(range(len(q)), repeat=n)}
    if how == "without-replacement":
        return {
            x: prod(q[t] / (1 - sum(q[s] for s in x[:i])) for i, t in enumerate(x))
            for x in permutations(with_weight, min(n, len(with_weight)))
        }
    if how == "top" or n > len(with_weight):
        return {tuple(best): Fraction(1)}
    top = tuple(best[: n - 1])
    return {
        (*top, t): q[t] / sum(q[s] for s in with_weight if s not in top) for t in set(with_weight) - set(top)
    }


def programme(gain: np.ndarray, equal: list[np.ndarray], to: list[float]) -> float:
    """Return the largest gain of a plan with no negative entry that meets some equations."""
    solved = linprog(-gain.ravel(), A_eq=np.array([row.ravel() for row in equal]), b_eq=to)
    assert solved.status == 0, solved.message
    return -solved.fun


def transport(p, drafts: dict[tuple[int, ...], Fraction]) -> float:
    """Return the most that couplings of the drafts with y ~ p keep: the transport problem, as it stands."""
    p = normalised(p)
    shape = (len(drafts), len(p))
    gain = np.array([[float(y in x) for y in range(len(p))] for x in drafts])
    equal, to = [], []
    for i, mass in enumerate(drafts.values()):
        equal.append(np.zeros(shape))
        equal[-1][i] = 1.0
        to.append(float(mass))
    for y, mass in enumerate(p):
        equal.append(np.zeros(shape))
        equal[-1][:, y] = 1.0
        to.append(float(mass))
    return programme(gain, equal, to)


# One position


@pytest.mark.parametrize("how", PROPOSALS)
@settings(max_examples=30)
@given(laws=rows(), n=st.integers(1, 3))
def test_the_bound_solves_the_transport_problem(how, laws, n):
    p, q = laws
    solved = transport(p, ordered(q, n, how))
    assert float(optimum(p, q, n, how)) == pytest.approx(solved, abs=1e-9)
    assert acceptance_bound(p, q, n, how) == pytest.approx(solved, abs=1e-9)


@settings(max_examples=30)
@given(p=row(3), joint=row(9))
def test_drafts_that_depend_on_each_other_are_bounded_too(p, joint):
    drafts = dict(zip(product(range(3), repeat=2), normalised(joint), strict=True))
    drafted: dict[frozenset[int], Fraction] = {}
    for x, mass in drafts.items():
        drafted[frozenset(x)] = drafted.get(frozenset(x), Fraction(0)) + mass
    assert float(optimal_acceptance(p, drafted)) == pytest.approx(transport(p, drafts), abs=1e-9)


def test_the_bound_depends_on_how_drafts_are_drawn_together():
    # Each draft alone is uniform on two tokens. Drawn to differ, one of them is always the target's; drawn
    # apart, both are token 0 with 1/4, and then p can emit it with 1/4 but not with 1/8.
    half = Fraction(1, 2)
    alike, apart = {frozenset({0}): half, frozenset({1}): half}, {frozenset({0, 1}): Fraction(1)}
    assert optimal_acceptance([1, 3], alike) == Fraction(3, 4)  # 1/4 + 1/2
    assert optimal_acceptance([1, 3], apart) == 1
    assert optimum([1, 3], [1, 1], 2, "with-replacement") == 1
    assert optimum([1, 7], [1, 1], 2, "with-replacement") == Fraction(7, 8)  # 1/8 + 1 - 1/4


@pytest.mark.parametrize("how", ["with-replacement", "without-replacement", "greedy"])
@given(laws=rows(1, 6))
def test_of_one_draft_the_overlap_can_be_kept(how, laws):
    p, q = laws
    assert optimum(p, q, 1, how) == overlap(p, q)
    assert acceptance_bound(p, q, 1, how) == pytest.approx(float(overlap(p, q)), abs=1e-14)


@given(laws=rows(1, 6), n=st.integers(1, 4))
def test_greedy_and_top_have_closed_forms(laws, n):
    p, q = (normalised(weights) for weights in laws)
    ranked = sorted((t for t, mass in enumerate(q) if mass), key=lambda t: (-q[t], t))
    others = set(ranked[n - 1 :])
    left = sum(q[t] for t in others)
    greedy = sum(p[t] for t in ranked[: n - 1]) + sum(min(p[t], q[t] / left) for t in others)
    assert optimum(p, q, n, "greedy") == greedy
    assert optimum(p, q, n, "top") == sum(p[t] for t in ranked[:n])


@settings(max_examples=60)
@given(laws=rows(2, 5), n=st.integers(1, 3))
def test_another_draft_never_lowers_the_bound_and_a_different_one_is_no_worse(laws, n):
    p, q = laws
    few, many = ({how: optimum(p, q, k, how) for how in PROPOSALS} for k in (n, n + 1))
    assert all(few[how] <= many[how] for how in PROPOSALS)
    # The first n draws with replacement are among those that go on until n tokens differ.
    assert few["with-replacement"] <= few["without-replacement"]


def test_two_drafts_by_hand():
    # H = {1, 2} has p(H) = 1/2. Both drafts lie in it with (8/10)^2, or with 3/10 * 5/7 + 5/10 * 3/5 = 18/35.
    assert optimum(P, Q, 2, "with-replacement") == Fraction(1, 2) + 1 - Fraction(64, 100)
    assert optimum(P, Q, 2, "without-replacement") == Fraction(1, 2) + 1 - Fraction(18, 35)
    # Token 2 is drafted for certain, the other with q' = (2/5, 3/5).
    assert optimum(P, Q, 2, "greedy") == Fraction(1, 5) + Fraction(2, 5) + Fraction(3, 10)
    assert optimum(P, Q, 2, "top") == Fraction(1, 5) + Fraction(3, 10)


def lies_in(drafted, H) -> Fraction:
    return sum((mass for drawn, mass in drafted.items() if drawn <= set(H)), Fraction(0))


def best_prefix(p, drafted, order) -> Fraction:
    p = normalised(p)
    prefixes = [order[:k] for k in range(len(order) + 1)]
    return min(sum((p[t] for t in H), Fraction(1)) - lies_in(drafted, H) for H in prefixes)


def by_ratio(p, q) -> list[int]:
    p, q = normalised(p), normalised(q)
    return sorted((t for t in range(len(q)) if q[t]), key=lambda t: p[t] / q[t])


@pytest.mark.parametrize("how", DRAWN)
@given(laws=rows(2, 6), n=st.integers(1, 4))
def test_no_set_is_better_than_the_first_tokens_by_ratio(how, laws, n):
    p, q = laws
    drafted = drafted_sets(q, n, how)
    assert best_prefix(p, drafted, by_ratio(p, q)) == optimal_acceptance(p, drafted)


@pytest.mark.parametrize(
    ("how", "both"), [("with-replacement", Fraction(9, 25)), ("without-replacement", Fraction(49, 195))]
)
def test_the_first_tokens_by_the_drafts_law_are_not_enough(how, both):
    # The best H is {1, 2}; both drafts lie in it with (3/5)^2, or 7/20 * 5/13 + 1/4 * 7/15.
    p, q = [80, 1, 1, 18], [30, 35, 25, 10]
    drafted = drafted_sets(q, 2, how)
    assert optimal_acceptance(p, drafted) == Fraction(2, 100) + 1 - both
    assert best_prefix(p, drafted, [1, 0, 2, 3]) > optimal_acceptance(p, drafted)


def is_convex(q, drafted) -> bool:
    """Whether a further token adds the more per unit of q, the more tokens are there."""
    tokens = [t for t in range(len(q)) if q[t]]
    for a, b in permutations(tokens, 2):
        rest = [t for t in tokens if t not in (a, b)]
        for K in (set(K) for size in range(len(rest) + 1) for K in combinations(rest, size)):
            first = lies_in(drafted, K | {a}) - lies_in(drafted, K)
            if (lies_in(drafted, K | {a, b}) - lies_in(drafted, K | {a})) * q[a] < first * q[b]:
                return False
    return True


@pytest.mark.parametrize("how", DRAWN)
@settings(max_examples=40)
@given(q=st.integers(2, 5).flatmap(row), n=st.integers(1, 4))
def test_what_lies_inside_is_convex_in_the_drafts_law(how, q, n):
    assert is_convex(normalised(q), drafted_sets(q, n, how))


def test_it_is_not_where_some_tokens_are_drafted_for_certain():
    assert not is_convex(normalised([4, 3, 2, 1]), drafted_sets([4, 3, 2, 1], 2, "top"))


@pytest.mark.parametrize("how", PROPOSALS)
@settings(max_examples=60)
@given(data=st.data(), V=st.integers(1, 6), n=st.integers(1, 6))
def test_the_dual_in_floats_is_the_exact_one(how, data, V, n):
    # Draft probabilities from 1 down to 1e-12: clocks that ring long after each other.
    p = data.draw(row(V))
    q = data.draw(st.lists(st.sampled_from([0, *(10**k for k in range(0, 13, 2))]), min_size=V, max_size=V))
    q = q if any(q) else [1] * V
    assert acceptance_bound(p, q, n, how) == pytest.approx(float(optimum(p, q, n, how)), abs=1e-11)


def zipf_pair(V: int) -> tuple[np.ndarray, np.ndarray]:
    p = zipf(V)
    return p.probabilities, near_copy(p, 0.7).probabilities[::-1]


@pytest.mark.parametrize("n", [2, 5])
def test_with_replacement_all_sets_of_2000_tokens_are_beaten(n):
    # -x^n is the least of its tangents (n - 1) c^n - n c^(n-1) x, and under a tangent the best H is taken
    # token by token. So the bound is a minimum over c that no order of tokens enters; c is zoomed in on.
    p, q = zipf_pair(2_000)

    def under_tangent(c: np.ndarray) -> np.ndarray:
        gains = np.array([np.minimum(p - n * x ** (n - 1) * q, 0.0).sum() for x in c])
        return 1.0 + (n - 1) * c**n + gains

    low, high = 0.0, 1.0
    for _ in range(3):
        c = np.linspace(low, high, 2_001)
        found = under_tangent(c)
        low, high = c[max(found.argmin() - 1, 0)], c[min(found.argmin() + 1, len(c) - 1)]
    bound = acceptance_bound(p, q, n, "with-replacement")
    assert 0.1 < bound < 0.9
    assert bound == pytest.approx(found.min(), abs=1e-9)


def test_two_draws_without_replacement_have_a_closed_form_at_32_000_tokens():
    # P(both in H) is the sum over x in H of q(x) (q(H) - q(x)) / (1 - q(x)).
    p, q = zipf_pair(32_000)
    order = np.argsort(p / q)
    cost, mass = np.cumsum(p[order]), np.cumsum(q[order])
    first, own = np.cumsum((q / (1 - q))[order]), np.cumsum((q * q / (1 - q))[order])
    expected = min(1.0, (cost + 1 - (mass * first - own)).min())
    bound = acceptance_bound(p, q, 2, "without-replacement")
    assert 0.1 < bound < 0.9
    assert bound == pytest.approx(expected, abs=1e-11)
    assert bound > acceptance_bound(p, q, 2, "with-replacement") + 1e-6


@pytest.mark.parametrize("n", [2, 8, 9, 64])
def test_draws_without_replacement_from_a_uniform_law_are_hypergeometric(n):
    V = 2_000
    p = zipf(V, exponent=3.0).probabilities
    cost = np.concatenate([[0.0], np.cumsum(np.sort(p))])
    inside = np.array([comb(k, n) / comb(V, n) for k in range(V + 1)])
    expected = (cost + 1 - inside).min()
    assert 0.0 < expected < 0.9
    assert acceptance_bound(p, np.ones(V), n, "without-replacement") == pytest.approx(expected, abs=1e-12)


# Rules at one position


def kept(laws, rule: str) -> Fraction:
    return exact_accepted(Pair.from_weights(*laws), rule, draft_length=1)[1]


@pytest.mark.parametrize("rule", sorted({*LOSSLESS} - {*SEVERAL}))
@settings(max_examples=40)
@given(laws=rows(2, 4))
def test_no_lossless_rule_keeps_more_than_the_bound(rule, laws):
    assert kept(laws, rule) <= optimum(*laws, 1, "top" if rule == "argmax-draft" else "with-replacement")


@pytest.mark.parametrize("rule", SEVERAL)
@settings(max_examples=30)
@given(laws=rows(2, 4), n=st.integers(1, 3))
def test_no_rule_on_several_drafts_does_and_two_reach_it(rule, laws, n):
    found, bound = kept(laws, f"{rule}:{n}"), optimum(*laws, n, RULES[rule].proposal)
    assert found == bound if rule in REACHED else found <= bound


def test_a_lossy_rule_keeps_more():
    assert kept((P, Q), "lenience") == Fraction(9, 10)  # sum(min(2p, q))
    assert optimum(P, Q, 1, "with-replacement") == Fraction(7, 10)


def test_recursive_rejection_does_not_reach_it():
    # Token 2 is refused with 3/10, and the residual has token 0 alone: q gives it 2/10, without token 2 2/5.
    for rule, share in (("with-replacement", "0.76"), ("without-replacement", "0.82")):
        assert kept((P, Q), f"{rule}:2") == Fraction(share) < optimum(P, Q, 2, rule)


# One path


@st.composite
def pairs(draw: st.DrawFn) -> Pair:
    """Draw an automaton of up to three tokens, states, requests and draft slots, with or without an end."""
    V, S, slots = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.sampled_from([1, 3]))
    table = [draw(row(V, 4)) for _ in range(draw(st.integers(1, 5)))]
    end = draw(st.sampled_from([None, S - 1])) if S > 1 else None

    def numbers(below: int, *shape: int) -> np.ndarray:
        size = int(np.prod(shape))
        return np.array(draw(st.lists(st.integers(0, below - 1), min_size=size, max_size=size))).reshape(
            shape
        )

    return Pair(
        rows=np.array(table),
        target=numbers(len(table), S),
        draft=numbers(len(table), S, slots),
        next_state=numbers(S, S, draw(st.sampled_from([1, V]))),
        initial=numbers(S if end is None else end, draw(st.integers(1, 2))),
        end=end,
    )


def mean(law: list[Fraction]) -> Fraction:
    return sum((k * mass for k, mass in enumerate(law)), Fraction(0))


ONE_PATH = sorted({*LOSSLESS} - {*SEVERAL, "argmax-draft"})


@settings(max_examples=100)
@given(pair=pairs(), K=st.integers(1, 3))
def test_block_verification_reaches_the_bound_and_no_lossless_rule_is_above(pair, K):
    bound = block_bound(pair, draft_length=K)
    drafts = {rule: mean(exact_accepted(pair, rule, draft_length=K)) for rule in ONE_PATH}
    assert drafts["block"] == bound
    assert all(by_rule <= bound for by_rule in drafts.values())


@pytest.mark.parametrize(
    ("weights", "K", "by_token", "bound"),
    [
        (([1, 2], [2, 1]), 2, "10/9", "11/9"),  # w_1 = 1/2, 1 with 2/3, 1/3; w_2 = 1/4, 1, 1/2, 1
        ((P, Q), 2, "1.19", "1.25"),
        ((P, Q), 3, "1.533", "1.695"),
        (LEANING, 2, "1.0725", "1.16"),
        (LEANING, 3, "1.347125", "1.567875"),
    ],
)
def test_the_known_bounds(weights, K, by_token, bound):
    pair = Pair.from_weights(*weights)
    assert block_bound(pair, draft_length=K) == Fraction(bound)
    # The token rule keeps i drafts with the overlap's i-th power.
    assert sum(overlap(*weights) ** i for i in range(1, K + 1)) == Fraction(by_token) < Fraction(bound)


def over_all_rules(model: Block) -> float:
    """Return the most drafts that a lossless rule keeps on average, as a linear programme over all rules.

    A rule says for each path x of K drafts how many of them it keeps, and which token it emits next; what
    comes then is the target's. The first K + 1 tokens must have the target's law.
    """
    V, K = model.pair.vocabulary, model.draft_length
    paths, outputs = list(product(range(V), repeat=K)), list(product(range(V), repeat=K + 1))

    def target(z: tuple[int, ...], after: int) -> float:
        return prod(float(model.p(z[:j])[z[j]]) for j in range(after, len(z)))

    shape = (len(paths), K + 1, V)
    equal, to = [], []
    for i, x in enumerate(paths):
        equal.append(np.zeros(shape))
        equal[-1][i] = 1.0
        to.append(prod(float(model.q(x[:j], j)[x[j]]) for j in range(K)))
    for z in outputs:
        equal.append(np.zeros(shape))
        for (i, x), k in product(enumerate(paths), range(K + 1)):
            if x[:k] == z[:k]:
                equal[-1][i, k, z[k]] = target(z, k + 1)
        to.append(target(z, 0))
    gain = np.broadcast_to(np.arange(K + 1.0)[:, None], shape)
    return programme(gain, equal, to)


@pytest.mark.parametrize("K", [2, 3])
@settings(max_examples=20)
@given(weights=st.tuples(*[st.lists(row(2), min_size=3, max_size=3)] * 2))
def test_no_rule_at_all_is_above_the_bound(K, weights):
    # Rows that differ by position; block verification is one of the rules, so the programme is not below.
    pair = Pair.from_weights(*weights)
    assert over_all_rules(Block(pair, 0, K)) == pytest.approx(
        float(block_bound(pair, draft_length=K)), abs=1e-9
    )


@pytest.mark.parametrize("name", ["draft-by-slot", "partial-overlap"])
def test_no_rule_at_all_is_on_more_tokens_either(name):
    pair = corner_case(name)
    expected = float(block_bound(pair, draft_length=2))
    assert over_all_rules(Block(pair, 0, 2)) == pytest.approx(expected, abs=1e-9)


def test_the_bound_is_taken_at_a_state_or_over_the_requests():
    pair = corner_case("requests")
    each = [block_bound(pair, draft_length=2, state=int(state)) for state in pair.initial]
    assert block_bound(pair, draft_length=2) == sum(each) / len(each)
    assert len(set(each)) > 1


def test_two_drafts_at_a_large_vocabulary():
    p, q = zipf(1_500), near_copy(zipf(1_500), 0.4)
    pair = Pair.from_weights(p.weights, q.weights)
    assert block_bound(pair, draft_length=1) == p.overlap(q)
    a, b = p.probabilities, q.probabilities
    first = np.minimum(1.0, a / b)
    second = np.minimum(1.0, first[:, None] * (a / b))
    expected = b @ first + b @ second @ b
    assert float(block_bound(pair, draft_length=2)) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (
            lambda: optimal_acceptance([1] * 17, {}),
            "p has 17 tokens; all sets of at most 16 are gone through",
        ),
        (lambda: drafted_sets([1] * 17, 1, "top"), "take acceptance_bound"),
        (lambda: drafted_sets([0.5, 0.5], 1, "top"), "as ints or Fractions"),
        (lambda: drafted_sets(Q, 0, "top"), "drafts=0; it needs an integer from 1 to 64"),
        (lambda: optimal_acceptance(P, {frozenset({0}): Fraction(1, 2)}), "masses that sum to 1"),
        (lambda: optimal_acceptance(P, {frozenset({3}): Fraction(1)}), "tokens 0 to 2"),
        (
            lambda: optimal_acceptance(P, {frozenset({0}): Fraction(2), frozenset({1}): Fraction(-1)}),
            "weights >= 0",
        ),
        (lambda: acceptance_bound(P, [1, 2], 1, "top"), "same tokens; they have 3 and 2"),
        (
            lambda: acceptance_bound([P], [Q], 1, "top"),
            "p must be one row with some weight; it has shape (1, 3)",
        ),
        (lambda: acceptance_bound(P, [0, 0, 0], 1, "top"), "q must be one row with some weight"),
        (lambda: acceptance_bound(P, [1, np.nan, 0], 1, "top"), "q has 1 NaN entries"),
        (lambda: acceptance_bound(P, [1, 1e-310, 0], 1, "top"), "between 0 and 1e-300; set it to 0"),
        (lambda: acceptance_bound(P, Q, 65, "top"), "drafts=65"),
        (lambda: block_bound(Pair.from_weights(P, Q), draft_length=0), "draft_length=0"),
        (lambda: block_bound(Pair.from_weights(P, Q), draft_length=1, state=1), "state=1"),
        (lambda: block_bound(corner_case("automaton"), draft_length=1, state=2), "ends the text"),
        (lambda: block_bound([P, Q], draft_length=1), "needs a Pair"),
        (
            lambda: block_bound(
                Pair.from_weights(zipf(1_500).weights, near_copy(zipf(1_500), 0.5).weights), draft_length=4
            ),
            "products of 64 bits; at most 5,000,000 are",
        ),
    ],
)
def test_what_cannot_be_had_is_refused(call, says):
    with pytest.raises(InputError, match=re.escape(says)):
        call()


@pytest.mark.parametrize(
    "call", [lambda: drafted_sets(Q, 2, "gready"), lambda: acceptance_bound(P, Q, 2, "gready")]
)
def test_proposals_are_found_by_name(call):
    with pytest.raises(
        UnknownNameError, match=r"unknown proposal 'gready'; known: greedy, .*Did you mean 'greedy'"
    ):
        call()
