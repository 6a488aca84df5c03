"""Rules that verify several drafts at each position, as texts: trees of candidates, and whole paths.

The drafts of one target call form a tree of depth K. At a node on the kept path some candidates for the next
token are proposed, and one of them is kept or none: a kept one leads to its node, none ends the call with a
replacement, and K kept ones earn a bonus token from p. The children of every other node are independent of
all that is emitted, so a text draws those of the node that it stands on, when it stands there.

All rules here are lossless, but `target_tree` with a threshold below 1. It is enough that the token which
leaves a node follows p whatever came before: the node's children are drawn afresh.

What is drawn from a row of its own is drawn by `choose`; what is left of a row, without the refused drafts or
as a residual, by `choose.along`, so that a kernel needs no table for it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from operator import mul

import numpy as np

from simkit.errors import InputError, UnknownNameError
from simkit.laws.checks import whole_number
from simkit.rules.block import by_ratio
from simkit.rules.choose import LONGEST_DRAFT, Block, Choose, Emitted, normalised
from simkit.rules.coupling import exact_total
from simkit.rules.lossy import Number, as_share
from simkit.rules.step import Law
from simkit.rules.tries import GAMMA_STEPS, MOST_DRAFTS

Drafts = int | tuple[int, ...]
"""Candidates at each node, 1 to 64: one number, or one for each level.

