"""The command line: parse, call one function, print."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run the command line; errors that simkit raises on purpose print one line and exit with 2."""
    from simkit.cli.app import app
    from simkit.errors import SimkitError

    try:
        app()
    except SimkitError as error:
        sys.exit(_complain(str(error)))
    except MemoryError as error:
        sys.exit(_complain(f"out of memory ({error}); use a smaller vocabulary, or fewer states"))
    except OSError as error:
        sys.exit(
            _complain(f"{error.filename or 'a file'}: {error.strerror or error}; check it and run again")
        )
    except Exception as error:
        if os.environ.get("SIMKIT_DEBUG"):
            raise
        _complain(f"internal error, {type(error).__name__}: {error}; SIMKIT_DEBUG=1 shows where")
        sys.exit(70)  # a defect of simkit is not a verdict: neither 0 nor 1


def _complain(text: str) -> int:
    print(f"simkit: {text}", file=sys.stderr)
    return 2
