"""RDF: files of every syntax as columns of ids, and the rule sets of its vocabularies as text."""

from corollary.rdf.rulesets import RULE_SETS, rules

__all__ = ["RULE_SETS", "rules"]
