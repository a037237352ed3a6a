"""Answers in the formats of the standards: CSV, TSV, JSON and XML results, Parquet, RDF.

Nothing is decoded that stays as it is: TSV and N-Triples are the texts of the terms themselves.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.terms import term_of
from corollary.errors import InvalidInput
from corollary.lang.syntax import IRI, XSD, BlankNode, Constant, Literal
from corollary.query.results import Solutions, TripleTable

FORMATS = ("table", "csv", "tsv", "json", "xml", "parquet", "nt", "ttl")
FOLDERS = ("csv", "tsv", "nt", "parquet")  # that are written piece by piece
_FITTING = {
    bool: ("table", "json", "xml"),
    Solutions: ("table", "csv", "tsv", "json", "xml", "parquet"),
    TripleTable: ("table", "csv", "tsv", "parquet", "nt", "ttl"),
}
_WHAT = {bool: "ASK", Solutions: "SELECT", TripleTable: "CONSTRUCT and DESCRIBE"}
_WIDEST = 60  # characters of a cell on a terminal


def encoded(
    answer: Solutions | TripleTable | bool, format_: str, prefixes: Mapping[str, str] | None = None
) -> bytes:
    """An answer as a file has it.

    >>> found = Solutions(pa.table({"x": ['"a"@en', None]}))
    >>> encoded(found, "tsv")
    b'?x\\n"a"@en\\n\\n'
    >>> encoded(True, "json")
    b'{"head": {}, "boolean": true}\\n'
    """
    fitting = next(f for kind, f in _FITTING.items() if isinstance(answer, kind))
    if format_ not in fitting:
        what = next(w for kind, w in _WHAT.items() if isinstance(answer, kind))
        raise InvalidInput(
            "E562",
            f"answers of {what} queries are not written as {format_}",
            f"there are {', '.join(fitting)}",
        )
    if format_ == "parquet":
        return _parquet(answer)
    return _WRITERS[format_](answer, prefixes or {}).encode()


def pieces(format_: str, variables: Sequence[str]) -> tuple[str, str, Callable[[pa.Table], str]]:
    """How a table is written piece by piece: the first line, what ends lines, and each piece.

    The first line and the pieces have no end; there is none for formats without a first line.

    >>> first, end, piece = pieces("csv", ["x", "y"])
    >>> first, end, piece(pa.table({"x": ["<urn:a>", None], "y": ['"b"', '"c"']}))
    ('x,y', '\\r\\n', 'urn:a,b\\r\\n,c')
    """
    if format_ == "nt":
        return "", "\n", _lines
    write, end = (_csv, "\r\n") if format_ == "csv" else (_tsv, "\n")
    nothing = pa.table({name: pa.array([], pa.large_string()) for name in variables})
    first = write(Solutions(nothing), {})
    return (
        first.removesuffix(end),
        end,
        lambda table: write(Solutions(table), {}).removeprefix(first).removesuffix(end),
    )


def _lines(table: pa.Table) -> str:
    wide = pa.table([c.cast(pa.large_string()) for c in table.columns], names=table.column_names)
    return _ntriples(TripleTable(wide), {}).removesuffix("\n")


def _parquet(answer: Any) -> bytes:
    import pyarrow.parquet as pq

    out = io.BytesIO()
    pq.write_table(answer.table, out, compression="zstd")
    return out.getvalue()


def _names(answer: Solutions | TripleTable) -> Sequence[str]:
    found: Sequence[str] = answer.table.column_names
    return found


def _texts(answer: Solutions | TripleTable) -> Iterator[tuple[str | None, ...]]:
    columns = [column.to_pylist() for column in answer.table.columns]
    return iter(zip(*columns, strict=True)) if columns else iter([()] * len(answer))


def _terms(answer: Solutions | TripleTable) -> Iterator[list[Constant | None]]:
    known: dict[str, Constant] = {}
    for row in _texts(answer):
        terms: list[Constant | None] = []
        for text in row:
            if text is not None and text not in known:
                known[text] = term_of(text)
            terms.append(None if text is None else known[text])
        yield terms


def _csv(answer: Any, prefixes: Mapping[str, str]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(_names(answer))
    writer.writerows([_plain(term) for term in row] for row in _terms(answer))
    return out.getvalue()


def _plain(term: Constant | None) -> str:
    match term:
        case None:
            return ""
        case IRI(value):
            return value
        case BlankNode(label):
            return f"_:{label}"
        case Literal(lexical):
            return lexical


def _tsv(answer: Any, prefixes: Mapping[str, str]) -> str:
    lines = ["\t".join(f"?{name}" for name in _names(answer))]
    lines += ["\t".join(text or "" for text in row) for row in _texts(answer)]
    return "".join(f"{line}\n" for line in lines)


def _json(answer: Any, prefixes: Mapping[str, str]) -> str:
    if isinstance(answer, bool):
        return json.dumps({"head": {}, "boolean": answer}) + "\n"
    names = _names(answer)
    rows = [
        {name: _binding(term) for name, term in zip(names, row, strict=True) if term is not None}
        for row in _terms(answer)
    ]
    found = {"head": {"vars": [*names]}, "results": {"bindings": rows}}
    return json.dumps(found, ensure_ascii=False) + "\n"


def _binding(term: Constant) -> dict[str, str]:
    match term:
        case IRI(value):
            return {"type": "uri", "value": value}
        case BlankNode(label):
            return {"type": "bnode", "value": label}
        case Literal(lexical, datatype, language):
            found = {"type": "literal", "value": lexical}
            if language is not None:
                return found | {"xml:lang": language}
            return found if datatype == XSD + "string" else found | {"datatype": datatype}


def _xml(answer: Any, prefixes: Mapping[str, str]) -> str:
    head = '<?xml version="1.0"?>\n<sparql xmlns="http://www.w3.org/2005/sparql-results#">\n'
    if isinstance(answer, bool):
        truth = "true" if answer else "false"
        return f"{head}  <head/>\n  <boolean>{truth}</boolean>\n</sparql>\n"
    names = _names(answer)
    variables = "".join(f"<variable name={quoteattr(name)}/>" for name in names)
    lines = [f"{head}  <head>{variables}</head>\n  <results>\n"]
    for row in _terms(answer):
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
            # A bare carriage return would be read as a line feed.
            shown = escape(lexical, {"\r": "&#13;"})
            return f"<literal{kind}>{shown}</literal>"


def _ntriples(answer: Any, prefixes: Mapping[str, str]) -> str:
    columns = answer.table.columns
    end, separator = (pa.scalar(text, pa.large_string()) for text in (".\n", " "))
    lines = pc.binary_join_element_wise(*columns, end, separator)
    return "".join(lines.to_pylist())


def _turtle(answer: Any, prefixes: Mapping[str, str]) -> str:
    import pyoxigraph

    # Triples of one subject and property are written together if they follow each other.
    ordered = TripleTable(answer.table.sort_by([(n, "ascending") for n in _names(answer)]))
    triples = pyoxigraph.parse(
        _ntriples(ordered, prefixes).encode(), format=pyoxigraph.RdfFormat.N_TRIPLES
    )
    found = pyoxigraph.serialize(
        (quad.triple for quad in triples),
        format=pyoxigraph.RdfFormat.TURTLE,
        prefixes=dict(prefixes),
    )
    assert found is not None, "no file was named"
    return found.decode()


def _table(answer: Any, prefixes: Mapping[str, str]) -> str:
    if isinstance(answer, bool):
        return "yes\n" if answer else "no\n"
    names = _names(answer)
    shorter = sorted(prefixes.items(), key=lambda pair: -len(pair[1]))
    rows = [[_shown(term, shorter) for term in row] for row in _terms(answer)]
    return _aligned([[*names], *rows])


def _shown(term: Constant | None, prefixes: Iterable[tuple[str, str]]) -> str:
    from corollary.core.terms import text_of

    if term is None:
        return ""
    if isinstance(term, IRI):
        for prefix, iri in prefixes:
            if term.value.startswith(iri) and term.value[len(iri) :].isidentifier():
                return f"{prefix}:{term.value[len(iri) :]}"
    found = text_of(term)
    if isinstance(term, Literal) and term.datatype in (XSD + "integer", XSD + "decimal"):
        found = term.lexical
    return found if len(found) <= _WIDEST else f"{found[: _WIDEST - 1]}…"


def _aligned(lines: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        + "\n"
        for line in lines
    )


_WRITERS = {
    "table": _table,
    "csv": _csv,
    "tsv": _tsv,
    "json": _json,
    "xml": _xml,
    "nt": _ntriples,
    "ttl": _turtle,
}
