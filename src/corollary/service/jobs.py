"""The jobs of worker processes: what a service does with a store.

Each job is a function of a `Session` and of the arguments of a request. It returns JSON values or
an `Answer`; mistakes are errors with codes.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from corollary.core.graphs import DEFAULT, DERIVED
from corollary.core.terms import text_of
from corollary.errors import CorollaryError, InvalidInput
from corollary.knowledge_base.base import KnowledgeBase
from corollary.knowledge_base.differences import changes_since, diff
from corollary.knowledge_base.fact_forms import read_fact
from corollary.knowledge_base.patterns import is_pattern
from corollary.lang.printer import Printer
from corollary.lang.substitute import matched
from corollary.lang.syntax import IRI, TRIPLE, TRIPLES_NAME, Atom, Constant, Rule, Variable
from corollary.query.graphs import Dataset
from corollary.query.results import Solutions, TripleTable
from corollary.service.maintained import Change, View, listed, pattern_of, rows_of
from corollary.service.negotiation import choose, content_type, written
from corollary.service.settings import Limits
from corollary.service.sparql import Graphs
from corollary.service.words import in_words
from corollary.store import Store
from corollary.store.places import Place, store_path

_KEPT_VERSIONS = 2  # older versions that a worker keeps open
_KEPT_RESULTS = 16
_VERSIONS_AT_ONCE = 100  # of a change feed
_KEPT_VIEWS = 256
_MOST_DECODED = 200_000  # changes that views are brought up to date by
_RELATIVE = re.compile(r"<(?![A-Za-z][A-Za-z0-9+.-]*:)[^<>\s\"{}|^`\\]*>")  # an IRI
_TOO_MANY_ROWS = "E607"

Json = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """A serialized answer."""

    body: bytes
    content_type: str
    version: int


class Session:
    """A store as one worker sees it: the newest version, and a few older ones."""

    def __init__(
        self, store: str, storage_options: Mapping[str, str], limits: Limits, threads: int
    ) -> None:
        self.limits = limits
        self.newest = 0  # the newest version that the service knows
        self.base: int | None = None  # the version that a commit changes
        self._store, self._options, self._threads = store, storage_options, threads
        self._current: KnowledgeBase | None = None
        self._older: OrderedDict[int, KnowledgeBase] = OrderedDict()
        self._results: OrderedDict[tuple[object, ...], Any] = OrderedDict()
        self.views: OrderedDict[str, View] = OrderedDict()  # by query

    @property
    def place(self) -> Place:
        """The place of the store."""
        return store_path(self._store, self._options)

    def store(self) -> Store:
        """The store."""
        return Store.open(self.place)

    def at(self, version: int | None = None) -> KnowledgeBase:
        """Open a version, by default the newest."""
        if self._current is None:
            self._current = self._open(None)
        elif self._current.version < self.newest:
            self._current.refresh()
        if version is None or version == self._current.version:
            return self._current
        if version not in self._older:
            self._older[version] = self._open(version)
        self._older.move_to_end(version)
        if len(self._older) > _KEPT_VERSIONS:
            self._older.popitem(last=False)
        return self._older[version]

    def once(self, key: tuple[object, ...], work: Callable[[], Any]) -> Any:
        """Return the result of some work, computed once per key."""
        if key not in self._results:
            self._results[key] = work()
            if len(self._results) > _KEPT_RESULTS:
                self._results.popitem(last=False)
        return self._results[key]

    def close(self) -> None:
        """Forget all versions; the next job opens them again."""
        self._current = None
        self._older.clear()
        self._results.clear()
        self.views.clear()

    def outcome(self) -> str:
        """Describe what an interrupted job leaves behind."""
        if self.base is None:
            return "nothing was returned"
        now = self.store().latest()
        if now == self.base:
            return f"nothing was committed, the store is still at version {now}"
        return f"it was committed as version {now}"

    def _open(self, version: int | None) -> KnowledgeBase:
        return KnowledgeBase.open(
            self.place,
            at_version=version,
            threads=self._threads,
            limit_memory=self.limits.memory,
        )


# -- queries ---------------------------------------------------------------------------------------


def query(
    session: Session,
    text: str,
    accept: str,
    version: int | None = None,
    graphs: Graphs | None = None,
    base: str = "",
) -> Answer:
    """Answer a query in a format that the client accepts."""
    kb, text = session.at(version), based(text, base)
    media, format_ = choose(_form(kb, text), accept)
    answer = kb.query(text, limit_rows=session.limits.rows, dataset=dataset_of(graphs))
    body = written(answer, format_, kb.prefixes)
    return Answer(body, content_type(media), kb.version)


def based(text: str, base: str) -> str:
    """Add the base of relative IRIs, on the first line: places of errors have the same line.

    >>> based("ASK { <s> ?p ?o }", "http://localhost/sparql")
    'BASE <http://localhost/sparql> ASK { <s> ?p ?o }'
    """
    return f"BASE <{base}> {text}" if base and _RELATIVE.search(text) else text


def dataset_of(graphs: Graphs | None) -> Dataset | None:
    """The dataset of the graphs that a request names."""
    if graphs is None:
        return None
    default, named = (tuple(map(IRI, names)) for names in graphs)
    return Dataset(default, named)


def _form(kb: KnowledgeBase, text: str) -> str:
    if is_pattern(text):
        terms = kb.state.pattern(text).terms
        return "SELECT" if any(isinstance(term, Variable) for term in terms) else "ASK"
    return kb.state.query_engine().plan(text, kb.prefixes).form


def plan(session: Session, text: str, version: int | None = None) -> Json:
    """Show how a query is answered."""
    kb = session.at(version)
    return {"version": kb.version, "plan": kb.explain_query(text)}


def answers(session: Session, text: str, version: int) -> list[Json]:
    """The answers to a query at a version, for a subscription."""
    kb = session.at(version)
    found = kb.query(text, limit_rows=session.limits.rows)
    return [{"boolean": found}] if isinstance(found, bool) else [*found.to_pylist()]


def follow(session: Session, text: str, since: int, until: int) -> list[Json] | None:
    """The answers that come and go with each version after one, until another.

    None if the query or the store is not suitable: its answers have to be compared.
    """
    view = session.views.pop(text, None)
    if view is None or view.version != since:
        kb = session.at(since)
        pattern = pattern_of(text, kb.prefixes) if listed(kb) else None
        if pattern is None:
            return None
        try:
            view = View(pattern, kb, session.limits.rows)
            asked = kb.query(text, limit_rows=session.limits.rows)
        except CorollaryError as error:
            if error.code != _TOO_MANY_ROWS:
                raise
            return None
        if not isinstance(asked, Solutions) or view.answers != view.counted(asked.to_pylist()):
            return None
    events: list[Json] = []
    changes = session.once(("changes", since, until), lambda: _decoded(session, since, until))
    if changes is None:
        return None
    for version, found in changes:
        came, gone = view.advance(version, found)
        events.append({"version": version, "came": rows_of(came), "gone": rows_of(gone)})
    view.version = until  # versions without changes are not listed
    session.views[text] = view
    if len(session.views) > _KEPT_VIEWS:
        session.views.popitem(last=False)
    return events


def _decoded(session: Session, since: int, until: int) -> list[tuple[int, list[Change]]] | None:
    """The changes of each version; None if there are very many."""
    found: list[tuple[int, list[Change]]] = []
    left = _MOST_DECODED
    for commit, differences in changes_since(session.store(), since):
        if commit.version > until:
            break
        left -= len(differences)
        if left < 0:
            return None
        facts = [(kind, fact) for kind, fact, _ in differences.facts()]
        found.append((commit.version, facts))
    return found


def graph(
    session: Session, accept: str, version: int | None = None, graph: str | None = None
) -> Answer:
    """The triples of the default graph and all derived ones, or those of a named graph."""
    media, format_ = choose("CONSTRUCT", accept)
    kb = session.at(version)
    if graph is not None:
        require_graph(kb, graph)
    dataset = Dataset((DEFAULT, DERIVED) if graph is None else (IRI(graph),), ())
    text = "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }"
    found = kb.query(text, limit_rows=session.limits.rows, dataset=dataset)
    assert isinstance(found, TripleTable), "CONSTRUCT returns triples"
    return Answer(written(found, format_, kb.prefixes), content_type(media), kb.version)


def require_graph(kb: KnowledgeBase, graph: str) -> None:
    """Fail unless a graph has a statement."""
    if not has_graph(kb, graph):
        raise InvalidInput("E615", "there is no such graph", "a graph exists while it has triples")


def has_graph(kb: KnowledgeBase, graph: str) -> bool:
    """Whether a graph has a statement."""
    return bool(kb.query("ASK { ?s ?p ?o }", dataset=Dataset((IRI(graph),), ())))


def facts(session: Session, pattern: str, limit: int, version: int | None = None) -> Json:
    """The facts that match a pattern, each with whether it is explicit."""
    kb = session.at(version)
    atom = kb.state.pattern(pattern)
    table = kb.facts(atom)
    rows = table.slice(0, limit).to_pylist()
    shown = []
    for row in rows:
        explicit = row.pop("explicit")
        shown.append({"terms": [*row.values()], "explicit": explicit})
    return {
        "version": kb.version,
        "relation": TRIPLES_NAME if atom.relation == TRIPLE else atom.relation,
        "count": table.num_rows,
        "facts": shown,
    }


def status(session: Session, triples: Sequence[Sequence[str]], version: int | None = None) -> Json:
    """Tell for each triple whether it is explicit, derived or neither."""
    kb = session.at(version)
    explicit = kb.state.reasoner.explicit
    found = []
    for triple in triples:
        if len(triple) != 3:
            raise InvalidInput("E600", f"a triple has three terms, found {len(triple)}")
        facts = kb.state.reasoner.match(kb.state.pattern(f"[{', '.join(triple)}]"))
        own = len(facts.intersection(explicit))
        found.append("explicit" if own else "derived" if len(facts) else "absent")
    return {"version": kb.version, "status": found}


# -- proofs and contradictions ---------------------------------------------------------------------


def explain(session: Session, fact: str, version: int | None = None) -> Json:
    """Prove a fact."""
    kb = session.at(version)
    proof = kb.explain(fact)
    rules = {node.rule: None for node in proof.nodes() if node.rule is not None}
    return {
        "version": kb.version,
        "proof": proof.to_json(),
        "rules": described(rules, kb.prefixes),
        "text": str(proof),
        "dot": proof.to_dot(),
    }


def described(rules: Iterable[Rule], prefixes: Mapping[str, str]) -> dict[str, Json]:
    """Map the texts of rules to their names and sentences."""
    printer = Printer(prefixes)
    return {
        printer.rule(rule).removesuffix(" ."): {
            "name": rule.name,
            "words": in_words(rule, prefixes),
        }
        for rule in rules
    }


def check(session: Session, limit: int, version: int | None = None) -> Json:
    """Find contradictions, each with proofs."""
    kb = session.at(version)

    def find() -> Json:
        found = kb.inconsistencies(limit=limit)
        rules: dict[Rule, None] = {}
        for one in found:
            nodes = (node for proof in one.proofs for node in proof.nodes())
            rules.update({node.rule: None for node in nodes if node.rule is not None})
        return {
            "version": kb.version,
            "consistent": not found,
            "inconsistencies": [one.to_json() for one in found],
            "rules": described(rules, kb.prefixes),
        }

    result: Json = session.once(("check", kb.version, limit), find)
    return result


# -- rules and the schema --------------------------------------------------------------------------


def rules(session: Session, mentions: str | None = None, version: int | None = None) -> Json:
    """The rules and constraints, or those that mention an IRI."""
    kb = session.at(version)
    program = kb.program
    found = [*program.rules, *program.constraints]
    if mentions is not None:
        listed = dict.fromkeys((*found, *kb.specialized.rules))
        found = [rule for rule in listed if IRI(mentions) in _constants(rule)]
    printer = Printer(kb.prefixes)
    return {
        "version": kb.version,
        "rules": [
            {
                "name": rule.name,
                "text": printer.rule(rule),
                "words": in_words(rule, kb.prefixes),
                "constraint": rule.is_constraint,
            }
            for rule in found
        ],
    }


def _constants(rule: Rule) -> set[Constant]:
    atoms = [rule.head, *rule.body]
    return {term for atom in atoms if isinstance(atom, Atom) for term in atom.constants()}


def schema(session: Session, version: int | None = None) -> Json:
    """The hierarchies of classes and properties, with counts."""
    kb = session.at(version)
    result: Json = session.once(("schema", kb.version), lambda: kb.schema().to_json())
    return {"version": kb.version, **result}


def info(session: Session, version: int | None = None) -> Json:
    """A summary of the store."""
    kb = session.at(version)
    return {
        "version": kb.version,
        "facts": kb.count(),
        "explicit": len(kb.state.reasoner.explicit),
        "rules": len(kb.program.rules),
        "mode": kb.mode,
        "prefixes": dict(kb.prefixes),
    }


# -- versions --------------------------------------------------------------------------------------


def log(session: Session, limit: int, before: int | None = None) -> Json:
    """The newest commits, or those before a version."""
    store = session.store()
    newest = store.latest()
    first = newest if before is None else min(before - 1, newest)
    versions = range(first, max(-1, first - limit), -1)
    return {"newest": newest, "commits": [store.commit(number).summary() for number in versions]}


def difference(session: Session, first: int, second: int | None, limit: int) -> Json:
    """The changes between two versions."""
    store = session.store()
    until = store.latest() if second is None else second
    found = diff(store, first, until)
    printer = Printer(store.commit(until).prefixes)
    rows = [change_json(*row, printer) for row in islice(found.facts(), limit)]
    return {
        "from": first,
        "to": until,
        **found.counts(),
        "changes": rows,
        "complete": len(rows) == len(found),
    }


def changes(
    session: Session, since: int, limit: int, pattern: str | None = None, until: int | None = None
) -> list[Json]:
    """The commits after a version, oldest first, each with what came and went.

    A commit without a change that matches the pattern is omitted, except the last one, which
    then has no changes: so that a reader knows how far it has come.
    """
    store = session.store()
    atom = None
    if pattern is not None:
        state = session.at().state
        atom = read_fact(pattern, state.arities, state.all_prefixes)
    events: list[Json] = []
    for commit, found in islice(changes_since(store, since), _VERSIONS_AT_ONCE):
        if until is not None and commit.version > until:
            break
        printer = Printer(commit.prefixes)
        matching = (
            row for row in found.facts() if atom is None or matched(atom, row[1], {}) is not None
        )
        rows = [change_json(*row, printer) for row in islice(matching, limit + 1)]
        event = commit.summary() | {"changes": rows[:limit], "complete": len(rows) <= limit}
        event["matches"] = atom is None or bool(rows)
        events.append(event)
    return events


def change_json(change: str, fact: Atom, explicit: bool, printer: Printer) -> Json:
    """A change as JSON: its kind, the fact as text and as terms, and whether it is explicit."""
    terms = [text_of(term) for term in fact.terms if not isinstance(term, Variable)]
    relation = TRIPLES_NAME if fact.relation == TRIPLE else fact.relation
    return {
        "change": change,
        "fact": printer.atom(fact),
        "relation": relation,
        "terms": terms,
        "explicit": explicit,
    }


JOBS: dict[str, Callable[..., Any]] = {
    job.__name__: job
    for job in (
        query,
        plan,
        answers,
        follow,
        graph,
        facts,
        status,
        explain,
        check,
        rules,
        schema,
        info,
        log,
        difference,
        changes,
    )
}
