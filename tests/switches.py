"""Random programs in which some rules stand for others while certain facts hold, from a seed.

A rule with a *switch* in its body, an atom without variables or one that few facts match, derives
what another rule without the switch derives, as long as the switch is on. So which rules are
redundant changes with the facts, and streams of commits turn switches on and off.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from random import Random

import corollary as co
from corollary.algorithms.hybrid_cleanup import candidates
from corollary.algorithms.hybrid_goals import Patterns
from corollary.errors import InvalidProgram
from corollary.lang.parser import WELL_KNOWN_PREFIXES, parse_atom
from corollary.lang.program import Program
from corollary.lang.syntax import (
    IRI,
    TRIPLE,
    TYPE,
    Aggregate,
    Atom,
    BodyLiteral,
    Literal,
    Negation,
    Rule,
)
from corollary.reasoning.hybrid import schema_patterns
from tests.ontologies import (
    ABOUT_CLASSES,
    ABOUT_PROPERTIES,
    BETWEEN,
    CLASSES,
    KINDS,
    PROPERTIES,
    THINGS,
    Commit,
    Stream,
)

_OWL = WELL_KNOWN_PREFIXES["owl"]
_EQUIVALENT = (IRI(_OWL + "equivalentClass"), IRI(_OWL + "equivalentProperty"))
_DATA = ("a(?x)", "b(?x)", "c(?y)", "e(?x, ?y)", "e(?y, ?x)", "f(?x, ?y)", "f(?x, ?x)")
_GROUND = ("on(1)", "on(2)", "link(1, 2)")
_SWITCHES = (*_GROUND, "on(?x)", "link(?x, 1)", "link(?x, ?y)", "open()")
_FACTS = ("on({0})", "link({0}, {1})", "a({0})", "b({0})", "c({0})", "e({0}, {1})", "f({0}, {1})")
_PATTERNS = {  # and how likely each is to be kept
    **dict.fromkeys(("on(1)", "on(2)", "link(1, 2)", "link(?x, 1)", "open()"), 0.3),
    **dict.fromkeys(("on(?x)", "link(?x, ?y)"), 0.7),
    **dict.fromkeys(("q(?x)", "r(?x, ?y)"), 0.7),
    **dict.fromkeys(("r(1, ?y)", "e(?x, ?y)", "a(?x)"), 0.1),
}
_BETWEEN_CLASSES = [*ABOUT_CLASSES, _EQUIVALENT[0]]
_BETWEEN_PROPERTIES = [*ABOUT_PROPERTIES, _EQUIVALENT[1], IRI(_OWL + "inverseOf")]


@dataclass(frozen=True)
class Case:
    """A program, rules that come later, and patterns to keep."""

    program: Program
    others: tuple[Rule, ...]
    patterns: tuple[Atom, ...]


def switch_case(seed: int) -> Case:
    """The case of a seed."""
    random = Random(seed)
    triples = random.random() < 0.4
    texts: list[str] = []
    for _ in range(random.randrange(1, 4)):
        texts += _similar(random)
    if random.random() < 0.4:
        texts.append(random.choice(("on(?x) :- a(?x), c(?x)", "link(?x, ?x) :- on(?x), b(?x)")))
    if random.random() < 0.3:
        texts.append("on(1) :- a(2)")
    if random.random() < 0.3:
        texts.append("n(?x) :- a(?x), NOT q(?x)")
    if random.random() < 0.3:
        texts.append("k(?x, ?n) :- AGGREGATE(r(?x, ?y) ON ?x BIND count(?y) AS ?n)")
    program, others = Program.of([]), list[Rule]()
    for text in texts:
        [rule] = Program.parse(f"{text} .").rules
        rule = _rule_of_triples(rule) if triples else rule
        try:
            added = program if rule in program else program.added(rule)
        except InvalidProgram:
            continue
        if random.random() < 0.7:
            program = added
        elif rule not in others:
            others.append(rule)
    values = [str(n) for n in range(1, random.choice((3, 4, 5)))]
    facts = [
        _atom(fact.format(random.choice(values), random.choice(values)), triples)
        for fact in random.choices(_FACTS, k=random.randrange(4, 14))
    ]
    facts += [
        _atom(switch, triples)
        for switch in (*_GROUND, "on(3)", "link(2, 2)", "open()")
        if random.random() < 0.7
    ]
    program |= Program.of([], facts)
    known = {TRIPLE, *(atom.relation for atom in _atoms(program))}
    patterns = [_atom(pattern, triples) for pattern, p in _PATTERNS.items() if random.random() < p]
    return Case(
        program,
        tuple(rule for rule in others if rule not in program),
        tuple(pattern for pattern in patterns if pattern.relation in known),
    )


def _atoms(program: Program) -> Iterator[Atom]:
    yield from program.facts
    for rule in program.rules:
        yield rule.head
        yield from (atom for atom, _ in rule.atoms())


def _similar(random: Random) -> list[str]:
    """Rules with the same head of which some do what others do while switches are on."""
    head = random.choice(("q(?x)", "r(?x, ?y)", "r(?y, ?x)", "q(1)"))
    least = random.sample(_DATA, random.choice((1, 1, 2)))
    if "?y" in head and not any("?y" in atom for atom in least):
        least.append(random.choice(("e(?x, ?y)", "f(?x, ?y)")))
    if not any("?x" in atom for atom in least):
        least.append("a(?x)")
    if random.random() < 0.2:
        least.append("r(?x, ?z)" if "?z" not in head else "q(?x)")
    bodies = [[*least, random.choice(_GROUND)], [*least, random.choice(_DATA)]]
    for _ in range(random.randrange(3)):
        body = [*least, *random.sample(_SWITCHES, random.choice((0, 1, 1, 2)))]
        if random.random() < 0.5:
            body.append(random.choice(_DATA))
        bodies.append(body)
    for body in bodies:
        random.shuffle(body)
    random.shuffle(bodies)
    return [f"{head} :- {', '.join(dict.fromkeys(body))}" for body in bodies]


def _atom(text: str, triples: bool) -> Atom:
    atom = parse_atom(text, {}, "")
    return _triple(atom) if triples else atom


def _triple(atom: Atom) -> Atom:
    """The atom as a triple: relations of one argument are classes, of two properties."""
    terms = tuple(IRI(f"n{t.lexical}") if isinstance(t, Literal) else t for t in atom.terms)
    if len(terms) == 1:
        return Atom(TRIPLE, (terms[0], TYPE, IRI(atom.relation)))
    if len(terms) == 2:
        return Atom(TRIPLE, (terms[0], IRI(atom.relation), terms[1]))
    return Atom(atom.relation, terms)


def _rule_of_triples(rule: Rule) -> Rule:
    def literal(part: BodyLiteral) -> BodyLiteral:
        match part:
            case Atom():
                return _triple(part)
            case Negation():
                return Negation(_triple(part.atom))
            case Aggregate():
                return replace(part, atoms=tuple(map(_triple, part.atoms)))
        return part

    return Rule(_triple(rule.head), tuple(map(literal, rule.body)))


# -- ontologies ----------------------------------------------------------------------------------


@cache
def switch_axioms(name: str) -> tuple[Atom, ...]:
    """The axioms that make a rule of a rule set redundant: `rdfs:subClassOf` is transitive, say.

    Of these, the usual ones: others make all terms equal, so that everything follows.
    """
    pairs = candidates(co.rules(name).rules, Patterns(schema_patterns()))
    ground = (pair for pair in pairs if not any(list(atom.variables()) for atom in pair.needed))
    return tuple(
        atom
        for atom in dict.fromkeys(atom for pair in ground for atom in pair.needed)
        if (atom.terms[0] != TYPE and atom.terms[1] == TYPE)
        or (atom.terms[1] in ABOUT_PROPERTIES and atom.terms[0] in _EQUIVALENT)
    )


def ontology_stream(seed: int, name: str, commits: int = 6) -> Stream:
    """A small ontology with data, and commits that insert and delete axioms of all kinds."""
    random = Random(seed)
    switches = random.sample(switch_axioms(name), min(4, len(switch_axioms(name))))

    def triple() -> Atom:
        if switches and random.random() < 0.25:
            return random.choice(switches)
        about = random.random()
        if about < 0.25:
            terms = random.choice(CLASSES), random.choice(_BETWEEN_CLASSES), random.choice(CLASSES)
        elif about < 0.4:
            between = random.choice(_BETWEEN_PROPERTIES)
            terms = random.choice(PROPERTIES), between, random.choice(PROPERTIES)
        elif about < 0.5:
            terms = random.choice(PROPERTIES), random.choice(BETWEEN), random.choice(CLASSES)
        elif about < 0.6:
            terms = random.choice(PROPERTIES), TYPE, random.choice(KINDS)
        elif about < 0.75:
            terms = random.choice(THINGS), TYPE, random.choice(CLASSES)
        else:
            terms = random.choice(THINGS), random.choice(PROPERTIES), random.choice(THINGS)
        return Atom(TRIPLE, terms)

    first = frozenset(triple() for _ in range(random.randrange(4, 16)))
    now, made = set(first), []
    for _ in range(commits):
        inserted = frozenset(triple() for _ in range(random.choice((0, 0, 1, 3))))
        known = sorted(now, key=repr)
        deleted = random.sample(known, min(len(known), random.choice((0, 1, 2, 4))))
        deleted += [axiom for axiom in switches if axiom in now and random.random() < 0.4]
        made.append(Commit(inserted, frozenset(deleted)))
        now = (now - made[-1].deleted) | inserted
    return Stream(first, made)
