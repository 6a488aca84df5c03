"""The fault catalogue: every fault is off exactly, as far as published or derived by hand; no control is."""

from __future__ import annotations

import re
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from simkit.errors import InputError, UnknownNameError
from simkit.laws.pair import Pair
from simkit.laws.synthetic import corner_case, corner_cases, near_copy, zipf
from simkit.rules.block import block
from simkit.rules.chain import Chain
from simkit.rules.choose import Block, Emitted, walk
from simkit.rules.coupling import race_law
from simkit.rules.exact import exact_accepted, exact_law
from simkit.rules.faults import CLASSES, CONTROLS, FAMILIES, FAULTS, Fault
from simkit.rules.faults.blocks import in_blocks
from simkit.rules.faults.call import excess, misread
from simkit.rules.faults.fault import base
from simkit.rules.faults.measure import SHORTCUTS, blind, distance, marginal_distance, target_law
from simkit.rules.faults.word import FLOAT32_WORDS, Word
from simkit.rules.registry import RULES, find_rule
from simkit.rules.step import token_rule

SHOWN = [name for name, fault in FAULTS.items() if fault.shows_in_a_law]
HIDDEN = [name for name, fault in FAULTS.items() if not fault.shows_in_a_law]
RULELESS = [name for name, fault in FAULTS.items() if fault.rule is None]

BASE = ([5, 3, 2], [2, 3, 5])
TOY = ([1, 2], [2, 1])
TWO_TOKEN_RESIDUAL = ([1, 6, 3], [6, 2, 2])


def fractions(text: str) -> list[Fraction]:
    return [Fraction(part) for part in text.split()]


def law(name: str, weights=None, *, K: int | None = None, length: int | None = None) -> np.ndarray:
    """Return the exact law of a fault, on the pair that shows it or on another."""
    fault = FAULTS[name]
    pair = fault.shown_by() if weights is None else Pair.from_weights(*weights)
    return exact_law(pair, fault.text, draft_length=K or fault.draft_length, length=length or fault.length)


def apart(found: np.ndarray, right: np.ndarray) -> Fraction:
    return abs(found - right).sum() / 2


# ---- The records.


def test_names_are_words_joined_by_hyphens_and_name_one_thing_each():
    assert sum(len(family) for family in FAMILIES.values()) == len(FAULTS)
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", name) for name in FAULTS)
    assert not set(FAULTS) & set(RULES)  # a fault of that name would hide the rule


@pytest.mark.parametrize("name", FAULTS)
def test_a_record_says_what_goes_wrong_what_it_changes_and_where_it_was_seen(name):
    fault = FAULTS[name]
    assert fault.name == name
    assert fault.kind in CLASSES
    for said in (fault.summary, fault.change):
        assert len(said.split()) >= 4
        assert not said.endswith(".")
    assert re.search(r"#\d|code pattern", fault.source)


def test_every_class_and_both_kinds_of_source_occur():
    assert {fault.kind for fault in FAULTS.values()} == set(CLASSES)
    assert sum("#" in fault.source for fault in FAULTS.values()) >= 30
    assert sum("code pattern" in fault.source for fault in FAULTS.values()) >= 20


@pytest.mark.parametrize("name", SHOWN + [name for name in HIDDEN if name not in RULELESS])
def test_a_fault_is_found_by_its_name_as_a_rule(name):
    assert find_rule(name).text is FAULTS[name].text


@pytest.mark.parametrize("name", RULELESS)
def test_a_fault_without_a_rule_says_how_it_is_seen(name):
    assert FAULTS[name].kind in ("crash", "determinism", "report")
    with pytest.raises(InputError, match=re.escape(FAULTS[name].seen_by)):
        find_rule(name)


def test_a_record_that_shows_nothing_is_refused():
    with pytest.raises(InputError, match="'silent' shows in no law of tokens; give seen_by="):
        Fault("silent", "crash", "nothing comes out", "all of it", "code pattern")
    with pytest.raises(
        UnknownNameError, match=r"unknown class of fault 'laws'; known: .* Did you mean 'law'"
    ):
        Fault("misspelt", "laws", "nothing comes out", "all of it", "code pattern")


