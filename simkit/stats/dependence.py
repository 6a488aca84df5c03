"""Evidence of randomness that was used twice: each token follows its law, but tokens know of each other.

A frozen or replayed random state, one uniform for several positions, or batch rows that share a stream leave
every marginal exact. They show when a token is bet on from a partner that was drawn before it. Tokens are
taken in the order (position, row): all rows at position 0, then all rows at position 1, and so on. If rows
are independent and each token follows its law given its own past, then that is its law given everything
earlier in this order, and the partner is a part of it. So the product of law(token | partner) / p(token) over
the tokens, each bet on once, is a martingale, and has expectation 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simkit.errors import InputError
from simkit.stats._input import Floats, Ints, as_probabilities
from simkit.stats.chi_square import pool
from simkit.stats.evalue import Evidence, concentration, log_e_value, mix_families, scales
from simkit.stats.result import GoodnessOfFit

# Share of the tokens that know their partner.
SHARES = (0.003, 0.01, 0.03, 0.1, 0.3, 0.9)
LAGS = (1, 2, 3, 4)
BUCKETS = 16
MIN_EXPECTED = 5.0
# Below this the rest 1 - p(partner) has too few digits to divide by.
_LEAST_REST = 1e-9

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Relation:
    """Hold how a token's partner is found, and what was seen of the pairs.

    Parameters
    ----------
    name
        The relation in words.
    pairs
        Number of pairs.
    equal
        Pairs whose tokens are the same.
    expected
        Expectation of `equal` for independent tokens: the sum over pairs of p(partner's token).
    log_e
        Natural log of the average e-value of the relation's components.
    strongest
        Name of the largest component.
    """

    name: str
    pairs: int
    equal: int
    expected: float
    log_e: float
    strongest: str


@dataclass(frozen=True)
class Dependence:
    """Hold what a matrix of tokens shows of randomness that was used twice.

    Parameters
    ----------
    evidence
        Average over relations and their components; it decides.
    relations
        Each relation's pairs, repeats and evidence.
    heterogeneity
        Two-sided test of whether rows are more alike or more different than chance makes them: a diagnosis,
        whose tails are not true at 1e-6. None unless all tokens have one law, no decode ends early, and rows
        are long enough for two cells that expect 5 tokens each.
    tokens
        Number of tokens.
    impossible
        Tokens of target probability 0; each is a proof.
    """

    evidence: Evidence
    relations: tuple[Relation, ...]
    heterogeneity: GoodnessOfFit | None
    tokens: int
    impossible: int

    def rows(self) -> list[tuple[str, str]]:
        """Return names and texts for printing, a relation a line.

        Examples
        --------
        >>> for name, text in dependence([[0, 1, 1, 0, 0, 1]] * 6, [0.5, 0.5]).rows()[:3]:
        ...     print(f"{name}: {text}")
        tokens: 36
        evidence: ln E 14.0, strongest: row before, same token
        1 back in the decode: 30 pairs, 12 equal (15.0 expected), ln E -0.2
        """
        lines = [("tokens", f"{self.tokens:,}")]
        if self.impossible:
            lines.append(("impossible tokens", f"{self.impossible:,}"))
        lines.append(("evidence", f"ln E {self.evidence.log_e:.1f}, strongest: {self.evidence.strongest}"))
        for r in self.relations:
            text = f"{r.pairs:,} pairs, {r.equal:,} equal ({r.expected:,.1f} expected), ln E {r.log_e:.1f}"
            lines.append((r.name, text))
        if self.heterogeneity is not None:
            lines.append(("rows of the batch", str(self.heterogeneity)))
        return lines


def dependence(tokens: ArrayLike, laws: ArrayLike, states: ArrayLike | None = None) -> Dependence:
    """Return the evidence that tokens of a batch of decodes depend on each other beyond their laws.

    A token's partner is, in turn: the token 1, 2, 3 or 4 back in its decode; the token at the same position
    in the row before, or half the batch before; the token one position back in the row after, or before; for
    first tokens, that of the row before (calls one after another). Laws of a token x of law p with partner y:

    * same token: (1 - l) p(x) + l [x = y]; another token: (1 - l) p(x) + l p(x) [x != y] / (1 - p(y));
    * same quantile: the uniform from which an inverse-transform sampler drew y draws x too, at a share l,
      with tokens in id order or by falling probability (under one law that is the same token, and left out);
      and its mirror image, 1 - u;
    * table, where all tokens have one law: for each of up to 16 buckets of about equal mass that y can be in,
      the Dirichlet e-value of the buckets of x.

    Each but the table is averaged over shares l from .003 to .9. Relations have equal weight, and so have the
    components of a relation. The e-value is for one look, at a matrix whose shape was planned.

    Parameters
    ----------
    tokens
        Tokens, a decode a row, integers, shape (B, L); -1 after the end of a decode. Rows in the order of the
        batch, or of the calls.
    laws
        Target law, float, rows sum to 1: one row (V,) for all tokens; (L, V), a row a position; or with
        `states` (S, V).
    states
        Row of `laws` that each token was drawn from, integers, shape (B, L); it may depend on the tokens
        before it in its decode. Not read after the end of a decode.

    Raises
    ------
    InputError
        If a shape does not fit, a row is no law, a token or state is out of range, a token stands after the
        end of its decode, or there is a single token.

    References
    ----------
    .. [1] G. Shafer, "Testing by betting", J. R. Stat. Soc. A 184 (2021), 407-431: bets that are fair under
       the null multiply to an e-value.

    Examples
    --------
    >>> rng = np.random.default_rng()
    >>> frozen = np.repeat(rng.choice(3, p=[0.5, 0.3, 0.2], size=(40, 1)), 8, axis=1)
    >>> found = dependence(frozen, [0.5, 0.3, 0.2])
    >>> found.evidence.rejects(1e-6), found.relations[0].equal
    (True, 280)
    """
    batch = _as_batch(tokens, laws, states)
    families: dict[str, dict[str, float]] = {}
    relations = []
    for name, partner in _partners(*batch.tokens.shape).items():
        pairs = batch.pairs(partner)
        found = _bets(pairs, batch.one_law) | _table(batch, pairs)
        bets = {f"{name}, {kind}": value for kind, value in found.items()}
        families[name] = bets
        relations.append(_summary(name, pairs, mix_families({name: bets})))
    if batch.impossible:
        families["impossible"] = {"tokens of target probability 0": np.inf}
    return Dependence(
        evidence=mix_families(families),
        relations=tuple(relations),
        heterogeneity=_heterogeneity(batch),
        tokens=int(batch.alive.sum()),
        impossible=batch.impossible,
    )


def _summary(name: str, pairs: _Pairs, evidence: Evidence) -> Relation:
    equal = int((pairs.x == pairs.y).sum())
    return Relation(name, pairs.x.size, equal, float(pairs.p_of_y.sum()), evidence.log_e, evidence.strongest)


# ---- the batch


@dataclass(frozen=True, eq=False)
class _Batch:
    """Checked tokens with what each has from its own law; entries after the end of a decode mean nothing."""

    tokens: Ints  # (B, L)
    alive: Mask
    laws: Floats  # (S, V)
    states: Ints  # (B, L)
    one_law: bool  # all tokens were drawn from laws[0]
    p: Floats  # probability of each token, 1 where it is impossible
    spans: tuple[_Span, ...]  # uniforms that give each token: in id order, and by falling probability
    impossible: int

    def pairs(self, partner: _Partner) -> _Pairs:
        """Return the pairs of one relation in which both tokens are there."""
        x_at, y_at = partner.slices(*self.tokens.shape)
        both = self.alive[x_at] & self.alive[y_at]
        y = self.tokens[y_at][both]
        return _Pairs(
            planned=both.size,
            x=self.tokens[x_at][both],
            y=y,
            p_of_x=self.p[x_at][both],
            p_of_y=self.laws[self.states[x_at][both], y],
            spans=tuple((span.at(x_at, both), span.at(y_at, both)) for span in self.spans),
        )


@dataclass(frozen=True, eq=False)
class _Span:
    """The uniforms [low, high) that an inverse-transform sampler turns into a token."""

    low: Floats
    high: Floats

    def at(self, place: tuple[slice, slice], both: Mask) -> _Span:
        return _Span(self.low[place][both], self.high[place][both])

    def mirrored(self) -> _Span:
        """Return the span of 1 - u."""
        return _Span(1.0 - self.high, 1.0 - self.low)

    def overlap(self, other: _Span) -> Floats:
        """Return the length of the common part."""
        common = np.minimum(self.high, other.high) - np.maximum(self.low, other.low)
        return np.asarray(np.maximum(common, 0.0))


@dataclass(frozen=True, eq=False)
class _Pairs:
    """The pairs of one relation, flat: token x, its partner y, and what the bets need."""

    planned: int
    x: Ints
    y: Ints
    p_of_x: Floats
    p_of_y: Floats  # probability that x's law gives to the token y
    spans: tuple[tuple[_Span, _Span], ...]


@dataclass(frozen=True)
class _Partner:
    """Where the partner of a token stands: so many rows up and positions back."""

    up: int
    back: int
    first_only: bool = False

    def slices(self, height: int, width: int) -> tuple[tuple[slice, slice], tuple[slice, slice]]:
        """Return the places of the tokens x and of their partners y, of one shape."""
        end = 1 if self.first_only else width
        x_rows = slice(max(self.up, 0), height + min(self.up, 0))
        y_rows = slice(max(-self.up, 0), height - max(self.up, 0))
        return (x_rows, slice(self.back, end)), (y_rows, slice(0, end - self.back))


def _partners(height: int, width: int) -> dict[str, _Partner]:
    """Return the relations that a matrix of this shape has, each partner earlier by (position, row)."""
    places = {f"{lag} back in the decode": _Partner(0, lag) for lag in LAGS}
    places["row before"] = _Partner(1, 0)
    if height // 2 > 1:
        places["half the batch before"] = _Partner(height // 2, 0)
    places["row after, 1 back"] = _Partner(-1, 1)
    places["row before, 1 back"] = _Partner(1, 1)
    if width > 1:
        places["first token of the row before"] = _Partner(1, 0, first_only=True)
    return {name: at for name, at in places.items() if abs(at.up) < height and at.back < width}


def _as_batch(tokens: ArrayLike, laws: ArrayLike, states: ArrayLike | None) -> _Batch:
    """Return the checked tokens with their laws."""
    rows = np.atleast_2d(as_probabilities(laws))
    drawn = _as_tokens(tokens, rows.shape[1])
    alive = drawn >= 0
    drawn = np.where(alive, drawn, 0)
    state = np.where(alive, _as_states(states, np.ndim(laws), len(rows), alive), 0)
    p = np.where(alive, rows[state, drawn], 1.0)
    return _Batch(
        tokens=drawn,
        alive=alive,
        laws=rows,
        states=state,
        one_law=len(rows) == 1,
        p=np.where(p > 0, p, 1.0),
        spans=tuple(_span(rows, order, state, drawn) for order in _orders(rows)),
        impossible=int((p == 0).sum()),
    )


def _as_tokens(tokens: ArrayLike, vocabulary: int) -> Ints:
    """Return the tokens as int64 (B, L), -1 only after the end of a decode."""
    drawn = _as_whole_matrix("tokens", tokens)
    if drawn.size < 2:
        raise InputError(f"tokens have shape {drawn.shape}; needed: two tokens or more, to compare them.")
    if drawn.min() < -1 or drawn.max() >= vocabulary:
        row, position = np.argwhere((drawn < -1) | (drawn >= vocabulary))[0]
        raise InputError(
            f"token {drawn[row, position]} of row {row}, position {position}, is out of range; needed: 0 to "
            f"{vocabulary - 1}, or -1 after the end of a decode."
        )
    again = (drawn[:, :-1] < 0) & (drawn[:, 1:] >= 0)
    if again.any():
        row, position = np.argwhere(again)[0]
        raise InputError(
            f"row {row} has -1 at position {position} and a token after it; needed: -1 only after the end of "
            "a decode. Close the gaps that refused drafts leave."
        )
    return drawn


def _as_states(states: ArrayLike | None, dimensions: int, count: int, alive: Mask) -> Ints:
    """Return the row of the laws that each token was drawn from, (B, L)."""
    if states is not None:
        given = _as_whole_matrix("states", states)
        if given.shape != alive.shape:
            raise InputError(f"states have shape {given.shape} and tokens {alive.shape}; give both the same.")
        outside = alive & ((given < 0) | (given >= count))
        if outside.any():
            row, position = np.argwhere(outside)[0]
            raise InputError(
                f"state {given[row, position]} of row {row}, position {position}, is out of range; needed: 0 "
                f"to {count - 1}, a row of laws."
            )
        return given
    if dimensions == 1:
        return np.zeros(alive.shape, dtype=np.int64)
    if count != alive.shape[1]:
        raise InputError(
            f"laws have {count} rows and tokens {alive.shape[1]} positions; needed: one row (V,), a row a "
            "position, or `states` that say which row each token was drawn from."
        )
    return np.broadcast_to(np.arange(count), alive.shape)


def _as_whole_matrix(name: str, values: ArrayLike) -> Ints:
    try:
        given = np.asarray(values)
    except ValueError as error:  # rows of different lengths
        raise InputError(
            f"{name} are no matrix; needed: shape (B, L), -1 after the end of a decode."
        ) from error
    if given.ndim != 2 or given.dtype.kind not in "iu":
        raise InputError(
            f"{name} have shape {given.shape} and dtype {given.dtype}; needed: integers of shape (B, L), a "
            "decode a row, -1 after its end."
        )
    return given.astype(np.int64)


def _orders(laws: Floats) -> Iterator[Ints]:
    """Yield the orders in which samplers line tokens up, (S, V): by id, and by falling probability."""
    yield np.broadcast_to(np.arange(laws.shape[1]), laws.shape)
    yield np.argsort(-laws, axis=1, kind="stable")


def _span(laws: Floats, order: Ints, states: Ints, tokens: Ints) -> _Span:
    """Return the uniforms that give each token; the spans of a law's tokens tile [0, 1] to the last bit."""
    ends = np.cumsum(np.take_along_axis(laws, order, axis=1), axis=1)
    ends /= ends[:, -1:]
    place = np.empty_like(order)
    np.put_along_axis(place, order, np.arange(order.shape[1])[None, :], axis=1)
    at = place[states, tokens]
    return _Span(np.where(at > 0, ends[states, at - 1], 0.0), ends[states, at])


# ---- bets


def _bets(pairs: _Pairs, one_law: bool) -> dict[str, float]:
    """Return log e-values by kind, each the average over shares."""
    same = pairs.x == pairs.y
    rest = 1.0 - pairs.p_of_y
    ratios = {
        # Where x's law has no weight on y, or all of it, there is nothing to bet.
        "same token": np.where(pairs.p_of_y > 0, same / pairs.p_of_x, 1.0),
        "another token": np.where(rest > _LEAST_REST, ~same / np.maximum(rest, _LEAST_REST), 1.0),
    }
    for name, (x, y) in zip(("id order", "rank order"), pairs.spans, strict=True):
        if not one_law:  # under one law the same quantile is the same token
            ratios[f"same quantile, {name}"] = _quantile_ratio(x, y, pairs.p_of_x)
        ratios[f"mirrored quantile, {name}"] = _quantile_ratio(x, y.mirrored(), pairs.p_of_x)
    return {name: _average_over_shares(ratio) for name, ratio in ratios.items()}


def _quantile_ratio(x: _Span, y: _Span, p_of_x: Floats) -> Floats:
    """Return P(x | the uniform lies in y's span) / p(x)."""
    length = y.high - y.low
    there = length > 0
    return np.where(there, x.overlap(y) / np.where(there, length * p_of_x, 1.0), 1.0)


def _average_over_shares(ratio: Floats) -> float:
    """Return ln of the average over shares l of the product of 1 - l + l ratio."""
    log_e = np.log1p(np.multiply.outer(SHARES, ratio - 1.0)).sum(axis=1)
    return float(np.logaddexp.reduce(log_e) - np.log(len(SHARES)))


def _table(batch: _Batch, pairs: _Pairs) -> dict[str, float]:
    """Return the log e-value of x's bucket given y's, where one law makes such a table."""
    if not batch.one_law:
        return {}
    bucket, mass = _buckets(batch.laws[0], BUCKETS)
    size = mass.size
    if size == 1:
        return {}
    counts = np.bincount(bucket[pairs.y] * size + bucket[pairs.x], minlength=size**2).reshape(size, size)
    multiples = np.array(list(scales().values()))
    k = np.multiply.outer(multiples, concentration(pairs.planned, size * (size - 1)) * mass)
    rows, repeated = np.tile(mass, (k.size, 1)), np.tile(counts, (multiples.size, 1))
    log_e = np.reshape(log_e_value(repeated, rows, k.ravel()), k.shape).sum(axis=1)
    return {"table": float(np.logaddexp.reduce(log_e) - np.log(multiples.size))}


def _buckets(row: Floats, count: int) -> tuple[Ints, Floats]:
    """Return each token's bucket, by the mass at its middle as probabilities fall, and their masses."""
    order = np.argsort(-row, kind="stable")
    middle = np.cumsum(row[order]) - row[order] / 2.0
    label = np.empty(row.size, dtype=np.int64)
    label[order] = np.minimum(middle * count, count - 1).astype(np.int64)
    label[row == 0] = label[row > 0].max()
    _, bucket = np.unique(label, return_inverse=True)
    return bucket.astype(np.int64), np.bincount(bucket, weights=row).astype(np.float64)


# ---- rows of the batch


def _heterogeneity(batch: _Batch) -> GoodnessOfFit | None:
    """Return the test of sum_b X2_b - X2_pooled, two-sided; None where rows differ in law or length.

    Its mean is (B - 1)(K - 1), that of the chi-square law with so many degrees of freedom, exactly. Its
    variance is larger where cells expect little in a row: the law is scaled to have both.
    """
    from scipy.special import gammainc, gammaincc

    height, width = batch.tokens.shape
    if not (batch.one_law and batch.alive.all()) or batch.impossible or height < 2:
        return None
    bucket, mass = _buckets(batch.laws[0], min(BUCKETS, max(1, int(width // MIN_EXPECTED))))
    cells = pool(mass, width, MIN_EXPECTED)
    share = np.bincount(cells, weights=mass)
    size = share.size
    if size == 1:
        return None
    label = cells[bucket][batch.tokens] + size * np.arange(height)[:, None]
    counts = np.bincount(label.ravel(), minlength=height * size).reshape(height, size)
    z = (counts - width * share) / np.sqrt(width * share)
    statistic = float(((z - z.mean(axis=0)) ** 2).sum())
    df = (height - 1) * (size - 1)
    spread = (
        float((1.0 / share).sum()) - size**2 - 2 * size + 2
    ) / width  # of one row's X2, beyond 2 (K - 1)
    variance = 2.0 * df + (height - 1) ** 2 / height * spread
    shape, scale = df**2 / variance, variance / df
    tails = gammainc(shape, statistic / scale), gammaincc(shape, statistic / scale)
    return GoodnessOfFit(
        name="heterogeneity of rows",
        statistic=statistic,
        p_value=float(min(1.0, 2.0 * min(tails))),
        degrees_of_freedom=df,
        cells=size,
        samples=height * width,
        method="two moments",
    )
