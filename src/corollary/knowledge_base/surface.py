"""The Python surface of a knowledge base: membership, patterns, one-line changes, conversions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, Self, cast

import pyarrow as pa

from corollary.core.dictionary import Dictionary
from corollary.core.engine import Facts
from corollary.core.public import guarded
from corollary.errors import InvalidInput, require_type
from corollary.knowledge_base.fact_forms import FORMS, FactForm, triple_pattern
from corollary.knowledge_base.results import split, triples_of
from corollary.knowledge_base.rules import Rules, read_rules
from corollary.knowledge_base.state import close
from corollary.knowledge_base.transaction import Transaction
from corollary.knowledge_base.transaction_changes import TransactionChanges
from corollary.lang.program import PROGRAM_SUFFIXES, Program
from corollary.lang.syntax import TRIPLE, TRIPLE_COLUMNS, Atom

if TYPE_CHECKING:
    import polars as pl
    import pyoxigraph
    import rdflib

    from corollary.knowledge_base.export import Which
    from corollary.knowledge_base.state import KnowledgeState
    from corollary.knowledge_base.why_not import WhyNot
    from corollary.query.results import TripleTable

# The name of a rule set or file: a program has at least a full stop, with a blank or an atom.
_NAME = re.compile(r"[\w+./\\:~-]*[\w+]\Z")
_EXPORTED = {
    **{name: name for name in ("ttl", "nt", "nq", "trig", "jsonld")},
    "turtle": "ttl",
    "nquads": "nq",
    "n-quads": "nq",
    "json-ld": "jsonld",
}


class _Exists(Protocol):
    state: KnowledgeState

    def count(self, pattern: FactForm | None = None) -> int: ...

    def transaction(
        self, *, message: str = "", batch: str | None = None
    ) -> AbstractContextManager[Transaction]: ...


@guarded
class TripleSurface:
    """What makes a knowledge base feel like a graph; `KnowledgeBase` inherits it."""

    state: KnowledgeState

    def __contains__(self, fact: FactForm) -> bool:
        """Test whether a fact is explicit or derived.

        >>> from corollary import KnowledgeBase
        >>> kb = KnowledgeBase("[?y, <urn:p>, ?x] :- [?x, <urn:p>, ?y] . [<urn:a>, <urn:p>, 1] .")
        >>> ("<urn:a>", "<urn:p>", 1) in kb, "<urn:b> <urn:p> 1" in kb
        (True, False)
        """
        return self.state.reasoner.count(self.state.pattern(fact)) > 0

    def __len__(self) -> int:
        """Count all facts (hybrid: the materialized ones)."""
        return self.state.reasoner.count(None)

    def __bool__(self) -> bool:
        """Return true: an empty knowledge base is one, too."""
        return True

    def match(
        self,
        subject: object = None,
        predicate: object = None,
        object: object = None,
        *,
        which: Which = "all",
    ) -> TripleTable:
        """Return the triples that match; None stands for any term.

        `which` restricts them to `explicit` or `derived` ones. A pattern as one argument is a
        tuple, an atom, or text such as `[?x, a, :Person]`.

        >>> from corollary import KnowledgeBase
        >>> kb = KnowledgeBase("[?y, <urn:q>, ?x] :- [?x, <urn:p>, ?y] . [<urn:a>, <urn:p>, 1] .")
        >>> kb.match("<urn:a>").to_pylist(native=True)
        [{'subject': 'urn:a', 'predicate': 'urn:p', 'object': 1}]
        >>> len(kb.match()), len(kb.match(which="derived"))
        (2, 1)
        """
        atom = self._triple_pattern(subject, predicate, object)
        found = self.state.reasoner.match(atom)
        if which not in ("all", "explicit", "derived"):
            raise InvalidInput(
                "E314", f"unknown facts {which!r}", "choose one of all, explicit, derived"
            )
        if which != "all":
            explicit, derived = split(found, self.state.reasoner.explicit)
            found = explicit if which == "explicit" else derived
        return triple_table(found, self.state.dictionary, self.state.all_prefixes)

    def _triple_pattern(self, subject: object, predicate: object, object_: object) -> Atom:
        is_whole = isinstance(subject, tuple | list | Atom) or (
            isinstance(subject, str) and subject.lstrip().startswith("[")
        )
        if is_whole and predicate is None and object_ is None:
            atom = self.state.pattern(subject)
            if atom.relation != TRIPLE:
                raise InvalidInput("E345", f"{atom.relation} is a relation, no triple", FORMS)
            return atom
        return triple_pattern(subject, predicate, object_, self.state.prefixes)

    def why_not(self, fact: FactForm, *, limit: int = 10) -> WhyNot:
        """Find what a fact lacks: the rules that could derive it, nearest first.

        Each way shows the premises that hold and those that are missing. At most `limit` ways are
        returned; the search of each rule is bounded, so it may miss a nearer one in large data.

        >>> from corollary import KnowledgeBase
        >>> kb = KnowledgeBase("owl-rl")
        >>> _ = kb.insert("@prefix : <urn:> . :Cat rdfs:subClassOf :Pet . :tom a :Animal .")
        >>> print(kb.why_not(":tom a :Pet", limit=1))
        [:tom, a, :Pet] is not a fact; it would follow
          by [cax-sco]
            ✓ [:Cat, rdfs:subClassOf, :Pet]
            ✗ [:tom, a, :Cat]
        """
        from corollary.knowledge_base.why_not import why_not

        return why_not(self.state, self.state.pattern(fact), limit)

    # -- changes ---------------------------------------------------------------------------------

    def insert(
        self,
        data: object,
        *,
        relation: str | None = None,
        graph: object = None,
        message: str = "",
    ) -> TransactionChanges:
        """Insert explicit facts in a transaction of their own; see `Transaction.insert`.

        >>> from corollary import KnowledgeBase
        >>> kb = KnowledgeBase("path(?x, ?y) :- edge(?x, ?y) .")
        >>> print(kb.insert("edge(1, 2)"))
        + edge(1, 2)
        + path(1, 2)
        """
        with cast("_Exists", self).transaction(message=message) as tx:
            tx.insert(data, relation=relation, graph=graph)
        return tx.changes

    def delete(
        self,
        data: object,
        *,
        relation: str | None = None,
        graph: object = None,
        message: str = "",
    ) -> TransactionChanges:
        """Delete explicit facts in a transaction of their own; see `Transaction.delete`."""
        with cast("_Exists", self).transaction(message=message) as tx:
            tx.delete(data, relation=relation, graph=graph)
        return tx.changes

    # -- conversions -----------------------------------------------------------------------------

    def to_rdflib(self, which: Which = "all") -> rdflib.Graph:
        """Convert the triples to an rdflib graph, without those whose subject is a literal.

        >>> from corollary import KnowledgeBase
        >>> len(KnowledgeBase("[<urn:a>, <urn:p>, 1] .").to_rdflib())
        1
        """
        return self.match(which=which).to_rdflib()

    def to_dataset(self, which: Which = "all") -> rdflib.Dataset:
        """Convert the statements to an rdflib dataset, each in its graphs.

        Derived triples are in the default graph, unless a rule derives them into a named one.

        >>> from corollary import KnowledgeBase
        >>> kb = KnowledgeBase()
        >>> _ = kb.insert("<urn:g> { <urn:a> <urn:p> 1 }")
        >>> [str(graph.identifier) for graph in kb.to_dataset().graphs() if len(graph)]
        ['urn:g']
        """
        from corollary.rdf.rdflib_terms import dataset_of

        return dataset_of(
            tuple(map(str, quad))[: 4 if str(quad.graph_name) != "DEFAULT" else 3]
            for quad in self.to_pyoxigraph(which)
        )

    def to_pyoxigraph(self, which: Which = "all") -> pyoxigraph.Store:
        """Convert the statements to a store of pyoxigraph; see `to_dataset`."""
        import pyoxigraph

        store = pyoxigraph.Store()
        data = str(self.serialize("nq", which)).encode()
        store.bulk_load(data, format=pyoxigraph.RdfFormat.N_QUADS)
        return store

    def to_arrow(self, which: Which = "all") -> pa.Table:
        """Convert the triples to an Arrow table: subject, predicate and object in N-Triples."""
        return self.match(which=which).to_arrow()

    def to_pandas(self, which: Which = "all", *, native: bool = False) -> Any:
        """Convert the triples to a pandas frame; with `native`, of Python values."""
        return self.match(which=which).to_pandas(native=native)

    def to_polars(self, which: Which = "all", *, native: bool = False) -> pl.DataFrame:
        """Convert the triples to a Polars frame; with `native`, of Python values."""
        return self.match(which=which).to_polars(native=native)

    def serialize(self, format: str = "turtle", which: Which = "all") -> str | bytes:
        """Serialize the triples as RDF: `turtle`, `nt`, `nq`, `trig`, `xml` or `json-ld`.

        >>> from corollary import KnowledgeBase
        >>> KnowledgeBase("[<urn:a>, <urn:p>, 1] .").serialize("nt")
        '<urn:a> <urn:p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .\\n'
        """
        if format in _EXPORTED:
            from corollary.knowledge_base.export import export  # loads stores

            out = BytesIO()
            export(self.state, out, _EXPORTED[format], which)
            return out.getvalue().decode()
        return self.match(which=which).serialize(format)

    # -- notebooks -------------------------------------------------------------------------------

    def _repr_html_(self) -> str:
        """The numbers of facts and rules, and the largest relations."""
        from corollary.knowledge_base.display import knowledge_base_html

        return knowledge_base_html(self.state)

    # -- blocks ----------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        close(self.state)

    # -- copies ------------------------------------------------------------------------------------

    def __copy__(self) -> NoReturn:
        self._refuse_copy("copied")

    def __deepcopy__(self, memo: Mapping[int, Any]) -> NoReturn:
        self._refuse_copy("copied")

    def __reduce__(self) -> NoReturn:
        self._refuse_copy("pickled")

    def _refuse_copy(self, how: str) -> NoReturn:
        if self.state.store is not None:
            hint = "open its store again: KnowledgeBase.open(path)"
        else:
            hint = "kb.save(path), then KnowledgeBase.open(path) in each process or copy"
        raise InvalidInput(
            "E346", f"a knowledge base cannot be {how}: it holds threads and open files", hint
        )


def triple_table(facts: Facts, dictionary: Dictionary, prefixes: Mapping[str, str]) -> TripleTable:
    """Convert the triples among facts to a table of terms in N-Triples syntax.

    >>> from corollary import KnowledgeBase
    >>> state = KnowledgeBase("[<urn:a>, <urn:p>, 1] . p(1) .").state
    >>> triple_table(state.reasoner.facts, state.dictionary, {})
    <TripleTable: 1 triples>
    """
    from corollary.query.results import TripleTable

    triples = triples_of(facts, dictionary)
    texts = {
        name: dictionary.texts(column)
        for name, column in zip(TRIPLE_COLUMNS, triples.columns, strict=True)
    }
    return TripleTable(pa.table(texts), prefixes)


def program_of(rules: Rules | Iterable[Rules]) -> Program:
    """Read a program: an object, its text, the name of a rule set, a path, or a list of these.

    >>> len(program_of("rhodf").rules), len(program_of("p(?x) :- q(?x) .").rules)
    (6, 1)
    >>> program_of("owl-lr")
    Traceback (most recent call last):
    ...
    corollary.errors.InvalidInput: E311: unknown rule set 'owl-lr'
      hint: did you mean owl-rl? Otherwise choose one of rhodf, rdfs, owl-horst, owl-rl, ...
    """
    if isinstance(rules, Program):
        return rules
    if isinstance(rules, str):
        text = rules.strip()
        if not text or not _NAME.match(text):
            return Program.parse(rules)
        return Program.load(text) if text.endswith(PROGRAM_SUFFIXES) else read_rules(text)
    if isinstance(rules, Path):
        return Program.load(rules)
    if isinstance(rules, Iterable) and not isinstance(rules, bytes | Mapping):
        parts = list(rules)
        if all(isinstance(part, str | Path | Program) for part in parts):
            return read_rules([program_of(part) for part in parts])
    hint = "give a program, its text, the name of a rule set such as 'owl-rl', or a path"
    require_type(rules, (str, Path, Program), "rules", hint)
    return read_rules(rules)


def query_text(text: object) -> str:
    """Check that a query is text.

    >>> query_text("ASK { ?s ?p ?o }")
    'ASK { ?s ?p ?o }'
    """
    hint = "write SPARQL, or an atom such as '[?x, a, :Person]'"
    require_type(text, str, "the text of a query", hint)
    return str(text)
