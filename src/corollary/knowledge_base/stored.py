"""Facts of the embedded engine as rows and columns of a store, and the changes of a version."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.changes import Changes
from corollary.core.dictionary import Dictionary, Ids
from corollary.core.engine import F, Facts
from corollary.core.statistics import Statistics
from corollary.core.tables import Tables, argument_columns, narrow
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.engines.columnar.facts import ColumnarFacts
from corollary.engines.columnar.stored import stored_facts
from corollary.knowledge_base.results import split
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import TRIPLE, TYPE, is_auxiliary
from corollary.store import Statistics as VersionStatistics
from corollary.store.columns import Columns, Label, Part
from corollary.store.commits import Count
from corollary.store.layout import (
    DELETED,
    INSERTED,
    MADE_DERIVED,
    MADE_EXPLICIT,
    TRIPLES,
    arguments,
    width_of,
)

if TYPE_CHECKING:
    from corollary.store.opening import OpenedVersion

_BATCH = 1 << 20  # rows per table


# -- facts of a version ----------------------------------------------------------------------------


@dataclass(frozen=True)
class NewerFacts:
    """What versions after an opened one changed: its facts and explicit facts now, and the rest."""

    facts: ColumnarFacts  # that hold now: new, or explicit or derived now
    explicit: ColumnarFacts  # of these
    deleted: ColumnarFacts

    @classmethod
    def of(cls, opened: OpenedVersion, engine: ColumnarEngine) -> NewerFacts:
        """Read the newer rows of an opened version."""
        newer, deleted = opened.split()
        sets = (newer.facts, newer.explicit, deleted.facts)
        return cls(*(_facts_from(parts, opened.dictionary, engine) for parts in sets))

    def apply(
        self, facts: ColumnarFacts, explicit: ColumnarFacts
    ) -> tuple[ColumnarFacts, ColumnarFacts]:
        """Bring facts and explicit facts up to date."""
        facts = facts.union(self.facts).difference(self.deleted)
        explicit = explicit.difference(self.deleted).difference(self.facts).union(self.explicit)
        return facts, explicit


def facts_of(opened: OpenedVersion, engine: ColumnarEngine) -> tuple[ColumnarFacts, ColumnarFacts]:
    """Load all facts of a version, and the explicit ones."""
    columns, dictionary = opened.columns, opened.dictionary
    facts = _facts_from(columns.facts, dictionary, engine)
    explicit = _facts_from(columns.explicit, dictionary, engine)
    if not opened.newer_rows.num_rows:
        return facts, explicit
    return NewerFacts.of(opened, engine).apply(facts, explicit)


def _facts_from(
    parts: Mapping[Label, Part], dictionary: Dictionary, engine: ColumnarEngine
) -> ColumnarFacts:
    predicates = _predicates(parts, dictionary)
    relations = {predicates[label]: part for label, part in parts.items()}
    return stored_facts(engine.space, relations)


def _predicates(labels: Iterable[Label], dictionary: Dictionary) -> dict[Label, Predicate]:
    labels = list(labels)
    ids = {id_ for label in labels for id_ in label[1:] if id_ >= 0}
    terms = dict(zip(ids, dictionary.terms(ids), strict=True))
    return {
        label: Predicate(TRIPLE, terms[label.property], terms.get(label.member_of))
        if label.relation == TRIPLES
        else Predicate(label.relation)
        for label in labels
    }


def columns_of(facts: ColumnarFacts, explicit: ColumnarFacts, dictionary: Dictionary) -> Columns:
    """Convert the facts of the embedded engine to arrays for the cache."""
    return Columns(_parts(facts, dictionary), _parts(explicit, dictionary))


def _parts(facts: ColumnarFacts, dictionary: Dictionary) -> dict[Label, Part]:
    parts = {}
    for predicate, relation in facts.relations.items():
        values = relation.keys() if relation.arity <= 2 else facts.rows(predicate)
        parts[_label(predicate, dictionary)] = Part(relation.arity, values)
    return parts


def _label(predicate: Predicate, dictionary: Dictionary) -> Label:
    if predicate.relation != TRIPLE:
        return Label(predicate.relation)
    assert predicate.property is not None, "triples are kept by property"
    if predicate.member_of is None:
        return Label(TRIPLES, dictionary.id(predicate.property))
    return Label(TRIPLES, dictionary.id(TYPE), dictionary.id(predicate.member_of))


# -- the changes of a version ----------------------------------------------------------------------


@dataclass(frozen=True)
class VersionChanges(Generic[F]):
    """The changes from the previous version, as sets of facts."""

    inserted: tuple[F, F]  # explicit and derived facts
    deleted: tuple[F, F]
    made_explicit: F
    made_derived: F

    @classmethod
    def of(cls, done: Changes[F], requested: Changes[F], before: F, after: F) -> VersionChanges[F]:
        """Combine the result and request of an update with the explicit facts before and after it.

        Explicit facts of auxiliary relations are stored, because nothing else records them.
        """
        made_explicit = requested.inserted.intersection(after).difference(before)
        made_derived = requested.deleted.intersection(before).difference(after)
        inserted = done.inserted.union(_auxiliary(made_explicit))
        deleted = done.deleted.union(_auxiliary(made_derived))
        return cls(
            split(inserted, after),
            split(deleted, before),
            made_explicit.difference(inserted),
            made_derived.difference(deleted),
        )

    def parts(self) -> list[tuple[str, bool, F]]:
        """Iterate over the kind of change, the flag `explicit`, and the facts."""
        return [
            (INSERTED, True, self.inserted[0]),
            (INSERTED, False, self.inserted[1]),
            (DELETED, True, self.deleted[0]),
            (DELETED, False, self.deleted[1]),
            (MADE_EXPLICIT, True, self.made_explicit),
            (MADE_DERIVED, False, self.made_derived),
        ]

    def statistics(
        self,
        counts: Mapping[str, Count],
        update: Statistics,
        engine: str,
        seconds: Mapping[str, float],
    ) -> VersionStatistics:
        """Return the statistics for the commit; `counts` are the fact counts after the update."""
        return VersionStatistics(
            counts,
            sum(map(len, self.inserted)),
            sum(map(len, self.deleted)),
            update.algorithm,
            update.reason,
            engine,
            update.rounds,
            dict(update.derivations),
            {phase: round(spent, 6) for phase, spent in seconds.items()},
        )


def with_auxiliary(facts: F, explicit: F) -> F:
    """Add the explicit facts of auxiliary relations, which a store contains too."""
    hidden = _auxiliary(explicit)
    return facts.union(hidden) if len(hidden) else facts


def _auxiliary(facts: F) -> F:
    return facts.only([p for p in facts.predicates() if is_auxiliary(p.relation)])


def counted(
    relations: Mapping[str, Count],
    changes: VersionChanges[F],
    width_of: Callable[[Predicate, F], int] | None = None,
) -> dict[str, Count]:
    """Count the facts of each relation after the changes of a version.

    `width_of` returns the number of arguments of a predicate from some of its facts; the default
    reads the facts.
    """
    width_of = width_of or _width_of
    counts = dict(relations)
    for change, explicit, facts in changes.parts():
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


def _width_of(predicate: Predicate, facts: Facts) -> int:
    return 3 if predicate.relation == TRIPLE else int(facts.rows(predicate).shape[1])


# -- rows ------------------------------------------------------------------------------------------


def change_rows(
    changes: VersionChanges[Facts], dictionary: Dictionary, width: int = 0
) -> pa.Table | None:
    """Convert changes to rows of a store: `change`, `relation`, `arg0`, …, `explicit`, `deleted`.

    There are at least `width` argument columns; arguments that a relation lacks are null.
    """
    tables = []
    for change, explicit, facts in changes.parts():
        for table in rows_of(facts, dictionary):
            flags = (pa.repeat(flag, len(table)) for flag in (change, explicit, change == DELETED))
            for name, column in zip(("change", "explicit", "deleted"), flags, strict=True):
                table = table.append_column(name, column)
            tables.append(table)
    if not tables:
        return None
    every = pa.schema([(name, pa.int64()) for name in arguments(width)]).empty_table()
    return pa.concat_tables([*tables, every], promote_options="default")


def rows_in_order(explicit: Facts, derived: Facts, dictionary: Dictionary) -> Iterator[pa.Table]:
    """Iterate over all facts as tables with the column `explicit`, by relation, property, class."""
    predicates = {*explicit.predicates(), *derived.predicates()}
    for predicate in sorted(predicates, key=lambda p: _label(p, dictionary)):
        for flag, facts in ((True, explicit), (False, derived)):
            for table in rows_of(facts.only([predicate]), dictionary):
                yield table.append_column("explicit", pa.repeat(flag, len(table)))


def tables_of(
    rows: pa.Table,
    dictionary: Dictionary,
    ids: Callable[[npt.NDArray[np.int64]], Ids] | None = None,
) -> Iterator[Tables]:
    """Convert rows of a store to facts; `ids` maps its ids to those of the dictionary."""
    names = arguments(width_of(rows.column_names))
    for relation in rows["relation"].unique().to_pylist():
        part = rows.filter(pc.equal(rows["relation"], relation))
        stored = [part[name].to_numpy() for name in names if not part[name].null_count]
        columns = [column.astype(np.uint32) if ids is None else ids(column) for column in stored]
        if relation == TRIPLES:
            yield narrow(TRIPLE, columns, dictionary)
        else:
            shape = (len(part), len(columns))
            yield {Predicate(relation): np.array(columns, np.uint32).T.reshape(shape)}


def rows_of(facts: Facts, dictionary: Dictionary) -> Iterator[pa.Table]:
    """Convert facts to tables of one relation each, with `relation`, `arg0`, `arg1`, …."""
    for predicate in sorted(facts.predicates(), key=lambda p: _label(p, dictionary)):
        rows = facts.rows(predicate)
        relation = TRIPLES if predicate.relation == TRIPLE else predicate.relation
        for start in range(0, len(rows), _BATCH):
            part: Ids = rows[start : start + _BATCH]
            columns = argument_columns(predicate, part, dictionary)
            yield pa.table(
                [pa.repeat(relation, len(part)), *(pa.array(c, pa.int64()) for c in columns)],
                names=["relation", *arguments(len(columns))],
            )
