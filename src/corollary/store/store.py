"""`Store`: a folder of Delta tables that holds the versions of a materialization."""

from __future__ import annotations

import getpass
import uuid
from collections.abc import Iterator
from pathlib import Path

from corollary.core.files import Identity, identity
from corollary.core.object_store import StorePath
from corollary.errors import InvalidInput, OperationFailed
from corollary.store import delta, layout, steps
from corollary.store.commits import Commit
from corollary.store.delta import Table, not_a_store, translate_write_errors
from corollary.store.marker import mark, refuse_lost_log, refuse_occupied, remove_unfinished
from corollary.store.places import Place, local_folder, name_within, store_path
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
    >>> writer.add_terms(pa.array(['"a"', '"b"'])).rows
    2
    >>> writer.add_facts(pa.table({"relation": ["edge"], "arg0": [0], "arg1": [1]}), explicit=True)
    >>> program = Program.parse("path(?x, ?y) :- edge(?x, ?y) .")
    >>> writer.add_facts(pa.table({"relation": ["path"], "arg0": [0], "arg1": [1]}))
    >>> counts = {"edge": Count(2, 1, 1), "path": Count(2, 0, 1)}
    >>> writer.commit(program=program, statistics=Statistics(counts, inserted=2), message="load")
    1
    >>> now = Store.open(store.path).snapshot()
    >>> now.version, now.statistics.facts, now.facts("path").to_pylist()
    (1, 2, [{'relation': 'path', 'arg0': 0, 'arg1': 1, 'arg2': None, 'explicit': False}])
    """

    def __init__(self, path: StorePath) -> None:
        """Use `create` or `open`."""
        self.path = path
        self.facts, self.terms = Table(path / layout.FACTS), Table(path / layout.TERMS)
        self.changes, self.rules = Table(path / layout.CHANGES), Table(path / layout.RULES)

    @classmethod
    def create(
        cls,
        path: Place,
        *,
        mode: str = "materialized",
        equality: str = "rules",
        author: str | None = None,
        width: int = layout.WIDTH,
    ) -> Store:
        """Create an empty store at version 0 in an empty or missing folder.

        Facts may have `width` arguments; columns are added when wider facts arrive.
        """
        width = max(width, layout.WIDTH)
        layout.check_mode(mode)
        path = store_path(path)
        store = cls(path)
        refuse_occupied(path)
        with translate_write_errors(path):
            path.mkdir(parents=True, exist_ok=True)
            remove_unfinished(path)
            mark(path)
        steps.passed("store: marked")
        store.terms.create(layout.TERMS_SCHEMA)
        store.changes.create(layout.changes_schema(width))
        store.rules.create(layout.RULES_SCHEMA)
        author, id_ = author or current_user(), uuid.uuid4().hex
        first = Commit(0, 0, id_, "create", "empty store", author, mode=mode, equality=equality)
        store.facts.create(layout.facts_schema(width), first.info())
        return store

    @classmethod
    def open(cls, path: Place) -> Store:
        """Open an existing store; a newer format is refused.

        If the newest version is damaged, older ones can still be read.
        """
        store = cls(store_path(path))
        if not any((store.path / layout.FACTS / delta.LOG).glob("*.json")):
            refuse_lost_log(store.path)
            raise not_a_store(store.path)
        store._newest_readable()
        return store

    @property
    def cache_folder(self) -> Path:
        """The folder of the column cache, on this machine."""
        return local_folder(self.path) / layout.CACHE

    @property
    def chunks_folder(self) -> Path:
        """The folder of the chunks of Spark, on this machine."""
        return local_folder(self.path) / layout.CHUNKS

    def name_of(self, path: StorePath) -> str:
        """The name of a file of the store for reports: relative to it, if it is inside."""
        try:
            return name_within(path, self.path)
        except ValueError:  # in the local cache of a remote store
            return str(path)

    def is_empty(self) -> bool:
        """Whether the creation is its only commit; lost log entries are damage.

        Caches belong to existing commits, and rows of changes at most to the next one.
        """
        from corollary.store import cache  # loads the compiler

        cached = (int(folder.name.partition("-")[0]) for folder in cache.folders(self))
        changed = (file.high or 0 for file in self.changes.files())
        seen = max((*cached, *(version - 1 for version in changed)), default=0)
        newest = self.commit()
        if newest.statistics.facts or newest.rules or newest.terms:
            return False
        facts_width = layout.width_of(self.facts.columns(newest.version))
        if layout.width_of(self.changes.columns()) > facts_width:
            seen -= 1  # the columns of the facts are added in a version of their own
        if seen > newest.version:
            raise delta.damage(self.facts.log_file(newest.version + 1), "the log entry is missing")
        return True

    def discard_orphaned_terms(self) -> None:
        """Remove the terms that an interrupted build left in a store without facts.

        Commits first, so that the build, should it still run, fails with a conflict.
        """
        writer = self.writer()
        if writer.base.statistics.facts or not writer.first_term:
            return
        writer.stored_terms = 0  # of the new version; otherwise it would not be empty
        writer.commit(
            statistics=writer.base.statistics, kind="create", message="restart an interrupted build"
        )
        version = self.terms.latest()
        self.terms.commit([], layout.TERMS_SCHEMA, removed=self.terms.files(version), base=version)

    def origin(self) -> Identity | None:
        """Identify the store itself: the first entry of its log is never written again."""
        try:
            return identity(self.facts.log_file(0).stat())
        except OSError:
            return None

    def latest(self) -> int:
        """The newest version."""
        return self.facts.latest()

    def commit(self, version: int | None = None) -> Commit:
        """The commit of a version, by default the newest."""
        newest = self.latest()
        if version is None:
            version = newest
        if not 0 <= version <= newest:
            raise InvalidInput(
                "E505",
                f"there is no version {version} in {self.path}",
                f"choose a version from 0 to {newest}; 'corollary log' lists them",
                file=str(self.path),
            )
        log = self.facts.log_file(version)
        record = self.facts.record(version)
        return Commit.of(version, record.milliseconds, record.info, str(log))

    def log(self) -> Iterator[Commit]:
        """All commits, newest first; raises at a damaged log entry."""
        for entry in self.log_entries():
            if isinstance(entry, OperationFailed):
                raise entry
            yield entry

    def log_entries(self) -> Iterator[Commit | OperationFailed]:
        """All commits, newest first; an error in place of each damaged log entry."""
        for version in range(self.latest(), -1, -1):
            try:
                yield self.commit(version)
            except OperationFailed as error:
                if error.code != "E503":
                    raise
                yield error

    def snapshot(self, version: int | None = None) -> Snapshot:
        """A version to read, by default the newest."""
        commit = self.commit(version)
        oldest = self.oldest()
        if commit.version < oldest:
            raise InvalidInput(
                "E505",
                f"version {commit.version} was removed by a vacuum",
                f"the oldest readable version is {oldest}",
                file=str(self.path),
            )
        return Snapshot(self, commit)

    def oldest(self) -> int:
        """The oldest version that no vacuum has removed."""
        return self._newest_readable().oldest

    def _newest_readable(self) -> Commit:
        """The newest version with an intact log entry."""
        for entry in self.log_entries():
            if isinstance(entry, Commit):
                return entry
        return self.commit()  # raises

    def writer(self, base: int | None = None, *, author: str | None = None) -> Writer:
        """A writer of the version that follows `base`, by default the newest."""
        return Writer(self, self.commit(base), author=author or current_user())

    def __repr__(self) -> str:
        return f"<Store {self.path}: version {self.latest()}>"


def current_user() -> str:
    """The default author of commits: the user that runs this process."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user without a name, as in some containers
        return ""
