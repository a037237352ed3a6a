"""`Store`: a folder of Delta tables with the versions of a materialization."""

from __future__ import annotations

import getpass
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

from corollary.errors import InvalidInput
from corollary.store import delta
from corollary.store.commits import Commit
from corollary.store.delta import Table, not_a_store, unwritable
from corollary.store.layout import (
    CACHE,
    CHANGES,
    CHUNKS,
    FACTS,
    MODES,
    RULES,
    RULES_SCHEMA,
    TABLES,
    TERMS,
    TERMS_SCHEMA,
    WIDTH,
    changes_schema,
    facts_schema,
)
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
        path = Path(path)
        store = cls(path)
        refuse_occupied(path)
        with unwritable(path):
            path.mkdir(parents=True, exist_ok=True)
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
        """A store that is there; one of a newer format is refused."""
        store = cls(Path(path))
        if not (store.path / FACTS / delta.LOG).is_dir() or not any(
            (store.path / FACTS / delta.LOG).iterdir()
        ):
            raise not_a_store(store.path)
        store.commit()
        return store

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
        log = self.path / FACTS / delta.LOG / f"{version:020d}.json"
        return Commit.of(version, *self.facts.info(version), str(log))

    def log(self) -> Iterator[Commit]:
        """All versions, the newest one first."""
        for version in range(self.latest(), -1, -1):
            yield self.commit(version)

    def snapshot(self, version: int | None = None) -> Snapshot:
        """What a version consists of."""
        newest, found = self.commit(), self.commit(version)
        if found.version < newest.oldest:
            raise InvalidInput(
                "E505",
                f"version {found.version} was removed by a vacuum",
                f"the versions from {newest.oldest} on can be read",
                file=str(self.path),
            )
        return Snapshot(self, found)

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


def refuse_occupied(path: Path) -> None:
    """A folder with something in it is left alone; what a creation that was ended left is not."""
    if path.is_file():
        raise InvalidInput("E506", f"{path} is a file", "name a folder", file=str(path))
    if not path.is_dir():
        return
    found = {entry.name for entry in path.iterdir()}
    if (path / FACTS / delta.LOG).is_dir() and any((path / FACTS / delta.LOG).glob("*.json")):
        raise InvalidInput(
            "E506",
            f"there is a store in {path} already",
            "'corollary update' changes it; remove the folder to begin anew",
            file=str(path),
        )
    if found - {*TABLES, CACHE, CHUNKS}:
        raise InvalidInput(
            "E506",
            f"the folder {path} is not empty",
            "name a folder that is empty or not there",
            file=str(path),
        )
    for name in found:
        shutil.rmtree(path / name)
