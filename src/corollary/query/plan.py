"""Plans: the SQL of a query, with the patterns it scans and the functions it calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal as Choice

from corollary.lang.syntax import Constant
from corollary.query.expressions import Clock, Expression

Form = Choice["SELECT", "ASK", "CONSTRUCT", "DESCRIBE"]
# How a column represents terms: by id, or by canonical text if the data may lack them.
Kind = Choice["id", "text", "bool", "row"]
# A table of triples other than those of a property: all of them, those of all graphs with their
# graphs, those of a pseudo-graph, or those that rules do not read, which are no explicit facts.
Source = Choice["union", "quads", "default", "explicit", "derived", "unread"]
# The result of a function: a truth value, a term, a sort key, or an aggregate.
ResultKind = Choice["condition", "value", "key", "aggregate"]


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
    order: tuple[tuple[str, bool], ...] = ()  # sort keys: column, descending
    row: str | None = None  # the row number column

    def hidden(self) -> list[str]:
        """Sort keys and the row number: columns that are not variables."""
        return [name for name, _ in self.order] + ([self.row] if self.row else [])


@dataclass(frozen=True)
class Scan:
    """A triple pattern over ids; None is an unbound position, named in `variables`.

    The patterns of a group are joined, so bindings of one restrict the others.
    """

    subject: int | None
    property: int | None
    object: int | None
    variables: tuple[str | None, str | None, str | None] = (None, None, None)
    group: int = 0
    source: Source = "union"

    def pattern(self) -> tuple[int | None, int | None, int | None]:
        """The ids of subject, property and object."""
        return self.subject, self.property, self.object

    def is_satisfiable(self) -> bool:
        """Whether the data have its terms."""
        return not any(term is not None and term < 0 for term in self.pattern())


@dataclass(frozen=True)
class Call:
    """A user-defined function that the SQL calls by name."""

    name: str
    result: ResultKind
    expression: Expression | None  # None: the aggregate, or the term itself
    kinds: tuple[Kind, ...]
    aggregate: str = ""
    separator: str = " "

    @property
    def volatile(self) -> bool:
        """Whether equal arguments may give different results."""
        return self.expression is not None and self.expression.volatile


@dataclass(frozen=True)
class Closure:
    """The transitive closure of a path, which Spark computes before the query as a view."""

    name: str
    edges: str  # a SELECT of s and o
    start: str | None  # a SELECT of the start nodes; None: all


@dataclass(frozen=True)
class Inline:
    """A large VALUES block, loaded as a table of ids; None is UNDEF."""

    name: str
    columns: Mapping[str, Sequence[int | None]]


@dataclass
class Plan:
    """A translated query."""

    form: Form
    clock: Clock
    number: int = 0  # unique among the plans of a database
    variables: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    sql: str = ""
    body: str = ""  # without ORDER BY, with the sort keys as columns
    order: tuple[tuple[str, bool], ...] = ()  # sort keys: column, descending
    scans: list[Scan] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    closures: list[Closure] = field(default_factory=list)
    inline: list[Inline] = field(default_factory=list)
    constants: dict[Constant, int] = field(default_factory=dict)  # unknown terms: -1, -2, …
    template: tuple[tuple[str | Constant, str | Constant, str | Constant], ...] = ()
    described: tuple[Constant, ...] = ()
    graphs: tuple[int, ...] | None = None  # all named graphs, if the SQL depends on them

    def constant(self, term: Constant) -> int:
        """The negative id of a term that the data lack."""
        return self.constants.setdefault(term, -1 - len(self.constants))
