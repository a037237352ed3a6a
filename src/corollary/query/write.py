"""Serializes answers: SPARQL results in CSV, TSV, JSON and XML, Parquet, RDF.

Terms are decoded only where needed: TSV and N-Triples write their texts unchanged.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from xml.sax.saxutils import escape, quoteattr

import pyarrow as pa
import pyarrow.compute as pc

from corollary.errors import InvalidInput
from corollary.lang.printer import Printer
from corollary.lang.syntax import IRI, XSD, BlankNode, Constant, Literal
from corollary.query.results import Answer, Solutions, TripleTable
from corollary.rdf.frames import statement_lines

FORMATS = ("table", "csv", "tsv", "json", "xml", "parquet", "nt", "ttl")
FOLDERS = ("csv", "tsv", "nt", "parquet")  # formats that can be written as part files
_FORMATS_BY_ANSWER = {
    bool: ("table", "json", "xml"),
    Solutions: ("table", "csv", "tsv", "json", "xml", "parquet"),
    TripleTable: ("table", "csv", "tsv", "parquet", "nt", "ttl"),
}
_QUERY_FORMS = {bool: "ASK", Solutions: "SELECT", TripleTable: "CONSTRUCT and DESCRIBE"}
_MAX_CELL_WIDTH = 60  # characters of a cell on a terminal
_XML_START = '<?xml version="1.0"?>\n<sparql xmlns="http://www.w3.org/2005/sparql-results#">\n'


def encoded(
    answer: Answer | bool, format_: str, prefixes: Mapping[str, str] | None = None
) -> bytes:
    """Serialize an answer.

    >>> answer = Solutions(pa.table({"x": ['"a"@en', None]}))
    >>> encoded(answer, "tsv")
    b'?x\\n"a"@en\\n\\n'
    >>> encoded(True, "json")
    b'{"head": {}, "boolean": true}\\n'
    """
    formats = next(f for kind, f in _FORMATS_BY_ANSWER.items() if isinstance(answer, kind))
    if format_ not in formats:
        query_form = next(w for kind, w in _QUERY_FORMS.items() if isinstance(answer, kind))
        raise InvalidInput(
            "E562",
            f"cannot write the answer of {query_form} queries as {format_}",
            f"choose one of {', '.join(formats)}",
        )
    if isinstance(answer, bool):
        return _TRUTHS[format_][answer].encode()
    if format_ == "parquet":
        return _parquet(answer)
    return _WRITERS[format_](answer, prefixes or {}).encode()


# Names of RDF syntaxes as rdflib and media types have them, and the classes of pyoxigraph.
_RDF = {
    "turtle": "TURTLE",
    "ttl": "TURTLE",
    "trig": "TRIG",
    "nt": "N_TRIPLES",
    "ntriples": "N_TRIPLES",
    "n-triples": "N_TRIPLES",
    "nq": "N_QUADS",
    "nquads": "N_QUADS",
    "n-quads": "N_QUADS",
    "xml": "RDF_XML",
    "rdf/xml": "RDF_XML",
    "rdfxml": "RDF_XML",
    "pretty-xml": "RDF_XML",
    "json-ld": "JSON_LD",
    "jsonld": "JSON_LD",
    "text/turtle": "TURTLE",
    "application/n-triples": "N_TRIPLES",
    "application/rdf+xml": "RDF_XML",
    "application/ld+json": "JSON_LD",
}
RDF_FORMATS = ("turtle", "nt", "nq", "trig", "xml", "json-ld")


def serialized(answer: Answer, format_: str, prefixes: Mapping[str, str]) -> str | bytes:
    """Serialize an answer as text, or Parquet as bytes. Triples have every RDF syntax.

    Triples that RDF does not allow, such as those about literals, are left out of RDF syntaxes.

    >>> triples = {"subject": ["<urn:s>"], "predicate": ["<urn:p>"], "object": ['"o"']}
    >>> serialized(TripleTable(pa.table(triples)), "nt", {})
    '<urn:s> <urn:p> "o" .\\n'
    """
    if isinstance(answer, TripleTable):
        if format_ in _RDF:
            return _rdf(answer, _RDF[format_], prefixes)
        formats = (*RDF_FORMATS, "table", "csv", "tsv", "parquet")
        if format_ not in formats:
            raise InvalidInput(
                "E562",
                f"cannot write triples as {format_}",
                f"choose one of {', '.join(formats)}",
            )
    data = encoded(answer, format_, prefixes)
    return data if format_ == "parquet" else data.decode()


def _rdf(answer: Answer, syntax: str, prefixes: Mapping[str, str]) -> str:
    import pyoxigraph

    table = answer.table.sort_by([(n, "ascending") for n in answer.table.column_names])
    valid = pc.and_(
        pc.invert(pc.starts_with(table["subject"], '"')), pc.starts_with(table["predicate"], "<")
    )
    lines = _ntriples(TripleTable(table.filter(valid)), {})
    if syntax == "N_TRIPLES" or syntax == "N_QUADS":  # the default graph is written the same
        return lines
    written = pyoxigraph.serialize(
        (
            quad.triple
            for quad in pyoxigraph.parse(lines.encode(), format=pyoxigraph.RdfFormat.N_TRIPLES)
        ),
        format=getattr(pyoxigraph.RdfFormat, syntax),
        prefixes=dict(prefixes),
    )
    assert written is not None, "without an output file, serialize returns bytes"
    return written.decode()


def pieces(format_: str, variables: Sequence[str]) -> tuple[str, str, Callable[[pa.Table], str]]:
    """Write a table in parts: returns the header, the line terminator, and the part writer.

    The header and the parts have no final terminator; the header is empty for formats without one.

    >>> first, end, piece = pieces("csv", ["x", "y"])
    >>> first, end, piece(pa.table({"x": ["<urn:a>", None], "y": ['"b"', '"c"']}))
    ('x,y', '\\r\\n', 'urn:a,b\\r\\n,c')
    """
    if format_ == "nt":
        return "", "\n", _ntriples_lines
    write, end = (_csv, "\r\n") if format_ == "csv" else (_tsv, "\n")
    empty = pa.table({name: pa.array([], pa.large_string()) for name in variables})
    header = write(Solutions(empty), {})
    return (
        header.removesuffix(end),
        end,
        lambda table: write(Solutions(table), {}).removeprefix(header).removesuffix(end),
    )


def _ntriples_lines(table: pa.Table) -> str:
    return _ntriples(TripleTable(table), {}).removesuffix("\n")


def _parquet(answer: Answer) -> bytes:
    import pyarrow.parquet as pq

    out = io.BytesIO()
    pq.write_table(answer.table, out, compression="zstd")
    return out.getvalue()


def _csv(answer: Answer, prefixes: Mapping[str, str]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(answer.table.column_names)
    writer.writerows([_csv_cell(term) for term in row] for row in answer)
    return out.getvalue()


def _csv_cell(term: Constant | None) -> str:
    match term:
        case None:
            return ""
        case IRI(value):
            return value
        case BlankNode(label):
            return f"_:{label}"
        case Literal(lexical):
            return lexical


def _tsv(answer: Answer, prefixes: Mapping[str, str]) -> str:
    lines = ["\t".join(f"?{name}" for name in answer.table.column_names)]
    lines += ["\t".join(text or "" for text in row) for row in answer.texts()]
    return "".join(f"{line}\n" for line in lines)


def _json(answer: Answer, prefixes: Mapping[str, str]) -> str:
    names = answer.table.column_names
    rows = [
        {name: _binding(term) for name, term in zip(names, row, strict=True) if term is not None}
        for row in answer
    ]
    document = {"head": {"vars": [*names]}, "results": {"bindings": rows}}
    return json.dumps(document, ensure_ascii=False) + "\n"


def _binding(term: Constant) -> dict[str, str]:
    match term:
        case IRI(value):
            return {"type": "uri", "value": value}
        case BlankNode(label):
            return {"type": "bnode", "value": label}
        case Literal(lexical, datatype, language):
            binding = {"type": "literal", "value": lexical}
            if language is not None:
                return binding | {"xml:lang": language}
            return binding if datatype == XSD + "string" else binding | {"datatype": datatype}


def _xml(answer: Answer, prefixes: Mapping[str, str]) -> str:
    names = answer.table.column_names
    variables = "".join(f"<variable name={quoteattr(name)}/>" for name in names)
    lines = [f"{_XML_START}  <head>{variables}</head>\n  <results>\n"]
    for row in answer:
        cells = "".join(
            f"<binding name={quoteattr(name)}>{_element(term)}</binding>"
            for name, term in zip(names, row, strict=True)
            if term is not None
        )
        lines.append(f"    <result>{cells}</result>\n")
    lines.append("  </results>\n</sparql>\n")
    return "".join(lines)


def _element(term: Constant) -> str:
    match term:
        case IRI(value):
            return f"<uri>{escape(value)}</uri>"
        case BlankNode(label):
            return f"<bnode>{escape(label)}</bnode>"
        case Literal(lexical, datatype, language):
            kind = ""
            if language is not None:
                kind = f" xml:lang={quoteattr(language)}"
            elif datatype != XSD + "string":
                kind = f" datatype={quoteattr(datatype)}"
            # XML parsers read a bare carriage return as a line feed.
            shown = escape(lexical, {"\r": "&#13;"})
            return f"<literal{kind}>{shown}</literal>"


def _ntriples(answer: Answer, prefixes: Mapping[str, str]) -> str:
    columns = [column.cast(pa.large_string()) for column in answer.table.columns]
    return "".join(statement_lines(columns).to_pylist())


def _turtle(answer: Answer, prefixes: Mapping[str, str]) -> str:
    import pyoxigraph

    # Sorted, because Turtle groups only adjacent triples of a subject and property.
    ordered = TripleTable(
        answer.table.sort_by([(n, "ascending") for n in answer.table.column_names])
    )
    triples = pyoxigraph.parse(
        _ntriples(ordered, prefixes).encode(), format=pyoxigraph.RdfFormat.N_TRIPLES
    )
    serialized = pyoxigraph.serialize(
        (quad.triple for quad in triples),
        format=pyoxigraph.RdfFormat.TURTLE,
        prefixes=dict(prefixes),
    )
    assert serialized is not None, "without an output file, serialize returns bytes"
    return serialized.decode()


def _table(answer: Answer, prefixes: Mapping[str, str]) -> str:
    printer = Printer(prefixes, well_known=False)
    rows = [[_table_cell(term, printer) for term in row] for row in answer]
    return _align([answer.table.column_names, *rows])


def _table_cell(term: Constant | None, printer: Printer) -> str:
    text = "" if term is None else printer.term(term)
    return text if len(text) <= _MAX_CELL_WIDTH else f"{text[: _MAX_CELL_WIDTH - 1]}…"


def _align(lines: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        + "\n"
        for line in lines
    )


_BOOLEAN_XML = f"{_XML_START}  <head/>\n  <boolean>%s</boolean>\n</sparql>\n"
# The answers false and true.
_TRUTHS = {
    "table": ("no\n", "yes\n"),
    "json": ('{"head": {}, "boolean": false}\n', '{"head": {}, "boolean": true}\n'),
    "xml": (_BOOLEAN_XML % "false", _BOOLEAN_XML % "true"),
}
_WRITERS = {
    "table": _table,
    "csv": _csv,
    "tsv": _tsv,
    "json": _json,
    "xml": _xml,
    "nt": _ntriples,
    "ttl": _turtle,
}
