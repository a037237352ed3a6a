"""Convert input data of a knowledge base to tables of ids.

Input facts are text (the rule language, or Turtle), atoms and programs, triples and rows, data
frames, rdflib graphs, or files. The reader remembers the prefixes that texts declare.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from decimal import Decimal
from fractions import Fraction
from itertools import zip_longest
from pathlib import Path
from typing import TypedDict, Unpack, cast

import numpy as np
import pyarrow as pa

from corollary.core.dictionary import Dictionary
from corollary.core.notices import Notices, gathering
from corollary.core.tables import Tables, encode, joined
from corollary.core.terms import canonical, term_of, text_of
from corollary.errors import UNREADABLE, InvalidInput, InvalidProgram, Source
from corollary.files import facts as files
from corollary.files import tables as file_tables
from corollary.files import typed
from corollary.files.cells import read_cell
from corollary.files.named import table_of
from corollary.files.shapes import MalformedRows, Shape
from corollary.files.values import check_types, term_of_value
from corollary.knowledge_base.graphs import check_graph
from corollary.knowledge_base.imports import ImportMap, Imports
from corollary.lang.declarations import (
    NO_DECLARATIONS,
    ColumnType,
    Declarations,
    Relation,
    validate_declarations,
)
from corollary.lang.parser import WELL_KNOWN_PREFIXES, Parser
from corollary.lang.printer import Printer
from corollary.lang.program import PROGRAM_SUFFIXES, Program
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import (
    IRI,
    QUAD_COLUMNS,
    QUADS,
    TRIPLE,
    TRIPLE_COLUMNS,
    TRIPLES_NAME,
    TYPE,
    XSD,
    Atom,
    BlankNode,
    Constant,
    Literal,
    Rule,
    Variable,
    name_problem,
)
from corollary.lang.validate import validate
from corollary.lang.values import literal_of
from corollary.rdf import formats
from corollary.rdf.files import format_of, format_of_named
from corollary.rdf.frames import constant_of
from corollary.rdf.triples import SAMPLES, OnError, OnProgress, Skipped, Triples
from corollary.rdf.vocabulary import IMPORTS
from corollary.reasoning.engines import table_ids

# The start of a text in the rule language: an atom such as p(…), or [?s, …]. The quantifiers are
# possessive, so that untrusted text cannot cause backtracking.
_IGNORED = r"(?:\s++|#[^\n]*+\n|%[^\n]*+\n|//[^\n]*+\n|@?prefix\s++[^\s<]*+\s*+<[^>]*+>\s*+\.?)*+"
_RULE_LANGUAGE = re.compile(
    rf"{_IGNORED}(?:(?:<[^>\s]*+>|[\w:.\-]++)\s*+\(|\[\s*+[^\s,\]]++\s*+,|\w++\s*+\.)",
    re.IGNORECASE,
)
_NAME = re.compile(r"[^\W\d]\w*\Z")
_IMPORTS = Predicate(TRIPLE, IMPORTS)
_PYOXIGRAPH = ("NamedNode", "BlankNode", "Literal")  # term classes that convert directly
_PYOXIGRAPH_STATEMENTS = ("Triple", "Quad")
_TRIPLE_NAMES = (TRIPLE_COLUMNS, ("s", "p", "o"))


class InputOptions(TypedDict, total=False):
    """Options for malformed statements and large files."""

    on_error: OnError
    limit_input_bytes: int | None


class FileOptions(InputOptions, total=False):
    """Options for reading files, without those for imports."""

    on_progress: OnProgress | None
    base_iri: str | None  # of relative IRIs, instead of the address of the file


class ReadOptions(FileOptions, total=False):
    """Options for reading files; see `KnowledgeBase.load`."""

    import_map: ImportMap | None
    fetch_imports: bool  # from the web, if no file has them
    graph: object  # that statements are put into, instead of the default graph


class DataReader:
    """Reads facts for one transaction.

    It extends `arities`, `prefixes` and `declarations` as it reads.
    """

    def __init__(
        self,
        dictionary: Dictionary,
        prefixes: Mapping[str, str],
        arities: Mapping[str, int],
        declarations: Declarations = NO_DECLARATIONS,
        **options: Unpack[ReadOptions],
    ) -> None:
        self.dictionary = dictionary
        self.prefixes = dict(prefixes)
        self.arities = dict(arities)
        self.declarations = declarations
        self.skipped = 0  # malformed RDF statements, and rows that do not fit their declaration
        self.samples: tuple[Skipped, ...] = ()
        self.notices = Notices()  # notices about the input, which the commit turns into warnings
        self.imported: set[str] = set()  # imports whose documents were found and read
        self._imports: dict[str, None] = {}
        self._options: FileOptions = options

    def facts(self, data: object, relation: str | None = None) -> Tables:
        """Read facts in any form except files."""
        with gathering(self.notices):
            _refuse_relation(relation)
            if isinstance(data, str) and _module(data) == "builtins":
                return self._text(data, relation)
            if isinstance(data, Program):
                _refuse_rules(data.rules)
                return self._atoms(data.facts)
            if isinstance(data, Atom):
                return self._atoms([data])
            if isinstance(data, Triples):  # encoded with the same dictionary
                return data.tables(self.dictionary)
            if _module(data) == "pyoxigraph" and type(data).__name__ == "Store":
                return self.facts(list(cast("Iterable[object]", data)))
            if isinstance(data, Mapping) and relation is None:
                return joined([self._relation(name, rows) for name, rows in data.items()])
            table = _arrow(data)
            if table is not None:
                return self._frame(table, relation)
            if _module(data) == "rdflib" and hasattr(data, "triples"):
                return self._rdf(cast("formats.Source", data), keep_labels=True)
            if _is_row(data):
                return self._atoms([self._row(data, relation)])
            if isinstance(data, Iterable) and not isinstance(data, bytes | Mapping):
                atoms = [x if isinstance(x, Atom) else self._row(x, relation) for x in data]
                return self._atoms(atoms)
            raise InvalidInput(
                "E341",
                f"a value of type {type(data).__name__} holds no facts",
                "give text, triples, atoms, or an Arrow, pandas or Polars table",
            )

    def sources(
        self,
        sources: Iterable[object],
        relation: str | None = None,
        *,
        keep_labels: bool = False,
        **options: Unpack[ReadOptions],
    ) -> list[Tables | Program]:
        """Read files, folders and all that `facts` accepts, except text; pass programs through."""
        _refuse_relation(relation)
        fetches = options.pop("fetch_imports", False)
        imports = Imports(options.pop("import_map", None), fetches=fetches)
        options.pop("graph", None)
        self._options = cast("FileOptions", options)
        found: list[Tables | Program] = []
        rdf: dict[Path, None] = {}  # deduplicated, and read together by several threads
        with closing(imports), gathering(self.notices):
            for source in sources:
                if not isinstance(source, str | Path):
                    found.append(self.facts(source, relation))
                    continue
                for path in paths_of(source):
                    if relation is None and _is_rdf(path):
                        rdf.setdefault(path)
                    else:
                        found += self._file(path, relation)
            if rdf:
                found.append(self._rdf(list(rdf), keep_labels=keep_labels))
                if not keep_labels:  # deletions concern the files that are named
                    found += self._imported(imports, rdf)
        return found

    def _imported(self, imports: Imports, read: dict[Path, None]) -> Iterator[Tables]:
        """Read the documents that the files import, and those that these import."""
        for documents in imports.documents(list(read), lambda: self._imports):
            yield self._rdf(documents, keep_labels=False)
        self.imported |= imports.resolved

    def statements(self, text: str) -> tuple[list[Rule], list[Atom]]:
        """Parse a text in the rule language into rules and facts."""
        source = Source("<text>", text)
        parser = Parser(source, self.prefixes)
        statements = list(parser.statements())
        problems = parser.problems + validate(statements, Printer(parser.prefixes), whole=False)
        problems += validate_declarations(parser.declarations, statements)
        if problems:
            raise InvalidProgram(problems)
        self._declare(parser.prefixes)
        if parser.declarations:
            self.declare(Declarations.of(parser.declarations))
        rules = [statement for statement in statements if statement.body]
        return rules, [statement.head for statement in statements if not statement.body]

    def check_arity(self, relation: str, arity: int) -> None:
        """Check that a relation has a valid name and the same arity as before."""
        is_known = relation in self.arities or relation == QUADS
        if not is_known and (problem := name_problem(relation)) is not None:
            raise InvalidInput("E511", *problem)
        known = self.arities.setdefault(relation, arity)
        if known != arity:
            raise InvalidInput(
                "E203",
                f"'{relation}' has {known} argument{'s' * (known != 1)} in the knowledge base,"
                f" but {arity} here",
                "a relation keeps its number of arguments",
            )

    def declare(self, declarations: Declarations) -> None:
        """Declare the columns of relations; files are read with the program that names them."""
        for one in (*declarations.inputs, *declarations.outputs):
            raise InvalidInput(
                "E354",
                f"{one} stands in a text, not in a program that is loaded",
                "give the program to KnowledgeBase or kb.load, or the file to kb.load",
            )
        for name, relation in declarations.relations.items():
            self.check_arity(name, len(relation.columns))
        self.declarations = self.declarations | declarations

    # -- text ----------------------------------------------------------------------------------

    def _text(self, text: str, relation: str | None) -> Tables:
        if relation is not None:
            raise InvalidInput("E341", "a text names its relations itself", "leave relation out")
        rules_first = _RULE_LANGUAGE.match(text) is not None
        ways = (self._rule_text, self._turtle) if rules_first else (self._turtle, self._rule_text)
        try:
            return ways[0](text)
        except InvalidInput as error:
            if error.code == "E341":
                raise
            try:
                return ways[1](text)
            except InvalidInput:
                if not text.rstrip().endswith("."):  # one fact, without its full stop
                    with suppress(InvalidInput):
                        return self._text(f"{text} .", relation)
                raise error from None  # in the syntax that the text resembles

    def _rule_text(self, text: str) -> Tables:
        rules, facts = self.statements(text)
        _refuse_rules(rules)
        return self._atoms(facts)

    def _turtle(self, text: str) -> Tables:
        # Blank nodes keep their labels, so that a text can delete what another one inserted.
        prefixes = WELL_KNOWN_PREFIXES | self.prefixes
        return self._triples(
            formats.read_text(
                text,
                self.dictionary,
                format="trig" if "{" in text else "turtle",
                name="<text>",
                keep_labels=True,
                prefixes=prefixes,
                graphs=True,
            )
        )

    def _rdf(self, source: formats.Source | list[Path], *, keep_labels: bool) -> Tables:
        found = formats.read(
            source, self.dictionary, keep_labels=keep_labels, graphs=True, **self._options
        )
        self.skipped += found.skipped
        self.samples = (*self.samples, *found.samples)[:SAMPLES]
        return self._triples(found)

    def _triples(self, triples: Triples) -> Tables:
        self._declare(triples.prefixes)
        tables = triples.tables(self.dictionary)
        if _IMPORTS in tables:
            texts = self.dictionary.texts(np.unique(tables[_IMPORTS][:, 1])).to_pylist()
            self._imports.update(dict.fromkeys(t[1:-1] for t in texts if t.startswith("<")))
        return tables

    def _declare(self, prefixes: Mapping[str, str]) -> None:
        """Declare prefixes; known prefixes keep their meaning."""
        self.prefixes = {**prefixes, **self.prefixes}

    # -- values ----------------------------------------------------------------------------------

    def _atoms(self, atoms: Iterable[Atom]) -> Tables:
        atoms = list(atoms)
        for atom in atoms:
            if any(isinstance(term, Variable) for term in atom.terms):
                text = Printer(self.prefixes).atom(atom)
                raise InvalidInput("E208", f"a fact has constants only, but {text} has variables")
            if atom.relation == QUADS:
                check_graph(cast("Constant", atom.terms[3]))
            elif atom.relation != TRIPLE:
                self.check_arity(atom.relation, len(atom.terms))
                check_types(atom, self._declared(atom.relation))
            if atom.relation in (TRIPLE, QUADS) and not isinstance(atom.terms[1], IRI):
                text = Printer(self.prefixes).atom(atom)
                raise InvalidInput("E213", f"the predicate of {text} is not an IRI")
        return encode(atoms, self.dictionary)

    def _row(self, row: object, relation: str | None) -> Atom:
        if _module(row) == "pyoxigraph" and type(row).__name__ in _PYOXIGRAPH_STATEMENTS:
            names: tuple[str, ...] = TRIPLE_COLUMNS
            if type(getattr(row, "graph_name", None)).__name__ in _PYOXIGRAPH:
                names = (*names, "graph_name")
            row = tuple(getattr(row, name) for name in names)
        if not isinstance(row, tuple | list):
            raise InvalidInput("E341", f"expected a tuple of terms, found {row!r}")
        if relation is not None:
            return Atom(relation, tuple(self._cells(row, relation)))
        if len(row) not in (3, 4):
            raise InvalidInput(
                "E341",
                f"expected a triple or a quad, found {len(row)} terms",
                "name the relation of other rows: relation='edge'",
            )
        subject, predicate, object_, *graph = row
        terms = (self.term(subject), self._predicate(predicate), self.term(object_))
        if not graph or graph[0] is None:
            return Atom(TRIPLE, terms)
        return Atom(QUADS, (*terms, self.graph(graph[0])))

    def _cells(self, row: Sequence[object], relation: str) -> Iterator[Constant]:
        """Convert a row as one of a data frame; `_atoms` refuses what does not fit."""
        declared = self._declared(relation)
        kinds = [column.type for column in declared.columns] if declared else []
        for value, kind in zip_longest(row, kinds[: len(row)], fillvalue="any"):
            typed_term = None if kind == "any" else term_of_value(value, cast("ColumnType", kind))
            yield typed_term or self.term(value, cell=True)

    def graph(self, value: object) -> Constant:
        """Convert the name of a graph; a text without brackets is an IRI or a prefixed name."""
        if hasattr(value, "identifier"):  # a graph of rdflib
            value = value.identifier
        if type(value) is str and not value.startswith(("<", "_:", '"')):
            prefix, colon, _ = value.partition(":")
            if colon and prefix not in WELL_KNOWN_PREFIXES | self.prefixes:
                value = IRI(value)
        return check_graph(self.term(value))

    def _predicate(self, value: object) -> Constant:
        return TYPE if type(value) is str and value == "a" else self.term(value)

    def term(self, value: object, *, cell: bool = False) -> Constant:
        """Convert a Python value to a term; strings are in the rule language, or cells."""
        if isinstance(value, IRI | BlankNode | Literal):
            return canonical(value)
        if _module(value) == "rdflib":
            return constant_of(value)
        if _module(value) == "pyoxigraph" and type(value).__name__ in _PYOXIGRAPH:
            return term_of(str(value))
        if isinstance(value, str):
            return read_cell(value) if cell else self._written(value)
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, bool | int | float | Fraction):
            return literal_of(value)
        if isinstance(value, Decimal) and value.is_finite():
            return Literal(format(value, "f"), XSD + "decimal")
        raise InvalidInput("E341", f"{value!r} is not a term", "terms are texts, numbers, booleans")

    def _written(self, text: str) -> Constant:
        parser = Parser(Source("<term>", text), self.prefixes)
        found = parser.read_whole(Parser.constant)
        if found is None or parser.problems:
            raise InvalidProgram(parser.problems)
        return found

    # -- tables ----------------------------------------------------------------------------------

    def _relation(self, name: object, rows: object) -> Tables:
        if not isinstance(name, str):
            raise InvalidInput("E341", f"{name!r} is not the name of a relation")
        return self.facts(rows, None if name == TRIPLES_NAME else name)

    def _shape(self, relation: str, arity: int) -> Shape:
        return Shape(relation, arity, self._declared(relation))

    def _declared(self, relation: str) -> Relation | None:
        found = self.declarations.relations.get(relation)
        return found if found is not None and found.columns else None

    def _rows(self) -> MalformedRows:
        return MalformedRows(skip=self._options.get("on_error") == "skip")

    def _skip(self, rows: MalformedRows) -> None:
        """Report rows that were skipped."""
        self.skipped += rows.count
        self.samples = (*self.samples, *(Skipped(*row) for row in rows.samples))[:SAMPLES]

    def _frame(self, table: pa.Table, relation: str | None) -> Tables:
        if relation is None:
            names = next((n for n in _TRIPLE_NAMES if {*n} <= {*table.column_names}), None)
            if names is None:
                raise InvalidInput(
                    "E341",
                    "the table has no columns subject, predicate and object",
                    "name the relation of other tables: relation='edge'",
                )
            cells = [_written(table.column(name), name) for name in names]
            triples = pa.table(cells, names=list(_TRIPLE_NAMES[0]))
            if (graph := QUAD_COLUMNS[3]) in table.column_names:
                triples = triples.append_column(graph, table.column(graph))
            return self._rdf(triples, keep_labels=True)
        declared = self._declared(relation)
        if declared is not None:
            name = f"<{relation}>"
            shape = Shape(relation, len(declared.columns), declared)
            places = shape.places(table.column_names, name)
            for place in places:
                _refuse_type(table.column(place), table.column_names[place])
            rows = self._rows()
            columns_of = [table.column(place) for place in places]
            found = table_of(columns_of, shape, rows, name, places=places)
            self._skip(rows)
            self.check_arity(relation, shape.arity)
            return table_ids(found, shape.arity, self.dictionary)
        for field in table.schema:
            _refuse(table.column(field.name), field.name)
        columns = [file_tables.term_column(column) for column in table.columns]
        self.check_arity(relation, len(columns))
        return table_ids(file_tables.Table(relation, columns), len(columns), self.dictionary)

    # -- files -------------------------------------------------------------------------------------

    def _file(self, path: Path, relation: str | None) -> list[Tables | Program]:
        if path.suffix in PROGRAM_SUFFIXES:
            return self._program(Program.load(path))
        if not path.exists():
            raise InvalidInput("E301", f"there is no file {path}", UNREADABLE, file=str(path))
        if files.is_table(path):
            return [self._table(path, relation or _relation_of(path))]
        raise InvalidInput(
            "E341",
            f"{path} is neither rules, nor RDF, nor a table of facts",
            "the name must end in .dl, .srl, .ttl, .nt, .rdf, .jsonld, .facts, .csv or .parquet",
            file=str(path),
        )

    def _program(self, program: Program) -> list[Tables | Program]:
        """A program and the facts of its files."""
        self._declare(program.prefixes)
        self.declare(program.declarations.columns_only())
        rows, limit = self._rows(), self._options.get("limit_input_bytes")
        found: list[Tables | Program] = [program]
        for one in program.declarations.inputs:
            table = files.read_input(one, program, limit_input_bytes=limit, rows=rows)
            arity = program.arities[one.relation]
            self.check_arity(one.relation, arity)
            found.append(table_ids(table, arity, self.dictionary))
        self._skip(rows)
        return found

    def _table(self, path: Path, relation: str) -> Tables:
        arity, limit = self.arities.get(relation), self._options.get("limit_input_bytes")
        if arity is None:
            arity = files.columns_in(path, limit_input_bytes=limit)
            if not arity:  # an empty file does not determine the arity
                return joined([])
        rows = self._rows()
        shape = self._shape(relation, arity)
        table = files.read_table(path, shape, limit_input_bytes=limit, rows=rows)
        self._skip(rows)
        self.check_arity(relation, arity)
        return table_ids(table, arity, self.dictionary)


def _relation_of(path: Path) -> str:
    """Derive the relation from a file's name, if it is a valid name in rules."""
    name = files.relation_of(path)
    problem = name_problem(name)
    if problem is None and not _NAME.match(name):
        problem = (f"'{name}' cannot be the name of a relation", "")
    if problem is not None:
        raise InvalidInput(
            "E511",
            problem[0],
            "rename the file after its relation: letters, digits and underscores, no digit first",
            file=str(path),
        )
    return name


