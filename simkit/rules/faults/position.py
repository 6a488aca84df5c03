"""Faults of position: rows that are read one place off, the bonus token, and what of a call is handed out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from simkit.laws.logits import rows_from_logits, tempered_rows
from simkit.laws.pair import Pair
from simkit.laws.rows import IntRows, common
from simkit.rules.chain import Chain
from simkit.rules.choose import Block, Choose, Emitted
from simkit.rules.faults.call import Tokens, excess, keep, misread, slot_by_slot
from simkit.rules.faults.fault import Fault, weights
from simkit.rules.step import Law, Step, one_hot_rows, residual, token_rule

_BEHIND_A_SURE_DRAFT = weights([[1, 0, 0], [5, 3, 2]], [[1, 0, 0], [2, 3, 5]])
"""The first draft is kept for certain, so that the second token is a bonus token."""

_CHANGING = weights([[2, 1], [1, 2]], [[1, 1], [1, 1]])
"""The target's row changes from one position to the next."""


def _following() -> Pair:
    """Return a pair whose rows depend on the token before: each likes to follow itself."""
    return Pair(
        rows=np.array([[1, 2], [2, 1]]),
        target=np.array([1, 0]),
        draft=np.array([[0], [1]]),
        next_state=np.array([[0, 1], [0, 1]]),
        initial=np.array([0]),
    )


def _two_requests() -> Pair:
    """Return two requests that differ in the target's row at the second position."""
    target = [[[1, 1], [2, 1]], [[1, 1], [1, 2]]]
    return Pair.from_weights(target, np.ones_like(target))


def _bonus_from_residual(target: IntRows, draft: IntRows) -> Step:
    return replace(token_rule(target, draft), bonus=residual(*common(target, draft)))


def _bonus_from_draft(target: IntRows, draft: IntRows) -> Step:
    return replace(token_rule(target, draft), bonus=draft)


def _bonus_by_argmax(target: IntRows, draft: IntRows) -> Step:
    return replace(token_rule(target, draft), bonus=one_hot_rows(target))


def _bonus_untempered(target: IntRows, draft: IntRows) -> Step:
    return replace(token_rule(target, draft), bonus=tempered_rows(target, 2.0))


def _tempered_pair() -> Pair:
    tempered = rows_from_logits([2.0, 1.0, 0.0], temperature=0.5)
    sure = np.array([1, 0, 0])
    return Pair.from_weights([sure, tempered], [sure, tempered])


def _next_position(model: Block, kept: Tokens, draft: int) -> Law:
    return model.p((*kept, draft))


def _first_request(model: Block, kept: Tokens) -> Law:
    if not kept:
        return model.p(kept)
    start = int(model.pair.initial[0])
    first = model.remember(("first request", start), lambda: Block(model.pair, start, model.draft_length))
    return first.p(kept)


def _first_unverified(model: Block, choose: Choose) -> Emitted:
    def judge(kept: Tokens) -> tuple[int, bool]:
        p, q = model.p(kept), model.q(kept, len(kept))
        draft = choose(q)
        if not kept or keep(choose, p[draft], q[draft]):
            return draft, True
        return choose(excess(p, q)), False

    return slot_by_slot(model, choose, judge)


def _with_refused(model: Block, choose: Choose) -> tuple[Emitted, Tokens]:
    """Return what the token rule emits, and the refused draft if there is one."""
    refused: Tokens = ()

    def judge(kept: Tokens) -> tuple[int, bool]:
        nonlocal refused
        p, q = model.p(kept), model.q(kept, len(kept))
        draft = choose(q)
        if keep(choose, p[draft], q[draft]):
            return draft, True
        refused = (draft,)
        return choose(excess(p, q)), False

    return slot_by_slot(model, choose, judge), refused


def _refused_in_context(model: Block, choose: Choose) -> Emitted:
    (tokens, accepted), refused = _with_refused(model, choose)
    if refused:
        tokens += (choose(model.p((*tokens[:-1], *refused))),)
    return Emitted(tokens, accepted)


def _refused_handed_out(model: Block, choose: Choose) -> Emitted:
    (tokens, accepted), refused = _with_refused(model, choose)
    return Emitted((*tokens[:-1], *refused, tokens[-1]), accepted)


def _last_kept_twice(model: Block, choose: Choose) -> Emitted:
    (tokens, accepted), refused = _with_refused(model, choose)
    kept = tokens[:accepted]
    return Emitted((*kept, *kept[-1:], *tokens[accepted:]) if refused else tokens, accepted)


