"""A textbook evaluator in plain Python, which recorded the expected states; starts over."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator

from benchmarks.evolve.systems.protocol import serve
from benchmarks.evolve.systems.restart import Pattern, Restart, Rule, Triple

Bindings = dict[str, str]


class Naive(Restart):
    """Semi-naive evaluation with indexes by every part of a triple."""

    def commit(self) -> None:
        """Evaluate rounds until nothing is new."""
        self._facts: set[Triple] = set()
        self._index: dict[Pattern, set[Triple]] = defaultdict(set)
        delta = set(self.explicit)
        while delta:
            self._facts |= delta
            for s, p, o in delta:
                for key in ((s, p, ""), ("", p, o), ("", p, ""), (s, "", ""), ("", "", o)):
                    self._index[key].add((s, p, o))
            derived = {
                head
                for rule in self.rules.values()
                for head in self._evaluate(rule, delta)
                if head not in self._facts
            }
            delta = derived

    def triples(self) -> Collection[Triple]:
        """Return all triples."""
        return self._facts

    def _evaluate(self, rule: Rule, delta: set[Triple]) -> Iterator[Triple]:
        for first in range(len(rule.body)):
            rest = [atom for number, atom in enumerate(rule.body) if number != first]
            for triple in delta:
                bindings = _match(rule.body[first], triple, {})
                if bindings is not None:
                    for solution in self._solutions(rest, bindings):
                        s, p, o = (solution.get(term, term) for term in rule.head)
                        yield s, p, o

    def _solutions(self, atoms: list[Pattern], bindings: Bindings) -> Iterator[Bindings]:
        if not atoms:
            yield bindings
            return
        atom, *rest = atoms
        for triple in self._candidates(atom, bindings):
            extended = _match(atom, triple, bindings)
            if extended is not None:
                yield from self._solutions(rest, extended)

    def _candidates(self, atom: Pattern, bindings: Bindings) -> Collection[Triple]:
        terms = (bindings.get(term, term) for term in atom)
        s, p, o = ("" if term.startswith("?") else term for term in terms)
        if s and p:
            o = ""  # `_match` compares the object
        if not (s or p or o):
            return self._facts
        if s and o:
            o = ""
        return self._index.get((s, p, o), ())


def _match(atom: Pattern, triple: Triple, bindings: Bindings) -> Bindings | None:
    extended = bindings
    for term, value in zip(atom, triple, strict=True):
        if term.startswith("?"):
            if term not in extended:
                extended = extended | {term: value}
            elif extended[term] != value:
                return None
        elif term != value:
            return None
    return extended


if __name__ == "__main__":
    serve(Naive())
