"""Forks: states that start as copies of another one, and change on their own.

Sets of facts are immutable, so a fork shares them; its reasoner is built by its first update, as
that of an opened store. A fork has no store, so its updates leave no trace.
"""

from __future__ import annotations

from dataclasses import replace

from corollary.core.dictionary import Dictionary
from corollary.core.engine import Engine, Facts
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.engines.columnar.facts import ColumnarFacts
from corollary.knowledge_base.axioms import Axioms
from corollary.knowledge_base.state import KnowledgeState


def fork(state: KnowledgeState) -> KnowledgeState:
    """Fork a state; the fork adds new terms to the same dictionary.

    >>> from corollary.knowledge_base.base import KnowledgeBase
    >>> kb = KnowledgeBase("p(1) .")
    >>> len(fork(kb.state).reasoner.facts)
    1
    """
    return _forked(state, state.engine, state.reasoner.explicit, state.reasoner.facts)


def fork_with_terms(state: KnowledgeState, terms: int | None = None) -> KnowledgeState:
    """Fork a state with a copy of its dictionary, or of its first `terms` terms.

    On Spark, the dictionary is shared.

    >>> from corollary.knowledge_base.base import KnowledgeBase
    >>> kb = KnowledgeBase("p(1) . p(2) .")
    >>> len(fork_with_terms(kb.state).dictionary), len(fork_with_terms(kb.state, 1).dictionary)
    (2, 1)
    """
    columnar: object = state.engine
    if not isinstance(columnar, ColumnarEngine):
        return fork(state)
    engine = columnar.with_dictionary(_copied(state.dictionary, terms))
    sets = []
    for facts in (state.reasoner.explicit, state.reasoner.facts):
        assert isinstance(facts, ColumnarFacts), "facts of the embedded engine"
        sets.append(ColumnarFacts(engine.space, facts.relations))
    return _forked(state, engine, *sets)  # type: ignore[arg-type]


def forget_terms(state: KnowledgeState, terms: int) -> None:
    """Forget all but the first `terms` terms, which are those of all facts and rules.

    The engine and the dictionary are replaced: values that refer to the old ones stay valid. On
    Spark, nothing is forgotten.
    """
    fresh = fork_with_terms(state, terms)
    if fresh.engine is state.engine:
        return
    state.engine, state.reasoner = fresh.engine, fresh.reasoner
    state.axioms, state.queries = fresh.axioms, None
    if state.store is not None:
        state.store.dictionary = fresh.dictionary


def _copied(dictionary: Dictionary, terms: int | None) -> Dictionary:
    copy = Dictionary()
    texts = dictionary.texts_from(0)
    if len(texts):
        copy.encode_texts(texts if terms is None else texts.slice(0, terms))
    return copy


def _forked(
    state: KnowledgeState, engine: Engine[Facts], explicit: Facts, facts: Facts
) -> KnowledgeState:
    return replace(
        state,
        engine=engine,
        reasoner=state.settings.stored(state.reasoner.program, explicit, facts, engine),
        axioms=Axioms(state.axioms.stated, state.axioms.asserted, engine),
        store=None,
        in_transaction=False,
        queries=None,
    )
