"""`StoredReasoner`: a stored materialization whose reasoner is built on the first update."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import cast

from corollary.algorithms.reasoner import Reasoner
from corollary.core.changes import Changes
from corollary.core.dictionary import Ids
from corollary.core.engine import Engine, F
from corollary.core.match import match_facts
from corollary.core.statistics import Statistics
from corollary.lang.program import Program
from corollary.lang.syntax import Atom
from corollary.reasoning.rewriting import TransparentReasoner


class StoredReasoner(TransparentReasoner[F]):
    """The materialization of a version, whose reasoner is built on first use."""

    def __init__(
        self,
        program: Program,
        explicit: F,
        facts: F,
        engine: Engine[F],
        make: Callable[[F, F], Reasoner[F]],
        *,
        is_complete: bool,
    ) -> None:
        """Create the reasoner; `make` builds the inner one from the explicit facts and all facts.

        If the stored facts are incomplete, as in hybrid mode, the inner reasoner matches patterns.
        """
        self.engine = engine
        self.statistics = Statistics("", "read from a store")
        self._stored_program, self._stored_explicit, self._facts = program, explicit, facts
        self._make = make
        self._is_complete = is_complete

    @cached_property
    def _inner(self) -> Reasoner[F]:  # type: ignore[override]
        return self._make(self._stored_explicit, self._facts)

    @property
    def _is_built(self) -> bool:
        return "_inner" in self.__dict__

    @property
    def program(self) -> Program:
        """Π."""
        return self._inner.program if self._is_built else self._stored_program

    @property
    def explicit(self) -> F:
        """E."""
        return self._inner.explicit if self._is_built else self._stored_explicit

    @property
    def facts(self) -> F:
        """The materialization, explicit facts included."""
        return self._facts

    @property
    def state(self) -> object:
        """The facts of this version; the inner reasoner rolls itself back."""
        return self._facts

    @state.setter
    def state(self, state: object) -> None:
        self._facts = cast("F", state)

    def _update(self, changes: Changes[F]) -> Changes[F]:
        result = self._inner.update(changes)
        self._facts = self._facts.difference(result.deleted).union(result.inserted)
        return result

    def match(self, pattern: Atom, admissible: Mapping[int, Ids] | None = None) -> F:
        """Return the facts that match a pattern."""
        if self._is_complete:
            return match_facts(pattern, self.facts, self.engine, admissible)
        return self._inner.match(pattern, admissible)
