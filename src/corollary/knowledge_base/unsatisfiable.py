"""Classes and properties that cannot have members: one would contradict a constraint.

Every class gets a hypothetical member and every property a hypothetical pair, in a copy of the
facts; those whose member violates a constraint cannot have one. All of them are tried at once.
That is exact unless members act on each other, or on facts that mention none of them, for example
by making two named individuals equal; then each suspect is tried alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

import numpy as np

from corollary.core.dictionary import Dictionary
from corollary.core.log import LOGGER
from corollary.core.proof import Proof
from corollary.core.readable import without_auxiliary
from corollary.core.tables import decode, encode
from corollary.knowledge_base.inconsistencies import prove_examples
from corollary.knowledge_base.state import KnowledgeState, Settings
from corollary.lang.printer import Printer
from corollary.lang.program import Program
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import IRI, RDF, TRIPLE, TYPE, XSD, Atom, BlankNode, Constant
from corollary.reasoning.engines import make_engine

_RDFS = "http://www.w3.org/2000/01/rdf-schema#"
_OWL = "http://www.w3.org/2002/07/owl#"
_VOCABULARIES = (RDF, _RDFS, _OWL, XSD)
_CLASS_TYPES = {IRI(_OWL + "Class"), IRI(_RDFS + "Class")}
_PROPERTY_TYPES = {
    IRI(RDF + "Property"),
    *(
        IRI(_OWL + name)
        for name in (
            "ObjectProperty", "DatatypeProperty", "FunctionalProperty", "SymmetricProperty",
            "TransitiveProperty", "AsymmetricProperty", "IrreflexiveProperty",
            "InverseFunctionalProperty",
        )
    ),
}  # fmt: skip
_OF_CLASSES = {
    _RDFS + "subClassOf", _OWL + "equivalentClass", _OWL + "disjointWith", _OWL + "complementOf",
}  # fmt: skip
_OF_PROPERTIES = {
    _RDFS + "subPropertyOf", _OWL + "equivalentProperty", _OWL + "propertyDisjointWith",
    _OWL + "inverseOf",
}  # fmt: skip
_FACTS = 50_000  # explicit facts that are copied; of more, only those about the schema
_ALONE = 500  # suspects that are tried one by one
_PROOFS = 100


@dataclass(frozen=True, eq=False)
class Unsatisfiable:
    """A class or property that cannot have members, and the contradiction of a member."""

    term: IRI
    kind: str  # class or property
    proof: Proof | None  # None for the last of very many
    prefixes: Mapping[str, str]

    def __str__(self) -> str:
        name = Printer(self.prefixes).term(self.term)
        what = "members" if self.kind == "class" else "values"
        line = f"the {self.kind} {name} cannot have {what}"
        if self.proof is None:
            return line
        return "\n".join([line, *(f"  {text}" for text in str(self.proof).splitlines())])

    def _repr_html_(self) -> str:
        """The first line, and the proof as a picture."""
        picture = "" if self.proof is None else f"<div>{self.proof.to_svg()}</div>"
        return f"<p>{escape(str(self).partition(chr(10))[0])}</p>{picture}"

    def to_json(self) -> dict[str, Any]:
        """Convert to a dictionary: `term`, `kind` and `proof`."""
        return {
            "term": self.term.value,
            "kind": self.kind,
            "proof": None if self.proof is None else self.proof.to_json(),
        }


def is_schema(predicate: Predicate) -> bool:
    """Test whether facts of a predicate belong to the schema.

    >>> is_schema(Predicate(TRIPLE, IRI(_RDFS + "subClassOf"))), is_schema(Predicate("edge"))
    (True, False)
    """
    if predicate.relation != TRIPLE:
        return False
    term = predicate.member_of if predicate.member_of is not None else predicate.property
    return isinstance(term, BlankNode) or (
        isinstance(term, IRI) and term.value.startswith(_VOCABULARIES)
    )


def unsatisfiable(state: KnowledgeState) -> list[Unsatisfiable]:
    """List the classes and properties that cannot have members, by name.

    >>> from corollary import KnowledgeBase
    >>> kb = KnowledgeBase("owl-rl")
    >>> _ = kb.insert(
    ...     "@prefix : <urn:> . :Pet rdfs:subClassOf :Cat, :Dog . :Cat owl:disjointWith :Dog ."
    ... )
    >>> print(*unsatisfiable(kb.state), sep="\\n")
    the class :Pet cannot have members
      false   by [cax-dw]
      ├─ [:Cat, owl:disjointWith, :Dog]   explicit
      ├─ [_:member2, a, :Cat]   by [cax-sco]
      │  ├─ [:Pet, rdfs:subClassOf, :Cat]   explicit
      │  └─ [_:member2, a, :Pet]   explicit
      └─ [_:member2, a, :Dog]   by [cax-sco]
         ├─ [:Pet, rdfs:subClassOf, :Dog]   explicit
         └─ [_:member2, a, :Pet]   explicit
    """
    program = state.reasoner.program
    if not program.constraints:
        return []
    explicit = state.reasoner.explicit
    if len(explicit) > _FACTS:
        explicit = explicit.only([p for p in explicit.predicates() if is_schema(p)])
    facts = [*decode(explicit, state.dictionary)]
    suspects = [*_suspects(facts)]
    if not suspects:
        return []
    base = _Trial(program, facts, [])
    trial = _Trial(program, facts, suspects)
    found = trial.contradictions(base)
    if trial.interacts(base):
        involved = trial.involved(base) or suspects
        found = {}
        if len(involved) > _ALONE:
            left = len(involved) - _ALONE
            LOGGER.warning("%s classes and properties were not tried for members", f"{left:,}")
        for suspect in involved[:_ALONE]:
            alone = _Trial(program, facts, [suspect])
            if alone.new_violations(base):
                found[suspect] = alone
    proved = 0
    results = []
    for suspect in sorted(found, key=lambda one: one.term.value):
        proof = found[suspect].proof(suspect, state) if proved < _PROOFS else None
        proved += proof is not None
        results.append(Unsatisfiable(suspect.term, suspect.kind, proof, state.all_prefixes))
    return results


@dataclass(frozen=True)
class _Suspect:
    """A class or property with its hypothetical members."""

    term: IRI
    kind: str
    members: tuple[BlankNode, ...]

    @property
    def fact(self) -> Atom:
        """The hypothetical fact."""
        if self.kind == "class":
            return Atom(TRIPLE, (self.members[0], TYPE, self.term))
        return Atom(TRIPLE, (self.members[0], self.term, self.members[1]))


def _suspects(facts: Iterable[Atom]) -> Iterator[_Suspect]:
    classes: dict[Constant, None] = {}
    properties: dict[Constant, None] = {}
    for fact in facts:
        if fact.relation != TRIPLE:
            continue
        subject, property_, object_ = fact.terms
        assert isinstance(property_, IRI), "the predicate of a triple is an IRI"
        ends = [term for term in (subject, object_) if isinstance(term, IRI)]
        if property_.value in _OF_CLASSES:
            classes.update(dict.fromkeys(ends))
        elif property_.value in _OF_PROPERTIES:
            properties.update(dict.fromkeys(ends))
        elif property_ == TYPE and isinstance(subject, IRI):
            if object_ in _CLASS_TYPES:
                classes[subject] = None
            elif object_ in _PROPERTY_TYPES:
                properties[subject] = None
        elif property_.value in (_RDFS + "domain", _RDFS + "range") and isinstance(subject, IRI):
            properties[subject] = None
    number = 0
    for kind, terms, width in (("class", classes, 1), ("property", properties, 2)):
        for term in sorted((t for t in terms if isinstance(t, IRI)), key=lambda one: one.value):
            if not term.value.startswith(_VOCABULARIES):
                members = tuple(BlankNode(f"member{number + n}") for n in range(width))
                yield _Suspect(term, kind, members)
                number += width


Row = tuple[str | None, frozenset[tuple[str, Constant]]]


class _Trial:
    """A materialization with hypothetical members."""

    def __init__(
        self, program: Program, facts: Sequence[Atom], suspects: Sequence[_Suspect]
    ) -> None:
        dictionary = Dictionary()
        self._owners: dict[BlankNode, _Suspect] = {
            member: suspect for suspect in suspects for member in suspect.members
        }
        dictionary.encode(self._owners)  # first, so that their ids are the smallest
        numbers = {suspect: number for number, suspect in enumerate(suspects)}
        self._owner_numbers = np.array([numbers[s] for s in self._owners.values()], np.int64)
        engine = make_engine("columnar", dictionary)
        atoms = [*facts, *(suspect.fact for suspect in suspects)]
        explicit = engine.facts(encode(atoms, dictionary))
        self.state = KnowledgeState.derive(program, explicit, engine, Settings())
        self._found = [
            one for one in self.state.reasoner.inconsistencies(examples=None) if one.examples
        ]

    def contradictions(self, base: _Trial) -> dict[_Suspect, _Trial]:
        """The suspects of violations that mention members of one suspect only."""
        return {
            next(iter(owners)): self
            for one in self._found
            for example in one.examples
            if len(owners := self._owners_of(example.substitution.values())) == 1
        }

    def interacts(self, base: _Trial) -> bool:
        """Whether members act on each other, or on facts that mention none of them."""
        without = 0
        for predicate in self.state.reasoner.facts.predicates():
            rows = self.state.reasoner.facts.rows(predicate)
            is_member = rows < len(self._owners)
            without += int((~is_member.any(axis=1)).sum())
            if rows.shape[1] > 1 and len(self._owners):
                both = rows[is_member.all(axis=1)]
                owners = self._owner_numbers[both]
                if len(owners) and (owners != owners[:, :1]).any():
                    return True
        return without != len(base.state.reasoner.facts)

    def involved(self, base: _Trial) -> list[_Suspect]:
        """The suspects in new violations; none if a violation mentions no member at all."""
        found: dict[_Suspect, None] = {}
        known = base.violations()
        for one in self._found:
            for example in one.examples:
                owners = self._owners_of(example.substitution.values())
                if not owners and _row(one.rule.name, example.substitution) not in known:
                    return []
                found.update(dict.fromkeys(sorted(owners, key=lambda s: s.term.value)))
        return list(found)

    def new_violations(self, base: _Trial) -> bool:
        """Whether there are violations that the base does not have."""
        return bool(self.violations() - base.violations())

    def violations(self) -> set[Row]:
        """The violations, as rules with their substitutions."""
        return {
            _row(one.rule.name, example.substitution)
            for one in self._found
            for example in one.examples
        }

    def proof(self, suspect: _Suspect, state: KnowledgeState) -> Proof | None:
        """Prove a contradiction of a suspect's member."""
        for one in self._found:
            for example in one.examples:
                owners = self._owners_of(example.substitution.values())
                if owners == {suspect} or (not owners and len(self._owners) <= 2):
                    chosen = replace(one, examples=(example,))
                    proved = prove_examples(chosen, self.state.reasoner.explain, {})
                    proof = without_auxiliary(proved.proofs[0])
                    return replace(proof, prefixes=state.all_prefixes)
        return None

    def _owners_of(self, terms: Iterable[Constant]) -> set[_Suspect]:
        return {self._owners[t] for t in terms if isinstance(t, BlankNode) and t in self._owners}


def _row(name: str | None, substitution: Mapping[Any, Constant]) -> Row:
    return name, frozenset((variable.name, term) for variable, term in substitution.items())
