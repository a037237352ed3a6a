"""Choose the reasoner that materializes a program."""

from __future__ import annotations

from corollary.algorithms.maintain import Maintainer
from corollary.algorithms.reasoner import Options, Reasoner
from corollary.core.engine import Engine, F
from corollary.lang.program import Program
from corollary.reasoning.adaptive import AdaptiveReasoner
from corollary.reasoning.specialization import SpecializedReasoner
from corollary.reasoning.templates import is_specializable


def materializing_reasoner(
    program: Program,
    explicit: F,
    engine: Engine[F],
    options: Options[F] | None = None,
    *,
    specialize: bool | None = None,
) -> Reasoner[F]:
    """Create the reasoner for a program.

    The data decide how rules with variable properties or classes are evaluated
    (`AdaptiveReasoner`); `specialize` forces either all rules as written (False) or specialized
    rules, however many (True).

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
    if specialize:
        return SpecializedReasoner(program, explicit, engine, options)
    return AdaptiveReasoner(program, explicit, engine, options)
