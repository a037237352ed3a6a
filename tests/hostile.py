"""Hostile inputs: a corpus, and a process with bounded memory that reads it.

`corpus` draws inputs of every format that Corollary reads: documents that nest, repeat, expand or
compress far beyond their size, and mutations of ordinary ones. `Readers` has a child process read
them under a limit on its address space and watches how long each takes; the only permitted outcomes
are success and a `CorollaryError`.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import pickle
import random
import resource
import select
import struct
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any, NamedTuple

MEMORY = 4 << 30  # bytes of address space of the child; numba and Arrow take 1.5 GB of it
SECONDS = 120  # for one input; a hang takes longer on any machine
_READY = b"ready\n"


class Case(NamedTuple):
    """An input: which reader takes it (`kind`), the suffix of its file, its bytes."""

    kind: str  # file, skip, text, patch, rules, query, script, table, part
    suffix: str
    data: bytes


# -- documents -------------------------------------------------------------------------------------

_XML = (
    b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e.org/">'
    b"%s</rdf:RDF>"
)
_DOCUMENTS: dict[str, list[bytes]] = {
    ".ttl": [
        b'@prefix e: <http://e.org/> .\n@base <http://b.org/> .\ne:a e:p e:b, "x"@en, 1.5, true ;\n'
        b'  e:q [ e:r ( 1 "two" [] ) ; a e:C ] .\n<rel> e:s """long\n"string""" . # comment\n',
        b"PREFIX e: <http://e.org/>\ne:a e:p << e:s e:p e:o >> .\ne:x e:y <<( e:s e:p 1 )>> .\n",
    ],
    ".trig": [
        b"@prefix e: <http://e.org/> .\ne:g { e:a e:p e:b . e:b e:p [ e:q ( 1 2 ) ] }\n"
        b"{ e:c e:p 'd' } GRAPH <h> { e:e e:f e:g }\n"
    ],
    ".nt": [
        b'<http://e.org/a> <http://e.org/p> "l\\u00e9\\n"@en .\n_:b <http://e.org/p> _:c . # x\n'
        b'<urn:a> <urn:p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .\n'
    ],
    ".nq": [b'<urn:a> <urn:p> "x" <urn:g> .\n<urn:a> <urn:p> _:b .\n_:b <urn:p> "" _:g .\n'],
    ".rdf": [
        b'<?xml version="1.0"?>\n<!DOCTYPE rdf:RDF [<!ENTITY o "http://www.w3.org/2002/07/owl#">]>'
        + _XML
        % b'<rdf:Description rdf:about="&o;Thing"><e:p xml:lang="en">x &amp; y</e:p>'
        b'<e:q rdf:parseType="Collection"><e:C/><e:D rdf:ID="d"/></e:q>'
        b'<e:r rdf:parseType="Literal"><b>bold</b></e:r><e:s><![CDATA[<x>]]></e:s>'
        b"</rdf:Description><!-- comment -->"
    ],
    ".jsonld": [
        b'{"@context": {"p": "http://e.org/p", "@base": "http://b.org/", "q": {"@id": "http://e.or'
        b'g/q", "@type": "@id"}}, "@id": "a", "@type": "http://e.org/C", "p": ["x", 1, true, 2.5e3,'
        b' {"@value": "v", "@language": "en"}], "q": {"@list": ["b", {"@id": "c"}]},'
        b' "@graph": [{"@id": "g", "p": null}]}'
    ],
    ".rdfp": [
        b'H id <uuid:1> .\nPA ex <http://e.org/> .\nTX .\nA ex:a ex:p "x" .\nD _:b ex:p 1 .\nTC .\n'
        b"TX .\nA <urn:a> <urn:b> <urn:c> .\nTA .\n"
    ],
    ".dl": [
        b"@prefix e: <http://e.org/> .\npath(?x, ?z) :- edge(?x, ?y), path(?y, ?z) .\n"
        b'edge(1, 2) . edge("a b", <urn:x>) . [?x, a, e:C] :- [?x, e:p, ?y], NOT q(?x, ?y) .\n'
        b"n(?x, ?c) :- AGGREGATE(edge(?x, ?y) ON ?x BIND count(?y) AS ?c) .\n"
        b"[name] false :- q(?x, ?y), FILTER(?x + 1.5 < (?y * 2) && ?x != 1e3) .\n"
    ],
    ".rq": [
        b"PREFIX e: <http://e.org/>\nSELECT DISTINCT ?x (COUNT(*) AS ?n) { ?x e:p/e:q* ?y ."
        b" OPTIONAL { ?y a e:C } FILTER(?y + 1.5 > -2 && !REGEX(STR(?y), 'a\\\\.b', \"i\"))"
        b" VALUES (?x ?z) { (e:a 1)"
        b" (UNDEF 'x'@en) } BIND(IF(?y = 1, 'a', 'b') AS ?w) } GROUP BY ?x HAVING(?n > 1) LIMIT 5",
        b"CONSTRUCT { ?s ?p [ <urn:q> ( 1 2 ) ] } WHERE { { ?s ?p ?o } UNION { ?s ^<urn:p> ?o MINUS"
        b" { ?s a ?o } } FILTER EXISTS { SELECT ?s { ?s ?p ?o } } }",
    ],
    ".updates": [
        b'insert edge("a", "b"), edge("b", "c") ;\ndelete edge("a", "b") ;\ncommit ;\n'
        b"add rule path(?x, ?z) :- edge(?x, ?y), path(?y, ?z) . ;\ncommit ;\n"
    ],
    ".facts": [b'a\t1\nb\t2.5\n<urn:x>\t"quoted"@en\n_:b\ttrue\n1e5\t"7"^^<urn:t>\n'],
    ".csv": [b'a,1\n"x, ""y""",2.5\n<urn:x>,"""quoted""@en"\n'],
    ".text": [
        b'p(1, 2) . q("x") .',
        b"@prefix e: <http://e.org/> . e:a e:p [ e:q ( 1 2 ) ] .",
        b"# note\nprefix e: <http://e.org/>\n[e:a, e:p, e:b] .",
    ],
}
_KINDS = {".rdfp": "patch", ".dl": "rules", ".updates": "script", ".facts": "table",
          ".csv": "table", ".parquet": "table", ".arrow": "table", ".text": "text",
          ".rq": "query"}  # fmt: skip
