"""Delta tables through `deltalake`: files of a version, commits of files that are written already.

Every commit of `facts` and `terms` is made on the version that the writer has seen, or fails: no
retry can tell whether what it derived still follows. Every commit carries a `Manifest`, with which
the log is compared when it is read.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

import pyarrow as pa

from corollary.core.checksum import checksum_of
from corollary.errors import CorollaryError, InvalidInput, OperationFailed
from corollary.store import steps
from corollary.store.manifest import KEYS, DataFile, Manifest
from corollary.store.places import table_uri

if TYPE_CHECKING:
    from deltalake import DeltaTable

LOG = "_delta_log"
INFO = "corollary"  # the key of our own metadata among those of a commit
MANIFEST = "corollary.manifest"
_ATTEMPTS = 20  # to append to a table that others append to
_RECENT = 4  # versions whose files are remembered
_CONFIGURATION: Mapping[str, str | None] = {
    # Versions are there for good, until `vacuum` removes them.
    "delta.enableExpiredLogCleanup": "false",
    "delta.logRetentionDuration": "interval 36500 days",
    "delta.deletedFileRetentionDuration": "interval 36500 days",
}


class Conflict(Exception):
    """Another writer has committed to the table."""


class Record(NamedTuple):
    """What our part of a log entry says."""

    milliseconds: int
    info: dict[str, Any]
    manifest: Manifest | None  # None if the entry was written before there were manifests


class State(NamedTuple):
    """The columns and the files of a version of a table."""

    columns: list[str]
    files: list[DataFile]


class Table:
    """One Delta table of a store.

    All errors are ours: `OperationFailed` with the name of the file, or `Conflict`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._newest: DeltaTable | None = None
        self._states: dict[int, State] = {}
        self._made: dict[int, Manifest] = {}  # of the last commit that this process has made

    @property
    def name(self) -> str:
        """Of the table."""
        return self.folder.name

    # -- reading -----------------------------------------------------------------------------------

    def open(self, version: int | None = None) -> DeltaTable:
        """The table at a version; that of the newest one is for the moment, and reused."""
        from deltalake import DeltaTable

        newest = self.latest()
        try:
            with damaged(self.folder / LOG):
                if version is not None and version != newest:
                    return DeltaTable(table_uri(self.folder), version=version)
                if self._newest is None:
                    self._newest = DeltaTable(table_uri(self.folder))
                elif self._newest.version() != newest:
                    self._newest.update_incremental()
                if self._newest.version() < newest:  # it passes over an entry that is no file
                    raise damage(self.folder / LOG, "a log entry cannot be read")
        except OperationFailed as error:
            path = self._find_damage(newest if version is None else version)
            raise damage(path, error.message.partition(f"{LOG}: ")[2]) from None
        return self._newest

    def latest(self) -> int:
        """The newest version; log files are in the order of their names."""
        newest = -1
        try:
            with os.scandir(self.folder / LOG) as entries:
                for entry in entries:
                    number, _, kind = entry.name.partition(".")
                    if kind == "json" and len(number) == 20 and number.isdigit():
                        newest = max(newest, int(number))
        except OSError as error:
            raise damage(self.folder / LOG, error.strerror or str(error)) from None
        if newest < 0:
            raise damage(self.folder / LOG, "no commit is left")
        return newest

    def state(self, version: int | None = None) -> State:
        """The columns and the files of a version, compared with the manifest of its commit."""
        table = self.open(version)
        number = table.version()
        if number not in self._states:
            state = self._read_state(table)
            self._compare(number, state)
            while len(self._states) >= _RECENT:
                self._states.pop(next(iter(self._states)))
            self._states[number] = state
        return self._states[number]

    def columns(self, version: int | None = None) -> list[str]:
        """The names of the columns of a version."""
        return list(self.state(version).columns)

    def files(self, version: int | None = None) -> list[DataFile]:
        """The files of a version."""
        return list(self.state(version).files)

    def files_between(self, low: int, high: int, version: int | None = None) -> list[DataFile]:
        """The files of a version that may hold rows whose key column is from low to high."""
        return [
            file
            for file in self.state(version).files
            if (file.high is None or file.high >= low) and (file.low is None or file.low <= high)
        ]

    def _read_state(self, table: DeltaTable) -> State:
        key = KEYS.get(self.name)
        with damaged(self.folder / LOG):
            columns = [field.name for field in table.schema().fields]
            actions = pa.table(table.get_add_actions(flatten=True))
            wanted = ["path", "size_bytes", "num_records", f"min.{key}", f"max.{key}"]
            rows = actions.select([name for name in wanted if name in actions.column_names])
            files = [
                DataFile(
                    unquote(row["path"]),
                    row["size_bytes"],
                    row["num_records"],
                    "",
                    row.get(f"min.{key}"),
                    row.get(f"max.{key}"),
                )
                for row in rows.to_pylist()
            ]
        return State(columns, files)

    def _compare(self, version: int, state: State) -> None:
        """Fail unless a version is what its commit says that the whole table is."""
        manifest = self._made.get(version) or self.record(version).manifest
        if manifest is None:  # of an older Corollary: at least no entry may be missing or empty
            self._refuse_gaps(version)
            return
        now = Manifest.of(state.files, state.columns, "")
        if (now.files, now.columns) != (manifest.files, manifest.columns):
            raise damage(
                self._find_damage(version), f"it is not what version {version} was committed with"
            )

    def _refuse_gaps(self, version: int) -> None:
        for number in range(self._checkpoint(version) + 1, version + 1):
            path = self.log_file(number)
            if not path.is_file() or not path.stat().st_size:
                raise damage(path, "the log entry is missing or empty")

    def _checkpoint(self, version: int) -> int:
        """The newest checkpoint up to a version, -1 if there is none."""
        found = (self.folder / LOG).glob("*.checkpoint*.parquet")
        numbers = [int(p.name[:20]) for p in found if p.name[:20].isdigit()]
        return max((number for number in numbers if number <= version), default=-1)

    def _find_damage(self, version: int) -> Path:
        """The log entry, or else the checkpoint, by which a version differs from its manifest."""
        for number, manifest in self.replay(version):
            try:
                expected = self.record(number).manifest
            except OperationFailed:
                return self.log_file(number)
            if manifest is None or (expected is not None and manifest != expected.files):
                return self.log_file(number)
        newest = self._checkpoint(version)
        checkpoint = self.folder / LOG / f"{newest:020d}.checkpoint.parquet"
        return self.folder / LOG if newest < 0 else checkpoint

    def replay(self, version: int) -> Iterator[tuple[int, int | None]]:
        """For each log entry, the sum of the files after it; None from the first damaged one on."""
        files: dict[str, DataFile] = {}
        key = str(KEYS.get(self.name))
        for number in range(version + 1):
            try:
                for action in self.actions(number):
                    if add := action.get("add"):
                        stats = json.loads(add["stats"])
                        low, high = (stats[m].get(key) for m in ("minValues", "maxValues"))
                        path = unquote(add["path"])
                        rows = stats["numRecords"]
                        files[path] = DataFile(path, add["size"], rows, "", low, high)
                    elif remove := action.get("remove"):
                        files.pop(unquote(remove["path"]), None)
            except (OperationFailed, AttributeError, KeyError, TypeError, ValueError):
                yield number, None
                return
            yield number, Manifest.of(files.values(), [], "").files

    def log_file(self, version: int) -> Path:
        """The log entry of a version."""
        return self.folder / LOG / f"{version:020d}.json"

    def actions(self, version: int) -> list[dict[str, Any]]:
        """What a commit says, action by action."""
        path = self.log_file(version)
        try:
            # Not `splitlines`: JSON strings may hold characters that Unicode ends lines with.
            lines = path.read_text(encoding="utf-8").split("\n")
            return [json.loads(line) for line in lines if line.strip()]
        except OSError as error:
            raise damage(path, error.strerror or str(error)) from None
        except ValueError as error:
            raise damage(path, f"it is no JSON: {error}") from None

    def record(self, version: int) -> Record:
        """When a commit was made, our own metadata of it, and its manifest."""
        path = self.log_file(version)
        for action in self.actions(version):
            found = action.get("commitInfo") if isinstance(action, dict) else None
            if found is None:
                continue
            try:
                text = found.get(INFO, "")
                manifest = Manifest.parse(found[MANIFEST]) if MANIFEST in found else None
                if manifest is not None and manifest.info != checksum_of(text.encode()):
                    raise damage(path, "its metadata have another checksum")
                info = json.loads(text or "{}")
                if not isinstance(info, dict):
                    raise ValueError("it is no object")
                return Record(int(found["timestamp"]), info, manifest)
            except (AttributeError, KeyError, TypeError, ValueError):
                break
        raise damage(path, "it does not say what it commits")

    # -- writing -----------------------------------------------------------------------------------

    def create(self, schema: pa.Schema, info: Mapping[str, Any] | None = None) -> None:
        """Make an empty table."""
        from deltalake import DeltaTable

        text = _text(info)
        with unwritable(self.folder):
            (self.folder / LOG).mkdir(parents=True, exist_ok=True)
            DeltaTable.create(
                table_uri(self.folder),
                schema,
                configuration=_CONFIGURATION,
                commit_properties=_properties(text, Manifest.of([], schema.names, text)),
            )
        self._settle()
        steps.passed(f"{self.name}: created")

    def widen(
        self, schema: pa.Schema, info: Mapping[str, Any] | None = None, *, base: int | None = None
    ) -> None:
        """Add the columns that the table does not have, in a commit of its own; see `commit`."""
        from deltalake import Field

        table = self.open()
        version = table.version()
        if base is not None and version != base:
            raise Conflict
        known = self.columns(version)
        new = [Field.from_arrow(field) for field in schema if field.name not in known]
        text = _text(info)
        names = [*known, *(field.name for field in new)]
        manifest = self._manifest(version).after([], [], names, text)
        with self._committing(version):
            table.alter.add_columns(new, commit_properties=_properties(text, manifest))
        self._settle()
        steps.passed(f"{self.name}: widened")

    def commit(
        self,
        added: Sequence[DataFile],
        schema: pa.Schema,
        *,
        removed: Iterable[DataFile] = (),
        info: Mapping[str, Any] | None = None,
        base: int | None = None,
        rewrites: bool = False,
    ) -> int:
        """Commit files that are in the folder; returns the version.

        With `base`, this is the version after it, or there is a `Conflict`; without it, others may
        commit at the same time. A commit that `rewrites` changes files, not what they say.
        """
        removed = list(removed)
        if base is not None:
            return self._commit(added, schema, removed, _text(info), base, rewrites)
        for attempt in range(_ATTEMPTS):
            try:
                return self._commit(added, schema, removed, _text(info), self.latest(), rewrites)
            except Conflict:
                pause(attempt)
        raise _write_failed(self.folder, f"other writers were faster {_ATTEMPTS} times")

    def _commit(
        self,
        added: Sequence[DataFile],
        schema: pa.Schema,
        removed: Sequence[DataFile],
        info: str,
        base: int,
        rewrites: bool,
    ) -> int:
        from deltalake.transaction import AddAction, RemoveAction

        now = time.time_ns() // 1_000_000
        actions: list[AddAction | RemoveAction] = [
            AddAction(file.path, file.size, {}, now, not rewrites, file.stats) for file in added
        ]
        actions += [RemoveAction(file.path, not rewrites, now, file.size, {}) for file in removed]
        table = self.open()
        if table.version() != base:
            raise Conflict
        manifest = self._manifest(base).after(added, removed, None, info)
        steps.passed(f"{self.name}: before the commit")
        with self._committing(base):
            table.create_write_transaction(
                actions, "append", schema, commit_properties=_properties(info, manifest)
            )
        self._settle()
        self._made = {base + 1: manifest}
        steps.passed(f"{self.name}: committed")
        return base + 1

    def _manifest(self, version: int) -> Manifest:
        """That of a version that a commit is made on."""
        found = self._made.get(version) or self.record(version).manifest
        if found is None:
            state = self.state(version)
            found = Manifest.of(state.files, state.columns, "")
        return found

    @contextmanager
    def _committing(self, base: int) -> Iterator[None]:
        """Errors of a commit, as ours."""
        from deltalake.exceptions import CommitFailedError

        try:
            with unwritable(self.folder, passing=(CommitFailedError,)):
                yield
        except CommitFailedError as error:
            if self.latest() > base:
                raise Conflict from None
            raise _write_failed(self.folder, str(error)) from None

    def _settle(self) -> None:
        """Let the log survive a loss of power as well as the end of the process."""
        sync(self.folder / LOG / f"{self.latest():020d}.json")
        sync(self.folder / LOG)


