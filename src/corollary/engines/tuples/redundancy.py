"""Redundant rule instances, which evaluation may skip.

A chain of n classes has n² / 2 subclass pairs, but the transitive rule has n³ / 6 instances. It is
enough to extend each pair by one *direct* pair. So is it for every rule that passes something on
along a transitive relation: the classes of an individual follow from its direct superclasses.

Idea: let rule r read a fact F at body atom i, and let rule q derive F. If the head of r follows by
other instances from the remaining premises of r and the premises of q, r may skip F. This is tested
with constants for variables, for all pairs of rules, and searched for proofs of at most two rules:
`[x, a, e]` follows from `[c, subClassOf, d], [d, subClassOf, e]` and `[x, a, c]` in two steps of
`[?x, a, ?d] :- [?c, subClassOf, ?d], [?x, a, ?c]`, so this rule skips what the transitive rule has
derived. No rule is named anywhere.

Why nothing is lost: each rule skips facts at one atom only. Suppose that a head is missing, and
take an instance with that head whose skipped fact F was derived as early as possible. The premises
of F were derived before F. In the proof found for r and q, an instance that may be skipped itself
reads a premise of F at its skipped atom, which was derived earlier, so its head is not missing.
Hence the head of r is not missing either. Derivations *before* F are essential: a fact counts as
derived by q only while q derives it from facts of lower rank (see `kernel`).

An instance whose head is one of its premises is redundant whatever else holds: a rule that reads
`[?c, subClassOf, ?d]` as above may skip `[c, subClassOf, c]`.

Rules that derive skipped facts are divided into up to six *classes*, which are bits of a fact. Two
rules share a class if every atom that reads facts of both skips both or neither.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from corollary.engines.tuples import layout as at
from corollary.lang.syntax import TRIPLE, Atom, Rule, Variable

_DEPTH = 2  # rules of a proof that replaces a skipped instance
_RENAMED = 1 << 20  # added to variables that stand for constants

Fact = tuple[str, tuple[int, ...]]  # numbers below 0 are constants, others variables
Proved = Mapping[Fact, bool]  # premises: whether they are premises of the skipped fact
Bindings = dict[int, int]
Label = tuple[str, int | None]  # the relation of a fact, and the property of a triple


@dataclass(frozen=True)
class Redundancy:
    """Which facts a rule marks, and which ones its atoms skip, as bits of classes."""

    derived: tuple[int, ...]  # by rule: the class of its heads, or 0
    skipped: tuple[tuple[int, ...], ...]  # by rule and atom


@dataclass(frozen=True)
class _Clause:
    """A rule as numbers."""

    number: int
    head: Fact
    body: tuple[Fact, ...]
    is_plain: bool  # atoms only

    @cached_property
    def label(self) -> Label:
        """The label of the head."""
        return _label(self.head)

    @cached_property
    def labels(self) -> tuple[Label, ...]:
        """The labels of the body."""
        return tuple(map(_label, self.body))

    @cached_property
    def is_transitive(self) -> bool:
        """Whether the rule composes a relation, or a property of some kind, with itself."""
        return self.is_plain and self.extends(()) and self.labels.count(self.label) > 1

    def extends(self, transitive: Container[Label]) -> bool:
        """Whether the rule composes its own relation and transitive ones.

        These are the relations of the atoms about the first or last argument of the head.
        """
        arguments = self.head[1]
        ends = {arguments[0], arguments[-1]} if arguments else set()
        about = [
            (fact, label)
            for fact, label in zip(self.body, self.labels, strict=True)
            if ends & set(fact[1])
        ]
        return len(about) > 1 and all(
            self._is_own(fact) or label in transitive for fact, label in about
        )

    def _is_own(self, fact: Fact) -> bool:
        """Whether a fact has the relation of the head, and the same property."""
        is_triple = fact[0] == TRIPLE
        return fact[0] == self.head[0] and (not is_triple or fact[1][1] == self.head[1][1])


@lru_cache(maxsize=64)
def redundancy_of(rules: tuple[Rule, ...]) -> Redundancy:
    """Find the facts that rules may skip.

    >>> from corollary.lang.program import Program
    >>> text = "p(?x, ?z) :- p(?x, ?y), p(?y, ?z) . q(?y) :- q(?x), p(?x, ?y) ."
    >>> redundancy_of(Program.parse(text).rules)
    Redundancy(derived=(2, 0), skipped=((3, 1), (0, 3)))
    """
    clauses = _numbered(rules)
    search = _Search(clauses)
    search.choose_atoms()
    return search.classes()


def _numbered(rules: Iterable[Rule]) -> list[_Clause]:
    numbers: dict[object, int] = {}
    clauses = []
    for number, rule in enumerate(rules):
        variables: dict[Variable, int] = {}

        def fact(atom: Atom, variables: dict[Variable, int] = variables) -> Fact:
            return atom.relation, tuple(
                variables.setdefault(term, len(variables))
                if isinstance(term, Variable)
                else numbers.setdefault(term, -1 - len(numbers))
                for term in atom.terms
            )

        body = tuple(fact(part) for part in rule.body if isinstance(part, Atom))
        clauses.append(_Clause(number, fact(rule.head), body, len(body) == len(rule.body)))
    return clauses


class _Search:
    """Searches for pairs of rules, one of which makes instances of the other redundant."""

    def __init__(self, clauses: Sequence[_Clause]) -> None:
        self.clauses = clauses
        self.chosen: dict[int, int] = {}  # by rule: the atom that skips
        plain = [clause for clause in clauses if clause.is_plain]
        transitive = [clause for clause in plain if clause.is_transitive]
        labels = {clause.label for clause in transitive if not _is_open(clause.label)}
        self._deriving = transitive + [
            clause for clause in plain if clause not in transitive and clause.extends(labels)
        ]
        self._steps = self._deriving + [  # rules of proofs
            clause
            for clause in plain
            if clause not in self._deriving
            and len(clause.body) == _DEPTH
            and not labels.isdisjoint(clause.labels)
        ]

    def choose_atoms(self) -> None:
        """Choose the atom of each rule that skips facts.

        Axioms are best: atoms of a known relation, of a transitive one if possible.
        """
        for clause in self.clauses:
            choices = []
            for place, label in enumerate(clause.labels if clause.is_plain else ()):
                self.chosen[clause.number] = place
                skipped = self._skipped(clause, place)
                if skipped:
                    is_of_transitive = any(self.clauses[other].is_transitive for other in skipped)
                    choices.append((_is_open(label), not is_of_transitive, place))
                del self.chosen[clause.number]
            if choices:
                self.chosen[clause.number] = min(choices)[-1]

    def classes(self) -> Redundancy:
        """Divide the rules whose facts are skipped into classes."""
        skipped = {
            (number, place): self._skipped(self.clauses[number], place)
            for number, place in self.chosen.items()
        }
        classes: list[list[int]] = []
        for number in (clause.number for clause in self._deriving):
            if not any(number in numbers for numbers in skipped.values()):
                continue
            for members in classes:
                if all(self._agree(number, other, skipped) for other in members):
                    members.append(number)
                    break
            else:
                classes.append([number])
        derived = [0] * len(self.clauses)
        for bit, members in enumerate(classes[: at.CLASS_COUNT]):
            for number in members:
                derived[number] = at.FIRST_CLASS << bit
        masks = []
        for clause in self.clauses:
            mask = [at.REFLEXIVE if _is_trivial(clause, fact) else 0 for fact in clause.body]
            place = self.chosen.get(clause.number)
            if place is not None:
                for number in skipped[clause.number, place]:
                    mask[place] |= derived[number]
            masks.append(tuple(mask))
        return Redundancy(tuple(derived), tuple(masks))

    def _agree(self, one: int, two: int, skipped: Mapping[tuple[int, int], set[int]]) -> bool:
        """Whether each atom that reads facts of two rules skips both or neither."""
        heads = self.clauses[one].head, self.clauses[two].head
        for clause in self.clauses:
            for place, fact in enumerate(clause.body):
                among = skipped.get((clause.number, place), ())
                if (one in among) != (two in among) and all(
                    _unified(fact, _renamed(head, 1)) is not None for head in heads
                ):
                    return False
        return True

    def _skipped(self, clause: _Clause, place: int) -> set[int]:
        """The rules whose facts an atom may skip."""
        return {
            deriving.number
            for deriving in self._deriving
            if self._is_redundant(clause, place, deriving)
        }

    def _is_redundant(self, clause: _Clause, place: int, deriving: _Clause) -> bool:
        """Whether the head follows from premises of the deriving rule instead of its head."""
        reading = [_renamed(fact, 1) for fact in clause.body]
        bindings = _unified(reading.pop(place), _renamed(deriving.head, 2))
        if bindings is None:
            return False
        proved = {_replaced(fact, bindings): False for fact in reading}
        proved |= {_replaced(_renamed(fact, 2), bindings): True for fact in deriving.body}
        goal = _replaced(_renamed(clause.head, 1), bindings)
        own = () if clause in self._steps else (clause,)
        return self._follows(goal, proved, (*self._steps, *own), _DEPTH)

    def _follows(self, goal: Fact, proved: Proved, rules: Sequence[_Clause], depth: int) -> bool:
        """Whether a fact is proved, or has a proof of at most this many rules."""
        if goal in proved:
            return True
        if not depth:
            return False
        labels = {_label(fact) for fact in proved}
        for clause in rules:
            bindings = _matched(clause.head, goal, {})
            if bindings is None:
                continue
            unknown = sum(not _is_open(label) and label not in labels for label in clause.labels)
            if unknown < depth and self._holds(clause, 0, bindings, None, proved, rules, depth):
                return True
        return False

    def _holds(
        self,
        clause: _Clause,
        place: int,
        bindings: Bindings,
        open_place: int | None,
        proved: Proved,
        rules: Sequence[_Clause],
        depth: int,
    ) -> bool:
        """Whether the body holds from an atom on; one atom may need a proof of its own."""
        if place == len(clause.body):
            if open_place is None:
                return True
            goal = _replaced(clause.body[open_place], bindings)
            is_ground = all(a < 0 or a in bindings for a in clause.body[open_place][1])
            return is_ground and self._follows(goal, proved, rules, depth - 1)
        skips = self.chosen.get(clause.number) == place
        for fact, is_premise_of_skipped in proved.items():
            if is_premise_of_skipped or not skips:
                matched = _matched(clause.body[place], fact, bindings)
                if matched is not None and self._holds(
                    clause, place + 1, matched, open_place, proved, rules, depth
                ):
                    return True
        if skips or open_place is not None or depth == 1:
            return False
        return self._holds(clause, place + 1, bindings, place, proved, rules, depth)


def _is_trivial(clause: _Clause, fact: Fact) -> bool:
    """Whether an instance derives one of its premises if it reads this fact of a term and itself.

    These are facts whose first and last arguments are equal.
    """
    arguments = fact[1]
    if not clause.is_plain or len(arguments) < 2 or arguments[0] < 0 or arguments[-1] < 0:
        return False
    if arguments[0] == arguments[-1]:
        return False
    same = {arguments[0]: arguments[-1]}
    return _replaced(clause.head, same) in [_replaced(other, same) for other in clause.body]


def _is_open(label: Label) -> bool:
    """Whether a label is that of triples of any property."""
    return label == (TRIPLE, None)


def _label(fact: Fact) -> Label:
    """The relation of a fact and, if it is a triple, its property unless that is a variable."""
    relation, arguments = fact
    if relation == TRIPLE and arguments[1] < 0:
        return relation, arguments[1]
    return relation, None


def _renamed(fact: Fact, times: int) -> Fact:
    return fact[0], tuple(a if a < 0 else a + times * _RENAMED for a in fact[1])


def _replaced(fact: Fact, bindings: Bindings) -> Fact:
    return fact[0], tuple(_value(a, bindings) for a in fact[1])


def _value(argument: int, bindings: Bindings) -> int:
    while argument in bindings:
        argument = bindings[argument]
    return argument


def _unified(one: Fact, two: Fact) -> Bindings | None:
    """The most general bindings that make two atoms equal."""
    if one[0] != two[0] or len(one[1]) != len(two[1]):
        return None
    bindings: Bindings = {}
    for left, right in zip(one[1], two[1], strict=True):
        first, second = _value(left, bindings), _value(right, bindings)
        if first == second:
            continue
        if first < 0 and second < 0:
            return None
        if first < 0:
            first, second = second, first
        bindings[first] = second
    return bindings


def _matched(pattern: Fact, fact: Fact, bindings: Bindings) -> Bindings | None:
    """Bindings of the pattern's variables with which it is the fact, which is ground."""
    if pattern[0] != fact[0] or len(pattern[1]) != len(fact[1]):
        return None
    result = bindings
    for argument, value in zip(pattern[1], fact[1], strict=True):
        if argument < 0:
            if argument != value:
                return None
        elif argument not in result:
            if result is bindings:
                result = dict(bindings)
            result[argument] = value
        elif result[argument] != value:
            return None
    return result
