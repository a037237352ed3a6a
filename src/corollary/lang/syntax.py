"""The rule language as values: terms, atoms, rules.

All values are frozen and hashable; comparison ignores source spans. A triple is an ordinary atom of
the relation `TRIPLE` with three terms. Rules are equal up to variable renaming; their names and
spans do not count.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal as OneOf

from corollary.errors import Span

XSD = "http://www.w3.org/2001/XMLSchema#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
LANG_STRING = RDF + "langString"

# Escapes in strings: the character that each letter after a backslash stands for.
ESCAPES = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", '"': '"', "\\": "\\"}

TRIPLE = "[]"  # not an identifier, so no plain relation has this name
TRIPLES_NAME = "triples"  # the name of this relation in files and messages
TRIPLE_COLUMNS = ("subject", "predicate", "object")  # of tables of triples
QUADS = "quads"  # statements of named graphs: subject, predicate, object, graph
PSEUDO_GRAPH_NAMESPACE = "urn:x-corollary:"  # names of what no statement can be put into begin so
QUAD_COLUMNS = (*TRIPLE_COLUMNS, "graph")  # of tables of quads
FALSE = "false"  # the head of a constraint; a reserved word
RESERVED = ("FILTER", "BIND", "AGGREGATE", FALSE)  # words that no relation can have as its name
LONGEST_NAME = 200  # bytes: a file system allows 255, and files have suffixes


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable, written `?name`."""

    name: str


@dataclass(frozen=True, slots=True)
class IRI:
    """An IRI in full, written `<…>` or as a prefixed name."""

    value: str


@dataclass(frozen=True, slots=True)
class BlankNode:
    """A blank node, written `_:label`: a constant that is local to its document."""

    label: str


@dataclass(frozen=True, slots=True)
class Literal:
    """An RDF literal: its lexical form as written, its datatype, and its language tag if any.

    Strings, numbers and booleans are literals of the XML Schema types; a bare lower-case symbol is
    short for the string of its name. Equality compares lexical forms: 1 and 01 are different terms
    with equal values. Language tags are case-insensitive and stored in lower case: `"chat"@FR` and
    `"chat"@fr` are the same term.
    """

    lexical: str
    datatype: str = XSD + "string"
    language: str | None = None

    def __post_init__(self) -> None:
        if self.language is not None:
            object.__setattr__(self, "language", self.language.lower())


Constant = IRI | BlankNode | Literal
Term = Variable | Constant

TYPE = IRI(RDF + "type")


@dataclass(frozen=True, slots=True)
class Atom:
    """A relation applied to terms; a fact if no term is a variable."""

    relation: str
    terms: tuple[Term, ...]
    span: Span | None = field(default=None, compare=False, repr=False)

    def variables(self) -> Iterator[Variable]:
        return (term for term in self.terms if isinstance(term, Variable))

    def constants(self) -> Iterator[Constant]:
        return (term for term in self.terms if not isinstance(term, Variable))


