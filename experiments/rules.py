"""Which rule emits the most tokens, and what do the lossy ones pay for theirs?

Question: Which rule emits the most tokens for each target call when the same number of draft tokens is
verified, how near is it to what no lossless rule can exceed, and what does a lossy rule pay in total
variation for being faster?

Expectation: Of one path of drafts no lossless rule keeps more than block verification (Sun et al. 2024). Of n
drafts at one position none keeps more than the optimal transport from the drafted sets to p, which depends on
how the drafts are drawn (Sun et al. 2023); with the n - 1 most likely drafts and one draw there is a simple
rule that keeps as much (Hu et al. 2025). A lossy rule that judges one draft at a time and keeps it with
probability a pays a total variation of at least a - (1 - d), where d is that of draft and target (Yin et al.
2024).

Finding: With one path of 8 drafts block emits 3.80 tokens for each target call, the most that drafts from q
allow; token emits 3.20, shared-gumbel 2.56, sampled-match 1.13, and argmax-draft 1.05, the most that its own
drafts allow. With 8 drafts at one position greedy-draft (2.000) and target-tree (1.898) emit the most that
their drafts allow; with-replacement (1.916), k-seq (1.975) and without-replacement (1.983) stay below the
2.000 of theirs. Of the lossy rules lenience and ensemble pay the least total variation that a rule with one
draft at a time can. What block emits for nothing (2.98 tokens for 4 drafts, where token emits 2.77) costs
them 0.038; the first settings that are faster are lenience:4/5 (0.042), ensemble:3/4 (0.075),
thresholds:1/128 (0.199), typical:1/250 (0.238). Thresholds starts at 1.04 tokens and is slower than token up
to a total variation of 0.124, typical up to 0.164. Greedy is 0.40 times as fast as token, at 0.807.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from typing import Any

import numpy as np

from simkit.figures.loss_for_speed import least_variation, loss_for_speed
from simkit.figures.points import Z95, widest
from simkit.figures.rules_compared import rules_compared
from simkit.figures.sheet import draw
from simkit.laws.named import make_pair
from simkit.laws.pair import Pair
from simkit.report.document import Badge, Block, Cell, Picture, Table, Text
from simkit.report.theory import on_theory
from simkit.rules.bound import block_bound, drafted_sets, optimal_acceptance
from simkit.rules.chain import Chain
from simkit.rules.exact import exact_accepted, exact_law
from simkit.rules.multidraft import verified
from simkit.rules.registry import find_rule, find_text
from simkit.sampling.simulate import simulate
from simkit.sweeps.measurement import Measurement
from simkit.sweeps.task import Result

PLACE = 10
DISTANCE = 0.3
SMALL, LARGE = 10, 100
BUDGETS = range(1, 9)
LENGTH, TRIALS = 64, 20_000
DRAFT_LENGTH = 4
"""Drafts for a call of the lossy rules."""

WALKED = {"block": 3, "shared-gumbel": 2, "without-replacement": 4}
"""Most draft tokens with which these rules are walked within seconds; all others have few branches."""

ONE_PATH = ("token", "block", "shared-gumbel", "sampled-match", "argmax-draft")
INDEPENDENT = ("with-replacement", "k-seq")
DIFFERENT = ("without-replacement", "greedy-draft", "target-tree")

FAMILIES = {
    "lenience": ("1", "9/10", "4/5", "2/3", "1/2", "1/3", "1/4", "1/8", "1/16"),
    "ensemble": ("1", "9/10", "3/4", "1/2", "1/4", "0"),
    "thresholds": ("1", "1/2", "1/4", "1/8", "1/16", "1/32", "1/64", "1/128", "1/256", "1/512"),
    "typical": ("9/100", "1/150", "1/200", "1/250", "1/300", "1/400", "1/500", "1/600"),
}
LOSSLESS_ENDS = ("lenience:1", "ensemble:1", "thresholds:1")


@cache
def pair_of(vocabulary: int) -> Pair:
    """Return the page's pair of so many tokens."""
    return make_pair("zipf", vocabulary=vocabulary, total_variation=DISTANCE)


