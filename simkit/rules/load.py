"""Load a rule of one's own from a Python file."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np

from simkit.errors import InputError
from simkit.rules.chain import Chain
from simkit.rules.choose import Text
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
        names = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
        raise InputError(f"{file} has no {name!r}; its functions: {', '.join(names) or 'none'}")
    if isinstance(found, Chain):
        return found
    if not callable(found):
        raise InputError(f"{place} is a {type(found).__name__}; a rule is a function")
    return Chain(found) if _makes_steps(found) else found


def _run(file: Path) -> ModuleType:
    if file.suffix != ".py" or not file.is_file():
        raise InputError(f"there is no Python file {file}; give FILE.py:NAME")
    name = f"simkit_rule_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise InputError(f"{file} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses in the file look for it there
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # anything can be wrong in a file that somebody is writing
        raise InputError(f"{file} cannot be run: {type(error).__name__}: {error}") from error
    return module


def _makes_steps(function: object) -> bool:
    """Return whether a function makes a `Step` of rows; one that takes a model fails on rows."""
    rows = np.array([[1, 1]])
    try:
        return isinstance(function(rows, rows), Step)  # type: ignore[operator]
    except Exception:
        return False
