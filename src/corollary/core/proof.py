"""`Proof`: a derivation of a fact, as a value that can be printed, drawn and traversed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from corollary.core.html import TreeRow, svg_tree
from corollary.lang.printer import Printer, quote
from corollary.lang.syntax import Aggregate, Atom, Negation, Rule, Term

SEARCH_BUDGET = 100_000  # rule instances that the search for a proof considers before it falls back


@dataclass(frozen=True, eq=False)
class Proof:
    """A derivation of a fact: the rule that derives it, and proofs of its premises.

    A leaf is an explicit fact, or a negated atom that nothing matches. An aggregate is not proved
    step by step: its premises are some of the facts that it was computed from. Proofs may share
    parts, so they are acyclic graphs rather than trees; they are compared by identity.
    """

    fact: Atom | Negation | Aggregate  # an aggregate has values instead of variables
    rule: Rule | None = None
    explicit: bool = False
    premises: tuple[Proof, ...] = ()
    more: bool = False  # of an aggregate: whether there are facts besides the premises
    least: bool = True  # whether the search has made sure that no proof has a smaller height
    prefixes: Mapping[str, str] = field(default_factory=dict, repr=False)
    graphs: Mapping[Atom, tuple[Term, ...]] = field(default_factory=dict, repr=False)
    """The graphs of the explicit triples of the whole proof, if there are named ones."""

    @property
    def kind(self) -> str:
        """`explicit`, `derived`, `absent` or `aggregate`."""
        match self.fact:
            case Negation():
                return "absent"
            case Aggregate():
                return "aggregate"
            case _:
                return "explicit" if self.explicit else "derived"

    def nodes(self) -> Iterator[Proof]:
        """All nodes of the proof, each once, premises first."""
        done: set[int] = set()
        stack = [(self, False)]
        while stack:
            node, ready = stack.pop()
            if ready:
                yield node
            elif id(node) not in done:
                done.add(id(node))
                stack.append((node, True))
                stack += [(premise, False) for premise in reversed(node.premises)]

    @cached_property
    def height(self) -> int:
        """The longest chain of rule applications; negated and aggregated premises have height 0.

        Like a negated atom, an aggregate is read when the strata below are complete.
        """
        heights: dict[int, int] = {}
        for node in self.nodes():
            derived = node.kind == "derived"
            above = (heights[id(premise)] for premise in node.premises)
            heights[id(node)] = 1 + max(above, default=0) if derived else 0
        return heights[id(self)]

    @cached_property
    def size(self) -> int:
        """The number of nodes, each counted once."""
        return sum(1 for _ in self.nodes())

    def __repr__(self) -> str:
        text = self._printer.body_literal(self.fact)
        return f"<Proof of {text}: height {self.height}, size {self.size}>"

    def __getstate__(self) -> dict[str, Any]:
        # Prefixes may be a view of a dictionary, which cannot be pickled.
        state = {name: value for name, value in vars(self).items() if name != "_printer"}
        return state | {"prefixes": dict(self.prefixes)}

    @cached_property
    def _printer(self) -> Printer:
        return Printer(self.prefixes)

    def _rule_text(self, node: Proof) -> str | None:
        return self._printer.rule(node.rule).removesuffix(" .") if node.rule else None

    def __str__(self) -> str:
        """The proof as a tree; repeated parts are referenced instead of shown again.

        A high proof is split into several trees, so its text does not grow with the square of its
        height.
        """
        lines: list[str] = []
        shown: set[int] = set()
        trees: deque[Proof] = deque([self])
        while trees:
            if lines:
                lines.append("")
            trees += self._tree(trees.popleft(), lines, shown)
        if not self.least:
            lines.append("(the search was cut short: there may be a proof of smaller height)")
        return "\n".join(lines)

    def _tree(self, root: Proof, lines: list[str], shown: set[int]) -> list[Proof]:
        """Add the lines of a tree; returns the premises that need trees of their own."""
        later: dict[int, Proof] = {}
        stack = [(root, "", "", 0)]
        while stack:
            node, lead, below, depth = stack.pop()
            text = self._printer.body_literal(node.fact)
            if node.premises and id(node) in shown:
                lines.append(f"{lead}{text}   (proved above)")
                continue
            if node.premises and (depth >= _DEEPEST or id(node) in later):
                later[id(node)] = node
                lines.append(f"{lead}{text}   (proved below)")
                continue
            shown.add(id(node))
            lines.append(f"{lead}{text}   {self._reason(node)}")
            last = len(node.premises) - 1
            stack += [
                (
                    premise,
                    below + ("└─ " if at == last else "├─ "),
                    below + _BELOW[at == last],
                    depth + 1,
                )
                for at, premise in reversed(list(enumerate(node.premises)))
            ]
            if node.more:
                lines[-1] += f", the first {len(node.premises)} facts of more"
        return [node for node in later.values() if id(node) not in shown]

    def _graphs(self, node: Proof) -> list[str]:
        """The graphs that have an explicit triple."""
        found = self.graphs.get(node.fact, ()) if isinstance(node.fact, Atom) else ()
        return [self._printer.term(graph) for graph in found]

    def _reason(self, node: Proof) -> str:
        if node.kind == "explicit" and (graphs := self._graphs(node)):
            return f"explicit in {', '.join(graphs)}"
        if node.rule is None:
            return {"absent": "no such fact", "aggregate": "computed from"}.get(
                node.kind, node.kind
            )
        return f"by [{node.rule.name}]" if node.rule.name else f"by {self._rule_text(node)}"

    def to_json(self) -> dict[str, Any]:
        """The proof as nested dictionaries.

        Each has `fact`, `rule`, `explicit`, `premises` and `kind`, and `graphs` if named graphs
        have an explicit triple; the outermost also `height` and `least`. A repeated part has no
        premises and `"repeated": true`. In a high proof, the parts below a certain depth are in the
        list `parts` of the outermost node and referenced by `"part"`, their position in the list:
        JSON readers reject deep nesting.
        """
        root: dict[str, Any] = {}
        parts: list[dict[str, Any]] = []
        shown: set[int] = set()
        stack = [(self, root, 0)]
        while stack:
            node, out, depth = stack.pop()
            out["fact"] = self._printer.body_literal(node.fact)
            out["rule"] = self._rule_text(node)
            out["explicit"] = node.explicit
            out["kind"] = node.kind
            if graphs := self._graphs(node):
                out["graphs"] = graphs
            out["premises"] = []
            if node.more:
                out["more"] = True
            if id(node) in shown and node.premises:
                out["repeated"] = True
                continue
            if depth >= _DEEPEST and node.premises:
                out["part"] = len(parts)
                parts.append({})
                stack.append((node, parts[-1], 0))
                continue
            shown.add(id(node))
            out["premises"] = [{} for _ in node.premises]
            stack += [
                (premise, place, depth + 1)
                for premise, place in zip(
                    reversed(node.premises), reversed(out["premises"]), strict=True
                )
            ]
        if parts:
            root["parts"] = parts
        return root | {"height": self.height, "least": self.least}

    def to_svg(self) -> str:
        """The proof as a picture, which needs neither JavaScript nor a network.

        >>> Proof(Atom("p", ()), explicit=True).to_svg().startswith("<svg")
        True
        """
        return svg_tree(self._rows(), self._printer.body_literal(self.fact))

    def _repr_svg_(self) -> str:
        return self.to_svg()

    def _rows(self) -> Iterator[TreeRow]:
        """The steps from the fact downward; a repeated part is shown once."""
        shown: set[int] = set()
        stack = [(self, 0)]
        while stack:
            node, depth = stack.pop()
            text = self._printer.body_literal(node.fact)
            kind = "root" if node is self and node.kind == "derived" else node.kind
            if node.premises and id(node) in shown:
                yield TreeRow(depth, text, "proved above", kind)
                continue
            shown.add(id(node))
            yield TreeRow(depth, text, self._reason(node), kind)
            stack += [(premise, depth + 1) for premise in reversed(node.premises)]

    def to_dot(self) -> str:
        """The proof for Graphviz: every fact once, arrows from a fact to its premises."""
        numbers = {id(node): number for number, node in enumerate(self.nodes())}
        lines = ["digraph proof {", "  node [shape=box];"]
        for node in self.nodes():
            label = self._printer.body_literal(node.fact)
            if node.rule is not None:
                label += f"\n{self._reason(node)}"
            style = {"explicit": ", style=filled", "absent": ", style=dashed"}.get(node.kind, "")
            lines.append(f"  n{numbers[id(node)]} [label={quote(label)}{style}];")
        lines += [
            f"  n{numbers[id(node)]} -> n{numbers[premise]};"
            for node in self.nodes()
            for premise in dict.fromkeys(map(id, node.premises))
        ]
        return "\n".join([*lines, "}"])


_BELOW = {True: "   ", False: "│  "}
_DEEPEST = 100  # steps that one tree shows
