"""Record the history of RDF files in a git repository as one RDF Patch.

    git clone https://github.com/BrickSchema/Brick brick
    python -m benchmarks.evolve record-history brick Brick.ttl --out brick.rdfp.gz

Every commit of the first-parent history that changes the files becomes a transaction with the
triples that it inserts and deletes. Blank nodes become IRIs from their canonical labels (RDFC-1.0),
so that the same node keeps its name as long as the triples around it stay; versions that cannot be
parsed are passed over. The result depends on the repository only.
"""

from __future__ import annotations

import gzip
import hashlib
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyoxigraph as ox

# Public repositories whose histories are good streams, with files to record.
REPOSITORIES = {
    "plant-ontology": "https://github.com/Planteome/plant-ontology",
    "sequence-ontology": "https://github.com/The-Sequence-Ontology/SO-Ontologies",
    "schemaorg": "https://github.com/schemaorg/schemaorg",
    "brick": "https://github.com/BrickSchema/Brick",
}


def record(repository: Path, files: Sequence[str], out: Path) -> int:
    """Write the history of files as a gzip-compressed RDF Patch; returns its transactions."""
    before: frozenset[str] = frozenset()
    transactions = 0
    with (
        open(out, "wb") as raw,
        gzip.GzipFile(fileobj=raw, mode="wb", filename="", mtime=0) as packed,
    ):
        for commit, date in _commits(repository, files):
            try:
                now = frozenset(_triples(repository, commit, files))
            except SyntaxError:
                continue
            if now == before:
                continue
            lines = [f'H commit "{commit}" .', f'H date "{date}" .', "TX ."]
            lines += [f"D {triple}" for triple in sorted(before - now)]
            lines += [f"A {triple}" for triple in sorted(now - before)]
            lines.append("TC .")
            packed.write("".join(f"{line}\n" for line in lines).encode())
            before, transactions = now, transactions + 1
    return transactions


def _commits(repository: Path, files: Sequence[str]) -> Iterator[tuple[str, str]]:
    lines = _git(repository, "log", "--first-parent", "--reverse", "--format=%H %cI", "--", *files)
    for line in lines.decode().splitlines():
        commit, _, date = line.partition(" ")
        yield commit, date


def _triples(repository: Path, commit: str, files: Sequence[str]) -> Iterator[str]:
    """The triples of the files at a commit, as lines of N-Triples."""
    dataset = ox.Dataset()
    for file in files:
        names = _git(repository, "ls-tree", "--name-only", commit, "--", file).split()
        if names:
            text = _git(repository, "show", f"{commit}:{file}")
            form = ox.RdfFormat.from_extension(file.rpartition(".")[2])
            for quad in ox.parse(text, format=form, base_iri=f"file:///{file}"):
                dataset.add(ox.Quad(quad.subject, quad.predicate, quad.object))
    dataset.canonicalize(ox.CanonicalizationAlgorithm.RDFC_1_0)
    names_of: dict[str, str] = _names(dataset)
    for quad in dataset:
        parts = [_named(part, names_of) for part in (quad.subject, quad.predicate, quad.object)]
        yield " ".join([*parts, "."])


def _names(dataset: ox.Dataset) -> dict[str, str]:
    """A name for each blank node: a hash of its triples, in which other blank nodes are `_:`."""
    about: dict[str, list[str]] = {}
    for quad in dataset:
        for node, side in ((quad.subject, "s"), (quad.object, "o")):
            if isinstance(node, ox.BlankNode):
                other = quad.object if side == "s" else quad.subject
                shown = "_:" if isinstance(other, ox.BlankNode) else str(other)
                about.setdefault(node.value, []).append(f"{side} {quad.predicate} {shown}")
    hashes = {
        node: hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()[:20]
        for node, lines in about.items()
    }
    seen: dict[str, int] = {}
    names = {}
    for node in sorted(hashes):  # equal ones are told apart by the order of canonical labels
        number = seen[hashes[node]] = seen.get(hashes[node], -1) + 1
        names[node] = f"<urn:bn:{hashes[node]}{f'-{number}' if number else ''}>"
    return names


def _named(part: object, names: dict[str, str]) -> str:
    return names[part.value] if isinstance(part, ox.BlankNode) else str(part)


def _git(repository: Path, *arguments: str) -> bytes:
    command = ["git", "-C", str(repository), *arguments]
    return subprocess.run(command, check=True, capture_output=True).stdout
