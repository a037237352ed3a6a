"""The SHACL Rules language (SPARQL-RL) to rules and facts.

W3C Working Draft "SHACL 1.2 Rules" (2026): its text language, `.srl`. A rule with several triples
in its head becomes several rules, a blank node of a head a `SKOLEM` of the variables of the body,
a path a chain of triples, and a `NOT` of more than one triple an auxiliary relation.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn
from urllib.parse import unquote, urlsplit

from corollary.errors import Diagnostic, Source, Span, nearest
from corollary.lang.expression_parser import ExpressionParser
from corollary.lang.iris import resolve
from corollary.lang.lexer import Token
from corollary.lang.srl_lexer import tokenize
from corollary.lang.srl_triples import Triples
from corollary.lang.syntax import (
    IRI,
    TRIPLE,
    Atom,
    Bind,
    BlankNode,
    BodyLiteral,
    Expression,
    Filter,
    Literal,
    Negation,
    Operation,
    Rule,
    Term,
    Variable,
    expression_variables,
)
from corollary.lang.term_parser import Mistake

MEDIA_TYPE = "application/sparql-rl"
_STATEMENTS = ("RULE", "IF", "DATA", "PREFIX", "BASE", "IMPORTS", "VERSION")
_RDF12 = ("<<(", "<<", "~", "{|")
_TRIPLE_FUNCTIONS = ("TRIPLE", "SUBJECT", "PREDICATE", "OBJECT", "ISTRIPLE")
_NAME = re.compile(r"[^\W_][\w.:\-]*\Z")
_NOT_IN_NAME = re.compile(r"[^\w.:\-]+")
_LEXICAL = ("E102", "E108")
_OF_SPARQL = {  # elements of SPARQL that rules write in another way
    "BIND": "write SET(?v := expression)",
    "OPTIONAL": "write a rule with the triples, and one with NOT { … }",
    "UNION": "write a rule for each alternative",
    "MINUS": "write NOT { … }",
    "VALUES": "write FILTER(?v IN (…)) after a triple that binds ?v",
    "GRAPH": "rules read the default graph",
    "SERVICE": "load the data of the service first",
    "SELECT": "write a rule for the inner query",
}


@dataclass
class _Body:
    """The elements of a body, in order."""

    literals: list[BodyLiteral] = field(default_factory=list)
    bound: dict[Variable, None] = field(default_factory=dict)  # in the order of their binding
    labels: dict[str, Variable] = field(default_factory=dict)  # of blank nodes

    def add(self, literal: BodyLiteral) -> None:
        """Append an element."""
        self.literals.append(literal)
        if isinstance(literal, Atom):
            self.bound.update(dict.fromkeys(literal.variables()))
        elif isinstance(literal, Bind):
            self.bound[literal.variable] = None

    def atoms(self) -> list[BodyLiteral]:
        """What binds variables."""
        return [one for one in self.literals if isinstance(one, Atom | Bind)]


class SrlParser(ExpressionParser):
    """Parses one document; `problems` collects its mistakes.

    >>> parser = SrlParser(Source("example", "RULE { ?x :q ?y } WHERE { ?y ^:p ?x }"), {"": "urn:"})
    >>> [len(rule.body) for rule in parser.statements()]
    [1]
    """

    def __init__(self, source: Source, prefixes: dict[str, str] | None = None) -> None:
        self.base: str | None = None
        self.imports: list[Path] = []
        self._grounded: list[tuple[Atom, Span]] = []  # patterns of the data alone
        self._identity = hashlib.sha256(source.text.encode(errors="replace")).hexdigest()[:8]
        self._blank_nodes = self._variables = 0
        used = max(map(len, re.findall(r"[?$](_+)", source.text)), default=0)
        self._prefix_of_variables = "_" * (used + 1)
        self._auxiliary: list[Rule] = []  # the rules of auxiliary relations of the current rule
        super().__init__(source, prefixes)

    def _tokenize(self) -> Iterator[Token]:
        return tokenize(self.source, self.problems)

    # -- statements --------------------------------------------------------------------------

    def statements(self) -> Iterator[Rule]:
        """The rules and facts of the document; a fact is a rule with an empty body."""
        rules: list[Rule] = []
        while self._token.kind != "end":
            before, start = len(self.problems), self._token
            try:
                rules += self._statement()
            except Mistake as mistake:
                if len(self.problems) == before or self.problems[-1].code not in _LEXICAL:
                    self.problems.append(mistake.diagnostic)
                self._skip_statement(start)
        self._check_grounded(rules)
        yield from rules

    def _statement(self) -> list[Rule]:
        token = self._token
        word = token.text.upper() if token.kind == "word" else ""
        if word not in _STATEMENTS:
            close = nearest(word, _STATEMENTS)
            hint = f"did you mean {close}?" if close else None
            self._unexpected("RULE, IF, DATA, PREFIX, BASE or IMPORTS", hint)
        self._advance()
        match word:
            case "PREFIX":
                self._prefix()
            case "BASE":
                self.base = self._iri_reference().value
                self._constants.clear()
            case "VERSION":
                if self._token.kind != "string":
                    self._unexpected("a version such as '1.2'")
                self._advance()
            case "IMPORTS":
                self._import()
            case "DATA":
                return self._data()
            case "RULE":
                return self._rule(token)
            case "IF":
                return self._if(token)
        return []

    def _import(self) -> None:
        start = self._token
        iri = self._iri_reference().value
        file = local_file(iri)
        if file is None:
            self._fail(
                "E125",
                f"<{iri}> is no local file",
                start,
                "download the document, and import the file",
            )
        self.imports.append(file)

    def _prefix(self) -> None:
        name = self._token
        if name.kind != "prefixed" or not name.text.endswith(":") or name.text.count(":") != 1:
            self._unexpected("a prefix such as 'ex:'")
        self._advance()
        self.prefixes[name.text[:-1]] = self._iri_reference().value
        self._constants.clear()

    def _iri_reference(self) -> IRI:
        if self._token.kind not in ("iri", "prefixed"):
            self._unexpected("an IRI in angle brackets")
        found = self.constant()
        assert isinstance(found, IRI), "the token is one"
        return found

    def _skip_statement(self, start: Token) -> None:
        """Skip to the next word that begins a statement."""
        depth, before = 0, ""
        if self._token is start and start.kind != "end":
            self._advance()
        while self._token.kind != "end":
            depth += {"{": 1, "}": -1}.get(self._token.kind, 0)
            is_start = self._token.kind == "word" and self._token.text.upper() in _STATEMENTS[:6]
            is_start = is_start and before not in ("WHERE", "NOT")  # as in WHERE DATA { … }
            if is_start and depth <= 0 and self._next.kind in ("{", "iri", "prefixed"):
                return
            before = self._advance().text.upper()

    def _data(self) -> list[Rule]:
        reader = Triples(self, "data")
        self._block(reader)
        return [Rule(atom, (), None, atom.span) for atom in reader.atoms]

    def _rule(self, start: Token) -> list[Rule]:
        name = None
        if self._token.kind in ("iri", "prefixed"):
            shown = self._token.text
            iri = self._iri_reference().value
            name = shown.lstrip(":") if shown[0] != "<" else re.split(r"[/#]", iri)[-1]
        head = Triples(self, "head")
        self._block(head)
        if self._token.kind == "word" and self._token.text.upper() == "FOR":
            self.refuse(
                "E127",
                "FOR ties a rule to the nodes of a SHACL shape, which is not supported",
                "write the condition of the shape in the body: ?this a :Class",
            )
        self._word("WHERE")
        return self._finish(head, self._body(self._accept_word("DATA")), name, start)

    def _if(self, start: Token) -> list[Rule]:
        body = self._body(grounded=False)
        self._word("THEN")
        head = Triples(self, "head")
        self._block(head)
        return self._finish(head, body, None, start)

    def _finish(self, head: Triples, body: _Body, name: str | None, start: Token) -> list[Rule]:
        """One rule for each triple of the head, and those of the auxiliary relations."""
        span = self._span(start.start, self._end)
        name = _NOT_IN_NAME.sub("-", name) if name else None
        name = name if name and _NAME.match(name) else None
        literals = list(body.literals)
        visible = list(body.bound)
        for label, variable in head.blank_nodes.items():
            # The same node for the same values; rules with other texts have other nodes.
            digest = hashlib.sha256(span.text.encode(errors="replace")).hexdigest()[:16]
            key = Literal(f"{digest}/{label}")
            literals.append(Bind(Operation("SKOLEM", (key, *visible), span), variable, span=span))
        made = list(self._auxiliary)
        self._auxiliary.clear()
        if not literals:
            return [*made, *(Rule(atom, (), None, atom.span or span) for atom in head.atoms)]
        return [*made, *(Rule(atom, tuple(literals), name, span) for atom in head.atoms)]

    # -- bodies ------------------------------------------------------------------------------

    def _body(self, grounded: bool) -> _Body:
        body = _Body()
        self._expect("{")
        while not self._accept("}"):
            token = self._token
            word = token.text.upper() if token.kind == "word" else ""
            if word == "FILTER":
                body.add(self._filter(body))
            elif word == "SET":
                body.add(self._assignment(body))
            elif word == "NOT":
                body.add(self._negation(body, grounded=grounded))
            else:
                self._patterns(body, grounded)
                continue
            self._accept(".")
        return body

    def _patterns(self, body: _Body, grounded: bool) -> None:
        """Triples with full stops between."""
        while True:
            self._refuse_sparql()
            reader = Triples(self, "body", body.labels)
            reader.read_subject()
            for atom in reader.atoms:
                body.add(atom)
                if grounded:
                    self._grounded.append((atom, atom.span or self._span(0, 0)))
            if not self._accept("."):
                if not self._ends_triples():
                    self._unexpected("'.' or '}' after a triple")
                return
            if self._ends_triples():
                return

    def _refuse_sparql(self) -> None:
        """Refuse elements of SPARQL that the draft does not have."""
        word = self._token.text.upper() if self._token.kind == "word" else ""
        if word in _OF_SPARQL:
            self.refuse("E101", f"{word} is not part of the bodies of rules", _OF_SPARQL[word])

    def _ends_triples(self) -> bool:
        """Whether no further triple follows."""
        self._refuse_sparql()
        token = self._token
        word = token.text.upper() if token.kind == "word" else ""
        return token.kind in ("}", "end") or word in ("FILTER", "SET", "NOT")

    def _filter(self, body: _Body) -> Filter:
        start = self._advance()
        if self._token.kind == "(":
            self._advance()
            expression = self._expression(1, 0)
            self._expect(")", "an operator or ')'")
        elif self._next.kind == "(":
            expression = self._call(0)
        else:
            self._unexpected("'(' or a function after FILTER")
        span = self._span(start.start, self._end)
        self._check_bound(expression, body, "FILTER", span)
        return Filter(expression, span)

    def _assignment(self, body: _Body) -> Bind:
        start = self._advance()
        self._expect("(", "'(' after SET")
        place = self._token
        variable = self._variable()
        self._expect(":=", "':=' after the variable")
        expression = self._expression(1, 0)
        self._expect(")", "an operator or ')'")
        span = self._span(start.start, self._end)
        self._check_bound(expression, body, "SET", span)
        if variable in body.bound:
            self._fail(
                "E124",
                f"SET gives ?{variable.name} a value, but it has one already",
                place,
                "give the result a name of its own, and compare: FILTER(?a = ?b)",
            )
        return Bind(expression, variable, span=span)

    def _check_bound(self, expression: Expression, body: _Body, word: str, span: Span) -> None:
        for variable in expression_variables(expression):
            if variable not in body.bound:
                close = nearest(variable.name, [one.name for one in body.bound])
                self._fail(
                    "E124",
                    f"{word} reads ?{variable.name}, but nothing before it binds ?{variable.name}",
                    span,
                    f"did you mean ?{close}?" if close else "write the triple that binds it first",
                )

    def _negation(self, body: _Body, *, grounded: bool) -> BodyLiteral:
        """`NOT { … }`: one triple is negated itself, more are an auxiliary relation."""
        start = self._advance()
        grounded = self._accept_word("DATA") or grounded
        inner = _Body([], dict(body.bound), body.labels)
        self._expect("{")
        while not self._accept("}"):
            word = self._token.text.upper() if self._token.kind == "word" else ""
            if word in ("SET", "NOT"):
                hint = "NOT holds triples and filters; write a rule for the rest"
                self._fail("E101", f"{word} cannot stand inside NOT", self._token, hint)
            if word == "FILTER":
                inner.add(self._filter(inner))
                self._accept(".")
            else:
                self._patterns(inner, grounded)
        span = self._span(start.start, self._end)
        if len(inner.literals) == 1 and isinstance(inner.literals[0], Atom):
            return Negation(inner.literals[0], span)
        return Negation(self._auxiliary_atom(body, inner, span), span)

    def _auxiliary_atom(self, body: _Body, inner: _Body, span: Span) -> Atom:
        """The atom of a relation that holds where the block has a solution."""
        used: dict[Variable, None] = {}
        own: dict[Variable, None] = {}
        for literal in inner.literals:
            assert isinstance(literal, Atom | Filter), "NOT holds triples and filters"
            used.update(dict.fromkeys(literal.variables()))
            if isinstance(literal, Atom):
                own.update(dict.fromkeys(literal.variables()))
        shared = tuple(variable for variable in used if variable in body.bound)
        # Filters may read variables that only the rule binds.
        outer = [] if used.keys() <= own.keys() else body.atoms()
        literals = (*outer, *inner.literals)
        key = repr(Rule(Atom("_", shared), literals).key).encode(errors="replace")
        atom = Atom(f"_not_{hashlib.sha256(key).hexdigest()[:16]}", shared, span)
        if literals:
            self._auxiliary.append(Rule(atom, literals, None, span))
        else:  # NOT {} never holds
            self._auxiliary.append(Rule(atom, (), None, span))
        return atom

    def _check_grounded(self, rules: Iterable[Rule]) -> None:
        """Refuse patterns of the data alone that match what the document states or derives."""
        heads = [rule for rule in rules if rule.head.relation == TRIPLE]
        for atom, span in self._grounded:
            found = [rule for rule in heads if _may_match(atom, rule.head)]
            if any(rule.body for rule in found):
                message = "DATA reads triples that a rule derives too"
                hint = "give the derived triples another property, and leave DATA out"
            elif found:
                message = "DATA reads triples that this document states too"
                hint = "move the triples of the document to a file of data"
            else:
                continue
            self.problems.append(Diagnostic("E126", message, span, hint))

    # -- terms -------------------------------------------------------------------------------

    def _block(self, reader: Triples) -> None:
        """Triples in braces."""
        self._expect("{")
        while not self._accept("}"):
            reader.read_subject()
            if self._token.kind != "}":
                self._expect(".", "'.' or '}' after a triple")

    def _term(self, *, in_triple: bool = False) -> Term:
        self._refuse_rdf12()
        return self._variable() if self._token.kind == "variable" else self.constant()

    def _refuse_rdf12(self) -> None:
        if self._token.kind in _RDF12:
            self._fail(
                "E123",
                "triple terms and reification of RDF 1.2 are not supported",
                self._token,
                "describe the statement by a resource with properties of its own",
            )

    def _call(self, depth: int) -> Operation:
        if self._token.text.upper() in _TRIPLE_FUNCTIONS:
            self.refuse("E123", "triple terms of RDF 1.2 are not supported")
        return super()._call(depth)

    def _iri(self, token: Token) -> str:
        return resolve(self.base, super()._iri(token))

    def fresh_variable(self) -> Variable:
        """A variable that the document does not use."""
        self._variables += 1
        return Variable(f"{self._prefix_of_variables}{self._variables}")

    def fresh_node(self) -> BlankNode:
        """A blank node that the document does not use."""
        self._blank_nodes += 1
        return BlankNode(f"srl-{self._identity}-{self._blank_nodes}")

    def _word(self, word: str) -> None:
        if not self._accept_word(word):
            self._unexpected(word)

    def _accept_word(self, word: str) -> bool:
        if self._token.kind == "word" and self._token.text.upper() == word:
            self._advance()
            return True
        return False

    def refuse(self, code: str, message: str, hint: str | None = None) -> NoReturn:
        """Report the current token."""
        self._fail(code, message, self._token, hint)


def _may_match(pattern: Atom, head: Atom) -> bool:
    """Whether a head may derive a triple that matches a pattern."""
    return all(
        isinstance(one, Variable) or isinstance(two, Variable) or one == two
        for one, two in zip(pattern.terms, head.terms, strict=True)
    )


def local_file(iri: str) -> Path | None:
    """The file that `IMPORTS` names; None if it is not local.

    >>> local_file("file:///srv/rules.srl"), local_file("http://example.org/rules.srl")
    (PosixPath('/srv/rules.srl'), None)
    """
    parts = urlsplit(iri)
    if parts.scheme not in ("", "file") or parts.netloc not in ("", "localhost"):
        return None
    return Path(unquote(parts.path))
