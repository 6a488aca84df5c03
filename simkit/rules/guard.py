"""Run somebody else's rule: whatever it raises becomes one clear error, and what it prints goes to stderr."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import TypeVar

from simkit.errors import InputError, TooLargeError
from simkit.laws.rows import IntRows
from simkit.rules.chain import Chain
from simkit.rules.choose import Block, Choose, Emitted, Text
from simkit.rules.step import Step

Result = TypeVar("Result")


def guarded(text: Text) -> Text:
    """Return the same rule, whose exceptions, exits among them, are `InputError`s.

    A `Chain` stays one, and simkit's own rules stay what they are: they have kernels of their own.

    Parameters
    ----------
    text : callable
        The rule.

    Examples
    --------
    >>> from simkit.rules.block import block
    >>> guarded(block) is block
    True
    """
    if not _is_foreign(text.rule if isinstance(text, Chain) else text):
        return text
    if isinstance(text, Chain):
        rule = text.rule

        def step(target: IntRows, draft: IntRows) -> Step:
            return call(lambda: rule(target, draft))

        step.__qualname__ = getattr(rule, "__qualname__", "rule")
        return Chain(step)

    def run(model: Block, choose: Choose) -> Emitted:
        return call(lambda: text(model, choose))

    run.__qualname__ = getattr(text, "__qualname__", type(text).__name__)
    return run


def _is_foreign(function: object) -> bool:
    """Return whether a function does not come from simkit."""
    return not (getattr(function, "__module__", "") or "").startswith("simkit.")


def call(work: Callable[[], Result]) -> Result:
    """Return what somebody else's code returns; what it prints goes to stderr.

    Parameters
    ----------
    work : callable
        The code.

    Raises
    ------
    InputError
        For whatever it raises, but Ctrl-C.

    Examples
    --------
    >>> call(lambda: 1 / 0)
    Traceback (most recent call last):
    ...
    simkit.errors.InputError: the rule raised ZeroDivisionError: division by zero
    """
    try:
        with redirect_stdout(sys.stderr):
            return work()
    except KeyboardInterrupt:
        raise
    except InputError as error:
        if isinstance(error, TooLargeError):  # not for a rule to say
            raise InputError(f"the rule raised TooLargeError: {error}") from error
        raise
    except BaseException as error:
        raise InputError(f"the rule raised {type(error).__name__}: {_text_of(error)}") from error


def _text_of(error: BaseException) -> str:
    try:
        return str(error).encode("utf-8", "backslashreplace").decode()
    except Exception:
        return "(it cannot be printed)"
