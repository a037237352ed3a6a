"""SPARQL 1.1 Update: execute the operations of a request in a transaction.

Operations with a pattern read the state after the earlier operations, consequences included. An
operation only requests insertions and deletions of explicit triples; the transaction derives what
follows, and commits all operations as one version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.dictionary import Dictionary
from corollary.core.tables import Tables
from corollary.core.terms import canonical, term_of, text_of
from corollary.errors import CorollaryError
from corollary.knowledge_base.remote_files import fetched
from corollary.lang.syntax import (
    IRI,
    TRIPLE,
    TRIPLE_COLUMNS,
    Atom,
    BlankNode,
    Constant,
    Term,
    Variable,
)
from corollary.query.engine import construct
from corollary.query.parse import Parsed, error_at, parse_update, unsupported
from corollary.query.paths import variable_name
from corollary.query.syntax.algebra import Node
from corollary.query.syntax.updates import Quads
from corollary.rdf.triples import Triples

if TYPE_CHECKING:
    from corollary.knowledge_base.transaction import LoadFrom, Transaction

_IRI = r"<[^<>\"{}|^`\\\x00-\x20]*>"
_TERM = rf"^(?s:{_IRI}|_:\S+|\".*\"(?:@[A-Za-z0-9-]+|\^\^{_IRI})?)$"
_ONE_GRAPH = "named graphs are not supported: all triples are in one graph"


def execute(tx: Transaction, text: str, *, load: LoadFrom, name: str) -> None:
    """Execute a request; see `Transaction.update`."""
    for operation in parse_update(text, tx.prefixes, name):
        node = operation.algebra
        match node.name:
            case "InsertData":
                tx.insert(_facts(operation, node.quads, _scope(tx.dictionary)))
            case "DeleteData":
                tx.delete(_facts(operation, node.quads, ""))
            case "Modify":
                _modify(tx, operation)
            case "Load":
                _silently(node, partial(_load, tx, operation, load))
            case "Clear" | "Drop":
                _silently(node, partial(_clear, tx, operation))
            case _:
                _silently(node, partial(_refuse_named_graphs, operation))


def _silently(node: Node, work: Callable[[], None]) -> None:
    try:
        work()
    except CorollaryError:
        if not node.silent:
            raise


# -- triples ---------------------------------------------------------------------------------------


def _scope(dictionary: Dictionary) -> str:
    """A prefix for the labels of new blank nodes: with them, the number of terms grows."""
    return f"u{len(dictionary)}."


def _facts(operation: Parsed, quads: Iterable[Quads], scope: str) -> list[Atom]:
    """The triples of INSERT DATA or DELETE DATA; `scope` makes blank nodes new."""

    def term(part: Term) -> Term:
        return BlankNode(scope + part.label.lstrip()) if isinstance(part, BlankNode) else part

    facts = []
    for part in quads:
        _refuse_graph(operation, part)
        for subject, predicate, object_ in part.triples:
            assert not isinstance(predicate, Node), "data have no paths"
            facts.append(Atom(TRIPLE, (term(subject), predicate, term(object_))))
    return facts


def _modify(tx: Transaction, operation: Parsed) -> None:
    """DELETE and INSERT with WHERE: the pattern is matched once, and deletions come first."""
    node = operation.algebra
    for part in (*node.deleted, *node.inserted):
        _refuse_graph(operation, part)
    if node.with_ is not None:
        raise unsupported(operation, "WITH", node.span, _ONE_GRAPH)
    if node.using or node.using_named:
        raise unsupported(operation, "USING", node.span, _ONE_GRAPH)
    templates = [_template(quads) for quads in (node.deleted, node.inserted)]
    terms = dict.fromkeys(term for template in templates for triple in template for term in triple)
    variables = [term for term in terms if isinstance(term, str) and not term.startswith("_:")]
    found = tx.current().query_engine().solutions(operation, node.pattern, variables)
    columns = {name: found.table[name].combine_chunks() for name in variables}
    scopes = ("", _scope(tx.dictionary))
    deleted, inserted = (
        _encoded(construct(template, columns, len(found), scope).table, tx.dictionary)
        for template, scope in zip(templates, scopes, strict=True)
    )
    tx.delete(deleted)
    tx.insert(inserted)


def _template(quads: Iterable[Quads]) -> list[Sequence[str | Constant]]:
    """A template for `construct`: variables and blank nodes by name."""

    def name(term: Term | Node) -> str | Constant:
        assert not isinstance(term, Node), "a template has no paths"
        return variable_name(term) if isinstance(term, Variable | BlankNode) else term

    return [tuple(map(name, triple)) for part in quads for triple in part.triples]


def _encoded(table: pa.Table, dictionary: Dictionary) -> Triples:
    """Encode triples given as texts; those with a term that functions made wrongly are left out."""
    columns = [table[name].combine_chunks() for name in TRIPLE_COLUMNS]
    texts = pa.concat_arrays(columns).dictionary_encode()
    terms = texts.dictionary
    is_valid = pc.match_substring_regex(terms, _TERM).to_numpy(zero_copy_only=False)
    # Computed literals may have a language tag that is not canonical.
    tagged = pc.match_substring_regex(terms, '"@[A-Za-z0-9-]*[A-Z]')
    if pc.any(tagged).as_py():
        written = [text_of(canonical(term_of(t))) for t in terms.filter(tagged).to_pylist()]
        terms = pc.replace_with_mask(terms, tagged, pa.array(written, terms.type))
    ids = np.zeros(len(terms), np.uint32)
    ids[is_valid] = dictionary.encode_texts(terms.filter(pa.array(is_valid)))
    places = texts.indices.to_numpy().reshape(3, -1)
    rows = ids[places[:, is_valid[places].all(axis=0)]]
    return Triples(*rows)


def _explicit_triples(tx: Transaction) -> Tables:
    explicit = tx.current().reasoner.explicit
    return {p: explicit.rows(p) for p in explicit.predicates() if p.relation == TRIPLE}


# -- graphs ----------------------------------------------------------------------------------------


def _load(tx: Transaction, operation: Parsed, load: LoadFrom) -> None:
    node = operation.algebra
    if node.target is not None:
        raise unsupported(operation, "INTO GRAPH", node.span, _ONE_GRAPH)
    try:
        with fetched(node.iri.value, load) as path:
            tx.load(path)
    except CorollaryError as error:
        if error.code != "E569":
            raise
        raise error_at(
            operation.source, error.code, error.message, node.span, error.hint
        ) from error


def _clear(tx: Transaction, operation: Parsed) -> None:
    """CLEAR and DROP: delete the explicit triples; derived ones follow from what is left."""
    node = operation.algebra
    if isinstance(node.target, IRI):
        _refuse_named_graphs(operation)
    if node.target != "NAMED":
        tx.request(_explicit_triples(tx), inserts=False)


def _refuse_named_graphs(operation: Parsed) -> None:
    node = operation.algebra
    if node.name in ("Add", "Move", "Copy") and node.source is None and node.target is None:
        return  # from the default graph to itself
    raise unsupported(operation, node.name.upper(), node.span, _ONE_GRAPH)


def _refuse_graph(operation: Parsed, quads: Quads) -> None:
    if quads.graph is not None:
        assert quads.span is not None, "a graph is in the text"
        raise unsupported(operation, "GRAPH", quads.span, _ONE_GRAPH)
