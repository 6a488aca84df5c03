"""Evidence from contexts that never repeat, where each row of target probabilities is drawn from once.

After one draw the Dirichlet e-value of a context is exactly 1, whatever was drawn. Power comes from
alternatives that all contexts share: each names a law for the next token before that token is seen, and the
product of law(token) / p(token) over the tokens is a martingale of expectation 1 if p is right. The
components are averaged with weights that are fixed beforehand, so P(evidence ever reaches 1/alpha) <= alpha
(Ville), at any length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simkit.errors import InputError
from simkit.stats._alternatives import BUCKETS, FAULTS, TEMPERATURES, Pointwise, buckets, log_tilt_sums
from simkit.stats._input import Floats, Ints
from simkit.stats.evalue import Evidence, mix_families

Mask = NDArray[np.bool_]
Numbers = NDArray[np.floating | np.integer]
Law = Callable[[Floats, Floats], Floats]
"""An alternative of one's own: target rows and draft rows (R, V) to the rows (R, V) of a law."""

MIXTURE_SHARES = (0.01, 0.03, 0.1, 0.3, 1.0)
# A fault need not hold at every position (bonus tokens are right), so its law is also bet on in part.
FAULT_SHARES = (1.0, 0.5, 0.1)
# Weight of the prior, in tokens: the best one grows with the run, whose length nobody plans.
PRIORS = (100, 1_000, 10_000, 100_000)

_SUM_TOLERANCE = 1e-9
_BLOCK = 1 << 15
_LARGEST = 1e300
# Each function of p and q that some fault needs the total of, once.
_SUMMED: tuple[Pointwise, ...] = tuple(
    dict.fromkeys(part for fault in FAULTS.values() for part in (fault.kept, fault.residual))
)


@dataclass(frozen=True, eq=False)
class _Totals:
    """What the laws need to know of whole rows; each array has one row a context."""

    tilts: Floats  # ln sum p^(1/T), (R, temperatures)
    top: Floats  # largest p and how many tokens have it, (R, 2)
    edges: Floats  # least p of a token in buckets 1, 2, ..., (R, BUCKETS - 1)
    masses: Floats  # mass of each bucket, (R, BUCKETS)
    sums: Floats  # sums of _SUMMED, (R, len(_SUMMED)); no columns without draft rows


@dataclass(frozen=True, eq=False)
class Contexts:
    """Hold rows with the totals that every run on them needs; `prepare` makes it.

    Parameters
    ----------
    p
        Target rows, float64, shape (R, V).
    q
        Draft rows, same shape, or None.
    laws
        Rows of the alternatives that were passed in, by name, each (R, V).
    families
        Names of the components, by family, in the order of the columns of `log_ratios`.
    """

    p: Floats
    q: Floats | None
    laws: Mapping[str, Floats]
    families: Mapping[str, tuple[str, ...]]
    totals: _Totals

    @property
    def components(self) -> tuple[str, ...]:
        """Return the names of the components."""
        return tuple(name for family in self.families.values() for name in family)

    def mix(self, log_e: ArrayLike) -> Floats:
        """Return ln of the weighted average of e-values over their last axis, the components.

        Families have equal weight, and so have the components of a family.

        Parameters
        ----------
        log_e
            Natural log of each component's e-value, shape (..., components): sums of `log_ratios`.
        """
        sizes = [len(family) for family in self.families.values()]
        shares = np.repeat(1.0 / np.array(sizes), sizes) / len(sizes)
        return np.asarray(np.logaddexp.reduce(np.asarray(log_e) + np.log(shares), axis=-1))