def _refuse_relation(relation: str | None) -> None:
    if relation is not None and not _NAME.match(relation):
        raise InvalidInput("E341", f"'{relation}' cannot be the name of a relation")


def paths_of(source: str | Path) -> Iterator[Path]:
    """List the files of a path, a folder or a glob pattern."""
    path = Path(source)
    if path.exists() or not glob.has_magic(str(source)):
        found = [path]
    else:
        found = [Path(name) for name in sorted(glob.glob(str(source), recursive=True))]
        if not found:
            raise InvalidInput("E301", f"no file matches {source}", UNREADABLE, file=str(source))
    for path in found:
        yield from _folder(path) if path.is_dir() else [path]


def _is_rdf(path: Path) -> bool:
    """Whether a file that is named is RDF; OWL documents may have any other suffix."""
    if path.suffix in PROGRAM_SUFFIXES or files.is_table(path):
        return False
    return format_of_named(path) is not None


def _folder(folder: Path) -> Iterator[Path]:
    """List the RDF files and tables of a folder, recursively; rule files must be named."""
    for path in sorted(folder.rglob("*")):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        known = format_of(path) is not None or files.is_table(path)
        if known and not hidden and path.is_file():
            yield path


def _is_row(data: object) -> bool:
    """Test whether data are one row, such as a triple, rather than several."""
    if isinstance(data, tuple | list):
        first = data[0] if data else ()
        is_statement = type(first).__name__ in _PYOXIGRAPH_STATEMENTS
        return not isinstance(first, tuple | list | Atom) and not is_statement
    return _module(data) == "pyoxigraph" and type(data).__name__ in _PYOXIGRAPH_STATEMENTS


