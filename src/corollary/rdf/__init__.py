"""RDF: the rule sets of its vocabularies, as text."""

from corollary.rdf.rulesets import RULE_SETS, rules

__all__ = ["RULE_SETS", "rules"]
