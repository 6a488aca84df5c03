from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom, chi2_contingency, hypergeom, multivariate_hypergeom

from simkit.errors import InputError
from simkit.stats.two_sample import (
    END,
    Pairs,
    PermutationTest,
    Sequences,
    count_tables,
    first_tokens,
    later_tokens,
    pair_evidence,
    pair_sequences,
    pair_test,
    pairs,
    permutation,
    permutation_test,
    sequences,
    table_evidence,
    variation_bound,
)
from simkit.stats.two_sample import bound as bound_room
from simkit.stats.two_sample import evidence as evidence_room

# Three prompts, one law for each position after the first; q is the draft's.
P = np.array([[0.4, 0.3, 0.2, 0.1], [0.25, 0.25, 0.25, 0.25], [0.1, 0.1, 0.2, 0.6]])
Q = np.array([[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1], [0.25, 0.25, 0.25, 0.25]])
KEPT = np.minimum(P, Q)
# Refused drafts replaced from p instead of from the residual: a fault of total variation .1 to .14.
FAULTY = KEPT + (1 - KEPT.sum(axis=1, keepdims=True)) * P


def of_lines(a, b, prompts=None):
    """Return the sequences of two lists of lines, all of prompt 0 unless said otherwise."""
    prompts = [0] * (len(a) + len(b)) if prompts is None else list(prompts)
    sides = Counter(), Counter()
    for i, (prompt, line) in enumerate(zip(prompts, [*a, *b], strict=True)):
        sides[i >= len(a)][prompt, tuple(line)] += 1
    keys = sorted(set(sides[0]) | set(sides[1]))
    columns = [[side[key] for key in keys] for side in sides]
    return Sequences.of([prompt for prompt, _ in keys], [list(line) for _, line in keys], *columns)


def labelled(lines, first, prompts=None):
    """Return the sequences of lines of which those numbered `first` are the first sampler's."""
    order = sorted(first) + [i for i in range(len(lines)) if i not in first]
    prompts = None if prompts is None else [prompts[i] for i in order]
    lines = [lines[i] for i in order]
    return of_lines(lines[: len(first)], lines[len(first) :], prompts)


def drawn(rng, first, later, lines, length):
    """Return token sequences of every prompt: the first token from `first`, the others from `later`."""
    return np.concatenate(
        [
            np.column_stack([rng.choice(4, p=p, size=lines), rng.choice(4, p=q, size=(lines, length - 1))])
            for p, q in zip(first, later, strict=True)
        ]
    )


def two_runs(rng, laws_a, laws_b, lines, length):
    prompts = np.tile(np.repeat(np.arange(len(laws_a[0])), lines), 2)
    a, b = drawn(rng, *laws_a, lines, length), drawn(rng, *laws_b, lines, length)
    return of_lines(a.tolist(), b.tolist(), prompts)


# Tables.


def by_hand(a, b):
    """Return {prefix: {symbol: (count of a, count of b)}} for positions >= 1, by dictionaries."""
    longest = max(map(len, [*a, *b]))
    found = defaultdict(lambda: defaultdict(lambda: [0, 0]))
    for side, lines in enumerate((a, b)):
        for line in lines:
            for position in range(1, min(len(line) + 1, longest)):
                symbol = line[position] if position < len(line) else END
                found[tuple(line[:position])][symbol][side] += 1
    return found


def test_tables_are_those_made_by_dictionaries(rng):
    for _ in range(30):
        sizes = rng.integers(1, 30, 2)
        a, b = (
            [rng.integers(0, 3, rng.integers(0, 6)).tolist() for _ in range(size)] for size in sizes.tolist()
        )
        if not any(a) and not any(b):
            continue
        tables = later_tokens(of_lines(a, b))
        heads = [{line[0] if line else END for line in side} for side in (a, b)]
        expected = sorted(
            sorted((symbol, *counts) for symbol, counts in symbols.items())
            for prefix, symbols in by_hand(a, b).items()
            if len(symbols) > 1 and prefix[0] in heads[0] & heads[1]
        )
        first, pooled = tables.cells(tables.first), tables.cells(tables.pooled)
        found = [
            sorted(
                (int(tables.symbol[i]), int(first[i]), int(pooled[i] - first[i]))
                for i in np.flatnonzero(tables.stratum == s)
            )
            for s in range(tables.strata)
        ]
        assert sorted(found) == expected
        assert (np.diff(tables.home) >= 0).all()


def test_tables_of_counts():
    tables = count_tables([[3, 1, 0], [4, 0, 0], [1, 1, 0]], [[2, 2, 1], [5, 0, 0], [0, 0, 0]])
    # The second row has one token, the third one sampler: neither says anything.
    assert tables.cells(tables.first).tolist() == [3, 1, 0]
    assert tables.cells(tables.pooled).tolist() == [5, 3, 1]
    assert tables.position.tolist() == [0]


