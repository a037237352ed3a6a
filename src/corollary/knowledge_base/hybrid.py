"""Hybrid knowledge bases: explicit facts and a small pre-materialization, all else when asked.

`Hybrid` (algorithms) keeps the answers to some patterns and unfolds queries by rules. Rules about
properties and classes are written out for the schema first, as `Specialized` does: so the atoms
that are pre-materialized are joined when the rules are made, once, and not for every query, and a
query is unfolded by rules with constant properties and classes alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np

from corollary.algorithms.constraints import Inconsistency, inconsistencies
from corollary.algorithms.explain import BUDGET, explain
from corollary.algorithms.hybrid import Answer, Hybrid
from corollary.algorithms.hybrid_tree import Query, Tree, grow
from corollary.core.changes import Changes
from corollary.core.compile import home
from corollary.core.dictionary import Dictionary, Ids
from corollary.core.engine import Engine, F, Facts
from corollary.core.proof import Proof
from corollary.errors import InvalidInput, OperationFailed, Source
from corollary.knowledge_base.ontology import Specialized
from corollary.lang.program import Program
from corollary.lang.substitute import substituted_atom
from corollary.lang.syntax import TRIPLE, TYPE, Atom, Rule, Term, Variable
from corollary.rdf.specialize import is_specializable

if TYPE_CHECKING:
    from corollary.knowledge_base.base import KnowledgeBase

MODES = ("materialized", "hybrid")


def check_mode(mode: str, equality: str, materialize: Sequence[object]) -> None:
    """Refuse modes that there are not, and what a mode cannot do."""
    if mode not in MODES:
        raise InvalidInput("E580", f"there is no mode {mode}", f"there are {', '.join(MODES)}")
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


@cache
def schema_patterns() -> tuple[Atom, ...]:
    """The patterns that are pre-materialized by default (Table 2 of the paper).

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
    *,
    materialize: Sequence[Atom] = (),
    specialize: bool = True,
    **options: Any,
) -> Hybrid[F] | HybridSpecialized[F]:
    """A hybrid of either kind: with rules written out for a schema where there is one."""
    patterns = tuple(materialize)
    if program.has_triples:
        patterns = (*schema_patterns(), *patterns)
    if specialize and is_specializable(program):
        return HybridSpecialized(program, explicit, engine, patterns=patterns, **options)
    return Hybrid(program, explicit, engine, patterns=patterns, **options)


