"""What a change of axioms did to the schema, in sentences."""

from __future__ import annotations

from collections.abc import Iterator

from corollary.core.terms import term_of
from corollary.knowledge_base.schema import Hierarchy, Schema
from corollary.lang.printer import Printer


def schema_changes(before: Schema, after: Schema) -> list[str]:
    """Describe how the hierarchies differ: new and lost terms, positions, and equivalents.

    >>> from corollary import KnowledgeBase
    >>> kb = KnowledgeBase("rhodf")
    >>> _ = kb.insert("<urn:Chair> rdfs:subClassOf <urn:Person> .")
    >>> before = kb.schema()
    >>> _ = kb.insert("<urn:Employee> rdfs:subClassOf <urn:Person> .")
    >>> _ = kb.insert("<urn:Chair> rdfs:subClassOf <urn:Employee> .")
    >>> print(*schema_changes(before, kb.schema()), sep="\\n")
    <urn:Employee> is a new class, below <urn:Person>
    <urn:Chair> is now below <urn:Employee>
    """
    return [
        *_changes(before.classes, after.classes, "class"),
        *_changes(before.properties, after.properties, "property"),
    ]


def _changes(before: Hierarchy, after: Hierarchy, kind: str) -> Iterator[str]:
    printer = Printer({**before.prefixes, **after.prefixes})

    def name(text: str) -> str:
        return printer.term(term_of(text))

    old, new = _Groups(before), _Groups(after)
    for term in sorted(new.leader.keys() - old.leader.keys()):
        above = new.parents(term)
        place = f", below {' and '.join(map(name, above))}" if above else ""
        yield f"{name(term)} is a new {kind}{place}"
    for term in sorted(old.leader.keys() - new.leader.keys()):
        yield f"{name(term)} is no longer a {kind}"
    for term in sorted(old.leader.keys() & new.leader.keys()):
        for other in sorted(new.group(term) - old.group(term)):
            if term < other:
                yield f"{name(term)} and {name(other)} now mean the same"
        for other in sorted(old.group(term) - new.group(term)):
            if term < other and other in new.leader:
                yield f"{name(term)} and {name(other)} no longer mean the same"
        gained = new.above(term) - old.above(term) - old.group(term)
        for wide in sorted(gained):
            if not _implied(wide, gained, new):
                yield f"{name(term)} is now below {name(wide)}"
        lost = old.above(term) - new.above(term) - new.group(term)
        for wide in sorted(lost):
            if wide in new.leader and not _implied(wide, lost, old):
                yield f"{name(term)} is no longer below {name(wide)}"


def _implied(wide: str, terms: set[str], groups: _Groups) -> bool:
    """Whether a term is above another one of a set, which then says more."""
    return any(wide in groups.above(term) for term in terms - {wide})


class _Groups:
    """A hierarchy by the terms of its entries, those that mean the same included."""

    def __init__(self, hierarchy: Hierarchy) -> None:
        self._hierarchy = hierarchy
        self.leader = {
            term: entry.term for entry in hierarchy for term in (entry.term, *entry.equivalent)
        }
        self._above: dict[str, set[str]] = {}

    def group(self, term: str) -> set[str]:
        entry = self._hierarchy[self.leader[term]]
        return {entry.term, *entry.equivalent}

    def parents(self, term: str) -> list[str]:
        return [position.parent for position in self._hierarchy[self.leader[term]].positions]

    def above(self, term: str) -> set[str]:
        """All wider terms."""
        leader = self.leader[term]
        if leader not in self._above:
            found: set[str] = set()
            stack = self.parents(leader)
            seen = set()
            while stack:
                parent = stack.pop()
                if parent not in seen:
                    seen.add(parent)
                    found |= self.group(parent)
                    stack += self.parents(parent)
            self._above[leader] = found
        return self._above[leader]