The last one serves all further levels; those of levels that a call has not are not read.
"""

_Row = tuple[int, ...]

_Node = Callable[[Choose], tuple[int, int]]
"""Decides a node: the next token, and which candidate it is, counted from 1; 0 for a replacement."""


@dataclass(frozen=True)
class Tree:
    """A rule on a tree of drafts, as a text; the functions below make one.

    Parameters
    ----------
    kind : str
        A name in `KINDS`.
    shape : tuple of int
        Candidates at each node, by level; the last number serves all further levels. The one number of
        "independent-paths" is that of the paths.
    single, acc : Fraction
        Thresholds of "target-tree".

    Raises
    ------
    InputError, UnknownNameError
        For another kind, or numbers of candidates other than 1 to 64.

    Examples
    --------
    >>> without_replacement(2) == Tree("without-replacement", (2,))
    True
    """

    kind: str
    shape: tuple[int, ...]
    single: Fraction = Fraction(1)
    acc: Fraction = Fraction(1)

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UnknownNameError("kind of tree", self.kind, KINDS)
        if not self.shape:
            raise InputError(
                "drafts=() has no level; give the candidates at a node, or one number for each level"
            )
        object.__setattr__(
            self, "shape", tuple(whole_number(n, "drafts", 1, MOST_DRAFTS) for n in self.shape)
        )

    def __call__(self, model: Block, choose: Choose) -> Emitted:
        """Run one target call: go down the tree while a node keeps a candidate."""
        tokens: tuple[int, ...] = ()
        open_paths, agree = self.shape[0] - 1, Fraction(1)
        for slot in range(model.draft_length):
            n = self.candidates(slot)
            if self.kind == "independent-paths":
                n = 1 + sum(choose.coin(agree) for _ in range(open_paths))
            token, candidate = self._node(model, tokens, slot, n)(choose)
            open_paths, agree = n - candidate, model.q(tokens, slot)[token]
            tokens += (token,)
            if not candidate or model.ended(tokens):
                return Emitted(tokens, slot + (candidate > 0))
        return Emitted((*tokens, choose(model.target(tokens))), model.draft_length)

    def candidates(self, slot: int) -> int:
        """Return how many candidates a node has, at most, behind `slot` kept drafts."""
        return self.shape[min(slot, len(self.shape) - 1)]

    def _node(self, model: Block, prefix: tuple[int, ...], slot: int, n: int) -> _Node:
        """Return what decides the node behind a prefix, made once for a pair of rows."""
        target, draft = model.target(prefix), model.draft(prefix, slot)
        key = (self, model.target_row(prefix), model.draft_row(prefix, slot), n)
        return model.remember(key, lambda: _NODES[self.kind](self, target, draft, n))


def with_replacement(drafts: Drafts = 2) -> Tree:
    """Return recursive rejection of independent drafts: each is judged by what the others left. Lossless.

    Draft i ~ q is kept with min(1, p_i / q), where p_1 = p and p_{i+1} is the residual max(p_i - q, 0),
    normalised; the replacement comes from p_{n+1}. Given that i - 1 drafts are refused, what comes out
    follows p_i: that is so for i = n + 1, and if it is so for i + 1, then for i it is the token rule. A draft
    is refused only where p_i < q, so after a refusal the residual has weight.

    Parameters
    ----------
    drafts : int or tuple of int
        See `Drafts`.

    Raises
    ------
    InputError
        For other numbers of drafts.

    References
    ----------
    Miao et al. 2024 (arXiv 2305.09781), SpecInfer, algorithm 2: multi-step speculative sampling.

    Examples
    --------
    >>> from simkit.laws.pair import Pair
    >>> from simkit.rules.exact import exact_accepted
    >>> pair = Pair.from_weights([5, 3, 2], [2, 3, 5])
    >>> [str(exact_accepted(pair, with_replacement(n), draft_length=1)[1]) for n in (1, 2)]
    ['7/10', '19/25']
    """
    return Tree("with-replacement", _levels(drafts))


def without_replacement(drafts: Drafts = 2) -> Tree:
    """Return recursive rejection of drafts that differ: a refused one is not proposed again. Lossless.

    As `with_replacement`, but draft i comes from q_i, where q_1 = q and q_{i+1} is q_i without the refused
    draft, renormalised. The argument there holds for any q_i that is settled before draft i is drawn. When
    q_i has no weight left there are fewer drafts; Sequoia goes on with the tokens that are not refused, all
    alike.

    Parameters
    ----------
    drafts : int or tuple of int
        See `Drafts`.

    Raises
    ------
    InputError
        For other numbers of drafts.

    References
    ----------
    Chen et al. 2024 (arXiv 2402.12374), Sequoia, algorithm 2; EAGLE's code for drafts that are sampled (Li et
    al. 2024, arXiv 2401.15077).

    Examples
    --------
    >>> from simkit.laws.pair import Pair
    >>> from simkit.rules.exact import exact_accepted
    >>> pair = Pair.from_weights([5, 3, 2], [2, 3, 5])
    >>> [str(exact_accepted(pair, without_replacement(n), draft_length=1)[1]) for n in (1, 2, 3)]
    ['7/10', '41/50', '1']
    """
    return Tree("without-replacement", _levels(drafts))


def greedy_draft(drafts: Drafts = 2) -> Tree:
    """Return the rule on the n - 1 most likely tokens of q and one draw from q without them, q'. Lossless.

    The draw is kept with min(1, p / q'); else y comes from the residual max(p - q', 0), and is a kept
    candidate if it is one of the top tokens, where q' = 0. This is the token rule for p and q' in what it
    emits, so it is lossless. A call keeps

        sum over the top tokens of p + sum over the others of min(p, q'),

    the most that this proposal allows: a top token y comes out with p(y), and any other is a candidate only
    when it is drawn, with q'(y).

    The top tokens have weight in q; of equal ones the lowest come first. Where fewer than n tokens have
    weight all of them are candidates, nothing is drawn, and y comes from p.

    Parameters
    ----------
    drafts : int or tuple of int
        See `Drafts`.

    Raises
    ------
    InputError
        For other numbers of drafts.

    References
    ----------
    Hu et al. 2025 (arXiv 2502.18779), greedy draft sampling and its verification.

    Examples
    --------
    >>> from simkit.laws.pair import Pair
    >>> from simkit.rules.exact import exact_accepted
    >>> pair = Pair.from_weights([5, 3, 2], [2, 3, 5])  # 1/5 + min(5/10, 2/5) + min(3/10, 3/5)
    >>> str(exact_accepted(pair, greedy_draft(2), draft_length=1)[1])
    '9/10'
    """
    return Tree("greedy-draft", _levels(drafts))


def target_tree(drafts: Drafts = 2, single: Number = 1, acc: Number = 1) -> Tree:
    """Return SGLang's rule on the n most likely tokens of q: keep the one that p draws. Lossless at 1 and 1.

    The kernel draws one u in [0, 1) a node, adds up p over the candidates, S_i = p(x_1) + ... + p(x_i), and
    keeps the first x_i with u <= S_i / acc or p(x_i) >= single; else the replacement comes from p without the
    candidates. Given that x_1 .. x_{i-1} are refused, u is uniform above S_{i-1} / acc, so x_i is kept with
    min(1, p(x_i) / (acc - S_{i-1})). With both thresholds at 1 every token comes out with p; below, the
    candidates come out too often. A refusal leaves S_i < acc <= 1, so the replacement has weight.

    The candidates have weight in q; of equal ones the lowest come first. `simkit.rules.lossy.thresholds` is
    the rule on one candidate drawn from q.

    Parameters
    ----------
    drafts : int or tuple of int
        See `Drafts`.
    single : number in [0, 1]
        ``speculative_accept_threshold_single``.
    acc : number in (0, 1]
        ``speculative_accept_threshold_acc``.

    Raises
    ------
    InputError
        For other numbers of drafts, or thresholds outside their ranges.

    References
    ----------
    SGLang, sgl-kernel, speculative_sampling.cuh: TreeSpeculativeSamplingTargetOnly. EAGLE-2's code (Li et al.
    2024, arXiv 2406.16858) is this rule at 1 and 1: it tests p(x) alone and takes a refused x out of p.

    Examples
    --------
    >>> from simkit.laws.pair import Pair
    >>> from simkit.rules.exact import exact_law
    >>> pair = Pair.from_weights([5, 3, 2], [2, 3, 5])
    >>> [str(mass) for mass in exact_law(pair, target_tree(2), draft_length=1, length=1)]
    ['1/2', '3/10', '1/5']
    >>> [str(mass) for mass in exact_law(pair, target_tree(2, acc="3/4"), draft_length=1, length=1)]
    ['1/3', '2/5', '4/15']
    """
    shares = as_share(single, "single"), as_share(acc, "acc", above_zero=True)
    return Tree("target-tree", _levels(drafts), *shares)


def k_seq(drafts: Drafts = 2) -> Tree:
    """Return K-SEQ: independent drafts with one test for all, min(1, p / (gamma q)). Lossless.

    With c = min(q, p / gamma) and b = sum(c) a draft is kept as y with c(y), and refused with 1 - b. So y is
    kept with F c(y), where F = 1 + (1 - b) + ... + (1 - b)^(n-1), and the replacement comes from p - F c.
    That has no negative entry when F <= gamma, since c <= p / gamma; see `k_seq_gamma`.

    Parameters
    ----------
    drafts : int or tuple of int
        See `Drafts`.

    Raises
    ------
    InputError
        For other numbers of drafts.

    References
    ----------
    Sun et al. 2023 (arXiv 2310.15141), SpecTr, algorithm 2; gamma is rho there.

    Examples
    --------
    >>> from simkit.laws.pair import Pair
    >>> from simkit.rules.exact import exact_accepted
    >>> pair = Pair.from_weights([5, 3, 2], [2, 3, 5])
    >>> [round(float(exact_accepted(pair, k_seq(n), draft_length=1)[1]), 6) for n in (1, 2)]
    [0.7, 0.791355]
    """
    return Tree("k-seq", _levels(drafts))


def k_seq_gamma(p: Sequence[Fraction], q: Sequence[Fraction], drafts: int) -> Fraction:
    """Return K-SEQ's gamma: the least multiple of 2**-20 from 1 on with 1 - (1 - b)^n <= gamma b.

    There b = sum(min(q, p / gamma)). When gamma grows, b falls and gamma b = sum(min(gamma q, p)) does not:
    whatever lies above a gamma that serves also serves. So does n, as 1 - (1 - b)^n <= n b. The least one
    keeps the most, 1 - (1 - b)^n.

    Parameters
    ----------
    p, q : sequences of Fraction, length V
        Target and draft law.
    drafts : int
        Drafts n at a node, 1 to 64.

    Raises
    ------
    InputError
        For another number of drafts, or what is not two exact laws of one length.

    References
    ----------
    Sun et al. 2023 (arXiv 2310.15141), SpecTr, section 4, where gamma is the root of the equation.

    Examples
    --------
    >>> half, quarter = Fraction(1, 2), Fraction(1, 4)
    >>> k_seq_gamma((half, half), (quarter, 1 - quarter), 1)
    Fraction(1, 1)
    >>> float(k_seq_gamma((half, half), (quarter, 1 - quarter), 2))  # the root is (7 + 17 ** 0.5) / 8
    1.3903884887695312
    """
    n = whole_number(drafts, "drafts", 1, MOST_DRAFTS)
    if len(p) != len(q) or not exact_total(p) == exact_total(q) == 1:
        raise InputError(
            "k_seq_gamma needs two laws of one length, each with the sum 1; normalise them first"
        )

    def serves(steps: int) -> bool:
        gamma = Fraction(steps, GAMMA_STEPS)
        b = sum(_tested(p, q, gamma))
        return 1 - (1 - b) ** n <= gamma * b

    smaller = range(GAMMA_STEPS, n * GAMMA_STEPS)
    return Fraction(GAMMA_STEPS + bisect_left(smaller, True, key=serves), GAMMA_STEPS)


def independent_paths(paths: int = 2) -> Tree:
    """Return recursive rejection on n whole paths of K independent drafts, merged where they agree. Lossless.

    The candidates at a node are the next tokens of the paths that lead to it, judged one by one as in
    `with_replacement`. When one is kept, x say, its path leads on to x's node, and so do those with x among
    the paths not yet judged. (A path refused with x is none of them: behind the refusal the residual has no
    x, so x cannot be kept.) Which paths these are is settled by the tokens drawn so far and by coins, so what
    they draw next is independent of it and has law q: x's node is one of `with_replacement`, whatever the
    number of its candidates. A path not yet judged has x with q(x), which is all that need be asked of it.

    To judge equal candidates of a node once is another rule, and lossy: the second x, which is refused for
    certain, also takes its part of the residual away.

    Parameters
    ----------
    paths : int
        Paths n, 1 to 64. At most ``verified((n, 1), K)`` tokens are verified, fewer where paths are merged.

    Raises
    ------
    InputError
        For any other number.

    References
    ----------
    Sun et al. 2023 (arXiv 2310.15141), SpecTr, on drafts of several sequences; Miao et al. 2024 (arXiv
    2305.09781), SpecInfer, algorithm 2, at each node.

    Examples
    --------
    >>> from simkit.laws.pair import Pair
    >>> from simkit.rules.exact import exact_accepted
    >>> pair = Pair.from_weights([5, 3, 2], [2, 3, 5])
    >>> [str(mass) for mass in exact_accepted(pair, independent_paths(2), draft_length=2)]
    ['6/25', '1071/5000', '2729/5000']
    """
    return Tree("independent-paths", (whole_number(paths, "paths", 1, MOST_DRAFTS),))


def verified(drafts: Drafts, draft_length: int) -> int:
    """Return how many draft tokens a target call verifies for a tree of this shape.

    Parameters
    ----------
    drafts : int or tuple of int
        See `Drafts`.
    draft_length : int
        Levels K of the tree.

    Raises
    ------
    InputError
        For other numbers of drafts or levels.

    Examples
    --------
    >>> verified((3, 2, 1), 3), verified(2, 3), verified((4, 1), 3)  # 3 + 6 + 6, 2 + 4 + 8, 4 + 4 + 4
    (15, 14, 12)
    """
    tree, levels = with_replacement(drafts), whole_number(draft_length, "draft_length", 1, LONGEST_DRAFT)
    return sum(accumulate((tree.candidates(slot) for slot in range(levels)), mul))


def _levels(drafts: Drafts) -> tuple[int, ...]:
    return drafts if isinstance(drafts, tuple) else (drafts,)


def _one_by_one(tree: Tree, target: _Row, draft: _Row, n: int) -> _Node:
    whole_p, whole_q, order = normalised(target), normalised(draft), _order(target, draft)

    def node(choose: Choose) -> tuple[int, int]:
        p, q = whole_p, whole_q
        draw: Callable[[Law], int] = choose
        for candidate in range(1, n + 1):
            token = draw(q)
            if choose.coin(p[token], q[token]):
                return token, candidate
            p = normalised(_excess(p, q))
            if tree.kind == "without-replacement":
                left, draw = _without(q, token), choose.along
                if not any(left):
                    break
                q = normalised(left)
        return choose.along(p, order), 0

    return node


def _k_seq(tree: Tree, target: _Row, draft: _Row, n: int) -> _Node:
    p, q, order = normalised(target), normalised(draft), _order(target, draft)
    kept = _tested(p, q, k_seq_gamma(p, q, n))
    refused = 1 - sum(kept)
    times = sum(refused**i for i in range(n))
    left = tuple(a - times * c for a, c in zip(p, kept, strict=True))

    def node(choose: Choose) -> tuple[int, int]:
        for candidate in range(1, n + 1):
            token = choose(q)
            if choose.coin(kept[token], q[token]):
                return token, candidate
        return choose.along(left, order), 0

    return node


def _greedy(tree: Tree, target: _Row, draft: _Row, n: int) -> _Node:
    p, top = normalised(target), _most_likely(draft, n - 1)
    rest = tuple(0 if token in top else weight for token, weight in enumerate(draft))
    q = normalised(rest) if any(rest) else (Fraction(0),) * len(rest)
    excess, order = _excess(p, q), _order(target, rest)

    def node(choose: Choose) -> tuple[int, int]:
        if any(rest):
            token = choose(q)
            if choose.coin(p[token], q[token]):
                return token, n
        token = choose.along(excess, order)
        return token, top.index(token) + 1 if token in top else 0

    return node


def _target_only(tree: Tree, target: _Row, draft: _Row, n: int) -> _Node:
    p, candidates = normalised(target), _most_likely(draft, n)
    others = _without(p, *candidates)

    def node(choose: Choose) -> tuple[int, int]:
        left = tree.acc
        for candidate, token in enumerate(candidates, 1):
            if choose.coin(1 if p[token] >= tree.single else p[token], left):
                return token, candidate
            left -= p[token]
        return choose.along(others), 0

    return node


_NODES: dict[str, Callable[[Tree, _Row, _Row, int], _Node]] = {
    "with-replacement": _one_by_one,
    "without-replacement": _one_by_one,
    "independent-paths": _one_by_one,
    "k-seq": _k_seq,
    "greedy-draft": _greedy,
    "target-tree": _target_only,
}

KINDS = tuple(_NODES)
"""The kinds of `Tree`, by name."""


def _order(target: _Row, draft: _Row) -> list[int]:
    """Return the tokens by falling p/q: in this order every residual max(p - a q, 0) comes first."""
    order: list[int] = by_ratio(np.array(target), np.array(draft)).tolist()
    return order


def _most_likely(draft: _Row, n: int) -> tuple[int, ...]:
    """Return the n most likely tokens among those with weight, the lowest of equal ones first."""
    return tuple(sorted((token for token, w in enumerate(draft) if w), key=lambda token: -draft[token])[:n])


def _without(law: Law, *tokens: int) -> Law:
    """Return the law's weights with none on the tokens."""
    return tuple(Fraction(0) if token in tokens else mass for token, mass in enumerate(law))


def _excess(p: Law, q: Law) -> Law:
    return tuple(max(a - b, Fraction(0)) for a, b in zip(p, q, strict=True))


def _tested(p: Sequence[Fraction], q: Sequence[Fraction], gamma: Fraction) -> Law:
    """Return min(q, p / gamma): each token as a draft that passes K-SEQ's test."""
    return tuple(min(b, a / gamma) for a, b in zip(p, q, strict=True))
