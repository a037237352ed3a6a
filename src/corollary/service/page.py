"""The page: its files are read once, so no path of a request reaches the file system."""

from __future__ import annotations

import hashlib
import mimetypes
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from starlette.responses import Response

_FOLDER = Path(__file__).parent / "static"


@dataclass(frozen=True)
class PageFile:
    """A file of the page."""

    body: bytes
    media_type: str
    tag: str

    def response(self, headers: Mapping[str, str]) -> Response:
        """The response; files with a hash in their name may be kept forever."""
        caching = {"ETag": self.tag, "Cache-Control": "no-cache"}
        if headers.get("if-none-match") == self.tag:
            return Response(None, 304, caching)
        return Response(self.body, 200, caching, self.media_type)


@cache
def page_files() -> Mapping[str, PageFile]:
    """The files by path.

    >>> page_files()["/"].media_type
    'text/html'
    """
    found = {}
    for path in sorted(_FOLDER.rglob("*")):
        if path.is_file():
            body = path.read_bytes()
            media = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
            tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
            found["/" + path.relative_to(_FOLDER).as_posix()] = PageFile(body, media, tag)
    if "/index.html" in found:
        found["/"] = found.pop("/index.html")
    return found
