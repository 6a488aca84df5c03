"""Pairs by name."""

from __future__ import annotations

from fractions import Fraction

import pytest

from simkit.errors import InputError, UnknownNameError
from simkit.laws.named import PAIRS, make_pair
from simkit.laws.rows import TOTAL
from simkit.laws.synthetic import CORNER_CASES, corner_case, zipf


@pytest.mark.parametrize("name", PAIRS)
def test_every_name_makes_a_pair_called_so(name: str) -> None:
    assert make_pair(name).name.startswith(name)


@pytest.mark.parametrize("name", ["zipf", "dirichlet", "uniform"])
def test_synthetic_pairs_take_size_distance_and_seed(name: str) -> None:
    pair = make_pair(name, vocabulary=40, total_variation=0.2, seed=5)
    assert pair.vocabulary == 40
    distance = pair.target_row().total_variation(pair.draft_row())
    assert distance == Fraction(round(0.2 * TOTAL), TOTAL)
    default = make_pair(name)
    assert default.vocabulary == 1000
    assert float(default.target_row().total_variation(default.draft_row())) == pytest.approx(0.3)


def test_seed_changes_the_random_parts_only() -> None:
    assert make_pair("zipf", seed=1).target_row() == make_pair("zipf", seed=2).target_row() == zipf(1000)
    assert make_pair("zipf", seed=1).digest != make_pair("zipf", seed=2).digest
    assert make_pair("dirichlet", seed=1).target_row() != make_pair("dirichlet", seed=2).target_row()
    assert make_pair("ngram", order=2, draft_order=1, seed=1).digest == (
        make_pair("ngram", order=2, draft_order=1, seed=2).digest
    )


def test_further_options_reach_the_maker() -> None:
    assert make_pair("zipf", vocabulary=9, exponent=2.0).target_row() == zipf(9, 2.0)
    assert make_pair("dirichlet", concentration=9.0).digest != make_pair("dirichlet").digest
    assert make_pair("tempered-copy", vocabulary=5, temperature=1.0).digest != (
        make_pair("tempered-copy", vocabulary=5).digest
    )
    assert make_pair("ngram", order=3, draft_order=2).states == 690


def test_options_that_are_none_count_as_not_given() -> None:
    assert make_pair("zipf", vocabulary=None, total_variation=None).digest == make_pair("zipf").digest
    for name in CORNER_CASES:
        assert make_pair(name, vocabulary=None, seed=3).digest == corner_case(name).digest


def test_an_option_that_the_pair_does_not_take_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"pair 'disjoint' does not take vocabulary; .* no options: it is fixed"
    ):
        make_pair("disjoint", vocabulary=10)
    with pytest.raises(
        InputError, match="'ngram' does not take total_variation, vocabulary; it takes order, "
    ):
        make_pair("ngram", vocabulary=10, total_variation=0.1)
    with pytest.raises(InputError, match=r"it takes vocabulary, total_variation, exponent$"):
        make_pair("zipf", concentration=1.0)


def test_unknown_name_lists_the_known() -> None:
    with pytest.raises(
        UnknownNameError, match=r"unknown pair 'zip'; known: automaton, .*Did you mean 'zipf'\?"
    ):
        make_pair("zip")