# ---- How far off they are.


@pytest.mark.parametrize("name", SHOWN)
def test_a_fault_is_off_exactly_and_its_class_says_where(name):
    fault, pair = FAULTS[name], FAULTS[name].shown_by()
    position, marginal = marginal_distance(fault)
    assert distance(fault) >= marginal >= 0
    assert distance(fault) > 0
    assert (fault.kind == "joint") == (marginal == 0)
    assert 0 <= position < fault.length
    never = target_law(pair, fault.length) == 0
    assert fault.kind != "support" or law(name)[never].sum() > 0


@pytest.mark.parametrize("name", [name for name in HIDDEN if name not in RULELESS])
def test_a_fault_of_acceptance_loses_nothing_but_drafts(name):
    fault, pair = FAULTS[name], FAULTS[name].shown_by()
    assert fault.kind == "acceptance"
    assert distance(fault) == 0
    kept, right = (
        sum(k * mass for k, mass in enumerate(exact_accepted(pair, rule, draft_length=fault.draft_length)))
        for rule in (fault.text, "token")
    )
    assert kept < right


def test_the_three_rates_at_which_drafts_are_kept_with_and_without_their_law():
    # vLLM 40149: sum(p q) for drafts that are drawn, p(argmax q) for the argmax, sum(min(p, q)) with the law.
    pair = FAULTS["draft-law-not-passed"].shown_by()
    kept = [
        exact_accepted(pair, rule, draft_length=1)[1]
        for rule in ("draft-law-not-passed", "argmax-draft", "token")
    ]
    assert kept == fractions("0.47 0.6 0.9")


def test_of_the_stale_context_only_the_first_slot_is_as_good_as_before():
    # Slot 0: p = q. Slot 1: q is (2/3, 1/3) where p is (1/3, 2/3), which keeps 2/3.
    pair = FAULTS["draft-context-stale"].shown_by()
    assert exact_accepted(pair, "draft-context-stale", draft_length=2) == fractions("0 1/3 2/3")
    assert exact_accepted(pair, "token", draft_length=2) == fractions("0 0 1")


def test_of_several_requests_the_worst_counts():
    # The first request reads its own rows.
    found, right = law("row-of-first-request"), target_law(FAULTS["row-of-first-request"].shown_by(), 2)
    assert [apart(a, b) for a, b in zip(found, right, strict=True)] == fractions("0 1/3")
    assert distance(FAULTS["row-of-first-request"]) == Fraction(1, 3)


def test_the_target_law_is_that_of_the_pair():
    for name in ("automaton", "by-position", "requests"):
        pair = corner_case(name)
        exact = target_law(pair, 3).astype(float).reshape(len(pair.initial), -1)
        assert exact == pytest.approx(pair.joint_law(3), abs=1e-15)


PUBLISHED = [
    # fault, weights (None: the pair that shows it), law of the first token, total variation
    ("argmax-reported-as-softmax", None, "3/4 1/4", "0.15"),
    ("draft-truncated-after-recording", None, "4/9 3/9 2/9 0", "1/18"),
    ("unlikely-draft-discarded", None, "0.4 0.36 0.24", "0.1"),
    ("always-accept", None, "0.2 0.3 0.5", "0.3"),
    ("lenient-acceptance", None, "0.3 0.3 0.4", "0.2"),
    ("threshold-acceptance", None, "0.375 0.225 0.4", "0.2"),
    ("typical-acceptance", None, "0 0 1", "0.8"),
    ("ratio-inverted", None, "0.2 0.3 0.5", "0.3"),
    ("accept-where-target-is-larger", None, "0.7 0.3 0", "0.2"),
    ("argmax-verification", None, "1 0 0", "0.5"),
    ("argmax-but-bonus", None, "1 0 0", "0.5"),
    ("replace-from-target", None, "0.35 0.39 0.26", "0.15"),
    ("refused-draft-drawn-again", None, "0.35 0.51 0.14", "0.21"),
    ("refused-draft-drawn-again", BASE, "0.455 0.303 0.242", "0.045"),
    ("match-then-residual", None, "0.81 0.09 0.1", "0.31"),
    ("first-draft-unverified", None, "0.2 0.3 0.5", "0.3"),
    ("gumbel-noise-reused", None, "1/10 51/80 21/80", "3/80"),
    ("gumbel-noise-reused", ([1, 6, 3], [8, 1, 1]), None, "3/115"),
    ("gumbel-noise-reused", BASE, "0.5 0.3 0.2", "0"),  # a residual of one token hides it
    ("block-coin-is-weight", None, "0.38 0.3 0.32", "0.12"),
    ("block-coin-is-weight", TOY, "1/2 1/2", "1/6"),
    ("nan-row-becomes-token-zero", None, "1 0 0", "1"),
    ("target-cut-to-draft-vocabulary", None, "5/7 2/7 0", "0.3"),
    ("drafts-differ-judged-as-independent", None, "37/84 151/420 0.15 0.05", "5/84"),
    ("drafts-independent-judged-as-different", None, "0.537 0.263 0.15 0.05", "0.037"),
]


