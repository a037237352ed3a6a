"""The examples of the papers, as the papers state their results."""

from __future__ import annotations

from itertools import combinations, product

import pytest

from corollary.lang import reference
from corollary.lang.program import Program
from corollary.lang.syntax import Atom, Rule
from tests.test_programs import Materialize, every_engine


def facts(text: str) -> set[Atom]:
    return set(Program.parse(text).facts)


def without(program: Program, removed: set[Atom]) -> Program:
    return program - Program.of(facts=removed)


# Motik, Nenov, Piro, Horrocks: Incremental Update of Datalog Materialisation: the
# Backward/Forward Algorithm. AAAI 2015.

TUTORS = Program.parse("""
    [R1] TA(?x) :- Person(?x), Tutor(?x, ?y), Course(?y) .
    [R2] Person(?x) :- TA(?x) .
    [R3] Person(?x) :- Tutor(?x, ?y) .
    [R4] Course(?y) :- Tutor(?x, ?y) .
    Tutor(john, math) .  Tutor(peter, math) .  Tutor(john, phys) .
""")


@every_engine
def test_table_1_running_example(materialize: Materialize) -> None:
    assert materialize(TUTORS) == facts("""
        Tutor(john, math) .  Tutor(peter, math) .  Tutor(john, phys) .
        Person(peter) .  TA(peter) .  Course(math) .
        Person(john) .  TA(john) .  Course(phys) .
    """)


@every_engine
def test_table_1_after_deletion_loses_the_deleted_fact_only(materialize: Materialize) -> None:
    e1 = facts("Tutor(john, math) .")
    assert materialize(without(TUTORS, e1)) == materialize(TUTORS) - e1


@every_engine
@pytest.mark.parametrize("n", [1, 2, 10])
def test_rules_1_to_3_need_one_of_two_starts(n: int, materialize: Materialize) -> None:
    steps = "".join(f"C_{i}(?x) :- C_{i - 1}(?x) .\n" for i in range(2, n + 1))
    program = Program.parse(f"C_1(?x) :- A(?x) .\nC_1(?x) :- B(?x) .\n{steps}A(a) . B(a) .")
    a, b = facts("A(a) ."), facts("B(a) .")
    chain = facts("".join(f"C_{i}(a) ." for i in range(1, n + 1)))
    assert materialize(program) == a | b | chain
    assert materialize(without(program, a)) == b | chain
    assert materialize(without(program, a | b)) == set()


# Kotowski, Bry, Brodt: Reasoning as Axioms Change: Incremental View Maintenance Reconsidered.
# RR 2011. Example 2; xy stands for reach(x, y).

GRAPH = "ab ac be cf ed dg ef fg fh"
REACH = Program.parse(
    """
    [r1] reach(?s, ?d) :- edge(?s, ?d) .
    [r2] reach(?s, ?d) :- reach(?s, ?i), edge(?i, ?d) .
    """
    + "".join(f"edge({', '.join(pair)}) .\n" for pair in GRAPH.split())
)
EDGE_EF = facts("edge(e, f) .")


def reach(pairs: str) -> set[Atom]:
    return facts("".join(f"reach({', '.join(pair)}) ." for pair in pairs.split()))


@every_engine
def test_example_2_fixpoint(materialize: Materialize) -> None:
    assert materialize(REACH) == set(REACH.facts) | reach(
        "ab ac ad ae af ag ah  bd be bf bg bh  cf cg ch  dg  ed ef eg eh  fg fh"
    )


@every_engine
def test_example_2_without_an_edge(materialize: Materialize) -> None:
    left = materialize(without(REACH, EDGE_EF))
    assert materialize(REACH) - left == EDGE_EF | reach("ef eh bf bh")
    assert left <= materialize(REACH)


def test_example_2_facts_that_depend_on_an_edge() -> None:
    fixpoint = reference.materialize(REACH)
    ground = reference.substitute
    instances = [
        (ground(rule.head, s), {ground(atom, s) for atom, _ in rule.atoms()})
        for rule in REACH.rules
        for s in reference.instances(rule, fixpoint)
    ]
    dependent, size = set(EDGE_EF), 0
    while len(dependent) > size:
        size = len(dependent)
        dependent |= {head for head, body in instances if body & dependent}
    assert dependent == EDGE_EF | reach("ef  bf af eg eh  bg bh ag ah")


# Hu, Motik, Horrocks: Modular Materialisation of Datalog Programs. AAAI 2019. Examples 1 and 2.

TRANSITIVE, SYMMETRIC = Program.parse("""
    [transitive] R(?x, ?z) :- R(?x, ?y), R(?y, ?z) .
    [symmetric] R(?y, ?x) :- R(?x, ?y) .
""").rules


def r_facts(pairs: set[tuple[int, int]]) -> set[Atom]:
    return facts("".join(f"R(c{i}, c{j}) ." for i, j in pairs))


def applicable(rule: Rule, known: set[Atom]) -> int:
    return len(reference.instances(rule, known))


@every_engine
@pytest.mark.parametrize("n", range(1, 9))
def test_example_1_chain(n: int, materialize: Materialize) -> None:
    program = Program.of([TRANSITIVE], r_facts({(i, i + 1) for i in range(n)}))
    materialization = materialize(program)
    assert materialization == r_facts({(i, j) for j in range(n + 1) for i in range(j)})
    assert applicable(TRANSITIVE, materialization) == len(list(combinations(range(n + 1), 3)))


@every_engine
@pytest.mark.parametrize("n", range(1, 9))
def test_example_2_ring(n: int, materialize: Materialize) -> None:
    ring = {(i, i + 1) for i in range(1, n)} | {(n, 1)}
    materialization = materialize(Program.of([TRANSITIVE, SYMMETRIC], r_facts(ring)))
    assert materialization == r_facts(set(product(range(1, n + 1), range(1, n + 1))))
    assert applicable(TRANSITIVE, materialization) == n**3
    assert applicable(SYMMETRIC, materialization) == n**2