def _counted_anywhere(model: Block, choose: Choose) -> Emitted:
    drafts: Tokens = ()
    count = 0
    for slot in range(model.draft_length):
        p, q = model.p(drafts), model.q(drafts, slot)
        draft = choose(q)
        drafts += (draft,)
        count += keep(choose, p[draft], q[draft])
    kept = drafts[:count]
    law = model.p(kept) if count == model.draft_length else excess(model.p(kept), model.q(kept, count))
    return Emitted((*kept, choose(law)), count)


FAULTS = (
    Fault(
        "bonus-from-residual",
        "law",
        "the bonus token is drawn from the residual",
        "bonus: max(p - q, 0) instead of p",
        "SafeAILab/EAGLE #47",
        Chain(_bonus_from_residual),
        _BEHIND_A_SURE_DRAFT,
        length=2,
    ),
    Fault(
        "bonus-from-draft",
        "law",
        "the bonus token is drawn from the draft model",
        "bonus: q instead of p",
        "code pattern",
        Chain(_bonus_from_draft),
        _BEHIND_A_SURE_DRAFT,
        length=2,
    ),
    Fault(
        "bonus-by-argmax",
        "law",
        "the bonus token is the target's most likely token",
        "bonus: the argmax of p instead of p",
        "ardanlabs/kronk #788",
        Chain(_bonus_by_argmax),
        _BEHIND_A_SURE_DRAFT,
        length=2,
    ),
    Fault(
        "bonus-without-temperature",
        "law",
        "the bonus token is drawn at temperature 1 where the request asks for 1/2",
        "bonus: the law of p ** (1/2), in units of 2**-40, instead of p",
        "SafeAILab/EAGLE #215",
        Chain(_bonus_untempered),
        _tempered_pair,
        length=2,
    ),
    Fault(
        "bonus-row-of-last-draft",
        "law",
        "there are K target rows instead of K + 1, and the bonus token is drawn from the last draft's",
        "bonus: p of the position before instead of p",
        "code pattern",
        misread(bonus=lambda model, kept: model.p(kept[:-1])),
        _CHANGING,
        length=2,
    ),
    Fault(
        "target-row-of-next-position",
        "law",
        "the target's rows are taken one place too late: a draft is judged by the row that follows it",
        "accept and correct: p of the position behind the draft instead of p",
        "vllm-project/vllm #41768; mlx-node/mlx-node #11",
        misread(target=_next_position),
        _CHANGING,
    ),
    Fault(
        "row-of-first-request",
        "law",
        "the rows of a batch are found by an index of requests where one of tokens is needed",
        "accept, correct and bonus: p of the first request instead of the own, behind the first slot",
        "vllm-project/vllm #35398",
        misread(target=lambda model, kept, draft: _first_request(model, kept), bonus=_first_request),
        _two_requests,
        length=2,
    ),
    Fault(
        "first-draft-unverified",
        "law",
        "the first draft of a call is handed out before it is judged",
        "accept: 1 instead of min(1, p / q) at slot 0",
        "ohdearquant/lattice #243",
        _first_unverified,
    ),
    Fault(
        "context-keeps-refused-draft",
        "law",
        "the target's cache is not rolled back, so the token behind a replacement follows the refused draft",
        "the token behind a replacement: p given the refused draft instead of the replacement",
        "ml-explore/mlx-lm #1109, #846",
        _refused_in_context,
        _following,
        length=2,
    ),
    Fault(
        "refused-draft-handed-out",
        "law",
        "one draft too many counts as kept, so the refused one comes out in front of its replacement",
        "output: kept drafts, the refused one, replacement",
        "lucidrains/speculative-decoding #3",
        _refused_handed_out,
    ),
    Fault(
        "last-kept-draft-twice",
        "law",
        "the last kept draft comes out again in front of a replacement",
        "output: kept drafts, the last of them, replacement",
        "kekzl/imp #667",
        _last_kept_twice,
        draft_length=2,
        length=2,
    ),
    Fault(
        "kept-counted-anywhere",
        "law",
        "the kept drafts are counted behind the first refusal, too, and so many are taken from the front",
        "output: as many drafts as coins are heads instead of those in front of the first tails",
        "code pattern; vllm-project/vllm #2658 counts a metric so",
        _counted_anywhere,
        draft_length=2,
    ),
)
"""Faults of position."""
