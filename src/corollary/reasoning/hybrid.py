"""Hybrid reasoning: explicit facts and a small pre-materialization; the rest is derived on demand.

`Hybrid` (algorithms) materializes the answers to some patterns and unfolds queries through the
rules. Here the rules are specialized to the schema first, as in `SpecializedReasoner`: atoms that
are pre-materialized are joined once, when a rule is specialized, instead of once per query, and
queries unfold only through rules with constant properties and classes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from importlib import resources
from typing import cast

from corollary.algorithms.constraints import Inconsistency, inconsistencies
from corollary.algorithms.hybrid import Answer, Hybrid
from corollary.algorithms.hybrid_tree import Query, Tree, grow
from corollary.algorithms.reasoner import Options, Reasoner, refuse_difference
from corollary.core.changes import Changes
from corollary.core.compile import narrow_predicate
from corollary.core.dictionary import Ids
from corollary.core.engine import Engine, F
from corollary.errors import Source
from corollary.lang.program import Program
from corollary.lang.substitute import substituted_atom
from corollary.lang.syntax import Atom, Rule
from corollary.reasoning.adaptive import AdaptiveReasoner, Ways
from corollary.reasoning.specialization import SpecializedReasoner
from corollary.reasoning.templates import is_specializable


@cache
def schema_patterns() -> tuple[Atom, ...]:
    """Return the patterns that are pre-materialized by default (Table 2 of the paper).

    >>> len(schema_patterns())
    27
    """
    folder = resources.files("corollary.rdf.rulesets")
    text = (folder / "prematerialized.dl").read_text(encoding="utf-8")
    program = Program.parse(Source("prematerialized.dl", text))
    return tuple(part for rule in program.rules for part in rule.body if isinstance(part, Atom))


def make_hybrid(
    program: Program,
    explicit: F,
    engine: Engine[F],
    options: Options[F] | None = None,
    *,
    materialize: Sequence[Atom] = (),
    specialize: bool | None = None,
) -> Reasoner[F]:
    """Create a hybrid reasoner.

    The data decide whether rules about schemas are specialized, or `specialize` does: a query over
    rules as written reads more facts, and a specialized rule costs some 200 µs when rules change.
    The reasoner derives its small materialization itself, and ignores known facts. The patterns
    about schemas belong to it even if no rule is about triples: such rules may be added later.
    """
    options = replace(options or Options(), known=None, complete=None)
    patterns = (*schema_patterns(), *materialize)
    if specialize is False or not is_specializable(program):
        return Hybrid(program, explicit, engine, options, patterns=patterns)
    special = partial(SpecializedHybridReasoner, patterns=patterns)
    if specialize:
        return special(program, explicit, engine, options)
    ways = Ways(special, partial(Hybrid, patterns=patterns), continues=False)
    return AdaptiveReasoner(program, explicit, engine, options, ways)


class SpecializedHybridReasoner(SpecializedReasoner[F]):
    """`Hybrid` over rules that are specialized to the schema.

    >>> from corollary.core.dictionary import Dictionary
    >>> from corollary.core.tables import decode, encode
    >>> from corollary.engines.columnar.engine import ColumnarEngine
    >>> from corollary.lang.parser import parse_atom
    >>> from corollary.lang.printer import Printer
    >>> from corollary.rdf.rulesets import rules
    >>> engine = ColumnarEngine(Dictionary())
    >>> data = Program.parse("[<Student>, rdfs:subClassOf, <Person>] . [<ann>, a, <Student>] .")
    >>> facts = engine.facts(encode(data.facts, engine.dictionary))
    >>> reasoner = SpecializedHybridReasoner(
    ...     rules("rhodf"), facts, engine, patterns=schema_patterns()
    ... )
    >>> answer = reasoner.answer(parse_atom("[?x, a, <Person>]", {}, ""))
    >>> (
    ...     [Printer().atom(atom) for atom in decode(answer.facts, engine.dictionary)],
    ...     len(reasoner.facts),
    ... )
    (['[<ann>, a, <Person>]'], 2)
    """

    def __init__(
        self,
        program: Program,
        explicit: F,
        engine: Engine[F],
        options: Options[F] | None = None,
        *,
        patterns: Iterable[Atom] = (),
    ) -> None:
        """Pre-materialize the patterns."""
        self.patterns = tuple(patterns)
        super().__init__(program, explicit, engine, options)

    def _maintained(self, program: Program, explicit: F, options: Options[F]) -> Hybrid[F]:
        return Hybrid(
            program,
            explicit,
            self.engine,
            options,
            patterns=self.patterns,
            hidden_patterns=self._rule_atoms(),
            clean=False,  # specialized rules are equal if they are duplicates
        )

    @property
    def hybrid(self) -> Hybrid[F]:
        """The inner reasoner, over the specialized rules; callers must not update it."""
        return cast("Hybrid[F]", self._inner)

    def _rule_atoms(self) -> tuple[Atom, ...]:
        """Return atoms that determine the rules: bindings and predicates of deferred rules."""
        schema = self._schema
        bindings = [atom for t in schema.split.templates for atom in t.binding_atoms]
        awaited = {
            part: None
            for rule, needed in schema.deferred.items()
            for part in rule.body
            if isinstance(part, Atom) and narrow_predicate(part) in needed
        }
        return (*bindings, *awaited)

    def _refresh_plan(self) -> None:
        super()._refresh_plan()
        if hasattr(self, "_inner"):
            self.hybrid.hidden_patterns = self._rule_atoms()

    def _mark_live(self, facts: F) -> None:
        super()._mark_live(facts)
        self._schema.plan.mark_live(self.hybrid.unseen)

    def _update(self, changes: Changes[F]) -> Changes[F]:
        before = self.explicit, self.hybrid.all_facts
        stored = super()._update(changes)
        return self.hybrid.visible_changes(changes, stored, before, self.explicit)

    @property
    def facts(self) -> F:
        """E and the answers to `patterns`."""
        return self._visible(self.hybrid.visible_facts(self.explicit))

    def verify(self) -> None:
        """Rederive the stored facts with freshly specialized rules; see `Hybrid.verify`."""
        self.hybrid.verify()
        expected = SpecializedHybridReasoner(
            self.program, self.explicit, self.engine, patterns=self.patterns
        )
        message = "what is pre-materialized is not what follows"
        refuse_difference(self.facts, expected.facts, message)

    def match(self, pattern: Atom, admissible: Mapping[int, Ids] | None = None) -> F:
        """Derive the facts that match a pattern."""
        return self.answer(pattern, admissible).facts

    def answer(self, query: Atom, admissible: Mapping[int, Ids] | None = None) -> Answer[F]:
        """Derive the facts that match an atom; see `Hybrid.answer`."""
        return self.hybrid.answer(query, admissible)

    def leaves_without(self, root: Query) -> int:
        """Count the leaves that a tree would have without pre-materialization.

        Below a specialized rule, these are the queries for the schema atoms of its binding,
        unfolded by the rules about schemas.
        """
        leaves: dict[Rule, int] = {}
        instances = self._instances()
        for application in root.applications():
            rule = application.rule
            if rule in instances and rule not in leaves:
                leaves[rule] = sum(map(self._schema_leaves, instances[rule]))
        return root.leaves_with(leaves)

    def _instances(self) -> dict[Rule, list[Atom]]:
        """Return the specialized rules, each with the schema atoms of one of its bindings."""
        instances: dict[Rule, list[Atom]] = {}
        for (template, ids), rule in self._schema.instances.items():
            if rule is not None:
                values = self.engine.dictionary.terms(ids)
                bindings = dict(zip(template.variables, values, strict=True))
                atoms = [substituted_atom(atom, bindings) for atom in template.schema_atoms]
                instances.setdefault(rule, atoms)
        return instances

    def _schema_leaves(self, atom: Atom) -> int:
        """Count the leaves of a query for a schema atom, unfolded by the rules about schemas."""
        schema = self._schema.closure
        known: tuple[object, Hybrid[F], dict[Atom, int]] | None = getattr(self, "_unfolded", None)
        if known is None or known[0] is not schema.state:
            rules = Program(self._schema.split.schema)
            known = schema.state, Hybrid(rules, schema.explicit, self.engine), {}
            self._unfolded = known
        _, hybrid, leaves = known
        if atom not in leaves:
            leaves[atom] = max(1, grow(hybrid, atom, sizes=False)[0].leaves)
        return leaves[atom]

    def premises(self, fact: Atom) -> F:
        """Derive the facts that a proof of a fact may use."""
        return self.hybrid.premises(fact).union(self._schema.closure.all_facts)

    def query_plan(self, pattern: Atom) -> Tree:
        """Return the proof tree by which a pattern is answered."""
        root, answer, complete = grow(self.hybrid, pattern)
        without = self.leaves_without(root)
        return Tree(root, root.leaves, without, answer.derived, answer.look_ups, complete)

    def inconsistencies(self, *, examples: int | None = 3) -> Iterator[Inconsistency]:
        """Find the violated constraints, after deriving the facts that constraints read."""
        known = self.hybrid.violating(self.program.constraints)
        known = known.union(self._schema.closure.all_facts)
        return inconsistencies(self.program, known, self.engine, examples=examples)