def sync(path: Path) -> None:
    """Wait until a file or a folder is on the disk, where the file system can tell."""
    try:
        number = os.open(path, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(number)
    except OSError as error:
        raise _write_failed(path, error.strerror or str(error)) from None
    finally:
        os.close(number)


def pause(attempt: int) -> None:
    """Wait before another attempt to commit, longer each time and never alike for two writers."""
    time.sleep(random.uniform(0.5, 1) * min(1.0, 0.01 * 2**attempt))


def _text(info: Mapping[str, Any] | None) -> str:
    return "" if info is None else json.dumps(info, ensure_ascii=False)


def _properties(info: str, manifest: Manifest) -> Any:
    from deltalake import CommitProperties

    metadata = {MANIFEST: manifest.to_json()} | ({INFO: info} if info else {})
    return CommitProperties(custom_metadata=metadata, max_commit_retries=0)


# -- errors ----------------------------------------------------------------------------------------


def damage(path: Path, reason: str) -> OperationFailed:
    """The error for a file of a store that is missing or cannot be read."""
    return OperationFailed(
        "E503",
        f"the store is damaged: {path.name}: {reason}",
        "'corollary verify' tells which files are affected; other versions may be whole",
        file=str(path),
    )


def _write_failed(path: Path, reason: str) -> OperationFailed:
    return OperationFailed(
        "E504",
        f"cannot write to the store: {reason}",
        "the store is as it was; look at the free space and the rights of its folder",
        file=str(path),
    )


@contextmanager
def damaged(path: Path) -> Iterator[None]:
    """Errors of reading, as ours.

    What a damaged file makes a library raise is not in its documentation: a `TypeError`, an
    `IndexError`, a panic of Rust. All of them mean that the file cannot be read.
    """
    from deltalake.exceptions import TableNotFoundError

    try:
        yield
    except (CorollaryError, MemoryError, Conflict):
        raise
    except TableNotFoundError:
        raise damage(path, "there is no table") from None
    except Exception as error:
        raise damage(path, _first_line(error)) from None
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise damage(path, _first_line(error)) from None


@contextmanager
def unwritable(path: Path, *, passing: tuple[type[BaseException], ...] = ()) -> Iterator[None]:
    """Errors of writing, as ours."""
    from deltalake.exceptions import DeltaError

    try:
        yield
    except passing:
        raise
    except (DeltaError, pa.ArrowException, OSError) as error:
        raise _write_failed(path, _first_line(error)) from None


def _first_line(error: BaseException) -> str:
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return str(text).splitlines()[0]


def not_a_store(path: Path) -> InvalidInput:
    """The error for a folder that is no store."""
    return InvalidInput(
        "E500",
        f"there is no store in {path}",
        "'corollary build STORE FILE…' makes one",
        file=str(path),
    )
