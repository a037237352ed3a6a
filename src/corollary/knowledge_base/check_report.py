"""The check report of a knowledge base: what contradicts, what cannot be, what has no effect."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.dictionary import Dictionary
from corollary.core.engine import Facts
from corollary.core.html import html_text
from corollary.core.tables import atom_of, decode
from corollary.core.terms import term_of
from corollary.errors import InvalidInput
from corollary.knowledge_base.inconsistencies import Inconsistency, smallest_proofs
from corollary.knowledge_base.results import triples_of
from corollary.knowledge_base.shapes import ShapeViolation, validate_shapes
from corollary.knowledge_base.state import KnowledgeState, Settings
from corollary.knowledge_base.unsatisfiable import Unsatisfiable, is_schema, unsatisfiable
from corollary.lang.datatypes import well_formed
from corollary.lang.printer import Printer
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import IRI, TRIPLE, TYPE, Atom, Literal
from corollary.rdf.owl_profile import DATATYPES, OWL, OutsideAxiom, Triple, outside_rl
from corollary.rdf.rulesets import rules
from corollary.rdf.vocabulary import read_by

SKOS = "http://www.w3.org/2004/02/skos/core#"
KINDS = ("contradictions", "unsatisfiable", "literals", "skos", "profile", "shapes")
_SHOWN = 50  # findings of a kind that the text lists; JSON has all of them


@dataclass(frozen=True)
class IllTyped:
    """A literal whose text is not one of its datatype, in one of its triples."""

    literal: Literal
    fact: Atom
    count: int  # triples with the literal
    prefixes: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)

    def __str__(self) -> str:
        printer = Printer(self.prefixes)
        more = f" and {self.count - 1:,} more" if self.count > 1 else ""
        return f"{printer.term(self.literal)} in {printer.atom(self.fact)}{more}"

    def to_json(self) -> dict[str, Any]:
        """Convert to a dictionary: `lexical`, `datatype`, `fact` and `count`."""
        return {
            "lexical": self.literal.lexical,
            "datatype": self.literal.datatype,
            "fact": Printer(self.prefixes).atom(self.fact),
            "count": self.count,
        }


@dataclass(frozen=True, eq=False)
class CheckReport:
    """The findings of a check.

    `contradictions` are violated constraints, with the smallest proof first; `unsatisfiable`
    classes and properties cannot have members; `literals` do not fit their datatypes; `skos` are
    violated integrity conditions of SKOS; `outside_profile` are axioms outside OWL 2 RL; `shapes`
    are the results of a SHACL validation, if shapes were given.
    """

    contradictions: tuple[Inconsistency, ...] = ()
    unsatisfiable: tuple[Unsatisfiable, ...] = ()
    literals: tuple[IllTyped, ...] = ()
    skos: tuple[Inconsistency, ...] = ()
    outside_profile: tuple[OutsideAxiom, ...] = ()
    shapes: tuple[ShapeViolation, ...] = ()

    @property
    def consistent(self) -> bool:
        """Whether no constraint is violated."""
        return not self.contradictions

    def findings(self, kinds: Iterable[str] = KINDS) -> int:
        """Count the findings of some kinds (`KINDS`).

        >>> CheckReport().findings()
        0
        """
        found = {
            "contradictions": self.contradictions,
            "unsatisfiable": self.unsatisfiable,
            "literals": self.literals,
            "skos": self.skos,
            "profile": self.outside_profile,
            "shapes": self.shapes,
        }
        for kind in kinds:
            if kind not in found:
                raise InvalidInput(
                    "E314", f"unknown findings {kind!r}", f"choose one of {', '.join(KINDS)}"
                )
        return sum(len(found[kind]) for kind in kinds)

    def __bool__(self) -> bool:
        """Whether the check has found nothing."""
        return not self.findings()

    def __str__(self) -> str:
        parts = [str(one) for one in self.contradictions] or ["consistent"]
        for title, found in (
            ("cannot have members", self.unsatisfiable),
            ("literals that do not fit their datatypes", self.literals),
            ("violated integrity conditions of SKOS", self.skos),
            ("axioms outside OWL 2 RL", self.outside_profile),
            ("violated SHACL shapes", self.shapes),
        ):
            parts += _section(title, found)
        return "\n".join(parts)

    def __repr__(self) -> str:
        state = "consistent" if self.consistent else "inconsistent"
        return f"<CheckReport: {state}, {self.findings():,} findings>"

    def _repr_html_(self) -> str:
        """The findings, with proofs as pictures."""
        parts = [one._repr_html_() for one in self.contradictions] or ["<p>consistent</p>"]
        if self.unsatisfiable:
            parts.append(f"<p><b>cannot have members: {len(self.unsatisfiable):,}</b></p>")
            parts += [one._repr_html_() for one in self.unsatisfiable[:_SHOWN]]
            if len(self.unsatisfiable) > _SHOWN:
                parts.append(f"<p>… and {len(self.unsatisfiable) - _SHOWN:,} more</p>")
        for title, found in (
            ("literals that do not fit their datatypes", self.literals),
            ("axioms outside OWL 2 RL", self.outside_profile),
            ("violated SHACL shapes", self.shapes),
        ):
            lines = [line for text in _section(title, found) for line in text.strip().splitlines()]
            if lines:
                text = "\n".join(lines[1:])
                parts.append(f"<p><b>{escape(lines[0])}</b></p>{html_text(text)}")
        if self.skos:
            parts.append("<p><b>violated integrity conditions of SKOS</b></p>")
            parts += [one._repr_html_() for one in self.skos]
        return "".join(parts)

    def to_json(self) -> dict[str, Any]:
        """Convert to a dictionary with a list for each kind of findings."""
        return {
            "consistent": self.consistent,
            "inconsistencies": [one.to_json() for one in self.contradictions],
            "unsatisfiable": [one.to_json() for one in self.unsatisfiable],
            "literals": [one.to_json() for one in self.literals],
            "skos": [one.to_json() for one in self.skos],
            "outside_profile": [one.to_json() for one in self.outside_profile],
            "shapes": [one.to_json() for one in self.shapes],
        }


def _section(title: str, found: Iterable[object]) -> Iterator[str]:
    listed = list(found)
    if listed:
        yield f"\n{title}: {len(listed):,}"
        for one in listed[:_SHOWN]:
            yield "\n".join(f"  {line}" for line in str(one).splitlines())
        if len(listed) > _SHOWN:
            yield f"  … and {len(listed) - _SHOWN:,} more"


def check(
    state: KnowledgeState, limit: int | None, shapes: str | Path | None = None
) -> CheckReport:
    """Check a knowledge base; see `KnowledgeBase.check`.

    >>> from corollary import KnowledgeBase
    >>> print(check(KnowledgeBase("owl-rl").state, 1))
    consistent
    """
    is_owl = OWL + "intersectionOf" in read_by(state.reasoner.program)
    return CheckReport(
        tuple(smallest_proofs(state, limit, readable=True)),
        tuple(unsatisfiable(state)),
        tuple(_ill_typed(state)),
        tuple(_skos(state, limit)),
        tuple(profile(state)) if is_owl else (),
        () if shapes is None else tuple(validate_shapes(state, shapes)),
    )


def profile(state: KnowledgeState) -> list[OutsideAxiom]:
    """List the explicit axioms outside OWL 2 RL.

    >>> from corollary import KnowledgeBase
    >>> kb = KnowledgeBase("owl-rl")
    >>> _ = kb.insert("<urn:p> a owl:ReflexiveProperty .")
    >>> [found.construct for found in profile(kb.state)]
    ['ReflexiveObjectProperty']
    """
    explicit = state.reasoner.explicit
    schema = [p for p in explicit.predicates() if is_schema(p)]
    axioms = state.program.axioms
    about = decode(explicit.only(schema), state.dictionary)
    triples = [_terms(fact) for fact in about if fact not in axioms]
    triples += _unsupported_values(explicit, state.dictionary)
    return outside_rl(triples, state.all_prefixes)


def _unsupported_values(explicit: Facts, dictionary: Dictionary) -> Iterator[Triple]:
    """Yield the values of data properties whose datatypes OWL 2 RL does not have."""
    declared = Predicate(TRIPLE, TYPE, IRI(OWL + "DatatypeProperty"))
    names = {*dictionary.terms(explicit.rows(declared).ravel().tolist())}
    for predicate in explicit.predicates():
        if predicate.relation != TRIPLE or predicate.property not in names:
            continue
        rows = explicit.rows(predicate)
        objects = np.unique(rows[:, 1])
        texts = dictionary.texts(objects)
        datatypes = pc.struct_field(pc.extract_regex(texts, r'"\^\^<(?P<iri>[^<>"]*)>$'), "iri")
        known = pc.is_in(datatypes, pa.array([*DATATYPES], datatypes.type))
        strange = pc.and_(pc.is_valid(datatypes), pc.invert(known))
        chosen = objects[np.asarray(strange)]
        if len(chosen):
            for row in rows[np.isin(rows[:, 1], chosen)].tolist():
                yield _terms(atom_of(predicate, dictionary.terms(row)))


def _terms(fact: Atom) -> Triple:
    subject, property_, object_ = fact.terms
    return subject, property_, object_  # type: ignore[return-value]


def _ill_typed(state: KnowledgeState) -> Iterator[IllTyped]:
    """List the explicit literals that are not of their datatypes."""
    dictionary = state.dictionary
    triples = triples_of(state.reasoner.explicit, dictionary)
    ids, counts = np.unique(triples.object, return_counts=True)
    texts = dictionary.texts(ids)
    typed = pc.and_(pc.starts_with(texts, '"'), pc.match_substring(texts, '"^^<'))
    for place in np.flatnonzero(np.asarray(typed)).tolist():
        literal = term_of(texts[place].as_py())
        if isinstance(literal, Literal) and well_formed(literal) is False:
            row = int(np.flatnonzero(triples.object == ids[place])[0])
            terms = dictionary.terms(int(column[row]) for column in triples.columns)
            fact = Atom(TRIPLE, tuple(terms))
            yield IllTyped(literal, fact, int(counts[place]), state.all_prefixes)


def _skos(state: KnowledgeState, limit: int | None) -> list[Inconsistency]:
    """List the violated integrity conditions of SKOS, unless the rules have them as constraints."""
    if any((rule.name or "").startswith("skos-") for rule in state.reasoner.program.constraints):
        return []
    facts = state.reasoner.facts
    used = [predicate for predicate in facts.predicates() if _is_skos(predicate)]
    if not used:
        return []
    program = rules("skos")
    engine = state.engine
    explicit = facts.only(used)
    own = KnowledgeState.derive(program, explicit, engine, Settings())
    own.prefixes = state.prefixes
    return smallest_proofs(own, limit, readable=True)


def _is_skos(predicate: Predicate) -> bool:
    term = predicate.member_of if predicate.member_of is not None else predicate.property
    return isinstance(term, IRI) and term.value.startswith(SKOS)
