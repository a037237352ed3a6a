"""Strata, recursion and dependencies."""

import pytest
from hypothesis import given

from corollary.lang.program import Program
from corollary.lang.stratify import Graph, Predicate
from corollary.lang.syntax import TRIPLE, TYPE
from tests.strategies import programs


def heads(program: Program) -> list[list[str]]:
    return [sorted({rule.head.relation for rule in stratum.rules}) for stratum in program.strata]


def test_strata_come_in_topological_order() -> None:
    program = Program.parse(
        """d(?x) :- c(?x), NOT b(?x) .
        c(?x) :- b(?x), c(?x) .
        b(?x) :- a(?x) .
        b(?x) :- e(?x) .
        e(?x) :- b(?x) ."""
    )
    assert heads(program) == [["b", "e"], ["c"], ["d"]]
    first, second, third = program.strata
    assert [str(rule.body[0]).split("'")[1] for rule in first.nonrecursive] == ["a"]
    assert len(first.recursive) == 2
    assert (len(second.nonrecursive), len(second.recursive)) == (0, 1)
    assert (len(third.nonrecursive), len(third.recursive)) == (1, 0)


def test_triples_are_stratified_by_property_and_class() -> None:
    program = Program.parse(
        """@prefix ex: <http://example.org/> .
        [?x, a, ex:Lonely] :- [?x, a, ex:Node], NOT [?x, ex:knows, ?y] .
        [?y, ex:knows, ?x] :- [?x, ex:knows, ?y] ."""
    )
    assert len(program.strata) == 2
    assert [len(stratum.recursive) for stratum in program.strata] == [1, 0]


def test_variable_classes_read_every_class() -> None:
    program = Program.parse(
        """@prefix ex: <http://example.org/> .
        typed(?x) :- [?x, a, ?c] .
        [?x, a, ex:C] :- [?x, ex:p, ?y] .
        untyped(?x) :- [?x, ?p, ?y], NOT typed(?x) ."""
    )
    assert heads(program) == [[TRIPLE], ["typed"], ["untyped"]]


def test_variable_head_class_joins_all_classes() -> None:
    program = Program.parse(
        """@prefix ex: <http://example.org/> .
        [?x, a, ?d] :- [?x, a, ?c], [?c, ex:sub, ?d] .
        [?x, a, ex:C] :- [?x, ex:p, ?y] ."""
    )
    [stratum] = program.strata
    assert stratum.predicates == {Predicate(TRIPLE, TYPE)}
    assert (len(stratum.nonrecursive), len(stratum.recursive)) == (1, 1)


many_rules = pytest.mark.parametrize(
    "rules", [5_000, pytest.param(100_000, marks=pytest.mark.long)]
)


@many_rules
def test_a_long_chain_of_rules(rules: int) -> None:
    text = "".join(f"p{i}(?x) :- p{i - 1}(?x) .\n" for i in range(1, rules + 1))
    strata = Program.parse(text).strata
    assert [stratum.rules[0].head.relation for stratum in strata] == [
        f"p{i}" for i in range(1, rules + 1)
    ]


@many_rules
def test_a_long_cycle_of_rules(rules: int) -> None:
    text = "".join(f"p{(i + 1) % rules}(?x) :- p{i}(?x) .\n" for i in range(rules))
    [stratum] = Program.parse(text).strata
    assert len(stratum.recursive) == rules


def test_dependencies_know_how_they_read() -> None:
    program = Program.parse(
        "p(?x) :- q(?x), NOT r(?x), AGGREGATE(s(?x, ?y) ON ?x BIND count(?y) AS ?n) ."
    )
    readings = {d.body.relation: d.reading for d in Graph(program.rules).dependencies}
    assert readings == {"q": "positive", "r": "negated", "s": "aggregated"}


@given(programs())
def test_every_stratum_reads_only_earlier_ones(program: Program) -> None:
    graph = Graph(program.rules)
    assert sorted(map(id, program.rules)) == sorted(id(r) for s in program.strata for r in s.rules)
    for dependency in graph.dependencies:
        body, head = graph.component[dependency.body], graph.component[dependency.head]
        assert body <= head if dependency.reading == "positive" else body < head
    for stratum in program.strata:
        for rule in stratum.rules:
            recursive = any(
                graph.component[d.body] == graph.component[d.head]
                for d in graph.dependencies
                if d.rule is rule
            )
            assert recursive == any(rule is other for other in stratum.recursive)
