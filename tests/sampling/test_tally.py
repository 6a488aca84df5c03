from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from simkit.errors import InputError
from simkit.laws.pair import Pair
from simkit.laws.synthetic import corner_case
from simkit.rules.acceptance import expected_calls
from simkit.sampling import reference
from simkit.sampling.program import compile_program
from simkit.sampling.simulate import simulate
from simkit.sampling.tally import Counts, Estimate, Run, Tally
from tests.sampling.cases import FIELDS, PAIRS, SLIP

PAIR = corner_case("requests")


def tally(first=0, trials=10, pair=PAIR, rule="token", K=2, L=5, seed=1) -> Tally:
    return simulate(
        pair, rule, draft_length=K, length=L, trials=trials, seed=seed, first_trial=first, threads=1
    )


def test_tallies_add_in_any_order():
    parts = [tally(0, 7), tally(7, 3), tally(10, 20), tally(30, 1)]
    whole = tally(0, 31)
    for order in itertools.permutations(parts):
        total = sum(order)
        assert total.digest == whole.digest
        assert total.runs == whole.runs == (Run(1, 0, 31),)
        assert total.trials == 31
    assert ((parts[0] + parts[1]) + (parts[2] + parts[3])).digest == whole.digest


def test_tallies_of_other_seeds_and_gaps_add_and_are_listed():
    total = tally(0, 5, seed=9) + tally(20, 5) + tally(0, 5)
    assert total.runs == (Run(1, 0, 5), Run(1, 20, 25), Run(9, 0, 5))
    assert total.trials == 15
    assert total.tokens == int(total.counts.sum()) == 15 * 5


def test_adding_changes_neither_part():
    one, other = tally(0, 5), tally(5, 5)
    before = one.digest, other.digest
    _ = one + other
    assert (one.digest, other.digest) == before


@pytest.mark.parametrize(("first", "trials"), [(0, 10), (9, 1), (5, 100), (3, 2)])
def test_trials_are_never_counted_twice(first, trials):
    with pytest.raises(InputError, match=r"both tallies hold trials \d+ to \d+ of seed 1"):
        tally(0, 10) + tally(first, trials)


def test_an_overlap_inside_a_sum_is_found():
    # Red when only neighbours in the order of adding are compared.
    parts = tally(0, 10) + tally(20, 10)
    with pytest.raises(InputError, match="trials 12 to 12"):
        sum([parts, tally(10, 3), tally(12, 8)])


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"rule": "replace-from-target"}, "rule='token' and 'replace-from-target' do not add"),
        ({"K": 3}, "draft_length=2 and 3 do not add"),
        ({"L": 6}, "length=5 and 6 do not add"),
        ({"pair": corner_case("by-position")}, "two different pairs do not add"),
    ],
)
def test_other_tasks_do_not_add(other, message):
    with pytest.raises(InputError, match=message):
        tally(0, 10) + tally(10, 10, **other)


def test_only_tallies_add():
    with pytest.raises(TypeError):
        tally() + 1
    with pytest.raises(TypeError):
        1 + tally()


def test_the_digest_is_that_of_the_counts_alone():
    one = tally()
    assert one.digest == replace(one, backend="elsewhere", rule="token").digest
    assert one.digest == tally().digest
    assert len(one.digest) == 64
    assert int(one.digest, 16) >= 0


@pytest.mark.parametrize("field", FIELDS)
def test_the_digest_sees_every_count(field):
    one = tally()
    arrays = {name: getattr(one.data, name).copy() for name in FIELDS}
    assert replace(one, data=Counts(**arrays)).digest == one.digest
    for at in range(arrays[field].size):
        changed = {name: array.copy() for name, array in arrays.items()}
        changed[field].flat[at] += 1
        assert replace(one, data=Counts(**changed)).digest != one.digest


@pytest.mark.parametrize("field", FIELDS)
def test_counts_are_read_only(field):
    with pytest.raises(ValueError, match="read-only"):
        getattr(tally().data, field)[...] = 0


def by_trial(pair: Pair, K: int, L: int, trials: int, seed: int) -> np.ndarray:
    """Return (calls, kept, judged) of each trial, shape (trials, 3), from the reference's calls."""
    program = compile_program(pair, draft_length=K, length=L, seed=seed)
    sums = np.zeros((trials, 3))
    for trial in range(trials):
        for call in reference.decode(program, trial):
            sums[trial] += 1, call.kept, call.judged
    return sums


