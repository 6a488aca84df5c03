"""Sequential runs: the looks are fixed beforehand, rates are kept, and a budget is a budget."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
from scipy.stats import binom

from simkit.errors import InputError
from simkit.laws.pair import Pair
from simkit.sampling.simulate import Progress, simulate
from simkit.sampling.tally import Tally
from simkit.stats import evidence, threshold
from simkit.verify.judge import Plan, judge
from simkit.verify.sequential import LOOKS_BY_TIME, Budget, Draw, judge_until, paced, schedule

PAIR = Pair.from_rows(target=[0.5, 0.3, 0.2], draft=[0.2, 0.3, 0.5])


def drawer(rule: str, seed: int) -> Draw:
    def draw(first: int, trials: int, progress: Progress | None) -> Tally:
        return simulate(PAIR, rule, draft_length=1, length=1, trials=trials, first_trial=first, seed=seed)

    return draw


@pytest.mark.parametrize("samples", [1, 100, 16384, 16385, 32768, 10**6, 10**8])
@pytest.mark.parametrize("length", [1, 16, 1000])
def test_looks_double_and_the_last_is_within_the_budget(samples: int, length: int) -> None:
    sizes = schedule(Budget(samples=samples), length)
    assert all(b == 2 * a for a, b in itertools.pairwise(sizes))
    assert sizes[0] >= 1
    assert sizes[-1] * length <= max(samples, length)
    # nothing much of the budget is left over: less than one decode a first-look decode
    assert sizes[-1] > max(samples // length, 1) - 2 ** (len(sizes) - 1)


def test_a_fault_is_found_early_and_a_right_rule_is_certified_early(seed: int) -> None:
    budget, plan = Budget(samples=10**7), Plan(tolerance=0.01)
    *_, (tally, broken) = judge_until(drawer("replace-from-target", seed), 1, budget, plan)
    assert broken.outcome == "FAIL"  # total variation 0.15
    assert tally.tokens < 20_000
    looks = list(judge_until(drawer("token", seed), 1, budget, plan))
    assert [verdict.outcome for _, verdict in looks[:-1]] == ["INCONCLUSIVE"] * (len(looks) - 1)
    tally, right = looks[-1]
    assert right.outcome == "PASS"
    assert tally.tokens < 10**6
    assert right.plan.looks == len(schedule(budget, 1))


def test_a_look_is_the_tally_so_far(seed: int) -> None:
    looks = list(judge_until(drawer("token", seed), 1, Budget(samples=100_000), Plan(tolerance=1e-4)))
    assert [tally.trials for tally, _ in looks] == schedule(Budget(samples=100_000), 1)
    tally, verdict = looks[-1]
    whole = simulate(PAIR, draft_length=1, length=1, trials=tally.trials, seed=seed)
    assert tally.digest == whole.digest
    assert verdict == judge(whole, plan=verdict.plan)


def test_time_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    seen = []
    for _, done, size in paced([10 * 2**j for j in range(LOOKS_BY_TIME)], 0.3):
        clock[0] += 0.002 * (size - done)  # 2 ms a decode: 150 fit
        seen.append(size)
    assert seen == [10, 20, 40, 80]
    assert [size for _, _, size in paced([5, 10], 1e-9)] == [5, 10]  # the clock stands still
    late = paced([5, 10], 0.1)
    assert next(late) == (1, 0, 5)
    clock[0] += 0.2
    assert list(late) == []


def test_false_alarms_over_all_looks_are_within_the_rate(rng: np.random.Generator) -> None:
    """Ville: the largest e-value of a path, at fixed concentrations, passes 1/alpha at rate alpha at most."""
    looks, alpha = 6, 0.1
    sizes = [50 * 2**j for j in range(looks)]

    def crossed(law: list[float], runs: int) -> int:
        found = 0
        for _ in range(runs):
            counts = np.zeros(3, dtype=np.int64)
            for done, size in itertools.pairwise([0, *sizes]):
                counts += rng.multinomial(size - done, law)
                if evidence(counts, [0.5, 0.3, 0.2], sizes[-1], alpha, looks).log_e >= threshold(alpha):
                    found += 1
                    break
        return found

    # This assertion itself fails for a valid e-process at a rate of at most 1e-6.
    assert crossed([0.5, 0.3, 0.2], 400) <= binom.ppf(1 - 1e-6, 400, alpha)
    # Teeth: a law at a distance of .1 crosses in nearly all paths of 1,600 draws.
    assert crossed([0.4, 0.35, 0.25], 100) > binom.ppf(1 - 1e-6, 100, alpha)


@pytest.mark.parametrize(
    "text", ["", "s", "soon", "-1", "0", "0s", "nan", "inf", "1e400", "5 parsecs", "1M", 60, None]
)
def test_budgets_that_are_none(text: str) -> None:
    with pytest.raises(InputError, match="budget"):
        Budget.parse(text)


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("1e6", Budget(samples=10**6)),
        ("250", Budget(samples=250)),
        ("90s", Budget(seconds=90)),
        ("2m", Budget(seconds=120)),
        ("0.5h", Budget(seconds=1800)),
    ],
)
def test_budgets_that_are_some(text: str, budget: Budget) -> None:
    assert Budget.parse(text) == budget


def test_one_budget_at_a_time() -> None:
    for samples in ("5", 1e9, True, 10**400):
        with pytest.raises(InputError, match="samples"):
            Budget(samples=samples)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="one positive number"):
        Budget(samples=5, seconds=5)
    with pytest.raises(InputError, match="one positive number"):
        Budget()