@pytest.mark.parametrize(("name", "weights", "expected", "off"), PUBLISHED)
def test_a_published_law_is_that_of_the_first_token(name, weights, expected, off):
    pair = FAULTS[name].shown_by() if weights is None else Pair.from_weights(*weights)
    found = law(name, weights, length=1)
    assert expected is None or found.tolist() == fractions(expected)
    assert apart(found, target_law(pair, 1)) == Fraction(off)


@pytest.mark.parametrize(
    ("name", "second", "off"),
    [
        ("draft-row-of-previous-slot", "0.2 0.3 0.5", "0.3"),
        ("bonus-from-residual", "1 0 0", "0.5"),
        ("bonus-from-draft", "0.2 0.3 0.5", "0.3"),
        ("bonus-by-argmax", "1 0 0", "0.5"),
    ],
)
def test_a_published_law_is_that_of_the_second_token(name, second, off):
    found = law(name)
    right = target_law(FAULTS[name].shown_by(), 2)
    assert found.sum(axis=0).tolist() == fractions(second)
    assert (found.sum(axis=1) == right.sum(axis=1)).all()
    assert apart(found, right) == Fraction(off)


def test_a_public_count_of_131_072_draws_lies_near_the_law_of_reused_noise():
    # 10.16, 63.04 and 26.80 per cent; the standard errors are below 0.14 per cent, and p is 10, 60 and 30.
    found = law("gumbel-noise-reused", ([1, 6, 3], [8, 1, 1]))
    assert found.tolist() == fractions("1/10 72/115 63/230")
    reported = fractions("0.1016 0.6304 0.2680")
    assert max(abs(a - b) for a, b in zip(found, reported, strict=True)) < Fraction(6, 1000)


@pytest.mark.parametrize(
    ("weights", "K", "length", "off"),
    [
        (BASE, 3, 1, "1011/6250"),
        (BASE, 3, 2, "4136127/19531250"),
        (TWO_TOKEN_RESIDUAL, 2, 1, "1/12"),
        (TWO_TOKEN_RESIDUAL, 3, 2, "5792471/29160000"),
        (([25, 45, 30], [60, 20, 20]), 2, 1, "7/48"),
    ],
)
def test_coins_that_are_weights_show_more_in_longer_blocks(weights, K, length, off):
    found = law("block-coin-is-weight", weights, K=K, length=length)
    assert apart(found, target_law(Pair.from_weights(*weights), length)) == Fraction(off)


@pytest.mark.parametrize(
    ("weights", "row", "off"),
    [
        (([[5, 5, 0], [1, 6, 3]], [[6, 4, 0], [6, 2, 2]]), "0.05 0.288 0.162", "0.012"),
        (([[45, 55, 0], [10, 50, 40]], [[60, 40, 0], [60, 30, 10]]), "0.045 0.246 0.159", "0.021"),
    ],
)
def test_the_token_rules_residual_inside_a_block_shows_where_rows_differ(weights, row, off):
    found = law("block-residual-of-token-rule", weights)
    assert found[0].tolist() == fractions(row)
    assert apart(found, target_law(Pair.from_weights(*weights), 2)) == Fraction(off)