@pytest.mark.parametrize("name", ["automaton", "requests", "partial-overlap", "by-slot-ends"])
def test_estimates_are_those_of_the_trials(rng, seed, name):
    # Red for a wrong product in the moments, or a wrong linearisation.
    pair = PAIRS[name](rng)
    found = tally(0, 60, pair, K=3, L=7, seed=seed)
    calls, kept, judged = by_trial(pair, 3, 7, 60, seed).T
    for estimate, over, under in (
        (found.acceptance, kept, judged),
        (found.accepted_per_call, kept, calls),
    ):
        ratio = kept.sum() / under.sum()
        error = math.sqrt(60 / 59 * ((over - ratio * under) ** 2).sum()) / under.sum()
        assert estimate == pytest.approx((ratio, error), rel=1e-10, abs=1e-12)
    assert found.tokens_per_call.value == 1 + found.accepted_per_call.value
    assert found.tokens_per_call.standard_error == found.accepted_per_call.standard_error
    assert (found.calls, found.judged.sum()) == (calls.sum(), judged.sum())
    slots = found.acceptance_by_slot
    for slot in range(3):
        if found.judged[slot]:
            assert slots[slot] == found.accepted[slot + 1 :].sum() / found.judged[slot]
        else:
            assert math.isnan(slots[slot])


def test_one_trial_has_no_standard_error():
    assert tally(0, 1).acceptance.standard_error == math.inf


def test_an_interval_is_symmetric():
    assert Estimate(0.5, 0.1).interval(2) == pytest.approx((0.3, 0.7))


STICKY = Pair(
    # A context lasts for twenty tokens; the draft is right in one, and nearly always wrong in the other.
    rows=np.array([[95, 5], [5, 95]]),
    target=np.array([0, 1]),
    draft=np.array([[0], [0]]),
    next_state=np.array([[0, 1], [0, 1]]),
    initial=np.array([0, 1]),
)
RUNS, COVER = 400, 0.93


def test_intervals_cover_where_drafts_of_a_trial_depend_on_each_other(seed):
    """The nominal rate is 0.95; a linearised interval over 200 trials has at least 0.93.

    False alarm 1e-9: hits below the binomial bound. Power: the naive interval, which takes drafts for
    independent, stays below the same bound (its rate is about 0.5 here, and at 0.65 it still does).
    """
    fewest = int(binom.ppf(SLIP, RUNS, COVER))
    assert binom.cdf(fewest - 1, RUNS, 0.65) > 1 - 1e-9
    exact, hits, naive = expected_calls(STICKY, draft_length=2, length=30).acceptance, 0, 0
    for run in range(RUNS):
        found = tally(200 * run, 200, STICKY, K=2, L=30, seed=seed)
        value, error = found.acceptance
        hits += abs(value - exact) <= 1.96 * error
        naive += abs(value - exact) <= 1.96 * math.sqrt(value * (1 - value) / found.judged.sum())
    assert hits >= fewest
    assert naive < fewest


@pytest.mark.parametrize(
    "name",
    ["automaton", "by-position", "requests", "draft-by-slot", "partial-overlap", "many-token-residual"],
)
@pytest.mark.parametrize("rule", ["token", "replace-from-target"])
def test_histograms_meet_the_forward_pass(seed, name, rule):
    """100 shards of 500 decodes each: shard means against the exact value, within 7 standard errors.

    A t with 99 degrees of freedom passes 7 with probability below 4e-10, so all assertions together below
    1e-7. Each cell is expected at least 300 times, or never. Teeth: the next test.
    """
    pair = corner_case(name)
    accepted, judged = shard_means(pair, rule, seed)
    expected = expected_calls(pair, rule, draft_length=3, length=9)
    assert within(accepted, expected.accepted)
    assert within(judged, expected.judged)


def shard_means(pair: Pair, rule: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    parts = [tally(500 * i, 500, pair, rule, K=3, L=9, seed=seed) for i in range(100)]
    return np.array([p.accepted for p in parts]) / 500, np.array([p.judged for p in parts]) / 500


def within(shards: np.ndarray, expected: np.ndarray) -> bool:
    never = expected < 1e-12
    assert (never | (expected * 500 * 100 >= 300)).all()
    error = shards.std(axis=0, ddof=1) / 10
    return bool((np.abs(shards.mean(axis=0) - expected) <= 7 * error + 1e-9).all())


def test_histograms_tell_the_rules_apart(seed):
    # The same 50,000 decodes against the other rule's expectation: off by far more than 7 standard errors.
    accepted, _ = shard_means(corner_case("automaton"), "replace-from-target", seed)
    assert not within(accepted, expected_calls(corner_case("automaton"), draft_length=3, length=9).accepted)


def test_it_prints_what_a_person_asks_for():
    found = tally(0, 12)
    assert repr(found).startswith(
        "Tally\n  pair: requests\n  rule: token\n  draft length: 2\n  length: 5\n  trials: 12"
    )
    for text in (repr(found), found._repr_html_()):
        for word in ("acceptance", " +- ", "tokens per target call", "numba, 1 thread", found.digest[:16]):
            assert word in text
    assert found._repr_html_().count("<tr>") == len(found.summary()) == found._repr_html_().count("</td>")


def test_html_escapes_names():
    found = tally(0, 1, Pair.from_weights([1, 2], [2, 1], name="<b>a & b</b>"))
    assert "<b>" not in found._repr_html_()
    assert "&lt;b&gt;a &amp; b&lt;/b&gt;" in found._repr_html_()
