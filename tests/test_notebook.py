"""The notebook of the tour runs from top to bottom, and gives what it shows."""

from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest

from tools.tour import notebook

NOTEBOOK = Path(__file__).parent.parent / "docs" / "tour.ipynb"


def outputs(notebook: Any) -> list[str]:
    """What the cells print and show, as text; a kernel may send it in several pieces."""
    return [
        "".join(output.get("text") or output["data"]["text/plain"] for output in cell.outputs)
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def test_the_notebook_is_the_one_of_the_tool() -> None:
    shown: Any = nbformat.read(NOTEBOOK, 4)  # type: ignore[no-untyped-call]
    assert [(c.cell_type, c.source) for c in shown.cells] == [
        (c.cell_type, c.source) for c in notebook().cells
    ]


@pytest.mark.slow
def test_the_notebook_gives_what_it_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COROLLARY_PROGRESS", "0")
    run: Any = nbformat.read(NOTEBOOK, 4)  # type: ignore[no-untyped-call]
    shown = outputs(run)
    nbclient.NotebookClient(run, timeout=300, kernel_name="python3").execute()
    assert outputs(run) == shown
    assert len(shown) > 10
