"""The metadata of a version: its commit and its statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

from corollary.errors import OperationFailed
from corollary.lang.syntax import is_auxiliary
from corollary.store.layout import FORMAT


class Count(NamedTuple):
    """The number of facts of a relation."""

    width: int  # arguments
    explicit: int
    facts: int  # including explicit ones


@dataclass(frozen=True)
class Statistics:
    """Counts and measurements of a version, recorded when it is committed.

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
        """The number of explicit facts."""
        return sum(count.explicit for count in self.relations.values())

    @property
    def facts(self) -> int:
        """The number of all facts."""
        return sum(count.facts for count in self.relations.values())

    @property
    def visible(self) -> Count:
        """The numbers of explicit and of all facts without those of auxiliary relations."""
        shown = [count for name, count in self.relations.items() if not is_auxiliary(name)]
        width = max((count.width for count in shown), default=0)
        return Count(width, sum(c.explicit for c in shown), sum(c.facts for c in shown))


@dataclass(frozen=True)
class Commit:
    """The metadata of a version: author, time, kind, contents and statistics."""

    version: int
    milliseconds: int  # since 1970
    id: str  # of this commit attempt; rows of `changes` refer to it
    kind: str  # create, build, update, compact, vacuum, widen
    message: str = ""
    author: str = ""
    program: str = ""  # a hash; `rules` has the text
    rules: int = 0
    axioms: int = 0
    asserted: Sequence[str] = ()  # axioms that are also data, as text
    mode: str = "materialized"
    equality: str = "rules"
    materialize: Sequence[str] = ()  # patterns that a hybrid store prematerializes, as text
    terms: int = 0
    batch: str | None = None
    changes: str = "none"  # table, facts (all are new), none, diff (not recorded: compare versions)
    oldest: int = 0  # the oldest readable version
    settled: int = 0  # the last version without tombstones; earlier deletions are unknown
    prefixes: Mapping[str, str] = field(default_factory=dict)
    declarations: str = ""  # of the names and types of columns, as text
    statistics: Statistics = field(default_factory=Statistics)
    format: int = FORMAT

    @property
    def time(self) -> str:
        """When the version was committed, in UTC."""
        moment = datetime.fromtimestamp(self.milliseconds / 1000, UTC)
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def summary(self) -> dict[str, Any]:
        """The commit as the log shows it, for JSON."""
        statistics = self.statistics
        return {
            "version": self.version,
            "time": self.time,
            "author": self.author,
            "kind": self.kind,
            "message": self.message,
            "inserted": statistics.inserted,
            "deleted": statistics.deleted,
            "explicit": statistics.visible.explicit,
            "facts": statistics.visible.facts,
            "rules": self.rules,
            "algorithm": statistics.algorithm,
            "engine": statistics.engine,
            "seconds": round(sum(statistics.seconds.values()), 6),
            "batch": self.batch,
        }

    def info(self) -> dict[str, Any]:
        """The metadata of the Delta commit, in the current format."""
        info = asdict(replace(self, prefixes=dict(self.prefixes), format=FORMAT))
        del info["version"], info["milliseconds"]
        return info

    @classmethod
    def of(cls, version: int, milliseconds: int, info: Mapping[str, Any], file: str) -> Commit:
        """Read the metadata of a Delta commit; a newer format is refused."""
        if not info or not isinstance(info.get("format"), int):
            raise OperationFailed(
                "E503",
                f"version {version} was not committed by Corollary",
                "only Corollary may write to the tables of a store",
                file=file,
            )
        if info["format"] > FORMAT:
            raise OperationFailed(
                "E501",
                f"the store has format {info['format']}, but this Corollary reads up to {FORMAT}",
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
                "run 'corollary verify' to list the affected files; other versions may be intact",
                file=file,
            ) from None
