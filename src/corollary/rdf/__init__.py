"""RDF: parsers for every syntax, and the built-in rule sets."""

from corollary.rdf.rulesets import RULE_SETS, rules

__all__ = ["RULE_SETS", "rules"]
