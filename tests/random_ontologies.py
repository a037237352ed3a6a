"""Random OWL 2 RL ontologies with data, and streams of changes of both, from a seed.

Every family of rules of OWL 2 RL has a kind of axiom here; `KINDS` lists them. Schemas may be
cyclic. In `wild` ontologies the vocabulary itself stands in the place of classes, properties and
individuals, so that data derive axioms and axioms change what the vocabulary means. `many` axioms
of one kind take a case beyond thresholds that count axioms.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import corollary as co
from corollary.lang.parser import WELL_KNOWN_PREFIXES
from corollary.lang.program import Program
from corollary.lang.syntax import Rule
from corollary.rdf.equality import NEEDED
from tests.configurations import Change, History, Triple, as_triple


def known(name: str) -> str:
    """A prefixed name as N-Triples writes it."""
    prefix, local = name.split(":")
    return f"<{WELL_KNOWN_PREFIXES[prefix]}{local}>"


TYPE, FIRST, REST, NIL = map(known, ("rdf:type", "rdf:first", "rdf:rest", "rdf:nil"))
ON, SAME = known("owl:onProperty"), known("owl:sameAs")
LITERALS = [
    '"x"',
    '"x"@en',
    f'"1"^^{known("xsd:integer")}',
    f'"01"^^{known("xsd:integer")}',
    f'"1.0"^^{known("xsd:decimal")}',
    f'"1"^^{known("xsd:byte")}',
    f'"300"^^{known("xsd:byte")}',
    f'"true"^^{known("xsd:boolean")}',
    f'"2020-01-01T00:00:00Z"^^{known("xsd:dateTime")}',
]
_SOME_VOCABULARY = [
    known(name)
    for name in (
        "rdfs:subClassOf",
        "rdfs:subPropertyOf",
        "rdfs:domain",
        "owl:equivalentClass",
        "owl:inverseOf",
        "owl:sameAs",
        "owl:onProperty",
        "rdf:type",
        "rdf:first",
        "rdf:rest",
    )
]
_CLASSES_OF_VOCABULARY = [
    known(name)
    for name in (
        "owl:Class",
        "owl:Thing",
        "owl:TransitiveProperty",
        "owl:SymmetricProperty",
        "owl:FunctionalProperty",
        "owl:ObjectProperty",
        "owl:DatatypeProperty",
        "rdfs:Datatype",
    )
]


class Ontology:
    """The names that axioms and data are made of; new ones for lists and restrictions."""

    def __init__(self, random: Random, *, names: int, things: int, wild: float) -> None:
        self.random, self.wild = random, wild
        self.classes = [f"<urn:C{at}>" for at in range(names)]
        self.properties = [f"<urn:p{at}>" for at in range(names)]
        self.things = [f"<urn:t{at}>" for at in range(things)]
        self._made = 0

    def new(self, prefix: str) -> str:
        self._made += 1
        return f"<urn:{prefix}-{self._made}>"

    def one(self, names: list[str], vocabulary: list[str]) -> str:
        return self.random.choice(vocabulary if self.random.random() < self.wild else names)

    def class_(self) -> str:
        return self.one(self.classes, _CLASSES_OF_VOCABULARY)

    def property(self) -> str:
        return self.one(self.properties, _SOME_VOCABULARY)

    def thing(self) -> str:
        return self.one(self.things, [*self.classes, *self.properties, *_SOME_VOCABULARY])

    def value(self) -> str:
        return self.random.choice(LITERALS) if self.random.random() < 0.15 else self.thing()

    def list_of(self, items: list[str]) -> tuple[str, list[Triple]]:
        """A list: its first cell, and its triples."""
        cells = [self.new("list") for _ in items]
        triples = []
        for cell, item, rest in zip(cells, items, [*cells[1:], NIL], strict=False):
            triples += [(cell, FIRST, item), (cell, REST, rest)]
        return (cells or [NIL])[0], triples


Maker = Callable[[Ontology], list[Triple]]


def _between(name: str, one: Callable[[Ontology], str], two: Callable[[Ontology], str]) -> Maker:
    return lambda of: [(one(of), known(name), two(of))]


def _kind(name: str) -> Maker:
    return lambda of: [(of.property(), TYPE, known(name))]


def _restriction(name: str, value: Callable[[Ontology], str], more: str = "") -> Maker:
    def make(of: Ontology) -> list[Triple]:
        node = of.random.choice((of.new("restriction"), of.class_()))
        found = [(node, ON, of.property()), (node, known(name), value(of))]
        if more:
            found.append((node, known(more), of.random.choice((of.class_(), known("owl:Thing")))))
        if of.random.random() < 0.5:
            pair = [node, of.class_()]
            of.random.shuffle(pair)
            found.append((pair[0], known("rdfs:subClassOf"), pair[1]))
        return found

    return make


def _list(
    name: str,
    subject: Callable[[Ontology], str],
    item: Callable[[Ontology], str],
    kind: str = "",
) -> Maker:
    def make(of: Ontology) -> list[Triple]:
        first, cells = of.list_of([item(of) for _ in range(of.random.choice((0, 1, 2, 2, 3, 4)))])
        node = of.new("axiom") if kind else subject(of)
        found = [(node, known(name), first), *cells]
        return [*found, (node, TYPE, known(kind))] if kind else found

    return make


def _negative(of: Ontology) -> list[Triple]:
    node, literal = of.new("negative"), of.random.random() < 0.3
    target = ("owl:targetValue", of.random.choice(LITERALS))
    if not literal:
        target = ("owl:targetIndividual", of.thing())
    return [
        (node, known("owl:sourceIndividual"), of.thing()),
        (node, known("owl:assertionProperty"), of.property()),
        (node, known(target[0]), target[1]),
    ]


def _number(of: Ontology) -> str:
    return f'"{of.random.randrange(2)}"^^{known("xsd:nonNegativeInteger")}'


_C, _P, _T, _V = Ontology.class_, Ontology.property, Ontology.thing, Ontology.value
KINDS: dict[str, Maker] = {
    "subclass": _between("rdfs:subClassOf", _C, _C),
    "subproperty": _between("rdfs:subPropertyOf", _P, _P),
    "domain": _between("rdfs:domain", _P, _C),
    "range": _between("rdfs:range", _P, _C),
    "inverse": _between("owl:inverseOf", _P, _P),
    "equivalent class": _between("owl:equivalentClass", _C, _C),
    "equivalent property": _between("owl:equivalentProperty", _P, _P),
    "same": _between("owl:sameAs", _T, _T),
    "different": _between("owl:differentFrom", _T, _T),
    "disjoint classes": _between("owl:disjointWith", _C, _C),
    "disjoint properties": _between("owl:propertyDisjointWith", _P, _P),
    "complement": _between("owl:complementOf", _C, _C),
    "symmetric": _kind("owl:SymmetricProperty"),
    "transitive": _kind("owl:TransitiveProperty"),
    "functional": _kind("owl:FunctionalProperty"),
    "inverse functional": _kind("owl:InverseFunctionalProperty"),
    "irreflexive": _kind("owl:IrreflexiveProperty"),
    "asymmetric": _kind("owl:AsymmetricProperty"),
    "object property": _kind("owl:ObjectProperty"),
    "datatype property": _kind("owl:DatatypeProperty"),
    "class": lambda of: [(of.class_(), TYPE, known("owl:Class"))],
    "some values": _restriction("owl:someValuesFrom", _C),
    "some things": _restriction("owl:someValuesFrom", lambda of: known("owl:Thing")),
    "all values": _restriction("owl:allValuesFrom", _C),
    "has value": _restriction("owl:hasValue", _V),
    "cardinality": _restriction("owl:maxCardinality", _number),
    "qualified cardinality": _restriction("owl:maxQualifiedCardinality", _number, "owl:onClass"),
    "intersection": _list("owl:intersectionOf", _C, _C),
    "union": _list("owl:unionOf", _C, _C),
    "one of": _list("owl:oneOf", _C, _T),
    "key": _list("owl:hasKey", _C, _P),
    "chain": _list("owl:propertyChainAxiom", _P, _P),
    "all different": _list("owl:members", _C, _T, "owl:AllDifferent"),
    "distinct members": _list("owl:distinctMembers", _C, _T, "owl:AllDifferent"),
    "all disjoint classes": _list("owl:members", _C, _C, "owl:AllDisjointClasses"),
    "all disjoint properties": _list("owl:members", _C, _P, "owl:AllDisjointProperties"),
    "negative assertion": _negative,
}
# Statements about individuals: two of three are edges.
DATA: list[Maker] = [
    lambda of: [(of.thing(), TYPE, of.class_())],
    lambda of: [(of.thing(), of.property(), of.thing())],
    lambda of: [(of.thing(), of.property(), of.value())],
]
# Kinds of axioms whose number matters, and that do not multiply what is derived.
MANY = [
    "has value",
    "some values",
    "subclass",
    "domain",
    "subproperty",
    "all values",
    "union",
    "one of",
    "inverse",
    "functional",
]
RULE_SETS = ("rhodf", "rdfs", "owl-horst", "owl-rl")


def program_of(seed: int) -> Program:
    """A rule set, or some of the rules of OWL 2 RL; those of equality all or none."""
    random = Random(seed)
    if random.random() < 0.5:
        return co.rules(random.choice((*RULE_SETS, "owl-rl", "owl-rl")))
    whole, share = co.rules("owl-rl"), random.choice((0.3, 0.6, 0.9))
    equal = random.random() < 0.6
    rules = [
        rule
        for rule in (*whole.rules, *whole.constraints)
        if (equal if rule.name in NEEDED else random.random() < share)
    ]
    facts = [fact for fact in whole.facts if random.random() < 0.1]
    return Program.of(rules, facts).with_axioms()


def random_history(seed: int, size: str = "tiny", changes: int = 6) -> History:
    """The history of a seed: `tiny`, `medium` or `large`."""
    random = Random(f"{size} {seed}")
    wild = random.choice((0, 0, 0.1, 0.3)) if size == "tiny" else random.choice((0, 0, 0, 0.03))
    names, things, axioms, data = {
        "tiny": (3, 3, random.randrange(3, 12), random.randrange(2, 12)),
        "medium": (12, 25, random.randrange(15, 50), random.randrange(30, 120)),
        "large": (30, 60, random.randrange(15, 40), random.randrange(50, 200)),
    }[size]
    of = Ontology(random, names=names, things=things, wild=wild)
    kinds = list(KINDS)
    if size != "tiny":  # few terms are equal: else everything is
        kinds = [kind for kind in kinds if kind not in ("same", "one of") or random.random() < 0.1]
    parts = [KINDS[random.choice(kinds)](of) for _ in range(axioms)]
    parts += [random.choice(DATA)(of) for _ in range(data)]
    program = program_of(random.getrandbits(64))
    if size == "large":
        parts += _many(of, random)
        program = co.rules(random.choice(("owl-rl", "owl-rl", "owl-horst")))
    first = [part for part in parts if random.random() < 0.8]
    later = [part for part in parts if part not in first]
    stream = _Stream(random, of, program, [triple for part in first for triple in part], later)
    return History(
        f"{size} {seed}",
        program,
        frozenset(stream.explicit),
        tuple(stream.change() for _ in range(changes)),
    )


def _many(of: Ontology, random: Random) -> list[list[Triple]]:
    """Hundreds of axioms of one kind, about properties and classes that data use."""
    kind, number = random.choice(MANY), random.choice((70, 70, 150, 600))
    classes, properties = of.classes, of.properties
    if random.random() < 0.5:  # each about its own names
        of.classes = [f"<urn:M{at}>" for at in range(number)]
    if random.random() < 0.3:
        of.properties = [f"<urn:m{at}>" for at in range(number)]
    found = [KINDS[kind](of) for _ in range(number)]
    if random.random() < 0.5:
        found += [random.choice(DATA)(of) for _ in range(number)]
    of.classes, of.properties = classes, properties
    return found


class _Stream:
    """Changes one after the other; what was deleted may come back."""

    def __init__(
        self,
        random: Random,
        of: Ontology,
        program: Program,
        first: list[Triple],
        later: list[list[Triple]],
    ) -> None:
        self.random, self.of, self.later = random, of, later
        self.explicit, self.ever = set(first), set(first)
        self.rules: list[Rule] = [*program.rules]
        self.spare: list[Rule] = []
        self.axioms = [as_triple(fact) for fact in program.facts]

    def change(self) -> Change:
        random, kind = self.random, self.random.random()
        inserted: set[Triple] = set()
        deleted: set[Triple] = set()
        added: tuple[Rule, ...] = ()
        removed: tuple[Rule, ...] = ()
        if kind < 0.06:
            deleted = set(self.explicit)
        elif kind < 0.14:
            inserted = set(self.ever)  # everything comes back
        else:
            deleted = set(self.some(sorted(self.explicit), (0, 1, 1, 2, 6)))
            gone = sorted(self.ever - self.explicit)
            inserted = set(self.some(gone, (0, 0, 1, 3)))
            for _ in range(random.choice((0, 1, 1, 3))):
                inserted |= set(self.new())
            if random.random() < 0.08 and self.axioms:  # of the rule set, or also of the data
                (inserted if random.random() < 0.5 else deleted).add(random.choice(self.axioms))
            if random.random() < 0.15:
                removed, added = self.rule_change()
        self.explicit = (self.explicit - deleted) | inserted
        self.ever |= inserted
        return Change(frozenset(inserted), frozenset(deleted), added, removed)

    def some(self, triples: list[Triple], sizes: tuple[int, ...]) -> list[Triple]:
        return self.random.sample(triples, min(len(triples), self.random.choice(sizes)))

    def new(self) -> list[Triple]:
        if self.later and self.random.random() < 0.6:
            return self.later.pop()
        if self.random.random() < 0.4:
            return self.random.choice(list(KINDS.values()))(self.of)
        return self.random.choice(DATA)(self.of)

    def rule_change(self) -> tuple[tuple[Rule, ...], tuple[Rule, ...]]:
        """Rules to remove and to add again; those of equality stay."""
        added = tuple(self.spare)
        removed = tuple(
            rule
            for rule in self.random.sample(self.rules, min(2, len(self.rules)))
            if rule.name not in NEEDED
        )
        self.rules = [rule for rule in self.rules if rule not in removed] + self.spare
        self.spare = list(removed)
        return removed, added
