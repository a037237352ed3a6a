"""Corollary keeps the consequences of rules up to date."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from corollary.errors import CorollaryError, InvalidInput, InvalidProgram, OperationFailed
from corollary.lang.program import Program
from corollary.rdf import rules

if TYPE_CHECKING:
    from corollary.knowledge_base import KnowledgeBase, expand

__all__ = [
    "CorollaryError",
    "InvalidInput",
    "InvalidProgram",
    "KnowledgeBase",
    "OperationFailed",
    "Program",
    "expand",
    "rules",
]


def __getattr__(name: str) -> Any:
    """Engines are imported when they are first asked for, so that this import takes no time."""
    if name in ("KnowledgeBase", "expand"):
        from corollary import knowledge_base

        return getattr(knowledge_base, name)
    raise AttributeError(f"module 'corollary' has no attribute {name!r}")
