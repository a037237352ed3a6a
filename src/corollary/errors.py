"""Errors for users: a stable code, a place, one plain sentence, a hint.

A user's mistake ends in a subclass of `CorollaryError`, never in another Python exception.
`InvalidInput` means that the input is wrong (exit status 2), `OperationFailed` that a correct
request failed (exit status 1).
"""

from __future__ import annotations

import difflib
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

# Every error code with its one-line meaning; docs/errors.md explains each with an example, and a
# test keeps the two lists equal.
CODES: dict[str, str] = {
    "E101": "unexpected text",
    "E102": "string without a closing quote",
    "E103": "malformed escape",
    "E104": "malformed IRI",
    "E105": "expression nested too deeply",
    "E106": "several facts in one statement",
    "E107": "constant that is not quoted, an IRI or a lower-case symbol",
    "E108": "unexpected character",
    "E120": "directive of Soufflé",
    "E121": "condition outside of FILTER",
    "E123": "triple term or reification",
    "E124": "variable of a SHACL rule used before it has a value, or given two",
    "E125": "import that is not a local file",
    "E126": "DATA pattern over triples that rules derive",
    "E127": "rule for the nodes of a SHACL shape",
    "E201": "unknown prefix",
    "E202": "unsafe variable",
    "E203": "relation used with different numbers of arguments",
    "E204": "IRI atom without one or two arguments",
    "E205": "negation inside recursion",
    "E206": "aggregation inside recursion",
    "E208": "fact with a variable",
    "E209": "type error in a filter",
    "E210": "aggregate variable that no atom of the aggregate binds",
    "E211": "aggregate result variable that is already in use",
    "E212": "variable local to an aggregate used outside it",
    "E213": "term that cannot occur in a triple",
    "E214": "anonymous variable whose value is needed",
    "E215": "function that rules cannot have",
    "E216": "MIN or MAX that a rule cannot have",
    "E217": "recursion without a minimum or maximum",
    "E230": "relation used with other arguments than declared",
    "E231": "constant of another type than declared",
    "E232": "relation declared twice",
    "E233": "file of a relation that the program does not mention",
    "E234": "invalid name of a column",
    "E235": "unknown type of a column",
    "E301": "file or folder that cannot be read",
    "E302": "file that is not UTF-8 text",
    "E303": "program without rules or facts",
    "E304": "no facts file for a relation",
    "E305": "malformed row in a facts file",
    "E306": "damaged compressed file",
    "E307": "rule that is not in the program",
    "E308": "unknown algorithm",
    "E309": "algorithm that does not support the program",
    "E310": "uncommitted change",
    "E311": "unknown rule set",
    "E312": "program that equality by representatives does not support",
    "E313": "conflicting or missing options",
    "E314": "unknown engine or equality strategy",
    "E320": "malformed RDF statement",
    "E321": "unknown RDF syntax",
    "E322": "unsupported source of triples",
    "E323": "XML entity that is not a short text",
    "E324": "term, line or row that is too long",
    "E325": "input nested too deeply",
    "E326": "input file above the limit",
    "E327": "input that expands too much",
    "E330": "invalid scale of a dataset",
    "E340": "unknown fact to explain",
    "E341": "data in an unsupported form",
    "E343": "transaction that is already open or already closed",
    "E344": "unknown relation",
    "E345": "argument of a wrong type",
    "E346": "copy of a knowledge base",
    "E347": "closed knowledge base",
    "E349": "graph that cannot be used",
    "E350": "value of another type than declared",
    "E351": "table without a declared column",
    "E352": "result of another type than declared",
    "E353": "file name without a format of tables",
    "E354": "file declared outside of a program",
    "E355": "value that improves along its own recursion",
    "E360": "why-not of a fact",
    "E361": "malformed OWL document",
    "E362": "malformed XML catalog",
    "E401": "file or folder that cannot be written",
    "E402": "no usable Java",
    "E403": "optional dependency not installed",
    "E404": "more terms than ids",
    "E405": "stopped by a limit",
    "E406": "not enough memory",
    "E407": "wrong materialization",
    "E408": "Spark in a forked process",
    "E409": "more rule instances than can be counted",
    "E410": "loops that cannot be compiled",
    "E430": "file that already exists",
    "E500": "no store at a path",
    "E501": "store of a newer format",
    "E502": "another writer has changed the store",
    "E503": "damaged file of a store",
    "E504": "store that is not writable",
    "E505": "unknown version of a store",
    "E506": "folder that cannot become a store",
    "E507": "operation that a store does not support",
    "E508": "malformed RDF Patch",
    "E509": "store that differs from its rematerialization",
    "E510": "unsupported location of a store",
    "E511": "invalid name of a relation",
    "E512": "object store that does not serve a request",
    "E513": "invalid setting of a remote store",
    "E514": "version that cannot be reverted",
    "E515": "target of a clone that is not a folder",
    "E516": "store that changed while it was copied",
    "E517": "store that cannot be purged",
    "E518": "nothing to purge",
    "E540": "failed stage on Spark",
    "E541": "source that does not exist",
    "E542": "no space left on a disk of the cluster",
    "E543": "URL without a Spark connector",
    "E544": "access denied",
    "E545": "host that cannot be reached",
    "E546": "DataFrame without the columns of facts",
    "E548": "option that the data source rdf does not have",
    "E549": "tables that tasks have not written completely",
    "E550": "setting that a running Spark cannot change",
    "E551": "Python of Spark's workers without Corollary",
    "E552": "source of a synchronization that does not fit",
    "E553": "Delta table that cannot be read",
    "E554": "stream without what it needs",
    "E555": "option that the data source corollary does not have",
    "E560": "mistake in a SPARQL query",
    "E561": "part of SPARQL that is not supported",
    "E562": "format that does not fit the form of a query",
    "E563": "failed query",
    "E564": "conflicting arguments of a query",
    "E565": "format that cannot be written to a folder",
    "E566": "output folder that already exists",
    "E567": "value that is too large",
    "E568": "update where a query is expected",
    "E569": "document that LOAD may not read",
    "E570": "document that cannot be fetched",
    "E580": "unknown mode",
    "E581": "hybrid mode with representatives of equal terms",
    "E582": "patterns to materialize without hybrid mode",
    "E583": "query plan without hybrid mode",
    "E595": "more computed values than Spark's driver takes",
    "E600": "malformed request",
    "E601": "content of a request in an unsupported format",
    "E602": "no acceptable format of an answer",
    "E603": "missing or unknown token",
    "E604": "request that its role does not allow",
    "E605": "request from a foreign page",
    "E606": "request that is too large",
    "E607": "answer with too many rows",
    "E608": "too many requests",
    "E609": "service that is not ready",
    "E610": "unusable file of tokens",
    "E611": "public address without tokens",
    "E612": "address that cannot be listened on",
    "E613": "unknown path or method",
    "E614": "unexpected failure of the service",
    "E615": "graph that does not exist",
}


