"""What an index costs, and how a run ends that is not worth going on with."""

from __future__ import annotations

BYTES_OF_FACT = 150  # that an index takes, about; measured on ontologies of 10⁵ to 10⁷ facts


class DeletionTooExpensive(Exception):
    """A deletion takes more steps than it may: deriving everything again is better."""


class TooManySteps(Exception):
    """Facts have many derivations each: evaluation over whole relations is better."""
