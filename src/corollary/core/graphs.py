"""The names of graphs that are no named graphs, and of the relations that record graphs.

A statement of a named graph is a fact of the relation `QUADS`; a triple is explicit if some graph
that rules read has it. A triple without a quad is in the default graph. Two auxiliary relations
record what this leaves open: `DEFAULTS` has the triples of the default graph that a named graph has
too, or that rules do not read, and `REASON_OVER` the graphs that rules read, if not all of them.
"""

from __future__ import annotations

from corollary.lang.stratify import Predicate
from corollary.lang.syntax import IRI, PSEUDO_GRAPH_NAMESPACE, QUADS

NAMESPACE = PSEUDO_GRAPH_NAMESPACE

DEFAULT = IRI(f"{NAMESPACE}default")  # the explicit triples of the default graph
UNION = IRI(f"{NAMESPACE}union")  # all triples, explicit and derived
EXPLICIT = IRI(f"{NAMESPACE}explicit")  # the explicit triples of all graphs
DERIVED = IRI(f"{NAMESPACE}derived")  # the derived triples
PSEUDO_GRAPHS = (DEFAULT, UNION, EXPLICIT, DERIVED)

QUAD = Predicate(QUADS)
DEFAULTS = Predicate("_default-graph")
REASON_OVER = Predicate("_reason-over")
RECORDS = (QUAD, DEFAULTS, REASON_OVER)
