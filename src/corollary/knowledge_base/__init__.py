"""Knowledge bases: facts, rules and their consequences, updated by transactions."""

from corollary.knowledge_base.base import KnowledgeBase
from corollary.knowledge_base.expand import expand
from corollary.knowledge_base.inconsistencies import Inconsistency
from corollary.knowledge_base.relation_frames import materialize
from corollary.knowledge_base.transaction import Transaction, TransactionChanges

__all__ = [
    "Inconsistency",
    "KnowledgeBase",
    "Transaction",
    "TransactionChanges",
    "expand",
    "materialize",
]
