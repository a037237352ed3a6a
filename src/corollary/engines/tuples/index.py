"""`TupleIndex`: facts in a hash table with indexes, and the rules that run over them.

Facts are numbered in the order in which they come, and keep their numbers when they are deleted:
an overdeleted fact that is derived again is the same fact, and indexes need not change. When more
facts are dead than alive, all are numbered again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from corollary.core.dictionary import Dictionary, Ids
from corollary.engines.tuples import kernel, tables
from corollary.engines.tuples import layout as at
from corollary.engines.tuples.limits import DeletionTooExpensive
from corollary.engines.tuples.program import MAX_ATOMS, MAX_VARIABLES, Numbers, RuleProgram
from corollary.engines.tuples.terms import TermTables, grown
from corollary.engines.tuples.tuning import tuning

Rows = npt.NDArray[np.uint32]  # a row a fact: relation, and three arguments
Reserve = Callable[[int], None]  # bytes; may raise to refuse them
OnSlice = Callable[["TupleIndex"], None]  # may raise to stop

_ROW_BYTES = 16 + 1 + 4 + 4 + 4 + 8  # with flags, rank, places in both queues, and slots
_GROUP_BYTES = 32 + 8


@dataclass(frozen=True)
class RuleChange:
    """A change of rules: their new program, and the numbers of those that differ."""

    removed: Sequence[int]  # in the program before
    added: Sequence[int]  # in the new one
    program: RuleProgram


class TupleIndex:
    """Facts that rules are run over, each with flags; see `layout`."""

    def __init__(
        self,
        program: RuleProgram,
        dictionary: Dictionary,
        room: int = 0,
        reserve: Reserve | None = None,
    ) -> None:
        """An empty index with room for some facts; `reserve` is asked before arrays are made."""
        self._reserve = reserve or (lambda size: None)
        self._dictionary = dictionary
        self._control = np.zeros(at.SIZE, np.int64)
        self._rows: Rows = np.zeros((0, 4), np.uint32)
        self._flags: npt.NDArray[np.uint8] = np.zeros(0, np.uint8)
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
        self._begun_at = 0
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
        """Run these rules from now on; the indexes that they need are there."""
        self.program = program
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

    # -- what there is -----------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """All facts, dead ones included."""
        return int(self._control[at.ROW_COUNT])

    def count_alive(self) -> int:
        """The facts that hold at this moment of a run, and those about values."""
        return int(np.count_nonzero(self._flags[: self.size] & at.ALIVE))

    @property
    def instances(self) -> int:
        """The rule instances considered so far."""
        return int(self._control[at.INSTANCES])

    @property
    def work(self) -> int:
        """The steps so far: facts and groups looked at."""
        return int(self._control[at.WORK])

    @property
    def run_steps(self) -> int:
        """The steps since the current operation began."""
        return self.work - self._begun_at

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
        """Begin with explicit facts, and derive all that follows."""
        self._terms.refresh()
        self._reset()
        self._add_values(queued=True)
        self._add(explicit, at.EXPLICIT, queued=True)
        self._run(at.INSERT, on_slice, None)
        self.alive = self.size

    def load(self, facts: Rows, explicit: Rows, schema: Rows, on_slice: OnSlice) -> None:
        """Begin with facts that are known to be closed under the rules.

        What follows from the explicit facts of the schema is derived again, to find its ranks; all
        other facts share the next rank. So most facts have a witness: the schema, and explicit
        facts.
        """
        self.materialize(schema, on_slice)
        self._control[at.LOADED_RANK] = self._control[at.NEXT_RANK]
        self._control[at.NEXT_RANK] += 1
        self._add(facts, at.ALIVE, queued=False)
        self._add(explicit, at.EXPLICIT, queued=False)
        self._index_facts()

    def with_program(self, program: RuleProgram, explicit: Rows) -> TupleIndex:
        """This index, or another of the same facts, for rules that need more of it.

        `explicit` are facts of relations that the rules did not mention so far.
        """
        if program.has_layout_of(self.program):
            self._use(program)
            return self
        return self.compacted(program, explicit)

    def compacted(
        self, program: RuleProgram | None = None, more_explicit: Rows | None = None
    ) -> TupleIndex:
        """An index of the alive facts, with their ranks, and of more explicit ones."""
        size = self.size
        alive = np.flatnonzero(self._flags[:size] & at.ALIVE)
        alive = alive[np.argsort(self._ranks[alive], kind="stable")]
        explicit = (self._flags[:size] & at.EXPLICIT) != 0
        index = TupleIndex(program or self.program, self._dictionary, len(alive), self._reserve)
        index._terms.refresh()
        index._add(self._rows[alive], at.ALIVE, queued=False)
        index._add(self._rows[:size][explicit], at.EXPLICIT, queued=False)
        index._set_ranks(self._ranks[alive])
        if more_explicit is not None:
            index._add(more_explicit, at.ALIVE | at.EXPLICIT, queued=False)
        index._add_values(queued=False)
        index._index_facts()
        return index

    def _index_facts(self) -> None:
        self._control[at.INDEX_PLACE] = done = 0
        while True:
            done = kernel.index_facts(self._base, done)
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
        limit: int,
        rules: RuleChange | None = None,
    ) -> tuple[Rows, Rows]:
        """Delete and insert explicit facts by DRed: the facts that went, and those that came.

        Rules may change as well; the index has what they need (`with_program`). The heads of rules
        that are removed are candidates for overdeletion.

        `DeletionTooExpensive` if the deletion takes more steps than the limit; `rematerialize` then
        gives the same result.
        """
        self._terms.refresh()
        self._reset()
        stop = self.work + limit
        control = self._control
        if rules is not None:
            for rule in rules.removed:
                self._scan(at.OVERDELETE, rule, on_slice, stop - self.work)
            self._use(rules.program)
            self._terms.refresh()
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
        came = self._queue[: control[at.QUEUE_TAIL]]
        came = came[(self._flags[came] & at.MARKED) == 0]
        went = marked[(self._flags[marked] & at.ALIVE) == 0]
        self._flags[self._deleted[: control[at.DELETED_TAIL]]] &= ~np.uint8(at.MARKED | at.KEPT)
        self.alive += len(came) - len(went)
        return self._rows[went], self._visible(self._rows[came])

    def rematerialize(
        self,
        deleted: Rows,
        inserted: Rows,
        on_slice: OnSlice,
        rules: RuleChange | None = None,
    ) -> tuple[Rows, Rows]:
        """Derive everything again, after an update that was too much work; the same result."""
        control = self._control
        if rules is not None:
            self._use(rules.program)
            self._terms.refresh()
        marked = self._marked()
        came = self._queue[: control[at.QUEUE_TAIL]]
        flags = self._flags[: self.size]
        flags[came[(flags[came] & at.MARKED) == 0]] &= ~np.uint8(at.ALIVE)
        flags[marked] |= at.ALIVE
        flags &= ~np.uint8(at.BEFORE)
        flags[(flags & at.ALIVE) != 0] |= at.BEFORE
        flags &= ~np.uint8(at.ALIVE | at.PROCESSED | at.MARKED | at.KEPT | at.QUEUED)
        self._overdeleted = len(marked)
        self._reset()
        deleted = np.ascontiguousarray(deleted, np.uint32)
        kernel.make_implicit(self._base, deleted.ctypes.data, len(deleted))
        self._add_values(queued=False)
        self._add(inserted, at.EXPLICIT, queued=False)
        explicit_facts = np.flatnonzero(self._flags[: self.size] & at.EXPLICIT)
        self._queue[: len(explicit_facts)] = explicit_facts
        control[at.QUEUE_TAIL] = len(explicit_facts)
        self._flags[explicit_facts] |= at.ALIVE
        end = at.FIRST_RANK + len(explicit_facts)
        self._ranks[explicit_facts] = np.arange(at.FIRST_RANK, end)
        control[at.NEXT_RANK] = end
        self._run(at.INSERT, on_slice, None)
        flags = self._flags[: self.size]
        now, before = (flags & at.ALIVE) != 0, (flags & at.BEFORE) != 0
        self.alive = int(np.count_nonzero(now))
        rows = self._rows[: self.size]
        return rows[before & ~now], self._visible(rows[now & ~before])

    @property
    def is_sparse(self) -> bool:
        """Whether more facts are dead than alive, so that a new index is worth its while."""
        size = self.size
        return size > 2 * tuning.tuple_least_room and 2 * self.alive < size

    # -- arrays ------------------------------------------------------------------------------------

    @property
    def _base(self) -> int:
        return self._control.ctypes.data

    def _address(self, place: int, array: npt.NDArray[np.generic]) -> None:
        self._control[place] = array.ctypes.data

    def _marked(self) -> Ids:
        """The facts that are overdeleted: those that are decided and have no witness."""
        found: Ids = self._deleted[: self._control[at.DELETED_TAIL]]
        marked: Ids = found[(self._flags[found] & at.MARKED) != 0]
        return marked

    def _reset(self) -> None:
        self._begun_at = self.work
        for place in (at.QUEUE_HEAD, at.QUEUE_TAIL, at.DELETED_HEAD, at.DELETED_TAIL):
            self._control[place] = 0
        self._control[[at.PHASE, at.HEAP_COUNT, at.IS_SCAN]] = 0
        if 2 * self._control[at.LIST_GARBAGE] > self._control[at.LIST_COUNT]:
            self._drop_live_lists()
        if int(self._control[at.NEXT_RANK]) > tuning.tuple_ranks_limit:
            self._set_ranks(self._ranks[: self.size])

    def _set_ranks(self, ranks: Ids) -> None:
        """Give the first facts these ranks, numbered again without gaps; equal ones stay equal."""
        distinct, numbers = np.unique(ranks, return_inverse=True)
        self._ranks[: len(ranks)] = at.FIRST_RANK + numbers
        self._control[at.NEXT_RANK] = at.FIRST_RANK + len(distinct)

    def _run(self, mode: int, on_slice: OnSlice, limit: int | None) -> None:
        """Run the rules; what is in the queue, or was deleted, is processed."""
        control = self._control
        control[at.MODE], control[at.PHASE] = mode, at.NEXT_FACT
        stop = None if limit is None else self.work + limit
        while True:
            slice_end = self.work + tuning.tuple_slice_steps
            control[at.WORK_LIMIT] = slice_end if stop is None else min(stop, slice_end)
            result = kernel.run(self._base)
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
        """Take the heads of all instances of one rule over the facts that are processed."""
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
        """The facts that have the relation and the constants of an atom, and are processed."""
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
        while True:
            done = kernel.add_facts(self._base, rows.ctypes.data, len(rows), done, flag, queued)
            if done == len(rows):
                return
            self._make_room(at.ROWS_FULL)

    def _remove(self, rows: Rows) -> None:
        rows = np.ascontiguousarray(rows, np.uint32)
        needed = int(self._control[at.HEAP_COUNT]) + len(rows)
        if needed > len(self._heap):
            self._grow_heap(2 * needed)
        kernel.remove_facts(self._base, rows.ctypes.data, len(rows))

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
        tables.rehash_rows(self._base)

    def _grow_groups(self, capacity: int) -> None:
        self._reserve(capacity * _GROUP_BYTES)
        self._groups = grown(self._groups, capacity)
        self._address(at.GROUPS, self._groups)
        self._control[at.GROUP_CAPACITY] = capacity
        self._group_slots = np.zeros(_power(2 * capacity), np.uint32)
        self._address(at.GROUP_SLOTS, self._group_slots)
        self._control[at.GROUP_SLOT_MASK] = len(self._group_slots) - 1
        tables.rehash_groups(self._base)

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
        """Begin again with the lists of the program."""
        self._terms.drop_live_lists()
        self._control[at.LIST_COUNT] = len(self.program.lists)
        self._control[[at.LIST_GARBAGE, at.CLASS_FLOOR]] = 0

    # -- terms -------------------------------------------------------------------------------------

    def _add_values(self, *, queued: bool) -> None:
        """Add the facts about values of literals, which stay forever."""
        flag = at.EXPLICIT if queued else at.EXPLICIT | at.ALIVE
        self._add(self._terms.take_new_values(), flag, queued=queued)

    def _visible(self, rows: Rows) -> Rows:
        """Without facts about values."""
        relation = self.program.value_relation
        return rows if relation is None else rows[rows[:, 0] != relation]


def _power(size: int) -> int:
    return 1 << max(4, (size - 1).bit_length())
