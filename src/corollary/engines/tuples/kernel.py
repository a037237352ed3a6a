"""The interpreter: match facts with rules, in compiled code.

A *run* takes facts from a queue, one at a time. A fact is unified with each atom that may match it
(the *delta atom*), and the rest of the body is joined by nested loops over indexes. At each level
the atom with the fewest candidates is joined next: group sizes are known exactly, so a hub, such as
a class that contains everything, is never enumerated if another atom has fewer candidates.

Semi-naive evaluation without rounds: a fact is *processed* when all rules have read it. An instance
is considered when the last of its facts is processed: atoms before the delta atom match processed
facts, and atoms after it also match the current fact. So each instance is considered once.

Depending on its mode, a run inserts heads, overdeletes them, or checks whether a fact is the head
of some instance, as DRed requires.

Ranks keep overdeletion small. A fact gets the next higher rank whenever it becomes alive, so the
premises of its first derivation have lower ranks. A *witness* of a fact is an instance that derives
it from facts that are explicit or of lower rank.

Invariant: every alive fact is explicit, has a witness among the alive facts, or has the rank shared
by all facts that were loaded at once; each of these follows from explicit facts and facts of this
rank or a lower one.

A deletion takes candidates from a heap, lowest rank first: a candidate without a witness is
overdeleted, and those of its consequences whose rank is not lower become candidates. When a
candidate is decided, all facts of lower rank are decided, so a witness is final, and facts that
only derive each other have none. The rank of a fact that was explicit does not bound that of its
consequences, so all of them become candidates first.

Instances that follow from others are skipped: an atom does not read facts of certain *classes*,
which depend on the rules that derived them (see `redundancy`). A fact has a class while one of its
rules derives it from facts of lower rank. All modes skip the same instances. So the witness of a
fact is never skipped: classes are added only before rules read a fact, and may be lost later.

A change of rules *scans* the facts for all instances of one rule: their heads are inserted, or are
candidates for overdeletion.

A run stops when an array is full or its work limit is reached, and resumes where it stopped: all
state is in the control block.
"""

from __future__ import annotations

from corollary.core.jit import compiled
from corollary.core.memory import load8, load32, load64, store8, store32, store64
from corollary.engines.tuples import layout as at
from corollary.engines.tuples.atoms import (
    bound_arguments,
    find_ground_row,
    group_for,
    index_for,
    value_of,
)
from corollary.engines.tuples.heap import pop_candidate, push_candidate
from corollary.engines.tuples.live import invalidate, list_of, make_live_list
from corollary.engines.tuples.tables import (
    add_row,
    find_row,
    index_row,
    relevant_length,
    set_classes,
)

_UNKNOWN_SIZE = 1 << 60
_DECIDED = at.EXPLICIT | at.MARKED | at.KEPT | at.QUEUED


@compiled
def condition_holds(control: int, condition: int) -> bool:
    """Whether a condition holds for the values of its variables."""
    conditions, values = load64(control, at.CONDITIONS), load64(control, at.VALUES)
    place = at.CONDITION_WIDTH * condition
    kind = load64(conditions, place)
    one = load64(values, load64(conditions, place + 2))
    if kind == at.OF_TERM:
        bitmap = load64(load64(control, at.BITMAPS), load64(conditions, place + 4))
        return load8(bitmap, one) != 0
    two = load64(values, load64(conditions, place + 3))
    negated = load64(conditions, place + 4) != 0
    if kind == at.SAME_TERM:
        return (one == two) != negated
    if kind == at.SAME_VALUE:
        known = load64(control, at.TERM_VALUES)
        left, right = load64(known, one), load64(known, two)
        if left == at.NO_VALUE or right == at.NO_VALUE:
            return False
        return (left == right) != negated
    bit = load64(load64(control, at.DATATYPE_BITS), two)
    return (load64(load64(control, at.TERM_DATATYPES), one) & bit) != 0


@compiled
def conditions_hold(control: int, rule: int, before: int, bound: int) -> bool:
    """Whether the conditions on newly bound variables hold."""
    rules, conditions = load64(control, at.RULES), load64(control, at.CONDITIONS)
    first = load64(rules, at.RULE_WIDTH * rule + 6)
    for condition in range(first, first + load64(rules, at.RULE_WIDTH * rule + 7)):
        needed = load64(conditions, at.CONDITION_WIDTH * condition + 1)
        if (
            needed & bound == needed
            and needed & before != needed
            and not condition_holds(control, condition)
        ):
            return False
    return True


