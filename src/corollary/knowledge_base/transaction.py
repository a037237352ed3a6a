"""Transactions: changes of facts and rules that are made together, or not at all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from corollary.core.dictionary import Dictionary
from corollary.core.engine import Facts
from corollary.core.statistics import Statistics
from corollary.core.tables import Tables, decode, joined
from corollary.errors import InvalidInput
from corollary.knowledge_base.results import mixed_table
from corollary.lang.printer import Printer
from corollary.lang.program import Program
from corollary.lang.syntax import Atom, Rule
from corollary.rdf.triples import OnError, OnProgress, Skipped

if TYPE_CHECKING:
    from corollary.knowledge_base.base import KnowledgeBase


@dataclass(frozen=True, eq=False)
class TransactionChanges:
    """What a transaction changed: exactly the facts by which the materialization differs.

    A fact that becomes explicit, or stops to be, but is derived anyway, is not among them.
    """

    version: int
    statistics: Statistics
    added_rules: tuple[Rule, ...]
    removed_rules: tuple[Rule, ...]
    _inserted: tuple[Facts, Facts]  # explicit, derived
    _deleted: tuple[Facts, Facts]
    _dictionary: Dictionary
    _printer: Printer
    skipped: int = 0  # statements of RDF that could not be read, with `on_error="skip"`
    samples: tuple[Skipped, ...] = ()  # the first of them: where, and what was wrong

    @cached_property
    def inserted(self) -> pa.Table:
        """New facts: `relation`, `arg0`, `arg1`, …, `explicit`; triples are called `triples`."""
        return mixed_table(*self._inserted, self._dictionary)

    @cached_property
    def deleted(self) -> pa.Table:
        """Facts that are gone, in the same columns; `explicit` tells whether they were explicit."""
        return mixed_table(*self._deleted, self._dictionary)

    def __iter__(self) -> Iterator[tuple[str, Atom]]:
        """`"+"` or `"-"` with a fact, inserted ones first."""
        for sign, sets in (("+", self._inserted), ("-", self._deleted)):
            for facts in sets:
                for atom in decode(facts, self._dictionary):
                    yield sign, atom

    def __len__(self) -> int:
        """How many facts were inserted and deleted."""
        return sum(len(facts) for facts in (*self._inserted, *self._deleted))

    def __str__(self) -> str:
        """One line a fact, as `corollary apply` prints them."""
        return "\n".join(sorted(f"{sign} {self._printer.atom(fact)}" for sign, fact in self))

    def __repr__(self) -> str:
        inserted, deleted = (sum(map(len, sets)) for sets in (self._inserted, self._deleted))
        return f"<changes of version {self.version}: +{inserted:,} -{deleted:,}>"


class Transaction:
    """Collects changes, which are made when its block ends without an error.

    Of two requests about the same fact or rule, the later one counts. What the knowledge base
    shows inside the block is what it was before.
    """

    def __init__(
        self, knowledge_base: KnowledgeBase, message: str = "", batch: str | None = None
    ) -> None:
        self._kb = knowledge_base
        self._message = message
        self._batch = batch
        self._changes: TransactionChanges | None = None
        self._open = False
        self._requests: list[tuple[bool, list[Tables]]] = []  # inserted or deleted, in order
        self._rules = Program()
        self._reader = knowledge_base._reader()

    def insert(self, data: Any, *, relation: str | None = None) -> None:
        """Make facts explicit: text, triples, atoms, a frame, an rdflib graph.

        Text is Turtle or the rule language. A triple is a tuple of three terms, each a value, an
        rdflib term, or a text as the rule language writes it. With `relation`, data are rows of
        that relation.
        """
        self._request(self._facts(data, relation), inserts=True)

    def delete(self, data: Any, *, relation: str | None = None) -> None:
        """Take explicit facts away, given as for `insert`; what is not explicit is left alone."""
        self._request(self._facts(data, relation), inserts=False)

    def load(
        self,
        *sources: Any,
        relation: str | None = None,
        on_error: OnError = "fail",
        on_progress: OnProgress | None = None,
        limit_input_bytes: int | None = None,
    ) -> None:
        """Insert what files and folders hold; see `KnowledgeBase.load`."""
        self._refuse_closed()
        for found in self._reader.sources(
            sources,
            relation,
            on_error=on_error,
            on_progress=on_progress,
            limit_input_bytes=limit_input_bytes,
        ):
            if isinstance(found, Program):
                self._add((*found.rules, *found.constraints))
                self._request(self._reader.facts(Program.of((), found.facts)), inserts=True)
            else:
                self._request(found, inserts=True)

    def delete_from(
        self, *sources: Any, on_error: OnError = "fail", limit_input_bytes: int | None = None
    ) -> None:
        """Take away the explicit facts that files and folders hold.

        Labels of blank nodes are read as those of this knowledge base.
        """
        self._refuse_closed()
        for found in self._reader.sources(
            sources, on_error=on_error, keep_labels=True, limit_input_bytes=limit_input_bytes
        ):
            if isinstance(found, Program):
                found = self._reader.facts(found)
            self._request(found, inserts=False)

    def add_rules(self, rules: str | Path | Program | Rule | Iterable[Rule]) -> None:
        """Add rules: text, a `.dl` file given as a path, a program, or rules.

        Facts among them are axioms, which hold until they are removed with `remove_rules`.
        """
        self._refuse_closed()
        added, axioms = self._read_rules(rules)
        self._add(added)
        if axioms:
            self._reader.facts(Program.of((), axioms))  # checks the number of arguments
            self._rules = self._rules.with_axioms(dict.fromkeys((*self._rules.axioms, *axioms)))

    def remove_rules(self, rules: str | Path | Program | Rule | Iterable[Rule]) -> None:
        """Remove rules, each of which must be there; they are compared up to their variables.

        Facts among them are axioms of the program.
        """
        self._refuse_closed()
        removed, axioms = self._read_rules(rules)
        for axiom in axioms:
            if axiom not in self._rules.axioms:
                text = Printer(self._reader.prefixes).atom(axiom)
                raise InvalidInput(
                    "E307", f"the program has no axiom {text}", "use delete for facts of the data"
                )
        self._rules = self._rules.removed(*removed)
        if axioms:
            self._rules = self._rules.with_axioms(self._rules.axioms.difference(axioms))

    @property
    def changes(self) -> TransactionChanges:
        """What the transaction did; there when its block has ended."""
        if self._changes is None:
            raise InvalidInput("E343", "the transaction has changed nothing so far")
        return self._changes

    def __enter__(self) -> Self:
        self._kb._begin(self)
        self._open = True
        self._rules = self._kb.program
        self._reader = self._kb._reader()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open = False
        try:
            if kind is None:
                self._changes = self._kb._commit(
                    self._requested(), self._rules, self._reader, self._message, self._batch
                )
        finally:
            self._requests = []
            self._kb._end()

    def _facts(self, data: Any, relation: str | None) -> Tables:
        self._refuse_closed()
        return self._reader.facts(data, relation)

    def _add(self, rules: Iterable[Rule]) -> None:
        program = self._rules.added(*rules)
        for relation, arity in program.arities.items():
            self._reader.check_arity(relation, arity)
        self._rules = program

    def _read_rules(
        self, rules: str | Path | Program | Rule | Iterable[Rule]
    ) -> tuple[list[Rule], tuple[Atom, ...]]:
        """Rules and constraints, and axioms."""
        facts: Iterable[Atom] = ()
        if isinstance(rules, Path):
            rules = Program.load(rules)
        if isinstance(rules, str):
            found, facts = self._reader.statements(rules)
        elif isinstance(rules, Program):
            found, facts = [*rules.rules, *rules.constraints], rules.facts
        else:
            found = [rules] if isinstance(rules, Rule) else list(rules)
        return found, tuple(facts)

    def _request(self, tables: Tables, *, inserts: bool) -> None:
        if self._requests and self._requests[-1][0] == inserts:
            self._requests[-1][1].append(tables)
        else:
            self._requests.append((inserts, [tables]))

    def _requested(self) -> list[tuple[bool, Tables]]:
        return [(inserts, joined(tables)) for inserts, tables in self._requests]

    def _refuse_closed(self) -> None:
        if not self._open:
            over = self._changes is not None
            raise InvalidInput(
                "E343",
                "the transaction is over" if over else "the transaction is not open",
                "changes are made inside: with kb.transaction() as tx: …",
            )
