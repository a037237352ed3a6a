"""Choose the reasoner for a program, its mode and its treatment of equality.

Reasoners are imported when one is made: a query over a store needs none, and they take 0.1 s.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corollary.algorithms.reasoner import Options, Reasoner
from corollary.core.engine import Engine, F
from corollary.core.notices import note_growth
from corollary.lang.program import Program
from corollary.lang.syntax import Atom


def choose_reasoner(
    program: Program,
    explicit: F,
    engine: Engine[F],
    *,
    mode: str = "materialized",
    materialize: Sequence[Atom] = (),
    equality: str = "rules",
    specialize: bool | None = None,
    **options: Any,
) -> Reasoner[F]:
    """Create the reasoner for a program; the other options are those of `Options`.

    `materialize` are the patterns that a hybrid reasoner materializes in addition to the schema's.

    >>> from corollary.core.dictionary import Dictionary
    >>> from corollary.engines.columnar.engine import ColumnarEngine
    >>> from corollary.rdf.rulesets import rules
    >>> engine = ColumnarEngine(Dictionary())
    >>> program = rules("owl-rl")
    >>> for options in ({}, {"equality": "rewrite"}, {"mode": "hybrid"}):
    ...     print(type(choose_reasoner(program, engine.facts({}), engine, **options)).__name__)
    AdaptiveReasoner
    RepresentativeReasoner
    AdaptiveReasoner
    """
    note_growth(program)
    chosen: Options[F] = Options(**options)
    if mode == "hybrid":
        from corollary.reasoning.hybrid import make_hybrid

        return make_hybrid(
            program,
            explicit,
            engine,
            chosen,
            materialize=materialize,
            specialize=specialize,
        )
    if equality == "rewrite":
        from corollary.reasoning.representatives import RepresentativeReasoner

        return RepresentativeReasoner(program, explicit, engine, chosen, specialize=specialize)
    from corollary.reasoning.materialized import materializing_reasoner

    return materializing_reasoner(program, explicit, engine, chosen, specialize=specialize)
