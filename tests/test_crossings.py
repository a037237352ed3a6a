"""The random cases reach both sides of every threshold, so that no way of computing is left out.

A threshold that is added later fails here until cases reach both sides of it, or until it is listed
with the reason why comparisons with it cannot be recorded and what reaches both sides instead.
"""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Any

import pytest

from corollary.algorithms.maintain import ALGORITHMS
from corollary.algorithms.seminaive import materialize
from corollary.core.dictionary import Dictionary
from corollary.core.engine import Engine
from corollary.core.tables import encode
from corollary.core.tuning import current
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.knowledge_base import KnowledgeBase
from corollary.lang import reference
from corollary.lang.program import Program
from corollary.rdf.rulesets import rules
from corollary.reasoning.materialized import materializing_reasoner
from corollary.testing import Crossings, all_thresholds, draw, recorded_crossings, thresholds
from tests.algorithms.replay import replay as replay_stream
from tests.algorithms.replay import states
from tests.configurations import random_configuration, replay
from tests.dense import composition, modular_program
from tests.engines.conformance import LAWS, MakeEngine
from tests.engines.factories import spark_values
from tests.engines.spark.inline import inline
from tests.fuzz.laws import check, drawn_engine
from tests.random_ontologies import random_history
from tests.spark.test_thresholds import CROSSED
from tests.streams import stream

_COMPILED = "a compiled loop compares it"
_SUMMED = "it is one summand of a comparison with"
NOT_RECORDED = {
    "bitset_nodes_limit": f"{_COMPILED}; tests/engines/columnar/test_linear_closure.py",
    "closure_block_pairs": "the size of a block; tests/engines/columnar/test_linear_closure.py",
    "reach_list_room": "the pool grows; tests/engines/columnar/test_linear_closure.py",
    "closure_diff_edge_words": f"{_SUMMED} floats; tests/engines/columnar/test_closure_diff.py",
    "rematerialize_cost_facts": f"{_SUMMED} deletion_cost_facts",
    "first_instances": f"{_SUMMED.replace('summand', 'factor')} numbers of rows",
    "insertion_cost_facts": f"{_SUMMED} deletion_cost_facts",
    "transposed_pairs_limit": "bodies of three atoms; tests/engines/columnar/test_join.py",
    "goal_checked_facts_allowance": f"{_SUMMED} hard_search_facts_limit",
    "tuple_facts_of_axiom": f"{_SUMMED} tuple_facts_limit",
    "facts_of_specialized_rule": f"{_SUMMED} specialized_rules_limit",
    "least_tuple_steps": f"{_SUMMED} tuple_steps_of_fact",
    "interpreted_call_elements": "a loop compares it until it is compiled; tests/core/test_jit.py",
    "tuple_slice_steps": f"{_COMPILED}; tests/test_tuples.py",
    "proof_rule_instances_limit": "the instances are sliced; `many_instances`",
    **dict.fromkeys(
        ("prefetched_subjects_limit", "prefetched_predicates_limit"),
        "look-ups of large sets; tests/engines/spark/test_lookups.py",
    ),
    "driver_terms_limit": "only filters over tables of terms; tests/engines/spark/test_answers.py",
    "broadcast_terms_limit": "only filters over tables; tests/engines/spark/test_filters.py",
    "cached_lookups_limit": "only updates of stores; tests/engines/spark/test_looked_up.py",
    "driver_literals_limit": "only look-ups by value; tests/spark/test_chunks.py",
    "remembered_texts_limit": "only dictionaries of stores; tests/core/test_partial.py",
    **dict.fromkeys(CROSSED, "only updates of stores; tests/spark/test_thresholds.py"),
}


def drawn_inline_engine(random: Random) -> MakeEngine:
    def make(dictionary: Dictionary) -> Engine[Any]:
        return inline(dictionary, small=current("driver_facts_limit"))

    return make


def laws(crossings: Crossings, batch: int) -> None:
    for number, law in enumerate(LAWS, 1000 * batch):
        check(law, number, 60, drawn_engine, crossings)
        check(law, number, 25, drawn_inline_engine, crossings)


def streams(crossings: Crossings, batch: int) -> None:
    for seed in range(60 * batch, 60 * batch + 60):
        random = Random(seed)
        program = (composition(seed), modular_program(seed), None)[seed % 3]
        case = stream(seed, program, 12)
        expected = states(case)
        for algorithm in ALGORITHMS:
            make = partial(ColumnarEngine, threads=random.choice((1, 2, 17)))
            options = {name: random.random() < 0.3 for name in ("coarse", "reopen")}
            with thresholds(**draw(random.getrandbits(32))), recorded_crossings(crossings):
                for _ in replay_stream(make, case, algorithm, expected, **options):
                    pass


def ontologies(crossings: Crossings, batch: int) -> None:
    for seed in range(40 * batch, 40 * batch + 40):
        random = Random(seed)
        history = random_history(seed, "tiny", changes=5)
        for _ in range(4):
            replay(history, random_configuration(history.program, random), None, crossings)


