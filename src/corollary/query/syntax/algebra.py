"""Nodes of the algebra, of expressions and of property paths.

| node | parts |
| --- | --- |
| `BGP` | `triples` |
| `Join`, `Union` | `parts` |
| `LeftJoin` | `p1`, `p2`, `expr` (None: no condition) |
| `Minus` | `p1`, `p2` |
| `Filter` | `p`, `expr` |
| `Extend` | `p`, `variable`, `expr` |
| `Values` | `variables`, `rows` (None: UNDEF) |
| `Group` | `p`, `keys`, `aggregates`, `implicit` |
| `Project` | `p`, `variables` |
| `Distinct`, `Reduced` | `p` |
| `OrderBy` | `p`, `keys`: pairs of an expression and whether it is descending |
| `Slice` | `p`, `offset`, `limit` |
| `Subquery` | `p` |
| `Graph`, `Service` | `term`, `p`, and the `span` of the keyword in the text |
| `Or`, `And` | `args` |
| `Not`, `Negate`, `Plus` | `arg` |
| `Compare` | `op`, `left`, `right` |
| `In` | `left`, `options`, `negated` |
| `Arithmetic` | `first`, `rest`: pairs of an operator and an operand |
| `Bound` | `variable` |
| `Exists` | `pattern`, `negated` |
| `Call` | `function`, `args` |
| `Cast` | `iri`, `args` |
| `Aggregate` | `function`, `distinct`, `arg` (None: `*`), `separator`, `result` |
| `PathSequence`, `PathAlternative` | `args` |
| `PathInverse` | `path` |
| `PathRepeat` | `path`, `mod`: one of `?`, `*`, `+` |
| `PathNegated` | `forward`, `inverse` |

Leaves are terms of `corollary.lang.syntax`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from corollary.lang.syntax import IRI, Constant, Term, Variable


class Node:
    """A named node; its parts are attributes.

    >>> Node("Not", arg=1)
    Not(arg=1)
    """

    __slots__ = ("__dict__", "name")

    def __init__(self, name: str, **parts: Any) -> None:
        self.name = name
        self.__dict__.update(parts)

    # Each kind of node has its own parts, which mypy cannot know.
    def __getattr__(self, part: str) -> Any:
        raise AttributeError(f"{self.name} has no {part}")

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={part!r}" for name, part in self.__dict__.items())
        return f"{self.name}({shown})"


Expr = Node | Variable | Constant
Path = Node | IRI
TriplePattern = tuple[Term, Path | Variable, Term]


def operands(node: Node) -> Iterator[Expr]:
    """The direct operands of an expression; the pattern of an EXISTS does not count.

    >>> x, y = Variable("x"), Variable("y")
    >>> list(operands(Node("Arithmetic", first=x, rest=[("+", y)]))) == [x, y]
    True
    """
    parts = node.__dict__
    match node.name:
        case "Or" | "And" | "Call" | "Cast":
            yield from parts["args"]
        case "Not" | "Negate" | "Plus":
            yield parts["arg"]
        case "Compare":
            yield parts["left"]
            yield parts["right"]
        case "In":
            yield parts["left"]
            yield from parts["options"]
        case "Arithmetic":
            yield parts["first"]
            yield from (operand for _, operand in parts["rest"])
        case "Bound":
            yield parts["variable"]
        case "Aggregate" if parts["arg"] is not None:
            yield parts["arg"]


def walk(node: Expr) -> Iterator[Expr]:
    """Iterate over an expression and its parts, not into EXISTS patterns; never recurses."""
    pending = [node]
    while pending:
        current = pending.pop()
        yield current
        if isinstance(current, Node):
            pending.extend(reversed([*operands(current)]))
