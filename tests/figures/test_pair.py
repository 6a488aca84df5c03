"""plot: p, q, their overlap and the residual of a pair, in one picture with its numbers."""

from __future__ import annotations

import sys
from xml.etree import ElementTree as ET

import matplotlib
import numpy as np
import pytest
from matplotlib.axes import Axes

from simkit.errors import InputError, MissingExtraError
from simkit.figures.pair import BARS, plot
from simkit.figures.render import svg
from simkit.laws.named import make_pair
from simkit.laws.pair import Pair
from simkit.laws.synthetic import CORNER_CASES

TEXTBOOK = Pair.from_rows(target=[0.5, 0.3, 0.2], draft=[0.2, 0.3, 0.5])


def heights(ax: Axes) -> dict[str, list[float]]:
    """The bars of each series, by its label."""
    return {
        str(container.get_label()): [bar.get_height() for bar in container]  # type: ignore[attr-defined]
        for container in ax.containers
    }


def test_bars_show_both_laws_the_overlap_and_the_residual() -> None:
    above, below = plot(TEXTBOOK).axes
    bars = heights(above)
    assert bars["target p"] == pytest.approx([0.5, 0.3, 0.2])
    assert bars["draft q"] == pytest.approx([0.2, 0.3, 0.5])
    assert bars["overlap min(p, q)"] == pytest.approx([0.2, 0.3, 0.2])
    (residual,) = heights(below).values()
    assert residual == pytest.approx([1.0, 0.0, 0.0])
    assert [text.get_text() for text in above.get_legend().get_texts()] == [
        "target p",
        "draft q",
        "overlap min(p, q)",
    ]


def test_title_has_the_numbers_and_axes_have_names() -> None:
    above, below = plot(TEXTBOOK).axes
    assert above.get_title(loc="left") == "acceptance rate = overlap = 0.7, total variation 0.3"
    assert [ax.get_ylabel() for ax in (above, below)] == ["probability", "residual probability"]
    assert below.get_xlabel() == "token"


def test_many_tokens_become_curves_in_rank_order() -> None:
    pair = make_pair("dirichlet", vocabulary=BARS + 1, total_variation=0.25)
    above, below = plot(pair).axes
    p, q = pair.target_row().probabilities, pair.draft_row().probabilities
    order = np.argsort(-p, kind="stable")
    curves = {line.get_label(): np.asarray(line.get_ydata()) for line in above.get_lines()}
    assert curves["target p"] == pytest.approx(p[order])
    assert curves["draft q"] == pytest.approx(q[order])
    residual = np.asarray(below.get_lines()[0].get_ydata())
    assert residual == pytest.approx(np.maximum(p - q, 0)[order] / 0.25)
    assert (above.get_xscale(), above.get_yscale(), below.get_yscale()) == ("log", "log", "log")
    assert below.get_xlabel() == "token, by rank under the target"
    assert above.get_title(loc="left").endswith("overlap = 0.75, total variation 0.25")


def test_bars_end_where_curves_begin() -> None:
    for vocabulary, curves in ((BARS, 0), (BARS + 1, 2)):
        above = plot(make_pair("zipf", vocabulary=vocabulary)).axes[0]
        assert len(above.get_lines()) == curves


@pytest.mark.parametrize("vocabulary", [1, 5, BARS + 1])
def test_equal_laws_have_an_empty_residual(vocabulary: int) -> None:
    # A division by the residual's sum, which is 0, would be a warning and so an error here.
    figure = plot(make_pair("zipf", vocabulary=vocabulary, total_variation=0.0))
    above, below = figure.axes
    assert "total variation 0" in above.get_title(loc="left")
    bars = [height for series in heights(below).values() for height in series]
    curve = [y for line in below.get_lines() for y in line.get_ydata()]
    assert set(map(float, bars + curve)) == {0.0}
    assert below.get_yscale() == "linear"


@pytest.mark.parametrize("name", [*CORNER_CASES, "ngram"])
def test_every_named_pair_can_be_drawn(name: str) -> None:
    figure = plot(make_pair(name), state=make_pair(name).states - 1)
    ET.fromstring(svg(figure))


def test_probabilities_of_zero_on_a_log_scale() -> None:
    weights = np.zeros(BARS + 8, int)
    weights[3] = 1
    ET.fromstring(svg(plot(Pair.from_weights(weights, np.ones(BARS + 8, int)))))


def test_state_and_slot_choose_the_rows() -> None:
    pair = Pair.from_rows(target=[[0.5, 0.5], [1.0, 0.0]], draft=[[0.5, 0.5], [0.5, 0.5]])
    assert heights(plot(pair, state=1).axes[0])["target p"] == [1.0, 0.0]
    by_slot = Pair.by_slot(target=[0.5, 0.5], draft=[[0.5, 0.5], [0.9, 0.1]])
    assert heights(plot(by_slot, slot=1).axes[0])["draft q"] == pytest.approx([0.9, 0.1])


@pytest.mark.parametrize(
    ("where", "says"), [({"state": 1}, "state=1"), ({"state": -1}, "state=-1"), ({"slot": -1}, "slot=-1")]
)
def test_rows_that_are_not_there_are_refused(where: dict[str, int], says: str) -> None:
    with pytest.raises(InputError, match=says):
        plot(TEXTBOOK, **where)


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.delitem(sys.modules, "simkit.figures.drawing", raising=False)
    with pytest.raises(MissingExtraError, match=r"pip install 'simkit-speculative\[reports\]'"):
        plot(TEXTBOOK)


def test_drawing_leaves_the_style_of_others_alone() -> None:
    before = dict(matplotlib.rcParams)
    plot(TEXTBOOK)
    assert dict(matplotlib.rcParams) == before
