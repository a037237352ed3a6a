"""`TupleIndex`: facts in a hash table with indexes, and the rules evaluated over them.

Facts are numbered in order of arrival and keep their numbers when they are deleted, so an
overdeleted fact that is derived again is the same fact, and indexes do not change. When more facts
are dead than alive, the index is rebuilt.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from corollary.core.dictionary import Dictionary, Ids
from corollary.core.jit import for_work, is_interpreted
from corollary.engines.tuples import kernel, tables
from corollary.engines.tuples import layout as at
from corollary.engines.tuples.limits import DeletionLimits, DeletionTooExpensive
from corollary.engines.tuples.program import MAX_ATOMS, MAX_VARIABLES, Numbers, RuleProgram
from corollary.engines.tuples.terms import TermTables, grown
from corollary.engines.tuples.tuning import tuning

Rows = npt.NDArray[np.uint32]  # one row per fact: relation, and three arguments
Reserve = Callable[[int], None]  # bytes; may raise to reject the allocation
OnSlice = Callable[["TupleIndex"], None]  # may raise to stop

_ROW_BYTES = (
    16 + 1 + 1 + 4 + 4 + 4 + 8
)  # with flags, classes, rank, entries in both queues, and slots
_GROUP_BYTES = 32 + 8

# Work of interpreted loops, in elements of arrays that take as long.
_FACT_WORK = 16
_STEP_WORK = 8
_INTERPRETED_STEPS = 512  # between two decisions whether to go on interpreting

# The cost of a deletion is projected from a sample of the deleted facts.
_SAMPLE = 8  # every 8th fact
_WITH_CHECKS = 1.5  # checks take a third to a half of the steps of overdeletion


@dataclass(frozen=True)
class RuleChange:
    """A change of rules: the new program, and the numbers of added and removed rules."""

    removed: Sequence[int]  # in the program before
    added: Sequence[int]  # in the new one
    program: RuleProgram


class TupleIndex:
    """Facts, each with flags (see `layout`), and the rules evaluated over them."""

    def __init__(
        self,
        program: RuleProgram,
        dictionary: Dictionary,
        room: int = 0,
        reserve: Reserve | None = None,
    ) -> None:
        """An empty index with room for some facts; `reserve` is called before each allocation."""
        self._reserve = reserve or (lambda size: None)
        self._dictionary = dictionary
        self._control = np.zeros(at.SIZE, np.int64)
        self._rows: Rows = np.zeros((0, 4), np.uint32)
        self._flags: npt.NDArray[np.uint8] = np.zeros(0, np.uint8)
        self._classes: npt.NDArray[np.uint8] = np.zeros(0, np.uint8)
        self._ranks: Ids = np.zeros(0, np.uint32)
        self._heap: Numbers = np.zeros(0, np.int64)
        self._groups: Numbers = np.zeros((0, 4), np.int64)
        self._pool: Ids = np.zeros(0, np.uint32)
        self._queue: Ids = np.zeros(0, np.uint32)
        self._deleted: Ids = np.zeros(0, np.uint32)
        self._slots: Ids = np.zeros(0, np.uint32)
        self._group_slots: Ids = np.zeros(0, np.uint32)
        self._values = np.zeros(MAX_VARIABLES + 2, np.int64)
        self._levels = np.zeros((MAX_ATOMS + 2, at.LEVEL_WIDTH), np.int64)
        self._terms = TermTables(dictionary, self._control)
        self._first_step = 0
        self._overdeleted = 0
        self.insertion_steps = 0  # of the last update
        self.alive = 0  # facts that hold, and those about values; since the last operation
        self._address(at.VALUES, self._values)
        self._address(at.LEVELS, self._levels)
        self._control[[at.NEXT_RANK, at.LOADED_RANK]] = at.FIRST_RANK
        self._use(program)
        rows = int(max(tuning.tuple_least_room, room))
        self._grow_heap(tuning.tuple_least_room)
        self._grow_rows(rows)
        self._grow_groups(2 * rows)
        self._grow_pool(8 * rows)

    def _use(self, program: RuleProgram) -> None:
        """Replace the rules; the indexes that they need must exist."""
        if self.size and not program.has_classes_of(self.program):
            self._drop_classes()
        self.program: RuleProgram = program
        body = (program.relations, program.properties[0], program.classes[0])
        head = (program.heads, program.properties[1], program.classes[1])
        for place, array in (
            (at.RULES, program.rules),
            (at.ATOMS, program.atoms),
            (at.CONDITIONS, program.conditions),
            (at.INDEXES, program.indexes),
            (at.CHOICES, program.choices),
            *zip((at.RELATIONS, at.PROPERTY_LISTS, at.CLASS_LISTS), body, strict=True),
            *zip(
                (at.HEAD_RELATIONS, at.HEAD_PROPERTY_LISTS, at.HEAD_CLASS_LISTS), head, strict=True
            ),
            *zip(
                (at.GUARD_RELATIONS, at.GUARD_PROPERTIES, at.GUARD_CLASSES),
                program.guards,
                strict=True,
            ),
        ):
            self._address(place, array)
        for place, array in (
            (at.PROPERTY_LIMIT, body[1]),
            (at.CLASS_LIMIT, body[2]),
            (at.HEAD_PROPERTY_LIMIT, head[1]),
            (at.HEAD_CLASS_LIMIT, head[2]),
            (at.GUARD_PROPERTY_LIMIT, program.guards[1]),
            (at.GUARD_CLASS_LIMIT, program.guards[2]),
        ):
            self._control[place] = len(array)
        self._control[at.TYPE] = program.type_id
        self._lists: Numbers = program.lists
        self._grow_lists(len(program.lists) + tuning.tuple_least_room)
        self._terms.use(program)
        self._drop_live_lists()

    # -- state -------------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """All facts, including dead ones."""
        return int(self._control[at.ROW_COUNT])

    def count_alive(self) -> int:
        """The facts that are alive at this point of a run, and the value facts."""
        return int(np.count_nonzero(self._flags[: self.size] & at.ALIVE))

    @property
    def instances(self) -> int:
        """The rule instances considered so far."""
        return int(self._control[at.INSTANCES])

    @property
    def work(self) -> int:
        """The steps so far: facts and groups examined."""
        return int(self._control[at.WORK])

    @property
    def run_steps(self) -> int:
        """The steps since the current operation began."""
        return self.work - self._first_step

    @property
    def overdeleted(self) -> int:
        """The facts that the last update overdeleted."""
        return self._overdeleted

    def rows(self, flag: int) -> Rows:
        """The facts with a flag."""
        size = self.size
        return self._visible(self._rows[:size][(self._flags[:size] & flag) != 0])

    # -- runs --------------------------------------------------------------------------------------

    def materialize(self, explicit: Rows, on_slice: OnSlice) -> None:
        """Load explicit facts, and derive all consequences."""
        self._terms.refresh()
        self._reset()
        self._add_values(queued=True)
        self._add(explicit, at.EXPLICIT, queued=True)
        self._run(at.INSERT, on_slice, None)
        self.alive = self.size

    def load(self, facts: Rows, explicit: Rows, schema: Rows, on_slice: OnSlice) -> None:
        """Load facts that are closed under the rules.

        The consequences of the explicit schema are derived again, to rank them; all other facts
        share the next rank. So most facts have a witness that consists of schema and explicit
        facts.
        """
        self.materialize(schema, on_slice)
        self._control[at.LOADED_RANK] = self._control[at.NEXT_RANK]
        self._control[at.NEXT_RANK] += 1
        self._add(facts, at.ALIVE, queued=False)
        self._add(explicit, at.EXPLICIT, queued=False)
        self._index_facts()

    def with_program(self, program: RuleProgram, explicit: Rows) -> TupleIndex:
        """This index, or a new one of the same facts if the rules need other indexes or relations.

        `explicit` are facts of relations that the previous rules did not mention.
        """
        if program.has_layout_of(self.program):
            self._use(program)
            return self
        return self.compacted(program, explicit)

    def compacted(
        self, program: RuleProgram | None = None, more_explicit: Rows | None = None
    ) -> TupleIndex:
        """A new index of the alive facts with their ranks, and of additional explicit facts."""
        size = self.size
        alive = np.flatnonzero(self._flags[:size] & at.ALIVE)
        alive = alive[np.argsort(self._ranks[alive], kind="stable")]
        explicit = (self._flags[:size] & at.EXPLICIT) != 0
        index = TupleIndex(program or self.program, self._dictionary, len(alive), self._reserve)
        index._terms.refresh()
        index._add(self._rows[alive], at.ALIVE, queued=False)
        index._add(self._rows[:size][explicit], at.EXPLICIT, queued=False)
        index._set_ranks(self._ranks[alive])
        if program is None or program.has_classes_of(self.program):
            index._classes[: len(alive)] = self._classes[alive] & ~np.uint8(at.APART)
        if more_explicit is not None:
            index._add(more_explicit, at.ALIVE | at.EXPLICIT, queued=False)
        index._add_values(queued=False)
        index._index_facts()
        return index

    def _drop_classes(self) -> None:
        """Let no atom skip a fact because of the rule that derived it."""
        self._classes[: self.size] &= np.uint8(at.REFLEXIVE | at.APART)
        groups = self._groups[: self._control[at.GROUP_COUNT]]
        has_other_facts = groups[:, 1] >> 32 < groups[:, 3] >> 32
        groups[has_other_facts, 1] |= at.MIXED << at.INDEX_BITS

    def _index_facts(self) -> None:
        self._control[at.INDEX_PLACE] = done = 0
        while True:
            index_facts = for_work(kernel.index_facts, _FACT_WORK * self.size)
            done = index_facts(self._base, done)
            if self._control[at.PHASE] == at.DONE:
                break
            self._make_room(int(self._control[at.PHASE]))
        self._control[at.PHASE] = at.NEXT_FACT
        self.alive = self.size

    def update(
        self,
        deleted: Rows,
        inserted: Rows,
        on_slice: OnSlice,
        limits: DeletionLimits,
        rules: RuleChange | None = None,
    ) -> tuple[Rows, Rows]:
        """Delete and insert explicit facts by DRed; returns the deleted and inserted facts.

        Rules may change as well; the index must support them (`with_program`). The heads of removed
        rules are candidates for overdeletion.

        Raises `DeletionTooExpensive` if the deletion takes more steps than the limits allow;
        `rematerialized` then gives the same result.
        """
        self._terms.refresh()
        self._reset()
        stop = self.work + limits.blind
        control = self._control
        if rules is not None:
            for rule in rules.removed:
                self._scan(at.OVERDELETE, rule, on_slice, stop - self.work)
            self._use(rules.program)
            self._terms.refresh()
        if len(deleted) >= tuning.sampled_deletions_minimum:
            limit = self._projected_limit(deleted, on_slice, limits)
            stop = max(stop, self.work + limit)
        self._remove(deleted)
        self._run(at.OVERDELETE, on_slice, stop - self.work)
        marked = self._marked()
        self._overdeleted = len(marked)
        self._flags[marked] &= ~np.uint8(at.ALIVE | at.PROCESSED)
        control[at.DELETED_HEAD] = 0
        self._run(at.CHECK, on_slice, stop - self.work)
        self._add_values(queued=True)
        self._add(inserted, at.EXPLICIT, queued=True)
        deletion_end = self.work
        for rule in () if rules is None else rules.added:
            self._scan(at.INSERT, rule, on_slice, None)
        self._run(at.INSERT, on_slice, None)
        self.insertion_steps = self.work - deletion_end
        gained = self._queue[: control[at.QUEUE_TAIL]]
        gained = gained[(self._flags[gained] & at.MARKED) == 0]
        lost = marked[(self._flags[marked] & at.ALIVE) == 0]
        self._flags[self._deleted[: control[at.DELETED_TAIL]]] &= ~np.uint8(at.MARKED | at.KEPT)
        self.alive += len(gained) - len(lost)
        return self._rows[lost], self._visible(self._rows[gained])

    def _projected_limit(self, deleted: Rows, on_slice: OnSlice, limits: DeletionLimits) -> int:
        """Overdelete a sample of facts; return the limit for the steps of the others.

        The facts are sorted by relation, property and class, so the sample has its share of each.
        Consequences overlap, so most projections are too high; expensive facts may be missing from
        the sample, so the limit is a half higher.
        """
        start, control = self.work, self._control
        self._remove(deleted[::_SAMPLE])
        self._run(at.OVERDELETE, on_slice, int(limits.projected / (_SAMPLE * _WITH_CHECKS)))
        projected = (self.work - start) * _SAMPLE * _WITH_CHECKS
        # Facts that have a witness may lose it with the other deleted facts.
        marked = self._marked()
        self._flags[self._deleted[: control[at.DELETED_TAIL]]] &= ~np.uint8(at.KEPT)
        self._deleted[: len(marked)] = marked
        control[at.DELETED_TAIL] = len(marked)
        return int(1.5 * projected)

    def rematerialized(
        self, explicit: Rows, on_slice: OnSlice, program: RuleProgram
    ) -> tuple[TupleIndex, Rows, Rows]:
        """Materialize explicit facts in a new index; also return the facts deleted and inserted.

        This index may be one whose update was too expensive. It is not used again: its dead facts
        would slow joins down, and so a rematerialization costs as much as a materialization.
        """
        room = max(len(explicit), self.alive)  # usually enough, so arrays need not grow
        index = TupleIndex(program, self._dictionary, room, self._reserve)
        index.materialize(explicit, on_slice)
        before = np.ascontiguousarray(self.rows(at.ALIVE | at.MARKED))
        numbers = np.empty(len(before), np.int64)
        find_rows = for_work(kernel.find_rows, _FACT_WORK * len(before))
        find_rows(index._base, before.ctypes.data, len(before), numbers.ctypes.data)
        is_new = np.ones(index.size, np.bool_)
        is_new[numbers[numbers >= 0]] = False
        new = index._rows[: index.size][is_new]
        return index, before[numbers < 0], index._visible(new)

    @property
    def is_sparse(self) -> bool:
        """Whether more facts are dead than alive, so that a new index pays off."""
        size = self.size
        return size > 2 * tuning.tuple_least_room and 2 * self.alive < size

    # -- arrays ------------------------------------------------------------------------------------

    @property
    def _base(self) -> int:
        return self._control.ctypes.data

    def _address(self, place: int, array: npt.NDArray[np.generic]) -> None:
        self._control[place] = array.ctypes.data

    def _marked(self) -> Ids:
        """The overdeleted facts: decided candidates without a witness."""
        found: Ids = self._deleted[: self._control[at.DELETED_TAIL]]
        marked: Ids = found[(self._flags[found] & at.MARKED) != 0]
        return marked

    def _reset(self) -> None:
        self._first_step = self.work
        for place in (at.QUEUE_HEAD, at.QUEUE_TAIL, at.DELETED_HEAD, at.DELETED_TAIL):
            self._control[place] = 0
        self._control[[at.PHASE, at.HEAP_COUNT, at.IS_SCAN]] = 0
        if 2 * self._control[at.LIST_GARBAGE] > self._control[at.LIST_COUNT]:
            self._drop_live_lists()
        if int(self._control[at.NEXT_RANK]) > tuning.tuple_ranks_limit:
            self._set_ranks(self._ranks[: self.size])

    def _set_ranks(self, ranks: Ids) -> None:
        """Assign ranks to the first facts, renumbered without gaps; equal ranks stay equal."""
        distinct, numbers = np.unique(ranks, return_inverse=True)
        self._ranks[: len(ranks)] = at.FIRST_RANK + numbers
        self._control[at.NEXT_RANK] = at.FIRST_RANK + len(distinct)

    def _run(self, mode: int, on_slice: OnSlice, limit: int | None) -> None:
        """Run the rules until the queue, or the deletion, is processed."""
        control = self._control
        control[at.MODE], control[at.PHASE] = mode, at.NEXT_FACT
        stop = None if limit is None else self.work + limit
        while True:
            steps = tuning.tuple_slice_steps
            run = for_work(kernel.run, _STEP_WORK * min(steps, _INTERPRETED_STEPS))
            if is_interpreted(run):
                steps = min(steps, _INTERPRETED_STEPS)
            slice_end = self.work + steps
            control[at.WORK_LIMIT] = slice_end if stop is None else min(stop, slice_end)
            result = run(self._base)
            if result == at.DONE:
                on_slice(self)
                return
            if result == at.STOPPED:
                if stop is not None and self.work >= stop:
                    raise DeletionTooExpensive
                on_slice(self)
            else:
                self._make_room(result)

    def _scan(self, mode: int, rule: int, on_slice: OnSlice, limit: int | None) -> None:
        """Insert, or make candidates of, the heads of all instances of one rule."""
        first, atoms = (int(number) for number in self.program.rules[rule, 4:6])
        matches = (self._matching_rows(atom) for atom in self.program.atoms[first : first + atoms])
        place, rows = min(enumerate(matches), key=lambda numbered: len(numbered[1]))
        rows = np.ascontiguousarray(rows, np.uint32)
        self._lists[at.SCAN_LIST : at.SCAN_LIST + 1 + at.ELEMENT_WIDTH] = 1, rule, place, 0
        control = self._control
        self._address(at.SCAN, rows)
        control[[at.SCAN_HEAD, at.LEAST_RANK]] = 0
        control[at.SCAN_TAIL], control[at.IS_SCAN] = len(rows), 1
        self._run(mode, on_slice, limit)
        control[at.IS_SCAN] = 0

    def _matching_rows(self, atom: Numbers) -> Ids:
        """The processed facts with the relation and the constants of an atom."""
        size = self.size
        found = self._rows[:size, 0] == atom[0]
        for place in range(int(atom[1])):
            if atom[2 + place] < 0:
                found &= self._rows[:size, 1 + place] == -1 - atom[2 + place]
        found &= (self._flags[:size] & at.PROCESSED) != 0
        return np.flatnonzero(found).astype(np.uint32)

    def _add(self, rows: Rows, flag: int, *, queued: bool) -> None:
        rows = np.ascontiguousarray(rows, np.uint32)
        done = 0
        add_facts = for_work(kernel.add_facts, _FACT_WORK * len(rows))
        while True:
            done = add_facts(self._base, rows.ctypes.data, len(rows), done, flag, queued)
            if done == len(rows):
                return
            self._make_room(at.ROWS_FULL)

    def _remove(self, rows: Rows) -> None:
        rows = np.ascontiguousarray(rows, np.uint32)
        needed = int(self._control[at.HEAP_COUNT]) + len(rows)
        if needed > len(self._heap):
            self._grow_heap(2 * needed)
        remove_facts = for_work(kernel.remove_facts, _FACT_WORK * len(rows))
        remove_facts(self._base, rows.ctypes.data, len(rows))

    def _make_room(self, what: int) -> None:
        if what == at.ROWS_FULL:
            self._grow_rows(2 * len(self._rows))
        elif what == at.GROUPS_FULL:
            self._grow_groups(2 * len(self._groups))
        elif what == at.HEAP_FULL:
            self._grow_heap(2 * len(self._heap))
        elif what == at.LISTS_FULL:
            self._grow_lists(2 * len(self._lists))
        else:
            longest = int((self._groups[: self._control[at.GROUP_COUNT], 3] >> 32).max(initial=0))
            self._grow_pool(2 * len(self._pool) + 2 * longest)

    def _grow_rows(self, capacity: int) -> None:
        control = self._control
        self._reserve(capacity * _ROW_BYTES)
        for name, place in (
            ("_rows", at.ROWS),
            ("_flags", at.FLAGS),
            ("_classes", at.CLASSES),
            ("_ranks", at.RANKS),
            ("_queue", at.QUEUE),
            ("_deleted", at.DELETED),
        ):
            array = grown(getattr(self, name), capacity)
            setattr(self, name, array)
            self._address(place, array)
        control[at.ROW_CAPACITY] = capacity
        self._slots = np.zeros(_power(2 * capacity), np.uint32)
        self._address(at.SLOTS, self._slots)
        control[at.SLOT_MASK] = len(self._slots) - 1
        for_work(tables.rehash_rows, _FACT_WORK * self.size)(self._base)

    def _grow_groups(self, capacity: int) -> None:
        self._reserve(capacity * _GROUP_BYTES)
        self._groups = grown(self._groups, capacity)
        self._address(at.GROUPS, self._groups)
        self._control[at.GROUP_CAPACITY] = capacity
        self._group_slots = np.zeros(_power(2 * capacity), np.uint32)
        self._address(at.GROUP_SLOTS, self._group_slots)
        self._control[at.GROUP_SLOT_MASK] = len(self._group_slots) - 1
        for_work(tables.rehash_groups, _FACT_WORK * self.size)(self._base)

    def _grow_pool(self, capacity: int) -> None:
        self._reserve(4 * capacity)
        self._pool = grown(self._pool, capacity)
        self._address(at.POOL, self._pool)
        self._control[at.POOL_CAPACITY] = capacity

    def _grow_heap(self, capacity: int) -> None:
        self._reserve(8 * capacity)
        self._heap = grown(self._heap, capacity)
        self._address(at.HEAP, self._heap)
        self._control[at.HEAP_CAPACITY] = capacity

    def _grow_lists(self, capacity: int) -> None:
        self._reserve(8 * capacity)
        self._lists = grown(self._lists, capacity)
        self._address(at.LISTS, self._lists)
        self._control[at.LIST_CAPACITY] = capacity

    def _drop_live_lists(self) -> None:
        """Reset the lists to those of the program."""
        self._terms.drop_live_lists()
        self._control[at.LIST_COUNT] = len(self.program.lists)
        self._control[[at.LIST_GARBAGE, at.CLASS_FLOOR]] = 0

    # -- terms -------------------------------------------------------------------------------------

    def _add_values(self, *, queued: bool) -> None:
        """Add the value facts of literals, which are never removed."""
        flag = at.EXPLICIT if queued else at.EXPLICIT | at.ALIVE
        self._add(self._terms.take_new_values(), flag, queued=queued)

    def _visible(self, rows: Rows) -> Rows:
        """Remove value facts from rows."""
        relation = self.program.value_relation
        return rows if relation is None else rows[rows[:, 0] != relation]


def _power(size: int) -> int:
    return 1 << max(4, (size - 1).bit_length())
