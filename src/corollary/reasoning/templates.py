"""Rules specialized to a schema: constants replace variable properties and classes.

`[?x, a, ?d] :- [?c, rdfs:subClassOf, ?d], [?x, a, ?c]` may derive members of any class, so every
class depends on every other. Given the schema, this *template* has *instances* such as
`[?x, a, :Person] :- [?x, a, :Student]`, one per *binding*. The vocabulary of schemas is data
(`rulesets/schema.dl`); no rule is hard-coded here.

After: Urbani et al., *Hybrid reasoning on OWL RL*, Semantic Web 5, 2014, §6.1, and Motik et al.,
AAAI 2014, who specialize rules in the same way.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from typing import NamedTuple

from corollary.core.compile import TRIPLES, TYPES, narrow_predicate, narrow_terms
from corollary.errors import Source
from corollary.lang.program import Program
from corollary.lang.stratify import Predicate
from corollary.lang.substitute import (
    Values,
    label_values,
    matched,
    substituted_atom,
    substituted_literal,
)
from corollary.lang.syntax import (
    IRI,
    TRIPLE,
    TYPE,
    Aggregate,
    Atom,
    BodyLiteral,
    Constant,
    Filter,
    Rule,
    Term,
    Variable,
    is_auxiliary,
)

_BINDINGS = "CASES "  # with a space, so that no program can name it
_WIDE = (TRIPLES, TYPES)


class Premise(NamedTuple):
    """A body atom of the instances whose property or class is this column of a binding."""

    column: int
    is_class: bool


@dataclass(frozen=True, eq=False)
class Template:
    """A rule with variable properties or classes that the schema binds.

    `bindings` derives the values of `variables`, one fact for each instance.
    """

    rule: Rule
    bindings: Rule
    variables: tuple[Variable, ...]
    is_schema_only: bool  # the body has schema atoms only, which stay in the instances
    premises: tuple[Premise, ...] = ()  # the predicates that an instance reads

    @cached_property
    def direct(self) -> bool:
        """Whether the bindings are exactly the facts of one predicate."""
        atoms = self.schema_atoms
        return len(atoms) == 1 and narrow_terms(atoms[0]) == self.variables

    @cached_property
    def predicate(self) -> Predicate:
        """The predicate whose facts are the bindings: a relation of its own if necessary."""
        return narrow_predicate(self.binding_atoms[0])

    @property
    def binding_atoms(self) -> tuple[Atom, ...]:
        """The atoms that a binding matches: schema atoms, or the atom of the bindings' relation."""
        return self.schema_atoms if self.direct else (self.bindings.head,)

    @property
    def schema_atoms(self) -> tuple[Atom, ...]:
        """The atoms of the body about the schema."""
        return tuple(part for part in self.bindings.body if isinstance(part, Atom))

    def instance(self, values: Sequence[Constant], *, conditional: bool = False) -> Rule | None:
        """Create the rule for one binding, or None if it is trivial.

        A conditional instance reads its binding, so it applies as long as the binding holds.

        >>> template = split(
        ...     Program.parse("[?x, a, ?d] :- [?c, rdfs:subClassOf, ?d], [?x, a, ?c] .")
        ... ).templates[0]
        >>> from corollary.lang.printer import Printer
        >>> print(Printer().rule(template.instance([IRI("C"), IRI("D")])))
        [?x, a, <D>] :- [?x, a, <C>] .
        >>> template.instance([IRI("C"), IRI("C")])
        """
        schema = () if self.is_schema_only else self.bindings.body
        body = tuple(part for part in self.rule.body if part not in schema)
        bound: Values = dict(zip(self.variables, values, strict=True))
        instance = _instance(self.rule, body, bound)
        if instance is None or not conditional or self.is_schema_only:
            return instance
        return _instance(self.rule, (*self.binding_atoms, *body), bound)


@dataclass(frozen=True)
class Split:
    """The rules of a program by their relation to a schema."""

    schema: tuple[Rule, ...]  # rules that read and derive only schema facts
    templates: tuple[Template, ...]
    general: tuple[Rule, ...]  # all others
    predicates: frozenset[Predicate]  # predicates of the schema

    def derives_schema(self, head: Atom) -> bool:
        """Test whether a rule with this head may derive facts of the schema."""
        predicate = narrow_predicate(head)
        return predicate in self.predicates or predicate in _WIDE


@cache
def vocabulary() -> frozenset[Predicate]:
    """Return the vocabulary of schemas: their properties and classes."""
    text = (resources.files("corollary.rdf.rulesets") / "schema.dl").read_text(encoding="utf-8")
    predicates = set()
    for fact in Program.parse(Source("schema.dl", text)).facts:
        term = fact.terms[0]
        assert isinstance(term, IRI), "properties and classes are IRIs"
        is_class = fact.relation == "_schema_class"
        predicates.add(Predicate(TRIPLE, TYPE, term) if is_class else Predicate(TRIPLE, term))
    return frozenset(predicates)


def is_specializable(program: Program) -> bool:
    """Test whether a rule of the program has a variable property or class."""
    return any(_is_wide(rule) for rule in program.rules)


