"""Rules written out for a schema: constants in the places of variable properties and classes.

`[?x, a, ?d] :- [?c, rdfs:subClassOf, ?d], [?x, a, ?c]` derives into any class, so that every class
depends on every other. With the schema at hand it is `[?x, a, :Person] :- [?x, a, :Student]` and
so on, one rule for each case: a *template* and its *instances*. Which triples belong to a schema is
data (`rulesets/schema.dl`); no rule is known here.

After: Urbani et al., *Hybrid reasoning on OWL RL*, Semantic Web 5, 2014, §6.1, and Motik et al.,
AAAI 2014, whose rules are written out in the same way.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from typing import NamedTuple

from corollary.core.compile import TRIPLES, TYPES, home, home_terms
from corollary.errors import Source
from corollary.lang.program import Program
from corollary.lang.stratify import Predicate
from corollary.lang.substitute import Values, matched, substituted_atom, substituted_literal
from corollary.lang.syntax import (
    IRI,
    TRIPLE,
    TYPE,
    Aggregate,
    Atom,
    Constant,
    Filter,
    Rule,
    Term,
    Variable,
    is_auxiliary,
)

_CASES = "CASES "  # a space: no relation of a program is named so
_WIDE = (TRIPLES, TYPES)


class Gate(NamedTuple):
    """An atom of the instances whose property, or class, is the value of a case in this column."""

    column: int
    is_class: bool


@dataclass(frozen=True, eq=False)
class Template:
    """A rule with variable properties or classes that the schema gives values to.

    `cases` derives the values of `variables`, one fact for each instance.
    """

    rule: Rule
    cases: Rule
    variables: tuple[Variable, ...]
    kept: bool  # its atoms about the schema stay in the instances, as it has no others
    gates: tuple[Gate, ...] = ()  # what an instance reads

    @cached_property
    def direct(self) -> bool:
        """Whether the cases are the facts of one predicate, as they are."""
        return len(self.cases.body) == 1 and all(
            isinstance(atom, Atom) and home_terms(atom) == self.variables
            for atom in self.cases.body
        )

    @cached_property
    def predicate(self) -> Predicate:
        """The predicate whose facts are the cases: a relation of their own if need be."""
        [atom, *_] = self.cases.body if self.direct else (self.cases.head,)
        assert isinstance(atom, Atom), "cases are told by atoms"
        return home(atom)

    def instance(self, values: Sequence[Constant], *, guarded: bool = False) -> Rule | None:
        """The rule for one case, None if it says nothing.

        A guarded instance holds only as long as the case is derived by the same program.

        >>> template = split(
        ...     Program.parse("[?x, a, ?d] :- [?c, rdfs:subClassOf, ?d], [?x, a, ?c] .")
        ... ).templates[0]
        >>> from corollary.lang.printer import Printer
        >>> print(Printer().rule(template.instance([IRI("C"), IRI("D")])))
        [?x, a, <D>] :- [?x, a, <C>] .
        >>> template.instance([IRI("C"), IRI("C")])
        """
        given: Values = dict(zip(self.variables, values, strict=True))
        schema = () if self.kept else frozenset(self.cases.body)
        body = tuple(
            substituted_literal(part, given) for part in self.rule.body if part not in schema
        )
        head = substituted_atom(self.rule.head, given)
        if head in body:
            return None
        if guarded and not self.kept:
            case = self.cases.body if self.direct else (self.cases.head,)
            body = (*(substituted_literal(part, given) for part in case), *body)
        return Rule(head, body, self.rule.name, self.rule.span)


@dataclass(frozen=True)
class Split:
    """The rules of a program by what they do with a schema."""

    schema: tuple[Rule, ...]  # read and derive nothing else
    templates: tuple[Template, ...]
    general: tuple[Rule, ...]  # all others
    predicates: frozenset[Predicate]  # of the schema

    def derives_schema(self, head: Atom) -> bool:
        """Whether a rule with this head may derive facts of the schema."""
        predicate = home(head)
        return predicate in self.predicates or predicate in _WIDE


@cache
def vocabulary() -> frozenset[Predicate]:
    """The properties and classes that schemas are written in."""
    text = (resources.files("corollary.rdf.rulesets") / "schema.dl").read_text(encoding="utf-8")
    found = set()
    for fact in Program.parse(Source("schema.dl", text)).facts:
        term = fact.terms[0]
        assert isinstance(term, IRI), "properties and classes are IRIs"
        is_class = fact.relation == "_schema_class"
        found.add(Predicate(TRIPLE, TYPE, term) if is_class else Predicate(TRIPLE, term))
    return frozenset(found)


def is_specializable(program: Program) -> bool:
    """Whether a rule of the program has a variable property or class."""
    return any(_is_wide(rule) for rule in program.rules)


def split(program: Program, general: frozenset[Rule] = frozenset()) -> Split:
    """Tell the rules about schemas, the templates and the others apart.

    Rules of `general` are no templates.

    >>> from corollary.rdf.rulesets import rules
    >>> found = split(rules("rhodf"))
    >>> [rule.name for rule in found.schema], [t.rule.name for t in found.templates]
    (['rdfs5', 'rdfs11'], ['rdfs2', 'rdfs3', 'rdfs7', 'rdfs9'])
    """
    predicates = schema_predicates(program)
    schema = [rule for rule in program.rules if _is_pure(rule, predicates)]
    templates: list[Template] = []
    others: list[Rule] = []
    for rule in program.rules:
        if _is_pure(rule, predicates):
            continue
        template = None if rule in general else _template(rule, predicates)
        if template is None:
            others.append(rule)
        else:
            templates.append(template)
    return Split(tuple(schema), tuple(templates), tuple(others), predicates)


def schema_predicates(program: Program) -> frozenset[Predicate]:
    """The predicates of a schema: the vocabulary that is read, and auxiliary relations over it.

    Triples that no rule asks for are data, as others are: data that derive them derive no axioms.
    """
    read = vocabulary() & {home(atom) for rule in program.rules for atom, _ in rule.atoms()}
    heads = {rule.head.relation for rule in program.rules if is_auxiliary(rule.head.relation)}
    while True:
        predicates = read | {Predicate(relation) for relation in heads}
        wrong = {
            rule.head.relation
            for rule in program.rules
            if rule.head.relation in heads and not _is_pure(rule, predicates)
        }
        if not wrong:
            return predicates
        heads -= wrong


def _is_pure(rule: Rule, predicates: frozenset[Predicate]) -> bool:
    return (
        home(rule.head) in predicates
        and all(isinstance(part, Atom | Filter) for part in rule.body)
        and all(home(atom) in predicates for atom, _ in rule.atoms())
    )


def _template(rule: Rule, predicates: frozenset[Predicate]) -> Template | None:
    if any(isinstance(part, Aggregate) for part in rule.body):
        return None
    about = tuple(p for p in rule.body if isinstance(p, Atom) and home(p) in predicates)
    bound = dict.fromkeys(v for atom in about for v in atom.variables())
    places = [v for atom in _atoms(rule) if (v := _place(atom)) is not None]
    if not any(place in bound for place in places):
        return None
    others = [p for p in rule.body if isinstance(p, Atom) and p not in about]
    kept = not others
    variables = tuple(v for v in bound if v in places) if kept else tuple(bound)
    # The name follows from the rule, so that it is the same for the same rule of another program.
    digest = hashlib.sha256(repr(rule.key).encode()).hexdigest()[:16]
    name = f"{_CASES}{rule.name or 'rule'} {digest}"
    cases = Rule(Atom(name, variables), about, rule.name, rule.span)
    gates = tuple(
        Gate(variables.index(place), is_class=isinstance(atom.terms[1], IRI))
        for atom in others
        if (place := _place(atom)) in bound and place in variables
    )
    return Template(rule, cases, variables, kept, tuple(dict.fromkeys(gates)))


def is_cases(predicate: Predicate) -> bool:
    """Whether the facts of a predicate are the cases of a template."""
    return predicate.relation.startswith(_CASES)


def narrowable(rule: Rule) -> Atom | None:
    """The only atom of the body with a variable property or class, if the head has none.

    >>> text = "[?x, a, rdfs:Resource] :- [?x, ?p, ?y] ."
    >>> narrowable(Program.parse(text).rules[0]).terms[1]
    Variable(name='p')
    """
    if home(rule.head) in _WIDE or not all(isinstance(p, Atom | Filter) for p in rule.body):
        return None
    wide = [p for p in rule.body if isinstance(p, Atom) and home(p) in _WIDE]
    return wide[0] if len(wide) == 1 else None


def narrowed(rule: Rule, atom: Atom, predicate: Predicate) -> Rule | None:
    """The rule with its wide atom read as one of a narrow predicate, None if it cannot match.

    >>> rule = Program.parse("[?x, a, rdfs:Resource] :- [?x, ?p, ?y] .").rules[0]
    >>> from corollary.lang.printer import Printer
    >>> print(Printer().rule(narrowed(rule, narrowable(rule), Predicate(TRIPLE, IRI("q")))))
    [?x, a, rdfs:Resource] :- [?x, <q>, ?y] .
    """
    if predicate.relation != TRIPLE:
        return None
    given: dict[Term, Term] = {}
    for term, value in zip(atom.terms[1:], (predicate.property, predicate.member_of), strict=True):
        if value is None:
            continue
        if isinstance(term, Variable):
            term = given.setdefault(term, value)
        if term != value:
            return None
    body = tuple(substituted_literal(part, given) for part in rule.body)
    head = substituted_atom(rule.head, given)
    return None if head in body else Rule(head, body, rule.name, rule.span)


def subsumes(general: Rule, special: Rule) -> bool:
    """Whether the general rule derives what the special one does, by matching alone.

    >>> rules = Program.parse("p(?x) :- q(?x, ?y) . p(?x) :- q(?x, ?x), r(?x) .").rules
    >>> subsumes(*rules), subsumes(*reversed(rules))
    (True, False)
    """
    if not all(isinstance(part, Atom) for part in general.body):
        return False
    start = matched(general.head, special.head, {})
    atoms = [part for part in special.body if isinstance(part, Atom)]
    wanted = [part for part in general.body if isinstance(part, Atom)]

    def search(place: int, given: dict[Term, Term]) -> bool:
        if place == len(wanted):
            return True
        found = (matched(wanted[place], atom, given) for atom in atoms)
        return any(more is not None and search(place + 1, more) for more in found)

    return start is not None and search(0, start)


def _atoms(rule: Rule) -> Iterator[Atom]:
    yield rule.head
    yield from (atom for atom, _ in rule.atoms())


def _is_wide(rule: Rule) -> bool:
    return any(home(atom) in _WIDE for atom in _atoms(rule))


def _place(atom: Atom) -> Variable | None:
    """The variable in the place of a property or class."""
    if atom.relation != TRIPLE:
        return None
    _, property_, object_ = atom.terms
    if isinstance(property_, Variable):
        return property_
    return object_ if property_ == TYPE and isinstance(object_, Variable) else None
