"""What a transaction changed: inserted and deleted facts, and rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from corollary.core.dictionary import Dictionary
from corollary.core.engine import Facts
from corollary.core.statistics import Statistics
from corollary.core.tables import decode
from corollary.core.trivial import hidden_changes, is_trivial
from corollary.knowledge_base.results import mixed_table
from corollary.lang.printer import Printer
from corollary.lang.syntax import Atom, Rule
from corollary.rdf.triples import Skipped

if TYPE_CHECKING:
    from corollary.knowledge_base.persistence import Committed
    from corollary.query.results import TripleTable


@dataclass(frozen=True, eq=False)
class TransactionChanges:
    """The changes of a transaction: the exact difference between the materializations.

    A fact that becomes explicit, or ceases to be, while it is derived anyway, is not a change.
    """

    version: int
    statistics: Statistics
    added_rules: tuple[Rule, ...]
    removed_rules: tuple[Rule, ...]
    _inserted: tuple[Facts, Facts]  # explicit, derived
    _deleted: tuple[Facts, Facts]
    _dictionary: Dictionary
    _prefixes: Mapping[str, str]
    committed: Committed | None  # None without a store
    skipped: int = 0  # statements of RDF that could not be read, with `on_error="skip"`
    samples: tuple[Skipped, ...] = ()  # the first skipped statements, with place and reason
    _not_deleted: Facts | None = None

    @cached_property
    def inserted(self) -> pa.Table:
        """Inserted facts: `relation` (`triples` for triples), `arg0`, `arg1`, …, `explicit`."""
        return mixed_table(*self._inserted, self._dictionary)

    @cached_property
    def deleted(self) -> pa.Table:
        """Deleted facts, in the same columns; `explicit` is their state before the deletion."""
        return mixed_table(*self._deleted, self._dictionary)

    @cached_property
    def inserted_triples(self) -> TripleTable:
        """The inserted triples, which convert to rdflib graphs, frames and RDF syntaxes."""
        return self._triples(self._inserted)

    @cached_property
    def deleted_triples(self) -> TripleTable:
        """The deleted triples."""
        return self._triples(self._deleted)

    def _triples(self, sets: tuple[Facts, Facts]) -> TripleTable:
        from corollary.knowledge_base.surface import triple_table  # loads queries

        return triple_table(sets[0].union(sets[1]), self._dictionary, self._prefixes)

    @cached_property
    def not_deleted(self) -> list[Atom]:
        """The facts that a SPARQL update deletes and that still hold, because others imply them.

        >>> from corollary.knowledge_base.base import KnowledgeBase
        >>> kb = KnowledgeBase("[?x, <q>, ?y] :- [?x, <p>, ?y] . [<a>, <p>, <b>] .")
        >>> changes = kb.update("DELETE DATA { <a> <q> <b> }")
        >>> len(changes), [str(fact.terms[1]) for fact in changes.not_deleted]
        (0, ["IRI(value='q')"])
        """
        facts = self._not_deleted
        return [] if facts is None else list(decode(facts, self._dictionary))

    def __iter__(self) -> Iterator[tuple[str, Atom]]:
        """Iterate over pairs of a sign, `"+"` or `"-"`, and a fact; inserted facts come first."""
        return ((sign, fact) for sign, fact, _ in self._facts())

    def _facts(self) -> Iterator[tuple[str, Atom, bool]]:
        """Iterate over the sign, the fact, and whether it is, or was, explicit."""
        for sign, sets in (("+", self._inserted), ("-", self._deleted)):
            for facts, is_explicit in zip(sets, (True, False), strict=True):
                for atom in decode(facts, self._dictionary):
                    yield sign, atom, is_explicit

    def __len__(self) -> int:
        """Count the inserted and deleted facts."""
        return sum(len(facts) for facts in (*self._inserted, *self._deleted))

    def lines(self, *, trivial: bool = True) -> list[str]:
        """Format the changes one fact per line, as `corollary apply` prints them.

        With `trivial=False`, derived facts such as `[:a, owl:sameAs, :a]` are left out.

        >>> from corollary.knowledge_base.base import KnowledgeBase
        >>> changes = KnowledgeBase("q(?x) :- p(?x) .").insert("p(1)")
        >>> changes.lines()
        ['+ p(1)', '+ q(1)']
        """
        printer = Printer(self._prefixes)
        shown = (
            f"{sign} {printer.atom(fact)}"
            for sign, fact, is_explicit in self._facts()
            if trivial or is_explicit or not is_trivial(fact)
        )
        return sorted(shown)

    def __str__(self) -> str:
        """Format the changes for people: derived facts that are trivial are only counted."""
        lines = self.lines(trivial=False)
        if hidden := len(self) - len(lines):
            lines.append(f"… {hidden_changes(hidden)}; .lines() has them")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """The first changes that are not trivial, and how many there are."""
        from corollary.knowledge_base.display import changes_html

        return changes_html((self._inserted, self._deleted), self._dictionary, self._prefixes)

    def __repr__(self) -> str:
        inserted, deleted = (sum(map(len, sets)) for sets in (self._inserted, self._deleted))
        return f"<changes of version {self.version}: +{inserted:,} -{deleted:,}>"
