"""Updates, by Corollary and its peers: delete 100 facts, and remove a rule.

Peers that cannot update start over, which is what their users do: from the file without these
triples, or from the tables under the program without this rule. Corollary's time is that of the
transaction, including parsing what is deleted; its facts are compared with a closure from scratch.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

import corollary as co
from benchmarks import closing, lubm, lubm_data, lubm_one, owl, owlrl_peer, reasoners, sql, tables
from benchmarks.isolate import isolated
from benchmarks.maintaining import Maintained
from benchmarks.measure import least, peak_bytes, timed
from benchmarks.report import Options, Row
from corollary.generate.univ_bench import UB
from corollary.lang.program import Program
from corollary.lang.syntax import IRI, Rule

DELETED = 100
UPDATES, STARTS_OVER = "updates", "starts over"
HEAD = IRI(UB + "Person")  # of the rule that is removed


def deletions(whole: Path, part: Path, folder: Path, options: Options) -> Iterator[Row]:
    """Delete triples under OWL 2 RL; `reasonable` and `owlrl` close the shortened files."""
    lines = whole.read_text("utf-8").splitlines(keepends=True)
    step = len(lines) // DELETED
    gone = [line for line in lines[step // 2 :: step] if "_:" not in line][:DELETED]
    short = {name: folder / f"{name}.short.nt" for name in ("whole", "part")}
    for file, path in ((whole, short["whole"]), (part, short["part"])):
        drop = set(gone)
        with file.open(encoding="utf-8") as source, path.open("w", encoding="utf-8") as out:
            out.writelines(line for line in source if line not in drop)
    ours = isolated(
        delete,
        timeout=options.timeout,
        path=str(whole),
        short=str(short["whole"]),
        text="".join(gone),
        repeat=options.repeat,
    )
    yield {"engine": "corollary", "does": UPDATES} | ours
    row: Row = {"engine": "reasonable", "does": STARTS_OVER}
    if reason := owl.missing():
        yield row | {"skipped": reason}
    else:
        yield row | isolated(
            reasoners.reasonable, timeout=options.timeout, path=str(short["whole"])
        )
    row = {"engine": "owlrl", "does": STARTS_OVER}
    if reason := owlrl_peer.missing():
        yield row | {"skipped": reason}
        return
    found = isolated(owlrl_peer.measured, timeout=options.timeout, path=str(short["part"]))
    if "seconds" in found and "explicit" in ours:
        found["measured_seconds"] = found["seconds"]
        found["seconds"] *= ours["explicit"] / found["explicit"]
    yield row | found


def delete(path: str, short: str, text: str, repeat: int) -> Row:
    """Delete triples and insert them again; the facts in between are those of the short file."""
    kb = co.KnowledgeBase(co.rules("owl-rl"))
    kb.load(path)
    times, counts = [], {}
    for _ in range(repeat + 1):
        _, time = timed(lambda: kb.delete(text))
        times.append(time)
        counts = counted(kb)
        kb.insert(text)
    time = least(times[1:])
    row = {"seconds": time.seconds, "cpu_seconds": time.cpu_seconds, "peak_bytes": peak_bytes()}
    table = kb.facts("[?s, ?p, ?o]")
    row |= {"explicit": pc.sum(table["explicit"]).as_py(), "facts": len(table)}
    other = co.KnowledgeBase(co.rules("owl-rl"))
    other.load(short)
    return row | {"correct": counts == counted(other)}


def counted(kb: co.KnowledgeBase) -> dict[str, int]:
    """The triples of each property."""
    found = pc.value_counts(kb.facts("[?s, ?p, ?o]")["predicate"]).to_pylist()
    return {row["values"]: row["counts"] for row in found}


def rule_removals(scale: int, folder: Path, options: Options) -> Iterator[Row]:
    """Remove one of the 98 rules of LUBM_L; DuckDB derives everything under the others."""
    if reason := lubm_one.missing(options.data):
        yield {"engine": "corollary", "does": UPDATES, "skipped": reason}
        return
    arguments: dict[str, Any] = {"timeout": options.timeout, "scale": scale}
    ours = isolated(remove, data=str(options.data), repeat=options.repeat, **arguments)
    yield {"engine": "corollary", "does": UPDATES} | ours
    path, few = str(folder / "facts.npz"), str(folder / "few.npz")
    tables.save(few, lubm.warm_up(scale))
    isolated(lubm.generate, path=path, **arguments)
    rules = lubm_one.rules(options.data, "L")
    less = Program.of([rule for rule in rules.rules if rule != removed_rule(rules)])
    found = closing.peer(
        "duckdb rounds",
        closing.duckdb_rounds,
        sql.missing(),
        {},
        None,
        program=str(less),
        warm_up=few,
        path=path,
        repeat=options.repeat,
        timeout=options.timeout,
    )
    if "facts" in ours and "facts" in found:
        found["correct"] = found["facts"] == ours["facts"]
    yield {"does": STARTS_OVER} | found


def removed_rule(program: Program) -> Rule:
    """A rule whose head others derive too, so that its instances must be checked."""
    return next(rule for rule in program.rules if rule.head.terms[-1] == HEAD)


def remove(scale: int, data: str, repeat: int) -> Row:
    """Remove a rule and add it again."""
    program = lubm_one.rules(Path(data), "L")
    rule = removed_rule(program)
    found = lubm_data.generate(scale)
    kept = Maintained(program, found, "auto")
    seconds, facts, correct = [], 0, True
    for _ in range(repeat + 1):
        seconds.append(kept.change_rules([], [rule])[0])
        facts = len(kept.maintainer.facts)
        correct &= kept.digest() == kept.scratch_digest()
        kept.change_rules([rule], [])
    return {
        "explicit": sum(map(len, found.values())),
        "facts": facts,
        "seconds": min(seconds[1:]),
        "peak_bytes": peak_bytes(),
        "correct": bool(correct),
    }
