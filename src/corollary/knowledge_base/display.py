"""Knowledge bases and changes as HTML for notebooks; they decode only what they show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from corollary.core.dictionary import Dictionary
from corollary.core.engine import Facts
from corollary.core.html import SHOWN, html_table, left_out
from corollary.core.tables import atom_of
from corollary.core.trivial import is_trivial
from corollary.knowledge_base.unsatisfiable import is_schema
from corollary.lang.printer import Printer
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import TRIPLE, Atom, is_auxiliary

if TYPE_CHECKING:
    from corollary.knowledge_base.state import KnowledgeState

_LARGEST = 10  # relations that are listed
_COUNTED = 5000  # relations that are counted for that
_EXAMINED = 1000  # facts among which a display looks for those that are not trivial


class QueryPlan(str):
    """The text of a query plan, which notebooks show as it is."""

    def _repr_html_(self) -> str:
        from corollary.core.html import html_text

        return html_text(self)


def knowledge_base_html(state: KnowledgeState) -> str:
    """Show the numbers of a knowledge base, and its largest relations, those of RDF and OWL last.

    >>> from corollary import KnowledgeBase
    >>> "largest" in knowledge_base_html(KnowledgeBase("p(1) .").state)
    True
    """
    reasoner = state.reasoner
    total, explicit = reasoner.count(None), len(reasoner.explicit)
    numbers = [
        ("facts", f"{total:,}"),
        ("explicit", f"{explicit:,}"),
        ("rules", f"{len(state.program.rules):,}"),
        ("constraints", f"{len(state.program.constraints):,}"),
        ("version", f"{state.version:,}"),
        ("mode", state.settings.mode),
    ]
    if state.store is not None:
        numbers.append(("store", str(state.opened_store.path)))
    facts = reasoner.facts
    predicates = [p for p in facts.predicates() if not is_auxiliary(p.relation)]
    printer = Printer(state.all_prefixes)
    counted = sorted(
        ((is_schema(p), -len(facts.only([p])), _name(p, printer)) for p in predicates[:_COUNTED]),
    )
    rows = [(name, f"{-count:,}") for _, count, name in counted[:_LARGEST]]
    note = left_out(len(rows), len(predicates), "relations, properties and classes")
    return html_table([], numbers, title="Knowledge base") + html_table(
        ["largest", "facts"], rows, note=note
    )


def changes_html(
    sets: Sequence[tuple[Facts, Facts]], dictionary: Dictionary, prefixes: Mapping[str, str]
) -> str:
    """Show the first inserted and deleted facts, explicit ones first; no trivial derived ones."""
    printer = Printer(prefixes)
    parts = []
    for sign, (explicit, derived) in zip("+-", sets, strict=True):
        total = len(explicit) + len(derived)
        rows: list[tuple[str, str, str]] = []
        trivial = 0
        for facts, what in ((explicit, "explicit"), (derived, "derived")):
            for atom in _first(facts, dictionary):
                if len(rows) == SHOWN:
                    break
                if facts is derived and is_trivial(atom):
                    trivial += 1
                else:
                    rows.append((sign, printer.atom(atom), what))
        name = "inserted" if sign == "+" else "deleted"
        parts.append(html_table([], rows, note=left_out(len(rows), total, name, trivial)))
    return "".join(parts)


def _first(facts: Facts, dictionary: Dictionary) -> Iterator[Atom]:
    """Decode facts one by one, up to a limit."""
    left = _EXAMINED
    for predicate in facts.predicates():
        if left <= 0:
            return
        for row in facts.rows(predicate)[:left].tolist():
            left -= 1
            yield atom_of(predicate, dictionary.terms(row))


def _name(predicate: Predicate, printer: Printer) -> str:
    if predicate.relation != TRIPLE:
        return predicate.relation
    if predicate.member_of is not None:
        return f"a {printer.term(predicate.member_of)}"
    assert predicate.property is not None, "a narrow predicate of triples has a property"
    return printer.term(predicate.property)
