"""Files that LOAD names by their IRI: on this machine, or on the web."""

from __future__ import annotations

import shutil
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from corollary.errors import InvalidInput, OperationFailed
from corollary.rdf.files import format_of

if TYPE_CHECKING:
    from corollary.knowledge_base.transaction import LoadFrom

_TIMEOUT = 60.0  # seconds without a byte
_SUFFIXES = {
    "text/turtle": ".ttl",
    "application/n-triples": ".nt",
    "application/n-quads": ".nq",
    "application/trig": ".trig",
    "application/rdf+xml": ".rdf",
    "application/ld+json": ".jsonld",
}


@contextmanager
def fetched(iri: str, load: LoadFrom) -> Iterator[Path]:
    """The local file of an IRI, downloaded if it is on the web.

    >>> with fetched("file:///tmp/a%20b.ttl", "files") as path:
    ...     print(path)
    /tmp/a b.ttl
    """
    parts = urlsplit(iri)
    if load == "none":
        raise InvalidInput("E569", "LOAD is not allowed here", 'load="files" allows local files')
    if parts.scheme in ("", "file") and parts.netloc in ("", "localhost"):
        yield Path(unquote(parts.path))
    elif parts.scheme not in ("http", "https"):
        raise InvalidInput("E569", f"LOAD cannot read {iri}", "use file:, http: or https:")
    elif load != "web":
        hint = 'load="web", or --load web, allows it'
        raise InvalidInput("E569", f"LOAD may read local files only, not {iri}", hint)
    else:
        with tempfile.TemporaryDirectory(prefix="corollary-load-") as folder:
            yield download(iri, Path(folder))


def download(iri: str, folder: Path) -> Path:
    """Download a document into a folder; its name tells its format."""
    request = urllib.request.Request(iri, headers={"Accept": ", ".join([*_SUFFIXES, "*/*;q=0.1"])})
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT) as response:
            kind = response.headers.get_content_type()
            name = Path(unquote(urlsplit(response.url).path)).name or "document"
            path = folder / name
            if format_of(path) is None or kind in _SUFFIXES:
                path = folder / f"document{_SUFFIXES.get(kind, '.ttl')}"
            with path.open("wb") as file:
                shutil.copyfileobj(response, file)
    except (OSError, ValueError) as error:  # URLError is an OSError
        if isinstance(error, urllib.error.HTTPError):
            error.close()
        message = f"cannot load {iri}: {error}"
        raise OperationFailed("E570", message, "check the address") from error
    return path