def test_first_tokens_and_ends():
    data = of_lines([[5, 6], [5], []], [[7], [5, 6], [5, 6]])
    assert first_tokens(data).symbol.tolist() == [END, 5, 7]
    later = later_tokens(data)
    assert later.symbol.tolist() == [END, 6]  # what comes after the two tokens of the longest, nobody knows
    assert later.cells(later.first).tolist() == [1, 1]


# The e-value of tables.

LINES = [(0, 0, 1), (0, 1, 1), (0, 1, 0), (0, 1, 1), (0, 1, 0), (0, 0), (0,), (0, 0, 0)]
OTHERS = [(1, 0, 0), (1, 1, 1), (1, 1, 0)]


def mean_e(labellings, tables_of):
    """Return the mean of each component's e-value, and of all, over labellings."""
    total, runs = Counter(), 0
    for data in labellings:
        evidence, runs = table_evidence(tables_of(data), 1e-2), runs + 1
        for name, log_e in evidence.components.items():
            total[name] += math.exp(log_e)
        total["all"] += math.exp(evidence.log_e)
    return {name: value / runs for name, value in total.items()}


def all_labellings():
    """Yield the 210 labellings in which 4 of 8 and 1 of 3 sequences are the first sampler's."""
    for some in itertools.combinations(range(8), 4):
        for other in range(3):
            yield labelled(LINES + OTHERS, {*some, 8 + other})


def test_expectation_is_one_by_enumeration(monkeypatch):
    monkeypatch.setattr(evidence_room, "_CONVINCED", 0.2)  # so few tokens convince nobody at three
    bets = {table_evidence(later_tokens(data)).components["tokens"] for data in all_labellings()}
    assert len(bets) > 2
    found = mean_e(all_labellings(), later_tokens)
    assert len(found) == 7
    assert found == {name: pytest.approx(1.0, abs=1e-12) for name in found}


def test_expectation_at_the_first_position_is_one_by_enumeration():
    prompts = [0] * 5 + [1] * 4
    lines = [(t,) for t in (0, 0, 1, 2, 2, 0, 3, 3, 1)]
    some = (labelled(lines, {*a, *b}, prompts) for a in itertools.combinations(range(5), 2) for b in
            itertools.combinations(range(5, 9), 2))  # fmt: skip
    found = mean_e(some, first_tokens)
    assert found == {name: pytest.approx(1.0, abs=1e-12) for name in found}


def test_bets_that_know_the_labels_are_no_e_values(monkeypatch):
    # The mutant learns the odds of a token from all strata, those it bets on among them.
    def all_at_once(lesson, token, surplus, variance):
        return np.array([surplus[token == t].sum() / 4 for t in token])

    monkeypatch.setattr(evidence_room, "learned", all_at_once)
    assert mean_e(all_labellings(), later_tokens)["tokens"] > 1.1


def test_a_bayes_factor_is_no_e_value():
    # What one would write first: separate laws against a shared one, each uniform. Under fair coins its
    # expectation is 1.6; a ratio given the margins has 1 whatever the law.
    def beta(a, b):
        return math.lgamma(1 + a) + math.lgamma(1 + b) - math.lgamma(2 + a + b)

    n, p = 10, 0.5
    chances = binom.pmf(np.arange(n + 1), n, p)
    factor, ours = 0.0, 0.0
    for a, b in itertools.product(range(n + 1), repeat=2):
        weight = chances[a] * chances[b]
        factor += weight * math.exp(beta(a, n - a) + beta(b, n - b) - beta(a + b, 2 * n - a - b))
        ours += weight * math.exp(table_evidence(count_tables([[a, n - a]], [[b, n - b]])).log_e)
    assert factor == pytest.approx(1.603294372558591)
    assert ours == pytest.approx(1.0, abs=1e-12)


def test_laws_are_hypergeometric():
    counts, left, drawn_ = (np.array(x, dtype=float) for x in ([3, 5, 900], [10, 9, 2000], [4, 5, 1100]))
    (laws,) = evidence_room._laws(counts, left, drawn_)
    for table in range(3):
        here = laws.table == table
        law = hypergeom(left[table], counts[table], drawn_[table])
        np.testing.assert_allclose(np.exp(laws.log_h[here]), law.pmf(laws.x[here]), rtol=1e-8, atol=1e-300)
        assert np.exp(laws.log_h[here]).sum() == pytest.approx(1.0, abs=1e-12)


