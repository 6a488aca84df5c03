"""Block verification: a block of drafts is judged as a whole, and keeps at least as many of them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from simkit.laws.rows import IntRows
from simkit.rules.choose import Block, Choose, Emitted


def block(model: Block, choose: Choose) -> Emitted:
    """Keep the longest prefix that its own coin accepts, and go on from the block's residual. Lossless.

    With drafts x_1 .. x_n, let w_0 = 1 and w_i = min(1, w_{i-1} p(x_i) / q(x_i)), by the rows in which x_i is
    drafted:

    - R_i = sum(max(w_i p - q, 0)), by the rows after x_1 .. x_i;
    - prefix i < n has the coin h_i = R_i / (R_i + 1 - w_i), the whole block has h_n = w_n;
    - the call keeps the longest prefix whose coin is heads, then emits from max(w_i p - q, 0), or from p when
      it keeps all n.

    Why it is lossless: given x_1 .. x_i, at least i of the drafts are kept with probability w_i. That is so
    for i = n; and if it is so for i + 1, then for i the probability is h_i + (1 - h_i) sum(min(w_i p, q)) =
    h_i + (1 - h_i) (w_i - R_i) = w_i. So behind x_1 .. x_i token y comes out with min(w_i p(y), q(y)) as a
    kept draft, and, since exactly i are kept with probability w_i - (w_i - R_i) = R_i, with max(w_i p(y) -
    q(y), 0) from the residual: w_i p(y) in all.

    The paper throws the coins of all prefixes and takes the last success. Here they are thrown from the
    longest prefix down to the first success: the same law, and fewer coins. Where w_i = 1 and p = q next, h_i
    is 0/0; a longer prefix is then kept for certain, and the coin counts as tails. A draft that ends the text
    ends the block, with n below K and no further token.

    Parameters
    ----------
    model : Block
        The laws of the call.
    choose : Choose
        The decisions.

    References
    ----------
    Sun et al. 2024 (arXiv 2403.10444), algorithm 2: p_i there is w_i here, M_b is p, M_s is q.

    Examples
    --------
    >>> from simkit.laws.pair import Pair
    >>> from simkit.rules.choose import walk
    >>> law = walk(block, Block(Pair.from_weights([1, 2], [2, 1]), state=0, draft_length=2))
    >>> str(sum(mass * emitted.accepted for emitted, mass in law.items()))
    '11/9'
    """
    drafts, weight = _drafted(model, choose)
    kept = len(drafts)
    if choose.coin(weight[kept]):
        bonus = () if model.ended(drafts) else (choose(model.target(drafts)),)
        return Emitted(drafts + bonus, kept)
    kept -= 1
    while kept and not choose.coin(_heads(model, drafts[:kept], weight[kept])):
        kept -= 1
    excess = _excess(model, drafts[:kept], weight[kept])
    return Emitted((*drafts[:kept], choose.along(excess, _order(model, drafts[:kept]))), kept)


def _drafted(model: Block, choose: Choose) -> tuple[tuple[int, ...], list[Fraction]]:
    """Return the drafts, and w_0 .. w_n."""
    drafts: tuple[int, ...] = ()
    weight = [Fraction(1)]
    for slot in range(model.draft_length):
        p, q = model.p(drafts), model.q(drafts, slot)
        token = choose(q)
        weight.append(min(Fraction(1), weight[-1] * p[token] / q[token]))
        drafts += (token,)
        if model.ended(drafts):
            break
    return drafts, weight


def _excess(model: Block, kept: tuple[int, ...], weight: Fraction) -> tuple[Fraction, ...]:
    """Return max(w p - q, 0) after the kept drafts."""
    p, q = model.p(kept), model.q(kept, len(kept))
    return tuple(max(weight * a - b, Fraction(0)) for a, b in zip(p, q, strict=True))


def _order(model: Block, kept: tuple[int, ...]) -> list[int]:
    """Return the tokens by falling p/q after the kept drafts."""
    rows = model.target_row(kept), model.draft_row(kept, len(kept))
    p, q = (model.pair.rows[row] for row in rows)
    return model.remember(("order", *rows), lambda: by_ratio(p, q).tolist())


def by_ratio(p: IntRows, q: IntRows) -> NDArray[np.int64]:
    """Return the tokens by falling p/q, in double precision; ties by token, those with p = 0 last.

    Parameters
    ----------
    p, q : int64 arrays, shape (..., V)
        Weights, paired row by row; their totals do not matter.

    Examples
    --------
    >>> by_ratio(np.array([5, 3, 2, 0, 1]), np.array([2, 3, 2, 0, 0]))
    array([4, 0, 1, 2, 3])
    """
    ratio = np.where(p > 0, np.inf, 0.0)
    np.divide(p, q, out=ratio, where=q > 0)
    return np.argsort(-ratio, axis=-1, kind="stable")


def _heads(model: Block, kept: tuple[int, ...], weight: Fraction) -> Fraction:
    """Return h, the coin of a prefix shorter than the block."""
    rest = sum(_excess(model, kept, weight), Fraction(0))
    return rest / (rest + 1 - weight) if rest else Fraction(0)
