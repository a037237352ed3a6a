"""Rules over numbers as programs of other systems."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from benchmarks.equal_rules.work import Pattern, Term, Work

NUMBER = "urn:n:"  # numbers as IRIs, for systems that know RDF only


def _written(pattern: Pattern, term: Callable[[Term], str]) -> str:
    name, terms = pattern
    return f"{name}({', '.join(map(term, terms))})"


def _rules(work: Work, term: Callable[[Term], str], end: str = " .") -> list[str]:
    return [
        f"{_written(head, term)} :- {', '.join(_written(atom, term) for atom in atoms)}{end}"
        for head, atoms in work.rules
    ]


def _marked(term: Term) -> str:
    return f"?{term}" if isinstance(term, str) else str(term)


def _capital(term: Term) -> str:
    return f"V{term}" if isinstance(term, str) else str(term)


def corollary(work: Work) -> str:
    """The rules for Corollary.

    >>> print(corollary(Work([(("b", ("x", 7)), [("a", ("x", "y"))])], "a", "b")))
    b(?x, 7) :- a(?x, ?y) .
    """
    return "\n".join(_rules(work, _marked))


def clingo(work: Work) -> str:
    """The rules as an answer set program.

    >>> print(clingo(Work([(("b", ("x", 7)), [("a", ("x", "y"))])], "a", "b")))
    b(Vx, 7) :- a(Vx, Vy).
    """
    return "\n".join(_rules(work, _capital, "."))


def nemo(work: Work, facts: str) -> str:
    """The program for Nemo, which imports the facts from a file.

    >>> print(nemo(Work([(("b", ("x", 7)), [("a", ("x", "y"))])], "a", "b"), "/tmp/a.facts"))
    @import a :- tsv { resource = "/tmp/a.facts", format = (int, int) } .
    b(?x, 7) :- a(?x, ?y) .
    @export b :- tsv { resource = "closure.tsv" } .
    """
    types = ", ".join(["int"] * work.arities()[work.input])
    return "\n".join(
        [
            f'@import {work.input} :- tsv {{ resource = "{facts}", format = ({types}) }} .',
            *_rules(work, _marked),
            f'@export {work.output} :- tsv {{ resource = "closure.tsv" }} .',
        ]
    )


def vlog(work: Work) -> str:
    """The rules for VLog, which has relations of facts apart from derived ones.

    >>> print(vlog(Work([(("b", ("x", 7)), [("a", ("x", "y"))])], "a", "b")))
    a(V0,V1) :- a_given(V0,V1)
    b(Vx,<7>) :- a(Vx,Vy)
    """
    columns = ",".join(f"V{place}" for place in range(work.arities()[work.input]))
    lines = [f"{work.input}({columns}) :- {work.input}_given({columns})"]

    def term(found: Term) -> str:
        return f"V{found}" if isinstance(found, str) else f"<{found}>"

    return "\n".join(lines + [rule.replace(", ", ",") for rule in _rules(work, term, "")])


def egglog(work: Work) -> str:
    """The relations and rules for `egglog`.

    >>> print(egglog(Work([(("b", ("x", 7)), [("a", ("x", "y"))])], "a", "b")))
    (relation a (i64 i64))
    (relation b (i64 i64))
    (ruleset rules)
    (rule ((a x y)) ((b x 7)) :ruleset rules :name "1")
    """

    def written(pattern: Pattern) -> str:
        return f"({pattern[0]} {' '.join(map(str, pattern[1]))})"

    sorts = {name: " ".join(["i64"] * arity) for name, arity in work.arities().items()}
    lines = [f"(relation {name} ({sort}))" for name, sort in sorts.items()]
    lines.append("(ruleset rules)")
    for number, (head, atoms) in enumerate(work.rules, 1):
        body = " ".join(map(written, atoms))
        lines.append(f'(rule ({body}) ({written(head)}) :ruleset rules :name "{number}")')
    return "\n".join(lines)


def souffle(work: Work) -> str:
    """The program for Soufflé, which reads and writes files by the names of relations.

    >>> print(souffle(Work([(("b", ("x", 7)), [("a", ("x", "y"))])], "a", "b")))
    .decl a(a0: unsigned, a1: unsigned)
    .decl b(a0: unsigned, a1: unsigned)
    .input a
    .output b
    b(x, 7) :- a(x, _).
    """
    lines = []
    for name, arity in work.arities().items():
        columns = ", ".join(f"a{number}: unsigned" for number in range(arity))
        lines.append(f".decl {name}({columns})")
    lines += [f".input {work.input}", f".output {work.output}"]
    for head, atoms in work.rules:
        uses = Counter(term for _, terms in (head, *atoms) for term in terms)

        def term(found: Term, uses: Counter[Term] = uses) -> str:
            return "_" if isinstance(found, str) and uses[found] == 1 else str(found)

        body = ", ".join(_written(atom, term) for atom in atoms)
        lines.append(f"{_written(head, term)} :- {body}.")
    return "\n".join(lines)


def _rdf(term: Term) -> str:
    return f"?{term}" if isinstance(term, str) else f"<{NUMBER}{term}>"


def only_triples(work: Work) -> bool:
    """Whether all relations are triples, so that systems for RDF can take part."""
    return set(work.arities()) == {"triple"}


def jena(work: Work) -> str:
    """The rules for Jena's rule reasoner; numbers are IRIs.

    >>> print(jena(Work([(("triple", ("x", 1, 7)), [("triple", ("x", 2, "y"))])], "", "")))
    [(?x <urn:n:2> ?y) -> (?x <urn:n:1> <urn:n:7>)]
    """

    def written(pattern: Pattern) -> str:
        return f"({' '.join(map(_rdf, pattern[1]))})"

    return "\n".join(
        f"[{' '.join(map(written, atoms))} -> {written(head)}]" for head, atoms in work.rules
    )


def shacl(work: Work) -> str:
    """The rules as SHACL rules with CONSTRUCT queries, of one shape with one target node.

    >>> print(shacl(Work([(("triple", ("x", 1, 7)), [("triple", ("x", 2, "y"))])], "", "")))
    @prefix sh: <http://www.w3.org/ns/shacl#> .
    <urn:rules> a sh:NodeShape ; sh:targetNode <urn:rules> .
    <urn:rules> sh:rule [ a sh:SPARQLRule ; sh:construct
      "CONSTRUCT { ?x <urn:n:1> <urn:n:7> } WHERE { ?x <urn:n:2> ?y }" ] .
    """

    def written(pattern: Pattern) -> str:
        return " ".join(map(_rdf, pattern[1]))

    lines = [
        "@prefix sh: <http://www.w3.org/ns/shacl#> .",
        "<urn:rules> a sh:NodeShape ; sh:targetNode <urn:rules> .",
    ]
    for head, atoms in work.rules:
        query = f"CONSTRUCT {{ {written(head)} }} WHERE {{ {' . '.join(map(written, atoms))} }}"
        lines.append(f'<urn:rules> sh:rule [ a sh:SPARQLRule ; sh:construct\n  "{query}" ] .')
    return "\n".join(lines)