@cache
def path_bound(vocabulary: int, draft_length: int) -> Fraction:
    """Return the most drafts that a lossless rule keeps of one path from the draft's law."""
    return block_bound(pair_of(vocabulary), draft_length=draft_length)


@dataclass(frozen=True)
class Run(Measurement):
    """One rule with one shape of drafts: drawn, in theory, and the most that is possible."""

    rule: str
    draft_length: int
    vocabulary: int
    seed: int = 1

    def measure(self, rng: np.random.Generator) -> Mapping[str, Any]:
        """Return tokens for each target call, the bound, and the total variation of a call's first token."""
        measured = simulate(
            pair_of(self.vocabulary),
            self.rule,
            draft_length=self.draft_length,
            length=LENGTH,
            trials=TRIALS,
            seed=int(rng.integers(2**32)),
        )
        kept, bound, variation = self.kept(), self.bound(), self.total_variation()
        theory = bound if kept is None and self.rule == "block" else kept
        return {
            "tokens": measured.tokens,
            "lossless": find_rule(self.rule).lossless or self.rule in LOSSLESS_ENDS,
            "verified": verified(self.drafts, self.draft_length),
            "tokens_per_call": measured.tokens_per_call.value,
            "tokens_per_call_error": measured.tokens_per_call.standard_error,
            "tokens_per_call_theory": None if theory is None else float(1 + theory),
            "bound": float(bound),
            "below_bound": None if kept is None else float(bound - kept),
            "total_variation": None if variation is None else float(variation),
            "overpaid": None if variation is None else self._overpaid(variation),
        }

    @property
    def drafts(self) -> int:
        """Drafts at each position."""
        return int(self.rule.partition(":")[2]) if find_rule(self.rule).proposal else 1

    @property
    def walked(self) -> bool:
        """Whether the rule's law is had exactly, in closed form or from few branches."""
        most = WALKED.get(self.rule.partition(":")[0])
        return most is None or verified(self.drafts, self.draft_length) <= most

    def bound(self) -> Fraction:
        """Return the most drafts that a lossless rule keeps of drafts that are drawn as this rule's are."""
        target, draft = pair_of(self.vocabulary).target_row(), pair_of(self.vocabulary).draft_row()
        proposal = find_rule(self.rule).proposal
        if proposal:
            return optimal_acceptance(target.fractions, drafted_sets(draft.fractions, self.drafts, proposal))
        if self.rule == "argmax-draft":
            certain = np.arange(self.vocabulary) == draft.weights.argmax()
            drafted = Pair.from_weights(target.weights, certain.astype(np.int64))
            return block_bound(drafted, draft_length=self.draft_length)
        return path_bound(self.vocabulary, self.draft_length)

    def kept(self) -> Fraction | None:
        """Return the drafts that a call keeps on average, or None where that takes too long to walk."""
        if self.walked:
            return sum((k * mass for k, mass in enumerate(self._accepted(self.draft_length))), Fraction(0))
        if self.rule == "shared-gumbel":  # judges every draft alike, so at the rate of the first
            rate = self._accepted(1)[1]
            return sum((rate**kept for kept in range(1, self.draft_length + 1)), Fraction(0))
        return None

    def total_variation(self) -> Fraction | None:
        """Return how far a call's first token is from p, or None where the law takes too long to walk."""
        if not self.walked:
            return None
        pair = pair_of(self.vocabulary)
        law = exact_law(pair, self.rule, draft_length=self.draft_length, length=1)
        gaps = (abs(a - b) for a, b in zip(law, pair.target_row().fractions, strict=True))
        return sum(gaps, Fraction(0)) / 2

    def _overpaid(self, variation: Fraction) -> float | None:
        """Return the total variation beyond the least, a - (1 - d), of a rule with one draft at a time."""
        if not isinstance(find_text(self.rule), Chain) or self.drafts > 1:
            return None
        pair = pair_of(self.vocabulary)
        distance = pair.target_row().total_variation(pair.draft_row())
        return float(variation - max(self._accepted(1)[1] - (1 - distance), Fraction(0)))

    def _accepted(self, draft_length: int) -> list[Fraction]:
        return exact_accepted(pair_of(self.vocabulary), self.rule, draft_length=draft_length)


