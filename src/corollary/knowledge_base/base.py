"""`KnowledgeBase`: facts and rules with their consequences, in memory or in a store."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from corollary.algorithms.hybrid import Hybrid
from corollary.algorithms.hybrid_tree import Tree
from corollary.algorithms.maintain import Maintainer
from corollary.core.changes import Changes
from corollary.core.compile import (
    CompiledRule,
    compile_rule,
    home,
    home_terms,
)
from corollary.core.dictionary import Dictionary, Ids
from corollary.core.engine import Facts
from corollary.core.notices import Notices, gathering
from corollary.core.proof import Proof
from corollary.core.statistics import Statistics
from corollary.core.tables import Tables, encode, is_known, narrow_atoms
from corollary.errors import InvalidInput
from corollary.knowledge_base.adaptive import AdaptiveMaintainer
from corollary.knowledge_base.axioms import Axioms
from corollary.knowledge_base.data import DataReader
from corollary.knowledge_base.engines import ENGINES, make_engine
from corollary.knowledge_base.equality import EqualityMaintainer
from corollary.knowledge_base.hybrid import (
    HybridSpecialized,
    admitted,
    check_mode,
    make_hybrid,
    proof_tree,
)
from corollary.knowledge_base.inconsistencies import Inconsistency, proved
from corollary.knowledge_base.ontology import Specialized
from corollary.knowledge_base.patterns import is_pattern, matching, read_pattern
from corollary.knowledge_base.persistence import (
    Resumed,
    committed,
    differences,
    feed,
    open_knowledge_base,
    save_knowledge_base,
    store_of,
)
from corollary.knowledge_base.results import TRIPLE_COLUMNS, relation_table
from corollary.knowledge_base.transaction import Transaction, TransactionChanges
from corollary.knowledge_base.unread_axioms import note_axioms
from corollary.lang.parser import WELL_KNOWN_PREFIXES
from corollary.lang.printer import Printer
from corollary.lang.program import Program
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import TRIPLE, Atom, Rule, Variable
from corollary.rdf.specialize import is_specializable
from corollary.rdf.triples import OnError, OnProgress

if TYPE_CHECKING:
    from corollary.knowledge_base.differences import Differences
    from corollary.knowledge_base.queries import Queries
    from corollary.knowledge_base.stored import Persistence
    from corollary.query.engine import QueryEngine
    from corollary.query.results import Solutions, TripleTable
    from corollary.store.commits import Commit

EQUALITY = ("rules", "rewrite")  # how terms that are owl:sameAs others are kept
_Kept = (
    Maintainer[Any]
    | EqualityMaintainer[Any]
    | Specialized[Any]
    | AdaptiveMaintainer[Any]
    | Hybrid[Any]
    | HybridSpecialized[Any]
    | Resumed
)


class KnowledgeBase:
    """Facts, rules, and all that follows from them.

    One thread at a time may use a knowledge base; the tables, proofs and changes that it gives are
    values, which any thread may read.

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

    _queries: Queries | None = None  # made when first asked

    def __init__(
        self,
        program: Program | str = "",
        *,
        engine: str = "columnar",
        algorithm: str = "auto",
        modules: bool = True,
        equality: str = "rules",
        specialize: bool | None = None,
        mode: str = "materialized",
        materialize: Sequence[str | Atom] = (),
        threads: int = 1,
        limit_memory: int | None = None,
    ) -> None:
        """Derive what follows from a program, or its text.

        `engine` is `columnar` or `spark`; `algorithm` and `modules` say how consequences are kept
        up to date (`Maintainer`). Rules with variable properties or classes, such as those of
        `corollary.rules`, are evaluated tuple at a time, or specialized to the axioms among the
        facts where there are many facts for each axiom (`AdaptiveMaintainer`). `specialize=True`
        always specializes them (`Specialized`), `specialize=False` evaluates them as they are by
        the columnar engine. With `equality="rewrite"`, one term stands for all that are
        `owl:sameAs` it, in a program with the rules eq-* (`EqualityMaintainer`); its rules are not
        written out.

        With `mode="hybrid"`, only explicit facts and the answers to some patterns are kept, those
        about schemas and those of `materialize`; all others are derived when they are asked for
        (`Hybrid`). Transactions then tell of changes of what is kept.
        """
        if isinstance(program, str):
            program = Program.parse(program)
        if engine not in ENGINES:
            raise InvalidInput(
                "E341", f"there is no engine {engine}", f"there are {', '.join(ENGINES)}"
            )
        if equality not in EQUALITY:
            raise InvalidInput(
                "E341", f"there is no equality by {equality}", f"there are {', '.join(EQUALITY)}"
            )
        check_mode(mode, equality, materialize)
        self._mode = mode
        self._dictionary = Dictionary()
        self._engine = make_engine(
            engine, self._dictionary, threads=threads, limit_memory=limit_memory
        )
        self._prefixes = dict(program.prefixes)
        self._arities = dict(program.arities)
        self._options = {"algorithm": algorithm, "modules": modules}
        self._equality = equality
        self._patterns = tuple(self._pattern(pattern) for pattern in materialize)
        if specialize is None and engine != "columnar":
            specialize = True  # evaluation tuple at a time is in process
        make = _kind_of(program, equality, specialize=specialize)
        if mode == "hybrid":
            make = partial(
                make_hybrid, materialize=self._patterns, specialize=specialize is not False
            )
        facts = encode(program.facts, self._dictionary)
        with gathering(Notices()) as notices:
            self._maintainer: _Kept = make(
                program.without_facts(), self._engine.facts(facts), self._engine, **self._options
            )
        note_axioms([(True, facts)], program, None, self._dictionary, notices)
        notices.warn()
        self._axioms = Axioms(program.axioms, frozenset(), self._encoded, self._dictionary)
        self._version = 0
        self._transaction: Transaction | None = None
        self._persistence: Persistence | None = None
        self._last: Statistics | None = None  # of the last transaction

    # -- stores ------------------------------------------------------------------------------------

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        at_version: int | None = None,
        algorithm: str = "auto",
        modules: bool = True,
        specialize: bool | None = None,
        threads: int = 1,
        limit_memory: int | None = None,
    ) -> KnowledgeBase:
        """What a store holds, at its newest version or an older one, which can be read only.

        Nothing is derived, and facts are loaded when they are first needed. A transaction is a
        commit: it is in the store when its block has ended, or has changed nothing.

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
        return cls._open(
            path,
            at_version=at_version,
            algorithm=algorithm,
            modules=modules,
            specialize=specialize,
            threads=threads,
            limit_memory=limit_memory,
        )

    @classmethod
    def _open(
        cls,
        path: str | Path,
        *,
        at_version: int | None = None,
        algorithm: str = "auto",
        modules: bool = True,
        specialize: bool | None = None,
        threads: int = 1,
        limit_memory: int | None = None,
        write_cache: bool = True,
    ) -> KnowledgeBase:
        """As `open`; without `write_cache`, nothing is written into the store."""
        return open_knowledge_base(
            cls,
            path,
            at_version=at_version,
            make=partial(_kind_of, specialize=specialize),
            options={"algorithm": algorithm, "modules": modules},
            threads=threads,
            limit_memory=limit_memory,
            write_cache=write_cache,
        )

    def save(self, path: str | Path, *, message: str = "") -> int:
        """Make a store of what there is, and go on in it; returns its version.

        The folder must be empty, or not there.
        """
        return save_knowledge_base(self, path, message=message)

    def log(self) -> list[Commit]:
        """The versions of the store, the newest first: when, by whom, how, what they changed."""
        return list(store_of(self).log())

    def diff(self, first: int, second: int | None = None) -> Differences:
        """By what a version of the store, or this one, differs from another one.

        >>> import tempfile
        >>> kb = KnowledgeBase("q(?x) :- p(?x) .")
        >>> _ = kb.save(tempfile.mkdtemp() + "/store")
        >>> with kb.transaction() as tx:
        ...     tx.insert("p(1) .")
        >>> print(*kb.diff(1).lines(), sep="\\n")
        + p(1)
        + q(1)   derived
        """
        return differences(self, first, self.version if second is None else second)

    def changes_since(self, version: int) -> Iterator[tuple[Commit, Differences]]:
        """The versions of the store after one, the oldest first, each with what it changed."""
        return feed(self, version)

    # -- changes ---------------------------------------------------------------------------------

    def transaction(self, *, message: str = "", batch: str | None = None) -> Transaction:
        """Changes that are made together: `with kb.transaction() as tx: …`.

        The log of a store shows the message; `batch` names the changes for those who must not make
        them twice.
        """
        return Transaction(self, message, batch)

    def load(
        self,
        *sources: Any,
        relation: str | None = None,
        on_error: OnError = "fail",
        on_progress: OnProgress | None = None,
        limit_input_bytes: int | None = None,
    ) -> TransactionChanges:
        """Insert facts from files, folders and tables, as one transaction.

        A source is a path or a glob pattern: of a `.dl` file (whose rules are added too), an RDF
        file, a table `<relation>.facts`, `.csv`, `.parquet` or `.arrow`, or a folder of such files;
        or an Arrow, pandas or Polars table, or an rdflib graph. Without `relation`, a table has the
        columns subject, predicate and object. Statements of RDF that cannot be read are an error,
        or with `on_error="skip"` left out and told of by the changes: `skipped`, `samples`.
        `limit_input_bytes` bounds the bytes of each file after decompression.
        """
        with self.transaction() as tx:
            tx.load(
                *sources,
                relation=relation,
                on_error=on_error,
                on_progress=on_progress,
                limit_input_bytes=limit_input_bytes,
            )
        return tx.changes

    # -- what there is -----------------------------------------------------------------------------

    @property
    def program(self) -> Program:
        """The rules and axioms as they are now."""
        return self._axioms.program(self._maintainer.program)

    @property
    def specialized(self) -> Program:
        """The rules that do the work: written out for the axioms, or the program as it is."""
        kept = self._maintainer
        found: Program = getattr(kept, "specialized", kept.program)
        return found

    @property
    def mode(self) -> str:
        """`materialized` or `hybrid`."""
        return self._mode

    @property
    def version(self) -> int:
        """How many transactions there were, or the version of the store."""
        return self._version

    @property
    def prefixes(self) -> Mapping[str, str]:
        """The prefixes of the program and of loaded data, with the well-known ones."""
        return MappingProxyType(WELL_KNOWN_PREFIXES | self._prefixes)

    def facts(self, pattern: str | Atom) -> pa.Table:
        """The facts of a relation, or those that match an atom, explicit ones first.

        The columns are `arg0`, `arg1`, … or, for triples, `subject`, `predicate` and `object`; and
        `explicit`. Terms are written as cells of facts files are: `3` is a number, `"3"` a string.

        >>> kb = KnowledgeBase("q(?x) :- p(?x, ?y) . p(1, a) . p(2, b) .")
        >>> kb.facts("q").to_pydict()
        {'arg0': ['1', '2'], 'explicit': [False, False]}
        >>> kb.facts("p(?x, b)").to_pydict()
        {'arg0': ['2'], 'arg1': ['b'], 'explicit': [True]}
        """
        atom = self._pattern(pattern)
        found = self._matching(atom)
        explicit = found.intersection(self._maintainer.explicit)
        derived = found.difference(explicit)
        names: tuple[str, ...] = TRIPLE_COLUMNS
        if atom.relation != TRIPLE:
            names = tuple(f"arg{number}" for number in range(len(atom.terms)))
        return relation_table(explicit, derived, names, self._dictionary)

    def query(self, text: str, *, name: str = "<query>") -> Solutions | TripleTable | bool:
        """Answer a SPARQL 1.1 query over all triples, explicit and derived.

        SELECT gives `Solutions` and CONSTRUCT and DESCRIBE a `TripleTable`, tables with terms as
        N-Triples writes them; ASK gives a bool. The prefixes of the knowledge base need not be
        declared. Facts of plain relations are no triples, and not found; a query may also be an
        atom, such as `path(1, ?y)`, whose variables are bound. Errors call the text `name`.

        >>> kb = KnowledgeBase("[?x, <knows>, ?y] :- [?y, <knows>, ?x] . [<a>, <knows>, <b>] .")
        >>> kb.query("SELECT ?x { ?x <knows> <a> }").to_pylist()
        [{'x': '<b>'}]
        >>> kb.query("ASK { <b> <knows> <b> }")
        False
        """
        if is_pattern(text):
            return matching(self, self._pattern(text))
        return self._answering().query(text, self.prefixes, name)

    def explain_query(self, text: str, *, name: str = "<query>") -> str:
        """The SQL that answers a query, and how the database carries it out.

        The plan of an atom is its proof tree, in hybrid mode.
        """
        if is_pattern(text):
            return str(self.explain_plan(text))
        return self._answering().explain(text, self.prefixes, name)

    def _answering(self) -> QueryEngine:
        if self._queries is None:
            # DuckDB is loaded by those who query.
            from corollary.knowledge_base.queries import Queries

            self._queries = Queries(self)
        return self._queries.engine

    def count(self, pattern: str | Atom | None = None) -> int:
        """How many facts there are (hybrid: are kept), or match a pattern as for `facts`."""
        if pattern is None:
            kept = self._maintainer
            return kept.count() if isinstance(kept, EqualityMaintainer) else len(kept.facts)
        return len(self._matching(self._pattern(pattern)))

    def __contains__(self, fact: str | Atom) -> bool:
        """Whether there is such a fact."""
        return self.count(fact) > 0

    def explain(self, fact: str | Atom) -> Proof:
        """A smallest proof of a fact.

        >>> kb = KnowledgeBase("q(?x) :- p(?x, ?y) . p(1, a) .")
        >>> print(kb.explain("q(1)"))
        q(1)   by q(?x) :- p(?x, ?y)
        └─ p(1, "a")   explicit
        """
        proof = self._maintainer.explain(self._pattern(fact))
        return replace(proof, prefixes=self.prefixes)

    def explain_plan(self, pattern: str | Atom) -> Tree:
        """How a hybrid knowledge base answers a pattern: the proof tree, with leaves and sizes.

        >>> kb = KnowledgeBase("q(?x) :- p(?x, ?y) . p(1, a) . p(2, b) .", mode="hybrid")
        >>> print(kb.explain_plan("q(?x)"))
        q(?x)   unfolded, 2 facts
        └─ by q(?x) :- p(?x, ?y)
           └─ p(?x, ?y)   look-up, 2 facts
        leaves: 1 (without pre-materialization: 1), derived: 2, look-ups: 3
        """
        if self._mode != "hybrid":
            raise InvalidInput(
                "E583",
                "only hybrid knowledge bases unfold queries",
                'KnowledgeBase(…, mode="hybrid") is one; kb.explain proves a fact',
            )
        tree = proof_tree(self._hybrid(), self._pattern(pattern))
        return replace(tree, prefixes=self.prefixes)

    def inconsistencies(self, *, limit: int | None = 3) -> list[Inconsistency]:
        """The constraints that the facts contradict, each with up to `limit` proofs.

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
        found = self._maintainer.inconsistencies(examples=limit)
        return [proved(one, self.explain, self.prefixes) for one in found]

    def __repr__(self) -> str:
        rules = len(self.program.rules)
        return f"<KnowledgeBase: {self.count():,} facts, {rules:,} rules, version {self.version}>"

    # -- patterns ----------------------------------------------------------------------------------

    def _pattern(self, pattern: str | Atom) -> Atom:
        """An atom as text, or the name of a relation."""
        return read_pattern(pattern, self._arities, self._prefixes)

    def _matching(self, atom: Atom, admissible: Mapping[int, Ids] | None = None) -> Any:
        """The facts that match an atom, with admissible ids at some places.

        An atom with a variable property or class is read as one for each property or class, so that
        no table of all triples is made, which updates would have to keep.
        """
        if self._mode == "hybrid":
            return self._hybrid().answer(atom, admissible).facts
        if admissible:
            return admitted(self._matching(atom), admissible, self._engine)
        if isinstance(self._maintainer, EqualityMaintainer):
            return self._maintainer.matching(atom)
        facts = self._maintainer.facts
        whole: list[Predicate] = []
        rules: list[CompiledRule] = []
        for narrow in narrow_atoms(atom, facts.predicates()):
            terms = home_terms(narrow)
            if len({*terms}) == len(terms) and all(isinstance(term, Variable) for term in terms):
                whole.append(home(narrow))
            elif is_known(narrow, self._dictionary):  # asking adds no term
                rules.append(compile_rule(Rule(narrow, (narrow,)), self._dictionary))
        found = facts.only(whole)
        return found.union(self._engine.derive(rules, facts).facts) if rules else found

    def _hybrid(self) -> Hybrid[Any] | HybridSpecialized[Any]:
        """What derives answers, in hybrid mode."""
        kept = self._maintainer
        found: Any = kept.kept if isinstance(kept, Resumed) else kept
        assert isinstance(found, Hybrid | HybridSpecialized), "made so in this mode"
        return found

    def _anew(self) -> Any:
        """Everything derived again from the explicit facts, to compare with."""
        make = _kind_of(self._maintainer.program, self._equality, specialize=None)
        if self._mode == "hybrid":
            make = partial(make_hybrid, materialize=self._patterns)
        return make(self._maintainer.program, self._maintainer.explicit, self._engine)

    def _encoded(self, atoms: Iterable[Atom]) -> Any:
        return self._engine.facts(encode(atoms, self._dictionary))

    # -- for transactions --------------------------------------------------------------------------

    def _reader(self) -> DataReader:
        return DataReader(self._dictionary, self._prefixes, self._arities)

    def _begin(self, transaction: Transaction) -> None:
        if self._transaction is not None:
            raise InvalidInput(
                "E343", "a transaction is already open", "end it before you begin another one"
            )
        self._transaction = transaction

    def _end(self) -> None:
        self._transaction = None

    def _commit(
        self,
        requests: list[tuple[bool, Tables]],
        program: Program,
        reader: DataReader,
        message: str,
        batch: str | None = None,
    ) -> TransactionChanges:
        """Make changes; nothing is different if this fails."""
        if self._persistence is not None:
            self._persistence.refuse_reading_only()
        inserted = deleted = self._engine.facts({})
        for inserts, tables in requests:
            facts = self._engine.facts(tables)
            if inserts:
                inserted, deleted = inserted.union(facts), deleted.difference(facts)
            else:
                inserted, deleted = inserted.difference(facts), deleted.union(facts)
        before, known = self._maintainer.explicit, self._maintainer.program
        added: tuple[Rule, ...] = ()
        removed: tuple[Rule, ...] = ()
        if program is not self.program:
            added = program.rules_not_in(known)
            removed = known.rules_not_in(program)
        started = time.perf_counter()
        axioms, asked = self._axioms.change(
            program.axioms, Changes(inserted, deleted, added, removed), before
        )
        with gathering(reader.notices):
            done = self._maintainer.update(asked)
        statistics = done.statistics
        assert statistics is not None, "an update has statistics"
        statistics.seconds["update"] = time.perf_counter() - started
        version = self._version + 1
        if self._persistence is not None:
            version = committed(self, asked, done, before, axioms, reader.prefixes, message, batch)
            self._version = self._persistence.version  # small files may have been merged
        else:
            self._version = version
        self._axioms = axioms
        self._prefixes, self._arities = reader.prefixes, reader.arities
        self._last = statistics
        if self._queries is not None:
            self._queries.changed(done, self._version)
        note_axioms(requests, program, before, self._dictionary, reader.notices)
        reader.notices.warn()
        return TransactionChanges(
            version,
            statistics,
            done.added_rules,
            done.removed_rules,
            _split(done.inserted, self._maintainer.explicit),
            _split(done.deleted, before),
            self._dictionary,
            Printer(self._prefixes),
            reader.skipped,
            reader.samples,
        )


def _kind_of(program: Program, equality: str, *, specialize: bool | None) -> Any:
    """Choose the reasoner for a program."""
    if equality == "rewrite":
        return EqualityMaintainer
    if specialize is False or not is_specializable(program):
        return Maintainer
    return Specialized if specialize else AdaptiveMaintainer


def _split(facts: Any, explicit: Any) -> tuple[Facts, Facts]:
    """Explicit facts, and the others."""
    own = facts.intersection(explicit)
    return own, facts.difference(own)
