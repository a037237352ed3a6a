"""Triples of the SHACL Rules language with their abbreviations: blank nodes, lists and paths."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corollary.lang.syntax import IRI, RDF, TRIPLE, TYPE, Atom, BlankNode, Term, Variable

if TYPE_CHECKING:
    from corollary.lang.srl import SrlParser

FIRST, REST, NIL = IRI(RDF + "first"), IRI(RDF + "rest"), IRI(RDF + "nil")
_MAX_DEPTH = 100  # of nested blank nodes, lists and paths


class Triples:
    """Reads triples with their abbreviations, in one of three places: data, heads and bodies.

    A blank node is a constant in data, a variable in a body, and a node of its own for each
    solution in a head.
    """

    def __init__(
        self, parser: SrlParser, place: str, blank_nodes: dict[str, Variable] | None = None
    ) -> None:
        self.parser = parser
        self.place = place
        self.atoms: list[Atom] = []
        self.blank_nodes: dict[str, Variable] = {} if blank_nodes is None else blank_nodes
        self._depth = 0

    def read_subject(self) -> None:
        """A subject with its properties."""
        parser = self.parser
        if parser._token.kind in ("[", "(") and not self._is_anonymous():
            subject = self._node()
            if self._is_verb():
                self._properties(subject)
            return
        self._properties(self._node())

    def _is_anonymous(self) -> bool:
        parser = self.parser
        return (parser._token.kind, parser._next.kind) in (("[", "]"), ("(", ")"))

    def _is_verb(self) -> bool:
        token = self.parser._token
        return token.kind in ("iri", "prefixed", "variable", "^", "(") or token.text == "a"

    def _properties(self, subject: Term) -> None:
        parser = self.parser
        while True:
            steps = self._verb()
            self._object(subject, steps)
            while parser._accept(","):
                self._object(subject, steps)
            if not parser._accept(";"):
                return
            while parser._accept(";"):
                pass
            if not self._is_verb():
                return

    def _object(self, subject: Term, steps: list[tuple[Term, bool]]) -> None:
        parser = self.parser
        start = parser._token.start
        end = self._node()
        parser._refuse_rdf12()
        span = parser._span(start, parser._end)
        for number, (predicate, inverse) in enumerate(steps):
            last = number == len(steps) - 1
            step: Term = end if last else parser.fresh_variable()
            one, two = (step, subject) if inverse else (subject, step)
            self.atoms.append(Atom(TRIPLE, (one, predicate, two), span))
            subject = step

    def _verb(self) -> list[tuple[Term, bool]]:
        """The steps of a path: properties, each with whether it is read backward."""
        parser = self.parser
        if parser._token.kind == "variable":
            if self.place == "data":
                parser.refuse("E208", "DATA holds no variables")
            return [(parser._variable(), False)]
        if self.place == "body":
            return self._path()
        return [(self._property(), False)]

    def _property(self) -> Term:
        parser = self.parser
        if parser._token.kind == "word" and parser._token.text == "a":
            parser._advance()
            return TYPE
        if parser._token.kind == "^" or parser._token.kind == "/":
            parser.refuse("E101", "a path can stand in a body only")
        if parser._token.kind not in ("iri", "prefixed"):
            parser._unexpected("a property")
        return parser._iri_reference()

    def _path(self) -> list[tuple[Term, bool]]:
        parser = self.parser
        self._enter()
        steps = self._path_element()
        while parser._accept("/"):
            steps += self._path_element()
        self._depth -= 1
        if parser._token.kind in ("*", "+", "|"):
            parser.refuse(
                "E101",
                f"'{parser._token.kind}' is not part of these paths",
                "paths are sequences (/) of properties and inverse properties (^);"
                " write a recursive rule",
            )
        return steps

    def _path_element(self) -> list[tuple[Term, bool]]:
        parser = self.parser
        inverse = parser._accept("^")
        if parser._accept("("):
            steps = self._path()
            parser._expect(")", "'/' or ')' in a path")
        else:
            steps = [(self._property(), False)]
        if not inverse:
            return steps
        return [(predicate, not backward) for predicate, backward in reversed(steps)]

    def _node(self) -> Term:
        """A term, a blank node with properties, or a list."""
        parser = self.parser
        parser._refuse_rdf12()
        token = parser._token
        if token.kind == "blank":
            parser._advance()
            return self._labelled(token.text[2:])
        if token.kind == "[":
            parser._advance()
            node = self._fresh()
            if not parser._accept("]"):
                self._enter()
                self._properties(node)
                self._depth -= 1
                parser._expect("]", "';' or ']' after a property")
            return node
        if token.kind == "(":
            return self._list()
        if token.kind == "variable" and self.place == "data":
            parser.refuse("E208", "DATA holds no variables")
        return parser._term()

    def _list(self) -> Term:
        parser = self.parser
        span = parser._span(parser._token.start, parser._token.end)
        parser._advance()
        self._enter()
        nodes: list[Term] = []
        while not parser._accept(")"):
            nodes.append(self._node())
        self._depth -= 1
        rest: Term = NIL
        for node in reversed(nodes):
            cell = self._fresh()
            self.atoms.append(Atom(TRIPLE, (cell, FIRST, node), span))
            self.atoms.append(Atom(TRIPLE, (cell, REST, rest), span))
            rest = cell
        return rest

    def _fresh(self) -> Term:
        parser = self.parser
        if self.place == "data":
            return parser.fresh_node()
        if self.place == "body":
            return parser.fresh_variable()
        return self._labelled(f" {len(self.blank_nodes)}")  # no label has a blank

    def _labelled(self, label: str) -> Term:
        if self.place == "data":
            return BlankNode(label)
        return self.blank_nodes.setdefault(label, self.parser.fresh_variable())

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            self.parser.refuse("E105", f"terms are nested deeper than {_MAX_DEPTH} levels")
