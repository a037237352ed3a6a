"""Corollary keeps the consequences of rules up to date."""

from corollary.errors import CorollaryError, InvalidInput, InvalidProgram, OperationFailed
from corollary.lang.program import Program
from corollary.rdf import rules

__all__ = [
    "CorollaryError",
    "InvalidInput",
    "InvalidProgram",
    "OperationFailed",
    "Program",
    "rules",
]
