"""Tokens: who may read, write, and change rules.

A file of tokens has one line per token: a role, a name for the log, and the token or its SHA-256
digest as `sha256:<hex>`. `#` after a space begins a comment. Tokens are compared by digest in
constant time.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from corollary.errors import InvalidInput, Source

ROLES = ("read", "write", "admin")
_MIN_LENGTH = 16  # characters: 64 bits in hexadecimal
_NAME = re.compile(r"[\w.@-]{1,64}")
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
_COMMENT = re.compile(r"(^|\s)#.*")  # a token may contain the character
_HINT = "a line is: ROLE NAME TOKEN, such as: write alice 3f9c…; 'openssl rand -hex 32' makes one"


@dataclass(frozen=True)
class Identity:
    """Who sends a request: a name for the log and a role."""

    name: str
    role: str

    def may(self, role: str) -> bool:
        """Whether the role includes another one.

        >>> Identity("alice", "write").may("read"), Identity("alice", "write").may("admin")
        (True, False)
        """
        return ROLES.index(self.role) >= ROLES.index(role)


@dataclass(frozen=True)
class Tokens:
    """The digests of known tokens, each with its identity."""

    identities: Sequence[tuple[bytes, Identity]]

    @classmethod
    def read(cls, path: str | Path) -> Tokens:
        """Read a file of tokens."""
        return cls.parse(Source.read(path))

    @classmethod
    def parse(cls, source: Source) -> Tokens:
        """Parse the text of a file of tokens.

        >>> tokens = Tokens.parse(Source("tokens", "read bob 0123456789abcdef"))
        >>> tokens.identify("Bearer 0123456789abcdef")
        Identity(name='bob', role='read')
        >>> tokens.identify("Bearer guess") is None
        True
        """
        found: list[tuple[bytes, Identity]] = []
        for number, line in enumerate(source.text.splitlines(), 1):
            words = _COMMENT.sub("", line).split()
            if not words:
                continue
            reason = _mistake(words)
            if reason:  # never with the token itself
                raise InvalidInput("E610", reason, _HINT, file=source.name, line=number)
            role, name, token = words
            digest = _DIGEST.fullmatch(token)
            key = bytes.fromhex(digest[1]) if digest else _digest(token)
            if key in dict(found):
                reason = f"{name} has the token of another line"
                raise InvalidInput("E610", reason, _HINT, file=source.name, line=number)
            found.append((key, Identity(name, role)))
        if not found:
            raise InvalidInput("E610", f"{source.name} has no token", _HINT, file=source.name)
        return cls(tuple(found))

    def identify(self, authorization: str) -> Identity | None:
        """Return who an `Authorization` header belongs to: `Bearer`, or `Basic` with the token as
        password."""
        scheme, _, value = authorization.strip().partition(" ")
        token = value.strip()
        if scheme.lower() == "basic":
            try:
                token = base64.b64decode(token, validate=True).decode().partition(":")[2]
            except ValueError:  # not Base64, not ASCII or not UTF-8
                return None
        elif scheme.lower() != "bearer":
            return None
        digest, identity = _digest(token), None
        for known, owner in self.identities:  # all of them: the time tells nothing
            if hmac.compare_digest(known, digest):
                identity = owner
        return identity


def _mistake(words: Sequence[str]) -> str | None:
    if len(words) != 3:
        return f"expected a role, a name and a token, found {len(words)} words"
    role, name, token = words
    if role not in ROLES:
        return f"unknown role; the roles are {', '.join(ROLES)}"
    if not _NAME.fullmatch(name):
        return "a name has up to 64 letters, digits and . @ _ -"
    if len(token) < _MIN_LENGTH:
        return f"the token of {name} is too short: a token has at least {_MIN_LENGTH} characters"
    if token.startswith("sha256:") and not _DIGEST.fullmatch(token):
        return f"the digest of {name} is not sha256: and 64 hexadecimal digits"
    return None


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
