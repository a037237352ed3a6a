"""SHACL: validate a materialization against shapes with pyshacl."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corollary.errors import UNREADABLE, InvalidInput
from corollary.knowledge_base.state import KnowledgeState
from corollary.knowledge_base.surface import triple_table
from corollary.rdf.rdflib_terms import require

_SH = "http://www.w3.org/ns/shacl#"


@dataclass(frozen=True)
class ShapeViolation:
    """A result of a validation: the node, its path and value, the message and the severity."""

    focus: str
    path: str | None
    value: str | None
    message: str
    severity: str

    def __str__(self) -> str:
        path = f" {self.path}" if self.path else ""
        value = f" {self.value}" if self.value else ""
        return f"{self.severity}: {self.focus}{path}{value}: {self.message}"

    def to_json(self) -> dict[str, Any]:
        """Convert to a dictionary of its fields."""
        return dict(vars(self))


def validate_shapes(state: KnowledgeState, file: str | Path) -> list[ShapeViolation]:
    """Validate all triples, explicit and derived, against the shapes of a file."""
    pyshacl = require("pyshacl", "pyshacl", "shapes")
    import rdflib

    if not Path(file).is_file():
        raise InvalidInput("E301", f"there is no file {file}", UNREADABLE, file=str(file))
    try:
        shapes = rdflib.Graph().parse(str(file))
    except Exception as error:  # parsers of rdflib raise errors of many kinds
        reason = str(error).strip().partition("\n")[0]
        raise InvalidInput("E320", f"cannot read the shapes: {reason}", file=str(file)) from None
    facts = state.reasoner.facts
    data = triple_table(facts, state.dictionary, state.all_prefixes).to_rdflib()
    _, report, _ = pyshacl.validate(data, shacl_graph=shapes)
    sh = rdflib.Namespace(_SH)

    def text(node: Any) -> str | None:
        return None if node is None else str(node.n3(data.namespace_manager))

    found = []
    for result in report.subjects(rdflib.RDF.type, sh.ValidationResult):
        severity = str(report.value(result, sh.resultSeverity) or "").removeprefix(_SH)
        found.append(
            ShapeViolation(
                text(report.value(result, sh.focusNode)) or "",
                text(report.value(result, sh.resultPath)),
                text(report.value(result, sh.value)),
                str(report.value(result, sh.resultMessage) or ""),
                severity or "Violation",
            )
        )
    return sorted(found, key=str)