_SNIPPETS = [
    b"(", b")", b"[", b"]", b"{", b"}", b"<<", b"<<(", b")>>", b"<", b">", b'"', b"'", b'"""',
    b"'''", b"\\", b"\\u", b"\\U0010FFFF", b"\\uD800", b"#", b".", b";", b",", b":", b"@", b"^^",
    b"\n", b"\r", b"\t", b"\x00", b"\xff", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"&", b"&o;",
    b"%", b"<!ENTITY a '&a;'>", b'<!ENTITY % p "x">', b"<!DOCTYPE x [", b"]>", b"<!--", b"-->",
    b"<![CDATA[", b"]]>", b"<?", b"?>", b'"@context":', b'"\\u0040context":', b'{"@list":[',
    b"null",    b"@prefix x: <", b"@base <", b"BASE <", b"PREFIX : <", b"_:", b"1e999999999", b"-0",
    b"9" * 5000, b"1." + b"0" * 400, b"a" * 3000, b":-", b"?x", b"NOT ", b"AGGREGATE(", b"FILTER(",
    b"BIND", b"~", b"TX .\n", b"TC .\n", b"PA x <", b"rdf:parseType=\"Literal\"", b"xml:base=\"",
    b"xmlns:x=\"", b"rdf:ID=\"a\"", b"\xef\xbb\xbf", b"\xfe\xff", b"\xff\xfe",
]  # fmt: skip


def corpus(seed: int, count: int) -> Iterator[Case]:
    """Inputs that a seed determines; a few are constructions, the others are mutations."""
    draw = random.Random(seed)
    for _ in range(count):
        yield _constructed(draw) if draw.random() < 0.03 else _mutated(draw)