def split(program: Program) -> Split:
    """Separate the rules about schemas, the templates and the others.

    >>> from corollary.rdf.rulesets import rules
    >>> parts = split(rules("rhodf"))
    >>> [rule.name for rule in parts.schema], [t.rule.name for t in parts.templates]
    (['rdfs5', 'rdfs11'], ['rdfs2', 'rdfs3', 'rdfs7', 'rdfs9'])
    """
    predicates = schema_predicates(program)
    schema = [rule for rule in program.rules if _is_pure(rule, predicates)]
    templates: list[Template] = []
    others: list[Rule] = []
    for rule in program.rules:
        if _is_pure(rule, predicates):
            continue
        template = _template(rule, predicates)
        if template is None:
            others.append(rule)
        else:
            templates.append(template)
    return Split(tuple(schema), tuple(templates), tuple(others), predicates)


def schema_predicates(program: Program) -> frozenset[Predicate]:
    """Find the predicates of a schema: vocabulary that rules read, and auxiliary relations over it.

    Triples that no rule reads are data, so deriving them from data derives no axioms.
    """
    read = vocabulary() & {
        narrow_predicate(atom) for rule in program.rules for atom, _ in rule.atoms()
    }
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
        narrow_predicate(rule.head) in predicates
        and all(isinstance(part, Atom | Filter) for part in rule.body)
        and all(narrow_predicate(atom) in predicates for atom, _ in rule.atoms())
    )


def _template(rule: Rule, predicates: frozenset[Predicate]) -> Template | None:
    if any(isinstance(part, Aggregate) for part in rule.body):
        return None
    schema = tuple(
        p for p in rule.body if isinstance(p, Atom) and narrow_predicate(p) in predicates
    )
    bound = dict.fromkeys(v for atom in schema for v in atom.variables())
    places = [v for atom in _atoms(rule) if (v := _place(atom)) is not None]
    if not any(place in bound for place in places):
        return None
    others = [p for p in rule.body if isinstance(p, Atom) and p not in schema]
    schema_only = not others
    variables = tuple(v for v in bound if v in places) if schema_only else tuple(bound)
    # The name is a function of the rule, so the same rule of another program gets the same name.
    digest = hashlib.sha256(repr(rule.key).encode()).hexdigest()[:16]
    name = f"{_BINDINGS}{rule.name or 'rule'} {digest}"
    bindings = Rule(Atom(name, variables), schema, rule.name, rule.span)
    premises = tuple(
        Premise(variables.index(place), is_class=isinstance(atom.terms[1], IRI))
        for atom in others
        if (place := _place(atom)) in bound and place in variables
    )
    return Template(rule, bindings, variables, schema_only, tuple(dict.fromkeys(premises)))


def narrowable(rule: Rule) -> Atom | None:
    """Find the only body atom with a variable property or class, if the head has none.

    >>> text = "[?x, a, rdfs:Resource] :- [?x, ?p, ?y] ."
    >>> narrowable(Program.parse(text).rules[0]).terms[1]
    Variable(name='p')
    """
    if narrow_predicate(rule.head) in _WIDE or not all(
        isinstance(p, Atom | Filter) for p in rule.body
    ):
        return None
    wide = [p for p in rule.body if isinstance(p, Atom) and narrow_predicate(p) in _WIDE]
    return wide[0] if len(wide) == 1 else None


def narrowed(rule: Rule, atom: Atom, predicate: Predicate) -> Rule | None:
    """Narrow the wide atom of a rule to a predicate; None if it cannot match or is trivial.

    >>> rule = Program.parse("[?x, a, rdfs:Resource] :- [?x, ?p, ?y] .").rules[0]
    >>> from corollary.lang.printer import Printer
    >>> print(Printer().rule(narrowed(rule, narrowable(rule), Predicate(TRIPLE, IRI("q")))))
    [?x, a, rdfs:Resource] :- [?x, <q>, ?y] .
    """
    if predicate.relation != TRIPLE:
        return None
    values = label_values(atom, predicate)
    return None if values is None else _instance(rule, rule.body, values)


def _instance(rule: Rule, body: Iterable[BodyLiteral], values: Values) -> Rule | None:
    """Substitute values in a rule with another body; None if the result is trivial."""
    literals = tuple(substituted_literal(part, values) for part in body)
    head = substituted_atom(rule.head, values)
    return None if head in literals else Rule(head, literals, rule.name, rule.span)


def subsumes(general: Rule, special: Rule) -> bool:
    """Test whether a general rule subsumes a special one, by matching alone.

    >>> rules = Program.parse("p(?x) :- q(?x, ?y) . p(?x) :- q(?x, ?x), r(?x) .").rules
    >>> subsumes(*rules), subsumes(*reversed(rules))
    (True, False)
    """
    if not all(isinstance(part, Atom) for part in general.body):
        return False
    start = matched(general.head, special.head, {})
    atoms = [part for part in special.body if isinstance(part, Atom)]
    wanted = [part for part in general.body if isinstance(part, Atom)]

    def search(place: int, values: dict[Variable, Term]) -> bool:
        if place == len(wanted):
            return True
        extended = (matched(wanted[place], atom, values) for atom in atoms)
        return any(more is not None and search(place + 1, more) for more in extended)

    return start is not None and search(0, start)


def _atoms(rule: Rule) -> Iterator[Atom]:
    yield rule.head
    yield from (atom for atom, _ in rule.atoms())


def _is_wide(rule: Rule) -> bool:
    return any(narrow_predicate(atom) in _WIDE for atom in _atoms(rule))


def _place(atom: Atom) -> Variable | None:
    """Return the variable in the position of a property or class."""
    if atom.relation != TRIPLE:
        return None
    _, property_, object_ = atom.terms
    if isinstance(property_, Variable):
        return property_
    return object_ if property_ == TYPE and isinstance(object_, Variable) else None
