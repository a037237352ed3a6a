"""The jobs that change a store, and previews of changes."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from email.parser import BytesParser
from email.policy import HTTP
from itertools import islice
from pathlib import Path
from typing import Any

from corollary.errors import CorollaryError, InvalidInput
from corollary.knowledge_base.base import KnowledgeBase
from corollary.knowledge_base.transaction import Transaction
from corollary.knowledge_base.transaction_changes import TransactionChanges
from corollary.lang.printer import Printer
from corollary.lang.syntax import IRI, Atom
from corollary.service.exchange import unsupported_media
from corollary.service.graph_store import FORM_DATA, SUFFIXES
from corollary.service.jobs import (
    JOBS,
    Json,
    Session,
    based,
    change_json,
    dataset_of,
    described,
    has_graph,
    require_graph,
)
from corollary.service.sparql import Graphs

_SHOWN = 1000  # changes in an answer

Work = Callable[[Transaction], None]


def update(
    session: Session, text: str, graphs: Graphs | None = None, base: str = "", message: str = ""
) -> Json:
    """Execute a SPARQL update. LOAD is refused: it would read files and addresses."""
    dataset, text = dataset_of(graphs), based(text, base)
    return _commit(session, lambda tx: tx.update(text, load="none", dataset=dataset), message)


def transact(session: Session, changes: Mapping[str, str], message: str = "") -> Json:
    """Insert and delete facts, add and remove rules, all in one version."""
    return _commit(session, lambda tx: _apply(tx, changes), message)


def put_graph(
    session: Session,
    content_type: str,
    data: bytes,
    graph: str | None,
    *,
    replaces: bool,
    exists: bool = False,
    base: str = "",
    message: str = "",
) -> Json:
    """Add the triples of documents to a graph, or replace all of its explicit triples by them.

    A graph that `exists` must have triples.
    """
    found = list(documents(content_type, data))
    name = None if graph is None else IRI(graph)
    kb = session.at()
    if exists and graph is not None:
        require_graph(kb, graph)
    creates = graph is not None and not has_graph(kb, graph)

    def work(tx: Transaction) -> None:
        if replaces:
            tx.clear_graph(name)
        for suffix, text in found:
            # Files are read with guards against hostile documents, and rename blank nodes.
            with tempfile.NamedTemporaryFile(prefix="corollary-", suffix=suffix) as file:
                file.write(text)
                file.flush()
                tx.load(Path(file.name), graph=name, base_iri=graph or base or None)

    try:
        return _commit(session, work, message) | {"created": creates}
    except CorollaryError as error:
        if error.file is not None:  # a name that means nothing to the client
            error.message = error.message.replace(error.file, "the document")
            error.file = None
        raise


def documents(content_type: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    """The documents in a body, each with the suffix of its syntax.

    >>> [*documents("text/turtle; charset=utf-8", b"<a> <b> <c> .")]
    [('.ttl', b'<a> <b> <c> .')]
    """
    media = content_type.partition(";")[0].strip().lower()
    if media != FORM_DATA:
        if data:
            yield SUFFIXES[media], data
        return
    head = f"Content-Type: {content_type}\r\n\r\n".encode("latin-1", "replace")
    try:
        parsed = BytesParser(policy=HTTP).parsebytes(head + data)
        parts = [*parsed.iter_parts()] if parsed.is_multipart() else []
    except (RecursionError, ValueError):
        parts = []
    if not parts:
        raise InvalidInput("E600", "the body of the request is not multipart/form-data")
    for part in parts:
        suffix = SUFFIXES.get(part.get_content_type())
        content = part.get_payload(decode=True)
        if suffix is None or not isinstance(content, bytes):
            raise unsupported_media(part.get_content_type(), tuple(SUFFIXES))
        yield suffix, content


def preview(session: Session, changes: Mapping[str, str]) -> Json:
    """Compute what changes would follow, and commit nothing."""
    kb = session.at()
    with kb.transaction() as tx:
        _apply(tx, changes)
        found = tx.preview()
        tx.rollback()
    rules = {
        node.rule: None
        for one in found.contradictions
        for proof in one.proofs
        for node in proof.nodes()
        if node.rule is not None
    }
    return changes_json(found, kb.prefixes) | {
        "contradictions": [one.to_json() for one in found.contradictions],
        "rules": described(rules, kb.prefixes),
    }


def _apply(tx: Transaction, changes: Mapping[str, str]) -> None:
    for name, apply in (
        ("remove_rules", tx.remove_rules),
        ("add_rules", tx.add_rules),
        ("delete", tx.delete),
        ("insert", tx.insert),
    ):
        if changes.get(name, "").strip():
            apply(changes[name])
    if changes.get("update", "").strip():
        tx.update(changes["update"], load="none")


def revert(
    session: Session, version: int | None = None, to: int | None = None, message: str = ""
) -> Json:
    """Commit the inverse of a version, or what brings a version back."""
    return _retry(session, lambda kb: kb.revert(version, to=to, message=message))


def _commit(session: Session, work: Work, message: str) -> Json:
    """Commit a transaction."""

    def transact(kb: KnowledgeBase) -> TransactionChanges:
        with kb.transaction(message=message) as tx:
            work(tx)
        return tx.changes

    return _retry(session, transact)


def _retry(session: Session, commit: Callable[[KnowledgeBase], TransactionChanges]) -> Json:
    """Commit; if another process has committed meanwhile, try once more."""
    for attempt in range(2):
        kb = session.at()
        session.base = kb.version
        try:
            changes = commit(kb)
        except CorollaryError as error:
            if error.code != "E502" or attempt:
                raise
            session.close()
        else:
            break
    return changes_json(changes, kb.prefixes) | {"newest": kb.version}


def changes_json(changes: TransactionChanges, prefixes: Mapping[str, str]) -> Json:
    """The changes of a transaction as JSON; of many, the first ones.

    >>> kb = KnowledgeBase("q(?x) :- p(?x) .")
    >>> with kb.transaction() as tx:
    ...     tx.insert("p(1) .")
    >>> [change["fact"] for change in changes_json(tx.changes, {})["changes"]]
    ['p(1)', 'q(1)']
    """
    printer = Printer(prefixes)
    inserted, deleted = changes.inserted, changes.deleted
    rows = islice(_rows(changes, inserted["explicit"], deleted["explicit"]), _SHOWN)
    shown = [change_json(kind, fact, flag, printer) for kind, fact, flag in rows]
    return {
        "version": changes.version,
        "inserted": inserted.num_rows,
        "deleted": deleted.num_rows,
        "changes": shown,
        "complete": len(shown) == len(changes),
        "added_rules": [printer.rule(rule) for rule in changes.added_rules],
        "removed_rules": [printer.rule(rule) for rule in changes.removed_rules],
        "not_deleted": [printer.atom(fact) for fact in islice(changes.not_deleted, _SHOWN)],
        "algorithm": changes.statistics.algorithm,
        "seconds": round(sum(changes.statistics.seconds.values()), 6),
    }


def _rows(
    changes: TransactionChanges, inserted: Any, deleted: Any
) -> Iterator[tuple[str, Atom, bool]]:
    """The changes with their flags; each kind has its explicit facts first."""
    explicit = {"+": sum(inserted.to_pylist()), "-": sum(deleted.to_pylist())}
    seen = {"+": 0, "-": 0}
    for sign, fact in changes:
        seen[sign] += 1
        kind = "inserted" if sign == "+" else "deleted"
        yield kind, fact, seen[sign] <= explicit[sign]


ALL_JOBS: Mapping[str, Callable[..., Any]] = JOBS | {
    job.__name__: job for job in (update, transact, put_graph, revert, preview)
}
