"""Choose the reasoner that materializes a program."""

from __future__ import annotations

from corollary.algorithms.maintain import Maintainer
from corollary.algorithms.reasoner import Options, Reasoner
from corollary.core.engine import Engine, F
from corollary.lang.program import Program
from corollary.reasoning.adaptive import AdaptiveReasoner
from corollary.reasoning.engines import is_in_process, replicate
from corollary.reasoning.replicated_schema import ReplicatedSchemaReasoner
from corollary.reasoning.specialization import SpecializedReasoner
from corollary.reasoning.templates import is_specializable, schema_predicates
from corollary.reasoning.tuning import tuning


def materializing_reasoner(
    program: Program,
    explicit: F,
    engine: Engine[F],
    options: Options[F] | None = None,
    *,
    specialize: bool | None = None,
) -> Reasoner[F]:
    """Create the reasoner for a program.

    Rules with variable properties or classes are evaluated tuple at a time or specialized to the
    schema, depending on the data (`AdaptiveReasoner`); `specialize` forces either rules as written
    (False) or specialized rules (True). On an engine outside this process, rules are specialized to
    a schema of few axioms; with more axioms, the schema is replicated to every task.

    >>> from corollary.core.dictionary import Dictionary
    >>> from corollary.engines.columnar.engine import ColumnarEngine
    >>> from corollary.rdf.rulesets import rules
    >>> engine = ColumnarEngine(Dictionary())
    >>> type(materializing_reasoner(rules("rdfs"), engine.facts({}), engine)).__name__
    'AdaptiveReasoner'
    """
    options = options or Options()
    if specialize is False or not is_specializable(program):
        return Maintainer(program, explicit, engine, options)
    if is_in_process(engine) and specialize is None and not options.coarse:
        return AdaptiveReasoner(program, explicit, engine, options)
    if not is_in_process(engine) and specialize is None:
        predicates = schema_predicates(program)
        if len(explicit.only(predicates)) > tuning.specialized_axioms_limit:
            replicate(engine, predicates)
            return ReplicatedSchemaReasoner(program, explicit, engine, options)
    return SpecializedReasoner(program, explicit, engine, options)