@compiled
def match_arguments(control: int, arguments: int, count: int, row: int, bound: int) -> int:
    """Match arguments with those of a fact; returns the bound variables, or -1."""
    facts = load64(control, at.ROWS) + 16 * row + 4
    values = load64(control, at.VALUES)
    for position in range(count):
        argument, value = load64(arguments, position), load32(facts, position)
        if argument < 0:
            if value != -1 - argument:
                return -1
        elif bound >> argument & 1:
            if load64(values, argument) != value:
                return -1
        else:
            store64(values, argument, value)
            bound |= 1 << argument
    return bound


@compiled
def unify(control: int, atom: int, row: int, bound: int) -> int:
    """Match a body atom with a fact; returns the bound variables, or -1."""
    place = load64(control, at.ATOMS) + 8 * at.ATOM_WIDTH * atom
    return match_arguments(control, place + 16, load64(place, 1), row, bound)


@compiled
def may_match(control: int, mode: int, row: int, current: int, behind: bool, skipped: int) -> bool:
    """Whether an atom may read a fact now, unless it skips its classes."""
    if load8(load64(control, at.CLASSES), row) & skipped:
        return False
    flags = load8(load64(control, at.FLAGS), row)
    if mode == at.WITNESS:
        if flags & (at.PROCESSED | at.MARKED) != at.PROCESSED:
            return False
        ranks = load64(control, at.RANKS)
        return flags & at.EXPLICIT != 0 or load32(ranks, row) < load32(ranks, current)
    if flags & at.PROCESSED:
        return True
    return mode == at.INSERT and behind and row == current


@compiled
def push_alive(control: int, row: int, classes: int) -> None:
    """Make a fact alive, with the next rank, and queue it."""
    set_classes(control, row, classes)
    flags = load64(control, at.FLAGS)
    store8(flags, row, load8(flags, row) | at.ALIVE)
    rank = load64(control, at.NEXT_RANK)
    store32(load64(control, at.RANKS), row, rank)
    store64(control, at.NEXT_RANK, rank + 1)
    tail = load64(control, at.QUEUE_TAIL)
    store32(load64(control, at.QUEUE), tail, row)
    store64(control, at.QUEUE_TAIL, tail + 1)


@compiled
def decide(control: int, row: int, flag: int) -> None:
    """Decide a candidate for overdeletion: `MARKED` or `KEPT`."""
    flags = load64(control, at.FLAGS)
    store8(flags, row, (load8(flags, row) & ~at.QUEUED) | flag)
    tail = load64(control, at.DELETED_TAIL)
    store32(load64(control, at.DELETED), tail, row)
    store64(control, at.DELETED_TAIL, tail + 1)


@compiled
def restrict_classes(control: int, rule: int, row: int) -> None:
    """Let a fact keep only the classes of an instance that derives it from lower ranks."""
    known = load8(load64(control, at.CLASSES), row)
    if known & ~(at.REFLEXIVE | at.APART):
        place = load64(control, at.RULES) + 8 * at.RULE_WIDTH * rule
        classes, first = known & load64(place, 8), load64(place, 4)
        ranks = load64(control, at.RANKS)
        for atom in range(first, first + load64(place, 5)):
            if load32(ranks, find_ground_row(control, atom)) >= load32(ranks, row):
                classes = 0
        set_classes(control, row, classes)


@compiled
def emit(control: int, mode: int, rule: int, current: int) -> int:
    """Handle the head of an instance: insert it, or make it a candidate; `DONE`, or what is full.

    In a check, the head is the checked fact.
    """
    place = load64(control, at.RULES) + 8 * at.RULE_WIDTH * rule
    values = load64(control, at.VALUES)
    relation = load64(place, 0)
    one = value_of(load64(place, 1), values)
    two = value_of(load64(place, 2), values)
    three = value_of(load64(place, 3), values)
    row = find_row(control, relation, one, two, three)
    flags, classes = load64(control, at.FLAGS), load64(place, 8)
    if mode == at.INSERT:
        if row < 0:
            if load64(control, at.ROW_COUNT) == load64(control, at.ROW_CAPACITY):
                return at.ROWS_FULL
            push_alive(control, add_row(control, relation, one, two, three, -1 - row), classes)
        elif not load8(flags, row) & at.ALIVE:
            push_alive(control, row, classes)
        elif classes and not load8(flags, row) & at.PROCESSED and row != current:
            # The facts of the instance came before in the queue, so their ranks are lower.
            known = load8(load64(control, at.CLASSES), row) & ~at.APART
            set_classes(control, row, known | classes)
    elif row >= 0 and load8(flags, row) & (at.ALIVE | at.EXPLICIT) == at.ALIVE | at.EXPLICIT:
        set_classes(control, row, 0)  # it remains, but perhaps not this derivation
    elif row >= 0 and load8(flags, row) & (at.ALIVE | _DECIDED) == at.ALIVE:
        rank = load32(load64(control, at.RANKS), row)
        if rank >= load64(control, at.LEAST_RANK):
            if load64(control, at.HEAP_COUNT) == load64(control, at.HEAP_CAPACITY):
                return at.HEAP_FULL
            push_candidate(control, rank << 32 | row << 1)
            store8(flags, row, load8(flags, row) | at.QUEUED)
    store64(control, at.INSTANCES, load64(control, at.INSTANCES) + 1)
    return at.DONE


