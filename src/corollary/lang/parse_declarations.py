"""Parse `@relation`, `@input` and `@output`, and recognize directives of Soufflé."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from corollary.errors import Diagnostic, Span
from corollary.lang.declarations import (
    COLUMN_TYPES,
    Column,
    ColumnType,
    Input,
    Output,
    Relation,
    unknown_type,
)

if TYPE_CHECKING:
    from corollary.lang.lexer import Token
    from corollary.lang.parser import Parser

TAGS = ("@relation", "@input", "@output")
_DIRECTIVES = {
    "decl": "columns may be declared: @relation edge(from: string, to: string) .",
    "input": 'write @input edge "edge.csv" . , or give a folder by --facts',
    "output": 'write @output path "path.csv" . , or give --output path',
    "printsize": "corollary run --json counts the facts of each relation",
    "limitsize": "corollary run --limit-facts stops when there are more facts",
    "type": "there are no declared types of values: @relation names the type of each column",
    "functor": "functions are those of SPARQL",
    "comp": "there are no components: load several programs together",
    "init": "there are no components: load several programs together",
    "pragma": "options are flags of the command line",
    "plan": "the engine chooses the order of joins",
}  # fmt: skip


def is_directive(parser: Parser) -> bool:
    """Whether the next statement is a directive of Soufflé, such as `.decl`."""
    token, after = parser._token, parser._next
    return token.kind == "." and after.kind == "word" and after.start == token.end


def skip_directive(parser: Parser) -> None:
    """Report a directive of Soufflé, and skip its line: it ends without a full stop."""
    dot, word = parser._token, parser._next
    hint = _DIRECTIVES.get(word.text, "relations need no directives")
    span = parser._span(dot.start, word.end)
    parser.problems.append(
        Diagnostic(
            "E120",
            f"'.{word.text[:40]}' is a directive of Soufflé",
            span,
            f"{hint}; see 'From Soufflé' in the documentation",
        )
    )
    line = span.line
    while (token := parser._token).kind != "end":
        if parser.source.position(token.start)[0] != line:
            return
        parser._advance()


def read_declaration(parser: Parser) -> Relation | Input | Output:
    """Read one declaration, which begins with one of `TAGS`."""
    tag = parser._advance()
    name = parser._token
    if name.kind != "word":
        parser._unexpected(f"the name of a relation after {tag.text}")
    parser._advance()
    if tag.text == "@relation":
        columns = _columns(parser)
        return Relation(name.text, columns, _end(parser, tag.start))
    path = parser._token
    if path.kind != "string":
        parser._unexpected("the name of a file in quotes")
    file = parser._string().lexical
    folder = str(Path(parser.source.name).parent)
    if tag.text == "@output":
        return Output(name.text, file, folder, _end(parser, tag.start))
    header = parser._token
    has_header = header.kind == "word" and header.text == "header"
    if has_header:
        parser._advance()
    return Input(name.text, file, has_header, folder, _end(parser, tag.start))


def _end(parser: Parser, start: int) -> Span:
    """Read the full stop of a declaration; its text."""
    parser._expect(".", "'.' after a declaration")
    return parser._span(start, parser._end)


def _columns(parser: Parser) -> tuple[Column, ...]:
    parser._expect("(")
    columns: list[Column] = []
    if parser._accept(")"):
        return ()
    while True:
        columns.append(_column(parser))
        if not parser._accept(","):
            break
    parser._expect(")", "',' or ')' after a column")
    return tuple(columns)


def _column(parser: Parser) -> Column:
    """`name: type`, or the name alone; the lexer sees `name:` as a prefix."""
    token = parser._token
    name, kind = token.text, ""
    if token.kind == "string":
        name = parser._string().lexical
        token = parser._token
        if token.kind != "prefixed" or not token.text.startswith(":"):
            return Column(name)
        kind = parser._advance().text[1:]
    elif token.kind == "prefixed":
        name, _, kind = parser._advance().text.partition(":")
    elif token.kind == "word":
        parser._advance()
        token = parser._token
        if token.kind != "prefixed" or token.text[0] != ":":
            return Column(name)
        kind = parser._advance().text[1:]
    else:
        parser._unexpected("a column such as 'name: string'")
    return Column(name, _type(parser, kind, token))


def _type(parser: Parser, kind: str, place: Token) -> ColumnType:
    if not kind:
        place = parser._token
        if place.kind != "word":
            parser._unexpected("the type of a column")
        kind = parser._advance().text
    for known in COLUMN_TYPES:
        if kind == known:
            return known
    parser._fail("E235", f"'{kind[:40]}' is not a type of columns", place, unknown_type(kind))
