"""The site that `make docs` builds from these pages; the API pages come from docstrings."""

from __future__ import annotations

from importlib.metadata import version as installed

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
