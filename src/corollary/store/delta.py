"""Delta tables through `deltalake`: files of a version, commits of files that are written already.

Every commit of `facts` and `terms` is made on the version that the writer has seen, or fails: no
retry can tell whether what it derived still follows.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa

from corollary.errors import InvalidInput, OperationFailed
from corollary.store import steps

if TYPE_CHECKING:
    from deltalake import DeltaTable

LOG = "_delta_log"
INFO = "corollary"  # the key of our own metadata among those of a commit
_CONFIGURATION: Mapping[str, str | None] = {
    # Versions are there for good, until `vacuum` removes them.
    "delta.enableExpiredLogCleanup": "false",
    "delta.logRetentionDuration": "interval 36500 days",
    "delta.deletedFileRetentionDuration": "interval 36500 days",
}


@dataclass(frozen=True)
class DataFile:
    """A Parquet file of a table."""

    path: str  # relative to the folder of the table
    size: int
    rows: int
    stats: str  # JSON, as Delta writes it


class Conflict(Exception):
    """Another writer has committed to the table."""


class Table:
    """One Delta table of a store.

    All errors are ours: `OperationFailed` with the name of the file, or `Conflict`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._newest: DeltaTable | None = None

    @property
    def name(self) -> str:
        """Of the table."""
        return self.folder.name

    # -- reading -----------------------------------------------------------------------------------

    def open(self, version: int | None = None) -> DeltaTable:
        """The table at a version; that of the newest one is for the moment, and reused."""
        from deltalake import DeltaTable

        newest = self.latest()
        with damaged(self.folder / LOG):
            if version is not None and version != newest:
                return DeltaTable(str(self.folder), version=version)
            if self._newest is None:
                self._newest = DeltaTable(str(self.folder))
            elif self._newest.version() != newest:
                self._newest.update_incremental()
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

    def files(self, version: int | None = None) -> list[DataFile]:
        """The files of a version."""
        table = self.open(version)
        with damaged(self.folder / LOG):
            actions = pa.table(table.get_add_actions())
        return [
            DataFile(unquote(row["path"]), row["size_bytes"], row["num_records"], "")
            for row in actions.select(["path", "size_bytes", "num_records"]).to_pylist()
        ]

    def files_between(
        self, column: str, low: int, high: int, version: int | None = None
    ) -> list[DataFile]:
        """The files of a version that may hold rows with values from low to high."""
        table = self.open(version)
        with damaged(self.folder / LOG):
            actions = pa.table(table.get_add_actions(flatten=True))
        smallest, largest = f"min.{column}", f"max.{column}"
        return [
            DataFile(unquote(row["path"]), row["size_bytes"], row["num_records"], "")
            for row in actions.to_pylist()
            if (row.get(largest) is None or row[largest] >= low)
            and (row.get(smallest) is None or row[smallest] <= high)
        ]

    def actions(self, version: int) -> list[dict[str, Any]]:
        """What a commit says, action by action."""
        path = self.folder / LOG / f"{version:020d}.json"
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
            return [json.loads(line) for line in lines if line]
        except OSError as error:
            raise damage(path, error.strerror or str(error)) from None
        except ValueError as error:
            raise damage(path, f"it is no JSON: {error}") from None

    def info(self, version: int) -> tuple[int, dict[str, Any]]:
        """When a commit was made (in ms), and our own metadata of it."""
        for action in self.actions(version):
            found = action.get("commitInfo")
            if found is not None:
                try:
                    return int(found["timestamp"]), json.loads(found.get(INFO, "{}"))
                except (KeyError, TypeError, ValueError):
                    break
        raise damage(self.folder / LOG / f"{version:020d}.json", "it does not say what it commits")

    # -- writing -----------------------------------------------------------------------------------

    def create(self, schema: pa.Schema, info: Mapping[str, Any] | None = None) -> None:
        """Make an empty table."""
        from deltalake import DeltaTable

        with unwritable(self.folder):
            DeltaTable.create(
                str(self.folder),
                schema,
                configuration=_CONFIGURATION,
                commit_properties=_properties(info, retries=0),
            )
        self._settle()
        steps.passed(f"{self.name}: created")

    def widen(
        self, schema: pa.Schema, info: Mapping[str, Any] | None = None, *, base: int | None = None
    ) -> None:
        """Add the columns that the table does not have, in a commit of its own; see `commit`."""
        from deltalake import Field

        table = self.open()
        known = {field.name for field in table.schema().fields}
        new = [Field.from_arrow(field) for field in schema if field.name not in known]
        if base is not None and table.version() != base:
            raise Conflict
        with self._committing(base):
            table.alter.add_columns(new, commit_properties=_properties(info, retries=0))
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

        With `base`, this is the version after it, or there is a `Conflict`. A commit that
        `rewrites` changes files, not what they say.
        """
        from deltalake.transaction import AddAction, RemoveAction

        now = time.time_ns() // 1_000_000
        actions: list[AddAction | RemoveAction] = [
            AddAction(file.path, file.size, {}, now, not rewrites, file.stats) for file in added
        ]
        actions += [RemoveAction(file.path, not rewrites, now, file.size, {}) for file in removed]
        table = self.open()
        if base is not None and table.version() != base:
            raise Conflict
        steps.passed(f"{self.name}: before the commit")
        with self._committing(base):
            table.create_write_transaction(
                actions,
                "append",
                schema,
                commit_properties=_properties(info, retries=None if base is None else 0),
            )
        self._settle()
        steps.passed(f"{self.name}: committed")
        return self.latest() if base is None else base + 1

    @contextmanager
    def _committing(self, base: int | None) -> Iterator[None]:
        """Errors of a commit, as ours."""
        from deltalake.exceptions import CommitFailedError

        try:
            with unwritable(self.folder, passing=(CommitFailedError,)):
                yield
        except CommitFailedError as error:
            if base is not None and self.latest() > base:
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


def _properties(info: Mapping[str, Any] | None, *, retries: int | None) -> Any:
    from deltalake import CommitProperties

    metadata = None if info is None else {INFO: json.dumps(info, ensure_ascii=False)}
    return CommitProperties(custom_metadata=metadata, max_commit_retries=retries)


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
    """Errors of reading, as ours."""
    from deltalake.exceptions import DeltaError, TableNotFoundError

    try:
        yield
    except TableNotFoundError:
        raise damage(path, "there is no table") from None
    except (DeltaError, pa.ArrowException, OSError, ValueError) as error:
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