def _module(value: object) -> str:
    return type(value).__module__.split(".")[0]


def _refuse_type(column: pa.ChunkedArray, name: str) -> None:
    if not typed.readable(column.type):
        raise InvalidInput(
            "E341", f"expected texts, numbers or booleans in '{name}', found {column.type}"
        )


def _refuse(column: pa.ChunkedArray, name: str) -> None:
    _refuse_type(column, name)
    if column.null_count:
        raise InvalidInput("E341", f"expected a value in every row of '{name}'")


def _written(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """Convert a column of triples to text; numbers and booleans become N-Triples literals."""
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return column
    _refuse(column, name)
    terms = file_tables.term_column(column)
    texts = pa.array([text_of(term) for term in terms.terms], pa.large_string())
    return pa.chunked_array([texts.take(pa.array(terms.indices))])


def _refuse_rules(rules: Iterable[Rule]) -> None:
    for rule in rules:
        text = Printer().rule(rule)
        raise InvalidInput("E341", f"expected facts, found the rule {text}", "use add_rules")


def _arrow(data: object) -> pa.Table | None:
    """Convert a data frame to an Arrow table; None if the value is not a data frame."""
    if _module(data) == "pandas" and hasattr(data, "columns"):
        table = pa.Table.from_pandas(data, preserve_index=False)
    elif isinstance(data, pa.Table):
        table = data
    elif hasattr(data, "__arrow_c_stream__"):
        table = pa.table(data)
    else:
        return None
    for number, field in enumerate(table.schema):
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        plain = pa.string() if pa.types.is_string_view(kind) else kind
        if plain != field.type:
            column = table.column(number).cast(plain)
            table = table.set_column(number, field.name, column)
    return table
