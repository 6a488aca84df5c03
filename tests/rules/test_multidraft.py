"""Rules with several drafts: exact laws, closed forms of what they keep, second writings, and mistakes."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from simkit.errors import InputError
from simkit.laws.pair import Pair
from simkit.laws.synthetic import corner_case, corner_cases
from simkit.rules import multidraft, tries
from simkit.rules.chain import Chain
from simkit.rules.choose import Block, Emitted, normalised, sample, walk
from simkit.rules.exact import exact_accepted, exact_law
from simkit.rules.lossy import thresholds
from simkit.rules.multidraft import (
    Tree,
    greedy_draft,
    independent_paths,
    k_seq,
    k_seq_gamma,
    target_tree,
    verified,
    with_replacement,
    without_replacement,
)
from simkit.rules.single import argmax_draft
from simkit.rules.step import one_hot_rows, token_rule

TREES = [with_replacement, without_replacement, greedy_draft, target_tree, k_seq]
RULES = [*TREES, independent_paths]
STEP = Fraction(1, 2**20)

BASE = Pair.from_weights([5, 3, 2], [2, 3, 5])
LONG = Pair.from_weights([50, 30, 15, 5], [1, 2, 3, 4])
P, Q = Block(LONG, 0, 1).p(()), Block(LONG, 0, 1).q((), 0)


def target_law(pair: Pair, length: int) -> np.ndarray:
    """Return the target's joint law in fractions, from the definition."""
    law = np.full((len(pair.initial), *(pair.vocabulary,) * length), Fraction(0), dtype=object)
    for request, start in enumerate(pair.initial.tolist()):
        model = Block(pair, start, 1)
        for tokens in product(range(pair.vocabulary), repeat=length):
            before = [tokens[:n] for n in range(length)]
            over = start == pair.end or model.ended(tokens[:-1])
            law[(request, *tokens)] = (
                Fraction(0) if over else prod(model.p(t)[tokens[len(t)]] for t in before)
            )
    return law if len(law) > 1 else law[0]


def is_lossless(pair: Pair, text, K: int, length: int) -> bool:
    return bool((exact_law(pair, text, draft_length=K, length=length) == target_law(pair, length)).all())


def excess(p, q) -> list[Fraction]:
    return [max(a - b, Fraction(0)) for a, b in zip(p, q, strict=True)]


def overlap(p, q) -> Fraction:
    return sum(map(min, p, q), Fraction(0))


