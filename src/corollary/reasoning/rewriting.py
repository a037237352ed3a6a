"""Reasoners on top of an inner reasoner.

A `DelegatingReasoner` has the rules and facts of an inner reasoner, and a `TransparentReasoner` all
that an inner reasoner knows. A `RewritingReasoner` maintains mat(Π, E) with an inner reasoner over
rewritten rules or facts. Specialization replaces rules with their instances for a schema; equality
reasoning replaces terms with their representatives; rules as written are omitted while they have no
instances. Each rewriting translates a change of Π and E into a change of the inner reasoner. The
result may require a follow-up change: new facts need further instances of rules, or make terms
equal. So the inner reasoner is updated to a fixpoint, and the changes are composed.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from corollary.algorithms.reasoner import Options, Reasoner
from corollary.core.changes import Changes, composed
from corollary.core.dictionary import Ids
from corollary.core.engine import Engine, F
from corollary.core.proof import SEARCH_BUDGET, Proof
from corollary.lang.program import Program
from corollary.lang.syntax import Atom

if TYPE_CHECKING:
    from corollary.algorithms.constraints import Inconsistency
    from corollary.algorithms.hybrid_tree import Tree

Inner = TypeVar("Inner", bound="Reasoner[Any]")


class DelegatingReasoner(Reasoner[F], Generic[F, Inner]):
    """A reasoner with the rules and facts of an inner one; a subclass provides `_update`."""

    _inner: Inner

    @property
    def program(self) -> Program:
        """Π, as written."""
        return self._inner.program

    @property
    def active_program(self) -> Program:
        """The rules that the inner reasoner evaluates."""
        return self._inner.active_program

    @property
    def explicit(self) -> F:
        """E."""
        explicit: F = self._inner.explicit
        return explicit

    @property
    def all_facts(self) -> F:
        """The materialization with the facts of auxiliary relations."""
        facts: F = self._inner.all_facts
        return facts

    def verify(self) -> None:
        """Rematerialize and compare; raise `OperationFailed` on a difference."""
        self._inner.verify()


class TransparentReasoner(DelegatingReasoner[F, Reasoner[F]]):
    """A reasoner with the answers of an inner one, which is built later or replaced by another."""

    @property
    def facts(self) -> F:
        """The materialization, explicit facts included."""
        return self._inner.facts

    @property
    def signature(self) -> str | None:
        """A hash of the rules that derive hidden facts."""
        return self._inner.signature

    @property
    def state(self) -> Any:
        """Everything that an update replaces, as a value; assign it to roll back."""
        return self._inner, self._inner.state

    @state.setter
    def state(self, state: Any) -> None:
        self._inner, self._inner.state = state

    def match(self, pattern: Atom, admissible: Mapping[int, Ids] | None = None) -> F:
        """Return the facts that match a pattern."""
        return self._inner.match(pattern, admissible)

    def query_plan(self, pattern: Atom) -> Tree:
        """Return the proof tree by which a hybrid reasoner answers a pattern."""
        return self._inner.query_plan(pattern)

    def explain(self, fact: Atom, *, budget: int = SEARCH_BUDGET) -> Proof:
        """Return a smallest proof of a fact."""
        return self._inner.explain(fact, budget=budget)

    def inconsistencies(self, *, examples: int | None = 3) -> Iterator[Inconsistency]:
        """Return the violated constraints."""
        return self._inner.inconsistencies(examples=examples)


class RewritingReasoner(DelegatingReasoner[F, Inner]):
    """A reasoner whose inner reasoner works on rewritten rules or facts.

    A subclass provides `_start`, `_update` and `_follow_up`.
    """

    def __init__(
        self,
        program: Program,
        explicit: F,
        engine: Engine[F],
        options: Options[F] | None = None,
    ) -> None:
        """Materialize, or start from the known facts of the options."""
        self.engine = engine
        self._nothing = engine.facts({})
        self._start(program, explicit, options or Options())

    @abstractmethod
    def _start(self, program: Program, explicit: F, options: Options[F]) -> None:
        """Create the inner reasoner, and update it to a fixpoint."""

    def _run_to_fixpoint(self, result: Changes[F]) -> Changes[F]:
        """Update the inner reasoner until its results require no further change."""
        total = result
        while (further := self._follow_up(result)) is not None:
            total, result = composed(total, further), further
        return total

    @abstractmethod
    def _follow_up(self, result: Changes[F]) -> Changes[F] | None:
        """Make the change that a result of the inner reasoner requires; None if there is none."""