def _mutated(draw: random.Random) -> Case:
    suffix = draw.choice([*_DOCUMENTS, ".parquet", ".arrow"])
    data = draw.choice(_DOCUMENTS[suffix]) if suffix in _DOCUMENTS else typed_file(suffix)
    for _ in range(draw.choice([1, 1, 2, 3, 8])):
        data = draw.choice(_MUTATIONS)(data[: 1 << 20], draw)
    return _as_case(suffix, data[: 1 << 20], draw)


def _as_case(suffix: str, data: bytes, draw: random.Random) -> Case:
    kind = _KINDS.get(suffix) or draw.choice(["file", "file", "skip", "skip", "part"])
    if (
        suffix not in (".dl", ".rq", ".updates", ".text", ".parquet", ".arrow")
        and draw.random() < 0.1
    ):
        data, suffix = gzip.compress(data, 1), suffix + ".gz"
        if draw.random() < 0.3:
            data = _flip(data, draw)
    return Case(kind, suffix, data)


def _flip(data: bytes, draw: random.Random) -> bytes:
    changed = bytearray(data or b" ")
    for _ in range(draw.choice([1, 2, 10])):
        changed[draw.randrange(len(changed))] = draw.randrange(256)
    return bytes(changed)


def _cut(data: bytes, draw: random.Random) -> bytes:
    first, last = sorted(draw.randrange(len(data) + 1) for _ in range(2))
    return data[:first] + data[last:] if draw.random() < 0.5 else data[:last]


def _insert(data: bytes, draw: random.Random) -> bytes:
    at = draw.randrange(len(data) + 1)
    times = draw.choice([1, 1, 1, 2, 50, 3000])
    return data[:at] + draw.choice(_SNIPPETS) * times + data[at:]


def _repeat(data: bytes, draw: random.Random) -> bytes:
    first, last = sorted(draw.randrange(len(data) + 1) for _ in range(2))
    return data[:last] + data[first:last] * draw.choice([1, 5, 200]) + data[last:]


def _splice(data: bytes, draw: random.Random) -> bytes:
    other = draw.choice(_DOCUMENTS[draw.choice([*_DOCUMENTS])])
    at, start = draw.randrange(len(data) + 1), draw.randrange(len(other))
    return data[:at] + other[start:] + data[at:]


_MUTATIONS: list[Callable[[bytes, random.Random], bytes]] = [
    _flip, _cut, _insert, _insert, _insert, _repeat, _splice
]  # fmt: skip


# -- constructions -----------------------------------------------------------------------------


def _constructed(draw: random.Random) -> Case:
    name = draw.choice([*CONSTRUCTIONS])
    suffix, make = CONSTRUCTIONS[name]
    size = int(10 ** draw.uniform(1, 4))  # around the limits of the readers
    return _as_case(suffix, make(size), draw)


def _laughs(n: int) -> bytes:
    levels = min(n, 9)
    entities = b'<!ENTITY a0 "lol">' + b"".join(
        b'<!ENTITY a%d "%s">' % (i, b"&a%d;" % (i - 1) * 10) for i in range(1, levels)
    )
    body = b"<rdf:Description><e:p>&a%d;</e:p></rdf:Description>" % (levels - 1)
    return b"<!DOCTYPE rdf:RDF [" + entities + b"]>" + _XML % body


def _hidden_laughs(n: int) -> bytes:
    """The declarations are in lower case, after the root, or far behind a comment."""
    document = _laughs(8)
    doctype, _, rest = document.partition(b"]>")
    if n % 3 == 0:
        return b"<!--" + b"x" * (n * 20) + b"-->" + document
    if n % 3 == 1:
        return doctype.replace(b"DOCTYPE", b"doctype") + b"]>" + rest
    start, _, end = rest.partition(b"<rdf:Desc")
    return start + doctype + b"]><rdf:Desc" + end


