"""Random programs whose rules derive into properties and classes that only facts name, from a seed.

Some rules have a variable property or class in the head, so that a predicate may have facts though
no fact and no other rule mentions it. Other rules read such predicates in each way there is: by
name, for the cases of a schema, or as one of all triples.
"""

from __future__ import annotations

from random import Random

from corollary.lang.program import Program
from tests.switches import Case

_DERIVING = (
    "[?x, ?q, ?y] :- [?p, <alias>, ?q], [?x, ?p, ?y]",
    "[?y, ?q, ?x] :- [?p, owl:inverseOf, ?q], [?x, ?p, ?y]",
    "[?x, a, ?d] :- [?c, <kind>, ?d], [?x, a, ?c]",
    "[?x, a, ?d] :- [?p, rdfs:domain, ?c], [?x, ?p, ?y], [?c, <kind>, ?d]",
    "[?x, ?p, ?y] :- told(?x, ?p, ?y)",
    "[?x, a, ?d] :- [?d, a, rdfs:Datatype], told(?x, ?p, ?y)",
    "[?x, ?p, ?z] :- [?p, a, owl:TransitiveProperty], [?x, ?p, ?y], [?y, ?p, ?z]",
)
_READING = (
    "[?x, a, <A>] :- [?x, a, <B>]",
    "[?x, a, <C>] :- [?x, <p>, ?y]",
    "[?x, <q>, ?y] :- [?y, <r>, ?x], [?x, a, <A>]",
    "[?x, a, ?d] :- [?c, rdfs:subClassOf, ?d], [?x, a, ?c]",
    "[?x, ?q, ?y] :- [?p, rdfs:subPropertyOf, ?q], [?x, ?p, ?y]",
    "[?x, a, ?c] :- [?p, rdfs:domain, ?c], [?x, ?p, ?y]",
    "[?c, rdfs:subClassOf, ?e] :- [?c, rdfs:subClassOf, ?d], [?d, rdfs:subClassOf, ?e]",
    "[?p, a, <Used>] :- [?x, ?p, ?y]",
    "[?c, a, <Used>] :- [?x, a, ?c]",
    "told(?x, <r>, ?x) :- [?x, a, ?c]",
    "alone(?x) :- [?x, a, <A>], NOT [?x, <p>, ?x]",
)
_CLASSES = ("<A>", "<B>", "<C>", "<D>")
_PROPERTIES = ("<p>", "<q>", "<r>")
_THINGS = ("<a>", "<b>")
_FACTS = (
    (_CLASSES, ("<kind>", "rdfs:subClassOf"), _CLASSES),
    (_PROPERTIES, ("<alias>", "owl:inverseOf", "rdfs:subPropertyOf"), _PROPERTIES),
    (_PROPERTIES, ("rdfs:domain",), _CLASSES),
    (_PROPERTIES, ("a",), ("owl:TransitiveProperty",)),
    (_CLASSES, ("a",), ("rdfs:Datatype",)),
    (_THINGS, ("a",), _CLASSES),
    (_THINGS, _PROPERTIES, _THINGS),
)


def variable_heads_case(seed: int) -> Case:
    """The case of a seed."""
    random = Random(seed)
    chosen = [
        *random.sample(_DERIVING, random.choice((1, 1, 2, 3))),
        *random.sample(_READING, random.randrange(1, 6)),
    ]
    facts = [
        f"[{', '.join(map(random.choice, random.choice(_FACTS)))}]"
        for _ in range(random.randrange(3, 10))
    ]
    if random.random() < 0.5:
        facts.append(f"told(<a>, {random.choice(_PROPERTIES)}, <b>)")
    program = Program.parse("".join(f"{part} .\n" for part in (*chosen, *facts)))
    later = random.sample(program.rules, random.choice((0, 0, 1)))
    return Case(program.removed(*later), tuple(later), ())
