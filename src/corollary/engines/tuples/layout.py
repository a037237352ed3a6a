"""The data layout shared by compiled loops: control block offsets, flags, return codes.

Everything is an array at an address. The control block is an array of 64-bit numbers that holds
these addresses, the counters, and the state of an interrupted run.
"""

from __future__ import annotations

# -- the control block -----------------------------------------------------------------------------
ROWS = 0  # facts: relation, and three arguments; 32 bits each
FLAGS = 1  # of each fact
ROW_COUNT = 2
ROW_CAPACITY = 3
SLOTS = 4  # hash table of facts: number + 1, or 0
SLOT_MASK = 5
GROUPS = 6  # of an index: key, label, first place in the pool, length << 32 | capacity
GROUP_COUNT = 7
GROUP_CAPACITY = 8
GROUP_SLOTS = 9  # hash table of groups: number + 1, or 0
GROUP_SLOT_MASK = 10
POOL = 11  # numbers of facts, group by group
POOL_COUNT = 12
POOL_CAPACITY = 13
QUEUE = 14  # facts to be processed
QUEUE_HEAD = 15
QUEUE_TAIL = 16
DELETED = 17  # facts decided by a deletion: overdeleted or kept
DELETED_HEAD = 18
DELETED_TAIL = 19

RULES = 20  # see `program`
ATOMS = 21
CONDITIONS = 22
LISTS = 23  # atoms or heads that a fact may match: length, then `ELEMENT_WIDTH` numbers each
RELATIONS = 24
INDEXES = 25
PROPERTY_LISTS = 26  # by property: the offset of its list, or 0
PROPERTY_LIMIT = 27
CLASS_LISTS = 28
CLASS_LIMIT = 29
TYPE = 30  # the id of rdf:type
CHOICES = 31  # for each relation and set of bound arguments: up to two indexes
VALUES = 32  # of variables
LEVELS = 33  # the stack of the join: `LEVEL_WIDTH` numbers per level
BITMAPS = 34  # addresses, by condition
TERM_VALUES = 35
TERM_DATATYPES = 36
DATATYPE_BITS = 37
HEAD_RELATIONS, HEAD_PROPERTY_LISTS, HEAD_PROPERTY_LIMIT = 38, 39, 40
HEAD_CLASS_LISTS, HEAD_CLASS_LIMIT = 41, 42

RANKS = 43  # of each fact: see `kernel`

MODE = 44
WORK = 45  # steps so far: facts and groups examined
WORK_LIMIT = 46  # to stop at
INSTANCES = 47
# The state of an interrupted run.
PHASE = 48  # of the current fact: see below
CURRENT = 49  # fact
LIST_PLACE = 50
LIST_END = 51
RULE = 52
DELTA_ATOM = 53
DEPTH = 54
DESCENDING = 55
BOUND = 56  # variables, as bits
JOINED = 57  # atoms, as bits
INDEX_PLACE = 58  # of the indexes that the current fact is added to
WITNESS_END = 59  # the step at which the search for a witness by the current rule ends
IS_EXPANDED = 60  # whether the consequences of the current fact are already candidates
LEAST_RANK = 61  # of consequences of the current fact that become candidates

NEXT_RANK = 62
HEAP = 63  # candidates for overdeletion: rank << 32 | fact << 1 | whether it is expanded
HEAP_COUNT = 64
HEAP_CAPACITY = 65

LIST_COUNT = 66  # numbers in `LISTS`
LIST_CAPACITY = 67
LIST_GARBAGE = 68  # numbers in stale live lists
LIVE_PROPERTIES, LIVE_CLASSES = 69, 70  # by term: the offset of a live list, or 0 (see `live`)
LIVE_HEAD_PROPERTIES, LIVE_HEAD_CLASSES = 71, 72
GUARD_RELATIONS = 73  # by relation: the arguments of its facts that are keys of guards
GUARD_PROPERTIES, GUARD_PROPERTY_LIMIT = 74, 75  # by property
GUARD_CLASSES, GUARD_CLASS_LIMIT = 76, 77  # by class
NEW_GROUPS = 78  # whether the fact being indexed started a group
CLASS_FLOOR = 79  # live lists of classes before this offset are stale
LOADED_RANK = 80  # of facts added without a derivation

IS_SCAN = 81  # whether the run matches the facts of `SCAN` with one rule
SCAN = 82
SCAN_HEAD = 83
SCAN_TAIL = 84
CLASSES = 85  # of each fact, as bits: see `redundancy`
SIZE = 86

# -- modes of a run --------------------------------------------------------------------------------
INSERT, OVERDELETE, CHECK = 0, 1, 2
WITNESS = 3  # the search for a witness of a candidate

# -- phases of a fact ------------------------------------------------------------------------------
NEXT_FACT, INDEXING, NEXT_RULE, JOINING = 0, 1, 2, 3

# -- flags of a fact -------------------------------------------------------------------------------
ALIVE = 1
PROCESSED = 2  # all rules have read it
EXPLICIT = 4
INDEXED = 8
MARKED = 32  # overdeleted
KEPT = 64  # a candidate that has a witness
QUEUED = 128  # a candidate for overdeletion

# -- classes of a fact, as bits: see `redundancy` --------------------------------------------------
REFLEXIVE = 1  # its first and last arguments are equal
FIRST_CLASS, CLASS_COUNT = 2, 6  # of the rules that derived it from facts of lower rank
APART = 128  # it is in the back part of its groups: facts of classes when they were indexed
MIXED = 128  # of a group: a fact in its back part has lost its classes

# -- the label of a group: direct facts << 32 | classes of the others << 24 | index ----------------
INDEX_BITS, CLASS_BITS = 24, 8
INDEX_MASK, CLASS_MASK = (1 << 24) - 1, (1 << 8) - 1

# -- what a run returns ----------------------------------------------------------------------------
DONE, STOPPED, ROWS_FULL, GROUPS_FULL, POOL_FULL, HEAP_FULL, LISTS_FULL = 0, 1, 2, 3, 4, 5, 6

FIRST_RANK = 1  # 0 in the heap marks facts that were explicit

WITNESS_STEPS = 512  # limit per rule of the search for a witness
WITNESS_CANDIDATES = 32  # limit per atom of that search

LEVEL_WIDTH = 5  # atom, place, end, bound, joined

# -- rules -----------------------------------------------------------------------------------------
RULE_WIDTH = 9  # head: relation, 3 arguments; first atom, atoms, first condition, conditions; class
ATOM_WIDTH = 6  # relation, arity, 3 arguments (a variable, or -1 - id), classes that it skips
CONDITION_WIDTH = 5  # kind, variables as bits, first variable, second variable, negated or bitmap
SCAN_LIST = 1  # the offset of the list of a scan, in every program
ELEMENT_WIDTH = 3  # of a list: rule, number of an atom, guards as bits
RELATION_WIDTH = 4  # list of readers, first index, number of indexes, arity
INDEX_WIDTH = 2  # first and second argument of the key, or -1
CHOICE_WIDTH = 16  # two numbers for each set of bound arguments

# -- kinds of conditions ---------------------------------------------------------------------------
OF_TERM, SAME_TERM, SAME_VALUE, HAS_DATATYPE = 0, 1, 2, 3
NO_VALUE = -1
