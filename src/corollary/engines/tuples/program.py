"""Rules as arrays of numbers, for the interpreter of `kernel`.

All triples are facts of one relation with three arguments, so a variable property or class is an
ordinary variable. The lists contain the atoms that a fact may match: those with its property or
class, and those with a variable there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations

import numpy as np
import numpy.typing as npt

from corollary.core.compile import CompiledExpression
from corollary.core.dictionary import Dictionary
from corollary.engines.tuples import layout as at
from corollary.engines.tuples.redundancy import Redundancy, redundancy_of
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import (
    TRIPLE,
    TYPE,
    Atom,
    Expression,
    Filter,
    Operation,
    Rule,
    Term,
    Variable,
    is_auxiliary,
)

Numbers = npt.NDArray[np.int64]

MAX_ARITY = 3
MAX_ATOMS = 12
MAX_VARIABLES = 60  # they are bits of a 64-bit number

_VALUE = "VALUE "  # the relation of literals and their values; not a valid name


class Unsupported(Exception):
    """A rule that the interpreter cannot evaluate."""


@dataclass(frozen=True)
class TermCondition:
    """A condition on one term, evaluated once per term; `expression` has the variable 0."""

    expression: CompiledExpression


@dataclass
class RuleProgram:
    """Rules as numbers, with the indexes and term properties that they need."""

    rules: Numbers
    atoms: Numbers
    conditions: Numbers
    lists: Numbers
    relations: Numbers  # with the lists of atoms
    heads: Numbers  # with the lists of heads
    indexes: Numbers
    choices: Numbers
    properties: tuple[Numbers, Numbers]  # lists of atoms, and of heads, by property
    classes: tuple[Numbers, Numbers]
    guards: tuple[Numbers, Numbers, Numbers]  # keys by relation, property and class: see `live`
    type_id: int
    names: tuple[str, ...]  # of relations; the first is that of triples
    arities: tuple[int, ...]
    term_conditions: tuple[TermCondition, ...]
    value_relation: int | None  # the relation of literals and values, if rules read it
    reads_values: bool  # whether conditions compare values
    reads_datatypes: bool
    masks: tuple[frozenset[int], ...]  # by relation: the bound arguments that are looked up
    rule_classes: dict[
        Rule, tuple[int, tuple[int, ...]]
    ]  # what each rule derives, and its atoms skip

    def has_layout_of(self, other: RuleProgram) -> bool:
        """Whether an index built for another program suits this one."""
        return self.names == other.names and self.masks == other.masks

    def has_classes_of(self, other: RuleProgram) -> bool:
        """Whether the rules of both programs derive and skip facts of the same classes."""
        return all(
            classes == other.rule_classes.get(rule, classes)
            for rule, classes in self.rule_classes.items()
        )

    def asks_same_of_terms(self, other: RuleProgram) -> bool:
        """Whether the conditions on terms are equal, in the same order."""
        return (
            self.term_conditions == other.term_conditions
            and self.value_relation == other.value_relation
            and self.reads_values == other.reads_values
            and self.reads_datatypes == other.reads_datatypes
        )

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The relations by name."""
        return {name: number for number, name in enumerate(self.names)}

    @cached_property
    def hidden(self) -> tuple[Predicate, ...]:
        """The auxiliary relations."""
        return tuple(Predicate(name) for name in self.names if is_auxiliary(name))


def is_supported(rules: Iterable[Rule]) -> bool:
    """Whether the interpreter can evaluate all of the rules.

    >>> from corollary.lang.program import Program
    >>> is_supported(Program.parse("q(?x) :- p(?x, ?y), FILTER(?y > 3) .").rules)
    True
    >>> is_supported(Program.parse("q(?x) :- p(?x), NOT r(?x) .").rules)
    False
    """
    try:
        for rule in rules:
            _check(rule)
    except Unsupported:
        return False
    return True


def _check(rule: Rule) -> None:
    atoms = [part for part in rule.body if isinstance(part, Atom)]
    filters = [part for part in rule.body if isinstance(part, Filter)]
    if len(atoms) + len(filters) != len(rule.body) or not atoms or rule.is_constraint:
        raise Unsupported
    conditions = [c for part in filters for c in _conjuncts(part.expression)]
    variables = {v for atom in atoms for v in atom.variables()}
    # A comparison of values may become two atoms and a variable.
    if len(atoms) + 2 * len(conditions) > MAX_ATOMS:
        raise Unsupported
    if len(variables) + len(conditions) > MAX_VARIABLES:
        raise Unsupported
    if any(len(atom.terms) > MAX_ARITY for atom in (rule.head, *atoms)):
        raise Unsupported
    for condition in conditions:
        _comparison(condition)


