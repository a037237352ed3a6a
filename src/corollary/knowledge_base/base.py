"""`KnowledgeBase`: facts and rules with their consequences, in memory or in a store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import pyarrow as pa

from corollary.algorithms.hybrid_tree import Tree
from corollary.core.dictionary import Dictionary
from corollary.core.engine import Engine, Facts
from corollary.core.log import LOGGER
from corollary.core.notices import Notices, gathering
from corollary.core.proof import Proof
from corollary.core.public import guarded
from corollary.core.tables import encode
from corollary.core.watch import watching
from corollary.errors import InvalidInput, require_type
from corollary.knowledge_base.data import DataReader, ReadOptions
from corollary.knowledge_base.fact_forms import FactForm, read_fact
from corollary.knowledge_base.folders import read_inputs
from corollary.knowledge_base.graphs import (
    ReasonOver,
    explicit_tables,
    graphs_of,
    reason_over_rows,
    reason_over_terms,
)
from corollary.knowledge_base.hybrid import check_mode
from corollary.knowledge_base.inconsistencies import Inconsistency, smallest_proofs
from corollary.knowledge_base.patterns import is_pattern, match
from corollary.knowledge_base.results import native_table, relation_table, split
from corollary.knowledge_base.rules import Rules
from corollary.knowledge_base.state import KnowledgeState, Settings, close
from corollary.knowledge_base.surface import TripleSurface, program_of, query_text
from corollary.knowledge_base.transaction import LoadFrom, Transaction
from corollary.knowledge_base.transaction_changes import TransactionChanges
from corollary.knowledge_base.unread_axioms import note_axioms
from corollary.lang.program import Program
from corollary.lang.syntax import TRIPLE, TRIPLE_COLUMNS
from corollary.reasoning.engines import ENGINES, encoded, make_engine

if TYPE_CHECKING:
    from corollary.knowledge_base.check_report import CheckReport
    from corollary.knowledge_base.differences import Differences
    from corollary.knowledge_base.schema import Schema
    from corollary.query.graphs import Dataset
    from corollary.query.results import Solutions, TripleTable
    from corollary.store.commits import Commit
    from corollary.store.places import Place


@guarded
class KnowledgeBase(TripleSurface):
    """Facts and rules, together with all their consequences.

    A fact or pattern is a tuple of terms (of rdflib, pyoxigraph or Python, or their text), an atom,
    or text: `[:ann, a, :Person]` in the rule language, `:ann a :Person` in Turtle. In a pattern,
    None stands for any term.

    Any thread may use a knowledge base; its functions run one at a time. The tables, proofs and
    changes that it returns are values that any thread may read.

    >>> rules = "path(?x, ?y) :- edge(?x, ?y) . path(?x, ?z) :- path(?x, ?y), edge(?y, ?z) ."
    >>> kb = KnowledgeBase(rules)
    >>> with kb.transaction() as tx:
    ...     tx.insert("edge(1, 2) . edge(2, 3) .")
    >>> print(tx.changes)
    + edge(1, 2)
    + edge(2, 3)
    + path(1, 2)
    + path(1, 3)
    + path(2, 3)
    >>> kb.count(), kb.count("path(1, ?y)"), kb.version
    (5, 2, 1)
    """

    state: KnowledgeState
    """The internal state, for other modules of the library; not a stable interface."""

    def __init__(
        self,
        program: Rules | Iterable[Rules] = "",
        *,
        engine: str = "columnar",
        algorithm: str = "auto",
        modules: bool = True,
        equality: str = "rules",
        specialize: bool | None = None,
        mode: str = "materialized",
        materialize: Sequence[FactForm] = (),
        reason_over: ReasonOver = "union",
        threads: int = 1,
        limit_memory: int | None = None,
    ) -> None:
        """Create a knowledge base and materialize a program, given as an object or as text.

        The name of a rule set, such as `owl-rl`, stands for its rules; so do the path of a `.dl`
        file, and a list of names, paths and programs.

        `engine` is `columnar` or `spark`; `algorithm` and `modules` select the maintenance
        algorithm (`Maintainer`). Rules with variable properties or classes, such as those of
        `corollary.rules`, are evaluated tuple at a time, specialized to the axioms among the facts,
        or as written, as the data decide (`AdaptiveReasoner`). `specialize=True` always specializes
        them (`SpecializedReasoner`); `specialize=False` evaluates them as written on the columnar
        engine. With `equality="rewrite"`, one representative replaces all terms that
        are `owl:sameAs` it, in a program with the rules eq-* (`RepresentativeReasoner`).

        With `mode="hybrid"`, only the explicit facts and the answers to some patterns are
        materialized: the patterns about the schema, and those in `materialize`, which are triples
        in any form or relations. All other facts are derived on demand (`Hybrid`), and transactions
        report changes to the materialized part.

        Rules read the union of all graphs, unless `reason_over` is `default` (the default graph) or
        names graphs, whose statements are then the explicit triples.
        """
        program = program_of(program)
        if engine not in ENGINES:
            raise InvalidInput(
                "E314", f"unknown engine {engine!r}", f"choose {' or '.join(ENGINES)}"
            )
        require_type(materialize, (list, tuple), "patterns", "give a list of them")
        check_mode(mode, equality, materialize)
        patterns = [read_fact(one, program.arities, program.prefixes) for one in materialize]
        dictionary = Dictionary()
        embedded: Engine[Facts] = make_engine(
            engine, dictionary, threads=threads, limit_memory=limit_memory
        )
        settings = Settings(
            algorithm=algorithm,
            modules=modules,
            specialize=specialize,
            mode=mode,
            equality=equality,
            materialize=tuple(patterns),
        )
        facts = encoded(program, read_inputs(program), dictionary)
        graph_of = DataReader(dictionary, program.prefixes, {}).graph
        chosen = reason_over_terms(reason_over, graph_of)
        facts = {**facts, **reason_over_rows(chosen, dictionary)}
        axioms = embedded.facts(encode(program.axioms, dictionary))  # hold whatever rules read
        explicit = explicit_tables(facts, embedded).union(axioms)
        with gathering(Notices()) as notices, watching("deriving"):
            self.state = KnowledgeState.derive(program, explicit, embedded, settings)
        note_axioms([(True, facts)], program, None, dictionary, notices)
        notices.warn()

    # -- stores ------------------------------------------------------------------------------------

    @classmethod
    def open(
        cls,
        path: Place,
        *,
        storage_options: Mapping[str, str] | None = None,
        at_version: int | None = None,
        algorithm: str = "auto",
        modules: bool = True,
        specialize: bool | None = None,
        threads: int = 1,
        limit_memory: int | None = None,
        write_cache: bool = True,
    ) -> KnowledgeBase:
        """Open a store at its newest version, or at an older one, which is read-only.

        `path` is a folder or an address such as `s3://bucket/univ.store`, whose `storage_options`
        complete the environment. Nothing is derived, and facts are loaded on first use. Each
        transaction is a commit: when its block ends, the store contains all of its changes, or
        none if it failed. Unless `write_cache`, opening writes nothing into the folder.

        >>> import tempfile
        >>> store = tempfile.mkdtemp() + "/paths"
        >>> rules = "path(?x, ?y) :- edge(?x, ?y) . path(?x, ?z) :- path(?x, ?y), edge(?y, ?z) ."
        >>> kb = KnowledgeBase(rules)
        >>> with kb.transaction() as tx:
        ...     tx.insert("edge(1, 2) . edge(2, 3) .")
        >>> kb.save(store)
        1
        >>> kb = KnowledgeBase.open(store)
        >>> with kb.transaction(message="a road is closed") as tx:
        ...     tx.delete("edge(2, 3) .")
        >>> KnowledgeBase.open(store).count(), KnowledgeBase.open(store, at_version=1).count()
        (2, 5)
        """
        from corollary.knowledge_base.persistence import open_state  # loads the store
        from corollary.store.places import store_path

        kb = cls.__new__(cls)
        kb.state = open_state(
            store_path(path, storage_options),
            at_version=at_version,
            settings=Settings(algorithm=algorithm, modules=modules, specialize=specialize),
            threads=threads,
            limit_memory=limit_memory,
            write_cache=write_cache,
        )
        LOGGER.info("opened %s at version %d", path, kb.state.version)
        return kb

    def save(
        self,
        path: Place,
        *,
        storage_options: Mapping[str, str] | None = None,
        message: str = "",
    ) -> int:
        """Save the knowledge base as a new store and keep working on it; returns the version.

        The folder, or the address of an object store, must be empty or must not exist.
        """
        from corollary.knowledge_base.persistence import save_state
        from corollary.store.places import store_path

        return save_state(self.state, store_path(path, storage_options), message=message).version

    def close(self) -> None:
        """Release the store and the memory; no function can be called afterwards.

        A block does the same: `with KnowledgeBase.open(path) as kb: …`.

        >>> with KnowledgeBase("p(1) .") as kb:
        ...     print(len(kb))
        1
        >>> len(kb)
        Traceback (most recent call last):
        ...
        corollary.errors.InvalidInput: E347: the knowledge base is closed
          hint: open its store again: KnowledgeBase.open(path)
        """
        close(self.state)

    def log(self) -> list[Commit]:
        """List the commits of the store, newest first: time, author, operation and changes."""
        return list(self.state.opened_store.log())

    def diff(self, first: int, second: int | None = None) -> Differences:
        """Compute the changes from one version of the store to another, by default this one.

        >>> import tempfile
        >>> kb = KnowledgeBase("q(?x) :- p(?x) .")
        >>> _ = kb.save(tempfile.mkdtemp() + "/store")
        >>> with kb.transaction() as tx:
        ...     tx.insert("p(1) .")
        >>> print(*kb.diff(1).lines(), sep="\\n")
        + p(1)
        + q(1)   derived
        """
        from corollary.knowledge_base.differences import diff

        second = self.version if second is None else second
        return diff(self.state.opened_store, first, second)

    def changes_since(self, version: int) -> Iterator[tuple[Commit, Differences]]:
        """Iterate over the commits after a version, oldest first, each with its changes."""
        from corollary.knowledge_base.differences import changes_since

        return changes_since(self.state.opened_store, version)

    def refresh(self) -> int:
        """Bring this object to the newest version of its store; returns the version.

        Other processes may commit to the store meanwhile. Only what they committed is read, unless
        they changed rules.

        >>> import tempfile
        >>> kb, path = KnowledgeBase("q(?x) :- p(?x) ."), tempfile.mkdtemp() + "/store"
        >>> _ = kb.save(path)
        >>> reader = KnowledgeBase.open(path)
        >>> _ = kb.insert("p(1)")
        >>> reader.count(), reader.refresh(), reader.count()
        (0, 2, 2)
        """
        from corollary.knowledge_base.refreshing import refresh

        refresh(self.state)
        return self.version

    # -- changes ---------------------------------------------------------------------------------

    def transaction(self, *, message: str = "", batch: str | None = None) -> Transaction:
        """Start an atomic change: `with kb.transaction() as tx: …`.

        The log of a store shows the message. `batch` identifies the changes, so that a caller can
        make them idempotent.
        """
        return Transaction(self.state, message, batch)

    def load(
        self, *sources: object, relation: str | None = None, **options: Unpack[ReadOptions]
    ) -> TransactionChanges:
        """Insert facts from files, folders and tables in one transaction.

        A source is a path or a glob pattern: of a `.dl` file (whose rules are added too), an RDF
        file, a table `<relation>.facts`, `.csv`, `.jsonl`, `.parquet` or `.arrow`, or a folder of
        such files; or an Arrow, pandas or Polars table, an rdflib graph, or a dictionary of tables
        by relation. Without `relation`, a table has the columns subject, predicate and object. RDF
        statements that cannot be parsed, and rows that do not fit their declaration, are an error;
        with `on_error="skip"` they are omitted and reported by the changes (`skipped`, `samples`).
        `limit_input_bytes` bounds the bytes of each file after decompression.

        `owl:imports` of files are followed to other files: those that `import_map` gives for their
        IRIs, those of a catalog `catalog-v001.xml` beside the importing file, and those beside it.
        Only with `fetch_imports=True`, others are fetched from the web. A warning names what is not
        found.
        """
        with watching("loading"), self.transaction() as tx:
            tx.load(*sources, relation=relation, **options)
        return tx.changes

    def update(
        self,
        text: str,
        *,
        message: str = "",
        load: LoadFrom = "files",
        name: str = "<update>",
        default_graph: str = "union",
    ) -> TransactionChanges:
        """Execute a SPARQL 1.1 Update request as one transaction; see `Transaction.update`.

        >>> kb = KnowledgeBase("[?x, <knows>, ?y] :- [?y, <knows>, ?x] . [<a>, <knows>, <b>] .")
        >>> print(
        ...     kb.update("DELETE { ?x <knows> <b> } INSERT { ?x <knows> <c> } WHERE { ?x ?p <b> }")
        ... )
        + [<a>, <knows>, <c>]
        + [<c>, <knows>, <a>]
        - [<a>, <knows>, <b>]
        - [<b>, <knows>, <a>]
        """
        with self.transaction(message=message) as tx:
            tx.update(text, load=load, name=name, default_graph=default_graph)
        return tx.changes

    def revert(
        self, version: int | None = None, *, to: int | None = None, message: str = ""
    ) -> TransactionChanges:
        """Commit the inverse of a version of the store, or bring one back with `to`.

        Reverting a version undoes its changes of explicit facts, rules and axioms; what later
        versions changed stays. With `to`, all explicit facts, rules and axioms are again those of
        that version. Either is an update: nothing is derived from scratch, and no version is lost.

        >>> import tempfile
        >>> kb = KnowledgeBase("q(?x) :- p(?x) .")
        >>> _ = kb.save(tempfile.mkdtemp() + "/store")
        >>> for fact in ("p(1) .", "p(2) ."):
        ...     with kb.transaction() as tx:
        ...         tx.insert(fact)
        >>> print(kb.revert(2))
        - p(1)
        - q(1)
        >>> print(kb.revert(to=2))
        + p(1)
        + q(1)
        - p(2)
        - q(2)
        """
        from corollary.knowledge_base.reverting import revert, revert_message  # loads the store

        with self.transaction(message=message or revert_message(version, to)) as tx:
            revert(tx, self.state, version, to)
        return tx.changes

    # -- reading -----------------------------------------------------------------------------------

    @property
    def program(self) -> Program:
        """The current rules and axioms, with the declarations of columns."""
        program = self.state.program
        columns = self.state.declarations.columns_only()
        return replace(program, declarations=columns) if columns else program

    @property
    def specialized(self) -> Program:
        """The rules that are evaluated: specialized to the axioms, or the program as written."""
        return self.state.reasoner.active_program

    @property
    def mode(self) -> str:
        """`materialized` or `hybrid`."""
        return self.state.settings.mode

    @property
    def version(self) -> int:
        """The version of the store; without a store, the number of transactions so far."""
        return self.state.version

    @property
    def prefixes(self) -> Mapping[str, str]:
        """The prefixes of the program and of loaded data, and the well-known ones."""
        return self.state.all_prefixes

    def facts(self, pattern: FactForm, *, native: bool | None = None) -> pa.Table:
        """Return the facts of a relation, or the facts that match an atom, explicit ones first.

        The columns of a declared relation have their declared names and types. Those of others are
        `arg0`, `arg1`, … (for triples `subject`, `predicate` and `object`), and terms are formatted
        like the cells of facts files: `3` is a number, `"3"` a string. With `native=True`, columns
        whose terms have one type have this type; with `native=False`, all terms are formatted. The
        last column is `explicit`.

        >>> kb = KnowledgeBase("q(?x) :- p(?x, ?y) . p(1, a) . p(2, b) .")
        >>> kb.facts("q").to_pydict()
        {'arg0': ['1', '2'], 'explicit': [False, False]}
        >>> kb.facts("p(?x, b)").to_pydict()
        {'arg0': ['2'], 'arg1': ['b'], 'explicit': [True]}
        >>> kb.facts("q", native=True).to_pydict()
        {'arg0': [1, 2], 'explicit': [False, False]}
        """
        atom = self.state.pattern(pattern)
        reasoner = self.state.reasoner
        explicit, derived = split(reasoner.match(atom), reasoner.explicit)
        names: tuple[str, ...] = TRIPLE_COLUMNS
        declared = self.state.declarations.relations.get(atom.relation)
        if atom.relation != TRIPLE:
            names = tuple(f"arg{number}" for number in range(len(atom.terms)))
            names = names if declared is None else declared.names
        if native or (native is None and declared is not None):
            return native_table(explicit, derived, names, self.state.dictionary, declared)
        return relation_table(explicit, derived, names, self.state.dictionary)

    def query(
        self,
        text: str,
        *,
        name: str = "<query>",
        limit_rows: int | None = None,
        default_graph: str = "union",
        dataset: Dataset | None = None,
    ) -> Solutions | TripleTable | bool:
        """Answer a SPARQL 1.1 query over all triples, explicit and derived.

        SELECT returns `Solutions`, CONSTRUCT and DESCRIBE return a `TripleTable`: tables with terms
        in N-Triples syntax. ASK returns a bool. The prefixes of the knowledge base need no
        declaration. Facts of plain relations are not triples, so SPARQL does not see them; instead
        the query can be an atom, such as `path(1, ?y)`, which binds its variables. Error messages
        refer to the query text as `name`. An answer of more than `limit_rows` rows is an error.

        Patterns outside of `GRAPH` match the union of all graphs and what is derived, unless the
        query has FROM, or `default_graph` is `default` or the IRI of a graph. `dataset` replaces
        FROM and FROM NAMED.

        >>> kb = KnowledgeBase("[?x, <knows>, ?y] :- [?y, <knows>, ?x] . [<a>, <knows>, <b>] .")
        >>> kb.query("SELECT ?x { ?x <knows> <a> }").to_pylist()
        [{'x': '<b>'}]
        >>> kb.query("ASK { <b> <knows> <b> }")
        False
        """
        text = query_text(text)
        if is_pattern(text):
            return match(self.state, self.state.pattern(text), limit_rows)
        chosen = None
        if dataset is not None or default_graph != "union":
            from corollary.query.graphs import Dataset, dataset_of

            require_type(default_graph, str, "a graph", "give union, default or an IRI")
            if dataset is None:
                chosen = dataset_of(default_graph)
            else:
                require_type(dataset, Dataset, "a dataset", "use corollary.query.graphs.Dataset")
                chosen = dataset._replace(replaces=True)
        engine = self.state.query_engine()
        answer = engine.query(text, self.prefixes, name, limit_rows, chosen)
        return answer if isinstance(answer, bool) else replace(answer, prefixes=self.prefixes)

    def explain_query(
        self, text: str, *, name: str = "<query>", default_graph: str = "union"
    ) -> str:
        """Return the SQL that answers a query, and its execution plan.

        In hybrid mode, the plan of an atom is its proof tree.
        """
        from corollary.knowledge_base.display import QueryPlan

        text = query_text(text)
        if is_pattern(text):
            return QueryPlan(self.explain_plan(text))
        from corollary.query.graphs import dataset_of

        dataset = dataset_of(default_graph)
        return QueryPlan(self.state.query_engine().explain(text, self.prefixes, name, dataset))

    def count(self, pattern: FactForm | None = None) -> int:
        """Count all facts (hybrid: the materialized ones), or those that match a pattern."""
        return self.state.reasoner.count(None if pattern is None else self.state.pattern(pattern))

    def explain(self, fact: FactForm) -> Proof:
        """Find a smallest proof of a fact.

        >>> kb = KnowledgeBase("q(?x) :- p(?x, ?y) . p(1, a) .")
        >>> print(kb.explain("q(1)"))
        q(1)   by q(?x) :- p(?x, ?y)
        └─ p(1, "a")   explicit
        """
        proof = self.state.reasoner.explain(self.state.pattern(fact))
        return replace(proof, prefixes=self.prefixes, graphs=graphs_of(self.state, proof))

    def explain_plan(self, pattern: FactForm) -> Tree:
        """Explain how hybrid mode answers a pattern: the proof tree with its leaves and sizes.

        >>> kb = KnowledgeBase("q(?x) :- p(?x, ?y) . p(1, a) . p(2, b) .", mode="hybrid")
        >>> print(kb.explain_plan("q(?x)"))
        q(?x)   unfolded, 2 facts
        └─ by q(?x) :- p(?x, ?y)
           └─ p(?x, ?y)   look-up, 2 facts
        leaves: 1 (without pre-materialization: 1), derived: 2, look-ups: 3
        """
        tree = self.state.reasoner.query_plan(self.state.pattern(pattern))
        return replace(tree, prefixes=self.prefixes)

    def inconsistencies(self, *, limit: int | None = 3) -> list[Inconsistency]:
        """List the violated constraints, each with up to `limit` proofs, the smallest first.

        >>> kb = KnowledgeBase("[apart] false :- cat(?x), dog(?x) . dog(1) . dog(?x) :- cat(?x) .")
        >>> kb.inconsistencies()
        []
        >>> with kb.transaction() as tx:
        ...     tx.insert("cat(2) .")
        >>> print(*kb.inconsistencies())
        apart is contradicted in 1 way
          false   by [apart]
          ├─ cat(2)   explicit
          └─ dog(2)   by dog(?x) :- cat(?x)
             └─ cat(2)   explicit
        """
        return smallest_proofs(self.state, limit)

    def check(self, *, limit: int | None = 3, shapes: str | Path | None = None) -> CheckReport:
        """Check everything, and return a report.

        It lists contradictions, classes and properties that cannot have members, literals that do
        not fit their datatypes, violated integrity conditions of SKOS if it is used, and axioms
        outside OWL 2 RL, which may have no effect. Contradictions have up to `limit` proofs, the
        smallest first, without the steps of auxiliary relations. `shapes` is a file of SHACL shapes
        against which all triples are validated, explicit and derived (extra `corollary[shapes]`).

        >>> kb = KnowledgeBase("owl-rl")
        >>> _ = kb.insert("<urn:C> owl:complementOf <urn:D> .")
        >>> print(kb.check())
        consistent
        <BLANKLINE>
        axioms outside OWL 2 RL: 1
          EquivalentClasses(<urn:C> ObjectComplementOf(<urn:D>))
            ObjectComplementOf may not be an equivalent class in OWL 2 RL
        """
        from corollary.knowledge_base.check_report import check

        with watching("checking"):
            return check(self.state, limit, shapes)

    def schema(self) -> Schema:
        """Return the hierarchies of classes and properties, with counts.

        A position is `inferred` if no explicit statement places the entry there.

        >>> kb = KnowledgeBase("[?x, a, ?d] :- [?x, a, ?c], [?c, rdfs:subClassOf, ?d] .")
        >>> with kb.transaction() as tx:
        ...     tx.insert("<urn:Cat> rdfs:subClassOf <urn:Animal> . <urn:tom> a <urn:Cat> .")
        >>> print(kb.schema())
        classes
          <urn:Animal>   1, 1 derived
            <urn:Cat>   1
        properties
        """
        from corollary.knowledge_base.schema import schema_of

        return schema_of(self.state)

    def __repr__(self) -> str:
        if self.state.guard.closed:
            return "<KnowledgeBase: closed>"
        rules = len(self.program.rules)
        return f"<KnowledgeBase: {self.count():,} facts, {rules:,} rules, version {self.version}>"
