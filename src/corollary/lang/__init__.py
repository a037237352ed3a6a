"""The rule language: parse, print, validate, stratify, and the reference evaluator."""
