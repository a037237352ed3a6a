"""The site that `make docs` builds from these pages; the API pages come from docstrings."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.metadata import version as installed
from typing import Any

from docutils import nodes
from myst_parser.parsers.sphinx_ import MystParser
from sphinx.application import Sphinx

project = "Corollary"
release = version = installed("corollary")
copyright = "the Corollary authors"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode"]
source_suffix = {".md": "markdown"}
html_theme = "furo"
html_title = "Corollary"
html_static_path = ["_static"]
html_css_files = ["corollary.css"]

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True, "show-inheritance": False}

# Rules and update scripts have no lexer; `dl` blocks are shown as they are.
highlight_language = "text"
suppress_warnings = ["misc.highlighting_failure"]


class NotebookParser(MystParser):
    """Reads a notebook as Markdown: its texts, its code, and what its cells gave."""

    supported = ("notebook",)

    def parse(self, inputstring: str, document: nodes.document) -> None:
        cells = json.loads(inputstring)["cells"]
        super().parse("\n\n".join(part for cell in cells for part in _written(cell)), document)


def _written(cell: dict[str, Any]) -> Iterator[str]:
    """Write a cell as Markdown."""
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        yield source
        return
    yield f"``````python\n{source}\n``````"
    for output in cell["outputs"]:
        data = output.get("data", {})
        shown = data.get("image/svg+xml") or data.get("text/html")
        if shown is not None:
            html = "".join(shown)
            yield f'``````{{raw}} html\n<div class="output">{html}</div>\n``````'
        else:
            text = "".join(output.get("text") or data["text/plain"])
            yield f"``````\n{text.rstrip()}\n``````"


def setup(app: Sphinx) -> None:
    """Register notebooks as pages."""
    app.add_source_suffix(".ipynb", "notebook")
    app.add_source_parser(NotebookParser)