def proofs(crossings: Crossings) -> None:
    for seed in range(12):
        case = stream(seed, composition(seed))
        limits = draw(seed) | {"proof_heads_batch": 1 + seed % 4}
        limits["proof_rule_instances_limit"] = 1 + seed % 3
        with thresholds(**limits), recorded_crossings(crossings):
            kb = KnowledgeBase(case.program)
            for fact in sorted(reference.materialize(case.program), key=repr)[:20]:
                kb.explain(fact)


def memory_for_indexes(crossings: Crossings) -> None:
    """Updates of specialized rules, with memory for an index and without."""
    limits = {"tuple_facts_limit": 0, "tuple_facts_of_axiom": 0, "specialized_rules_limit": 0}
    members = "".join(f"<urn:x{n}> a <urn:c> ." for n in range(30))
    for share in (1, 1 << 40):
        with thresholds(**limits, index_memory_share=share), recorded_crossings(crossings):
            kb = KnowledgeBase(rules("rhodf"))
            for text in ("<urn:c> rdfs:subClassOf <urn:d> ." + members, "<urn:y> a <urn:c> ."):
                with kb.transaction() as tx:
                    tx.insert(text)


def many_instances(crossings: Crossings) -> None:
    """A fact with more instances than a proof looks at."""
    facts = "".join(f"e(1, {number}) ." for number in range(60))
    limits = {"join_piece_rows": 8, "proof_rule_instances_limit": 2}
    with thresholds(**limits), recorded_crossings(crossings):
        kb = KnowledgeBase("q(?x) :- p(?x, ?y) . p(?x, ?y) :- e(?x, ?y) ." + facts)
        kb.explain("q(1)")


def hybrid_queries(crossings: Crossings) -> None:
    rules = "".join(f"p{n}(?x, ?y) :- e(?x, ?y), e(?y, {n}) ." for n in range(6))
    with thresholds(hybrid_plans_limit=2), recorded_crossings(crossings):
        kb = KnowledgeBase(f"{rules} e(1, 2) . e(2, 3) .", mode="hybrid")
        for number in range(6):
            kb.facts(f"p{number}(1, ?y)")


def driver_rounds(crossings: Crossings) -> None:
    """A recursion that the driver finishes, and one that returns to the tasks."""
    text = (
        "p(?x, ?y) :- e(?x, ?y) . p(?x, ?z) :- q(?x, ?y), e(?y, ?z) ."
        "q(?x, ?y) :- p(?x, ?y), n(?y) ."
    )
    program = Program.parse(text + "".join(f"e({n}, {n + 1}) . n({n}) ." for n in range(12)))
    for limit in (1, 64):
        limits = {"driver_rounds_limit": limit, "broadcast_facts_limit": 0}
        with thresholds(**limits), recorded_crossings(crossings):
            dictionary = Dictionary()
            engine = inline(dictionary, small=0, finish=1000)
            facts = engine.facts(encode(program.facts, dictionary))
            materialize(program.without_facts(), facts, engine)


def large_schemas(crossings: Crossings) -> None:
    """Axioms that rules are specialized to, or that every task has."""
    text = "".join(f"[<C{n}>, rdfs:subClassOf, <C{n + 1}>] ." for n in range(9))
    program = Program.parse(text + "[<x>, a, <C0>] .")
    for axioms, replicated in ((1000, 0), (0, 0), (0, 1000)):
        limits = {"distributed_rules_limit": axioms, "replicated_facts_limit": replicated}
        with thresholds(**limits), recorded_crossings(crossings):
            engine: Any = inline(Dictionary(), small=0)
            materializing_reasoner(
                rules("rhodf"), engine.facts(encode(program.facts, engine.dictionary)), engine
            )


def equalities(crossings: Crossings) -> None:
    """Representatives of terms that are members of few classes, and of many."""
    members = "".join(f"<urn:x{n}> a <urn:C{n % 4}> ." for n in range(8))
    for limit in (1, 64):
        with thresholds(marked_classes_limit=limit), recorded_crossings(crossings):
            kb = KnowledgeBase(rules("owl-rl"), equality="rewrite")
            for change in (members, "<urn:x0> owl:sameAs <urn:x5> ."):
                with kb.transaction() as tx:
                    tx.insert(change)


def computed_values(crossings: Crossings) -> None:
    """Values that the driver computes, and tasks."""
    program = Program.parse("double(?x, ?y) :- n(?x), BIND(?x * 2 AS ?y) . n(1) . n(2) .")
    for limit in (0, 64):
        with thresholds(driver_values_limit=limit), recorded_crossings(crossings):
            engine = spark_values(Dictionary())
            facts = engine.facts(encode(program.facts, engine.dictionary))
            materialize(program.without_facts(), facts, engine)


@pytest.mark.long
def test_every_threshold_is_crossed() -> None:
    crossings: Crossings = {}
    for direct in (
        proofs,
        many_instances,
        memory_for_indexes,
        hybrid_queries,
        driver_rounds,
        large_schemas,
        equalities,
        computed_values,
    ):
        direct(crossings)
    known = all_thresholds()
    assert {*NOT_RECORDED} <= {*known}
    missing = {*known}
    for batch in range(6):  # random cases, until both sides of all were reached
        for search in (laws, streams, ontologies):
            search(crossings, batch)
            missing = {
                name
                for name, sides in crossings.items()
                if sides != {False, True} and name not in NOT_RECORDED
            }
            if not missing:
                return
    assert not missing
