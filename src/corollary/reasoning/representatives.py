"""`RepresentativeReasoner`: a materialization in which one term represents all terms equal to it.

Paper: B. Motik, Y. Nenov, R. Piro, I. Horrocks, *Combining Rewriting and Incremental
Materialisation Maintenance for Datalog Programs with Equality*, IJCAI 2015.

Idea: let ρ map each term to the representative of its class. An inner reasoner maintains
mat(ρ(Π), ρ(E)), Π without the rules of equality. If it derives a fact [a, owl:sameAs, b] with
a ≠ b, the two classes merge. This changes ρ(E) and the constants of ρ(Π), which is an update of the
inner reasoner; this repeats until nothing merges. A fact represents all facts that ρ maps to it.
The inner reasoner may be any other: tuple at a time, or with rules specialized to the schema.

Deletion: a class may split. A derived equality is visible only as [r, owl:sameAs, r]. So `_unsure`
finds the classes that may lose an equality; these are dissolved into the components of explicit
equalities, and one update with merging restores all that is still derivable. Let O be the facts
of representatives that have some derivation from a deleted fact or by a removed rule, and S
the classes whose [r, owl:sameAs, r] is among them by a rule other than eq-ref; all facts that
mention a class of S belong to O too. *Claim*: each fact that held before and is not in O under ρ
still holds, and so does every equality of a class outside S. By induction on its derivation before
the update: an explicit fact was not deleted; the premises of a rule are outside O, for otherwise
the head would be in it; a replacement of s by t ≠ s has a premise that ρ maps to the same fact, and
the class of s and t is not in S, as the fact mentions it; symmetry and transitivity stay inside one
class; and eq-ref makes no two terms equal. Starting with fewer equalities than hold is always
sound, since merging adds the missing ones. A class that explicit equalities connect is never in S.

Differs from the paper: classes are computed set at a time after an update, not fact by fact inside
it; and the paper's backward search for equalities is forward here (O).
Cost: an update reads the facts that mention terms whose representatives change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from corollary.algorithms.constraints import Inconsistency, Violation
from corollary.algorithms.reasoner import (
    Options,
    Reasoner,
    ReasonerState,
    changed_program,
    refuse_difference,
)
from corollary.algorithms.seminaive import materialize
from corollary.core.changes import Changes
from corollary.core.compile import TYPES, CompiledRule, compile_rule
from corollary.core.connected import components
from corollary.core.dictionary import Dictionary, Ids
from corollary.core.engine import Engine, F, Facts
from corollary.core.match import match_facts, selects_all
from corollary.core.tables import Tables, pattern_of
from corollary.lang.program import Program
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import TRIPLE, Atom, Rule, is_auxiliary
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
    rewritten,
    rewritten_atom,
    rewritten_rule,
    without_equality,
)
from corollary.reasoning.engines import is_in_process
from corollary.reasoning.materialized import materializing_reasoner
from corollary.reasoning.rewriting import RewritingReasoner
from corollary.reasoning.tuning import tuning

Replacement = Callable[[Facts, Classes, Dictionary], Tables]

_EQUALITY = "[?x, owl:sameAs, ?y]"
_MARK = Predicate("_~")  # the terms to search for; no identifier looks like this


@dataclass(frozen=True, eq=False)
class _State(ReasonerState[F]):
    """The state that an update replaces, besides the inner reasoner; Π has the equality rules."""

    rules: tuple[Rule, ...]  # Π without them
    classes: Classes  # ρ
    derived: Ids  # the classes that explicit equalities alone may not connect


class RepresentativeReasoner(RewritingReasoner[F, Reasoner[F]]):
    """A reasoner that stores one fact for all facts that differ only in equal terms.

    >>> from corollary.core.tables import decode, encode
    >>> from corollary.core.dictionary import Dictionary
    >>> from corollary.engines.columnar.engine import ColumnarEngine
    >>> from corollary.rdf import rules
    >>> engine = ColumnarEngine(Dictionary())
    >>> def facts(text):
    ...     return engine.facts(encode(Program.parse(text).facts, engine.dictionary))
    >>> program = Program.of(rule for rule in rules("owl-rl").rules if "eq-" in rule.name)
    >>> start = facts("[<a>, <p>, <c>] . [<a>, owl:sameAs, <b>] .")
    >>> reasoner = RepresentativeReasoner(program, start, engine)
    >>> len(reasoner.facts), reasoner.count(), reasoner.stored
    (9, 9, 5)
    >>> changes = reasoner.update(Changes(facts(""), facts("[<a>, owl:sameAs, <b>] .")))
    >>> len(reasoner.facts), len(changes.inserted), len(changes.deleted)
    (5, 0, 4)
    """

    _state: _State[F]

    def __init__(
        self,
        program: Program,
        explicit: F,
        engine: Engine[F],
        options: Options[F] | None = None,
        *,
        specialize: bool | None = None,
    ) -> None:
        """Materialize, or start from known facts; see `materializing_reasoner`."""
        self._specialize = specialize
        super().__init__(program, explicit, engine, options)

    def _start(self, program: Program, explicit: F, options: Options[F]) -> None:
        engine = self.engine
        self._same_as = engine.dictionary.id(SAME_AS)
        self._merges = 0  # number of merges in an update
        self._marked: dict[Predicate, tuple[CompiledRule, ...]] = {}
        self._arities: dict[str, int] = {EQUAL.relation: 2, **program.arities}
        rules = without_equality(program)
        by_explicit = classes = Classes().merged(self._pairs(explicit), self._same_as)
        if options.known is not None:
            classes = classes.merged(self._pairs(options.known), self._same_as)
            options = replace(options, known=self._rewritten(options.known, classes))
        self._inner = materializing_reasoner(
            self._rewritten_program(rules, classes),
            engine.facts({EQUAL: classes.pairs()}).union(self._rewritten(explicit, classes)),
            engine,
            options,
            specialize=self._specialize,
        )
        self.statistics = self._inner.statistics  # statistics before classes were merged
        self._expanded: F | None = None  # the materialization in full, on demand
        derived = np.unique(classes.of(by_explicit.moved(classes)))
        self._state = _State(program, explicit, rules, classes, derived)
        self._run_to_fixpoint(Changes(self._inner.facts.only([SAME]), self._nothing))

    # -- facts -----------------------------------------------------------------------------

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
        """The materialization in full, explicit facts included; expanded on demand."""
        if self._expanded is None:
            facts = self._inner.facts.without([EQUAL])
            self._expanded = self._replaced(facts, self.classes.nontrivial, expanded, self.classes)
        return self._expanded

    @property
    def all_facts(self) -> F:
        """The materialization in full, with the facts of auxiliary relations.

        Equal terms are not replaced in auxiliary relations, so these facts are derived again.
        """
        rules = [rule for rule in self.program.rules if is_auxiliary(rule.head.relation)]
        return materialize(Program.of(rules), self.facts, self.engine).facts

    @property
    def labels(self) -> list[Predicate]:
        """The predicates of the stored facts, which are those of representatives."""
        return list(self._inner.facts.predicates())

    @property
    def state(self) -> object:
        """Everything that an update replaces, as a value; assign it to roll back."""
        return self._state, self._inner.state, self._expanded

    @state.setter
    def state(self, state: object) -> None:
        assert isinstance(state, tuple), "a state of this reasoner"
        self._state, self._inner.state, self._expanded = state

    @property
    def classes(self) -> Classes:
        """The equivalence classes of terms."""
        return self._state.classes

    @property
    def inner(self) -> Reasoner[F]:
        """The inner reasoner, whose facts mention only representatives."""
        return self._inner

    @property
    def stored(self) -> int:
        """The number of stored facts."""
        return len(self._inner.facts)

    def count(self, pattern: Atom | None = None) -> int:
        """Count the facts, or those that match a pattern; counting all expands nothing."""
        if pattern is not None:
            return len(self.match(pattern))
        return count_expanded(self._inner.facts, self.classes, self.engine.dictionary)

    def match(self, pattern: Atom, admissible: Mapping[int, Ids] | None = None) -> F:
        """Return the facts that match a pattern; only the matches are expanded."""
        classes, dictionary = self.classes, self.engine.dictionary
        by_class = rewritten_atom(pattern, classes, dictionary)
        stored = match_facts(by_class, self._inner.facts, self.engine)
        full = self.engine.facts(expanded(stored, classes, dictionary))
        if by_class == pattern and selects_all(pattern) and not admissible:
            return full
        return match_facts(pattern, full, self.engine, admissible)

    def inconsistencies(self, *, examples: int | None = 3) -> Iterator[Inconsistency]:
        """Return the violated constraints, in terms of representatives.

        A constraint with a filter is evaluated as several rules (`rewritten_rule`); their
        violations are shown as those of the constraint.
        """
        state, found = self._state, dict[Rule, Inconsistency]()
        originals = {
            rewritten: rule
            for rule in state.rules
            if rule.is_constraint
            for rewritten in rewritten_rule(rule, state.classes, self.engine.dictionary)
        }
        for one in self._inner.inconsistencies(examples=examples):
            rule = originals.get(one.rule, one.rule)
            names = {v for atom, _ in rule.atoms() for v in atom.variables()}
            ways = tuple(
                Violation(rule, {v: term for v, term in way.substitution.items() if v in names})
                for way in one.examples
            )
            before = found.get(rule, Inconsistency(rule, 0, ()))
            examples_of = (*before.examples, *ways)[:examples]
            found[rule] = Inconsistency(rule, before.count + one.count, examples_of)
        yield from found.values()

    def verify(self) -> None:
        """Rematerialize and compare; raise `OperationFailed` on a difference."""
        super().verify()
        expected = RepresentativeReasoner(self.program, self.explicit, self.engine)
        refuse_difference(self.facts, expected.facts)

    # -- updates -----------------------------------------------------------------------------------

    def _update(self, changes: Changes[F]) -> Changes[F]:
        old, program = self._state, changed_program(self.program, changes)
        rules = old.rules if program is old.program else without_equality(program)
        self._arities |= program.arities
        explicit, removed, inserted = old.explicit.changed(changes.deleted, changes.inserted)
        unsure = self._unsure(old, removed, explicit, [r for r in old.rules if r not in {*rules}])
        classes = old.classes
        pairs = self._pairs(inserted)
        if len(unsure):
            classes = classes.without(unsure)
            pairs = self._pairs(explicit)
        classes = classes.merged(pairs, self._same_as)
        left = old.derived[~np.isin(old.derived, unsure)]
        new = _State(program, explicit, rules, classes, np.unique(classes.of(left)))
        self._merges = 0
        stored = self._run_to_fixpoint(self._apply(new, removed, inserted))
        if self._merges:
            assert stored.statistics is not None, "an update has statistics"
            stored.statistics.reason += f"; {self._merges} more because terms became equal"
        self._expanded = None
        return self._expanded_changes(old, stored)

    def _follow_up(self, result: Changes[F]) -> Changes[F] | None:
        """Merge the classes that derived facts equate."""
        pairs, state = self._pairs(result.inserted), self._state
        if not len(pairs):
            return None
        classes = state.classes.merged(pairs, self._same_as)
        # Explicit equalities were merged before, so these are derived.
        derived = np.unique(classes.of(np.concatenate([state.derived, pairs[:, 0]])))
        self._merges += 1
        new = replace(state, classes=classes, derived=derived)
        return self._apply(new, self._nothing, self._nothing)

    def _apply(self, new: _State[F], removed: F, inserted: F) -> Changes[F]:
        """Update the inner reasoner to a new state."""
        old, engine = self._state, self.engine
        moved = old.classes.moved(new.classes)
        terms = [old.classes.members(np.unique(old.classes.of(moved)))]
        if len(removed) and len(old.classes):
            # A deleted fact may share its stored fact with others, which mention the same classes.
            mentioned = old.classes.of(_terms(removed, engine))
            terms.append(old.classes.members(mentioned[old.classes.has(mentioned)]))
        touched = self._mentioning(old.explicit, np.unique(np.concatenate(terms)))
        lost = self._rewritten(touched.union(removed), old.classes)
        gained = self._rewritten(touched.difference(removed).union(inserted), new.classes)
        if len(moved):
            lost = lost.union(engine.facts({EQUAL: old.classes.pairs(moved)}))
            gained = gained.union(engine.facts({EQUAL: new.classes.pairs(moved)}))
        added: tuple[Rule, ...] = ()
        dropped: tuple[Rule, ...] = ()
        if (
            new.rules is not old.rules
            or np.isin(moved, constants(new.rules, engine.dictionary)).any()
        ):
            program = self._rewritten_program(new.rules, new.classes)
            added = program.rules_not_in(self._inner.program)
            dropped = self._inner.program.rules_not_in(program)
        self._state = new
        return self._inner.update(Changes(gained, lost, added, dropped))

    def _expanded_changes(self, old: _State[F], stored: Changes[F]) -> Changes[F]:
        """Expand the changes of the stored facts.

        A stored fact that is present before and after stands for the same facts unless it mentions
        a class that has changed.
        """
        new = self._state
        moved = old.classes.moved(new.classes)
        terms = np.concatenate(
            [
                old.classes.members(np.unique(old.classes.of(moved))),
                new.classes.members(np.unique(new.classes.of(moved))),
            ]
        )
        lost, gained = stored.deleted, stored.inserted
        if len(terms):
            facts = self._inner.facts
            before = self._mentioning(facts, np.unique(old.classes.of(terms)))
            after = self._mentioning(facts, np.unique(new.classes.of(terms)))
            lost, gained = lost.union(before.difference(stored.inserted)), gained.union(after)
        lost = self._replaced(lost, old.classes.nontrivial, expanded, old.classes).without([EQUAL])
        gained = self._replaced(gained, new.classes.nontrivial, expanded, new.classes)
        gained = gained.without([EQUAL])
        return replace(stored, inserted=gained.difference(lost), deleted=lost.difference(gained))

    # -- classes that may split --------------------------------------------------------------------

    def _unsure(self, old: _State[F], removed: F, explicit: F, old_rules: list[Rule]) -> Ids:
        """Compute S, the classes that may lose an equality; see the module docstring."""
        classes, dictionary, engine = old.classes, self.engine.dictionary, self.engine
        none = np.empty(0, np.uint32)
        if not len(classes) or not (len(removed) or old_rules):
            return none
        lost = self._rewritten(removed, classes)
        unsure = self._broken(old, _classes(lost, classes), explicit)
        if not len(old.derived):
            return unsure
        facts, everything = self._inner.all_facts, np.union1d(old.derived, unsure)
        rules = [compile_rule(rule, dictionary) for rule in self._inner.program.rules]
        reflexive = [rule for rule in rules if is_reflexive(rule.source)]
        others = [rule for rule in rules if not is_reflexive(rule.source)]
        removed_rules = [r for rule in old_rules for r in rewritten_rule(rule, classes, dictionary)]
        for rule in removed_rules:
            heads = engine.derive([compile_rule(rule, dictionary)], facts).facts
            lost = lost.union(heads)
            if not is_reflexive(rule):
                unsure = np.union1d(unsure, _among(_classes(heads, classes), old.derived))
        delta, done = lost, none
        while True:
            is_costly = tuning.lost_equalities_ratio * len(lost) > len(facts)
            if is_costly or self._same_as in classes.members(unsure):
                # Following this many facts costs as much as merging all classes from scratch.
                return np.union1d(everything, self._broken(old, classes.nontrivial, explicit))
            fresh = np.setdiff1d(unsure, done)
            delta = delta.union(self._mentioning(facts, fresh).difference(lost))
            lost, done = lost.union(delta), unsure
            if not len(delta):
                return unsure
            heads = engine.derive(others, facts, delta=delta).facts
            unsure = np.union1d(unsure, _among(_classes(heads, classes), old.derived))
            heads = heads.union(engine.derive(reflexive, facts, delta=delta).facts)
            delta = heads.difference(lost)
            lost = lost.union(delta)

    def _broken(self, old: _State[F], touched: Ids, explicit: F) -> Ids:
        """Select the classes that explicit equalities no longer connect."""
        if not len(touched):
            return touched
        pairs = self._pairs(explicit)
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
        """Select the facts that mention one of the terms as argument, property or class."""
        if not len(terms):
            return self.engine.facts({})
        predicates = list(facts.predicates())
        dictionary = self.engine.dictionary
        whole = [predicate for predicate in predicates if mentions(predicate, terms, dictionary)]
        rules: list[CompiledRule] = []
        types = [predicate for predicate in predicates if predicate.member_of is not None]
        if len(types) > tuning.marked_classes_limit:
            rules += self._marking(TYPES, facts)
        for predicate in predicates:
            if predicate.member_of is None or len(types) <= tuning.marked_classes_limit:
                rules += self._marking(predicate, facts)
        marks = self.engine.facts({_MARK: terms.reshape(-1, 1).astype(np.uint32)})
        mentioning = self.engine.derive(rules, facts.union(marks), delta=marks).facts
        return mentioning.union(facts.only(whole)) if whole else mentioning

    def _marking(self, predicate: Predicate, facts: F) -> tuple[CompiledRule, ...]:
        """Create rules that derive the facts of a predicate that mention a marked term."""
        rules = self._marked.get(predicate)
        if rules is None:
            is_wide = predicate == TYPES  # marked classes are found by name
            atom = pattern_of(predicate, 2 if is_wide else self._width(predicate, facts))
            variables = list(atom.variables())[: 1 if is_wide else None]
            marks = [Atom(_MARK.relation, (variable,)) for variable in variables]
            rules = self._marked[predicate] = tuple(
                compile_rule(Rule(atom, (mark, atom)), self.engine.dictionary) for mark in marks
            )
        return rules

    def _width(self, predicate: Predicate, facts: F) -> int:
        """Return the number of columns of a narrow predicate."""
        if predicate.relation == TRIPLE:
            return 2 if predicate.member_of is None else 1
        known = self._arities.get(predicate.relation)
        return facts.rows(predicate).shape[1] if known is None else known

    def _rewritten(self, facts: F, classes: Classes) -> F:
        """Replace the terms of facts by their representatives."""
        return self._replaced(facts, classes.terms, rewritten, classes)

    def _replaced(self, facts: F, terms: Ids, replacement: Replacement, classes: Classes) -> F:
        """Replace the facts that mention terms by others.

        On a distributed engine, only those facts are brought to the driver.
        """
        engine = self.engine
        if is_in_process(engine):
            return engine.facts(replacement(facts, classes, engine.dictionary))
        if not len(terms):
            return facts
        touched = self._mentioning(facts, terms)
        others = engine.facts(replacement(touched, classes, engine.dictionary))
        return facts.difference(touched).union(others)

    def _pairs(self, facts: F) -> Ids:
        """Return the pairs of different terms that facts equate."""
        return _pairs(facts if is_in_process(self.engine) else self._different(facts))

    def _different(self, facts: F) -> F:
        """Select the equalities of different terms, which are few."""
        if not len(equalities := facts.only([SAME])):
            return equalities
        text = f"{_EQUALITY} :- {_EQUALITY}, FILTER(!sameTerm(?x, ?y)) ."
        rules = [compile_rule(r, self.engine.dictionary) for r in Program.parse(text).rules]
        return self.engine.derive(rules, equalities).facts

    def _rewritten_program(self, rules: Iterable[Rule], classes: Classes) -> Program:
        dictionary = self.engine.dictionary
        return Program.of(r for rule in rules for r in rewritten_rule(rule, classes, dictionary))


def _pairs(facts: F) -> Ids:
    """Return the pairs of different terms that facts equate."""
    equalities = facts.only([SAME])
    if not len(equalities):
        return np.empty((0, 2), np.uint32)
    pairs = equalities.rows(SAME)
    different: Ids = pairs[pairs[:, 0] != pairs[:, 1]]
    return different


def _classes(facts: F, classes: Classes) -> Ids:
    """Select the classes with several members among the subjects of stored equalities."""
    equalities = facts.only([SAME])
    subjects = equalities.rows(SAME)[:, 0] if len(equalities) else np.empty(0, np.uint32)
    unique: Ids = np.unique(subjects[classes.has(subjects)])
    return unique


def _among(some: Ids, others: Ids) -> Ids:
    return some[np.isin(some, others)]


def _terms(facts: F, engine: Engine[F]) -> Ids:
    """Return all terms of facts."""
    parts = [np.empty(0, np.uint32)]
    named = []
    for predicate in facts.predicates():
        parts.append(facts.rows(predicate).reshape(-1))
        named += [term for term in (predicate.property, predicate.member_of) if term is not None]
    terms: Ids = np.unique(np.concatenate([*parts, engine.dictionary.encode(named)]))
    return terms
