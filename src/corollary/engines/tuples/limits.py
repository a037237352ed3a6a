"""The memory of an index, limits of deletions, and exceptions that end a run early."""

from __future__ import annotations

from dataclasses import dataclass

BYTES_OF_FACT = 150  # of an index, approximately; measured on ontologies of 10⁵ to 10⁷ facts


class DeletionTooExpensive(Exception):
    """A deletion exceeds its step limit: rematerialization is cheaper."""


class TooManySteps(Exception):
    """Facts have many derivations each: evaluation over whole relations is cheaper."""


@dataclass(frozen=True)
class DeletionLimits:
    """The steps after which a deletion stops, because a rematerialization is cheaper."""

    blind: int  # of a deletion whose cost is unknown
    projected: int  # the most that may be projected from a sample of the deleted facts
