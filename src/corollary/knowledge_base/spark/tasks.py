"""Preload the code that tasks of the pipeline run; see `engines.spark.daemon`."""

from __future__ import annotations

from corollary.algorithms.maintain import Maintainer
from corollary.core.dictionary import Dictionary
from corollary.core.jit import stop_interpreting
from corollary.core.tables import encode
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.engines.spark import answers, base, parse, rounds, task  # noqa: F401 - to be loaded
from corollary.engines.spark import encode as encoding  # noqa: F401
from corollary.knowledge_base.spark import parts  # noqa: F401
from corollary.lang.program import Program
from corollary.store.term_hash import hashes

# Rules of the most frequent shapes, which load the kernels for them.
_PROGRAM = """
r(?x, ?z) :- p(?x, ?y), q(?y, ?z) .
s(?x) :- r(?x, ?y) .
s(?y) :- r(?x, ?y) .
t(?y, ?x) :- p(?x, ?y) .
t(?x, ?z) :- t(?x, ?y), t(?y, ?z) .
u(?x, ?y) :- p(?x, ?y), s(?x), q(?y, ?z) .
p(<a>, <b>) . q(<b>, <c>) . p(<c>, <d>) . q(<d>, <a>) .
"""


def warm() -> int:
    """Derive facts, to load the kernels; returns the number of facts.

    >>> warm()
    12
    """
    stop_interpreting()
    program = Program.parse(_PROGRAM)
    engine = ColumnarEngine(Dictionary())
    facts = engine.facts(encode(program.facts, engine.dictionary))
    hashes(engine.dictionary.texts_from(0))
    return len(Maintainer(program.without_facts(), facts, engine).facts)


warm()
