"""Print terms, atoms and rules as text that parses to equal values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from corollary.lang.functions import is_function
from corollary.lang.parser import WELL_KNOWN_PREFIXES
from corollary.lang.syntax import (
    ESCAPES,
    FALSE,
    IRI,
    QUADS,
    TRIPLE,
    TYPE,
    XSD,
    Aggregate,
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
)

_LOCAL = re.compile(r"\w(?:[\w.\-]*[\w\-])?\Z")
_BARE = {
    XSD + "integer": re.compile(r"[+-]?\d+\Z", re.ASCII),
    XSD + "decimal": re.compile(r"[+-]?\d*\.\d+\Z", re.ASCII),
    XSD + "double": re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)[eE][+-]?\d+\Z", re.ASCII),
    XSD + "boolean": re.compile(r"(?:true|false)\Z"),
}
_ESCAPED = re.compile(r'[\x00-\x1f"\\\x7f\u0085\u2028\u2029\ud800-\udfff]')
_SHORT_ESCAPES = {character: f"\\{letter}" for letter, character in ESCAPES.items()}
_NOT_IN_IRI = re.compile(r'[\x00-\x20<>"{}|^`\\]')


def quote(text: str) -> str:
    """A string in double quotes with escapes.

    >>> print(quote('say "hi"'))
    "say \\"hi\\""
    """
    escape = lambda match: _SHORT_ESCAPES.get(match.group()) or f"\\u{ord(match.group()):04X}"  # noqa: E731
    return f'"{_ESCAPED.sub(escape, text)}"'


class Printer:
    """Prints terms, atoms and rules; shortens IRIs by `prefixes` and the well-known ones.

    >>> Printer({"ex": "http://example.org/"}).term(IRI("http://example.org/a"))
    'ex:a'
    """

    def __init__(
        self, prefixes: Mapping[str, str] | None = None, *, well_known: bool = True
    ) -> None:
        known = (WELL_KNOWN_PREFIXES if well_known else {}) | dict(prefixes or {})
        # Longest namespace first, so the most specific prefix wins.
        self._namespaces = sorted(((n, p) for p, n in known.items() if n), key=lambda x: -len(x[0]))
        self._iris: dict[str, str] = {}

    def term(self, term: Term) -> str:
        """A term in the rule language."""
        match term:
            case Variable(name):
                return f"?{name}"
            case IRI(value):
                return self.iri(value)
            case BlankNode(label):
                return f"_:{label}"
            case Literal(lexical, datatype, language):
                if language is not None:
                    return f"{quote(lexical)}@{language}"
                if datatype == XSD + "string":
                    return quote(lexical)
                bare = _BARE.get(datatype)
                if bare is not None and bare.match(lexical):
                    return lexical
                return f"{quote(lexical)}^^{self.iri(datatype)}"

    def iri(self, value: str) -> str:
        """An IRI, as a prefixed name where a prefix fits."""
        text = self._iris.get(value)
        if text is None:
            text = self._iris[value] = self._shortened(value)
        return text

    def _shortened(self, value: str) -> str:
        for namespace, prefix in self._namespaces:
            if value.startswith(namespace) and _LOCAL.match(value, len(namespace)):
                return f"{prefix}:{value[len(namespace) :]}"
        escape: Callable[[re.Match[str]], str] = lambda match: f"\\u{ord(match.group()):04X}"  # noqa: E731
        return f"<{_NOT_IN_IRI.sub(escape, value)}>"

    def atom(self, atom: Atom, extremum: Bind | None = None) -> str:
        """An atom or fact, without the full stop; with the `MIN` or `MAX` of a head."""
        terms = [self.term(term) for term in atom.terms]
        if extremum is not None:
            value = f"{extremum.extremum}({self.expression(extremum.expression)})"
            terms[atom.terms.index(extremum.variable)] = value
        if atom.relation == FALSE:
            return FALSE
        if atom.relation == "_default-graph":  # `core.graphs`
            return f"[{', '.join(terms)}] <urn:x-corollary:default>"
        if atom.relation == "_reason-over":
            return f"rules read {terms[0]}"
        if atom.relation not in (TRIPLE, QUADS):
            return f"{atom.relation}({', '.join(terms)})"
        if atom.terms[1] == TYPE:
            terms[1] = "a"
        graph = f" {terms[3]}" if atom.relation == QUADS else ""
        return f"[{', '.join(terms[:3])}]{graph}"

    def expression(self, expression: Expression) -> str:
        """An expression; every operation inside another one in parentheses."""
        if not isinstance(expression, Operation):
            return self.term(expression)
        operator = expression.operator
        if is_function(operator):
            name = self.iri(operator) if ":" in operator else operator
            return f"{name}({', '.join(map(self.expression, expression.arguments))})"
        arguments = [
            f"({self.expression(argument)})"
            if isinstance(argument, Operation) and not is_function(argument.operator)
            else self.expression(argument)
            for argument in expression.arguments
        ]
        if operator in ("IN", "NOT IN"):
            return f"{arguments[0]} {operator} ({', '.join(arguments[1:])})"
        if len(arguments) > 1:
            return f" {operator} ".join(arguments)
        # -(5) is an operation on 5, but -5 a number
        [argument] = arguments
        return f"{operator}{argument if argument.startswith('(') else f'({argument})'}"

    def body_literal(self, literal: BodyLiteral) -> str:
        """A literal of a body."""
        match literal:
            case Atom():
                return self.atom(literal)
            case Negation(atom):
                return f"NOT {self.atom(atom)}"
            case Filter(expression):
                return f"FILTER({self.expression(expression)})"
            case Bind(expression, variable):
                return f"BIND({self.expression(expression)} AS {self.term(variable)})"
            case Aggregate(atoms, group, bindings):
                parts = [", ".join(map(self.atom, atoms)), "ON", *map(self.term, group)]
                for binding in bindings:
                    argument, result = self.term(binding.argument), self.term(binding.result)
                    distinct = "DISTINCT " if binding.distinct else ""
                    separator = (
                        f"; SEPARATOR = {quote(binding.separator)}"
                        if binding.separator != " "
                        else ""
                    )
                    value = f"{binding.function}({distinct}{argument}{separator})"
                    parts.append(f"BIND {value} AS {result}")
                return f"AGGREGATE({' '.join(parts)})"

    def rule(self, rule: Rule) -> str:
        """A rule with its name and full stop."""
        name = f"[{rule.name}] " if rule.name else ""
        parts = [part for part in rule.body if part is not rule.extremum]
        body = f" :- {', '.join(map(self.body_literal, parts))}" if rule.body else ""
        return f"{name}{self.atom(rule.head, rule.extremum)}{body} ."

    def program(
        self, rules: Iterable[Rule], facts: Iterable[Atom], prefixes: Mapping[str, str]
    ) -> str:
        """A program: prefixes, rules and facts, one per line."""
        full = Printer(well_known=False)
        lines = [f"@prefix {prefix}: {full.iri(iri)} ." for prefix, iri in prefixes.items()]
        lines += [self.rule(rule) for rule in rules]
        lines += [f"{self.atom(fact)} ." for fact in facts]
        return "".join(f"{line}\n" for line in lines)
