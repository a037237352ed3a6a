"""Tokens to a program: recursive descent, one statement at a time.

After a mistake, the parser resumes behind the next full stop, so one run reports every mistake of a
file. `validate` checks what needs the whole program: arities, safety, strata.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import NoReturn, TypeVar

from corollary.errors import Diagnostic, InvalidProgram, Source, Span, nearest
from corollary.lang import parse_declarations
from corollary.lang.declarations import Input, Output, Relation
from corollary.lang.functions import FUNCTIONS, spelled
from corollary.lang.lexer import Token, tokenize
from corollary.lang.syntax import (
    AGGREGATE_FUNCTIONS,
    ESCAPES,
    FALSE,
    IRI,
    RDF,
    RESERVED,
    TRIPLE,
    TYPE,
    XSD,
    Aggregate,
    Atom,
    Binding,
    BlankNode,
    BodyLiteral,
    Constant,
    Expression,
    Filter,
    Literal,
    Negation,
    Operation,
    Rule,
    Term,
    Variable,
    name_problem,
)

# Levels of an expression: evaluation, printing and comparison recurse into it, and Python's stack
# holds 1,000 frames.
MAX_NESTING = 100

# Prefixes that a program may use without declaring them.
WELL_KNOWN_PREFIXES = {
    "rdf": RDF,
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "owl": "http://www.w3.org/2002/07/owl#",
    "xsd": XSD,
}

_PRECEDENCE = {
    "||": 1,
    "&&": 2,
    **dict.fromkeys(("=", "!=", "<", "<=", ">", ">="), 3),
    "+": 4,
    "-": 4,
    "*": 5,
    "/": 5,
}
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)", re.DOTALL)
_ESCAPES = {**ESCAPES, "'": "'"}
_LEXICAL = ("E102", "E108")
# Tokens with which a condition may begin, and no atom that a sign follows.
_CONDITIONS = ("variable", "integer", "decimal", "double", "string")
_SHOWN_CHARACTERS = 40  # characters of an unexpected token that a message repeats

T = TypeVar("T")


class Mistake(Exception):
    """Carries a diagnostic to the statement loop."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        self.diagnostic = diagnostic