@compiled
def bind_head(control: int, rule: int, row: int) -> int:
    """Match the head of a rule with a fact; returns the bound variables, or -1."""
    place = load64(control, at.RULES) + 8 * at.RULE_WIDTH * rule
    return match_arguments(control, place + 8, 3, row, 0)


@compiled
def choose(
    control: int,
    mode: int,
    rule: int,
    delta: int,
    current: int,
    bound: int,
    joined: int,
    level: int,
) -> bool:
    """Open a join level with the atom that has the fewest candidates.

    Returns False if an atom has no candidates.
    """
    place = load64(control, at.RULES) + 8 * at.RULE_WIDTH * rule
    first, atoms = load64(place, 4), load64(place, 5)
    groups = load64(control, at.GROUPS)
    least, chosen, start = _UNKNOWN_SIZE + 1, -1, 0
    for number in range(atoms):
        if joined >> number & 1:
            continue
        atom = first + number
        part = load64(control, at.ATOMS) + 8 * at.ATOM_WIDTH * atom
        relation, arity, skipped = load64(part, 0), load64(part, 1), load64(part, 5)
        known = bound_arguments(control, atom, bound)
        if known == (1 << arity) - 1:
            row = find_ground_row(control, atom)
            if row < 0 or not may_match(control, mode, row, current, number > delta, skipped):
                return False
            least, chosen, start = 1, number, -1 - row
            break  # no atom can be cheaper
        size, found = _UNKNOWN_SIZE, 0
        for choice in range(2):
            index = index_for(control, relation, known, choice)
            if index < 0:
                continue
            group = group_for(control, atom, index)
            if group < 0:
                return False
            length = relevant_length(control, group, skipped)
            if length == 0:
                return False
            if length < size:
                size, found = length, load64(groups, 4 * group + 2)
        if size < least and size < _UNKNOWN_SIZE:
            least, chosen, start = size, number, found
    if chosen < 0:
        return False
    if mode == at.WITNESS:
        least = min(least, at.WITNESS_CANDIDATES)
    store64(level, 0, chosen)
    store64(level, 1, start)
    store64(level, 2, start + least)
    store64(level, 3, bound)
    store64(level, 4, joined)
    return True