class HybridSpecialized(Specialized[F]):
    """`Hybrid` by rules that are written out for the schema.

    >>> from corollary.core.tables import decode, encode
    >>> from corollary.engines.columnar.engine import ColumnarEngine
    >>> from corollary.lang.parser import parse_atom
    >>> from corollary.lang.printer import Printer
    >>> from corollary.rdf.rulesets import rules
    >>> engine = ColumnarEngine(Dictionary())
    >>> data = Program.parse("[<Student>, rdfs:subClassOf, <Person>] . [<ann>, a, <Student>] .")
    >>> facts = engine.facts(encode(data.facts, engine.dictionary))
    >>> kept = HybridSpecialized(rules("rhodf"), facts, engine, patterns=schema_patterns())
    >>> answer = kept.answer(parse_atom("[?x, a, <Person>]", {}, ""))
    >>> [Printer().atom(atom) for atom in decode(answer.facts, engine.dictionary)], len(kept.facts)
    (['[<ann>, a, <Person>]'], 2)
    """

    def __init__(
        self,
        program: Program,
        explicit: F,
        engine: Engine[F],
        *,
        patterns: Iterable[Atom] = (),
        **options: Any,
    ) -> None:
        """Pre-materialize the patterns; the other parameters are those of `Maintainer`."""
        self.patterns = tuple(patterns)
        super().__init__(program, explicit, engine, **options)

    def _maintained(self, program: Program, explicit: F, **options: Any) -> Hybrid[F]:
        del options["known"], options["complete"]  # what a store holds is small, and derived again
        return Hybrid(
            program,
            explicit,
            self.engine,
            patterns=self.patterns,
            also=self._deciding(),
            clean=False,  # rules that are written out are equal where they are duplicates
            **options,
        )

    @property
    def hybrid(self) -> Hybrid[F]:
        """What is kept, by the rules that are written out. Not to be updated."""
        kept: object = self._main
        assert isinstance(kept, Hybrid), "made above"
        return kept

    def _deciding(self) -> tuple[Atom, ...]:
        """What decides about the rules: cases that data derive, and what late rules wait for."""
        state = self._state
        cases = [
            part
            for template in state.split.templates
            for part in (template.cases.body if template.direct else (template.cases.head,))
            if isinstance(part, Atom)
        ]
        late = {
            part: None
            for rule, needed in state.late.items()
            for part in rule.body
            if isinstance(part, Atom) and home(part) in needed
        }
        return (*cases, *late)

    def _turn(self) -> None:
        super()._turn()
        if hasattr(self, "_main"):
            self.hybrid.also = self._deciding()

    def _meet(self, facts: F) -> None:
        super()._meet(facts)
        self._state.plan.meet(self.hybrid.unseen)

    def update(self, changes: Changes[F]) -> Changes[F]:
        """Apply changes of E and Π; the answer is by what the facts that are kept differ."""
        before = self.explicit, self.hybrid.all_facts
        done = super().update(changes)
        return self.hybrid.shown(changes, done, before, self.explicit)

    @property
    def facts(self) -> F:
        """E and the answers to `patterns`."""
        return self._visible(self.hybrid.kept(self.explicit))

    def verify(self) -> None:
        """Derive what is kept again, by rules written out anew; see `Hybrid.verify`."""
        self.hybrid.verify()
        anew = HybridSpecialized(
            self.program, self.explicit, self.engine, patterns=self.patterns
        ).facts
        if not len(anew) == len(self.facts) == len(anew.intersection(self.facts)):
            raise OperationFailed("E407", "what is pre-materialized is not what follows")

    def answer(self, query: Atom, admissible: Mapping[int, Ids] | None = None) -> Answer[F]:
        """The facts that match an atom; see `Hybrid.answer`."""
        return self.hybrid.answer(query, admissible)

    def leaves_without(self, root: Query) -> int:
        """The leaves of a tree, had nothing been pre-materialized.

        Below a rule that is written out for a case stand then the queries for the atoms of the
        schema that gave the case, unfolded by the rules about schemas.
        """
        found: dict[Rule, int] = {}
        instances = self._instances()
        for application in root.applications():
            rule = application.rule
            if rule in instances and rule not in found:
                found[rule] = sum(map(self._schema_leaves, instances[rule]))
        return root.leaves_with(found)

    def _instances(self) -> dict[Rule, list[Atom]]:
        """The rules that are written out, each with the schema's atoms of one of its cases."""
        found: dict[Rule, list[Atom]] = {}
        state = self._state
        for (template, ids), rule in state.cases.items():
            if rule is not None:
                values = self.engine.dictionary.terms(ids)
                given: dict[Term, Term] = dict(zip(template.variables, values, strict=True))
                atoms = [part for part in template.cases.body if isinstance(part, Atom)]
                found.setdefault(rule, [substituted_atom(atom, given) for atom in atoms])
        return found

    def _schema_leaves(self, atom: Atom) -> int:
        """The leaves of a query for an atom of the schema, by the rules about schemas."""
        schema = self._state.schema
        known: tuple[object, Hybrid[F], dict[Atom, int]] | None = getattr(self, "_unfolded", None)
        if known is None or known[0] is not schema.state:
            rules = Program(self._state.split.schema)
            known = schema.state, Hybrid(rules, schema.explicit, self.engine), {}
            self._unfolded = known
        _, hybrid, leaves = known
        if atom not in leaves:
            leaves[atom] = max(1, grow(hybrid, atom, sizes=False)[0].leaves)
        return leaves[atom]

    def explain(self, fact: Atom, *, budget: int = BUDGET) -> Proof:
        """A smallest proof of a fact by the rules of Π; what it may need is derived first."""
        known = self.hybrid.relevant(fact).union(self._state.schema.all_facts)
        return explain(
            fact, self.program, self._strata, known, self.explicit, self.engine, budget=budget
        )

    def inconsistencies(self, *, examples: int | None = 3) -> Iterator[Inconsistency]:
        """The constraints of Π that follow to be contradicted."""
        known = self.hybrid.violating(self.program.constraints)
        known = known.union(self._state.schema.all_facts)
        return inconsistencies(self.program, known, self.engine, examples=examples)


