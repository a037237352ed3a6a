"""Knowledge bases: facts, rules and their consequences, updated by transactions."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from corollary.knowledge_base.base import KnowledgeBase
    from corollary.knowledge_base.expansion import expand
    from corollary.knowledge_base.inconsistencies import Inconsistency
    from corollary.knowledge_base.relation_frames import materialize
    from corollary.knowledge_base.transaction import Transaction
    from corollary.knowledge_base.transaction_changes import TransactionChanges

__all__ = [
    "Inconsistency",
    "KnowledgeBase",
    "Transaction",
    "TransactionChanges",
    "expand",
    "materialize",
]

_MODULES = {
    "Inconsistency": "inconsistencies",
    "KnowledgeBase": "base",
    "Transaction": "transaction",
    "TransactionChanges": "transaction_changes",
    "expand": "expansion",
    "materialize": "relation_frames",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first access: a command needs few of the modules."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
