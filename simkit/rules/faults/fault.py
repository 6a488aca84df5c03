"""What a fault is: a broken rule with its source and the smallest pair that shows it; and what is none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from numpy.typing import ArrayLike

from simkit.errors import InputError, UnknownNameError
from simkit.laws.pair import Pair
from simkit.rules.choose import Text

CLASSES = ("law", "joint", "support", "crash", "acceptance", "determinism", "report")
"""What a fault changes.

law: the law of a token; joint: only the law of several; support: tokens that the target never emits come out;
crash: there is no token, or none of the vocabulary; acceptance: fewer drafts are kept; determinism: the same
seed gives another text; report: a number beside the tokens is wrong.
"""


def base() -> Pair:
    """Return the pair that most faults are shown on; its residual is a single token.

    Examples
    --------
    >>> base()
    Pair('base', vocabulary 3, 1 state, 1 request)
      target: 0.5, 0.3, 0.2
      draft:  0.2, 0.3, 0.5
    """
    return Pair.from_weights([5, 3, 2], [2, 3, 5], name="base")


def weights(target: ArrayLike, draft: ArrayLike) -> Callable[[], Pair]:
    """Return a maker of `Pair.from_weights`.

    Parameters
    ----------
    target, draft : array_like of int
        As in `Pair.from_weights`.

    Examples
    --------
    >>> weights([1, 2], [2, 1])().vocabulary
    2
    """
    return lambda: Pair.from_weights(target, draft)


@dataclass(frozen=True)
class Fault:
    """A fault with what is known of it; its distance is computed, by `simkit.rules.faults.measure.distance`.

    Parameters
    ----------
    name : str
        What is wrong, in a few words.
    kind : str
        One of `CLASSES`: what the fault changes where it is shown.
    summary : str
        One sentence: what goes wrong.
    change : str
        What it changes in the right rule.
    source : str
        Repository and number of the public thread, or "code pattern".
    rule : callable or None
        The broken rule; see `simkit.rules.choose.Text`. None where no text can say what comes out.
    shown_by : callable
        Returns the smallest pair that shows it.
    draft_length, length : int
        Drafts K for a call and tokens of the sequence at which it shows.
    seen_by : str
        How it is seen where no law of tokens shows it.

    Raises
    ------
    InputError
        For an unknown kind, or a fault that neither a rule nor `seen_by` shows.

    Examples
    --------
    >>> from simkit.rules.faults import FAULTS
    >>> FAULTS["replace-from-target"].change
    'correct: p instead of max(p - q, 0)'
    """

    name: str
    kind: str
    summary: str
    change: str
    source: str
    rule: Text | None = None
    shown_by: Callable[[], Pair] = base
    draft_length: int = 1
    length: int = 1
    seen_by: str = ""

    def __post_init__(self) -> None:
        if self.kind not in CLASSES:
            raise UnknownNameError("class of fault", self.kind, CLASSES)
        if not self.shows_in_a_law and not self.seen_by:
            raise InputError(f"fault {self.name!r} shows in no law of tokens; give seen_by=")

    @property
    def shows_in_a_law(self) -> bool:
        """Whether what comes out has another law than the target's."""
        return self.rule is not None and self.kind in ("law", "joint", "support")

    @property
    def text(self) -> Text:
        """The broken rule; raises `InputError` where there is none."""
        if self.rule is None:
            raise InputError(
                f"fault {self.name!r} has no law of tokens that could be drawn; it is seen otherwise: "
                f"{self.seen_by}"
            )
        return self.rule


@dataclass(frozen=True)
class Control:
    """A rule that looks wrong and loses nothing: a test that rejects it is wrong itself.

    Parameters
    ----------
    name : str
        What it does, in a few words.
    suspicion : str
        Why it looks wrong.
    reason : str
        Why it is lossless.
    source : str
        Where it is used, or was reported as a fault.
    text : callable
        The rule; see `simkit.rules.choose.Text`.

    Examples
    --------
    >>> from simkit.rules.faults import CONTROLS
    >>> CONTROLS["no-bonus"].reason
    'each token has its own law; whose call emits it does not matter'
    """

    name: str
    suspicion: str
    reason: str
    source: str
    text: Text
