from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import gamma

from simkit.errors import InputError
from simkit.stats import concentration, threshold
from simkit.stats.dependence import SHARES, dependence

LAW = np.array([0.5, 0.3, 0.2])
TEN = np.full(10, 0.1)
# What a component has to reach before the average of all rejects at 1e-6: relations, kinds, shares.
NEED = threshold(1e-6) + math.log(9 * 6 * len(SHARES))


def by_quantile(laws, u):
    """Return the tokens that uniforms u (...,) give under laws (..., V), in id order."""
    return (np.cumsum(laws, axis=-1)[..., :-1] <= np.asarray(u)[..., None]).sum(axis=-1)


def log_mean(values):
    return math.log(math.fsum(math.exp(v) for v in values) / len(values))


# ---- validity


def expectation(height, width, chances, laws, states=None):
    """Return the expectation of each component and of the mix, over all matrices of a batch.

    `chances` yields (decode, probability) of one row; rows are independent.
    """
    total = {}
    for rows in itertools.product(list(chances), repeat=height):
        tokens = np.array([decode for decode, _ in rows])
        assert tokens.shape == (height, width)
        given = None if states is None else np.array([states(decode) for decode, _ in rows])
        evidence = dependence(tokens, laws, given).evidence
        chance = math.prod(c for _, c in rows)
        for name, value in {**evidence.components, "mix": evidence.log_e}.items():
            total[name] = total.get(name, 0.0) + chance * math.exp(value)
    return total


def independent(laws):
    """Yield all decodes with one law a position."""
    for decode in itertools.product(*(range(len(row)) for row in laws)):
        yield decode, math.prod(row[t] for row, t in zip(laws, decode, strict=True))


BY_POSITION = [[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]]
SHIFTED = [[0.0, 0.6, 0.4], [0.3, 0.0, 0.7]]


@pytest.mark.parametrize(
    ("height", "laws"),
    [(2, BY_POSITION), (2, SHIFTED), (1, [[0.3, 0.7]] * 5), (4, [[0.3, 0.7], [0.9, 0.1]]), (5, [[0.3, 0.7]])],
)
def test_expectation_is_one_by_enumeration_with_laws_by_position(height, laws):
    chances = [(decode, chance) for decode, chance in independent(laws) if chance > 0]
    total = expectation(height, len(laws), chances, laws)
    assert all(value == pytest.approx(1.0, abs=1e-12) for value in total.values()), total


@pytest.mark.parametrize(("height", "width"), [(4, 2), (2, 3), (1, 6), (6, 1)])
def test_expectation_is_one_by_enumeration_with_one_law(height, width):
    law = [0.3, 0.7]
    total = expectation(height, width, independent([law] * width), law)
    assert any(name.endswith("table") for name in total)
    assert all(value == pytest.approx(1.0, abs=1e-12) for value in total.values()), total


STATES = np.array([[0.3, 0.7], [0.8, 0.2], [0.45, 0.55]])


def state_path(decode):
    """Return the state of each token: 2 at first, then the token before."""
    return [2, *decode[:-1]]


def test_expectation_is_one_by_enumeration_where_laws_depend_on_the_past():
    chances = [
        (decode, math.prod(STATES[s, t] for s, t in zip(state_path(decode), decode, strict=True)))
        for decode in itertools.product(range(2), repeat=3)
    ]
    total = expectation(2, 3, chances, STATES, state_path)
    assert all(value == pytest.approx(1.0, abs=1e-12) for value in total.values()), total
    # The mutant that reads each token's law one state too late is no e-value.
    wrong = expectation(2, 3, chances, STATES, lambda decode: [*decode])
    assert max(wrong.values()) > 1.2


def test_expectation_is_one_by_enumeration_where_a_token_ends_the_decode():
    law, chances = [0.3, 0.7], {}
    for decode, chance in independent([law] * 3):
        end = decode.index(1) + 1 if 1 in decode else 3
        cut = (*decode[:end], *[-1] * (3 - end))
        chances[cut] = chances.get(cut, 0.0) + chance
    total = expectation(3, 3, chances.items(), law)
    assert all(value == pytest.approx(1.0, abs=1e-12) for value in total.values()), total


