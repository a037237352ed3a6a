"""Triple patterns: abbreviations by `;` and `,`, collections, blank nodes, property paths."""

from __future__ import annotations

from collections.abc import Mapping

from corollary.lang.syntax import IRI, RDF, TYPE, BlankNode, Term, Variable
from corollary.query.syntax.algebra import Node, Path, TriplePattern
from corollary.query.syntax.terms import TermParser
from corollary.query.syntax.tokens import Mistake

Scope = dict[str, None]  # variables in scope, in the order of the text
_FIRST, _REST, _NIL = IRI(RDF + "first"), IRI(RDF + "rest"), IRI(RDF + "nil")


class TripleParser(TermParser):
    """Reads triple patterns into a list."""

    def __init__(self, text: str, prefixes: Mapping[str, str] | None) -> None:
        super().__init__(text, prefixes)
        self._triples: list[TriplePattern] = []
        self._scope: Scope = {}
        self._paths = True  # whether predicates may be property paths
        self._labels: dict[str, int] = {}  # blank node labels, each with its basic graph pattern
        self._block = 0  # the current basic graph pattern
        self._blocks = 0
        self._anonymous = 0

    def new_block(self) -> None:
        """Start another basic graph pattern."""
        self._blocks += 1
        self._block = self._blocks

    def triples(self, end: str) -> None:
        """Triples separated by dots, up to a token that starts no triple."""
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

    def _properties(self, subject: Term) -> None:
        while True:
            verb = self._verb()
            while True:
                # A triple precedes those of its object's collection or blank node.
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
        return self.token.text == "a"  # the only case-sensitive keyword

    def _verb(self) -> Path | Variable:
        if self.at("variable"):
            return self._in_scope(self.variable())
        if self._paths:
            return self.path()
        return self._property()

    def _node(self) -> tuple[Term, bool]:
        """A term or a compound node, and whether it is compound, i.e. has triples of its own."""
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

    def _collection(self) -> tuple[Term, bool]:
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
        return BlankNode(f" {self._anonymous}")  # labels have no spaces

    def _term(self) -> Term:
        if self.at("variable"):
            return self._in_scope(self.variable())
        if self.at("blank"):
            return self._blank_node()
        term = self.constant()
        if term is None:
            raise self.unexpected("a term")
        return term

    def _in_scope(self, variable: Variable) -> Variable:
        self._scope[variable.name] = None
        return variable

    def _blank_node(self) -> BlankNode:
        token = self.advance()
        label = token.text[2:]
        if self._labels.setdefault(label, self._block) != self._block:
            raise Mistake(
                f"blank node {token.text} is used in two basic graph patterns",
                token.span,
                "use a variable, which all patterns share",
            )
        return BlankNode(label)

    # -- property paths ----------------------------------------------------------------------------

    def path(self) -> Path:
        """A property path; a plain IRI stays an IRI."""
        args = self.separated(self._sequence, "|")
        return args[0] if len(args) == 1 else Node("PathAlternative", args=args)

    def _sequence(self) -> Path:
        args = self.separated(self._step, "/")
        return args[0] if len(args) == 1 else Node("PathSequence", args=args)

    def _step(self) -> Path:
        if self.accept("^"):
            return Node("PathInverse", path=self._repeated())
        return self._repeated()

    def _repeated(self) -> Path:
        element: Path
        if self.at("("):
            self.enter()
            element = self.bracketed(self.path)
            self.leave()
        elif self.accept("!"):
            element = self._negated()
        else:
            element = self._property()
        if self.at("+") and self._is_signed():
            return element  # the object +1 follows
        mod = self.accept("?", "*", "+")
        return element if mod is None else Node("PathRepeat", path=element, mod=mod.kind)

    def _negated(self) -> Node:
        if self.accept("("):
            properties = [] if self.at(")") else self.separated(self._negated_property, "|")
            self.expect(")")
        else:
            properties = [self._negated_property()]
        sides = [[iri for iri, inverse in properties if inverse is side] for side in (False, True)]
        return Node("PathNegated", forward=sides[0], inverse=sides[1])

    def _negated_property(self) -> tuple[IRI, bool]:
        """A property, and whether it is inverse."""
        inverse = self.accept("^") is not None
        return self._property(), inverse

    def _property(self) -> IRI:
        if self._is_type():
            self.advance()
            return TYPE
        if not self.at("iri", "pname"):
            raise self.unexpected("a predicate")
        return self.iri()
