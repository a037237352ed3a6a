"""`Reasoner`: the interface of everything that maintains the consequences of a program.

`KnowledgeBase`, the command line, the store and the Spark pipeline see reasoners only through this
class. It implements what follows from a program, its explicit facts and all facts: matching,
counting, proofs, contradictions, and the frame of an update: rollback on failure, hidden facts left
out of the result, the exact diff of the rules. `Options` are those of all reasoners.

What few functions need is imported by them: a query over a store needs no reasoner's algorithms.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic

from corollary.algorithms.aggregates import is_internal
from corollary.core.changes import Changes
from corollary.core.dictionary import Ids
from corollary.core.engine import Engine, F
from corollary.core.match import match_facts
from corollary.core.proof import SEARCH_BUDGET, Proof
from corollary.core.statistics import Statistics
from corollary.errors import InvalidInput, OperationFailed
from corollary.lang.program import Program
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import Atom

if TYPE_CHECKING:
    from corollary.algorithms.constraints import Inconsistency
    from corollary.algorithms.hybrid_tree import Tree
    from corollary.algorithms.seminaive import OnProgress
    from corollary.algorithms.strata import CompiledStrata


@dataclass(frozen=True)
class Options(Generic[F]):
    """How a reasoner materializes and updates.

    With `coarse`, there are as few strata as negation allows. `modules` (`algorithms.modular`)
    maintain transitive relations and the like by specialized algorithms: in every materialization,
    and in updates by `auto`, `bf`, `bf-c`, `dred` and `dred-c`.

    If the materialization is `known`, for example from a store, only the hidden facts (of auxiliary
    relations) are derived. If `known` includes the hidden facts, `complete` is the `signature` of
    the reasoner that derived them.

    A reasoner that specializes rules refuses to create more than `most_rules` instances.
    """

    algorithm: str = "auto"
    coarse: bool = False
    modules: bool = True
    on_progress: OnProgress | None = None
    known: F | None = None
    complete: str | None = None
    most_rules: int | None = None


@dataclass(frozen=True, eq=False)
class ReasonerState(Generic[F]):
    """What an update replaces, as a value; reasoners add fields."""

    program: Program  # Π
    explicit: F  # E


class Reasoner(ABC, Generic[F]):
    """Maintains mat(Π, E) while the explicit facts E and the program Π change.

    A subclass provides `_state` or what depends on it, all facts, `_update` and `verify`.
    """

    engine: Engine[F]
    statistics: Statistics  # of the first materialization
    has_index = False  # of all facts, by which updates cost what they change
    _state: ReasonerState[F]
    _strata_of_program: tuple[Program, CompiledStrata] | None = None
    _visible_facts: tuple[F, F] | None = (
        None  # all facts and the visible ones, until the next update
    )

    @property
    def program(self) -> Program:
        """Π, as written."""
        return self._state.program

    @property
    def active_program(self) -> Program:
        """The rules that are evaluated at the moment: Π, or Π specialized to a schema."""
        return self.program

    @property
    def explicit(self) -> F:
        """E."""
        return self._state.explicit

    @property
    @abstractmethod
    def all_facts(self) -> F:
        """The materialization with the facts of auxiliary relations."""

    @property
    def facts(self) -> F:
        """The materialization, explicit facts included."""
        known, every = self._visible_facts, self.all_facts
        if known is None or known[0] is not every:
            self._visible_facts = known = every, self._visible(every)
        return known[1]

    @property
    def signature(self) -> str | None:
        """A hash of the rules that derive hidden facts; None if these cannot be reused."""
        return None

    @property
    def labels(self) -> list[Predicate]:
        """The predicates whose properties and classes the facts are stored under."""
        return list(self.facts.predicates())

    @property
    def state(self) -> Any:
        """Everything that an update replaces, as a value; assign it to roll back."""
        return self._state

    @state.setter
    def state(self, state: Any) -> None:
        self._state = state

    def update(self, changes: Changes[F]) -> Changes[F]:
        """Apply changes to E and Π, and return the changes to the materialization.

        If the update fails, everything is as it was before.
        """
        state, before = self.state, self.program
        self._visible_facts = None  # the old facts can be freed
        try:
            result = self._update(changes)
        except BaseException:
            self.state = state
            raise
        is_same = self.program is before
        return Changes(
            self._visible(result.inserted),
            self._visible(result.deleted),
            () if is_same else self.program.rules_not_in(before),
            () if is_same else before.rules_not_in(self.program),
            result.statistics,
        )

    @abstractmethod
    def _update(self, changes: Changes[F]) -> Changes[F]:
        """Apply changes; return the changed facts, hidden ones included, and the statistics."""

    def _visible(self, facts: F) -> F:
        """Leave out the facts of hidden relations."""
        hidden = [predicate for predicate in facts.predicates() if is_internal(predicate)]
        return facts.without(hidden) if hidden else facts

    def match(self, pattern: Atom, admissible: Mapping[int, Ids] | None = None) -> F:
        """Return the facts that match a pattern; see `core.match.match_facts`."""
        return match_facts(pattern, self.facts, self.engine, admissible)

    def count(self, pattern: Atom | None = None) -> int:
        """Count the facts, or those that match a pattern."""
        return len(self.facts if pattern is None else self.match(pattern))

    def explain(self, fact: Atom, *, budget: int = SEARCH_BUDGET) -> Proof:
        """Return a smallest proof of a fact by the rules of Π, within `budget` rule instances."""
        from corollary.algorithms.explain import explain

        return explain(
            fact,
            self.program,
            self._strata,
            self.premises(fact),
            self.explicit,
            self.engine,
            budget=budget,
        )

    def premises(self, fact: Atom) -> F:
        """The facts that a proof of a fact may use."""
        return self.all_facts

    @property
    def _strata(self) -> CompiledStrata:
        """The compiled strata of Π, kept until Π changes."""
        from corollary.algorithms.strata import CompiledStrata

        known = self._strata_of_program
        if known is None or known[0] is not self.program:
            known = self.program, CompiledStrata(self.program.rules, self.engine.dictionary)
            self._strata_of_program = known
        return known[1]

    def query_plan(self, pattern: Atom) -> Tree:
        """Return the proof tree by which a pattern is answered; only hybrid reasoners have one."""
        raise InvalidInput(
            "E583",
            "only hybrid knowledge bases unfold queries",
            'create one with KnowledgeBase(…, mode="hybrid"); kb.explain proves a fact',
        )

    def inconsistencies(self, *, examples: int | None = 3) -> Iterator[Inconsistency]:
        """Return the constraints that the facts contradict."""
        from corollary.algorithms.constraints import inconsistencies

        return inconsistencies(self.program, self.all_facts, self.engine, examples=examples)

    @abstractmethod
    def verify(self) -> None:
        """Derive everything again; raise `OperationFailed` if the materialization differs."""


def changed_program(program: Program, changes: Changes[F]) -> Program:
    """The program after a change of rules; the same object if no rule changes."""
    if not (changes.added_rules or changes.removed_rules):
        return program
    return program.removed(*changes.removed_rules).added(*changes.added_rules)


def refuse_difference(
    facts: F,
    expected: F,
    message: str = "the materialization is not what follows from the facts",
) -> None:
    """Raise `OperationFailed` unless two sets of facts are equal."""
    if not are_equal(facts, expected):
        raise OperationFailed("E407", message)


def are_equal(one: F, two: F) -> bool:
    """Whether two sets of facts are equal."""
    return len(one) == len(two) == len(one.intersection(two))
