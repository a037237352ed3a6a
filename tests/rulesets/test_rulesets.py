"""The built-in rule sets: every rule is there under its name, and does what it says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corollary.algorithms import seminaive
from corollary.algorithms.constraints import violations
from corollary.core.dictionary import Dictionary
from corollary.core.tables import decode, encode
from corollary.engines.columnar.engine import ColumnarEngine
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
    assert caught.value.hint == "did you mean owl-rl? There are rhodf, rdfs, owl-horst, owl-rl"


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

_OWL = WELL_KNOWN_PREFIXES["owl"]
_RDF, _RDFS = WELL_KNOWN_PREFIXES["rdf"], WELL_KNOWN_PREFIXES["rdfs"]
_THINGS = [IRI(f"http://example.org/{name}") for name in "abcd"]
_PROPERTIES = [IRI(f"http://example.org/{name}") for name in "pq"]
_SCHEMA = [
    *(IRI(_RDFS + name) for name in ("subClassOf", "subPropertyOf", "domain", "range")),
    *(IRI(_OWL + name) for name in ("sameAs", "inverseOf", "equivalentClass", "disjointWith")),
    *(IRI(_OWL + name) for name in ("onProperty", "someValuesFrom", "allValuesFrom", "hasValue")),
    *(IRI(_OWL + name) for name in ("intersectionOf", "unionOf", "oneOf", "propertyChainAxiom")),
    *(IRI(_OWL + name) for name in ("hasKey", "differentFrom", "members")),
    *(IRI(_RDF + name) for name in ("first", "rest", "type")),
]
_KINDS = [
    *(IRI(_OWL + name) for name in ("TransitiveProperty", "SymmetricProperty", "AllDifferent")),
    *(IRI(_OWL + name) for name in ("FunctionalProperty", "Class", "Nothing", "Thing")),
    IRI(_RDF + "nil"),
    IRI(XSD + "byte"),
]
_LITERALS = [Literal("1", XSD + "integer"), Literal("1.0", XSD + "decimal"), Literal("x")]
_nodes = st.sampled_from([*_THINGS, *_THINGS, *_PROPERTIES])
_triples = st.builds(
    lambda s, p, o: Atom(TRIPLE, (s, p, o)),
    _nodes,
    st.sampled_from([*_PROPERTIES, *_SCHEMA]),
    st.one_of(_nodes, st.sampled_from([*_KINDS, *_LITERALS])),
)


@pytest.mark.slow
@pytest.mark.parametrize("name", RULE_SETS)
@settings(max_examples=40)
@given(graph=st.sets(_triples, min_size=1, max_size=12))
def test_oracle_of_random_ontologies(name: str, graph: set[Atom]) -> None:
    program = rules(name)
    # Axioms that nothing refers to only cost the oracle time.
    axioms = [f for f in program.facts if not {*f.terms}.isdisjoint({*_KINDS, *_SCHEMA[-3:]})]
    small = Program.of([*program.rules, *program.constraints], axioms[:8])
    slow = reference.materialize(small, graph)
    fast, contradicted = materialized(small, graph)
    assert fast == slow
    assert contradicted == instances(reference.violations(small, slow))


def test_auxiliary_facts_are_no_results() -> None:
    graph = Program.parse(PREFIX + "[:x, owl:sameAs, :y] . [:C, owl:oneOf, rdf:nil] .").facts
    assert {fact.relation for fact in closure(graph, "owl-rl").facts} == {TRIPLE}
