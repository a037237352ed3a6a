"""Corollary materializes rules over facts and keeps the result up to date."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from corollary.errors import CorollaryError, InvalidInput, InvalidProgram, OperationFailed
    from corollary.knowledge_base import KnowledgeBase, expand, materialize
    from corollary.lang.program import Program
    from corollary.rdf import rules

__all__ = [
    "CorollaryError",
    "InvalidInput",
    "InvalidProgram",
    "KnowledgeBase",
    "OperationFailed",
    "Program",
    "expand",
    "materialize",
    "rules",
]

_MODULES = {
    "KnowledgeBase": "corollary.knowledge_base",
    "Program": "corollary.lang.program",
    "expand": "corollary.knowledge_base",
    "materialize": "corollary.knowledge_base",
    "rules": "corollary.rdf",
}


def __getattr__(name: str) -> Any:
    """Import the module of a public name on first access (PEP 562)."""
    if name == "__version__":  # reading the metadata takes 20 ms
        from importlib.metadata import version

        return version("corollary")
    if name not in __all__:
        raise AttributeError(f"module 'corollary' has no attribute {name!r}")
    value = getattr(importlib.import_module(_MODULES.get(name, "corollary.errors")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
