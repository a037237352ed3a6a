"""What the commit of a version says about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from typing import Any, NamedTuple

from corollary.errors import OperationFailed
from corollary.store.layout import FORMAT


class Count(NamedTuple):
    """How many facts a relation has."""

    width: int  # arguments
    explicit: int
    facts: int  # explicit ones included


@dataclass(frozen=True)
class Statistics:
    """What a writer knows about the version that it commits.

    `relations` counts the facts of each plain relation, and of `triples`.
    """

    relations: Mapping[str, Count] = field(default_factory=dict)
    inserted: int = 0
    deleted: int = 0
    algorithm: str = ""
    reason: str = ""
    engine: str = ""
    rounds: int = 0
    derivations: Mapping[str, int] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)

    @property
    def explicit(self) -> int:
        """All explicit facts."""
        return sum(count.explicit for count in self.relations.values())

    @property
    def facts(self) -> int:
        """All facts."""
        return sum(count.facts for count in self.relations.values())


@dataclass(frozen=True)
class Commit:
    """A version: who made it, when, how, and what it consists of."""

    version: int
    milliseconds: int  # since 1970
    id: str  # of this attempt to commit: rows of `changes` name it
    kind: str  # create, build, update, compact, vacuum, widen
    message: str = ""
    author: str = ""
    program: str = ""  # a hash; `rules` has the text
    rules: int = 0
    axioms: int = 0
    asserted: Sequence[str] = ()  # axioms that data state as well, as text
    mode: str = "materialized"
    equality: str = "rules"
    materialize: Sequence[str] = ()  # patterns whose answers a hybrid store keeps, as text
    terms: int = 0
    batch: str | None = None
    changes: str = "none"  # where they are: table, facts (all are new), none, diff (not written)
    oldest: int = 0  # the first version that can still be read
    settled: int = 0  # the last version that has no tombstones: what was deleted before is not told
    prefixes: Mapping[str, str] = field(default_factory=dict)
    statistics: Statistics = field(default_factory=Statistics)
    format: int = FORMAT

    @property
    def time(self) -> str:
        """When the version was made."""
        moment = datetime.fromtimestamp(self.milliseconds / 1000, UTC)
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def info(self) -> dict[str, Any]:
        """As the metadata of a Delta commit, in the format that is written now."""
        found = asdict(self) | {"format": FORMAT}
        del found["version"], found["milliseconds"]
        return found

    @classmethod
    def of(cls, version: int, milliseconds: int, info: Mapping[str, Any], file: str) -> Commit:
        """From the metadata of a Delta commit; a newer format is refused."""
        if not info or not isinstance(info.get("format"), int):
            raise OperationFailed(
                "E503",
                f"version {version} was not committed by Corollary",
                "tables of a store are written through it only",
                file=file,
            )
        if info["format"] > FORMAT:
            raise OperationFailed(
                "E501",
                f"the store has format {info['format']}, and this Corollary reads up to {FORMAT}",
                "install a newer version of Corollary",
                file=file,
            )
        known = {f.name for f in fields(cls)} - {"version", "milliseconds"}
        values = {name: value for name, value in info.items() if name in known}
        counted = {f.name for f in fields(Statistics)}
        try:
            statistics = {n: v for n, v in values.get("statistics", {}).items() if n in counted}
            statistics["relations"] = {
                name: Count(*counts) for name, counts in statistics.get("relations", {}).items()
            }
            values["statistics"] = Statistics(**statistics)
            return cls(version=version, milliseconds=milliseconds, **values)
        except (AttributeError, TypeError) as error:
            raise OperationFailed(
                "E503",
                f"the store is damaged: the log entry of version {version} is incomplete: {error}",
                "'corollary verify' tells which files are affected; other versions may be whole",
                file=file,
            ) from None