def test_tables_of_two_make_the_table():
    # An alternative is a law on whole tables: over all tables with these margins it sums to 1.
    pooled, n1 = np.array([4, 1, 3, 2]), 5
    total, mass = 0.0, 0.0
    for a in itertools.product(*(range(c + 1) for c in pooled)):
        if sum(a) == n1:
            chance = multivariate_hypergeom.pmf(a, pooled, n1)
            mass += chance
            total += chance * math.exp(table_evidence(count_tables([a], [pooled - a])).log_e)
    assert mass == pytest.approx(1.0)
    assert total == pytest.approx(1.0, abs=1e-12)


def test_degrees_of_freedom():
    def freedom(first, second):
        return evidence_room._Chain.of(count_tables(first, second)).freedom().tolist()

    assert freedom([[1, 0]], [[0, 1]]) == [pytest.approx(0.0, abs=1e-12)]  # a token each: it cannot speak
    many = [[50_000] * 5]
    assert freedom(many, many) == [pytest.approx(4.0, abs=0.001)]


def test_large_tables_agree_with_the_normal_limit():
    # ln E of H^(1/(1+r)) tends to [X2 r/(1+r) - df ln(1+r)]/2 for large counts.
    first, second = [[50_600, 49_400]], [[50_000, 50_000]]
    statistic, _, df, _ = chi2_contingency([first[0], second[0]], correction=False)
    evidence = table_evidence(count_tables(first, second), 1e-6)
    for name, scale in (("r*/2", 0.5), ("r*", 1.0)):
        r = scale * 2 * math.sqrt(math.log(1e6) / df)
        limit = 0.5 * (statistic * r / (1 + r) - df * math.log1p(r))
        assert evidence.components[f"product {name}"] == pytest.approx(limit, abs=0.01)


def test_sides_may_be_exchanged_or_of_any_size():
    # Wider than chance has no direction; sharper in one is flatter in the other.
    first, second = [[30, 20, 10], [5, 1, 1]], [[300, 100, 200], [2, 2, 9]]
    here, there = (table_evidence(count_tables(*sides)) for sides in ((first, second), (second, first)))
    for name, log_e in here.components.items():
        assert there.components[name] == pytest.approx(log_e, abs=1e-9)


# The permutation test.

SKEWED = [(0, 0), (0, 0), (0, 1), (0, 1), (0, 1), (1, 0), (1, 1)]


def of_prompt(data):
    """Return the tables of all positions, exchangeable within the prompt."""
    order, levels = sequences.walk(data)
    return sequences._tabulate(data.prompt[order], data.first[order], data.second[order], levels)


def statistics(tables, labels):
    """Return the statistic of labellings (D, B), and of each stratum alone (S, B)."""
    whole = permutation._scores(tables, labels)[0].round(9)
    counts = tables.cells(labels)
    n1 = np.array([counts[tables.stratum == s].sum(axis=0) for s in range(tables.strata)])
    alone = np.zeros((tables.strata, labels.shape[1]))
    for s in range(tables.strata):
        c = tables.cells(tables.pooled)[tables.stratum == s][:, None]
        a, n = counts[tables.stratum == s], c.sum()
        expected = n1[s] * c / n
        pairs = n1[s] * (n - n1[s])
        chi_square = ((a - expected) ** 2 / c).sum(axis=0) * n * n / np.maximum(pairs, 1)
        alone[s] = math.sqrt(n) * np.where(pairs > 0, chi_square - (len(c) - 1) * n / (n - 1), 0)
    return whole, alone.round(9), n1


def levels_of(p_values):
    """Return (nominal, true) for every p-value that occurs, all labellings being equally likely."""
    return [(alpha, Fraction(sum(p <= alpha for p in p_values), len(p_values))) for alpha in set(p_values)]


def test_arrivals_held_fixed_break_the_level_and_whole_sequences_do_not():
    # 7 sequences of two tokens, 3 of them the first sampler's: all 35 labellings.
    data = Sequences.of([0] * 7, SKEWED, [1, 1, 1, 0, 0, 0, 0], [0, 0, 0, 1, 1, 1, 1])
    tables = of_prompt(data)
    labellings = list(itertools.combinations(range(7), 3))
    labels = np.array([[float(row in some) for some in labellings] for row in range(7)])
    whole, alone, n1 = statistics(tables, labels)
    np.testing.assert_allclose(whole, alone.sum(axis=0), atol=1e-7)

    def independent(here):
        """Return the exact p-value of dealing every stratum anew with its arrivals in labelling `here`."""
        law = Counter({0.0: Fraction(1)})
        for s in range(tables.strata):
            # Its deals with these arrivals are as likely as they are frequent among all labellings.
            deals = Counter(alone[s, n1[s] == n1[s, here]].tolist())
            law, before = Counter(), law
            for (t, chance), (more, times) in itertools.product(before.items(), deals.items()):
                law[round(t + more, 7)] += chance * Fraction(times, deals.total())
        return sum(chance for t, chance in law.items() if t >= whole[here] - 1e-5)

    fixed = levels_of([independent(here) for here in range(35)])
    assert (Fraction(8, 35), Fraction(11, 35)) in fixed
    exact = levels_of([Fraction(int((whole >= t - 1e-6).sum()), 35) for t in whole])
    assert all(true <= alpha for alpha, true in exact)


