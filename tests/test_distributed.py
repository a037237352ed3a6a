"""DataFrames in, DataFrames out: a materialization on Spark, and an update of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from corollary.algorithms.maintain import Maintainer
from corollary.core.changes import Changes
from corollary.core.dictionary import Dictionary
from corollary.core.partial import PartialDictionary
from corollary.core.tables import decode, encode
from corollary.core.terms import text_of
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.knowledge_base.distributed import materialize
from corollary.lang.program import Program
from corollary.lang.syntax import TRIPLE, Variable
from corollary.rdf.rulesets import rules

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

FACTS = Program.parse(
    "[<Student>, rdfs:subClassOf, <Person>] . [<Person>, rdfs:subClassOf, <Agent>] ."
    "[<takes>, rdfs:domain, <Student>] . [<likes>, rdfs:subPropertyOf, <knows>] ."
    + "".join(f"[<s{n}>, <takes>, <c{n % 3}>] . [<s{n}>, <likes>, <s{n + 1}>] ." for n in range(20))
).facts


@pytest.mark.parametrize("partial", [False, True])
def test_a_frame_is_materialized_and_updated(spark: SparkSession, partial: bool) -> None:
    dictionary = Dictionary()
    embedded = ColumnarEngine(dictionary)
    program = rules("rhodf")
    given = embedded.facts(encode(FACTS, dictionary))
    expected = Maintainer(program, given, embedded)
    rows = [[dictionary.id(t) for t in fact.terms] for fact in FACTS]  # type: ignore[arg-type]
    columns = {f"arg{at}": pa.array(column) for at, column in enumerate(zip(*rows, strict=True))}
    names = pa.array(["triples"] * len(rows))
    frame = spark.createDataFrame(pa.table({"relation": names, **columns}))
    terms: Dictionary = dictionary
    if partial:
        terms_of = [t for r in program.rules for a, _ in r.atoms() for t in a.terms]
        constants = [t for t in terms_of if not isinstance(t, Variable)]
        known = {t: i for t in constants if (i := dictionary.find(t)) is not None}
        terms = PartialDictionary(
            known, len(dictionary), lambda ids: dictionary.texts(ids).to_pylist()
        )
    found = materialize(frame, program, terms, small=5, partitions=2)
    wanted = set(decode(expected.facts, dictionary)) - set(FACTS)
    assert found.count == len(wanted)
    assert found.rounds
    derived = {
        (row.arg0, row.arg1, row.arg2)
        for row in found.derived.collect()
        if row.relation == "triples"
    }
    assert derived == {tuple(map(dictionary.id, fact.terms)) for fact in wanted}  # type: ignore[arg-type]
    gone = [fact for fact in FACTS if text_of(fact.terms[0]) == "<s3>"]  # type: ignore[arg-type]
    changes = found.reasoner.update(
        Changes(found.engine.facts({}), found.engine.facts(encode(gone, dictionary)))
    )
    after = expected.update(Changes(embedded.facts({}), embedded.facts(encode(gone, dictionary))))
    assert len(changes.deleted) == len(after.deleted) > len(gone)
    assert {fact.relation for fact in FACTS} == {TRIPLE}
