"""Streams replayed on a maintainer, and compared with the oracle after every commit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from corollary.algorithms.maintain import Maintainer
from corollary.algorithms.reasoner import Options
from corollary.core.changes import Changes
from corollary.core.dictionary import Dictionary
from corollary.core.tables import decode, encode
from corollary.errors import InvalidInput
from corollary.lang import reference
from corollary.lang.program import Program
from corollary.lang.syntax import Atom
from tests.engines.conformance import MakeEngine
from tests.streams import Commit, Stream


@dataclass(frozen=True)
class State:
    """What must hold after some commits."""

    program: Program
    explicit: frozenset[Atom]
    facts: frozenset[Atom]


def states(stream: Stream) -> list[State]:
    """The states of a stream by the oracle, from before the first commit on."""
    rules, explicit = stream.program.without_facts(), frozenset(stream.program.facts)
    found = [State(rules, explicit, frozenset(reference.materialize(rules, explicit)))]
    for commit in stream.commits:
        rules = rules.removed(*commit.removed).added(*commit.added)
        explicit = (explicit - commit.deleted) | commit.inserted
        facts = frozenset(reference.materialize(rules, explicit))
        found.append(State(rules, explicit, facts))
    return found


class Player:
    """A maintainer that speaks in atoms."""

    def __init__(
        self,
        make: MakeEngine,
        program: Program,
        algorithm: str,
        *,
        coarse: bool = False,
        modules: bool = True,
    ) -> None:
        self.reason = ""  # of the last update
        self._coarse, self._modules = coarse, modules
        self.engine = make(Dictionary())
        self.dictionary = self.engine.dictionary
        self.maintainer: Maintainer[Any] = Maintainer(
            program.without_facts(),
            self.encode(program.facts),
            self.engine,
            Options(algorithm=algorithm, coarse=coarse, modules=modules),
        )

    def reopen(self) -> None:
        """Begin with the facts that are known, as a process does that opens a store."""
        now = self.maintainer
        self.maintainer = Maintainer(
            now.program,
            now.explicit,
            self.engine,
            Options(
                algorithm=now.algorithm,
                coarse=self._coarse,
                modules=self._modules,
                known=now.facts,
            ),
        )
        self.maintainer.begin()

    def encode(self, atoms: Iterable[Atom]) -> Any:
        return self.engine.facts(encode(atoms, self.dictionary))

    def decode(self, facts: Any) -> set[Atom]:
        return set(decode(facts, self.dictionary))

    @property
    def facts(self) -> set[Atom]:
        return self.decode(self.maintainer.facts)

    def changes(self, commit: Commit) -> Changes[Any]:
        return Changes(
            self.encode(commit.inserted),
            self.encode(commit.deleted),
            commit.added,
            commit.removed,
        )

    def play(self, commit: Commit) -> Changes[Any]:
        changes = self.maintainer.update(self.changes(commit))
        assert changes.statistics is not None
        self.reason = changes.statistics.reason
        return changes


def replay(
    make: MakeEngine,
    stream: Stream,
    algorithm: str,
    wanted: list[State],
    *,
    coarse: bool = False,
    modules: bool = True,
    reopen: bool = False,
) -> Iterator[Player]:
    """Play a stream and compare with the oracle; yields after every commit.

    Counting ends where a program is recursive. With `reopen`, every commit is made by a maintainer
    that begins with known facts.
    """
    try:
        player = Player(make, stream.program, algorithm, coarse=coarse, modules=modules)
        for number, commit in enumerate(stream.commits):
            before, after = wanted[number], wanted[number + 1]
            if reopen:
                player.reopen()
            changes = player.play(commit)
            where = f"{algorithm}, commit {number + 1}"
            assert player.facts == after.facts, where
            assert player.decode(player.maintainer.explicit) == after.explicit, where
            assert player.maintainer.program == after.program, where
            assert player.decode(changes.inserted) == after.facts - before.facts, where
            assert player.decode(changes.deleted) == before.facts - after.facts, where
            added = {*after.program.rules} - {*before.program.rules}
            removed = {*before.program.rules} - {*after.program.rules}
            assert ({*changes.added_rules}, {*changes.removed_rules}) == (added, removed), where
            yield player
    except InvalidInput as error:
        if algorithm != "counting" or error.code != "E309":
            raise
