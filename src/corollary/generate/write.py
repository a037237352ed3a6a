"""Write generated files, all or none, with a manifest.

The files are written into a hidden folder and moved when they are complete. The manifest,
`generated.json`, lists the dataset and its files, which a later run may replace.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from corollary.errors import OperationFailed
from corollary.generate.columns import BATCH
from corollary.generate.datasets import Dataset, File

COMPRESSIONS = {"none": "", "gzip": ".gz", "zstd": ".zst"}
LIST = "generated.json"
_GZIP_LEVEL = 6  # as gzip itself; 9 takes three times as long for 1 % less


@dataclass(frozen=True)
class Written:
    """A file that was written; a program has no facts."""

    name: str
    facts: int
    bytes: int


def write(
    dataset: Dataset,
    folder: str | Path,
    *,
    scale: float = 1,
    seed: int = 0,
    compress: str = "none",
    force: bool = False,
    on_progress: Callable[[int, int, int], None] = lambda files, of, facts: None,
) -> list[Written]:
    """Generate a dataset; `on_progress` receives the numbers of files done, all files and facts.

    >>> import tempfile
    >>> from corollary.generate.clique import DATASET
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [(file.name, file.facts) for file in write(DATASET, folder, scale=3)]
    [('edge.facts', 6), ('program.dl', 0)]
    """
    files = dataset.files(scale, seed)
    names = [_name(file, compress) for file in files]
    place = Path(folder)
    with _writing(place):
        replaced = _replaced(place, names, force=force)
        with _hidden_folder(place) as hidden:
            written: list[Written] = []
            for file, name in zip(files, names, strict=True):
                before = sum(done.facts for done in written)

                def tell(facts: int, before: int = before) -> None:
                    on_progress(len(written), len(files), before + facts)

                written.append(_write_file(file, hidden / name, compress, tell))
            about = {"dataset": dataset.name, "scale": scale, "seed": seed, "files": names}
            (hidden / LIST).write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
            for old in replaced:
                old.unlink(missing_ok=True)
            for name in (*names, LIST):
                (hidden / name).replace(place / name)
    return written


def _name(file: File, compress: str) -> str:
    return file.name if file.text else file.name + COMPRESSIONS[compress]


def _write_file(
    file: File, path: Path, compress: str, on_progress: Callable[[int], None]
) -> Written:
    facts = 0
    with _opened(path, "none" if file.text else compress) as stream:
        stream.write(file.text.encode())
        for columns in file.facts():
            for piece in columns.slices(BATCH):
                stream.write(piece.lines())
                facts += len(piece)
                on_progress(facts)
    return Written(path.name, facts, path.stat().st_size)


@contextmanager
def _opened(path: Path, compress: str) -> Iterator[BinaryIO | Any]:
    with path.open("wb") as file:
        if compress == "gzip":
            # Without name and time, the same facts give the same bytes.
            with gzip.GzipFile("", "wb", _GZIP_LEVEL, file, mtime=0) as stream:
                yield stream
        elif compress == "zstd":
            with pa.CompressedOutputStream(file, "zstd") as stream:
                yield stream
        else:
            yield file


def _replaced(folder: Path, names: Sequence[str], *, force: bool) -> list[Path]:
    """The files to replace: those with these names, and all of an earlier dataset."""
    there = [folder / name for name in (LIST, *names) if (folder / name).exists()]
    if there and not force:
        raise OperationFailed(
            "E430",
            f"{there[0]} already exists",
            "choose another folder, or add --force to replace what was generated there",
            file=str(there[0]),
        )
    try:
        about = json.loads((folder / LIST).read_text(encoding="utf-8"))
        # Names, not paths: the list must not reach out of the folder.
        return [folder / Path(str(name)).name for name in about["files"]]
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return []


@contextmanager
def _hidden_folder(folder: Path) -> Iterator[Path]:
    made = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    hidden = folder / f".generate.{os.getpid()}.tmp"
    try:
        hidden.mkdir(parents=True)
        yield hidden
    except BaseException:
        shutil.rmtree(hidden, ignore_errors=True)
        for parent in made:  # the folders that were made for this are empty again
            with suppress(OSError):
                parent.rmdir()
        raise
    hidden.rmdir()


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if folder.exists() and not folder.is_dir():
            reason = "it is a file, not a folder"
        else:
            reason = error.strerror or str(error)
        raise OperationFailed(
            "E401", f"cannot write into {folder}: {reason}", file=str(folder)
        ) from None
