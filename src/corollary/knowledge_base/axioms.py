"""Axioms: facts that hold for as long as the program states them.

Data may state an axiom too. Such a fact stays explicit until neither the program nor the data
state it: deleting it from the data does not take it from the program, and a rule set that is
removed does not take it from the data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Generic

from corollary.core.changes import Changes
from corollary.core.dictionary import Dictionary
from corollary.core.engine import F
from corollary.core.tables import decode
from corollary.lang.printer import Printer
from corollary.lang.program import Program
from corollary.lang.syntax import Atom

if TYPE_CHECKING:
    from corollary.store import Snapshot


def axiom_texts(axioms: Iterable[Atom]) -> list[str]:
    """Axioms as the commit of a store has them, in order."""
    printer = Printer(well_known=False)
    return sorted(f"{printer.atom(axiom)} ." for axiom in axioms)


class Axioms(Generic[F]):
    """The axioms of a program, and those among them that are data as well (`asserted`)."""

    def __init__(
        self,
        stated: frozenset[Atom],
        asserted: frozenset[Atom],
        encode: Callable[[Iterable[Atom]], F],
        dictionary: Dictionary,
    ) -> None:
        self.stated, self.asserted = stated, asserted
        self._encode, self._dictionary = encode, dictionary
        self._program: tuple[Program, Program] | None = None  # the last one made

    def program(self, rules: Program) -> Program:
        """The rules together with the axioms."""
        if not self.stated:
            return rules
        if self._program is None or self._program[0] is not rules:
            self._program = rules, rules.with_axioms(self.stated)
        return self._program[1]

    @cached_property
    def _facts(self) -> F:
        return self._encode(self.stated)

    def change(
        self, stated: frozenset[Atom], asked: Changes[F], explicit: F
    ) -> tuple[Axioms[F], Changes[F]]:
        """The axioms after a change of data and program, and the change of explicit facts.

        `stated` are the axioms of the program afterwards, `asked` the changes of data and rules,
        `explicit` all explicit facts before.
        """
        if not self.stated and not stated:
            return self, asked
        new = stated - self.stated
        every = self.stated | new if new else self.stated
        asserted = self.asserted | self._among(new, explicit) | self._among(every, asked.inserted)
        asserted -= self._among(every, asked.deleted)
        after = self
        if stated != self.stated or asserted != self.asserted:
            after = Axioms(stated, asserted & stated, self._encode, self._dictionary)
        inserted, deleted = asked.inserted, asked.deleted
        if len(deleted):
            deleted = deleted.difference(after._facts)
        if stated != self.stated:
            inserted = inserted.union(self._encode(new))
            deleted = deleted.union(self._encode(self.stated - stated - asserted))
        return after, replace(asked, inserted=inserted, deleted=deleted)

    def _among(self, atoms: frozenset[Atom], facts: F) -> frozenset[Atom]:
        """Those of the atoms that are among some facts."""
        if not atoms or not len(facts):
            return frozenset()
        known = self._facts if atoms is self.stated else self._encode(atoms)
        return frozenset(decode(facts.intersection(known), self._dictionary))


def axioms_of(
    snapshot: Snapshot, encode: Callable[[Iterable[Atom]], F], dictionary: Dictionary
) -> Axioms[F]:
    """The axioms of a version of a store."""
    texts = "\n".join(snapshot.commit.asserted)
    asserted = frozenset(Program.parse(texts).facts) if texts else frozenset[Atom]()
    return Axioms(snapshot.program.axioms, asserted, encode, dictionary)