def prepare(
    rows: ArrayLike, draft_rows: ArrayLike | None = None, alternatives: Mapping[str, Law] | None = None
) -> Contexts:
    """Return contexts on which many runs can be judged, each at the cost of a look-up a token.

    Parameters
    ----------
    rows
        Target law of each token given its context, float, shape (R, V); rows sum to 1.
    draft_rows
        Law that a draft in this context is drawn from, same shape. Without it only the temperature and rank
        families are there.
    alternatives
        Laws of one's own, by name: functions of (p, q) that return rows (R, V). They join where there are
        draft rows; for a law of p alone pass the target rows as draft rows.

    Raises
    ------
    InputError
        If shapes differ or a row (of the input, or of an alternative) is no law; the row is named.

    Examples
    --------
    >>> contexts = prepare([[0.5, 0.3, 0.2]] * 4)
    >>> list(contexts.families)
    ['temperature', 'ranks']
    """
    own = _as_laws(alternatives)
    parts = [_prepare(p, q, own, at) for at, p, q in _blocks(*_as_matrices(rows, draft_rows))]
    if len(parts) == 1:
        return parts[0]
    return Contexts(
        p=np.concatenate([part.p for part in parts]),
        q=None if parts[0].q is None else np.concatenate([part.q for part in parts if part.q is not None]),
        laws={name: np.concatenate([part.laws[name] for part in parts]) for name in parts[0].laws},
        families=parts[0].families,
        totals=_Totals(
            *(np.concatenate([getattr(part.totals, f.name) for part in parts]) for f in fields(_Totals))
        ),
    )


def log_ratios(tokens: ArrayLike, contexts: Contexts) -> Floats:
    """Return ln law(token) / p(token) of each token and component, for one run through all contexts in order.

    Column sums are log e-values, and sums over the first rows are what they were at that time.

    Parameters
    ----------
    tokens
        The token drawn in each context, integers, shape (R,).
    contexts
        What `prepare` returned.

    Returns
    -------
    float64, shape (R, components); -inf where an alternative rules the token out, +inf in the whole row of a
    token of target probability 0.

    Raises
    ------
    InputError
        If tokens are not R integers from 0 to V - 1.

    Examples
    --------
    >>> contexts = prepare([[0.5, 0.3, 0.2]] * 4, [[0.2, 0.3, 0.5]] * 4)
    >>> ratios = log_ratios([2, 2, 1, 2], contexts)
    >>> at = contexts.components.index("draft-always-kept, share 1")
    >>> np.exp(ratios[:, at]).round(12).tolist()
    [2.5, 2.5, 1.0, 2.5]
    """
    drawn = _as_tokens(tokens, contexts.p.shape)
    values, possible, _ = _log_ratios(drawn, contexts, _Past())
    values[~possible] = np.inf
    return values


@dataclass(frozen=True, eq=False)
class _Past:
    """What earlier tokens showed: how often each bucket was drawn, and how often it was due."""

    seen: Floats = field(default_factory=lambda: np.zeros(BUCKETS))
    due: Floats = field(default_factory=lambda: np.zeros(BUCKETS))


