"""Tokens to a program: recursive descent, one statement at a time.

After a mistake, the parser resumes behind the next full stop, so one run reports every mistake of a
file. `validate` checks what needs the whole program: arities, safety, strata.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NoReturn, TypeVar

from corollary.errors import InvalidProgram, Source, nearest
from corollary.lang import parse_declarations
from corollary.lang.declarations import Input, Output, Relation
from corollary.lang.expression_parser import MAX_NESTING, PRECEDENCE, ExpressionParser
from corollary.lang.functions import spelled
from corollary.lang.lexer import Token
from corollary.lang.syntax import (
    AGGREGATE_FUNCTIONS,
    EXTREMA,
    FALSE,
    IRI,
    QUADS,
    RESERVED,
    TRIPLE,
    TYPE,
    Aggregate,
    Atom,
    Bind,
    Binding,
    BodyLiteral,
    Filter,
    Negation,
    Rule,
    Term,
    Variable,
    name_problem,
)
from corollary.lang.term_parser import SHOWN_CHARACTERS, WELL_KNOWN_PREFIXES, Mistake

__all__ = ["MAX_NESTING", "WELL_KNOWN_PREFIXES", "Mistake", "Parser", "parse_atom"]

_LEXICAL = ("E102", "E108")
# Tokens with which a condition may begin, and no atom that a sign follows.
_CONDITIONS = ("variable", "integer", "decimal", "double", "string")
_ARITHMETIC = ("+", "-", "*", "/")

# How words that are reserved are used.
_USES = {
    FALSE: "a constraint is written false :- p(?x) .",
    "FILTER": "a condition is written FILTER(?x > 1)",
    "BIND": "a value is bound by BIND(?x + 1 AS ?y)",
    "AGGREGATE": "an aggregate is written AGGREGATE(p(?x, ?y) ON ?x BIND count(?y) AS ?n)",
}

T = TypeVar("T")


class Parser(ExpressionParser):
    """Parses one source; `problems` collects its mistakes.

    >>> parser = Parser(Source("example", "p(?x) :- q(?x, 1) ."))
    >>> [rule.head.relation for rule in parser.statements()]
    ['p']
    """

    def __init__(self, source: Source, prefixes: dict[str, str] | None = None) -> None:
        super().__init__(source, prefixes)
        self.declarations: list[Relation | Input | Output] = []
        self._extrema: list[Bind] = []  # of the heads of the rule that is read
        self._may_have_extremum = False

    # -- statements --------------------------------------------------------------------------

    def statements(self) -> Iterator[Rule]:
        """The rules and facts of the text; a fact is a rule with an empty body."""
        while self._token.kind != "end":
            before = len(self.problems)
            try:
                rules = self._statement()
            except Mistake as mistake:
                # An invalid character has been reported already.
                if len(self.problems) == before or self.problems[-1].code not in _LEXICAL:
                    self.problems.append(mistake.diagnostic)
                self._skip_statement()
                continue
            yield from rules

    def read_whole(self, read: Callable[[Parser], T]) -> T | None:
        """Read the whole text with `read`; None if it holds anything else."""
        try:
            value = read(self)
            self._accept(".")
            if self._token.kind != "end":
                self._unexpected("the end of the text")
        except Mistake as mistake:
            self.problems.append(mistake.diagnostic)
            return None
        return value

    def rules(self) -> list[Rule]:
        """`[name] head, … :- body .`: one rule per head; the head may be `false`."""
        start = self._token.start
        self._extrema.clear()
        self._may_have_extremum = False
        name = None
        if self._token.kind == "name":
            name = self._advance().text[1:-1].strip()
        if self._token.text == FALSE and self._next.kind == ":-":
            token = self._advance()
            heads = [Atom(FALSE, (), self._span(token.start, token.end))]
        else:
            heads = list(self._separated(self._head))
        body: tuple[BodyLiteral, ...] = ()
        if len(heads) > 1 and self._token.kind != ":-":
            assert heads[1].span is not None, "it was parsed"
            self._fail(
                "E106",
                "several atoms are the heads of a rule, but a fact stands alone",
                heads[1].span,
                "end each fact by a full stop",
            )
        if self._extrema and self._token.kind != ":-":
            extremum = self._extrema[0]
            assert extremum.span is not None, "it was parsed"
            self._fail(
                "E216",
                f"{extremum.extremum} chooses among the matches of a body, and a fact has none",
                extremum.span,
                "write the value alone, or a body after ':-'",
            )
        if self._accept(":-"):
            body = tuple(self._separated(self._body_literal))
        if self._token.kind != ".":
            begins = self._token.kind in ("word", "iri", "prefixed", "[", "name")
            self._unexpected(
                "',' or '.' after a body atom" if body else "':-' or '.' after the head",
                "is a full stop missing before it?" if begins else None,
            )
        self._advance()
        span = self._span(start, self._end)
        if body:  # what a rule derives into a graph is a triple too
            heads += [Atom(TRIPLE, h.terms[:3], h.span) for h in heads if h.relation == QUADS]
        return [
            Rule(head, (*body, *(b for b in self._extrema if b.variable in head.terms)), name, span)
            for head in dict.fromkeys(heads)
        ]

    def _head(self, where: str = "the head") -> Atom:
        """An atom whose variables all have names."""
        token = self._token
        self._may_have_extremum = where == "the head"
        atom = self._atom()
        self._may_have_extremum = False
        self._refuse_anonymous(atom.variables(), token, where)
        return atom

    def _statement(self) -> list[Rule]:
        token = self._token
        is_tag = token.kind == "tag" and token.text == "@prefix"
        is_word = token.kind == "word" and token.text.upper() == "PREFIX"
        if is_tag or (is_word and self._next.kind == "prefixed"):
            self._advance()
            self._prefix_declaration()
            if not self._accept(".") and is_tag:
                self._unexpected("'.'")
            return []
        if token.kind == "tag" and token.text in parse_declarations.TAGS:
            self.declarations.append(parse_declarations.read_declaration(self))
            return []
        if token.kind == "." and parse_declarations.is_directive(self):
            parse_declarations.skip_directive(self)
            return []
        return self.rules()

    def _prefix_declaration(self) -> None:
        name = self._token
        if name.kind != "prefixed" or not name.text.endswith(":") or name.text.count(":") != 1:
            self._unexpected("a prefix such as 'ex:'")
        self._advance()
        if self._token.kind != "iri":
            self._unexpected("the IRI of the prefix, in angle brackets")
        self.prefixes[name.text[:-1]] = self._iri(self._advance())
        self._constants.clear()

    def _skip_statement(self) -> None:
        """Skip past the next full stop."""
        while self._token.kind not in (".", "lost", "end"):
            self._advance()
        if self._token.kind != "end":
            self._advance()

    # -- atoms -------------------------------------------------------------------------------

    def _body_literal(self) -> BodyLiteral:
        token = self._token
        if token.kind == "word" and self._next.kind == "(":
            if token.text == "FILTER":
                return self._filter()
            if token.text == "BIND":
                return self._bind()
            if token.text == "AGGREGATE":
                return self._aggregate()
        elif (
            token.kind == "word"
            and token.text in ("NOT", "not")
            and self._next.kind in ("word", "prefixed", "iri", "[")
        ):
            self._advance()
            atom = self._atom()
            return Negation(atom, self._span(token.start, self._end))
        elif token.kind == "!":
            self._fail("E101", "'!' cannot begin an atom", token, "negation is written NOT p(?x)")
        elif token.kind in _CONDITIONS and self._next.kind in PRECEDENCE:
            self._fail_condition(token)
        return self._atom()

    def _fail_condition(self, start: Token) -> NoReturn:
        """A condition that stands where an atom should."""
        self._expression(1, 0)
        span = self._span(start.start, self._end)
        hint = f"write FILTER({span.text})"
        self._fail("E121", "a condition stands inside FILTER(…)", span, hint)

    def _atom(self) -> Atom:
        token = self._token
        if token.kind == "[":
            self._advance()
            terms = self._triple_terms()
            if self._at_graph():
                terms = (*terms, self._graph())
                return Atom(QUADS, terms, self._span(token.start, self._end))
            return Atom(TRIPLE, terms, self._span(token.start, self._end))
        if token.kind == "word":
            if token.text in RESERVED:
                message = f"'{token.text}' is a reserved word, not a relation"
                self._fail("E101", message, token, _USES.get(token.text))
            if (problem := name_problem(token.text)) is not None:
                self._fail("E511", problem[0], token, problem[1])
            self._advance()
            arguments = self._arguments() if self._token.kind == "(" else ()
            return Atom(token.text, arguments, self._span(token.start, self._end))
        if token.kind in ("iri", "prefixed"):
            predicate = self.constant()
            arguments = self._arguments(in_triple=True)
            span = self._span(token.start, self._end)
            if len(arguments) == 1:
                return Atom(TRIPLE, (arguments[0], TYPE, predicate), span)
            if len(arguments) == 2:
                return Atom(TRIPLE, (arguments[0], predicate, arguments[1]), span)
            self._fail(
                "E204",
                f"an atom whose predicate is an IRI is a triple and takes one or two arguments,"
                f" not {len(arguments)}",
                span,
                "C(?x) is [?x, a, C] and p(?x, ?y) is [?x, p, ?y]",
            )
        self._unexpected("an atom such as p(?x, ?y) or [?s, ?p, ?o]")

    def _arguments(self, *, in_triple: bool = False) -> tuple[Term, ...]:
        self._expect("(")
        if self._accept(")"):
            return ()
        terms = tuple(self._separated(lambda: self._argument(in_triple=in_triple)))
        sign = self._token.text
        if self._token.kind in _ARITHMETIC or sign[:1] in ("+", "-"):
            hint = "compute the value in the body: BIND(?x + 1 AS ?y)"
            self._fail("E101", f"'{sign[:1]}' cannot stand in an atom", self._token, hint)
        if self._token.kind in PRECEDENCE:
            hint = "conditions are written FILTER(?x > 1), in capitals, as an atom of their own"
            self._fail("E101", f"'{sign}' cannot stand in an atom", self._token, hint)
        self._expect(")", "',' or ')' after an argument")
        return terms

    def _argument(self, *, in_triple: bool) -> Term:
        """A term, or in a head `MIN(…)` or `MAX(…)`."""
        token = self._token
        if token.kind != "word" or self._next.kind != "(":
            return self._term(in_triple=in_triple)
        if token.text.upper() not in EXTREMA:
            self._refuse_call()
        if not self._may_have_extremum:
            self._fail(
                "E216",
                f"{token.text} stands in the head of a rule",
                token,
                "in a body, AGGREGATE(p(?x, ?y) ON ?x BIND min(?y) AS ?m) computes it",
            )
        self._advance()
        self._expect("(")
        expression = self._expression(1, 0)
        self._expect(")", "an operator or ')'")
        function = next(name for name in EXTREMA if name == token.text.upper())
        # With a space, so that no rule can name it.
        variable = Variable(f"{function} {len(self._extrema)}")
        self._extrema.append(
            Bind(expression, variable, function, self._span(token.start, self._end))
        )
        return variable

    def _refuse_call(self) -> NoReturn:
        """An argument that is a function, an aggregate, or an atom."""
        token, function = self._token, self._token.text.lower()
        if function in AGGREGATE_FUNCTIONS:
            hint = f"in a body, AGGREGATE(p(?x, ?y) ON ?x BIND {function}(?y) AS ?n) computes it"
        elif (name := spelled(token.text)) is not None:
            hint = f"compute the value in the body: BIND({name}(…) AS ?y)"
        else:
            hint = "the arguments of an atom are variables and constants"
        shown = token.text[:SHOWN_CHARACTERS]
        self._fail("E101", f"'{shown}(…)' cannot stand in an atom", token, hint)

    def _triple_terms(self) -> tuple[Term, ...]:
        subject = self._term(in_triple=True)
        self._expect(",", "',' after the subject of a triple")
        start = self._token
        if self._token.kind == "word" and self._token.text == "a":
            self._advance()
            predicate: Term = TYPE
        else:
            predicate = self._term(in_triple=True)
        if not isinstance(predicate, IRI | Variable):
            self._fail("E213", "the predicate of a triple is an IRI or a variable", start)
        self._expect(",", "',' after the predicate of a triple")
        object_ = self._argument(in_triple=True)
        self._expect("]", "']' after the object of a triple")
        return subject, predicate, object_

    def _at_graph(self) -> bool:
        """Whether the name of a graph follows a triple."""
        token = self._token
        if token.kind in ("iri", "prefixed"):
            return self._next.kind != "("  # an atom after a missing comma
        return token.kind in ("variable", "blank") or (token.kind, token.text) == ("word", "_")

    def _graph(self) -> Term:
        return self._term(in_triple=True)

    def _filter(self) -> Filter:
        start = self._advance().start
        self._expect("(")
        expression = self._expression(1, 0)
        self._expect(")", "an operator or ')'")
        return Filter(expression, self._span(start, self._end))

    def _bind(self) -> Bind:
        start = self._advance().start
        self._expect("(")
        expression = self._expression(1, 0)
        if self._token.text.upper() != "AS":
            self._unexpected("an operator or AS", "a value is bound by BIND(?x + 1 AS ?y)")
        self._advance()
        variable = self._variable()
        self._expect(")")
        return Bind(expression, variable, span=self._span(start, self._end))

    def _aggregate(self) -> Aggregate:
        start = self._advance().start
        self._expect("(")
        atoms = tuple(self._separated(self._atom))
        group: list[Variable] = []
        if self._token.text.upper() != "BIND":
            self._keyword("ON")
        while self._token.kind == "variable":
            group.append(self._variable())
            self._accept(",")
        bindings: list[Binding] = []
        while not bindings or self._token.kind == "word":
            self._keyword("BIND")
            token = self._token
            function = token.text.lower()
            if token.kind != "word" or function not in AGGREGATE_FUNCTIONS:
                close = nearest(function, AGGREGATE_FUNCTIONS)
                self._fail(
                    "E101",
                    f"'{token.text[:SHOWN_CHARACTERS]}' is not an aggregate function",
                    token,
                    f"did you mean {close}?" if close else "use " + ", ".join(AGGREGATE_FUNCTIONS),
                )
            self._advance()
            self._expect("(")
            distinct = self._token.text.upper() == "DISTINCT"
            if distinct:
                self._advance()
            argument = self._variable()
            separator = self._separator() if function == "group_concat" else " "
            if self._token.kind == ",":
                hint = "an aggregate has one variable"
                if function == "group_concat":
                    hint = 'a separator is written group_concat(?x; SEPARATOR = ", ")'
                self._unexpected("')'", hint)
            self._expect(")")
            self._keyword("AS")
            bindings.append(Binding(function, argument, self._variable(), distinct, separator))
        self._expect(")", "another BIND or ')'")
        return Aggregate(atoms, tuple(group), tuple(bindings), self._span(start, self._end))

    def _separator(self) -> str:
        """`; SEPARATOR = "…"`, by default a blank."""
        if not self._accept(";"):
            return " "
        self._keyword("SEPARATOR")
        self._expect("=")
        if self._token.kind != "string":
            self._unexpected("a string")
        return self._string().lexical


def parse_atom(text: str, prefixes: Mapping[str, str], name: str = "<text>") -> Atom:
    """Parse a text that is one atom; a full stop may follow.

    >>> parse_atom("path(?x, 3)", {}).relation
    'path'
    """
    parser = Parser(Source(name, text), dict(prefixes))
    atom = parser.read_whole(lambda read: read._head("a pattern"))
    if atom is None or parser.problems:
        raise InvalidProgram(parser.problems)
    return atom