def test_a_frozen_quantile_repeats_the_first_token():
    # P(x1 = x2) is 1, where it is sum(p^2) = 0.38; the joint law is off by 1 - 0.38.
    for name in ("quantile-frozen", "draft-noise-frozen"):
        found = law(name)
        assert [found[k, k] for k in range(3)] == fractions("0.5 0.3 0.2")
        assert distance(FAULTS[name]) == Fraction(62, 100)


def test_a_shared_coin_lets_luck_go_on():
    # Behind a kept token 2 the coin is below 0.4, and that keeps every second draft: it follows q.
    found = law("uniform-shared-over-positions")
    assert found.sum(axis=1).tolist() == fractions("0.5 0.3 0.2")
    assert (found[2] / found[2].sum()).tolist() == fractions("0.2 0.3 0.5")
    assert found[:2].tolist() == target_law(base(), 2)[:2].tolist()
    assert distance(FAULTS["uniform-shared-over-positions"]) == Fraction(6, 100)


def test_a_coin_that_reaches_zero_emits_what_the_target_never_does():
    for name, token in (("coin-reaches-zero", 1), ("zero-word-draws-first-token", 0)):
        assert law(name)[token] == Fraction(1, FLOAT32_WORDS)
        assert distance(FAULTS[name]) == Fraction(1, FLOAT32_WORDS)


def softmax(logits: str) -> list[Decimal]:
    mass = [Decimal(logit).exp() for logit in logits.split()]
    return [m / sum(mass) for m in mass]


def test_what_exponentials_decide_is_right_to_the_unit_of_its_rows():
    # Rows are rounded to 2**-40: the laws are held against decimals of 40 digits.
    with localcontext() as context:
        context.prec = 40
        drawn, recorded = softmax("5 4")[0], softmax("5.015 4")[0]  # bfloat16 has 5 for 5.015
        bfloat16 = drawn * Decimal("0.5") / recorded
        spread = softmax("0.3 0 0")
        by_softmax = [
            Decimal(a) + Decimal("0.3") * b for a, b in zip((".2", ".3", ".2"), spread, strict=True)
        ]
        untempered = softmax("2 1 0")
    for found, right, printed in (
        (law("draft-drawn-in-bfloat16")[0], bfloat16, "0.4980"),
        *zip(law("residual-by-softmax"), by_softmax, ("0.3209", "0.3896", "0.2896"), strict=True),
        *zip(law("bonus-without-temperature")[0], untempered, ("0.6652", "0.2447", "0.0900"), strict=True),
    ):
        assert abs(found - Fraction(right)) < Fraction(1, 2**38)
        assert f"{float(found):.4f}" == printed
    off = [distance(FAULTS[name]) for name in ("draft-drawn-in-bfloat16", "residual-by-softmax")]
    assert [round(float(d), 4) for d in off] == [0.0020, 0.1791]
    assert round(float(distance(FAULTS["bonus-without-temperature"])), 3) == 0.202


