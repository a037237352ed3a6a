"""What a query becomes: one SQL text, and what it reads and calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal as Choice

from corollary.lang.syntax import Constant
from corollary.query.expressions import Clock, Expression

Form = Choice["SELECT", "ASK", "CONSTRUCT", "DESCRIBE"]
# How a column holds terms: by their ids, or by their canonical texts where they may be new ones.
Kind = Choice["id", "text", "bool", "row"]
# What a function gives: whether a condition holds, a term, a text to sort by; or it aggregates.
Wanted = Choice["condition", "value", "key", "aggregate"]


@dataclass(frozen=True)
class Column:
    """A variable of a relation."""

    name: str  # in SQL
    kind: Kind = "id"
    nullable: bool = False  # whether some row may leave the variable unbound


@dataclass(frozen=True)
class Relation:
    """Solutions: a SELECT with a column for each variable that it may bind."""

    sql: str
    columns: Mapping[str, Column]
    order: tuple[tuple[str, bool], ...] = ()  # columns to sort by, and whether downward
    row: str | None = None  # the column that numbers the solutions

    def hidden(self) -> list[str]:
        """The columns that are no variables."""
        return [name for name, _ in self.order] + ([self.row] if self.row else [])


@dataclass(frozen=True)
class Scan:
    """A triple pattern; what is open is None, or a variable.

    The patterns of one group are joined, so that what one binds limits the others.
    """

    subject: int | None
    property: int | None
    object: int | None
    variables: tuple[str | None, str | None, str | None] = (None, None, None)
    group: int = 0


@dataclass(frozen=True)
class Call:
    """A function of terms that the SQL text calls by its name."""

    name: str
    wanted: Wanted
    expression: Expression | None  # None: the aggregate, or the term itself
    kinds: tuple[Kind, ...]
    aggregate: str = ""
    separator: str = " "

    @property
    def volatile(self) -> bool:
        """Whether it may differ from call to call."""
        return self.expression is not None and self.expression.volatile


@dataclass(frozen=True)
class Closure:
    """Pairs that a path connects, which Spark computes beforehand under this name."""

    name: str
    edges: str  # a SELECT of s and o
    start: str | None  # a SELECT of the nodes to begin with; all if None


@dataclass(frozen=True)
class Inline:
    """Many solutions that a query lists, as a table of ids under this name; None is UNDEF."""

    name: str
    columns: Mapping[str, Sequence[int | None]]


@dataclass
class Plan:
    """A translated query."""

    form: Form
    clock: Clock
    number: int = 0  # different for all plans of a database
    variables: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    sql: str = ""
    body: str = ""  # the same without its order, and with the columns to sort by
    order: tuple[tuple[str, bool], ...] = ()  # these, and whether downward
    scans: list[Scan] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    closures: list[Closure] = field(default_factory=list)
    inline: list[Inline] = field(default_factory=list)
    constants: list[Constant] = field(default_factory=list)  # terms that the data lack: -1, -2, …
    template: tuple[tuple[str | Constant, str | Constant, str | Constant], ...] = ()
    described: tuple[Constant, ...] = ()

    _numbers: dict[Constant, int] = field(default_factory=dict)

    def constant(self, term: Constant) -> int:
        """The number of a term that the data lack."""
        number = self._numbers.get(term)
        if number is None:
            self.constants.append(term)
            number = self._numbers[term] = -len(self.constants)
        return number