class Stream:
    """Accumulate evidence while a run goes on, in memory that does not grow with it.

    Mutable, unlike the results it gives: a run has more rows than fit in memory, so they are folded in as
    they come, and dropped.

    Components, families with equal weight:

    * mixture: (1 - l) p + l q, the share l of the tokens comes from the draft;
    * temperature: p^(1/T) normalised, and the likeliest token always or at times;
    * ranks: buckets of likelier and less likely tokens, each with the factor by which it was drawn too often
      so far;
    * faults: laws of known faults, each at all positions, at half, or at a tenth of them;
    * own: the alternatives passed in, likewise.

    Without draft rows only temperature and ranks are used.

    Parameters
    ----------
    alternatives
        Laws of one's own, by name: functions of (p, q) that return rows (R, V); see `prepare`.

    Raises
    ------
    InputError
        If an alternative is not a function.

    References
    ----------
    .. [1] A. Ramdas, P. Grünwald, V. Vovk and G. Shafer, "Game-theoretic statistics and safe anytime-valid
       inference", Statistical Science 38 (2023), arXiv:2210.01948: likelihood ratios against
       alternatives that may depend on the past are test martingales.

    Examples
    --------
    >>> stream = Stream()
    >>> p, q = np.array([[0.5, 0.3, 0.2]] * 400), np.array([[0.2, 0.3, 0.5]] * 400)
    >>> stream.update([0, 0, 0, 1, 1, 1, 2, 2, 2, 2] * 40, p, q)
    >>> stream.tokens, stream.evidence.rejects(1e-6), stream.evidence.strongest
    (400, True, 'lenience 0.5, share 1')
    """

    def __init__(self, alternatives: Mapping[str, Law] | None = None) -> None:
        self._alternatives = _as_laws(alternatives)
        self._families: Mapping[str, tuple[str, ...]] | None = None
        self._log_e: Floats | None = None
        self._past = _Past()
        self._tokens = 0
        self._impossible = 0

    def update(self, tokens: ArrayLike, rows: ArrayLike, draft_rows: ArrayLike | None = None) -> None:
        """Add tokens in the order in which they were drawn. After an error nothing was added.

        Parameters
        ----------
        tokens
            The token drawn in each context, integers, shape (R,).
        rows
            Target law of each token given its context, float, shape (R, V); rows sum to 1. V may differ
            between updates.
        draft_rows
            Law that a draft in this context is drawn from, same shape; in every update or in none.

        Raises
        ------
        InputError
            If a shape does not fit, a row is no law, or a token is out of range; the row is named.
        """
        p, q = _as_matrices(rows, draft_rows)
        drawn = _as_tokens(tokens, p.shape)
        if drawn.size == 0:
            return
        self._check_same_kind(q is not None)
        log_e, past, impossible = self._log_e, self._past, self._impossible
        for at, p_block, q_block in _blocks(p, q):
            contexts = _prepare(p_block, q_block, self._alternatives, at)
            values, possible, past = _log_ratios(drawn[at : at + len(p_block)], contexts, past)
            gain = values[possible].sum(axis=0)
            log_e = gain if log_e is None else log_e + gain
            impossible += int((~possible).sum())
        self._families = contexts.families
        self._log_e, self._past, self._impossible = log_e, past, impossible
        self._tokens += drawn.size

    def _check_same_kind(self, has_draft: bool) -> None:
        """Raise where draft rows come in late or stop: weights of components must be fixed beforehand."""
        if self._families is not None and has_draft != ("mixture" in self._families):
            raise InputError(
                f"draft_rows are {'given' if has_draft else 'missing'} in this update, unlike in the first; "
                "give them in every update or in none, or keep two streams."
            )

    @property
    def tokens(self) -> int:
        """Return the number of tokens so far."""
        return self._tokens

    @property
    def impossible(self) -> int:
        """Return the number of tokens so far that have target probability 0: each is a proof."""
        return self._impossible

    @property
    def evidence(self) -> Evidence:
        """Return the evidence so far; it may be looked at after any token, and stopped on.

        Its log e-value is 0 before the first token, and +inf once a token of target probability 0 was drawn.
        """
        if self._families is None or self._log_e is None:
            return mix_families({"none": {"no tokens": 0.0}})
        values = iter(self._log_e.tolist())
        families = {
            family: {name: next(values) for name in names} for family, names in self._families.items()
        }
        if self._impossible:
            families["impossible"] = {"tokens of target probability 0": np.inf}
        return mix_families(families)


# ---- checks


def _as_laws(alternatives: Mapping[str, Law] | None) -> dict[str, Law]:
    """Return the alternatives, all of them functions."""
    laws = dict(alternatives or {})
    for name, law in laws.items():
        if not callable(law):
            raise InputError(
                f"alternative {name!r} is {type(law).__name__}; needed: a function of (p, q) that returns "
                "the rows of a law."
            )
    return laws


def _as_matrices(rows: ArrayLike, draft_rows: ArrayLike | None) -> tuple[Numbers, Numbers | None]:
    """Return the target rows and the draft rows, if any, as arrays of one shape (R, V); not copied."""
    p = _as_matrix("rows", rows)
    if draft_rows is None:
        return p, None
    q = _as_matrix("draft_rows", draft_rows)
    if q.shape != p.shape:
        raise InputError(f"rows have shape {p.shape} and draft_rows {q.shape}; give both the same shape.")
    return p, q


def _as_matrix(name: str, rows: ArrayLike) -> Numbers:
    try:
        given = np.asarray(rows)
    except ValueError as error:  # rows of different lengths
        raise InputError(f"{name} are no matrix; needed: a row a token, shape (R, V).") from error
    if given.dtype.kind not in "fiu" or given.ndim != 2 or given.shape[1] == 0:
        raise InputError(
            f"{name} have shape {given.shape} and dtype {given.dtype}; needed: numbers of shape (R, V)."
        )
    return given