BY_HAND = [
    # always kept: the neighbour's probability is p
    ("draft-ids-not-remapped", "2/3 1/3"),
    # kept: 0.2 0.4, 0.3, 0.5; the other 0.12 go to the residual of q, token 2
    ("arguments-swapped", "0.08 0.3 0.62"),
    # kept: 0.2, 0.3 0.6, 0.5 0.4; the other 0.42 go to token 0
    ("accept-by-likeliest", "0.62 0.18 0.2"),
    # token 2 is kept with 0.2 + 0.8 0.4 = 0.52; the other 0.24 go to token 0
    ("match-or-ratio", "0.44 0.3 0.26"),
    # kept: 0.2, 0.3, 0.2; the other 0.3, all of token 2, go to q, to p without token 2, to q - p, to |p - q|
    ("replace-from-draft", "0.26 0.39 0.35"),
    ("replace-from-others", "0.3875 0.4125 0.2"),
    ("residual-reversed", "0.2 0.3 0.5"),
    ("residual-absolute", "0.35 0.3 0.35"),
    # kept: 0.1, 0.2, 0.2; the other 0.5 go to token 1 alone, where the residual is (0, 0.8, 0.2)
    ("residual-argmax", "0.1 0.7 0.2"),
    # p of the second position
    ("target-row-of-next-position", "1/3 2/3"),
    ("refused-draft-handed-out", "0.2 0.3 0.5"),
    # x1 comes out unless both coins are tails, 0.3 0.3, which needs x1 = 2: token 0 then
    ("kept-counted-anywhere", "0.29 0.3 0.41"),
    # u draws 0 below 2/3 and is a coin of 1/2: below 1/2 token 0 is kept
    ("draft-word-is-coin", "1/2 1/2"),
    # token 0 is refused for u in [1/6, 1); the residual has token 1 below 0.8: 0.6 of 19/30, 6/30
    ("coin-word-draws-replacement", "0.1 0.58 0.32"),
    # x1 = 2 has w = 0.4 and R = 0, so h = 0, and the first tails ends the block: 0.5 go to token 0
    ("block-stops-at-first-tails", "0.7 0.3 0"),
    # x1 = 2 is kept with w_2 alone: 0.2 0.4 + 0.3 0.4 + 0.5 0.16 = 0.28, where 0.2 1 + ... = 0.4 is right
    ("block-weight-of-clamped-ratios", "0.56 0.3 0.14"),
    # token 0 is refused with 0.5; its equal, 0.6 of them, goes to (0, 0.8, 0.2), and tokens 1 and 2 are kept
    ("equal-drafts-judged-once", "0.1 0.54 0.36"),
    # two tests keep 4/9 of each right, and 1/9 go to token 1
    ("second-draft-against-target", "4/9 5/9"),
    # 0.5 are judged again by (0, 0.8, 0.2): 0.1 each are kept, 0.3 go to that residual, not to token 1
    ("residual-of-first-draft", "0.1 0.54 0.36"),
    ("unknown-token-becomes-zero", "0.03 0.97 0"),
]


@pytest.mark.parametrize(("name", "expected"), BY_HAND)
def test_the_law_of_the_first_token_is_the_one_derived_by_hand(name, expected):
    assert law(name, length=1).tolist() == fractions(expected)


def test_a_draft_that_neither_row_has_is_refused():
    # Token 1 has p = 0 and finds q = 0: 0 < 0 is false. Its half goes to p, since the rows are equal there.
    found = law("draft-ids-not-remapped", ([1, 0, 1], [0, 1, 1]))
    assert found.tolist() == fractions("1/4 0 3/4")


def test_kept_drafts_are_counted_up_to_the_end_of_the_text():
    pair = corner_case("automaton")
    right = exact_accepted(pair, "token", draft_length=3, state=0)
    for name in ("context-keeps-refused-draft", "refused-draft-handed-out", "last-kept-draft-twice"):
        assert exact_accepted(pair, name, draft_length=3, state=0) == right


@pytest.mark.parametrize(
    ("name", "off"),
    [
        # p = q at slot 0, so that residual is p, (1/2, 1/2): 1/3 refused go there instead of to token 0
        ("residual-of-first-slot", "1/6"),
        # 5/6 are kept, and the two rows are 1/3 apart
        ("bonus-row-of-last-draft", "5/18"),
        # draft 1 is refused in 1/3 of calls, and the rows that follow 0 and 1 are 1/3 apart
        ("context-keeps-refused-draft", "1/9"),
        # behind a kept 1 (0.3) or 2 (0.2) the 0.3 refused repeat it instead of token 0
        ("last-kept-draft-twice", "0.15"),
        # behind a kept 0 (1/3) u is below 1/2, and draws 0 with 2/3 instead of 1/3
        ("coin-word-draws-bonus", "1/9"),
        # x1 = 0 (0.2) with x2 = 2 (0.5) has 2.5 0.4 = 1 instead of 0.4
        ("block-weight-clamped-at-last", "0.06"),
        # the law of two calls that read words again, in the tests of block verification
        ("words-reread-in-next-call", "1/27"),
    ],
)
def test_the_distance_over_two_tokens_is_the_one_derived_by_hand(name, off):
    assert FAULTS[name].length == 2
    assert distance(FAULTS[name]) == Fraction(off)