def tasks() -> Sequence[Run]:
    """Return every rule at every number of draft tokens, and the lossy families over their parameters."""
    paths = [Run(rule, budget, SMALL) for rule in ONE_PATH for budget in BUDGETS]
    several = [Run(f"{rule}:{n}", 1, SMALL) for rule in INDEPENDENT + DIFFERENT for n in BUDGETS]
    names = [f"{family}:{value}" for family, values in FAMILIES.items() for value in values]
    return [
        *paths,
        *several,
        *(Run(name, DRAFT_LENGTH, LARGE) for name in ("token", "block", *names, "greedy")),
    ]


def compared(rows: Sequence[Result], rules: Sequence[str]) -> list[Result]:
    """Return the rows of some rules at equal draft tokens, as `rules_compared` reads them."""
    names = [(row, str(row["rule"]).partition(":")[0]) for row in rows if row["vocabulary"] == SMALL]
    return [
        {**row, "rule": name, "kept_error": row["tokens_per_call_error"]}
        for rule in rules
        for row, name in names
        if name == rule
    ]


def traded(rows: Sequence[Result]) -> list[Result]:
    """Return the rows of the lossy families, after the lossless rules that they stand beside."""
    return [row for row in rows if row["vocabulary"] == LARGE]


def known(rows: Sequence[Result]) -> list[Result]:
    """Return the rows whose theory is known."""
    return [row for row in rows if row["tokens_per_call_theory"] is not None]


def badges(rows: Sequence[Result]) -> Sequence[Badge]:
    """Return whether all is measured as in theory, the bounds hold, and lossy is what is called lossy."""
    return [on_theory(known(rows), _FIELDS), _bounds_hold(rows), _lossy_is_lossy(rows), _least_is_paid(rows)]


def _bounds_hold(rows: Sequence[Result]) -> Badge:
    """Judge lossless rules against their bounds: exactly, or by what was drawn at 1e-6 for all of these."""
    lossless = [row for row in rows if row["lossless"]]
    drawn = [row for row in lossless if row["below_bound"] is None]
    exact = [row for row in lossless if row["below_bound"] is not None]
    allowed = widest(max(len(drawn), 1))
    above = [row for row in exact if row["below_bound"] < 0.0]
    above += [
        row
        for row in drawn
        if row["tokens_per_call"] - 1.0 - row["bound"] > allowed * row["tokens_per_call_error"]
    ]
    block = [row for row in exact if row["rule"] == "block"]
    reached = bool(block) and all(row["below_bound"] == 0.0 for row in block)
    return Badge(
        "pass" if reached and not above else "fail",
        f"no lossless rule above its bound: {len(exact)} settings exactly, {len(drawn)} within chance (false "
        f"alarm 10⁻⁶); block at its own, exactly for K ≤ {max((r['verified'] for r in block), default=0)}",
    )


def _lossy_is_lossy(rows: Sequence[Result]) -> Badge:
    walked = [row for row in rows if row["total_variation"] is not None]
    lossless = [row["total_variation"] == 0.0 for row in walked if row["lossless"]]
    lossy = [row["total_variation"] > 0.0 for row in walked if not row["lossless"]]
    return Badge(
        "pass" if lossless and lossy and all(lossless + lossy) else "fail",
        f"total variation, exactly: 0 in {sum(lossless)} of {len(lossless)} lossless settings, above 0 in "
        f"{sum(lossy)} of {len(lossy)} lossy ones",
    )


