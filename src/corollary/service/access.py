"""Access: which requests are let in, and the headers that protect browsers.

A web page of somebody else could make the browser of a user send requests to a local service. So a
request that names a foreign origin is refused, and without tokens, so is a foreign host name (to
which an attacker may point any address: DNS rebinding).
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from corollary.errors import InvalidInput
from corollary.service.settings import LOCAL_HOSTS, Settings
from corollary.service.tokens import Identity

# Nothing is loaded from elsewhere, no script but our own runs, nobody may frame the page.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none';"
    " form-action 'none'; frame-ancestors 'none'"
)
SECURITY_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_ANONYMOUS = "anonymous"


def refuse_foreign(headers: Mapping[str, str], settings: Settings) -> None:
    """Refuse requests that a foreign page makes a browser send.

    >>> refuse_foreign({"host": "127.0.0.1:7878"}, Settings("univ.store"))
    >>> refuse_foreign({"host": "evil.example"}, Settings("univ.store"))
    Traceback (most recent call last):
    corollary.errors.InvalidInput: the request is for another host than this service
    """
    host = headers.get("host", "")
    known = (*LOCAL_HOSTS, settings.host.lower())
    if settings.tokens is None and settings.is_local and _host_name(host) not in known:
        raise InvalidInput(
            "E605",
            "the request is for another host than this service",
            "use the address that the service prints when it starts",
        )
    origin = headers.get("origin")
    if origin is None:
        foreign = headers.get("sec-fetch-site") in ("cross-site", "same-site")
        # A link from another page may open ours: it reads nothing.
        if foreign and headers.get("sec-fetch-mode") == "navigate":
            foreign = headers.get("sec-fetch-dest") != "document"
    else:
        foreign = origin not in settings.cors and urlsplit(origin).netloc.lower() != host.lower()
    if foreign:
        raise InvalidInput(
            "E605",
            "the request comes from a page of another origin",
            "name the origin when the service starts: --cors ORIGIN",
        )


def _host_name(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def identify(headers: Mapping[str, str], settings: Settings) -> Identity | None:
    """Return who sends a request: by token, or everybody if there are none.

    >>> identify({}, Settings("univ.store")).role, identify({}, Settings("s", open=True)).role
    ('read', 'admin')
    """
    if settings.tokens is None:
        return Identity(_ANONYMOUS, "admin" if settings.open else "read")
    authorization = headers.get("authorization")
    return None if authorization is None else settings.tokens.identify(authorization)


def require(identity: Identity | None, role: str, settings: Settings) -> Identity:
    """Refuse a request whose sender is unknown or lacks a role."""
    if identity is None:
        raise InvalidInput(
            "E603",
            "the request has no token that this service knows",
            "send the header Authorization: Bearer TOKEN",
        )
    if not identity.may(role):
        hint = f"use a token with the role {role}"
        if settings.tokens is None:
            hint = "start the service with --tokens FILE, or with --open to let everybody write"
        raise InvalidInput("E604", f"the request needs the role {role}", hint)
    return identity


def cors_headers(headers: Mapping[str, str], settings: Settings) -> dict[str, str]:
    """The headers that let a named origin read a response."""
    origin = headers.get("origin")
    if origin is None or origin not in settings.cors:
        return {}
    return {
        "Access-Control-Allow-Origin": origin,
        "Access-Control-Allow-Methods": "GET, POST, PUT, DELETE, HEAD",
        "Access-Control-Allow-Headers": "Authorization, Content-Type, Accept, Last-Event-ID",
        "Access-Control-Expose-Headers": "Corollary-Version, X-Request-Id",
        "Access-Control-Max-Age": "600",
        "Cross-Origin-Resource-Policy": "cross-origin",
        "Vary": "Origin",
    }
