"""Transactions: atomic changes of facts and rules."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, NoReturn, Self, Unpack

from corollary.core.changes import Changes
from corollary.core.dictionary import Dictionary
from corollary.core.engine import Facts
from corollary.core.graphs import REASON_OVER
from corollary.core.log import LOGGER
from corollary.core.notices import Notices, gathering, note_growth
from corollary.core.public import guarded
from corollary.core.statistics import Statistics
from corollary.core.tables import Tables, decode, encode, joined
from corollary.core.watch import current, watching
from corollary.errors import InvalidInput, require_type
from corollary.knowledge_base.axioms import Axioms, axiom_texts
from corollary.knowledge_base.data import ReadOptions
from corollary.knowledge_base.graphs import (
    ReasonOver,
    explicit_changes,
    held_triples,
    into_graph,
)
from corollary.knowledge_base.results import split
from corollary.knowledge_base.state import KnowledgeState
from corollary.knowledge_base.transaction_changes import TransactionChanges
from corollary.knowledge_base.unread_axioms import note_axioms
from corollary.lang.parser import WELL_KNOWN_PREFIXES
from corollary.lang.printer import Printer
from corollary.lang.program import Program
from corollary.lang.syntax import Atom, Rule

if TYPE_CHECKING:
    from corollary.knowledge_base.persistence import Committed, StoreHandle
    from corollary.knowledge_base.preview import Preview
    from corollary.query.graphs import Dataset

LoadFrom = Literal["files", "web", "none"]


@dataclass(frozen=True, eq=False)
class Applied:
    """An update of a reasoner: its request, its result, and the explicit facts before it."""

    before: Facts
    requested: Changes[Facts]
    done: Changes[Facts]
    axioms: Axioms[Facts]
    statistics: Statistics
    deleted: Facts  # from graphs, as requested


@guarded
class Transaction:
    """Collects changes and commits them when its block ends without an error.

    If two requests concern the same fact or rule, the later one wins. Inside the block, the
    knowledge base still shows its state before the transaction.
    """

    def __init__(self, state: KnowledgeState, message: str = "", batch: str | None = None) -> None:
        """Use `KnowledgeBase.transaction`."""
        self.state = state
        self._message = message
        self._batch = batch
        self._changes: TransactionChanges | None = None
        self._open = False
        self._requests: list[tuple[bool, list[Tables]]] = []  # inserted or deleted, in order
        self._rules = Program()
        self._reader = state.reader()
        self._staged: KnowledgeState | None = None  # a fork with the first requests applied
        self._staged_requests, self._staged_rules = 0, self._rules
        self._has_updates = False  # of SPARQL
        self._is_over = False  # rolled back
        self._terms = 0  # known before the transaction

    def insert(self, data: object, *, relation: str | None = None, graph: object = None) -> None:
        """Insert explicit facts: text, triples, quads, atoms, a data frame or an rdflib graph.

        Text is Turtle, TriG or the rule language. A triple is a tuple of three terms, each a value,
        an rdflib term, or text in the syntax of the rule language; a quad has its graph as a fourth
        term. With `relation`, the data are rows of that relation. Triples are inserted into the
        default graph, or into the named `graph`.
        """
        self.request(self._facts(data, relation, graph), inserts=True)

    def delete(self, data: object, *, relation: str | None = None, graph: object = None) -> None:
        """Delete explicit facts, in the forms of `insert`; all other facts are ignored.

        Triples are deleted from the default graph, or from the named `graph`; they stay explicit
        for as long as another graph has them.
        """
        self.request(self._facts(data, relation, graph), inserts=False)

    def load(
        self, *sources: object, relation: str | None = None, **options: Unpack[ReadOptions]
    ) -> None:
        """Insert facts from files, folders and tables; see `KnowledgeBase.load`."""
        self._refuse_closed()
        graph = options.get("graph")
        with watching("reading"):
            if (watch := current()) is not None:
                options.setdefault("on_progress", watch.read)
            for found in self._reader.sources(sources, relation, **options):
                if isinstance(found, Program):
                    self._add((*found.rules, *found.constraints))
                    found = self._reader.facts(Program.of((), found.facts))
                self.request(self._placed(found, graph), inserts=True)

    def delete_from(self, *sources: object, **options: Unpack[ReadOptions]) -> None:
        """Delete the explicit facts listed in files and folders; see `KnowledgeBase.load`.

        Blank node labels refer to the blank nodes of this knowledge base.
        """
        self._refuse_closed()
        graph = options.get("graph")
        for found in self._reader.sources(sources, keep_labels=True, **options):
            if isinstance(found, Program):
                found = self._reader.facts(found)
            self.request(self._placed(found, graph), inserts=False)

    def clear_graph(self, graph: object) -> None:
        """Delete all statements of a named graph, or with None, of the default graph.

        >>> from corollary.knowledge_base.base import KnowledgeBase
        >>> kb = KnowledgeBase()
        >>> _ = kb.insert("<urn:a> <urn:p> <urn:b> .", graph="<urn:g>")
        >>> with kb.transaction() as tx:  # a new release, in one version
        ...     tx.clear_graph("<urn:g>")
        ...     tx.insert("<urn:a> <urn:p> <urn:b>, <urn:c> .", graph="<urn:g>")
        >>> print(tx.changes)
        + [<urn:a>, <urn:p>, <urn:c>]
        + [<urn:a>, <urn:p>, <urn:c>] <urn:g>
        """
        from corollary.knowledge_base.graphs import graph_tables

        self._refuse_closed()
        name = None if graph is None else self._reader.graph(graph)
        self.request(graph_tables(self.current(), name), inserts=False)

    def reason_over(self, graphs: ReasonOver) -> None:
        """Choose the graphs whose statements rules read; see `KnowledgeBase`."""
        from corollary.knowledge_base.graphs import reason_over_rows, reason_over_terms

        self._refuse_closed()
        known = self.current().reasoner.explicit.only([REASON_OVER])
        self.request({p: known.rows(p) for p in known.predicates()}, inserts=False)
        terms = reason_over_terms(graphs, self._reader.graph)
        self.request(reason_over_rows(terms, self.dictionary), inserts=True)

    def update(
        self,
        text: str,
        *,
        load: LoadFrom = "files",
        name: str = "<update>",
        default_graph: str | Dataset = "union",
        dataset: Dataset | None = None,
    ) -> None:
        """Execute a SPARQL 1.1 Update request; each operation sees the effects of earlier ones.

        Patterns match all triples, explicit and derived; templates change explicit ones. `load`
        says from where LOAD may read: `files` (of this machine), `web` (also http and https), or
        `none`. `default_graph` says what patterns outside of `GRAPH` match, as for
        `KnowledgeBase.query`; templates outside of it always concern the default graph. `dataset`
        stands for USING and USING NAMED, which the request then may not have.
        """
        from corollary.knowledge_base.updates import execute  # loads the parser

        self._refuse_closed()
        requests, staged = len(self._requests), self._staged_requests
        sizes = [len(tables) for _, tables in self._requests]
        try:
            execute(self, text, load=load, name=name, default_graph=default_graph, dataset=dataset)
        except BaseException:  # none of its operations has an effect
            del self._requests[requests:]
            for (_, tables), size in zip(self._requests, sizes, strict=True):
                del tables[size:]
            if self._staged_requests != staged:
                self._staged, self._staged_requests = None, 0
            raise
        self._has_updates = True

    def add_rules(self, rules: str | Path | Program | Rule | Iterable[Rule]) -> None:
        """Add rules, given as text, as the path of a `.dl` file, as a program or as `Rule` objects.

        Facts among them become axioms, which hold until `remove_rules` removes them.
        """
        self._refuse_closed()
        added, axioms = self._read_rules(rules)
        self._add(added)
        if axioms:
            self._reader.facts(Program.of((), axioms))  # checks the number of arguments
            self._rules = self._rules.with_axioms(dict.fromkeys((*self._rules.axioms, *axioms)))

    def remove_rules(self, rules: str | Path | Program | Rule | Iterable[Rule]) -> None:
        """Remove rules, all of which must exist; rules are compared up to renaming of variables.

        Facts among them are removed from the axioms of the program.
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

    def preview(self) -> Preview:
        """Compute what the transaction would change if it ended now; commits nothing.

        The preview has the changes of the facts, and the contradictions that they introduce.

        >>> from corollary.knowledge_base.base import KnowledgeBase
        >>> kb = KnowledgeBase("[apart] false :- cat(?x), dog(?x) . pet(?x) :- cat(?x) . dog(1) .")
        >>> with kb.transaction() as tx:
        ...     tx.insert("cat(1) .")
        ...     preview = tx.preview()
        ...     tx.rollback()
        >>> print(preview)
        + cat(1)
        + pet(1)
        >>> print(*preview.contradictions)
        apart is contradicted in 1 way
          false   by [apart]
          ├─ cat(1)   explicit
          └─ dog(1)   explicit
        >>> kb.count("cat"), kb.version
        (0, 0)
        """
        from corollary.knowledge_base.fork import fork_with_terms
        from corollary.knowledge_base.preview import new_contradictions, preview_of

        self._refuse_closed()
        state = fork_with_terms(self.state)
        requests = [(inserts, joined(tables)) for inserts, tables in self._requests]
        applied = self._apply(state, requests, Notices())
        state.axioms = applied.axioms
        changes = self._changes_of(state, applied, self.state.version, None)
        found = new_contradictions(self.state, state, applied.done, self.prefixes)
        return preview_of(changes, state, applied, found)

    def rollback(self) -> None:
        """End the transaction without a change; its block may go on, but changes nothing more.

        Terms that only this transaction mentioned are forgotten, too.
        """
        self._refuse_closed()
        self._open, self._is_over = False, True
        self._requests, self._staged = [], None
        if len(self.state.dictionary) > self._terms:
            from corollary.knowledge_base.fork import forget_terms

            forget_terms(self.state, self._terms)

    @property
    def changes(self) -> TransactionChanges:
        """The changes that the transaction made; available after its block has ended."""
        if self._changes is None:
            raise InvalidInput("E343", "the transaction has changed nothing so far")
        return self._changes

    def __enter__(self) -> Self:
        state = self.state
        if state.in_transaction:
            raise InvalidInput(
                "E343", "a transaction is already open", "end it before you begin another one"
            )
        state.in_transaction = self._open = True
        self._rules = state.program
        self._reader = state.reader()
        self._terms = len(state.dictionary)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self.state.guard:
            self._open = False
            try:
                if kind is None and not self._is_over:
                    with watching("deriving"):
                        self._changes = self._commit()
            finally:
                self._requests = []
                self._staged = None
                self.state.in_transaction = False

    def _commit(self) -> TransactionChanges:
        """Update the reasoner and the store; a failure leaves both unchanged."""
        state, reader = self.state, self._reader
        if state.store is not None:
            state.store.refuse_old_version()
        requests = [(inserts, joined(tables)) for inserts, tables in self._requests]
        applied = self._apply(state, requests)
        before, requested, done = applied.before, applied.requested, applied.done
        axioms, statistics = applied.axioms, applied.statistics
        committed = None
        if state.store is not None:
            committed = self._store(state.store, requested, done, before, axioms)
        version = state.version + 1 if committed is None else committed.version
        # Compaction may have committed a version of its own.
        state.version = version if state.store is None else state.store.version
        state.axioms, state.last_update = axioms, statistics
        state.prefixes, state.arities = reader.prefixes, reader.arities
        state.declarations = reader.declarations
        if state.queries is not None:
            state.queries.changed(done)
        note_axioms(
            requests,
            self._rules,
            before,
            state.dictionary,
            reader.notices,
            found=reader.imported,
        )
        reader.notices.warn()
        changes = self._changes_of(state, applied, version, committed)
        LOGGER.info("%r by %s", changes, applied.statistics.algorithm)
        return changes

    def _changes_of(
        self, state: KnowledgeState, applied: Applied, version: int, committed: Committed | None
    ) -> TransactionChanges:
        """Describe an update of a state."""
        done, reader = applied.done, self._reader
        return TransactionChanges(
            version,
            applied.statistics,
            done.added_rules,
            done.removed_rules,
            split(done.inserted, state.reasoner.explicit),
            split(done.deleted, applied.before),
            state.dictionary,
            reader.prefixes,
            committed,
            reader.skipped,
            reader.samples,
            self._remaining(state, applied.deleted) if self._has_updates else None,
        )

    def _apply(
        self,
        state: KnowledgeState,
        requests: Iterable[tuple[bool, Tables]],
        notices: Notices | None = None,
    ) -> Applied:
        """Update the reasoner of a state."""
        before = state.reasoner.explicit
        of_graphs = self._requested_changes(state, requests)
        axioms, requested = state.axioms.change(
            self._rules.axioms, explicit_changes(of_graphs, before, state.engine), before
        )
        started = time.perf_counter()
        with gathering(self._reader.notices if notices is None else notices):
            if self._rules is not state.program:
                note_growth(self._rules)
            done = state.reasoner.update(requested)
        statistics = done.statistics
        assert statistics is not None, "an update has statistics"
        statistics.seconds["update"] = time.perf_counter() - started
        return Applied(before, requested, done, axioms, statistics, of_graphs.deleted)

    def _remaining(self, state: KnowledgeState, deleted: Facts) -> Facts | None:
        """Select the facts that were to be deleted and still hold."""
        reasoner = state.reasoner
        deleted = held_triples(deleted, reasoner.explicit, state.engine)
        if not len(deleted):
            return None
        if state.settings.mode == "materialized" and state.settings.equality == "rules":
            return deleted.intersection(reasoner.facts)
        atoms = [atom for atom in decode(deleted, state.dictionary) if reasoner.count(atom)]
        return state.engine.facts(encode(atoms, state.dictionary))

    @property
    def dictionary(self) -> Dictionary:
        """The dictionary of terms."""
        return self.state.dictionary

    @property
    def program(self) -> Program:
        """The rules and axioms with the changes so far."""
        return self._rules

    @property
    def prefixes(self) -> Mapping[str, str]:
        """The prefixes that texts may use."""
        return WELL_KNOWN_PREFIXES | self._reader.prefixes

    def current(self) -> KnowledgeState:
        """The state with the changes so far: a fork, unless there are none."""
        state = self.state
        if self._staged is None:
            if not self._requests and self._rules is state.program:
                return state
            from corollary.knowledge_base.fork import fork

            self._staged, self._staged_rules = fork(state), state.program
        staged = self._staged
        if self._staged_requests < len(self._requests) or self._rules is not self._staged_rules:
            news = self._requests[self._staged_requests :]
            joined_news = [(inserts, joined(tables)) for inserts, tables in news]
            applied = self._apply(staged, joined_news, Notices())
            staged.axioms = applied.axioms
            if staged.queries is not None:
                staged.queries.changed(applied.done)
            self._staged_requests, self._staged_rules = len(self._requests), self._rules
        return staged

    def _requested_changes(
        self, state: KnowledgeState, requests: Iterable[tuple[bool, Tables]]
    ) -> Changes[Facts]:
        """Combine all requests; if two concern the same fact, the later one wins."""
        engine, known = state.engine, state.reasoner.program
        inserted = deleted = engine.facts({})
        for inserts, tables in requests:
            facts = engine.facts(tables)
            if inserts:
                inserted, deleted = inserted.union(facts), deleted.difference(facts)
            else:
                inserted, deleted = inserted.difference(facts), deleted.union(facts)
        if self._rules is state.program:
            return Changes(inserted, deleted)
        added, removed = self._rules.rules_not_in(known), known.rules_not_in(self._rules)
        return Changes(inserted, deleted, added, removed)

    def _store(
        self,
        store: StoreHandle,
        requested: Changes[Facts],
        done: Changes[Facts],
        before: Facts,
        axioms: Axioms[Facts],
    ) -> Committed:
        """Commit to the store an update already made in memory; undo it in memory on failure.

        A second, inverse update undoes it: failures are rare, so reasoners need no rollback.
        """
        from corollary.knowledge_base.stored import VersionChanges  # loaded with the store

        assert done.statistics is not None, "an update has statistics"
        reasoner = self.state.reasoner
        after = reasoner.explicit
        try:
            committed = store.commit(
                VersionChanges.of(done, requested, before, after),
                axioms.program(reasoner.program),
                axiom_texts(axioms.asserted),
                self._reader.prefixes,
                self._reader.declarations,
                done.statistics,
                message=self._message,
                batch=self._batch,
            )
        except BaseException:
            lost = requested.deleted.intersection(before).difference(after)
            new = requested.inserted.intersection(after).difference(before)
            reasoner.update(Changes(lost, new, done.removed_rules, done.added_rules))
            raise
        store.compact()
        return committed

    def _facts(self, data: object, relation: str | None, graph: object = None) -> Tables:
        self._refuse_closed()
        return self._placed(self._reader.facts(data, relation), graph)

    def _placed(self, tables: Tables, graph: object) -> Tables:
        """Put triples into a named graph, if there is one."""
        if graph is None:
            return tables
        return into_graph(tables, self._reader.graph(graph), self.dictionary)

    def _add(self, rules: Iterable[Rule]) -> None:
        program = self._rules.added(*rules)
        for relation, arity in program.arities.items():
            self._reader.check_arity(relation, arity)
        self._rules = program

    def _read_rules(
        self, rules: str | Path | Program | Rule | Iterable[Rule]
    ) -> tuple[list[Rule], tuple[Atom, ...]]:
        """Parse rules and constraints, and axioms."""
        facts: Iterable[Atom] = ()
        if isinstance(rules, Path):
            rules = Program.load(rules)
        if isinstance(rules, str):
            found, facts = self._reader.statements(rules)
        elif isinstance(rules, Program):
            found, facts = [*rules.rules, *rules.constraints], rules.facts
        else:
            hint = "give text, the path of a .dl file, a program, or Rule objects"
            require_type(rules, (Iterable, Rule), "rules", hint)
            found = [rules] if isinstance(rules, Rule) else list(rules)
            for rule in found:
                require_type(rule, Rule, "a rule", hint)
        return found, tuple(facts)

    def __reduce__(self) -> NoReturn:
        raise InvalidInput(
            "E346",
            "a transaction can be neither copied nor pickled: it belongs to its knowledge base",
            "its changes can be: tx.changes",
        )

    def __copy__(self) -> NoReturn:
        self.__reduce__()

    def request(self, tables: Tables, *, inserts: bool) -> None:
        """Request to insert or delete facts; for other modules of the library."""
        if len(self._requests) > self._staged_requests and self._requests[-1][0] == inserts:
            self._requests[-1][1].append(tables)
        else:
            self._requests.append((inserts, [tables]))

    def _refuse_closed(self) -> None:
        if not self._open:
            over = self._changes is not None or self._is_over
            raise InvalidInput(
                "E343",
                "the transaction is over" if over else "the transaction is not open",
                "changes are made inside: with kb.transaction() as tx: …",
            )