def _least_is_paid(rows: Sequence[Result]) -> Badge:
    prices = [row for row in traded(rows) if row["overpaid"] is not None]
    best = [row["overpaid"] == 0.0 for row in prices if family(row) in ("lenience", "ensemble")]
    return Badge(
        "pass" if best and all(best) and all(row["overpaid"] >= 0.0 for row in prices) else "fail",
        "no rule with one draft at a time pays less than a − (1 − d), exactly; lenience and ensemble pay "
        f"just that in {sum(best)} of {len(best)} settings",
    )


def family(row: Result) -> str:
    """Return a rule's name without its parameter."""
    return str(row["rule"]).partition(":")[0]


def finding(rows: Sequence[Result]) -> str:
    """Return the finding in a few sentences."""
    most = max(BUDGETS)
    path = {rule: _tokens(_at(rows, rule, most)) for rule in ONE_PATH}
    one = {rule: _tokens(_at(rows, rule, most)) for rule in INDEPENDENT + DIFFERENT}
    bound = {rule: 1.0 + float(_at(rows, rule, most)["bound"]) for rule in one}
    reached = [rule for rule in one if _at(rows, rule, most)["below_bound"] == 0.0]
    others = [rule for rule in one if rule not in reached]
    token, block, greedy = (_of(rows, rule)[0] for rule in ("token", "block", "greedy"))
    thresholds = _of(rows, "thresholds")
    faster = {name: _first_faster(rows, name) for name in FAMILIES}
    settings = ", ".join(f"{row['rule']} ({row['total_variation']:.3f})" for row in faster.values() if row)
    return (
        f"With one path of {most} drafts block emits {path['block']:.2f} tokens for each target call, the "
        f"most that drafts from q allow; token emits {path['token']:.2f}, shared-gumbel "
        f"{path['shared-gumbel']:.2f}, sampled-match {path['sampled-match']:.2f}, and argmax-draft "
        f"{path['argmax-draft']:.2f}, the most that its own drafts allow. With {most} drafts at one "
        f"position {_listed(reached, one)} emit the most that their drafts allow; "
        f"{_listed(others, one)} stay below the {max(bound[rule] for rule in others):.3f} of theirs. Of the "
        "lossy rules lenience and ensemble pay the least total variation that a rule with one draft at a "
        f"time can. What block emits for nothing ({_tokens(block):.2f} tokens for {DRAFT_LENGTH} drafts, "
        f"where token emits {_tokens(token):.2f}) costs them {_price(_tokens(block)):.3f}; the first "
        f"settings that are faster are {settings}. Thresholds starts at {_tokens(thresholds[0]):.2f} tokens "
        f"and is slower than token up to a total variation of {_last_slower(rows, 'thresholds'):.3f}, "
        f"typical up to {_last_slower(rows, 'typical'):.3f}. Greedy is "
        f"{_tokens(greedy) / _tokens(token):.2f} times as fast as token, at {greedy['total_variation']:.3f}."
    )


def _listed(rules: Sequence[str], tokens: Mapping[str, float]) -> str:
    named = [f"{rule} ({tokens[rule]:.3f})" for rule in rules]
    return " and ".join([", ".join(named[:-1]), named[-1]] if len(named) > 1 else named)


def _tokens(row: Result) -> float:
    """Return tokens for each target call: theory where it is known, else what was measured."""
    theory = row["tokens_per_call_theory"]
    return float(row["tokens_per_call"] if theory is None else theory)


def _at(rows: Sequence[Result], rule: str, budget: int) -> Result:
    return next(row for row in compared(rows, [rule]) if row["verified"] == budget)


def _of(rows: Sequence[Result], name: str) -> list[Result]:
    return [row for row in traded(rows) if family(row) == name]


def _first_faster(rows: Sequence[Result], name: str) -> Result | None:
    """Return the setting of a lossy family with the least total variation that emits more than block."""
    block = _of(rows, "block")[0]
    faster = [row for row in _of(rows, name) if _tokens(row) > _tokens(block)]
    return min(faster, key=lambda row: float(row["total_variation"]), default=None)


