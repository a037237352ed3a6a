"""Generated datasets with their rules, from the files that `corollary generate` writes."""

from __future__ import annotations

import tempfile
from pathlib import Path

from corollary.core.dictionary import Dictionary, Ids
from corollary.generate import DATASETS
from corollary.generate.write import write
from corollary.lang.program import Program
from corollary.lang.stratify import Predicate
from corollary.rdf import formats


def generated(
    name: str, scale: float, dictionary: Dictionary
) -> tuple[Program, dict[Predicate, Ids]]:
    """The rules and the triples of a dataset."""
    with tempfile.TemporaryDirectory() as folder:
        files = write(DATASETS[name], Path(folder), scale=scale, seed=0)
        triples = [Path(folder) / file.name for file in files if file.name.endswith(".nt")]
        facts = formats.read(triples, dictionary).tables(dictionary)
        return Program.load(Path(folder) / "rules.dl"), dict(facts)