@compiled
def run(control: int) -> int:
    """Process facts until the queue is empty, an array is full, or the work limit is reached."""
    mode = load64(control, at.MODE)
    phase, current = load64(control, at.PHASE), load64(control, at.CURRENT)
    place, end = load64(control, at.LIST_PLACE), load64(control, at.LIST_END)
    rule, delta = load64(control, at.RULE), load64(control, at.DELTA_ATOM)
    depth, descending = load64(control, at.DEPTH), load64(control, at.DESCENDING)
    bound, joined = load64(control, at.BOUND), load64(control, at.JOINED)
    work, limit = load64(control, at.WORK), load64(control, at.WORK_LIMIT)
    lists, rules = load64(control, at.LISTS), load64(control, at.RULES)
    levels = load64(control, at.LEVELS)
    flags, pool = load64(control, at.FLAGS), load64(control, at.POOL)
    classes = load64(control, at.CLASSES)
    first, everything = 0, 0
    if phase == at.JOINING:  # otherwise the rule may be one of a program before this one
        first = load64(rules, at.RULE_WIDTH * rule + 4)
        everything = (1 << load64(rules, at.RULE_WIDTH * rule + 5)) - 1
    result = -1
    while result < 0:
        if phase == at.NEXT_FACT and load64(control, at.IS_SCAN):
            head = load64(control, at.SCAN_HEAD)
            if head == load64(control, at.SCAN_TAIL):
                result = at.DONE
                break
            current = load32(load64(control, at.SCAN), head)
            store64(control, at.SCAN_HEAD, head + 1)
            place, end = at.SCAN_LIST + 1, at.SCAN_LIST + 1 + at.ELEMENT_WIDTH
            phase = at.NEXT_RULE
        if phase == at.NEXT_FACT:
            if mode == at.INSERT:
                head = load64(control, at.QUEUE_HEAD)
                if head == load64(control, at.QUEUE_TAIL):
                    result = at.DONE
                    break
                current = load32(load64(control, at.QUEUE), head)
                store64(control, at.QUEUE_HEAD, head + 1)
            elif mode == at.CHECK:
                head = load64(control, at.DELETED_HEAD)
                if head == load64(control, at.DELETED_TAIL):
                    result = at.DONE
                    break
                current = load32(load64(control, at.DELETED), head)
                store64(control, at.DELETED_HEAD, head + 1)
                if not load8(flags, current) & at.MARKED:
                    continue  # a witness was found
            else:
                if load64(control, at.HEAP_COUNT) == 0:
                    result = at.DONE
                    break
                entry = pop_candidate(control)
                current = (entry & 0xFFFFFFFF) >> 1
                store64(control, at.IS_EXPANDED, entry & 1)
                rank = load32(load64(control, at.RANKS), current)
                if entry >> 32:
                    mode = at.WITNESS
                    store64(control, at.LEAST_RANK, rank)
                else:  # it was explicit
                    mode = at.OVERDELETE
                    store64(control, at.LEAST_RANK, 0)
                    push_candidate(control, rank << 32 | current << 1 | 1)
            phase = at.INDEXING
        if phase == at.INDEXING:
            if mode == at.INSERT and not load8(flags, current) & at.INDEXED:
                result = index_row(control, current)
                if result != at.DONE:
                    break
                invalidate(control, current)
                result = -1
            heads = mode == at.CHECK or mode == at.WITNESS
            place = list_of(control, current, heads)
            if place == 0:
                result = make_live_list(control, current, heads)
                if result != at.DONE:
                    break
                result = -1
                place = list_of(control, current, heads)
            end = place + 1 + at.ELEMENT_WIDTH * load64(lists, place)
            place += 1
            phase = at.NEXT_RULE
        if phase == at.NEXT_RULE:
            if place >= end:
                if mode == at.WITNESS:
                    decide(control, current, at.MARKED)
                    if not load64(control, at.IS_EXPANDED):
                        mode, phase = at.OVERDELETE, at.INDEXING
                        continue
                if mode == at.INSERT:
                    store8(flags, current, load8(flags, current) | at.PROCESSED)
                phase = at.NEXT_FACT
                continue
            if work >= limit:
                result = at.STOPPED
                break
            work += 1
            rule, delta = load64(lists, place), load64(lists, place + 1)
            place += at.ELEMENT_WIDTH
            first = load64(rules, at.RULE_WIDTH * rule + 4)
            everything = (1 << load64(rules, at.RULE_WIDTH * rule + 5)) - 1
            if mode == at.CHECK or mode == at.WITNESS:
                bound, joined = bind_head(control, rule, current), 0
                delta = -1
                store64(control, at.WITNESS_END, work + at.WITNESS_STEPS)
            else:
                skipped = load64(load64(control, at.ATOMS), at.ATOM_WIDTH * (first + delta) + 5)
                if load8(classes, current) & skipped:
                    continue
                bound, joined = unify(control, first + delta, current, 0), 1 << delta
            if bound < 0 or not conditions_hold(control, rule, 0, bound):
                continue
            depth, descending = 0, 1
            phase = at.JOINING
        # The join: descend while atoms match, and backtrack when candidates are exhausted.
        while depth >= 0:
            if descending:
                if joined == everything:
                    if mode == at.CHECK or mode == at.WITNESS:
                        break
                    result = emit(control, mode, rule, current)
                    if result != at.DONE:
                        break
                    result = -1
                    descending = 0
                    depth -= 1
                    continue
                work += 1
                level = levels + 8 * at.LEVEL_WIDTH * depth
                if not choose(control, mode, rule, delta, current, bound, joined, level):
                    descending = 0
                    depth -= 1
                    continue
                descending = 0
            if work >= limit:
                result = at.STOPPED
                break
            level = levels + 8 * at.LEVEL_WIDTH * depth
            number, candidate = load64(level, 0), load64(level, 1)
            stop, before = load64(level, 2), load64(level, 3)
            if mode == at.WITNESS and work >= load64(control, at.WITNESS_END):
                depth = -1
                break
            bound = -1
            if candidate < 0:  # a single fact that is known to match
                store64(level, 1, 0)
                store64(level, 2, 0)
                bound = before
            else:
                behind = number > delta
                skipped = load64(load64(control, at.ATOMS), at.ATOM_WIDTH * (first + number) + 5)
                while candidate < stop:
                    row = load32(pool, candidate)
                    candidate += 1
                    if not may_match(control, mode, row, current, behind, skipped):
                        continue
                    bound = unify(control, first + number, row, before)
                    if bound >= 0:
                        if conditions_hold(control, rule, before, bound):
                            break
                        bound = -1
                work += candidate - load64(level, 1)
                store64(level, 1, candidate)
            if bound >= 0:
                joined = load64(level, 4) | 1 << number
                depth += 1
                descending = 1
            else:
                depth -= 1
        if result >= 0:
            break
        if depth >= 0:  # an instance derives the fact
            store64(control, at.INSTANCES, load64(control, at.INSTANCES) + 1)
            if mode == at.CHECK:
                push_alive(control, current, load64(rules, at.RULE_WIDTH * rule + 8))
            else:
                restrict_classes(control, rule, current)
                decide(control, current, at.KEPT)
            phase = at.NEXT_FACT
        else:
            phase = at.NEXT_RULE
    store64(control, at.MODE, mode)
    store64(control, at.PHASE, phase)
    store64(control, at.CURRENT, current)
    store64(control, at.LIST_PLACE, place)
    store64(control, at.LIST_END, end)
    store64(control, at.RULE, rule)
    store64(control, at.DELTA_ATOM, delta)
    store64(control, at.DEPTH, depth)
    store64(control, at.DESCENDING, descending)
    store64(control, at.BOUND, bound)
    store64(control, at.JOINED, joined)
    store64(control, at.WORK, work)
    return result