def _conjuncts(expression: Expression) -> Iterable[Expression]:
    if isinstance(expression, Operation) and expression.operator == "&&":
        for argument in expression.arguments:
            yield from _conjuncts(argument)
    else:
        yield expression


def _comparison(expression: Expression) -> tuple[int, tuple[Variable, ...], bool]:
    """The kind of a condition, its variables, and whether it is negated."""
    variables = tuple(dict.fromkeys(_variables(expression)))
    if len(variables) == 1:
        return at.OF_TERM, variables, False
    negated = False
    if isinstance(expression, Operation) and expression.operator == "!":
        [expression], negated = expression.arguments, True
    if not isinstance(expression, Operation) or len(variables) != 2:
        raise Unsupported
    kinds = {
        "sameTerm": at.SAME_TERM,
        "sameValue": at.SAME_VALUE,
        "hasDatatype": at.HAS_DATATYPE,
    }
    kind = kinds.get(expression.operator)
    if kind is None or expression.arguments != variables:
        raise Unsupported
    if kind == at.HAS_DATATYPE and negated:
        raise Unsupported
    return kind, variables, negated


def _variables(expression: Expression) -> Iterable[Variable]:
    if isinstance(expression, Operation):
        for argument in expression.arguments:
            yield from _variables(argument)
    elif isinstance(expression, Variable):
        yield expression


@dataclass(frozen=True)
class Reader:
    """An atom of a body, or a head, that may match facts."""

    atom: list[int]
    rule: int
    place: int | None  # in the body; None is the head


@dataclass
class _Builder:
    dictionary: Dictionary
    rules: list[list[int]] = field(default_factory=list)
    atoms: list[list[int]] = field(default_factory=list)
    conditions: list[list[int]] = field(default_factory=list)
    names: dict[str, int] = field(default_factory=lambda: {TRIPLE: 0})
    arities: list[int] = field(default_factory=lambda: [3])
    term_conditions: dict[CompiledExpression, int] = field(default_factory=dict)
    masks: dict[int, set[int]] = field(default_factory=dict)  # of arguments, by relation
    kinds: set[int] = field(default_factory=set)
    readers: list[Reader] = field(default_factory=list)
    heads: list[Reader] = field(default_factory=list)

    @classmethod
    def over(cls, dictionary: Dictionary, base: RuleProgram | None) -> _Builder:
        """Start with the numbers of relations and the indexes of a program."""
        builder = cls(dictionary)
        if base is not None:
            builder.names = dict(base.numbers)
            builder.arities = list(base.arities)
            builder.masks = {number: set(masks) for number, masks in enumerate(base.masks)}
        return builder

    def add(self, rule: Rule) -> None:
        atoms = [part for part in rule.body if isinstance(part, Atom)]
        numbers: dict[Variable, int] = {}
        encoded = [self._atom(atom, numbers) for atom in atoms]
        filters = [part for part in rule.body if isinstance(part, Filter)]
        conditions = [c for part in filters for c in _conjuncts(part.expression)]
        first_condition = len(self.conditions)
        for condition in conditions:
            self._condition(condition, numbers, encoded)
        head = self._atom(rule.head, numbers)
        number, first = len(self.rules), len(self.atoms)
        arguments = [*head[2:]]
        self.rules.append(
            [
                head[0],
                *arguments,
                first,
                len(encoded),
                first_condition,
                len(self.conditions) - first_condition,
            ]
        )
        for place, atom in enumerate(encoded):
            self.atoms.append(atom)
            self.readers.append(Reader(atom, number, place))
        self.heads.append(Reader(head, number, None))
        self._need_indexes(encoded, head)

    def relation(self, name: str, arity: int) -> int:
        known = self.names.setdefault(name, len(self.names))
        if known == len(self.arities):
            self.arities.append(arity)
        return known

    def _atom(self, atom: Atom, numbers: dict[Variable, int]) -> list[int]:
        arguments = [self._argument(term, numbers) for term in atom.terms]
        arguments += [-1] * (MAX_ARITY - len(arguments))  # unused arguments are the id 0
        return [self.relation(atom.relation, len(atom.terms)), len(atom.terms), *arguments]

    def _argument(self, term: Term, numbers: dict[Variable, int]) -> int:
        if isinstance(term, Variable):
            return numbers.setdefault(term, len(numbers))
        return -1 - self.dictionary.id(term)

    def _condition(
        self, expression: Expression, numbers: dict[Variable, int], encoded: list[list[int]]
    ) -> None:
        kind, variables, negated = _comparison(expression)
        self.kinds.add(kind)
        places = [numbers[variable] for variable in variables]
        last = int(negated)
        if kind == at.OF_TERM:
            compiled = _compiled(expression)
            last = self.term_conditions.setdefault(compiled, len(self.term_conditions))
            places.append(0)
        elif kind == at.SAME_VALUE and not negated:
            # Join on values instead of comparing all pairs of literals.
            relation, value = self.relation(_VALUE, 2), len(numbers)
            numbers[Variable(f"{_VALUE}{value}")] = value
            encoded += [[relation, 2, place, value, -1] for place in places]
            return
        needed = (1 << places[0]) | (0 if kind == at.OF_TERM else 1 << places[1])
        self.conditions.append([kind, needed, *places, last])

    def _need_indexes(self, atoms: list[list[int]], head: list[int]) -> None:
        """Record the arguments of each relation that may be bound when an atom is joined."""
        connected = _components(atoms)
        bound_by_head = {argument for argument in head[2:] if argument >= 0}
        for atom, component in zip(atoms, connected, strict=True):
            relation, arity, *arguments = atom
            arguments = arguments[:arity]
            constant = sum(1 << p for p, a in enumerate(arguments) if a < 0)
            variables = sorted({a for a in arguments if a >= 0})
            alone = len(set(connected)) > 1 or not any(
                a in bound_by_head
                for other, number in zip(atoms, connected, strict=True)
                if number == component
                for a in other[2:]
            )
            for size in range(len(variables)):
                for chosen in combinations(variables, size):
                    mask = constant
                    for place, argument in enumerate(arguments):
                        if argument in chosen:
                            mask |= 1 << place
                    if mask or alone:
                        self.masks.setdefault(relation, set()).add(mask)