def test_permutations_are_all_labellings_alike(rng, most, fewest):
    # 100,000 permutations: each of the values that 35 labellings have, at its rate; slips at 2e-9 a value.
    data = Sequences.of([0] * 7, SKEWED, [1, 1, 1, 0, 0, 0, 0], [0, 0, 0, 1, 1, 1, 1])
    tables = of_prompt(data)
    labels = np.array([[row in some for some in itertools.combinations(range(7), 3)] for row in range(7)])
    values = permutation._scores(tables, labels.astype(float))[0].round(6)
    dealt = permutation._deal(tables, 100_000, rng)
    assert (dealt.sum(axis=0) == 3).all()
    seen = Counter(permutation._scores(tables, dealt)[0].round(6).tolist())
    for value, times in Counter(values.tolist()).items():
        assert fewest(100_000, times / 35) <= seen[value] <= most(100_000, times / 35)


def test_parts_and_blocks_do_not_matter(rng, monkeypatch):
    lines = rng.integers(0, 3, (400, 3)).tolist()
    data = of_lines(lines[:200], lines[200:], np.tile(np.arange(20), 20))
    tables = later_tokens(data)
    together = permutation_test(tables, 19)
    assert [part.group.max() for part in permutation._parts(tables)] == [tables.group.max()]
    evidence = table_evidence(tables)
    monkeypatch.setattr(permutation, "BLOCK", 256)
    assert sum(part.strata for part in permutation._parts(tables)) == tables.strata
    assert len(list(permutation._parts(tables))) > 20
    apart = permutation_test(tables, 19)
    assert (apart.statistic, apart.distance) == (together.statistic, together.distance)
    assert table_evidence(tables).log_e == pytest.approx(evidence.log_e, abs=1e-9)


def test_pearson_homogeneity_reference():
    # scipy's chi2_contingency: statistic 2.7777778, p .2493522088, 2 degrees of freedom.
    table = [[10, 10, 20], [20, 20, 20]]
    statistic, p_value, df, _ = chi2_contingency(table, correction=False)
    assert (statistic, p_value, df) == (
        pytest.approx(2.7777777778, abs=1e-10),
        pytest.approx(0.2493522088, abs=1e-10),
        2,
    )
    test = permutation_test(count_tables(table[:1], table[1:]), 9999, seed=3)
    assert test.statistic / 10 + 2 * 100 / 99 == pytest.approx(statistic)
    # Where the chi-square law holds, permutations agree with it: standard error .004.
    assert test.p_value == pytest.approx(p_value, abs=0.03)


def test_statistic_is_bhattacharya_and_valiants_centred():
    first, second = np.array([7, 0, 3, 2]), np.array([1, 4, 9, 1])
    n1, n2 = int(first.sum()), int(second.sum())
    n = n1 + n2
    cells = (n2 * first - n1 * second) ** 2 / (first + second)
    expected = math.sqrt(n) * (cells.sum() / (n1 * n2) - 3 * n / (n - 1))
    assert permutation_test(count_tables([first], [second]), 1).statistic == pytest.approx(expected)
    # The centring is the mean given the margins.
    labels = np.array(
        [a for a in itertools.product(*(range(c + 1) for c in first + second)) if sum(a) == n1], dtype=float
    ).T
    chances = [multivariate_hypergeom.pmf(a, first + second, n1) for a in labels.T.astype(int)]
    values = permutation._scores(count_tables([first], [second]), labels)[0]
    assert float(values @ chances) == pytest.approx(0.0, abs=1e-9)


def hamming(x, y):
    return Fraction(sum(a == b for a, b in zip(x, y, strict=True)), len(x))


def test_distance_is_the_unbiased_hamming_kernel_distance(rng):
    # MMD^2 with the kernel "share of positions that agree" is the mean over positions of the unbiased
    # squared distance of the marginals.
    a, b = rng.integers(0, 3, (6, 4)).tolist(), rng.integers(0, 3, (9, 4)).tolist()
    same = [
        sum(hamming(x, y) for x, y in itertools.permutations(side, 2)) / (len(side) * (len(side) - 1))
        for side in (a, b)
    ]
    across = sum(hamming(x, y) for x in a for y in b) / (len(a) * len(b))
    counts = [[[sum(x[i] == v for x in side) for v in range(3)] for i in range(4)] for side in (a, b)]
    tables = count_tables(*counts)
    distance = permutation_test(tables, 1).distance * tables.strata / 4  # constant positions are left out
    assert distance == pytest.approx(float(sum(same) - 2 * across), abs=1e-12)


