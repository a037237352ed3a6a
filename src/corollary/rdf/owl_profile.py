"""Axioms outside OWL 2 RL, by the grammar of OWL 2 Profiles, section 4.2.

Axioms are read from triples by the mapping of OWL 2 to RDF, and checked by the position of their
class expressions: a subclass, a superclass, or an equivalent class may each have other forms. The
global restrictions of OWL 2 DL are not checked: the rules do not depend on them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from corollary.lang.printer import Printer
from corollary.lang.syntax import IRI, RDF, TYPE, XSD, BlankNode, Constant, Literal
from corollary.lang.values import value_of

OWL = "http://www.w3.org/2002/07/owl#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
_SWRL = "http://www.w3.org/2003/11/swrl#"
THING, NOTHING = IRI(OWL + "Thing"), IRI(OWL + "Nothing")
_NIL = IRI(RDF + "nil")

# The datatypes of OWL 2 RL (section 4.2.1).
DATATYPES = frozenset(
    {RDF + "PlainLiteral", RDF + "XMLLiteral", RDF + "langString", RDFS + "Literal"}
    | {
        XSD + name
        for name in (
            "decimal", "integer", "nonNegativeInteger", "nonPositiveInteger", "positiveInteger",
            "negativeInteger", "long", "int", "short", "byte", "unsignedLong", "unsignedInt",
            "unsignedShort", "unsignedByte", "float", "double", "string", "normalizedString",
            "token", "language", "Name", "NCName", "NMTOKEN", "boolean", "hexBinary",
            "base64Binary", "anyURI", "dateTime", "dateTimeStamp",
        )
    }
)  # fmt: skip
_UNSUPPORTED_PROPERTIES = frozenset(
    OWL + name
    for name in (
        "topObjectProperty", "bottomObjectProperty", "topDataProperty", "bottomDataProperty",
    )
)  # fmt: skip
_CARDINALITIES = {
    "minCardinality": "MinCardinality",
    "maxCardinality": "MaxCardinality",
    "cardinality": "ExactCardinality",
    "minQualifiedCardinality": "MinCardinality",
    "maxQualifiedCardinality": "MaxCardinality",
    "qualifiedCardinality": "ExactCardinality",
}
_ASSERTION = "Assertion"
_SUB, _SUPER, _EQUIVALENT = "a subclass", "a superclass", "an equivalent class"
Position = str


@dataclass(frozen=True)
class OutsideAxiom:
    """An axiom outside OWL 2 RL: its text in functional syntax, the construct, and the reason."""

    axiom: str
    construct: str
    reason: str

    def __str__(self) -> str:
        return f"{self.axiom}\n  {self.reason}"

    def to_json(self) -> dict[str, str]:
        """Convert to a dictionary: `axiom`, `construct` and `reason`."""
        return dict(vars(self))


Triple = tuple[Constant, Constant, Constant]


def outside_rl(
    triples: Iterable[Triple], prefixes: Mapping[str, str] | None = None
) -> list[OutsideAxiom]:
    """List the axioms among triples that are outside OWL 2 RL by their text, assertions last.

    >>> owl, a, b = "http://www.w3.org/2002/07/owl#", IRI("urn:a"), IRI("urn:b")
    >>> for found in outside_rl([(a, TYPE, IRI(owl + "ReflexiveProperty"))]):
    ...     print(found)
    ReflexiveObjectProperty(<urn:a>)
      OWL 2 RL has no reflexive properties
    """
    found = set(_Ontology(triples, prefixes).outside())
    return sorted(found, key=lambda one: (_ASSERTION in one.axiom.partition("(")[0], one.axiom))


@dataclass(frozen=True)
class _Problem:
    """Why an expression may not stand where it stands."""

    construct: str
    reason: str


@dataclass
class _Node:
    """The properties of a subject, with their values."""

    values: dict[str, list[Constant]] = field(default_factory=dict)

    def first(self, name: str) -> Constant | None:
        found = self.values.get(name)
        return found[0] if found else None


class _Ontology:
    """Triples about the schema, by subject."""

    def __init__(self, triples: Iterable[Triple], prefixes: Mapping[str, str] | None) -> None:
        self._nodes: dict[Constant, _Node] = {}
        self._printer = Printer(prefixes)
        for subject, property_, object_ in triples:
            if isinstance(property_, IRI):
                node = self._nodes.setdefault(subject, _Node())
                node.values.setdefault(property_.value, []).append(object_)

    # -- axioms --------------------------------------------------------------------------------

    def outside(self) -> Iterator[OutsideAxiom]:
        """Check every axiom."""
        for subject, node in self._nodes.items():
            for property_, values in node.values.items():
                check = _AXIOMS.get(property_)
                if check is not None:
                    for value in values:
                        yield from check(self, subject, value)
            yield from self._definition(subject, node)
            yield from self._use(subject, node)
        yield from self._assertions()

    def _sub_class(self, sub: Constant, sup: Constant) -> Iterator[OutsideAxiom]:
        text = f"SubClassOf({self._class(sub)} {self._class(sup)})"
        yield from self._report(text, (sub, _SUB), (sup, _SUPER))

    def _equivalent(self, one: Constant, other: Constant) -> Iterator[OutsideAxiom]:
        if self._is_datatype(one):
            text = f"DatatypeDefinition({self._class(one)} {self._class(other)})"
            yield from self._report_problem(text, self._data_range(other))
            return
        text = f"EquivalentClasses({self._class(one)} {self._class(other)})"
        yield from self._report(text, (one, _EQUIVALENT), (other, _EQUIVALENT))

    def _definition(self, subject: Constant, node: _Node) -> Iterator[OutsideAxiom]:
        """An IRI with a class constructor is a class that is equivalent to an expression."""
        if not isinstance(subject, IRI):
            return
        for name, construct in _CONSTRUCTORS.items():
            for value in node.values.get(OWL + name, ()):
                if self._is_datatype(subject):
                    text = f"DatatypeDefinition({self._class(subject)} …)"
                    yield from self._report_problem(text, self._data_range_node(node))
                    continue
                inner = self._constructed(construct, value)
                text = f"EquivalentClasses({self._class(subject)} {inner})"
                problem = self._constructed_problem(name, value, _EQUIVALENT)
                yield from self._report_problem(text, problem)
        restriction = self._restriction(node, 0)
        if restriction is not None:
            text = f"EquivalentClasses({self._class(subject)} {restriction})"
            yield from self._report_problem(text, self._restriction_problem(node, _EQUIVALENT, 0))

    def _disjoint(self, one: Constant, other: Constant) -> Iterator[OutsideAxiom]:
        text = f"DisjointClasses({self._class(one)} {self._class(other)})"
        yield from self._report(text, (one, _SUB), (other, _SUB))

    def _disjoint_union(self, one: Constant, parts: Constant) -> Iterator[OutsideAxiom]:
        text = f"DisjointUnion({self._class(one)} {self._listed(parts)})"
        yield OutsideAxiom(text, "DisjointUnion", "OWL 2 RL has no disjoint unions")

    def _members(self, subject: Constant, parts: Constant) -> Iterator[OutsideAxiom]:
        if IRI(OWL + "AllDisjointClasses") in self._types(subject):
            text = f"DisjointClasses({self._listed(parts)})"
            yield from self._report(text, *((part, _SUB) for part in self._list(parts)))

    def _domain(self, property_: Constant, class_: Constant) -> Iterator[OutsideAxiom]:
        if self._is_annotation(property_):
            return
        text = f"{self._kind(property_)}PropertyDomain({self._property(property_)} "
        text = f"{text}{self._class(class_)})"
        problem = self._property_problem(property_) or self._problem(class_, _SUPER)
        yield from self._report_problem(text, problem)

    def _range(self, property_: Constant, range_: Constant) -> Iterator[OutsideAxiom]:
        if self._is_annotation(property_):
            return
        kind = self._kind(property_)
        if kind == "Object" and self._is_datatype(range_):
            kind = "Data"
        text = f"{kind}PropertyRange({self._property(property_)} {self._class(range_)})"
        is_data = kind == "Data"
        problem = self._data_range(range_) if is_data else self._problem(range_, _SUPER)
        yield from self._report_problem(text, self._property_problem(property_) or problem)

    def _key(self, class_: Constant, properties: Constant) -> Iterator[OutsideAxiom]:
        text = f"HasKey({self._class(class_)} {self._listed(properties)})"
        problem = self._problem(class_, _SUB)
        if problem is None:
            yield from self._report_property(text, *self._list(properties))
        yield from self._report_problem(text, problem)

    def _type(self, subject: Constant, class_: Constant) -> Iterator[OutsideAxiom]:
        if class_ == IRI(OWL + "ReflexiveProperty"):
            text = f"ReflexiveObjectProperty({self._property(subject)})"
            reason = "OWL 2 RL has no reflexive properties"
            yield OutsideAxiom(text, "ReflexiveObjectProperty", reason)
        elif class_ == IRI(_SWRL + "Imp"):
            yield OutsideAxiom(
                f"DLSafeRule({self._term(subject)})", "DLSafeRule", "SWRL rules are not OWL 2"
            )
        elif class_ == THING or isinstance(class_, BlankNode):
            text = f"ClassAssertion({self._class(class_)} {self._term(subject)})"
            yield from self._report(text, (class_, _SUPER))

    def _use(self, subject: Constant, node: _Node) -> Iterator[OutsideAxiom]:
        """Axioms about top and bottom properties, which OWL 2 RL does not support."""
        types = node.values.get(TYPE.value, ())
        for name, axiom in _PROPERTY_AXIOMS.items():
            for value in node.values.get(name, ()):
                if axiom == "InverseObjectProperties" and isinstance(subject, BlankNode):
                    continue  # an inverse property expression; the axiom is where it is used
                text = f"{axiom}({self._property(subject)} {self._property(value)})"
                yield from self._report_property(text, subject, value)
        for type_ in types:
            axiom = _CHARACTERISTICS.get(type_.value, "") if isinstance(type_, IRI) else ""
            if axiom:
                text = f"{axiom}({self._property(subject)})"
                yield from self._report_property(text, subject)
        for value in node.values.get(OWL + "propertyChainAxiom", ()):
            chain = self._list(value)
            inner = " ".join(map(self._property, chain))
            text = f"SubObjectPropertyOf(ObjectPropertyChain({inner}) {self._property(subject)})"
            yield from self._report_property(text, *chain, subject)
        if IRI(OWL + "AllDisjointProperties") in types:
            parts = [
                part for head in node.values.get(OWL + "members", ()) for part in self._list(head)
            ]
            text = f"DisjointProperties({' '.join(map(self._property, parts))})"
            yield from self._report_property(text, *parts)

    def _assertions(self) -> Iterator[OutsideAxiom]:
        """Assertions of top and bottom properties, and of values of unsupported datatypes.

        Those of one property for one reason are one finding, which shows the first of them.
        """
        found: dict[tuple[str, str], list[OutsideAxiom]] = {}
        for subject, node in self._nodes.items():
            for kind, source, property_, value in self._asserted(subject, node):
                problem = self._property_problem(property_) or self._literal_problem(value)
                if problem is not None:
                    name = self._property(property_)
                    text = f"{kind}PropertyAssertion({name} {self._term(source)} "
                    one = OutsideAxiom(f"{text}{self._term(value)})", *vars(problem).values())
                    found.setdefault((f"{kind} {name}", problem.reason), []).append(one)
        for (_, reason), axioms in found.items():
            first = min(axioms, key=lambda one: one.axiom)
            more = len(axioms) - 1
            and_more = f" (the same in {more:,} more of its assertions)" if more else ""
            yield replace(first, reason=reason + and_more)

    def _asserted(
        self, subject: Constant, node: _Node
    ) -> Iterator[tuple[str, Constant, Constant, Constant]]:
        """Assertions as kind, individual, property and value."""
        property_ = node.first(OWL + "assertionProperty")
        target = node.first(OWL + "targetValue") or node.first(OWL + "targetIndividual")
        if property_ is not None and target is not None:
            source = node.first(OWL + "sourceIndividual") or subject
            kind = "Data" if isinstance(target, Literal) else "Object"
            yield f"Negative{kind}", source, property_, target
        for name, values in node.values.items():
            for value in values:
                kind = "Data" if isinstance(value, Literal) else "Object"
                if name in _UNSUPPORTED_PROPERTIES or (
                    kind == "Data" and self._kind(IRI(name)) == "Data"
                ):
                    yield kind, subject, IRI(name), value

    def _report_property(self, text: str, *properties: Constant) -> Iterator[OutsideAxiom]:
        problems = map(self._property_problem, properties)
        found = next((problem for problem in problems if problem is not None), None)
        yield from self._report_problem(text, found)

    def _property_problem(self, property_: Constant | None) -> _Problem | None:
        """Top and bottom properties may stand nowhere, and neither may their inverses."""
        inverse = self._inverse(property_)
        property_ = property_ if inverse is None else inverse
        if isinstance(property_, IRI) and property_.value in _UNSUPPORTED_PROPERTIES:
            name = self._term(property_)
            return _Problem(name, f"OWL 2 RL does not support {name}")
        return None

    # -- class expressions ---------------------------------------------------------------------

    def _report(self, text: str, *expressions: tuple[Constant, Position]) -> Iterator[OutsideAxiom]:
        for expression, position in expressions:
            problem = self._problem(expression, position)
            if problem is not None:
                yield OutsideAxiom(text, problem.construct, problem.reason)
                return

    def _report_problem(self, text: str, problem: _Problem | None) -> Iterator[OutsideAxiom]:
        if problem is not None:
            yield OutsideAxiom(text, problem.construct, problem.reason)

    def _problem(self, expression: Constant, position: Position, depth: int = 0) -> _Problem | None:
        """The first part of a class expression that may not stand at its position."""
        if expression == THING:
            return _Problem("owl:Thing", f"owl:Thing may not be {position} in OWL 2 RL")
        if isinstance(expression, IRI) or depth > _DEEPEST:
            return None
        if isinstance(expression, Literal):
            return _Problem("literal", "a literal is no class")
        node = self._nodes.get(expression, _Node())
        for name in _CONSTRUCTORS:
            value = node.first(OWL + name)
            if value is not None:
                return self._constructed_problem(name, value, position, depth)
        return self._restriction_problem(node, position, depth)

    def _constructed_problem(
        self, name: str, value: Constant, position: Position, depth: int = 0
    ) -> _Problem | None:
        construct = _CONSTRUCTORS[name]
        if name == "intersectionOf":
            return self._first_problem(self._list(value), position, depth)
        if name == "unionOf" and position == _SUB:
            return self._first_problem(self._list(value), _SUB, depth)
        if name == "oneOf" and position == _SUB:
            return None
        if name == "complementOf" and position == _SUPER:
            return self._problem(value, _SUB, depth + 1)
        return _Problem(construct, f"{construct} may not be {position} in OWL 2 RL")

    def _first_problem(
        self, parts: Iterable[Constant], position: Position, depth: int
    ) -> _Problem | None:
        problems = (self._problem(part, position, depth + 1) for part in parts)
        return next((problem for problem in problems if problem is not None), None)

    def _restriction_problem(self, node: _Node, position: Position, depth: int) -> _Problem | None:
        kind = self._restriction_kind(node)
        if OWL + "onProperties" in node.values:
            return _Problem("onProperties", "a restriction of several properties has no effect")
        problem = self._property_problem(node.first(OWL + "onProperty"))
        if problem is not None:
            return problem
        filler = node.first(OWL + "someValuesFrom")
        if filler is not None:
            construct = f"{kind}SomeValuesFrom"
            if position != _SUB:
                return _Problem(construct, f"{construct} may not be {position} in OWL 2 RL")
            if kind == "Data":
                return self._data_range(filler)
            return None if filler == THING else self._problem(filler, _SUB, depth + 1)
        filler = node.first(OWL + "allValuesFrom")
        if filler is not None:
            construct = f"{kind}AllValuesFrom"
            if position != _SUPER:
                return _Problem(construct, f"{construct} may not be {position} in OWL 2 RL")
            if kind == "Data":
                return self._data_range(filler)
            return self._problem(filler, _SUPER, depth + 1)
        value = node.first(OWL + "hasValue")
        if value is not None:
            return self._literal_problem(value)
        if node.first(OWL + "hasSelf") is not None:
            return _Problem("ObjectHasSelf", "OWL 2 RL has no ObjectHasSelf")
        for name, cardinality in _CARDINALITIES.items():
            number = node.first(OWL + name)
            if number is not None:
                return self._cardinality_problem(
                    node, f"{kind}{cardinality}", number, position, depth
                )
        return None  # the triples do not say what it is, so they have no effect on classes

    def _cardinality_problem(
        self, node: _Node, construct: str, number: Constant, position: Position, depth: int
    ) -> _Problem | None:
        if not construct.endswith("MaxCardinality"):
            return _Problem(construct, f"OWL 2 RL has no {construct}")
        if position != _SUPER:
            return _Problem(construct, f"{construct} may not be {position} in OWL 2 RL")
        if value_of(number) not in (0, 1):
            name = self._term(number)
            return _Problem(
                construct, f"{construct} is limited to 0 and 1 in OWL 2 RL, but this is {name}"
            )
        filler = node.first(OWL + "onClass")
        if filler is not None and filler != THING:
            return self._problem(filler, _SUB, depth + 1)
        range_ = node.first(OWL + "onDataRange")
        return None if range_ is None else self._data_range(range_)

    def _data_range(self, range_: Constant, depth: int = 0) -> _Problem | None:
        if isinstance(range_, IRI):
            known = range_.value in DATATYPES or self._is_defined(range_)
            name = self._term(range_)
            return None if known else _Problem(name, f"{name} is no datatype of OWL 2 RL")
        if depth > _DEEPEST:
            return None
        return self._data_range_node(self._nodes.get(range_, _Node()), depth)

    def _data_range_node(self, node: _Node, depth: int = 0) -> _Problem | None:
        parts = node.first(OWL + "intersectionOf")
        if parts is not None:
            problems = (self._data_range(part, depth + 1) for part in self._list(parts))
            return next((problem for problem in problems if problem is not None), None)
        for name, construct in _DATA_RANGES.items():
            if node.first(OWL + name) is not None:
                return _Problem(construct, f"OWL 2 RL has no {construct}")
        return None

    def _literal_problem(self, value: Constant) -> _Problem | None:
        if not isinstance(value, Literal) or value.language is not None:
            return None
        datatype = IRI(value.datatype)
        known = datatype.value in DATATYPES or self._is_defined(datatype)
        name = self._term(datatype)
        return None if known else _Problem(name, f"{name} is no datatype of OWL 2 RL")

    # -- kinds -----------------------------------------------------------------------------------

    def _types(self, term: Constant) -> list[Constant]:
        node = self._nodes.get(term)
        return [] if node is None else node.values.get(TYPE.value, [])

    def _is_annotation(self, property_: Constant) -> bool:
        types = self._types(property_)
        return IRI(OWL + "AnnotationProperty") in types and not (
            {IRI(OWL + "ObjectProperty"), IRI(OWL + "DatatypeProperty")} & {*types}
        )

    def _is_defined(self, datatype: IRI) -> bool:
        """Whether the ontology defines a datatype of its own."""
        node = self._nodes.get(datatype)
        return node is not None and (
            OWL + "equivalentClass" in node.values
            or (
                not datatype.value.startswith((XSD, OWL, RDF, RDFS)) and self._is_datatype(datatype)
            )
        )

    def _is_datatype(self, term: Constant) -> bool:
        types = self._types(term)
        if IRI(RDFS + "Datatype") in types or IRI(OWL + "DataRange") in types:
            return True
        if isinstance(term, IRI):
            return term.value in DATATYPES or term.value.startswith(XSD)
        node = self._nodes.get(term)
        return node is not None and any(
            OWL + name in node.values for name in ("onDatatype", "datatypeComplementOf")
        )

    def _kind(self, property_: Constant | None) -> str:
        """`Data` for a data property, else `Object`."""
        if property_ is None:
            return "Object"
        return "Data" if IRI(OWL + "DatatypeProperty") in self._types(property_) else "Object"

    def _restriction_kind(self, node: _Node) -> str:
        property_ = node.first(OWL + "onProperty")
        if self._kind(property_) == "Data":
            return "Data"
        fillers = (node.first(OWL + n) for n in ("someValuesFrom", "allValuesFrom"))
        is_data = any(filler is not None and self._is_datatype(filler) for filler in fillers)
        is_data = is_data or isinstance(node.first(OWL + "hasValue"), Literal)
        return "Data" if is_data or node.first(OWL + "onDataRange") is not None else "Object"

    def _list(self, head: Constant) -> list[Constant]:
        """The members of a list, up to the first cell that is not well-formed."""
        found: list[Constant] = []
        seen: set[Constant] = set()
        while head != _NIL and head not in seen and head in self._nodes:
            seen.add(head)
            node = self._nodes[head]
            first = node.first(RDF + "first")
            if first is None:
                break
            found.append(first)
            head = node.first(RDF + "rest") or _NIL
        return found

    # -- text --------------------------------------------------------------------------------------

    def _term(self, term: Constant) -> str:
        return self._printer.term(term)

    def _listed(self, head: Constant) -> str:
        return " ".join(self._class(part) for part in self._list(head))

    def _inverse(self, term: Constant | None) -> Constant | None:
        """The property of an inverse property expression."""
        node = self._nodes.get(term) if isinstance(term, BlankNode) else None
        return None if node is None else node.first(OWL + "inverseOf")

    def _property(self, term: Constant) -> str:
        inverse = self._inverse(term)
        return self._term(term) if inverse is None else f"ObjectInverseOf({self._term(inverse)})"

    def _constructed(self, construct: str, value: Constant, depth: int = 0) -> str:
        if construct == "ObjectComplementOf":
            return f"{construct}({self._class(value, depth + 1)})"
        inner = " ".join(self._class(part, depth + 1) for part in self._list(value))
        return f"{construct}({inner})"

    def _class(self, expression: Constant, depth: int = 0) -> str:
        """A class expression or data range in functional syntax; deep ones are cut short."""
        node = self._nodes.get(expression)
        if not isinstance(expression, BlankNode) or node is None:
            return self._term(expression)
        if depth > _DEEPEST_TEXT:
            return "…"
        is_data = self._is_datatype(expression)
        for name, construct in _CONSTRUCTORS.items():
            value = node.first(OWL + name)
            if value is not None:
                construct = construct.replace("Object", "Data") if is_data else construct
                return self._constructed(construct, value, depth)
        datatype = node.first(OWL + "onDatatype")
        if datatype is not None:
            facets = self._facets(node.first(OWL + "withRestrictions"))
            return f"DatatypeRestriction({' '.join((self._term(datatype), *facets))})"
        other = node.first(OWL + "datatypeComplementOf")
        if other is not None:
            return f"DataComplementOf({self._class(other, depth + 1)})"
        return self._restriction(node, depth) or self._term(expression)

    def _facets(self, head: Constant | None) -> Iterator[str]:
        for facet in () if head is None else self._list(head):
            for name, values in self._nodes.get(facet, _Node()).values.items():
                yield from (f"{self._term(IRI(name))} {self._term(value)}" for value in values)

    def _restriction(self, node: _Node, depth: int) -> str | None:
        kind = self._restriction_kind(node)
        property_ = node.first(OWL + "onProperty")
        name = "…" if property_ is None else self._property(property_)
        for key, construct in (
            ("someValuesFrom", "SomeValuesFrom"),
            ("allValuesFrom", "AllValuesFrom"),
            ("hasValue", "HasValue"),
        ):
            filler = node.first(OWL + key)
            if filler is not None:
                return f"{kind}{construct}({name} {self._class(filler, depth + 1)})"
        if node.first(OWL + "hasSelf") is not None:
            return f"ObjectHasSelf({name})"
        for key, construct in _CARDINALITIES.items():
            number = node.first(OWL + key)
            if number is not None:
                filler = node.first(OWL + "onClass") or node.first(OWL + "onDataRange")
                count = number.lexical if isinstance(number, Literal) else self._term(number)
                last = "" if filler is None else f" {self._class(filler, depth + 1)}"
                return f"{kind}{construct}({count} {name}{last})"
        return None


_DEEPEST = 200  # nested expressions that are checked; OWL tools write a few
_DEEPEST_TEXT = 6
_CONSTRUCTORS = {
    "intersectionOf": "ObjectIntersectionOf",
    "unionOf": "ObjectUnionOf",
    "complementOf": "ObjectComplementOf",
    "oneOf": "ObjectOneOf",
}
_DATA_RANGES = {
    "unionOf": "DataUnionOf",
    "oneOf": "DataOneOf",
    "datatypeComplementOf": "DataComplementOf",
    "complementOf": "DataComplementOf",
    "onDatatype": "DatatypeRestriction",
}
_PROPERTY_AXIOMS = {
    RDFS + "subPropertyOf": "SubPropertyOf",
    OWL + "equivalentProperty": "EquivalentProperties",
    OWL + "propertyDisjointWith": "DisjointProperties",
    OWL + "inverseOf": "InverseObjectProperties",
}
_CHARACTERISTICS = {
    OWL + "FunctionalProperty": "FunctionalProperty",
    OWL + "InverseFunctionalProperty": "InverseFunctionalObjectProperty",
    OWL + "IrreflexiveProperty": "IrreflexiveObjectProperty",
    OWL + "SymmetricProperty": "SymmetricObjectProperty",
    OWL + "AsymmetricProperty": "AsymmetricObjectProperty",
    OWL + "TransitiveProperty": "TransitiveObjectProperty",
}
_Check = Callable[[_Ontology, Constant, Constant], Iterator[OutsideAxiom]]
_AXIOMS: dict[str, _Check] = {
    RDFS + "subClassOf": _Ontology._sub_class,
    OWL + "equivalentClass": _Ontology._equivalent,
    OWL + "disjointWith": _Ontology._disjoint,
    OWL + "disjointUnionOf": _Ontology._disjoint_union,
    OWL + "members": _Ontology._members,
    RDFS + "domain": _Ontology._domain,
    RDFS + "range": _Ontology._range,
    OWL + "hasKey": _Ontology._key,
    TYPE.value: _Ontology._type,
}
