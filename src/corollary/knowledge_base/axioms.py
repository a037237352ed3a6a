"""Axioms: facts that hold for as long as the program states them.

Data may assert an axiom too. Such a fact stays explicit until neither the program nor the data
assert it: deleting it from the data does not remove it from the program, and removing a rule set
does not remove it from the data.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Generic

from corollary.core.changes import Changes
from corollary.core.engine import Engine, F
from corollary.core.tables import decode, encode
from corollary.lang.printer import Printer
from corollary.lang.program import Program
from corollary.lang.syntax import Atom

if TYPE_CHECKING:
    from corollary.store import Snapshot


def axiom_texts(axioms: Iterable[Atom]) -> list[str]:
    """Format axioms for the commit of a store, in order."""
    printer = Printer(well_known=False)
    return sorted(f"{printer.atom(axiom)} ." for axiom in axioms)


class Axioms(Generic[F]):
    """The axioms of a program, and the subset that the data assert as well (`asserted`)."""

    def __init__(
        self,
        stated: frozenset[Atom],
        asserted: frozenset[Atom],
        engine: Engine[F],
    ) -> None:
        self.stated, self.asserted = stated, asserted
        self._engine = engine
        self._program: tuple[Program, Program] | None = None  # the last result, cached

    def program(self, rules: Program) -> Program:
        """Combine the rules with the axioms into a program."""
        if not self.stated:
            return rules
        if self._program is None or self._program[0] is not rules:
            self._program = rules, rules.with_axioms(self.stated)
        return self._program[1]

    def _encode(self, atoms: Iterable[Atom]) -> F:
        return self._engine.facts(encode(atoms, self._engine.dictionary))

    @cached_property
    def _facts(self) -> F:
        return self._encode(self.stated)

    def change(
        self, stated: frozenset[Atom], requested: Changes[F], explicit: F
    ) -> tuple[Axioms[F], Changes[F]]:
        """Compute the new axioms and the change of explicit facts for a change of data and program.

        `stated` are the axioms of the new program, `requested` the changes of data and rules, and
        `explicit` all explicit facts before the change.
        """
        if not self.stated and not stated:
            return self, requested
        new = stated - self.stated
        every = self.stated | new if new else self.stated
        asserted = (
            self.asserted | self._among(new, explicit) | self._among(every, requested.inserted)
        )
        asserted -= self._among(every, requested.deleted)
        after = self
        if stated != self.stated or asserted != self.asserted:
            after = Axioms(stated, asserted & stated, self._engine)
        inserted, deleted = requested.inserted, requested.deleted
        if len(deleted):
            deleted = deleted.difference(after._facts)
        if stated != self.stated:
            inserted = inserted.union(self._encode(new))
            deleted = deleted.union(self._encode(self.stated - stated - asserted))
        return after, replace(requested, inserted=inserted, deleted=deleted)

    def _among(self, atoms: frozenset[Atom], facts: F) -> frozenset[Atom]:
        """Select the atoms that are among some facts."""
        if not atoms or not len(facts):
            return frozenset()
        known = self._facts if atoms is self.stated else self._encode(atoms)
        return frozenset(decode(facts.intersection(known), self._engine.dictionary))


def axioms_of(snapshot: Snapshot, engine: Engine[F]) -> Axioms[F]:
    """Read the axioms of a version of a store."""
    texts = "\n".join(snapshot.commit.asserted)
    asserted = frozenset(Program.parse(texts).facts) if texts else frozenset[Atom]()
    return Axioms(snapshot.program.axioms, asserted, engine)
