"""Streams: sequences of commits as files, with the states expected after them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Step = dict[str, Any]

_SUFFIXES = {"insert": ".nt", "delete": ".nt"}
CHANGES = ("remove_rules", "add_rules", "delete", "insert")  # in this order within a commit


@dataclass(frozen=True)
class Commit:
    """One commit: lines of N-Triples and rules, and the expected state if it is known."""

    insert: Sequence[str] = ()
    delete: Sequence[str] = ()
    add_rules: Sequence[str] = ()
    remove_rules: Sequence[str] = ()
    count: int | None = None
    hash: str | None = None


@dataclass(frozen=True)
class Stream:
    """A stream in a folder."""

    folder: Path
    name: str
    steps: Sequence[Step]

    @classmethod
    def open(cls, folder: Path) -> Stream:
        """Read `stream.json`."""
        text = (folder / "stream.json").read_text(encoding="utf-8")
        content = json.loads(text)
        return cls(folder.resolve(), content["name"], content["steps"])


def write(folder: Path, name: str, source: str, commits: Iterator[Commit]) -> Stream:
    """Write a stream to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    steps: list[Step] = []
    for number, commit in enumerate(commits):
        step: Step = {}
        for change in CHANGES:
            lines: Sequence[str] = getattr(commit, change)
            if lines:
                path = f"{number:04}.{change}{_SUFFIXES.get(change, '')}"
                (folder / path).write_text("\n".join(lines) + "\n", encoding="utf-8")
                step[change] = path
        if commit.count is not None:
            step |= {"count": commit.count, "hash": commit.hash}
        steps.append(step)
    content = {"name": name, "source": source, "steps": steps}
    (folder / "stream.json").write_text(json.dumps(content, indent=1), encoding="utf-8")
    return Stream.open(folder)


# The rules of ρdf (Muñoz, Pérez, Gutierrez 2009), with the names of RDF 1.1 Semantics.
_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
_RDFS = "http://www.w3.org/2000/01/rdf-schema#"
_SUBCLASS, _SUBPROPERTY = f"<{_RDFS}subClassOf>", f"<{_RDFS}subPropertyOf>"
RHODF = (
    f"[?x, {_TYPE}, ?c] :- [?p, <{_RDFS}domain>, ?c], [?x, ?p, ?y] .",
    f"[?y, {_TYPE}, ?c] :- [?p, <{_RDFS}range>, ?c], [?x, ?p, ?y] .",
    f"[?p, {_SUBPROPERTY}, ?r] :- [?p, {_SUBPROPERTY}, ?q], [?q, {_SUBPROPERTY}, ?r] .",
    f"[?x, ?q, ?y] :- [?p, {_SUBPROPERTY}, ?q], [?x, ?p, ?y] .",
    f"[?x, {_TYPE}, ?d] :- [?c, {_SUBCLASS}, ?d], [?x, {_TYPE}, ?c] .",
    f"[?c, {_SUBCLASS}, ?e] :- [?c, {_SUBCLASS}, ?d], [?d, {_SUBCLASS}, ?e] .",
)


def history(patch: Path) -> Iterator[Commit]:
    """The transactions of an RDF Patch, with the states in `NAME.expected.json` beside it."""
    beside = patch.with_name(patch.name.removesuffix(".rdfp.gz") + ".expected.json")
    checkpoints = json.loads(beside.read_text(encoding="utf-8")) if beside.exists() else []
    expected = {checkpoint["tx"]: checkpoint["rhodf"] for checkpoint in checkpoints}
    rules: Sequence[str] = RHODF
    inserted: list[str] = []
    deleted: list[str] = []
    number = 0
    with gzip.open(patch, "rt", encoding="utf-8") as lines:
        for line in lines:
            kind, _, rest = line.rstrip("\n").partition(" ")
            if kind == "A":
                inserted.append(rest)
            elif kind == "D":
                deleted.append(rest)
            elif kind == "TC":
                number += 1
                state = expected.get(number, {})
                yield Commit(
                    inserted,
                    deleted,
                    add_rules=rules,
                    count=state.get("closure"),
                    hash=state.get("sha256_sorted_nt"),
                )
                rules, inserted, deleted = (), [], []
