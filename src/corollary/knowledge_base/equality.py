"""`EqualityMaintainer`: a materialization in which one term stands for all that are equal to it.

Paper: B. Motik, Y. Nenov, R. Piro, I. Horrocks, *Combining Rewriting and Incremental
Materialisation Maintenance for Datalog Programs with Equality*, IJCAI 2015.

Idea: let ρ map each term to the representative of its class. What is kept is mat(ρ(Π), ρ(E)), Π
without the rules of equality, by an inner maintainer. Where it has a fact [a, owl:sameAs, b] with
a ≠ b, the two classes merge, ρ(E) and the constants of ρ(Π) change, which is an update of the inner
maintainer, and so on until nothing merges. A fact stands for all facts that ρ maps to it.

Deletion: a class may split. An equality that was derived is seen as [r, owl:sameAs, r] only. So
`_unsure` finds the classes that may lose something, and they are dissolved into what explicit
equalities connect; one update and the merging of what still follows give the rest. Let O be the
facts of representatives that have some derivation from a deleted fact or by a removed rule, and S
the classes whose [r, owl:sameAs, r] is among them by a rule other than eq-ref; all facts that
mention a class of S belong to O too. *Claim*: each fact that held before and is not in O under ρ
still holds, and so does every equality of a class outside S. By induction on its derivation before
the update: an explicit fact was not deleted; the premises of a rule are outside O, for otherwise
the head would be in it; a replacement of s by t ≠ s has a premise that ρ maps to the same fact, and
the class of s and t is not in S, as the fact mentions it; symmetry and transitivity stay inside one
class; and eq-ref makes no two terms equal. To begin with fewer equalities than there are is always
right, since merging adds what is missing. A class that explicit equalities connect is never in S.

Differs from the paper: classes are found set at a time after an update, not fact by fact inside
it; and the paper's backward search for equalities is forward here (O).
Cost: an update looks at the facts that mention terms whose representatives change.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, Union

import numpy as np

from corollary.algorithms.constraints import Inconsistency
from corollary.algorithms.explain import BUDGET, explain
from corollary.algorithms.maintain import Maintainer
from corollary.algorithms.seminaive import materialize
from corollary.algorithms.strata import CompiledStrata
from corollary.algorithms.updating import OnStratum
from corollary.core.changes import Changes
from corollary.core.compile import TYPES, CompiledRule, compile_rule, covers, home
from corollary.core.connected import components
from corollary.core.dictionary import Ids
from corollary.core.engine import Engine, F
from corollary.core.proof import Proof
from corollary.core.statistics import Statistics
from corollary.engines.tuples.limits import TooManySteps
from corollary.errors import OperationFailed
from corollary.knowledge_base.adaptive import suits_tuples
from corollary.knowledge_base.engines import is_in_process
from corollary.knowledge_base.tuning import tuning
from corollary.lang.program import Program
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import TRIPLE, TYPE, Atom, Rule, Term, Variable, is_auxiliary
from corollary.rdf.classes import Classes
from corollary.rdf.equality import (
    EQUAL,
    SAME,
    SAME_AS,
    constants,
    count_expanded,
    expanded,
    is_reflexive,
    mentions,
    place,
    rewritten,
    rewritten_atom,
    rewritten_rule,
    without_equality,
)

if TYPE_CHECKING:
    from corollary.knowledge_base.tuples import TupleMaintainer

Inner: TypeAlias = Union["Maintainer[F]", "TupleMaintainer[F]"]

_MARK = Predicate("_~")  # terms whose facts are looked for; no identifier looks like this


@dataclass(frozen=True)
class _State(Generic[F]):
    """All that an update replaces."""

    program: Program  # Π, with the rules of equality
    rules: tuple[Rule, ...]  # Π without them
    explicit: F  # E
    classes: Classes  # ρ
    derived: Ids  # the classes that explicit equalities alone may not connect
    inner: Inner[F]  # mat(ρ(Π), ρ(E))

    @cached_property
    def facts(self) -> F:
        """The materialization in full."""
        engine = self.inner.engine
        return engine.facts(expanded(self.inner.facts, self.classes, engine.dictionary))


class EqualityMaintainer(Generic[F]):
    """A `Maintainer` that stores one fact for all that equal terms make of it.

    >>> from corollary.core.tables import decode, encode
    >>> from corollary.core.dictionary import Dictionary
    >>> from corollary.engines.columnar.engine import ColumnarEngine
    >>> from corollary.rdf import rules
    >>> engine = ColumnarEngine(Dictionary())
    >>> def facts(text):
    ...     return engine.facts(encode(Program.parse(text).facts, engine.dictionary))
    >>> program = Program.of(rule for rule in rules("owl-rl").rules if "eq-" in rule.name)
    >>> start = facts("[<a>, <p>, <c>] . [<a>, owl:sameAs, <b>] .")
    >>> kept = EqualityMaintainer(program, start, engine)
    >>> len(kept.facts), kept.count(), kept.stored
    (9, 9, 5)
    >>> changes = kept.update(Changes(facts(""), facts("[<a>, owl:sameAs, <b>] .")))
    >>> len(kept.facts), len(changes.inserted), len(changes.deleted)
    (5, 0, 4)
    """

    def __init__(
        self,
        program: Program,
        explicit: F,
        engine: Engine[F],
        *,
        algorithm: str = "auto",
        coarse: bool = False,
        modules: bool = True,
        on_progress: OnStratum | None = None,
        known: F | None = None,
    ) -> None:
        """Materialize, or begin with what is `known`; the parameters are those of `Maintainer`."""
        self.engine = engine
        self.algorithm = algorithm
        self._same_as = engine.dictionary.id(SAME_AS)
        self._marked: dict[Predicate, tuple[CompiledRule, ...]] = {}
        rules = without_equality(program)
        by_explicit = classes = Classes().merged(_pairs(explicit), self._same_as)
        stored: F | None = None
        if known is not None:
            classes = classes.merged(_pairs(known), self._same_as)
            stored = engine.facts(rewritten(known, classes, engine.dictionary))
        self._options = {"coarse": coarse, "modules": modules, "on_progress": on_progress}
        inner = self._maintained(
            self._rewritten_program(rules, classes),
            engine.facts({EQUAL: classes.pairs()}).union(
                engine.facts(rewritten(explicit, classes, engine.dictionary))
            ),
            stored,
        )
        self.statistics = inner.statistics  # of the first materialization, before classes merged
        derived = np.unique(classes.of(by_explicit.moved(classes)))
        state = _State(program, rules, explicit, classes, derived, inner)
        self._state = self._merged(state, inner.facts, _Net(engine))

    def _maintained(self, program: Program, explicit: F, known: F | None) -> Inner[F]:
        """The maintainer of what is stored: tuple at a time for ontologies."""
        auto = self.algorithm == "auto" and not self._options["coarse"]
        if auto and is_in_process(self.engine) and suits_tuples(program, explicit):
            from corollary.knowledge_base.tuples import TupleMaintainer  # loads the compiler

            progress: Any = self._options["on_progress"]
            with contextlib.suppress(TooManySteps):
                return TupleMaintainer(
                    program, explicit, self.engine, known=known, on_progress=progress
                )
        return self._whole_relations(program, explicit, known)

    def _whole_relations(self, program: Program, explicit: F, known: F | None) -> Maintainer[F]:
        options: dict[str, Any] = self._options
        inner = Maintainer(
            program, explicit, self.engine, algorithm=self.algorithm, known=known, **options
        )
        if known is not None:
            inner.begin()
        return inner

    # -- what there is -----------------------------------------------------------------------------

    @property
    def program(self) -> Program:
        """Π."""
        return self._state.program

    @property
    def explicit(self) -> F:
        """E."""
        return self._state.explicit

    @property
    def facts(self) -> F:
        """The materialization in full, explicit facts included; made when first asked for."""
        return self._state.facts

    @property
    def classes(self) -> Classes:
        """Which terms are equal."""
        return self._state.classes

    @property
    def inner(self) -> Inner[F]:
        """What is stored: facts and rules of representatives. Not to be updated."""
        return self._state.inner

    @property
    def stored(self) -> int:
        """How many facts are stored."""
        return len(self._state.inner.facts)

    def count(self, atom: Atom | None = None) -> int:
        """How many facts there are, or match an atom; nothing is expanded to count them all."""
        if atom is not None:
            return len(self.matching(atom))
        state = self._state
        return count_expanded(state.inner.facts, state.classes, self.engine.dictionary)

    def matching(self, atom: Atom) -> F:
        """The facts that match an atom; only what matches is expanded."""
        state, dictionary = self._state, self.engine.dictionary
        wanted = rewritten_atom(atom, state.classes, dictionary)
        found = self._matching(wanted, state.inner.facts)
        full = self.engine.facts(expanded(found, state.classes, dictionary))
        return full if wanted == atom and _open(atom) else self._matching(atom, full)

    def inconsistencies(self, *, examples: int | None = 3) -> Iterator[Inconsistency]:
        """The constraints that the facts contradict, in terms of representatives."""
        return self.inner.inconsistencies(examples=examples)

    def explain(self, fact: Atom, *, budget: int = BUDGET) -> Proof:
        """A smallest proof of a fact by all rules, those of equality included.

        It speaks of the terms themselves, not of their representatives; the materialization is
        expanded for it.
        """
        program, explicit, engine = self.program, self.explicit, self.engine
        # Equal terms are not replaced in auxiliary relations, so these are derived as they are.
        auxiliary = Program.of(rule for rule in program.rules if is_auxiliary(rule.head.relation))
        facts = materialize(auxiliary, self.facts, engine).facts
        strata = CompiledStrata(program.rules, engine.dictionary)
        return explain(fact, program, strata, facts, explicit, engine, budget=budget)

    def verify(self) -> None:
        """Derive everything again; raises `OperationFailed` where it differs."""
        self._state.inner.verify()
        anew = EqualityMaintainer(self.program, self.explicit, self.engine)
        if len(anew.facts) != len(self.facts) or len(anew.facts.difference(self.facts)):
            raise OperationFailed("E407", "the materialization is not what follows from the facts")

    # -- updates -----------------------------------------------------------------------------------

    def update(self, changes: Changes[F]) -> Changes[F]:
        """Apply changes of explicit facts and rules; the answer is what the facts differ by."""
        old = self._state
        program, rules = old.program, old.rules
        if changes.added_rules or changes.removed_rules:
            program = program.removed(*changes.removed_rules).added(*changes.added_rules)
            rules = without_equality(program)
        removed = changes.deleted.intersection(old.explicit).difference(changes.inserted)
        inserted = changes.inserted.difference(old.explicit)
        explicit = old.explicit.difference(removed).union(inserted)
        unsure = self._unsure(old, removed, explicit, [r for r in old.rules if r not in {*rules}])
        classes = old.classes
        pairs = _pairs(inserted)
        if len(unsure):
            classes = classes.without(unsure)
            pairs = _pairs(explicit)
        classes = classes.merged(pairs, self._same_as)
        left = old.derived[~np.isin(old.derived, unsure)]
        derived = np.unique(classes.of(left))
        net = _Net(self.engine)
        new = self._moved(
            _State(program, rules, explicit, classes, derived, copy(old.inner)),
            old,
            removed,
            inserted,
            net,
        )
        new = self._merged(new, net.inserted, net)
        self._state = new
        inserted, deleted = self._difference(old, new, net)
        return Changes(
            inserted,
            deleted,
            tuple(r for r in _all(program) if r not in old.program),
            tuple(r for r in _all(old.program) if r not in program),
            net.statistics(self.algorithm),
        )

    def _merged(self, state: _State[F], found: F, net: _Net[F]) -> _State[F]:
        """Merge the classes that facts say are the same, until there are none."""
        pairs = _pairs(found)
        while len(pairs):
            classes = state.classes.merged(pairs, self._same_as)
            # Explicit equalities were merged before, so these are derived.
            derived = np.unique(classes.of(np.concatenate([state.derived, pairs[:, 0]])))
            new = _State(
                state.program, state.rules, state.explicit, classes, derived, copy(state.inner)
            )
            empty = self.engine.facts({})
            step = _Net(self.engine)
            state = self._moved(new, state, empty, empty, step)
            net.then(step)
            pairs = _pairs(step.inserted)
        return state

    def _moved(
        self, new: _State[F], old: _State[F], removed: F, inserted: F, net: _Net[F]
    ) -> _State[F]:
        """Let what is stored follow from one state to the next, which has its own copy of it."""
        dictionary, engine = self.engine.dictionary, self.engine
        moved = old.classes.moved(new.classes)
        terms = [old.classes.members(np.unique(old.classes.of(moved)))]
        if len(removed) and len(old.classes):
            # What is deleted may stand for other facts too, all of which mention the same classes.
            met = old.classes.of(_terms(removed, engine))
            terms.append(old.classes.members(met[old.classes.has(met)]))
        touched = self._mentioning(old.explicit, np.unique(np.concatenate(terms)))
        gone = rewritten(touched.union(removed), old.classes, dictionary)
        come = rewritten(touched.difference(removed).union(inserted), new.classes, dictionary)
        gone_facts, come_facts = engine.facts(gone), engine.facts(come)
        if len(moved):
            gone_facts = gone_facts.union(engine.facts({EQUAL: old.classes.pairs(moved)}))
            come_facts = come_facts.union(engine.facts({EQUAL: new.classes.pairs(moved)}))
        added: tuple[Rule, ...] = ()
        dropped: tuple[Rule, ...] = ()
        if new.rules is not old.rules or np.isin(moved, constants(new.rules, dictionary)).any():
            program = self._rewritten_program(new.rules, new.classes)
            added = tuple(r for r in _all(program) if r not in new.inner.program)
            dropped = tuple(r for r in _all(new.inner.program) if r not in program)
        changes = Changes(come_facts, gone_facts, added, dropped)
        try:
            net.then_changes(new.inner.update(changes))
        except TooManySteps:
            before = old.inner
            inner = self._whole_relations(before.program, before.explicit, before.facts)
            net.then_changes(inner.update(changes))
            new = replace(new, inner=inner)
        return new

    def _difference(self, old: _State[F], new: _State[F], net: _Net[F]) -> tuple[F, F]:
        """What was inserted and deleted, in full.

        A fact of representatives that is there before and after stands for the same facts unless
        it mentions a class that has changed.
        """
        moved = old.classes.moved(new.classes)
        terms = np.concatenate(
            [
                old.classes.members(np.unique(old.classes.of(moved))),
                new.classes.members(np.unique(new.classes.of(moved))),
            ]
        )
        lost, gained = net.deleted, net.inserted
        if len(terms):
            before = self._mentioning(old.inner.facts, np.unique(old.classes.of(terms)))
            after = self._mentioning(new.inner.facts, np.unique(new.classes.of(terms)))
            lost, gained = lost.union(before), gained.union(after)
        dictionary, engine = self.engine.dictionary, self.engine
        lost = engine.facts(expanded(lost, old.classes, dictionary))
        gained = engine.facts(expanded(gained, new.classes, dictionary))
        return gained.difference(lost), lost.difference(gained)

    # -- classes that may split --------------------------------------------------------------------

    def _unsure(self, old: _State[F], removed: F, explicit: F, gone: list[Rule]) -> Ids:
        """S: the classes that may lose an equality (see above)."""
        classes, dictionary, engine = old.classes, self.engine.dictionary, self.engine
        none = np.empty(0, np.uint32)
        if not len(classes) or not (len(removed) or gone):
            return none
        lost = engine.facts(rewritten(removed, classes, dictionary))
        unsure = self._broken(old, _classes(lost, classes), explicit)
        if not len(old.derived):
            return unsure
        facts, everything = old.inner.all_facts, np.union1d(old.derived, unsure)
        rules = _compiled(old.inner, engine)
        reflexive = [rule for rule in rules if is_reflexive(rule.source)]
        others = [rule for rule in rules if not is_reflexive(rule.source)]
        removed_rules = [r for rule in gone for r in rewritten_rule(rule, classes, dictionary)]
        for rule in removed_rules:
            found = engine.derive([compile_rule(rule, dictionary)], facts).facts
            lost = lost.union(found)
            if not is_reflexive(rule):
                unsure = np.union1d(unsure, _among(_classes(found, classes), old.derived))
        delta, done = lost, none
        while True:
            much = tuning.lost_equalities_ratio * len(lost) > len(facts)
            if much or self._same_as in classes.members(unsure):
                # So much may be lost that to follow it costs as much as to merge again.
                return np.union1d(everything, self._broken(old, classes.all, explicit))
            fresh = np.setdiff1d(unsure, done)
            delta = delta.union(self._mentioning(facts, fresh).difference(lost))
            lost, done = lost.union(delta), unsure
            if not len(delta):
                return unsure
            found = engine.derive(others, facts, delta=delta).facts
            unsure = np.union1d(unsure, _among(_classes(found, classes), old.derived))
            found = found.union(engine.derive(reflexive, facts, delta=delta).facts)
            delta = found.difference(lost)
            lost = lost.union(delta)

    def _broken(self, old: _State[F], touched: Ids, explicit: F) -> Ids:
        """Those of the classes that explicit equalities do not connect any more."""
        if not len(touched):
            return touched
        pairs = _pairs(explicit)
        pairs = pairs[np.isin(old.classes.of(pairs[:, 0]), touched)]
        pairs = pairs[old.classes.of(pairs[:, 0]) == old.classes.of(pairs[:, 1])]
        nodes, label = components(pairs)
        of = old.classes.of(nodes)
        whole = [
            r
            for r, size in zip(touched.tolist(), old.classes.sizes(touched).tolist(), strict=True)
            if (mine := of == r).sum() == size and len(np.unique(label[mine])) == 1
        ]
        return np.setdiff1d(touched, np.array(whole, np.uint32))

    # -- facts by term and by pattern --------------------------------------------------------------

    def _mentioning(self, facts: F, terms: Ids) -> F:
        """The facts that mention one of the terms: as an argument, as property or as class."""
        if not len(terms):
            return self.engine.facts({})
        named = {*self.engine.dictionary.terms(terms.tolist())}
        predicates = list(facts.predicates())
        whole = [predicate for predicate in predicates if mentions(predicate, named)]
        rules: list[CompiledRule] = []
        types = [predicate for predicate in predicates if predicate.member_of is not None]
        if len(types) > tuning.marked_classes_limit:
            rules += self._marking(TYPES, facts)
        for predicate in predicates:
            if predicate.member_of is None or len(types) <= tuning.marked_classes_limit:
                rules += self._marking(predicate, facts)
        marks = self.engine.facts({_MARK: terms.reshape(-1, 1).astype(np.uint32)})
        found = self.engine.derive(rules, facts.union(marks), delta=marks).facts
        return found.union(facts.only(whole)) if whole else found

    def _marking(self, predicate: Predicate, facts: F) -> tuple[CompiledRule, ...]:
        """Rules that derive the facts of a predicate that mention a marked term."""
        rules = self._marked.get(predicate)
        if rules is None:
            if predicate == TYPES:
                subject = Variable("v0")
                atom = Atom(TRIPLE, (subject, TYPE, Variable("v1")))
                variables = [subject]  # classes that are marked are looked for by their names
            else:
                atom = place(predicate, facts.rows(predicate).shape[1])
                variables = list(dict.fromkeys(atom.variables()))
            marks = [Atom(_MARK.relation, (variable,)) for variable in variables]
            rules = self._marked[predicate] = tuple(
                compile_rule(Rule(atom, (mark, atom)), self.engine.dictionary) for mark in marks
            )
        return rules

    def _matching(self, atom: Atom, facts: F) -> F:
        """The facts that match an atom, property by property, class by class."""
        whole: list[Predicate] = []
        rules: list[CompiledRule] = []
        for narrow in _narrow(atom, facts.predicates()):
            if _open(narrow):
                whole.append(home(narrow))
            else:
                rules.append(compile_rule(Rule(narrow, (narrow,)), self.engine.dictionary))
        found = facts.only(whole)
        return found.union(self.engine.derive(rules, facts).facts) if rules else found

    def _rewritten_program(self, rules: Iterable[Rule], classes: Classes) -> Program:
        dictionary = self.engine.dictionary
        return Program.of(r for rule in rules for r in rewritten_rule(rule, classes, dictionary))


class _Net(Generic[F]):
    """What several updates of a materialization changed together."""

    def __init__(self, engine: Engine[F]) -> None:
        self.inserted = self.deleted = engine.facts({})
        self.updates: list[Statistics] = []

    def then_changes(self, changes: Changes[F]) -> None:
        """Add what the next update did."""
        inserted, deleted = changes.inserted, changes.deleted
        self.inserted, self.deleted = (
            self.inserted.difference(deleted).union(inserted.difference(self.deleted)),
            self.deleted.difference(inserted).union(deleted.difference(self.inserted)),
        )
        if changes.statistics is not None:
            self.updates.append(changes.statistics)

    def then(self, other: _Net[F]) -> None:
        """Add what the next updates did."""
        self.then_changes(Changes(other.inserted, other.deleted))
        self.updates += other.updates

    def statistics(self, algorithm: str) -> Statistics:
        """The statistics of all updates."""
        total = Statistics(algorithm, self.updates[0].reason if self.updates else "")
        for one in self.updates:
            total.include(one)
        if len(self.updates) > 1:
            total.reason += f"; {len(self.updates) - 1} more because terms became equal"
        return total


def _pairs(facts: F) -> Ids:
    """What facts say is the same, without what is the same as itself."""
    rows = facts.only([SAME])
    if not len(rows):
        return np.empty((0, 2), np.uint32)
    pairs = rows.rows(SAME)
    different: Ids = pairs[pairs[:, 0] != pairs[:, 1]]
    return different


def _classes(facts: F, classes: Classes) -> Ids:
    """The classes of more than one member that facts of representatives say something about."""
    found = facts.only([SAME])
    subjects = found.rows(SAME)[:, 0] if len(found) else np.empty(0, np.uint32)
    unique: Ids = np.unique(subjects[classes.has(subjects)])
    return unique


def _among(some: Ids, others: Ids) -> Ids:
    return some[np.isin(some, others)]


def _terms(facts: F, engine: Engine[F]) -> Ids:
    """All terms of facts."""
    parts = [np.empty(0, np.uint32)]
    named = []
    for predicate in facts.predicates():
        parts.append(facts.rows(predicate).reshape(-1))
        named += [term for term in (predicate.property, predicate.member_of) if term is not None]
    found: Ids = np.unique(np.concatenate([*parts, engine.dictionary.encode(named)]))
    return found


def _compiled(inner: Inner[F], engine: Engine[F]) -> list[CompiledRule]:
    return [compile_rule(rule, engine.dictionary) for rule in inner.program.rules]


def _all(program: Program) -> tuple[Rule, ...]:
    return (*program.rules, *program.constraints)


def _open(atom: Atom) -> bool:
    """Whether an atom matches every fact of its narrow predicate."""
    terms = atom.terms
    if atom.relation == TRIPLE:
        terms = (terms[0],) if terms[1] == TYPE else (terms[0], terms[2])
    variables = [term for term in terms if isinstance(term, Variable)]
    return len(variables) == len(terms) == len({*variables})


def _narrow(atom: Atom, predicates: Iterable[Predicate]) -> Iterator[Atom]:
    """The atom with each property and class that it may match in the place of its variables."""
    wide = home(atom)
    for predicate in predicates:
        if not covers(wide, predicate):
            continue
        values: dict[Term, Term] = {}
        places = zip(atom.terms[1:], (predicate.property, predicate.member_of), strict=False)
        if atom.relation == TRIPLE and all(
            value is None or (values.setdefault(term, value) == value and _may_be(term, value))
            for term, value in places
        ):
            yield Atom(TRIPLE, tuple(values.get(term, term) for term in atom.terms))
        elif atom.relation != TRIPLE and not is_auxiliary(atom.relation):
            yield atom


def _may_be(term: Term, value: Term) -> bool:
    return isinstance(term, Variable) or term == value
