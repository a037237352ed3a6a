"""The ontology of LUBM, `univ-bench`: its axioms as triples, and as rules.

The axioms are facts about a published vocabulary; the tables below say them in our own words. What
rules cannot say (that a graduate student takes some graduate course, without naming one) is in the
triples only.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from corollary.generate.columns import Columns
from corollary.lang.syntax import RDF, TYPE

ONTOLOGY = "http://swat.cse.lehigh.edu/onto/univ-bench.owl"
UB = ONTOLOGY + "#"
OWL = "http://www.w3.org/2002/07/owl#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"

# Every class but those that stand alone, below the class that holds it.
SUBCLASSES = {
    "AdministrativeStaff": "ClericalStaff SystemsStaff",
    "Article": "ConferencePaper JournalArticle TechnicalReport",
    "Course": "GraduateCourse",
    "Employee": "AdministrativeStaff Faculty",
    "Faculty": "Lecturer PostDoc Professor",
    "Organization": "College Department Institute Program ResearchGroup University",
    "Person": "GraduateStudent",
    "Professor": "AssistantProfessor AssociateProfessor Chair Dean FullProfessor VisitingProfessor",
    "Publication": "Article Book Manual Software Specification UnofficialPublication",
    "Student": "ResearchAssistant UndergraduateStudent",
    "Work": "Course Research",
}
ALONE = "Director Schedule TeachingAssistant"

# A class that is a person with some value of a property in a class.
DEFINED = {
    "Chair": ("headOf", "Department"),
    "Dean": ("headOf", "College"),
    "Director": ("headOf", "Program"),
    "Employee": ("worksFor", "Organization"),
    "Student": ("takesCourse", "Course"),
    "TeachingAssistant": ("teachingAssistantOf", "Course"),
}
# A class whose members have some value of a property in a class.
RESTRICTED = {
    "GraduateStudent": ("takesCourse", "GraduateCourse"),
    "ResearchAssistant": ("worksFor", "ResearchGroup"),
}

# Properties: domain and range, - for none.
OBJECT_PROPERTIES = {
    "advisor": "Person Professor",
    "affiliateOf": "Organization Person",
    "affiliatedOrganizationOf": "Organization Organization",
    "degreeFrom": "Person University",
    "doctoralDegreeFrom": "Person University",
    "hasAlumnus": "University Person",
    "headOf": "- -",
    "listedCourse": "Schedule Course",
    "mastersDegreeFrom": "Person University",
    "member": "Organization Person",
    "memberOf": "- -",
    "orgPublication": "Organization Publication",
    "publicationAuthor": "Publication Person",
    "publicationDate": "Publication -",
    "publicationResearch": "Publication Research",
    "researchProject": "ResearchGroup Research",
    "softwareDocumentation": "Software Publication",
    "softwareVersion": "Software -",
    "takesCourse": "- -",
    "teacherOf": "Faculty Course",
    "teachingAssistantOf": "TeachingAssistant Course",
    "tenured": "Professor -",
    "undergraduateDegreeFrom": "Person University",
    "worksFor": "- -",
}
TRANSITIVE_PROPERTIES = {"subOrganizationOf": "Organization Organization"}
DATATYPE_PROPERTIES = {
    "age": "Person -",
    "emailAddress": "Person -",
    "name": "- -",
    "officeNumber": "- -",
    "researchInterest": "- -",
    "telephone": "Person -",
    "title": "Person -",
}
SUBPROPERTIES = {
    "degreeFrom": "doctoralDegreeFrom mastersDegreeFrom undergraduateDegreeFrom",
    "memberOf": "worksFor",
    "worksFor": "headOf",
}
INVERSES = (("degreeFrom", "hasAlumnus"), ("hasAlumnus", "degreeFrom"), ("memberOf", "member"))

PROPERTIES = OBJECT_PROPERTIES | TRANSITIVE_PROPERTIES | DATATYPE_PROPERTIES


def classes() -> list[str]:
    """The names of all classes.

    >>> len(classes()), classes()[0]
    (43, 'AdministrativeStaff')
    """
    below = " ".join(SUBCLASSES.values()).split()
    return sorted({*SUBCLASSES, *below, *ALONE.split()})


def facts() -> Iterator[Columns]:
    """The axioms as triples, by property.

    >>> sum(map(len, facts()))
    218
    """
    by_property: dict[str, list[tuple[str, str]]] = {}
    for subject, property_, value in _triples():
        by_property.setdefault(property_, []).append((subject, value))
    for property_, pairs in by_property.items():
        subjects, objects = zip(*pairs, strict=True)
        yield Columns(property_, (pa.array(subjects), pa.array(objects)))


def _triples() -> Iterator[tuple[str, str, str]]:
    yield f"<{ONTOLOGY}>", TYPE.value, _owl("Ontology")
    yield f"<{ONTOLOGY}>", RDFS + "comment", '"The axioms of LUBM, written by corollary generate"'
    for name in classes():
        yield _ub(name), TYPE.value, _owl("Class")
    for above, names in SUBCLASSES.items():
        for name in names.split():
            yield _ub(name), RDFS + "subClassOf", _ub(above)
    for name, (property_, filler) in RESTRICTED.items():
        yield _ub(name), RDFS + "subClassOf", f"_:some{name}"
        yield from _some_values(name, property_, filler)
    for name, (property_, filler) in DEFINED.items():
        yield _ub(name), OWL + "intersectionOf", f"_:both{name}"
        yield f"_:both{name}", RDF + "first", _ub("Person")
        yield f"_:both{name}", RDF + "rest", f"_:rest{name}"
        yield f"_:rest{name}", RDF + "first", f"_:some{name}"
        yield f"_:rest{name}", RDF + "rest", f"<{RDF}nil>"
        yield from _some_values(name, property_, filler)
    for kind, properties in (
        ("ObjectProperty", OBJECT_PROPERTIES),
        ("TransitiveProperty", TRANSITIVE_PROPERTIES),
        ("DatatypeProperty", DATATYPE_PROPERTIES),
    ):
        for name, ends in properties.items():
            yield _ub(name), TYPE.value, _owl(kind)
            for axiom, end in zip(("domain", "range"), ends.split(), strict=True):
                if end != "-":
                    yield _ub(name), RDFS + axiom, _ub(end)
    for above, names in SUBPROPERTIES.items():
        for name in names.split():
            yield _ub(name), RDFS + "subPropertyOf", _ub(above)
    for name, inverse in INVERSES:
        yield _ub(name), OWL + "inverseOf", _ub(inverse)


def _some_values(name: str, property_: str, filler: str) -> Iterator[tuple[str, str, str]]:
    yield f"_:some{name}", TYPE.value, _owl("Restriction")
    yield f"_:some{name}", OWL + "onProperty", _ub(property_)
    yield f"_:some{name}", OWL + "someValuesFrom", _ub(filler)


def _ub(name: str) -> str:
    return f"<{UB}{name}>"


def _owl(name: str) -> str:
    return f"<{OWL}{name}>"


def rules() -> str:
    """The axioms as a program in the rule language, an axiom a line.

    >>> from corollary.lang.program import Program
    >>> len(Program.parse(rules()).rules)
    99
    """
    lines = [f"% The axioms of LUBM's ontology that rules can say.\n@prefix ub: <{UB}> ."]
    for above, names in SUBCLASSES.items():
        lines += [f"[?x, a, ub:{above}] :- [?x, a, ub:{name}] ." for name in names.split()]
    for name, (property_, filler) in DEFINED.items():
        some = f"[?x, ub:{property_}, ?y], [?y, a, ub:{filler}]"
        lines.append(f"[?x, a, ub:{name}] :- [?x, a, ub:Person], {some} .")
        lines.append(f"[?x, a, ub:Person] :- [?x, a, ub:{name}] .")
    for name, ends in PROPERTIES.items():
        for variable, end in zip(("?x", "?y"), ends.split(), strict=True):
            if end != "-":
                lines.append(f"[{variable}, a, ub:{end}] :- [?x, ub:{name}, ?y] .")
    for above, names in SUBPROPERTIES.items():
        lines += [f"[?x, ub:{above}, ?y] :- [?x, ub:{name}, ?y] ." for name in names.split()]
    for one, other in sorted({pair for a, b in INVERSES for pair in ((a, b), (b, a))}):
        lines.append(f"[?x, ub:{one}, ?y] :- [?y, ub:{other}, ?x] .")
    for name in TRANSITIVE_PROPERTIES:
        lines.append(f"[?x, ub:{name}, ?z] :- [?x, ub:{name}, ?y], [?y, ub:{name}, ?z] .")
    return "\n".join(lines) + "\n"