# ---- What shortened tests cannot see.


def test_shortened_tests_are_blind_to_these_faults_and_to_no_other():
    misses = {test: {name for name in SHOWN if test in blind(FAULTS[name])} for test in SHORTCUTS}
    own_rows = {"draft-row-of-previous-slot", "residual-of-first-slot"}
    in_blocks_only = {name for name in SHOWN if name.startswith("block-")} | {"words-reread-in-next-call"}
    frozen = {"quantile-frozen", "draft-noise-frozen"}
    assert misses["marginals only"] == frozen
    assert misses["one request"] == {"row-of-first-request"}
    assert misses["K = 1"] == {
        *own_rows,
        *in_blocks_only,
        "draft-noise-frozen",
        "uniform-shared-over-positions",
        "last-kept-draft-twice",
        "kept-counted-anywhere",
    }
    assert misses["the same row at every position"] == {
        *own_rows,
        "bonus-row-of-last-draft",
        "target-row-of-next-position",
        "row-of-first-request",
        "context-keeps-refused-draft",
        "block-residual-of-token-rule",
    }
    assert misses["first token only"] == {
        *own_rows,
        *frozen,
        *(name for name in SHOWN if name.startswith("bonus-")),
        "row-of-first-request",
        "context-keeps-refused-draft",
        "last-kept-draft-twice",
        "uniform-shared-over-positions",
        "coin-word-draws-bonus",
        "words-reread-in-next-call",
        "block-residual-of-token-rule",
        "block-weight-clamped-at-last",
    }
    one_token_residual = {
        "residual-argmax",
        "gumbel-noise-reused",
        "coin-word-draws-replacement",
        "drafts-differ-judged-as-independent",
        "drafts-independent-judged-as-different",
        "equal-drafts-judged-once",
        "residual-of-first-draft",
    }
    assert misses["base pair"] == {
        *misses["the same row at every position"],
        *one_token_residual,
        "target-cut-to-draft-vocabulary",  # no token is missing
        "zero-word-draws-first-token",  # token 0 is all that is drawn
        "words-reread-in-next-call",  # every coin that is thrown again is 0 or 1
    }


def test_a_residual_of_one_token_wins_every_race():
    # Why the base pair cannot see noise that is used again: the replacement does not depend on the noise.
    p, q = fractions("0.5 0.3 0.2"), fractions("0.2 0.3 0.5")
    assert {winner for _, winner in race_law(q, excess(tuple(p), tuple(q)))} == {0}


# ---- Controls.

SHOWING = {name: FAULTS[name].shown_by() for name in SHOWN}
SMALL = [*SHOWING, *(set(corner_cases()) - {"partial-overlap", "many-token-residual"})]


def is_lossless(text, pair: Pair, K: int, length: int) -> bool:
    return bool((exact_law(pair, text, draft_length=K, length=length) == target_law(pair, length)).all())


@pytest.mark.parametrize("name", CONTROLS)
def test_a_control_loses_nothing_on_any_pair_that_shows_a_fault_or_in_any_corner_case(name):
    control = CONTROLS[name]
    assert control.name == name
    assert control.suspicion
    assert control.reason
    assert control.source
    for case in SMALL:
        pair = SHOWING.get(case) or corner_case(case)
        assert is_lossless(control.text, pair, 2, 3), case
    for case in ("partial-overlap", "many-token-residual"):
        assert is_lossless(control.text, corner_case(case), 1, 2), case


@pytest.mark.parametrize(
    "broken",
    [
        *(FAULTS[name].text for name in SHOWN),
        lambda model, choose: Emitted(CONTROLS["no-bonus"].text(model, choose).tokens[-1:], 0),
    ],
)
def test_what_controls_are_held_to_refuses_every_fault(broken):
    assert not all(is_lossless(broken, pair, 2, 3) for pair in SHOWING.values())


