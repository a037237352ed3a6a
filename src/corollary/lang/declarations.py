"""Declarations: names and types of columns, and the files that a program reads and writes.

@relation edge(from: string, to: string, weight: decimal) .
@input edge "edges.csv" .
@output path "out/path.parquet" .
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Literal as OneOf
from typing import get_args

from corollary.errors import Diagnostic, InvalidProgram, Source, Span, nearest
from corollary.lang import xsd
from corollary.lang.syntax import IRI, Constant, Literal, Rule, name_problem
from corollary.lang.values import literal_of, value_of

ColumnType = OneOf[
    "string", "integer", "decimal", "double", "boolean", "date", "dateTime", "iri", "any"
]
COLUMN_TYPES: tuple[ColumnType, ...] = get_args(ColumnType)
EXPLICIT = "explicit"  # a column of results: whether the fact is explicit
# Names that other systems give to these types, for hints.
_SYNONYMS = {
    "symbol": "string", "str": "string", "text": "string", "varchar": "string",
    "int": "integer", "number": "integer", "long": "integer", "bigint": "integer",
    "numeric": "decimal", "float": "double", "real": "double", "bool": "boolean",
    "datetime": "dateTime", "timestamp": "dateTime", "uri": "iri", "term": "any",
}  # fmt: skip
_ABSOLUTE_IRI = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*+:[^\x00-\x20<>\"{}|^`\\]*+")
_BARE_NAME = re.compile(r"[^\W\d_](?:[\w\-]*[\w\-])?\Z")

# The datatypes of the literals that a column may hold: an integer is a decimal too.
_DATATYPES: dict[ColumnType, frozenset[str]] = {
    "string": frozenset({xsd.STRING}),
    "integer": frozenset(xsd.INTEGERS),
    "decimal": frozenset({*xsd.INTEGERS, xsd.DECIMAL}),
    "double": frozenset(xsd.NUMERIC),
    "boolean": frozenset({xsd.BOOLEAN}),
    "date": frozenset({xsd.DATE}),
    "dateTime": frozenset({xsd.DATE_TIME}),
}
_DATES = {"date": xsd.DATE, "dateTime": xsd.DATE_TIME}


@dataclass(frozen=True)
class Column:
    """The name and type of an argument.

    >>> str(Column("unit price", "decimal"))
    '"unit price": decimal'
    """

    name: str
    type: ColumnType = "any"

    def __str__(self) -> str:
        from corollary.lang.printer import quote  # imports this module

        name = self.name if _BARE_NAME.match(self.name) else quote(self.name)
        return f"{name}: {self.type}"


@dataclass(frozen=True)
class Relation:
    """`@relation name(column: type, …) .`"""

    name: str
    columns: tuple[Column, ...]
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    def __str__(self) -> str:
        return f"@relation {self.name}({', '.join(map(str, self.columns))}) ."


@dataclass(frozen=True)
class Input:
    """`@input relation "file" [header] .`: a file whose rows are facts."""

    relation: str
    file: str  # as written: relative to the folder
    header: bool = False  # whether the first row of a text file names the columns
    folder: str = ""  # of the program; empty for the working directory
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def path(self) -> Path:
        """The path of the file."""
        return Path(self.folder) / self.file

    def __str__(self) -> str:
        from corollary.lang.printer import quote

        return f"@input {self.relation} {quote(self.file)}{' header' * self.header} ."


@dataclass(frozen=True)
class Output:
    """`@output relation "file" .`: a file to which the facts of a relation are written."""

    relation: str
    file: str
    folder: str = ""
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def path(self) -> Path:
        """The path of the file."""
        return Path(self.folder) / self.file

    def __str__(self) -> str:
        from corollary.lang.printer import quote

        return f"@output {self.relation} {quote(self.file)} ."


@dataclass(frozen=True)
class Declarations:
    """All declarations of a program.

    >>> edge = Relation("edge", (Column("from", "string"), Column("to", "string")))
    >>> print(Declarations({"edge": edge}), end="")
    @relation edge(from: string, to: string) .
    """

    relations: Mapping[str, Relation] = field(default_factory=dict)
    inputs: tuple[Input, ...] = ()
    outputs: tuple[Output, ...] = ()

    @classmethod
    def of(cls, statements: Sequence[Relation | Input | Output]) -> Declarations:
        """Collect declarations; repeated ones count once."""
        relations = {one.name: one for one in statements if isinstance(one, Relation)}
        return cls(
            relations,
            tuple(dict.fromkeys(one for one in statements if isinstance(one, Input))),
            tuple(dict.fromkeys(one for one in statements if isinstance(one, Output))),
        )

    def statements(self) -> list[Relation | Input | Output]:
        """All declarations, in the order in which they are printed."""
        return [*self.relations.values(), *self.inputs, *self.outputs]

    def __or__(self, other: Declarations) -> Declarations:
        """The declarations of both; a relation that they declare differently is an error."""
        if not other:
            return self
        problems = [*_repeated([*self.relations.values(), *other.relations.values()])]
        if problems:
            raise InvalidProgram(problems)
        return Declarations.of([*self.statements(), *other.statements()])

    def __bool__(self) -> bool:
        return bool(self.relations or self.inputs or self.outputs)

    def __str__(self) -> str:
        return "".join(f"{statement}\n" for statement in self.statements())

    def columns_only(self) -> Declarations:
        """The declarations of columns, without those of files."""
        return Declarations(self.relations)

    def arities(self) -> dict[str, int]:
        """The arities of declared relations."""
        return {name: len(relation.columns) for name, relation in self.relations.items()}


NO_DECLARATIONS = Declarations()


def unknown_type(name: str) -> str:
    """The hint for a type that does not exist.

    >>> unknown_type("int")
    'did you mean integer?'
    """
    close = _SYNONYMS.get(name.lower()) or nearest(name, COLUMN_TYPES)
    return f"did you mean {close}?" if close else "types are " + ", ".join(COLUMN_TYPES)


def has_type(term: Constant, kind: ColumnType) -> bool:
    """Whether a column of a type may hold a term.

    >>> has_type(literal_of(1), "decimal"), has_type(literal_of(1), "string")
    (True, False)
    """
    if kind == "any":
        return True
    if kind == "iri":
        return isinstance(term, IRI)
    if not isinstance(term, Literal) or term.language is not None:
        return False
    if term.datatype not in _DATATYPES[kind]:
        return False
    if kind in _DATES:
        return xsd.read_date_time(term.lexical, term.datatype) is not None
    return value_of(term) is not None


def read_value(text: str, kind: ColumnType) -> Constant | None:
    """The term of a text in a column of a type other than `any`; None if the text does not fit.

    Numbers and times are in canonical form, so that equal values are equal terms.

    >>> read_value("007", "integer"), read_value("7 up", "integer")
    (Literal(lexical='7', datatype='http://www.w3.org/2001/XMLSchema#integer', language=None), None)
    """
    if kind == "string":
        return Literal(text)
    text = text.strip()
    match kind:
        case "integer" | "decimal" | "double":
            datatype = {"integer": xsd.INTEGER, "decimal": xsd.DECIMAL, "double": xsd.DOUBLE}[kind]
            value = value_of(Literal(text, datatype))
            return None if value is None else of_number(value, kind)
        case "boolean":
            truth = xsd.BOOLEANS.get(text.lower())
            return None if truth is None else literal_of(truth)
        case "date":
            found = xsd.read_date_time(text, xsd.DATE)
            return None if found is None else Literal(text, xsd.DATE)
        case "dateTime":
            if text[10:11] == " ":
                text = f"{text[:10]}T{text[11:]}"
            found = xsd.read_date_time(text, xsd.DATE_TIME)
            return None if found is None else Literal(_canonical_time(found, text), xsd.DATE_TIME)
        case "iri":
            if text.startswith("<") and text.endswith(">"):
                text = text[1:-1]
            return IRI(text) if _ABSOLUTE_IRI.fullmatch(text) else None
    raise AssertionError(f"no type of values: {kind}")


def _canonical_time(moment: xsd.DateTime, text: str) -> str:
    """In UTC if it has a time zone, and without trailing zeros."""
    if not 1 < moment.year < 9999:
        return text
    start = datetime(moment.year, moment.month, moment.day)
    whole = int(moment.second)
    start += timedelta(hours=moment.hour, minutes=moment.minute - (moment.offset or 0))
    fraction = format(moment.second - whole, "f")[2:].rstrip("0")
    seconds = start + timedelta(seconds=whole)
    point = "." if fraction else ""
    return f"{seconds.isoformat()}{point}{fraction}{'' if moment.offset is None else 'Z'}"


def of_number(value: object, kind: ColumnType) -> Constant | None:
    """The literal of a number in a column of numbers; None if the column cannot hold it.

    >>> of_number(2, "decimal"), of_number(2.5, "integer")
    (Literal(lexical='2.0', datatype='http://www.w3.org/2001/XMLSchema#decimal', language=None), None)
    """  # noqa: E501
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction | Decimal):
        return None
    if kind == "integer":
        return literal_of(value) if isinstance(value, int) else None
    if kind == "double":
        return literal_of(xsd.as_double(Fraction(value) if isinstance(value, Decimal) else value))
    try:
        # The shortest decimal that is this double, as it was probably written.
        exact = Fraction(repr(value)) if isinstance(value, float) else Fraction(value)
    except (ValueError, OverflowError):  # infinite, or not a number
        return None
    return literal_of(exact)


def validate_declarations(
    statements: Sequence[Relation | Input | Output], rules: Sequence[Rule]
) -> Iterator[Diagnostic]:
    """Yield all mistakes in declarations, and in the use of declared relations."""
    if not statements:
        return
    yield from _repeated([one for one in statements if isinstance(one, Relation)])
    relations: dict[str, Relation] = {}
    for one in statements:
        if isinstance(one, Relation):
            relations.setdefault(one.name, one)
            yield from _columns(one)
    reported: set[str] = set()
    for rule in rules:
        for atom in (rule.head, *(atom for atom, _ in rule.atoms())):
            declared = relations.get(atom.relation)
            if declared is None:
                continue
            if len(atom.terms) != len(declared.columns):
                if atom.relation not in reported:
                    reported.add(atom.relation)
                    yield Diagnostic(
                        "E230",
                        f"'{atom.relation}' has {len(atom.terms)} arguments here,"
                        f" but is declared with {len(declared.columns)}",
                        _span(atom.span or rule.span, declared),
                        f"its declaration is {declared}",
                    )
                continue
            for term, column in zip(atom.terms, declared.columns, strict=True):
                if isinstance(term, Constant) and not has_type(term, column.type):
                    shown = term.lexical if isinstance(term, Literal) else str(term)
                    yield Diagnostic(
                        "E231",
                        f"{shown!r} is no {column.type}, the type of '{column.name}'"
                        f" in '{atom.relation}'",
                        _span(atom.span or rule.span, declared),
                        f"its declaration is {declared}",
                    )
    known = {atom.relation for rule in rules for atom, _ in rule.atoms()}
    known |= {rule.head.relation for rule in rules} | set(relations)
    for one in statements:
        if not isinstance(one, Relation) and one.relation not in known:
            close = nearest(one.relation, known)
            word = "@input" if isinstance(one, Input) else "@output"
            yield Diagnostic(
                "E233",
                f"{word} names '{one.relation}', which no rule, fact or declaration mentions",
                _span(one.span, one),
                f"did you mean {close}?" if close else None,
            )


def _repeated(relations: Sequence[Relation]) -> Iterator[Diagnostic]:
    first: dict[str, Relation] = {}
    for one in relations:
        known = first.setdefault(one.name, one)
        if known != one:
            yield Diagnostic(
                "E232",
                f"'{one.name}' is declared twice, with different columns",
                _span(one.span, one),
                f"the other declaration is {known}",
            )


def _columns(relation: Relation) -> Iterator[Diagnostic]:
    seen: set[str] = set()
    if (problem := name_problem(relation.name)) is not None:
        yield Diagnostic("E511", problem[0], _span(relation.span, relation), problem[1])
    for column in relation.columns:
        if column.name in seen:
            message = f"'{relation.name}' has two columns with the name '{column.name}'"
            yield Diagnostic("E234", message, _span(relation.span, relation))
        elif not column.name.strip() or column.name == EXPLICIT:
            message = f"{column.name!r} cannot be the name of a column"
            hint = "results have a column 'explicit' of their own" if column.name.strip() else None
            yield Diagnostic("E234", message, _span(relation.span, relation), hint)
        seen.add(column.name)


def _span(span: Span | None, statement: object) -> Span:
    if span is not None:
        return span
    text = str(statement)
    return Span(Source("<declaration>", text), 0, len(text))