def _last_slower(rows: Sequence[Result], name: str) -> float:
    """Return the largest total variation at which a lossy family emits less than token."""
    token = _of(rows, "token")[0]
    slower = [row["total_variation"] for row in _of(rows, name) if _tokens(row) < _tokens(token)]
    return max(slower, default=0.0)


def _price(tokens: float) -> float:
    """Return the least total variation at which a rule with one draft at a time emits so many tokens."""
    return float(np.interp(tokens, *least_variation(DISTANCE, DRAFT_LENGTH)))


def blocks(rows: Sequence[Result]) -> Sequence[Block]:
    """Return the pictures and tables of the page."""
    return [
        Text(
            "Rules are compared at equal draft tokens verified in one target call: one path of K, or n for "
            f"one position. The pair has {SMALL} Zipf tokens and a draft at total variation {DISTANCE:g}. "
            "With so few tokens most rules can be walked branch by branch: theory and bounds are fractions, "
            "and compared as such. Block verification is walked up to K = 3; beyond, its theory is its "
            "bound, and what is drawn must lie on it. Recursive rejection without replacement is walked up "
            "to n = 4 and only drawn beyond.",
            heading="Lossless rules",
        ),
        _path_picture(rows),
        _several_picture(rows),
        _speed_table(rows),
        Text(
            f"The pair now has {LARGE} Zipf tokens and a draft at the same total variation d, and a call has "
            f"{DRAFT_LENGTH} drafts. Each family goes from its most careful setting to one that emits the "
            "draft's law. What it pays is the exact total variation between the law of a call's first token "
            "and p. A rule that judges one draft at a time and keeps it with probability a pays at least a − "
            "(1 − d): it keeps x at most as often as x is drafted, and at most as often as x comes out, so a "
            "is at most 1 − TV(q, r), where r is the law of what comes out, and TV(q, r) is at least d − "
            "TV(p, r). Thresholds starts at sampled match and not at the token rule, since it reads p(x) "
            "alone; typical acceptance replaces a refused draft from p and not from the residual. Both pay "
            "before they are as fast as the token rule. Left of the bound no loss buys anything: a lossless "
            "rule is as fast.",
            heading="What lossy rules pay",
        ),
        _loss_picture(rows),
        _loss_table(rows),
    ]


def _path_picture(rows: Sequence[Result]) -> Picture:
    shown = compared(rows, ONE_PATH)
    sheet = draw(
        partial(rules_compared, rows=shown),
        data=shown,
        columns=_COLUMNS,
        title="Tokens for each target call with one path of drafts",
        height=3.4,
    )
    return Picture(
        name="rules-one-path",
        alt="Block verification lies on the bound, token below it, and the other rules far below.",
        caption="One path of K drafts, lossless rules. Lines: theory, exact. Marks: measured, with 95 % "
        "intervals (smaller than the marks). Dotted: the most that a lossless rule can emit from one path "
        "drafted by q, which is what block verification emits; argmax-draft drafts otherwise, and emits the "
        "most that its own path allows.",
        **sheet._asdict(),
    )


def _several_picture(rows: Sequence[Result]) -> Picture:
    panels = {"Drafts drawn independently": INDEPENDENT, "Drafts that differ": DIFFERENT}
    sheet = draw(
        *(
            partial(rules_compared, rows=compared(rows, rules), title=title, legend="lower right")
            for title, rules in panels.items()
        ),
        data=compared(rows, INDEPENDENT + DIFFERENT),
        columns=_COLUMNS,
        title="Tokens for each target call with several drafts at one position",
        height=3.4,
    )
    return Picture(
        name="rules-several-drafts",
        alt="Greedy-draft and target-tree lie on their bounds; the other rules stay below theirs.",
        caption="n drafts at one position, lossless rules. Lines: theory, exact. Marks: measured, with 95 % "
        "intervals (smaller than the marks). Dotted and dashed: the most that a lossless rule can emit, by "
        "optimal transport from the drafted sets to p, for each way of drafting: n independent draws (with-"
        "replacement); n draws without replacement; the n − 1 most likely tokens and one draw from the "
        "others (greedy); the n most likely tokens (top).",
        **sheet._asdict(),
    )


