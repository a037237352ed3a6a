"""The notebook of the tour runs from top to bottom, and gives what it shows."""

from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest

NOTEBOOK = Path(__file__).parent.parent / "docs" / "tour.ipynb"


def outputs(notebook: Any) -> list[str]:
    """What the cells print and show, as text; a kernel may send it in several pieces."""
    return [
        "".join(output.get("text") or output["data"]["text/plain"] for output in cell.outputs)
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


@pytest.mark.slow
def test_the_notebook_gives_what_it_shows() -> None:
    notebook: Any = nbformat.read(NOTEBOOK, 4)  # type: ignore[no-untyped-call]
    shown = outputs(notebook)
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    assert outputs(notebook) == shown
    assert len(shown) > 10
