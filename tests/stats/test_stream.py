from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from simkit.errors import InputError
from simkit.stats import log_e_value, threshold
from simkit.stats import stream as module
from simkit.stats._alternatives import (
    BUCKETS,
    FAULTS,
    TEMPERATURES,
    Fault,
    buckets,
    greedy,
    overlap,
    tempered,
)
from simkit.stats.stream import FAULT_SHARES, MIXTURE_SHARES, Stream, log_ratios, prepare

P, Q = np.array([[0.5, 0.3, 0.2]]), np.array([[0.2, 0.3, 0.5]])
WRONG_SIGN = Fault(overlap, lambda p, q: np.maximum(q - p, 0.0))


def drawn(rng, rows):
    """Return one token a row."""
    edges = np.cumsum(rows, axis=1)
    return (edges < rng.random(len(rows))[:, None] * edges[:, -1:]).sum(axis=1)


def zipf_pairs(rng, count, width, spread=0.8):
    """Return target and draft rows: Zipf times log-normal noise, the draft with as much noise again."""
    p = np.exp(rng.normal(0, spread, (count, width))) / np.arange(1, width + 1)
    q = p * np.exp(rng.normal(0, spread, (count, width)))
    return p / p.sum(axis=1, keepdims=True), q / q.sum(axis=1, keepdims=True)


# ---- the laws


@pytest.mark.parametrize(
    ("name", "law"),
    [
        ("replace-from-target", [0.35, 0.39, 0.26]),
        ("draft-always-kept", [0.2, 0.3, 0.5]),
        ("ratio-inverted", [0.2, 0.3, 0.5]),
        ("keep-if-likelier", [0.7, 0.3, 0.0]),
        ("residual-only", [1.0, 0.0, 0.0]),
        ("match-then-redraw", [0.455, 0.303, 0.242]),  # published to three digits; so are exact
        ("match-then-residual", [0.81, 0.09, 0.1]),
        ("lenience 0.5", [0.3, 0.3, 0.4]),
        ("draft-scaled 0.75", [20 / 51, 29 / 85, 4 / 15]),
    ],
)
def test_exact_laws(name, law):
    assert FAULTS[name](P, Q)[0] == pytest.approx(law, abs=1e-15)


def test_laws_published_in_four_digits():
    assert FAULTS["softmax-of-residual"](P, Q)[0].round(4).tolist() == [0.3209, 0.3896, 0.2896]
    logits = np.array([[2.0, 1.0, 0.0]])
    softmax = np.exp(logits) / np.exp(logits).sum()
    assert tempered(softmax, 0.5)[0].round(3).tolist() == [0.867, 0.117, 0.016]
    assert tempered(P, 0.5)[0].round(3).tolist() == [0.658, 0.237, 0.105]
    assert greedy(softmax).tolist() == [[1.0, 0.0, 0.0]]


def test_a_residual_of_the_wrong_sign_is_the_draft():
    assert WRONG_SIGN(P, Q) == pytest.approx(Q, abs=1e-15)


def test_distances_published_for_wide_rows(rng):
    # 4,096 standard normal logits on both sides: one pair strays by about 2 %, the mean of 40 by 0.3 %.
    logits = rng.standard_normal((2, 40, 4096))
    p, q = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
    for name, distance in (
        ("replace-from-target", 0.165),
        ("lenience 0.95", 0.0124),
        ("lenience 0.9", 0.0254),
        ("draft-scaled 0.88", 0.0401),
    ):
        measured = np.abs(FAULTS[name](p, q) - p).sum(axis=1).mean() / 2
        assert measured == pytest.approx(distance, rel=0.04)


def stepwise(keep, replace):
    """Return the exact law of a step that is told draft by draft, from whole weights."""

    def law(p, q):
        p, q = ([Fraction(int(w), int(sum(row))) for w in row] for row in (p, q))
        kept = [b * keep(a, b) for a, b in zip(p, q, strict=True)]
        rest = [replace(a, b) for a, b in zip(p, q, strict=True)]
        rest = [a if sum(rest) == 0 else r / sum(rest) for a, r in zip(p, rest, strict=True)]
        return [float(k + (1 - sum(kept)) * r) for k, r in zip(kept, rest, strict=True)]

    return law


