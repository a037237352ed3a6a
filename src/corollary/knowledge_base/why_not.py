"""What a fact lacks: the rules that could derive it, with the premises that hold or are missing.

For every rule whose head fits, a backtracking search looks for the instance with the fewest missing
premises: it visits the premise with the fewest matches next, and may leave premises out. Missing
premises of auxiliary relations are replaced by what they lack themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from corollary.algorithms.reasoner import Reasoner
from corollary.core.calls import truth_of
from corollary.core.engine import Facts
from corollary.core.html import TreeRow, html_text, svg_tree
from corollary.core.tables import decode
from corollary.core.trivial import is_trivial
from corollary.errors import InvalidInput
from corollary.knowledge_base.state import KnowledgeState
from corollary.lang.printer import Printer
from corollary.lang.substitute import substituted_atom
from corollary.lang.syntax import (
    IRI,
    RDF,
    TYPE,
    Aggregate,
    Atom,
    Bind,
    Constant,
    Filter,
    Negation,
    Operation,
    Rule,
    Variable,
    is_auxiliary,
)

_MATCHES = 24  # of a premise that are tried
_STEPS = 400  # of the search of one rule
_DEPTH = 8  # nested auxiliary relations
_INNER = 2  # ways of an auxiliary premise that are tried
_WAYS = 10
_SCHEMA = (RDF, "http://www.w3.org/2000/01/rdf-schema#", "http://www.w3.org/2002/07/owl#")

_VALUE = Variable("value")  # of a group

Substitution = Mapping[Variable, Constant]
Literal = Atom | Negation


@dataclass(frozen=True)
class Way:
    """A rule that could derive the fact: the premises that hold, and those that are missing.

    Variables in missing premises stand for any term. A negated premise is missing if a fact
    matches it.
    """

    rule: Rule
    holds: tuple[Literal, ...]
    missing: tuple[Literal, ...]
    prefixes: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)

    def __str__(self) -> str:
        printer = Printer(self.prefixes)
        name = f"[{self.rule.name}]" if self.rule.name else printer.rule(self.rule)
        lines = [f"by {name.removesuffix(' .')}"]
        lines += [f"  ✓ {printer.body_literal(one)}" for one in self.holds]
        lines += [f"  ✗ {printer.body_literal(one)}" for one in self.missing]
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """Convert to a dictionary: `rule`, `holds` and `missing`."""
        printer = Printer(self.prefixes)
        return {
            "rule": printer.rule(self.rule).removesuffix(" ."),
            "holds": [printer.body_literal(one) for one in self.holds],
            "missing": [printer.body_literal(one) for one in self.missing],
        }


@dataclass(frozen=True)
class WhyNot:
    """Why a fact is not in a knowledge base: the ways to derive it, nearest first."""

    fact: Atom
    ways: tuple[Way, ...]
    prefixes: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    instead: Atom | None = None  # the fact that MIN or MAX keeps in its group

    def __str__(self) -> str:
        text = Printer(self.prefixes).atom(self.fact)
        if self.instead is not None:
            kept = Printer(self.prefixes).atom(self.instead)
            return f"{text} is not a fact, because {kept} is the best of its group"
        if not self.ways:
            return f"{text} is not a fact, and no rule could derive it"
        lines = [f"{text} is not a fact; it would follow"]
        for way in self.ways:
            lines += [f"  {line}" for line in str(way).splitlines()]
        return "\n".join(lines)

    def __repr__(self) -> str:
        text = Printer(self.prefixes).atom(self.fact)
        return f"<WhyNot of {text}: {_ways(len(self.ways))}>"

    def to_svg(self) -> str:
        """The ways as a picture: what holds, and what is missing."""
        printer = Printer(self.prefixes)
        rows = [TreeRow(0, printer.atom(self.fact), "is not a fact; it would follow", "root")]
        for way in self.ways:
            name = f"[{way.rule.name}]" if way.rule.name else printer.rule(way.rule)
            rows.append(TreeRow(1, f"by {name.removesuffix(' .')}"))
            rows += [TreeRow(2, printer.body_literal(p), "holds", "explicit") for p in way.holds]
            rows += [
                TreeRow(2, printer.body_literal(p), "is missing", "absent") for p in way.missing
            ]
        return svg_tree(rows, "what is missing")

    def _repr_html_(self) -> str:
        return self.to_svg() if self.ways else html_text(str(self))

    def to_json(self) -> dict[str, Any]:
        """Convert to a dictionary: `fact` and `ways`, and for MIN and MAX, `instead`."""
        printer = Printer(self.prefixes)
        return {
            "fact": printer.atom(self.fact),
            "ways": [way.to_json() for way in self.ways],
        } | ({"instead": printer.atom(self.instead)} if self.instead is not None else {})


def _ways(count: int) -> str:
    return "1 way" if count == 1 else f"{count:,} ways"


def why_not(state: KnowledgeState, fact: Atom, limit: int = _WAYS) -> WhyNot:
    """Find what a fact lacks; see `KnowledgeBase.why_not`.

    >>> from corollary import KnowledgeBase
    >>> kb = KnowledgeBase("p(?x) :- q(?x, ?y), r(?y) . q(1, 2) .")
    >>> print(why_not(kb.state, kb.state.pattern("p(1)")))
    p(1) is not a fact; it would follow
      by p(?x) :- q(?x, ?y), r(?y)
        ✓ q(1, 2)
        ✗ r(2)
    """
    prefixes = state.all_prefixes
    if any(isinstance(term, Variable) for term in fact.terms):
        text = Printer(prefixes).atom(fact)
        raise InvalidInput("E208", f"only a fact can be explained, but {text} has variables")
    if state.reasoner.count(fact):
        text = Printer(prefixes).atom(fact)
        raise InvalidInput("E360", f"{text} is a fact", "kb.explain proves it, without --why-not")
    if (instead := _best_of_group(state.reasoner, fact)) is not None:
        return WhyNot(fact, (), prefixes, instead)
    search = _Search(state.reasoner, state.reasoner.program.rules)
    found = [way for way in search.ways(fact, _DEPTH) if way.missing]
    by_rule: dict[Rule, Way] = {}
    for way in sorted(found, key=_distance):
        by_rule.setdefault(way.rule, way)
    nearest = [*by_rule.values()][:limit]
    ways = (Way(way.rule, way.holds, way.missing, prefixes) for way in nearest)
    return WhyNot(fact, tuple(ways), prefixes)


def _best_of_group(reasoner: Reasoner[Facts], fact: Atom) -> Atom | None:
    """The fact of the same group that MIN or MAX keeps, if it is as good or better."""
    for rule in reasoner.program.rules:
        bind = rule.extremum
        if bind is None or _unified(rule.head, fact) is None:
            continue
        place = rule.head.terms.index(bind.variable)
        group = Atom(fact.relation, (*fact.terms[:place], _VALUE, *fact.terms[place + 1 :]))
        order = "<=" if bind.extremum == "MIN" else ">="
        condition = Operation(order, (_VALUE, cast("Constant", fact.terms[place])))
        for other in decode(reasoner.match(group), reasoner.engine.dictionary):
            if truth_of(condition, {_VALUE: cast("Constant", other.terms[place])}):
                return other
    return None


def _distance(way: Way) -> tuple[int, bool, int, int, int]:
    """Few missing premises, data rather than axioms, with few unknown terms.

    The rules of equality fit all facts, and so do trivial premises; they come last.
    """
    unknown = {
        term for one in way.missing for term in _atom(one).terms if isinstance(term, Variable)
    }
    is_equality = (way.rule.name or "").startswith("eq-")
    is_equality |= any(is_trivial(_atom(one)) for one in way.holds)
    axioms = sum(1 for one in way.missing if _is_axiom(_atom(one)))
    return len(way.missing), is_equality, axioms, len(unknown), -len(way.holds)


def _is_axiom(atom: Atom) -> bool:
    """Whether an atom mentions the vocabulary of RDF, RDFS or OWL, except `a`."""
    return any(
        isinstance(term, IRI) and term != TYPE and term.value.startswith(_SCHEMA)
        for term in atom.terms
    )


def _atom(literal: Literal) -> Atom:
    return literal.atom if isinstance(literal, Negation) else literal


class _Search:
    """Searches for the nearest instance of every rule."""

    def __init__(self, reasoner: Reasoner[Facts], rules: Sequence[Rule]) -> None:
        self._reasoner = reasoner
        self._rules = rules
        self._known: dict[Atom, list[Atom]] = {}

    def ways(self, goal: Atom, depth: int) -> Iterator[Way]:
        """The nearest instance of every rule whose head fits."""
        for rule in self._rules:
            values = _unified(rule.head, goal)
            if values is not None:
                way = self._nearest(rule, values)
                if way is not None and goal not in way.missing:
                    yield from self._expanded(way, depth)

    def _expanded(self, way: Way, depth: int) -> Iterator[Way]:
        """Replace a missing auxiliary premise by what it lacks; drop those that hold."""
        holds = tuple(p for p in way.holds if not is_auxiliary(_atom(p).relation))
        hidden = [p for p in way.missing if is_auxiliary(_atom(p).relation)]
        if not hidden:
            yield Way(way.rule, holds, way.missing)
            return
        if depth == 0:
            return
        first = _atom(hidden[0])
        rest = tuple(p for p in way.missing if p is not hidden[0])
        inner = sorted(self.ways(first, depth - 1), key=_distance)
        for part in inner[:_INNER]:
            missing = tuple(dict.fromkeys((*rest, *part.missing)))
            joined = Way(way.rule, tuple(dict.fromkeys((*holds, *part.holds))), missing)
            yield from self._expanded(joined, depth - 1)

    def _nearest(self, rule: Rule, values: dict[Variable, Constant]) -> Way | None:
        """The instance with the fewest missing premises that the search finds."""
        atoms = [part for part in rule.body if isinstance(part, Atom)]
        others = [part for part in rule.body if not isinstance(part, Atom)]
        if any(isinstance(part, Aggregate) for part in others):
            return None
        best: list[tuple[tuple[int, bool, int, int, int], Way]] = []
        steps = [0]

        def visit(
            left: list[Atom], known: dict[Variable, Constant], holds: list[Atom], gaps: list[Atom]
        ) -> None:
            steps[0] += 1
            if steps[0] > _STEPS or (best and len(gaps) > best[0][0][0]):
                return
            if not left:
                way = self._complete(rule, others, known, holds, gaps)
                if way is not None:
                    rank = _distance(way)
                    if not best or rank < best[0][0]:
                        best[:] = [(rank, way)]
                return
            place, matches = self._most_bound(left, known)
            atom, rest = left[place], [*left[:place], *left[place + 1 :]]
            for fact in matches[:_MATCHES]:
                bound = _unified(substituted_atom(atom, known), fact)
                if bound is not None:
                    visit(rest, {**known, **bound}, [*holds, fact], gaps)
            visit(rest, known, holds, [*gaps, atom])

        visit(atoms, values, [], [])
        return best[0][1] if best else None

    def _complete(
        self,
        rule: Rule,
        others: Sequence[object],
        known: Substitution,
        holds: Sequence[Atom],
        gaps: Sequence[Atom],
    ) -> Way | None:
        """The way of an assignment, unless a filter rejects it."""
        missing: list[Literal] = [substituted_atom(atom, known) for atom in gaps]
        held: list[Literal] = list(holds)
        for part in others:
            if isinstance(part, Filter | Bind) and _rejects(part, known):
                return None
            if isinstance(part, Negation):
                atom = substituted_atom(part.atom, known)
                (missing if self._matches(atom) else held).append(Negation(atom))
        return Way(rule, tuple(held), tuple(missing))

    def _most_bound(self, left: Sequence[Atom], known: Substitution) -> tuple[int, list[Atom]]:
        """The premise with the fewest unknown terms, and its matches."""
        unknown = [
            (sum(1 for _ in substituted_atom(atom, known).variables()), place)
            for place, atom in enumerate(left)
        ]
        _, place = min(unknown)
        return place, self._matches(substituted_atom(left[place], known))

    def _matches(self, atom: Atom) -> list[Atom]:
        """Some facts that match."""
        if atom not in self._known:
            facts = self._reasoner.match(atom)
            found: list[Atom] = []
            for fact in decode(_some(facts), self._reasoner.engine.dictionary):
                found.append(fact)
                if len(found) >= _MATCHES:
                    break
            self._known[atom] = found
        return self._known[atom]


def _some(facts: Facts) -> Facts:
    """Only the first predicates of many facts, which are decoded in order."""
    predicates = [*facts.predicates()]
    return facts.only(predicates[:_MATCHES]) if len(predicates) > _MATCHES else facts


def _unified(pattern: Atom, fact: Atom) -> dict[Variable, Constant] | None:
    """The values of a pattern's variables that make it the fact; a variable of it fits anything."""
    if pattern.relation != fact.relation or len(pattern.terms) != len(fact.terms):
        return None
    values: dict[Variable, Constant] = {}
    for term, value in zip(pattern.terms, fact.terms, strict=True):
        if isinstance(value, Variable):
            continue
        if isinstance(term, Variable):
            if values.setdefault(term, value) != value:
                return None
        elif term != value:
            return None
    return values


def _rejects(part: Filter | Bind, known: Substitution) -> bool:
    """Whether a filter or a value of known terms is false; one that cannot be decided is not."""
    condition = part.expression
    if isinstance(part, Bind):
        condition = Operation("sameTerm", (part.expression, part.variable))
    return truth_of(condition, known) is False
