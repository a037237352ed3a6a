"""SPARQL 1.1 Update: execute the operations of a request in a transaction.

Operations with a pattern read the state after the earlier operations, consequences included. An
operation only requests insertions and deletions of explicit statements; the transaction derives
what follows, and commits all operations as one version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.dictionary import Dictionary, Ids
from corollary.core.graphs import DEFAULT, NAMESPACE, QUAD
from corollary.core.tables import Tables, narrow
from corollary.core.terms import canonical, term_of, text_of
from corollary.errors import CorollaryError, InvalidInput
from corollary.knowledge_base.graphs import check_graph, graph_tables, into_graph, quads_of
from corollary.knowledge_base.remote_files import fetched
from corollary.lang.syntax import (
    IRI,
    QUAD_COLUMNS,
    QUADS,
    TRIPLE,
    Atom,
    BlankNode,
    Constant,
    Term,
    Variable,
)
from corollary.query.engine import instances
from corollary.query.graphs import Dataset, dataset_of
from corollary.query.parse import Parsed, error_at, parse_update, unsupported
from corollary.query.paths import variable_name
from corollary.query.syntax.algebra import Node
from corollary.query.syntax.updates import Quads
from corollary.rdf.triples import Triples

if TYPE_CHECKING:
    from corollary.knowledge_base.transaction import LoadFrom, Transaction

_IRI = r"<[^<>\"{}|^`\\\x00-\x20]*>"
_TERM = rf"^(?s:{_IRI}|_:\S+|\".*\"(?:@[A-Za-z0-9-]+|\^\^{_IRI})?)$"


def execute(
    tx: Transaction,
    text: str,
    *,
    load: LoadFrom,
    name: str,
    default_graph: str | Dataset = "union",
    dataset: Dataset | None = None,
) -> None:
    """Execute a request; see `Transaction.update`."""
    base = dataset or dataset_of(default_graph)
    for operation in parse_update(text, tx.prefixes, name):
        node = operation.algebra
        match node.name:
            case "InsertData":
                tx.insert(_facts(operation, node.quads, _scope(tx.dictionary)))
            case "DeleteData":
                tx.delete(_facts(operation, node.quads, ""))
            case "Modify":
                if dataset is not None and (node.with_ or node.using or node.using_named):
                    raise unsupported(
                        operation,
                        "WITH or USING",
                        node.span,
                        "the request has a dataset of its own",
                    )
                _modify(tx, operation, base)
            case "Load":
                _silently(node, partial(_load, tx, operation, load))
            case "Clear" | "Drop":
                _silently(node, partial(_clear_target, tx, operation))
            case "Create":
                _silently(node, partial(_create, tx, operation))
            case _:
                _silently(node, partial(_transfer, tx, operation))


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
    """The statements of INSERT DATA or DELETE DATA; `scope` makes blank nodes new."""

    def term(part: Term) -> Term:
        return BlankNode(scope + part.label.lstrip()) if isinstance(part, BlankNode) else part

    facts = []
    for part in quads:
        graph = _named(operation, part.graph, part.span)
        for subject, predicate, object_ in part.triples:
            assert not isinstance(predicate, Node), "data have no paths"
            terms = (term(subject), predicate, term(object_))
            facts.append(Atom(TRIPLE, terms) if graph is None else Atom(QUADS, (*terms, graph)))
    return facts


def _named(operation: Parsed, graph: Any, span: tuple[int, int] | None) -> Any:
    """The named graph of statements; None for the default graph."""
    if graph is None or graph == DEFAULT:
        return None
    if isinstance(graph, IRI) and span is not None:
        try:
            check_graph(graph)
        except InvalidInput as error:
            raise _at(operation, error, span) from error
    return graph


def _at(operation: Parsed, error: CorollaryError, span: tuple[int, int]) -> InvalidInput:
    return error_at(operation.source, error.code, error.message, span, error.hint)


def _modify(tx: Transaction, operation: Parsed, dataset: Dataset) -> None:
    """DELETE and INSERT with WHERE: the pattern is matched once, and deletions come first."""
    node = operation.algebra
    if node.with_ is not None:
        dataset = Dataset((node.with_,), dataset.named)
    if node.using or node.using_named:
        dataset = Dataset(tuple(node.using), tuple(node.using_named))
    templates = [_template(operation, quads) for quads in (node.deleted, node.inserted)]
    terms = dict.fromkeys(term for template in templates for row in template for term in row)
    variables = [term for term in terms if isinstance(term, str) and not term.startswith("_:")]
    found = tx.current().query_engine().solutions(operation, node.pattern, variables, dataset)
    columns = {name: found.table[name].combine_chunks() for name in variables}
    scopes = ("", _scope(tx.dictionary))
    deleted, inserted = (
        _encoded(instances(template, columns, len(found), scope), tx.dictionary)
        for template, scope in zip(templates, scopes, strict=True)
    )
    tx.delete(deleted)
    tx.insert(inserted)


def _template(operation: Parsed, quads: Iterable[Quads]) -> list[Sequence[str | Constant]]:
    """A template for `instances`: variables and blank nodes by name, the graph last."""

    def name(term: Term | Node) -> str | Constant:
        assert not isinstance(term, Node), "a template has no paths"
        return variable_name(term) if isinstance(term, Variable | BlankNode) else term

    with_ = operation.algebra.with_
    rows: list[Sequence[str | Constant]] = []
    for part in quads:
        graph = with_ if part.graph is None else part.graph
        graph = _named(operation, graph, part.span or operation.algebra.span)
        own = [] if graph is None else [name(graph)]
        rows += [(*map(name, triple), *own) for triple in part.triples]
    return rows


def _encoded(rows: Iterable[list[pa.Array]], dictionary: Dictionary) -> Triples:
    """Encode statements given as texts, without those with a term that may not stand there."""
    parts: dict[int, list[list[pa.Array]]] = {3: [], 4: []}
    for row in rows:
        parts[len(row)].append(row)
    (subject, predicate, object_), quads = (_ids(parts[n], n, dictionary) for n in (3, 4))
    return Triples(subject, predicate, object_, quads=quads.T)


def _ids(parts: Sequence[list[pa.Array]], width: int, dictionary: Dictionary) -> Ids:
    """Encode statements by column; those with an invalid term are left out."""
    if not parts:
        return np.empty((width, 0), np.uint32)
    table = pa.concat_tables(pa.table(part, names=QUAD_COLUMNS[:width]) for part in parts)
    table = table.drop_null()
    keeps = pc.and_(
        pc.invert(pc.starts_with(table["subject"], '"')), pc.starts_with(table["predicate"], "<")
    )
    if width == 4:
        pseudo = pc.starts_with(table["graph"], f"<{NAMESPACE}")
        keeps = pc.and_not(
            pc.and_(keeps, pc.match_substring_regex(table["graph"], "^[<_]")), pseudo
        )
    table = table.filter(keeps)
    columns = [table[name].combine_chunks() for name in table.column_names]
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
    places = texts.indices.to_numpy().reshape(width, -1)
    rows: Ids = ids[places[:, is_valid[places].all(axis=0)]]
    return rows


# -- graphs ----------------------------------------------------------------------------------------


def _load(tx: Transaction, operation: Parsed, load: LoadFrom) -> None:
    node = operation.algebra
    graph = _named(operation, node.target, node.span)
    try:
        with fetched(node.iri.value, load) as path:
            tx.load(path, graph=graph)
    except CorollaryError as error:
        if error.code != "E569":
            raise
        raise _at(operation, error, node.span) from error


def _clear(tx: Transaction, target: Constant | str) -> None:
    """CLEAR and DROP: delete explicit statements; derived ones follow from what is left.

    Graphs exist for as long as they have statements, so there is no difference between the two.
    """
    state = tx.current()
    if target in ("DEFAULT", "ALL", DEFAULT):
        tx.request(graph_tables(state, None), inserts=False)
    if target in ("NAMED", "ALL"):
        tx.request({QUAD: quads_of(state.reasoner.explicit)}, inserts=False)
    if isinstance(target, IRI) and target != DEFAULT:
        tx.request(graph_tables(state, target), inserts=False)


def _clear_target(tx: Transaction, operation: Parsed) -> None:
    """CLEAR or DROP of the default graph or a named one, but of no other pseudo-graph."""
    target = operation.algebra.target
    if isinstance(target, IRI):
        _named(operation, target, operation.algebra.span)
    _clear(tx, target)


def _create(tx: Transaction, operation: Parsed) -> None:
    """CREATE: nothing to do, as empty graphs are not recorded."""
    node = operation.algebra
    if _named(operation, node.target, node.span) is None or graph_tables(tx.current(), node.target):
        error = InvalidInput("E349", f"the graph <{node.target.value}> exists", "use CREATE SILENT")
        raise _at(operation, error, node.span)


def _transfer(tx: Transaction, operation: Parsed) -> None:
    """ADD, COPY and MOVE, of the explicit statements of a graph."""
    node = operation.algebra
    source, target = (_named(operation, graph, node.span) for graph in (node.source, node.target))
    if source == target:
        return
    state = tx.current()
    tables = graph_tables(state, source)
    if not tables and source is not None:
        error = InvalidInput("E349", f"there is no graph <{source.value}>", "it has no statements")
        raise _at(operation, error, node.span)
    if node.name != "Add":
        _clear(tx, DEFAULT if target is None else target)
    tx.request(_moved(tables, target, tx.dictionary), inserts=True)
    if node.name == "Move":
        tx.request(tables, inserts=False)


def _moved(tables: Tables, target: Constant | None, dictionary: Dictionary) -> Tables:
    """The statements of one graph as those of another one."""
    if QUAD in tables:
        tables = narrow(TRIPLE, [*tables[QUAD].T[:3]], dictionary)
    return tables if target is None else into_graph(tables, target, dictionary)
