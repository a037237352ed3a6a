"""Random programs in which most rules fire, from a seed.

The programs of `strategies` shrink well, but few of their rules have an instance. Here all facts
and atoms share three or four constants and most terms are variables. Every relation may depend on
every other: a rule that would make the program invalid, because it cannot be stratified, is left
out.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product
from random import Random

from hypothesis import strategies as st

from corollary.errors import InvalidProgram
from corollary.lang.program import Program
from corollary.lang.syntax import (
    AGGREGATE_FUNCTIONS,
    TRIPLE,
    TYPE,
    XSD,
    Aggregate,
    Atom,
    Binding,
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
)
from tests.strategies import ARITIES, CLASSES, CONSTANTS, NUMBERS, PROPERTIES, RELATIONS

VARIABLES = [Variable(name) for name in "xyz"]


def dense_programs(*, attempts: int = 8) -> st.SearchStrategy[Program]:
    """Programs made from up to `attempts` rules; Hypothesis chooses seeds, and cannot shrink."""
    return st.integers(0, 2**64 - 1).map(lambda seed: dense_program(seed, attempts))


def dense_program(seed: int, attempts: int = 8) -> Program:
    """The program of a seed."""
    make = Maker(Random(seed))
    program = Program.of([], make.facts())
    for _ in range(attempts):
        try:
            program = program.added(make.rule())
        except InvalidProgram:
            continue
    return program


def more_facts(program: Program, seed: int, number: int = 12) -> frozenset[Atom]:
    """Facts that match atoms of the rules, negated ones above all, over the program's constants."""
    random = Random(seed)
    pool = sorted({constant for fact in program.facts for constant in fact.constants()}, key=repr)
    atoms = [*program.facts]
    for rule in program.rules:
        for atom, reading in rule.atoms():
            atoms += [atom] * (8 if reading == "negated" else 1)
    if not atoms or not pool:
        return frozenset()
    return frozenset(
        Atom(
            atom.relation,
            tuple(random.choice(pool) if isinstance(t, Variable) else t for t in atom.terms),
        )
        for atom in random.choices(atoms, k=number)
    )


def compositions() -> st.SearchStrategy[Program]:
    """Programs whose rules are all like P(x, z) :- Q(x, y), R(y, z), with a graph."""
    return st.integers(0, 2**64 - 1).map(composition)


def composition(seed: int) -> Program:
    """The compositions of a seed, in strata of one or two relations."""
    random = Random(seed)
    x, y, z = VARIABLES
    heads = random.choice((("path",), ("path",), ("path", "two")))
    rules = []
    for _ in range(random.choice((1, 1, 2, 3))):
        head = random.choice(heads)
        others = [random.choice((*heads, "edge", "arc")) for _ in range(2)]
        others[random.randrange(2)] = random.choice(heads)  # recursive
        left, right = ((x, y), (y, z))
        if random.random() < 0.2:
            left = (y, x)
        if random.random() < 0.2:
            right = (z, y)
        body = [Atom(others[0], left), Atom(others[1], right)]
        if random.random() < 0.3:
            body.reverse()
        rules.append(Rule(Atom(head, (x, z)), tuple(body)))
    nodes = [Literal(str(n), XSD + "integer") for n in range(random.randrange(2, 8))]
    facts = [
        Atom(relation, (a, b))
        for relation in ("edge", "arc", *heads)
        for a in nodes
        for b in nodes
        if random.random() < 0.8 / len(nodes)
    ]
    return Program.of(dict.fromkeys(rules), facts)