def plus(x):
    return max(x, Fraction(0))


def ratio(a, b):
    """Return min(1, a/b) for a drafted token."""
    return min(Fraction(1), a / b) if b else Fraction(1)


STEPS = {
    "replace-from-target": stepwise(ratio, lambda a, b: a),
    "draft-always-kept": stepwise(lambda a, b: Fraction(1), lambda a, b: a),
    "ratio-inverted": stepwise(lambda a, b: ratio(b, a), lambda a, b: plus(a - b)),
    "keep-if-likelier": stepwise(lambda a, b: Fraction(a >= b), lambda a, b: plus(a - b)),
    "softmax-of-residual": stepwise(ratio, lambda a, b: Fraction(math.exp(plus(a - b)))),
    "residual-only": stepwise(lambda a, b: Fraction(0), lambda a, b: plus(a - b)),
    "match-then-redraw": stepwise(lambda a, b: a, lambda a, b: a),
    "match-then-residual": stepwise(lambda a, b: a, lambda a, b: plus(a - b)),
}
for _name in FAULTS:
    _kind, _, _level = _name.partition(" ")
    if _kind == "lenience":
        _keep, _replace = (lambda a, b, s=Fraction(_level): ratio(a, s * b)), (lambda a, b: plus(a - b))
        STEPS[_name] = stepwise(_keep, _replace)
    elif _kind == "draft-scaled":
        _keep, _replace = (
            (lambda a, b, s=Fraction(_level): ratio(a, s * b)),
            (lambda a, b, s=Fraction(_level): plus(a - s * b)),
        )
        STEPS[_name] = stepwise(_keep, _replace)

weights = arrays(np.int64, 5, elements=st.integers(0, 9)).filter(lambda row: row.sum() > 0)


@pytest.mark.parametrize("name", FAULTS)
@settings(max_examples=30)
@given(p=weights, q=weights)
def test_each_law_is_that_of_its_step(name, p, q):
    law = FAULTS[name]((p / p.sum())[None, :], (q / q.sum())[None, :])[0]
    # Where p = q up to rounding, a fault that refuses drafts has a residual of rounding errors.
    if not (p * q.sum() == q * p.sum()).all():
        assert law == pytest.approx(STEPS[name](p, q), abs=1e-12)
    assert law.min() >= 0.0
    assert law.sum() == pytest.approx(1.0, abs=1e-14)


def test_equal_rows_leave_lenient_faults_nothing_to_do():
    for name in ("replace-from-target", "lenience 0.9", "softmax-of-residual", "draft-scaled 0.88"):
        assert FAULTS[name](P, P) == pytest.approx(P, abs=1e-15)


def test_an_empty_residual_is_replaced_by_the_target():
    # A record 1.02 q that is above p everywhere: p/1.02 is kept, and the rest is drawn from p.
    p, q = np.array([[0.5, 0.5]]), np.array([[0.505, 0.495]])
    assert FAULTS["draft-scaled 1.02"](p, q)[0] == pytest.approx([0.5, 0.5], abs=1e-15)


# ---- validity


def all_runs(p):
    """Yield every token sequence through rows (R, V) with its probability."""
    for tokens in itertools.product(range(p.shape[1]), repeat=len(p)):
        yield np.array(tokens), math.prod(p[i, t] for i, t in enumerate(tokens))