def test_a_control_keeps_what_its_reason_says():
    # A fair coin keeps 1/2; of an unlikely draft, token 0, nothing is kept: 0.3 0.3 + 0.5 0.2 = 0.19.
    kept = [
        exact_accepted(base(), CONTROLS[name].text, draft_length=1)[1]
        for name in ("kept-by-half", "unlikely-draft-discarded-in-matching", "stop-behind-unlikely-draft")
    ]
    assert kept == fractions("1/2 0.19 0.7")
    # Drafting stops behind token 0, kept with 0.2: of K = 2 exactly one is kept with 0.2 more than 0.5 0.3.
    stopped = exact_accepted(base(), CONTROLS["stop-behind-unlikely-draft"].text, draft_length=2)
    assert stopped == [
        Fraction(3, 10),
        Fraction(2, 10) + Fraction(5, 10) * Fraction(3, 10),
        Fraction(35, 100),
    ]


# ---- What the texts are made of.


@pytest.mark.parametrize("name", ["automaton", "by-position", "partial-overlap", "draft-by-slot", "equal"])
def test_the_texts_are_the_right_rules_where_nothing_is_exchanged(name):
    pair = corner_case(name)
    for state in range(pair.states):
        if state != pair.end:
            model = Block(pair, state, 2)
            assert walk(misread(), model) == walk(Chain(token_rule), model)
            assert walk(in_blocks(), model) == walk(block, model)


def test_a_word_read_twice_lies_in_both_cells():
    # Cells of (1/2, 3/10, 1/5) end at 0.5, 0.8, 1, those of (1/5, 3/10, 1/2) at 0.2, 0.5, 1.
    p, q = fractions("0.5 0.3 0.2"), fractions("0.2 0.3 0.5")

    def twice(model, choose) -> Emitted:
        word = Word(choose)
        return Emitted((word.index(p), word.index(q)), 1)

    def afresh(model, choose) -> Emitted:
        return Emitted((Word(choose).index(p), Word(choose).index(q)), 1)

    model = Block(base(), 0, 1)
    both = {emitted.tokens: mass for emitted, mass in walk(twice, model).items()}
    assert both == {
        (0, 0): Fraction(2, 10),
        (0, 1): Fraction(3, 10),
        (1, 2): Fraction(3, 10),
        (2, 2): Fraction(2, 10),
    }
    assert len(walk(afresh, model)) == 9  # red if each reading were of a new word


def test_a_coin_narrows_its_word():
    def text(model, choose) -> Emitted:
        word = Word(choose)
        return Emitted((int(word.coin(Fraction(2, 5))), int(word.coin(Fraction(3, 5))), word.index(half)), 1)

    half = fractions("1/2 1/2")
    found = {emitted.tokens: mass for emitted, mass in walk(text, Block(base(), 0, 1)).items()}
    assert found == {(1, 1, 0): Fraction(2, 5), (0, 1, 0): Fraction(1, 10), (0, 1, 1): Fraction(1, 10)} | {
        (0, 0, 1): Fraction(2, 5)
    }


@pytest.mark.parametrize("name", [name for name in FAULTS if name not in RULELESS])
def test_a_fault_can_be_run_on_any_pair(name):
    for case in sorted(set(corner_cases()) - {"many-token-residual"}):
        pair = corner_case(case)
        mass = exact_law(pair, FAULTS[name].text, draft_length=2, length=2).sum()
        assert mass <= 1 if pair.end is not None else mass == len(pair.initial)


@pytest.mark.parametrize("name", [name for name, fault in FAULTS.items() if isinstance(fault.rule, Chain)])
def test_a_chain_rule_carries_rows_of_floats(name):
    # Their total is 2**40: products of two such weights pass 64 bits, and a cut row has no total in common.
    row = zipf(50)
    rows = np.stack([row.weights, near_copy(row, 0.3).weights])
    rows[1, 7], rows[1, 0] = 0, rows[1, 0] + rows[1, 7]
    step = FAULTS[name].rule.rule(rows, rows[::-1])
    for at in range(2):
        kept, replaced = step.link(at).split()
        assert sum(kept) + sum(replaced) == 1
        assert [float(mass) for mass in kept] == pytest.approx(step.split()[0][at].tolist(), abs=1e-15)