def _as_tokens(tokens: ArrayLike, shape: tuple[int, int]) -> Ints:
    """Return the tokens as int64, one a row and all in the vocabulary."""
    drawn = np.asarray(tokens)
    if drawn.shape != (shape[0],) or (drawn.dtype.kind not in "iu" and drawn.size):
        raise InputError(
            f"tokens have shape {drawn.shape} and dtype {drawn.dtype}; needed: integers, one for each of the "
            f"{shape[0]} rows."
        )
    outside = (drawn < 0) | (drawn >= shape[1])
    if outside.any():
        at = int(outside.argmax())
        raise InputError(
            f"token {drawn[at]} of row {at} is out of range; needed: 0 to {shape[1] - 1}. Drop what stands "
            "after the end of a sequence."
        )
    return drawn.astype(np.int64)


def _as_rows(name: str, given: Numbers, first: int) -> Floats:
    """Return a block of rows as float64 laws whose sums are 1 to the last bit; `first` is its row number."""
    rows = given.astype(np.float64)
    sums = rows.sum(axis=1)
    # Not "off > tolerance": a NaN has to fail too.
    bad = ~(np.abs(sums - 1.0) <= _SUM_TOLERANCE) | (rows.min(axis=1) < 0)
    if bad.any():
        at = int(bad.argmax())
        raise InputError(
            f"{name}: row {first + at} sums to {float(sums[at])!r}, its least entry is "
            f"{float(rows[at].min())!r}; needed: a sum of 1 within {_SUM_TOLERANCE:g} and entries >= 0. "
            "Normalise in float64: p = np.float64(p); p /= p.sum(-1, keepdims=True)."
        )
    rows /= sums[:, None]
    return rows


