"""`KnowledgeState`: the state of a knowledge base, and the settings of its reasoner.

`KnowledgeBase` is the public object; transactions, stores, queries and the command line work on its
state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from corollary.algorithms.reasoner import Reasoner
from corollary.core.dictionary import Dictionary
from corollary.core.engine import Engine, F, Facts
from corollary.core.public import Guard
from corollary.core.statistics import Statistics
from corollary.core.watch import in_notebook, report_round
from corollary.errors import InvalidInput
from corollary.knowledge_base.axioms import Axioms
from corollary.lang.declarations import NO_DECLARATIONS, Declarations
from corollary.lang.parser import WELL_KNOWN_PREFIXES
from corollary.lang.program import Program
from corollary.lang.syntax import Atom
from corollary.reasoning.choose import choose_reasoner
from corollary.reasoning.stored import StoredReasoner

if TYPE_CHECKING:
    from corollary.algorithms.seminaive import OnProgress
    from corollary.knowledge_base.data import DataReader
    from corollary.knowledge_base.persistence import StoreHandle
    from corollary.knowledge_base.queries import Queries
    from corollary.query.engine import QueryEngine
    from corollary.store import Store


@dataclass(frozen=True)
class Settings:
    """The settings of the reasoner: the options of `choose_reasoner`."""

    algorithm: str = "auto"
    modules: bool = True
    coarse: bool = False
    specialize: bool | None = None
    mode: str = "materialized"
    equality: str = "rules"
    materialize: tuple[Atom, ...] = ()  # patterns of hybrid mode

    def reasoner(
        self,
        program: Program,
        explicit: F,
        engine: Engine[F],
        *,
        known: F | None = None,
        on_progress: OnProgress | None = None,
    ) -> Reasoner[F]:
        """Materialize a program without facts, or start from `known` facts.

        >>> from corollary.engines.columnar.engine import ColumnarEngine
        >>> engine = ColumnarEngine(Dictionary())
        >>> len(Settings().reasoner(Program(), engine.facts({}), engine).facts)
        0
        """
        if on_progress is None and in_notebook():
            on_progress = report_round
        return choose_reasoner(
            program,
            explicit,
            engine,
            known=known,
            on_progress=on_progress,
            **vars(self),
        )

    def stored(
        self, program: Program, explicit: Facts, facts: Facts, engine: Engine[Facts]
    ) -> StoredReasoner[Facts]:
        """The reasoner of a known materialization; it is built on the first update."""

        def build(explicit: Facts, facts: Facts) -> Reasoner[Facts]:
            return self.reasoner(program, explicit, engine, known=facts)

        is_complete = self.mode != "hybrid"
        return StoredReasoner(program, explicit, facts, engine, build, is_complete=is_complete)


@dataclass(eq=False)
class KnowledgeState:
    """Facts and rules with their consequences, and their store, if any."""

    engine: Engine[Facts]
    settings: Settings
    reasoner: Reasoner[Facts]
    axioms: Axioms[Facts]
    prefixes: Mapping[str, str]
    arities: Mapping[str, int]  # arities of plain relations
    declarations: Declarations = NO_DECLARATIONS  # names and types of columns
    version: int = 0
    store: StoreHandle | None = None
    in_transaction: bool = False
    last_update: Statistics | None = None
    queries: Queries | None = field(default=None, repr=False)  # created by the first query
    guard: Guard = field(default_factory=Guard, repr=False)

    @classmethod
    def derive(
        cls,
        program: Program,
        explicit: Facts,
        engine: Engine[Facts],
        settings: Settings,
        *,
        on_progress: OnProgress | None = None,
    ) -> KnowledgeState:
        """Materialize explicit facts, which include those of the program.

        >>> from corollary.engines.columnar.engine import ColumnarEngine
        >>> engine = ColumnarEngine(Dictionary())
        >>> program = Program.parse("q(?x) :- p(?x) .")
        >>> state = KnowledgeState.derive(program, engine.facts({}), engine, Settings())
        >>> len(state.reasoner.facts)
        0
        """
        rules = program.without_facts()
        reasoner = settings.reasoner(rules, explicit, engine, on_progress=on_progress)
        axioms = Axioms(program.axioms, frozenset(), engine)
        return cls(
            engine,
            settings,
            reasoner,
            axioms,
            program.prefixes,
            program.arities,
            program.declarations,
        )

    def rematerialize(self) -> Reasoner[Facts]:
        """Rematerialize from the explicit facts, for a comparison."""
        reasoner = self.reasoner
        return self.settings.reasoner(reasoner.program, reasoner.explicit, self.engine)

    @property
    def dictionary(self) -> Dictionary:
        """The dictionary of terms."""
        return self.engine.dictionary

    @property
    def program(self) -> Program:
        """The rules and axioms."""
        return self.axioms.program(self.reasoner.program)

    @property
    def all_prefixes(self) -> Mapping[str, str]:
        """The prefixes of the program and of data, and the well-known ones."""
        return WELL_KNOWN_PREFIXES | dict(self.prefixes)

    @property
    def opened_store(self) -> Store:
        """The store of the knowledge base, which must have one."""
        if self.store is None:
            hint = "kb.save(path) makes one"
            raise InvalidInput("E500", "the knowledge base is in no store", hint)
        return self.store.store

    def pattern(self, pattern: object) -> Atom:
        """Read a pattern in any form: a triple, an atom, its text, or the name of a relation."""
        from corollary.knowledge_base.fact_forms import read_fact

        return read_fact(pattern, self.arities, self.prefixes)

    def reader(self) -> DataReader:
        """Create the reader of a transaction."""
        from corollary.knowledge_base.data import DataReader

        return DataReader(self.dictionary, self.prefixes, self.arities, self.declarations)

    def query_engine(self) -> QueryEngine:
        """Return the engine that answers SPARQL queries; the first query loads DuckDB."""
        if self.queries is None:
            from corollary.knowledge_base.queries import Queries

            self.queries = Queries(self)
        return self.queries.engine


def close(state: KnowledgeState) -> None:
    """Close a knowledge base: its facts are released, and nobody can use it any more.

    >>> from corollary.knowledge_base.base import KnowledgeBase
    >>> kb = KnowledgeBase("p(1) .")
    >>> close(kb.state)
    >>> kb
    <KnowledgeBase: closed>
    """
    if state.guard.closed:
        return
    with state.guard:
        state.guard.closed = True
        state.queries = None
        empty = state.engine.facts({})
        state.reasoner = Settings().reasoner(Program(), empty, state.engine)