def test_errors_of_distances_are_their_deviations(rng):
    # 200 runs of two laws .028 apart in squared distance: the mean is right within 5 of its errors, and the
    # deviation, known to 5 %, within a factor 1.5.
    data = [two_runs(rng, (P[:1], P[:1]), (P[:1], FAULTY[:1]), 400, 2) for _ in range(200)]
    tests = [permutation_test(later_tokens(both), 39) for both in data]
    distances, errors = np.array([[test.distance, test.error] for test in tests]).T
    assert distances.mean() == pytest.approx(0.028, abs=5 * distances.std() / math.sqrt(200))
    assert errors.mean() / 1.5 < distances.std() < errors.mean() * 1.5
    # The spread of permutations alone is that of equal laws, here three times too small.
    assert max(test.spread for test in tests) < 0.6 * errors.mean()
    pairs = [pair_test(pair_sequences(both), 39) for both in data]
    distances, errors = np.array([[test.distance, test.error] for test in pairs]).T
    assert errors.mean() / 1.5 < distances.std() < errors.mean() * 1.5


def test_a_p_value_without_the_one_has_twice_its_level():
    # 101 different values, each as likely the observed one: with B = 100, p = k/B <= .01 has level 2/101.
    values = np.arange(101.0)
    tests = [
        permutation.among_permutations(t, np.delete(values, i), 0.0, values[:1], 0.0, 1)
        for i, t in enumerate(values)
    ]
    reached = [round(test.p_value * 101) - 1 for test in tests]
    assert sum(k / 100 <= 0.01 for k in reached) == 2
    assert sum(test.p_value <= 1 / 101 for test in tests) == 1
    assert sum(k / 100 <= 0.001 for k in reached) == 1  # level 1/101, ten times the nominal one


def test_ties_count_as_reached():
    assert permutation_test(count_tables([[5, 5]], [[5, 5]]), 99).p_value == 1.0
    near = permutation.among_permutations(1.0, np.array([1.0 - 1e-12] * 9), 0.0, np.zeros(1), 0.0, 1)
    assert near.p_value == 1.0


def test_nothing_to_compare():
    for data in (
        of_lines([[1]], [[1]]),
        of_lines([[1]], [[1]], [0, 1]),
        of_lines([[1, 2]], [[2, 1]], [0, 1]),
    ):
        test = permutation_test(first_tokens(data), 9)
        assert (test.p_value, test.statistic, test.compared) == (1.0, 0.0, 0)
        assert math.isnan(test.distance)
        assert math.isnan(test.spread)
        assert table_evidence(first_tokens(data)).log_e == 0.0
        assert table_evidence(later_tokens(data)).log_e == 0.0
    pairs = pair_sequences(of_lines([[1]], [[1]], [0, 1]))
    assert pair_evidence(pairs).log_e == 0.0
    assert pair_test(pairs, 9).p_value == 1.0


# False alarms and power.


def null_tables(rng):
    """Return the sequences of two samplers of one law: six lines of three tokens each."""
    lines = rng.integers(0, 2, (12, 3)).tolist()
    return of_lines(lines[:6], lines[6:])


def test_false_alarms(rng, most, fewest):
    # 2,000 null runs at rates .1 and .05: slips at 3e-9.
    found = np.array(
        [permutation_test(later_tokens(null_tables(rng)), 19, run).p_value for run in range(2000)]
    )
    for rate in (0.1, 0.05):
        assert (found <= rate + 1e-12).sum() <= most(2000, rate)
    # The level is used, not just kept: a test that never rejects would pass the above.
    assert (found <= 0.1 + 1e-12).sum() >= fewest(2000, 0.05)


def test_false_alarms_of_e_values(rng, most):
    # 300 null runs, tables and pairs at rates .1 and .05: slips at 4e-9.
    found = []
    for run in range(300):
        data = null_tables(rng)
        evidence = table_evidence(later_tokens(data), 0.1), pair_evidence(pair_sequences(data, run))
        found.append([found.log_e for found in evidence])
    for rate in (0.1, 0.05):
        assert ((np.array(found) >= -math.log(rate)).sum(axis=0) <= most(300, rate)).all()


def test_false_alarms_of_pairs(rng, most, fewest):
    # 600 null runs at rates .1 and .05: slips at 3e-9.
    lines = rng.integers(0, 3, (600, 24, 4))
    lines[:, :, 0] = 0
    found = []
    for run, sides in enumerate(lines.tolist()):
        found.append(pair_test(pair_sequences(of_lines(sides[:12], sides[12:]), run), 19, run).p_value)
    for rate in (0.1, 0.05):
        assert (np.array(found) <= rate + 1e-12).sum() <= most(600, rate)
    assert (np.array(found) <= 0.1 + 1e-12).sum() >= fewest(600, 0.05)


