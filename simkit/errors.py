"""The errors a user meets: each says what was given, what is needed and what to do next."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class SimkitError(Exception):
    """Base of every error that simkit raises on purpose; the command line prints it and exits with 2."""


class InputError(SimkitError, ValueError):
    """An argument, a row, a file or a sampler's output that cannot be used as it is."""


class UnknownNameError(InputError):
    """A name that is not registered; the message lists the known names."""

    def __init__(self, kind: str, name: object, known: Iterable[str]) -> None:
        names = sorted(known)
        near = get_close_matches(str(name), names, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        super().__init__(f"unknown {kind} {name!r}; known: {', '.join(names)}.{hint}")


class TooLargeError(InputError):
    """A law that is too large to be had exactly; the message says by how much, and what to do instead."""


class MissingExtraError(SimkitError, ImportError):
    """An optional package that was asked for and is not installed; the message names the extra."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(
            f"{package} is not installed; install it with: pip install 'simkit-speculative[{extra}]'"
        )


class StoreError(SimkitError):
    """A result file or an output folder that cannot be read or written."""
