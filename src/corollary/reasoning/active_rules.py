"""Select the active rules of a program: only rules that may derive something are evaluated.

A rule *waits* while a predicate of its body has neither facts nor a rule that may derive any: it is
not in the program, and costs nothing. Most rules of OWL 2 RL, and most instances for classes
without members, wait forever.

Invariants: a predicate that has facts is live, and so is the head of every rule in the program; a
wanted rule is in the program if all predicates of its body are live. Predicates stay live when
their last fact is deleted, so that the program does not oscillate.

A head with a variable property or class may match any predicate; the derived facts determine which.
Where these facts are not stored, the wide predicate itself is marked as live, with all that it
covers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from corollary.core.compile import TRIPLES, TYPES, covers, narrow_predicate
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import TRIPLE, Atom, Rule
from corollary.reasoning.templates import narrowable, narrowed, subsumes
from corollary.reasoning.tuning import tuning

_WIDE = (TRIPLES, TYPES)


class RulePlan:
    """The wanted rules, partitioned into waiting rules and rules in the program.

    >>> from corollary.lang.program import Program
    >>> rules = Program.parse("b(?x) :- a(?x) . c(?x) :- b(?x) . e(?x) :- c(?x), d(?x) .").rules
    >>> plan = RulePlan()
    >>> for rule in rules:
    ...     plan.want(rule)
    >>> plan.take_changes()
    ((), ())
    >>> plan.mark_live([Predicate("a")])
    >>> [rule.head.relation for rule in plan.take_changes()[0]]
    ['b', 'c']
    >>> plan.want(Program.parse("f(?x) :- [?x, <p>, ?y] .").rules[0])
    >>> plan.mark_live([TRIPLES])
    >>> [rule.head.relation for rule in plan.take_changes()[0]]
    ['f']
    """

    def __init__(
        self,
        general: Iterable[Rule] = (),
        is_watched: Callable[[Rule], bool] = lambda rule: False,
        *,
        narrows: bool = True,
    ) -> None:
        """Create a plan that ignores rules subsumed by a `general` one.

        Without `narrows`, rules that read all triples stay unchanged.
        """
        self._narrows = narrows
        self.live: dict[Predicate, None] = {}
        self.program: dict[Rule, None] = {}
        self.watched = 0  # the number of watched rules in the program
        self._is_watched = is_watched
        self._added: dict[Rule, None] = {}  # since `take_changes`
        self._removed: dict[Rule, None] = {}
        self._newly_live: list[Predicate] = []  # since `take_live`
        self._general = tuple(general)
        self._reasons: dict[Rule, int] = {}  # reference counts of wanted rules
        self._waiting: dict[Predicate, list[Rule]] = {}
        self._wide: dict[Rule, tuple[Atom, int]] = {}  # rules over all triples, reference counts
        self._narrow_count = 0  # live predicates of triples
        self._new_heads: list[Predicate] = []  # heads of rules that have just entered the program

    def want(self, rule: Rule | None) -> None:
        """Add a reference to a rule."""
        if rule is None or self._is_subsumed(rule):
            return
        atom = narrowable(rule)
        if atom is None:
            self._want(rule)
            return
        _, reasons = self._wide.get(rule, (atom, 0))
        self._wide[rule] = (atom, reasons + 1)
        if not reasons:
            for form in self._forms(rule, atom):
                self._want(form)

    def drop(self, rule: Rule | None) -> None:
        """Remove a reference to a rule; without references, it leaves the program."""
        if rule is None or self._is_subsumed(rule):
            return
        if rule not in self._wide:
            self._drop(rule)
            return
        atom, reasons = self._wide[rule]
        if reasons > 1:
            self._wide[rule] = (atom, reasons - 1)
            return
        del self._wide[rule]
        for form in self._forms(rule, atom):
            self._drop(form)

    def mark_live(self, predicates: Iterable[Predicate]) -> None:
        """Mark predicates as live; a wide one stands for all that it covers."""
        queue = [predicate for predicate in predicates if predicate not in self.live]
        while queue:
            predicate = queue.pop()
            if predicate in self.live:
                continue
            was_narrowing = self._is_narrowing
            self.live[predicate] = None
            self._newly_live.append(predicate)
            if predicate.relation == TRIPLE:
                self._narrow_count += predicate not in _WIDE
                if was_narrowing:
                    self._narrow_for(predicate)
            for rule in self._woken(predicate):
                if rule in self._reasons:
                    self._watch(rule)
            queue += self._take_heads()

    def take_live(self) -> list[Predicate]:
        """Return the predicates that became live since the last call."""
        self.mark_live(self._take_heads())
        newly_live, self._newly_live = self._newly_live, []
        return newly_live

    def take_changes(self) -> tuple[tuple[Rule, ...], tuple[Rule, ...]]:
        """Return the rules that entered and left the program since the last call."""
        self.mark_live(self._take_heads())
        added, removed = tuple(self._added), tuple(self._removed)
        self._added, self._removed = {}, {}
        return added, removed

    @property
    def changed(self) -> bool:
        """Whether the program has changed since `take_changes`."""
        self.mark_live(self._take_heads())
        return bool(self._added or self._removed)

    def _put(self, rule: Rule) -> None:
        if rule not in self.program:
            self.program[rule] = None
            self.watched += self._is_watched(rule)
            if self._removed.pop(rule, self) is self:
                self._added[rule] = None

    def _take_out(self, rule: Rule) -> None:
        if self.program.pop(rule, self) is not self:
            self.watched -= self._is_watched(rule)
            if self._added.pop(rule, self) is self:
                self._removed[rule] = None

    def _take_heads(self) -> list[Predicate]:
        """Return the heads of rules that have entered the program since the last call."""
        heads, self._new_heads = self._new_heads, []
        return [head for head in heads if head not in _WIDE]

    def _is_subsumed(self, rule: Rule) -> bool:
        return any(general != rule and subsumes(general, rule) for general in self._general)

    def _want(self, rule: Rule | None) -> None:
        if rule is not None:
            self._reasons[rule] = self._reasons.get(rule, 0) + 1
            if self._reasons[rule] == 1:
                self._watch(rule)

    def _drop(self, rule: Rule | None) -> None:
        if rule is not None:
            self._reasons[rule] -= 1
            if not self._reasons[rule]:
                del self._reasons[rule]
                self._take_out(rule)

    def _watch(self, rule: Rule) -> None:
        """Put a rule into the program, or let it wait for a predicate that is not live."""
        for part in rule.body:
            if isinstance(part, Atom):
                predicate = narrow_predicate(part)
                if not self._is_live(predicate):
                    self._waiting.setdefault(predicate, []).append(rule)
                    return
        self._put(rule)
        self._new_heads.append(narrow_predicate(rule.head))

    def _is_live(self, predicate: Predicate) -> bool:
        return (
            predicate in self.live
            or predicate in _WIDE
            or any(wide in self.live and covers(wide, predicate) for wide in _WIDE)
        )

    @property
    def _is_narrowing(self) -> bool:
        """Whether to narrow rules over all triples: the predicates are known, and few."""
        known = self._narrows and not any(wide in self.live for wide in _WIDE)
        return known and self._narrow_count <= tuning.narrowed_predicates_limit

    def _forms(self, rule: Rule, atom: Atom) -> list[Rule | None]:
        """Narrow a rule over all triples to each live property and class, or leave it as it is."""
        if not self._is_narrowing:
            return [rule]
        return [narrowed(rule, atom, predicate) for predicate in self.live]

    def _narrow_for(self, predicate: Predicate) -> None:
        """Narrow the rules over all triples to a new predicate, or stop narrowing."""
        for rule, (atom, _) in self._wide.items():
            if self._is_narrowing:
                self._want(narrowed(rule, atom, predicate))
            else:
                for other in self.live:
                    if other != predicate:
                        self._drop(narrowed(rule, atom, other))
                self._want(rule)

    def _woken(self, predicate: Predicate) -> list[Rule]:
        """Return the rules that waited for a predicate, or for one that it covers."""
        awaited = [predicate]
        if predicate in _WIDE:
            awaited = [other for other in self._waiting if covers(predicate, other)]
        return [rule for other in awaited for rule in self._waiting.pop(other, ())]


def deferred_rules(rules: Iterable[Rule]) -> dict[Rule, frozenset[Predicate]]:
    """Map the rules that may derive any property to the predicates whose facts they need.

    With one of them in the program, every predicate depends on every other. So they wait until
    these predicates have facts; a rule that may derive some is not enough: eq-rep-s waits until two
    terms are equal.
    """
    deferred = {}
    for rule in rules:
        if narrow_predicate(rule.head) in _WIDE:
            needed = {narrow_predicate(part) for part in rule.body if isinstance(part, Atom)}
            deferred[rule] = frozenset(needed.difference(_WIDE))
    return deferred
