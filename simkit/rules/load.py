"""Load a rule of one's own from a Python file."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np

from simkit.errors import InputError
from simkit.rules.chain import Chain
from simkit.rules.choose import Text
from simkit.rules.guard import call, guarded
from simkit.rules.step import Step


def load_rule(place: str) -> Text:
    """Return the rule at ``FILE.py:NAME``: a text, or a chain rule, which becomes a `Chain`.

    Parameters
    ----------
    place : str
        A Python file, and the name of a function in it: ``rule(model, choose) -> Emitted`` or
        ``rule(target, draft) -> Step``. The file is run.

    Raises
    ------
    InputError
        When there is no such file or name, the file cannot be run, or the name is no function.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "mine.py"
    ...     _ = file.write_text("from simkit.rules.step import token_rule as mine")
    ...     load_rule(f"{file}:mine").rule.__name__
    'token_rule'
    """
    file, colon, name = place.rpartition(":")
    if not colon or not file or not name:
        raise InputError(f"{place!r} names no rule; give FILE.py:NAME, a file and a function in it")
    module = _run(Path(file))
    found = getattr(module, name, None)
    if found is None:
        own = {key: value for key, value in vars(module).items() if not key.startswith("_")}
        names = [
            key
            for key, value in own.items()
            if callable(value) and getattr(value, "__module__", "") == module.__name__
        ]
        raise InputError(f"{file} has no {name!r}; its functions: {', '.join(names) or 'none'}")
    if not callable(found) or isinstance(found, type):
        raise InputError(f"{place} is a {type(found).__name__}; a rule is a function")
    text = found if isinstance(found, Chain) or not _makes_steps(found) else Chain(found)
    return guarded(text)


def _run(file: Path) -> ModuleType:
    if file.suffix != ".py" or not file.is_file():
        raise InputError(f"there is no Python file {file}; give FILE.py:NAME")
    name = f"simkit_rule_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise InputError(f"{file} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses in the file look for it there
    loader = spec.loader
    try:
        call(lambda: loader.exec_module(module))
    except InputError as error:  # anything can be wrong in a file that somebody is writing
        said = str(error).removeprefix("the rule raised ")
        raise InputError(f"{file} cannot be run: {said}") from error
    return module


def _makes_steps(function: Callable[..., object]) -> bool:
    """Return whether a function makes a `Step` of rows; one that takes a model fails on rows."""
    rows = np.array([[1, 1]])
    try:
        return isinstance(call(lambda: function(rows, rows)), Step)
    except InputError:
        return False