def _components(atoms: Sequence[list[int]]) -> list[int]:
    """Label atoms by connected component; atoms are connected by shared variables."""
    found = list(range(len(atoms)))
    variables = [{a for a in atom[2:] if a >= 0} for atom in atoms]
    for one in range(len(atoms)):
        for two in range(one):
            if variables[one] & variables[two] and found[one] != found[two]:
                old, new = found[one], found[two]
                found = [new if number == old else number for number in found]
    return found


def _compiled(expression: Expression) -> CompiledExpression:
    """An expression of one variable, which gets the number 0."""
    if isinstance(expression, Operation):
        return (expression.operator, tuple(map(_compiled, expression.arguments)))
    return 0 if isinstance(expression, Variable) else expression


def compile_program(
    rules: Sequence[Rule], dictionary: Dictionary, base: RuleProgram | None = None
) -> RuleProgram:
    """Compile supported rules (see `is_supported`) to numbers.

    Relations and indexes of a `base` keep their numbers and positions.
    """
    builder = _Builder.over(dictionary, base)
    for rule in rules:
        _check(rule)
        builder.add(rule)
    type_id = dictionary.id(TYPE)
    indexes: list[list[int]] = []
    choices = np.full((len(builder.names), 8, 2), -1, np.int64)
    relations = np.zeros((len(builder.names), at.RELATION_WIDTH), np.int64)
    for relation in range(len(builder.names)):
        relations[relation, 1] = len(indexes)
        index_of: dict[int, int] = {}
        for mask in sorted(builder.masks.get(relation, ())):
            # Subject and object of a triple are rarely bound without its property.
            parts = (1, 4) if relation == 0 and mask == 5 else (mask,)
            for choice, part in enumerate(parts):
                if part not in index_of:
                    index_of[part] = len(indexes)
                    places = [place for place in range(MAX_ARITY) if part >> place & 1]
                    indexes.append([*places, -1, -1][: at.INDEX_WIDTH])
                choices[relation, mask, choice] = index_of[part]
        relations[relation, 2:] = len(index_of), builder.arities[relation]
    lists: list[int] = []
    guards = _Guards(builder, type_id)
    found = [
        _lists(given, lists, guards, len(builder.names))
        for given in (builder.readers, builder.heads)
    ]
    heads = relations.copy()
    relations[:, 0], heads[:, 0] = found[0][0], found[1][0]
    redundancy = redundancy_of(tuple(rules))
    return RuleProgram(
        *_with_classes(builder, redundancy),
        _array(builder.conditions, at.CONDITION_WIDTH),
        np.array(lists, np.int64),
        relations,
        heads,
        _array(indexes, at.INDEX_WIDTH),
        choices,
        (found[0][1], found[1][1]),
        (found[0][2], found[1][2]),
        guards.arrays(),
        type_id,
        tuple(builder.names),
        tuple(builder.arities),
        tuple(TermCondition(expression) for expression in builder.term_conditions),
        builder.names.get(_VALUE),
        at.SAME_VALUE in builder.kinds,
        at.HAS_DATATYPE in builder.kinds,
        tuple(frozenset(builder.masks.get(n, ())) for n in range(len(builder.names))),
        dict(zip(rules, zip(redundancy.derived, redundancy.skipped, strict=True), strict=True)),
    )


