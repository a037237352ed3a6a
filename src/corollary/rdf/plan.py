"""Which rules a specialized program has at the moment: those that may derive something.

A rule *waits* while a predicate of its body has no facts and no rule that may derive any: it is not
in the program, and costs nothing. Of the rules of OWL 2 RL, and of the instances for classes
without members, most wait forever.

Invariants: a predicate that has facts is live, and so is the head of every rule in the program; a
rule that is wanted is in the program if all predicates of its body are live. Predicates stay live
when their last fact goes, so that the program does not change to and fro.

A head with a variable property or class may be of any predicate: its facts tell of which. Where
these are derived on demand nobody sees them, and the wide predicate itself is to be met: all that
it covers is live from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from corollary.core.compile import TRIPLES, TYPES, covers, home
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import TRIPLE, Atom, Rule
from corollary.rdf.specialize import narrowable, narrowed, subsumes
from corollary.rdf.tuning import tuning

_WIDE = (TRIPLES, TYPES)


class Plan:
    """The rules that are wanted, those that wait, and those that the program has.

    >>> from corollary.lang.program import Program
    >>> rules = Program.parse("b(?x) :- a(?x) . c(?x) :- b(?x) . e(?x) :- c(?x), d(?x) .").rules
    >>> plan = Plan()
    >>> for rule in rules:
    ...     plan.want(rule)
    >>> plan.take()
    ((), ())
    >>> plan.meet([Predicate("a")])
    >>> [rule.head.relation for rule in plan.take()[0]]
    ['b', 'c']
    >>> plan.want(Program.parse("f(?x) :- [?x, <p>, ?y] .").rules[0])
    >>> plan.meet([TRIPLES])
    >>> [rule.head.relation for rule in plan.take()[0]]
    ['f']
    """

    def __init__(
        self,
        general: Iterable[Rule] = (),
        watched: Callable[[Rule], bool] | None = None,
        *,
        narrows: bool = True,
    ) -> None:
        """Without `narrows`, rules that read all triples stay as they are."""
        self._narrows = narrows
        self.live: set[Predicate] = set()
        self.program: dict[Rule, None] = {}
        self.watched = 0  # rules of the program that were to be watched
        self._is_watched = watched or (lambda rule: False)
        self._came: dict[Rule, None] = {}  # since rules were last taken
        self._went: dict[Rule, None] = {}
        self._met: list[Predicate] = []  # since it was last asked
        self._general = tuple(general)  # rules that others may follow from
        self._wanted: dict[Rule, int] = {}
        self._waiting: dict[Predicate, list[Rule]] = {}
        self._wide: dict[Rule, tuple[Atom, int]] = {}  # rules that read all triples
        self._narrow = 0  # predicates of triples that are live
        self._heads: list[Predicate] = []  # of rules that have just come into the program

    def want(self, rule: Rule | None) -> None:
        """One more reason for a rule."""
        if rule is None or self._follows(rule):
            return
        atom = narrowable(rule)
        if atom is None:
            self._want(rule)
            return
        known = self._wide.get(rule)
        self._wide[rule] = (atom, 1 if known is None else known[1] + 1)
        if known is None:
            self._write_out(rule, atom)

    def drop(self, rule: Rule | None) -> None:
        """One reason less for a rule, which is gone with the last one."""
        if rule is None or self._follows(rule):
            return
        if rule not in self._wide:
            self._drop(rule)
            return
        atom, reasons = self._wide[rule]
        if reasons > 1:
            self._wide[rule] = (atom, reasons - 1)
            return
        del self._wide[rule]
        if self._is_narrowing:
            for predicate in self.live:
                self._drop(narrowed(rule, atom, predicate))
        else:
            self._drop(rule)

    def meet(self, predicates: Iterable[Predicate]) -> None:
        """There are, or may be, facts of these predicates, or of any that a wide one covers."""
        open_ = [predicate for predicate in predicates if predicate not in self.live]
        while open_:
            predicate = open_.pop()
            if predicate in self.live:
                continue
            was_narrowing = self._is_narrowing
            self.live.add(predicate)
            self._met.append(predicate)
            if predicate.relation == TRIPLE:
                self._narrow += predicate not in _WIDE
                if was_narrowing:
                    self._narrow_for(predicate)
            for rule in self._woken(predicate):
                if rule in self._wanted:
                    self._watch(rule)
            open_ += self._come()

    def met(self) -> list[Predicate]:
        """The predicates that became live since the last time."""
        self.meet(self._come())
        found, self._met = self._met, []
        return found

    def take(self) -> tuple[tuple[Rule, ...], tuple[Rule, ...]]:
        """The rules that came into the program since the last time, and those that went."""
        self.meet(self._come())
        added, removed = tuple(self._came), tuple(self._went)
        self._came, self._went = {}, {}
        return added, removed

    @property
    def changed(self) -> bool:
        """Whether the program is another one than was last taken."""
        self.meet(self._come())
        return bool(self._came or self._went)

    def _put(self, rule: Rule) -> None:
        if rule not in self.program:
            self.program[rule] = None
            self.watched += self._is_watched(rule)
            if self._went.pop(rule, self) is self:
                self._came[rule] = None

    def _take_out(self, rule: Rule) -> None:
        if self.program.pop(rule, self) is not self:
            self.watched -= self._is_watched(rule)
            if self._came.pop(rule, self) is self:
                self._went[rule] = None

    def _come(self) -> list[Predicate]:
        """The heads of rules that have come since the last time."""
        found, self._heads = self._heads, []
        return [head for head in found if head not in _WIDE]

    def _follows(self, rule: Rule) -> bool:
        return any(general != rule and subsumes(general, rule) for general in self._general)

    def _want(self, rule: Rule | None) -> None:
        if rule is not None:
            self._wanted[rule] = self._wanted.get(rule, 0) + 1
            if self._wanted[rule] == 1:
                self._watch(rule)

    def _drop(self, rule: Rule | None) -> None:
        if rule is not None:
            self._wanted[rule] -= 1
            if not self._wanted[rule]:
                del self._wanted[rule]
                self._take_out(rule)

    def _watch(self, rule: Rule) -> None:
        """Put a rule into the program, or let it wait for one of the predicates that it lacks."""
        for part in rule.body:
            if isinstance(part, Atom):
                predicate = home(part)
                if not self._is_live(predicate):
                    self._waiting.setdefault(predicate, []).append(rule)
                    return
        self._put(rule)
        self._heads.append(home(rule.head))

    def _is_live(self, predicate: Predicate) -> bool:
        return (
            predicate in self.live
            or predicate in _WIDE
            or any(wide in self.live and covers(wide, predicate) for wide in _WIDE)
        )

    @property
    def _is_narrowing(self) -> bool:
        """Whether rules that read all triples are written out: predicates are known, and few."""
        known = self._narrows and self.live.isdisjoint(_WIDE)
        return known and self._narrow <= tuning.narrowed_predicates_limit

    def _write_out(self, rule: Rule, atom: Atom) -> None:
        """A rule that reads all triples, for each property and class, or as it is."""
        if self._is_narrowing:
            for predicate in self.live:
                self._want(narrowed(rule, atom, predicate))
        else:
            self._want(rule)

    def _narrow_for(self, predicate: Predicate) -> None:
        """Write rules that read all triples out for a new predicate, or none of them any more."""
        for rule, (atom, _) in self._wide.items():
            if self._is_narrowing:
                self._want(narrowed(rule, atom, predicate))
            else:
                for known in self.live - {predicate}:
                    self._drop(narrowed(rule, atom, known))
                self._want(rule)

    def _woken(self, predicate: Predicate) -> list[Rule]:
        """The rules that waited for a predicate, or for one that it covers."""
        known = [predicate]
        if predicate in _WIDE:
            known = [other for other in self._waiting if covers(predicate, other)]
        return [rule for other in known for rule in self._waiting.pop(other, ())]
