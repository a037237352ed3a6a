"""`SpecializedReasoner`: a materialization under rules that are specialized to its schema.

There are two maintainers. A small one closes the *schema*: the consequences of axioms alone. The
inner one holds all facts; its program has an instance of each template (`reasoning.templates`) for
each binding that may derive something (`reasoning.active_rules`). Inserting or deleting an axiom
changes the schema; bindings gained and lost become a change of rules, which the inner maintainer
applies together with the change of facts.

Data may derive axioms too, for instance through a property below `rdfs:subClassOf`. Such a binding
does not belong to the schema, and its instance is *conditional*: the binding is an atom of the
body, so the instance is an ordinary rule that applies as long as the binding holds. Hence an axiom
never supports itself through rules that it introduced.

Invariants: unconditional instances have bindings that follow from explicit axioms by schema rules;
every other binding in the materialization has a conditional instance. So the facts are exactly the
consequences of the program as written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic

from corollary.algorithms.maintain import Maintainer
from corollary.algorithms.reasoner import Options, changed_program, refuse_difference
from corollary.core.changes import Changes
from corollary.core.engine import F
from corollary.lang.program import Program
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import Rule
from corollary.reasoning.active_rules import RulePlan, deferred_rules
from corollary.reasoning.live_vocabulary import LiveVocabulary, may_instantiate
from corollary.reasoning.rewriting import RewritingReasoner
from corollary.reasoning.templates import Split, Template, split

_Binding = tuple[Template, tuple[int, ...]]


class TooManyRules(Exception):
    """The schema requires more specialized rules than allowed."""


@dataclass(eq=False)
class _Schema(Generic[F]):
    """The closed schema and the rules specialized to it; rebuilt if an update fails."""

    program: Program
    split: Split
    closure: Maintainer[F]
    plan: RulePlan
    vocabulary: LiveVocabulary
    instances: dict[_Binding, Rule | None]  # None if the instance is trivial
    conditional: set[_Binding]  # the subset of bindings that data derive
    activated: frozenset[Rule]  # deferred rules whose predicates have facts
    is_cyclic: bool  # whether data may derive axioms

    @cached_property
    def templates(self) -> dict[Predicate, list[Template]]:
        """The templates by the predicates of their bindings."""
        templates: dict[Predicate, list[Template]] = {}
        for template in self.split.templates:
            templates.setdefault(template.predicate, []).append(template)
        return templates

    @cached_property
    def binding_rules(self) -> list[Rule]:
        """The rules that derive bindings, unless these are plain facts of the schema."""
        return [template.bindings for template in self.split.templates if not template.direct]

    @cached_property
    def schema_rules(self) -> frozenset[Rule]:
        """The rules that read and derive only axioms."""
        return frozenset(self.split.schema)

    @cached_property
    def deferred(self) -> dict[Rule, frozenset[Predicate]]:
        """The general rules that may derive any property."""
        return deferred_rules(self.split.general)

    def derives_schema(self, rule: Rule) -> bool:
        """Test whether a rule may derive axioms from data."""
        return self.split.derives_schema(rule.head) and rule not in self.schema_rules

    @property
    def closed(self) -> F:
        """The axioms with their consequences."""
        return self.closure.all_facts.only(self.split.predicates)

    def bindings(self, facts: F) -> Iterator[_Binding]:
        """Select the bindings among some facts whose instances may derive something."""
        for predicate in facts.predicates():
            for template in self.templates.get(predicate, ()):
                for row in self.vocabulary.rows(template, facts.rows(predicate)).tolist():
                    yield template, tuple(row)

    def add(self, binding: _Binding, *, conditional: bool = False) -> None:
        """Create the instance for a binding."""
        template, ids = binding
        values = self.vocabulary.dictionary.terms(ids)
        rule = self.instances[binding] = template.instance(values, conditional=conditional)
        if conditional:
            self.conditional.add(binding)
        self.plan.want(rule)

    def remove(self, binding: _Binding) -> None:
        """Drop the instance for a binding."""
        self.conditional.discard(binding)
        self.plan.drop(self.instances.pop(binding))


class SpecializedReasoner(RewritingReasoner[F, Maintainer[F]]):
    """Maintains mat(Π, E) while E and Π change, as `Maintainer` does, by rules specialized to E.

    >>> from corollary.core.dictionary import Dictionary
    >>> from corollary.core.tables import decode, encode
    >>> from corollary.engines.columnar.engine import ColumnarEngine
    >>> from corollary.lang.printer import Printer
    >>> from corollary.rdf.rulesets import rules
    >>> engine = ColumnarEngine(Dictionary())
    >>> def facts(text):
    ...     return engine.facts(encode(Program.parse(text).facts, engine.dictionary))
    >>> axiom = "[<Student>, rdfs:subClassOf, <Person>] ."
    >>> start = facts("[<ann>, a, <Student>] ." + axiom)
    >>> reasoner = SpecializedReasoner(rules("rhodf"), start, engine)
    >>> print(reasoner.active_program, end="")
    [rdfs11] [?c, rdfs:subClassOf, ?e] :- [?c, rdfs:subClassOf, ?d], [?d, rdfs:subClassOf, ?e] .
    [rdfs9] [?x, a, <Person>] :- [?x, a, <Student>] .
    >>> changes = reasoner.update(Changes(facts(""), facts(axiom)))
    >>> sorted(Printer().atom(atom) for atom in decode(changes.deleted, engine.dictionary))
    ['[<Student>, rdfs:subClassOf, <Person>]', '[<ann>, a, <Person>]']
    """

    def _start(self, program: Program, explicit: F, options: Options[F]) -> None:
        self.most_rules = options.most_rules
        # While only schema rules derive axioms, the inner maintainer receives the closed schema
        # among its explicit facts, and does without these rules.
        self._has_closed_schema = True
        self._united: tuple[F, F, Split, F] | None = None  # see `explicit`
        # Predicates to compare, and their explicit facts, if they entered or left the schema.
        self._moved: tuple[frozenset[Predicate], F] | None = None
        self._schema: _Schema[F]
        live = (explicit if options.known is None else options.known).predicates()
        schema = self._planned(program, explicit, live)
        self._refresh_plan()
        self._has_closed_schema = not schema.is_cyclic
        added, _ = schema.plan.take_changes()
        if self._has_closed_schema:
            added = tuple(rule for rule in added if rule not in schema.schema_rules)
            explicit = explicit.without(schema.split.predicates).union(schema.closed)
        self._inner = self._maintained(Program.of(added), explicit, options)
        # The cost of the schema, of the facts, and of the follow-ups.
        self.statistics = schema.closure.statistics
        self.statistics.include(self._inner.statistics)
        everything = self._inner.all_facts
        self._run_to_fixpoint(Changes(everything, self._nothing, statistics=self.statistics))
        if options.known is not None:
            self._inner.begin()

    def _maintained(self, program: Program, explicit: F, options: Options[F]) -> Any:
        """Create the inner maintainer."""
        return Maintainer(program, explicit, self.engine, options, trust_updates=True)

    @property
    def program(self) -> Program:
        """Π, as written."""
        return self._schema.program

    @property
    def active_program(self) -> Program:
        """The rules, specialized to the schema."""
        return Program.of(self._schema.plan.program)

    @property
    def rule_count(self) -> int:
        """The number of specialized rules."""
        return len(self._inner.program.rules)

    @property
    def explicit(self) -> F:
        """E."""
        data = self._inner.explicit
        if not self._has_closed_schema:
            return data
        axioms, split = self._schema.closure.explicit, self._schema.split
        known = self._united  # a transaction asks before and after its update
        if known is None or not (known[0] is data and known[1] is axioms and known[2] is split):
            known = data, axioms, split, data.without(split.predicates).union(axioms)
            self._united = known
        return known[3]

    @property
    def signature(self) -> str | None:
        """A hash of the rules that derive hidden facts; see `Maintainer`."""
        return self._inner.signature

    @property
    def state(self) -> object:
        """Everything that an update replaces, as a value; assign it to roll back."""
        schema = self._schema
        return schema, self._has_closed_schema, self._inner.state, schema.closure.state

    @state.setter
    def state(self, state: object) -> None:
        assert isinstance(state, tuple), "a state of this reasoner"
        # The plan has changed in place, and is made again.
        self._schema, self._has_closed_schema, self._inner.state, self._schema.closure.state = state
        most_rules, self.most_rules = self.most_rules, None
        self._replan(self._schema.program, self.explicit)
        self.most_rules = most_rules

    def verify(self) -> None:
        """Rematerialize, also with the rules of Π, and compare; raise on a difference."""
        super().verify()
        refuse_difference(self.facts, Maintainer(self.program, self.explicit, self.engine).facts)

    # -- updates ---------------------------------------------------------------------------------

    def _update(self, changes: Changes[F]) -> Changes[F]:
        program = changed_program(self.program, changes)
        schema_changes: Changes[F] | None = None
        if program is not self.program:
            self._replan(program, self.explicit.changed(changes.deleted, changes.inserted)[0])
        else:
            schema_changes = self._change_schema(changes)
        self._mark_live(changes.inserted)
        result = self._apply(changes.inserted, changes.deleted, schema_changes)
        result = self._run_to_fixpoint(result)
        if schema_changes is not None and schema_changes.statistics is not None:
            assert result.statistics is not None, "an update has statistics"
            result.statistics.include(schema_changes.statistics)
        return result

    def _change_schema(self, changes: Changes[F]) -> Changes[F] | None:
        """Update the schema, and the instances for bindings gained and lost."""
        schema = self._schema
        predicates = schema.split.predicates
        inserted, deleted = changes.inserted.only(predicates), changes.deleted.only(predicates)
        if not len(inserted) and not len(deleted):
            return None
        result = schema.closure.update_all(Changes(inserted, deleted))
        for binding in schema.bindings(result.deleted):
            if binding in schema.instances:
                schema.remove(binding)
                if schema.is_cyclic:  # data may still derive it
                    schema.add(binding, conditional=True)
        self._add_all(result.inserted)
        return result

    def _apply(
        self, inserted: F, deleted: F, schema_changes: Changes[F] | None = None
    ) -> Changes[F]:
        """Update the inner maintainer: the facts, and the rules as the plan changed."""
        self._refresh_plan()
        schema, inner = self._schema, self._inner
        predicates, schema_rules = schema.split.predicates, schema.schema_rules
        closes_schema, had_closed_schema = schema.is_cyclic, self._has_closed_schema
        added, removed = schema.plan.take_changes()
        explicit: F | None = None  # E of the inner maintainer
        if self._moved is not None or closes_schema == had_closed_schema:
            # Compare the planned rules and explicit axioms with the actual ones.
            rules = [r for r in schema.plan.program if closes_schema or r not in schema_rules]
            wanted = frozenset(rules)
            added = tuple(rule for rule in rules if rule not in inner.program)
            removed = tuple(rule for rule in inner.program.rules if rule not in wanted)
            moved, axioms = self._moved or (predicates, schema.closure.explicit)
            target = axioms.without(predicates).union(
                schema.closure.explicit if closes_schema else schema.closed
            )
            present = inner.explicit.only(moved)
            inserted = inserted.without(moved).union(target.difference(present))
            deleted = deleted.without(moved).union(present.difference(target))
        elif not closes_schema:
            added = tuple(rule for rule in added if rule not in schema_rules)
            removed = tuple(rule for rule in removed if rule not in schema_rules)
            explicit, deleted, inserted = inner.explicit.changed(
                deleted.without(predicates), inserted.without(predicates)
            )
            if schema_changes is not None:
                gained = schema_changes.inserted.only(predicates)
                lost = schema_changes.deleted.only(predicates)
                explicit = explicit.replaced(lost, gained, shared=schema.closure.all_facts)
                inserted, deleted = inserted.union(gained), deleted.union(lost)
        self._moved, self._has_closed_schema = None, not closes_schema
        return inner.update_all(Changes(inserted, deleted, added, removed), explicit=explicit)

    def _follow_up(self, result: Changes[F]) -> Changes[F] | None:
        """Change the rules as the derived facts require."""
        self._mark_live(result.inserted)
        self._change_conditional(result)
        self._activate_deferred()
        self._refresh_plan()
        if not self._schema.plan.changed and self._moved is None:
            return None
        return self._apply(self._nothing, self._nothing)

    def _mark_live(self, facts: F) -> None:
        self._schema.plan.mark_live(facts.predicates())

    def _activate_deferred(self) -> None:
        """Activate the deferred rules whose predicates have facts; deactivate all others."""
        schema = self._schema
        if not schema.deferred:
            return
        needed = frozenset[Predicate]().union(*schema.deferred.values())
        present = frozenset(self._inner.all_facts.only(needed).predicates())
        active = frozenset(r for r, needed in schema.deferred.items() if needed <= present)
        for rule in active - schema.activated:
            schema.plan.want(rule)
        for rule in schema.activated - active:
            schema.plan.drop(rule)
        schema.activated = active

    def _change_conditional(self, result: Changes[F]) -> None:
        """Add instances for bindings that data now derive; drop those no longer derived."""
        schema = self._schema
        if not schema.is_cyclic:
            return
        self._add_conditional(result.inserted)
        for binding in schema.bindings(result.deleted):
            if binding in schema.conditional:
                schema.remove(binding)

    def _refresh_plan(self) -> None:
        """Create the instances for new predicates, and decide whether data may derive axioms."""
        schema = self._schema
        self._instantiate()
        is_cyclic = schema.plan.watched > 0
        if is_cyclic == schema.is_cyclic:
            return
        schema.is_cyclic = is_cyclic
        for rule in schema.binding_rules:
            (schema.plan.want if is_cyclic else schema.plan.drop)(rule)
        if not is_cyclic:
            for binding in list(schema.conditional):
                schema.remove(binding)
        elif hasattr(self, "_inner"):
            # Known facts may include axioms that data derive.
            self._add_conditional(self._inner.all_facts)

    # -- plans -----------------------------------------------------------------------------------

    def _replan(self, program: Program, explicit: F) -> None:
        """Plan from scratch, and continue from the rules of the inner maintainer.

        Of the explicit facts, only axioms matter.
        """
        everything, rules = self._inner.all_facts, self._inner.program
        moved = self._schema.split.predicates
        schema = self._planned(program, explicit, everything.predicates())
        moved |= schema.split.predicates
        self._moved = moved, explicit.only(moved)
        schema.activated = frozenset(rule for rule in schema.deferred if rule in rules)
        for rule in schema.activated:
            schema.plan.want(rule)
        schema.is_cyclic = not self._has_closed_schema
        if schema.is_cyclic:
            for rule in schema.binding_rules:
                schema.plan.want(rule)
            self._add_conditional(everything)

    def _planned(self, program: Program, explicit: F, live: Iterable[Predicate]) -> _Schema[F]:
        """Plan for a program and its explicit facts, without any deferred rule."""
        parts = split(program)
        rules = [*parts.schema, *(t.bindings for t in parts.templates if not t.direct)]
        self._schema = schema = _Schema[F](
            program,
            parts,
            Maintainer(Program.of(rules), explicit.only(parts.predicates), self.engine),
            RulePlan(),
            LiveVocabulary(self.engine.dictionary),
            instances={},
            conditional=set(),
            activated=frozenset(),
            is_cyclic=False,
        )
        immediate = [rule for rule in parts.general if rule not in schema.deferred]
        schema.plan = RulePlan(immediate, schema.derives_schema)
        schema.plan.mark_live(live)
        for rule in (*parts.schema, *immediate):
            schema.plan.want(rule)
        # Bindings without premises do not wait for a predicate.
        self._add_all(schema.closure.all_facts)
        self._instantiate()
        return schema

    def _instantiate(self) -> None:
        """Create the instances for bindings whose premises have become live."""
        schema = self._schema
        while live := schema.plan.take_live():
            schema.vocabulary.add(live)
            templates = [t for t in schema.split.templates if may_instantiate(t, live)]
            if templates:
                predicates = [template.predicate for template in templates]
                self._add_all(schema.closure.all_facts.only(predicates), fresh=True)
                if schema.is_cyclic:
                    self._add_conditional(self._inner.all_facts.only(predicates))

    def _add_all(self, facts: F, *, fresh: bool = False) -> None:
        """Create the instances for bindings that follow from the schema alone.

        With `fresh`, only for those whose premises have just become live.
        """
        schema = self._schema
        rows_of_templates = []
        for predicate, template in (
            (p, t) for p in facts.predicates() for t in schema.templates.get(p, ())
        ):
            rows = schema.vocabulary.rows(template, facts.rows(predicate), fresh=fresh)
            rows_of_templates.append((template, rows.tolist()))
        self._require_room(sum(len(rows) for _, rows in rows_of_templates))
        # Fetch all terms at once: a dictionary in tables is slow for single look-ups.
        self.engine.dictionary.terms(
            {i for _, rows in rows_of_templates for values in rows for i in values}
        )
        for template, rows in rows_of_templates:
            for values in rows:
                binding = (template, tuple(values))
                if binding in schema.conditional:
                    schema.remove(binding)
                if binding not in schema.instances:
                    schema.add(binding)

    def _add_conditional(self, facts: F) -> None:
        """Create the instances for bindings among facts that do not follow from the schema."""
        schema = self._schema
        new = [binding for binding in schema.bindings(facts) if binding not in schema.instances]
        self._require_room(len(new))
        for binding in new:
            schema.add(binding, conditional=True)

    def _require_room(self, number: int) -> None:
        """Raise `TooManyRules` unless this number of instances may be added."""
        most = self.most_rules
        if number and most is not None and len(self._schema.instances) + number > most:
            raise TooManyRules