@dataclass(frozen=True, slots=True)
class Negation:
    """`NOT atom`: no fact matches; variables that occur only here are existential."""

    atom: Atom
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator or a function (`functions`) applied to expressions.

    `&&` and `||` take any number, `+` and `-` also one; the first argument of `IN` and `NOT IN` is
    compared with the others. A cast has the IRI of its datatype as its operator.
    """

    operator: str
    arguments: tuple[Expression, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


Expression = Term | Operation


@dataclass(frozen=True, slots=True)
class Filter:
    """`FILTER(expression)`: holds if the expression is true; an error counts as false."""

    expression: Expression
    span: Span | None = field(default=None, compare=False, repr=False)

    def variables(self) -> Iterator[Variable]:
        return expression_variables(self.expression)


@dataclass(frozen=True, slots=True)
class Bind:
    """`BIND(expression AS ?variable)`: the variable is the term of the expression's value.

    An error makes it false. If an atom binds the variable too, both must be the same term.

    With an `extremum`, it is `MIN(expression)` or `MAX(expression)` of the head: the variable is an
    argument of the head, and the relation has only the least or greatest value of each group.
    """

    expression: Expression
    variable: Variable
    extremum: OneOf["MIN", "MAX"] | None = None
    span: Span | None = field(default=None, compare=False, repr=False)

    def inputs(self) -> frozenset[Variable]:
        """The variables that the expression reads."""
        return frozenset(expression_variables(self.expression))

    def variables(self) -> Iterator[Variable]:
        """The variables of the expression, and the one that it binds."""
        yield from expression_variables(self.expression)
        yield self.variable


@dataclass(frozen=True, slots=True)
class Binding:
    """`BIND function(argument) AS result` of an aggregate.

    With `distinct`, each term of a group counts once; `separator` is that of `group_concat`.
    """

    function: str
    argument: Variable
    result: Variable
    distinct: bool = False
    separator: str = " "


@dataclass(frozen=True, slots=True)
class Aggregate:
    """`AGGREGATE(atoms ON group BIND …)`: per group of matches, one value for each binding.

    Every combination of values of all variables in `atoms` counts once. Variables that are not in
    `group` are local to the aggregate.
    """

    atoms: tuple[Atom, ...]
    group: tuple[Variable, ...]
    bindings: tuple[Binding, ...]
    span: Span | None = field(default=None, compare=False, repr=False)

    def variables(self) -> Iterator[Variable]:
        """The variables that the aggregate binds for its rule."""
        yield from self.group
        yield from (binding.result for binding in self.bindings)


def is_auxiliary(relation: str) -> bool:
    """Whether a relation is auxiliary: its name begins with an underscore.

    Rules derive and read its facts like any others, but they are hidden: not shown, not written,
    not counted.
    """
    return relation.startswith("_")


def name_problem(name: str) -> tuple[str, str] | None:
    """Why no relation can have a name, and what to do; None if one can.

    Relations are folders, files, SQL tables and rows of stores; a name that works in one of these
    works in all of them.

    >>> name_problem("edge"), name_problem("triples")[0]
    (None, "'triples' is the relation of all RDF triples")
    """
    hint = "choose another name for the relation"
    if name == TRIPLES_NAME:
        return f"'{name}' is the relation of all RDF triples", f"{hint}; a triple is [?s, ?p, ?o]"
    if name == QUADS:
        written = "a statement of a named graph is [?s, ?p, ?o] ?g"
        return f"'{name}' is the relation of the statements of named graphs", f"{hint}; {written}"
    if name in (*RESERVED, TRIPLE):
        return f"'{name}' is a reserved word, not a relation", hint
    size = len(name.encode(errors="surrogatepass"))
    if size > LONGEST_NAME:
        return f"'{name[:20]}…' has {size} bytes, and a name has at most {LONGEST_NAME}", hint
    if not name or name != name.strip() or not name.isprintable() or name[0] in "-." or "/" in name:
        return f"{name!r} cannot be the name of a relation", hint
    return None


BodyLiteral = Atom | Negation | Filter | Bind | Aggregate

EXTREMA: tuple[OneOf["MIN", "MAX"], ...] = ("MIN", "MAX")
AGGREGATE_FUNCTIONS = ("count", "sum", "min", "max", "avg", "sample", "group_concat")


@dataclass(frozen=True, eq=False)
class Rule:
    """`head :- body`; rules are equal up to variable renaming.

    >>> x, y = Variable("x"), Variable("y")
    >>> Rule(Atom("p", (x,)), (Atom("q", (x, x)),)) == Rule(Atom("p", (y,)), (Atom("q", (y, y)),))
    True
    """

    head: Atom
    body: tuple[BodyLiteral, ...]
    name: str | None = None
    span: Span | None = field(default=None, repr=False)

    @property
    def is_constraint(self) -> bool:
        """Whether the rule is `false :- body`: a match of its body is an inconsistency."""
        return self.head.relation == FALSE

    @cached_property
    def key(self) -> tuple[object, ...]:
        """A canonical form: variables are numbered by their first occurrence."""
        numbers: dict[Variable, int] = {}

        def term_key(term: Term) -> object:
            return numbers.setdefault(term, len(numbers)) if isinstance(term, Variable) else term

        def atom_key(atom: Atom) -> tuple[object, ...]:
            return (atom.relation, *map(term_key, atom.terms))

        def expression_key(expression: Expression) -> object:
            if isinstance(expression, Operation):
                return (expression.operator, *map(expression_key, expression.arguments))
            return term_key(expression)

        def literal_key(literal: BodyLiteral) -> tuple[object, ...]:
            match literal:
                case Atom():
                    return atom_key(literal)
                case Negation(atom):
                    return ("NOT", *atom_key(atom))
                case Filter(expression):
                    return ("FILTER", expression_key(expression))
                case Bind(expression, variable, extremum):
                    return (extremum or "BIND", expression_key(expression), term_key(variable))
                case Aggregate(atoms, group, bindings):
                    return (
                        "AGGREGATE",
                        tuple(map(atom_key, atoms)),
                        tuple(map(term_key, group)),
                        tuple(
                            (
                                (b.function, b.distinct, b.separator),
                                term_key(b.argument),
                                term_key(b.result),
                            )
                            for b in bindings
                        ),
                    )

        return (atom_key(self.head), *map(literal_key, self.body))

    def __eq__(self, other: object) -> bool:
        return self.key == other.key if isinstance(other, Rule) else NotImplemented

    @cached_property
    def _hash(self) -> int:
        return hash(self.key)

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def memory(self) -> dict[str, object]:
        """A cache of computed properties of the rule, by name."""
        return {}

    @cached_property
    def extremum(self) -> Bind | None:
        """`MIN(…)` or `MAX(…)` of the head, as the `BIND` that computes its argument."""
        binds = (part for part in self.body if isinstance(part, Bind))
        return next((bind for bind in binds if bind.extremum is not None), None)

    def atoms(self) -> Iterator[tuple[Atom, str]]:
        """The atoms of the body, each `"positive"`, `"negated"` or `"aggregated"`."""
        for literal in self.body:
            match literal:
                case Atom():
                    yield literal, "positive"
                case Negation(atom):
                    yield atom, "negated"
                case Aggregate(atoms):
                    for atom in atoms:
                        yield atom, "aggregated"

    def bound_variables(self) -> frozenset[Variable]:
        """The variables that positive atoms, aggregates and `BIND` bind."""
        return self._in_atoms.union(bind.variable for bind in self.binds)

    @cached_property
    def _in_atoms(self) -> frozenset[Variable]:
        return frozenset(
            variable
            for literal in self.body
            if isinstance(literal, Atom | Aggregate)
            for variable in literal.variables()
        )

    @cached_property
    def binds(self) -> tuple[Bind, ...]:
        """The `BIND`s of the body, each after those whose results it reads.

        >>> from corollary.lang.program import Program
        >>> text = "p(?z) :- BIND(?y * 2 AS ?z), BIND(?x + 1 AS ?y), q(?x) ."
        >>> [bind.variable.name for bind in Program.parse(text).rules[0].binds]
        ['y', 'z']
        """
        waiting = [literal for literal in self.body if isinstance(literal, Bind)]
        if not waiting:
            return ()
        bound, ordered = self._in_atoms, list[Bind]()
        while ready := [bind for bind in waiting if bind.inputs() <= bound]:
            ordered += ready
            bound = bound.union(bind.variable for bind in ready)
            waiting = [bind for bind in waiting if bind not in ready]
        return tuple(ordered)


def expression_variables(expression: Expression) -> Iterator[Variable]:
    """The variables of an expression, with repetitions."""
    if isinstance(expression, Variable):
        yield expression
    elif isinstance(expression, Operation):
        for argument in expression.arguments:
            yield from expression_variables(argument)
