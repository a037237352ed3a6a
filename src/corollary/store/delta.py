"""Delta tables through `deltalake`: list the files of a version, commit files already written.

A commit of `facts` or `terms` succeeds only on the version that the writer has read: a retry could
not know whether its derivations still hold. Every commit carries a `Manifest`, against which the
log is verified when it is read.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

import pyarrow as pa

from corollary.core.checksum import checksum_of
from corollary.core.files import Identity, identity
from corollary.core.object_store import (
    ObjectPath,
    StorePath,
    is_service_error,
    refused_request,
)
from corollary.errors import CorollaryError, InvalidInput, OperationFailed
from corollary.store import steps
from corollary.store.manifest import KEYS, DataFile, Manifest
from corollary.store.places import scan, storage_options, table_uri

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable

LOG = "_delta_log"
INFO = "corollary"  # key of our metadata in a commit
MANIFEST = "corollary.manifest"
_ATTEMPTS = 20  # to append beside other writers
_RECENT = 4  # versions whose files are remembered
_LISTING_SECONDS = 0.25  # for which a process relies on the listing of a remote log
_RECORDS = 64  # parsed log entries that a process remembers
_MALFORMED = (AttributeError, KeyError, TypeError, ValueError)  # raised for odd log entries
_CONFIGURATION: Mapping[str, str | None] = {
    # Versions stay until `vacuum` removes them.
    "delta.enableExpiredLogCleanup": "false",
    "delta.logRetentionDuration": "interval 36500 days",
    "delta.deletedFileRetentionDuration": "interval 36500 days",
}


class Conflict(Exception):
    """Another writer has committed to the table."""


class Record(NamedTuple):
    """A log entry, and our part of it."""

    milliseconds: int
    info: dict[str, Any]
    manifest: Manifest | None  # None if written before manifests existed
    actions: Sequence[dict[str, Any]]  # all actions of the entry


class State(NamedTuple):
    """The columns and the files of a version of a table."""

    columns: list[str]
    files: list[DataFile]


class Table:
    """One Delta table of a store.

    Raises only `OperationFailed`, which names the file, and `Conflict`.
    """

    def __init__(self, folder: StorePath) -> None:
        self.folder = folder
        self._options = storage_options(folder)
        self._listed: dict[int, ObjectPath] = {}  # the log entries of a remote table
        self._listed_until = 0.0
        self._log = f"{folder}{os.sep}{LOG}{os.sep}"
        self._seen = -1  # the newest version when the log was last looked at
        self._newest: DeltaTable | None = None
        self._states: dict[int, State] = {}
        self._own_manifests: dict[int, Manifest] = {}  # of the last commit by this process

    @property
    def name(self) -> str:
        """The name of the table."""
        return self.folder.name

    # -- reading -----------------------------------------------------------------------------------

    def open(self, version: int | None = None) -> DeltaTable:
        """Open the table at a version; the object for the newest version is shared and updated."""
        newest = self.latest()
        try:
            with translate_read_errors(self.folder / LOG):
                if version is not None and version != newest:
                    return self._table(version)
                if self._newest is None:
                    self._newest = self._table()
                elif self._newest.version() != newest:
                    self._newest.update_incremental()
                if self._newest.version() < newest:  # it skips an entry that is not a file
                    raise damage(self.folder / LOG, "a log entry cannot be read")
                if version is not None and self._newest.version() != version:
                    return self._table(version)  # another writer has committed meanwhile
        except OperationFailed as error:
            if error.code != "E503":
                raise
            path = self._find_damage(newest if version is None else version)
            raise damage(path, error.message.partition(f"{LOG}: ")[2]) from None
        return self._newest

    def _table(self, version: int | None = None) -> DeltaTable:
        from deltalake import DeltaTable

        return DeltaTable(table_uri(self.folder), version=version, storage_options=self._options)

    def latest(self) -> int:
        """The newest version; of a remote table, as of a moment ago."""
        if self._listed and time.monotonic() < self._listed_until:
            return max(self._listed)
        if self._has_entry(self._seen):  # a listing takes longer the more versions there are
            while self._has_entry(self._seen + 1):
                self._seen += 1
            return self._seen
        newest, listed = -1, dict[int, ObjectPath]()
        try:
            for entry in scan(self.folder / LOG):
                number, _, kind = entry.name.partition(".")
                if kind == "json" and len(number) == 20 and number.isdigit():
                    newest = max(newest, int(number))
                    if isinstance(entry, ObjectPath):
                        listed[int(number)] = entry
        except OSError as error:
            raise damage(self.folder / LOG, error.strerror or str(error)) from None
        if newest < 0:
            raise damage(self.folder / LOG, "no commit is left")
        self._listed, self._listed_until = listed, time.monotonic() + _LISTING_SECONDS
        self._seen = newest
        return newest

    def _has_entry(self, version: int) -> bool:
        """Test whether the log of a local table has the entry of a version."""
        if version < 0 or isinstance(self.folder, ObjectPath):
            return False
        return os.path.exists(f"{self._log}{version:020d}.json")

    def state(self, version: int | None = None) -> State:
        """The columns and files of a version, verified against the manifest of its commit."""
        number = self.latest() if version is None else version
        if number in self._states:
            return self._states[number]
        state = self._state_after_recent(number)
        if state is None:
            table = self.open(version)
            number = table.version()
            state = self._read_state(table)
            self._verify(number, state)
        while len(self._states) >= _RECENT:
            self._states.pop(next(iter(self._states)))
        self._states[number] = state
        return state

    def _state_after_recent(self, version: int) -> State | None:
        """Apply the log entries after a recent version, which is faster than opening the table.

        None if the result does not match the manifest, or the columns changed: then the table is
        opened, which finds the reason.
        """
        recent = max((known for known in self._states if known < version), default=None)
        if recent is None or version - recent > _RECENT:
            return None
        known = self._states[recent]
        files = {file.path: file for file in known.files}
        try:
            for number in range(recent + 1, version + 1):
                self._apply(files, self.record(number).actions)
            manifest = self.record(version).manifest
        except (OperationFailed, *_MALFORMED):
            return None
        state = State(known.columns, list(files.values()))
        actual = Manifest.of(version, state.files, state.columns, "")
        if manifest is None or actual[:3] != manifest[:3]:
            return None
        return state

    def _apply(self, files: dict[str, DataFile], actions: Iterable[dict[str, Any]]) -> None:
        """Apply the actions of a log entry to the files of a table."""
        key = str(KEYS.get(self.name))
        for action in actions:
            if add := action.get("add"):
                stats = json.loads(add["stats"])
                low, high = (stats[m].get(key) for m in ("minValues", "maxValues"))
                path = unquote(add["path"])
                files[path] = DataFile(path, add["size"], stats["numRecords"], "", low, high)
            elif remove := action.get("remove"):
                files.pop(unquote(remove["path"]), None)

    def columns(self, version: int | None = None) -> list[str]:
        """The column names of a version."""
        return list(self.state(version).columns)

    def files(self, version: int | None = None) -> list[DataFile]:
        """The files of a version."""
        return list(self.state(version).files)

    def files_between(self, low: int, high: int, version: int | None = None) -> list[DataFile]:
        """The files of a version whose key column may have values from low to high."""
        return [
            file
            for file in self.state(version).files
            if (file.high is None or file.high >= low) and (file.low is None or file.low <= high)
        ]

    def _read_state(self, table: DeltaTable) -> State:
        key = KEYS.get(self.name)
        with translate_read_errors(self.folder / LOG):
            columns = [field.name for field in table.schema().fields]
            # `pa.table` would load pandas
            actions = pa.RecordBatchReader.from_stream(
                table.get_add_actions(flatten=True)
            ).read_all()
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

    def _verify(self, version: int, state: State) -> None:
        """Fail unless a version matches the manifest of its commit."""
        manifest = self._own_manifests.get(version) or self.record(version).manifest
        if manifest is None:  # an older Corollary: at least no entry may be missing or empty
            self._refuse_gaps(version)
            return
        actual = Manifest.of(version, state.files, state.columns, "")
        if (actual.files, actual.columns) != (manifest.files, manifest.columns):
            raise damage(
                self._find_damage(version), f"version {version} does not match its manifest"
            )

    def _refuse_gaps(self, version: int) -> None:
        for number in range(self._checkpoint(version) + 1, version + 1):
            path = self.log_file(number)
            if not path.is_file() or not path.stat().st_size:
                raise damage(path, "the log entry is missing or empty")

    def _checkpoint(self, version: int) -> int:
        """The newest checkpoint up to a version, or -1."""
        paths = (self.folder / LOG).glob("*.checkpoint*.parquet")
        numbers = [int(p.name[:20]) for p in paths if p.name[:20].isdigit()]
        return max((number for number in numbers if number <= version), default=-1)

    def _find_damage(self, version: int) -> StorePath:
        """The log entry, or else the checkpoint, where a version departs from its manifest."""
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
        """The digest of the files after each log entry; ends with None at a damaged entry."""
        files: dict[str, DataFile] = {}
        for number in range(version + 1):
            try:
                self._apply(files, self.actions(number))
            except (OperationFailed, *_MALFORMED):
                yield number, None
                return
            yield number, Manifest.of(number, files.values(), [], "").files

    def log_file(self, version: int) -> StorePath:
        """The log entry of a version."""
        return self._listed.get(version) or self.folder / LOG / f"{version:020d}.json"

    def actions(self, version: int) -> list[dict[str, Any]]:
        """The actions of a log entry."""
        return read_actions(self.log_file(version))

    def record(self, version: int) -> Record:
        """Our part of a log entry; parsed once, as long as the file stays the same."""
        path = self.log_file(version)
        try:
            status = path.stat()
        except OSError as error:
            raise damage(path, error.strerror or str(error)) from None
        return _read_record(path, identity(status))

    # -- writing -----------------------------------------------------------------------------------

    def create(self, schema: pa.Schema, info: Mapping[str, Any] | None = None) -> None:
        """Create an empty table."""
        from deltalake import DeltaTable

        text = _text(info)
        with translate_write_errors(self.folder):
            (self.folder / LOG).mkdir(parents=True, exist_ok=True)
            DeltaTable.create(
                table_uri(self.folder),
                schema,
                storage_options=self._options,
                configuration=_CONFIGURATION,
                commit_properties=_properties(text, Manifest.of(0, [], schema.names, text)),
            )
        self._sync_log()
        steps.passed(f"{self.name}: created")

    def widen(
        self, schema: pa.Schema, info: Mapping[str, Any] | None = None, *, base: int | None = None
    ) -> None:
        """Add missing columns in a commit of their own; see `commit`."""
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
        with self._committing(version, manifest, "widened"):
            table.alter.add_columns(new, commit_properties=_properties(text, manifest))

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
        """Commit files that are already in the folder; returns the version.

        With `base`, the commit makes the next version after it or raises `Conflict`; without it,
        it retries beside other writers. A commit that `rewrites` changes files, not their content.
        """
        removed = list(removed)
        if base is not None:
            return self._commit(added, schema, removed, _text(info), base, rewrites)
        for attempt in range(_ATTEMPTS):
            try:
                return self._commit(added, schema, removed, _text(info), self.latest(), rewrites)
            except Conflict:
                pause(attempt)
        raise _write_failed(self.folder, f"lost the race against other writers {_ATTEMPTS} times")

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
        with self._committing(base, manifest, "committed"):
            table.create_write_transaction(
                actions, "append", schema, commit_properties=_properties(info, manifest)
            )
        self._own_manifests = {base + 1: manifest}
        return base + 1

    def _manifest(self, version: int) -> Manifest:
        """The manifest of the base version of a commit."""
        manifest = self._own_manifests.get(version) or self.record(version).manifest
        if manifest is None:
            state = self.state(version)
            manifest = Manifest.of(version, state.files, state.columns, "")
        return manifest

    @contextmanager
    def _committing(self, base: int, manifest: Manifest, step: str) -> Iterator[None]:
        """Translate the errors of a commit, and make it durable."""
        from deltalake.exceptions import CommitFailedError

        self._listed_until = 0.0
        try:
            with translate_write_errors(self.folder, passing=(CommitFailedError,)):
                yield
        except (CommitFailedError, OperationFailed) as error:
            if self.latest() <= base:
                if isinstance(error, OperationFailed):
                    raise
                raise _write_failed(self.folder, str(error)) from None
            # An object store may carry out a request and lose the answer. The client repeats the
            # request, and finds the entry that it has written itself.
            if self.record(base + 1).manifest != manifest:
                raise Conflict from None
            self._newest = None  # it does not know its own commit
        self._sync_log()
        steps.passed(f"{self.name}: {step}")

    def _sync_log(self) -> None:
        """Make the newest log entry durable across a power failure; objects are durable."""
        if isinstance(self.folder, ObjectPath):
            return
        sync(self.folder / LOG / f"{self.latest():020d}.json")
        sync(self.folder / LOG)


def read_actions(path: StorePath) -> list[dict[str, Any]]:
    """Read the actions of one file of a log."""
    try:
        # Not `splitlines`: JSON strings may contain characters that Unicode treats as line ends.
        lines = path.read_text(encoding="utf-8").split("\n")
        return [json.loads(line) for line in lines if line.strip()]
    except OSError as error:
        raise damage(path, error.strerror or str(error)) from None
    except ValueError as error:
        raise damage(path, f"invalid JSON: {error}") from None


@lru_cache(_RECORDS)
def _read_record(path: StorePath, _: Identity) -> Record:
    """Parse a log entry. Keyed by the identity of the file, so a changed file is parsed again."""
    actions = read_actions(path)
    for action in actions:
        commit_info = action.get("commitInfo") if isinstance(action, dict) else None
        if commit_info is None:
            continue
        try:
            text, stated = commit_info.get(INFO, ""), commit_info.get(MANIFEST)
            number = int(path.stem)
            manifest = Manifest.parse(stated, number) if stated is not None else None
            if manifest is not None and manifest.info != checksum_of(text.encode()):
                raise damage(path, "checksum mismatch in its metadata")
            if manifest is not None and manifest.version != number:
                raise damage(path, f"it is the log entry of version {manifest.version}")
            info = json.loads(text or "{}")
            if not isinstance(info, dict):
                raise ValueError("not an object")
            return Record(int(commit_info["timestamp"]), info, manifest, actions)
        except (AttributeError, KeyError, TypeError, ValueError):
            break
    raise damage(path, "it has no valid commit metadata")


def sync(path: StorePath) -> None:
    """Flush a file or folder to disk, if the file system supports it; objects are durable."""
    if isinstance(path, ObjectPath):
        return
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
    """Back off before another commit attempt: exponential, with jitter."""
    time.sleep(random.uniform(0.5, 1) * min(1.0, 0.01 * 2**attempt))


def _text(info: Mapping[str, Any] | None) -> str:
    return "" if info is None else json.dumps(info, ensure_ascii=False)


def _properties(info: str, manifest: Manifest) -> CommitProperties:
    from deltalake import CommitProperties

    metadata = {MANIFEST: manifest.to_json()} | ({INFO: info} if info else {})
    return CommitProperties(custom_metadata=metadata, max_commit_retries=0)


# -- errors ----------------------------------------------------------------------------------------


def damage(path: StorePath, reason: str) -> OperationFailed:
    """The error for a missing or unreadable file of a store."""
    return OperationFailed(
        "E503",
        f"the store is damaged: {path.name}: {reason}",
        "run 'corollary verify' to list the affected files; other versions may be intact",
        file=str(path),
    )


def _write_failed(path: StorePath, reason: str) -> OperationFailed:
    return OperationFailed(
        "E504",
        f"cannot write to the store: {reason}",
        "the store is unchanged; check the free space and the permissions of its folder",
        file=str(path),
    )


@contextmanager
def translate_read_errors(path: StorePath) -> Iterator[None]:
    """Translate errors of reading.

    Libraries raise undocumented errors for damaged files: a `TypeError`, an `IndexError`, a Rust
    panic. All of them mean that the file cannot be read.
    """
    from deltalake.exceptions import TableNotFoundError

    try:
        yield
    except (CorollaryError, MemoryError, Conflict):
        raise
    except TableNotFoundError:
        raise damage(path, "the table is missing") from None
    except Exception as error:
        if isinstance(path, ObjectPath) and is_service_error(error):
            raise refused_request(path, error) from None
        raise damage(path, _first_line(error)) from None
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise damage(path, _first_line(error)) from None


@contextmanager
def translate_write_errors(
    path: StorePath, *, passing: tuple[type[BaseException], ...] = ()
) -> Iterator[None]:
    """Translate errors of writing."""
    from deltalake.exceptions import DeltaError

    try:
        yield
    except passing:
        raise
    except (DeltaError, pa.ArrowException, OSError) as error:
        if isinstance(path, ObjectPath) and is_service_error(error):
            raise refused_request(path, error) from None
        raise _write_failed(path, _first_line(error)) from None


def _first_line(error: BaseException) -> str:
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return str(text).splitlines()[0]


def not_a_store(path: StorePath) -> InvalidInput:
    """The error for a folder without a store."""
    return InvalidInput(
        "E500",
        f"there is no store in {path}",
        "run 'corollary build STORE FILE…' to create one",
        file=str(path),
    )