def row(V: int) -> st.SearchStrategy:
    """Draw weights 0 to 4 of V tokens, as the digits of a number: two rows are then seldom alike."""
    return st.integers(1, 5**V - 1).map(lambda number: [number // 5**token % 5 for token in range(V)])


@st.composite
def laws(draw: st.DrawFn) -> Pair:
    """Draw a pair of one state."""
    V = draw(st.integers(2, 4))
    return Pair.from_weights(draw(row(V)), draw(row(V)))


@st.composite
def calls(draw: st.DrawFn) -> tuple[Pair, int, int]:
    """Draw an automaton with or without an end, n and K; V**(n K) is what the number of branches goes by."""
    V, S, slots = draw(st.integers(2, 3)), draw(st.integers(1, 3)), draw(st.sampled_from([1, 3]))
    n, K = draw(st.sampled_from([(1, 3), (2, 1), (2, 2), (3, 1)] + [(2, 3), (3, 2)] * (V < 3)))
    rows = S * (1 + slots)
    state, drafted = st.integers(0, S - 1), st.integers(S, rows - 1)
    move, slot = st.lists(state, min_size=V, max_size=V), st.lists(drafted, min_size=slots, max_size=slots)
    pair = Pair(
        rows=np.array(draw(st.lists(row(V), min_size=rows, max_size=rows))),
        target=np.arange(S),
        draft=np.array(draw(st.lists(slot, min_size=S, max_size=S))),
        next_state=np.array(draw(st.lists(move, min_size=S, max_size=S))),
        initial=np.array(draw(st.lists(state, min_size=1, max_size=2))),
        end=draw(st.sampled_from([None, S - 1])) if S > 1 else None,
    )
    return pair, n, K


@pytest.mark.parametrize("rule", RULES)
@settings(max_examples=100)
@given(call=calls(), length=st.integers(1, 4))
def test_the_output_has_the_targets_joint_law(rule, call, length):
    pair, n, K = call
    assert is_lossless(pair, rule(n), K, length)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", sorted(set(corner_cases()) - {"partial-overlap", "many-token-residual"}))
def test_the_output_has_the_targets_joint_law_in_corner_cases(rule, name):
    assert is_lossless(corner_case(name), rule(2), 2, 3)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", ["partial-overlap", "many-token-residual"])
def test_the_output_has_the_targets_joint_law_on_six_tokens(rule, name):
    assert is_lossless(corner_case(name), rule(3), 1, 2)


@pytest.mark.parametrize("rule", TREES)
@pytest.mark.parametrize("shape", [(2, 1), (3, 2), (1, 3)])
def test_a_tree_of_any_shape_gives_the_targets_joint_law(rule, shape):
    pair = Pair.from_weights([[5, 3, 2], [1, 2, 7], [4, 4, 2]], [[2, 3, 5], [3, 3, 4], [1, 0, 1]])
    assert is_lossless(pair, rule(shape), 2, 3)


def two_steps(drawn_again: bool, judged_again: bool):
    """Return recursive rejection of two drafts; the refused one may be drawn again, and may be so judged."""

    def text(model: Block, choose) -> Emitted:
        p, q = model.p(()), model.q((), 0)
        first = choose(q)
        if choose.coin(p[first], q[first]):
            return Emitted((first,), 1)
        left = normalised(excess(p, q))
        others = [
            Fraction(0) if t == first else mass / (1 - q[first]) for t, mass in enumerate(q) if q[first] < 1
        ]
        second, judge = choose(q if drawn_again else others), q if judged_again else others
        if judge[second] and choose.coin(left[second], judge[second]):
            return Emitted((second,), 1)
        return Emitted((choose(excess(left, judge)),), 0)

    return text


@pytest.mark.parametrize(
    ("drawn_again", "judged_again", "law", "distance"),
    [
        (True, True, ("0.5", "0.3", "0.15", "0.05"), "0"),
        (False, False, ("0.5", "0.3", "0.15", "0.05"), "0"),
        # Kept as first draft: min(p, q) = (.1, .2, .15, .05). Refused: token 2 with .15 and 3 with .35; the
        # residual is (.8, .2, 0, 0), so token 1 has .5 * .2 = .1 to come.
        # Drawn from the others, (1/7, 2/7, 0, 4/7) and (1/6, 1/3, 1/2, 0), judged by q: tokens 0 and 1 are
        # kept, and token 0 replaces the others. Token 1 gets .15 * 2/7 + .35 * 1/3 = .1595...
        (False, True, ("37/84", "151/420", "0.15", "0.05"), "5/84"),
        # Drawn from q, judged by the others: token 1 is kept with .2 / (2/7) = .7 and .2 / (1/3) = .6, and
        # token 0 replaces. Token 1 gets .15 * .2 * .7 + .35 * .2 * .6 = .063.
        (True, False, ("0.537", "0.263", "0.15", "0.05"), "0.037"),
    ],
)
def test_drafts_are_judged_by_the_law_that_they_are_drawn_from(drawn_again, judged_again, law, distance):
    found = exact_law(LONG, two_steps(drawn_again, judged_again), draft_length=1, length=1)
    assert found.tolist() == [Fraction(mass) for mass in law]
    assert sum(abs(a - b) for a, b in zip(found, P, strict=True)) / 2 == Fraction(distance)


@settings(max_examples=60)
@given(pair=laws())
def test_two_drafts_are_those_of_a_second_writing(pair):
    def kept(text):
        return exact_accepted(pair, text, draft_length=1)

    assert kept(with_replacement(2)) == kept(two_steps(True, True))
    assume(len(np.flatnonzero(pair.rows[1])) > 1)
    assert kept(without_replacement(2)) == kept(two_steps(False, False))


@pytest.mark.parametrize(
    "rule", [with_replacement, without_replacement, greedy_draft, k_seq, independent_paths]
)
@settings(max_examples=60)
@given(call=calls())
def test_one_draft_is_the_token_rule(rule, call):
    pair, _, K = call
    model = Block(pair, 0, K)
    assert walk(rule(1), model) == walk(Chain(token_rule), model)


@settings(max_examples=60)
@given(call=calls())
def test_a_target_tree_of_one_candidate_is_the_argmax_draft(call):
    pair, _, K = call
    model = Block(pair, 0, K)
    assert walk(target_tree(1), model) == walk(Chain(argmax_draft), model)


@settings(max_examples=60)
@given(pair=laws(), single=st.integers(0, 6), acc=st.integers(1, 6))
def test_a_target_tree_of_one_candidate_has_the_thresholds_of_the_chain_rule(pair, single, acc):
    single, acc = Fraction(single, 6), Fraction(acc, 6)
    best = replace(pair, rows=np.vstack([pair.rows[:1], one_hot_rows(pair.rows[1:])]))
    chain = walk(Chain(thresholds(single, acc)), Block(best, 0, 2))
    assert walk(target_tree(1, single, acc), Block(pair, 0, 2)) == chain


@pytest.mark.parametrize(
    ("text", "chain"), [(with_replacement, tries.with_replacement), (k_seq, tries.k_seq)]
)
@settings(max_examples=60)
@given(call=calls())
def test_the_chain_rule_of_several_tries_has_the_law_of_the_text(text, chain, call):
    pair, n, K = call
    model = Block(pair, 0, K)
    assert walk(text(n), model) == walk(Chain(chain(n)), model)


def kept_share(pair: Pair, text) -> Fraction:
    return exact_accepted(pair, text, draft_length=1)[1]


@settings(max_examples=60)
@given(pair=laws(), n=st.integers(1, 3))
def test_what_is_kept_of_one_level_has_a_closed_form(pair, n):
    model = Block(pair, 0, 1)
    p, q = model.p(()), model.q((), 0)
    order = sorted(range(len(q)), key=lambda t: (-q[t], t))

    # Residuals times the probability that they are reached: mass m is left, and m min(p, q) is kept of it.
    left = p
    for _ in range(n):
        mass = sum(left)
        left = excess(left, [mass * b for b in q])
    assert kept_share(pair, with_replacement(n)) == 1 - sum(left)
    assert kept_share(pair, independent_paths(n)) == 1 - sum(left)

    candidates = [t for t in order[:n] if q[t]]
    assert kept_share(pair, target_tree(n)) == sum(p[t] for t in candidates)

    top = [t for t in order[: n - 1] if q[t]]
    rest = sum(q[t] for t in range(len(q)) if t not in top)
    others = [(p[t], q[t] / rest) for t in range(len(q)) if t not in top and rest]
    assert kept_share(pair, greedy_draft(n)) == sum(p[t] for t in top) + sum(min(a, b) for a, b in others)

    gamma = k_seq_gamma(p, q, n)
    assert kept_share(pair, k_seq(n)) == 1 - (1 - overlap([a / gamma for a in p], q)) ** n


@settings(max_examples=60)
@given(pair=laws())
def test_drafts_without_replacement_cover_the_target(pair):
    # Sequoia, the cover property: a refused token is no more in the residual, so the last token of q that is
    # left is the residual's only one.
    assume(not (pair.rows[0][pair.rows[1] == 0]).any())
    n = int((pair.rows[1] > 0).sum())
    assert kept_share(pair, without_replacement(n)) == 1


def test_fewer_drafts_or_drafts_with_replacement_do_not_cover_it():
    assert kept_share(LONG, without_replacement(3)) < 1 == kept_share(LONG, without_replacement(4))
    assert kept_share(LONG, with_replacement(4)) < 1


@pytest.mark.parametrize("rule", [with_replacement, without_replacement, greedy_draft, target_tree])
@settings(max_examples=60)
@given(pair=laws())
def test_more_drafts_keep_no_less(rule, pair):
    shares = [kept_share(pair, rule(n)) for n in (1, 2, 3)]
    assert shares == sorted(shares)


@settings(max_examples=60)
@given(pair=laws())
def test_more_drafts_keep_no_less_by_k_seq_but_for_the_rounding_of_gamma(pair):
    # At the root g of the equation sum(min(g q, p)) is kept, and g grows with n. The gamma used exceeds g by
    # less than a step; b = sum(min(q, p / gamma)) is then less by no more, and 1 - (1 - b)^n by n steps.
    shares = [kept_share(pair, k_seq(n)) for n in (1, 2, 3)]
    assert all(more >= less - n * STEP for n, less, more in zip((2, 3), shares, shares[1:], strict=False))


def test_the_rounding_of_gamma_is_seen_where_all_that_a_draft_can_be_is_kept():
    # p = (1, 1) / 2 and q = (1, 0): no rule keeps more than 1/2. One draft does that; with two the root is
    # 1 + 2**-.5, which is no fraction.
    pair = Pair.from_weights([1, 1], [1, 0])
    one, two = (kept_share(pair, k_seq(n)) for n in (1, 2))
    assert one == Fraction(1, 2)
    assert one - 2 * STEP < two < one


@settings(max_examples=60)
@given(pair=laws(), n=st.integers(1, 8))
def test_gamma_is_the_least_one_that_serves(pair, n):
    model = Block(pair, 0, 1)
    p, q = model.p(()), model.q((), 0)

    def serves(gamma):
        b = overlap([a / gamma for a in p], q)
        return 1 - (1 - b) ** n <= gamma * b

    gamma = k_seq_gamma(p, q, n)
    assert serves(gamma)
    assert gamma == 1 or not serves(gamma - STEP)
    assert gamma == tries.gamma_steps(*(side[0] for side in tries.beside(*pair.rows[:, None])), n) * STEP


def test_gamma_is_the_root_to_within_a_step():
    # Base case, n = 2, gamma from 1 to 2.5: b = .2 + .5 / gamma, and b (2 - b) = gamma b is the parabola.
    def above_the_root(gamma):
        return gamma**2 - Fraction("1.8") * gamma + Fraction("0.5") >= 0

    gamma = k_seq_gamma(*(tuple(Fraction(w, 10) for w in r) for r in ((5, 3, 2), (2, 3, 5))), 2)
    assert above_the_root(gamma)
    assert not above_the_root(gamma - STEP)
    assert round(float(gamma), 6) == 1.456777


def test_a_smaller_gamma_leaves_no_law_for_the_replacement(monkeypatch):
    monkeypatch.setattr(multidraft, "k_seq_gamma", lambda p, q, n: k_seq_gamma(p, q, n) - STEP)
    with pytest.raises(InputError, match="a decision needs weights >= 0"):
        walk(k_seq(2), Block(BASE, 0, 1))


def test_gamma_is_found_once_for_a_pair_of_rows(monkeypatch):
    asked = []
    monkeypatch.setattr(multidraft, "k_seq_gamma", lambda *given: asked.append(given) or k_seq_gamma(*given))
    walk(k_seq((2, 2, 1)), Block(BASE, 0, 3))
    assert [n for _, _, n in asked] == [2, 1]


def test_the_test_of_k_seq_with_the_residual_of_the_token_rule_is_lossy():
    def mistaken(model: Block, choose) -> Emitted:
        p, q = model.p(()), model.q((), 0)
        gamma = k_seq_gamma(p, q, 2)
        for _ in range(2):
            draft = choose(q)
            if choose.coin(p[draft], gamma * q[draft]):
                return Emitted((draft,), 1)
        return Emitted((choose(excess(p, q)),), 0)

    assert is_lossless(LONG, k_seq(2), 1, 1)
    assert not is_lossless(LONG, mistaken, 1, 1)


def greedy_drawn_from(whole: bool):
    """Return `greedy_draft` of two; its draft comes from all of q or, rightly, from q without the top."""

    def text(model: Block, choose) -> Emitted:
        p, q = model.p(()), model.q((), 0)
        top = q.index(max(q))
        rest = normalised([Fraction(0) if t == top else mass for t, mass in enumerate(q)])
        draft = choose(q if whole else rest)
        if draft != top and choose.coin(p[draft], rest[draft]):
            return Emitted((draft,), 1)
        token = choose(excess(p, rest))
        return Emitted((token,), int(token == top))

    return text


def test_a_greedy_draft_is_drawn_from_the_law_that_judges_it():
    assert walk(greedy_drawn_from(whole=False), Block(LONG, 0, 1)).keys() > {Emitted((3,), 1)}
    assert is_lossless(LONG, greedy_drawn_from(whole=False), 1, 1)
    assert not is_lossless(LONG, greedy_drawn_from(whole=True), 1, 1)
    assert kept_share(LONG, greedy_draft(2)) == kept_share(LONG, greedy_drawn_from(whole=False))


def test_only_tokens_with_weight_are_candidates():
    # q has two tokens: three candidates are two, and nothing is left to draw. Ties go to the lowest token.
    pair = Pair.from_weights([1, 2, 3, 4], [0, 1, 0, 1])
    assert kept_share(pair, target_tree(3)) == Fraction(6, 10) == kept_share(pair, greedy_draft(3))
    assert kept_share(pair, target_tree(1)) == Fraction(2, 10)
    # two drafts: token 1 is the top, and token 3 is drawn for certain: 2/10 + min(4/10, 1)
    assert kept_share(pair, greedy_draft(2)) == Fraction(6, 10)


@settings(max_examples=60)
@given(pair=laws(), n=st.integers(1, 3), single=st.integers(0, 6), acc=st.integers(1, 6))
def test_a_target_tree_reads_one_coin_at_a_node(pair, n, single, acc):
    # The kernel: the first candidate whose running sum of p, over acc, is at least u, or whose p is at least
    # single. The shares of u are the pieces between the running sums.
    model = Block(pair, 0, 1)
    p, q = model.p(()), model.q((), 0)
    single, acc = Fraction(single, 6), Fraction(acc, 6)
    candidates = [t for t in sorted(range(len(q)), key=lambda t: (-q[t], t))[:n] if q[t]]
    law, low = {}, Fraction(0)
    for i, x in enumerate(candidates):
        high = min(Fraction(1), sum(p[t] for t in candidates[: i + 1]) / acc)
        high = Fraction(1) if p[x] >= single else max(low, high)
        law[x, 1], low = high - low, high
    rest = 1 - sum(p[t] for t in candidates)
    for x in set(range(len(p))) - set(candidates):
        law[x, 0] = (1 - low) * p[x] / rest if rest else Fraction(0)
    found = dict.fromkeys(law, Fraction(0))
    for emitted, mass in walk(target_tree(n, single, acc), model).items():
        found[emitted.tokens[0], emitted.accepted] += mass
    assert found == law


def test_thresholds_below_one_are_lossy():
    # By hand, p = (.5, .3, .2), candidates 2 and 1: at acc .75, token 2 comes out with .2 / .75, token 1 with
    # .3 / .75, and token 0 replaces in the other third. At single .3 token 1 is kept whenever it is judged.
    for text, law in [
        (target_tree(2, acc="0.75"), ("1/3", "2/5", "4/15")),
        (target_tree(2, single="0.3"), ("0", "4/5", "1/5")),
    ]:
        found = exact_law(BASE, text, draft_length=1, length=1)
        assert found.tolist() == [Fraction(mass) for mass in law]
        assert not is_lossless(BASE, text, 2, 2)
    assert is_lossless(BASE, target_tree(2, single="0.51", acc=1), 2, 2)  # no token is as likely


def drawn_first(shape: tuple[int, int]):
    """Return `with_replacement` of two levels written a second time: the whole tree is drawn beforehand."""

    def text(model: Block, choose) -> Emitted:
        roots = [choose(model.q((), 0)) for _ in range(shape[0])]
        leaves = [[choose(model.q((x,), 1)) for _ in range(shape[1])] for x in roots]
        first = judged(model.p(()), model.q((), 0), roots, choose)
        if first is None:
            return Emitted((replaced(model.p(()), model.q((), 0), shape[0], choose),), 0)
        tokens = (roots[first],)
        if model.ended(tokens):
            return Emitted(tokens, 1)
        p, q = model.p(tokens), model.q(tokens, 1)
        second = judged(p, q, leaves[first], choose)
        if second is None:
            return Emitted((*tokens, replaced(p, q, shape[1], choose)), 1)
        tokens += (leaves[first][second],)
        return Emitted(tokens if model.ended(tokens) else (*tokens, choose(model.p(tokens))), 2)

    return text


def judged(p, q, drafts, choose) -> int | None:
    """Return which draft is kept by recursive rejection, or None."""
    for number, draft in enumerate(drafts):
        if choose.coin(p[draft], q[draft]):
            return number
        p = normalised(excess(p, q))
    return None


def replaced(p, q, n: int, choose) -> int:
    """Return the replacement of n refused drafts."""
    for _ in range(n):
        p = normalised(excess(p, q))
    return choose(p)


ENDS = Pair(
    rows=np.array([[4, 2, 1], [1, 3, 2], [2, 5, 2], [2, 1, 4]]),
    target=np.array([0, 1, 0]),
    draft=np.array([[2, 3], [3, 0], [0, 0]]),
    next_state=np.array([[1, 2, 0], [0, 2, 1], [2, 2, 2]]),
    initial=np.array([0]),
    end=2,
)


@pytest.mark.parametrize("shape", [(2, 1), (2, 2), (3, 1)])
@pytest.mark.parametrize("pair", [ENDS, Pair.from_weights([[5, 3, 2], [1, 3, 1]], [[2, 3, 5], [2, 1, 4]])])
def test_nodes_that_are_not_visited_do_not_matter(shape, pair):
    model = Block(pair, 0, 2)
    assert walk(with_replacement(shape), model) == walk(drawn_first(shape), model)


def paths_drawn_first(n: int, arrange=lambda paths: paths, once: bool = False):
    """Return `independent_paths` written a second time: whole paths are drawn, and followed while kept.

    Mistakes: paths are arranged anew before they are judged; equal candidates are judged once.
    """

    def text(model: Block, choose) -> Emitted:
        paths = [()] * n
        for slot in range(model.draft_length):
            paths = [(*path, choose(model.q(path, slot))) for path in paths]
        paths, tokens = arrange(paths), ()
        for slot in range(model.draft_length):
            p, q = model.p(tokens), model.q(tokens, slot)
            drafts = [path[slot] for path in paths]
            drafts = list(dict.fromkeys(drafts)) if once else drafts
            kept = judged(p, q, drafts, choose)
            if kept is None:
                return Emitted((*tokens, replaced(p, q, len(drafts), choose)), slot)
            tokens += (drafts[kept],)
            if model.ended(tokens):
                return Emitted(tokens, slot + 1)
            paths = [path for path in paths if path[slot] == drafts[kept]]
        return Emitted((*tokens, choose(model.p(tokens))), model.draft_length)

    return text


@pytest.mark.parametrize(("n", "K"), [(2, 1), (2, 2), (3, 2)])
@pytest.mark.parametrize("pair", [ENDS, Pair.from_weights([[5, 3, 2], [1, 3, 1]], [[2, 3, 5], [2, 1, 4]])])
def test_paths_that_carry_the_kept_token_are_followed(n, K, pair):
    model = Block(replace(pair, draft=pair.draft[:, :1]), 0, K)
    assert walk(independent_paths(n), model) == walk(paths_drawn_first(n), model)


def test_paths_are_judged_as_they_were_drawn():
    # Sorted, the first candidate is no draw from q. Sorted by what follows, it is one, but the tokens behind
    # it are no draws from q: only the second token shows it.
    def by_later_tokens(paths):
        return sorted(paths, key=lambda path: path[1:])

    assert is_lossless(BASE, paths_drawn_first(2), 2, 2)
    assert not is_lossless(BASE, paths_drawn_first(2, arrange=sorted), 2, 1)
    assert not is_lossless(BASE, paths_drawn_first(2, arrange=by_later_tokens), 2, 2)
    assert is_lossless(BASE, paths_drawn_first(2, arrange=by_later_tokens), 2, 1)


def test_equal_candidates_are_each_judged():
    # Refused as above: token 2 with .15 and 3 with .35, the residual is (.8, .2, 0, 0). The second path has
    # token 1, which is kept, with .2, and the refused token with .3 and .4; the residual, left as it is, then
    # gives token 1 again. It gets .15 (.2 + .3 * .2) + .35 (.2 + .4 * .2) = .137 instead of .1.
    found = exact_law(LONG, paths_drawn_first(2, once=True), draft_length=1, length=1)
    assert found.tolist() == [Fraction(mass) for mass in ("0.463", "0.337", "0.15", "0.05")]
    assert is_lossless(LONG, paths_drawn_first(2), 1, 1)


class Unended(Block):
    """Laws of a call that may not be read behind the end of the text."""

    def target_row(self, prefix):
        assert not self.ended(prefix)
        return super().target_row(prefix)


@pytest.mark.parametrize("rule", RULES)
def test_a_call_is_over_where_the_text_ends(rule):
    law = walk(rule(2), Unended(replace(ENDS, draft=ENDS.draft[:, :1]), 0, 3))
    # Token 1 ends the text in both states: as a candidate that is kept, as a replacement, as a bonus token.
    ended = {(len(emitted.tokens), emitted.accepted) for emitted in law if emitted.tokens[-1] == 1}
    assert (4, 3) in ended
    assert any(length == accepted for length, accepted in ended)
    assert any(length > accepted for length, accepted in ended if length < 4)
    assert all(1 not in emitted.tokens[:-1] for emitted in law)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", ["by-position", "disjoint", "equal", "one-hot-draft", "one-hot-target"])
def test_the_least_and_the_largest_words_draw_what_can_occur(rule, name):
    model = Block(corner_case(name), 0, 2)
    possible = walk(rule(2), model)
    for word in (0, 2**63, 2**64 - 1):
        assert sample(rule(2), model, lambda kind, number, token, word=word: word) in possible


def test_a_tree_is_its_rule_its_shape_and_its_thresholds():
    assert target_tree(2) == target_tree((2,), 1, "1") == Tree("target-tree", (np.int64(2),))
    assert hash(target_tree(2)) == hash(target_tree((2,)))
    others = {rule(shape) for rule in TREES for shape in (2, (2, 1))} | {
        independent_paths(2),
        target_tree(2, 0),
    }
    assert len(others) == 12


def test_a_tree_is_counted_by_its_nodes():
    def nodes(shape, levels):
        paths = [()]
        count = 0
        for slot in range(levels):
            children = range(shape[min(slot, len(shape) - 1)])
            paths = [(*path, child) for path in paths for child in children]
            count += len(paths)
        return count

    for shape in ((1,), (2,), (3, 2, 1), (1, 3), (4, 1)):
        for levels in (1, 2, 3, 4):
            assert verified(shape, levels) == nodes(shape, levels)
    assert [verified(n, 2) for n in (1, 2, 3)] == [2, 6, 12]
    assert verified((3, 2, 1), np.int64(2)) == 9  # levels below K are not drafted


@pytest.mark.parametrize(
    ("call", "says"),
    [
        *[(lambda rule=rule: rule(0), "=0; it needs an integer from 1 to 64") for rule in RULES],
        *[(lambda rule=rule: rule((2, 65)), "drafts=65; it needs an integer") for rule in TREES],
        (lambda: with_replacement(()), r"drafts=\(\) has no level"),
        (lambda: Tree("sequoia", (2,)), "'sequoia'.*without-replacement"),
        (lambda: k_seq(1.5), "drafts=1.5"),
        (lambda: independent_paths((2, 1)), r"paths=\(2, 1\)"),
        (lambda: target_tree(2, single=2), "single=2; it needs a number from 0 to 1"),
        (lambda: target_tree(2, acc=0), "acc=0; it needs a number above 0"),
        (lambda: verified(2, 0), "draft_length=0"),
        (lambda: verified((2, 0), 1), "drafts=0"),
        (lambda: k_seq_gamma(P, Q, 0), "drafts=0"),
        (lambda: k_seq_gamma(P, (Fraction(1),), 2), "two laws of one length"),
        (lambda: k_seq_gamma((5, 3, 2), (2, 3, 5), 2), "with the sum 1; normalise them first"),
        (lambda: k_seq_gamma((0.5, 0.5), (Fraction(1), Fraction(0)), 2), "as ints or Fractions"),
    ],
)
def test_what_cannot_be_had_is_refused(call, says):
    with pytest.raises(InputError, match=says):
        call()
