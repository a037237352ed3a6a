"""The compiled hash tables of an index: facts, and groups of facts with the same key.

A fact is a row of four numbers, found by a hash table of all of them. An *index* maps the values of
one or two arguments to a group, a contiguous vector of row numbers in a common pool; a group that
is full moves to the end of the pool with twice its capacity. All tables use linear probing.

A group begins with its *direct* facts. Those of classes that atoms may skip (see `redundancy`)
follow, and the label of the group unites their classes, so an atom that skips all of them reads
only the direct facts. A fact that loses its classes stays where it is, and marks the group `MIXED`.
"""

from __future__ import annotations

from corollary.core.bits import signed
from corollary.core.jit import compiled
from corollary.core.memory import load8, load32, load64, store8, store32, store64
from corollary.engines.tuples import layout as at


@compiled
def mix(number: int) -> int:
    """A hash of 64 bits."""
    number = signed(number)
    number ^= number >> 32
    number = signed(number * -7046029254386353131)  # 2⁶⁴ divided by the golden ratio
    number ^= (number >> 29) & 0x7FFFFFFFF
    number = signed(number * -4658895280553007687)
    return number ^ ((number >> 32) & 0xFFFFFFFF)


@compiled
def row_hash(relation: int, one: int, two: int, three: int) -> int:
    """The hash of a fact."""
    return mix(mix((one << 32) | two) + ((three << 20) ^ (relation << 52) ^ three))


@compiled
def find_row(control: int, relation: int, one: int, two: int, three: int) -> int:
    """The number of a fact, or -1 - the slot where it belongs."""
    rows, slots = load64(control, at.ROWS), load64(control, at.SLOTS)
    mask = load64(control, at.SLOT_MASK)
    slot = row_hash(relation, one, two, three) & mask
    while True:
        row = load32(slots, slot) - 1
        if row < 0:
            return -1 - slot
        place = 4 * row
        if (
            load32(rows, place + 1) == one
            and load32(rows, place + 2) == two
            and load32(rows, place + 3) == three
            and load32(rows, place) == relation
        ):
            return row
        slot = (slot + 1) & mask


@compiled
def add_row(control: int, relation: int, one: int, two: int, three: int, slot: int) -> int:
    """Append a new fact; `slot` is the result of `find_row`."""
    rows, row = load64(control, at.ROWS), load64(control, at.ROW_COUNT)
    place = 4 * row
    store32(rows, place, relation)
    store32(rows, place + 1, one)
    store32(rows, place + 2, two)
    store32(rows, place + 3, three)
    store8(load64(control, at.FLAGS), row, 0)
    store8(load64(control, at.CLASSES), row, 0)
    arity = load64(load64(control, at.RELATIONS), at.RELATION_WIDTH * relation + 3)
    if arity > 1 and one == (two if arity == 2 else three):
        store8(load64(control, at.CLASSES), row, at.REFLEXIVE)
    store32(load64(control, at.RANKS), row, load64(control, at.LOADED_RANK))
    store32(load64(control, at.SLOTS), slot, row + 1)
    store64(control, at.ROW_COUNT, row + 1)
    return row


@compiled
def find_group(control: int, index: int, key: int) -> int:
    """The number of a group, or -1 - the slot where it belongs."""
    groups, slots = load64(control, at.GROUPS), load64(control, at.GROUP_SLOTS)
    mask = load64(control, at.GROUP_SLOT_MASK)
    slot = mix(key + (index << 57)) & mask
    while True:
        group = load32(slots, slot) - 1
        if group < 0:
            return -1 - slot
        if (
            load64(groups, 4 * group) == key
            and load64(groups, 4 * group + 1) & at.INDEX_MASK == index
        ):
            return group
        slot = (slot + 1) & mask


@compiled
def key_of_row(control: int, index: int, row: int) -> int:
    """The key of a fact in an index."""
    indexes, rows = load64(control, at.INDEXES), load64(control, at.ROWS)
    first = load64(indexes, at.INDEX_WIDTH * index)
    second = load64(indexes, at.INDEX_WIDTH * index + 1)
    if first < 0:
        return 0
    key = load32(rows, 4 * row + 1 + first)
    if second >= 0:
        key = (key << 32) | load32(rows, 4 * row + 1 + second)
    return key


@compiled
def relevant_length(control: int, group: int, skipped: int) -> int:
    """The facts of a group that an atom reads which skips some classes."""
    place = load64(control, at.GROUPS) + 32 * group
    label = load64(place, 1)
    if label >> at.INDEX_BITS & at.CLASS_MASK & ~skipped:
        return load64(place, 3) >> 32
    return label >> 32


@compiled
def set_classes(control: int, row: int, classes: int) -> None:
    """Replace the classes of a fact, except `REFLEXIVE`."""
    place = load64(control, at.CLASSES)
    known = load8(place, row)
    classes |= known & at.REFLEXIVE
    store8(place, row, classes | known & at.APART)
    if known & at.APART and (classes == 0 or classes & ~known):
        label_groups(control, row, classes if classes else at.MIXED)


