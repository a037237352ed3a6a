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
| `Graph`, `Service` | `span`, where the word is in the text |
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
| `PathSequence`, `PathAlternative` | `parts` |
| `PathInverse` | `path` |
| `PathRepeat` | `path`, `mod`: one of `?`, `*`, `+` |
| `PathNegated` | `forward`, `inverse` |

Leaves are terms of `corollary.lang.syntax`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


class Node:
    """A named node; its parts are attributes.

    >>> Node("Not", arg=1)
    Not(arg=1)
    """

    __slots__ = ("__dict__", "name")

    def __init__(self, name: str, **parts: Any) -> None:
        self.name = name
        self.__dict__.update(parts)

    # Parts differ from node to node, so that mypy cannot know them.
    def __getattr__(self, part: str) -> Any:
        raise AttributeError(f"{self.name} has no {part}")

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={part!r}" for name, part in self.__dict__.items())
        return f"{self.name}({shown})"


def operands(node: Node) -> Iterator[Any]:
    """The direct operands of an expression; the pattern of an EXISTS is none.

    >>> list(operands(Node("Arithmetic", first=1, rest=[("+", 2), ("-", 3)])))
    [1, 2, 3]
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


def walk(node: Any) -> Iterator[Any]:
    """An expression with all its parts, without recursion and outside EXISTS patterns."""
    pending = [node]
    while pending:
        current = pending.pop()
        yield current
        if isinstance(current, Node):
            pending.extend(reversed([*operands(current)]))
