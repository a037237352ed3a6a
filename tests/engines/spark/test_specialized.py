"""Rules written out for a schema, on Spark: the facts that the columnar engine has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from corollary.core.changes import Changes
from corollary.core.dictionary import Dictionary
from corollary.core.tables import decode, encode
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.lang.printer import Printer
from corollary.lang.program import Program
from corollary.rdf.rulesets import rules
from corollary.reasoning.specialization import SpecializedReasoner

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

START = """
    [<Student>, rdfs:subClassOf, <Person>] . [<ann>, a, <Student>] .
    [<headOf>, rdfs:subPropertyOf, <worksFor>] . [<ann>, <headOf>, <lab>] .
"""
AXIOM = "[<headOf>, rdfs:subPropertyOf, <worksFor>] ."


def states(engine: Any) -> list[set[str]]:
    """The facts at first, without an axiom, and with it again."""

    def facts(text: str) -> Any:
        return engine.facts(encode(Program.parse(text).facts, engine.dictionary))

    def now() -> set[str]:
        return {Printer().atom(atom) for atom in decode(kept.facts, engine.dictionary)}

    kept = SpecializedReasoner(rules("rhodf"), facts(START), engine)
    found = [now()]
    for inserted, deleted in (("", AXIOM), (AXIOM, "")):
        kept.update(Changes(facts(inserted), facts(deleted)))
        found.append(now())
    return found


def test_axiom_comes_and_goes(spark: SparkSession) -> None:
    from corollary.engines.spark.engine import SparkEngine

    engine = SparkEngine(Dictionary(), ColumnarEngine, spark)
    assert states(engine) == states(ColumnarEngine(Dictionary()))