def proof_tree(kept: Hybrid[F] | HybridSpecialized[F], query: Atom) -> Tree:
    """How a query is answered."""
    if isinstance(kept, HybridSpecialized):
        root, answer, complete = grow(kept.hybrid, query)
        without = kept.leaves_without(root)
    else:
        root, answer, complete = grow(kept, query)
        bare = Hybrid(kept.program, kept.explicit, kept.engine)
        without = grow(bare, query, sizes=False)[0].leaves
    return Tree(root, root.leaves, without, answer.derived, answer.look_ups, complete)


def triple_ids(
    kb: KnowledgeBase,
    pattern: tuple[int | None, int | None, int | None],
    admissible: Mapping[int, Ids] | None = None,
) -> Ids:
    """The triples that match ids, one a row: subject, property, object. None stands for any.

    `admissible` holds sets of ids for places of the pattern that are None: only triples with one of
    these there are wanted. In a hybrid knowledge base the sets are passed on to the rules.

    >>> from corollary import KnowledgeBase
    >>> kb = KnowledgeBase("[?x, <above>, ?y] :- [?y, <below>, ?x] .", mode="hybrid")
    >>> with kb.transaction() as tx:
    ...     tx.insert("[<a>, <below>, <b>] . [<c>, <below>, <b>] .")
    >>> a, c = (
    ...     kb._dictionary.id(term.terms[0])
    ...     for term in Program.parse("[<a>, a, 1] . [<c>, a, 1] .").facts
    ... )
    >>> (
    ...     len(triple_ids(kb, (None, None, None))),
    ...     len(triple_ids(kb, (None, None, None), {2: np.array([a])})),
    ... )
    (4, 1)
    """
    dictionary = kb._dictionary
    given = [dictionary.term(place) for place in pattern if place is not None]
    names = iter(given)
    terms: list[Term] = [
        Variable(f"v{at}") if place is None else next(names) for at, place in enumerate(pattern)
    ]
    facts = kb._matching(Atom(TRIPLE, tuple(terms)), admissible)
    return _triples(facts, dictionary)


def admitted(facts: F, admissible: Mapping[int, Ids], engine: Engine[F]) -> F:
    """The triples with admissible ids at some places."""
    tables = {}
    for predicate in facts.predicates():
        triples = _triples(facts.only([predicate]), engine.dictionary)
        mask = np.ones(len(triples), bool)
        for place, ids in admissible.items():
            mask &= np.isin(triples[:, place], ids)
        tables[predicate] = facts.rows(predicate)[mask]
    return engine.facts(tables)


def _triples(facts: Facts, dictionary: Dictionary) -> Ids:
    parts = [np.zeros((0, 3), np.uint32)]
    for predicate in facts.predicates():
        rows = facts.rows(predicate)
        part = np.empty((len(rows), 3), np.uint32)
        part[:, 0] = rows[:, 0]
        assert predicate.property is not None, "triples are kept by property"
        part[:, 1] = dictionary.id(predicate.property)
        if predicate.member_of is not None:
            part[:, 1] = dictionary.id(TYPE)
            part[:, 2] = dictionary.id(predicate.member_of)
        else:
            part[:, 2] = rows[:, 1]
        parts.append(part)
    return np.concatenate(parts)
