"""Convert an OWL document to RDF/XML: a script that `owl_syntax` runs in a process of its own.

Arguments: the syntax (`ofn`, `omn`, `owx`). The document is read from stdin, RDF/XML is written to
stdout, and a message about a mistake to stderr, with exit status 2. It imports nothing of the
package, so that the process starts fast; deep nesting may crash it.
"""

from __future__ import annotations

import itertools
import re
import sys
from typing import Any, cast

import pyhornedowl
from pyhornedowl.model import DisjointClasses

_LABEL = re.compile(r'(<[^<>]* rdf:nodeID=")_:')


def convert(text: str, syntax: str) -> str:
    """Convert a document."""
    ontology = pyhornedowl.open_ontology_from_string(text, cast("Any", syntax))
    for annotated in ontology.get_axioms():
        axiom = annotated.component
        if isinstance(axiom, DisjointClasses) and len(axiom.first) > 2:
            # The library would write some of the pairs only.
            ontology.remove_axiom(axiom)
            for pair in itertools.combinations(axiom.first, 2):
                ontology.add_axiom(DisjointClasses(list(pair)))
    # The labels of Manchester syntax keep their prefix, which no name in XML may have.
    return _LABEL.sub(r"\1", str(ontology.save_to_string("rdf")))


def main() -> int:
    """Convert the document on stdin; returns the exit status."""
    text = sys.stdin.buffer.read().decode("utf-8-sig", errors="replace")
    try:
        sys.stdout.buffer.write(convert(text, sys.argv[1]).encode())
    except Exception as error:  # whatever the library raises is about the document
        print(str(error) or type(error).__name__, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
