"""The built-in rule sets: `.dl` texts, each rule named as its standard names it.

| name | what | from |
| --- | --- | --- |
| `rhodf` | ρdf, the core of RDFS | Table 1 of Urbani et al., ISWC 2013 |
| `rdfs` | RDFS with its axiomatic triples | RDF 1.1 Semantics |
| `owl-horst` | pD* | ter Horst, Journal of Web Semantics 2005 |
| `owl-rl` | the 78 rules of OWL 2 RL/RDF | OWL 2 Profiles, section 4.3 |
| `skos` | the entailments and integrity conditions of SKOS | SKOS Reference |
| `owl-rl+skos` | both | |
"""

from __future__ import annotations

from functools import cache
from importlib import resources

from corollary.core.public import checked
from corollary.errors import InvalidInput, Source, nearest
from corollary.lang.program import Program

RULE_SETS = ("rhodf", "rdfs", "owl-horst", "owl-rl", "skos", "owl-rl+skos")


@checked
@cache
def rules(name: str) -> Program:
    """The built-in rule set with a name (`RULE_SETS`), with its axioms.

    >>> print(rules("rhodf").rules[0].name)
    rdfs2
    >>> rules("owl-dl")
    Traceback (most recent call last):
    ...
    corollary.errors.InvalidInput: E311: unknown rule set 'owl-dl'
      hint: did you mean owl-rl? Otherwise choose one of rhodf, rdfs, owl-horst, owl-rl, ...
    """
    if name not in RULE_SETS:
        close = nearest(name, RULE_SETS)
        hint = f"choose one of {', '.join(RULE_SETS)}"
        raise InvalidInput(
            "E311",
            f"unknown rule set {name!r}",
            f"did you mean {close}? Otherwise {hint}" if close else hint,
        )
    first, *others = name.split("+")
    if others:
        program = rules(first)
        for other in others:
            program = program | rules(other)
        return program
    file = resources.files(__package__) / f"{name}.dl"
    return Program.parse(Source(f"{name}.dl", file.read_text(encoding="utf-8"))).with_axioms()