def test_expectation_is_one_for_each_component_by_enumeration():
    p = np.array([[0.1, 0.2, 0.3, 0.4], [0.7, 0.1, 0.1, 0.1], [0.05, 0.5, 0.25, 0.2]])
    q = np.array([[0.4, 0.3, 0.2, 0.1], [0.25, 0.25, 0.25, 0.25], [0.5, 0.05, 0.25, 0.2]])
    contexts = prepare(p, q, {"reversed": lambda p, q: p[:, ::-1]})
    total = sum(chance * np.exp(log_ratios(tokens, contexts).sum(axis=0)) for tokens, chance in all_runs(p))
    assert total.shape == (len(contexts.components),)
    assert total == pytest.approx(1.0, abs=1e-13)
    mixed = sum(
        chance * np.exp(contexts.mix(log_ratios(tokens, contexts).sum(axis=0)))
        for tokens, chance in all_runs(p)
    )
    assert mixed == pytest.approx(1.0, abs=1e-13)


def test_expectation_is_at_most_one_where_tokens_are_ruled_out():
    p = np.array([[0.0, 0.25, 0.25, 0.5], [0.7, 0.3, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]])
    q = np.array([[0.4, 0.3, 0.2, 0.1], [0.0, 0.25, 0.5, 0.25], [0.5, 0.05, 0.25, 0.2]])
    contexts = prepare(p, q)
    total = sum(
        chance * np.exp(log_ratios(tokens, contexts).sum(axis=0))
        for tokens, chance in all_runs(p)
        if chance > 0
    )
    assert (total <= 1.0 + 1e-13).all()
    bare = prepare(p)
    total = sum(
        chance * np.exp(log_ratios(tokens, bare).sum(axis=0)) for tokens, chance in all_runs(p) if chance > 0
    )
    assert total == pytest.approx(1.0, abs=1e-13)


def test_a_rank_bet_that_has_seen_its_own_token_is_no_e_value():
    # The mutant of "learned from earlier tokens": a run that shows each token once before it is bet on.
    p = np.array([[0.1, 0.2, 0.3, 0.4]])
    twice = prepare(np.repeat(p, 2, axis=0))
    at = twice.components.index("ranks, prior 100")
    expected = sum(p[0, t] * math.exp(log_ratios([t, t], twice)[1, at]) for t in range(4))
    assert expected > 1.01


def test_ever_crossing_is_within_the_rate(rng, most):
    # 1,200 null runs of 100 contexts, looked at after each token at rate .1: slips at 1e-9. The mutant that
    # reports its strongest component instead of the average alarms far more often.
    p, q = zipf_pairs(rng, 100, 12)
    contexts, alpha, runs = prepare(p, q), 0.1, 1200
    ever, strongest = 0, 0
    for _ in range(runs):
        path = np.cumsum(log_ratios(drawn(rng, p), contexts), axis=0)
        ever += bool((contexts.mix(path) >= threshold(alpha)).any())
        strongest += bool((path >= threshold(alpha)).any())
    assert ever <= most(runs, alpha)
    assert strongest > most(runs, alpha)


# ---- two ways to the same number


def test_gathered_ratios_are_those_of_whole_laws(rng):
    p, q = zipf_pairs(rng, 300, 40)
    p[5] = np.repeat([1.0, 0.0], 20) / 20  # ties and impossible tokens
    q[6], p[7] = p[6], q[7]
    tokens = drawn(rng, p)
    at = np.arange(300), tokens
    contexts = prepare(p, q, {"own": lambda p, q: (p + q) / 2})
    found = dict(zip(contexts.components, log_ratios(tokens, contexts).T, strict=True))
    laws = {f"mixture {share:g}": (1 - share) * p + share * q for share in MIXTURE_SHARES}
    laws |= {f"temperature {t:g}": tempered(p, t) for t in TEMPERATURES}
    parts = {name: fault(p, q) for name, fault in FAULTS.items()} | {"greedy": greedy(p), "own": (p + q) / 2}
    laws |= {
        f"{name}, share {s:g}": (1 - s) * p + s * law for name, law in parts.items() for s in FAULT_SHARES
    }
    assert {name for name in found if not name.startswith("ranks")} == set(laws)
    with np.errstate(divide="ignore"):
        for name, law in laws.items():
            assert found[name] == pytest.approx(np.log(law[at] / p[at]), abs=1e-11), name