class Parser:
    """Parses one source; `problems` collects its mistakes.

    >>> parser = Parser(Source("example", "p(?x) :- q(?x, 1) ."))
    >>> [rule.head.relation for rule in parser.statements()]
    ['p']
    """

    def __init__(self, source: Source, prefixes: dict[str, str] | None = None) -> None:
        self.source = source
        self.problems: list[Diagnostic] = []
        self.prefixes: dict[str, str] = dict(prefixes or {})
        self.declarations: list[Relation | Input | Output] = []
        self._constants: dict[tuple[str, str], Constant] = {}
        self._unknown: set[str] = set()  # undeclared prefixes, each reported once
        self._tokens = tokenize(source, self.problems)
        self._next = next(self._tokens)
        self._token = self._next
        self._end = 0  # where the last consumed token ended
        self._advance()

    # -- statements --------------------------------------------------------------------------

    def statements(self) -> Iterator[Rule]:
        """The rules and facts of the text; a fact is a rule with an empty body."""
        while self._token.kind != "end":
            before = len(self.problems)
            try:
                rule = self._statement()
            except Mistake as mistake:
                # An invalid character has been reported already.
                if len(self.problems) == before or self.problems[-1].code not in _LEXICAL:
                    self.problems.append(mistake.diagnostic)
                self._skip_statement()
                continue
            if rule is not None:
                yield rule

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

    def rule(self) -> Rule:
        """`[name] head :- body .`, where the head may be `false`."""
        start = self._token.start
        name = None
        if self._token.kind == "name":
            name = self._advance().text[1:-1].strip()
        if self._token.text == FALSE and self._next.kind == ":-":
            token = self._advance()
            head = Atom(FALSE, (), self._span(token.start, token.end))
        else:
            head = self._atom()
        body: tuple[BodyLiteral, ...] = ()
        if self._token.kind == ",":
            self._fail(
                "E106",
                "a rule has one head atom, and a fact stands alone",
                self._token,
                "write one rule or fact for each head atom, each ended by a full stop",
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
        return Rule(head, body, name, self._span(start, self._end))

    def _statement(self) -> Rule | None:
        token = self._token
        is_tag = token.kind == "tag" and token.text == "@prefix"
        is_word = token.kind == "word" and token.text.upper() == "PREFIX"
        if is_tag or (is_word and self._next.kind == "prefixed"):
            self._advance()
            self._prefix_declaration()
            if not self._accept(".") and is_tag:
                self._unexpected("'.'")
            return None
        if token.kind == "tag" and token.text in parse_declarations.TAGS:
            self.declarations.append(parse_declarations.read_declaration(self))
            return None
        if parse_declarations.is_directive(self):
            parse_declarations.skip_directive(self)
            return None
        return self.rule()

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
        elif token.kind in _CONDITIONS and self._next.kind in _PRECEDENCE:
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
            return Atom(TRIPLE, terms, self._span(token.start, self._end))
        if token.kind == "word":
            if token.text in RESERVED:
                hint = "a constraint is written false :- p(?x) ." if token.text == FALSE else None
                message = f"'{token.text}' is a reserved word, not a relation"
                self._fail("E101", message, token, hint)
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
        terms = tuple(self._separated(lambda: self._term(in_triple=in_triple)))
        if self._token.kind in _PRECEDENCE and self._token.kind not in ("-", "/"):
            self._fail(
                "E101",
                f"'{self._token.text}' cannot stand in an atom",
                self._token,
                "conditions are written FILTER(?x > 1), in capitals, as an atom of their own",
            )
        self._expect(")", "',' or ')' after an argument")
        return terms

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
        object_ = self._term(in_triple=True)
        self._expect("]", "']' after the object of a triple")
        return subject, predicate, object_

    def _filter(self) -> Filter:
        start = self._advance().start
        self._expect("(")
        expression = self._expression(1, 0)
        self._expect(")", "an operator or ')'")
        return Filter(expression, self._span(start, self._end))

    def _aggregate(self) -> Aggregate:
        start = self._advance().start
        self._expect("(")
        atoms = tuple(self._separated(self._atom))
        self._keyword("ON")
        group: list[Variable] = []
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
                    f"'{token.text[:_SHOWN_CHARACTERS]}' is not an aggregate function",
                    token,
                    f"did you mean {close}?" if close else "use " + ", ".join(AGGREGATE_FUNCTIONS),
                )
            self._advance()
            self._expect("(")
            argument = self._variable()
            self._expect(")")
            self._keyword("AS")
            bindings.append(Binding(function, argument, self._variable()))
        self._expect(")", "another BIND or ')'")
        return Aggregate(atoms, tuple(group), tuple(bindings), self._span(start, self._end))

    # -- expressions -------------------------------------------------------------------------

    def _expression(self, least: int, depth: int) -> Expression:
        """Precedence climbing; chains of `&&` and `||` become one operation, however long."""
        start = self._token.start
        left = self._operand(depth)
        height = depth
        while (level := _PRECEDENCE.get(self._token.kind, 0)) >= least:
            token = self._advance()
            operator = token.kind
            height += 1
            self._check_depth(height if level > 2 else depth, token)
            arguments = [left, self._expression(level + 1, depth + 1)]
            while level <= 2 and self._token.kind == operator:
                self._advance()
                arguments.append(self._expression(level + 1, depth + 1))
            left = Operation(operator, tuple(arguments), self._span(start, self._end))
            if level == 3 and _PRECEDENCE.get(self._token.kind) == 3:
                self._fail(
                    "E101",
                    "comparisons cannot be chained",
                    self._token,
                    "write ?x < ?y && ?y < ?z",
                )
        return left

    def _operand(self, depth: int) -> Expression:
        token = self._token
        self._check_depth(depth, token)
        if token.kind == "(":
            self._advance()
            expression = self._expression(1, depth + 1)
            self._expect(")", "an operator or ')'")
            return expression
        if token.kind in ("!", "-"):
            self._advance()
            argument = self._operand(depth + 1)
            return Operation(token.kind, (argument,), self._span(token.start, self._end))
        if token.kind == "word" and self._next.kind == "(":
            return self._call()
        return self._term()

    def _call(self) -> Operation:
        """A function applied to terms."""
        token = self._advance()
        name = spelled(token.text)
        if name is None:
            close = nearest(token.text, FUNCTIONS)
            self._fail(
                "E101",
                f"'{token.text[:_SHOWN_CHARACTERS]}' is not a function",
                token,
                f"did you mean {close}?" if close else "use " + ", ".join(FUNCTIONS),
            )
        self._expect("(")
        arguments = tuple(self._separated(self._term))
        self._expect(")", "',' or ')' after a term")
        arity = FUNCTIONS[name].arity
        if len(arguments) != arity:
            takes = "one term" if arity == 1 else f"{arity} terms"
            self._fail("E101", f"{name} takes {takes}, not {len(arguments)}", token)
        return Operation(name, arguments, self._span(token.start, self._end))

    def _check_depth(self, depth: int, token: Token) -> None:
        if depth >= MAX_NESTING:
            self._fail(
                "E105",
                f"this expression is nested deeper than {MAX_NESTING} levels",
                token,
                "split it over several FILTERs",
            )

    # -- terms -------------------------------------------------------------------------------

    def _term(self, *, in_triple: bool = False) -> Term:
        token = self._token
        if token.kind == "variable":
            return self._variable()
        if token.kind == "word" and token.text not in ("true", "false"):
            if in_triple or token.text[0].isupper() or token.text[0] == "_":
                self._bad_constant(token, in_triple=in_triple)
            self._advance()
            return Literal(token.text)
        return self.constant()

    def _variable(self) -> Variable:
        if self._token.kind != "variable":
            self._unexpected("a variable such as ?x")
        return Variable(self._advance().text[1:])

    def constant(self) -> Constant:
        """One constant other than a bare symbol."""
        token = self._token
        if token.kind == "string":
            return self._string()
        constant = self._constants.get((token.kind, token.text))
        if constant is None:
            match token.kind:
                case "iri":
                    constant = IRI(self._iri(token))
                case "prefixed":
                    constant = self._prefixed(token)
                case "blank":
                    constant = BlankNode(token.text[2:])
                case "integer" | "decimal" | "double":
                    constant = Literal(token.text, XSD + token.kind)
                case "word" if token.text in ("true", "false"):
                    constant = Literal(token.text, XSD + "boolean")
                case "<":
                    self._fail(
                        "E104",
                        "this '<' begins no well-formed IRI",
                        token,
                        "an IRI ends with '>' and holds no blanks, quotes or braces",
                    )
                case _:
                    self._unexpected("a term")
            self._constants[token.kind, token.text] = constant
        self._advance()
        return constant

    def _string(self) -> Literal:
        token = self._advance()
        text = self._unescape(token, token.text[1:-1])
        if self._token.kind == "tag" and self._token.start == token.end:
            language = self._advance().text[1:]
            return Literal(text, RDF + "langString", language)
        if self._accept("^^"):
            start = self._token
            datatype = self.constant() if start.kind in ("iri", "prefixed") else None
            if not isinstance(datatype, IRI):
                self._unexpected("the IRI of a datatype")
            return Literal(text, datatype.value)
        return Literal(text)

    def _unescape(self, token: Token, text: str) -> str:
        def replace(match: re.Match[str]) -> str:
            code = match.group(1)
            if len(code) > 1:
                number = int(code[1:], 16)
                if number <= 0x10FFFF and not 0xD800 <= number <= 0xDFFF:
                    return chr(number)
            elif code in _ESCAPES:
                return _ESCAPES[code]
            start = token.start + 1 + match.start()
            self._fail(
                "E103",
                f"'{match.group()}' is not an escape for a character",
                self._span(start, start + len(match.group())),
                "escapes are \\t \\b \\n \\r \\f \\\" \\' \\\\ \\uXXXX \\UXXXXXXXX",
            )

        return _ESCAPE.sub(replace, text) if "\\" in text else text

    def _iri(self, token: Token) -> str:
        return self._unescape(token, token.text[1:-1])

    def _prefixed(self, token: Token) -> IRI:
        prefix, _, local = token.text.partition(":")
        namespace = self.prefixes.get(prefix, WELL_KNOWN_PREFIXES.get(prefix))
        if namespace is None and prefix not in self._unknown:
            self._unknown.add(prefix)
            close = nearest(prefix, [*self.prefixes, *WELL_KNOWN_PREFIXES])
            declare = f"declare it with '@prefix {prefix}: <…> .' before its first use"
            self.problems.append(
                Diagnostic(
                    "E201",
                    f"the prefix '{prefix}:' is not declared",
                    self._span(token.start, token.start + len(prefix) + 1),
                    f"did you mean '{close}:'? Or {declare}" if close else declare,
                )
            )
        return IRI((namespace or f"unknown:{prefix}:") + re.sub(r"\\(.)", r"\1", local))

    def _bad_constant(self, token: Token, *, in_triple: bool) -> NoReturn:
        text = token.text[:_SHOWN_CHARACTERS]
        if token.text == "_":
            self._fail(
                "E107",
                "'_' is not a term",
                token,
                "a variable that is used once is written like any other: ?any",
            )
        if in_triple:
            self._fail(
                "E213",
                f"the bare symbol '{text}' cannot stand in a triple",
                token,
                f'write an IRI such as <{text}> or :{text}, or a string "{text}"',
            )
        self._fail(
            "E107",
            f"'{text}' is not a constant: bare symbols begin with a lower-case letter",
            token,
            f'write "{text}" for a string or ?{text} for a variable',
        )

    # -- tokens ------------------------------------------------------------------------------

    def _advance(self) -> Token:
        """Consume the current token and return it."""
        token = self._token
        self._end = token.end
        self._token = self._next
        if self._next.kind != "end":
            self._next = next(self._tokens)
        return token

    def _accept(self, kind: str) -> bool:
        """Consume the current token if it is of a kind."""
        if self._token.kind != kind:
            return False
        self._advance()
        return True

    def _separated(self, read: Callable[[], T]) -> Iterator[T]:
        """One or more of what `read` reads, with commas between."""
        yield read()
        while self._accept(","):
            yield read()

    def _expect(self, kind: str, wanted: str | None = None) -> None:
        if not self._accept(kind):
            self._unexpected(wanted or f"'{kind}'")

    def _keyword(self, word: str) -> None:
        if self._token.kind != "word" or self._token.text.upper() != word:
            self._unexpected(word)
        self._advance()

    def _unexpected(self, wanted: str, hint: str | None = None) -> NoReturn:
        token = self._token
        if token.kind == "end":
            shown = "the end of the text"
        else:
            text = token.text[:_SHOWN_CHARACTERS]
            shown = f"'{text}{'…' if len(text) < len(token.text) else ''}'"
        self._fail("E101", f"expected {wanted}, found {shown}", token, hint)

    def _fail(
        self, code: str, message: str, place: Token | Span, hint: str | None = None
    ) -> NoReturn:
        raise Mistake(Diagnostic(code, message, self._span(place.start, place.end), hint))

    def _span(self, start: int, end: int) -> Span:
        return Span(self.source, start, end)


def parse_atom(text: str, prefixes: Mapping[str, str], name: str = "<text>") -> Atom:
    """Parse a text that is one atom; a full stop may follow.

    >>> parse_atom("path(?x, 3)", {}).relation
    'path'
    """
    parser = Parser(Source(name, text), dict(prefixes))
    atom = parser.read_whole(Parser._atom)
    if atom is None or parser.problems:
        raise InvalidProgram(parser.problems)
    return atom
