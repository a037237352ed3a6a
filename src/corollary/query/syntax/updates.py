"""SPARQL 1.1 Update: a request to its operations.

| node | parts |
| --- | --- |
| `InsertData`, `DeleteData` | `quads` |
| `Modify` | `deleted`, `inserted`, `pattern`, `with_`, `using`, `using_named` |
| `Load` | `iri`, `target` (None: the default graph), `silent` |
| `Clear`, `Drop` | `target`: an IRI, or `DEFAULT`, `NAMED` or `ALL`; `silent` |
| `Create` | `target`, `silent` |
| `Add`, `Move`, `Copy` | `source`, `target` (None: the default graph), `silent` |

Every node has the `span` of its first keyword. `DELETE WHERE` is a `Modify` whose template is its
pattern. A quad is a triple pattern with its graph: None (the default graph), an IRI or a variable.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from corollary.lang.printer import Printer
from corollary.lang.syntax import IRI, BlankNode, Literal, Variable
from corollary.query.syntax.algebra import Node, TriplePattern
from corollary.query.syntax.queries import QueryParser
from corollary.query.syntax.tokens import Mistake, Token
from corollary.query.syntax.triples import Scope

GraphName = IRI | Variable | None


class Quads(NamedTuple):
    """Triple patterns of one graph, and the place of `GRAPH` in the text."""

    graph: GraphName
    triples: list[TriplePattern]
    span: tuple[int, int] | None = None


class UpdateParser(QueryParser):
    """Reads update requests."""

    def request(self) -> list[Node]:
        """The whole text: its operations in order; each may follow a prologue."""
        operations: list[Node] = []
        while True:
            self.prologue()
            if self.at("end"):
                return operations
            operations.append(self._operation())
            if not self.accept(";"):
                self.expect("end")
                return operations

    def _operation(self) -> Node:
        word = self.token
        match word.kind:
            case "INSERT" | "DELETE" | "WITH":
                return self._modify()
            case "LOAD":
                return self._load()
            case "CLEAR" | "DROP":
                word, silent = self._keyword()
                target = self.accept("DEFAULT", "NAMED", "ALL")
                graph = self._graph() if target is None else target.kind
                return Node(word.kind.title(), target=graph, silent=silent, span=word.span)
            case "CREATE":
                word, silent = self._keyword()
                return Node("Create", target=self._graph(), silent=silent, span=word.span)
            case "ADD" | "MOVE" | "COPY":
                word, silent = self._keyword()
                source = self._graph_or_default()
                self.expect("TO")
                parts = {"source": source, "target": self._graph_or_default()}
                return Node(word.kind.title(), **parts, silent=silent, span=word.span)
        raise self.unexpected("INSERT, DELETE, LOAD, CLEAR, DROP, CREATE, ADD, MOVE or COPY")

    def _keyword(self) -> tuple[Token, bool]:
        """The keyword of an operation, and whether SILENT follows."""
        return self.advance(), self.accept("SILENT") is not None

    def _load(self) -> Node:
        word, silent = self._keyword()
        iri = self.iri()
        target = self._graph() if self.accept("INTO") else None
        return Node("Load", iri=iri, target=target, silent=silent, span=word.span)

    def _graph(self) -> IRI:
        self.expect("GRAPH")
        return self.iri()

    def _graph_or_default(self) -> IRI | None:
        if self.accept("DEFAULT"):
            return None
        self.accept("GRAPH")
        return self.iri()

    # -- changes of triples ------------------------------------------------------------------------

    def _modify(self) -> Node:
        word = self.token
        with_ = self.iri() if self.accept("WITH") else None
        deleted: list[Quads] = []
        inserted: list[Quads] = []
        verb = self.expect("INSERT", "DELETE")
        if with_ is None and self.accept("DATA"):
            return self._data(verb)
        if verb.kind == "DELETE" and with_ is None and self.accept("WHERE"):
            self.new_block()
            quads = self._quads("DELETE WHERE", blank_nodes=False)
            parts = {"deleted": quads, "inserted": [], "pattern": _pattern(quads)}
            return Node("Modify", **parts, with_=None, using=[], using_named=[], span=word.span)
        if verb.kind == "DELETE":
            deleted = self._quads("a DELETE template", blank_nodes=False)
            if self.accept("INSERT"):
                inserted = self._template_quads()
        else:
            inserted = self._template_quads()
        using: list[IRI] = []
        using_named: list[IRI] = []
        while self.accept("USING"):
            (using_named if self.accept("NAMED") else using).append(self.iri())
        self.expect("WHERE")
        return Node(
            "Modify",
            deleted=deleted,
            inserted=inserted,
            pattern=self.group(),
            with_=with_,
            using=using,
            using_named=using_named,
            span=word.span,
        )

    def _data(self, verb: Token) -> Node:
        """INSERT DATA or DELETE DATA; blank node labels belong to one operation."""
        self.new_block()
        where = f"{verb.kind} DATA"
        quads = self._quads(where, blank_nodes=verb.kind == "INSERT", variables=False)
        return Node(f"{verb.kind.title()}Data", quads=quads, span=verb.span)

    def _template_quads(self) -> list[Quads]:
        """The template of INSERT, whose blank node labels are local to it."""
        saved, self._labels = self._labels, {}
        quads = self._quads("an INSERT template")
        self._labels = saved
        return quads

    def _quads(
        self, where: str, *, blank_nodes: bool = True, variables: bool = True
    ) -> list[Quads]:
        """Triples in braces, without paths, some of them in `GRAPH`."""
        start = self.expect("{")
        self._paths = False
        quads: list[Quads] = []
        while True:
            self._collect(quads, None)
            word = self.accept("GRAPH")
            if word is None:
                break
            graph = self.variable() if self.at("variable") else self.iri()
            self.expect("{")
            self._collect(quads, graph, word.span)
            self.expect("}")
            self.accept(".")
        end = self.expect("}")
        self._paths = True
        for part in quads:
            literal = next((s for s, _, _ in part.triples if isinstance(s, Literal)), None)
            if literal is not None and not variables:
                text = Printer(well_known=False).term(literal)
                raise Mistake(f"the literal {text} cannot be a subject", (start.start, end.end))
            terms = [part.graph, *(term for triple in part.triples for term in triple)]
            _check(terms, where, (start.start, end.end), blank_nodes, variables)
        return quads

    def _collect(
        self, quads: list[Quads], graph: GraphName, span: tuple[int, int] | None = None
    ) -> None:
        self._triples, self._scope = [], {}
        self.triples("}")
        if self._triples or graph is not None:
            quads.append(Quads(graph, self._triples, span))


def _check(
    terms: Sequence[object], where: str, span: tuple[int, int], blank_nodes: bool, variables: bool
) -> None:
    for term in terms:
        if isinstance(term, Variable) and not variables:
            hint = "use DELETE or INSERT with WHERE"
            raise Mistake(f"{where} contains the variable ?{term.name}", span, hint)
        if isinstance(term, BlankNode) and not blank_nodes:
            hint = "use a variable: a blank node stands for any term, or for a new one"
            raise Mistake(f"{where} contains a blank node", span, hint)


def _pattern(quads: list[Quads]) -> Node:
    """The pattern that matches quads."""
    parts: list[Node] = []
    scope: Scope = {}
    for part in quads:
        names = _variables(part.triples)
        inner = Node("BGP", triples=part.triples, scope=names)
        scope |= names
        if part.graph is None:
            parts.append(inner)
            continue
        own: Scope = {part.graph.name: None} if isinstance(part.graph, Variable) else {}
        scope |= own
        parts.append(Node("Graph", term=part.graph, span=part.span, p=inner, scope=own | names))
    match parts:
        case []:
            return Node("BGP", triples=[], scope={})
        case [one]:
            return one
    return Node("Join", parts=parts, scope=scope)


def _variables(triples: list[TriplePattern]) -> Scope:
    return {term.name: None for triple in triples for term in triple if isinstance(term, Variable)}