def test_a_right_sampler_crosses_within_the_rate(rng, most, fewest):
    # 250 runs at rate .1: slips at 1e-9. The faulty sampler repeats the token before in a third of the
    # draws; it crosses in nearly all.
    alpha, crossed = 0.1, np.zeros(2, dtype=int)
    for _ in range(250):
        tokens = rng.choice(10, size=(8, 12))
        crossed[0] += dependence(tokens, TEN).evidence.rejects(alpha)
        for t in range(1, 12):
            again = rng.random(8) < 1 / 3
            tokens[again, t] = tokens[again, t - 1]
        crossed[1] += dependence(tokens, TEN).evidence.rejects(alpha)
    assert crossed[0] <= most(250, alpha)
    assert crossed[1] >= fewest(250, 0.9)


@pytest.mark.parametrize(("height", "width"), [(500, 8), (1, 4000), (4000, 1), (63, 64)])
def test_a_right_sampler_passes(rng, height, width):
    # Each evidence reaches ln 1e9 with probability at most 1e-9.
    laws = rng.dirichlet(np.full(20, 0.3), size=width)
    tokens = by_quantile(laws, rng.random((height, width)))
    assert not dependence(tokens, laws).evidence.rejects(1e-9)
    one = rng.choice(20, p=laws[0], size=(height, width))
    assert not dependence(one, laws[0]).evidence.rejects(1e-9)
    states = rng.integers(width, size=(height, width))
    assert not dependence(by_quantile(laws[states], rng.random(states.shape)), laws, states).evidence.rejects(
        1e-9
    )


# ---- what is computed


def test_each_bet_by_hand():
    # y = 0 of (.5, .5): its uniform lies in [0, .5), and by rank as well. x is of (.25, .75).
    laws = [[0.5, 0.5], [0.25, 0.75]]
    found = {x: dependence([[0, x]], laws).evidence.components for x in (0, 1)}

    def averaged(ratio):
        return log_mean([math.log(1 - share + share * ratio) for share in SHARES])

    expected = {
        "same token": (1 / 0.25, 0.0),
        "another token": (0.0, 1 / 0.75),
        "same quantile, id order": (0.5 / 0.25, 0.5 / 0.75),
        "mirrored quantile, id order": (0.0, 1 / 0.75),
        "same quantile, rank order": (0.0, 1 / 0.75),
        "mirrored quantile, rank order": (0.5 / 0.25, 0.5 / 0.75),
    }
    for kind, ratios in expected.items():
        for x, ratio in enumerate(ratios):
            value = found[x][f"1 back in the decode, {kind}"]
            assert value == pytest.approx(averaged(ratio), abs=1e-12), (kind, x)
    assert len(found[0]) == len(expected)


def test_the_table_is_the_product_of_predictive_ratios(rng):
    # V = 3 with masses that fall into three buckets; partner in the row before, ordered by (position, row).
    tokens = rng.choice(3, p=LAW, size=(5, 7))
    found = dependence(tokens, LAW).evidence.components["row before, table"]
    values = []
    for scale in (4.0, 1.0, 0.25):
        k = concentration(4 * 7, 6) * scale * LAW
        seen, log_e = np.zeros((3, 3)), 0.0
        for t in range(7):
            for b in range(1, 5):
                y, x = tokens[b - 1, t], tokens[b, t]
                log_e += math.log((k[y] * LAW[x] + seen[y, x]) / (k[y] + seen[y].sum()) / LAW[x])
                seen[y, x] += 1
        values.append(log_e)
    assert found == pytest.approx(log_mean(values), abs=1e-11)


