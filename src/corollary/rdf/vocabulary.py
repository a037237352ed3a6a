"""Report axioms without effect: the rules never mention their vocabulary.

This counts triples by the properties and classes of RDFS and OWL. Annotations and declarations are
not axioms, and parts of an axiom count with its distinctive term: a restriction with `owl:hasSelf`
is one axiom, whatever else describes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from corollary.core.dictionary import Dictionary, Ids
from corollary.core.notices import Notices
from corollary.core.tables import Tables
from corollary.lang.program import Program
from corollary.lang.syntax import IRI, TRIPLE, TYPE, Rule

RDFS = "http://www.w3.org/2000/01/rdf-schema#"
# Triples by properties and classes of RDFS and OWL, imported documents, ontologies.
Vocabulary = tuple[dict[str, int], list[str], list[str]]
OWL = "http://www.w3.org/2002/07/owl#"
IMPORTS = IRI(OWL + "imports")
_IMPORTS_SHOWN = 10  # in a warning
ONTOLOGY = IRI(OWL + "Ontology")
_NAMESPACES = {"rdfs": RDFS, "owl": OWL}
# Annotations, declarations, and parts of axioms.
_IGNORED = frozenset(
    RDFS + name
    for name in (
        "label", "comment", "seeAlso", "isDefinedBy", "member", "Resource", "Class", "Literal",
        "Datatype", "Container", "ContainerMembershipProperty",
    )
) | frozenset(
    OWL + name
    for name in (
        "versionInfo", "versionIRI", "priorVersion", "backwardCompatibleWith", "incompatibleWith",
        "deprecated", "imports", "annotatedSource", "annotatedProperty", "annotatedTarget",
        "topObjectProperty", "bottomObjectProperty", "topDataProperty", "bottomDataProperty",
        "onProperty", "onProperties", "onClass", "onDataRange", "onDatatype", "withRestrictions",
        "members", "distinctMembers", "sourceIndividual", "assertionProperty", "targetIndividual",
        "targetValue", "Ontology", "Class", "Restriction", "ObjectProperty", "DatatypeProperty",
        "AnnotationProperty", "OntologyProperty", "NamedIndividual", "Thing", "Nothing",
        "DataRange", "Axiom", "Annotation", "DeprecatedClass", "DeprecatedProperty", "rational",
        "real",
    )
)  # fmt: skip


def read_by(program: Program) -> frozenset[str]:
    """Collect the terms of RDFS and OWL in the bodies of a program's rules."""
    terms: set[str] = set()
    for rule in (*program.rules, *program.constraints):
        terms |= _mentioned(rule)
    return frozenset(terms)


def _mentioned(rule: Rule) -> frozenset[str]:
    """Collect the terms of RDFS and OWL in the body of a rule; cached in the rule."""
    known = rule.memory.get("vocabulary")
    if isinstance(known, frozenset):
        return known
    found = frozenset(
        term.value
        for atom, _ in rule.atoms()
        for term in (atom.terms if atom.relation == TRIPLE else ())
        if isinstance(term, IRI) and term.value.startswith((RDFS, OWL))
    )
    rule.memory["vocabulary"] = found
    return found


def note_unread(counts: Mapping[str, int], program: Program, notices: Notices) -> None:
    """Report axioms whose vocabulary the rules do not read, if they read any vocabulary at all."""
    if not any(term not in _IGNORED and count for term, count in counts.items()):
        return
    known = read_by(program)
    if not known:
        return  # the rules are not about ontologies
    for term, count in counts.items():
        if term not in known and term not in _IGNORED:
            notices.add("W103", count, detail=_short(term))


def note_imports(
    imported: Iterable[str], ontologies: Iterable[str], notices: Notices, file: str | None = None
) -> None:
    """Report imports of documents that are not among the data."""
    missing = sorted({*imported} - {*ontologies})
    if missing:
        shown = ", ".join(missing[:_IMPORTS_SHOWN]) + (", …" if missing[_IMPORTS_SHOWN:] else "")
        notices.add("W102", len(missing), file=file, detail=shown)


def vocabulary_of(tables: Tables) -> dict[str, int]:
    """Count the triples with a property or class of RDFS or OWL."""
    counts: dict[str, int] = {}
    for predicate, rows in tables.items():
        term = predicate.member_of if predicate.member_of is not None else predicate.property
        if isinstance(term, IRI) and term.value.startswith((RDFS, OWL)):
            counts[term.value] = counts.get(term.value, 0) + len(rows)
    return counts


def vocabulary_of_columns(columns: Sequence[Ids], dictionary: Dictionary) -> Vocabulary:
    """Like `vocabulary_of` for columns of triples; also returns imported documents, ontologies."""
    if not len(columns) or not len(columns[0]):
        return {}, [], []
    from pyarrow import compute

    texts = dictionary.texts_from(0)
    ours = compute.or_(
        compute.starts_with(texts, f"<{RDFS}"), compute.starts_with(texts, f"<{OWL}")
    )
    ids = np.flatnonzero(ours.to_numpy(zero_copy_only=False))
    if not len(ids):
        return {}, [], []
    subject, predicate, object_ = columns
    type_ = dictionary.find(TYPE)
    counts = np.bincount(predicate, minlength=len(texts))
    if type_ is not None:
        counts = counts + np.bincount(object_[predicate == type_], minlength=len(texts))
    found = {texts[int(i)].as_py()[1:-1]: int(counts[i]) for i in ids if counts[i]}
    imported: list[str] = []
    ontologies: list[str] = []
    if IMPORTS.value in found:
        rows = object_[predicate == dictionary.find(IMPORTS)]
        imported = dictionary.texts(np.unique(rows)).to_pylist()
    if ONTOLOGY.value in found and type_ is not None:
        rows = subject[(predicate == type_) & (object_ == dictionary.find(ONTOLOGY))]
        ontologies = dictionary.texts(np.unique(rows)).to_pylist()
    return found, imported, ontologies


def _short(term: str) -> str:
    for prefix, namespace in _NAMESPACES.items():
        if term.startswith(namespace):
            return f"{prefix}:{term.removeprefix(namespace)}"
    return term