def _entities(n: int) -> bytes:
    """One entity of a thousand bytes, referred to again and again."""
    doctype = b'<!DOCTYPE rdf:RDF [<!ENTITY a "' + b"x" * 1000 + b'">]>'
    element = b"<rdf:Description><e:p>" + b"&a;" * 400 + b"</e:p></rdf:Description>"
    return doctype + _XML % (element * (n // 4))


_TOKENS = {
    "string": (b'"', b"x", b'"'),
    "escapes": (b'"', b"\\n", b'"'),
    "IRI": (b"<urn:", b"x", b">"),
    "name": (b"a:x", b"x", b""),
    "dots": (b"a:x", b".x", b""),
    "percents": (b"a:x", b"%20", b""),
    "tag": (b'"x"@a', b"-a", b""),
    "comment": (b"#", b"x", b"\n1"),
    "comments": (b"#\n", b"#\n", b"1"),
    "number": (b"1", b"1", b""),
}


def _long_token(suffix: str, token: tuple[bytes, bytes, bytes], n: int) -> bytes:
    """A rule or a query with one token of megabytes."""
    begin, part, end = token
    long = begin + part * (n * 300) + end
    if suffix == ".dl":
        return b"@prefix a: <urn:a> .\np(" + long + b") .\n"
    return b"PREFIX a: <urn:a> ASK { ?s ?p " + long + b" }"


def _xml(n: int, before: bytes, after: bytes) -> bytes:
    return _XML % (before * n + after * n)


CONSTRUCTIONS: dict[str, tuple[str, Callable[[int], bytes]]] = {
    "collections": (".ttl", lambda n: b"<urn:a> <urn:p> " + b"(" * n + b")" * n + b" ."),
    "open collections": (".ttl", lambda n: b"<urn:a> <urn:p> " + b"(1 " * n),
    "blank nodes": (".ttl", lambda n: b"<a:a> <a:p> " + b"[<a:p> " * n + b"1" + b"]" * n + b" ."),
    "triple terms": (
        ".ttl",
        lambda n: b"<a:a> <a:p> " + b"<<( <a:s> <a:p> " * n + b"<a:o>" + b" )>>" * n + b" .",
    ),
    "triple terms after a mistake": (
        ".ttl",
        lambda n: (
            b'x "\n ' * 3
            + b"<a:a> <a:p> "
            + b"<<( <a:s> <a:p> " * n
            + b"<a:o>"
            + b" )>>" * n
            + b" ."
        ),
    ),
    "reified triples": (".ttl", lambda n: b"<a:a> <a:p> " + b"<< <a:s> <a:p> " * n),
    "triple terms in lines": (
        ".nt",
        lambda n: b"<a:a> <a:p> " + b"<<( <a:s> <a:p> " * n + b"<a:o>" + b" )>>" * n + b" .\n",
    ),
    "graphs": (".trig", lambda n: b"<urn:g> {" * n + b"<urn:a> <urn:p> " + b"(" * n),
    "long base": (
        ".ttl",
        lambda n: b"@base <http://e/" + b"x" * n + b"/> .\n" + b"<a> <b> <c> .\n" * min(n, 5000),
    ),
    "long prefix": (
        ".ttl",
        lambda n: (
            b"@prefix p: # c\n<http://e/"
            + b"x" * n
            + b"/> .\n"
            + b"".join(b"p:a%d p:b p:c%d .\n" % (i, i) for i in range(n))
        ),
    ),
    "prefixes": (
        ".ttl",
        lambda n: (
            b"".join(b"@prefix p%d: <urn:x> .\n" % i for i in range(n)) + b"p0:a p0:b p0:c .\n" * n
        ),
    ),
    "quotes": (".ttl", lambda n: b'"' * n),
    "long literal": (".ttl", lambda n: b'<a:a> <a:p> "' + b"x" * (n * 400) + b'" .'),
    "long line": (".nt", lambda n: b'<a:a> <a:p> "' + b"x" * (n * 400) + b'" .\n'),
    "no line break": (".nq", lambda n: b"<a:a> " * (n * 50)),
    "mistakes": (".nt", lambda n: b"x\n" * n),
    "objects": (".jsonld", lambda n: b'{"a:p":' * n + b'"x"' + b"}" * n),
    "arrays": (".jsonld", lambda n: b'{"a:p":' + b"[" * n + b'"x"' + b"]" * n + b"}"),
    "lists": (".jsonld", lambda n: b'{"a:p":' + b'{"@list":[' * n + b'"x"' + b"]}" * n + b"}"),
    "scoped contexts": (
        ".jsonld",
        lambda n: (
            b'{"@context":'
            + b'{"a":{"@id":"a:a","@context":' * n
            + b"{}"
            + b"}}" * n
            + b',"a:p":"x"}'
        ),
    ),
    "nested contexts": (
        ".jsonld",
        lambda n: (
            b'{"@context":{'
            + b",".join(b'"t%d":"a:t%d"' % (i, i) for i in range(min(n, 20_000)))
            + b'},"t0":'
            + b'{"\\u0040context":{"a":"a:a"},"t0":' * 90
            + b'"x"'
            + b"}" * 91
        ),
    ),
    "long vocabulary": (
        ".jsonld",
        lambda n: (
            b'{"@context":{"@vocab":"http://e/'
            + b"x" * n
            + b'"},"@graph":['
            + b",".join(b'{"p%d":1}' % i for i in range(n))
            + b"]}"
        ),
    ),
    "numbers": (".jsonld", lambda n: b'{"a:p":[1e' + b"9" * n + b"," + b"9" * n + b"]}"),
    "elements": (
        ".rdf",
        lambda n: _xml(n, b"<rdf:Description><e:p>", b"</e:p></rdf:Description>"),
    ),
    "XML literals": (
        ".rdf",
        lambda n: (
            _XML
            % (
                b'<rdf:Description><e:p rdf:parseType="Literal">'
                + b"<a>" * n
                + b"</a>" * n
                + b"</e:p></rdf:Description>"
            )
        ),
    ),
    "attributes": (
        ".rdf",
        lambda n: (
            _XML % (b"<rdf:Description " + b" ".join(b'e:p%d="x"' % i for i in range(n)) + b"/>")
        ),
    ),
    "namespaces": (
        ".rdf",
        lambda n: (
            _XML % (b'<e:C xmlns:f="http://f/' + b"x" * n + b'">' + b"<f:p>1</f:p>" * n + b"</e:C>")
        ),
    ),
    "laughs": (".rdf", _laughs),
    "hidden laughs": (".rdf", _hidden_laughs),
    "entities": (".rdf", _entities),
    "external entity": (
        ".rdf",
        lambda n: (
            b'<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>'
            + _XML % b"<rdf:Description><e:p>&a;</e:p></rdf:Description>"
        ),
    ),
    "text": (".rdf", lambda n: _XML % (b"<e:C><e:p>" + b"x" * (n * 400) + b"</e:p></e:C>")),
    "comment": (".rdf", lambda n: b"<!--" + b"<x>" * (n * 100) + b"-->" + _XML % b""),
    "patch lines": (".rdfp", lambda n: b"A <a:a> <a:b> " + b"(" * n + b")" * n + b" .\n"),
    "patch prefixes": (
        ".rdfp",
        lambda n: b"".join(
            b"PA p%d <urn:x> .\nA p0:a p0:b 1 .\nD p0:a p0:b 2 .\n" % i for i in range(min(n, 2000))
        ),
    ),
    "patch name": (".rdfp", lambda n: b"PA p <urn:x> .\nA " + b"x" * (n * 50) + b" p:a 1 .\n"),
    "row": (".facts", lambda n: b"a\t" + b"x" * (n * 400) + b"\nb\tc\n"),
    "many columns": (".csv", lambda n: b"," * (n * 20) + b"\na,b\n"),
    "wrong characters": (".updates", lambda n: b"insert " + b"\\u" * (n * 20) + b";"),
    "columns": (".facts", lambda n: b"\t" * n + b"\na\tb\n"),
    "cell": (".csv", lambda n: b'a,"' + b"x" * (n * 400) + b'"\nb\n'),
    "quoted line breaks": (".csv", lambda n: b'a,"' + b"x\n" * n + b"\nb\n"),
    "parentheses": (
        ".dl",
        lambda n: b"p(?x) :- q(?x), FILTER(" + b"(" * n + b"?x" + b")" * n + b" > 1) .",
    ),
    "minuses": (".dl", lambda n: b"p(?x) :- q(?x), FILTER(" + b"-" * n + b"?x > 1) ."),
    "nots": (".dl", lambda n: b"p(?x) :- q(?x), FILTER(" + b"!" * n + b"?x) ."),
    "sums": (".dl", lambda n: b"p(?x) :- q(?x), FILTER(?x" + b" + 1" * n + b" > 1) ."),
    "arguments": (".dl", lambda n: b"p(" + b",".join([b"1"] * n) + b") ."),
    "atoms": (".dl", lambda n: b"p(?x) :- " + b", ".join([b"q(?x)"] * min(n, 5000)) + b" ."),
    "strata": (
        ".dl",
        lambda n: b"".join(
            b"p%d(?x) :- q(?x), NOT p%d(?x) .\n" % (i, i - 1) for i in range(1, min(n, 1500))
        ),
    ),
    "digits": (
        ".dl",
        lambda n: b"p(" + b"9" * n + b") . q(?x) :- p(?x), FILTER(?x > 1" + b"0" * n + b") .",
    ),
    "unclosed": (".dl", lambda n: b'p("' * n),
    **{
        f"long {name}, {suffix}": (suffix, partial(_long_token, suffix, part))
        for suffix in (".dl", ".rq")
        for name, part in _TOKENS.items()
    },
    "rule text": (".text", lambda n: b"p(" * n),
    "declarations": (".text", lambda n: b"prefix a: <b>    \n" * n + b"!"),
    "text brackets": (".text", lambda n: b"<a:a> <a:b> " + b"[" * n),
    "text digits": (".text", lambda n: b"p(" + b"9" * n + b") ."),
    "script": (".updates", lambda n: b"insert " * n + b";"),
}
_KINDS |= {".facts.gz": "table", ".rdfp.gz": "patch"}


@cache
def bomb() -> bytes:
    """300 MB of line breaks in 300 KB."""
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb", compresslevel=9, mtime=0) as file:
        for _ in range(300):
            file.write(b"\n" * (1 << 20))
    return buffer.getvalue()


@cache
def typed_file(suffix: str) -> bytes:
    """A small Parquet or Arrow file."""
    import pyarrow as pa
    from pyarrow import feather, parquet

    table = pa.table({"a": ["x", "y", "<urn:z>"] * 20, "b": [1, 2, 3] * 20})
    buffer = io.BytesIO()
    if suffix == ".parquet":
        parquet.write_table(table, buffer)
    else:
        feather.write_feather(table, buffer)
    return buffer.getvalue()


# -- the child -------------------------------------------------------------------------------------


def read_case(case: Case, folder: Path) -> str:
    """Read one input; "ok" or the code of the error, anything else is raised."""
    from corollary.core.dictionary import Dictionary
    from corollary.errors import CorollaryError, Source
    from corollary.files.facts import columns_in, read_table
    from corollary.files.shapes import Shape
    from corollary.knowledge_base import KnowledgeBase
    from corollary.lang.program import Program
    from corollary.lang.script import parse_script
    from corollary.query.parse import check_syntax
    from corollary.rdf import formats
    from corollary.rdf.files import format_of
    from corollary.rdf.patch import read_patch
    from corollary.rdf.splits import PartReader, Split

    path = folder / f"input{case.suffix}"
    path.write_bytes(case.data)
    try:
        match case.kind:
            case "text":
                kb = _knowledge_base(KnowledgeBase)
                with kb.transaction() as tx:
                    tx.insert(case.data.decode("utf-8", "surrogateescape"))
            case "patch":
                for _ in read_patch(path, Dictionary()):
                    pass
            case "rules":
                Program.load(path)
            case "query":
                check_syntax(case.data.decode("utf-8", "replace"))
            case "script":
                list(parse_script(Source.read(path), Program.parse("edge(1, 2) .")))
            case "table":
                read_table(path, Shape("p", columns_in(path)))
            case "part":
                format_ = format_of(path)
                assert format_ is not None, path
                part = PartReader("skip").files([Split(str(path), format_, "d0.")])
                if part.error is not None:
                    raise part.error
            case kind:
                on_error: Any = "skip" if kind == "skip" else "fail"
                formats.read(path, Dictionary(), on_error=on_error, threads=1)
    except CorollaryError as error:
        error.render()
        return error.code
    return "ok"


@cache
def _knowledge_base(make: Callable[..., Any]) -> Any:
    return make("q(?x) :- p(?x, ?y) .")


def child() -> None:
    """Read inputs from stdin until it ends; write an outcome for each."""
    out = os.fdopen(os.dup(1), "wb")
    warnings.simplefilter("ignore")
    with TemporaryDirectory() as folder:
        for case in (Case("file", suffix, data[0]) for suffix, data in _DOCUMENTS.items()):
            if case.suffix not in _KINDS:
                read_case(case, Path(folder))  # loads and compiles before memory is limited
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        out.write(_READY)
        out.flush()
        while header := sys.stdin.buffer.read(8):
            case = Case(*pickle.loads(sys.stdin.buffer.read(struct.unpack("<q", header)[0])))
            try:
                outcome = read_case(case, Path(folder))
            except BaseException:
                outcome = "failed: " + traceback.format_exc()[-3000:]
            data = outcome.encode(errors="replace")
            out.write(struct.pack("<q", len(data)) + data)
            out.flush()


class Readers:
    """A child process that reads inputs; it is replaced when it dies or hangs."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def outcome(self, case: Case) -> str:
        """ "ok", the code of an error, or what went wrong."""
        process = self._process
        if process is None or process.poll() is not None:
            process = self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.hostile"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            assert process.stdout is not None
            if _exactly(process.stdout, len(_READY)) != _READY:  # compiled: the clock may start
                return self._ended("died before it was ready")
        assert process.stdin is not None
        assert process.stdout is not None
        data = pickle.dumps(tuple(case))
        try:
            process.stdin.write(struct.pack("<q", len(data)) + data)
            process.stdin.flush()
        except BrokenPipeError:
            return self._ended("died before it read the input")
        ready, _, _ = select.select([process.stdout], [], [], SECONDS)
        if not ready:
            return self._ended(f"hung for {SECONDS} s")
        header = _exactly(process.stdout, 8)
        if len(header) < 8:
            return self._ended("died")
        return _exactly(process.stdout, struct.unpack("<q", header)[0]).decode()

    def _ended(self, what: str) -> str:
        process = self._process
        assert process is not None
        process.kill()
        status = process.wait()
        self.close()
        return f"failed: the process {what} (status {status})"

    def close(self) -> None:
        """End the child."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for stream in (self._process.stdin, self._process.stdout):
                with contextlib.suppress(BrokenPipeError):
                    if stream is not None:
                        stream.close()
            self._process = None


def _exactly(stream: IO[bytes], size: int) -> bytes:
    data = b""
    while len(data) < size and (more := stream.read(size - len(data))):
        data += more
    return data


def check(readers: Readers, case: Case) -> str:
    """The outcome of an input, which must be success or an error of ours."""
    outcome = readers.outcome(case)
    if outcome.startswith("failed") or outcome in ("E406", "E407"):
        shown = case.data if len(case.data) <= 2000 else case.data[:1000] + b" ... "
        raise AssertionError(f"{case.kind} {case.suffix} {shown!r}: {outcome}")
    return outcome


if __name__ == "__main__":
    child()