def _blocks(p: Numbers, q: Numbers | None = None) -> Iterator[tuple[int, Numbers, Numbers | None]]:
    """Yield the number of the first row and the rows of each block; a block fits in the cache."""
    size = max(1, _BLOCK // p.shape[1])
    for at in range(0, max(len(p), 1), size):
        yield at, p[at : at + size], None if q is None else q[at : at + size]


# ---- totals of rows


def _prepare(rows: Numbers, draft_rows: Numbers | None, own: Mapping[str, Law], first: int) -> Contexts:
    """Return the contexts of one block; `first` is the number of its first row, for messages."""
    p = _as_rows("rows", rows, first)
    q = None if draft_rows is None else _as_rows("draft_rows", draft_rows, first)
    laws = {} if q is None else {name: _own_rows(name, law, p, q, first) for name, law in own.items()}
    return Contexts(p, q, laws, _families(q is not None, tuple(laws)), _totals(p, q))


def _own_rows(name: str, law: Law, p: Floats, q: Floats, first: int) -> Floats:
    """Return the rows of an alternative that was passed in, checked."""
    rows = _as_matrix(f"alternative {name!r}", law(p, q))
    if rows.shape != p.shape:
        raise InputError(f"alternative {name!r} returns shape {rows.shape} for rows of shape {p.shape}.")
    return _as_rows(f"alternative {name!r}", rows, first)


def _families(has_draft: bool, own: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Return the names of the components, by family, in the order of `_log_ratios`."""
    tilts = (*(f"temperature {t:g}" for t in TEMPERATURES), *_in_part(["greedy"]))
    families = {"temperature": tilts, "ranks": tuple(f"ranks, prior {k}" for k in PRIORS)}
    if has_draft:
        mixture = tuple(f"mixture {share:g}" for share in MIXTURE_SHARES)
        families = {"mixture": mixture, **families, "faults": _in_part(FAULTS)}
    return {**families, "own": _in_part(own)} if own else families


def _in_part(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"{name}, share {share:g}" for name in names for share in FAULT_SHARES)


def _totals(p: Floats, q: Floats | None) -> _Totals:
    top = p.max(axis=1)
    edges, masses = buckets(p)
    return _Totals(
        tilts=log_tilt_sums(p),
        top=np.stack([top, (p == top[:, None]).sum(axis=1)], axis=1),
        edges=edges,
        masses=masses,
        sums=_columns([] if q is None else [part(p, q).sum(axis=1) for part in _SUMMED], len(p)),
    )


def _columns(values: list[Floats], height: int) -> Floats:
    """Return the values as columns, (height, number of values), also where there are none."""
    return np.stack(values, axis=1) if values else np.empty((height, 0))


# ---- ratios of tokens


def _log_ratios(drawn: Ints, contexts: Contexts, past: _Past) -> tuple[Floats, Mask, _Past]:
    """Return log ratios (R, components), which tokens are possible, and what the past is after them.

    Rows of impossible tokens hold nothing of use.
    """
    if len(drawn) != len(contexts.p):
        raise InputError(f"{len(drawn)} tokens for {len(contexts.p)} contexts; needed: one each.")
    at = (np.arange(len(drawn)), drawn)
    p = contexts.p[at]
    possible = p > 0
    p = np.where(possible, p, 1.0)
    with np.errstate(divide="ignore", over="ignore"):
        ranks, past = _rank_bets(p, contexts.totals, past)
        parts = [_tilts(p, contexts.totals), ranks]
        if contexts.q is not None:
            q = contexts.q[at]
            own = _columns([rows[at] for rows in contexts.laws.values()], len(drawn))
            faults = _fault_weights(p, q, contexts.totals.sums)
            mixture = _bet(q[:, None], p, MIXTURE_SHARES)
            parts = [mixture, *parts, _bet(faults, p, FAULT_SHARES), _bet(own, p, FAULT_SHARES)]
    return np.concatenate(parts, axis=1), possible, past


def _bet(weights: Floats, p: Floats, shares: tuple[float, ...]) -> Floats:
    """Return ln[(1 - l) + l weight/p], (R, laws x shares): the law holds at a share l of the positions."""
    ratio = np.minimum(weights / p[:, None], _LARGEST)
    share = np.array(shares)
    bets = np.log((1.0 - share) + share * ratio[:, :, None])
    return np.asarray(bets.reshape(len(p), ratio.shape[1] * share.size))


def _tilts(p: Floats, totals: _Totals) -> Floats:
    """Return log ratios of the tilted laws and of the greedy one."""
    tilted = np.log(p)[:, None] * (1.0 / np.array(TEMPERATURES) - 1.0) - totals.tilts
    top, ties = totals.top.T
    return np.concatenate([tilted, _bet(((p == top) / ties)[:, None], p, FAULT_SHARES)], axis=1)


def _fault_weights(p: Floats, q: Floats, sums: Floats) -> Floats:
    """Return the laws of known faults at the tokens, (R, faults)."""
    total = dict(zip(_SUMMED, sums.T, strict=True))
    laws = [fault.at(p, q, total[fault.kept], total[fault.residual]) for fault in FAULTS.values()]
    return np.stack(laws, axis=1)


def _rank_bets(p: Floats, totals: _Totals, past: _Past) -> tuple[Floats, _Past]:
    """Return log ratios of the laws that raise each bucket by what earlier tokens showed, and the new past.

    A bucket's factor is (seen + k/16) / (due + k/16) over earlier tokens only; the factors are normalised
    against the masses of the context at hand, so the law sums to 1 whatever the past was.
    """
    bucket = (totals.edges <= p[:, None]).sum(axis=1)
    drawn = (bucket[:, None] == np.arange(BUCKETS)).astype(np.float64)
    seen = np.cumsum(np.vstack([past.seen, drawn]), axis=0)
    due = np.cumsum(np.vstack([past.due, totals.masses]), axis=0)
    bets = []
    for prior in PRIORS:
        factor = (seen[:-1] + prior / BUCKETS) / (due[:-1] + prior / BUCKETS)
        own = np.take_along_axis(factor, bucket[:, None], axis=1)[:, 0]
        bets.append(np.log(own) - np.log((totals.masses * factor).sum(axis=1)))
    return np.stack(bets, axis=1), _Past(seen[-1], due[-1])
