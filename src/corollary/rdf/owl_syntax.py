"""OWL documents in functional, Manchester and OWL/XML syntax, converted to RDF/XML.

`py-horned-owl` converts them in a process of its own: deep nesting crashes it. The beginning of a
document tells its syntax, whatever the name of its file.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from corollary.errors import InvalidInput, OperationFailed

# The syntaxes, by the names that the library gives them.
SYNTAXES = {"owl/functional": "ofn", "owl/manchester": "omn", "owl/xml": "owx"}
# What a document may begin with, after blanks and comments.
_BEGINNINGS = {
    "owl/functional": re.compile(rb"(?:\s++|#[^\n]*+\n)*+(?:Prefix|Ontology)\s*\("),
    "owl/manchester": re.compile(
        rb"(?:\s++|#[^\n]*+\n)*+(?:Prefix:\s+[\w.-]*:?\s*<|Ontology:(?:\s|$))"
    ),
    "owl/xml": re.compile(
        rb"\s*+(?:<\?[^>]*+>\s*+|<!--.*?-->\s*+|<!DOCTYPE\s+Ontology\s*+(?:\[[^\]]*+\])?\s*+>\s*+)*+"
        rb"<(?:\w+:)?Ontology\b",
        re.DOTALL,
    ),
}
_PREFIX = re.compile(
    r"Prefix(?:\s*\(\s*([\w.-]*):\s*=|:\s+([\w.-]*):?)\s*<([^<>]*)>"
    r"|<Prefix\s+name=\"([\w.-]*)\"\s+IRI=\"([^\"]*)\""
)
_PLACE = re.compile(r"line_col: Pos\(\((\d+), (\d+)\)\)")


def syntax_of(head: bytes) -> str | None:
    """Recognize an OWL syntax by the beginning of a document.

    >>> syntax_of(b"# pets\\nPrefix(:=<urn:>)"), syntax_of(b"@prefix : <urn:> .")
    ('owl/functional', None)
    """
    return next((name for name, begins in _BEGINNINGS.items() if begins.match(head)), None)


def prefixes_of(text: str) -> dict[str, str]:
    """Read the prefixes that a document declares.

    >>> prefixes_of("Prefix(:=<urn:a>) Prefix(b:=<urn:b>)")
    {'': 'urn:a', 'b': 'urn:b'}
    """
    found = {}
    for functional, manchester, iri, name, xml_iri in _PREFIX.findall(text):
        found[functional or manchester or name] = iri or xml_iri
    return found


def to_rdf_xml(data: bytes, syntax: str, file: str) -> bytes:
    """Convert a document to RDF/XML.

    >>> b"subClassOf" in to_rdf_xml(
    ...     b"Prefix(:=<http://e/>) Ontology(SubClassOf(:A :B))", "owl/functional", "a.ofn"
    ... )
    True
    """
    if importlib.util.find_spec("pyhornedowl") is None:
        raise OperationFailed(
            "E403",
            f"{file} is in {_name(syntax)} syntax, and py-horned-owl is not installed",
            "pip install 'corollary[owl]'",
            file=file,
        )
    script = Path(__file__).with_name("owl_child.py")
    done = subprocess.run(
        [sys.executable, str(script), SYNTAXES[syntax]], input=data, capture_output=True
    )
    if done.returncode == 0:
        return done.stdout
    if done.returncode == 2:
        message = done.stderr.decode(errors="replace").strip()
        place = _PLACE.search(message)
        line, column = (int(place[1]), int(place[2])) if place else (None, None)
        what = "" if place else f": {message.partition(chr(10))[0][:200]}"
        raise InvalidInput(
            "E361",
            f"this is not {_name(syntax)} syntax{what}",
            "the beginning of a document tells its syntax",
            file=file,
            line=line,
            column=column,
        )
    raise InvalidInput(
        "E325",
        f"the expressions of {file} are nested too deeply",
        "the library that reads this syntax cannot read them; convert the file to Turtle",
        file=file,
    )


def read_all(read: Callable[[int], bytes]) -> bytes:
    """Read a stream to its end.

    >>> import io
    >>> read_all(io.BytesIO(b"abc").read)
    b'abc'
    """
    return b"".join(iter(lambda: read(1 << 20), b""))


def _name(syntax: str) -> str:
    return {"ofn": "functional", "omn": "Manchester", "owx": "OWL/XML"}[SYNTAXES[syntax]]
