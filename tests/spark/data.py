"""Data for tests of the pipeline, and what the embedded engine makes of them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from corollary.core.dictionary import Dictionary
from corollary.core.engine import Facts
from corollary.core.tables import decode
from corollary.core.terms import text_of
from corollary.knowledge_base.base import KnowledgeBase
from corollary.knowledge_base.rules import read_rules
from corollary.lang.syntax import TRIPLE
from corollary.store import Store
from corollary.store.places import Place

_SCOPE = re.compile(r"_:d\w*\.")

Row = tuple[bool | str, ...]


def stored(path: Place, version: int | None = None) -> set[Row]:
    """The facts of a store with their texts: explicit, relation, terms."""
    snapshot = Store.open(path).snapshot(version)
    texts = snapshot.terms()["term"].to_pylist()
    assert len({*texts}) == len(texts), "every term has one id"
    found = set()
    for row in snapshot.facts().to_pylist():
        terms = [texts[v] for name, v in row.items() if name.startswith("arg") and v is not None]
        found.add((row["explicit"], row["relation"], *map(unscoped, terms)))
    assert len(found) == snapshot.facts().num_rows, "every fact is stored once"
    return found


def embedded(sources: Iterable[Any], rules: Any) -> set[Row]:
    """What the embedded engine derives from the same sources."""
    kb = KnowledgeBase(read_rules(rules))
    kb.load(*sources)
    return held(kb)


def held(kb: KnowledgeBase) -> set[Row]:
    """The facts of a knowledge base in the same form."""
    kept = kb.state.reasoner
    explicit: Any = kept.explicit
    own = _rows(explicit, True, kb.state.dictionary)
    return own | _rows(kept.facts.difference(explicit), False, kb.state.dictionary)


def _rows(facts: Facts, explicit: bool, dictionary: Dictionary) -> set[Row]:
    rows: set[Row] = set()
    for atom in decode(facts, dictionary):
        name = "triples" if atom.relation == TRIPLE else atom.relation
        rows.add((explicit, name, *(unscoped(text_of(term)) for term in atom.constants())))
    return rows


def unscoped(text: str) -> str:
    """A term without what tells the blank nodes of documents apart."""
    return _SCOPE.sub("_:", text)
