"""Statistics of a materialization or update, as in the papers' tables."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Statistics:
    """Counts by phase; callers that measure time fill in `seconds`.

    >>> statistics = Statistics("semi-naive", "the program is new")
    >>> statistics.count("recursive", 3)
    >>> statistics.derivations
    {'recursive': 3}
    """

    algorithm: str
    reason: str
    rounds: int = 0
    derivations: dict[str, int] = field(default_factory=dict)
    considered: dict[str, int] = field(default_factory=dict)  # facts examined by a phase
    seconds: dict[str, float] = field(default_factory=dict)

    def count(self, phase: str, instances: int) -> None:
        """Add rule instances to a phase."""
        self.derivations[phase] = self.derivations.get(phase, 0) + instances

    def consider(self, phase: str, facts: int) -> None:
        """Add to the facts examined by a phase."""
        self.considered[phase] = self.considered.get(phase, 0) + facts

    def include(self, other: Statistics) -> None:
        """Add the counts of other statistics."""
        self.rounds += other.rounds
        for phase, instances in other.derivations.items():
            self.count(phase, instances)
        for phase, facts in other.considered.items():
            self.consider(phase, facts)
