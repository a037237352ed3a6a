"""The schema of a knowledge base: hierarchies of classes and properties, with counts.

A position is a direct superclass or superproperty: one with no other term in between. The hierarchy
is the transitive reduction of all statements, explicit and derived, so it does not depend on which
of them are repeated. Terms that include each other are one entry. The vocabularies of RDF, RDFS and
OWL are left out, and so are blank nodes, which stand for class expressions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING, Any

from corollary.core.html import TreeRow, svg_tree
from corollary.core.terms import term_of, text_of
from corollary.knowledge_base.results import columns_of, split
from corollary.lang.printer import Printer
from corollary.lang.syntax import IRI, RDF, TRIPLE, TYPE, XSD, Atom, Constant, Variable

if TYPE_CHECKING:
    from corollary.core.engine import Facts
    from corollary.knowledge_base.state import KnowledgeState

_RDFS = "http://www.w3.org/2000/01/rdf-schema#"
_OWL = "http://www.w3.org/2002/07/owl#"
_VOCABULARIES = (RDF, _RDFS, _OWL, XSD)
_CLASS_TYPES = (IRI(_RDFS + "Class"), IRI(_OWL + "Class"))
_PROPERTY_TYPES = (
    IRI(RDF + "Property"),
    *(IRI(_OWL + name) for name in ("ObjectProperty", "DatatypeProperty", "AnnotationProperty")),
)

Edges = Mapping[str, Mapping[str, bool]]  # term, wider term, whether the statement is explicit


@dataclass(frozen=True)
class Position:
    """A direct superclass or superproperty; `inferred` if no explicit statement places it there."""

    parent: str
    inferred: bool


@dataclass(frozen=True)
class SchemaEntry:
    """A class or property: its name, terms that mean the same, counts and positions.

    `explicit` and `derived` count the instances of a class or the triples of a property.
    """

    term: str
    equivalent: tuple[str, ...]
    explicit: int
    derived: int
    positions: tuple[Position, ...]

    @property
    def count(self) -> int:
        """All instances or triples."""
        return self.explicit + self.derived


@dataclass(frozen=True)
class Hierarchy:
    """Classes or properties by name, in N-Triples syntax; an entry may have several positions."""

    entries: Mapping[str, SchemaEntry]
    prefixes: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[SchemaEntry]:
        return iter(self.entries.values())

    def __getitem__(self, term: str) -> SchemaEntry:
        return self.entries[term]

    @property
    def roots(self) -> list[SchemaEntry]:
        """The entries without a position."""
        return [entry for entry in self if not entry.positions]

    def children(self, term: str) -> list[SchemaEntry]:
        """The entries with a position directly below a term."""
        return [self.entries[child] for child in self._children.get(term, ())]

    @cached_property
    def _children(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for entry in self:
            for position in entry.positions:
                found.setdefault(position.parent, []).append(entry.term)
        return found

    def lines(self) -> Iterator[str]:
        """Format the hierarchy as indented lines; a repeated entry shows no entries below it."""
        printer = Printer(self.prefixes)
        shown: set[str] = set()
        stack = [(entry, 0, False) for entry in reversed(self.roots)]
        while stack:
            entry, depth, inferred = stack.pop()
            names = " = ".join(
                printer.term(term_of(text)) for text in (entry.term, *entry.equivalent)
            )
            counts = f"{entry.count:,}" + (f", {entry.derived:,} derived" if entry.derived else "")
            line = f"{'  ' * depth}{names}   {counts}{'   inferred' if inferred else ''}"
            if entry.term in shown:
                yield line + ("   (shown above)" if self.children(entry.term) else "")
                continue
            shown.add(entry.term)
            yield line
            for child in reversed(self.children(entry.term)):
                inferred = next(p.inferred for p in child.positions if p.parent == entry.term)
                stack.append((child, depth + 1, inferred))

    def to_json(self) -> list[dict[str, Any]]:
        """Convert to a list: `term`, `equivalent`, `explicit`, `derived` and `positions`."""
        return [
            vars(entry)
            | {"equivalent": [*entry.equivalent], "positions": [vars(p) for p in entry.positions]}
            for entry in self
        ]


@dataclass(frozen=True, repr=False)
class Schema:
    """The classes and properties of a knowledge base; see `KnowledgeBase.schema`."""

    classes: Hierarchy
    properties: Hierarchy

    def __str__(self) -> str:
        parts = []
        for title, hierarchy in (("classes", self.classes), ("properties", self.properties)):
            parts += [title, *(f"  {line}" for line in hierarchy.lines())]
        return "\n".join(parts)

    def __repr__(self) -> str:
        return f"<Schema: {len(self.classes):,} classes, {len(self.properties):,} properties>"

    def to_svg(self) -> str:
        """The hierarchies as a picture, which needs neither JavaScript nor a network."""
        rows = []
        for title, hierarchy in (("classes", self.classes), ("properties", self.properties)):
            rows.append(TreeRow(0, title, f"{len(hierarchy):,}", "root"))
            for line in hierarchy.lines():
                text, _, note = line.strip().partition("   ")
                depth = 1 + (len(line) - len(line.lstrip())) // 2
                kind = "absent" if "inferred" in note else "explicit"
                rows.append(TreeRow(depth, text, note, kind))
        return svg_tree(rows, "schema")

    def _repr_svg_(self) -> str:
        return self.to_svg()

    def to_json(self) -> dict[str, Any]:
        """Convert to dictionaries with the lists `classes` and `properties`."""
        return {"classes": self.classes.to_json(), "properties": self.properties.to_json()}


def schema_of(state: KnowledgeState) -> Schema:
    """Read the schema of a knowledge base.

    >>> from corollary import KnowledgeBase
    >>> kb = KnowledgeBase("[<tom>, a, <Cat>] . [?x, a, <Animal>] :- [?x, a, <Cat>] .")
    >>> print(schema_of(kb.state))
    classes
      <Animal>   1, 1 derived
      <Cat>   1
    properties
    """
    reader = _Reader(state)
    classes = reader.hierarchy("subClassOf", _CLASS_TYPES, is_class=True)
    return Schema(classes, reader.hierarchy("subPropertyOf", _PROPERTY_TYPES, is_class=False))


class _Reader:
    """Reads hierarchies from the facts of a knowledge base."""

    def __init__(self, state: KnowledgeState) -> None:
        self._state = state

    def hierarchy(self, name: str, types: Sequence[IRI], *, is_class: bool) -> Hierarchy:
        """Read the classes or properties, below each other by `rdfs:<name>`."""
        edges = self._edges(IRI(_RDFS + name))
        used = [
            p.member_of if is_class else p.property
            for p in self._state.reasoner.labels
            if p.relation == TRIPLE and (p.member_of is not None) == is_class
        ]
        terms = {text_of(term) for term in used if term is not None}
        terms.update(edges, *edges.values())
        for type_ in types:
            terms.update(self._column(Atom(TRIPLE, (Variable("x"), TYPE, type_))))
        terms = {text for text in terms if _is_shown(text)}
        entries = {}
        for group, positions in _reduced(sorted(terms), edges):
            explicit, derived = self._counts(group[0], is_class=is_class)
            entries[group[0]] = SchemaEntry(
                group[0], tuple(group[1:]), explicit, derived, positions
            )
        return Hierarchy(entries, self._state.all_prefixes)

    def _edges(self, property_: IRI) -> Edges:
        pattern = Atom(TRIPLE, (Variable("x"), property_, Variable("y")))
        edges: dict[str, dict[str, bool]] = {}
        explicit, derived = self._split(pattern)
        for facts, flag in ((explicit, True), (derived, False)):
            texts = self._texts(facts)
            for narrow, wide in zip(texts[0], texts[2], strict=True):
                if narrow != wide and _is_shown(narrow) and _is_shown(wide):
                    edges.setdefault(narrow, {})[wide] = flag
        return edges

    def _counts(self, text: str, *, is_class: bool) -> tuple[int, int]:
        term: Constant = term_of(text)
        middle, last = (TYPE, term) if is_class else (term, Variable("y"))
        explicit, derived = self._split(Atom(TRIPLE, (Variable("x"), middle, last)))
        return len(explicit), len(derived)

    def _column(self, pattern: Atom) -> list[str]:
        return self._texts(self._state.reasoner.match(pattern))[0]

    def _split(self, pattern: Atom) -> tuple[Facts, Facts]:
        reasoner = self._state.reasoner
        return split(reasoner.match(pattern), reasoner.explicit)

    def _texts(self, facts: Facts) -> list[list[str]]:
        dictionary = self._state.dictionary
        columns = columns_of(facts, 3, dictionary)
        return [dictionary.texts(column).to_pylist() for column in columns]


def _is_shown(text: str) -> bool:
    return text.startswith("<") and not text[1:].startswith(_VOCABULARIES)


# -- the transitive reduction ----------------------------------------------------------------------


def _reduced(
    terms: Sequence[str], edges: Edges
) -> Iterator[tuple[list[str], tuple[Position, ...]]]:
    """Group terms that include each other, and yield each group with its direct positions."""
    wider = _closure(terms, edges)
    group_of: dict[str, list[str]] = {}
    for term in terms:
        if term not in group_of:
            group = [term, *sorted(w for w in wider[term] if w != term and term in wider[w])]
            group_of.update(dict.fromkeys(group, group))
    for term, group in group_of.items():
        if term != group[0]:
            continue
        above = {group_of[wide][0] for wide in wider[term]} - {term}
        indirect = {over for wide in above for over in wider[wide] if over not in group_of[wide]}
        positions = (
            Position(parent, not _is_explicit(group, group_of[parent], edges))
            for parent in sorted(above - indirect)
        )
        yield group, tuple(positions)


def _is_explicit(group: Sequence[str], parents: Sequence[str], edges: Edges) -> bool:
    return any(edges.get(term, {}).get(parent, False) for term in group for parent in parents)


def _closure(terms: Sequence[str], edges: Edges) -> dict[str, set[str]]:
    """The wider terms of each term; a term in a cycle includes itself."""
    try:
        order = [*TopologicalSorter({t: edges.get(t, {}).keys() for t in terms}).static_order()]
    except ValueError:  # a cycle: the search below needs no order
        return {term: _reachable(term, edges) for term in terms}
    wider: dict[str, set[str]] = {}
    for term in order:
        direct = edges.get(term, {})
        wider[term] = set(direct).union(*(wider[wide] for wide in direct))
    return wider


def _reachable(start: str, edges: Edges) -> set[str]:
    found: set[str] = set()
    stack = [*edges.get(start, ())]
    while stack:
        term = stack.pop()
        if term not in found:
            found.add(term)
            stack += edges.get(term, ())
    return found
