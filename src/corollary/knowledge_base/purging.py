"""Purging: erase statements, and what followed from them, from all versions of a store.

The history is replayed without the statements into a new store, with a dictionary of its own. So
nothing of them remains: no fact, no derived fact, no term, no row of changes, no cache. Numbers,
times, authors and messages of versions stay. The new store then takes the place of the old one.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Unpack, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.dictionary import Dictionary, Ids
from corollary.core.engine import Engine, Facts
from corollary.core.files import exchange_folders
from corollary.core.tables import Tables, argument_columns, decode, joined
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.errors import InvalidInput, OperationFailed
from corollary.knowledge_base.data import DataReader, InputOptions
from corollary.knowledge_base.graphs import graph_difference, into_graph
from corollary.knowledge_base.patterns import arities_of
from corollary.knowledge_base.persistence import StoreHandle
from corollary.knowledge_base.reverting import VersionSource, request_difference
from corollary.knowledge_base.state import KnowledgeState, Settings
from corollary.knowledge_base.stored import rows_of
from corollary.knowledge_base.transaction import Transaction
from corollary.lang.printer import Printer
from corollary.lang.program import Program
from corollary.lang.syntax import QUADS, TRIPLE, Aggregate, Atom, Constant, Negation, Rule
from corollary.store import Store, steps
from corollary.store.commits import Commit, Statistics
from corollary.store.delta import LOG, read_actions, sync, translate_write_errors
from corollary.store.layout import (
    INSERTED,
    MADE_DERIVED,
    MADE_EXPLICIT,
    TABLES,
    TRIPLES,
    arguments,
    width_of,
)
from corollary.store.marker import foreign
from corollary.store.opening import open_terms
from corollary.store.places import Place, store_path
from corollary.store.store import current_user
from corollary.store.writer import CommitFields, Writer

_SUFFIX = ".purge"  # of the folder beside a store in which a purge writes the new one


@dataclass(frozen=True)
class Purged:
    """The result of a purge."""

    version: int  # which the purge committed
    versions: int  # that were rewritten
    statements: int  # explicit facts that some version had
    facts: int  # facts that the newest version lost, derived ones included
    terms: int  # that no version mentions any more
    axioms: tuple[str, ...]  # removed from the programs of versions
    rules: tuple[str, ...]  # that still mention one of the terms
    messages: tuple[int, ...]  # versions whose message still does


def purge(
    path: Place,
    *,
    statements: Sequence[object] = (),
    about: Sequence[object] = (),
    graph: object = None,
    author: str | None = None,
    **options: Unpack[InputOptions],
) -> Purged:
    """Erase explicit facts from all versions of a store, and commit a version that records it.

    `statements` are files, tables or graphs with facts, as for `Transaction.delete_from`. `about`
    lists terms: all facts with one of them in any place are erased. A triple is erased from all
    graphs, or with `graph` from that one only; the name of a graph in `about` erases its
    statements. Nobody else may write to the store meanwhile. Exports, clones and backups are not
    touched.

    >>> import tempfile
    >>> from corollary.knowledge_base.base import KnowledgeBase
    >>> kb = KnowledgeBase("path(?x, ?y) :- edge(?x, ?y) . edge(ann, bob) . edge(bob, cid) .")
    >>> store = tempfile.mkdtemp() + "/store"
    >>> _ = kb.save(store)
    >>> purged = purge(store, about=['"ann"'])
    >>> purged.version, purged.statements, purged.facts, purged.terms
    (2, 1, 2, 1)
    >>> KnowledgeBase.open(store, at_version=1).facts("path").to_pydict()["arg0"]
    ['bob']
    """
    folder = store_path(path)
    if not isinstance(folder, Path):
        hint = "clone it into a folder, purge the clone, and replace the original"
        raise InvalidInput("E517", f"{folder} is not a folder of this machine", hint)
    folder = folder.resolve()  # a link stays a link, and what it refers to is erased
    old = Store.open(folder)
    newest = old.snapshot()
    if newest.mode == "hybrid":
        hint = "build a new store from an export"
        raise InvalidInput("E517", "a hybrid store cannot be purged", hint, file=str(path))
    source = _Purged(old, open_terms(newest), arities_of(newest), newest.program)
    source.select(statements, about, graph, **options)
    part = folder.parent / f".{folder.name}.{uuid.uuid4().hex}{_SUFFIX}"
    with translate_write_errors(folder), _claim(folder):
        _discard_remains(folder)
        try:
            purged = _replay(source, part, author or current_user())
            steps.passed("purge: replayed")
            _replace(folder, part, old, newest.version)
        finally:
            if part.is_dir():
                _discard(part, folder)
    return purged


class _Purged(VersionSource):
    """The versions of a store without the selected facts, encoded by a new dictionary."""

    def __init__(
        self, store: Store, stored: Dictionary, arities: dict[str, int], program: Program
    ) -> None:
        super().__init__(store, Dictionary())
        self.stored, self._reader = stored, DataReader(stored, program.prefixes, arities)
        self.prefixes = program.prefixes
        self.oldest = max(1, store.oldest())  # the first version that can be read
        self.axioms: set[Atom] = set()  # the ones that were left out
        self.about: Ids = np.zeros(0, np.uint32)
        self._statements: set[tuple[object, ...]] = set()  # relations with ids of the store
        self._erased: set[tuple[object, ...]] = set()  # the facts that were left out
        self.atoms: frozenset[Atom] = frozenset()
        self.terms: frozenset[Constant] = frozenset()
        self._known = np.full(len(stored), -1, np.int64)  # new ids by stored ids
        self._relations = set(arities)
        self._engine = cast("Engine[Facts]", ColumnarEngine(stored))
        self._explicit = self._engine.facts({})  # of the last version replayed

    def select(
        self,
        statements: Sequence[object],
        about: Sequence[object],
        graph: object,
        **options: Unpack[InputOptions],
    ) -> None:
        """Choose the facts to leave out; the dictionary of the store is only used in memory."""
        terms = [self._reader.term(term) for term in about]
        found = [term_id for term in terms if (term_id := self.stored.find(term)) is not None]
        self.about, self.terms = np.array(sorted(found), np.uint32), frozenset(terms)
        engine = ColumnarEngine(self.stored)
        tables = self._reader.sources(statements, keep_labels=True, **options)
        atoms: list[Atom] = []
        for part in tables:
            part = self._reader.facts(part) if isinstance(part, Program) else part
            if graph is not None:
                part = into_graph(part, self._reader.graph(graph), self.stored)
            facts = cast("Facts", engine.facts(part))
            atoms += decode(facts, self.stored)
            for table in rows_of(facts, self.stored):
                self._statements.update(_tuples(table))
        self.atoms = frozenset(atoms)
        if not self._statements and not terms:
            hint = "give statements, or the terms that they are about"
            raise InvalidInput("E518", "nothing to purge", hint)

    @property
    def erased(self) -> int:
        """The number of explicit facts that were left out of some version."""
        return len(self._erased)

    def forgotten(self) -> int:
        """The number of terms of the facts left out that no other fact mentions."""
        ids = {term for _, *terms in self._erased for term in cast("list[int]", terms)}
        terms = self.stored.terms(sorted(ids))
        return sum(self.dictionary.find(term) is None for term in terms)

    def changes(self, first: int, second: int) -> pa.Table:
        """The changes of explicit facts from one version to another, without the selected ones."""
        if second == self.oldest:
            facts = self.store.snapshot(second).facts()
            change = pa.array([INSERTED] * len(facts), pa.string())
            rows = facts.add_column(0, "change", change)
        else:
            rows = super().changes(first, second)
        rows = rows.filter(
            pc.or_(
                rows["explicit"], pc.is_in(rows["change"], pa.array([MADE_EXPLICIT, MADE_DERIVED]))
            )
        )
        names = arguments(width_of(rows.column_names))
        mask = np.zeros(len(rows), bool)
        for name in names:
            mask |= np.isin(pc.fill_null(rows[name], -1).to_numpy(), self.about)
        if self._statements:
            facts = _tuples(rows.select(["relation", *names]))
            mask |= np.fromiter((fact in self._statements for fact in facts), bool, len(facts))
        self._erased.update(_tuples(rows.select(["relation", *names]).filter(pa.array(mask))))
        return rows.filter(pa.array(~mask))

    def graph_changes(self, state: KnowledgeState, first: int, second: int) -> tuple[Facts, Facts]:
        """What graphs lose and gain from one version to another, without the selected statements.

        Graphs are compared before anything is left out: a triple is gone with its last graph.
        """
        if QUADS not in self._relations:
            return self.explicit_changes(state.engine, first, second)
        before, everything = self._explicit, VersionSource(self.store, self.stored)
        if second == self.oldest:
            rows = self.store.snapshot(second).facts()
            tables = joined(everything.tables(rows.filter(rows["explicit"])))
            self._explicit = self._engine.facts(tables)
        else:
            lost, gained = everything.explicit_changes(self._engine, first, second)
            self._explicit = before.difference(lost).union(gained)
        found = graph_difference(before, self._explicit, self._engine)
        lost, gained = (state.engine.facts(self._kept(facts)) for facts in found)
        return lost, gained

    def _kept(self, facts: Facts) -> Tables:
        """The facts that are not selected, with the ids of the new dictionary."""
        tables = {}
        for predicate in facts.predicates():
            rows = facts.rows(predicate)
            columns = argument_columns(predicate, rows, self.stored)
            mask = np.zeros(len(rows), bool)
            for column in columns:
                mask |= np.isin(column, self.about)
            if self._statements:
                places = [column.tolist() for column in columns]
                relation = TRIPLES if predicate.relation == TRIPLE else predicate.relation
                for place, row in enumerate(zip(*places, strict=True)):
                    is_quad = relation == QUADS and (TRIPLES, *row[:3]) in self._statements
                    mask[place] |= is_quad or (relation, *row) in self._statements
            for row in zip(*(column[mask].tolist() for column in columns), strict=True):
                self._erased.add((predicate.relation, *row))
            if not mask.all():
                kept = rows[~mask]
                tables[predicate] = self.ids(kept.ravel().astype(np.int64)).reshape(kept.shape)
        return tables

    def program(self, version: int) -> Program:
        """The rules of a version, and its axioms without the selected ones."""
        if version < self.oldest:
            return Program()
        program = super().program(version)
        self.axioms.update(filter(self.selects, program.axioms))
        return program.with_axioms(frozenset(a for a in program.axioms if not self.selects(a)))

    def asserted(self, version: int) -> frozenset[Atom]:
        """The axioms of a version that are also data, without the selected ones."""
        if version < self.oldest:
            return frozenset()
        return frozenset(atom for atom in super().asserted(version) if not self.selects(atom))

    def mentions(self, commits: Iterable[Commit]) -> tuple[tuple[str, ...], tuple[int, ...]]:
        """The rules that mention an erased term, and the versions whose message does."""
        printer = Printer(self.prefixes)
        rules = {
            rule
            for number in range(self.oldest, self.store.latest() + 1)
            for rule in self._rules(number)
        }
        named = [rule for rule in rules if not self.terms.isdisjoint(_constants(rule))]
        texts = [
            getattr(term, "value", None) or getattr(term, "lexical", "") for term in self.terms
        ]
        messages = [
            commit.version
            for commit in commits
            if any(text and text in commit.message for text in texts)
        ]
        return tuple(sorted(map(printer.rule, named))), tuple(messages)

    def _rules(self, version: int) -> tuple[Rule, ...]:
        program = self.program(version)
        return (*program.rules, *program.constraints)

    def selects(self, atom: Atom) -> bool:
        """Whether an axiom is to be erased."""
        return atom in self.atoms or not self.terms.isdisjoint(atom.terms)

    def ids(self, stored: npt.NDArray[np.int64]) -> Ids:
        """The ids of the new dictionary."""
        new = np.unique(stored[self._known[stored] < 0])
        if len(new):
            self._known[new] = self.dictionary.encode_texts(self.stored.texts(new))
        return self._known[stored].astype(np.uint32)


def _constants(rule: Rule) -> set[Constant]:
    """The constants of a rule."""
    return {
        term
        for part in (rule.head, *rule.body)
        for atom in _atoms(part)
        for term in atom.constants()
    }


def _atoms(part: object) -> Iterable[Atom]:
    match part:
        case Atom():
            return [part]
        case Negation(atom):
            return [atom]
        case Aggregate(atoms=atoms):
            return atoms
    return []


def _tuples(table: pa.Table) -> list[tuple[object, ...]]:
    """Facts as tuples: the relation and the ids of its arguments."""
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    return [tuple(value for value in row if value is not None) for row in rows]


# -- the replay ------------------------------------------------------------------------------------


class _ReplayWriter(Writer):
    """Commits with the kind of the original version."""

    kind = "update"

    def commit(
        self,
        *,
        statistics: Statistics,
        program: Program | None = None,
        **fields: Unpack[CommitFields],
    ) -> int:
        """Commit the version."""
        fields["kind"] = self.kind
        return super().commit(statistics=statistics, program=program, **fields)


class _ReplayStore(Store):
    """A store whose next version has the author and kind of the original one."""

    original: Commit

    def writer(self, base: int | None = None, *, author: str | None = None) -> Writer:
        """A writer of the next version."""
        writer = _ReplayWriter(self, self.commit(base), author=author or self.original.author)
        writer.kind = self.original.kind
        return writer


class _ReplayHandle(StoreHandle):
    """Makes exactly one version per commit."""

    def compact(self) -> None:
        """Do not compact: that would make a version."""


def _replay(source: _Purged, folder: Path, author: str) -> Purged:
    """Write the versions into a new store, and one that records the purge."""
    old = source.store
    commits = [old.commit(version) for version in range(old.latest() + 1)]
    newest = commits[-1]
    width = width_of(old.facts.columns(newest.version))
    creator = commits[0].author
    Store.create(folder, mode=newest.mode, equality=newest.equality, author=creator, width=width)
    store = _ReplayStore(folder)
    engine = cast("Engine[Facts]", ColumnarEngine(source.dictionary))
    settings = Settings(mode=newest.mode, equality=newest.equality)
    first = Program()
    if newest.equality == "rewrite":  # representatives need the rules of equality from the start
        first = source.program(source.oldest).without_facts()
    state = KnowledgeState.derive(first, engine.facts({}), engine, settings)
    assert not len(state.reasoner.facts), "rules of equality derive nothing from nothing"
    state.store = _ReplayHandle(store, source.dictionary, 0, 0, {}, Program())
    for commit in commits[1:]:
        store.original, state.prefixes = commit, commit.prefixes
        with Transaction(state, commit.message, commit.batch) as tx:
            if commit.version >= source.oldest:
                request_difference(tx, state, source, commit.version - 1, commit.version)
    for commit in commits:
        _keep_time(store, commit)
    last = store.commit()
    message = f"purged {source.erased:,} statements"
    version = store.writer(author=author).commit(
        statistics=replace(last.statistics, inserted=0, deleted=0),
        message=message,
        oldest=old.oldest(),
    )
    return Purged(
        version,
        newest.version + 1 - source.oldest,
        source.erased,
        newest.statistics.facts - last.statistics.facts,
        source.forgotten(),
        tuple(sorted(map(Printer(source.prefixes).atom, source.axioms))),
        *source.mentions(commits),
    )


def _keep_time(store: Store, commit: Commit) -> None:
    """Write the time of the original version into the log; no checksum covers it."""
    path = store.facts.folder / LOG / f"{commit.version:020d}.json"
    assert isinstance(path, Path), "the store is in a local folder"
    actions = read_actions(path)
    for action in actions:
        if "commitInfo" in action:
            action["commitInfo"]["timestamp"] = commit.milliseconds
    path.write_text("".join(f"{json.dumps(action)}\n" for action in actions), "utf-8")
    sync(path)


def _replace(folder: Path, part: Path, old: Store, version: int) -> None:
    """Put the new store in the place of the old one, unless somebody has committed meanwhile.

    The new one has the permissions of the old one.
    """
    for name in (".", *TABLES):
        shutil.copymode(folder / name, part / name)
    exchange_folders(part, folder)
    steps.passed("purge: exchanged")
    if Store(part).latest() != version:
        exchange_folders(part, folder)
        raise OperationFailed(
            "E516",
            "the store changed while it was purged, so nothing was purged",
            "repeat the purge when nobody writes",
            file=str(old.path),
        )
    sync(folder.parent)


def _discard(part: Path, folder: Path) -> None:
    """Remove a folder beside the store; what Corollary did not write moves into the store."""
    for entry in foreign(part):
        assert isinstance(entry, Path), "the store is in a local folder"
        kept = folder / entry.relative_to(part)
        kept.parent.mkdir(exist_ok=True)
        entry.rename(kept)
    steps.passed("purge: before the removal")
    shutil.rmtree(part)


@contextmanager
def _claim(folder: Path) -> Iterator[None]:
    """Let one process at a time purge a store; the system lifts the claim of a killed one."""
    if sys.platform == "win32":
        yield
        return
    import fcntl

    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise OperationFailed(
            "E516",
            "another process is purging the store",
            "wait until it has ended",
            file=str(folder),
        ) from None
    finally:
        os.close(descriptor)


def _discard_remains(folder: Path) -> None:
    """Remove what killed purges have left beside the store: unfinished stores, or old ones."""
    prefix = f".{folder.name}."
    for entry in sorted(folder.parent.iterdir()):
        name = entry.name.removeprefix(prefix).removesuffix(_SUFFIX)
        if entry.name == f"{prefix}{name}{_SUFFIX}" and len(name) == 32 and entry.is_dir():
            _discard(entry, folder)