# Every code of a warning, with its one-line meaning; docs/warnings.md explains each.
WARNINGS: dict[str, str] = {
    "W101": "named graphs merged into one",
    "W102": "imports that are not followed",
    "W103": "axioms that no rule reads",
    "W104": "groups of an aggregate without a result",
    "W105": "first row of a table that looks like a header",
    "W107": "relation that nothing defines",
    "W110": "computed value that flows back into its own recursion",
}


UNREADABLE = "check the name, and that you may read it"  # the hint of E301


class CorollaryWarning(UserWarning):
    """Part of the input has no effect, or an unexpected one."""

    def __init__(self, code: str, message: str, hint: str, *, count: int, file: str | None) -> None:
        super().__init__(code, message, hint, count, file)
        self.code, self.message, self.hint = code, message, hint
        self.count, self.file = count, file

    def __str__(self) -> str:
        return f"{self.code}: {self.message}; {self.hint}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (type(self), self.args, self.__dict__)

    def as_json(self) -> dict[str, object]:
        """The warning as `--json` prints it."""
        names = ("code", "message", "hint", "count", "file")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class Source:
    """A named text, with the line and column of each offset.

    >>> Source("rules.dl", "one\\ntwo").position(5)
    (2, 2)
    """

    name: str
    text: str

    @classmethod
    def read(cls, path: str | Path) -> Source:
        """Read a UTF-8 file; a byte-order mark is dropped, Windows line ends are kept."""
        try:
            data = Path(path).read_bytes()
        except (OSError, ValueError) as error:  # a ValueError if the path contains U+0000
            reason = getattr(error, "strerror", None) or str(error)
            raise InvalidInput(
                "E301", f"cannot read {path}: {reason}", UNREADABLE, file=str(path)
            ) from None
        try:
            return cls(str(path), data.decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            column = error.start - (data.rfind(b"\n", 0, error.start) + 1) + 1
            raise InvalidInput(
                "E302",
                f"{path} is not UTF-8 text: byte 0x{data[error.start]:02x} at offset {error.start}",
                file=str(path),
                line=line,
                column=column,
                hint="rule files are plain text in UTF-8; is this a binary or compressed file?",
            ) from None

    @cached_property
    def _line_starts(self) -> list[int]:
        starts, at = [0], self.text.find("\n")
        while at >= 0:
            starts.append(at + 1)
            at = self.text.find("\n", at + 1)
        return starts

    def position(self, offset: int) -> tuple[int, int]:
        """The line and column of an offset, both counted from 1."""
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    def line(self, number: int) -> str:
        """The text of one line (counted from 1), without its end."""
        start = self._line_starts[number - 1]
        end = self.text.find("\n", start)
        return self.text[start : end if end >= 0 else len(self.text)].rstrip("\r")


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a source text: offsets `start` (inclusive) to `end` (exclusive)."""

    source: Source
    start: int
    end: int

    @property
    def line(self) -> int:
        return self.source.position(self.start)[0]

    @property
    def column(self) -> int:
        return self.source.position(self.start)[1]

    @property
    def text(self) -> str:
        return self.source.text[self.start : self.end]

    def excerpt(self, width: int = 100) -> str:
        """The line of the span, underlined; a long line is cut to `width` around the span."""
        line, column = self.source.position(self.start)
        text = self.source.line(line)
        first = max(0, column - 1 - width // 2) if len(text) > width else 0
        shown = text[first : first + width]
        lead = "…" if first else ""
        tail = "…" if first + width < len(text) else ""
        length = max(1, min(self.end - self.start, first + len(shown) - column + 1))
        number = str(line)
        # A tab is shown as one blank, so the underline stays below its text.
        pointer = " " * (len(lead) + column - 1 - first) + "^" * length
        shown = "".join(" " if c == "\t" else c if c.isprintable() else "�" for c in shown)
        return f"  {number} | {lead}{shown}{tail}\n  {' ' * len(number)} | {pointer}"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One mistake in a program."""

    code: str
    message: str
    span: Span
    hint: str | None = None

    def render(self) -> str:
        """The diagnostic as shown on a terminal."""
        place = f"{self.span.source.name}:{self.span.line}:{self.span.column}"
        hint = f"\n  hint: {self.hint}" if self.hint else ""
        return f"{place}: {self.code}: {self.message}\n{self.span.excerpt()}{hint}"

    def as_json(self) -> dict[str, object]:
        return _as_json(self, self.span.source.name, self.span.line, self.span.column)


def _as_json(
    error: Diagnostic | CorollaryError, file: str | None, line: int | None, column: int | None
) -> dict[str, object]:
    place = {"file": file, "line": line, "column": column}
    return {"code": error.code, "message": error.message, **place, "hint": error.hint}


class CorollaryError(Exception):
    """Base of all errors that Corollary raises on purpose."""

    exit_status = 1

    def __init__(
        self,
        code: str,
        message: str,
        hint: str | None = None,
        *,
        file: str | None = None,
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code, self.message, self.hint = code, message, hint
        self.file, self.line, self.column = file, line, column

    def __str__(self) -> str:
        return self.render()

    def __reduce__(self) -> tuple[Any, ...]:
        # The default calls the class with `args`, the message alone. An error that cannot be
        # unpickled hangs a `multiprocessing.Pool`.
        return _unpickled, (type(self), self.args, self.__dict__)

    def render(self) -> str:
        """The error as shown on a terminal."""
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part)
        hint = f"\n  hint: {self.hint}" if self.hint else ""
        return f"{place + ': ' if place else ''}{self.code}: {self.message}{hint}"

    def as_json(self) -> dict[str, object]:
        """The error as `--json` prints it."""
        return {"error": _as_json(self, self.file, self.line, self.column)}


def _unpickled(
    kind: type[CorollaryError], arguments: tuple[Any, ...], state: dict[str, Any]
) -> CorollaryError:
    error = kind.__new__(kind, *arguments)
    error.args = arguments
    error.__dict__.update(state)
    return error


class OperationFailed(CorollaryError):
    """A correct request failed."""


class LimitReached(OperationFailed):
    """A limit stopped the operation; `limit` is the flag and its value."""

    def __init__(self, limit: str, outcome: str = "the result is incomplete") -> None:
        super().__init__("E405", f"stopped by {limit}: {outcome}")
        self.limit = limit


class InvalidInput(CorollaryError):
    """The input is wrong; the user can correct it."""

    exit_status = 2


def require_type(
    value: object, kinds: type | tuple[type, ...], expected: str, hint: str | None = None
) -> None:
    """Refuse an argument of a wrong type.

    >>> require_type(5, str, "a path", "name a folder")
    Traceback (most recent call last):
    ...
    corollary.errors.InvalidInput: E345: expected a path, found a value of type int
      hint: name a folder
    """
    if not isinstance(value, kinds):
        name = type(value).__name__
        raise InvalidInput("E345", f"expected {expected}, found a value of type {name}", hint)


_MOST_SHOWN = 1000  # mistakes; a damaged line may have one in every character


class InvalidProgram(InvalidInput):
    """All mistakes of a program, in the order of the text."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        self.diagnostics = tuple(sorted(diagnostics, key=lambda d: (d.span.start, d.code)))
        first = self.diagnostics[0]
        super().__init__(
            first.code,
            first.message,
            first.hint,
            file=first.span.source.name,
            line=first.span.line,
            column=first.span.column,
        )

    def render(self) -> str:
        shown = [diagnostic.render() for diagnostic in self.diagnostics[:_MOST_SHOWN]]
        if len(self.diagnostics) > len(shown):
            shown.append(f"{len(self.diagnostics):,} errors, of which the first are shown")
        elif len(shown) > 1:
            shown.append(f"{len(shown)} errors")
        return "\n".join(shown)

    def as_json(self) -> dict[str, object]:
        shown = [diagnostic.as_json() for diagnostic in self.diagnostics[:_MOST_SHOWN]]
        return super().as_json() | {"errors": shown}


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The most similar of `names`, if one is similar enough to suggest.

    >>> nearest("pth", ["edge", "path"])
    'path'
    """
    found = difflib.get_close_matches(name, sorted(set(names)), n=1, cutoff=0.6)
    return found[0] if found else None
