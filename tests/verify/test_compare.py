"""compare: outcomes, baseline, positions, greedy outputs, and what cannot be read."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simkit.errors import InputError, StoreError
from simkit.verify.compare import (
    AFTER_PREFIX,
    AT_FIRST,
    WHOLE,
    _decide,
    _Rates,
    compare,
)
from simkit.verify.comparison import Comparison, PositionTest
from simkit.verify.emitted import Samples, read_samples
from simkit.verify.plan import Plan

P = np.array([0.4, 0.3, 0.2, 0.1])
Q = np.array([0.1, 0.2, 0.3, 0.4])
# Refused drafts replaced from p instead of from the residual: total variation .14.
FAULTY = np.minimum(P, Q) + (1 - np.minimum(P, Q).sum()) * P

Record = dict[str, Any]


def lines(rng: np.random.Generator, first: Any, later: Any, size: int, length: int = 4) -> list[Record]:
    """Return lines of three prompts; the first token has one law, the others another."""
    return [
        {"prompt": f"p{prompt}", "tokens": [int(head), *tail]}
        for prompt in range(3)
        for head, tail in zip(
            rng.choice(4, p=first, size=size),
            rng.choice(4, p=later, size=(size, length - 1)).tolist(),
            strict=True,
        )
    ]


def one(*tokens: int, prompt: Any = "a", **more: Any) -> Record:
    return {"prompt": prompt, "tokens": list(tokens), **more}


# Each statistical assertion below slips at 1e-6 or less: log e-values stand six deviations beyond 13.8, or
# are those of right samplers, which reach 13.8 at 1e-6.


def test_a_right_sampler_is_not_rejected_and_a_wrong_one_is(rng: np.random.Generator) -> None:
    # 1,500 lines of 4 tokens for each of 3 prompts on each side.
    a, again = lines(rng, P, P, 1500), lines(rng, P, P, 1500)
    assert compare(a, again, permutations=99).outcome == "INCONCLUSIVE"
    found = compare(a, lines(rng, P, FAULTY, 1500), permutations=99)
    assert found.outcome == "FAIL"
    assert found.where in (AFTER_PREFIX, WHOLE)
    assert found.reason.startswith(found.where)
    assert found.p_value == pytest.approx(0.03)  # 1/100, three positions
    assert found.log_evidence > math.log(1e6)
    first, after, whole = found.positions
    assert [position.positions for position in found.positions] == [AT_FIRST, AFTER_PREFIX, WHOLE]
    assert first.log_evidence < math.log(1e6) < max(after.log_evidence, whole.log_evidence)


def test_a_fault_of_the_prefill_is_named(rng: np.random.Generator) -> None:
    found = compare(lines(rng, P, P, 3000), lines(rng, FAULTY, P, 3000), permutations=19)
    assert (found.outcome, found.where) == ("FAIL", AT_FIRST)
    assert max(position.log_evidence for position in found.positions[1:]) < math.log(1e6)


def test_a_second_run_of_the_reference_speaks_for_the_fault(rng: np.random.Generator) -> None:
    # The squared distance is .028, its error .002 and that of the second run .001: ten deviations to spare.
    a, again = lines(rng, P, P, 4000), lines(rng, P, P, 4000)
    found = compare(a, lines(rng, P, FAULTY, 4000), again, permutations=99)
    assert found.outcome == "FAIL"
    assert "of A and its second run" in found.reason
    assert "does not repeat" not in found.reason
    assert [position.positions for position in found.baseline] == [AT_FIRST, AFTER_PREFIX, WHOLE]
    assert found.lines == (12_000, 12_000, 12_000)


def test_a_reference_that_does_not_repeat_itself_is_no_proof(rng: np.random.Generator) -> None:
    # The second run of A is further off than B is: B may be no worse than A.
    a = lines(rng, P, P, 1500)
    found = compare(a, lines(rng, P, FAULTY, 1500), lines(rng, P, Q, 1500), permutations=99)
    assert found.outcome == "INCONCLUSIVE"
    assert "no further apart than A and its second run" in found.reason
    assert "the reference does not repeat its law" in found.reason


def test_a_worse_sampler_fails_beside_a_shaky_reference(rng: np.random.Generator) -> None:
    # Squared distances .2 and .028.
    a = lines(rng, P, P, 1500)
    found = compare(a, lines(rng, P, Q, 1500), lines(rng, P, FAULTY, 1500), permutations=99)
    assert found.outcome == "FAIL"
    assert "the reference does not repeat its law" in found.reason


def test_pass_takes_a_bound_within_the_tolerance() -> None:
    even = [one(0), one(1)] * 20_000
    # By hand: 2 cells of 20,000 on each side, E|S| = 112.84 each; V = 80,000.
    bound = (4 * 112.8372 + math.sqrt(2 * 80_000 * math.log(1e3))) / 40_000
    found = compare(even, even, plan=Plan(tolerance=0.04), permutations=9)
    assert found.bound == pytest.approx(bound, rel=1e-4)
    assert (found.outcome, found.passed) == ("PASS", True)
    assert "confidence 0.999" in found.reason
    close = compare(even, even, plan=Plan(tolerance=round(bound, 6) - 1e-4), permutations=9)
    assert (close.outcome, close.passed) == ("INCONCLUSIVE", False)
    assert "draw more" in close.reason.lower()


def test_miss_is_shared_by_positions_and_looks() -> None:
    even = [one(0, 0), one(1, 0)] * 100
    for looks in (1, 5):
        found = compare(even, even, plan=Plan(looks=looks), permutations=9)
        confidences = [position.bound.confidence for position in found.positions if position.bound]
        assert confidences == [pytest.approx(1 - 1e-3 / 2 / looks)] * 2


def test_prompts_of_a_alone_are_not_certified() -> None:
    plan, even = Plan(tolerance=0.2), [one(0), one(1)] * 2000
    more = even + [one(0, prompt="b")] * 1000
    found = compare(more, [*even, one(0, prompt="c")], plan=plan, permutations=9)
    assert found.outcome == "INCONCLUSIVE"
    assert found.positions[0].bound is not None
    assert found.positions[0].bound.not_compared == pytest.approx(0.2)
    assert (found.prompts, found.unmatched) == (1, 2)
    # The other way round, what only B was given says nothing about A's visits.
    assert compare(even, more, plan=plan, permutations=9).passed


def test_a_length_cuts() -> None:
    a = [one(0, n % 7, n) for n in range(300)]
    whole = compare(a, a, permutations=9)
    cut = compare(a, a, plan=Plan(length=1), permutations=9)
    assert len(whole.positions) == 3
    assert [position.positions for position in cut.positions] == [AT_FIRST]
    assert cut.longest == (1, 1)
    assert cut.p_value == 1.0
    assert Samples.of(a).cut(2).counts.keys() == Samples.of(one(0, n % 7) for n in range(7)).counts.keys()
    assert Samples.of(a).cut(9).counts == Samples.of(a).counts


def test_ends_are_symbols() -> None:
    # B stops after one token half the time, and A never does.
    a = [one(0, 1)] * 200
    b = [one(0, 1), one(0)] * 100
    found = compare(a, b, permutations=9)
    assert (found.outcome, found.where) == ("FAIL", AFTER_PREFIX)
    shorter = compare(a, [one(0)] * 200, permutations=9, greedy=False)
    assert shorter.outcome == "FAIL"
    assert ("longest", "A 2 tokens, B 1: an end counts as a symbol") in shorter.rows()


def test_rates_are_fixed_beforehand() -> None:
    # 999 permutations can never reach 1e-6: the e-value has the whole rate. 9,999 can reach .001.
    assert _Rates.of(Plan(), 3, 999) == _Rates(math.log(1e6), 0.0, 1e-6)
    half = _Rates.of(Plan(false_alarm=1e-3), 3, 9999)
    assert half == _Rates(pytest.approx(math.log(2e3)), pytest.approx(0.5e-3 / 3), 1e-3)
    assert _Rates.of(Plan(false_alarm=0.0059), 3, 999).p_value == 0.0  # just below 2 x 3 / 1,000
    assert _Rates.of(Plan(false_alarm=0.0061), 3, 999).p_value > 0.0
    looks = _Rates.of(Plan(looks=4), 3, 999)
    assert looks.log_e == pytest.approx(math.log(4e6))


def test_p_values_decide_where_they_can(rng: np.random.Generator) -> None:
    # With e-values taken away, the p-value 1/100 decides at .1/2/3, and cannot at 1e-6.
    a, b = lines(rng, P, P, 1500), lines(rng, P, FAULTY, 1500)
    plan = Plan(false_alarm=0.1)
    found = compare(a, b, plan=plan, permutations=99)
    assert found.outcome == "FAIL"
    deaf = [PositionTest(p.positions, p.test, -1.0, p.strongest, p.bound) for p in found.positions]
    rates = _Rates.of(plan, 3, 99)
    outcome, _, worst = _decide(tuple(deaf), (), rates, plan)
    assert (outcome, worst.positions) == ("FAIL", AFTER_PREFIX)
    outcome, *_ = _decide(tuple(deaf), (), _Rates.of(Plan(), 3, 99), plan)
    assert outcome == "INCONCLUSIVE"


def test_false_alarms_of_the_whole(rng: np.random.Generator) -> None:
    # 100 runs at rate .2, p-values and e-values together: at most 47 rejections, slips at 1e-9.
    plan, failed = Plan(false_alarm=0.2), 0
    for run in range(100):
        a, b = lines(rng, P, P, 8, 3), lines(rng, P, P, 8, 3)
        failed += compare(a, b, plan=plan, permutations=59, seed=run).outcome == "FAIL"
    assert failed <= 47


# Greedy outputs.


def test_equal_greedy_outputs_pass() -> None:
    a = [one(*range(60), prompt=n) for n in range(4)]
    found = compare(a, a, greedy=True)
    assert (found.outcome, found.where) == ("PASS", "")
    assert found.reason == "greedy outputs of 4 prompts are equal, token by token"
    assert found.positions == ()
    assert math.isnan(found.p_value)


@pytest.mark.parametrize(
    ("hint", "outcome", "gap"),
    [
        ({"gaps": [3.0, 0.2]}, "PASS", 0.2),
        ({"gaps": [3.0, -0.2]}, "PASS", 0.2),
        ({"gaps": [0.0, 0.3]}, "FAIL", 0.3),
        ({"logits": [[5.0, 1.0], [4.25, 2.0, 4.5]]}, "PASS", 0.25),
        ({"logits": [{"5": 9.0, "6": 1.0}, {"6": 9.0, "8": 8.9, "7": 5.0}]}, "FAIL", 4.0),
        # 7 is not listed: below all that are.
        ({"logits": [{"5": 9.0, "6": 1.0}, {"6": 9.0, "8": 8.9}]}, "PASS", pytest.approx(0.1)),
        ({"logits": [{"5": 9.0, "6": 1.0}, {"6": 9.0}]}, "INCONCLUSIVE", None),
        ({}, "INCONCLUSIVE", None),
    ],
)
def test_a_divergence_is_judged_by_its_gap(hint: Record, outcome: str, gap: float | None) -> None:
    a = [one(5, 6, **hint), one(1, 2, prompt="b")]
    found = compare(a, [one(5, 7), one(1, 2, prompt="b")], greedy=True)
    assert found.outcome == outcome
    assert found.greedy is not None
    (divergence,) = found.greedy.divergences
    assert (divergence.prompt, divergence.position, divergence.gap) == ('"a"', 1, gap)
    assert found.greedy.share == 0.5
    assert "position 1" in found.where


def test_the_tie_gap_can_be_chosen() -> None:
    a, b = [one(5, 6, gaps=[3.0, 0.2])], [one(5, 7)]
    assert compare(a, b, greedy=True, tie_gap=0.1).outcome == "FAIL"
    assert compare(a, b, greedy=True, tie_gap=0.2).outcome == "PASS"
    assert "but for 1 ties" in compare(a, b, greedy=True).reason


def test_an_early_end_is_a_divergence() -> None:
    a = [one(5, 6, 7, gaps=[3.0, 2.0, 1.0])]
    for other, position, outcome in ((one(5), 1, "FAIL"), (one(5, 6, 7, 8), 3, "INCONCLUSIVE")):
        found = compare(a, [other], greedy=True)
        assert found.greedy is not None
        assert found.greedy.divergences[0].position == position
        assert found.outcome == outcome


def test_prompts_that_a_does_not_repeat_are_left_out() -> None:
    a = [one(5, 6, gaps=[3, 3]), one(1, 2, prompt="b"), one(3, prompt="c"), one(4, prompt="c")]
    b = [one(5, 7), one(1, 2, prompt="b"), one(9, prompt="c")]
    found = compare(a, b, [one(5, 8), one(1, 2, prompt="b")], greedy=True)
    assert found.outcome == "PASS"
    assert found.greedy is not None
    assert (found.greedy.prompts, found.greedy.unsteady) == (1, 2)
    assert compare(a, b, greedy=True).outcome == "FAIL"  # the second run had excused the first prompt
    alone = compare([one(3), one(4)], [one(3)], greedy=True)
    assert (alone.outcome, alone.greedy and alone.greedy.prompts) == ("INCONCLUSIVE", 0)


def test_the_earliest_of_several_outputs_counts() -> None:
    a = [one(1, 2, 3, gaps=[9, 9, 9])]
    found = compare(a, [one(1, 2, 4), one(1, 3, 3), one(1, 2, 3)], greedy=True)
    assert found.greedy is not None
    assert found.greedy.divergences[0].position == 1


def test_greedy_output_is_recognised_only_when_randomness_would_have_shown() -> None:
    # ln(1000)/.01 = 691 repeated tokens: 2 runs of 2 prompts repeat 16 tokens 10 times, or 11 times.
    for size, greedy in ((11, False), (12, True)):
        run = [one(*range(16), prompt=n) for n in range(2)] * size
        found = compare(run, run, permutations=9)
        assert (found.greedy is not None) is greedy
        assert (found.outcome == "PASS") is greedy
    single = [one(*range(1000), prompt=n) for n in range(3)]
    assert compare(single, single, permutations=9).greedy is None  # a line a prompt repeats nothing
    assert compare(run, [*run[:-1], one(3, prompt=1)], permutations=9).greedy is None
    assert compare(run, run, permutations=9, greedy=False).greedy is None


# What it looks like.


def plain(value: object) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str) and plain(v) for key, v in value.items())
    if isinstance(value, list):
        return all(map(plain, value))
    return value is None or isinstance(value, str | bool | int | float)


def check_record(found: Comparison) -> Record:
    record = found.record()
    assert plain(record)
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert (record["format"], record["outcome"]) == ("simkit comparison 1", found.outcome)
    return record


def test_record_and_texts(rng: np.random.Generator) -> None:
    a, b = lines(rng, P, P, 20), lines(rng, P, P, 20)
    found = compare(a, b, lines(rng, P, P, 30), Plan(tolerance=0.5), permutations=9, seed=4)
    record = check_record(found)
    assert [position["positions"] for position in record["positions"]] == [AT_FIRST, AFTER_PREFIX, WHOLE]
    assert record["positions"][2]["bound"] is None
    assert record["log_e_value"] == found.log_evidence
    assert (record["permutations"], record["seed"], record["lines"]) == (9, 4, [60, 60, 90])
    assert record["plan"]["tolerance"] == 0.5
    names = [name for name, _ in found.rows()]
    assert names[:4] == ["comparison", "lines", AT_FIRST, "bound"]
    assert f"A again, {WHOLE}" in names
    assert repr(found).startswith("Comparison\n  comparison: INCONCLUSIVE: not rejected")
    assert "p " in str(found.positions[0])
    html = found._repr_html_()
    assert html.startswith("<table>")
    assert "positions &gt;= 1, after each prefix" in html


def test_record_of_greedy_outputs() -> None:
    found = compare([one(5, 6)], [one(5, 7)], greedy=True)
    record = check_record(found)
    assert record["p_value"] == "nan"
    assert record["greedy"]["divergences"] == [{"prompt": '"a"', "position": 1, "gap": None}]
    assert record["greedy"]["share"] == 1.0
    assert ("divergence", '"a" at position 1, no logits') in found.rows()


def test_a_seed_fixes_the_comparison_and_the_order_of_lines_does_not_matter(rng: np.random.Generator) -> None:
    a, b = lines(rng, P, P, 20), lines(rng, P, P, 20)
    found = compare(a, b, permutations=99, seed=3).record()
    assert compare(a, b, permutations=99, seed=3).record() == found
    assert compare(a[::-1], b[::-1], permutations=99, seed=3).record() == found
    assert compare(a, b, permutations=99, seed=4).record() != {**found, "seed": 4}


# What is read, and what is not.


def write(folder: Path, text: str | bytes, name: str = "a.jsonl") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_files_are_read_line_by_line(tmp_path: Path) -> None:
    records: Iterable[Record] = [
        one(5, 6, seed=1),
        one(5, 6, seed=2),
        one(prompt="1"),
        one(7, prompt=1),
        one(7, prompt=[{"role": "user", "content": "é"}], gaps=[1.5]),
        one(7, prompt=[{"content": "é", "role": "user"}]),
    ]
    text = "\ufeff" + "\n\n".join(json.dumps(record) for record in records)  # the last without an end
    found = read_samples(write(tmp_path, text))
    assert found.lines == 6
    assert sorted(found.counts.values()) == [1, 1, 2, 2]
    assert found.longest == 2
    assert list(found.gaps.values()) == [(1.5,)]
    assert found.counts == Samples.of(records).counts


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("nonsense\n", "line 2: not JSON (Expecting value"),
        ('{"prompt": "a", "tok', "line 2: not JSON (Unterminated string"),
        ('{"prompt": "a", "tok', "the line has no end: was the run that wrote it finished?"),
        ("[1, 2]\n", "line 2: holds [1, 2]; needed: an object with prompt and tokens"),
        ('{"tokens": [1]}', "line 2: no 'prompt', only 'tokens'"),
        ('{"prompt": "a"}', "line 2: no 'tokens', only 'prompt'"),
        ("{}", "line 2: no 'prompt', only nothing"),
        ('{"prompt": null, "tokens": [1]}', "line 2: no 'prompt'"),
        ('{"prompt": "a", "tokens": "12"}', "line 2: tokens are '12'; needed: a list"),
        ('{"prompt": "a", "tokens": [1, 2.0]}', "line 2: token 1 is 2.0; needed: whole numbers from 0"),
        ('{"prompt": "a", "tokens": [1, true]}', "line 2: token 1 is True"),
        ('{"prompt": "a", "tokens": [-1]}', "line 2: token 0 is -1"),
        ('{"prompt": "a", "tokens": [0, 2147483648]}', "line 2: token 1 is 2147483648"),
        ('{"prompt": "a", "tokens": [99999999999999999999]}', "line 2: token 0 is 99999999999999999999"),
        ('{"prompt": "a", "tokens": [1, "2"]}', "line 2: token 1 is '2'"),
        ('{"prompt": "a", "tokens": [1], "gaps": [1, 2]}', "line 2: gaps has 2 entries and tokens 1"),
        ('{"prompt": "a", "tokens": [1], "gaps": 3}', "line 2: gaps has 3 entries"),
        ('{"prompt": "a", "tokens": [1], "gaps": ["x"]}', "line 2: gaps hold something else than numbers"),
        ('{"prompt": "a", "tokens": [1], "gaps": [NaN]}', "line 2: gaps hold something else"),
        ('{"prompt": "a", "tokens": [1], "logits": [[1]]}', "line 2: logits hold something else"),
        ('{"prompt": "a", "tokens": [1], "logits": [{}]}', "line 2: logits hold something else"),
        ('{"prompt": "a", "tokens": [1], "logits": [{"x": 1}]}', "line 2: logits hold something else"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_line(line: str, says: str, tmp_path: Path) -> None:
    path = write(tmp_path, json.dumps(one(1)) + "\n" + line)
    with pytest.raises(InputError) as caught:
        read_samples(path)
    assert str(caught.value).startswith(f"{path}, line 2")
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"", "is empty"),
        (b"\n \n", "is empty"),
        (b'{"prompt": "a", "tokens": []}\n' * 3, "has 3 lines and no token in any"),
        (b'{"prompt": "\xff", "tokens": [1]}', "line 1: not UTF-8 text (invalid start byte at byte 12)"),
        (b"[" * 100_000, "line 1: not JSON"),
        (b'{"prompt": 1, "tokens": [' + b"1" * 5000 + b"]}", "line 1: not JSON (Exceeds the limit"),
    ],
)
def test_unusable_files(text: bytes, says: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_samples(write(tmp_path, text))
    assert says in str(caught.value)


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"cannot read .*missing\.jsonl"):
        read_samples(tmp_path / "missing.jsonl")
    with pytest.raises(StoreError, match="cannot read"):
        read_samples(tmp_path)


def test_arguments_are_checked(tmp_path: Path) -> None:
    a: Any = [one(1)]
    calls: list[tuple[Any, str]] = [
        (lambda: compare(a, [one(1, prompt="b")]), "A and B share no prompt"),
        (lambda: compare(a, a, [one(1, prompt="b")]), "A and A again share no prompt"),
        (lambda: compare(a, a, permutations=0), "permutations=0"),
        (lambda: compare(a, a, permutations=2.5), "permutations=2.5"),  # type: ignore[arg-type]
        (lambda: compare(a, a, seed=-1), "seed=-1"),
        (lambda: compare(a, a, tie_gap=-1.0), "tie_gap=-1.0"),
        (lambda: compare(a, a, tie_gap=math.nan), "tie_gap=nan"),
        (
            lambda: compare("a.jsonl", a),
            "A is the path 'a.jsonl'; pass simkit.verify.emitted",
        ),  # type: ignore[arg-type]
        (lambda: compare(a, tmp_path), "B is the path"),  # type: ignore[arg-type]
        (lambda: compare(a, []), "B is empty"),
        (lambda: compare(a, [one(1), {"prompt": "a"}]), "B, line 2: no 'tokens'"),
        (lambda: compare(a, [{"prompt": {1, 2}, "tokens": [1]}]), "B, line 1: prompt is {1, 2}"),
    ]
    for call, says in calls:
        with pytest.raises(InputError) as caught:
            call()
        assert says in str(caught.value)


def test_arrays_are_lines_too() -> None:
    found = Samples.of([{"prompt": np.int64(3).item(), "tokens": np.array([1, 2])}, one(1, 2, prompt=3)])
    assert list(found.counts.values()) == [2]
    assert Samples.of([{"prompt": 3, "tokens": (np.int32(1), 2)}]).counts.keys() == found.counts.keys()