@compiled
def label_groups(control: int, row: int, classes: int) -> None:
    """Add classes to the labels of all groups of a fact."""
    relations = load64(control, at.RELATIONS) + 8 * at.RELATION_WIDTH * load32(
        load64(control, at.ROWS), 4 * row
    )
    groups = load64(control, at.GROUPS)
    first = load64(relations, 1)
    for index in range(first, first + load64(relations, 2)):
        group = find_group(control, index, key_of_row(control, index, row))
        label = load64(groups, 4 * group + 1)
        store64(groups, 4 * group + 1, label | classes << at.INDEX_BITS)


@compiled
def add_to_index(control: int, index: int, row: int) -> int:
    """Add a fact to its group in an index; `DONE`, or the code of a full array."""
    classes = load8(load64(control, at.CLASSES), row) & ~at.APART
    groups, pool = load64(control, at.GROUPS), load64(control, at.POOL)
    key = key_of_row(control, index, row)
    group = find_group(control, index, key)
    used = load64(control, at.POOL_COUNT)
    if group < 0:
        count = load64(control, at.GROUP_COUNT)
        if count == load64(control, at.GROUP_CAPACITY):
            return at.GROUPS_FULL
        if used == load64(control, at.POOL_CAPACITY):
            return at.POOL_FULL
        store32(load64(control, at.GROUP_SLOTS), -1 - group, count + 1)
        store64(groups, 4 * count, key)
        direct = 0 if classes else 1 << 32
        store64(groups, 4 * count + 1, direct | classes << at.INDEX_BITS | index)
        store64(groups, 4 * count + 2, used)
        store64(groups, 4 * count + 3, (1 << 32) | 1)
        store32(pool, used, row)
        store64(control, at.POOL_COUNT, used + 1)
        store64(control, at.GROUP_COUNT, count + 1)
        store64(control, at.NEW_GROUPS, 1)
        return at.DONE
    start, sizes = load64(groups, 4 * group + 2), load64(groups, 4 * group + 3)
    length, capacity = sizes >> 32, sizes & 0xFFFFFFFF
    if length == capacity:
        if used + 2 * capacity > load64(control, at.POOL_CAPACITY):
            return at.POOL_FULL
        for place in range(length):
            store32(pool, used + place, load32(pool, start + place))
        start, capacity = used, 2 * capacity
        store64(groups, 4 * group + 2, start)
        store64(control, at.POOL_COUNT, used + capacity)
    label = load64(groups, 4 * group + 1)
    if classes:
        store32(pool, start + length, row)
        label |= classes << at.INDEX_BITS
    else:
        direct = label >> 32
        store32(pool, start + length, load32(pool, start + direct))
        store32(pool, start + direct, row)
        label += 1 << 32
    store64(groups, 4 * group + 1, label)
    store64(groups, 4 * group + 3, ((length + 1) << 32) | capacity)
    return at.DONE


@compiled
def index_row(control: int, row: int) -> int:
    """Add a fact to the indexes of its relation, from `INDEX_PLACE` on; `DONE`, or a full array."""
    relation = load32(load64(control, at.ROWS), 4 * row)
    relations = load64(control, at.RELATIONS) + 8 * at.RELATION_WIDTH * relation
    done = load64(control, at.INDEX_PLACE)
    while done < load64(relations, 2):
        result = add_to_index(control, load64(relations, 1) + done, row)
        if result != at.DONE:
            return result
        done += 1
        store64(control, at.INDEX_PLACE, done)
    store64(control, at.INDEX_PLACE, 0)
    flags, classes = load64(control, at.FLAGS), load64(control, at.CLASSES)
    store8(flags, row, load8(flags, row) | at.INDEXED)
    known = load8(classes, row)
    store8(classes, row, known | at.APART if known else 0)
    return at.DONE


@compiled
def rehash_rows(control: int) -> None:
    """Fill the hash table of facts, which is empty."""
    rows, slots = load64(control, at.ROWS), load64(control, at.SLOTS)
    mask = load64(control, at.SLOT_MASK)
    for row in range(load64(control, at.ROW_COUNT)):
        place = 4 * row
        slot = row_hash(
            load32(rows, place),
            load32(rows, place + 1),
            load32(rows, place + 2),
            load32(rows, place + 3),
        )
        slot &= mask
        while load32(slots, slot):
            slot = (slot + 1) & mask
        store32(slots, slot, row + 1)


@compiled
def rehash_groups(control: int) -> None:
    """Fill the hash table of groups, which is empty."""
    groups, slots = load64(control, at.GROUPS), load64(control, at.GROUP_SLOTS)
    mask = load64(control, at.GROUP_SLOT_MASK)
    for group in range(load64(control, at.GROUP_COUNT)):
        index = load64(groups, 4 * group + 1) & at.INDEX_MASK
        slot = mix(load64(groups, 4 * group) + (index << 57)) & mask
        while load32(slots, slot):
            slot = (slot + 1) & mask
        store32(slots, slot, group + 1)