def _speed_table(rows: Sequence[Result]) -> Table:
    lines: list[list[Cell]] = []
    for rule in ONE_PATH + INDEPENDENT + DIFFERENT:
        found = compared(rows, [rule])
        lines.append([rule, *(_cell(row) for row in found)])
        if rule in ("sampled-match", "argmax-draft", "k-seq", *DIFFERENT):  # the last that have this bound
            way = find_rule(rule).proposal or ("one path" if rule == "sampled-match" else rule)
            lines.append([f"bound, {way}", *(float(f"{1.0 + row['bound']:.4g}") for row in found)])
    return Table(
        ("rule", *map(str, BUDGETS)),
        lines,
        "Tokens for each target call by draft tokens verified: theory, or what was measured ± its standard "
        "error. All of these rules are lossless.",
    )


def _cell(row: Result) -> Cell:
    if row["tokens_per_call_theory"] is None:
        return f"{row['tokens_per_call']:.4f} ± {row['tokens_per_call_error']:.1g}"
    return float(f"{row['tokens_per_call_theory']:.4g}")


def _loss_picture(rows: Sequence[Result]) -> Picture:
    shown = traded(rows)
    panel = partial(loss_for_speed, rows=shown, distance=DISTANCE, draft_length=DRAFT_LENGTH)
    sheet = draw(
        partial(panel, title="All settings", legend="outside upper center"),
        partial(panel, title="Around the bound", limits=((2.6, 3.6), (-0.012, 0.32)), legend=None),
        data=shown,
        columns=(*_COLUMNS, "total_variation", "overpaid"),
        title="Total variation against tokens for each target call",
        height=4.2,
    )
    return Picture(
        name="rules-loss-for-speed",
        alt="Lenience and ensemble lie on the line of least total variation, thresholds and typical above "
        "it; up to the speed of block verification no loss is needed.",
        caption=f"Total variation of a token against tokens for each target call, {DRAFT_LENGTH} drafts. "
        "Hollow marks: the settings of a lossy family, measured, with 95 % intervals that are smaller than "
        "the marks; dashed lines join their theory. Dotted: the least that a rule with one draft at a time "
        "pays. Filled marks at 0, and vertical lines: lossless rules, block verification on the bound of all "
        "lossless rules with one path of drafts. Right, a part of the left panel.",
        **sheet._asdict(),
    )


def _loss_table(rows: Sequence[Result]) -> Table:
    token = _tokens(_of(rows, "token")[0])
    return Table(
        ("rule", "law", "TV of a token", "tokens per call", "measured", "95 % ±", "speed-up over token"),
        [
            [
                str(row["rule"]),
                "lossless" if row["lossless"] else "lossy",
                "0, by proof" if row["total_variation"] is None else float(f"{row['total_variation']:.4g}"),
                float(f"{_tokens(row):.4g}"),
                float(f"{row['tokens_per_call']:.4g}"),
                float(f"{Z95 * row['tokens_per_call_error']:.1g}"),
                float(f"{_tokens(row) / token:.3g}"),
            ]
            for row in traded(rows)
        ],
        f"Every setting at {DRAFT_LENGTH} drafts for a call. Tokens per call are theory, block's the bound. "
        "Parameters: lenience l, the target's weight w in the ensemble, threshold t, threshold e of typical "
        "acceptance.",
    )


_FIELDS = ("tokens_per_call",)
_COLUMNS = (
    "rule",
    "verified",
    "draft_length",
    "lossless",
    "tokens_per_call",
    "tokens_per_call_error",
    "tokens_per_call_theory",
    "bound",
    "tokens",
    "seed",
)
