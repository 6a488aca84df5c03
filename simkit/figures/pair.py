"""plot: the laws of a pair in one picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from simkit.errors import MissingExtraError
from simkit.laws.checks import whole_number
from simkit.laws.pair import Pair
from simkit.laws.rows import common, probabilities

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BARS = 32
"""Up to so many tokens are drawn as bars; more are drawn as curves in the target's rank order."""


def plot(pair: Pair, state: int = 0, slot: int = 0) -> Figure:
    """Return a figure of p, q, their overlap (the acceptance rate) and the residual at a state and slot.

    It is a matplotlib figure: ``savefig`` writes it, and a notebook shows it.

    Parameters
    ----------
    pair : Pair
        The laws.
    state, slot : int
        Which rows.

    Raises
    ------
    InputError
        For a state that the pair does not have, or a negative slot.
    MissingExtraError
        When matplotlib is not installed.

    Examples
    --------
    >>> figure = plot(Pair.from_rows(target=[0.5, 0.3, 0.2], draft=[0.2, 0.3, 0.5]))
    >>> [axes.get_ylabel() for axes in figure.axes]
    ['probability', 'residual probability']
    """
    try:
        from simkit.figures.drawing import Drawing
    except ImportError:
        raise MissingExtraError("matplotlib", "reports") from None
    from simkit.figures.style import WIDTH, style

    whole_number(state, "state", 0, pair.states - 1)
    whole_number(slot, "slot", 0)
    p, q = common(pair.target_row(state).weights, pair.draft_row(state, slot).weights)
    with style():
        figure = Drawing(figsize=(WIDTH, 4.2), layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=(2, 1))
        draw_laws(above, probabilities(p), probabilities(q))
        draw_residual(below, np.maximum(p - q, 0) / max(int(np.maximum(p - q, 0).sum()), 1), probabilities(p))
    return figure


def draw_laws(ax: Axes, p: NDArray[np.float64], q: NDArray[np.float64]) -> Axes:
    """Draw p and q over the tokens, their overlap shaded; return the axes.

    Parameters
    ----------
    ax : matplotlib Axes
        Where to draw.
    p, q : float64 arrays, shape (V,)
        Target and draft probabilities.
    """
    from simkit.figures.style import DRAFT, TARGET, THEORY

    kept = float(np.minimum(p, q).sum())
    if len(p) <= BARS:
        at = np.arange(len(p))
        ax.bar(at - 0.2, p, 0.4, color=TARGET, label="target p")
        ax.bar(at + 0.2, q, 0.4, color=DRAFT, label="draft q", hatch="//")
        ax.bar(at, np.minimum(p, q), 0.8, color=THEORY, alpha=0.45, label="overlap min(p, q)")
        ax.set_xticks(at)
    else:
        order = np.argsort(-p, kind="stable")
        rank = np.arange(1, len(p) + 1)
        ax.plot(rank, q[order], linestyle="", marker=".", markersize=3, color=DRAFT, label="draft q")
        ax.plot(rank, p[order], color=TARGET, marker="", label="target p")
        smallest = np.concatenate([p[p > 0], q[q > 0]]).min() / 2
        overlap = np.minimum(p, q)[order]
        ax.fill_between(
            rank, smallest, np.maximum(overlap, smallest), color=THEORY, alpha=0.3, label="overlap min(p, q)"
        )
        ax.set_xscale("log")
        ax.set_yscale("log")
    ax.set_ylabel("probability")
    ax.set_title(f"acceptance rate = overlap = {kept:.4g}, total variation {1 - kept:.4g}")
    ax.legend()
    return ax


def draw_residual(ax: Axes, residual: NDArray[np.float64], p: NDArray[np.float64]) -> Axes:
    """Draw the law of the replacement, max(p - q, 0) normalised, over the tokens; return the axes.

    Parameters
    ----------
    ax : matplotlib Axes
        Where to draw.
    residual, p : float64 arrays, shape (V,)
        The residual law (all zero where p = q), and the target's, which gives the order of the tokens.
    """
    from simkit.figures.style import MEASURED

    if len(p) <= BARS:
        ax.bar(np.arange(len(p)), residual, 0.6, color=MEASURED)
        ax.set_xlabel("token")
    else:
        order = np.argsort(-p, kind="stable")
        ax.plot(
            np.arange(1, len(p) + 1), residual[order], linestyle="", marker=".", markersize=3, color=MEASURED
        )
        if residual.any():
            ax.set_yscale("log")
        ax.set_xlabel("token, by rank under the target")
    ax.set_ylabel("residual probability")
    return ax