class Maker:
    """Draws the rules and facts of a program."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.pool = random.sample([*CONSTANTS, *PROPERTIES], random.choice((3, 4)))
        # Few relations, so that rules meet in them; triples are always among them.
        self.relations = [TRIPLE, *random.sample([r for r in RELATIONS if r != TRIPLE], 4)]

    def maybe(self, probability: float) -> bool:
        return self.random.random() < probability

    def constant(self) -> Constant:
        return self.random.choice(self.pool)

    def term(self) -> Term:
        return self.random.choice(VARIABLES) if self.maybe(0.93) else self.constant()

    def atom(self, term: Callable[[], Term]) -> Atom:
        relation = self.random.choice(self.relations)
        terms = [term() for _ in range(ARITIES[relation])]
        if relation == TRIPLE:
            if self.maybe(0.75):
                terms[1] = self.random.choice(PROPERTIES)
            if terms[1] == TYPE and self.maybe(0.6):
                terms[2] = self.random.choice(CLASSES)
        return Atom(relation, tuple(terms))

    def facts(self) -> list[Atom]:
        """A good part of all facts that there are over the pool, less of the wider relations."""
        found = []
        for relation in self.relations:
            if relation != TRIPLE:
                tuples = list(product(self.pool, repeat=ARITIES[relation]))
                few = min(1.0, 16 / len(tuples)) * self.random.choice((0, 0.4, 0.6, 0.8))
                found += [Atom(relation, terms) for terms in tuples if self.maybe(few)]
        for subject in self.pool:
            triples = [Atom(TRIPLE, (subject, p, o)) for p in PROPERTIES[:2] for o in self.pool]
            triples += [Atom(TRIPLE, (subject, TYPE, c)) for c in (*CLASSES, self.constant())]
            found += [triple for triple in triples if self.maybe(0.4)]
        return found

    def rule(self) -> Rule:
        body: list[BodyLiteral] = [
            self.atom(self.term) for _ in range(self.random.choice((0, 1, 1, 2, 2, 2, 3)))
        ]
        if self.maybe(0.2) or not body:
            body.append(self.aggregate())
        bound = sorted(
            Rule(Atom("nil", ()), tuple(body)).bound_variables(), key=lambda variable: variable.name
        )
        negated = self.random.choice((0, 0, 0, 0, 1, 1, 2))
        body += [Negation(self.atom(self.term)) for _ in range(negated)]
        if bound and self.maybe(0.25):
            body.append(Filter(self.condition([*bound, *NUMBERS])))
        # Two variables at most, so that wide relations stay small.
        chosen = self.random.sample(bound, min(2, len(bound)))
        head = self.atom(
            lambda: self.random.choice(chosen) if chosen and self.maybe(0.9) else self.constant()
        )
        self.random.shuffle(body)
        return Rule(head, tuple(body))

    def aggregate(self) -> Aggregate:
        atoms = [self.atom(self.term) for _ in range(self.random.choice((1, 1, 2)))]
        found = sorted({v for atom in atoms for v in atom.variables()}, key=lambda v: v.name)
        if not found:
            return self.aggregate()
        group = self.random.sample(found, self.random.randrange(min(3, len(found) + 1)))
        # What is not in the group is local: rename it, so that it meets no other variable.
        local = {v: v if v in group else Variable(v.name + "1") for v in found}
        bindings = [
            Binding(
                self.random.choice(AGGREGATE_FUNCTIONS),
                local[self.random.choice(found)],
                Variable(name),
            )
            for name in self.random.choice((("n",), ("n", "m"), ("z2",)))
        ]
        return Aggregate(
            tuple(
                Atom(a.relation, tuple(local[t] if isinstance(t, Variable) else t for t in a.terms))
                for a in atoms
            ),
            tuple(group),
            tuple(bindings),
        )

    def condition(self, leaves: list[Expression]) -> Expression:
        if self.maybe(0.25):
            signs = self.random.choice((("&&", 2), ("||", 2), ("!", 1)))
            return Operation(signs[0], tuple(self.condition(leaves) for _ in range(signs[1])))
        sides = [self.random.choice(leaves), self.random.choice(leaves)]
        if self.maybe(0.3):
            sign = self.random.choice("+-*/")
            sides[0] = Operation(sign, (sides[0], self.random.choice(leaves)))
        return Operation(self.random.choice(["<", "<=", "=", "!=", "!="]), tuple(sides))


TRANSITIVE = "r(?x, ?z) :- r(?x, ?y), r(?y, ?z) ."
SYMMETRIC = "r(?b, ?a) :- r(?a, ?b) ."
EXTRA = [
    "r(?x, ?y) :- e(?x, ?y) .",
    "r(?x, ?y) :- s(?x, ?y) .",
    "s(?x, ?y) :- r(?y, ?x), m(?x) .",
    "s(?x, ?z) :- s(?x, ?y), e(?y, ?z) .",
    "m(?x) :- r(?x, ?x) .",
    "r(?x, ?y) :- m(?x), e(?x, ?y) .",
    "r(?x, ?x) :- s(?x, ?y), r(?y, ?y) .",
    "q(?x) :- e(?x, ?y), NOT r(?x, ?y) .",
    "q(?y) :- e(?x, ?y), NOT r(?y, ?x), NOT m(?x) .",
    "n(?x, ?k) :- AGGREGATE(r(?x, ?y) ON ?x BIND count(?y) AS ?k) .",
    "s(?y, ?x) :- s(?x, ?y) .",
    "s(?x, ?z) :- s(?y, ?z), s(?x, ?y) .",
]


# For properties: rules that read all triples, among them those of the transitive property, and
# rules that derive any property.
WIDE = [
    "r(?x, ?x) :- [?x, ?p, ?y] .",
    "r(?y, ?y) :- [?x, ?p, ?y] .",
    "s(?x, ?y) :- [?x, ?p, ?y], m(?x) .",
    "m(?x) :- [?x, ?p, ?x] .",
    "r(?x, ?y) :- [?x, a, ?y] .",
    "[?x, a, ?y] :- r(?x, ?y), m(?y) .",
    "[?x, ?p, ?y] :- t(?x, ?p, ?y) .",
    "[?y, ?p, ?x] :- t(?x, ?p, ?y), m(?x) .",
    "[?x, a, ?y] :- u(?x, ?y) .",
]


def modular_program(seed: int) -> Program:
    """A transitive relation, perhaps symmetric, with a graph and rules that read and derive it."""
    random = Random(seed)
    rules = [TRANSITIVE, *random.sample(EXTRA, random.randrange(6))]
    if random.random() < 0.5:
        rules.append(SYMMETRIC)
    size = random.randrange(2, 8)
    facts = [
        f"{relation}({a}, {b}) ."
        for relation in ("r", "s", "e")
        for a in range(size)
        for b in range(size)
        if random.random() < random.choice((0.5, 0.9, 1.5)) / size
    ]
    facts += [f"m({a}) ." for a in range(size) if random.random() < 0.2]
    properties = random.random() < 0.5
    if properties:
        rules += random.sample(WIDE, random.randrange(4))
        facts += [
            f"t({a}, <http://example.org/{random.choice('rse')}>, {b}) ."
            for a in range(size)
            for b in range(size)
            if random.random() < 0.6 / size
        ]
        facts += [f"u({a}, {b}) ." for a in range(size) for b in range(2) if random.random() < 0.1]
        facts += [f"[{a}, a, {random.randrange(size)}] ." for a in range(size) if a % 3 == 0]
    text = "\n".join([*rules, *facts])
    if properties:
        text = re.sub(r"\b([rse])\(", r"<http://example.org/\1>(", text)
        text = re.sub(r"(?<=[(\[ ])(\d)(?=[,)\]])", r"<n\1>", text)
    return Program.parse(text)