@pytest.mark.parametrize("evidence", [lambda d: table_evidence(later_tokens(d)),
                                      lambda d: pair_evidence(pair_sequences(d))])  # fmt: skip
def test_replacement_from_the_target_is_found(rng, evidence):
    # Total variation .14, .1 and .14; 1,500 lines of 4 tokens for each of 3 prompts on each side. The log
    # e-value has mean 72 and deviation 9 (tables), 80 and 15 (pairs), and rejects at 13.8.
    assert np.abs(FAULTY - P).sum(axis=1) / 2 == pytest.approx([0.14, 0.1, 0.14])
    found = two_runs(rng, (P, P), (P, FAULTY), 1500, 4)
    assert evidence(found).rejects(1e-6)
    assert not table_evidence(first_tokens(found)).rejects(1e-6)
    assert permutation_test(later_tokens(found)).p_value == 0.001
    assert pair_test(pair_sequences(found)).p_value == 0.001


def test_a_fault_at_position_0_stays_there(rng):
    # 6 assertions, each slips at 1e-6 or below.
    data = two_runs(rng, (P, P), (FAULTY, P), 3000, 3)
    assert table_evidence(first_tokens(data)).rejects(1e-6)
    assert not table_evidence(later_tokens(data)).rejects(1e-6)
    assert not pair_evidence(pair_sequences(data)).rejects(1e-6)


def long_runs(rng, laws, lines, length):
    """Return the sequences of two samplers, over a walk in which every prefix is soon alone."""
    sides = []
    for law in laws:
        tokens = np.zeros((lines, length), dtype=np.int64)
        for i in range(1, length):
            uniform = rng.random((lines, 1))
            tokens[:, i] = (uniform > np.cumsum(law, axis=1)[tokens[:, i - 1]][:, :-1]).sum(axis=1)
        sides.append(tokens.tolist())
    return of_lines(*sides)


def test_late_faults_are_seen_in_whole_sequences(rng):
    # 300 lines of 60 tokens a side, one prompt: prefixes are alone after a few tokens. Slips below 1e-6.
    law = rng.dirichlet(np.ones(30), 30)
    law = np.maximum(law, 1e-3) / np.maximum(law, 1e-3).sum(axis=1, keepdims=True)
    one_token = 0.95 * law + 0.05 * (np.arange(30) == 7)
    sharper = law**1.3 / (law**1.3).sum(axis=1, keepdims=True)
    for wrong, component in ((one_token, "tokens"), (sharper, "shape")):
        data = long_runs(rng, (law, wrong), 300, 60)
        found = pair_evidence(pair_sequences(data))
        assert found.rejects(1e-6)
        assert found.strongest == component
    assert not pair_evidence(pair_sequences(long_runs(rng, (law, law), 300, 60))).rejects(1e-6)


# Pairs.


def test_pair_bets_have_expectation_one_by_enumeration(rng, monkeypatch):
    # 9 pairs that are given without their order: all 512 orders.
    monkeypatch.setattr(evidence_room, "_CONVINCED", 0.2)  # so few pairs convince nobody at three
    lines = rng.integers(0, 2, (18, 5))
    lines[:, 0] = 0
    data = of_lines(lines[:9].tolist(), lines[9:].tolist())
    pairs = pair_sequences(data, 1)
    total, bets = Counter(), set()
    for order in itertools.product([False, True], repeat=9):
        first, second = np.where(order, (pairs.second, pairs.first), (pairs.first, pairs.second))
        found = pair_evidence(Pairs(first, second, pairs.counts, pairs.shape, pairs.mean))
        total.update({name: math.exp(log_e) / 512 for name, log_e in found.components.items()})
        bets.update((name, round(log_e, 3)) for name, log_e in found.components.items())
    assert total == {name: pytest.approx(1.0, abs=1e-12) for name in ("tokens", "shape")}
    assert min(sum(name == kind for name, _ in bets) for kind in ("tokens", "shape")) > 2


def test_pairs_are_of_one_prompt_and_first_token(rng):
    lines = rng.integers(0, 3, (300, 3))
    prompts = rng.integers(0, 4, 300)
    data = of_lines(lines[:120].tolist(), lines[120:].tolist(), prompts)
    pairs = pair_sequences(data, 5)
    opening = data.openings()
    assert (opening[pairs.first] == opening[pairs.second]).all()
    both = [np.bincount(opening, side) for side in (data.first, data.second)]
    assert pairs.first.size == int(np.minimum(*both).sum())
    for drawn_, side in ((pairs.first, data.first), (pairs.second, data.second)):
        assert (np.bincount(drawn_, minlength=side.size) <= side).all()


