"""Object storage: the files of a store at an address such as `s3://bucket/univ.store`.

An `ObjectPath` has the methods of `pathlib.Path` that stores use, so the same code reads and writes
local and remote stores. Requests go through the object stores of `deltalake`: one client, with the
same credentials and options, for logs and data files of all services. It takes credentials from the
environment (`AWS_…`, `GOOGLE_…`, `AZURE_…`) or from options, and repeats failed requests.

Invariant: the content of a data file never changes, and its name contains its checksum. So a copy
in the local cache is used without a request if it has this checksum.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Any

from corollary.core import local_cache
from corollary.core.checksum import has_its_content
from corollary.core.files import Status
from corollary.errors import CorollaryError, InvalidInput, OperationFailed

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMES = ("s3", "gs", "abfss", "hdfs")
_ALIASES = {"s3a": "s3", "gcs": "gs", "abfs": "abfss"}
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*)://(.*)", re.DOTALL)
_REFUSED = re.compile(r"[%?#\\*\[\]{}\x00-\x1f]")  # libraries decode or interpret these
# Variables of the environment that are also options, and do not name local files.
_CREDENTIALS = (
    *(f"AWS_{name}" for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN")),
    *(f"AWS_{name}" for name in ("REGION", "DEFAULT_REGION", "ENDPOINT_URL", "ALLOW_HTTP")),
    *("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", "GOOGLE_SERVICE_ACCOUNT_KEY"),
    *(f"AZURE_STORAGE_{name}" for name in ("ACCOUNT_NAME", "ACCOUNT_KEY", "SAS_KEY", "TOKEN")),
    *(f"AZURE_STORAGE_{name}" for name in ("CLIENT_ID", "CLIENT_SECRET", "TENANT_ID")),
)
_BLOCK = 1 << 23  # bytes of an upload or download that are in memory
_COLOR = re.compile(r"\x1b\[[0-9;]*m")
_SERVICE = re.compile(r"Generic \S+ error|error sending request|non-2xx status|HTTP error")
_XML = re.compile(r"<Code>([^<]*)</Code>.*?<Message>([^<]*)</Message>", re.DOTALL)


@dataclass(frozen=True)
class ObjectStore:
    """A folder of an object store, with the options of its client."""

    address: str  # without a final slash
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)  # may hold secrets
    cache: Path | None = None  # the local cache, unless it is the default of the machine
    fresh: Path | None = None  # a folder for copies, instead of the local cache

    def for_tasks(self) -> ObjectStore:
        """The store for tasks of Spark, with the credentials in the environment of the driver."""
        found = {name: os.environ[name] for name in _CREDENTIALS if name in os.environ}
        return replace(self, options=tuple(sorted({**found, **dict(self.options)}.items())))

    def added(self, entry: Path) -> None:
        """Record a new entry of the local cache."""
        if self.fresh is None:
            local_cache.added(entry, self.cache or local_cache.root())

    def use(self, entry: Path) -> None:
        """Record the use of an entry of the local cache."""
        if self.fresh is None and entry.exists():
            local_cache.use(entry)

    @property
    def home(self) -> Path:
        """The folder of this store in the local cache."""
        return (self.cache or local_cache.root()) / local_cache.folder_name(self.address)

    @property
    def copies(self) -> Path:
        """The folder for copies of data files."""
        return self.fresh or self.home / "copies"

    @property
    def client(self) -> Any:
        """The client, a file system handler of `deltalake`."""
        with translate_service_errors(self.address):
            return _client(self.address, self.options, os.getpid())


@lru_cache(64)
def _client(address: str, options: tuple[tuple[str, str], ...], process: int) -> Any:
    """Create a client; its threads do not survive a fork, so it belongs to one process."""
    from deltalake.fs import DeltaStorageHandler

    class Client(DeltaStorageHandler):
        """A handler that also writes: PyArrow hands it buffers, but it accepts only bytes."""

        def write(self, key: str, source: IO[bytes]) -> None:
            target = self._handler.open_output_stream(key)
            while block := source.read(_BLOCK):
                target.write(block)
            target.close()  # type: ignore[attr-defined]  # its types omit it

    return Client(address, dict(options))


@dataclass(frozen=True)
class ObjectPath:
    """A file or folder below the address of an object store."""

    store: ObjectStore
    key: str = ""
    listed: Status | None = field(default=None, compare=False)  # as the listing of a folder said

    # -- names -------------------------------------------------------------------------------------

    def __truediv__(self, name: str) -> ObjectPath:
        return ObjectPath(self.store, f"{self.key}/{name}" if self.key else name)

    def __str__(self) -> str:
        return f"{self.store.address}/{self.key}" if self.key else self.store.address

    @property
    def name(self) -> str:
        """The last part of the address."""
        return str(self).rpartition("/")[2]

    @property
    def stem(self) -> str:
        """The name without its suffix."""
        return PurePosixPath(self.name).stem

    def is_symlink(self) -> bool:
        """Object stores have no links."""
        return False

    @property
    def suffix(self) -> str:
        """The suffix of the name."""
        return PurePosixPath(self.name).suffix

    def for_tasks(self) -> ObjectPath:
        """The path for tasks of Spark; see `ObjectStore.for_tasks`."""
        return ObjectPath(self.store.for_tasks(), self.key)

    @property
    def parent(self) -> ObjectPath:
        """The folder that contains this path; the store itself is its own parent."""
        return ObjectPath(self.store, self.key.rpartition("/")[0])

    # -- reading -----------------------------------------------------------------------------------

    def _info(self) -> Any:
        with translate_service_errors(self):
            return self.store.client.get_file_info([self.key])[0]

    def is_file(self) -> bool:
        """Whether there is an object."""
        return self.listed is not None or bool(self._info().is_file)

    def is_dir(self) -> bool:
        """Whether there are objects below this path."""
        return self.listed is None and next(self.iterdir(), None) is not None

    def stat(self) -> Status:
        """The size and time of an object."""
        if self.listed is not None:
            return self.listed
        info = self._info()
        if not info.is_file:
            raise FileNotFoundError(2, "the file is missing", str(self))
        return _status(info)

    def iterdir(self, *, recursive: bool = False) -> Iterator[ObjectPath]:
        """The files and folders in a folder, from one listing; none if it is missing."""
        from pyarrow.fs import FileSelector

        selector = FileSelector(self.key, allow_not_found=True, recursive=recursive)
        with translate_service_errors(self):
            infos = self.store.client.get_file_info_selector(selector)
        for info in infos:
            yield ObjectPath(self.store, info.path, _status(info) if info.is_file else None)

    def glob(self, pattern: str) -> Iterator[ObjectPath]:
        """The files and folders in a folder whose names match a pattern."""
        return (path for path in self.iterdir() if fnmatchcase(path.name, pattern))

    def rglob(self, pattern: str) -> Iterator[ObjectPath]:
        """The files below a folder whose names match a pattern."""
        paths = self.iterdir(recursive=True)
        return (path for path in paths if path.listed and fnmatchcase(path.name, pattern))

    def open_input(self) -> pa.NativeFile:
        """Open an object for reading parts of it."""
        with translate_service_errors(self):
            return self.store.client.open_input_file(self.key)

    def read_bytes(self) -> bytes:
        """The content of an object."""
        with translate_service_errors(self), self.open_input() as source:
            return bytes(source.read())

    def read_text(self, encoding: str = "utf-8") -> str:
        """The content of an object as text."""
        return self.read_bytes().decode(encoding)

    # -- writing -----------------------------------------------------------------------------------

    def write_text(self, text: str, encoding: str = "utf-8") -> None:
        """Write an object; it appears when it is complete."""
        with tempfile.TemporaryFile() as source:
            source.write(text.encode(encoding))
            source.seek(0)
            with translate_service_errors(self):
                self.store.client.write(self.key, source)

    def upload(self, copy: Path) -> None:
        """Write an object with the content of a local file, its copy in the cache."""
        with translate_service_errors(self), copy.open("rb") as source:
            self.store.client.write(self.key, source)
        self.store.added(copy)

    def unlink(self, missing_ok: bool = False) -> None:
        """Remove an object and its local copy."""
        if not missing_ok and not self.is_file():
            raise FileNotFoundError(2, "the file is missing", str(self))
        self.copy.unlink(missing_ok=True)
        try:
            with translate_service_errors(self):
                self.store.client.delete_file(self.key)
        except FileNotFoundError:  # another process was faster
            pass

    def mkdir(self, **_: bool) -> None:
        """Do nothing: folders exist as long as objects are in them."""

    def rmdir(self) -> None:
        """Do nothing: folders exist as long as objects are in them."""

    # -- local copies ------------------------------------------------------------------------------

    @property
    def copy(self) -> Path:
        """The place of the local copy."""
        return self.store.copies / self.key

    def fetch(self, size: int | None = None) -> Path:
        """The local copy of a data file, downloaded if it is missing or damaged.

        Its name contains its checksum; a download with another one is a `ValueError`.
        """
        copy = self.copy
        try:
            self.store.use(copy)
            is_whole = size is None or copy.stat().st_size == size
            if copy.is_file() and is_whole and has_its_content(copy):
                return copy
        except OSError:
            pass
        self._download(copy)
        if not has_its_content(copy):
            copy.unlink(missing_ok=True)
            raise ValueError("checksum mismatch")
        self.store.added(copy)
        return copy

    def _download(self, copy: Path) -> None:
        copy.parent.mkdir(parents=True, exist_ok=True)
        temporary = copy.with_name(f".{uuid.uuid4().hex}")
        try:
            with self.open_input() as source, temporary.open("wb") as target:
                while block := self._read(source):
                    target.write(block)
            temporary.replace(copy)
        finally:
            temporary.unlink(missing_ok=True)

    def _read(self, source: pa.NativeFile) -> bytes:
        with translate_service_errors(self):
            return bytes(source.read(_BLOCK))


StorePath = Path | ObjectPath


def _status(info: Any) -> Status:
    nanoseconds = info.mtime_ns or 0
    return Status(info.size, nanoseconds / 1e9, nanoseconds, 0, 0)


def object_path(address: str, options: Mapping[str, str] | None = None) -> ObjectPath | None:
    """The path for an address of an object store; None if this is not an address.

    >>> str(object_path("s3a://bucket/univ.store/")), object_path("s3:x")
    ('s3://bucket/univ.store', None)
    """
    parts = _ADDRESS.fullmatch(address)
    if parts is None:
        return None
    scheme = parts[1].lower()
    scheme, place = _ALIASES.get(scheme, scheme), parts[2].rstrip("/")
    if scheme not in SCHEMES:
        known = ", ".join(f"{name}://" for name in ("file", *SCHEMES))
        raise InvalidInput(
            "E510",
            f"a store cannot be at {address}: {parts[1]}:// is not supported",
            f"choose a local folder, or an address with {known}",
            file=address,
        )
    if _REFUSED.search(place) or not all(part.strip(".") for part in place.split("/")):
        raise InvalidInput(
            "E510",
            f"a store cannot be at {address}",
            "name a bucket and a folder, without empty parts and without % ? # * [ ] { } \\",
            file=address,
        )
    local_cache.capacity()  # fails early if it is not a size
    chosen = os.environ.get(local_cache.FOLDER)
    return ObjectPath(
        ObjectStore(
            f"{scheme}://{place}",
            tuple(sorted((options or {}).items())),
            Path(chosen) if chosen else None,
        )
    )


def remove_tree(folder: StorePath, *, ignore_errors: bool = False) -> None:
    """Remove a folder and all files below it."""
    if isinstance(folder, Path):
        shutil.rmtree(folder, ignore_errors=ignore_errors)
        return
    for path in folder.rglob("*"):
        path.unlink()


@contextmanager
def fresh_copies(path: StorePath) -> Iterator[StorePath]:
    """A path whose data files are downloaded again in this block, as a verification must."""
    if isinstance(path, Path):
        yield path
        return
    path.store.home.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fresh-", dir=path.store.home) as folder:
        yield replace(path, store=replace(path.store, fresh=Path(folder)))


# -- errors ----------------------------------------------------------------------------------------


@contextmanager
def translate_service_errors(path: ObjectPath | str) -> Iterator[None]:
    """Translate errors of requests, except for missing objects."""
    try:
        yield
    except CorollaryError:
        raise
    except FileNotFoundError:
        raise FileNotFoundError(2, "the file is missing", str(path)) from None
    except Exception as error:
        raise refused_request(path, error) from None


def is_service_error(error: BaseException) -> bool:
    """Whether an error of `deltalake` says that a request failed, and not that data is damaged."""
    missing = isinstance(error, FileNotFoundError)
    return not missing and _SERVICE.search(str(error)) is not None


def refused_request(path: ObjectPath | str, error: BaseException) -> OperationFailed:
    """The error for an object store that cannot be reached, or denies access."""
    return OperationFailed(
        "E512",
        f"the object store does not serve {path}: {_reason(str(error))}",
        "check the address, the credentials and the endpoint, which come from the environment"
        " (such as AWS_ACCESS_KEY_ID) or from --storage-option KEY=VALUE",
        file=str(path),
    )


def _reason(text: str) -> str:
    """The innermost cause, from the lines of an error, or the message of the service."""
    if found := _XML.search(text):
        return f"{found[1]}: {found[2]}"
    lines = [line.strip(" ↳\t") for line in _COLOR.sub("", text).splitlines()]
    causes = [line for line in lines if line]
    return causes[-1] if causes else "no reason was given"
