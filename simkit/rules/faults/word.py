"""Word: one uniform number that is read more than once, exactly.

A text asks each `choose` independently of all others, so it cannot read a number twice. It need not: all that
a reading tells of the number is the interval that it lies in, and within that it is uniform. The next reading
is then a choice among the cells that the interval meets, by the lengths of what it meets.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate, pairwise

from simkit.rules.choose import Choose

FLOAT32_WORDS = 2**24
"""Values of a uniform number in float32: the multiples of 2**-24 below 1."""


class Word:
    """A uniform number u in [0, 1) that can be read again and again.

    Parameters
    ----------
    choose : Choose
        The decisions of the text.

    Examples
    --------
    >>> from simkit.laws.pair import Pair
    >>> from simkit.rules.choose import Block, Emitted, walk
    >>> def twice(model, choose):
    ...     word = Word(choose)
    ...     return Emitted((word.index(model.p(())), word.index(model.p(()))), accepted=1)
    >>> {emitted.tokens: str(mass) for emitted, mass in walk(twice, Block(Pair.from_weights([1, 2], [1, 2]),
    ...     state=0, draft_length=1)).items()}
    {(0, 0): '1/3', (1, 1): '2/3'}
    """

    def __init__(self, choose: Choose) -> None:
        self._choose = choose
        self._low, self._high = Fraction(0), Fraction(1)

    def index(self, law: Sequence[Fraction]) -> int:
        """Return the first index at which the running sum of a law is above u.

        Parameters
        ----------
        law : sequence of Fraction
            Probabilities with the sum 1.
        """
        ends = [Fraction(0), *accumulate(law)]
        cells = [(max(low, self._low), min(high, self._high)) for low, high in pairwise(ends)]
        index = self._choose([max(high - low, Fraction(0)) for low, high in cells])
        self._low, self._high = cells[index]
        return index

    def coin(self, chance: Fraction) -> bool:
        """Return whether u is below a number.

        Parameters
        ----------
        chance : Fraction
            From 0; from 1 on u is below it for certain.
        """
        return self.index((chance, 1 - chance)) == 0