def test_pairing_is_random(most, fewest):
    # Two sequences a side: each of the two pairings half the time. 1,000 seeds, slips at 2e-9.
    data = of_lines([[0, 0], [0, 1]], [[0, 2], [0, 3]])
    met = 0
    for seed in range(1000):
        pairs = pair_sequences(data, seed)
        met += int(pairs.second[pairs.first == 0][0] == 2)
    assert fewest(1000, 0.5) <= met <= most(1000, 0.5)


def test_swapping_equal_pairs_together_is_swapping_each(rng, most, fewest):
    # Two sequences in three pairs alike, and one pair of another kind: 16 swaps, by hand. Slips at 4e-9.
    data = of_lines([[0, 1], [0, 1], [0, 1], [0, 2]], [[0, 2], [0, 2], [0, 2], [0, 3]])
    pairs = pair_sequences(data)
    gaps = (pairs.counts[pairs.first] - pairs.counts[pairs.second]).toarray()
    weight = np.where(pairs.mean > 0, 1 / np.where(pairs.mean > 0, pairs.mean, 1), 0)
    signs = np.array(list(itertools.product([-1, 1], repeat=4)))
    values = ((signs @ gaps) ** 2 - (gaps**2).sum(axis=0)) @ weight
    seen = (gaps.sum(axis=0) ** 2 - (gaps**2).sum(axis=0)) @ weight
    test = pair_test(pairs, 20_000, seed=int(rng.integers(1 << 30)))
    assert test.statistic == pytest.approx(seen)
    assert test.distance == pytest.approx(seen / 12)
    share = float((values >= seen - 1e-9).mean())
    assert fewest(20_000, share) <= test.p_value * 20_001 - 1 <= most(20_000, share)
    assert test.spread == pytest.approx(float(values.std()) / 12, rel=0.1)


def test_shape_counts_tokens_repeats_and_popularity():
    data = of_lines([[5, 6, 6], [5, 6, 7]], [[5, 6, 7], [5]])
    counts, shape = pairs._features(data)
    # Sequences in order: (5,), (5, 6, 6), (5, 6, 7) twice. After 5 always 6; after 6 a third 6, else 7.
    assert counts.toarray().tolist() == [[0, 0, 0], [0, 2, 0], [0, 1, 1]]
    raw = np.array([[0, 0, 0], [2, 1, math.log(1 / 3)], [2, 0, math.log(2 / 3)]])
    lines = raw[[0, 1, 2, 2]]
    np.testing.assert_allclose(shape, raw / lines.std(axis=0))


# The bound.


def test_mean_walks():
    # E|S_c| for c = 0 to 5, and for 10 by enumeration.
    assert bound_room._mean_walk(np.arange(6.0)).tolist() == pytest.approx([0, 1, 1, 1.5, 1.5, 1.875])
    ten = sum(math.comb(10, k) * abs(10 - 2 * k) for k in range(11)) / 2**10
    assert bound_room._mean_walk(np.array([10.0]))[0] == pytest.approx(ten)
    assert bound_room._mean_walk(np.array([1e6]))[0] == pytest.approx(math.sqrt(2e6 / math.pi), rel=1e-5)


def test_bound_by_hand():
    # Prompt 0: 4 and 8 tokens; prompt 1: 3 of the first sampler, too few; prompt 2: none of the second.
    prompts, tokens = [0, 0, 1, 2], [[5], [6], [5], [5]]
    data = Sequences.of(prompts, tokens, [3, 1, 3, 2], [2, 6, 9, 0])
    bound = variation_bound(data, 0.01, later=False)
    assert bound.seen == pytest.approx(4 * abs(3 / 4 - 2 / 8) / 9)
    complexity = (1.5 + 1) + 4 / 8 * (1 + 1.875)
    deviation = math.sqrt(2 * (4 + 4**2 / 8) * math.log(100))
    assert bound.radius == pytest.approx((complexity + deviation) / 9)
    assert bound.not_compared == pytest.approx(5 / 9)
    assert (bound.tokens, bound.total_variation, bound.confidence) == (9, 1.0, 0.99)


def test_later_bound_by_hand():
    # After 5: 6 or the end. The longest have two tokens, so that no third symbol is drawn.
    data = Sequences.of([0, 0], [[5, 6], [5]], [60, 40], [50, 150])
    bound = variation_bound(data, 0.001, later=True)
    walk = bound_room._mean_walk(np.array([60.0, 40.0, 50.0, 150.0]))
    complexity, variance = walk[:2].sum() + 0.5 * walk[2:].sum(), 100 + 100**2 / 200
    whole = variance + 50  # rho: half of the first sampler's 100 sequences
    deviation = math.sqrt(whole * math.log(whole / 50 / 0.001**2))
    assert bound.tokens == 60
    assert bound.seen == pytest.approx(100 * (0.6 - 0.25) / 60)
    assert bound.radius == pytest.approx((complexity + deviation) / 60)
    assert bound.not_compared == 0.0


