"""`Store`: a folder of Delta tables with the versions of a materialization."""

from __future__ import annotations

import getpass
import uuid
from collections.abc import Iterator
from pathlib import Path

from corollary.errors import InvalidInput, OperationFailed
from corollary.store import delta, steps
from corollary.store.commits import Commit
from corollary.store.delta import Table, not_a_store, unwritable
from corollary.store.layout import (
    CHANGES,
    FACTS,
    MODES,
    RULES,
    RULES_SCHEMA,
    TERMS,
    TERMS_SCHEMA,
    WIDTH,
    changes_schema,
    facts_schema,
    width_of,
)
from corollary.store.marker import mark, refuse_lost_log, refuse_occupied, remove_unfinished
from corollary.store.places import local_path
from corollary.store.snapshot import Snapshot
from corollary.store.writer import Writer


class Store:
    """Versions of facts and rules in a folder.

    >>> import tempfile, pyarrow as pa
    >>> from corollary.store import Statistics
    >>> from corollary.store.commits import Count
    >>> from corollary.lang.program import Program
    >>> store = Store.create(Path(tempfile.mkdtemp()) / "paths")
    >>> writer = store.writer()
    >>> writer.add_terms(pa.array(['"a"', '"b"']))
    >>> writer.add_facts(pa.table({"relation": ["edge"], "arg0": [0], "arg1": [1]}), explicit=True)
    >>> program = Program.parse("path(?x, ?y) :- edge(?x, ?y) .")
    >>> writer.add_facts(pa.table({"relation": ["path"], "arg0": [0], "arg1": [1]}))
    >>> counts = {"edge": Count(2, 1, 1), "path": Count(2, 0, 1)}
    >>> writer.commit(program=program, statistics=Statistics(counts, inserted=2), message="begin")
    1
    >>> now = Store.open(store.path).snapshot()
    >>> now.version, now.statistics.facts, now.facts("path").to_pylist()
    (1, 2, [{'relation': 'path', 'arg0': 0, 'arg1': 1, 'arg2': None, 'explicit': False}])
    """

    def __init__(self, path: Path) -> None:
        """Use `create` or `open`."""
        self.path = path
        self.facts, self.terms = Table(path / FACTS), Table(path / TERMS)
        self.changes, self.rules = Table(path / CHANGES), Table(path / RULES)

    @classmethod
    def create(
        cls,
        path: str | Path,
        *,
        mode: str = "materialized",
        equality: str = "rules",
        author: str | None = None,
        width: int = WIDTH,
    ) -> Store:
        """Make an empty store; its version is 0. The folder must be empty, or missing.

        Facts may have `width` arguments; more columns come when they are needed.
        """
        width = max(width, WIDTH)
        if mode not in MODES:
            raise InvalidInput("E507", f"there is no mode {mode}", f"there are {', '.join(MODES)}")
        path = local_path(path)
        store = cls(path)
        refuse_occupied(path)
        with unwritable(path):
            path.mkdir(parents=True, exist_ok=True)
            remove_unfinished(path)
            mark(path)
        steps.passed("store: marked")
        store.terms.create(TERMS_SCHEMA)
        store.changes.create(changes_schema(width))
        store.rules.create(RULES_SCHEMA)
        first = Commit(
            0,
            0,
            uuid.uuid4().hex,
            "create",
            "empty store",
            author=author or who(),
            mode=mode,
            equality=equality,
        )
        store.facts.create(facts_schema(width), first.info())
        return store

    @classmethod
    def open(cls, path: str | Path) -> Store:
        """A store that is there; one of a newer format is refused.

        If the newest version is damaged, older ones can still be asked for.
        """
        store = cls(local_path(path))
        refuse_lost_log(store.path)
        if not any((store.path / FACTS / delta.LOG).glob("*.json")):
            raise not_a_store(store.path)
        store._newest_readable()
        return store

    def is_empty(self) -> bool:
        """Whether nothing has been committed to it but its creation; lost log entries are damage.

        A cache is written for a commit only, and rows of changes for the next one at most.
        """
        from corollary.store import cache  # loads the compiler

        cached = (int(folder.name.partition("-")[0]) for folder in cache.folders(self))
        changed = (file.high or 0 for file in self.changes.files())
        seen = max((*cached, *(version - 1 for version in changed)), default=0)
        found = self.commit()
        if found.statistics.facts or found.rules or found.terms:
            return False
        if width_of(self.changes.columns()) > width_of(self.facts.columns(found.version)):
            seen -= 1  # the columns of the facts are added in a version of their own
        if seen > found.version:
            raise delta.damage(self.facts.log_file(found.version + 1), "the log entry is missing")
        return True

    def begin_again(self) -> None:
        """Forget the terms that an unfinished build has left in a store without facts.

        A commit comes first, so that the build, if it is still at work, cannot end.
        """
        writer = self.writer()
        if writer.base.statistics.facts or not writer.first_term:
            return
        writer.commit(statistics=writer.base.statistics, kind="create", message="begun again")
        version = self.terms.latest()
        self.terms.commit([], TERMS_SCHEMA, removed=self.terms.files(version), base=version)

    def latest(self) -> int:
        """The newest version."""
        return self.facts.latest()

    def commit(self, version: int | None = None) -> Commit:
        """What is said about a version, the newest one if none is given."""
        newest = self.latest()
        if version is None:
            version = newest
        if not 0 <= version <= newest:
            raise InvalidInput(
                "E505",
                f"there is no version {version} in {self.path}",
                f"the versions are 0 to {newest}; 'corollary log' lists them",
                file=str(self.path),
            )
        log = self.facts.log_file(version)
        record = self.facts.record(version)
        return Commit.of(version, record.milliseconds, record.info, str(log))

    def log(self) -> Iterator[Commit]:
        """All versions, the newest one first; fails at a log entry that is damaged."""
        for entry in self.log_entries():
            if isinstance(entry, OperationFailed):
                raise entry
            yield entry

    def log_entries(self) -> Iterator[Commit | OperationFailed]:
        """All versions, the newest one first; for one whose log entry is damaged, the error."""
        for version in range(self.latest(), -1, -1):
            try:
                yield self.commit(version)
            except OperationFailed as error:
                if error.code != "E503":
                    raise
                yield error

    def snapshot(self, version: int | None = None) -> Snapshot:
        """What a version consists of."""
        found = self.commit(version)
        oldest = self.oldest()
        if found.version < oldest:
            raise InvalidInput(
                "E505",
                f"version {found.version} was removed by a vacuum",
                f"the versions from {oldest} on can be read",
                file=str(self.path),
            )
        return Snapshot(self, found)

    def oldest(self) -> int:
        """The first version that no vacuum has removed."""
        return self._newest_readable().oldest

    def _newest_readable(self) -> Commit:
        """The newest version whose log entry is whole."""
        for entry in self.log_entries():
            if isinstance(entry, Commit):
                return entry
        return self.commit()  # fails

    def writer(self, base: int | None = None, *, author: str | None = None) -> Writer:
        """A writer of the version after `base`, the newest one if none is given."""
        return Writer(self, self.commit(base), author=author or who())

    def __repr__(self) -> str:
        return f"<Store {self.path}: version {self.latest()}>"


def who() -> str:
    """The author of commits, if none is named: who runs this process."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user without a name, as in some containers
        return ""
