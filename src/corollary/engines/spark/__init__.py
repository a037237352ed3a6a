"""The distributed engine, on Apache Spark. No other package imports PySpark.

Spark chunks
============

**Layout.** Spark spends a microsecond or two on each row that it shuffles, and a fact is 8 bytes.
So a row is not a fact but a *chunk*: thousands of facts of any predicates in one binary value of
about 4 MB (`packing`). Spark sees a target partition, a kind and bytes; a task sees a list of
tables, zero-copy NumPy arrays over the bytes. Each table has a key of four numbers: relation,
property, class, columns. Triples are split by property, and those of rdf:type by class, so a class
is a table of one column. The kind states the purpose of a chunk: `STATE` holds facts that a
partition already has, `FRESH` facts that are new to it, `DERIVED` and `RESULT` are output, and
`REPORT` is the JSON in which a task reports its counts and seconds. Copies of small results go to
the driver with the reports (`copies`), so that it need not start a job to read them.

**Sets.** A `SparkFacts` is a `Base`, a view of some predicates of checkpointed chunks, plus small
sets of added and removed facts on the driver. Chunks are immutable; set operations between sets
that share chunks compare views, and start a job only where both have facts of a predicate in
different chunks. A set below `driver_facts_limit` has no base, and the embedded engine handles it
without Spark. Facts that the driver fetches from chunks are cached with them (`CachedChunks`).

**Partitioned and replicated.** A set is hash-partitioned by first argument. For a join, the planner
(`plan`) adds *placements*: the same relation partitioned by the column that a rule joins on. Small
relations, and those of a schema, are replicated to all partitions instead. Rules whose atoms share
no variable are split into steps with auxiliary relations between them.

**Broadcast.** The pickled task function carries the data that the driver provides: the plan, ids to
look up, removed facts, and the terms that filters compare. Filters over one term, and values of
literals, become queries. The driver answers small sets of them; large sets are joined with the
terms table in tasks (`answers`), and their results enter the next round.

**A round is one job** (`evaluate`): shuffle the chunks to their partitions, let the embedded engine
apply the steps in each partition to a local fixpoint, and emit `FRESH` chunks for other partitions.
The checkpoint after the round cuts the lineage; the reports show the driver whether any facts were
sent. When at most `driver_finish_facts_limit` copies of facts are left to send, and no query and no
fact of a replicated relation is among them, the driver finishes (`finish`): it looks up the facts
that they join with and applies the same steps itself. A recursion that grows again returns to the
tasks. Every checkpoint and persisted frame belongs to the `PersistedFrames` of its operation, which
releases them together.

**Commits.** Tasks write facts as Parquet, range-partitioned and sorted by relation, property, and
class or subject (`write`); file names contain a checksum of the content. Each task returns the
name, rows and bytes of its file, and the driver compares them with the files in the folder. The
files become visible when the driver commits the version to the store's log, so a failed job leaves
the store unchanged. Beside the tables, `chunk_cache` writes the chunks of the new version, its JSON
description last and with checksums: the next update starts from them instead of the tables. A small
update writes only the added and removed facts, and what it has looked up (`looked_up`), and refers
to the existing parts.
"""