def test_prefixes_of_one_sampler_count_in_full():
    data = of_lines([[1, 2, 3]] * 50, [[1, 4, 3]] * 50)
    bound = variation_bound(data, 0.01, later=True)
    # After (1,) compared: total variation 1 of 50 visits; after (1, 2) not: 50 of 100.
    assert (bound.seen, bound.not_compared) == (pytest.approx(0.5), pytest.approx(0.5))
    nothing = variation_bound(of_lines([[1]] * 9, [[1, 2]] * 9), 0.01, later=True)
    assert (nothing.total_variation, nothing.tokens) == (1.0, 0)


def test_bound_covers(rng, most, monkeypatch):
    # 300 runs at miss .2 slip at 1e-9; laws apart by .1 to .14 at both ends of a line.
    truth = 0.5 * np.abs(FAULTY - P).sum(axis=1)
    misses, without = 0, 0
    for _ in range(300):
        data = two_runs(rng, (P, P), (FAULTY, FAULTY), 60, 3)
        first, later = (variation_bound(data, 0.2, later=position) for position in (False, True))
        # Rows do not depend on the prefix: every visit of a prompt counts its total variation, 60 each.
        misses += first.total_variation < truth.mean() or later.total_variation < truth.mean()
        without += first.seen + first.not_compared < truth.mean()
    assert misses <= most(300, 0.4)
    # Frequencies on 60 tokens overstate the distance on average, and still understate it often enough.
    assert without > 3


# What is refused.


def test_input_errors():
    for arguments, says in (
        (([0], [[1.5]], [1], [1]), "tokens[0] has dtype float64"),
        (([0], [[-1]], [1], [1]), "tokens[0] holds -1"),
        (([0], [[2**31]], [1], [1]), f"tokens[0] holds {2**31}"),
        (([0], [["a"]], [1], [1]), "tokens[0] has dtype"),
        (([0], [[[1], [2, 3]]], [1], [1]), "different lengths"),
        (([0, 1], [[1]], [1], [1]), "prompts has 2 numbers and tokens 1 lists"),
        (([0], [[1]], [1, 2], [1]), "first has 2 numbers"),
        (([0], [[1]], [-1], [1]), "first holds -1"),
        (([0], [[1]], [1], [float("nan")]), "second has dtype float64"),
        (([], [], [], []), "tokens hold no sequence"),
    ):
        with pytest.raises(InputError) as caught:
            Sequences.of(*arguments)
        assert says in str(caught.value)
    for first, second, says in (
        ([1, 2], [1, 2], "both (S, V)"),
        ([[1, 2]], [[1, 2, 3]], "both (S, V)"),
        ([[1, -2]], [[1, 2]], "counts holds -2"),
        ([[0.5, 0.5]], [[1, 2]], "counts has dtype float64"),
        ([[0, 0]], [[0, 0]], "all 0"),
    ):
        with pytest.raises(InputError) as caught:
            count_tables(first, second)
        assert says in str(caught.value)


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "many"])
def test_permutations_are_whole_numbers(wrong):
    data = of_lines([[1, 2]], [[1, 3]])
    for call in (
        lambda: permutation_test(first_tokens(data), wrong),
        lambda: pair_test(pair_sequences(data), wrong),
    ):
        with pytest.raises(InputError, match="permutations="):
            call()


def test_seeds_and_rates_are_checked():
    data = of_lines([[1, 2]], [[1, 3]])
    for call, says in (
        (lambda: permutation_test(first_tokens(data), 9, -1), "seed=-1"),
        (lambda: pair_sequences(data, -1), "seed=-1"),
        (lambda: pair_test(pair_sequences(data), 9, -1), "seed=-1"),
        (lambda: table_evidence(first_tokens(data), 0.0), "false_alarm=0.0"),
        (lambda: variation_bound(data, 1.0, later=False), "miss=1.0"),
    ):
        with pytest.raises(InputError, match=says):
            call()


def test_the_same_seed_gives_the_same_test(rng):
    data = two_runs(rng, (P, P), (P, P), 30, 3)
    assert permutation_test(later_tokens(data), 99, 4) == permutation_test(later_tokens(data), 99, 4)
    assert pair_test(pair_sequences(data, 4), 99, 4) == pair_test(pair_sequences(data, 4), 99, 4)
    assert isinstance(pair_test(pair_sequences(data, 4), 99, 5), PermutationTest)