@compiled
def add_facts(control: int, facts: int, count: int, started: int, mark: int, queued: bool) -> int:
    """Make facts alive, starting with one of them; returns the first that does not fit."""
    for number in range(started, count):
        place = facts + 16 * number
        relation, one = load32(place, 0), load32(place, 1)
        two, three = load32(place, 2), load32(place, 3)
        row = find_row(control, relation, one, two, three)
        if row < 0:
            if load64(control, at.ROW_COUNT) == load64(control, at.ROW_CAPACITY):
                return number
            row = add_row(control, relation, one, two, three, -1 - row)
        flags = load64(control, at.FLAGS)
        known = load8(flags, row)
        store8(flags, row, known | mark)
        if queued and not known & at.ALIVE:
            push_alive(control, row, 0)
    return count


@compiled
def find_given_row(control: int, facts: int, number: int) -> int:
    """The number of a fact given as a row, negative if it is unknown."""
    place = facts + 16 * number
    return find_row(control, load32(place, 0), load32(place, 1), load32(place, 2), load32(place, 3))


@compiled
def remove_facts(control: int, facts: int, count: int) -> None:
    """Make facts implicit, and candidates for overdeletion; the heap must have room for them."""
    flags = load64(control, at.FLAGS)
    for number in range(count):
        row = find_given_row(control, facts, number)
        known = load8(flags, row) if row >= 0 else 0
        if known & (at.ALIVE | at.EXPLICIT) == at.ALIVE | at.EXPLICIT:
            store8(flags, row, (known & ~at.EXPLICIT) | at.QUEUED)
            push_candidate(control, row << 1)


@compiled
def find_rows(control: int, facts: int, count: int, numbers: int) -> None:
    """Store the numbers of facts given as rows, negative ones for unknown facts."""
    for number in range(count):
        store64(numbers, number, find_given_row(control, facts, number))


@compiled
def index_facts(control: int, started: int) -> int:
    """Index facts and mark them as processed, starting with one; returns where it stopped.

    The reason is left in the control block as the phase of the run: `DONE`, or what is full.
    """
    flags = load64(control, at.FLAGS)
    for row in range(started, load64(control, at.ROW_COUNT)):
        if not load8(flags, row) & at.INDEXED:
            result = index_row(control, row)
            if result != at.DONE:
                store64(control, at.PHASE, result)
                return row
            invalidate(control, row)
        store8(flags, row, load8(flags, row) | at.PROCESSED)
    store64(control, at.PHASE, at.DONE)
    return load64(control, at.ROW_COUNT)
