"""Modes of a knowledge base, and triple patterns over dictionary ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from corollary.core.dictionary import Dictionary, Ids
from corollary.core.match import triple_rows
from corollary.errors import InvalidInput
from corollary.lang.syntax import TRIPLE, Atom, Variable
from corollary.reasoning.engines import EQUALITY
from corollary.store import layout

if TYPE_CHECKING:
    from corollary.knowledge_base.state import KnowledgeState


def check_mode(mode: str, equality: str, materialize: Sequence[object]) -> None:
    """Reject unknown modes and treatments of equality, and options that a mode does not support."""
    layout.check_mode(mode)
    if equality not in EQUALITY:
        raise InvalidInput(
            "E314", f"unknown equality {equality!r}", f"choose {' or '.join(EQUALITY)}"
        )
    if mode == "hybrid" and equality == "rewrite":
        raise InvalidInput(
            "E581",
            "a hybrid knowledge base keeps no representatives of equal terms",
            'leave out equality="rewrite": the rules eq-* are unfolded like others',
        )
    if mode != "hybrid" and materialize:
        raise InvalidInput(
            "E582",
            "patterns to materialize are for hybrid knowledge bases",
            'everything is materialized without mode="hybrid"',
        )


def triple_ids(
    state: KnowledgeState,
    pattern: tuple[int | None, int | None, int | None],
    admissible: Mapping[int, Ids] | None = None,
) -> Ids:
    """Match triples by ids: one row (subject, property, object) per triple; None matches any id.

    `admissible` restricts the positions that are None to sets of ids. A hybrid knowledge base
    pushes these sets down into the rules.

    >>> import numpy as np
    >>> from corollary import KnowledgeBase, Program
    >>> kb = KnowledgeBase("[?x, <above>, ?y] :- [?y, <below>, ?x] .", mode="hybrid")
    >>> with kb.transaction() as tx:
    ...     tx.insert("[<a>, <below>, <b>] . [<c>, <below>, <b>] .")
    >>> a = kb.state.dictionary.id(Program.parse("p(<a>) .").facts[0].terms[0])
    >>> len(triple_ids(kb.state, (None, None, None)))
    4
    >>> len(triple_ids(kb.state, (None, None, None), {2: np.array([a])}))
    1
    """
    atom = triple_pattern(pattern, state.dictionary)
    return triple_rows(state.reasoner.match(atom, admissible), state.dictionary)


def triple_pattern(
    pattern: tuple[int | None, int | None, int | None], dictionary: Dictionary
) -> Atom:
    """Convert a pattern of ids to an atom; None becomes a variable.

    >>> triple_pattern((None, None, None), Dictionary()).terms[2]
    Variable(name='v2')
    """
    return Atom(
        TRIPLE,
        tuple(
            Variable(f"v{position}") if id_ is None else dictionary.term(id_)
            for position, id_ in enumerate(pattern)
        ),
    )
