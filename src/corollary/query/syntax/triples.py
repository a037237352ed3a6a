"""Triple patterns: abbreviations by `;` and `,`, collections, blank nodes, property paths."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from corollary.lang.syntax import IRI, RDF, TYPE, BlankNode, Variable
from corollary.query.syntax.algebra import Node
from corollary.query.syntax.terms import TermParser
from corollary.query.syntax.tokens import Mistake

Scope = dict[str, None]  # variables in scope, in the order of the text
_FIRST, _REST, _NIL = IRI(RDF + "first"), IRI(RDF + "rest"), IRI(RDF + "nil")


class TripleParser(TermParser):
    """Reads triple patterns into a list."""

    def __init__(self, text: str, prefixes: Mapping[str, str] | None) -> None:
        super().__init__(text, prefixes)
        self._triples: list[tuple[Any, Any, Any]] = []
        self._scope: Scope = {}
        self._paths = True  # whether verbs may be property paths
        self._labels: dict[str, int] = {}  # of blank nodes, with the graph pattern that they are in
        self._block = 0  # the basic graph pattern that triples belong to
        self._blocks = 0
        self._anonymous = 0

    def new_block(self) -> None:
        """Begin another basic graph pattern."""
        self._blocks += 1
        self._block = self._blocks

    def triples(self, end: str) -> None:
        """Triples with dots between them, up to a token that begins none."""
        while self._begins_triples():
            self._same_subject()
            if not self.accept("."):
                return
        if self.at("."):
            raise self.unexpected(f"a triple pattern or {end}")

    def _begins_triples(self) -> bool:
        return self.at(
            *("variable", "iri", "pname", "blank", "string", "long", "integer", "decimal"),
            *("double", "+", "-", "TRUE", "FALSE", "(", "["),
        )

    def _same_subject(self) -> None:
        if self.at("[", "("):
            subject, is_node = self._node()
            if is_node and not self._begins_verb():
                return
        else:
            subject = self._term()
        self._properties(subject)

    def _properties(self, subject: Any) -> None:
        while True:
            verb = self._verb()
            while True:
                # The triple stands before those that its object is made of.
                place = len(self._triples)
                object_, _ = self._node()
                self._triples.insert(place, (subject, verb, object_))
                if not self.accept(","):
                    break
            if not self.accept(";"):
                return
            while self.accept(";"):
                pass
            if not self._begins_verb():
                return

    def _begins_verb(self) -> bool:
        if self.at("variable", "iri", "pname") or self._is_type():
            return True
        return self._paths and self.at("^", "!", "(")

    def _is_type(self) -> bool:
        return self.token.text == "a"  # the one keyword that is not written in capitals

    def _verb(self) -> Any:
        if self.at("variable"):
            return self._noted(self.variable())
        if self._paths:
            return self.path()
        if self._is_type():
            self.advance()
            return TYPE
        if not self.at("iri", "pname"):
            raise self.unexpected("a predicate")
        return self.iri()

    def _node(self) -> tuple[Any, bool]:
        """A term, or a node that triples follow from, and which of the two it is."""
        if self.at("("):
            return self._collection()
        if self.at("["):
            self.advance()
            node = self._new_node()
            if self.accept("]"):
                return node, False
            self.enter()
            self._properties(node)
            self.leave()
            self.expect("]")
            return node, True
        return self._term(), False

    def _collection(self) -> tuple[Any, bool]:
        self.expect("(")
        if self.accept(")"):
            return _NIL, False
        self.enter()
        first = node = self._new_node()
        while True:
            place = len(self._triples)
            member, _ = self._node()
            self._triples.insert(place, (node, _FIRST, member))
            if self.accept(")"):
                break
            following = self._new_node()
            self._triples.append((node, _REST, following))
            node = following
        self._triples.append((node, _REST, _NIL))
        self.leave()
        return first, True

    def _new_node(self) -> BlankNode:
        self._anonymous += 1
        return BlankNode(f" {self._anonymous}")  # no label has a space

    def _term(self) -> Any:
        if self.at("variable"):
            return self._noted(self.variable())
        if self.at("blank"):
            return self._labeled()
        found = self.constant()
        if found is None:
            raise self.unexpected("a term")
        return found

    def _noted(self, variable: Variable) -> Variable:
        self._scope[variable.name] = None
        return variable

    def _labeled(self) -> BlankNode:
        token = self.advance()
        label = token.text[2:]
        if self._labels.setdefault(label, self._block) != self._block:
            raise Mistake(
                f"blank node {token.text} is used in two basic graph patterns",
                (token.start, token.end),
                "use a variable, which all patterns share",
            )
        return BlankNode(label)

    # -- property paths ----------------------------------------------------------------------------

    def path(self) -> Any:
        """A property path; an IRI if it is that simple."""
        parts = [self._sequence()]
        while self.accept("|"):
            parts.append(self._sequence())
        return parts[0] if len(parts) == 1 else Node("PathAlternative", parts=parts)

    def _sequence(self) -> Any:
        parts = [self._step()]
        while self.accept("/"):
            parts.append(self._step())
        return parts[0] if len(parts) == 1 else Node("PathSequence", parts=parts)

    def _step(self) -> Any:
        if self.accept("^"):
            return Node("PathInverse", path=self._repeated())
        return self._repeated()

    def _repeated(self) -> Any:
        if self.accept("("):
            self.enter()
            found = self.path()
            self.leave()
            self.expect(")")
        elif self.accept("!"):
            found = self._negated()
        else:
            found = self._property()
        if self.at("+") and self._is_signed():
            return found  # the object +1 follows
        mod = self.accept("?", "*", "+")
        return found if mod is None else Node("PathRepeat", path=found, mod=mod.kind)

    def _negated(self) -> Node:
        sides: tuple[list[IRI], list[IRI]] = ([], [])
        if self.accept("("):
            if not self.accept(")"):
                self._one_of(sides)
                while self.accept("|"):
                    self._one_of(sides)
                self.expect(")")
        else:
            self._one_of(sides)
        return Node("PathNegated", forward=sides[0], inverse=sides[1])

    def _one_of(self, sides: tuple[list[IRI], list[IRI]]) -> None:
        side = sides[1] if self.accept("^") else sides[0]
        side.append(self._property())

    def _property(self) -> IRI:
        if self._is_type():
            self.advance()
            return TYPE
        if not self.at("iri", "pname"):
            raise self.unexpected("a predicate")
        return self.iri()
