"""The rules by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import lru_cache

import numpy as np

from simkit.errors import InputError, UnknownNameError
from simkit.rules import lossy, multidraft, single, tries
from simkit.rules.block import block
from simkit.rules.chain import Chain
from simkit.rules.choose import Text
from simkit.rules.faults import CONTROLS, FAULTS
from simkit.rules.matching import sampled_match, shared_gumbel
from simkit.rules.step import token_rule


@dataclass(frozen=True)
class Entry:
    """A rule with what a reader of a result has to know about it.

    Parameters
    ----------
    text : callable
        See `simkit.rules.choose.Text`; a `Chain` for rules that judge drafts one by one.
    lossless : bool
        Whether its output law is the target's, for every pair.
    summary : str
        One sentence.
    source : str
        The paper or program it comes from.
    same_law : Chain or None
        A chain rule that emits and keeps by the same law, for closed forms and kernels at any vocabulary.
    make : callable or None
        The value behind ``NAME:VALUE`` to the text; None for a rule without a parameter.
    parameter : str
        What the value is, and its default.
    proposal : str
        How a rule with several drafts at a slot draws them, see `simkit.rules.bound.drafted_sets`; its
        parameter is their number. Empty for rules that draft one path.
    """

    text: Text
    lossless: bool
    summary: str
    source: str
    same_law: Chain | None = None
    make: Callable[[str], Text] | None = None
    parameter: str = ""
    proposal: str = ""

    @property
    def chain(self) -> Chain | None:
        """The rule as a chain rule, or None if it is none."""
        return self.text if isinstance(self.text, Chain) else self.same_law


_LEVIATHAN = "Leviathan et al. 2023, arXiv 2211.17192"

RULES = {
    "token": Entry(
        Chain(token_rule),
        True,
        "keep with min(1, p/q), replace from the residual",
        f"{_LEVIATHAN}, algorithm 1",
    ),
    "block": Entry(
        block,
        True,
        "keep the longest prefix of the block that its own coin accepts",
        "Sun et al. 2024, arXiv 2403.10444, algorithm 2",
    ),
    "sampled-match": Entry(
        sampled_match,
        True,
        "emit the target's own sample while it equals the draft",
        "gpt-fast's and llama.cpp's sampling verification",
        same_law=Chain(single.one_hot),
    ),
    "shared-gumbel": Entry(
        shared_gumbel,
        True,
        "draft and target read one noise at each position",
        "Daliri et al. 2024, arXiv 2408.07978",
    ),
    "one-hot": Entry(
        Chain(single.one_hot),
        True,
        "keep x with p(x), replace from p given other than x: drafts that come without a law",
        "vLLM and transformers for n-gram drafts",
    ),
    "argmax-draft": Entry(
        Chain(single.argmax_draft),
        True,
        "the token rule on the draft's most likely token, with the right one-hot law",
        f"{_LEVIATHAN}, section 2.3",
    ),
    "with-replacement": Entry(
        Chain(tries.with_replacement(2)),
        True,
        "independent drafts at each slot, tried one by one against what the others left",
        "SpecInfer, Miao et al. 2024, arXiv 2305.09781, algorithm 2",
        make=lambda value: (
            multidraft.with_replacement(_shape(value))
            if "-" in value
            else Chain(tries.with_replacement(_count(value)))
        ),
        parameter="drafts at a node, or by level as in 3-2-1, 2",
        proposal="with-replacement",
    ),
    "k-seq": Entry(
        Chain(tries.k_seq(2)),
        True,
        "independent drafts at each slot, all with the test p / (gamma q)",
        "SpecTr, Sun et al. 2023, arXiv 2310.15141, algorithm 2",
        make=lambda value: (
            multidraft.k_seq(_shape(value)) if "-" in value else Chain(tries.k_seq(_count(value)))
        ),
        parameter="drafts at a node, or by level as in 3-2-1, 2",
        proposal="with-replacement",
    ),
    "without-replacement": Entry(
        multidraft.without_replacement(2),
        True,
        "different drafts at each node of a tree, tried one by one against what the others left",
        "Sequoia, Chen et al. 2024, arXiv 2402.12374, algorithm 2; EAGLE",
        make=lambda value: multidraft.without_replacement(_shape(value)),
        parameter="drafts at a node, or by level as in 3-2-1, 2",
        proposal="without-replacement",
    ),
    "greedy-draft": Entry(
        multidraft.greedy_draft(2),
        True,
        "the n - 1 most likely drafts and one draw from the others, verified at the optimum",
        "Hu et al. 2025, arXiv 2502.18779",
        make=lambda value: multidraft.greedy_draft(_shape(value)),
        parameter="drafts at a node, or by level as in 3-2-1, 2",
        proposal="greedy",
    ),
    "target-tree": Entry(
        multidraft.target_tree(2),
        True,
        "the n most likely drafts at each node, kept when the target's own sample is among them",
        "SGLang, TreeSpeculativeSamplingTargetOnly with both thresholds at 1",
        make=lambda value: multidraft.target_tree(_shape(value)),
        parameter="drafts at a node, or by level as in 3-2-1, 2",
        proposal="top",
    ),
    "independent-paths": Entry(
        multidraft.independent_paths(2),
        True,
        "independent paths of drafts, merged where they agree, tried as with replacement",
        "SpecTr, arXiv 2310.15141; SpecInfer, arXiv 2305.09781",
        make=lambda value: multidraft.independent_paths(_count(value)),
        parameter="paths, 2",
        proposal="with-replacement",
    ),
    "greedy": Entry(
        Chain(single.greedy),
        False,
        "emits the target's most likely token; exact at temperature zero",
        "Stern et al. 2018, arXiv 1811.03115",
    ),
    "lenience": Entry(
        Chain(lossy.lenience("1/2")),
        False,
        "the token rule that keeps with min(1, p / (l q))",
        f"{_LEVIATHAN}, appendix on lenience",
        make=lambda value: Chain(lossy.lenience(value)),
        parameter="lenience l, 1/2",
    ),
    "thresholds": Entry(
        Chain(lossy.thresholds(acc="1/2")),
        False,
        "keep x with min(1, p(x) / t), replace from p given other than x",
        "SGLang, speculative_accept_threshold_acc",
        make=lambda value: Chain(lossy.thresholds(acc=value)),
        parameter="threshold t, 1/2",
    ),
    "typical": Entry(
        Chain(lossy.typical()),
        False,
        "keep x when p(x) > min(e, 0.3 exp(-entropy)), else draw from p",
        "Medusa, Cai et al. 2024, arXiv 2401.10774",
        make=lambda value: Chain(lossy.typical(value)),
        parameter="threshold e, 0.09",
    ),
    "ensemble": Entry(
        Chain(lossy.ensemble("1/2")),
        False,
        "the token rule against the mixture w p + (1 - w) q",
        "Fu et al. 2025, arXiv 2502.01662",
        make=lambda value: Chain(lossy.ensemble(value)),
        parameter="weight w of the target, 1/2",
    ),
}


def find_rule(name: str) -> Entry:
    """Return the entry of a rule, of a fault, or of a control.

    Parameters
    ----------
    name : str
        A key of `RULES`, or of `FAULTS` or `CONTROLS` of `simkit.rules.faults`; ``NAME:VALUE`` sets the
        parameter of a rule that has one.

    Raises
    ------
    UnknownNameError
        For a name that is not registered; the message lists those that are.
    InputError
        For a value that the rule does not take.

    Examples
    --------
    >>> find_rule("token").lossless, find_rule("with-replacement:4").parameter
    (True, 'drafts at a node, or by level as in 3-2-1, 4')
    """
    known, _, value = name.partition(":")
    if known in FAULTS and not value:
        fault = FAULTS[known]
        return Entry(fault.text, not fault.shows_in_a_law, fault.summary, fault.source)
    if known in CONTROLS and known not in RULES and not value:
        control = CONTROLS[known]
        return Entry(control.text, True, control.suspicion, control.source)
    if known not in RULES:
        raise UnknownNameError("rule", known, [*RULES, *get_close_matches(known, [*FAULTS, *CONTROLS], n=1)])
    entry = RULES[known]
    if ":" not in name:
        return entry
    if entry.make is None:
        raise InputError(f"rule {known!r} has no parameter; got {name!r}")
    what = entry.parameter.rpartition(",")[0]
    return replace(entry, text=_made(entry.make, value), parameter=f"{what}, {value}")


def find_text(rule: str | Text) -> Text:
    """Return the text of a rule; that of a chain rule with the same law where there is one.

    Parameters
    ----------
    rule : str or callable
        A name, see `find_rule`, or a text, which is returned as it is.

    Raises
    ------
    InputError, UnknownNameError
        As `find_rule`; also for what is neither a name nor callable.

    Examples
    --------
    >>> find_text("block").__name__
    'block'
    """
    if isinstance(rule, str):
        entry = find_rule(rule)
        return entry.chain or entry.text
    if not callable(rule):
        raise InputError(f"a rule is a name or a text; got {type(rule).__name__}")
    return rule


def find_chain(name: str) -> Chain:
    """Return a chain rule by name.

    Parameters
    ----------
    name : str
        See `find_rule`.

    Raises
    ------
    InputError, UnknownNameError
        As `find_rule`; also for a rule that does not judge drafts one by one.

    Examples
    --------
    >>> find_chain("token").rule.__name__
    'token_rule'
    """
    chain = find_rule(name).chain
    if chain is None:
        raise InputError(f"rule {name!r} is no chain rule: it does not judge its drafts one by one")
    return chain


@lru_cache(256)
def _made(make: Callable[[str], Text], value: str) -> Text:
    """Return the text for a value: the same each time, so that what is compiled for it is found again."""
    return make(value)


def _shape(value: str) -> tuple[int, ...]:
    return tuple(_count(level) for level in value.split("-"))


PROPOSALS = {
    "with-replacement": "with-replacement",
    "without-replacement": "without-replacement",
    "greedy-draft": "greedy",
    "target-tree": "top",
    "k-seq": "with-replacement",
    "independent-paths": "with-replacement",
}
"""How each kind of tree draws its drafts; see `simkit.rules.bound.drafted_sets`."""


def drafts_of(text: Text) -> tuple[str, tuple[int, ...]]:
    """Return how a text draws several drafts at a slot, and how many by level; ("", ()) for one path.

    A text that is neither a `Tree` nor a `Chain` is taken to draft one path.

    Parameters
    ----------
    text : callable
        The rule.

    Examples
    --------
    >>> [drafts_of(find_text(name)) for name in ("greedy-draft:3-2", "k-seq:4", "token")]
    [('greedy', (3, 2)), ('with-replacement', (4,)), ('', ())]
    """
    if isinstance(text, multidraft.Tree):
        return PROPOSALS[text.kind], text.shape
    if isinstance(text, Chain):
        tests = len(text.rule(np.array([[1, 1]]), np.array([[1, 1]])).tests)
        return ("with-replacement", (tests,)) if tests > 1 else ("", ())
    return "", ()


def _count(value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise InputError(f"drafts={value!r}; it needs a whole number") from None
