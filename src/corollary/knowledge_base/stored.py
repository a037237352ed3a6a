"""Facts of an engine as rows and columns of a store, and back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from corollary.core.changes import Changes
from corollary.core.dictionary import Dictionary, Ids
from corollary.core.statistics import Statistics
from corollary.errors import OperationFailed
from corollary.lang.program import Program
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import TRIPLE, TYPE, Atom, is_auxiliary
from corollary.store import Statistics as Counted
from corollary.store import Store, Writer, cache, compaction
from corollary.store.columns import Columns, Label, Part
from corollary.store.commits import Count
from corollary.store.layout import (
    DELETED,
    INSERTED,
    MADE_DERIVED,
    MADE_EXPLICIT,
    TRIPLES,
    arguments,
)
from corollary.store.opening import Opened
from corollary.store.snapshot import Snapshot

_BATCH = 1 << 20  # rows that are made at once


# -- facts of a version ----------------------------------------------------------------------------


def facts_of(opened: Opened, engine: Any) -> tuple[Any, Any]:
    """All facts of a version, and the explicit ones, as the embedded engine has them."""
    from corollary.engines.columnar.stored import stored_facts

    dictionary = opened.dictionary

    def made(parts: Mapping[Label, Part]) -> Any:
        predicates = _predicates(parts, dictionary)
        return stored_facts(
            engine.space, {predicates[label]: part for label, part in parts.items()}
        )

    facts, explicit = made(opened.columns.facts), made(opened.columns.explicit)
    if opened.later.num_rows:
        later, gone = opened.split()
        now, mine = made(later.facts), made(later.explicit)
        lost = made(gone.facts)
        facts = facts.union(now).difference(lost)
        explicit = explicit.difference(lost).difference(now).union(mine)
    return facts, explicit


def _predicates(labels: Iterable[Label], dictionary: Dictionary) -> dict[Label, Predicate]:
    labels = list(labels)
    ids = {id_ for label in labels for id_ in label[1:] if id_ >= 0}
    terms: dict[int, Any] = dict(zip(ids, dictionary.terms(ids), strict=True))
    return {
        label: Predicate(TRIPLE, terms[label.property], terms.get(label.member_of))
        if label.relation == TRIPLES
        else Predicate(label.relation)
        for label in labels
    }


def columns_of(facts: Any, explicit: Any, dictionary: Dictionary) -> Columns:
    """The facts of the embedded engine as arrays for the cache."""
    return Columns(_parts(facts, dictionary), _parts(explicit, dictionary))


def _parts(facts: Any, dictionary: Dictionary) -> dict[Label, Part]:
    found = {}
    for predicate in facts.predicates():
        relation = facts.relations[predicate]
        values = relation.keys() if relation.arity <= 2 else facts.rows(predicate)
        found[_label(predicate, dictionary)] = Part(relation.arity, values)
    return found


def _label(predicate: Predicate, dictionary: Dictionary) -> Label:
    if predicate.relation != TRIPLE:
        return Label(predicate.relation)
    assert predicate.property is not None, "triples are kept by property"
    if predicate.member_of is None:
        return Label(TRIPLES, dictionary.id(predicate.property))
    return Label(TRIPLES, dictionary.id(TYPE), dictionary.id(predicate.member_of))


# -- commits ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Difference:
    """By what a version differs from the one before, as sets of facts."""

    inserted: tuple[Any, Any]  # explicit and derived facts
    deleted: tuple[Any, Any]
    made_explicit: Any
    made_derived: Any

    @classmethod
    def of(cls, done: Changes[Any], asked: Changes[Any], before: Any, after: Any) -> Difference:
        """Of what an update did, what it was asked for, and the explicit facts before and after.

        Facts of auxiliary relations are stored if they are explicit, as nothing else tells them.
        """
        came, went = done.inserted, done.deleted
        new = asked.inserted.intersection(after).difference(before)
        old = asked.deleted.intersection(before).difference(after)
        came = came.union(_auxiliary(new))
        went = went.union(_auxiliary(old))
        explicit, was = came.intersection(after), went.intersection(before)
        return cls(
            (explicit, came.difference(explicit)),
            (was, went.difference(was)),
            new.difference(came),
            old.difference(went),
        )

    def parts(self) -> list[tuple[str, bool, Any]]:
        """What happened, the flag `explicit`, and the facts."""
        return [
            (INSERTED, True, self.inserted[0]),
            (INSERTED, False, self.inserted[1]),
            (DELETED, True, self.deleted[0]),
            (DELETED, False, self.deleted[1]),
            (MADE_EXPLICIT, True, self.made_explicit),
            (MADE_DERIVED, False, self.made_derived),
        ]


def _auxiliary(facts: Any) -> Any:
    return facts.only([p for p in facts.predicates() if is_auxiliary(p.relation)])


class Persistence:
    """The store of a knowledge base, and the version that it shows."""

    def __init__(
        self,
        store: Store,
        dictionary: Dictionary,
        *,
        version: int,
        stored: int,
        relations: Mapping[str, Count],
        program: Program,
        writable: bool = True,
    ) -> None:
        self.store = store
        self.version = version
        self.program, self._axioms = program.without_facts(), program.axioms
        self._dictionary = dictionary
        self._stored = stored  # terms that the store has
        self._relations = dict(relations)
        self._writable = writable

    @classmethod
    def of(cls, snapshot: Snapshot, dictionary: Dictionary, *, writable: bool) -> Persistence:
        """For a version that was opened, before any term is added."""
        return cls(
            snapshot.store,
            dictionary,
            version=snapshot.version,
            stored=len(dictionary),
            relations=snapshot.statistics.relations,
            program=snapshot.program,
            writable=writable,
        )

    def refuse_reading_only(self) -> None:
        """An old version cannot be changed."""
        if not self._writable:
            raise OperationFailed(
                "E502",
                f"version {self.version} is not the newest one and cannot be changed",
                "open the store without at_version",
                file=str(self.store.path),
            )

    def commit(
        self,
        difference: Difference,
        program: Program,
        axioms: frozenset[Atom],
        asserted: Sequence[str],
        prefixes: Mapping[str, str],
        statistics: Statistics,
        *,
        message: str = "",
        kind: str = "update",
        engine: str = "columnar",
        batch: str | None = None,
    ) -> int:
        """Write what a transaction has changed; memory and store are as before if it fails."""
        self.refuse_reading_only()
        writer = self.store.writer(self.version)
        if writer.first_term != self._stored:
            raise writer.conflict()
        counts = counted(self._relations, difference, lambda _, facts: _width(facts))
        same = program == self.program and axioms == self._axioms
        try:
            self._write(writer, difference)
            inserted, deleted = (
                sum(map(len, sets)) for sets in (difference.inserted, difference.deleted)
            )
            version = writer.commit(
                statistics=Counted(
                    counts,
                    inserted,
                    deleted,
                    statistics.algorithm,
                    statistics.reason,
                    engine,
                    statistics.rounds,
                    dict(statistics.derivations),
                    {name: round(spent, 6) for name, spent in statistics.seconds.items()},
                ),
                program=None if same else program.with_axioms(axioms),
                asserted=asserted,
                prefixes=prefixes,
                kind=kind,
                message=message,
                batch=batch,
            )
        finally:
            self._stored = writer.stored_terms
        self.version, self._relations = version, counts
        self.program, self._axioms = program, axioms
        return version

    def compact(self) -> None:
        """Merge small files if they have piled up; the version is then another one."""
        if compaction.needed(self.store.facts.files(self.version)):
            # Another writer may be faster, or there may be no room: then another time.
            with suppress(OperationFailed):
                made = compaction.compact(self.store, attempts=1)
                if made is not None and made.version == self.version + 1:
                    self.version = made.version

    def _write(self, writer: Writer, difference: Difference) -> None:
        parts = [part for part in difference.parts() if len(part[2])]
        writer.reserve(max((_width(facts) for _, _, facts in parts), default=0))
        rows = {id(facts): list(rows_of(facts, self._dictionary)) for _, _, facts in parts}
        if len(self._dictionary) > self._stored:
            # Classes and properties may have got their ids only now.
            writer.add_terms(self._dictionary.texts_from(self._stored))
        if not parts:
            return
        tables, changes = [], []
        for change, explicit, facts in parts:
            for table in rows[id(facts)]:
                count = table.num_rows
                table = _widened(table, writer.width)
                table = table.append_column("explicit", pa.array(np.full(count, explicit)))
                gone = pa.array(np.full(count, change == DELETED))
                tables.append(table.append_column("deleted", gone))
                changes.append(table.append_column("change", pa.repeat(change, count)))
        writer.add_facts(pa.concat_tables(tables))
        writer.add_changes(pa.concat_tables(changes))


def counted(
    relations: Mapping[str, Count],
    difference: Difference,
    width_of: Callable[[Predicate, Any], int],
) -> dict[str, Count]:
    """How many facts each relation has after a difference.

    `width_of` tells the number of arguments of a predicate, some facts of which are given.
    """
    counts = dict(relations)
    for change, explicit, facts in difference.parts():
        for predicate in facts.predicates():
            some = facts.only([predicate])
            name = TRIPLES if predicate.relation == TRIPLE else predicate.relation
            known = counts.get(name) or Count(width_of(predicate, some), 0, 0)
            sign = {INSERTED: 1, DELETED: -1}.get(change, 0)
            own = sign if explicit else 0
            if not sign:
                own = 1 if change == MADE_EXPLICIT else -1
            counts[name] = Count(
                known.width, known.explicit + own * len(some), known.facts + sign * len(some)
            )
    return counts


def save(
    store: Store,
    facts: Any,
    explicit: Any,
    dictionary: Dictionary,
    program: Program,
    asserted: Sequence[str],
    prefixes: Mapping[str, str],
    statistics: Statistics,
    *,
    message: str,
    equality: str,
    mode: str,
    materialize: Sequence[str] = (),
) -> Persistence:
    """Write everything as the first version of a store that is empty."""
    hidden = _auxiliary(explicit)
    facts = facts.union(hidden) if len(hidden) else facts
    derived = facts.difference(explicit)
    counts: dict[str, Count] = {}
    for number, found in enumerate((explicit, derived)):
        for predicate in found.predicates():
            name = TRIPLES if predicate.relation == TRIPLE else predicate.relation
            one = found.only([predicate])
            known = counts.get(name) or Count(_width(one), 0, 0)
            counts[name] = Count(
                known.width,
                known.explicit + (0 if number else len(one)),
                known.facts + len(one),
            )
    store.begin_again()
    writer = store.writer()
    writer.reserve(max((count.width for count in counts.values()), default=0))
    for label in facts.predicates():
        _label(label, dictionary)  # every property and class has an id before terms are written
    writer.add_terms(_pieces(dictionary))
    if len(facts):
        writer.add_facts(
            _widened(table, writer.width).append_column(
                "explicit", pa.array(np.full(table.num_rows, is_explicit))
            )
            for is_explicit, table in _in_order(explicit, derived, dictionary)
        )
    version = writer.commit(
        statistics=Counted(
            counts,
            len(facts),
            0,
            statistics.algorithm,
            statistics.reason,
            "columnar",
            statistics.rounds,
            dict(statistics.derivations),
            {name: round(spent, 6) for name, spent in statistics.seconds.items()},
        ),
        program=program,
        asserted=asserted,
        prefixes=prefixes,
        kind="build",
        message=message,
        equality=equality,
        mode=mode,
        materialize=materialize,
    )
    cache.write(store, version, [columns_of(facts, explicit, dictionary)], dictionary.arrays())
    return Persistence(
        store,
        dictionary,
        version=version,
        stored=writer.stored_terms,
        relations=counts,
        program=program,
    )


def _pieces(dictionary: Dictionary) -> Iterator[pa.Array]:
    texts = dictionary.texts_from(0)
    for start in range(0, len(texts), _BATCH):
        yield texts.slice(start, _BATCH)


def _in_order(
    explicit: Any, derived: Any, dictionary: Dictionary
) -> Iterator[tuple[bool, pa.Table]]:
    """Tables by relation, property and class."""
    every = {*explicit.predicates(), *derived.predicates()}
    for predicate in sorted(every, key=lambda p: _label(p, dictionary)):
        for is_explicit, facts in ((True, explicit), (False, derived)):
            for table in rows_of(facts.only([predicate]), dictionary):
                yield is_explicit, table


def rows_of(facts: Any, dictionary: Dictionary) -> Iterator[pa.Table]:
    """Facts as tables with `relation`, `arg0`, `arg1`, …, each of one relation."""
    for predicate in sorted(facts.predicates(), key=lambda p: _label(p, dictionary)):
        rows = facts.rows(predicate)
        label = _label(predicate, dictionary)
        for start in range(0, len(rows), _BATCH):
            part = rows[start : start + _BATCH]
            columns = _arguments(label, part)
            relation = pa.DictionaryArray.from_arrays(
                pa.array(np.zeros(len(part), np.int32)), pa.array([label.relation])
            )
            yield pa.table(
                [relation.cast(pa.string()), *(pa.array(column) for column in columns)],
                names=["relation", *arguments(len(columns))],
            )


def _arguments(label: Label, rows: Ids) -> list[Any]:
    columns = [rows[:, place].astype(np.int64) for place in range(rows.shape[1])]
    if label.relation == TRIPLES:
        columns[1:1] = [np.full(len(rows), id_, np.int64) for id_ in label[1:] if id_ >= 0]
    return columns


def _width(facts: Any) -> int:
    """The largest number of arguments."""
    return max(
        (3 if p.relation == TRIPLE else facts.relations[p].arity for p in facts.predicates()),
        default=0,
    )


def _widened(table: pa.Table, width: int) -> pa.Table:
    for name in arguments(width):
        if name not in table.column_names:
            table = table.append_column(name, pa.nulls(table.num_rows, pa.int64()))
    return table.select(["relation", *arguments(width)])
