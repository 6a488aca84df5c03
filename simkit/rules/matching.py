"""Rules in which the target draws its own token and goes on while the draft is the same."""

from __future__ import annotations

from simkit.rules.choose import Block, Choose, Emitted


def sampled_match(model: Block, choose: Choose) -> Emitted:
    """Emit the target's own sample, and go on while it equals the draft. Lossless.

    It keeps a draft with sum(p q), never more than the token rule's sum(min(p, q)), and it needs no law of
    the draft. It has the law of `one_hot`.

    Parameters
    ----------
    model, choose
        See `simkit.rules.choose`.

    References
    ----------
    Reported as biased in a public thread (z-lab/dflash 74); it is not.

    Examples
    --------
    >>> from simkit.laws.pair import Pair
    >>> from simkit.rules.chain import Chain
    >>> from simkit.rules.choose import walk
    >>> from simkit.rules.single import one_hot
    >>> model = Block(Pair.from_weights([1, 2], [2, 1]), state=0, draft_length=1)
    >>> walk(sampled_match, model) == walk(Chain(one_hot), model)
    True
    """
    tokens: tuple[int, ...] = ()
    for slot in range(model.draft_length):
        draft = choose(model.draft(tokens, slot))
        tokens += (choose(model.target(tokens)),)
        if tokens[-1] != draft or model.ended(tokens):
            return Emitted(tokens, slot + (tokens[-1] == draft))
    return Emitted((*tokens, choose(model.target(tokens))), model.draft_length)


def shared_gumbel(model: Block, choose: Choose) -> Emitted:
    """Read draft and target from one noise at each position, and go on while they agree. Lossless.

    What comes out is the target's winner, so for given noise the output does not depend on the draft. It
    keeps a draft with sum_i 1 / sum_k max(q_k / q_i, p_k / p_i): at least (1 - d) / (1 + d), where d is the
    total variation of p and q, and at most the token rule's 1 - d. The n-th race of a call gives its n-th
    token, so noise may be addressed by position in the output.

    Parameters
    ----------
    model, choose
        See `simkit.rules.choose`.

    References
    ----------
    Daliri, Musco, Suresh 2024 (arXiv 2408.07978), drafter-invariant speculative decoding by Gumbel sampling.

    Examples
    --------
    >>> from simkit.laws.pair import Pair
    >>> from simkit.rules.choose import walk
    >>> law = walk(shared_gumbel, Block(Pair.from_weights([1, 2], [2, 1]), state=0, draft_length=1))
    >>> str(sum(mass * emitted.accepted for emitted, mass in law.items()))
    '2/3'
    """
    tokens: tuple[int, ...] = ()
    for slot in range(model.draft_length):
        draft, winner = choose.race(model.draft(tokens, slot), model.target(tokens))
        tokens += (winner,)
        if draft != winner or model.ended(tokens):
            return Emitted(tokens, slot + (draft == winner))
    target = model.target(tokens)
    return Emitted((*tokens, choose.race(target, target)[0]), model.draft_length)