def _with_classes(builder: _Builder, redundancy: Redundancy) -> tuple[Numbers, Numbers]:
    """Rules with the classes that they derive, and atoms with those that they skip."""
    rules, atoms = [], []
    for rule, derived, skipped in zip(
        builder.rules, redundancy.derived, redundancy.skipped, strict=True
    ):
        rules.append([*rule, derived])
        first, count = rule[4:6]
        others = [0] * (count - len(skipped))  # atoms about values
        own = builder.atoms[first : first + count]
        atoms += [[*atom, mask] for atom, mask in zip(own, [*skipped, *others], strict=True)]
    return _array(rules, at.RULE_WIDTH), _array(atoms, at.ATOM_WIDTH)


class _Guards:
    """The guards of each reader, and the facts that satisfy them; see `live`."""

    def __init__(self, builder: _Builder, type_id: int) -> None:
        self.type_id = type_id
        self._builder = builder
        self._keys: tuple[dict[int, int], ...] = ({}, {}, {})  # by relation, property, class

    def of(self, reader: Reader, *, of_class: bool) -> int:
        """A bit mask of the atoms bound by the property, or also the class, of a fact."""
        known = {a for a in reader.atom[3 : 5 if of_class else 4] if a >= 0}
        if reader.atom[0] or reader.atom[3] == reader.atom[4]:
            return 0
        head = self._builder.rules[reader.rule]
        found = 0
        for number, atom in enumerate(self._builder.atoms[head[4] : head[4] + head[5]]):
            relation, arity, *arguments = atom
            arguments = arguments[:arity]
            keys = sum(1 << place for place, a in enumerate(arguments) if a in known)
            if number == reader.place or not keys or (relation == 0 and arguments[1] >= 0):
                continue
            found |= 1 << number
            is_ground = all(a < 0 or a in known for a in arguments)
            self._note(relation, arguments, keys if is_ground else keys << 3)
        return found

    def _note(self, relation: int, arguments: list[int], keys: int) -> None:
        by_relation, by_property, by_class = self._keys
        if relation:
            by_relation[relation] = by_relation.get(relation, 0) | keys
        elif arguments[1] == -1 - self.type_id and arguments[2] < 0:
            class_ = -1 - arguments[2]
            by_class[class_] = by_class.get(class_, 0) | keys
        else:
            label = -1 - arguments[1]
            by_property[label] = by_property.get(label, 0) | keys

    def arrays(self) -> tuple[Numbers, Numbers, Numbers]:
        """The keys of guards by relation, property and class."""
        sizes = (len(self._builder.names), *(max(d, default=-1) + 1 for d in self._keys[1:]))
        by_relation, by_property, by_class = (np.zeros(size, np.int64) for size in sizes)
        for array, keys in zip((by_relation, by_property, by_class), self._keys, strict=True):
            for label, positions in keys.items():
                array[label] = positions
        return by_relation, by_property, by_class


def _lists(
    readers: Sequence[Reader], lists: list[int], guards: _Guards, relations: int
) -> tuple[list[int], Numbers, Numbers]:
    """The atoms or heads that a fact may match, by relation, property and class."""
    type_id = guards.type_id
    triples = [reader for reader in readers if reader.atom[0] == 0]
    properties = sorted({-1 - r.atom[3] for r in triples if r.atom[3] < 0} | {type_id})
    classes = sorted(
        {-1 - r.atom[4] for r in triples if r.atom[3] == -1 - type_id and r.atom[4] < 0}
    )

    def matching(property_: int, class_: int) -> list[Reader]:
        constant = (-1 - property_, -1 - class_)
        return [
            reader
            for reader in triples
            if reader.atom[3] >= 0
            or (
                reader.atom[3] == constant[0]
                and (property_ != type_id or reader.atom[4] >= 0 or reader.atom[4] == constant[1])
            )
        ]

    def put(elements: Sequence[Reader], *, of_class: bool) -> int:
        place = len(lists)
        lists.append(len(elements))
        for reader in elements:
            lists.extend([reader.rule, reader.place or 0, guards.of(reader, of_class=of_class)])
        return place

    if not lists:
        # No list has offset 0; the next one is that of a scan.
        lists.extend([0] * (at.SCAN_LIST + 1 + at.ELEMENT_WIDTH))
    places = [
        put([r for r in readers if r.atom[0] == n and (n or r.atom[3] >= 0)], of_class=False)
        for n in range(relations)
    ]
    by_property = np.zeros(max(properties, default=-1) + 1, np.int64)
    for property_ in properties:
        of_class = property_ == type_id
        by_property[property_] = put(matching(property_, -1), of_class=of_class)
    by_class = np.zeros(max(classes, default=-1) + 1, np.int64)
    for class_ in classes:
        by_class[class_] = put(matching(type_id, class_), of_class=True)
    return places, by_property, by_class


def _array(rows: list[list[int]], width: int) -> Numbers:
    return np.array(rows, np.int64).reshape(len(rows), width)