def test_rank_bets_are_those_told_token_by_token(rng):
    p, _ = zipf_pairs(rng, 60, 9, spread=2.0)
    tokens = drawn(rng, p)
    found = log_ratios(tokens, prepare(p))[:, -4]  # prior 100
    seen, due = np.zeros(BUCKETS), np.zeros(BUCKETS)
    for row, token, value in zip(p, tokens, found, strict=True):
        order = np.argsort(row)
        middle = np.cumsum(row[order]) - row[order] / 2
        label = np.empty(9, dtype=int)
        label[order] = np.floor(middle * BUCKETS)
        mass = np.bincount(label, row, BUCKETS)
        factor = (seen + 100 / BUCKETS) / (due + 100 / BUCKETS)
        law = row * factor[label]
        law /= law.sum()
        assert value == pytest.approx(math.log(law[token] / row[token]), abs=1e-11)
        seen[label[token]] += 1
        due += mass


def test_a_fixed_law_is_judged_as_the_dirichlet_e_value_does(rng):
    # One law whose 16 tokens are a bucket each: the bets are the predictive ratios of Dirichlet(k p).
    p = np.full(BUCKETS, 1 / BUCKETS) + np.arange(BUCKETS) * 1e-9
    p /= p.sum()
    tokens = rng.choice(BUCKETS // 2, size=500)
    found = log_ratios(tokens, prepare(np.tile(p, (500, 1))))[:, -3].sum()  # prior 1,000
    assert found == pytest.approx(log_e_value(np.bincount(tokens, minlength=BUCKETS), p, 1000.0), abs=1e-4)
    assert found > 20


@given(arrays(np.float64, (3, 7), elements=st.sampled_from([0.0, 1.0, 2.0, 3.0, 50.0])))
def test_bucket_masses_are_those_of_the_tokens(given_rows):
    rows = given_rows + np.eye(3, 7)
    rows /= rows.sum(axis=1, keepdims=True)
    edges, masses = buckets(rows)
    label = (edges[:, None, :] <= rows[:, :, None]).sum(axis=2)
    for row, labels, mass in zip(rows, label, masses, strict=True):
        assert mass == pytest.approx(np.bincount(labels, row, BUCKETS), abs=1e-15)
        order = np.argsort(row)
        assert (np.diff(labels[order]) >= 0).all()


def test_equal_probabilities_share_a_bucket():
    _, masses = buckets(np.full((1, 100), 0.01))
    assert masses[0, -1] == pytest.approx(1.0)
    uniform = prepare(np.full((3, 100), 0.01))
    assert log_ratios([0, 50, 99], uniform)[:, -4:] == pytest.approx(0.0, abs=1e-14)


def test_blocks_do_not_matter(rng, monkeypatch):
    p, q = zipf_pairs(rng, 211, 23)
    tokens = drawn(rng, q)
    whole = Stream()
    whole.update(tokens, p, q)
    for size in (23, 23 * 10, 23 * 1000):
        monkeypatch.setattr(module, "_BLOCK", size)
        pieces = Stream()
        for at in range(0, 211, 50):
            pieces.update(tokens[at : at + 50], p[at : at + 50], q[at : at + 50])
        assert pieces.tokens == whole.tokens == 211
        assert list(pieces.evidence.components) == list(whole.evidence.components)
        assert list(pieces.evidence.components.values()) == pytest.approx(
            list(whole.evidence.components.values()), abs=1e-9
        )
        contexts = prepare(p, q)
        sums = log_ratios(tokens, contexts).sum(axis=0)
        assert sums == pytest.approx(list(whole.evidence.components.values()), abs=1e-9)
        assert contexts.mix(sums) == pytest.approx(whole.evidence.log_e, abs=1e-9)


def test_families_weigh_the_same():
    stream = Stream({"own": lambda p, q: q})
    stream.update([2, 0], np.repeat(P, 2, axis=0), np.repeat(Q, 2, axis=0))
    shares, contexts = stream.evidence.shares, prepare(P, Q, {"own": lambda p, q: q})
    assert list(contexts.families) == ["mixture", "temperature", "ranks", "faults", "own"]
    for names in contexts.families.values():
        assert sum(shares[name] for name in names) == pytest.approx(0.2)
        assert len({shares[name] for name in names}) == 1


def test_memory_does_not_grow(rng):
    p, q = zipf_pairs(rng, 400, 30)
    sizes = []
    stream = Stream()
    for _ in range(3):
        stream.update(drawn(rng, p), p, q)
        arrays_held = [v for v in vars(stream).values() if isinstance(v, np.ndarray)]
        sizes.append([a.size for a in (*arrays_held, stream._past.seen, stream._past.due)])
    assert stream.tokens == 1200
    assert sizes[0] == sizes[2] == [len(stream.evidence.components), BUCKETS, BUCKETS]


# ---- power


def growth(law, p):
    """Return mean and standard deviation of ln law/p over all rows when law draws."""
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = np.where(law > 0, np.log(law / p), 0.0)
    mean = (law * gain).sum(axis=1)
    return mean.sum(), math.sqrt(((law * gain**2).sum(axis=1) - mean**2).sum())


def test_a_replacement_from_the_target_is_found_in_contexts_that_never_repeat(rng):
    # 4,000 contexts of 200 tokens: mean gain and deviation are computed; 7 deviations are missed at 1e-9.
    p, q = zipf_pairs(rng, 4000, 200)
    law = FAULTS["replace-from-target"](p, q)
    mean, deviation = growth(law, p)
    assert mean - 7 * deviation > threshold(1e-6) + math.log(4 * 3 * len(FAULTS))
    stream = Stream()
    stream.update(drawn(rng, law), p, q)
    assert stream.evidence.rejects(1e-6)
    exact = stream.evidence.components["replace-from-target, share 1"]
    assert abs(exact - mean) < 7 * deviation
    # A right sampler on the same contexts is rejected at 1e-9 with probability at most 1e-9.
    right = Stream()
    tokens = drawn(rng, p)
    right.update(tokens, p, q)
    assert not right.evidence.rejects(1e-9)
    # What this is for: with one draw a context the Dirichlet e-value is 1 for either sampler.
    assert log_e_value(np.eye(200, dtype=int)[tokens], p, 50.0) == pytest.approx(0.0, abs=1e-12)


# Tokens needed on two rows of six; those that need over 60,000 are left to longer runs: lenience .95 wants
# 211,302 and a draft recorded at .98 wants 969,654.
ROWS = np.array([[0.4, 0.25, 0.15, 0.1, 0.05, 0.05], [0.1, 0.6, 0.1, 0.1, 0.05, 0.05]])
DRAFTS = np.array([[0.1, 0.2, 0.3, 0.2, 0.1, 0.1], [0.3, 0.2, 0.05, 0.2, 0.2, 0.05]])
NEEDS = {
    "replace-from-target": 2552,
    "draft-always-kept": 294,
    "ratio-inverted": 312,
    "keep-if-likelier": 74,
    "softmax-of-residual": 722,
    "residual-only": 90,
    "match-then-redraw": 56022,
    "match-then-residual": 386,
    "lenience 0.9": 47952,
    "lenience 0.8": 9646,
    "lenience 0.5": 522,
    "draft-scaled 0.75": 4552,
    "draft-scaled 0.88": 24314,
}


@pytest.mark.parametrize("name", NEEDS)
def test_each_fault_is_found_in_the_tokens_it_needs(rng, name):
    # The least even n whose gain is 7 deviations (missed at 1e-9) above the threshold and the price of a mix.
    law = FAULTS[name](ROWS, DRAFTS)
    mean, deviation = growth(law, ROWS)
    need = threshold(1e-6) + math.log(4 * 3 * len(FAULTS))
    root = (7 * deviation + math.sqrt(49 * deviation**2 + 4 * mean * need)) / (2 * mean)
    rounds = math.ceil(root**2)
    assert 2 * rounds == NEEDS[name]
    stream = Stream()
    p, q, tokens = np.tile(ROWS, (rounds, 1)), np.tile(DRAFTS, (rounds, 1)), np.tile(law, (rounds, 1))
    stream.update(drawn(rng, tokens), p, q)
    assert stream.evidence.rejects(1e-6)


def test_rank_bets_see_a_fault_that_nobody_named(rng):
    # Top-p at .9, no draft rows: 3,000 tokens of rows that lose 10 % of their mass; ln E is near 190, and its
    # exact law gains 310. Temperatures come to 40 to 60.
    p, _ = zipf_pairs(rng, 3000, 100)
    order = np.argsort(-p, axis=1)
    ranked = np.take_along_axis(p, order, axis=1)
    kept = np.cumsum(ranked, axis=1) - ranked < 0.9
    law = np.zeros_like(p)
    np.put_along_axis(law, order, ranked * kept, axis=1)
    stream = Stream()
    stream.update(drawn(rng, law / law.sum(axis=1, keepdims=True)), p)
    assert stream.evidence.strongest.startswith("ranks")
    assert stream.evidence.log_e > 100.0


def test_ones_own_alternative_is_the_strongest_against_its_law(rng):
    # 500 tokens from the rows in reverse: gain 7 deviations above the threshold, as the test computes.
    p, q = zipf_pairs(rng, 500, 20)
    mean, deviation = growth(p[:, ::-1], p)
    assert mean - 7 * deviation > 200
    stream = Stream({"reversed": lambda p, q: p[:, ::-1]})
    stream.update(drawn(rng, p[:, ::-1]), p, q)
    assert stream.evidence.strongest == "reversed, share 1"
    assert stream.evidence.rejects(1e-6)


# ---- corner cases and bad input


def test_before_the_first_token_there_is_no_evidence():
    stream = Stream()
    assert stream.evidence.log_e == 0.0
    stream.update([], np.empty((0, 3)))
    assert (stream.tokens, stream.impossible, stream.evidence.log_e) == (0, 0, 0.0)
    assert log_ratios([], prepare(np.empty((0, 3)))).shape == (0, 17)


def test_a_token_of_probability_zero_is_a_proof():
    stream = Stream()
    stream.update([0, 2, 0], [[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [1.0, 0.0, 0.0]], [[0.2, 0.3, 0.5]] * 3)
    assert (stream.tokens, stream.impossible) == (3, 1)
    assert stream.evidence.log_e == math.inf
    assert stream.evidence.strongest == "tokens of target probability 0"
    # Greedy lost at token 1 of the first row; the mean of the others is still finite.
    stream.update([1], [[0.6, 0.4, 0.0]], [[0.2, 0.3, 0.5]])
    assert stream.evidence.components["greedy, share 1"] == -math.inf
    assert stream.evidence.log_e == math.inf
    assert (log_ratios([2], prepare([[0.5, 0.5, 0.0]])) == math.inf).all()
    # The other components are what they would be without that token.
    without = Stream()
    without.update([0, 0, 1], [[0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [0.6, 0.4, 0.0]], [[0.2, 0.3, 0.5]] * 3)
    for name, value in without.evidence.components.items():
        if not name.startswith("ranks"):
            assert stream.evidence.components[name] == pytest.approx(value, abs=1e-12)


def test_rows_are_normalised_to_the_last_bit():
    contexts = prepare(P * (1 + 5e-10), Q * (1 - 5e-10))
    assert contexts.p.sum() == pytest.approx(1.0, abs=1e-15)
    assert contexts.q.sum() == pytest.approx(1.0, abs=1e-15)


def test_tiny_probabilities_do_not_overflow():
    p = np.array([[1.0 - 1e-12, 1e-12, 5e-324]])
    ratios = log_ratios([2], prepare(p, [[0.0, 0.0, 1.0]]))
    assert np.isfinite(ratios[ratios > -math.inf]).all()
    assert not np.isnan(ratios).any()


GOOD = np.repeat(P, 4, axis=0)


@pytest.mark.parametrize(
    ("tokens", "rows", "draft_rows", "message"),
    [
        ([0, 1, 2], GOOD, None, "one for each of the 4 rows"),
        ([0, 1, 2, 3], GOOD, None, "token 3 of row 3 is out of range; needed: 0 to 2"),
        ([0, -1, 2, 2], GOOD, None, "token -1 of row 1"),
        ([0.0, 1.0, 2.0, 2.0], GOOD, None, "integers"),
        ([0, 1, 1, 1], GOOD[:, :2], None, "row 0 sums to 0.8"),
        ([0, 1, 2, 2], np.vstack([GOOD[:3], [[0.5, 0.3, 0.1]]]), None, "rows: row 3 sums to 0.9"),
        ([0, 1, 2, 2], np.vstack([GOOD[:3], [[0.5, np.nan, 0.1]]]), None, "row 3 sums to nan"),
        (
            [0, 1, 2, 2],
            np.vstack([GOOD[:2], [[1.5, -0.5, 0.0]], GOOD[:1]]),
            None,
            "row 2 .* least entry is -0.5",
        ),
        ([0, 1, 2, 2], GOOD, GOOD[:3], "give both the same shape"),
        ([0, 1, 2, 2], GOOD, GOOD * 2, "draft_rows: row 0 sums to 2.0"),
        ([0], P[0], None, "needed: numbers of shape"),
        ([0], [["a", "b"]], None, "needed: numbers of shape"),
        ([0, 1], [[1.0], [0.5, 0.5]], None, "rows are no matrix"),
    ],
)
def test_bad_input(tokens, rows, draft_rows, message, monkeypatch):
    monkeypatch.setattr(module, "_BLOCK", 6)  # two rows a block: numbers in messages are those of the input
    stream = Stream()
    stream.update([0], P, None if draft_rows is None else Q)
    before = stream.evidence
    with pytest.raises(InputError, match=message):
        stream.update(tokens, rows, draft_rows)
    assert (stream.tokens, stream.evidence) == (1, before)


def test_draft_rows_come_in_every_update_or_in_none():
    stream = Stream()
    stream.update([0], P, Q)
    with pytest.raises(InputError, match="draft_rows are missing in this update"):
        stream.update([0], P)
    stream = Stream()
    stream.update([0], P)
    with pytest.raises(InputError, match="draft_rows are given in this update"):
        stream.update([0], P, Q)


def test_without_draft_rows_only_what_needs_none_is_used():
    stream = Stream({"own": lambda p, q: q})
    stream.update([0], P)
    assert {name.split()[0] for name in stream.evidence.components} == {"temperature", "greedy,", "ranks,"}


def test_bad_alternatives():
    with pytest.raises(InputError, match=r"alternative 'own' is list; needed: a function of \(p, q\)"):
        Stream({"own": [0.5, 0.5]})  # type: ignore[dict-item]
    stream = Stream({"own": lambda p, q: p * 2})
    with pytest.raises(InputError, match=r"alternative 'own': row 0 sums to 2\.0"):
        stream.update([0], P, Q)
    with pytest.raises(InputError, match=r"alternative 'own' have shape \(3,\)"):
        prepare(P, Q, {"own": lambda p, q: p[0]})
    with pytest.raises(InputError, match=r"returns shape \(1, 2\) for rows of shape \(1, 3\)"):
        prepare(P, Q, {"own": lambda p, q: p[:, :2]})


def test_contexts_and_tokens_match():
    with pytest.raises(InputError, match="one for each of the 4 rows"):
        log_ratios([0, 1], prepare(GOOD))