@pytest.mark.parametrize("height", [1, 2, 3, 6, 7])
@pytest.mark.parametrize("width", [1, 2, 6])
def test_partners_are_those_of_the_relation(rng, height, width):
    if height * width == 1:
        return
    tokens = rng.choice(3, p=LAW, size=(height, width))
    tokens[height // 2, width // 2 + 1 :] = -1
    half = height // 2
    partners = {f"{lag} back in the decode": (0, lag) for lag in (1, 2, 3, 4)} | {
        "row before": (1, 0),
        "half the batch before": (half, 0) if half > 1 else None,
        "row after, 1 back": (-1, 1),
        "row before, 1 back": (1, 1),
        "first token of the row before": (1, 0) if width > 1 else None,
    }
    found = {r.name: r for r in dependence(tokens, LAW).relations}
    for name, shift in partners.items():
        pairs = []
        for b, t in itertools.product(range(height), range(width)):
            if shift is None or (name.startswith("first") and t):
                continue
            up, back = b - shift[0], t - shift[1]
            if 0 <= up < height and back >= 0 and tokens[b, t] >= 0 and tokens[up, back] >= 0:
                pairs.append((tokens[b, t], tokens[up, back]))
        if name not in found:
            assert not pairs
            continue
        assert found[name].pairs == len(pairs)
        assert found[name].equal == sum(x == y for x, y in pairs)
        assert found[name].expected == pytest.approx(math.fsum(LAW[y] for _, y in pairs))


def test_relations_weigh_the_same(rng):
    evidence = dependence(rng.integers(3, size=(6, 6)), LAW).evidence
    # One law: two tokens, two mirrored quantiles, a table. Several laws: two more quantiles, and no table.
    assert list(evidence.shares.values()) == pytest.approx([1 / 45] * 45)
    evidence = dependence(rng.integers(3, size=(6, 6)), [LAW] * 6).evidence
    assert list(evidence.shares.values()) == pytest.approx([1 / 54] * 54)


# ---- faults: the gain of one component is at least NEED whatever is drawn, unless a test says otherwise


def test_every_step_uses_the_same_quantile(rng):
    # 64 tokens: 60 pairs that are all equal gain ln(.1 + .9/.5) or more each.
    assert 60 * math.log(0.1 + 0.9 / 0.5) > NEED
    frozen = by_quantile(LAW, np.repeat(rng.random((4, 1)), 16, axis=1))
    found = dependence(frozen, LAW)
    assert found.evidence.rejects(1e-6)
    assert found.relations[0].equal == found.relations[0].pairs == 60


def test_the_same_quantile_across_laws_that_share_no_token(rng):
    # 60 decodes of two tokens; no repeat is possible, and the uniform is seen all the same.
    laws = np.array([[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]])
    assert 60 * math.log(0.1 + 0.9 * 2) > NEED
    u = rng.random(60)
    found = dependence(np.stack([by_quantile(law, u) for law in laws], axis=1), laws)
    assert found.evidence.rejects(1e-6)
    assert "same quantile" in found.evidence.strongest
    assert found.evidence.components["1 back in the decode, same token"] == 0.0
    mirrored = dependence(np.stack([by_quantile(laws[0], u), by_quantile(laws[1], 1 - u)], axis=1), laws)
    assert mirrored.evidence.rejects(1e-6)
    assert "mirrored quantile" in mirrored.evidence.strongest


def test_the_same_quantile_of_a_sampler_that_sorts(rng):
    # 60 decodes of two tokens by falling probability: the likeliest of one law goes with that of the other.
    laws = np.array([[0.5, 0.3, 0.2], [0.3, 0.2, 0.5]])
    assert 60 * math.log(0.1 + 0.9 / 0.5) > NEED
    first = by_quantile(laws[0], rng.random(60))
    found = dependence(np.stack([first, np.array([2, 0, 1])[first]], axis=1), laws)
    assert found.evidence.rejects(1e-6)
    assert found.evidence.strongest == "1 back in the decode, same quantile, rank order"


def shared_uniform(rng, count):
    """Return two tokens a decode from a verifier that reads one uniform for both drafts of a block."""
    p, q = LAW, LAW[::-1]
    draft = rng.choice(3, p=q, size=(count, 2))
    u = rng.random(count)
    keep = u[:, None] < (p / q)[draft]
    # The residual is token 0 alone; after a replacement a new block starts, which is right.
    first = np.where(keep[:, 0], draft[:, 0], 0)
    second = np.where(keep[:, 1], draft[:, 1], 0)
    return np.stack([first, np.where(keep[:, 0], second, rng.choice(3, p=p, size=count))], axis=1)


def test_one_uniform_for_both_positions(rng):
    # After a first token 2 the second follows q: .2 KL(q, p) = .055 a decode, deviation .33. 3,000 decodes
    # gain 165, less about 10 for the table; 6 deviations below that is missed at 1e-9.
    gain = 0.2 * (LAW[::-1] * np.log(LAW[::-1] / LAW)).sum()
    square = 0.2 * (LAW[::-1] * np.log(LAW[::-1] / LAW) ** 2).sum()
    assert 3000 * gain - 10 - 6 * math.sqrt(3000 * (square - gain**2)) > 19.5
    tokens = shared_uniform(rng, 3000)
    found = dependence(tokens, LAW)
    assert found.evidence.rejects(1e-6)
    assert found.evidence.strongest == "1 back in the decode, table"
    # The first position by itself is right: 200,000 draws within 6 deviations.
    first = np.bincount(shared_uniform(rng, 200_000)[:, 0], minlength=3) / 200_000
    assert np.abs(first - LAW).max() < 6 * math.sqrt(0.25 / 200_000)


def test_rows_that_come_twice(rng):
    # Ten rows of 16 tokens. Neighbours: 80 of the 144 pairs are equal, the rest cost ln .7 at most.
    assert 80 * math.log(0.7 + 0.3 / 0.1) + 64 * math.log(0.7) > NEED
    own = rng.choice(10, size=(5, 16))
    pairs = dependence(np.repeat(own, 2, axis=0), TEN)
    assert pairs.evidence.rejects(1e-6)
    assert pairs.evidence.strongest == "row before, same token"
    halves = dependence(np.concatenate([own, own]), TEN)
    assert halves.evidence.rejects(1e-6)
    assert halves.evidence.strongest.startswith("half the batch before")


@pytest.mark.parametrize("step", [1, -1])
def test_rows_that_share_a_stream_one_step_apart(rng, step):
    # Four rows of 8 tokens: 21 pairs, all equal.
    assert 21 * math.log(0.1 + 0.9 / 0.1) > NEED
    stream = rng.choice(10, size=11)
    tokens = np.array([stream[b : b + 8] for b in range(4)][::step])
    found = dependence(tokens, TEN)
    assert found.evidence.rejects(1e-6)
    name = "row after, 1 back" if step == 1 else "row before, 1 back"
    assert found.evidence.strongest.startswith(name)


def test_calls_that_start_alike(rng):
    # 20 decodes whose first token is the same; the rest is right.
    assert 19 * math.log(0.1 + 0.9 / 0.1) > NEED
    tokens = rng.choice(10, size=(20, 30))
    tokens[:, 0] = tokens[0, 0]
    found = dependence(tokens, TEN)
    assert found.evidence.rejects(1e-6)
    assert found.evidence.strongest.startswith("first token of the row before")


def test_tokens_that_never_repeat(rng):
    # 400 steps over three tokens, each uniform over the other two: ln(.1 + .9/(2/3)) a step.
    assert 399 * math.log(0.1 + 0.9 * 1.5) > NEED
    tokens = np.cumsum(rng.integers(1, 3, size=400)) % 3
    found = dependence(tokens[None, :], np.full(3, 1 / 3))
    assert found.evidence.rejects(1e-6)
    assert found.relations[0].equal == 0


# ---- rows of the batch


def test_heterogeneity_has_the_moments_of_its_law_by_enumeration():
    # Two rows of 15 tokens in two cells: 256 pairs of counts.
    law, total = [0.4, 0.6], np.zeros(3)
    found = []
    for first, second in itertools.product(range(16), repeat=2):
        chance = math.prod(math.comb(15, c) * 0.4**c * 0.6 ** (15 - c) for c in (first, second))
        tokens = [[0] * c + [1] * (15 - c) for c in (first, second)]
        result = dependence(tokens, law).heterogeneity
        found.append((chance, result))
        total += chance * np.array([1.0, result.statistic, result.statistic**2])
    variance = total[2] - total[1] ** 2
    assert total[:2] == pytest.approx([1.0, 1.0], abs=1e-12)
    for _, result in found:
        tail = gamma.sf(result.statistic, 1 / variance, scale=variance)
        assert result.p_value == pytest.approx(min(1.0, 2 * min(tail, 1 - tail)), rel=1e-9)
        assert (result.degrees_of_freedom, result.cells, result.samples) == (1, 2, 30)
    # Statistics are few: equal counts (18 % of the runs) have p = 0, as chi-square has at 0.
    assert sum(c for c, r in found if 0 < r.p_value <= 0.1) < 0.1


def test_heterogeneity_is_close_to_level(rng, most, fewest):
    # 250 null runs of 20 rows of 40: level .1 is .099 in 20,000 runs; .13 would be passed but for 1e-9.
    p = [dependence(rng.choice(3, p=LAW, size=(20, 40)), LAW).heterogeneity.p_value for _ in range(250)]
    assert sum(value <= 0.1 for value in p) <= most(250, 0.13)
    assert sum(value <= 0.5 for value in p) >= fewest(250, 0.4)


def test_rows_that_are_too_alike_or_too_different(rng):
    # Twenty copies of one row: the statistic is 0. Rows of laws that differ from row to row but not on
    # average: noncentrality 20 x 40 x .5 = 400 on 19 degrees of freedom.
    row = rng.choice(3, p=LAW, size=(1, 40))
    alike = dependence(np.repeat(row, 20, axis=0), LAW).heterogeneity
    assert alike.statistic == pytest.approx(0.0, abs=1e-10)
    assert alike.p_value < 1e-12
    half = rng.random((20, 40)) < np.repeat([0.15, 0.85], 10)[:, None]
    apart = dependence(half.astype(int), [0.5, 0.5]).heterogeneity
    assert apart.p_value < 1e-6
    assert apart.statistic > 100


def test_no_heterogeneity_without_a_common_law_and_length(rng):
    tokens = rng.choice(3, p=LAW, size=(6, 20))
    assert dependence(tokens, LAW).heterogeneity is not None
    assert dependence(tokens[:1], LAW).heterogeneity is None
    assert dependence(tokens[:, :9], LAW).heterogeneity is None
    assert dependence(tokens, np.tile(LAW, (20, 1))).heterogeneity is None
    assert dependence(np.zeros((6, 20), dtype=int), [1.0]).heterogeneity is None
    tokens[2, -1] = -1
    assert dependence(tokens, LAW).heterogeneity is None


# ---- results and bad input


def test_the_table_for_people(rng):
    tokens = rng.choice(3, p=LAW, size=(6, 20))
    found = dependence(tokens, LAW)
    names = [name for name, _ in found.rows()]
    assert names == [
        "tokens",
        "evidence",
        *(f"{lag} back in the decode" for lag in (1, 2, 3, 4)),
        "row before",
        "half the batch before",
        "row after, 1 back",
        "row before, 1 back",
        "first token of the row before",
        "rows of the batch",
    ]
    assert found.tokens == 120


def test_a_token_of_probability_zero_is_a_proof():
    found = dependence([[0, 1], [1, 2]], [0.5, 0.5, 0.0])
    assert found.impossible == 1
    assert found.evidence.log_e == math.inf
    assert ("impossible tokens", "1") in found.rows()
    # Tokens after the end are none.
    assert dependence([[0, -1], [1, 0]], [[0.5, 0.5], [1.0, 0.0]]).impossible == 0


def test_a_law_with_one_token_is_no_evidence():
    assert dependence([[0, 0, 0]] * 4, [1.0]).evidence.log_e == pytest.approx(0.0, abs=1e-12)
    assert dependence([[0, 1, 0]] * 4, [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]).evidence.log_e == pytest.approx(
        0.0, abs=1e-12
    )
    assert dependence([[0, -1]] * 4, [[0.5, 0.5]] * 2).tokens == 4


@pytest.mark.parametrize(
    ("tokens", "laws", "states", "message"),
    [
        ([[0, 3]], LAW, None, "token 3 of row 0, position 1, is out of range; needed: 0 to 2"),
        ([[0, -2]], LAW, None, "token -2 of row 0"),
        ([[0, 1, 2], [0, -1, 1]], LAW, None, "row 1 has -1 at position 1 and a token after it"),
        ([[0]], LAW, None, "two tokens or more"),
        ([0, 1], LAW, None, r"tokens have shape \(2,\)"),
        ([[0.0, 1.0]], LAW, None, "integers of shape"),
        ([["a", "b"]], LAW, None, "integers of shape"),
        ([[0, 1], [0]], LAW, None, "tokens are no matrix"),
        ([[0, 1]], [0.5, 0.3], None, "probabilities of row 0 sum to 0.8"),
        ([[0, 1]], [0.5, np.nan, 0.5], None, "probabilities hold"),
        ([[0, 1]], [LAW] * 3, None, "laws have 3 rows and tokens 2 positions"),
        ([[0, 1]], [LAW] * 3, [[0, 3]], "state 3 of row 0, position 1, is out of range; needed: 0 to 2"),
        ([[0, 1]], [LAW] * 3, [[0]], "give both the same"),
        ([[0, 1]], [LAW] * 3, [[0.5, 1.5]], "states have shape"),
    ],
)
def test_bad_input(tokens, laws, states, message):
    with pytest.raises(InputError, match=message):
        dependence(tokens, laws, states)
