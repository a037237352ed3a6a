"""Rows for every rule system over the same work, and for updates of it.

Corollary updates what it holds; the others start over from the changed files or rules. Their
results must equal a closure from scratch, number by number.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import corollary as co
from benchmarks.equal_rules import dialects, systems
from benchmarks.equal_rules.work import Work, compared, read_rows, rows_of
from benchmarks.isolate import isolated
from benchmarks.measure import Time, least, peak_bytes, timed
from benchmarks.report import Options, Row
from corollary.core.dictionary import Ids

UPDATES, STARTS_OVER = "updates", "starts over"


def rows(folder: Path, options: Options) -> Iterator[Row]:
    """From file to file: Corollary, then its peers."""
    arguments: dict[str, Any] = {"folder": str(folder), "repeat": options.repeat}
    ours = isolated(systems.corollary, timeout=options.timeout, **arguments)
    yield {"engine": "corollary"} | ours
    for name, row in peers(folder, options):
        yield {"engine": name} | row


def peers(folder: Path, options: Options, names: Collection[str] = ()) -> Iterator[tuple[str, Row]]:
    """Each peer, or those of some names, with the reason why it is not measured."""
    work = Work.read(folder)
    for system in systems.SYSTEMS:
        if names and system.name not in names:
            continue
        if (reason := system.missing(work)) is not None:
            yield system.name, {"skipped": reason}
            continue
        arguments: dict[str, Any] = {"folder": str(folder), "repeat": options.repeat}
        if system.name in systems.COMMANDS:
            arguments["name"] = system.name
        yield system.name, isolated(system.measured, timeout=options.timeout, **arguments)


def updates(
    folder: Path, changed: Path, options: Options, *, deleted: int = 0, rule: int | None = None
) -> Iterator[Row]:
    """Delete facts of a work, or remove a rule; `changed` gets the work afterwards."""
    ours = isolated(
        update,
        timeout=options.timeout,
        folder=str(folder),
        changed=str(changed),
        repeat=options.repeat,
        deleted=deleted,
        rule=rule,
    )
    yield {"engine": "corollary", "does": UPDATES} | ours
    if "facts" in ours:
        for name, row in peers(changed, options):
            yield {"engine": name, "does": STARTS_OVER} | row


def update(folder: str, changed: str, repeat: int, deleted: int, rule: int | None) -> Row:
    """Apply a change and undo it; the time is that of the transaction, parsing included."""
    path = Path(folder)
    work = Work.read(path)
    facts = read_rows(path / f"{work.input}.facts", work.arities()[work.input])
    gone = facts[:: len(facts) // deleted][:deleted] if deleted else facts[:0]
    kept = [at for at in range(len(work.rules)) if at != rule]
    after = Work([work.rules[at] for at in kept], work.input, work.output)
    Path(changed).mkdir()
    after.write(Path(changed), _without(facts, gone))
    prepare(changed)
    kb = _closed(work, path)
    text = "".join(f"{work.input}({', '.join(map(str, row))}) .\n" for row in gone.tolist())
    lines = dialects.corollary(work).splitlines()
    dropped = [] if rule is None else [lines[rule]]

    def change() -> None:
        with kb.transaction() as tx:
            tx.delete(text)
            for line in dropped:
                tx.remove_rules(line)

    times: list[Time] = []
    for _ in range(repeat + 1):
        times.append(timed(change)[1])
        closure = _rows(kb, work)
        with kb.transaction() as tx:
            tx.insert(text)
            for line in dropped:
                tx.add_rules(line)
    time = least(times[1:])
    return compared(closure, Path(changed)) | {
        "explicit": len(facts),
        "seconds": time.seconds,
        "cpu_seconds": time.cpu_seconds,
        "peak_bytes": peak_bytes(),
    }


def prepare(folder: str) -> Row:
    """Write the closure from scratch of the work in a folder, with which results are compared."""
    work = Work.read(Path(folder))
    closure = _rows(_closed(work, Path(folder)), work)
    np.save(Path(folder) / "closure.npy", closure)
    return {"facts": len(closure)}


def _closed(work: Work, folder: Path) -> co.KnowledgeBase:
    kb = co.KnowledgeBase(dialects.corollary(work))
    kb.load(folder / f"{work.input}.facts")
    return kb


def _rows(kb: co.KnowledgeBase, work: Work) -> Ids:
    """The facts of the output relation."""
    arity = work.arities()[work.output]
    table = kb.facts(f"{work.output}({', '.join(f'?v{place}' for place in range(arity))})")
    columns = [table.column(place).to_pylist() for place in range(arity)]
    return rows_of(zip(*(map(int, column) for column in columns), strict=True), arity)


def _without(facts: Ids, gone: Ids) -> Ids:
    dropped = {tuple(row) for row in gone.tolist()}
    return facts[[tuple(row) not in dropped for row in facts.tolist()]]
