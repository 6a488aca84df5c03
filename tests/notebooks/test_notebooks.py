"""The notebooks run from top to bottom, and end where they say they do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[2] / "notebooks"


@pytest.fixture(scope="module")
def explored() -> Any:
    notebook = nbformat.read(FOLDER / "explore.ipynb", as_version=4)
    NotebookClient(
        notebook, timeout=240, kernel_name="python3", resources={"metadata": {"path": FOLDER}}
    ).execute()
    return notebook


def shown(notebook: Any) -> str:
    """All that the cells show, as one text."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    rich = [str(output.get("data", {}).get("text/html", "")) for output in outputs]
    plain = [str(output.get("text", "")) for output in outputs]
    return "\n".join(rich + plain)


@pytest.mark.slow
def test_explore_goes_from_a_pair_to_both_verdicts(explored: Any) -> None:
    text = shown(explored)
    assert text.count("data:image/svg+xml") == 2
    assert "PASS: " in text
    assert "FAIL: " in text


@pytest.mark.slow
def test_explore_has_ten_short_cells(explored: Any) -> None:
    code = [cell.source for cell in explored.cells if cell.cell_type == "code"]
    assert len(code) == 10
    assert max(len(source.splitlines()) for source in code) <= 10


def test_notebooks_are_committed_without_outputs() -> None:
    for path in FOLDER.glob("*.ipynb"):
        notebook = nbformat.read(path, as_version=4)
        shown = [cell for cell in notebook.cells if cell.get("outputs") or cell.get("execution_count")]
        assert not shown, path.name
