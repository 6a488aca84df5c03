"""Install simkit beside the versions that inference engines pin, and see that it moves none of them.

Run by CI as a script. It makes a throw-away environment with the engine's numba and numpy, asks pip what it
would install for this project, then installs it and draws the same samples as the development environment:
the digest of the counts must not depend on the versions.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
# NumPy 2.2 has no build for Python 3.14; there the oldest that has one stands in.
NUMPY = "numpy==2.2.*" if sys.version_info < (3, 14) else "numpy==2.3.*"
ENGINE = ("numba==0.65.0", NUMPY)
HELD = frozenset({"numba", "llvmlite", "numpy"})
SIMULATE = (
    *("simulate", "--pair", "zipf", "--vocab", "1000", "--tv", "0.3", "--draft-length", "4", "--length", "8"),
    *("--trials", "1000000", "--seed", "1", "--json"),
)


def moved(report: dict[str, Any]) -> dict[str, str]:
    """The held packages that a pip installation report would install, with their new versions."""
    chosen = (item["metadata"] for item in report["install"])
    return {one["name"]: one["version"] for one in chosen if one["name"].lower() in HELD}


def pip(python: Path, *arguments: str) -> None:
    """Run pip in the throw-away environment."""
    subprocess.run([str(python), "-m", "pip", "--disable-pip-version-check", "-qq", *arguments], check=True)


def digest(python: Path, folder: Path) -> str:
    """The digest of the counts that the command line prints in that environment."""
    command = [str(python.with_name("simkit")), *SIMULATE]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"simkit {' '.join(SIMULATE)} exited with {done.returncode}:\n{done.stdout}{done.stderr}")
    return str(json.loads(done.stdout)["digest"])


def main() -> None:
    """Exit with a message unless the engine's packages stay and the samples are the same."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        venv.create(folder / "venv", with_pip=True)
        python = folder / "venv" / "bin" / "python"
        report = folder / "report.json"
        pip(python, "install", *ENGINE)
        pip(python, "install", "--dry-run", "--report", str(report), str(ROOT))
        if change := moved(json.loads(report.read_text())):
            sys.exit(f"installing simkit beside {', '.join(ENGINE)} would change {change}")
        pip(python, "install", str(ROOT))
        there, here = digest(python, folder), digest(Path(sys.executable), folder)
        if there != here:
            sys.exit(f"other counts beside {', '.join(ENGINE)}: digest {there}, with constraints.txt {here}")
    print(f"beside {', '.join(ENGINE)}: nothing moved, same digest {here}")


if __name__ == "__main__":
    main()
