"""Resolve IRI references against a base."""

from __future__ import annotations

import re

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")
_PARTS = re.compile(r"([^:/?#]+:)?(//[^/?#]*)?([^?#]*)(\?[^#]*)?(#.*)?", re.DOTALL)


def resolve(base: str | None, reference: str) -> str:
    """An IRI reference resolved against a base (RFC 3986, section 5.2).

    >>> resolve("http://e/a/b?q", "../c#d"), resolve("urn:x:y", "#z"), resolve(None, "a")
    ('http://e/c#d', 'urn:x:y#z', 'a')
    """
    if not base or _SCHEME.match(reference):
        return reference
    scheme, authority, path, query, _ = _split(base)
    _, own_authority, own_path, own_query, fragment = _split(reference)
    if own_authority:
        authority, path, query = own_authority, _remove_dot_segments(own_path), own_query
    elif own_path:
        if not own_path.startswith("/"):
            folder = path[: path.rfind("/") + 1] if "/" in path else "/" if authority else ""
            own_path = folder + own_path
        path, query = _remove_dot_segments(own_path), own_query
    elif own_query:
        query = own_query
    return f"{scheme}{authority}{path}{query}{fragment}"


def _split(reference: str) -> tuple[str, ...]:
    """The five components of a reference, each with its delimiters."""
    match = _PARTS.fullmatch(reference)
    assert match is not None, "the pattern matches every string"
    return tuple(part or "" for part in match.groups())


def _remove_dot_segments(path: str) -> str:
    segments: list[str] = []
    parts = path.split("/")
    for number, part in enumerate(parts):
        last = number == len(parts) - 1
        if part in (".", ".."):
            if part == ".." and len(segments) > 1:
                segments.pop()
            if last:
                segments.append("")
        else:
            segments.append(part)
    return "/".join(segments)
