"""The proof tree of a query: how Algorithm 1 unfolds it, down to look-ups.

Paper: Urbani, Piro, van Harmelen, Bal: Hybrid Reasoning on OWL RL, Semantic Web 5, 2014, Algorithm
1, Figure 1 and Table 6.

Idea: below a query stand the rules whose heads it unifies with, below a rule the queries θₕ(p) for
its body. A query that is its own ancestor up to renaming (*PrevQueries*) is not unfolded again. The
leaves are the look-ups at the bottom, in predicates with stored facts. Pre-materialized atoms are
not leaves: rules are joined with them when they are specialized.

Differs from the paper: the tree is for display and for counting; answers come from `Hybrid.answer`,
which unfolds each goal once for all paths. Trees of more than some thousand queries are truncated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic

from corollary.core.compile import covers, narrow_predicate
from corollary.core.engine import F
from corollary.core.html import TreeRow, html_text, svg_tree
from corollary.lang.printer import Printer
from corollary.lang.substitute import substituted_atom
from corollary.lang.syntax import Atom, Rule, Term, Variable

if TYPE_CHECKING:
    from corollary.algorithms.hybrid import Answer, Hybrid

NODES = 5_000  # queries that a tree shows
_DEPTH = 200
_BELOW = {True: "   ", False: "│  "}


@dataclass(eq=False)
class Query:
    """A query of the tree, and the rules that unfold it."""

    atom: Atom
    kind: str  # unfolded, look-up, pre-materialized, again, or more: the tree is truncated here
    facts: int  # matches with admissible values
    stored: bool  # whether the predicate has stored facts
    rules: list[Application] = field(default_factory=list)

    @property
    def leaves(self) -> int:
        """The number of look-ups at the bottom."""
        return sum(self._count({}))

    def leaves_with(self, also: Mapping[Rule, int]) -> int:
        """The number of leaves, with additional ones below some rules."""
        return sum(self._count(also))

    def _count(self, also: Mapping[Rule, int]) -> tuple[int, int]:
        if self.kind in ("again", "pre-materialized"):
            return 0, 0
        below = more = 0
        for application in self.rules:
            more += also.get(application.rule, 0)
            for part in application.body:
                leaves, further = part._count(also)
                below, more = below + leaves, more + further
        return below or int(self.stored), more

    def applications(self) -> Iterator[Application]:
        """All rule applications of the tree."""
        for application in self.rules:
            yield application
            for part in application.body:
                yield from part.applications()


@dataclass(eq=False)
class Application:
    """A rule of the tree, and the queries for its body."""

    rule: Rule
    body: list[Query]


@dataclass(frozen=True, eq=False)
class Tree:
    """A proof tree, to print or traverse."""

    root: Query
    leaves: int
    leaves_without: int  # without pre-materialization
    derived: int
    look_ups: int
    complete: bool  # whether it was not truncated
    prefixes: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        text = Printer(self.prefixes).atom(self.root.atom)
        leaves = "1 leaf" if self.leaves == 1 else f"{self.leaves:,} leaves"
        return f"<Tree of {text}: {leaves}>"

    def __str__(self) -> str:
        """The tree as text, one query or rule per line."""
        printer = Printer(self.prefixes)
        lines: list[str] = []
        parts: list[Query | Application]
        stack: list[tuple[Query | Application, str, str]] = [(self.root, "", "")]
        while stack:
            node, lead, below = stack.pop()
            if isinstance(node, Query):
                facts = "1 fact" if node.facts == 1 else f"{node.facts:,} facts"
                lines.append(f"{lead}{printer.atom(node.atom)}   {node.kind}, {facts}")
                parts = [*node.rules]
            else:
                text = printer.rule(node.rule).removesuffix(" .")
                lines.append(f"{lead}by {text}")
                parts = [*node.body]
            last = len(parts) - 1
            stack += [
                (part, below + ("└─ " if at == last else "├─ "), below + _BELOW[at == last])
                for at, part in reversed(list(enumerate(parts)))
            ]
        lines.append(
            f"leaves: {self.leaves:,} (without pre-materialization: {self.leaves_without:,}), "
            f"derived: {self.derived:,}, look-ups: {self.look_ups:,}"
        )
        if not self.complete:
            lines.append("(the tree was cut: there are more queries)")
        return "\n".join(lines)

    def to_svg(self) -> str:
        """The tree as a picture, which needs neither JavaScript nor a network."""
        printer = Printer(self.prefixes)
        rows: list[TreeRow] = []
        stack: list[tuple[Query | Application, int]] = [(self.root, 0)]
        while stack:
            node, depth = stack.pop()
            parts: list[Query | Application]
            if isinstance(node, Query):
                facts = "1 fact" if node.facts == 1 else f"{node.facts:,} facts"
                kind = "root" if not depth else "" if node.rules else "explicit"
                rows.append(TreeRow(depth, printer.atom(node.atom), f"{node.kind}, {facts}", kind))
                parts = [*node.rules]
            else:
                rule = printer.rule(node.rule).removesuffix(" .")
                rows.append(TreeRow(depth, f"by {rule}", "", "aggregate"))
                parts = [*node.body]
            stack += [(part, depth + 1) for part in reversed(parts)]
        return svg_tree(rows, "plan")

    def _repr_html_(self) -> str:
        """The picture, and the counts below it."""
        return self.to_svg() + html_text("leaves: " + str(self).partition("\nleaves: ")[2])

    def to_json(self) -> dict[str, Any]:
        """The tree as nested dictionaries: `query`, `kind`, `facts`, `rules` of `rule`, `body`."""
        printer = Printer(self.prefixes)

        def query(node: Query) -> dict[str, Any]:
            return {
                "query": printer.atom(node.atom),
                "kind": node.kind,
                "facts": node.facts,
                "rules": [
                    {
                        "rule": printer.rule(application.rule).removesuffix(" ."),
                        "name": application.rule.name,
                        "body": [query(part) for part in application.body],
                    }
                    for application in node.rules
                ],
            }

        return {
            "tree": query(self.root),
            "leaves": self.leaves,
            "leaves_without": self.leaves_without,
            "derived": self.derived,
            "look_ups": self.look_ups,
            "complete": self.complete,
        }


def grow(hybrid: Hybrid[F], query: Atom, *, sizes: bool = True) -> tuple[Query, Answer[F], bool]:
    """Build the tree of a query; return it with the answer and whether the tree is complete.

    Without `sizes`, `Query.facts` is 0.
    """
    answer = hybrid.answer(query)
    builder = _TreeBuilder(hybrid, answer.known if sizes else None)
    root = builder.query(query, frozenset())
    return root, answer, not builder.truncated


class _TreeBuilder(Generic[F]):
    def __init__(self, hybrid: Hybrid[F], known: F | None) -> None:
        self.hybrid, self.known = hybrid, known
        self.stored = tuple(hybrid.all_facts.predicates())
        self.nodes = 0
        self.truncated = False
        self._sizes: dict[object, int] = {}

    def query(self, atom: Atom, path: frozenset[object]) -> Query:
        """*infer*: build a query and its subtree."""
        self.nodes += 1
        predicate, key = narrow_predicate(atom), variant(atom)
        stored = any(covers(predicate, narrow) for narrow in self.stored)
        node = Query(atom, "look-up", self._size(atom, key), stored)
        if self.hybrid.is_prematerialized(atom):
            node.kind = "pre-materialized"
        elif key in path:
            node.kind = "again"
        elif len(path) >= _DEPTH or self.nodes > NODES:
            node.kind, self.truncated = "more", True
        else:
            for rule in self.hybrid.rules.of(predicate):
                atoms = unfolded(atom, rule)
                if atoms is not None:
                    node.kind = "unfolded"
                    body = [self.query(part, path | {key}) for part in atoms]
                    node.rules.append(Application(rule, body))
        return node

    def _size(self, atom: Atom, key: object) -> int:
        """Count the matches among the stored facts and those derived for the answer."""
        if self.known is None:
            return 0
        if key not in self._sizes:
            self._sizes[key] = len(self.hybrid.look_up(atom, self.known))
        return self._sizes[key]


def variant(atom: Atom) -> tuple[object, ...]:
    """A key that is equal for atoms that differ only in variable names."""
    numbers: dict[Term, int] = {}
    return (
        atom.relation,
        *(
            numbers.setdefault(t, len(numbers)) if isinstance(t, Variable) else t
            for t in atom.terms
        ),
    )


def unfolded(query: Atom, rule: Rule) -> list[Atom] | None:
    """θₕ(p) for the body atoms p of a rule; None if its head does not unify with the query.

    >>> from corollary.lang.parser import parse_atom
    >>> from corollary.lang.program import Program
    >>> rule = Program.parse("p(?x, ?y) :- e(?y, ?x, ?z) .").rules[0]
    >>> [Printer().atom(atom) for atom in unfolded(parse_atom("p(1, ?z)", {}, ""), rule)]
    ['e(?z, 1, ?z2)']
    """
    atoms = [rule.head, *(atom for atom, _ in rule.atoms())]
    taken, fresh = set(query.variables()), dict[Variable, Term]()
    for variable in dict.fromkeys(v for atom in atoms for v in atom.variables()):
        number, name = 1, variable
        while name in taken:
            number += 1
            name = Variable(f"{variable.name}{number}")
        taken.add(name)
        fresh[variable] = name
    head, *body = (substituted_atom(atom, fresh) for atom in atoms)
    values: dict[Variable, Term] = {}  # θₕ

    def value(term: Term) -> Term:
        while term in values:
            term = values[term]
        return term

    for mine, its in zip(query.terms, head.terms, strict=True):
        one, two = value(mine), value(its)
        if one == two:
            continue
        if isinstance(two, Variable):
            values[two] = one
        elif isinstance(one, Variable):
            values[one] = two
        else:
            return None
    return [Atom(atom.relation, tuple(map(value, atom.terms))) for atom in body]
