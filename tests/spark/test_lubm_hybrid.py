"""LUBM(1) by backward chaining as Spark does it: the paper's patterns, and the 14 queries."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.hybrid import _UB, PATTERNS, _rules
from benchmarks.report import DATA
from benchmarks.sparql import QUERIES, query_text
from corollary import KnowledgeBase
from corollary.algorithms.reasoner import Options
from corollary.core.tables import Tables
from corollary.lang.parser import parse_atom
from corollary.query.results import Solutions
from corollary.reasoning.hybrid import make_hybrid
from tests.engines.factories import session
from tests.engines.spark.inline import inline

FOLDER = DATA / "lubm"
if not (FOLDER / "queries").is_dir():
    pytest.skip(f"LUBM(1) is not here: {FOLDER}", allow_module_level=True)

FILES = [str(FOLDER / "univ-bench.swat-ns.nt"), str(FOLDER / "lubm-1.nt.gz")]
DEGREE = "[<http://www.Department0.University0.edu/GraduateStudent1>, ub:degreeFrom, ?y]"


@pytest.fixture(scope="module")
def kb() -> KnowledgeBase:
    """The materialization, by the rules that the paper has."""
    kb = KnowledgeBase(_rules("owl-rl"))
    kb.load(*FILES)
    return kb


def tables(facts: Any) -> Tables:
    return {predicate: facts.rows(predicate) for predicate in facts.predicates()}


def test_the_patterns_of_the_paper(kb: KnowledgeBase) -> None:
    """Of all but small relations, facts are in partitions, and rules are rounds of tasks."""
    engine = inline(kb.state.dictionary, small=2000, partitions=2)
    explicit = engine.facts(tables(kb.state.reasoner.explicit))
    kept = make_hybrid(kb.program, explicit, engine, Options(coarse=True))
    for name, text in PATTERNS.items():
        atom = parse_atom(text or DEGREE, _UB, name)
        found, expected = tables(kept.match(atom)), tables(kb.state.reasoner.match(atom))
        assert found.keys() == expected.keys() != set(), name
        for predicate, rows in expected.items():
            assert np.array_equal(found[predicate], rows), name


@pytest.mark.long
@pytest.mark.spark
def test_queries_on_spark(kb: KnowledgeBase, tmp_path: Path) -> None:
    from corollary.knowledge_base.spark.querying import SparkStore

    hybrid = KnowledgeBase(kb.program, mode="hybrid")
    hybrid.load(*FILES)
    hybrid.save(tmp_path / "store")
    store = SparkStore(tmp_path / "store", session=session())
    texts = [query_text(FOLDER / "queries", number) for number in QUERIES]
    for text in (*texts, DEGREE.replace("ub:degreeFrom", f"<{_UB['ub']}degreeFrom>")):
        found, expected = store.collect(text), kb.query(text)
        assert isinstance(found, Solutions)
        assert isinstance(expected, Solutions)
        assert Counter(map(str, found)) == Counter(map(str, expected)), text
