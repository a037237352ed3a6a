"""The built-in rule sets: every rule is there under its name, and does what it says."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from importlib import resources
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corollary.algorithms import seminaive
from corollary.algorithms.constraints import violations
from corollary.algorithms.maintain import ALGORITHMS, Maintainer
from corollary.algorithms.reasoner import Options
from corollary.core.changes import Changes
from corollary.core.dictionary import Dictionary
from corollary.core.tables import decode, encode
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.engines.columnar.facts import ColumnarFacts
from corollary.errors import InvalidInput, Source
from corollary.lang import reference
from corollary.lang.parser import WELL_KNOWN_PREFIXES, Parser
from corollary.lang.program import Program
from corollary.lang.syntax import IRI, TRIPLE, XSD, Atom, Constant, Literal, Rule, is_auxiliary
from corollary.rdf import RULE_SETS, rules
from tests.conformance.graphs import closure

# The tables of OWL 2 Profiles, section 4.3.
TABLES = {
    4: "eq-ref eq-sym eq-trans eq-rep-s eq-rep-p eq-rep-o eq-diff1 eq-diff2 eq-diff3",
    5: "prp-ap prp-dom prp-rng prp-fp prp-ifp prp-irp prp-symp prp-asyp prp-trp prp-spo1 prp-spo2"
    " prp-eqp1 prp-eqp2 prp-pdw prp-adp prp-inv1 prp-inv2 prp-key prp-npa1 prp-npa2",
    6: "cls-thing cls-nothing1 cls-nothing2 cls-int1 cls-int2 cls-uni cls-com cls-svf1 cls-svf2"
    " cls-avf cls-hv1 cls-hv2 cls-maxc1 cls-maxc2 cls-maxqc1 cls-maxqc2 cls-maxqc3 cls-maxqc4"
    " cls-oo",
    7: "cax-sco cax-eqc1 cax-eqc2 cax-dw cax-adc",
    8: "dt-type1 dt-type2 dt-eq dt-diff dt-not-type",
    9: "scm-cls scm-sco scm-eqc1 scm-eqc2 scm-op scm-dp scm-spo scm-eqp1 scm-eqp2 scm-dom1 scm-dom2"
    " scm-rng1 scm-rng2 scm-hv scm-svf1 scm-svf2 scm-avf1 scm-avf2 scm-int scm-uni",
}
NAMES = [name for table in TABLES.values() for name in table.split()]


def statements(name: str) -> list[Rule]:
    """The statements of a rule set, the facts among them with their names."""
    file = resources.files("corollary.rdf.rulesets") / f"{name}.dl"
    return list(Parser(Source(f"{name}.dl", file.read_text(encoding="utf-8"))).statements())


OWL_RL = statements("owl-rl")


def test_owl_rl_has_all_rules_of_the_standard() -> None:
    assert len(NAMES) == len(set(NAMES)) == 78
    # `list` is not a rule of the standard, but what its rules with lists share.
    assert {rule.name for rule in OWL_RL} == {*NAMES, "list"}


def test_rdfs_has_all_patterns_of_the_standard() -> None:
    found = {rule.name for rule in statements("rdfs")}
    patterns = {"rdfD1", "rdfD2", "rdfs4a", "rdfs4b", *(f"rdfs{n}" for n in (2, 3, *range(5, 14)))}
    assert patterns <= found  # rdfs1 is the list of datatypes
    assert patterns <= {rule.name for rule in statements("owl-horst")}


def test_owl_horst_has_all_rules_of_the_paper() -> None:
    several = {5: "a b", 8: "ax bx", 12: "a b c", 13: "a b c", 14: "a b"}
    parts = {number: several.get(number, "").split() or [""] for number in range(1, 17)}
    names = {f"rdfp{number}{part}" for number, found in parts.items() for part in found}
    assert names <= {rule.name for rule in statements("owl-horst")}


@pytest.mark.parametrize("name", RULE_SETS)
def test_a_rule_set_prints_to_text_that_reads_back(name: str) -> None:
    program = rules(name)
    again = Program.parse(str(program))
    assert again == program
    assert again.constraints == program.constraints


def test_rule_sets_can_be_put_together() -> None:
    both = rules("rdfs") | rules("owl-rl")
    assert set(both.constraints) == {*rules("rdfs").constraints, *rules("owl-rl").constraints}
    assert both - rules("owl-rl") | rules("owl-rl") == both


def test_an_unknown_name_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(InvalidInput) as caught:
        rules("owl-rll")
    assert caught.value.code == "E311"
    hint = f"did you mean owl-rl? Otherwise choose one of {', '.join(RULE_SETS)}"
    assert caught.value.hint == hint


# -- each rule alone -----------------------------------------------------------------------------

PREFIX = "@prefix : <http://example.org/> .\n"


def cases() -> Iterator[tuple[str, str, str]]:
    """The cases of owl-rl.cases: rule, facts, derived triples or `false`."""
    text = (Path(__file__).parent / "owl-rl.cases").read_text(encoding="utf-8")
    text = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)
    for part in re.split(r"^= ", text, flags=re.MULTILINE)[1:]:
        name, _, rest = part.partition("\n")
        facts, expected = re.split(r"^->", rest, flags=re.MULTILINE)
        yield name, facts, expected.strip()


def alone(name: str) -> Program:
    """The rules and facts of a name, with all that auxiliary relations are derived by."""
    return Program.of(
        [r for r in OWL_RL if r.body and (r.name == name or is_auxiliary(r.head.relation))],
        [r.head for r in OWL_RL if not r.body and r.name == name],
    )


def test_every_rule_has_a_case() -> None:
    assert {name for name, _, _ in cases()} == set(NAMES)


@pytest.mark.parametrize(
    ("name", "facts", "expected"),
    [pytest.param(*case, id=f"{case[0]}-{number}") for number, case in enumerate(cases())],
)
def test_a_rule_derives_what_it_says(name: str, facts: str, expected: str) -> None:
    given_ = set(Program.parse(PREFIX + facts).facts)
    program = alone(name)
    wanted = set() if expected == "false" else set(Program.parse(PREFIX + expected).facts)
    slow = reference.materialize(program, given_)
    assert visible(slow) - given_ == wanted
    assert bool(reference.violations(program, slow)) == (expected == "false")
    fast, contradicted = materialized(program, given_)
    assert fast == slow
    assert contradicted == instances(reference.violations(program, slow))


def visible(facts: set[Atom]) -> set[Atom]:
    return {fact for fact in facts if not is_auxiliary(fact.relation)}


Instances = set[tuple[Rule, frozenset[tuple[str, Constant]]]]


def instances(found: list[tuple[Rule, reference.Substitution]]) -> Instances:
    return {(rule, frozenset((v.name, term) for v, term in s.items())) for rule, s in found}


def materialized(program: Program, facts: set[Atom]) -> tuple[set[Atom], Instances]:
    """All facts by the columnar engine, and the instances of constraints."""
    engine = ColumnarEngine(Dictionary())
    explicit = engine.facts(encode([*program.facts, *facts], engine.dictionary))
    done = seminaive.materialize(program, explicit, engine)
    found = [(v.rule, v.substitution) for v in violations(program, done.facts, engine)]
    return set(decode(done.facts, engine.dictionary)), instances(found)


# -- all rules together --------------------------------------------------------------------------

_RDF, _RDFS = WELL_KNOWN_PREFIXES["rdf"], WELL_KNOWN_PREFIXES["rdfs"]
_TYPE, _FIRST, _REST, _NIL = (IRI(_RDF + name) for name in ("type", "first", "rest", "nil"))


def owl(names: str) -> list[IRI]:
    return [IRI(WELL_KNOWN_PREFIXES["owl"] + name) for name in names.split()]


_THINGS = [IRI(f"http://example.org/{name}") for name in "abcd"]
_PROPERTIES = [IRI(f"http://example.org/{name}") for name in "pq"]
_CELLS = [IRI(f"http://example.org/cell{number}") for number in range(3)]
_LISTS = owl("intersectionOf unionOf oneOf propertyChainAxiom hasKey members distinctMembers")
_SCHEMA = [
    *(IRI(_RDFS + name) for name in ("subClassOf", "subPropertyOf", "domain", "range")),
    *owl("sameAs inverseOf equivalentClass equivalentProperty disjointWith complementOf"),
    *owl("onProperty someValuesFrom allValuesFrom hasValue maxCardinality maxQualifiedCardinality"),
    *owl("onClass differentFrom propertyDisjointWith sourceIndividual targetIndividual"),
    *owl("assertionProperty"),
    *_LISTS,
    *(_FIRST, _REST, _TYPE),
]
_KINDS = [
    *owl("TransitiveProperty SymmetricProperty FunctionalProperty InverseFunctionalProperty"),
    *owl("IrreflexiveProperty AsymmetricProperty ObjectProperty DatatypeProperty"),
    *owl("AllDifferent AllDisjointClasses AllDisjointProperties Class Nothing Thing"),
    *(IRI(XSD + name) for name in ("byte", "decimal", "string")),
]
_LITERALS = [
    *(Literal(text, XSD + "integer") for text in ("0", "1")),
    *(Literal("1.0", XSD + "decimal"), Literal("1.0", XSD + "double")),
    *(Literal("1", XSD + "nonNegativeInteger"), Literal("x", XSD + "byte"), Literal("x")),
]
_nodes = st.sampled_from([*_THINGS, *_PROPERTIES])


def triple(subject: Constant, property_: Constant, object_: Constant) -> Atom:
    return Atom(TRIPLE, (subject, property_, object_))


@st.composite
def ontologies(draw: st.DrawFn) -> set[Atom]:
    """A few axioms and facts, and a list of up to three items that some axiom is about."""
    properties = st.sampled_from([*_PROPERTIES, *_PROPERTIES, *_SCHEMA])
    objects = st.one_of(_nodes, _nodes, st.sampled_from([*_KINDS, *_LITERALS, _NIL]))
    types = st.one_of(_nodes, st.sampled_from(_KINDS))
    found = draw(st.sets(st.builds(triple, _nodes, properties, objects), max_size=9))
    found |= draw(st.sets(st.builds(triple, _nodes, st.just(_TYPE), types), max_size=3))
    items = draw(st.lists(_nodes, max_size=3))
    for cell, following, item in zip(_CELLS, [*_CELLS[1 : len(items)], _NIL], items, strict=False):
        found |= {triple(cell, _FIRST, item), triple(cell, _REST, following)}
    if items:
        found.add(triple(draw(_nodes), draw(st.sampled_from(_LISTS)), _CELLS[0]))
    return found


@pytest.mark.parametrize("name", RULE_SETS)
@settings(max_examples=30)
@given(graph=ontologies())
def test_oracle_of_random_ontologies(name: str, graph: set[Atom]) -> None:
    program = rules(name)
    # Axioms that nothing refers to only cost the oracle time.
    axioms = [fact for fact in program.facts if fact.terms[0] in {*_KINDS, _FIRST, _REST}]
    small = Program.of([*program.rules, *program.constraints], axioms[:6])
    slow = reference.materialize(small, graph)
    fast, contradicted = materialized(small, graph)
    assert fast == slow
    assert contradicted == instances(reference.violations(small, slow))


@pytest.mark.parametrize("algorithm", [name for name in ALGORITHMS if name != "counting"])
@settings(max_examples=8)
@given(graphs=st.lists(ontologies(), min_size=2, max_size=3))
def test_updates_of_random_ontologies(algorithm: str, graphs: list[set[Atom]]) -> None:
    """From one ontology to the next: what is kept up to date is what would be derived anew."""
    program, engine = rules("owl-rl"), ColumnarEngine(Dictionary())

    def facts(atoms: Iterable[Atom]) -> ColumnarFacts:
        return engine.facts(encode(atoms, engine.dictionary))

    start = facts([*program.facts, *graphs[0]])
    maintainer = Maintainer(program.without_facts(), start, engine, Options(algorithm=algorithm))
    for before, after in pairwise(graphs):
        known = set(decode(maintainer.facts, engine.dictionary))
        changes = maintainer.update(Changes(facts(after - before), facts(before - after)))
        found = set(decode(maintainer.facts, engine.dictionary))
        assert found == visible(materialized(program, after)[0])
        assert set(decode(changes.inserted, engine.dictionary)) == found - known
        assert set(decode(changes.deleted, engine.dictionary)) == known - found


def test_auxiliary_facts_are_no_results() -> None:
    graph = Program.parse(PREFIX + "[:x, owl:sameAs, :y] . [:C, owl:oneOf, rdf:nil] .").facts
    assert {fact.relation for fact in closure(graph, "owl-rl").facts} == {TRIPLE}


def test_cardinalities_of_any_integer_type() -> None:
    text = """
        [:C, owl:maxCardinality, 1] . [:C, owl:onProperty, :p] .
        [:x, a, :C] . [:x, :p, :y] . [:x, :p, :z] .
    """
    found = closure(Program.parse(PREFIX + text).facts, "owl-rl").facts
    assert set(Program.parse(PREFIX + "[:y, owl:sameAs, :z] .").facts) <= found
